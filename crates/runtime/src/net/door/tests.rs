//! Which callers stay when no slot is free. The tests take the door's turns themselves.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::net::Address;

/// More than a Unix socket holds, in bytes.
const LONG: usize = 16 << 20;

/// Answers the byte `s` shortly, and `l` with [`LONG`] bytes.
struct Answers(Arc<AtomicUsize>);

impl Talk for Answers {
    fn hear(&mut self, input: &mut Vec<u8>, out: &mut Vec<u8>) -> bool {
        out.resize(if input[0] == b'l' { LONG } else { 1 }, b'a');
        false
    }

    fn evicted(&self, slots: usize) {
        assert_eq!(slots, CALLERS);
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A door of this many addresses, and the number of callers whose eviction it has logged.
fn door<const N: usize>(name: &str) -> (Porter, [PathBuf; N], Arc<AtomicUsize>) {
    let path = |at| std::env::temp_dir().join(format!("allcore-door-{}-{name}-{at}", std::process::id()));
    let paths: [PathBuf; N] = std::array::from_fn(path);
    let bind = |path: &PathBuf| Bound::new(Address::Unix { path: path.clone(), mode: 0o600 }).unwrap();
    let places = paths.iter().map(bind).collect();
    let evicted = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&evicted);
    let greet = Box::new(move |_| Box::new(Answers(Arc::clone(&counter))) as Box<dyn Talk>);
    let woken = Arc::new(os::poll::eventfd().unwrap());
    (Porter { places, greet, woken, callers: Vec::new(), rests: false }, paths, evicted)
}

fn connect(path: &Path, request: &str) -> UnixStream {
    let mut client = UnixStream::connect(path).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    client
}

/// The length of the answer up to the connection's end.
fn answered(mut client: &UnixStream) -> usize {
    let mut answer = Vec::new();
    // The kernel resets a connection that the door closes with unread input.
    let _ = client.read_to_end(&mut answer);
    answer.len()
}

/// Callers that talk, that end and that discard.
fn stages(porter: &Porter) -> [usize; 3] {
    let mut counts = [0; 3];
    porter.callers.iter().for_each(|caller| counts[usize::from(caller.stage.rank())] += 1);
    counts
}

#[test]
fn a_newcomer_stays_until_its_second_step_at_any_address() {
    let (mut porter, paths, evicted) = door::<2>("turn");
    let mut crowds = paths.each_ref().map(|path| [(); CALLERS].map(|()| connect(path, "")));
    porter.accept();
    assert_eq!((porter.callers.len(), evicted.load(Ordering::Relaxed)), (CALLERS, 0));
    // The first of each crowd were accepted.
    for one in crowds.iter_mut().flat_map(|crowd| &mut crowd[..CALLERS / 2]) {
        one.write_all(b"s").unwrap();
    }
    porter.answer();
    assert_eq!(stages(&porter), [0, 0, CALLERS]);
    porter.accept();
    assert_eq!((stages(&porter), evicted.load(Ordering::Relaxed)), ([CALLERS, 0, 0], 0));
    for one in crowds.iter().flat_map(|crowd| &crowd[..CALLERS / 2]) {
        assert_eq!(answered(one), 1);
    }
}

#[test]
fn an_answer_is_sent_whole_while_silent_callers_can_leave() {
    let (mut porter, [path], evicted) = door::<1>("stages");
    let done = connect(&path, "s");
    let deaf = ["l", "l"].map(|request| connect(&path, request));
    let silent = || -> Vec<UnixStream> { (3..CALLERS).map(|_| connect(&path, "")).collect() };
    let first = silent();
    porter.accept();
    assert_eq!(stages(&porter), [CALLERS - 3, 2, 1]);
    let _second = silent();
    porter.accept();
    assert_eq!(stages(&porter), [CALLERS - 3, 2, 1]);
    assert_eq!(evicted.load(Ordering::Relaxed), CALLERS - 3);
    assert_eq!(answered(&first[0]), 0, "the oldest silent caller has left");
    // One more than there are silent callers: the older caller that does not read leaves.
    let _third = (silent(), connect(&path, ""));
    porter.accept();
    assert_eq!(stages(&porter), [CALLERS - 2, 1, 1]);
    assert!((1..LONG).contains(&answered(&deaf[0])));
    assert_eq!(evicted.load(Ordering::Relaxed), 2 * (CALLERS - 3) + 1);

    // The other one begins to read. The door waits for room in its socket, not for the clock.
    let (begun, mut turns) = (Instant::now(), 0);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| answered(&deaf[1]));
        while !reader.is_finished() {
            porter.wait(true);
            porter.answer();
            turns += 1;
        }
        assert_eq!(reader.join().unwrap(), LONG);
    });
    let clock = Duration::from_millis(LOOK as u64) * turns;
    assert!(turns > 4 && begun.elapsed() < clock / 2, "{:?} for {turns} turns", begun.elapsed());
    drop(porter);
    assert_eq!(answered(&done), 1);
}
