//! The one vetted helper for reading memory that other cores may be changing meanwhile.
//!
//! By Rust's rules such a read is a race, so it is kept in one place. It is made of volatile loads
//! and, for long copies, of one machine instruction. The compiler neither repeats nor splits these,
//! nor reasons from them. Every accessor checks its bounds against the fixed length of the view,
//! never against anything read through it. So torn bytes cannot make it panic or leave the view.
//! The bytes it returns are hostile until the version of the memory's latch is validated.

use std::cmp::Ordering;
use std::marker::PhantomData;

use crate::machine::{preemption_point, racy_access};
use crate::processor::{LINE, LONG_COPY, copy_long, prefetch_line};

/// A read-only view on `len` bytes that may change while they are read.
#[derive(Debug, Clone, Copy)]
pub struct RacyBytes<'a> {
    start: *const u8,
    len: usize,
    memory: PhantomData<&'a ()>,
}

// SAFETY: the view only reads, and reads are meant to race; `new` demands memory that stays mapped
// for `'a`.
unsafe impl Send for RacyBytes<'_> {}
// SAFETY: as for Send.
unsafe impl Sync for RacyBytes<'_> {}

/// A number at any address: packed, so that a volatile load of it is one unaligned load. An array
/// of bytes would be loaded byte by byte.
#[repr(C, packed)]
#[derive(Clone, Copy)]
struct Unaligned<T: Copy>(T);

impl<'a> RacyBytes<'a> {
    /// A view on `len` bytes at `start`.
    ///
    /// # Safety
    /// The bytes stay mapped and initialized for `'a` (type-stable memory: frames are never
    /// unmapped). Every writer holds the latch whose version the reader validates.
    #[inline]
    pub unsafe fn new(start: *const u8, len: usize) -> Self {
        Self { start, len, memory: PhantomData }
    }

