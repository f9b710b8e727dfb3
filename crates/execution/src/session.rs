//! The session, as the operators that it runs see it. The session above implements it.

use catalog::pg_catalog::System;
use values::environment::Environment;
use values::error::SqlError;

/// A session as operators see it.
pub trait RunningSession: Environment + System {
    /// Bytes that one operator may keep in memory.
    fn work_mem(&self) -> usize;
    /// Bytes that building an index may keep in memory.
    fn maintenance_work_mem(&self) -> usize;
    /// Waits until what was read is durable, unless the session does not want that: to be called
    /// before the client sees rows.
    ///
    /// # Errors
    /// When the wait is interrupted, or the log cannot be written.
    fn before_showing(&self) -> Result<(), SqlError>;
}
