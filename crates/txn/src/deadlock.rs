//! Deadlock detection: a search for a circle in the graph of waiting sessions.
//!
//! A session searches once it has waited for a while. It is the victim when it finds itself on a
//! circle.
//!
//! The graph changes while it is read, so one reading proves nothing. A circle counts only when a
//! second reading finds each of its edges again, with every session still in the same wait (waits
//! carry numbers). Between the two readings all these sessions waited at once. A waiting session
//! gives nothing up, so the circle is real. Searches run one at a time, and a victim leaves its
//! queue before the next search begins. So a circle has one victim.
//!
//! A *soft* wait exists only because a session stands behind others in a queue. A circle with a
//! soft wait is resolved without a victim: that session moves to the front of its queue, and the
//! search begins again.
//!
//! Deadlocks come in crowds: for 1 s after one, waits search as they begin. The wait that closes a
//! circle then finds it at once. A load without deadlocks searches only when a wait is long.

use runtime::hash::HashSet;
use std::time::Duration;

use sync::SpinLock;
use sync::atomic::{AtomicU64, Ordering};

/// One wait of one session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Node {
    /// The session's slot.
    pub slot: u32,
    /// Number of the wait, unique within the session.
    pub wait: u64,
}

/// The graph of waits at this moment.
pub trait Graph {
    /// The session's present wait; `None` if it is not waiting.
    fn waiting(&self, slot: u32) -> Option<Node>;
    /// Adds the sessions that `slot` waits for.
    fn blockers(&self, slot: u32, blockers: &mut Vec<u32>);
    /// Whether `slot` waits for `blocker` only because it stands behind others in a queue.
    fn stands_behind(&self, slot: u32, blocker: u32) -> bool;
    /// Moves `slot` to the front of its queue.
    fn pass(&self, slot: u32);
}

/// How long after a deadlock the next one is expected.
const EXPECTED: Duration = Duration::from_secs(1);

/// The deadlock searches of one engine.
pub struct Searches {
    /// Held by the search that is running.
    current: SpinLock<()>,
    /// Time until which deadlocks are expected, in nanoseconds of the runtime's clock. A hint: a
    /// session that reads an old value searches a little later, or once in vain. So Relaxed
    /// suffices.
    expected_until: AtomicU64,
}

impl Searches {
    pub fn new() -> Searches {
        Searches { current: SpinLock::new(&"deadlock search", ()), expected_until: AtomicU64::new(0) }
    }

    /// Whether a search found a deadlock less than 1 s before `now`.
    pub fn expected(&self, now: u64) -> bool {
        now < self.expected_until.load(Ordering::Relaxed)
    }

    /// Searches for a deadlock of `start`. `Some(true)`: `start` is on a circle that reordering a
    /// queue cannot resolve; `leave` has taken it out of its queue before any other search.
    /// `Some(false)`: there is none. `None`: another search is running.
    pub fn search(&self, graph: &impl Graph, start: u32, now: u64, leave: impl FnOnce()) -> Option<bool> {
        let _current = self.current.try_lock()?;
        // Each session passes others at most once, so the loop ends.
        let mut passed = HashSet::default();
        while let Some(circle) = deadlock(graph, start) {
            self.expected_until.store(now + EXPECTED.as_nanos() as u64, Ordering::Relaxed);
            let passes =
                |(slot, blocker): &(u32, u32)| graph.stands_behind(*slot, *blocker) && passed.insert(*slot);
            // The last soft wait of the circle, as in PostgreSQL. So `start` itself passes only if
            // no other session can.
            let found: Vec<(u32, u32)> = edges(&circle).collect();
            match found.into_iter().rev().find(passes) {
                Some((slot, _)) => graph.pass(slot),
                None => {
                    leave();
                    return Some(true);
                }
            }
        }
        Some(false)
    }
}

/// Sessions that one search visits at most, which bounds its time. A search that gives up is made
/// again later.
const VISITS_MAX: usize = 10_000;

/// A confirmed circle in which `start` waits for itself through others.
fn deadlock(graph: &impl Graph, start: u32) -> Option<Vec<Node>> {
    find_circle(graph, start).filter(|circle| confirm(graph, circle))
}

/// Pairs (waiting slot, slot it waits for) of a circle.
fn edges(circle: &[Node]) -> impl Iterator<Item = (u32, u32)> {
    let next = circle.iter().cycle().skip(1);
    circle.iter().zip(next).map(|(node, next)| (node.slot, next.slot))
}

/// A path of waits from `start` back to `start`. Depth-first, without recursion.
fn find_circle(graph: &impl Graph, start: u32) -> Option<Vec<Node>> {
    let mut path: Vec<(Node, Vec<u32>)> = Vec::new();
    let mut visited = HashSet::from_iter([start]);
    let open = |slot: u32| -> Option<(Node, Vec<u32>)> {
        let node = graph.waiting(slot)?;
        let mut blockers = Vec::new();
        graph.blockers(slot, &mut blockers);
        Some((node, blockers))
    };
    path.push(open(start)?);
    while let Some((_, blockers)) = path.last_mut() {
        let Some(next) = blockers.pop() else {
            path.pop();
            continue;
        };
        if next == start {
            return Some(path.into_iter().map(|(node, _)| node).collect());
        }
        if !visited.insert(next) {
            continue;
        }
        if visited.len() > VISITS_MAX {
            return None;
        }
        path.extend(open(next));
    }
    None
}

