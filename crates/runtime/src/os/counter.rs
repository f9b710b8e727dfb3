//! Counters of a thread that the kernel keeps, by perf_event_open(2).
//!
//! A counter counts; it takes no samples. It costs nothing while the thread runs, and a little when
//! the kernel switches to or from the thread.

use std::io;
use std::os::fd::FromRawFd;

use super::{Descriptor, check, check_len, id};

/// The kind of a counted event, and the event in the kernel's numbers (linux/perf_event.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Event {
    Cycles = event(HARDWARE, 0),
    Instructions = event(HARDWARE, 1),
    /// Accesses that missed the last level of cache.
    CacheMisses = event(HARDWARE, 3),
    /// Reads from the memory of a NUMA node: cache 6, operation 0 (read), result 0 (access).
    NodeLoads = event(HARDWARE_CACHE, 6),
    /// Time on a processor in nanoseconds.
    TaskClock = event(SOFTWARE, 1),
    ContextSwitches = event(SOFTWARE, 3),
    /// Moves to another processor.
    Migrations = event(SOFTWARE, 4),
    PageFaults = event(SOFTWARE, 2),
}

const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const HARDWARE_CACHE: u32 = 3;

const fn event(kind: u32, number: u64) -> u64 {
    (kind as u64) << 32 | number
}

/// The first version of the kernel's `perf_event_attr`. Later kernels take it, and zero for what
/// came after.
#[derive(Debug, Default)]
#[repr(C)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64, "PERF_ATTR_SIZE_VER0");

/// The bit of `flags` that leaves out what happens in the kernel. The bits count from the lowest on
/// both of the machines that Allcore runs on.
const EXCLUDE_KERNEL: u64 = 1 << 5;
/// `read_format`: the times for which the counter was wanted and for which it counted.
const TIMES: u64 = 0b11;
/// Closes the descriptor in programs that this one starts.
const CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;

/// A counter of one event of one thread, from its opening on.
#[derive(Debug)]
pub(crate) struct Counter(Descriptor);

impl Counter {
    /// Counts an event of a thread of this process, whichever processor it runs on.
    ///
    /// # Errors
    /// `Unsupported` where processor or kernel have no such counter, `PermissionDenied` where the
    /// kernel forbids it.
    pub(crate) fn open(event: Event, thread: i32, with_kernel: bool) -> io::Result<Counter> {
        let event = event as u64;
        let attributes = Attributes {
            kind: (event >> 32) as u32,
            size: size_of::<Attributes>() as u32,
            config: event & 0xffff_ffff,
            read_format: TIMES,
            flags: if with_kernel { 0 } else { EXCLUDE_KERNEL },
            ..Attributes::default()
        };
        let (any_processor, no_group): (libc::c_int, libc::c_int) = (-1, -1);
        // SAFETY: the kernel reads `size` bytes of the attributes, which outlive the call. It
        // writes to them only if it refuses their size, and then to `size` alone.
        let opened = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                thread,
                any_processor,
                no_group,
                CLOSE_ON_EXEC,
            )
        };
        let opened = check(opened as libc::c_int).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOENT | libc::ENODEV | libc::EINVAL) => io::ErrorKind::Unsupported.into(),
            _ => error,
        })?;
        // SAFETY: the descriptor was opened above and has no other owner.
        Ok(Counter(unsafe { Descriptor::from_raw_fd(opened) }))
    }

    /// The count. Where the processor has fewer counters than are wanted, the kernel lets them take
    /// turns; the count is then an estimate. None while the counter never had its turn.
    ///
    /// # Errors
    /// Where the kernel cannot read it.
    pub(crate) fn read(&self) -> io::Result<Option<u64>> {
        let mut words = [0u64; 3];
        let bytes = size_of_val(&words);
        // SAFETY: the kernel writes at most the given length into the array.
        let length = unsafe { libc::read(id(&self.0), words.as_mut_ptr().cast(), bytes) };
        if check_len(length)? != bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(estimate(words))
    }
}

/// A count for all of the time that it was wanted.
fn estimate([count, wanted, counted]: [u64; 3]) -> Option<u64> {
    match counted {
        _ if wanted == counted => Some(count),
        0 => None,
        _ => u64::try_from(u128::from(count) * u128::from(wanted) / u128::from(counted)).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_took_turns_is_scaled() {
        assert_eq!(estimate([7, 0, 0]), Some(7));
        assert_eq!(estimate([7, 100, 100]), Some(7));
        assert_eq!(estimate([7, 100, 50]), Some(14));
        assert_eq!(estimate([0, 100, 0]), None);
        assert_eq!(estimate([u64::MAX, 3, 1]), None);
    }

    #[test]
    fn a_thread_that_does_not_exist_has_no_counter() {
        Counter::open(Event::TaskClock, i32::MAX, true).unwrap_err();
    }
}
