//! The check finds planted damage, and neither readers nor writers are harmed by it.

use super::*;
use crate::btree::Cursor;
use crate::node::{COUNT, HEAP, Node, SLOT, SLOTS};
use crate::page::offset;
use crate::{PageNo, Pool};

const ENTRIES: u64 = 3000;

/// Changes a page behind the tree's back.
fn plant(pool: &Pool, page_no: PageNo, damage: impl FnOnce(&mut [u8])) {
    let mut page = pool.pin(page_no).unwrap().lock_yielding();
    damage(page.bytes_mut());
}

fn root_child(store: &Store, tree: Tree, position: usize) -> PageNo {
    let root = store.pool.pin(tree.root).unwrap().lock_yielding();
    Node::of(root.bytes()).child(position).unwrap()
}

/// Loads a tree, plants damage in its root's second child, and returns the problems that the check
/// reports.
fn check_after(damage: impl FnOnce(&Store, Tree, PageNo) + Send) -> Vec<crate::btree::Problem> {
    let bench = Bench::new(1, 256);
    let (store, tree) = bench.create();
    let problems = bench.run(&store, |store| {
        for number in 0..ENTRIES {
            put(store, tree, &number.to_be_bytes(), &[number as u8; 50]);
        }
        assert_sound(store, tree);
        let victim = root_child(store, tree, 1);
        damage(store, tree, victim);
        // No damage makes a reader panic, hang or read outside the page.
        let mut value = Vec::new();
        for number in 0..ENTRIES {
            let key = number.to_be_bytes();
            let _ = tree.get_into(store, &key, &mut value);
            let mut change = Put { value: b"x", before: None, lsn: Lsn::ZERO };
            if number % 10 == 0 {
                let _ = tree.change(store, &key, &mut change);
            }
        }
        let mut cursor = Cursor::new(tree);
        for _ in 0..2 * ENTRIES {
            if !matches!(cursor.next(store), Ok(Some(_))) {
                break;
            }
        }
        tree.check(store).unwrap().problems
    });
    bench.close(store);
    problems
}

#[test]
fn exchanged_slots_are_found() {
    let problems = check_after(|store, _, victim| {
        plant(&store.pool, victim, |page| {
            let (low, high) = page.split_at_mut(SLOTS + SLOT);
            low[SLOTS..].swap_with_slice(&mut high[..SLOT]);
        });
    });
    assert!(problems.iter().any(|problem| problem.what.contains("order")), "{problems:?}");
}

#[test]
fn a_count_beyond_the_page_is_found() {
    let problems = check_after(|store, _, victim| {
        plant(&store.pool, victim, |page| page[COUNT + 1] = 0x7f);
    });
    assert!(!problems.is_empty());
}

#[test]
fn a_heap_that_overlaps_is_found() {
    let problems = check_after(|store, _, victim| {
        plant(&store.pool, victim, |page| page.copy_within(SLOTS..SLOTS + 2, HEAP));
    });
    assert!(problems.iter().any(|problem| problem.what.contains("heap")), "{problems:?}");
}

#[test]
fn strange_pages_are_found() {
    let tree_of_another = check_after(|store, _, victim| {
        plant(&store.pool, victim, |page| page[offset::TREE] ^= 1);
    });
    assert!(tree_of_another[0].what.contains("belongs"), "{tree_of_another:?}");
    let wrong_level = check_after(|store, _, victim| {
        plant(&store.pool, victim, |page| page[offset::LEVEL] += 1);
    });
    assert!(wrong_level[0].what.contains("level"), "{wrong_level:?}");
}

#[test]
fn a_page_reached_twice_is_found() {
    let problems = check_after(|store, tree, victim| {
        plant(&store.pool, tree.root, |page| {
            let at = Node::of(page).payload(1).unwrap();
            page[at].copy_from_slice(&victim.0.to_le_bytes());
        });
    });
    assert!(problems.iter().any(|problem| problem.what.contains("twice")), "{problems:?}");
}

#[test]
fn a_page_that_is_free_in_the_map_is_found() {
    let problems = check_after(|store, _, victim| {
        let (map_page, bit) = store.space.map_page_of(victim);
        plant(&store.pool, map_page, |map| crate::space::clear_bit(map, bit));
    });
    assert!(problems.iter().any(|problem| problem.what.contains("space map")), "{problems:?}");
}
