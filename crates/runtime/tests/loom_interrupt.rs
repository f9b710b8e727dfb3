//! Loom models of an interrupt: who is woken for it. They include `interrupt/reasons.rs`, which
//! needs `sync` only.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p runtime --test loom_interrupt --release`
#![cfg(loom)]

#[path = "../src/interrupt/reasons.rs"]
#[allow(dead_code)] // the models need only a part of it
mod reasons;

use std::task::{Wake, Waker};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use reasons::{Interrupt, Reason};

/// A core, and whether it was woken.
struct Core(AtomicBool);

impl Wake for Core {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn core() -> (std::sync::Arc<Core>, Waker) {
    let core = std::sync::Arc::new(Core(AtomicBool::new(false)));
    (core.clone(), Waker::from(core))
}

#[test]
fn a_fiber_that_parks_gives_up_for_a_raise() {
    loom::model(|| {
        let interrupt = Arc::new(Interrupt::default());
        let other = interrupt.clone();
        let fiber = thread::spawn(move || {
            // Loom fails if it sleeps for ever.
            while !other.park_unless(Interrupt::is_pending) {}
            other.take()
        });
        interrupt.raise(Reason::Cancel);
        assert_eq!(fiber.join().unwrap(), Some(Reason::Cancel));
        assert!(!interrupt.is_pending());
    });
}

#[test]
fn each_of_two_raises_is_taken_once() {
    loom::model(|| {
        let interrupt = Arc::new(Interrupt::default());
        let other = interrupt.clone();
        let raiser = thread::spawn(move || other.raise(Reason::Terminate));
        interrupt.raise(Reason::Cancel);
        let first = interrupt.take();
        raiser.join().unwrap();
        let mut taken = [first, interrupt.take()];
        taken.sort_by_key(|reason| *reason != Some(Reason::Terminate));
        assert_eq!(taken, [Some(Reason::Terminate), Some(Reason::Cancel)]);
        assert_eq!(interrupt.take(), None);
    });
}

/// A session moves to another core while a reason is raised. No fiber serves it.
#[test]
fn a_session_that_moves_obeys_a_raise_on_the_way() {
    loom::model(|| {
        let interrupt = Arc::new(Interrupt::default());
        let ((_, former), (present, waker)) = (core(), core());
        interrupt.attach(0, former);
        let other = interrupt.clone();
        let raiser = thread::spawn(move || other.raise(Reason::Terminate));
        interrupt.attach(1, waker);
        let is_seen = interrupt.is_pending();
        raiser.join().unwrap();
        assert!(is_seen || present.0.load(Ordering::SeqCst), "the new core was not told");
    });
}
