//! The activity table: the rows of `pg_stat_activity`. Each session has a slot of one cache line
//! and the text of its statement. The wait event lies in the session's interrupt, where its fiber
//! writes it.
//!
//! What must hold: a session writes its slot by plain stores without a lock, and no reader makes it
//! wait. Each field is whole by itself, and a reader may see one that is a moment old.

use runtime::hash::{HashMap, HashSet};
use runtime::interrupt::{Interrupt, Reason};
use runtime::wait_event::WaitEvent;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;
use sync::atomic::{AtomicU32, AtomicU64, Ordering};
use sync::{CachePadded, Caption, OnceLock, SpinLock, assert_apart};

use crate::clock::clock;
use crate::log_text;

/// The state of a session.
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
    /// When the state last changed, by the monotonic clock that the core reads once a turn.
    changed: AtomicU64,
    /// Kept for the next session that has the slot.
    texts: OnceLock<Box<Texts>>,
}

/// A session's texts.
#[derive(Default)]
struct Texts {
    query: Caption,
    application: Caption,
}

/// A copy of one session's row.
#[derive(Clone, Debug)]
pub struct Activity {
    /// Its number.
    pub session: u32,
    /// Its database's OID.
    pub database: u32,
    /// Its state.
    pub state: State,
    /// When it began (microseconds since 2000).
    pub started: i64,
    /// When its transaction began (microseconds since 2000), 0 outside.
    pub transaction: i64,
    /// When its statement, or the last one, began; 0 before the first.
    pub statement: i64,
    /// When its state last changed (microseconds since 2000), as of the turn of the core's loop in
    /// which it did.
    pub changed: i64,
    /// The text of its statement, or of the last one: its first 1024 bytes.
    pub query: String,
    /// Its `application_name`.
    pub application: String,
    /// Its wait event.
    pub(crate) wait_event: Option<WaitEvent>,
}

/// All sessions in short.
#[derive(Clone, Debug, Default)]
pub struct ActivitySummary {
    /// Sessions by state and wait event, named as in `pg_stat_activity`. An event's kind and name
    /// are empty where a session runs.
    pub groups: BTreeMap<(&'static str, &'static str, &'static str), usize>,
    /// The age of the oldest open transaction; zero if there is none.
    pub oldest_transaction: Duration,
    /// The age of the oldest statement that runs; zero if there is none.
    pub oldest_statement: Duration,
}

/// The sessions' slots.
pub(crate) struct ActivityTable {
    slots: Box<[CachePadded<Slot>]>,
    // Written by each session that begins or ends.
    free: CachePadded<SpinLock<Free>>,
    numbers: CachePadded<SpinLock<Numbers>>,
}

assert_apart!(ActivityTable: free from slots);
assert_apart!(ActivityTable: numbers from slots);

/// The numbers of sessions. They go up and start again only after 2^31. So a late cancel request or
/// `pg_terminate_backend` finds no session, and never the next one.
#[derive(Default)]
struct Numbers {
    last: u32,
    /// The sessions by their numbers.
    sessions: HashMap<u32, Known>,
}

/// The part of a session that does not change while the session lasts.
struct Known {
    interrupt: Arc<Interrupt>,
    /// The user that it logged in as.
    user: Arc<str>,
}

impl Numbers {
    /// A number for a new session. There are fewer sessions than numbers.
    fn add(&mut self, user: &Arc<str>, interrupt: &Arc<Interrupt>) -> u32 {
        loop {
            // Clients take it for a process's number, which is a positive `int`.
            self.last = if self.last >= i32::MAX as u32 { 1 } else { self.last + 1 };
            if let Entry::Vacant(free) = self.sessions.entry(self.last) {
                free.insert(Known { interrupt: Arc::clone(interrupt), user: Arc::clone(user) });
                return self.last;
            }
        }
    }
}

struct Free {
    slots: Vec<u32>,
    next: u32,
}

/// A session's slot, given back when dropped.
pub(crate) struct ActivitySlot {
    table: Arc<ActivityTable>,
    slot: u32,
    /// The session's number.
    pub session: u32,
    /// The number of the plan whose text the row has; 0 for a text that is no plan's.
    shown: Cell<u64>,
}

impl ActivityTable {
    /// A table of `sessions` slots.
    pub fn new(sessions: usize) -> ActivityTable {
        ActivityTable {
            slots: (0..sessions).map(|_| CachePadded::default()).collect(),
            free: CachePadded::new(SpinLock::new(&"activity slots", Free { slots: Vec::new(), next: 0 })),
            numbers: CachePadded::new(SpinLock::new(&"session numbers", Numbers::default())),
        }
    }

