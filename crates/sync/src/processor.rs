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

/// A clock that costs a few nanoseconds: ticks of a constant, unknown rate. All cores of a socket
/// agree on it; different sockets may differ.
#[cfg(not(any(loom, model)))]
#[inline]
pub(crate) fn ticks() -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        // SAFETY: every processor of this architecture has the instruction.
        unsafe { std::arch::x86_64::_rdtsc() }
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        let ticks: u64;
        // SAFETY: Linux lets programs read this counter.
        unsafe { std::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
        ticks
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `time` is a valid timespec to write to; every Linux has the clock.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
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
