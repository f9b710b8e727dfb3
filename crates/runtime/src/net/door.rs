//! Answers connections while a server starts.
//!
//! The addresses are bound before the long work of a start, so that clients hear at once why they can't come in, and a taken
//! address is found before that work. The door's thread accepts, reads each client's start-up packet and sends the same reply
//! to all. Then the sockets go to [`super::listen_at`] as they are: no client is refused in between, and the server accepts
//! those that still wait.
//!
//! A client may ask for encryption first (`SSLRequest`, `GSSENCRequest`); the door says no, and the client asks again in the
//! clear or goes. The door drops cancel requests: there is no statement.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};

use super::listener::Bound;
use crate::os::check;

/// Clients the door answers at one time; others wait to be accepted.
const CALLERS: usize = 64;
/// Longest wait for a client's start-up packet, in nanoseconds.
const PATIENCE: u64 = 60_000_000_000;
/// Longest wait for input before the thread looks at the clock, in milliseconds.
const LOOK: i32 = 100;
/// Longest packet.
const LONGEST: usize = 10_000;
/// Codes in place of a protocol version.
const CANCEL: u32 = 80_877_102;
const TLS: u32 = 80_877_103;
const GSS: u32 = 80_877_104;

/// Addresses at which all clients get the same reply.
#[derive(Debug)]
pub struct Door {
    /// Closing it wakes the thread.
    wake: UnixStream,
    /// Gives the addresses back.
    back: Receiver<Vec<Bound>>,
}

impl Door {
    /// Sends `reply` to whoever connects at one of `places`, until it is closed.
    pub fn open(places: Vec<Bound>, reply: Vec<u8>) -> io::Result<Door> {
        let (wake, woken) = UnixStream::pair()?;
        let (give, back) = channel();
        let work = move || Porter { places, reply, woken, callers: Vec::new() }.work(&give);
        std::thread::Builder::new().name("door".to_owned()).spawn(work)?;
        Ok(Door { wake, back })
    }

    /// Gives the addresses back, to be listened at. The thread goes on until it has answered the clients it accepted.
    pub fn close(self) -> io::Result<Vec<Bound>> {
        drop(self.wake);
        self.back.recv().map_err(|_| io::Error::other("the thread that answers clients panicked"))
    }
}

/// The thread's state.
struct Porter {
    places: Vec<Bound>,
    reply: Vec<u8>,
    woken: UnixStream,
    callers: Vec<Caller>,
}

/// A client that has not been answered.
struct Caller {
    socket: File,
    seen: Vec<u8>,
    until: u64,
}

impl Porter {
    fn work(mut self, back: &Sender<Vec<Bound>>) {
        while self.wait(true) {
            for at in 0..self.places.len() {
                self.accept(self.places[at].descriptor());
            }
            self.answer();
        }
        // Nobody may want them any more: then they are given up.
        let _ = back.send(std::mem::take(&mut self.places));
        self.answer();
        while !self.callers.is_empty() {
            self.wait(false);
            self.answer();
        }
    }

    /// Waits for something to read, while there are callers for at most [`LOOK`]; false when the door was closed.
    fn wait(&self, open: bool) -> bool {
        let on = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut fds: Vec<libc::pollfd> =
            self.callers.iter().map(|caller| on(caller.socket.as_raw_fd())).collect();
        if open {
            fds.push(on(self.woken.as_raw_fd()));
            let room = self.callers.len() < CALLERS;
            fds.extend(self.places.iter().filter(|_| room).map(|place| on(place.descriptor())));
        }
        // Callers that say nothing run out of time.
        let limit = if self.callers.is_empty() { -1 } else { LOOK };
        // SAFETY: the array is valid for its length throughout the call.
        unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, limit) };
        // An error or a signal looks like nothing to do.
        !open || fds[self.callers.len()].revents == 0
    }

    fn accept(&mut self, listener: RawFd) {
        while self.callers.len() < CALLERS {
            let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
            // SAFETY: a plain system call without an address to be filled in.
            let taken =
                check(unsafe { libc::accept4(listener, std::ptr::null_mut(), std::ptr::null_mut(), flags) });
            let Ok(fd) = taken else { return };
            // SAFETY: the descriptor was just made and is owned by nobody else.
            let socket = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
            let until = crate::time::precise() + PATIENCE;
            self.callers.push(Caller { socket, seen: Vec::new(), until });
        }
    }

    /// Answers the callers whose packets are whole, and drops those that took too long.
    fn answer(&mut self) {
        let now = crate::time::precise();
        let reply = &self.reply;
        self.callers.retain_mut(|caller| now < caller.until && caller.step(reply));
    }
}

impl Caller {
    /// Reads what has come; false when the client has its reply or gets none.
    fn step(&mut self, reply: &[u8]) -> bool {
        let mut bytes = [0; 1024];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => return false,
                Ok(count) => self.seen.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
            while let Some((&[a, b, c, d], rest)) = self.seen.split_first_chunk() {
                let length = u32::from_be_bytes([a, b, c, d]) as usize;
                if !(8..=LONGEST).contains(&length) {
                    return false;
                }
                if rest.len() + 4 < length {
                    break;
                }
                let code = u32::from_be_bytes([rest[0], rest[1], rest[2], rest[3]]);
                self.seen.drain(..length);
                // A reply of some hundred bytes always fits into an empty send buffer.
                let sent = match code {
                    TLS | GSS => self.socket.write_all(b"N"),
                    CANCEL => return false,
                    _ => {
                        let _ = self.socket.write_all(reply);
                        return false;
                    }
                };
                if sent.is_err() {
                    return false;
                }
            }
            if self.seen.len() > LONGEST {
                return false;
            }
        }
    }
}
