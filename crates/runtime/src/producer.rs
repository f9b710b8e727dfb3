//! Producers: code on a stack of its own that its owner resumes when it wants the next result.
//!
//! A producer runs on the fiber that resumes it: it parks, is interrupted and counts its memory as
//! that fiber does. All fibers of its core may resume it, one after the other. What must hold:
//!
//! 1. A producer that waits holds no latch, since its owner goes on meanwhile.
//! 2. Dropping a producer resumes it a last time, and [`Demand::wait`] returns false. If it waits
//!    again all the same, its stack is unwound.

use std::cell::Cell;
use std::io;
use std::marker::PhantomData;

use corosensei::{Coroutine, Yielder};
use sync::held;

use crate::fiber::Floor;
use crate::stack::FurtherStack;

/// Code that runs on a stack of its own and gives its results one at a time.
pub struct Producer<'a, R> {
    coroutine: Coroutine<bool, (), R, FurtherStack>,
    /// The lowest address of its stack.
    lowest: usize,
    body: PhantomData<&'a ()>,
}

/// A producer's way to wait until its owner wants more.
pub struct Demand<'y> {
    yielder: &'y Yielder<bool, ()>,
    over: Cell<bool>,
}

impl<'a, R: 'a> Producer<'a, R> {
    /// A producer that begins when it is first resumed. An error means that there is no further
    /// stack.
    pub fn new(body: impl FnOnce(&Demand<'_>) -> R + 'a) -> io::Result<Producer<'a, R>> {
        let stack = FurtherStack::kept()?;
        let lowest = stack.lowest();
        let start =
            |yielder: &Yielder<bool, ()>, wanted: bool| body(&Demand { yielder, over: Cell::new(!wanted) });
        // SAFETY: the borrows of `body` live for 'a, which the producer does not outlive. A
        // producer that is forgotten keeps its stack for ever and never runs again. Nothing else
        // uses what lies on that stack: a producer is not Send, and other threads are only given
        // what they own (`aside::run`, `spawn_thread`).
        let coroutine = unsafe { Coroutine::with_stack_unchecked(stack, start) };
        Ok(Producer { coroutine, lowest, body: PhantomData })
    }
}

impl<R> Producer<'_, R> {
    /// Runs it until it waits (`None`) or ends. A panic in it goes on in the caller. Panics if it
    /// has ended before.
    pub fn resume(&mut self) -> Option<R> {
        let _floor = Floor::enter(self.lowest);
        self.coroutine.resume(true).as_return()
    }
}

impl<R> Drop for Producer<'_, R> {
    fn drop(&mut self) {
        if self.coroutine.started() && !self.coroutine.done() {
            let _floor = Floor::enter(self.lowest);
            drop(self.coroutine.resume(false));
        }
    }
}

