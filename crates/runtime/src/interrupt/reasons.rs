//! One session's pending reasons to give up, and how it is woken for them.
//!
//! What must hold:
//!
//! 1. A raise sets the bit first and wakes afterwards. A fiber that parks registers its waker first
//!    and looks at the bits afterwards. Both do so under the waker's lock, so no wait misses an
//!    interrupt.
//! 2. A session that moves to another core names that core first and looks at the bits afterwards.
//!    A raise sets the bit first and reads the name afterwards, both under the name's lock. So
//!    either the new core is woken, or the session finds the reason as it arrives.
//!
//! `tests/loom_interrupt.rs` runs this file under loom.

use std::sync::Arc;
use std::task::Waker;

use sync::SpinLock;
use sync::atomic::{AtomicI64, AtomicU8, AtomicU32, Ordering};

/// Why a session is interrupted; [`Interrupt::take`] gives the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Reason {
    /// The runtime shuts down.
    Shutdown = 0,
    /// An administrator ends the session.
    Terminate = 1,
    /// The client asked to cancel its statement.
    Cancel = 2,
    /// The statement ran too long.
    StatementTimeout = 3,
    /// A lock was waited for too long.
    LockTimeout = 4,
    /// The session was idle too long.
    IdleTimeout = 5,
    /// The transaction was open too long.
    TransactionTimeout = 6,
    /// The transaction holds back too much of the log.
    RetainedLog = 7,
    /// The session holds more memory than it may, or the most while the process is short of it.
    Memory = 8,
}

impl Reason {
    const ALL: [Reason; 9] = [
        Reason::Shutdown,
        Reason::Terminate,
        Reason::RetainedLog,
        Reason::TransactionTimeout,
        Reason::Cancel,
        Reason::StatementTimeout,
        Reason::LockTimeout,
        Reason::IdleTimeout,
        Reason::Memory,
    ];

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The reasons that end the session, not only its statement.
const ENDING: u32 = Reason::Shutdown.bit()
    | Reason::Terminate.bit()
    | Reason::TransactionTimeout.bit()
    | Reason::RetainedLog.bit();

/// The running statement was interrupted and gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted(pub Reason);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "interrupted: {:?}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// One session's pending reasons to give up.
#[derive(Debug)]
pub struct Interrupt {
    pending: AtomicU32,
    parked: SpinLock<Option<Waker>>,
    /// The code of the event that the session's fiber waits for: see [`crate::wait_event`].
    wait_event: AtomicU8,
    /// The core that serves the session, and what wakes it there when no fiber serves it.
    session: SpinLock<Option<(usize, Waker)>>,
    /// Bytes of memory the session holds: see [`crate::account`]. Written by the session's own
    /// core, or by the thread of the call.
    held: AtomicI64,
    /// Bytes it may hold.
    memory_limit: AtomicI64,
    /// Bytes that calls beside the cores hold for the session: see [`crate::aside`].
    beside: AtomicI64,
    /// Bytes of the session's replies that the kernel holds. They are not the session's: its client
    /// may be about to read them.
    unread: AtomicI64,
    /// The session's interrupt, where this one is such a call's.
    session_of_call: Option<Arc<Interrupt>>,
}

impl Default for Interrupt {
    fn default() -> Interrupt {
        Interrupt {
            pending: AtomicU32::default(),
            parked: SpinLock::new(&"interrupt", None),
            wait_event: AtomicU8::default(),
            session: SpinLock::new(&"interrupted session", None),
            held: AtomicI64::new(0),
            memory_limit: AtomicI64::new(i64::MAX),
            beside: AtomicI64::new(0),
            unread: AtomicI64::new(0),
            session_of_call: None,
        }
    }
}

impl Interrupt {
    /// Nothing pending.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The interrupt of a call beside the cores, made for a session.
    pub(crate) fn beside(session: Option<Arc<Interrupt>>) -> Arc<Self> {
        Arc::new(Interrupt { session_of_call: session, ..Interrupt::default() })
    }

    /// The core its session is served on.
    pub fn core(&self) -> Option<usize> {
        self.session.lock().as_ref().map(|(core, _)| *core)
    }

    /// Ties the interrupt to a session of this core, which it then wakes too. It wakes the core on
    /// which the session was before no more. The caller looks at the reasons afterwards: the lock
    /// orders that look after any raise that woke the former core.
    pub(crate) fn attach(&self, core: usize, session: Waker) {
        let before = self.session.lock().replace((core, session));
        drop(before);
    }

    /// Interrupts from any core or thread: sets the flag and wakes the fiber or session.
    pub fn raise(&self, reason: Reason) {
        // Release: the fiber that takes the reason sees the writes that led to it. The lock below
        // orders it against a registration.
        self.pending.fetch_or(reason.bit(), Ordering::Release);
        let waker = self.parked.lock().take();
        if let Some(waker) = waker {
            waker.wake();
        }
        self.wake_session();
    }

    /// Makes a worker serve the session soon, even if no bytes have come.
    pub(crate) fn wake_session(&self) {
        let session = self.session.lock().as_ref().map(|(_, session)| session.clone());
        if let Some(session) = session {
            session.wake();
        }
    }

