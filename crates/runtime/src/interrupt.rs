//! Interrupts: how a running or waiting statement is asked to give up.

use std::sync::Arc;

/// Why a session is interrupted.
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
}

/// The running statement was interrupted and gives up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted(pub Reason);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "interrupted: {:?}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// What one session is interrupted by.
#[derive(Debug, Default)]
pub struct Interrupt {}

impl Interrupt {
    /// Nothing pending.
    pub fn new() -> Arc<Self> {
        todo!()
    }

    /// Interrupts from any core or thread: sets the flag and wakes the fiber or session.
    pub fn raise(&self, _reason: Reason) {
        todo!()
    }

    /// Takes back a reason that has not been taken.
    pub fn clear(&self, _reason: Reason) {
        todo!()
    }

    /// Takes the most urgent pending reason.
    pub fn take(&self) -> Option<Reason> {
        todo!()
    }

    /// Whether any reason is pending.
    pub fn is_pending(&self) -> bool {
        todo!()
    }
}

/// Says whose interrupts the running fiber obeys from now on.
pub fn set_current(_interrupt: Option<Arc<Interrupt>>) {
    todo!()
}

/// Takes the pending reason of the running fiber's interrupt, if any and not masked.
pub fn check() -> Result<(), Interrupted> {
    todo!()
}

/// Parks as `sync::park::park`, but gives up on an interrupt.
pub fn park() -> Result<(), Interrupted> {
    todo!()
}

/// Runs `body` without being interrupted: for what must finish (commit, rollback).
pub fn mask<R>(_body: impl FnOnce() -> R) -> R {
    todo!()
}
