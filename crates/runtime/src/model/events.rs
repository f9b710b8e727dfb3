//! The stream of events that a run is known by, kept as a hash. What must hold:
//!
//! 1. Each switch of threads is an event, and so is each operation of a file, folder, socket,
//!    mapped word or mapping. The bytes that it moves are part of its event. A call that finds
//!    nothing to do (`WouldBlock`) is none.
//! 2. No address of the host is part of an event, and nothing that depends on one.

use std::cell::Cell;

/// The kinds of events. Their numbers are part of the hash.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// Another thread runs.
    Switch,
    /// A poll tells of a descriptor.
    Happened,
    /// A descriptor is opened.
    Open,
    /// A descriptor is closed.
    Close,
    /// A socket takes bytes.
    Send,
    /// A socket gives bytes.
    Receive,
    /// A side of a connection ends its output.
    EndOutput,
    /// A listener is made.
    Listen,
    /// A client connects.
    Connect,
    /// A listener gives a connection away.
    Accept,
    /// A file is opened by its path.
    OpenFile,
    /// A file is read.
    Read,
    /// A file is written.
    Write,
    /// A file is made durable.
    Sync,
    /// A file gets another length.
    Resize,
    /// A file's lock is asked for.
    Lock,
    /// A path is looked at.
    Look,
    /// A folder is listed.
    List,
    /// A folder is made.
    MakeFolder,
    /// A file gets this path.
    Rename,
    /// A file loses its path.
    Remove,
    /// A folder is made durable.
    SyncFolder,
    /// Secrets or seeds are drawn.
    Draw,
    /// A word of a file is mapped.
    MapWord,
    /// A word of a file is unmapped.
    UnmapWord,
    /// Memory is mapped.
    Map,
    /// Memory is unmapped.
    Unmap,
    /// Pages of a mapping are given back.
    Discard,
}

/// The hash of the events until now.
#[derive(Debug)]
pub(super) struct Stream(Cell<u64>);

impl Stream {
    /// A stream without events.
    pub(super) fn new() -> Stream {
        Stream(Cell::new(0xcbf2_9ce4_8422_2325))
    }

    /// Adds an event.
    pub(super) fn note(&self, event: Event, numbers: &[u64]) {
        let noted = mix(self.0.get(), event as u64);
        self.0.set(numbers.iter().copied().fold(noted, mix));
    }

    /// The hash.
    pub(super) fn hash(&self) -> u64 {
        self.0.get()
    }
}

/// The hash of some bytes.
pub(super) fn digest(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mixed = words.iter().fold(bytes.len() as u64, |mixed, word| mix(mixed, u64::from_le_bytes(*word)));
    rest.iter().fold(mixed, |mixed, byte| mix(mixed, u64::from(*byte)))
}

fn mix(hash: u64, number: u64) -> u64 {
    (hash ^ number).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29)
}
