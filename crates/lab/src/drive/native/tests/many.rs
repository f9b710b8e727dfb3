//! Thousands of connections at once, to a server that only answers. One thread serves all of them,
//! so that the test needs no thread for each.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;
use sync::atomic::AtomicUsize;

use super::*;

/// The number of clients.
const CLIENTS: usize = 5_000;

/// Transactions of each client.
const EACH: usize = 3;

/// The server's counters.
#[derive(Default)]
struct Seen {
    accepted: AtomicUsize,
    /// Highest number of connections open at the same time.
    most: AtomicUsize,
    executed: AtomicUsize,
}

/// A connection of the server's.
struct Served {
    stream: UnixStream,
    /// Received bytes of an incomplete message.
    input: Vec<u8>,
    /// The start message, which has no tag, has come.
    begun: bool,
}

impl Served {
    /// Answers the complete messages; returns whether the connection goes on.
    fn serve(&mut self, seen: &Seen) -> bool {
        let mut piece = [0; 4096];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return false,
                Ok(length) => self.input.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        let mut out = Vec::new();
        loop {
            let tagged = usize::from(self.begun);
            let Some(head) = self.input.get(tagged..tagged + 4) else { break };
            let length = tagged + u32::from_be_bytes(head.try_into().unwrap()) as usize;
            if self.input.len() < length {
                break;
            }
            let tag = if self.begun { self.input[0] } else { 0 };
            self.input.drain(..length);
            self.begun = true;
            match tag {
                0 => {
                    fake::message(&mut out, b'R', &[0; 4]);
                    fake::message(&mut out, b'Z', b"I");
                }
                b'P' => fake::message(&mut out, b'1', b""),
                b'B' => fake::message(&mut out, b'2', b""),
                b'D' => fake::message(
                    &mut out,
                    b'T',
                    b"\0\x01n\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0",
                ),
                b'E' => {
                    // Relaxed here and below: readers need the number alone.
                    seen.executed.fetch_add(1, Ordering::Relaxed);
                    fake::message(&mut out, b'D', b"\0\x01\0\0\0\x0242");
                    fake::message(&mut out, b'C', b"SELECT 1\0");
                }
                b'S' => fake::message(&mut out, b'Z', b"I"),
                _ => return false,
            }
        }
        out.is_empty() || self.stream.write_all(&out).is_ok()
    }
}

/// Serves for ever.
fn serve(listener: &UnixListener, seen: &Seen) {
    listener.set_nonblocking(true).unwrap();
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let watch = |place: u64| epoll::EventData::new_u64(place);
    epoll::add(&epoll, listener, watch(u64::MAX), epoll::EventFlags::IN).unwrap();
    let mut served: Vec<Option<Served>> = Vec::new();
    let mut open = 0;
    let mut events = Vec::with_capacity(256);
    loop {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None).unwrap();
        for event in &events {
            let place = event.data.u64();
            if place == u64::MAX {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nonblocking(true).unwrap();
                    epoll::add(&epoll, &stream, watch(served.len() as u64), epoll::EventFlags::IN).unwrap();
                    served.push(Some(Served { stream, input: Vec::new(), begun: false }));
                    open += 1;
                    seen.accepted.fetch_add(1, Ordering::Relaxed);
                    seen.most.fetch_max(open, Ordering::Relaxed);
                }
                continue;
            }
            let place = place as usize;
            if served[place].as_mut().is_some_and(|one| !one.serve(seen)) {
                served[place] = None;
                open -= 1;
            }
        }
    }
}

#[test]
fn five_thousand_connections_are_held_at_once_and_each_is_used() {
    // Both ends belong to this process.
    if let Err(why) = raise_file_limit(2 * CLIENTS + 500) {
        eprintln!("skipped: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let seen = Arc::new(Seen::default());
    let server = seen.clone();
    thread::spawn(move || serve(&listener, &server));
    let target = crate::tests::target_at(Dialect::Postgres, Address::Unix(path));
    for pipeline in [false, true] {
        let before = seen.executed.load(Ordering::Relaxed);
        let workload = Steps { most: EACH, row: (!pipeline).then_some(42), ..point() };
        let measured = run(&target, &workload, &Load { pipeline, ..load(CLIENTS, 2, 60_000) }).unwrap();
        // A client stops once it has done its transactions: all have stopped.
        assert_eq!(measured.lost_clients, Some((CLIENTS, "enough".to_owned())));
        assert_eq!((measured.kinds[0].done, measured.errors.len()), ((CLIENTS * EACH) as u64, 0));
        assert_eq!(seen.executed.load(Ordering::Relaxed) - before, CLIENTS * EACH);
        if !pipeline {
            // A later count could miss this: the server may still close these when the next arrive.
            assert_eq!(seen.most.load(Ordering::Relaxed), CLIENTS);
        }
    }
    assert_eq!(seen.accepted.load(Ordering::Relaxed), 2 * CLIENTS);
}
