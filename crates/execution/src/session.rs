//! A session as its operators see it: a trait that `sql` implements.

use catalog::pg_catalog::System;
use values::environment::Environment;
use values::error::SqlError;

/// A session as operators see it.
pub trait RunningSession: Environment + System {
    /// Bytes that one operator may keep in memory.
    fn work_mem(&self) -> usize;
    /// Bytes that building an index may keep in memory.
    fn maintenance_work_mem(&self) -> usize;
    /// Waits until every commit that the session has read is durable, unless its settings waive
    /// that. Call it before the client sees rows.
    ///
    /// # Errors
    /// When the wait is interrupted, or the log cannot be written.
    fn before_showing(&self) -> Result<(), SqlError>;
}
