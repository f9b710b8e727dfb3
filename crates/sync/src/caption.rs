//! A short text that one core writes and any core may read, without a lock and without stopping the writer.
//!
//! The writer makes the version odd, stores the text in words, and makes the version even again: plain stores. A reader
//! copies the words and takes the copy only where the version was even and the same before and after.

use crate::atomic::{AtomicU32, AtomicU64, Ordering, fence, spin_loop};
use crate::machine::yield_thread;

const WORDS: usize = if cfg!(loom) { 2 } else { 128 };
const SPINS: u32 = if cfg!(loom) { 1 } else { 100 };

/// The text. Only one thread at a time may write it.
#[derive(Debug)]
pub struct Caption {
    /// Odd while the text is being changed.
    version: AtomicU32,
    length: AtomicU32,
    words: [AtomicU64; WORDS],
}

impl Default for Caption {
    fn default() -> Self {
        Self {
            version: AtomicU32::new(0),
            length: AtomicU32::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

impl Caption {
    /// Bytes that are kept of a text.
    pub const MOST: usize = WORDS * 8;

    /// Puts a text in place of the one before: as much of it as there is room for, in whole characters.
    pub fn write(&self, text: &str) {
        let mut end = text.len().min(Self::MOST);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let bytes = &text.as_bytes()[..end];
        // Relaxed: only the writer changes it. The fence keeps the words' stores behind it.
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        // Relaxed: ordered by the fence above and the release below; all but the versions may be torn.
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
        // Release: who sees this version sees the text.
        self.version.store(version.wrapping_add(2), Ordering::Release);
    }

    /// The text. Waits for a writer that is at it, which may be a thread that was preempted.
    pub fn read(&self) -> String {
        loop {
            for _ in 0..SPINS {
                // Acquire: the text of this version, or of a later one, is seen.
                let version = self.version.load(Ordering::Acquire);
                if version.is_multiple_of(2)
                    && let text = self.copy()
                    && self.version_after_reading() == version
                {
                    // Whole characters were written, so nothing is replaced.
                    return String::from_utf8_lossy(&text).into_owned();
                }
                spin_loop();
            }
            yield_thread();
        }
    }

    fn version_after_reading(&self) -> u32 {
        // Acquire fence: a word that was seen of a later text brings that text's odd version along.
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed)
    }

    fn copy(&self) -> Vec<u8> {
        // Relaxed: the versions say whether it is whole; until then the length is believed only within its bounds.
        let length = (self.length.load(Ordering::Relaxed) as usize).min(Self::MOST);
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
