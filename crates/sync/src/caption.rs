//! A short text that one core writes and any core may read, without a lock and without stopping the
//! writer.
//!
//! A [`VersionLatch`] that only the writer takes keeps the two apart: the writer stores the text in
//! words, by plain stores. A reader copies the words and takes the copy only if it validates.

use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::machine::yield_thread;
use crate::version::VersionLatch;

const WORDS: usize = if cfg!(loom) { 2 } else { 128 };

/// The text. Only one thread at a time may write it.
#[derive(Debug)]
pub struct Caption {
    latch: VersionLatch,
    length: AtomicU32,
    words: [AtomicU64; WORDS],
}

impl Default for Caption {
    fn default() -> Self {
        Self {
            latch: VersionLatch::default(),
            length: AtomicU32::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Caption {
    /// Bytes that are kept of a text.
    pub const MOST: usize = WORDS * 8;

    /// Puts a text in place of the one before: as much of it as there is room for, in whole
    /// characters.
    pub fn write(&self, text: &str) {
        let mut end = text.len().min(Self::MOST);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let bytes = &text.as_bytes()[..end];
        self.latch.write_alone(|| {
            // Relaxed, here and below: the latch orders the stores. A reader may see a mixture of
            // two texts; the latch's version then fails its validation.
            self.length.store(bytes.len() as u32, Ordering::Relaxed);
            let mut chunks = bytes.chunks_exact(8);
            for (word, chunk) in self.words.iter().zip(&mut chunks) {
                word.store(u64::from_le_bytes(chunk.try_into().expect("eight bytes")), Ordering::Relaxed);
            }
            if let rest @ [_, ..] = chunks.remainder() {
                let mut last = [0; 8];
                last[..rest.len()].copy_from_slice(rest);
                self.words[bytes.len() / 8].store(u64::from_le_bytes(last), Ordering::Relaxed);
            }
        });
    }

    /// The text. While a writer stores a new one, the reader yields its thread, because the
    /// writer's thread may have been preempted.
    pub fn read(&self) -> String {
        self.beginning(Self::MOST)
    }

    /// As [`Caption::read`], but at most so many bytes of it, in whole characters.
    pub fn beginning(&self, most: usize) -> String {
        loop {
            if let Some(seen) = self.latch.read(|| &"caption")
                && let mut text = self.copy(most)
                && self.latch.validate(seen)
            {
                // Whole characters were written, so at most the last one is cut.
                if let Err(cut) = std::str::from_utf8(&text) {
                    text.truncate(cut.valid_up_to());
                }
                return String::from_utf8(text).expect("only whole characters are left");
            }
            yield_thread();
        }
    }

    fn copy(&self, most: usize) -> Vec<u8> {
        // Relaxed: the latch says whether it is whole; until then the length is believed only
        // within its bounds.
        let length = (self.length.load(Ordering::Relaxed) as usize).min(Self::MOST).min(most);
        let words = self.words[..length.div_ceil(8)].iter();
        let mut bytes: Vec<u8> = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes()).collect();
        bytes.truncate(length);
        bytes
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn texts_of_all_lengths_are_read_as_they_were_written() {
        let caption = Caption::default();
        assert_eq!(caption.read(), "");
        for length in (0..40).chain([1016, 1023, 1024]) {
            let text: String = ('a'..='z').cycle().take(length).collect();
            caption.write(&text);
            assert_eq!(caption.read(), text);
        }
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        let caption = Caption::default();
        caption.write(&format!("x{}", "é".repeat(600)));
        assert_eq!(caption.read(), format!("x{}", "é".repeat(511)));
    }

    #[test]
    fn the_beginning_of_a_text_is_cut_between_characters() {
        let caption = Caption::default();
        for (text, expected) in [
            ("a".repeat(99) + "é", "a".repeat(99)),
            ("é".repeat(60), "é".repeat(50)),
            ("😀".repeat(30), "😀".repeat(25)),
            ("select 1".to_owned(), "select 1".to_owned()),
        ] {
            caption.write(&text);
            assert_eq!(caption.beginning(100), expected);
            assert_eq!(caption.beginning(0), "");
        }
    }

    #[test]
    fn a_reader_never_sees_two_texts_mixed() {
        let caption = Caption::default();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for turn in 0..20_000_usize {
                    let letter = ["a", "b", "c"][turn % 3];
                    caption.write(&letter.repeat(turn % 3 * 300 + 1));
                }
            });
            while !writer.is_finished() {
                let seen = caption.read();
                let first = seen.chars().next();
                assert!(seen.chars().all(|c| Some(c) == first), "{seen}");
                assert!(matches!(
                    (first, seen.len()),
                    (None, 0) | (Some('a'), 1) | (Some('b'), 301) | (Some('c'), 601)
                ));
            }
        });
    }
}
