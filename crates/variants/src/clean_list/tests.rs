//! Both lists against a list of numbers, and under more threads than buffers and cores.

use std::collections::VecDeque;

use proptest::prelude::*;
use sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::test_threads::{at_once, rounds, threads};

/// A step of one thread: the buffer it names, and what is done with it.
#[derive(Debug, Clone, Copy)]
enum Step {
    Take,
    Put,
    Enter(usize),
    Leave,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step =
        prop_oneof![Just(Step::Take), Just(Step::Put), (0usize..12).prop_map(Step::Enter), Just(Step::Leave)];
    prop::collection::vec(step, 0..300)
}

/// Plays the steps on a list and on a queue of numbers.
fn is_a_queue<L: CleanList>(list: &L, buffers: usize, steps: &[Step]) -> Result<(), TestCaseError> {
    let (mut me, mut kept) = (Caller::new(0), L::Kept::default());
    let mut queue: VecDeque<usize> = (0..buffers).collect();
    let (mut taken, mut busy) = (VecDeque::new(), VecDeque::new());
    for step in steps {
        match *step {
            Step::Take => {
                let first = queue.iter().position(|buffer| !busy.contains(buffer));
                let expected = first.and_then(|at| queue.remove(at));
                prop_assert_eq!(list.victim(&mut me, &mut kept), expected);
                taken.extend(expected);
            }
            Step::Put => {
                if let Some(buffer) = taken.pop_front() {
                    list.put(&mut me, buffer);
                    queue.push_back(buffer);
                }
            }
            Step::Enter(buffer) if buffer < buffers => {
                let is_free = !busy.contains(&buffer) && !taken.contains(&buffer);
                prop_assert_eq!(list.enter(buffer), is_free);
                if is_free {
                    busy.push_back(buffer);
                }
            }
            Step::Leave => {
                if let Some(buffer) = busy.pop_front() {
                    list.leave(buffer);
                }
            }
            Step::Enter(_) => {}
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_search_takes_the_first_buffer_that_is_not_busy(buffers in 0usize..12, steps in steps()) {
        is_a_queue(&HeldList::new(buffers, 1), buffers, &steps)?;
        is_a_queue(&ScannedList::new(buffers, 1), buffers, &steps)?;
    }
}

/// Threads take, use and put buffers. No buffer has two owners, and none is lost.
fn keeps_buffers_apart<L: CleanList>(list: &L, buffers: usize) {
    let owners: Vec<AtomicUsize> = (0..buffers).map(|_| AtomicUsize::new(0)).collect();
    let own = |me: &Caller, buffer: usize| {
        let before = owners[buffer].swap(me.number() + 1, Ordering::Relaxed);
        assert_eq!(before, 0, "two threads have buffer {buffer}");
        owners[buffer].store(0, Ordering::Relaxed);
    };
    at_once(|me| {
        let mut kept = L::Kept::default();
        for round in 0..rounds() as usize {
            let other = (me.number() + round) % buffers;
            if list.enter(other) {
                own(me, other);
                list.leave(other);
            }
            if let Some(buffer) = list.victim(me, &mut kept) {
                own(me, buffer);
                list.put(me, buffer);
            }
        }
    });
    let (mut me, mut kept) = (Caller::new(0), L::Kept::default());
    let mut left: Vec<_> = std::iter::from_fn(|| list.victim(&mut me, &mut kept)).collect();
    left.sort_unstable();
    assert_eq!(left, (0..buffers).collect::<Vec<_>>());
}

#[test]
fn no_buffer_of_more_threads_than_cores_has_two_owners() {
    keeps_buffers_apart(&HeldList::new(10, threads()), 10);
    keeps_buffers_apart(&ScannedList::new(10, threads()), 10);
}

#[test]
fn a_search_that_began_earlier_ends_at_buffers_put_later() {
    let list = ScannedList::new(2, 1);
    let mut me = Caller::new(0);
    let bound = list.0.newest();
    let first = list.victim(&mut me, &mut ()).unwrap();
    assert!(list.enter(1), "the second buffer is busy");
    list.put(&mut me, first);
    assert!(matches!(list.walk(&mut me, bound), Ok(None)), "the first lies behind the bound");
    assert_eq!(list.victim(&mut me, &mut ()), Some(first));
}
