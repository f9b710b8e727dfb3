//! Row `socket` (K07): messages over UNIX-domain sockets.
//!
//! FreeBSD 6 has one lock over all UNIX-domain sockets ([`OneLock`], the stock state). The fix
//! gives each socket its own, which Linux has too ([`OwnLocks`], the published one). [`Batches`] is
//! the step beyond it: one call for many messages.
//!
//! 1. A thread sends a message of [`LENGTH`] bytes and receives it at the other end of its pair.
//! 2. [`Batches`] sends and receives [`MOST`] of them by `sendmmsg` and `recvmmsg`.
//!
//! What must hold: messages arrive whole and in order.
//!
//! Cost: 2 system calls a message, or 2 for [`MOST`] messages. While a thread stays on its core,
//! its pair of sockets stays in that core's cache, so [`OwnLocks`] and [`Batches`] cost no line
//! transfer. [`OneLock`] costs 1 for each call, the lock's line, and with n threads they queue for
//! it.

use std::fmt;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixDatagram;
use std::ptr;

use sync::Mutex;

use crate::checked;

/// Bytes of a message.
pub const LENGTH: usize = 64;
/// Messages of a batch.
pub const MOST: usize = 8;

/// A message.
pub type Message = [u8; LENGTH];

/// Pairs of sockets, one for each thread.
pub trait Messages: Sync {
    /// Messages that one turn takes.
    const TURN: usize;
    /// Sends the messages over a thread's pair, and receives as many in their place.
    fn turn(&self, thread: usize, messages: &mut [Message]);
}

/// The pairs.
struct Pairs(Box<[(UnixDatagram, UnixDatagram)]>);

impl fmt::Debug for Pairs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} pairs", self.0.len())
    }
}

impl Pairs {
    fn new(threads: usize) -> Result<Self, String> {
        let pairs = (0..threads).map(|_| UnixDatagram::pair()).collect::<Result<_, _>>();
        pairs.map(Self).map_err(|error| format!("no pair of sockets: {error}"))
    }

    fn send(&self, thread: usize, message: &Message) {
        let sent = self.0[thread].0.send(message).expect("the other end is open");
        assert_eq!(sent, LENGTH, "a datagram is whole");
    }

    fn receive(&self, thread: usize, message: &mut Message) {
        let received = self.0[thread].1.recv(message).expect("the other end is open");
        assert_eq!(received, LENGTH, "a datagram is whole");
    }
}

/// One lock over all sockets.
#[derive(Debug)]
pub struct OneLock {
    lock: Mutex<()>,
    pairs: Pairs,
}

impl OneLock {
    /// Pairs for this number of threads.
    ///
    /// # Errors
    /// A line: the kernel refuses.
    pub fn new(threads: usize) -> Result<Self, String> {
        Ok(Self { lock: Mutex::default(), pairs: Pairs::new(threads)? })
    }
}

impl Messages for OneLock {
    const TURN: usize = 1;

    fn turn(&self, thread: usize, messages: &mut [Message]) {
        for message in messages {
            {
                let _guard = self.lock.lock();
                self.pairs.send(thread, message);
            }
            let _guard = self.lock.lock();
            self.pairs.receive(thread, message);
        }
    }
}

/// The kernel's lock of each socket.
#[derive(Debug)]
pub struct OwnLocks(Pairs);

impl OwnLocks {
    /// Pairs for this number of threads.
    ///
    /// # Errors
    /// A line: the kernel refuses.
    pub fn new(threads: usize) -> Result<Self, String> {
        Pairs::new(threads).map(Self)
    }
}

impl Messages for OwnLocks {
    const TURN: usize = 1;

    fn turn(&self, thread: usize, messages: &mut [Message]) {
        for message in messages {
            self.0.send(thread, message);
            self.0.receive(thread, message);
        }
    }
}

/// Whether a socket's queue takes a batch.
///
/// # Errors
/// A line: the kernel's queues are shorter.
pub fn has_room() -> Result<(), String> {
    // The sysctl is the most datagrams that wait, less one.
    let path = "/proc/sys/net/unix/max_dgram_qlen";
    let queue = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<usize>().ok());
    match queue {
        Some(queue) if queue < MOST => Err(format!("net.unix.max_dgram_qlen is {queue}, {MOST} wanted")),
        _ => Ok(()),
    }
}

/// Many messages a call.
#[derive(Debug)]
pub struct Batches(Pairs);

impl Batches {
    /// Pairs for this number of threads.
    ///
    /// # Errors
    /// A line: the kernel refuses, or its queues are shorter than a batch.
    pub fn new(threads: usize) -> Result<Self, String> {
        has_room()?;
        Pairs::new(threads).map(Self)
    }
}

impl Messages for Batches {
    const TURN: usize = MOST;

    fn turn(&self, thread: usize, messages: &mut [Message]) {
        assert!(messages.len() <= MOST, "a turn is of one batch");
        let Pairs(pairs) = &self.0;
        let mut parts = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; MOST];
        // SAFETY: a header is numbers and pointers, for which zeroes are valid.
        let mut headers: [libc::mmsghdr; MOST] = unsafe { std::mem::zeroed() };
        for ((part, header), message) in parts.iter_mut().zip(&mut headers).zip(messages.iter_mut()) {
            *part = libc::iovec { iov_base: message.as_mut_ptr().cast(), iov_len: LENGTH };
            header.msg_hdr.msg_iov = part;
            header.msg_hdr.msg_iovlen = 1;
        }
        let (count, first) = (messages.len() as libc::c_uint, headers.as_mut_ptr());
        // SAFETY: `count` headers, each with one part that is a message of this turn. Nobody else
        // reaches them meanwhile.
        let sent = unsafe { libc::sendmmsg(pairs[thread].0.as_raw_fd(), first, count, 0) };
        assert_eq!(checked("sendmmsg", sent.into()), i64::from(count), "the queue has room for a batch");
        // SAFETY: as above; the messages are written in their places.
        let received =
            unsafe { libc::recvmmsg(pairs[thread].1.as_raw_fd(), first, count, 0, ptr::null_mut()) };
        assert_eq!(checked("recvmmsg", received.into()), i64::from(count), "all that were sent are there");
        assert!(headers[..messages.len()].iter().all(|header| header.msg_len as usize == LENGTH));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_threads::{at_once, threads};

    fn arrive_in_order<M: Messages>(messages: &M) {
        at_once(|me| {
            for round in 0..50u8 {
                let numbered = |at| [me.number() as u8 ^ round ^ at as u8; LENGTH];
                let mut turn: Vec<Message> = (0..M::TURN).map(numbered).collect();
                messages.turn(me.number(), &mut turn);
                assert!(turn.iter().enumerate().all(|(at, message)| *message == numbered(at)));
            }
        });
    }

    #[test]
    fn messages_of_more_threads_than_cores_arrive_whole_and_in_order() {
        crate::raise_file_limit();
        arrive_in_order(&OneLock::new(threads()).unwrap());
        arrive_in_order(&OwnLocks::new(threads()).unwrap());
        if let Ok(batches) = Batches::new(threads()) {
            arrive_in_order(&batches);
        }
    }
}
