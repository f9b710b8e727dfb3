//! Private page-sized buffers, kept per core, so that scans and structure changes allocate nothing.
//!
//! A buffer comes from the list of the thread that takes it and goes to the list of the thread that
//! drops it. A fiber never changes core, so in practice the two are one.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use runtime::core_local;

use crate::page::PAGE_SIZE;

/// Buffers kept for reuse on each core.
const KEPT: usize = 64;

core_local! {
    static FREE: RefCell<Vec<Box<[u8; PAGE_SIZE]>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer of one page. Its content is arbitrary when taken.
pub(crate) struct PageBuffer(Option<Box<[u8; PAGE_SIZE]>>);

impl PageBuffer {
    /// Takes a buffer.
    pub fn take() -> PageBuffer {
        let kept = FREE.with(|free| free.borrow_mut().pop());
        PageBuffer(Some(kept.unwrap_or_else(|| Box::new([0; PAGE_SIZE]))))
    }

    /// A copy of a page.
    pub fn copy_of(page: &[u8]) -> Option<PageBuffer> {
        let mut buffer = PageBuffer::take();
        let whole: &[u8; PAGE_SIZE] = page.try_into().ok()?;
        buffer.copy_from_slice(whole);
        Some(buffer)
    }
}

impl Deref for PageBuffer {
    type Target = [u8; PAGE_SIZE];

    fn deref(&self) -> &[u8; PAGE_SIZE] {
        self.0.as_deref().expect("present until dropped")
    }
}

impl DerefMut for PageBuffer {
    fn deref_mut(&mut self) -> &mut [u8; PAGE_SIZE] {
        self.0.as_deref_mut().expect("present until dropped")
    }
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        let Some(buffer) = self.0.take() else { return };
        // A thread that is ending has no list any more: the buffer is freed.
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            if free.len() < KEPT {
                free.push(buffer);
            }
        });
    }
}
