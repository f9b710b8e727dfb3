//! A window over the words of rising numbers, in pieces whose memory is used again.
//!
//! The number of words of a piece is a power of two. A piece gets a place in the memory when its
//! first word is stored. It gives the place back when all of its numbers lie behind the window. The
//! place is cleared and goes to a later piece. So nothing is unmapped while the window moves on. An
//! exception is a window that has grown long, behind an old snapshot: its memory is given back.
//!
//! What must hold:
//!
//! 1. An entry names the piece and its place in one word. A piece never gets an entry again, so an
//!    entry that is read twice alike was valid in between.
//! 2. A place is cleared after its entry is gone and before another piece gets it. So a reader sees
//!    either words of the piece that it asked for, or zero.
//! 3. Nobody stores a word of a piece that has been given back.
//!
//! This file knows atomics only; `tests/loom_pieces.rs` runs it under loom.

use std::ops::Range;

use sync::SpinLock;
use sync::atomic::{AtomicU64, Ordering};

/// The memory that holds the words.
pub(crate) trait Words {
    /// The word at this index.
    fn word(&self, at: usize) -> &AtomicU64;
    /// Sets these words to zero.
    fn clear(&self, part: Range<usize>);
    /// Sets these words to zero and gives their memory back.
    fn release(&self, part: Range<usize>);
}

/// Places whose memory is kept for later pieces. That of more is given back: a long transaction may
/// have kept many pieces.
pub(crate) const KEPT: usize = 64;

/// Bits of an entry that tell the place. The others tell the piece.
const PLACE_BITS: u32 = 16;

/// The words of a window of numbers.
pub(crate) struct Pieces<W> {
    words: W,
    /// By piece, modulo their number: 0, or the piece and one more than its place.
    entries: Box<[AtomicU64]>,
    pieces: usize,
    piece_bits: u32,
    places: SpinLock<Places>,
}

/// The places that no piece has, the last used ones last. All words in them are zero.
struct Places {
    /// Those with memory, at most [`KEPT`]. Taken first, so that a window that moves on steadily
    /// uses the same ones.
    kept: Vec<u32>,
    /// Those without.
    released: Vec<u32>,
    /// All from here on have never been used.
    next: u32,
}

impl<W: Words> Pieces<W> {
    /// Numbers of a piece are `1 << piece_bits`. At most `pieces` follow each other in the window.
    /// `words` has room for them, all zero.
    pub(crate) fn new(words: W, pieces: usize, piece_bits: u32) -> Self {
        assert!(pieces < 1 << PLACE_BITS);
        Pieces {
            words,
            entries: (0..pieces.next_power_of_two()).map(|_| AtomicU64::new(0)).collect(),
            piece_bits,
            pieces,
            places: SpinLock::new(
                &"places of outcomes",
                Places { kept: Vec::with_capacity(KEPT), released: Vec::with_capacity(pieces), next: 0 },
            ),
        }
    }

    #[inline]
    fn entry(&self, piece: u64) -> &AtomicU64 {
        &self.entries[piece as usize & (self.entries.len() - 1)]
    }

    /// Where the word of `number` is, by its piece's entry. The entry may be another piece's.
    #[inline]
    fn at(&self, entry: u64, number: u64) -> Option<usize> {
        let place = (entry & ((1 << PLACE_BITS) - 1)) as usize;
        let is_own = entry >> PLACE_BITS == number >> self.piece_bits && place > 0;
        let offset = (number & ((1 << self.piece_bits) - 1)) as usize;
        is_own.then(|| ((place - 1) << self.piece_bits) + offset)
    }

    /// The word of `number`; 0 before its first store, and once its piece is given back.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> u64 {
        let entry = self.entry(number >> self.piece_bits);
        // Acquire: the words behind the entry are those that were cleared for it.
        let seen = entry.load(Ordering::Acquire);
        let Some(at) = self.at(seen, number) else { return 0 };
        // Acquire: who sees a word sees what was done before it was stored. If a later piece stored
        // it, the load below then finds the entry gone.
        let word = self.words.word(at).load(Ordering::Acquire);
        // Relaxed: after the load above.
        if entry.load(Ordering::Relaxed) == seen { word } else { 0 }
    }

    /// Stores the word of `number`, which lies in the window.
    #[inline]
    pub(crate) fn set(&self, number: u64, word: u64) {
        // Acquire: as in `get`.
        let seen = self.entry(number >> self.piece_bits).load(Ordering::Acquire);
        let at = self.at(seen, number).unwrap_or_else(|| self.begin(number));
        // Release: pairs with `get`.
        self.words.word(at).store(word, Ordering::Release);
    }

    /// Gives the piece of `number` a place, if nobody else has. Returns where its word is.
    #[cold]
    #[inline(never)]
    fn begin(&self, number: u64) -> usize {
        let piece = number >> self.piece_bits;
        let mut places = self.places.lock();
        // Relaxed: entries are stored under the lock.
        let seen = self.entry(piece).load(Ordering::Relaxed);
        if let Some(at) = self.at(seen, number) {
            return at;
        }
        assert!(seen == 0, "piece {piece} lies outside the window");
        let place = places.kept.pop().or_else(|| places.released.pop()).unwrap_or(places.next);
        assert!((place as usize) < self.pieces, "more pieces have words than fit the window");
        places.next = places.next.max(place + 1);
        let entry = piece << PLACE_BITS | u64::from(place + 1);
        // Release: the place was cleared before.
        self.entry(piece).store(entry, Ordering::Release);
        self.at(entry, number).expect("the piece's own entry")
    }

    /// Gives the piece back: from now on its words read as 0. Only one caller at a time.
    pub(crate) fn end(&self, piece: u64) {
        let entry = self.entry(piece);
        // Relaxed: only the caller removes entries, and nobody stores one for this piece again.
        let Some(start) = self.at(entry.load(Ordering::Relaxed), piece << self.piece_bits) else { return };
        entry.store(0, Ordering::Relaxed); // Relaxed: the lock below orders it
        let words = start..start + (1 << self.piece_bits);
        let place = (start >> self.piece_bits) as u32;
        // Only the caller adds places, so there is room for this one then, too.
        if self.places.lock().kept.len() < KEPT {
            self.words.clear(words);
            self.places.lock().kept.push(place);
        } else {
            self.words.release(words);
            self.places.lock().released.push(place);
        }
    }

    #[cfg(test)]
    pub(crate) fn words(&self) -> &W {
        &self.words
    }

    /// Places that a piece has or had.
    #[cfg(test)]
    pub(crate) fn places(&self) -> u32 {
        self.places.lock().next
    }
}
