//! Answers connections while a server starts.
//!
//! The addresses are bound before the long work of a start. So clients learn at once why they
//! cannot come in, and the server finds a taken address before that work. The door's thread accepts
//! and has a [`Talk`] with each client. Then the sockets go to [`crate::Runtime::listen_at`] as
//! they are: no client is refused in between, and the server accepts those that still wait.

use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;

use sync::channel::{Receiver, Sender, channel};

use super::Peer;
use super::listener::{Bound, accept_one};
use crate::device::Side;
use crate::os::{self, Descriptor, Fd};

/// Clients the door answers at one time; others wait to be accepted.
const CALLERS: usize = 64;
/// Longest talk, in nanoseconds.
const TALK_LIMIT: u64 = 60_000_000_000;
/// Longest wait for input before the thread looks at the clock, in milliseconds.
const LOOK: i32 = 100;
/// A talk that has left more than this many bytes of its input unused ends.
const LONGEST: usize = 10_000;

/// One side of a talk with a client. Runs on the door's thread: it must not wait.
pub trait Talk: Send {
    /// Takes from `input` what has come, and appends its answer to `out`. False when nothing more
    /// is to be said.
    fn hear(&mut self, input: &mut Vec<u8>, out: &mut Vec<u8>) -> bool;
}

/// Begins the talk with a client that has come.
pub type Greet = dyn Fn(Peer) -> Box<dyn Talk> + Send;

/// Addresses at which clients are talked to.
#[derive(Debug)]
pub struct Door {
    /// Wakes the thread when the door is closed.
    wake: Wake,
    /// Gives the addresses back.
    back: Receiver<Vec<Bound>>,
}

impl Door {
    /// Talks to those who connect at one of `places`, until it is closed.
    pub fn open(places: Vec<Bound>, greet: Box<Greet>) -> io::Result<Door> {
        let event = Arc::new(os::poll::eventfd()?);
        let (wake, woken) = (Wake(Arc::clone(&event)), event);
        let (give, back) = channel();
        let work = move || Porter { places, greet, woken, callers: Vec::new() }.work(&give);
        os::thread::spawn("door", None, work)?;
        Ok(Door { wake, back })
    }

    /// Gives the addresses back, to be listened at. The thread goes on until it has answered the
    /// clients it accepted.
    pub fn close(self) -> io::Result<Vec<Bound>> {
        drop(self.wake);
        self.back.recv().map_err(|_| io::Error::other("the thread that answers clients panicked"))
    }
}

/// Wakes the door's thread for good when it is dropped.
#[derive(Debug)]
struct Wake(Arc<Descriptor>);

impl Drop for Wake {
    fn drop(&mut self) {
        os::poll::signal(&self.0);
    }
}

/// The thread's state.
struct Porter {
    places: Vec<Bound>,
    greet: Box<Greet>,
    woken: Arc<Descriptor>,
    callers: Vec<Caller>,
}

/// A client that has not been answered.
struct Caller {
    socket: Descriptor,
    talk: Box<dyn Talk>,
    seen: Vec<u8>,
    /// The part of the answer that the socket has not taken. While there is one, nothing more is
    /// read.
    rest: Vec<u8>,
    /// Whether the talk is over once `rest` is sent.
    is_over: bool,
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
        // The receiver may be gone (the start failed). Then the send fails and the addresses are
        // closed here.
        let _ = back.send(std::mem::take(&mut self.places));
        self.answer();
        while !self.callers.is_empty() {
            self.wait(false);
            self.answer();
        }
    }

    /// Waits for something to read, while there are callers for at most [`LOOK`]; false when the
    /// door was closed.
    fn wait(&self, open: bool) -> bool {
        let mut fds: Vec<(Fd, Side)> = self.callers.iter().map(Caller::waits_for).collect();
        if open {
            fds.push((os::id(&self.woken), Side::Input));
            let room = self.callers.len() < CALLERS;
            fds.extend(self.places.iter().filter(|_| room).map(|place| (place.descriptor(), Side::Input)));
        }
        // Callers that say nothing run out of time.
        let limit = if self.callers.is_empty() { -1 } else { LOOK };
        let ready = os::poll::wait_for(&fds, limit);
        !open || !ready[self.callers.len()]
    }

    fn accept(&mut self, listener: Fd) {
        while self.callers.len() < CALLERS {
            let Ok((socket, peer)) = accept_one(listener) else { return };
            let until = crate::time::precise() + TALK_LIMIT;
            let talk = (self.greet)(peer);
            self.callers.push(Caller {
                socket,
                talk,
                seen: Vec::new(),
                rest: Vec::new(),
                is_over: false,
                until,
            });
        }
    }

    /// Answers the callers that have said something, and drops those that took too long.
    fn answer(&mut self) {
        let now = crate::time::precise();
        self.callers.retain_mut(|caller| now < caller.until && caller.step());
    }
}

impl Caller {
    fn waits_for(&self) -> (Fd, Side) {
        (os::id(&self.socket), if self.rest.is_empty() { Side::Input } else { Side::Room })
    }

    /// Sends what is left, then reads what has come and answers it; false when the talk is over.
    fn step(&mut self) -> bool {
        let mut room = [MaybeUninit::uninit(); 1024];
        loop {
            match self.send() {
                Ok(()) if self.is_over => return false,
                Ok(()) => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
            match os::socket::receive(os::id(&self.socket), &mut room) {
                Ok(0) => return false,
                // SAFETY: so many bytes were received.
                Ok(count) => self.seen.extend(room[..count].iter().map(|byte| unsafe { byte.assume_init() })),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
            self.is_over = !self.talk.hear(&mut self.seen, &mut self.rest) || self.seen.len() > LONGEST;
        }
    }

    /// Sends the rest of the answer. `WouldBlock` where the socket takes no more now.
    fn send(&mut self) -> io::Result<()> {
        while !self.rest.is_empty() {
            match os::socket::send(os::id(&self.socket), &self.rest) {
                Ok(sent) => drop(self.rest.drain(..sent)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
