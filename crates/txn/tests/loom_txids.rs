//! Loom models of transaction numbers. They include `txid.rs`, which needs `sync` only.
//!
//! Cores take numbers while the horizon's keeper takes the rest of a batch away. No interleaving,
//! and no weakness of the memory model, hands a number out twice, or out after it was taken away.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p txn --test loom_txids --release`
#![cfg(loom)]

#[path = "../src/txid.rs"]
#[allow(dead_code)] // the models need only a part of it
mod txid;

use std::collections::HashSet;

use loom::sync::Arc;
use loom::thread;
use txid::{BATCH, Txids};

/// The engine's error.
#[derive(PartialEq, Debug)]
enum Error {
    TooManyTransactions,
}

/// A window of few batches, so that a model comes to its end.
mod status {
    pub const WINDOW: u64 = 8 * crate::BATCH;
}

/// A largest number that no model comes near.
mod version {
    pub const MAX_TXID: u64 = 1 << 40;
}

fn model(check: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(check);
}

/// Takes so many numbers on a core.
fn assign(txids: &Txids, core: usize, count: usize) -> Vec<u64> {
    (0..count).map(|_| txids.assign(core, 1).expect("the window is wide enough")).collect()
}

/// Adds the numbers. The model fails if one is there already.
fn add(all: &mut HashSet<u64>, numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        assert!(all.insert(number), "{number} is used twice");
    }
}

#[test]
fn two_cores_share_no_number_across_batches() {
    model(|| {
        let txids = Arc::new(Txids::new(1, 2));
        let other = txids.clone();
        let core = thread::spawn(move || assign(&other, 1, BATCH as usize + 1));
        let mut all = HashSet::new();
        add(&mut all, assign(&txids, 0, BATCH as usize + 1));
        add(&mut all, core.join().unwrap());
        assert!(all.iter().all(|&number| number < txids.end()));
    });
}

/// The keeper takes the rest of a core's batch away, twice, while the core takes numbers past the
/// batch's end.
#[test]
fn a_number_that_is_taken_away_is_never_handed_out() {
    model(|| {
        let txids = Arc::new(Txids::new(1, 1));
        let first = txids.assign(0, 1).unwrap();
        let other = txids.clone();
        let core = thread::spawn(move || assign(&other, 0, BATCH as usize));
        let taken: Vec<u64> =
            [first + 1, first + 1].into_iter().filter_map(|at| txids.take_rest(at)).flatten().collect();
        let mut all = HashSet::from([first]);
        add(&mut all, taken);
        add(&mut all, core.join().unwrap());
        // The keeper waits for each number, so none is lost.
        let last = all.iter().max().copied().unwrap();
        assert!((first..last).all(|number| all.contains(&number)), "a number is lost: {all:?}");
    });
}

/// A core's used-up batch ends where the batch of another core begins.
#[test]
fn a_used_up_batch_does_not_stand_for_the_next_one() {
    model(|| {
        let txids = Arc::new(Txids::new(1, 2));
        assign(&txids, 0, BATCH as usize);
        let first = txids.assign(1, 1).unwrap();
        let other = txids.clone();
        let core = thread::spawn(move || assign(&other, 1, 2));
        let mut all = HashSet::from([first]);
        add(&mut all, txids.take_rest(first + 1).into_iter().flatten());
        add(&mut all, core.join().unwrap());
    });
}

/// A word of the status table belongs to two numbers that lie a window apart.
#[test]
fn no_number_leaves_the_window_above_the_horizon() {
    model(|| {
        let txids = Arc::new(Txids::new(1, 2));
        let take_all = |txids: &Txids, core| {
            while let Ok(txid) = txids.assign(core, BATCH) {
                assert!(txid < BATCH + status::WINDOW, "{txid} is outside the window");
            }
        };
        let other = txids.clone();
        let core = thread::spawn(move || take_all(&other, 1));
        take_all(&txids, 0);
        core.join().unwrap();
    });
}