    /// Length of the view.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the view has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    fn inside(&self, offset: usize, len: usize) -> bool {
        offset <= self.len && len <= self.len - offset
    }

    /// Loads a `T` at `offset`, which the caller has found to be inside.
    #[inline]
    fn load<T: Copy>(&self, offset: usize) -> T {
        debug_assert!(self.inside(offset, size_of::<T>()));
        racy_access(self.start.wrapping_add(offset));
        // SAFETY: the bytes are inside the view, which `new` promises to be mapped. `T` is an
        // integer, for which every bit pattern is a value. The read is packed, so it needs no
        // alignment.
        unsafe { self.start.add(offset).cast::<Unaligned<T>>().read_volatile().0 }
    }

    /// Loads a `T` at `offset`, if it is inside. It may tell a search where to go on.
    #[inline]
    fn number<T: Copy>(&self, offset: usize) -> Option<T> {
        preemption_point();
        self.inside(offset, size_of::<T>()).then(|| self.load(offset))
    }

    /// The byte at `offset`.
    #[inline]
    pub fn u8_at(&self, offset: usize) -> Option<u8> {
        self.number(offset)
    }

    /// The little-endian number at `offset`.
    #[inline]
    pub fn u16_at(&self, offset: usize) -> Option<u16> {
        self.number(offset).map(u16::from_le)
    }

    /// The little-endian number at `offset`.
    #[inline]
    pub fn u32_at(&self, offset: usize) -> Option<u32> {
        self.number(offset).map(u32::from_le)
    }

    /// The little-endian number at `offset`.
    #[inline]
    pub fn u64_at(&self, offset: usize) -> Option<u64> {
        self.number(offset).map(u64::from_le)
    }

    /// Asks the processor for the cache lines of a range (cut to the view) ahead of their use, all
    /// at once.
    #[inline]
    pub fn prefetch(&self, offset: usize, len: usize) {
        for at in (offset..self.len.min(offset.saturating_add(len))).step_by(LINE) {
            // The address is inside the view.
            prefetch_line(self.start.wrapping_add(at));
        }
    }

    /// A view on a part.
    #[inline]
    pub fn part(&self, offset: usize, len: usize) -> Option<RacyBytes<'a>> {
        // SAFETY: a part of memory that `new` was promised for is as good as the whole.
        self.inside(offset, len).then(|| unsafe { RacyBytes::new(self.start.add(offset), len) })
    }

    /// Copies `to.len()` bytes from `offset`; false (and nothing copied) when they aren't all
    /// inside.
    #[inline]
    pub fn copy_to(&self, offset: usize, to: &mut [u8]) -> bool {
        let inside = self.inside(offset, to.len());
        if inside {
            // SAFETY: `to` has the length given and is exclusively borrowed.
            unsafe { self.copy(offset, to.as_mut_ptr(), to.len()) };
        }
        inside
    }

    /// Copies `len` bytes from `offset`, which the caller has found to be inside.
    ///
    /// # Safety
    /// `len` bytes at `to` may be written, and nobody else uses them.
    #[inline]
    unsafe fn copy(&self, offset: usize, to: *mut u8, len: usize) {
        debug_assert!(self.inside(offset, len));
        // On the model machine others may change the bytes while they are copied.
        if len >= LONG_COPY && !cfg!(model) {
            // SAFETY: both ranges hold `len` bytes and don't overlap, since nobody else uses `to`.
            return unsafe { copy_long(self.start.add(offset), to, len) };
        }
        preemption_point();
        // SAFETY: each place lies within the `len` bytes of both ranges.
        unsafe {
            if len >= 8 {
                // The last eight bytes may overlap the ones before.
                for at in (0..len - 7).step_by(8) {
                    self.copy_number::<u64>(offset, to, at);
                }
                self.copy_number::<u64>(offset, to, len - 8);
            } else if len >= 4 {
                self.copy_number::<u32>(offset, to, 0);
                self.copy_number::<u32>(offset, to, len - 4);
            } else {
                for at in 0..len {
                    self.copy_number::<u8>(offset, to, at);
                }
            }
        }
    }

    /// Copies a `T` from `at` bytes after `offset` to as many after `to`.
    ///
    /// # Safety
    /// The place is inside the view, and inside what may be written at `to`.
    #[inline]
    unsafe fn copy_number<T: Copy>(&self, offset: usize, to: *mut u8, at: usize) {
        // SAFETY: by contract. The write is packed, so it needs no alignment.
        unsafe { to.add(at).cast::<Unaligned<T>>().write(Unaligned(self.load(offset + at))) };
    }

    /// Copies the whole view; false when `to` has another length.
    #[inline]
    pub fn copy_all(&self, to: &mut [u8]) -> bool {
        to.len() == self.len && self.copy_to(0, to)
    }

    /// Appends `len` bytes from `offset` to `to`; false (and nothing appended) when they aren't all
    /// inside.
    #[inline]
    pub fn append_to(&self, offset: usize, len: usize, to: &mut Vec<u8>) -> bool {
        let inside = self.inside(offset, len);
        if inside {
            to.reserve(len);
            // SAFETY: there is room for `len` bytes more, which the copy fills.
            unsafe {
                self.copy(offset, to.as_mut_ptr().add(to.len()), len);
                to.set_len(to.len() + len);
            }
        }
        inside
    }

    /// Compares `len` bytes at `offset` with `other`, as memcmp does; a prefix is less. `None` when
    /// not all inside.
    #[inline]
    pub fn compare(&self, offset: usize, len: usize, other: &[u8]) -> Option<Ordering> {
        if !self.inside(offset, len) {
            return None;
        }
        preemption_point();
        let common = len.min(other.len());
        let mut done = 0;
        while done + 8 <= common {
            let ours = u64::from_be(self.load(offset + done));
            let theirs = u64::from_be_bytes(other[done..done + 8].try_into().expect("eight bytes"));
            if ours != theirs {
                return Some(ours.cmp(&theirs));
            }
            done += 8;
        }
        while done < common {
            let ours: u8 = self.load(offset + done);
            if ours != other[done] {
                return Some(ours.cmp(&other[done]));
            }
            done += 1;
        }
        Some(len.cmp(&other.len()))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn view(bytes: &[u8]) -> RacyBytes<'_> {
        // SAFETY: the slice is borrowed for the view's life and nobody writes it.
        unsafe { RacyBytes::new(bytes.as_ptr(), bytes.len()) }
    }

    #[test]
    fn numbers_are_read_within_bounds_only() {
        let bytes: Vec<u8> = (1..=16).collect();
        let racy = view(&bytes);
        assert_eq!(racy.u8_at(15), Some(16));
        assert_eq!(racy.u16_at(1), Some(0x0302));
        assert_eq!(racy.u32_at(3), Some(0x0706_0504));
        assert_eq!(racy.u64_at(8), Some(u64::from_le_bytes(bytes[8..].try_into().unwrap())));
        assert_eq!((racy.u8_at(16), racy.u64_at(9), racy.u16_at(usize::MAX)), (None, None, None));
        assert!(racy.part(15, 2).is_none() && racy.part(16, 0).is_some());
    }

    #[test]
    fn copies_of_every_length_are_exact() {
        let bytes: Vec<u8> = (0..9000).map(|i| (i * 7) as u8).collect();
        let racy = view(&bytes);
        for len in (0..40).chain([511, 512, 513, 8192, 8999]) {
            let mut to = vec![0; len];
            assert!(racy.copy_to(1, &mut to));
            assert_eq!(to, bytes[1..1 + len]);
            let mut grown = b"ab".to_vec();
            assert!(racy.append_to(1, len, &mut grown));
            assert_eq!((&grown[..2], &grown[2..]), (&b"ab"[..], &bytes[1..1 + len]));
        }
        assert!(!racy.copy_to(1, &mut vec![0; 9000]) && !racy.copy_all(&mut [0; 3]));
        let mut grown = b"ab".to_vec();
        assert!(racy.append_to(2, 3, &mut grown) && !racy.append_to(8999, 2, &mut grown));
        assert_eq!(grown, [b'a', b'b', 14, 21, 28]);
    }

    #[test]
    fn a_comparison_orders_as_slices_do() {
        let words: Vec<&[u8]> =
            vec![b"", b"a", b"ab", b"abcdefgh", b"abcdefgi", b"abcdefghx", b"b\xff", b"b\x00"];
        for ours in &words {
            for theirs in &words {
                assert_eq!(view(ours).compare(0, ours.len(), theirs), Some(ours.cmp(theirs)));
            }
        }
        assert_eq!(view(b"abc").compare(1, 3, b"x"), None);
    }
}