    /// The number of slots: the limit of sessions.
    pub fn sessions(&self) -> usize {
        self.slots.len()
    }

    /// A slot for a new session; None when all are taken.
    pub fn take_slot(
        self: &Arc<ActivityTable>,
        database: u32,
        user: &Arc<str>,
        interrupt: &Arc<Interrupt>,
    ) -> Option<ActivitySlot> {
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
        let session = self.numbers.lock().add(user, interrupt);
        let at = &self.slots[slot as usize];
        at.database.store(database, Ordering::Relaxed); // each field stands for itself
        at.started.store(clock() as u64, Ordering::Relaxed);
        at.changed.store(runtime::time::now(), Ordering::Relaxed);
        let texts = at.texts.get_or_init(Box::default);
        texts.query.write("");
        texts.application.write("");
        at.session.store(session, Ordering::Relaxed);
        Some(ActivitySlot { table: Arc::clone(self), slot, session, shown: Cell::new(0) })
    }

    /// Interrupts the session of this number; false when there is none.
    pub fn interrupt(&self, session: u32, reason: Reason) -> bool {
        let found = self.numbers.lock().sessions.get(&session).map(|known| Arc::clone(&known.interrupt));
        found.inspect(|interrupt| interrupt.raise(reason)).is_some()
    }

    /// The bytes of memory that each session holds.
    pub fn held(&self) -> Vec<(u32, i64)> {
        // Room is made before the lock is taken.
        let mut held = Vec::with_capacity(self.sessions());
        let numbers = self.numbers.lock();
        let bytes = |known: &Known| known.interrupt.held_with_unread();
        held.extend(numbers.sessions.iter().map(|(session, known)| (*session, bytes(known))));
        held
    }

    /// The sessions that run on a core now, with their statements. A fiber that has yielded or
    /// parked does not count: it has a wait event. One that spins counts: it keeps its core.
    pub fn running_on(&self, core: usize) -> Vec<(u32, String)> {
        let here: HashSet<u32> = {
            let numbers = self.numbers.lock();
            let waits = |one: &Interrupt| !matches!(WaitEvent::of(one), None | Some(WaitEvent::SpinLock));
            let runs = |one: &Interrupt| one.core() == Some(core) && !waits(one);
            let here = numbers.sessions.iter().filter(|(_, known)| runs(&known.interrupt));
            here.map(|(session, _)| *session).collect()
        };
        let active = |slot: &CachePadded<Slot>| {
            // Relaxed: a moment old is good enough.
            let (session, state) = (slot.session.load(Ordering::Relaxed), slot.state.load(Ordering::Relaxed));
            let runs = state == State::Active as u32 && here.contains(&session);
            let texts = slot.texts.get().filter(|_| runs)?;
            Some((session, texts.query.read()))
        };
        self.slots.iter().filter_map(active).collect()
    }

    /// Writes to the log which statement holds a worker, given by its number and its name.
    pub fn report_held(&self, core: usize, name: &str, lasted: Duration) {
        let seconds = lasted.as_secs_f64();
        let running = self.running_on(core);
        for (session, query) in &running {
            let query = log_text::statement(query);
            log::warn!("{name} has been held for {seconds:.1} s by session {session}: {query}");
        }
        if running.is_empty() {
            log::warn!("{name} has been held for {seconds:.1} s by no statement");
        }
    }

    /// Looks up the wait event of a session. The lock is held for one look, so a walk over many
    /// sessions keeps nobody out.
    fn wait_event(&self, session: u32) -> Option<WaitEvent> {
        let numbers = self.numbers.lock();
        let interrupt = &numbers.sessions.get(&session)?.interrupt;
        match WaitEvent::of(interrupt) {
            None if interrupt.core().is_some_and(runtime::watchdog::is_held) => Some(WaitEvent::Held),
            wait_event => wait_event,
        }
    }

    /// The user that a session logged in as; `None` once the session has ended.
    pub fn user(&self, session: u32) -> Option<Arc<str>> {
        self.numbers.lock().sessions.get(&session).map(|known| Arc::clone(&known.user))
    }

