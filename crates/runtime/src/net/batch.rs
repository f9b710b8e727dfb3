//! Socket calls of many sessions by one system call: it sends the replies of a round and receives
//! for the sessions served next.
//!
//! The io_uring never has an operation under way. Each call has the flag MSG_DONTWAIT, so it has
//! ended when the kernel has taken it, and all have ended when [`Batch::exchange`] returns. The
//! batch saves more than system calls. A client that a reply wakes takes the core only when the
//! server leaves the kernel, after the other replies are out.
//!
//! What must hold:
//! 1. An entry's bytes stay where they are until `exchange` returns.
//! 2. A session has one send and one receive at most among the entries, so its bytes keep their
//!    order.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use super::Net;
use super::arrivals::{MOST, SLOT, length};
use super::replies::Replies;
use super::session::Session;
use crate::os;
use crate::os::ring::{self, Ring};
use crate::{Cause, fail_stop};

/// Marks a receive among the entries, beside its slot; a send has its reply's place.
const RECEIVE: u64 = 1 << 32;

/// One core's ring.
pub(crate) struct Batch {
    ring: RefCell<Ring>,
}

impl Batch {
    /// None where the kernel grants no such ring: then each call is a system call.
    pub(crate) fn new() -> Option<Batch> {
        Ring::for_sockets(4 * MOST as u32).ok().map(|ring| Batch { ring: RefCell::new(ring) })
    }

    /// Sends replies, and receives for the first sessions of `ready` if all for whom something had
    /// come are served.
    pub(super) fn exchange(&self, net: &Net, replies: &Replies, ready: &VecDeque<Rc<Session>>) {
        let (mut ring, mut slots) = (self.ring.borrow_mut(), net.arrivals.slots());
        let mut count = 0;
        for (index, (session, bytes)) in replies.iter().enumerate() {
            if session.takes_replies() {
                // SAFETY: the replies' bytes are borrowed until all operations have ended, below.
                let has_room = unsafe { ring.push_send(session.socket(), bytes, index as u64) };
                assert!(has_room, "room for all replies");
                count += 1;
            } else {
                session.send_or_keep(net, bytes);
            }
        }
        let next = if net.arrivals.are_served() { MOST } else { 0 };
        for ((index, session), slot) in ready.iter().enumerate().take(next).zip(slots.chunks_exact_mut(SLOT))
        {
            if session.is_receivable() {
                // SAFETY: the slots are borrowed until all operations have ended, below.
                let has_room = unsafe { ring.push_receive(session.socket(), slot, RECEIVE | index as u64) };
                assert!(has_room, "room for MOST receives beside all replies");
                count += 1;
            }
        }
        let mut ended = 0;
        while ended < count {
            if let Err(error) = ring.submit_and_wait(count - ended) {
                passes_or_die(&error);
            }
            for (tag, result) in ring.completions() {
                ended += 1;
                if tag & RECEIVE == 0 {
                    let (session, bytes) = replies.reply(tag as usize);
                    session.sent(net, bytes, length(result));
                } else {
                    let slot = (tag & !RECEIVE) as usize;
                    // Noted now: an event from now on says that there is more, and must not be
                    // forgotten.
                    let _ = ready[slot].received(SLOT, length(result));
                    ready[slot].arrived.set(Some(net.arrivals.fill(slot, result)));
                }
            }
        }
    }
}

/// Some errors keep the kernel from taking entries for the moment: the next call takes the rest.
/// With any other error nobody knows what the kernel does with the entries it took.
pub(super) fn passes_or_die(error: &io::Error) {
    if !ring::is_passing(error) {
        fail_stop(Cause::System, format_args!("sockets can't be used through io_uring: {error}"));
    }
    os::thread::yield_now();
}
