//! Trees filled by a builder, compared with the trees that ordinary inserts make of the same
//! entries.

use super::crash::crash;
use super::*;
use crate::btree::{Builder, MAX_ENTRY, MAX_KEY, Pushed};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn build(store: &Store, tree: Tree, entries: &[(Vec<u8>, Vec<u8>)]) {
    let mut builder = Builder::new(store, tree).unwrap().expect("an empty tree");
    for (key, value) in entries {
        let (head, rest) = value.split_at(value.len().min(16));
        assert_eq!(builder.push(store, key, head, rest).unwrap(), Pushed::Done);
    }
    builder.finish(store).unwrap();
}

/// Checks the tree against its entries, and that it takes further changes.
fn assert_built(store: &Store, tree: Tree, entries: &Entries) {
    let report = assert_sound(store, tree);
    assert_eq!(report.entries, entries.len() as u64);
    assert_eq!(scan(store, tree), *entries);
    assert_eq!(scan_back(store, tree), *entries);
    let mut value = Vec::new();
    for (key, expected) in entries.iter().step_by(entries.len() / 50 + 1) {
        assert!(tree.get_into(store, key, &mut value).unwrap());
        assert_eq!(value, *expected);
    }
}

fn numbers(count: u64, value: usize) -> Entries {
    (0..count).map(|number| ((3 * number).to_be_bytes().to_vec(), vec![number as u8; value])).collect()
}

/// Keys of the greatest length, which share nearly all their bytes.
fn long_alike(count: u64) -> Entries {
    let key = |number: u64| {
        let mut key = vec![b'k'; MAX_KEY];
        key[MAX_KEY - 8..].copy_from_slice(&number.to_be_bytes());
        key
    };
    (0..count).map(|number| (key(number), number.to_le_bytes().to_vec())).collect()
}

/// Keys and values of all lengths up to the longest.
fn mixed(seed: u64, count: usize) -> Entries {
    let mut random = Random(seed);
    let mut model = std::collections::BTreeMap::new();
    while model.len() < count {
        let len = if random.below(20) == 0 { MAX_KEY } else { random.below(40) as usize };
        let mut key: Vec<u8> = (0..len.min(6)).map(|_| b'a' + random.below(3) as u8).collect();
        key.resize(len.max(key.len()), random.next() as u8);
        key.extend_from_slice(&random.next().to_be_bytes()[..len.min(8)]);
        key.truncate(MAX_KEY);
        let most = if random.below(10) == 0 { MAX_ENTRY - key.len() } else { 100 };
        model.insert(key, vec![random.next() as u8; random.below(most as u64 + 1) as usize]);
    }
    model.into_iter().collect()
}

#[test]
fn a_built_tree_holds_its_entries_whatever_their_number_and_size() {
    let bench = Bench::new(1, 64);
    let (store, _) = bench.create();
    let mut inputs: Vec<Entries> = vec![numbers(0, 0), numbers(1, 100), long_alike(1), long_alike(3000)];
    // Counts around the ends of the first, the second and the third leaf.
    inputs.extend((60..=72).map(|count| numbers(count, 100)));
    inputs.extend((130..=142).map(|count| numbers(count, 100)));
    inputs.extend((195..=210).map(|count| numbers(count, 100)));
    // Entries of the greatest size: three to a leaf.
    inputs.push((0u64..200).map(|n| (n.to_be_bytes().to_vec(), vec![n as u8; MAX_ENTRY - 8])).collect());
    inputs.push(long_alike(60).into_iter().map(|(key, _)| (key, vec![7; MAX_ENTRY - MAX_KEY])).collect());
    // Keys of the greatest length with nothing in common: separators of one byte.
    inputs.push((0..=255u8).map(|byte| (vec![byte; MAX_KEY], vec![byte; 900])).collect());
    // Each key is a prefix of the next: separators as long as the keys.
    inputs.push((0..MAX_KEY).map(|len| (vec![1; len], vec![2; 40])).collect());
    inputs.extend((0..4).map(|seed| mixed(seed, 2500)));
    let used = |store: &Store| store.space.pages().0 - store.space.pages().1;
    for entries in &inputs {
        bench.run(&store, |store| {
            let before = used(store);
            let tree = Tree::create_at(store, TREE, store.space.claim().unwrap()).unwrap();
            build(store, tree, entries);
            assert_built(store, tree, entries);
            store.space.free(&tree.collect_levels(store, false).unwrap().concat()).unwrap();
            assert_eq!(used(store), before, "every page was the tree's");
        });
    }
    bench.close(store);
}

