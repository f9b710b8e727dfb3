//! Row `socket`: threads that pass messages over socket pairs of their own.
//!
//! Beside other programs the row shows little: they take the processors that the waiters of the one
//! lock leave. On 2 cores with 64 threads, own locks against one lock were 2.0 without such
//! programs, and no difference beside compilers.

use std::io;
use std::os::unix::net::UnixDatagram;

use calls::messages::{Batches, LENGTH, MOST, Message, Messages, OneLock, OwnLocks, has_room};
use runtime::net::apart::SocketRing;
use sync::Mutex;
use sync::atomic::{AtomicBool, Ordering};

use super::{Arm, Part, Row, Started};
use crate::round::{Subject, Worker};

/// The row.
pub(super) const ROW: Row = Row {
    id: "socket",
    report: "K07",
    about: "messages over UNIX-domain sockets: one lock over all sockets, against a lock each, against batches",
    operation: "send 64 bytes and receive them",
    needs: None,
    code: "crates/calls/src/messages.rs",
    arms: &[
        Arm { name: "one lock", part: Part::Stock, start: |threads| talk(OneLock::new(threads)?) },
        Arm { name: "own locks", part: Part::Published, start: |threads| talk(OwnLocks::new(threads)?) },
        Arm { name: "batches of 8", part: Part::Step, start: |threads| talk(Batches::new(threads)?) },
        Arm { name: "SocketRing", part: Part::Allcore, start: |threads| talk(Own::new(threads)?) },
    ],
};

/// The engine's ring of a core, a ring for each thread: one call sends and receives.
struct Own(Box<[Mutex<Ringed>]>);

/// A thread's pair of sockets, and the ring that it makes at its first turn.
struct Ringed {
    pair: (UnixDatagram, UnixDatagram),
    ring: Option<SocketRing>,
}

impl Own {
    fn new(threads: usize) -> Result<Self, String> {
        has_room()?;
        ring().map_err(|error| format!("no ring for sockets: {error}"))?;
        let pair = |_| Ok(Mutex::new(Ringed { pair: UnixDatagram::pair()?, ring: None }));
        let pairs = (0..threads).map(pair).collect::<io::Result<_>>();
        pairs.map(Self).map_err(|error| format!("no pair of sockets: {error}"))
    }
}

fn ring() -> io::Result<SocketRing> {
    SocketRing::new(MOST as u32)
}

impl Messages for Own {
    const TURN: usize = MOST;

    fn turn(&self, thread: usize, messages: &mut [Message]) {
        // Taken once by each thread: nobody else uses it.
        let Ringed { pair: (from, to), ring: own } = &mut *self.0[thread].lock();
        let own = own.get_or_insert_with(|| ring().expect("a ring as the first one"));
        let mut received = [[0; LENGTH]; MOST];
        own.exchange(from, to, messages, &mut received).expect("the queue has room for a batch");
        messages.copy_from_slice(&received);
    }
}

fn talk(messages: impl Messages + 'static) -> Started {
    Ok(Box::new(Talk { messages, is_wrong: AtomicBool::new(false) }))
}

#[derive(Debug)]
struct Talk<M> {
    messages: M,
    is_wrong: AtomicBool,
}

impl<M: Messages> Subject for Talk<M> {
    fn work(&self, worker: &mut Worker<'_>) {
        let (number, mut count, mut is_wrong) = (worker.number(), 0u64, false);
        let mut turn: Vec<Message> = vec![[0; LENGTH]; M::TURN];
        worker.repeat_many(|_| {
            for (at, message) in turn.iter_mut().enumerate() {
                message[..8].copy_from_slice(&(count + at as u64).to_le_bytes());
            }
            self.messages.turn(number, &mut turn);
            for (at, message) in turn.iter().enumerate() {
                is_wrong |= message[..8] != (count + at as u64).to_le_bytes();
            }
            count += M::TURN as u64;
            M::TURN as u64
        });
        // Relaxed: read after the threads' end.
        self.is_wrong.fetch_or(is_wrong, Ordering::Relaxed);
    }

    fn counts_retries(&self) -> bool {
        false
    }

    fn check(&self, _: u64) -> Result<(), String> {
        // Relaxed: the threads have ended.
        if self.is_wrong.load(Ordering::Relaxed) {
            return Err("a message arrived out of order".into());
        }
        Ok(())
    }
}
