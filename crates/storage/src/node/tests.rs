//! The node layer alone. Edits are compared with a `BTreeMap`, splits and merges lose nothing, redo
//! gives the same entries, and bytes that are no node are refused.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::buffer::PageBuffer;
use super::edit::{self, Fences};
use super::redo::{NodePayload, op, redo};
use super::shape;
use super::{CAPACITY, MAX_KEY, Node, SLOT};
use crate::PageNo;
use crate::btree::MAX_ENTRY;
use crate::page::PAGE_SIZE;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn empty_leaf() -> PageBuffer {
    let mut page = PageBuffer::take();
    page.fill(0);
    edit::init(&mut *page, 0, Fences::ALL).unwrap();
    page
}

fn entries(page: &[u8]) -> Model {
    let node = Node::of(page);
    let entry = |index| {
        let value = page[node.value(index).unwrap()].to_vec();
        (node.key(index).unwrap().as_slice().to_vec(), value)
    };
    (0..node.count().unwrap()).map(entry).collect()
}

/// Checks that every key is found in its place, in order.
fn assert_is(page: &[u8], model: &Model) {
    assert_eq!(&entries(page), model);
    for (index, key) in model.keys().enumerate() {
        let found = Node::of(page).search(key).unwrap();
        assert_eq!((found.index, found.exact), (index, true), "{key:?}");
        let mut after = key.clone();
        after.push(0);
        if !model.contains_key(&after) {
            let found = Node::of(page).search(&after).unwrap();
            assert_eq!((found.index, found.exact), (index + 1, false), "{after:?}");
        }
    }
    assert!(Node::of(page).used().is_some());
}

/// Keys that share prefixes, differ in trailing zeros, are empty or long.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0u64..300).prop_map(|number| number.to_be_bytes().to_vec()),
        (0u32..40, 0u32..40).prop_map(|(a, b)| [a.to_be_bytes(), b.to_be_bytes()].concat()),
        prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(255)], 0..7),
        (0usize..20, any::<u8>()).prop_map(|(len, last)| [vec![b'p'; len], vec![last]].concat()),
        (980usize..MAX_KEY, any::<u8>()).prop_map(|(len, last)| [vec![b'q'; len], vec![last]].concat()),
    ]
}

#[derive(Clone, Debug)]
enum Edit {
    Put(Vec<u8>, usize),
    Remove(prop::sample::Index),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let value = prop_oneof![4 => 0usize..200, 1 => 0usize..MAX_ENTRY];
    let one = prop_oneof![
        4 => (key(), value).prop_map(|(key, len)| {
            let len = len.min(MAX_ENTRY - key.len());
            Edit::Put(key, len)
        }),
        1 => any::<prop::sample::Index>().prop_map(Edit::Remove),
    ];
    prop::collection::vec(one, 1..250)
}

/// Applies the edits that fit, to the page and to a page that is changed by redo only.
fn apply(edits: &[Edit], page: &mut [u8], redone: &mut [u8], model: &mut Model) {
    for (step, edit) in edits.iter().enumerate() {
        match edit {
            Edit::Put(key, len) => {
                let value: Vec<u8> = (0..*len).map(|i| (i + step) as u8).collect();
                let key_len = (key.len() as u16).to_le_bytes();
                let found = Node::of(page).search(key).unwrap();
                let (room, done, code, payload) = if found.exact {
                    let room = edit::has_room_for_value(page, found.index, value.len()).unwrap();
                    let done = edit::replace_value(page, found.index, &value).unwrap();
                    (room, done, op::REPLACE, [&key_len[..], &[0; 4], key, &value].concat())
                } else {
                    let room = edit::has_room(page, key, value.len() + 2).unwrap();
                    let done = edit::insert_value(page, key, &value).unwrap();
                    (room, done, op::INSERT, [&key_len[..], key, &value].concat())
                };
                assert_eq!(room, done, "what has room goes in");
                if done {
                    assert!(redo(code, &payload, redone));
                    model.insert(key.clone(), value);
                } else {
                    let whole = |(key, len): (&Vec<u8>, usize)| SLOT + key.len() + 2 + len;
                    let others = model.iter().filter(|(other, _)| *other != key);
                    let needed: usize = others.map(|(other, value)| whole((other, value.len()))).sum();
                    assert!(needed + whole((key, *len)) > CAPACITY, "entries whose whole keys fit have room");
                }
            }
            Edit::Remove(index) if !model.is_empty() => {
                let key = model.keys().nth(index.index(model.len())).unwrap().clone();
                edit::remove(page, Node::of(page).search(&key).unwrap().index).unwrap();
                assert!(redo(op::REMOVE, &key, redone));
                model.remove(&key);
            }
            Edit::Remove(_) => {}
        }
    }
}