#[test]
fn thousands_of_leaves_go_through_a_small_pool_and_stay_dense() {
    let bench = Bench::new(2, 64);
    let (store, tree) = bench.create();
    bench.run(&store, |store| {
        let entries = numbers(300_000, 100);
        build(store, tree, &entries);
        let report = assert_sound(store, tree);
        assert!(report.leaves > 4000 && report.height == 2, "{report:?}");
        let fill = report.leaf_bytes as f64 / (report.leaves as f64 * 8128.0);
        assert!(fill > 0.97, "fill {fill}");
        assert_built(store, tree, &entries);
        // The tree takes ordinary changes.
        for number in (0..300_000u64).step_by(1000) {
            put(store, tree, &(3 * number + 1).to_be_bytes(), &[1; 300]);
            take(store, tree, &(3 * number).to_be_bytes());
        }
        put(store, tree, &u64::MAX.to_be_bytes(), b"last");
        assert_eq!(assert_sound(store, tree).entries, 300_001);
    });
    bench.close(store);
}

#[test]
fn only_ascending_keys_of_a_fit_size_are_taken_and_only_into_an_empty_tree() {
    let bench = Bench::new(1, 64);
    let (store, tree) = bench.create();
    bench.run(&store, |store| {
        let mut builder = Builder::new(store, tree).unwrap().unwrap();
        assert_eq!(builder.push(store, b"b", b"", b"1").unwrap(), Pushed::Done);
        assert_eq!(builder.push(store, b"b", b"", b"2").unwrap(), Pushed::Equal);
        assert_eq!(builder.push(store, b"a", b"", b"2").unwrap(), Pushed::Below);
        let refused = builder.push(store, &[b'x'; MAX_KEY + 1], b"", b"");
        assert_eq!(refused, Err(Error::TooLarge { bytes: MAX_KEY + 1, limit: MAX_KEY }));
        let refused = builder.push(store, b"x", &[0; 16], &[0; MAX_ENTRY - 16]);
        assert_eq!(refused, Err(Error::TooLarge { bytes: MAX_ENTRY + 1, limit: MAX_ENTRY }));
        assert_eq!(builder.push(store, b"bb", b"3", b"4").unwrap(), Pushed::Done);
        builder.finish(store).unwrap();
        let expected = [(b"b".to_vec(), b"1".to_vec()), (b"bb".to_vec(), b"34".to_vec())];
        assert_eq!(scan(store, tree), expected);
        assert!(Builder::new(store, tree).unwrap().is_none(), "it has entries");
    });
    bench.close(store);
}

#[test]
fn a_tree_somebody_else_changed_is_not_built_on() {
    let bench = Bench::new(1, 64);
    let (store, tree) = bench.create();
    bench.run(&store, |store| {
        let mut builder = Builder::new(store, tree).unwrap().unwrap();
        builder.push(store, b"b", b"", b"built").unwrap();
        put(store, tree, b"c", b"put");
        assert!(matches!(builder.finish(store), Err(Error::Corrupt { .. })));
        assert_eq!(scan(store, tree), [(b"c".to_vec(), b"put".to_vec())]);
    });
    bench.close(store);
}

#[test]
fn redo_gives_a_built_tree_again_and_one_left_in_the_middle_is_sound() {
    let bench = Bench::new(1, 96);
    let (store, tree) = bench.create();
    let entries = numbers(20_000, 90);
    let half = bench.run(&store, |store| {
        let half = Tree::create_at(store, TREE + 1, store.space.claim().unwrap()).unwrap();
        let mut left = Builder::new(store, half).unwrap().unwrap();
        let mut builder = Builder::new(store, tree).unwrap().unwrap();
        for (at, (key, value)) in entries.iter().enumerate() {
            builder.push(store, key, b"", value).unwrap();
            left.push(store, key, b"", value).unwrap();
            if at == 7000 {
                store.checkpoint().unwrap();
            }
        }
        builder.finish(store).unwrap();
        let (_, lsn) = put(store, tree, b"", b"first of all");
        store.wal.wait_durable(lsn).unwrap();
        half
    });
    let after = crash(&bench);
    bench.close(store);
    let store = after.open();
    after.run(&store, |store| {
        assert_eq!(take(store, tree, b"").0.as_deref(), Some(&b"first of all"[..]));
        assert_built(store, tree, &entries);
        // The first half without the last leaf's entries.
        let report = assert_sound(store, half);
        let found = scan(store, half);
        assert!(found.len() > 19_900 && found.len() < 20_000, "{}", found.len());
        assert_eq!(found, entries[..found.len()]);
        // No page is in use that neither tree reaches.
        let report = report.pages + assert_sound(store, tree).pages;
        let (pages, free) = store.space.pages();
        let fixed = 3;
        assert_eq!(u64::from(pages - free), report + fixed, "pages that no tree reaches");
    });
    after.close(store);
}
