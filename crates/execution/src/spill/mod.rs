//! Data that a statement keeps between its rows: in memory up to `work_mem`, beyond it in temporary
//! pages.
//!
//! [`Rows`] is a list of rows, read from the front as often as needed. [`Sorter`] takes entries of
//! a key and a payload in any order and gives them in the keys' order. An operator with a hash
//! table keeps the table while it fits, and sorts the other rows. Equal keys meet in the sorter
//! too, whatever their number, so no key is too frequent.
//!
//! What must hold: both give their pages back when they are dropped, and neither allocates a page
//! within its bound.

mod rows;
mod sorter;

use runtime::{fiber, interrupt};

pub use rows::{RowPlace, Rows, RowsReader, pack, unpack};
pub use sorter::{Sorted, Sorter};

use crate::{from_storage, from_txn};
use values::error::{SqlError, SqlState};

/// A safe point: other fibers may run, and an interrupt ends the statement.
fn pause() -> Result<(), SqlError> {
    fiber::safe_point();
    interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))
}

/// A length as it is written before what it counts.
#[inline]
fn short(length: usize) -> Result<u32, SqlError> {
    u32::try_from(length).map_err(|_| {
        let message = format!("a row of {length} bytes is too large to be kept (at most {})", u32::MAX);
        SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
    })
}

/// The client's error for one of storage.
fn failed(error: txn::StorageError) -> SqlError {
    from_storage(&error)
}
