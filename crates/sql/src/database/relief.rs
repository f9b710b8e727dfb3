//! Stops the statements that hold most memory while the process is short of it.
//!
//! A thread of the runtime calls [`Relief::round`] at a fixed pace. Each round chooses the largest
//! sessions until their memory covers the excess, and interrupts their statements.
//!
//! What must hold:
//!
//! 1. A session that the watch has stopped counts as if it had given its memory back, for
//!    [`ROUNDS_TO_STOP`] rounds. So one shortage does not stop more statements than it needs.
//! 2. A session that has not ended by then counts no longer, and the watch stops others in its
//!    place. So a statement that cannot stop does not keep the process short.
//! 3. The watch forgets a session once it is no longer among the large ones. Its next large
//!    statement is a new one.

use std::cmp::Reverse;
use std::sync::Arc;

use runtime::account;
use runtime::hash::HashMap;
use runtime::interrupt::Reason;

use crate::activity::ActivityTable;

/// Rounds that a stopped statement has to end, before the watch stops others in its place.
const ROUNDS_TO_STOP: u32 = 25;
/// Rounds of the watch in a minute.
const A_MINUTE: u32 = 3000;

/// Stops the statements of the sessions that hold most while the process is short of memory.
pub(crate) struct Relief {
    activity: Arc<ActivityTable>,
    /// The sessions that the watch has stopped, and the rounds since then.
    told: HashMap<u32, u32>,
    /// Rounds until the next line in the log about resident memory.
    quiet: u32,
}

impl Relief {
    pub fn new(activity: &Arc<ActivityTable>) -> Relief {
        Relief { activity: Arc::clone(activity), told: HashMap::default(), quiet: 0 }
    }

    /// Logs, at most once a minute, that more memory is resident than the server may have.
    fn tell_of_excess(&mut self) {
        let excess = account::excess();
        self.quiet = self.quiet.saturating_sub(1);
        if excess == 0 || self.quiet > 0 {
            return;
        }
        self.quiet = A_MINUTE;
        let taken = i64::try_from(account::taken()).unwrap_or(i64::MAX);
        log::warn!(
            "more memory is resident than the server may have, of which sessions hold {} MiB: they are stopped as if \
             they held {} MiB more; lower --buffers or --memory if this lasts",
            (taken - excess) >> 20,
            excess >> 20
        );
    }

    /// One round of the watch. It stops the statements of the largest sessions, until those hold
    /// the excess together.
    pub fn round(&mut self) {
        self.tell_of_excess();
        let mut sessions = self.activity.held();
        account::share_among(sessions.len());
        sessions.retain(|(_, held)| account::is_large(*held));
        sessions.sort_unstable_by_key(|(_, held)| Reverse(*held));
        let taken = i64::try_from(account::taken()).unwrap_or(i64::MAX);
        let stopped = choose(&sessions, &mut self.told, taken - account::limit());
        if stopped.is_empty() {
            return;
        }
        for (session, _) in &stopped {
            self.activity.interrupt(*session, Reason::Memory);
        }
        let held = stopped.iter().map(|(_, held)| held).sum::<i64>() >> 20;
        let (taken, limit) = (taken >> 20, account::limit() >> 20);
        match *stopped {
            [(session, _)] => log::warn!(
                "memory is short ({taken} MiB of {limit} MiB): stopping the statement of session {session}, \
                 which holds {held} MiB"
            ),
            _ => log::warn!(
                "memory is short ({taken} MiB of {limit} MiB): stopping the statements of {} sessions, \
                 which hold {held} MiB",
                stopped.len()
            ),
        }
    }
}

/// Chooses the sessions whose statements to stop: the largest first, until their memory covers the
/// excess. The watch waits for a session it has stopped. After [`ROUNDS_TO_STOP`] rounds it stops
/// that session once more, and others in its place.
fn choose(sessions: &[(u32, i64)], told: &mut HashMap<u32, u32>, excess: i64) -> Vec<(u32, i64)> {
    let before = std::mem::take(told);
    let waited_for = |session: &u32| before.get(session).is_some_and(|rounds| *rounds < ROUNDS_TO_STOP);
    let expected: i64 =
        sessions.iter().filter(|(session, _)| waited_for(session)).map(|(_, held)| *held).sum();
    let mut excess = excess - expected;
    let mut stopped = Vec::new();
    for &(session, held) in sessions {
        let rounds = before.get(&session).map(|rounds| rounds + 1);
        let again = rounds.is_some_and(|rounds| rounds > 0 && rounds.is_multiple_of(ROUNDS_TO_STOP));
        let chosen = again || rounds.is_none() && excess > 0;
        if chosen {
            stopped.push((session, held));
        }
        if rounds.is_none() && chosen {
            excess -= held;
        }
        if let Some(rounds) = rounds.or(chosen.then_some(0)) {
            told.insert(session, rounds);
        }
    }
    stopped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_of_the_largest_are_stopped_as_cover_the_excess() {
        let sessions = [(1, 50), (2, 40), (3, 30), (4, 20)];
        let mut told = HashMap::default();
        assert_eq!(choose(&sessions, &mut told, 80), [(1, 50), (2, 40)]);
        // The watch waits for them.
        assert_eq!(choose(&sessions, &mut told, 80), []);
        // One has given its memory back, the other is on its way; there is more than both held.
        assert_eq!(choose(&sessions[1..], &mut told, 50), [(3, 30)]);
        assert_eq!(choose(&sessions, &mut HashMap::default(), 0), []);
        assert_eq!(choose(&[], &mut told, 100), []);
        assert!(told.is_empty());
    }

    #[test]
    fn a_session_that_does_not_stop_does_not_keep_others_from_being_stopped() {
        let sessions = [(1, 50), (2, 40), (3, 30)];
        let mut told = HashMap::default();
        let mut stopped = Vec::new();
        for _ in 0..=3 * ROUNDS_TO_STOP {
            stopped.extend(choose(&sessions, &mut told, 50).into_iter().map(|(session, _)| session));
        }
        assert_eq!(stopped[..3], [1, 1, 2]);
        let times = |wanted| stopped.iter().filter(|session| **session == wanted).count();
        assert_eq!((times(1), times(2)), (4, 2), "{stopped:?}");
    }
}
