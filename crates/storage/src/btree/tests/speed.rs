//! Times of the hot paths, on demand: `cargo test --release -p storage btree::tests::speed --
//! --ignored --nocapture`.

use std::time::Instant;

use super::*;

/// Rows of the measured table: three levels, as in the product's select by primary key.
const ROWS: u64 = 2_000_000;

/// Prints the best of many short rounds, since other programs may use the machine too.
fn timed(what: &str, times: u64, mut body: impl FnMut(u64)) {
    let round = times / 100;
    let mut best = f64::MAX;
    for first in (0..times).step_by(round as usize) {
        let start = Instant::now();
        (first..first + round).for_each(&mut body);
        best = best.min(start.elapsed().as_nanos() as f64 / round as f64);
    }
    println!("{what:40} {best:7.0} ns");
}

#[test]
#[ignore = "measures; takes seconds and 400 MB"]
fn the_hot_paths_are_timed() {
    let mut bench = Bench::new(1, 48_000);
    bench.options.huge_pages = HugePages::Try;
    let (store, tree) = bench.create();
    bench.run(&store, |store| {
        let mut random = Random(1);
        let mut value = Vec::new();
        timed("load in key order", ROWS, |number| {
            put(store, tree, &number.to_be_bytes(), &[number as u8; 110]);
        });
        for rows in [1000, 100_000, ROWS] {
            timed(&format!("get, {rows} rows"), ROWS, |_| {
                let key = random.below(rows).to_be_bytes();
                assert!(tree.get_into(store, &key, &mut value).unwrap());
            });
        }
        timed("get and replace", ROWS / 4, |number| {
            let key = random.below(ROWS).to_be_bytes();
            tree.get_into(store, &key, &mut value).unwrap();
            let new = [number as u8; 110];
            let mut change = Put { value: &new, before: None, lsn: Lsn::ZERO };
            tree.change(store, &key, &mut change).unwrap();
        });
        let mut cursor = super::super::Cursor::new(tree);
        timed("next of a scan", ROWS, |_| {
            cursor.next(store).unwrap().unwrap();
        });
        println!("{:?}", tree.statistics(store).unwrap());
    });
    bench.close(store);
}
