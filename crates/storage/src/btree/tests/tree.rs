//! Trees on a real store against a `BTreeMap`, with a pool too small for them.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::*;
use crate::btree::{Cursor, MAX_ENTRY, MAX_KEY};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn sorted(model: &Model) -> Vec<(Vec<u8>, Vec<u8>)> {
    model.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn random_key(random: &mut Random, space: u64) -> Vec<u8> {
    match random.below(8) {
        0 => format!("text {:05}", random.below(space)).into_bytes(),
        1 => vec![b'x'; random.below(MAX_KEY as u64) as usize],
        _ => (random.below(space) * 7919).to_be_bytes().to_vec(),
    }
}

fn random_value(random: &mut Random, key: &[u8]) -> Vec<u8> {
    let most = if random.below(50) == 0 { MAX_ENTRY - key.len() } else { 150 };
    let len = random.below(most as u64 + 1) as usize;
    vec![random.next() as u8; len]
}

fn probe(store: &Store, tree: Tree, model: &Model, key: &[u8]) {
    let mut value = Vec::new();
    assert_eq!(tree.get_into(store, key, &mut value).unwrap(), model.contains_key(key));
    assert!(model.get(key).is_none_or(|expected| *expected == value));
    let mut cursor = Cursor::new(tree);
    let own = |entry: Option<(&[u8], &[u8])>| entry.map(|(key, value)| (key.to_vec(), value.to_vec()));
    let pair = |entry: Option<(&Vec<u8>, &Vec<u8>)>| entry.map(|(key, value)| (key.clone(), value.clone()));
    cursor.seek(store, key).unwrap();
    let at = pair(model.range(key.to_vec()..).next());
    assert_eq!(own(cursor.next(store).unwrap()), at);
    if at.is_some() {
        assert_eq!(own(cursor.prev(store).unwrap()), at, "the gap is between entries");
    }
    assert_eq!(own(cursor.prev(store).unwrap()), pair(model.range(..key.to_vec()).next_back()));
    cursor.seek_after(store, key).unwrap();
    let after = pair(model.range((Bound::Excluded(key.to_vec()), Bound::Unbounded)).next());
    assert_eq!(own(cursor.next(store).unwrap()), after);
    cursor.seek_after(store, key).unwrap();
    assert_eq!(own(cursor.prev(store).unwrap()), pair(model.range(..=key.to_vec()).next_back()));
    places(store, tree, model, key);
    // In the same leaf, in leaves behind it, and before it.
    let behind = model.range(key.to_vec()..).map(|(key, _)| key.as_slice());
    for near in behind.step_by(17).take(5).chain([key, &[]]) {
        cursor.seek_near(store, near).unwrap();
        assert_eq!(own(cursor.next(store).unwrap()), pair(model.range(near.to_vec()..).next()));
        cursor.seek_near(store, near).unwrap();
        assert_eq!(own(cursor.prev(store).unwrap()), pair(model.range(..near.to_vec()).next_back()));
    }
}

/// The entries behind a key, read by places, up to a bound in the same leaf, in a later one, and to
/// the end.
fn places(store: &Store, tree: Tree, model: &Model, key: &[u8]) {
    let behind: Vec<&[u8]> = model.range(key.to_vec()..).map(|(key, _)| key.as_slice()).collect();
    let some = [behind.get(2), behind.get(400)].into_iter().flatten().copied();
    let bounds = some.flat_map(|end| [Bound::Included(end), Bound::Excluded(end)]);
    for end in bounds.chain([Bound::Unbounded, Bound::Excluded(key), Bound::Included(key)]) {
        let mut cursor = Cursor::new(tree);
        cursor.seek(store, key).unwrap();
        let mut read = Vec::new();
        while let Some(places) = cursor.next_places(store, end).unwrap() {
            assert!(!places.is_empty());
            read.extend(places.map(|place| cursor.value_at(place).unwrap().to_vec()));
        }
        let is_before = |key: &&[u8]| match end {
            Bound::Included(end) => *key <= end,
            Bound::Excluded(end) => *key < end,
            Bound::Unbounded => true,
        };
        let expected: Vec<Vec<u8>> =
            behind.iter().take_while(|key| is_before(key)).map(|key| model[*key].clone()).collect();
        assert_eq!(read, expected);
    }
}

fn random_steps(store: &Store, tree: Tree, seed: u64, steps: usize) {
    let (mut random, mut model) = (Random(seed), Model::new());
    let mut near = Near::default();
    for step in 0..steps {
        // Phases of growing and of shrinking, so that merges and lower roots happen too.
        let shrinking = step * 6 / steps % 2 == 1;
        let key = random_key(&mut random, 3000);
        if random.below(10) < if shrinking { 8 } else { 2 } {
            let key = match model.range(key.clone()..).next() {
                Some((key, _)) if shrinking => key.clone(),
                _ => key,
            };
            assert_eq!(take_near(store, tree, &mut near, &key).0, model.remove(&key));
        } else {
            let value = random_value(&mut random, &key);
            assert_eq!(put_near(store, tree, &mut near, &key, &value).0, model.insert(key, value));
        }
        if step % 50 == 0 {
            let key = random_key(&mut random, 3000);
            probe(store, tree, &model, &key);
        }
        if step % 2000 == 0 {
            assert_sound(store, tree);
        }
    }
    let report = assert_sound(store, tree);
    assert_eq!(report.entries, model.len() as u64);
    assert_eq!(tree.count(store).unwrap(), model.len() as u64);
    assert_eq!(tree.pages(store).unwrap(), report.pages);
    let mut pages = tree.collect_levels(store, false).unwrap().concat();
    pages.sort_unstable();
    pages.dedup();
    assert_eq!(pages.len() as u64, report.pages);
    assert_eq!(scan(store, tree), sorted(&model));
    assert_eq!(scan_back(store, tree), sorted(&model));
    for key in model.keys() {
        take_near(store, tree, &mut near, key);
    }
    let report = assert_sound(store, tree);
    assert_eq!((report.entries, report.pages), (0, 1), "an emptied tree has given its pages back");
    store.space.free(&tree.collect_levels(store, false).unwrap().concat()).unwrap();
}

#[test]
fn a_tree_is_a_map() {
    let bench = Bench::new(1, 64);
    let (store, first) = bench.create();
    let used = |store: &Store| store.space.pages().0 - store.space.pages().1;
    let before = used(&store);
    for seed in 0..3 {
        bench.run(&store, |store| {
            let tree = match seed {
                0 => first,
                _ => Tree::create_at(store, TREE, store.space.claim().unwrap()).unwrap(),
            };
            random_steps(store, tree, seed, 12_000);
        });
    }
    assert_eq!(used(&store), before - 1, "every page came back");
    bench.close(store);
}

#[test]
fn a_leaf_is_found_without_a_walk_only_while_nobody_changed_it() {
    let bench = Bench::new(1, 64);
    let (store, tree) = bench.create();
    bench.run(&store, |store| {
        let key = |number: u64| number.to_be_bytes();
        let finds = |near: &Near, number| {
            let mut near = *near;
            near.latch(&store.pool, &tree, &key(number)).is_some()
        };
        for number in (0..2_000).step_by(4) {
            put(store, tree, &key(number), &[1; 100]);
        }
        // Two changes of one leaf, of which nobody else changes the leaf after the second.
        let two = |near: &mut Near, number| {
            put_near(store, tree, near, &key(number), &[2; 100]);
            assert!(!finds(near, number), "one change alone is no run of neighbours");
            put_near(store, tree, near, &key(number + 1), &[2; 100]);
            assert!(finds(near, number) && finds(near, number), "a look changes nothing");
        };
        let mut near = Near::default();
        two(&mut near, 400);
        assert!(!finds(&near, 1_900), "another leaf's key");
        let other = Tree::new(tree.id + 1, tree.root);
        let found = near.latch(&store.pool, &other, &key(400)).is_some();
        assert!(!found, "another tree's");
        put_near(store, tree, &mut near, &key(402), &[3; 100]);
        assert!(finds(&near, 400), "a run goes on");
        // A change, a split, a merge, an eviction by others.
        put(store, tree, &key(403), &[4; 100]);
        assert!(!finds(&near, 400));
        two(&mut near, 800);
        for number in 600..1_000 {
            put(store, tree, &key(number), &[5; 100]);
        }
        assert!(!finds(&near, 800));
        two(&mut near, 700);
        for number in (0..2_000).filter(|number| *number != 700) {
            take(store, tree, &key(number));
        }
        assert!(!finds(&near, 700));
        put(store, tree, &key(1_500), &[1; 100]);
        two(&mut near, 1_600);
        let far = Tree::create_at(store, TREE + 1, store.space.claim().unwrap()).unwrap();
        for number in 0..10_000 {
            put(store, far, &key(number), &[6; 100]);
        }
        assert!(!finds(&near, 1_600), "its frame has another page");
        assert_eq!(take_near(store, tree, &mut near, &key(1_601)).0, Some(vec![2; 100]));
    });
    bench.close(store);
}

#[test]
fn a_scan_of_missing_leaves_reads_ahead() {
    let bench = Bench::new(1, 128);
    let (store, tree) = bench.create();
    bench.run(&store, |store| {
        for number in 0u64..20_000 {
            put(store, tree, &number.to_be_bytes(), &[number as u8; 100]);
        }
        for backward in [false, true] {
            let before = store.pool.statistics();
            let seen = if backward { scan_back(store, tree) } else { scan(store, tree) };
            assert_eq!(seen.len(), 20_000);
            let after = store.pool.statistics();
            let (loads, reads) = (after.loads - before.loads, after.reads - before.reads);
            assert!(loads > 150, "the tree does not fit: {loads}");
            assert!(reads * 4 < loads, "{reads} reads for {loads} pages");
        }
    });
    bench.close(store);
}

#[test]
fn ascending_loads_are_dense_and_statistics_right() {
    let bench = Bench::new(1, 128);
    let (store, tree) = bench.create();
    bench.run(&store, |store| {
        for number in 0u64..20_000 {
            put(store, tree, &number.to_be_bytes(), &[number as u8; 100]);
        }
        let report = assert_sound(store, tree);
        let fill = report.leaf_bytes as f64 / (report.leaves as f64 * 8128.0);
        assert!(fill > 0.9, "fill {fill}");
        let statistics = tree.statistics(store).unwrap();
        assert_eq!((statistics.pages, statistics.leaves), (report.pages, report.leaves));
        assert!(statistics.entries.abs_diff(20_000) < 1000, "{statistics:?}");
        assert_eq!(tree.height(store).unwrap(), report.height);
    });
    bench.close(store);
}

#[test]
fn a_tree_refuses_an_oversized_entry_and_a_change_of_mind_changes_nothing() {
    struct Decline;
    impl EntryChange for Decline {
        fn decide(&mut self, present: Option<&[u8]>) -> Action {
            assert_eq!(present, Some(&b"there"[..]));
            Action::None
        }
        fn value_len(&self) -> usize {
            unreachable!()
        }
        fn apply(&mut self, _: Option<&[u8]>, _: &mut [u8], _: &mut Vec<u8>) -> TxnLink {
            unreachable!()
        }
        fn logged(&mut self, _: Lsn) {
            unreachable!()
        }
    }
    let bench = Bench::new(1, 64);
    let (store, tree) = bench.create();
    bench.run(&store, |store| {
        put(store, tree, b"key", b"there");
        let mut long = Put { value: &[0; MAX_ENTRY], before: None, lsn: Lsn::ZERO };
        let refused = tree.change(store, b"key", &mut long);
        assert_eq!(refused, Err(Error::TooLarge { bytes: MAX_ENTRY + 3, limit: MAX_ENTRY }));
        let refused = tree.change(store, &[0; MAX_KEY + 1], &mut long);
        assert_eq!(refused, Err(Error::TooLarge { bytes: MAX_KEY + 1, limit: MAX_KEY }));
        let position = store.wal.position();
        tree.change(store, b"key", &mut Decline).unwrap();
        assert_eq!(take(store, tree, b"no such key").0, None);
        assert_eq!(store.wal.position(), position);
        assert_eq!(scan(store, tree), [(b"key".to_vec(), b"there".to_vec())]);
    });
    bench.close(store);
}

#[test]
fn dead_entries_go_before_a_leaf_is_split() {
    let bench = Bench::new(1, 64);
    let (store, tree) = bench.create();
    let tree = Tree { purge: Some(|value| value.first() == Some(&b'd')), ..tree };
    bench.run(&store, |store| {
        for number in 0u64..4000 {
            let value = if number % 100 == 0 { [b'l'; 100] } else { [b'd'; 100] };
            put(store, tree, &number.to_be_bytes(), &value);
        }
        let report = assert_sound(store, tree);
        assert_eq!(report.leaves, 1, "{report:?}");
        let live = scan(store, tree).iter().filter(|(_, value)| value[0] == b'l').count();
        assert_eq!(live, 40);
    });
    bench.close(store);
}
