//! A crash loses no logged and flushed change, and leaves every structure change whole or undone.

use std::collections::BTreeMap;

use super::*;

/// The data folder as a crash would leave it now: a copy taken while the page writers may be
/// writing. It copies the pages first, so that the log is never behind them.
pub(super) fn crash(bench: &Bench) -> Bench {
    let cores = bench.runtime.core_count();
    let after = Bench::new(cores, bench.options.frames);
    std::fs::create_dir_all(after.folder.join("log")).unwrap();
    for name in ["pages", "ALLCORE", "control"] {
        std::fs::copy(bench.folder.join(name), after.folder.join(name)).unwrap();
    }
    for segment in std::fs::read_dir(bench.folder.join("log")).unwrap().flatten() {
        std::fs::copy(segment.path(), after.folder.join("log").join(segment.file_name())).unwrap();
    }
    after
}

#[test]
fn redo_gives_the_same_tree() {
    let mut bench = Bench::new(1, 96);
    let (mut store, tree) = bench.create();
    let (mut random, mut model) = (Random(42), BTreeMap::new());
    for round in 0..6 {
        let durable = bench.run(&store, |store| {
            let mut last = Lsn::ZERO;
            for step in 0..4000u64 {
                let key = (random.below(6000) * 31).to_be_bytes().to_vec();
                // Even rounds grow, odd ones shrink the tree.
                if random.below(10) < if round % 2 == 0 { 2 } else { 8 } {
                    last = take(store, tree, &key).1.max(last);
                    model.remove(&key);
                } else {
                    let value = vec![step as u8; random.below(300) as usize];
                    last = put(store, tree, &key, &value).1;
                    model.insert(key, value);
                }
                if step == 1500 && round % 3 == 1 {
                    store.checkpoint().unwrap();
                }
            }
            store.wal.wait_durable(last).unwrap();
            last
        });
        assert!(durable > Lsn::ZERO);
        let after = crash(&bench);
        bench.close(store);
        bench = after;
        store = bench.open();
        bench.run(&store, |store| {
            assert_sound(store, tree);
            let expected: Vec<_> = model.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            assert_eq!(scan(store, tree), expected, "round {round}");
        });
    }
    bench.close(store);
}
