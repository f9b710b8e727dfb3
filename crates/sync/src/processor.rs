//! Instructions of the processor that Rust has no words for. No other file of the engine names one.

use std::ptr;

/// Most cache lines that one [`prefetch`] asks for: a core can wait for about as many at once.
const LINES: usize = 32;
/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Asks the processor for the first 32 cache lines of a value, so that the caller waits for many
/// cache misses at once. Reads nothing.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    let start = ptr::from_ref(value).cast::<u8>();
    // The value may begin in the middle of a line.
    let lines = (start.addr() % LINE + size_of_val(value)).div_ceil(LINE).min(LINES);
    for line in 0..lines {
        prefetch_line(start.wrapping_add(line * LINE));
    }
}

/// Asks the processor for the cache line of an address. Reads nothing, and takes any address.
#[inline]
pub(crate) fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing and never faults, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast::<i8>()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Copies at least this long are left to [`copy_long`], where the processor has it.
pub(crate) const LONG_COPY: usize =
    if cfg!(all(target_arch = "x86_64", not(miri))) { 512 } else { usize::MAX };

/// Copies bytes that other cores may be changing meanwhile, by one instruction. The compiler
/// neither repeats it, splits it nor reasons from it, as with a volatile load.
///
/// # Safety
/// Both ranges hold `len` mapped bytes and do not overlap, and nobody else uses those at `to`.
#[inline]
pub(crate) unsafe fn copy_long(from: *const u8, to: *mut u8, len: usize) {
    // Miri runs no assembly.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: by contract. The direction flag is clear by the calling convention.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rsi") from => _,
            inout("rdi") to => _,
            options(nostack, preserves_flags)
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    for at in 0..len {
        // SAFETY: by contract.
        unsafe { to.add(at).write(from.add(at).read_volatile()) };
    }
}
