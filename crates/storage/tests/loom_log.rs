//! Loom model of the log's reservation and filled point. It includes `fill.rs`, which needs atomics
//! only, so that loom need not run all of storage.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p storage --test loom_log --release`
#![cfg(loom)]

#[allow(dead_code)] // the model needs only a part of it
#[path = "../src/log/fill.rs"]
mod fill;

use fill::Fill;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

const START: u64 = 8;

/// A log of single-byte records: each position holds the byte that was filled in.
struct Log {
    fill: Fill,
    bytes: Vec<UnsafeCell<u8>>,
}

// SAFETY: the core that reserved a byte writes it, and it is read only below the filled point. Loom
// checks that this orders the two.
unsafe impl Sync for Log {}
// SAFETY: as above.
unsafe impl Send for Log {}

impl Log {
    fn new(cores: usize) -> Arc<Log> {
        let bytes = (0..START + 4).map(|_| UnsafeCell::new(0)).collect();
        Arc::new(Log { fill: Fill::new(cores, START), bytes })
    }

    fn append(&self, core: usize, bound: u64, value: u8) -> fill::Reservation {
        let reservation = self.fill.reserve(core, bound, 1);
        self.bytes[reservation.start as usize].with_mut(|byte| {
            // SAFETY: reserved by this core alone, read by nobody before it is complete.
            unsafe { *byte = value }
        });
        self.fill.complete(core);
        reservation
    }

    /// Reads the filled part. Loom fails the test if a byte is read while its writer may still
    /// write it.
    fn check_filled(&self) -> u64 {
        let filled = self.fill.filled();
        for at in START..filled {
            // SAFETY: below the filled point.
            let byte = self.bytes[at as usize].with(|byte| unsafe { *byte });
            assert_ne!(byte, 0, "position {at} is below the filled point {filled} and not filled");
        }
        filled
    }
}

#[test]
fn nothing_unfilled_is_below_the_filled_point() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let log = Log::new(2);
        let appenders: Vec<_> = (0..2)
            .map(|core| {
                let log = log.clone();
                thread::spawn(move || {
                    // Two records: the second announces the end of the first, which may be far
                    // behind by then.
                    let first = log.append(core, START, 1);
                    log.append(core, first.start + 1, 2);
                })
            })
            .collect();
        log.check_filled();
        appenders.into_iter().for_each(|appender| appender.join().unwrap());
        assert_eq!(log.check_filled(), START + 4);
    });
}

#[test]
fn a_reservation_knows_its_epoch_exactly() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let log = Log::new(2);
        let appenders: Vec<_> = (0..2)
            .map(|core| {
                let log = log.clone();
                thread::spawn(move || {
                    let built_for = log.fill.epoch();
                    let reservation = log.append(core, START, 1);
                    (built_for, reservation)
                })
            })
            .collect();
        let next = log.fill.begin_epoch();
        while log.fill.filled() < next.redo {
            thread::yield_now();
        }
        // The records reserved before the redo position are filled by now.
        log.check_filled();
        for appender in appenders {
            let (built_for, reservation) = appender.join().unwrap();
            // A record lies before the redo position if and only if it belongs to the old epoch. So
            // an image is due exactly from there on.
            assert_eq!(reservation.start >= next.redo, reservation.epoch == next);
            assert_eq!(reservation.start < next.redo, reservation.epoch.number == 0);
            assert!(built_for.number == 0 || built_for == next);
        }
    });
}
