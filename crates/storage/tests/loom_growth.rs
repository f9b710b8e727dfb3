//! Loom model of how a pool's memory comes into use: workers claim units while helpers touch ahead.
//! It includes `stretch.rs`, which needs `sync` only.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p storage --test loom_growth --release`
#![cfg(loom)]

#[path = "../src/pool/stretch.rs"]
mod stretch;

use loom::sync::Arc;
use loom::thread;
use stretch::Stretch;

const UNITS: usize = 3;

fn model(check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(check);
}

/// All numbers that `next` returns.
fn all(mut next: impl FnMut() -> Option<usize>) -> Vec<usize> {
    std::iter::from_fn(&mut next).collect()
}

#[test]
fn each_unit_is_claimed_once_and_none_is_left() {
    model(|| {
        let stretch = Arc::new(Stretch::new(UNITS, 1));
        let (other, helper) = (stretch.clone(), stretch.clone());
        let other = thread::spawn(move || all(|| other.claim()));
        let helper = thread::spawn(move || helper.begin().is_some());
        let mut claimed = all(|| stretch.claim());
        claimed.extend(other.join().unwrap());
        helper.join().unwrap();
        claimed.sort_unstable();
        assert_eq!(claimed, [0, 1, 2]);
        assert_eq!((stretch.claim(), stretch.claimed()), (None, UNITS));
        assert_eq!(stretch.begin(), None, "nothing is left to touch");
    });
}

#[test]
fn two_helpers_touch_different_units_and_run_no_further_ahead_than_they_may() {
    model(|| {
        let stretch = Arc::new(Stretch::new(UNITS, 1));
        let (claims, helps) = (stretch.clone(), stretch.clone());
        let worker = thread::spawn(move || claims.claim().is_some());
        let help = |stretch: &Stretch| {
            let touched = all(|| stretch.begin());
            // At most one unit is claimed, and one more may be touched.
            assert!(touched.iter().all(|&unit| unit <= 1), "{touched:?}");
            touched
        };
        let helper = thread::spawn(move || help(&helps));
        let mut touched = help(&stretch);
        touched.extend(helper.join().unwrap());
        assert!(worker.join().unwrap());
        let count = touched.len();
        touched.dedup();
        touched.sort_unstable();
        touched.dedup();
        assert_eq!(touched.len(), count, "a unit is touched once");
    });
}

/// The claim wakes a helper that found nothing to do before: the worker sees that the helper has
/// fallen behind.
#[test]
fn a_claim_that_uses_up_the_lead_finds_the_stretch_short() {
    model(|| {
        let stretch = Arc::new(Stretch::new(UNITS, 1));
        let helps = stretch.clone();
        let helper = thread::spawn(move || all(|| helps.begin()).last().copied());
        stretch.claim();
        let is_short = stretch.is_short();
        let last = helper.join().unwrap();
        assert!(is_short || last >= Some(1), "the helper sleeps behind the claim, and nobody wakes it");
    });
}
