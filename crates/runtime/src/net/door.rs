//! Answers connections while a server starts.
//!
//! The addresses are bound before the long work of a start. So clients learn at once why they
//! cannot come in, and the server finds a taken address before that work. The door's thread accepts
//! and has a [`Talk`] with each client. Then the sockets go to [`crate::Runtime::listen_at`] as
//! they are: no client is refused in between, and the server accepts those that still wait.
//!
//! What must hold:
//!
//! 1. A client that sends its request gets its answer, however many others are silent, are slow or
//!    do not read. When no slot is free, a newcomer takes the slot of a caller. No caller leaves
//!    for a newcomer of the same turn, so each has a second look at its input.
//! 2. An answer reaches its client also if the client has sent more than the talk has used. The
//!    kernel resets a connection that is closed with unread bytes, and the client then loses the
//!    answer. So the door ends its output first, and discards input until the client closes. A
//!    newcomer takes the slot of an answered caller only if the earlier turns left no other.

use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::sync::Arc;

use sync::channel::{Receiver, Sender, channel};

use super::Peer;
use super::listener::{Bound, accept_one};
use crate::device::Side;
use crate::os::{self, Descriptor, Fd};

/// Clients the door has at one time.
const CALLERS: usize = 64;
/// Longest talk, in nanoseconds.
const TALK_LIMIT: u64 = 60_000_000_000;
/// Longest time in which the door discards the input of a client after its answer, in nanoseconds.
const DISCARD_LIMIT: u64 = 2_000_000_000;
/// Bytes of such input that the door discards at most.
const MOST_DISCARDED: usize = 1 << 20;
/// Longest wait for input before the thread looks at the clock, in milliseconds. After descriptors
/// or memory have run out, new clients do not end the wait. The door accepts again after it.
const LOOK: i32 = 100;
/// A talk that has left more than this many bytes of its input unused ends.
const LONGEST: usize = 10_000;

/// One side of a talk with a client. Runs on the door's thread: it must not wait.
pub trait Talk: Send {
    /// Takes from `input` what has come, and appends its answer to `out`. False when nothing more
    /// is to be said.
    fn hear(&mut self, input: &mut Vec<u8>, out: &mut Vec<u8>) -> bool;

    /// Logs that this talk ends early: a newer client needs its slot, and all `slots` are taken.
    fn evicted(&self, slots: usize);
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
        let work = move || Porter { places, greet, woken, callers: Vec::new(), rests: false }.work(&give);
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
    /// In the order in which they came.
    callers: Vec<Caller>,
    /// Whether the last accept failed because descriptors or memory have run out.
    rests: bool,
}

/// A client of the door.
struct Caller {
    socket: Descriptor,
    talk: Box<dyn Talk>,
    seen: Vec<u8>,
    /// The part of the answer that the socket has not taken. While there is one, nothing more is
    /// read.
    rest: Vec<u8>,
    stage: Stage,
    until: u64,
}

/// How far a caller has come.
enum Stage {
    Talks,
    /// The talk is over. The door sends `rest` and then ends its output.
    Ends,
    /// The output has ended, and the door has discarded this many bytes since.
    Discards(usize),
}

impl Stage {
    fn rank(&self) -> u8 {
        match self {
            Stage::Talks => 0,
            Stage::Ends => 1,
            Stage::Discards(_) => 2,
        }
    }
}

impl Porter {
    fn work(mut self, back: &Sender<Vec<Bound>>) {
        while self.wait(true) {
            // First, so that no newcomer takes the slot of a caller whose request has come.
            self.answer();
            self.accept();
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
            let heard = self.places.iter().filter(|_| !self.rests);
            fds.extend(heard.map(|place| (place.descriptor(), Side::Input)));
        }
        // Callers that say nothing run out of time.
        let limit = if self.callers.is_empty() && !self.rests { -1 } else { LOOK };
        let ready = os::poll::wait_for(&fds, limit);
        !open || !ready[self.callers.len()]
    }

    /// Accepts clients, at most as many as there are slots: then the callers have their turn.
    fn accept(&mut self) {
        self.rests = false;
        let mut listeners: VecDeque<Fd> = self.places.iter().map(Bound::descriptor).collect();
        let mut newcomers = 0;
        for _ in 0..CALLERS {
            // One address after the other: a crowd at one does not shut the others.
            let Some(listener) = listeners.pop_front() else { return };
            let (socket, peer) = match accept_one(listener) {
                Ok(accepted) => accepted,
                Err(error) => {
                    self.rests |= os::socket::is_exhausted(&error);
                    continue;
                }
            };
            listeners.push_back(listener);
            let until = crate::time::precise() + TALK_LIMIT;
            let talk = (self.greet)(peer);
            let (seen, rest) = (Vec::new(), Vec::new());
            let mut caller = Caller { socket, talk, seen, rest, stage: Stage::Talks, until };
            // The step answers a request that has come with its client. A client that has left
            // needs no slot.
            if caller.step() {
                self.evict(newcomers);
                self.callers.push(caller);
                newcomers += 1;
            }
        }
    }

    /// Frees a slot if none is free: that of the caller that has come least far, and the oldest of
    /// these. The `newcomers` at the end stay.
    fn evict(&mut self, newcomers: usize) {
        if self.callers.len() < CALLERS {
            return;
        }
        let earlier = &self.callers[..self.callers.len() - newcomers];
        let Some(at) = (0..earlier.len()).min_by_key(|&at| earlier[at].stage.rank()) else { return };
        let caller = self.callers.remove(at);
        if !matches!(caller.stage, Stage::Discards(_)) {
            caller.talk.evicted(CALLERS);
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

    /// Sends the rest of the answer, then reads and answers the input that has come. False when the
    /// client has left or has sent too much.
    fn step(&mut self) -> bool {
        let mut room = [MaybeUninit::uninit(); 1024];
        loop {
            if let Err(error) = self.send() {
                return error.kind() == io::ErrorKind::WouldBlock;
            }
            if let Stage::Ends = self.stage {
                os::socket::end_output(os::id(&self.socket));
                self.stage = Stage::Discards(0);
                self.until = self.until.min(crate::time::precise() + DISCARD_LIMIT);
            }
            let count = match os::socket::receive(os::id(&self.socket), &mut room) {
                Ok(0) => return false,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            };
            if let Stage::Discards(discarded) = &mut self.stage {
                *discarded += count;
                if *discarded > MOST_DISCARDED {
                    return false;
                }
                continue;
            }
            // SAFETY: so many bytes were received.
            self.seen.extend(room[..count].iter().map(|byte| unsafe { byte.assume_init() }));
            if !self.talk.hear(&mut self.seen, &mut self.rest) || self.seen.len() > LONGEST {
                self.stage = Stage::Ends;
            }
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

#[cfg(test)]
mod tests;
