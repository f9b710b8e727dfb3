//! Asking for memory ahead of its use, so that many cache misses are waited for at once.

/// Cache lines asked for at most: what a core can have under way.
const LINES: usize = 32;
/// Bytes of a cache line.
const LINE: usize = 64;

/// Asks the processor for the cache lines of a value (the first 32 of them). Reads nothing.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(value).cast::<u8>();
        // The value may begin in the middle of a line.
        let lines = (start.addr() % LINE + size_of_val(value)).div_ceil(LINE).min(LINES);
        for line in 0..lines {
            // SAFETY: a prefetch reads nothing and never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * LINE).cast::<i8>()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}