/// Whether every edge of the circle still exists, between the same waits.
fn confirm(graph: &impl Graph, circle: &[Node]) -> bool {
    let mut blockers = Vec::new();
    let edges_stand = edges(circle).all(|(slot, next)| {
        blockers.clear();
        graph.blockers(slot, &mut blockers);
        blockers.contains(&next)
    });
    edges_stand && circle.iter().all(|node| graph.waiting(node.slot) == Some(*node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};
    use std::collections::HashMap;

    #[derive(Default)]
    struct Sample {
        edges: RefCell<HashMap<u32, Vec<u32>>>,
        /// Soft waits: they end when the session passes others.
        behind: Vec<(u32, u32)>,
        passed: RefCell<Vec<u32>>,
        /// Number of questions after which session 2 is in another wait.
        moves_on_after: Option<u32>,
        asked: Cell<u32>,
    }

    impl Sample {
        fn new(edges: &[(u32, u32)]) -> Sample {
            let sample = Sample::default();
            for &(from, to) in edges {
                sample.edges.borrow_mut().entry(from).or_default().push(to);
            }
            sample
        }
    }

    impl Graph for Sample {
        fn waiting(&self, slot: u32) -> Option<Node> {
            self.asked.set(self.asked.get() + 1);
            let moved = slot == 2 && self.moves_on_after.is_some_and(|limit| self.asked.get() > limit);
            self.edges.borrow().contains_key(&slot).then_some(Node { slot, wait: u64::from(moved) })
        }
        fn blockers(&self, slot: u32, blockers: &mut Vec<u32>) {
            blockers.extend(self.edges.borrow().get(&slot).into_iter().flatten());
        }
        fn stands_behind(&self, slot: u32, blocker: u32) -> bool {
            self.behind.contains(&(slot, blocker))
        }
        fn pass(&self, slot: u32) {
            self.passed.borrow_mut().push(slot);
            let stays = |to: &u32| !self.behind.contains(&(slot, *to));
            self.edges.borrow_mut().entry(slot).or_default().retain(stays);
        }
    }

    fn is_deadlocked(sample: &Sample, start: u32) -> bool {
        deadlock(sample, start).is_some()
    }

    /// Outcome of a search from session 1, and the sessions that passed others.
    fn resolved(edges: &[(u32, u32)], behind: &[(u32, u32)]) -> (Option<bool>, Vec<u32>) {
        let sample = Sample { behind: behind.to_vec(), ..Sample::new(edges) };
        let found = Searches::new().search(&sample, 1, 0, || ());
        (found, sample.passed.into_inner())
    }

    #[test]
    fn a_circle_with_a_place_in_a_queue_has_no_victim() {
        assert_eq!(resolved(&[(1, 2), (2, 1)], &[]), (Some(true), vec![]));
        assert_eq!(resolved(&[(1, 2), (2, 1)], &[(1, 2)]), (Some(false), vec![1]));
        assert_eq!(resolved(&[(1, 2), (2, 3), (3, 1)], &[(3, 1)]), (Some(false), vec![3]));
        assert_eq!(resolved(&[(1, 2), (2, 3), (3, 1)], &[(1, 2), (2, 3)]), (Some(false), vec![2]));
        // The other circle remains.
        assert_eq!(resolved(&[(1, 3), (3, 1), (1, 2), (2, 1)], &[(1, 2)]), (Some(true), vec![1]));
        let two = [(1, 2), (2, 1), (1, 3), (3, 1)];
        assert_eq!(resolved(&two, &[(2, 1), (3, 1)]).0, Some(false));
        // A session whose wait remains after it has passed is not asked again.
        assert_eq!(resolved(&[(1, 2), (2, 1), (1, 2)], &[(2, 9)]), (Some(true), vec![]));
    }

    #[test]
    fn circles_through_the_start_are_found() {
        assert!(is_deadlocked(&Sample::new(&[(1, 2), (2, 1)]), 1));
        assert!(is_deadlocked(&Sample::new(&[(1, 2), (2, 3), (2, 9), (3, 1), (1, 8)]), 1));
        assert!(is_deadlocked(&Sample::new(&[(1, 1)]), 1));
    }

    #[test]
    fn a_search_ignores_circles_without_its_start() {
        assert!(!is_deadlocked(&Sample::new(&[(1, 2), (2, 3)]), 1));
        assert!(!is_deadlocked(&Sample::new(&[(1, 2), (2, 3), (3, 2)]), 1));
        assert!(!is_deadlocked(&Sample::new(&[]), 1));
    }

    #[test]
    fn a_wait_that_has_moved_on_is_no_deadlock() {
        let mut sample = Sample::new(&[(1, 2), (2, 1)]);
        sample.moves_on_after = Some(2);
        assert!(!is_deadlocked(&sample, 1));
    }

    #[test]
    fn after_a_deadlock_more_are_expected_for_a_while() {
        let searches = Searches::new();
        let searched = |edges: &[(u32, u32)], now| {
            let left = Cell::new(false);
            let found = searches.search(&Sample::new(edges), 1, now, || left.set(true));
            (found, left.get(), searches.expected(now), searches.expected(now + EXPECTED.as_nanos() as u64))
        };
        assert_eq!(searched(&[(1, 2)], 5), (Some(false), false, false, false));
        assert_eq!(searched(&[(1, 2), (2, 1)], 5), (Some(true), true, true, false));
    }

    #[test]
    fn one_search_runs_at_a_time() {
        let searches = Searches::new();
        let inner = Cell::new(Some(true));
        let circle = Sample::new(&[(1, 2), (2, 1)]);
        searches.search(&circle, 1, 0, || inner.set(searches.search(&circle, 2, 0, || ())));
        assert_eq!(inner.get(), None);
    }

    #[test]
    fn long_chains_cost_no_stack() {
        let edges: Vec<_> = (0..5000).map(|slot| (slot, slot + 1)).chain([(5000, 0)]).collect();
        assert!(is_deadlocked(&Sample::new(&edges), 0));
    }
}