impl Demand<'_> {
    /// Waits until the owner wants more. Returns false if it never will.
    pub fn wait(&self) -> bool {
        held::assert_none();
        if !self.over.get() {
            // It may wait on a further stack, and another fiber of the core may resume it.
            let waits = Floor::leave();
            self.over.set(!self.yielder.suspend(()));
            waits.enter_again();
        }
        !self.over.get()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Duration;

    use super::Producer;
    use crate::fiber;
    use crate::tests::start;

    #[test]
    fn a_producer_gives_one_result_at_a_time() {
        let count = Cell::new(0);
        let mut producer = Producer::new(|demand| {
            while count.get() < 3 && demand.wait() {
                count.set(count.get() + 1);
            }
            "end"
        })
        .unwrap();
        assert_eq!(count.get(), 0);
        let mut resumed = 0;
        let end = loop {
            match producer.resume() {
                None => {
                    assert_eq!(count.get(), resumed);
                    resumed += 1;
                }
                Some(end) => break end,
            }
        };
        assert_eq!((end, count.get()), ("end", 3));
    }

    #[test]
    fn a_producer_that_is_dropped_ends_in_order() {
        struct Gone<'a>(&'a Cell<u32>);
        impl Drop for Gone<'_> {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        // It ends when nothing more is wanted, or is unwound when it goes on.
        for obeys in [true, false] {
            let gone = Cell::new(0);
            let mut producer = Producer::new(|demand| {
                let _gone = Gone(&gone);
                while demand.wait() || !obeys {
                    if obeys {
                        continue;
                    }
                    demand.yielder.suspend(());
                }
            })
            .unwrap();
            assert_eq!(producer.resume(), None);
            assert_eq!(producer.resume(), None);
            assert_eq!(gone.get(), 0);
            drop(producer);
            assert_eq!(gone.get(), 1);
        }
        let gone = Cell::new(0);
        let own = Gone(&gone);
        drop(Producer::new(move |_| drop(own)));
        assert_eq!(gone.get(), 1, "one that never ran");
    }

    #[test]
    fn producers_park_and_yield_as_their_fiber_and_nest() {
        let runtime = start(1);
        let sum = runtime.call(0, || {
            let other = std::rc::Rc::new(Cell::new(0));
            let own = other.clone();
            fiber::spawn_local(move || own.set(1));
            let mut outer = Producer::new(|demand| {
                let mut inner = Producer::new(|demand| {
                    for round in 1..=3 {
                        fiber::sleep(Duration::from_millis(1));
                        assert!(!fiber::is_lifted());
                        assert_eq!(fiber::on_worker_stack(|| round + 1), round + 1);
                        if !demand.wait() {
                            break;
                        }
                    }
                })
                .unwrap();
                let mut rounds = 0;
                while inner.resume().is_none() {
                    rounds += 1;
                    fiber::yield_now();
                    demand.wait();
                }
                rounds
            })
            .unwrap();
            let mut waits = 0;
            let rounds = loop {
                match outer.resume() {
                    None => waits += 1,
                    Some(rounds) => break rounds,
                }
            };
            (rounds, waits, other.get())
        });
        assert_eq!(sum, (3, 3, 1));
    }

    #[test]
    fn a_panic_on_a_further_stack_is_the_caller_s() {
        let runtime = start(1);
        let text = runtime.call(0, || {
            let mut producer: Producer<'_, ()> = Producer::new(|_| panic!("expected")).unwrap();
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| producer.resume()));
            let first = *caught.unwrap_err().downcast_ref::<&str>().unwrap();
            assert!(!fiber::is_deep());
            let caught = std::panic::catch_unwind(|| fiber::on_further_stack(|| panic!("expected too")));
            assert!(!fiber::is_deep());
            fiber::yield_now();
            (first, *caught.unwrap_err().downcast_ref::<&str>().unwrap())
        });
        assert_eq!(text, ("expected", "expected too"));
    }

    #[test]
    fn recursion_goes_on_on_further_stacks_until_there_are_no_more() {
        fn depth(left: u32) -> Option<u32> {
            let room = std::hint::black_box([left as u8; 1024]);
            if left == 0 {
                return Some(0);
            }
            if fiber::is_deep() {
                return fiber::on_further_stack(|| depth(left)).ok()?;
            }
            depth(left - 1).map(|below| below + u32::from(room[7] == left as u8))
        }
        let runtime = start(1);
        assert_eq!(runtime.call(0, || depth(20_000)), Some(20_000));
        let all = runtime.call(0, || {
            let mut producers = Vec::new();
            while let Ok(producer) = Producer::new(|_| 7) {
                producers.push(producer);
            }
            let last = producers.last_mut().and_then(Producer::resume);
            assert!(fiber::on_further_stack(|| ()).is_err());
            (producers.len(), last)
        });
        assert_eq!(all, (crate::stack::FURTHER_MAX, Some(7)));
        assert!(runtime.call(0, || fiber::on_further_stack(|| ()).is_ok()));
    }
}
