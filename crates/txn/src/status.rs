//! The outcome of each transaction: one word for each transaction number.
//!
//! 1. A word goes from nothing to running to committed or aborted. The transaction's own core alone
//!    stores it. A tag distinguishes outcomes, never a comparison of numbers.
//! 2. The commit word is stored before the log counts the commit record as filled. So it is stored
//!    before its number can be in a snapshot, and one snapshot never gets two answers.
//! 3. Words below the horizon are given back to the system and read as nothing. A reader holds a
//!    snapshot that sees all finished transactions below the horizon. So nothing means: finished,
//!    and seen by everybody.
//! 4. The table is a window over the numbers. A number is handed out only while it is less than
//!    [`WINDOW`] above the horizon.

use runtime::memory::AtomicArray;
use storage::Lsn;
use sync::atomic::{AtomicU64, Ordering};

use crate::Error;

/// Numbers in the window: 8 GiB of reserved addresses. Memory stands behind the part between the
/// horizon and the newest number only.
pub const WINDOW: u64 = 1 << 30;

/// Words given back at once: 512 KiB.
const RELEASE: u64 = 1 << 16;
const _: () = assert!(WINDOW.is_multiple_of(RELEASE));

/// The outcome of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Below the horizon: it has ended, and everybody sees it.
    Old,
    /// Running in this session slot.
    Running(u32),
    /// Committed; its commit record ends here.
    Committed(Lsn),
    /// Rolled back; every change was taken back before this position.
    Aborted(Lsn),
}

const TAG_BITS: u32 = 2;
const RUNNING: u64 = 1;
const COMMITTED: u64 = 2;
const ABORTED: u64 = 3;

impl Status {
    fn encode(self) -> u64 {
        match self {
            Status::Old => 0,
            Status::Running(slot) => u64::from(slot) << TAG_BITS | RUNNING,
            Status::Committed(lsn) => lsn.0 << TAG_BITS | COMMITTED,
            Status::Aborted(lsn) => lsn.0 << TAG_BITS | ABORTED,
        }
    }

    fn decode(word: u64) -> Status {
        let value = word >> TAG_BITS;
        match word & ((1 << TAG_BITS) - 1) {
            RUNNING => Status::Running(value as u32),
            COMMITTED => Status::Committed(Lsn(value)),
            ABORTED => Status::Aborted(Lsn(value)),
            _ => Status::Old,
        }
    }
}

/// The table of outcomes.
pub struct StatusTable {
    words: AtomicArray<AtomicU64>,
}

impl StatusTable {
    /// Reserves the window.
    pub fn new() -> Result<StatusTable, Error> {
        let words = AtomicArray::reserve(WINDOW as usize)
            .map_err(|error| storage::Error::io("reserving the transaction table", &error))?;
        Ok(StatusTable { words })
    }

    #[inline]
    fn word(&self, txid: u64) -> &AtomicU64 {
        self.words.get((txid % WINDOW) as usize)
    }

    /// The outcome of `txid`.
    #[inline]
    pub fn get(&self, txid: u64) -> Status {
        // Acquire: a reader that sees an abort also sees the rows put back before it.
        Status::decode(self.word(txid).load(Ordering::Acquire))
    }

    /// Sets the outcome of `txid`.
    #[inline]
    pub fn set(&self, txid: u64, status: Status) {
        // Release: pairs with `get`.
        self.word(txid).store(status.encode(), Ordering::Release);
    }

    /// Gives back the words of finished transactions between two positions of the horizon, in whole
    /// pieces.
    pub fn release(&self, from: u64, to: u64) {
        let mut piece = from / RELEASE;
        while piece < to / RELEASE {
            let start = (piece * RELEASE % WINDOW) as usize;
            self.words.release(start..start + RELEASE as usize);
            piece += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_reads_back_as_stored() {
        let all = [
            Status::Old,
            Status::Running(0),
            Status::Running(u32::MAX),
            Status::Committed(Lsn(1)),
            Status::Committed(Lsn((1 << 56) - 1)),
            Status::Aborted(Lsn(0)),
            Status::Aborted(Lsn(4)),
        ];
        for status in all {
            assert_eq!(Status::decode(status.encode()), status);
        }
    }

    #[test]
    fn released_words_read_as_old() {
        let table = StatusTable::new().expect("reserve");
        for txid in [5, RELEASE - 1, RELEASE, WINDOW + 7] {
            table.set(txid, Status::Committed(Lsn(txid)));
            assert_eq!(table.get(txid), Status::Committed(Lsn(txid)));
        }
        table.release(5, RELEASE + 3);
        assert_eq!(table.get(RELEASE - 1), Status::Old);
        assert_eq!(table.get(RELEASE), Status::Committed(Lsn(RELEASE)));
    }
}
