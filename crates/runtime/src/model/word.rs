//! A word of a file, mapped into memory. It reaches the file when it is unmapped.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::ptr::NonNull;

use sync::atomic::{AtomicU64, Ordering};

use super::disk::disk;
use super::events::Event;
use super::machine::here;

thread_local! {
    /// The mapped words, with their files and offsets.
    static MAPPED: RefCell<Vec<(NonNull<AtomicU64>, usize, u64)>> = const { RefCell::new(Vec::new()) };
}

/// Maps the word at `offset` of the file at `path`.
pub(crate) fn map(path: &Path, offset: u64) -> io::Result<NonNull<AtomicU64>> {
    let mut disk = disk();
    let file = disk.find(path)?;
    let mut bytes = [0; 8];
    if disk.file(file).read(&mut bytes, offset) < bytes.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    here().note(Event::MapWord, &[file as u64, offset, u64::from_le_bytes(bytes)]);
    let word = NonNull::from(Box::leak(Box::new(AtomicU64::new(u64::from_le_bytes(bytes)))));
    MAPPED.with_borrow_mut(|mapped| mapped.push((word, file, offset)));
    Ok(word)
}

/// Takes back what [`map`] has mapped.
///
/// # Safety
/// The word is [`map`]'s, and nothing refers to it any more.
pub(crate) unsafe fn unmap(word: NonNull<AtomicU64>) {
    let place = MAPPED.with_borrow_mut(|mapped| {
        let at = mapped.iter().position(|(present, ..)| *present == word);
        mapped.swap_remove(at.expect("a mapped word"))
    });
    // SAFETY: by contract: made by `map` from a box, and freed once.
    let word = unsafe { Box::from_raw(word.as_ptr()) };
    let value = word.load(Ordering::Relaxed); // Relaxed: the only owner
    here().note(Event::UnmapWord, &[place.1 as u64, place.2, value]);
    disk().file(place.1).write(&value.to_le_bytes(), place.2);
}
