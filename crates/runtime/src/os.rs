//! Small helpers around system calls: results to `io::Result`, eventfds, the topology of the machine.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// The result of a system call that gives -1 and errno on failure.
pub(crate) fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// As [`check`], for calls that give a length.
pub(crate) fn check_len(result: isize) -> io::Result<usize> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// A new eventfd, non-blocking.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the descriptor it gives is owned by nobody else.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC))?)) }
}

/// Adds one to an eventfd, which wakes whoever polls it.
pub(crate) fn signal(event: &OwnedFd) {
    let one = 1u64;
    // SAFETY: eight readable bytes. A full counter (the only failure) means it is signalled already.
    unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) };
}

/// Sets a socket option that is an int.
pub(crate) fn set_option(socket: RawFd, level: i32, option: i32, value: i32) -> io::Result<()> {
    // SAFETY: `value` is readable for the length given.
    check(unsafe {
        libc::setsockopt(socket, level, option, (&raw const value).cast(), size_of::<i32>() as u32)
    })?;
    Ok(())
}

/// The processors this process may run on.
pub(crate) fn processors() -> Vec<usize> {
    // SAFETY: all zero is an empty set, and the call writes at most the size given.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        if libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) != 0 {
            return vec![0];
        }
        set
    };
    // SAFETY: the index stays below the set's size.
    (0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect()
}

/// Binds this thread to one processor; false when it isn't allowed.
pub(crate) fn pin(processor: usize) -> bool {
    // SAFETY: all zero is an empty set; `processor` came from such a set, so it is in range.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) == 0
    }
}

/// Lets this thread run on all of these processors; best effort.
pub(crate) fn unpin(processors: &[usize]) {
    // SAFETY: all zero is an empty set; the numbers came from such a set, so they are in range.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        processors.iter().for_each(|&processor| libc::CPU_SET(processor, &mut set));
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

/// Makes this thread so much less urgent; best effort.
pub(crate) fn be_nice(by: i32) {
    // SAFETY: a plain system call; 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, by) };
}

/// NUMA nodes of the machine, at least one.
pub(crate) fn numa_nodes() -> usize {
    let is_node = |name: &str| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
    let Ok(entries) = std::fs::read_dir("/sys/devices/system/node") else { return 1 };
    entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_node)).count().max(1)
}
