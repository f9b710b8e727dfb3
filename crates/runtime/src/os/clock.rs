//! The system's clocks. No system calls: the kernel answers in the vdso.

/// Nanoseconds of a clock that never goes back.
pub(crate) fn monotonic() -> u64 {
    clock(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since 1970-01-01 00:00 UTC.
pub(crate) fn calendar() -> u64 {
    clock(libc::CLOCK_REALTIME)
}

fn clock(which: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; both clocks exist on every Linux.
    let failed = unsafe { libc::clock_gettime(which, &mut time) };
    assert!(failed == 0, "clock_gettime failed");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
