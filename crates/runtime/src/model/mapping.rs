//! Mapped memory: the host's, with grants that do not depend on the host. It has no huge pages.
//!
//! The simulation numbers its mappings, so that an event names a mapping and an offset and no
//! address. Stacks are noted when they are mapped and unmapped only: how many of their pages a
//! fiber gives back depends on the compiler.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use super::events::Event;
use super::machine::here;
use crate::device::Purpose;
use crate::host;

pub(crate) use crate::host::forbid;

/// Time of a call, in nanoseconds.
const CALL: u64 = 2_000;
/// Every mapping begins at a multiple of this. So a caller that cuts an aligned part out of one
/// cuts the same in every run.
const ALIGNMENT: usize = 2 << 20;

thread_local! {
    static MAPPINGS: &'static RefCell<Mappings> = Box::leak(Box::default());
}

/// The simulation's mappings by their present starts. One that was unmapped in its middle is two.
#[derive(Debug, Default)]
struct Mappings {
    present: BTreeMap<usize, Mapping>,
    last: u64,
}

#[derive(Debug, Clone, Copy)]
struct Mapping {
    number: u64,
    purpose: Purpose,
    /// Where it was mapped.
    base: usize,
    end: usize,
}

impl Mappings {
    fn add(&mut self, start: usize, len: usize, purpose: Purpose) -> u64 {
        self.last += 1;
        let mapping = Mapping { number: self.last, purpose, base: start, end: start + len };
        self.present.insert(start, mapping);
        self.last
    }

    /// The present start of the mapping that this address lies in, and the mapping.
    fn find(&self, address: usize) -> Option<(usize, Mapping)> {
        let (start, mapping) = self.present.range(..=address).next_back()?;
        (address < mapping.end).then_some((*start, *mapping))
    }

    /// Takes a range out of the mapping that it lies in.
    fn cut(&mut self, start: usize, len: usize) -> Option<Mapping> {
        let (whole, mapping) = self.find(start)?;
        self.present.remove(&whole);
        if whole < start {
            self.present.insert(whole, Mapping { end: start, ..mapping });
        }
        if start + len < mapping.end {
            self.present.insert(start + len, mapping);
        }
        Some(mapping)
    }
}

/// Maps zeroed memory that this process alone sees. Huge pages are refused.
pub(crate) fn map(len: usize, purpose: Purpose) -> io::Result<*mut u8> {
    here().spend(CALL);
    if matches!(purpose, Purpose::HugePages(_)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let start = map_aligned(len, purpose)?;
    let number = MAPPINGS.with(|mappings| mappings.borrow_mut().add(start.addr(), len, purpose));
    here().note(Event::Map, &[number, len as u64]);
    Ok(start)
}

/// Maps more than `len` bytes and gives the parts before and behind the aligned ones back.
fn map_aligned(len: usize, purpose: Purpose) -> io::Result<*mut u8> {
    let first = host::map(len + ALIGNMENT, purpose)?;
    let before = first.align_offset(ALIGNMENT);
    // SAFETY: `before` is below the alignment, so the aligned bytes lie inside the mapping.
    let start = unsafe { first.add(before) };
    if before > 0 {
        // SAFETY: the mapping's beginning, which nothing refers to.
        unsafe { host::unmap(first, before) };
    }
    // SAFETY: the mapping's end, which is not empty and which nothing refers to.
    unsafe { host::unmap(start.add(len), ALIGNMENT - before) };
    Ok(start)
}

/// Gives mapped memory back, with its addresses.
///
/// # Safety
/// The range is part of one mapping of [`map`], and nothing refers to it any more.
pub(crate) unsafe fn unmap(start: *mut u8, len: usize) {
    here().spend(CALL);
    let cut = MAPPINGS.with(|mappings| mappings.borrow_mut().cut(start.addr(), len));
    let mapping = cut.expect("unmapped memory was mapped");
    here().note(Event::Unmap, &[mapping.number, (start.addr() - mapping.base) as u64, len as u64]);
    // SAFETY: by contract.
    unsafe { host::unmap(start, len) };
}

/// Gives the memory of whole pages back, not their addresses: they read zero afterwards.
///
/// # Safety
/// The caller may overwrite these pages with zeros.
pub(crate) unsafe fn discard(start: *mut u8, len: usize) -> bool {
    let found = MAPPINGS.with(|mappings| mappings.borrow().find(start.addr()));
    if let Some((_, mapping)) = found
        && mapping.purpose != Purpose::Stack
    {
        here().note(Event::Discard, &[mapping.number, (start.addr() - mapping.base) as u64, len as u64]);
    }
    // SAFETY: by contract.
    unsafe { host::discard(start, len) }
}

/// Whether memory stands behind a page. The host's answer would depend on the compiler: a stack
/// counts as hardly used.
pub(crate) fn is_resident(_: *const u8) -> bool {
    false
}

/// Bytes behind which memory stands. The host's answer would differ between runs: none.
pub(crate) fn present(_: *const u8, _: usize) -> usize {
    0
}

/// Keeps pages in memory: refused.
pub(crate) fn lock(_: *mut u8, _: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Has pages come from several nodes: the machine has one, so nobody asks.
pub(crate) fn interleave(_: *mut u8, _: usize, _: &[usize]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Takes a lock back.
pub(crate) fn unlock(_: *mut u8, _: usize) {}

/// Bytes that this process may lock.
pub(crate) fn lock_limit() -> Option<u64> {
    None
}

/// Asks for huge pages in a range of a mapping, which are refused, or for none.
///
/// # Safety
/// The range is part of a mapping of [`map`].
pub(crate) unsafe fn advise_huge(start: *mut u8, len: usize, wanted: bool) -> bool {
    // SAFETY: by contract.
    !wanted && unsafe { host::advise_huge(start, len, false) }
}
