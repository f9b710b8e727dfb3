//! Many fibers on several cores with a pool far too small: no entry is lost, doubled, torn or
//! skipped.

use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::*;
use crate::btree::Cursor;

/// Fibers of each kind on each core.
const FIBERS: usize = 3;

/// A value that shows when it is torn or belongs to another key: it repeats the key's number.
fn value_of(number: u64, version: u64) -> Vec<u8> {
    let word = (number << 20 | version & 0xf_ffff).to_le_bytes();
    word.repeat(2 + (version % 12) as usize)
}

fn assert_whole(number: u64, value: &[u8]) {
    let (words, rest) = value.as_chunks::<8>();
    assert!(rest.is_empty() && words.iter().all(|word| word == &words[0]), "torn: {value:?}");
    assert_eq!(u64::from_le_bytes(words[0]) >> 20, number, "another key's value");
}

fn key_of(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn number_of(key: &[u8]) -> u64 {
    u64::from_be_bytes(key.try_into().unwrap())
}

/// Runs `body` in fibers of every core at once, and waits for them.
fn everywhere(bench: &Bench, fibers: usize, body: impl Fn(usize) + Send + Sync) {
    let cores = bench.runtime.core_count();
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for index in 0..cores * fibers {
            let (body, failed) = (&body, &failed);
            scope.spawn(move || {
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    bench.runtime.call(index % cores, || body(index));
                }));
                failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            });
        }
    });
    assert!(!failed.load(Ordering::Relaxed), "a fiber failed");
}

/// Keys divisible by 4 are always there. Each other key belongs to one fiber, which knows whether
/// it is there.
fn run(cores: usize, frames: usize, keys: u64, steps: u64) {
    let bench = Bench::new(cores, frames);
    let (store, tree) = bench.create();
    bench.run(&store, |store| {
        for number in (0..keys).step_by(4) {
            put(store, tree, &key_of(number), &value_of(number, 0));
        }
    });
    let owners = (cores * FIBERS) as u64;
    let working = AtomicUsize::new(cores * FIBERS);
    let store_ref: &Store = &store;
    everywhere(&bench, 2 * FIBERS, |index| {
        let index = index as u64;
        if index < owners {
            own_keys(store_ref, tree, index, owners, keys, steps);
            working.fetch_sub(1, Ordering::Relaxed);
        } else {
            let mut random = Random(index);
            while working.load(Ordering::Relaxed) > 0 {
                if random.below(2) == 0 {
                    scan_all(store_ref, tree, keys);
                } else {
                    scan_all_back(store_ref, tree, keys);
                }
                runtime::fiber::yield_now();
            }
        }
    });
    let entries = bench.run(&store, |store| {
        assert_sound(store, tree);
        scan(store, tree).len()
    });
    assert!(entries as u64 >= keys / 4);
    bench.close(store);
    let store = bench.open();
    bench.run(&store, |store| {
        assert_sound(store, tree);
        assert_eq!(scan(store, tree).len(), entries);
    });
    bench.close(store);
}

/// Inserts, replaces, removes and looks up the keys of one owner, and writes and reads the common
/// ones.
fn own_keys(store: &Store, tree: Tree, owner: u64, owners: u64, keys: u64, steps: u64) {
    let mut random = Random(owner * 1_000_003);
    let (mut near, mut number) = (Near::default(), 0);
    let mut there = std::collections::HashMap::new();
    let mut value = Vec::new();
    for step in 0..steps {
        runtime::fiber::safe_point();
        // Half of the keys lie beside the one before, mostly in the same leaf.
        number = match random.below(2) {
            0 => (number + random.below(4)) % keys,
            _ => random.below(keys),
        };
        let key = key_of(number);
        if number.is_multiple_of(4) {
            assert!(tree.get_into(store, &key, &mut value).unwrap(), "{number} is always there");
            assert_whole(number, &value);
            let before = put_near(store, tree, &mut near, &key, &value_of(number, step)).0;
            assert_whole(number, &before.expect("always there"));
            continue;
        }
        if number % owners != owner {
            if tree.get_into(store, &key, &mut value).unwrap() {
                assert_whole(number, &value);
            }
            continue;
        }
        let found = tree.get_into(store, &key, &mut value).unwrap();
        let expected = there.get(&number).map(|&version| value_of(number, version));
        assert_eq!(found.then_some(&value), expected.as_ref(), "step {step}, key {number}");
        // Whole ranges come and go, so that leaves are split and merged again.
        if (step / 500 + number / 64).is_multiple_of(2) {
            let new = value_of(number, step);
            assert_eq!(put_near(store, tree, &mut near, &key, &new).0, expected);
            there.insert(number, step);
        } else {
            assert_eq!(take_near(store, tree, &mut near, &key).0, expected);
            there.remove(&number);
        }
    }
}

fn scan_all(store: &Store, tree: Tree, keys: u64) {
    let mut cursor = Cursor::new(tree);
    let mut next = 0;
    let mut last = None;
    while let Some((key, value)) = cursor.next(store).unwrap() {
        let number = number_of(key);
        assert!(last.is_none_or(|last| last < number), "{number} after {last:?}");
        assert_whole(number, value);
        last = Some(number);
        if number.is_multiple_of(4) {
            assert_eq!(number, next, "a key that is always there was skipped");
            next += 4;
        }
    }
    assert_eq!(next, keys.next_multiple_of(4));
}

fn scan_all_back(store: &Store, tree: Tree, keys: u64) {
    let mut cursor = Cursor::new(tree);
    cursor.seek_end(store).unwrap();
    let mut next = keys.next_multiple_of(4);
    let mut last = None;
    while let Some((key, value)) = cursor.prev(store).unwrap() {
        let number = number_of(key);
        assert!(last.is_none_or(|last| last > number), "{number} before {last:?}");
        assert_whole(number, value);
        last = Some(number);
        if number.is_multiple_of(4) {
            next -= 4;
            assert_eq!(number, next, "a key that is always there was skipped");
        }
    }
    assert_eq!(next, 0);
}

#[test]
fn two_cores_lose_nothing_in_a_pool_too_small() {
    run(2, 64, 8_000, 8_000);
}

#[test]
fn four_cores_lose_nothing_on_one_hot_range() {
    run(4, 256, 400, 8_000);
}