    /// The database of each session.
    pub fn databases(&self) -> Vec<u32> {
        // Relaxed: a moment old is good enough.
        let taken = self.slots.iter().filter(|slot| slot.session.load(Ordering::Relaxed) != 0);
        taken.map(|slot| slot.database.load(Ordering::Relaxed)).collect()
    }

    /// All sessions.
    pub fn list(&self) -> Vec<Activity> {
        self.look(|_| true, Caption::MOST).flatten().collect()
    }

    /// All sessions in short.
    pub fn summary(&self) -> ActivitySummary {
        let mut summary = ActivitySummary::default();
        let now = clock();
        let age = |since: i64| Duration::from_micros((now - since).try_into().unwrap_or(0));
        for one in self.look(|_| true, 0).flatten() {
            let (kind, name) = one.wait_event.map_or(("", ""), WaitEvent::names);
            *summary.groups.entry((one.state.as_str(), kind, name)).or_default() += 1;
            if one.transaction != 0 {
                summary.oldest_transaction = summary.oldest_transaction.max(age(one.transaction));
            }
            if one.state == State::Active {
                summary.oldest_statement = summary.oldest_statement.max(age(one.statement));
            }
        }
        summary
    }

    /// Looks at one slot after the other. Gives its session if there is one in a state that is
    /// `wanted`, with at most `text` bytes of each of its texts. It reads no text of another one.
    pub fn look(
        &self,
        wanted: impl Fn(State) -> bool,
        text: usize,
    ) -> impl Iterator<Item = Option<Activity>> {
        let (wall, now) = (clock(), runtime::time::precise());
        self.slots.iter().map(move |slot| {
            let session = slot.session.load(Ordering::Relaxed); // a moment old is good enough
            let state = match slot.state.load(Ordering::Relaxed) {
                1 => State::Active,
                2 => State::InTransaction,
                3 => State::Failed,
                _ => State::Idle,
            };
            let texts = slot.texts.get().filter(|_| session != 0 && wanted(state))?;
            let statement = slot.statement.load(Ordering::Relaxed) as i64;
            let ago = now.saturating_sub(slot.changed.load(Ordering::Relaxed)) / 1000;
            Some(Activity {
                session,
                database: slot.database.load(Ordering::Relaxed),
                state,
                started: slot.started.load(Ordering::Relaxed) as i64,
                transaction: slot.transaction.load(Ordering::Relaxed) as i64,
                statement,
                // A turn begins before the statements that are run in it.
                changed: (wall - ago as i64).max(statement),
                query: texts.query.beginning(text),
                application: texts.application.beginning(text),
                wait_event: match state {
                    State::Active => self.wait_event(session),
                    _ => Some(WaitEvent::ClientRead),
                },
            })
        })
    }
}

impl ActivitySlot {
    /// Sets the session's state. Only its own core writes here.
    #[inline]
    pub fn state(&self, state: State) {
        let slot = self.slot();
        slot.state.store(state as u32, Ordering::Relaxed); // shown, never decided by
        slot.changed.store(runtime::time::now(), Ordering::Relaxed);
        #[cfg(variants)]
        runtime::replaced::title(state.as_str());
    }

    /// Shows the text of a statement. `plan` is the number of its plan, or 0. A plan's text that is
    /// there is not written again.
    #[inline]
    pub fn query(&self, plan: u64, text: &str) {
        if plan == 0 || self.shown.replace(plan) != plan {
            self.shown.set(plan);
            self.texts().query.write(text);
        }
    }

    /// The text of its statement, as readers see it.
    pub fn text(&self) -> String {
        self.texts().query.read()
    }

    /// Shows its `application_name`.
    pub fn application(&self, name: &str) {
        self.texts().application.write(name);
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

    fn texts(&self) -> &Texts {
        self.slot().texts.get().expect("made when the slot was taken")
    }

    fn slot(&self) -> &Slot {
        &self.table.slots[self.slot as usize]
    }
}

impl Drop for ActivitySlot {
    fn drop(&mut self) {
        let slot = self.slot();
        slot.session.store(0, Ordering::Relaxed); // the free list's lock orders its reuse
        slot.state.store(0, Ordering::Relaxed);
        slot.transaction.store(0, Ordering::Relaxed);
        slot.statement.store(0, Ordering::Relaxed);
        let ended = self.table.numbers.lock().sessions.remove(&self.session);
        drop(ended); // It frees memory, so the lock is given back before.
        self.table.free.lock().slots.push(self.slot);
    }
}
