//! What a statement keeps between its rows: in memory up to `work_mem`, beyond it in temporary pages.
//!
//! [`Rows`] is a list of rows, read from the front as often as needed. [`Sorter`] takes entries of a key and a payload
//! in any order and gives them in the keys' order. Operators that need a hash table keep it while it fits, and sort
//! what doesn't: equal keys meet there too, whatever their number, so that no key can be too frequent. Both give their
//! pages back when they are dropped, and neither allocates a page before the bound is passed.

mod rows;
mod sorter;

use runtime::{fiber, interrupt};

pub(crate) use rows::{Rows, RowsReader, pack, unpack};
pub(crate) use sorter::{Sorted, Sorter};

use crate::error::SqlError;
use crate::exec::{from_storage, from_txn};

/// Lets others run and obeys interrupts, once in a while: for loops without rows of an executor.
struct Pace(u32);

impl Pace {
    const STEPS: u32 = 64;

    fn step(&mut self) -> Result<(), SqlError> {
        self.0 = self.0.wrapping_add(1);
        if self.0.is_multiple_of(Pace::STEPS) {
            fiber::safe_point();
            interrupt::check().map_err(|interrupted| from_txn(interrupted.into()))?;
        }
        Ok(())
    }
}

/// The client's error for one of storage.
fn failed(error: storage::Error) -> SqlError {
    from_storage(&error)
}
