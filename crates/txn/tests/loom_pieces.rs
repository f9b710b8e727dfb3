//! Loom model of the words of transactions. It includes `pieces.rs`, which knows atomics only.
//!
//! A keeper gives an old piece back, and its place goes to the next piece, while a reader asks for
//! words of both. No interleaving, and no weakness of the memory model, shows it a word of another
//! piece.
//!
//! Run: `RUSTFLAGS="--cfg loom" cargo test -p txn --test loom_pieces --release`
#![cfg(loom)]

#[path = "../src/pieces.rs"]
#[allow(dead_code)]
mod pieces;

use std::ops::Range;

use loom::sync::Arc;
use loom::thread;
use pieces::{Pieces, Words};
use sync::atomic::{AtomicU64, Ordering};

struct Memory(Vec<AtomicU64>);

impl Words for Memory {
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.0[at]
    }

    fn clear(&self, part: Range<usize>) {
        part.for_each(|at| self.0[at].store(0, Ordering::Relaxed));
    }

    fn release(&self, part: Range<usize>) {
        self.clear(part);
    }
}

/// A piece of one number.
fn pieces() -> Arc<Pieces<Memory>> {
    Arc::new(Pieces::new(Memory((0..3).map(|_| AtomicU64::new(0)).collect()), 2, 0))
}

#[test]
fn a_reader_sees_words_of_its_own_piece_or_zero() {
    loom::model(|| {
        let pieces = pieces();
        pieces.set(0, 5);
        let keeper = {
            let pieces = Arc::clone(&pieces);
            thread::spawn(move || {
                pieces.end(0);
                // The entry and the place of the piece that has ended go to this one.
                pieces.set(2, 7);
            })
        };
        let reader = {
            let pieces = Arc::clone(&pieces);
            thread::spawn(move || {
                assert!(matches!(pieces.get(0), 0 | 5));
                assert!(matches!(pieces.get(2), 0 | 7));
            })
        };
        keeper.join().unwrap();
        reader.join().unwrap();
        assert_eq!((pieces.get(0), pieces.get(2)), (0, 7));
    });
}

#[test]
fn two_first_words_of_a_piece_share_its_place() {
    loom::model(|| {
        let pieces = Arc::new(Pieces::new(Memory((0..4).map(|_| AtomicU64::new(0)).collect()), 2, 1));
        let writers: Vec<_> = [(0, 5), (1, 6)]
            .map(|(number, word)| {
                let pieces = Arc::clone(&pieces);
                thread::spawn(move || pieces.set(number, word))
            })
            .into();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        assert_eq!((pieces.get(0), pieces.get(1)), (5, 6));
    });
}
