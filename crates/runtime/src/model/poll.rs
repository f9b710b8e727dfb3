//! Waiting for many descriptors at once, and events that wake who waits.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use super::events::Event as Noted;
use super::machine::here;
use super::table::{self, Descriptor, Open};
use super::{Fd, changes, socket};
use crate::device::{Happened, Interest, Side};

/// Time of a look at the set, in nanoseconds.
const LOOK: u64 = 300;

/// Something happened at a descriptor that was added with this token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    token: u64,
    happened: Happened,
}

impl Event {
    /// Room for so many events.
    pub(crate) fn buffer(count: usize) -> Vec<Event> {
        let happened = Happened { input: false, room: false, hung_up: false };
        vec![Event { token: 0, happened }; count]
    }

    /// The token that the descriptor was added with.
    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    /// The descriptor's events.
    pub(crate) fn happened(&self) -> Happened {
        self.happened
    }
}

/// A watched descriptor.
#[derive(Debug)]
struct Watched {
    interest: Interest,
    token: u64,
    /// The changes of input and room that were told last; none before the first look.
    seen: Option<(u64, u64)>,
}

/// A set of watched descriptors.
#[derive(Debug, Default)]
pub(crate) struct Poll(RefCell<BTreeMap<Fd, Watched>>);

impl Poll {
    /// An empty set.
    pub(crate) fn new() -> io::Result<Poll> {
        Ok(Poll::default())
    }

    /// Watches a descriptor; its events carry `token`.
    pub(crate) fn add(&self, fd: Fd, interest: Interest, token: u64) -> io::Result<()> {
        self.change(fd, interest, token)
    }

    /// Watches a descriptor of the set for something else.
    pub(crate) fn change(&self, fd: Fd, interest: Interest, token: u64) -> io::Result<()> {
        self.0.borrow_mut().insert(fd, Watched { interest, token, seen: None });
        Ok(())
    }

    /// Watches a descriptor no longer.
    pub(crate) fn remove(&self, fd: Fd) {
        self.0.borrow_mut().remove(&fd);
    }

    /// Waits for events, for at most so many milliseconds (`None`: without limit), and puts them
    /// into the buffer. Returns their number.
    pub(crate) fn wait(&self, events: &mut [Event], timeout: Option<i32>) -> usize {
        let until = timeout.map(|millis| here().now() + millis.max(0) as u64 * 1_000_000);
        loop {
            here().spend(LOOK);
            let count = self.look(events);
            if count > 0 || until.is_some_and(|until| here().now() >= until) {
                changes::stop_waiting();
                return count;
            }
            changes::wait();
            here().park_until(until);
        }
    }

    fn look(&self, events: &mut [Event]) -> usize {
        let mut count = 0;
        for (&fd, watched) in &mut *self.0.borrow_mut() {
            if count == events.len() {
                break;
            }
            let Some(happened) = watched.look(fd) else { continue };
            let Happened { input, room, hung_up } = happened;
            here().note(Noted::Happened, &[fd as u64, u64::from(input), u64::from(room), u64::from(hung_up)]);
            events[count] = Event { token: watched.token, happened };
            count += 1;
        }
        count
    }
}

impl Watched {
    fn look(&mut self, fd: Fd) -> Option<Happened> {
        match table::get(fd)? {
            Open::Event(count) => {
                let is_new = self.interest == Interest::Input || self.seen != Some((count, 0));
                self.seen = Some((count, 0));
                (count > 0 && is_new).then_some(Happened { input: true, room: false, hung_up: false })
            }
            Open::Listener(pending) => {
                let waits = !pending.queue.borrow().is_empty();
                waits.then_some(Happened { input: true, room: false, hung_up: false })
            }
            Open::Socket(end) => {
                let now = end.changes();
                let old = self.seen.replace(now);
                let input = end.has_input() && old.is_none_or(|old| old.0 != now.0);
                let room = self.interest == Interest::NewInputAndOutput
                    && end.has_room()
                    && old.is_none_or(|old| old.1 != now.1);
                let hung_up = input && end.is_ended();
                (input || room).then_some(Happened { input, room, hung_up })
            }
            Open::File { .. } => None,
        }
    }
}

/// A new event.
pub(crate) fn eventfd() -> io::Result<Descriptor> {
    Ok(Descriptor::new(Open::Event(0)))
}

/// Adds one to an event, which wakes a thread that polls it.
pub(crate) fn signal(event: &Descriptor) {
    table::change_event(event.id(), |count| *count += 1);
    changes::tell();
    here().spend(LOOK);
}

/// Takes what was added to an event.
pub(crate) fn drain(event: Fd) {
    table::change_event(event, |count| *count = 0);
}

/// Waits until one of these descriptors has input, for at most so many milliseconds (-1: without
/// limit); which of them have.
pub(crate) fn wait_for(fds: &[(Fd, Side)], limit: i32) -> Vec<bool> {
    let until = u64::try_from(limit).ok().map(|millis| here().now() + millis * 1_000_000);
    loop {
        here().spend(LOOK);
        let is_ready = |&(fd, side): &(Fd, Side)| match side {
            Side::Input => socket::has_input(fd),
            Side::Room => socket::has_room(fd),
        };
        let ready: Vec<bool> = fds.iter().map(is_ready).collect();
        if ready.contains(&true) || until.is_some_and(|until| here().now() >= until) {
            changes::stop_waiting();
            return ready;
        }
        changes::wait();
        here().park_until(until);
    }
}