fn full_leaf(edits: &[Edit]) -> (PageBuffer, Model) {
    let (mut page, mut redone, mut model) = (empty_leaf(), empty_leaf(), Model::new());
    apply(edits, &mut *page, &mut *redone, &mut model);
    (page, model)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_are_those_of_a_map(edits in edits()) {
        let (mut page, mut redone, mut model) = (empty_leaf(), empty_leaf(), Model::new());
        apply(&edits, &mut *page, &mut *redone, &mut model);
        assert_is(&*page, &model);
        assert_is(&*redone, &model);
    }

    #[test]
    fn a_split_parts_and_a_merge_joins(edits in edits(), new in key()) {
        let (page, model) = full_leaf(&edits);
        if model.len() < 2 || model.contains_key(&new) {
            return Ok(());
        }
        let (mut left, mut right) = (PageBuffer::take(), PageBuffer::take());
        let cut = shape::split(&*page, &new, &mut *left, &mut *right).expect("every leaf of two entries can be split");
        let separator = cut.separator.as_slice();
        let (below, above): (Model, Model) =
            model.iter().map(|(k, v)| (k.clone(), v.clone())).partition(|(k, _)| k.as_slice() < separator);
        assert_is(&*left, &below);
        assert_is(&*right, &above);
        let side = if new.as_slice() < separator { &left } else { &right };
        assert!(Node::of(&**side).covers(&new).unwrap());

        let mut redone = PageBuffer::copy_of(&*page).unwrap();
        let payload = [&(cut.at as u16).to_le_bytes(), separator].concat();
        assert!(redo(op::CUT, &payload, &mut *redone));
        assert_is(&*redone, &below);
        let copied = NodePayload::of(&right, PageNo(7), 3).unwrap().pieces().concat();
        assert!(redo(op::NODE, &copied, &mut *redone));
        assert_is(&*redone, &above);

        let mut merged = PageBuffer::take();
        if shape::merge(&*left, &*right, separator, &mut *merged).unwrap() {
            assert_is(&*merged, &model);
            assert_eq!(Fences::of(&*merged).unwrap().upper, None);
        }
    }

    #[test]
    fn inner_nodes_find_the_child(keys in prop::collection::btree_set(key(), 1..120), probe in key()) {
        let mut page = PageBuffer::take();
        page.fill(0);
        edit::init(&mut *page, 1, Fences::ALL).unwrap();
        edit::set_first_child(&mut *page, PageNo(1000));
        let mut model: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        for (number, key) in keys.iter().enumerate() {
            if edit::insert_child(&mut *page, key, PageNo(number as u32)).unwrap() {
                model.insert(key.clone(), number as u32);
            }
        }
        let child_of = |page: &[u8], key: &[u8]| {
            let node = Node::of(page);
            node.child(node.child_position(key).unwrap()).unwrap().0
        };
        let expected = model.range(..=probe.clone()).next_back().map_or(1000, |(_, &child)| child);
        assert_eq!(child_of(&*page, &probe), expected);
        let below = model.range(..probe.clone()).next_back().map_or(1000, |(_, &child)| child);
        let node = Node::of(&*page);
        assert_eq!(node.child(node.child_position_below(&probe).unwrap()).unwrap().0, below);
        if model.len() >= 3 {
            let (mut left, mut right) = (PageBuffer::take(), PageBuffer::take());
            let cut = shape::split(&*page, &probe, &mut *left, &mut *right).unwrap();
            let side = if probe.as_slice() < cut.separator.as_slice() { &left } else { &right };
            assert_eq!(child_of(&**side, &probe), expected);
            let mut merged = PageBuffer::take();
            if shape::merge(&*left, &*right, cut.separator.as_slice(), &mut *merged).unwrap() {
                assert_eq!(child_of(&*merged, &probe), expected);
            }
        }
    }

    #[test]
    fn bytes_that_are_no_node_do_no_harm(
        edits in edits(),
        damage in prop::collection::vec((0..PAGE_SIZE, any::<u8>()), 1..40),
        probe in key(),
    ) {
        let (mut page, _) = full_leaf(&edits);
        for (at, byte) in damage {
            // Mostly the node header and the first slots, where damage does most.
            page[if at % 3 == 0 { at } else { 16 + at % 100 }] = byte;
        }
        let node = Node::of(&*page);
        if let Some(found) = node.search(&probe) {
            let _ = (node.value(found.index), node.key(found.index), node.child_of_entry(found.index));
        }
        let _ = (node.lower(), node.upper(), node.covers(&probe), node.used());
        let (mut left, mut right) = (PageBuffer::take(), PageBuffer::take());
        let _ = shape::split(&*page, &probe, &mut *left, &mut *right);
        let other = PageBuffer::copy_of(&*page).unwrap();
        let _ = shape::merge(&*page, &*other, &probe, &mut *left);
        for code in 0..=30 {
            let mut copy = PageBuffer::copy_of(&*page).unwrap();
            let _ = redo(code, &probe, &mut *copy);
        }
        let _ = edit::replace_value(&mut *page, 0, &probe);
        let _ = edit::insert_value(&mut *page, &probe, &[1; 300]);
        let _ = edit::remove(&mut *page, 0);
    }
}

