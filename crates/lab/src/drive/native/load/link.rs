//! Clients' connections while the load runs. The loop writes to them, and sets them up and ends
//! them at a client's request. It loses a client that can't go on, and ends all connections at the
//! round's end.
//!
//! What must hold: a connection under way keeps no other client waiting; its bytes never reach
//! another connection.

use std::cmp::Reverse;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{self, RecvFlags, SendFlags, sockopt};

use super::{After, Doing, LOOK, Thread, WATCHED};
use crate::drive::native::connect::{Attempt, QUEUE_FULL, STALL_MAX};
use crate::drive::wire::{Refusal, Wire};

/// Time limit for the server to close the connections after the round.
const PARTING: Duration = Duration::from_secs(2);

pub(super) enum Link<W: Wire> {
    Up(OwnedFd),
    /// Being set up.
    Rising(Box<Attempt<W>>),
    /// The client has no connection at this moment.
    Down,
    /// The client can't go on, and gets no other connection.
    Lost,
}

impl<W: Wire> Link<W> {
    pub(super) fn is_up(&self) -> bool {
        matches!(self, Self::Up(_))
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Lost)
    }
}

impl<W: Wire> Thread<'_, W> {
    /// Begins to set a connection up, in place of the present one.
    pub(super) fn connect(&mut self, place: usize, now: u64) {
        self.leave(place);
        // The loop waits for a connection under way as for the others.
        self.alone = false;
        self.slots[place].doing = Doing::Connecting;
        match Attempt::begin(self.wire, &self.round.peer) {
            Ok(Some(attempt)) => match attempt.watch(&self.epoll, place) {
                Ok(()) => self.slots[place].link = Link::Rising(Box::new(attempt)),
                Err(error) => self.lose(place, || format!("the socket can't be watched: {error}")),
            },
            Ok(None) => self.timers.push(Reverse((now + QUEUE_FULL.as_nanos() as u64, place as u32))),
            Err(refusal) => self.refused(place, refusal, now),
        }
    }

    /// Continues to set a connection up.
    pub(super) fn rise(&mut self, place: usize, now: u64) {
        let slot = &mut self.slots[place];
        let Link::Rising(mut attempt) = std::mem::replace(&mut slot.link, Link::Down) else { return };
        match attempt.advance(self.wire, &self.round.peer) {
            Ok(None) => slot.link = Link::Rising(attempt),
            Ok(Some(session)) => {
                slot.link = Link::Up(attempt.socket);
                slot.session = session;
                slot.answer.reply.clear();
                self.watch(place);
                self.advance(place, now);
            }
            Err(refusal) => self.refused(place, refusal, now),
        }
    }

    /// A connection could not be set up. A full server may have room at the next transaction; any
    /// other refusal would repeat.
    fn refused(&mut self, place: usize, refusal: Refusal, now: u64) {
        match refusal {
            Refusal::Server(failure) if failure.code.is_full() => {
                self.tally.error(&failure, false, now, String::new);
                self.rolled_back(place, After::Next, now);
            }
            refusal => {
                let round = self.round;
                self.lose(place, || round.peer.told(refusal));
            }
        }
    }

    /// Ends the connection, if there is one, as libpq does: it sends a good-bye and does not wait
    /// for the server's.
    pub(super) fn leave(&mut self, place: usize) {
        self.out.clear();
        self.wire.leave(&mut self.out);
        let slot = &mut self.slots[place];
        if let Link::Up(socket) = std::mem::replace(&mut slot.link, Link::Down) {
            // A server that reads nothing misses the good-bye alone.
            let _ = send(&socket, &self.out);
        }
        self.out.clear();
        slot.answer.reply.clear();
        slot.rest.clear();
        slot.sent.clear();
    }

    /// Sends `out`.
    pub(super) fn send(&mut self, place: usize) {
        let slot = &mut self.slots[place];
        let (Link::Up(socket), false) = (&slot.link, self.out.is_empty()) else { return };
        if !send(socket, &self.out) {
            let seconds = STALL_MAX.as_secs();
            self.lose(place, || format!("the server has read nothing of a statement for {seconds} s"));
        }
    }

    fn watch(&mut self, place: usize) {
        let Link::Up(socket) = &self.slots[place].link else { return };
        let number = epoll::EventData::new_u64(place as u64);
        if let Err(error) = epoll::modify(&self.epoll, socket, number, WATCHED) {
            self.lose(place, || format!("the socket can't be watched: {error}"));
        }
    }

    /// Loses a client that can't go on.
    pub(super) fn lose(&mut self, place: usize, why: impl FnOnce() -> String) {
        if !std::mem::replace(&mut self.slots[place].link, Link::Lost).is_lost() {
            self.alive -= 1;
            self.tally.lost(why);
        }
    }

    /// Sends a good-bye and waits until the server has closed the connections, so that the next
    /// round finds their places free.
    pub(super) fn part(&mut self) {
        let until = Instant::now() + PARTING;
        self.out.clear();
        self.wire.leave(&mut self.out);
        for place in 0..self.slots.len() {
            self.send(place);
        }
        for slot in &self.slots {
            let Link::Up(socket) = &slot.link else { continue };
            let mut open = wait_on(socket).is_ok();
            while open && Instant::now() < until {
                self.input.clear();
                let received = net::recv(socket, spare_capacity(&mut self.input), RecvFlags::empty());
                open = matches!(received, Ok((1.., _)) | Err(Errno::AGAIN | Errno::INTR));
            }
        }
    }
}

/// Sets a socket up for waiting receives, which last no longer than the interval between two checks
/// of the stop flag. A receive that must not wait passes a flag.
pub(super) fn wait_on(socket: &OwnedFd) -> Result<(), Errno> {
    sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, Some(Duration::from_nanos(LOOK)))?;
    ioctl_fionbio(socket, false)
}

/// Sends `bytes`. If the socket lacks room for them, as for a statement of a megabyte, the thread
/// waits until the server has read some. Returns false if it reads nothing for [`STALL_MAX`]. A
/// closed socket shows in the next receive, with the server's reason.
fn send(socket: &OwnedFd, mut bytes: &[u8]) -> bool {
    let wait = Timespec { tv_sec: STALL_MAX.as_secs() as i64, tv_nsec: 0 };
    while !bytes.is_empty() {
        match net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::INTR) => (),
            Err(Errno::AGAIN) => {
                if poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&wait)) == Ok(0) {
                    return false;
                }
            }
            Err(_) => break,
        }
    }
    true
}