    /// Takes back a reason that has not been taken (a cancel that came too late).
    pub fn clear(&self, reason: Reason) {
        // Relaxed: nothing is decided from what it replaces.
        self.pending.fetch_and(!reason.bit(), Ordering::Relaxed);
    }

    /// Takes the most urgent pending reason.
    pub fn take(&self) -> Option<Reason> {
        // Relaxed: the common case of none; the bits are taken below.
        let pending = self.pending.load(Ordering::Relaxed);
        let reason = Reason::ALL.into_iter().find(|reason| pending & reason.bit() != 0)?;
        // Acquire: pairs with `raise`.
        let old = self.pending.fetch_and(!reason.bit(), Ordering::Acquire);
        (old & reason.bit() != 0).then_some(reason)
    }

    /// The most urgent pending reason, which stays pending.
    pub(crate) fn pending(&self) -> Option<Reason> {
        // Relaxed: a look, as below.
        let pending = self.pending.load(Ordering::Relaxed);
        Reason::ALL.into_iter().find(|reason| pending & reason.bit() != 0)
    }

    /// Whether any reason is pending.
    #[inline]
    pub fn is_pending(&self) -> bool {
        // Relaxed: a look; taking acquires.
        self.pending.load(Ordering::Relaxed) != 0
    }

    /// The code of what the session waits for now; 0 where it has not said so.
    pub(crate) fn wait_event(&self) -> u8 {
        // Relaxed: information only.
        self.wait_event.load(Ordering::Relaxed)
    }

    /// Sets the session's wait event. Returns the previous one, for the caller to put back.
    pub(crate) fn set_wait_event(&self, code: u8) -> u8 {
        // Relaxed: information only. Only the session's own fiber writes here.
        let before = self.wait_event.load(Ordering::Relaxed);
        self.wait_event.store(code, Ordering::Relaxed);
        before
    }

    /// Bytes of memory the session holds; those of the turn that runs come in as it takes leases.
    #[inline]
    pub fn held(&self) -> i64 {
        // Relaxed: a number that orders nothing. Its own core reads what it wrote, others what was
        // true a moment ago.
        self.held.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_held(&self, bytes: i64) {
        self.held.store(bytes, Ordering::Relaxed); // Relaxed: as above
    }

    /// [`Interrupt::held`] with what calls beside the cores hold for the session.
    pub fn held_in_all(&self) -> i64 {
        // Relaxed: a sum, which orders nothing.
        self.held().saturating_add(self.beside.load(Ordering::Relaxed))
    }

    /// [`Interrupt::held_in_all`] with the replies that the kernel holds: what the process gets
    /// back when the session ends.
    pub fn held_with_unread(&self) -> i64 {
        // Relaxed: as above.
        self.held_in_all().saturating_add(self.unread.load(Ordering::Relaxed))
    }

    /// Sets the bytes of replies that the kernel holds.
    pub(crate) fn set_unread(&self, bytes: i64) {
        self.unread.store(bytes, Ordering::Relaxed); // Relaxed: as above
    }

    /// Sets what is held and counts the difference for the session, where this is a call's
    /// interrupt.
    pub(crate) fn note_held(&self, bytes: i64) {
        let before = self.held();
        self.set_held(bytes);
        if let Some(session) = &self.session_of_call {
            session.beside.fetch_add(bytes - before, Ordering::Relaxed); // Relaxed: as above
        }
    }

    #[inline]
    pub(crate) fn memory_limit(&self) -> i64 {
        self.memory_limit.load(Ordering::Relaxed) // Relaxed: as above
    }

    /// Bounds the memory the session may hold, in bytes.
    pub fn set_memory_limit(&self, bytes: i64) {
        self.memory_limit.store(bytes, Ordering::Relaxed); // Relaxed: as above
    }

    /// Asks the statement that runs to give up for its memory. It runs, so nobody has to be woken.
    /// Called inside the allocator.
    pub(crate) fn overdraw(&self) {
        // Release: as in `raise`.
        self.pending.fetch_or(Reason::Memory.bit(), Ordering::Release);
    }

    /// Whether a reason is pending that ends the session.
    pub(crate) fn is_ending(&self) -> bool {
        // Relaxed: as above.
        self.pending.load(Ordering::Relaxed) & ENDING != 0
    }

    /// Whether the session was asked to give up for its memory.
    pub(crate) fn is_overdrawn(&self) -> bool {
        // Relaxed: as above.
        self.pending.load(Ordering::Relaxed) & Reason::Memory.bit() != 0
    }

    /// Parks the running fiber once, unless `gives_up` holds; returns whether it does then.
    pub(crate) fn park_unless(&self, gives_up: impl Fn(&Self) -> bool) -> bool {
        let waker = sync::park::current();
        let unregister = Unregister(self);
        let previous = self.parked.lock().replace(waker);
        drop(previous);
        // The lock orders this look after any raise that did not see our waker.
        if !gives_up(self) {
            sync::park::park();
        }
        drop(unregister);
        gives_up(self)
    }
}

struct Unregister<'a>(&'a Interrupt);

impl Drop for Unregister<'_> {
    fn drop(&mut self) {
        let waker = self.0.parked.lock().take();
        drop(waker);
    }
}
