//! Connections in memory: two ends, and bytes on their way in each direction.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::mem::MaybeUninit;
use std::rc::Rc;

use super::changes;
use super::events::{Event, digest};
use super::machine::here;

/// Bytes that a connection takes in one direction before its reader has read.
const ROOM: usize = 64 << 10;
/// Time of a send or a receive, in nanoseconds.
pub(super) const CALL: u64 = 900;

/// Bytes on their way in one direction.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    bytes: RefCell<VecDeque<u8>>,
    /// Nothing follows.
    ended: Cell<bool>,
    /// Nobody reads any more.
    unread: Cell<bool>,
    /// Times that input came, or the end.
    inputs: Cell<u64>,
    /// Times that the reader made room.
    rooms: Cell<u64>,
}

/// One end of a connection.
#[derive(Debug)]
pub(super) struct End {
    /// The number of the connection.
    connection: u64,
    input: Rc<Pipe>,
    output: Rc<Pipe>,
}

/// Connections that wait to be accepted.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) address: String,
    pub(super) is_tcp: bool,
    pub(super) queue: RefCell<VecDeque<Rc<End>>>,
    /// Connections that were made here.
    pub(super) made: Cell<u64>,
}

impl End {
    /// The two ends of the connection with this number.
    pub(super) fn pair(connection: u64) -> (Rc<End>, Rc<End>) {
        let (there, back) = (Rc::new(Pipe::default()), Rc::new(Pipe::default()));
        let one = End { connection, input: Rc::clone(&back), output: Rc::clone(&there) };
        (Rc::new(one), Rc::new(End { connection, input: there, output: back }))
    }

    /// How often input came, and how often room was made.
    pub(super) fn changes(&self) -> (u64, u64) {
        (self.input.inputs.get(), self.output.rooms.get())
    }

    pub(super) fn has_input(&self) -> bool {
        !self.input.bytes.borrow().is_empty() || self.input.ended.get()
    }

    pub(super) fn has_room(&self) -> bool {
        self.output.bytes.borrow().len() < ROOM || self.output.unread.get()
    }

    /// Bytes that were sent and that the peer has not received.
    pub(super) fn unread(&self) -> usize {
        self.output.bytes.borrow().len()
    }

    pub(super) fn is_ended(&self) -> bool {
        self.input.ended.get()
    }

    pub(super) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        here().spend(CALL);
        if self.output.unread.get() || self.output.ended.get() {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let mut pipe = self.output.bytes.borrow_mut();
        let count = bytes.len().min(ROOM - pipe.len());
        if count == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        pipe.extend(&bytes[..count]);
        drop(pipe);
        here().note(Event::Send, &[self.connection, digest(&bytes[..count])]);
        self.output.inputs.set(self.output.inputs.get() + 1);
        changes::tell();
        Ok(count)
    }

    pub(super) fn receive(&self, room: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        here().spend(CALL);
        let mut pipe = self.input.bytes.borrow_mut();
        if pipe.is_empty() {
            return if self.input.ended.get() { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        let count = room.len().min(pipe.len());
        room.iter_mut().zip(pipe.drain(..count)).for_each(|(to, byte)| {
            to.write(byte);
        });
        drop(pipe);
        // The bytes are those that a send has noted, in their order.
        here().note(Event::Receive, &[self.connection, count as u64]);
        self.input.rooms.set(self.input.rooms.get() + 1);
        changes::tell();
        Ok(count)
    }

    pub(super) fn end_output(&self) {
        if !self.output.ended.replace(true) {
            here().note(Event::EndOutput, &[self.connection]);
            self.output.inputs.set(self.output.inputs.get() + 1);
            changes::tell();
        }
    }
}

impl Drop for End {
    fn drop(&mut self) {
        self.end_output();
        self.input.unread.set(true);
        self.input.rooms.set(self.input.rooms.get() + 1);
        changes::tell();
    }
}
