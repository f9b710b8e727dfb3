//! A process that touches shared memory on demand, and the size of a process's page tables.
//!
//! It is a fork of this program. Between fork and end it calls only what a signal handler may call,
//! allocates nothing and takes no lock. So it is safe although other threads held locks at the
//! fork. What must hold: the process ends with this one. The kernel kills it when the thread that
//! started it ends, and dropping its [`Toucher`] kills it too.
//!
//! 1. This process writes a command of one byte into a pair of sockets.
//! 2. The other process touches every page, forgets them if so told, and writes the byte back.
//!
//! Cost: for each command 4 system calls and 2 switches of processes, with the lines of both
//! sockets' locks and queues. A command touches all pages, so that is little beside its faults. In
//! line transfers a touch costs what `mapping` states, but no other CPU is interrupted when the
//! process forgets, because it has one thread.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

use super::{Mapping, Object, WITH_NOTHING};

/// A command: touch every page, then forget them.
const FORGET: u8 = b'f';
/// A command: touch every page.
const KEEP: u8 = b'k';
/// A command: map the object once more, touch every page there, unmap it.
const REMAP: u8 = b'm';
/// As [`REMAP`], with the pages locked.
const LOCKED: u8 = b'l';
/// The answer to a command that was done.
const DONE: u8 = b'd';
/// The answer to a command that the kernel refused.
const REFUSED: u8 = b'r';

/// A process that touches a mapping.
#[derive(Debug)]
pub struct Toucher {
    process: libc::pid_t,
    pipe: UnixStream,
}

impl Toucher {
    /// Starts a process that touches an object from a step on, around the end. It has this mapping
    /// of it.
    ///
    /// # Errors
    /// A line: the kernel refuses.
    pub fn start(object: &Object, mapping: &Mapping, begin: usize) -> Result<Self, String> {
        let (pipe, other) = UnixStream::pair().map_err(|error| format!("no pipe: {error}"))?;
        // SAFETY: takes no pointer.
        let parent = unsafe { libc::getpid() };
        // The new process must not run this program's signal handlers.
        // SAFETY: a signal set is bytes, which `sigfillset` fills in.
        let (mut all, mut before) = unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: both pointers are to signal sets of this frame.
        unsafe {
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        }
        // SAFETY: the new process runs `serve` alone, which never returns. It keeps to what is
        // allowed after a fork of a program with threads.
        let process = unsafe { libc::fork() };
        if process == 0 {
            serve(object, mapping, begin, other.as_raw_fd(), parent);
        }
        let error = io::Error::last_os_error();
        // SAFETY: the set that the call above filled in.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut()) };
        if process < 0 { Err(format!("no process: {error}")) } else { Ok(Self { process, pipe }) }
    }

    /// Touches every page once.
    pub fn touch(&self) {
        assert!(self.ask(KEEP), "touches ask nothing of the kernel");
    }

    /// Touches every page once, then drops the process's page table entries of them.
    pub fn touch_and_forget(&self) {
        assert!(self.ask(FORGET), "the kernel forgets a mapping's entries");
    }

    /// Maps the object once more, touches every page there, and unmaps it. False if the kernel
    /// refuses.
    pub fn remap(&self, locked: bool) -> bool {
        self.ask(if locked { LOCKED } else { REMAP })
    }

    /// Bytes of the process's page tables.
    pub fn table_bytes(&self) -> u64 {
        table_bytes_of(&self.process.to_string())
    }

    /// The process's number.
    #[cfg(test)]
    pub(super) fn process_number(&self) -> libc::pid_t {
        self.process
    }

    /// Whether the process could do it.
    fn ask(&self, command: u8) -> bool {
        let mut answer = [0];
        let told = (&self.pipe).write_all(&[command]).and_then(|()| (&self.pipe).read_exact(&mut answer));
        told.expect("the process that touches memory has gone");
        answer == [DONE]
    }
}

impl Drop for Toucher {
    fn drop(&mut self) {
        // SAFETY: the process is this value's child, which nobody has waited for. No pointer but
        // null.
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, std::ptr::null_mut(), 0);
        }
    }
}

/// The life of the process.
fn serve(object: &Object, mapping: &Mapping, begin: usize, pipe: RawFd, parent: libc::pid_t) -> ! {
    // SAFETY: takes no pointer. The parent may have ended before it took effect.
    let is_alone =
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 || libc::getppid() != parent };
    let mut command = 0u8;
    // SAFETY: the pointers are to one byte of this frame, which lives as long as the process.
    while !is_alone && unsafe { libc::read(pipe, (&raw mut command).cast(), 1) } == 1 {
        let is_done = match command {
            REMAP | LOCKED => remap(object, begin, command == LOCKED),
            _ => {
                touch(mapping, begin);
                command != FORGET || mapping.forget()
            }
        };
        let answer = if is_done { DONE } else { REFUSED };
        // SAFETY: as above.
        if unsafe { libc::write(pipe, (&raw const answer).cast(), 1) } != 1 {
            break;
        }
    }
    // SAFETY: ends the process without running anything of this program.
    unsafe { libc::_exit(0) }
}

fn touch(mapping: &Mapping, begin: usize) {
    let steps = mapping.steps();
    (0..steps).for_each(|step| mapping.touch((begin + step) % steps));
}

/// Whether the kernel let it.
fn remap(object: &Object, begin: usize, locked: bool) -> bool {
    let Ok(mapping) = Mapping::made(object, WITH_NOTHING) else { return false };
    let is_kept = !locked || mapping.lock().is_ok();
    if is_kept {
        touch(&mapping, begin);
    }
    is_kept
}

/// Bytes of this process's page tables.
pub fn table_bytes() -> u64 {
    table_bytes_of("self")
}

/// `VmPTE` of a process, which the kernel gives in KiB.
fn table_bytes_of(process: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("/proc has the process");
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmPTE:")).expect("a process has page tables");
    let kibibytes = line.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    kibibytes.expect("VmPTE is a number") * 1024
}
