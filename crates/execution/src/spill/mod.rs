//! Data that a statement keeps between its rows: in memory up to `work_mem`, beyond it in temporary
//! pages.
//!
//! [`Rows`] is a list of rows, read from the front as often as needed. [`Sorter`] takes entries of
//! a key and a payload in any order and gives them in the keys' order. Operators that need a hash
//! table keep it while it fits, and sort what doesn't: equal keys meet there too, whatever their
//! number, so that no key can be too frequent. Both give their pages back when they are dropped,
//! and neither allocates a page before the bound is passed.

mod rows;
mod sorter;

use runtime::{fiber, interrupt};

pub use rows::{RowPlace, Rows, RowsReader, pack, unpack};
pub use sorter::{Sorted, Sorter};

use crate::{from_storage, from_txn};
use values::error::{SqlError, SqlState};

/// Lets others run and obeys interrupts.
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
