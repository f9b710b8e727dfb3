//! The outcome of each transaction: one word for each transaction number.
//!
//! 1. A word goes from nothing to running to committed or aborted. The transaction's own core alone
//!    stores it. A tag distinguishes outcomes, never a comparison of numbers.
//! 2. The commit word is stored before the log counts the commit record as filled. So it is stored
//!    before its number can be in a snapshot, and one snapshot never gets two answers.
//! 3. Words below the horizon are given back ([`crate::pieces`]) and read as nothing. A reader
//!    holds a snapshot that sees all finished transactions below the horizon. So nothing means:
//!    finished, and seen by everybody.
//! 4. The table is a window over the numbers. A number is handed out only while it is less than
//!    [`WINDOW`] above the horizon.

use std::ops::Range;

use runtime::fiber;
use runtime::memory::AtomicArray;
use storage::Lsn;
use sync::atomic::{AtomicU64, Ordering};

use crate::Error;
use crate::pieces::{Pieces, Words};

/// Numbers in the window: 8 GiB of reserved addresses. Memory stands behind the part between the
/// horizon and the newest number, and behind 32 MiB that are kept for the next ones.
pub const WINDOW: u64 = 1 << 30;

/// A piece has 2^16 numbers: 512 KiB.
const PIECE_BITS: u32 = 16;
/// Words that are cleared between two safe points.
const CLEARED: usize = 4096;
/// Most pieces that have words at a time: a window that begins in the middle of one ends in one
/// more.
const PIECES: usize = (WINDOW >> PIECE_BITS) as usize + 1;

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
    words: Pieces<AtomicArray<AtomicU64>>,
}

impl Words for AtomicArray<AtomicU64> {
    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        self.get(at)
    }

    fn clear(&self, part: Range<usize>) {
        for at in part {
            // Relaxed: the lock of the places orders it.
            self.get(at).store(0, Ordering::Relaxed);
            // Other cores have the lines.
            if at.is_multiple_of(CLEARED) {
                fiber::safe_point();
            }
        }
    }

    fn release(&self, part: Range<usize>) {
        AtomicArray::release(self, part);
    }
}

impl StatusTable {
    /// Reserves the window.
    pub fn new() -> Result<StatusTable, Error> {
        let words = AtomicArray::reserve(PIECES << PIECE_BITS)
            .map_err(|error| storage::Error::io("reserving the transaction table", &error))?;
        Ok(StatusTable { words: Pieces::new(words, PIECES, PIECE_BITS) })
    }

    /// The outcome of `txid`. A reader that sees an abort also sees the rows put back before it.
    #[inline]
    pub fn get(&self, txid: u64) -> Status {
        Status::decode(self.words.get(txid))
    }

    /// Sets the outcome of `txid`.
    #[inline]
    pub fn set(&self, txid: u64, status: Status) {
        self.words.set(txid, status.encode());
    }

    /// Gives back the words of finished transactions between two positions of the horizon, in whole
    /// pieces.
    pub fn release(&self, from: u64, to: u64) {
        for piece in from >> PIECE_BITS..to >> PIECE_BITS {
            self.words.end(piece);
            // After a long transaction there are many.
            fiber::safe_point();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pieces::KEPT;

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

    const PIECE: u64 = 1 << PIECE_BITS;

    #[test]
    fn released_words_read_as_old() {
        let table = StatusTable::new().expect("reserve");
        for txid in [5, PIECE - 1, PIECE, 2 * PIECE] {
            table.set(txid, Status::Committed(Lsn(txid)));
            assert_eq!(table.get(txid), Status::Committed(Lsn(txid)));
        }
        table.release(5, PIECE + 3);
        assert_eq!(table.get(PIECE - 1), Status::Old);
        assert_eq!(table.get(PIECE), Status::Committed(Lsn(PIECE)));
        // The freed memory goes to a later piece, which begins with nothing in it.
        table.set(9 * PIECE + 6, Status::Running(1));
        for txid in [5, PIECE - 1, 9 * PIECE + 5] {
            assert_eq!(table.get(txid), Status::Old, "{txid}");
        }
        assert_eq!(table.get(9 * PIECE + 6), Status::Running(1));
    }

    #[test]
    fn a_window_that_moves_on_needs_no_more_memory() {
        let table = StatusTable::new().expect("reserve");
        for piece in 0..200 {
            table.set(piece * PIECE, Status::Running(1));
            table.release(piece.saturating_sub(1) * PIECE, piece * PIECE);
        }
        assert_eq!(table.words.places(), 2);
    }

    /// Words of which a test counts how often memory is given back.
    #[derive(Default)]
    struct Counted {
        words: Vec<AtomicU64>,
        released: std::cell::Cell<usize>,
    }

    impl Words for Counted {
        fn word(&self, at: usize) -> &AtomicU64 {
            &self.words[at]
        }

        fn clear(&self, part: Range<usize>) {
            part.for_each(|at| self.words[at].store(0, Ordering::Relaxed));
        }

        fn release(&self, part: Range<usize>) {
            self.released.set(self.released.get() + 1);
            self.clear(part);
        }
    }

    #[test]
    fn after_a_long_transaction_the_same_memory_is_used_again() {
        let most = 3 * KEPT;
        let words = Counted { words: (0..most).map(|_| AtomicU64::new(0)).collect(), ..Counted::default() };
        // A piece of one number.
        let pieces = Pieces::new(words, most, 0);
        let move_on = |numbers: Range<u64>| {
            numbers.clone().for_each(|number| {
                assert_eq!(pieces.get(number), 0, "nothing of an earlier piece");
                pieces.set(number, 7);
            });
            numbers.clone().for_each(|number| pieces.end(number));
            assert!(numbers.into_iter().all(|number| pieces.get(number) == 0));
        };
        move_on(0..2 * KEPT as u64);
        assert_eq!(pieces.words().released.get(), KEPT);
        for number in 1_000..2_000 {
            move_on(number..number + 1);
        }
        assert_eq!(pieces.words().released.get(), KEPT, "a steady window gives no memory back");
        move_on(2_000..2_000 + most as u64);
        assert_eq!((pieces.words().released.get(), pieces.places()), (3 * KEPT, most as u32));
    }

    #[test]
    fn a_piece_that_began_in_the_window_is_whole_at_its_end() {
        let table = StatusTable::new().expect("reserve");
        // The oldest number is in the middle of a piece, so the newest is in one piece more.
        let oldest = PIECE + 5;
        for txid in [oldest, oldest + WINDOW - 1] {
            table.set(txid, Status::Running(7));
            assert_eq!(table.get(txid), Status::Running(7));
        }
    }
}
