//! What each session is doing, for `pg_stat_activity`: one cache line a session, written by plain stores without a lock
//! or a fence, read without stopping anybody. A reader may see a state a moment old; each field is whole by itself.

use runtime::interrupt::{Interrupt, Reason};
use std::collections::HashMap;
use std::sync::Arc;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::{CachePadded, SpinLock};

/// What a session does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum State {
    /// Waits for its client.
    Idle = 0,
    /// Runs a statement.
    Active = 1,
    /// Waits for its client within a transaction.
    InTransaction = 2,
    /// The same, after an error.
    Failed = 3,
}

impl State {
    /// As pg_stat_activity shows it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            State::Idle => "idle",
            State::Active => "active",
            State::InTransaction => "idle in transaction",
            State::Failed => "idle in transaction (aborted)",
        }
    }
}

#[derive(Default)]
struct Slot {
    /// The session's number, 0 when the slot is free.
    session: AtomicU32,
    database: AtomicU32,
    state: AtomicU32,
    started: AtomicU64,
    transaction: AtomicU64,
    statement: AtomicU64,
}

/// One session as it was seen.
#[derive(Clone, Copy, Debug)]
pub struct Activity {
    /// Its number.
    pub session: u32,
    /// Its database's OID.
    pub database: u32,
    /// What it does.
    pub state: State,
    /// When it began (microseconds since 2000).
    pub started: i64,
    /// When its transaction began (microseconds since 2000), 0 outside.
    pub transaction: i64,
    /// When its statement began.
    pub statement: i64,
}

/// The sessions' slots.
pub(crate) struct Board {
    slots: Box<[CachePadded<Slot>]>,
    free: SpinLock<Free>,
    /// By whose number a session is interrupted.
    interrupts: SpinLock<HashMap<u32, Arc<Interrupt>>>,
}

struct Free {
    slots: Vec<u32>,
    next: u32,
}

/// A session's slot, given back when dropped.
pub(crate) struct Seat {
    board: Arc<Board>,
    slot: u32,
    /// The session's number.
    pub session: u32,
}

impl Board {
    /// Slots for so many sessions.
    pub fn new(sessions: usize) -> Board {
        Board {
            slots: (0..sessions).map(|_| CachePadded::default()).collect(),
            free: SpinLock::new(Free { slots: Vec::new(), next: 0 }),
            interrupts: SpinLock::new(HashMap::new()),
        }
    }

    /// The most sessions there may be.
    pub fn sessions(&self) -> usize {
        self.slots.len()
    }

    /// A slot for a new session; None when all are taken.
    pub fn seat(self: &Arc<Board>, database: u32, interrupt: &Arc<Interrupt>) -> Option<Seat> {
        let slot = {
            let mut free = self.free.lock();
            match free.slots.pop() {
                Some(slot) => slot,
                None if (free.next as usize) < self.slots.len() => {
                    free.next += 1;
                    free.next - 1
                }
                None => return None,
            }
        };
        let session = slot + 1;
        let at = &self.slots[slot as usize];
        at.database.store(database, Ordering::Relaxed); // each field stands for itself
        at.started.store(crate::session::clock() as u64, Ordering::Relaxed);
        at.session.store(session, Ordering::Relaxed);
        self.interrupts.lock().insert(session, Arc::clone(interrupt));
        Some(Seat { board: Arc::clone(self), slot, session })
    }

    /// Interrupts the session of this number; false when there is none.
    pub fn interrupt(&self, session: u32, reason: Reason) -> bool {
        let found = self.interrupts.lock().get(&session).cloned();
        found.inspect(|interrupt| interrupt.raise(reason)).is_some()
    }

    /// All sessions.
    pub fn list(&self) -> Vec<Activity> {
        let seen = |slot: &CachePadded<Slot>| {
            let session = slot.session.load(Ordering::Relaxed); // a moment old is good enough
            (session != 0).then(|| Activity {
                session,
                database: slot.database.load(Ordering::Relaxed),
                state: match slot.state.load(Ordering::Relaxed) {
                    1 => State::Active,
                    2 => State::InTransaction,
                    3 => State::Failed,
                    _ => State::Idle,
                },
                started: slot.started.load(Ordering::Relaxed) as i64,
                transaction: slot.transaction.load(Ordering::Relaxed) as i64,
                statement: slot.statement.load(Ordering::Relaxed) as i64,
            })
        };
        self.slots.iter().filter_map(seen).collect()
    }
}

impl Seat {
    /// What the session does from now on. Only its own core writes here.
    #[inline]
    pub fn state(&self, state: State) {
        self.slot().state.store(state as u32, Ordering::Relaxed); // shown, never decided by
    }

    /// When its transaction began; 0 when it has ended.
    #[inline]
    pub fn transaction(&self, time: i64) {
        self.slot().transaction.store(time as u64, Ordering::Relaxed); // shown, never decided by
    }

    /// When its statement began.
    #[inline]
    pub fn statement(&self, time: i64) {
        self.slot().statement.store(time as u64, Ordering::Relaxed); // shown, never decided by
    }

    /// Asks for its slot's cache line.
    #[inline]
    pub fn prefetch(&self) {
        sync::prefetch(self.slot());
    }

    fn slot(&self) -> &Slot {
        &self.board.slots[self.slot as usize]
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let slot = self.slot();
        slot.session.store(0, Ordering::Relaxed); // the free list's lock orders its reuse
        slot.state.store(0, Ordering::Relaxed);
        slot.transaction.store(0, Ordering::Relaxed);
        self.board.interrupts.lock().remove(&self.session);
        self.board.free.lock().slots.push(self.slot);
    }
}