/// Fills leaf after leaf as a load in key order does; returns how full the leaves are.
fn ascending(keys: impl Iterator<Item = Vec<u8>>) -> Vec<usize> {
    let (mut page, mut fills) = (empty_leaf(), Vec::new());
    for key in keys {
        if edit::insert_value(&mut *page, &key, &[7; 100]).unwrap() {
            continue;
        }
        fills.push(Node::of(&*page).used().unwrap());
        let (mut left, mut right) = (PageBuffer::take(), PageBuffer::take());
        shape::split(&*page, &key, &mut *left, &mut *right).unwrap();
        page = right;
        assert!(edit::insert_value(&mut *page, &key, &[7; 100]).unwrap());
    }
    fills
}

#[test]
fn ascending_loads_fill_their_leaves() {
    let numbers = ascending((0u64..5000).map(|number| number.to_be_bytes().to_vec()));
    let texts = ascending((0u64..5000).map(|number| format!("customer {number:010}").into_bytes()));
    for fills in [numbers, texts] {
        let full = fills.iter().filter(|&&fill| fill > PAGE_SIZE * 9 / 10).count();
        assert!(full * 100 > fills.len() * 95, "{fills:?}");
    }
}

/// A key that shares no prefix with long keys makes each of them longer. A leaf that is a fifth
/// full has no room for it, and the split gives it a leaf of its own.
#[test]
fn a_key_that_shortens_a_long_prefix_goes_beside_it() {
    let long = |last: u8| [vec![b'q'; MAX_KEY - 1], vec![last]].concat();
    let (mut page, mut model) = (empty_leaf(), Model::new());
    for last in 0..20 {
        assert!(edit::insert_value(&mut *page, &long(last), b"value").unwrap());
        model.insert(long(last), b"value".to_vec());
    }
    assert!(Node::of(&*page).used().unwrap() < PAGE_SIZE / 5);
    for new in [&b"a"[..], b"z"] {
        assert!(!edit::has_room(&*page, new, 2).unwrap());
        let (mut left, mut right) = (PageBuffer::take(), PageBuffer::take());
        let cut = shape::split(&*page, new, &mut *left, &mut *right).unwrap();
        let below = new < cut.separator.as_slice();
        let (own, other) = if below { (&mut left, &right) } else { (&mut right, &left) };
        assert_is(&**other, &model);
        assert!(edit::insert_value(&mut **own, new, b"").unwrap());
        assert_is(&**own, &Model::from([(new.to_vec(), Vec::new())]));
    }
}

#[test]
fn the_longest_entries_fit_three_to_a_split() {
    let (mut page, mut model) = (empty_leaf(), Model::new());
    for last in [5u8, 3, 9] {
        let key = [vec![last; 1], vec![last; MAX_KEY - 1]].concat();
        let value = vec![last; MAX_ENTRY - MAX_KEY];
        if edit::insert_value(&mut *page, &key, &value).unwrap() {
            model.insert(key, value);
        }
    }
    assert!(model.len() >= 2);
    let (mut left, mut right) = (PageBuffer::take(), PageBuffer::take());
    shape::split(&*page, &[4; MAX_KEY], &mut *left, &mut *right).unwrap();
    assert!(edit::has_room(&*left, &[4; MAX_KEY], MAX_ENTRY - MAX_KEY + 2).unwrap());
}

#[test]
fn unchanged_ends_are_as_long_as_they_can_be() {
    let values: Vec<Vec<u8>> = (0..40usize)
        .flat_map(|len| (0..=len).map(move |at| (0..len).map(|i| u8::from(i == at)).collect()))
        .collect();
    for old in &values {
        for new in &values {
            let (front, back) = crate::btree::unchanged_ends(old, new);
            let common = old.iter().zip(new).take_while(|(a, b)| a == b).count();
            let rest = old[common..].iter().rev().zip(new[common..].iter().rev());
            assert_eq!((front, back), (common, rest.take_while(|(a, b)| a == b).count()), "{old:?} {new:?}");
        }
    }
}
