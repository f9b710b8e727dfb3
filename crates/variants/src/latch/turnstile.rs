//! FreeBSD's reader-writer lock (B14; `rwlock(9)`, FreeBSD 10): waiters spin while that seems
//! useful, then sleep in a turnstile.
//!
//! One word: the flag [`READ`] with the number of readers, or a writer's number. Beside it are the
//! flags [`READ_WAITERS`], [`WRITE_WAITERS`] and [`WRITE_SPINNER`].
//!
//! 1. A reader adds itself by an exchange, unless a writer holds, sleeps or spins. It polls while a
//!    writer that holds the lock runs, and for 10 times 1,000 polls where readers hold it.
//! 2. A writer exchanges a free word for its number. It polls while another writer runs. Where
//!    readers hold the lock, it sets [`WRITE_SPINNER`], which keeps new readers out, and polls 10
//!    times 1,000 times.
//! 3. Then the thread takes the turnstile's spin lock, looks at the word again, sets its flag of
//!    waiters, enters its queue and sleeps. Woken, it begins anew.
//! 4. A release without waiters is one exchange. The last holder of a lock with waiters takes the
//!    turnstile's spin lock and opens the word. It wakes all writers, or all readers if no writer
//!    waits. The flag of the readers stays if they stay.
//!
//! What must hold: a flag of waiters is set under the turnstile's lock only, and is taken off under
//! it with its queue. So a release that sees no flag leaves nobody asleep: the exchange that sets
//! the flag fails if the release came first.
//!
//! FreeBSD polls 10 times 10,000 times; a pause of the processor has become about ten times longer
//! since 2014. Run states are hints (`running`).
//!
//! Orderings: a change that takes the lock acquires; one that opens it releases.
//!
//! Cost in line transfers: 1 for an uncontended acquisition and 1 for a release, shared ones too.
//! With waiters, 2 more for the turnstile's spin lock on each side. B14 found that spin lock among
//! the most contended ones.

use sync::atomic::{AtomicUsize, Ordering, spin_loop};
use sync::{CachePadded, profile};

use super::{HeldLatch, Mode};
use crate::caller::Caller;
use crate::running;
use crate::spin::Word;
use crate::waiters::{Queue, Waiters};

/// Readers hold the lock, or nobody.
const READ: usize = 1;
/// Readers sleep.
const READ_WAITERS: usize = 2;
/// Writers sleep.
const WRITE_WAITERS: usize = 4;
/// A writer polls while readers hold the lock.
const WRITE_SPINNER: usize = 8;
const WAITERS: usize = READ_WAITERS | WRITE_WAITERS;
/// One reader; a writer's number has this unit, too.
const ONE: usize = 16;
/// The word of a free lock without waiters.
const FREE: usize = READ;
/// Times that a thread polls for readers, and polls of each.
const SPINS: usize = if cfg!(loom) { 1 } else { 10 };
const POLLS: usize = if cfg!(loom) { 1 } else { 1_000 };

/// The lock.
#[derive(Debug)]
pub struct TurnstileLatch {
    word: CachePadded<AtomicUsize>,
    /// The processor on which the writer took the lock.
    processor: CachePadded<AtomicUsize>,
    turnstile: CachePadded<Turnstile>,
    waiters: Waiters,
}

/// The threads that sleep.
#[derive(Debug, Default)]
struct Turnstile {
    lock: Word,
    readers: Queue,
    writers: Queue,
}

/// The next step of a thread that could not take the lock.
enum Next {
    /// Looks at the word again.
    Again,
    /// Goes to the turnstile.
    Sleep,
}

impl TurnstileLatch {
    #[inline]
    fn exchange(&self, from: usize, to: usize, ordering: Ordering, me: &mut Caller) -> bool {
        // Relaxed on failure: looked at again.
        let done = self.word.compare_exchange(from, to, ordering, Ordering::Relaxed).is_ok();
        if !done {
            me.retried();
        }
        done
    }

    /// Polls while a writer holds the lock and runs. False if there is none that runs.
    fn spin_for_writer(&self, seen: usize) -> bool {
        let owner = seen / ONE;
        // Relaxed, here and below: hints.
        let runs = || running::is_running(owner, self.processor.load(Ordering::Relaxed));
        if seen & READ != 0 || !runs() {
            return false;
        }
        let poll = || {
            let now = self.word.load(Ordering::Relaxed);
            if now & READ != 0 || now / ONE != owner {
                return Some(true);
            }
            if !runs() {
                return Some(false);
            }
            spin_loop();
            None
        };
        let polls = || (0..SPINS * POLLS).find_map(|_| poll());
        profile::wait(&"rwlock, polling", polls).unwrap_or(false)
    }

    /// Polls until `changed` holds for the word.
    fn spin_for_readers(&self, changed: impl Fn(usize) -> bool) -> bool {
        let polls = || {
            (0..POLLS).any(|_| {
                spin_loop();
                // Relaxed: a hint.
                changed(self.word.load(Ordering::Relaxed))
            })
        };
        profile::wait(&"rwlock, polling", polls)
    }

    fn wait_shared(&self, seen: usize, spins: &mut usize) -> Next {
        if seen & READ == 0 {
            return if self.spin_for_writer(seen) { Next::Again } else { Next::Sleep };
        }
        while *spins < SPINS {
            *spins += 1;
            if self.spin_for_readers(|now| now & READ == 0 || can_read(now)) {
                return Next::Again;
            }
        }
        Next::Sleep
    }

    fn wait_exclusive(&self, seen: usize, spins: &mut usize, me: &mut Caller) -> Next {
        if seen & READ == 0 {
            return if self.spin_for_writer(seen) { Next::Again } else { Next::Sleep };
        }
        if seen / ONE == 0 || *spins >= SPINS {
            return Next::Sleep;
        }
        // Relaxed: the flag publishes nothing else.
        if seen & WRITE_SPINNER == 0 && !self.exchange(seen, seen | WRITE_SPINNER, Ordering::Relaxed, me) {
            return Next::Again;
        }
        *spins += 1;
        self.spin_for_readers(|now| now & WRITE_SPINNER == 0);
        Next::Again
    }

    /// Sleeps in the turnstile if the lock is still held against `mode`. True if the thread has
    /// taken the lock instead.
    fn sleep(&self, mode: Mode, me: &mut Caller) -> bool {
        let Turnstile { lock, readers, writers } = &*self.turnstile;
        let held = lock.lock(me, &"turnstile");
        // Relaxed: the exchanges decide.
        let seen = self.word.load(Ordering::Relaxed);
        let flag = match mode {
            Mode::Shared if can_read(seen) => return false,
            Mode::Shared => READ_WAITERS,
            // Free, though others sleep or spin. The spinner's flag goes, those of sleepers stay.
            Mode::Exclusive if seen & !(WAITERS | WRITE_SPINNER) == FREE => {
                let own = writer(me) | (seen & WAITERS);
                // Acquire: what the last holder wrote is seen.
                return self.exchange(seen, own, Ordering::Acquire, me);
            }
            Mode::Exclusive => WRITE_WAITERS,
        };
        // Relaxed: the flag publishes nothing else.
        if seen & flag == 0 && !self.exchange(seen, seen | flag, Ordering::Relaxed, me) {
            return false;
        }
        let queue = if mode == Mode::Shared { readers } else { writers };
        self.waiters.enter(queue, me, mode as usize);
        drop(held);
        self.waiters.sleep(me, &"rwlock, asleep");
        running::note(me.number());
        false
    }

    /// Opens the lock for the last holder, whose part of the word is `own`, if others wait.
    #[cold]
    fn open(&self, own: usize, me: &mut Caller) -> bool {
        let Turnstile { lock, readers, writers } = &*self.turnstile;
        let held = lock.lock(me, &"turnstile");
        // Relaxed: the flags of waiters change under the turnstile's lock.
        let flags = self.word.load(Ordering::Relaxed) & (WAITERS | WRITE_SPINNER);
        let (queue, left) = match flags & WRITE_WAITERS {
            0 => (readers, FREE),
            _ => (writers, FREE | (flags & READ_WAITERS)),
        };
        // Release: the next holder sees what this one wrote.
        if !self.exchange(own | flags, left, Ordering::Release, me) {
            return false;
        }
        let chain = self.waiters.take_all(queue);
        drop(held);
        self.waiters.wake(chain);
        true
    }
}

/// Whether a new reader may come in.
#[inline]
fn can_read(word: usize) -> bool {
    word & (READ | WRITE_WAITERS | WRITE_SPINNER) == READ
}

/// The word of a lock that this thread holds exclusively, without flags.
#[inline]
fn writer(me: &Caller) -> usize {
    me.number() * ONE
}

impl HeldLatch for TurnstileLatch {
    fn new(threads: usize) -> Self {
        Self {
            word: CachePadded::new(AtomicUsize::new(FREE)),
            processor: CachePadded::default(),
            turnstile: CachePadded::default(),
            waiters: Waiters::new(threads),
        }
    }

    fn lock_shared(&self, me: &mut Caller) {
        running::note(me.number());
        let mut spins = 0;
        loop {
            // Relaxed: the exchange decides.
            let seen = self.word.load(Ordering::Relaxed);
            if can_read(seen) {
                // Acquire: what the last writer wrote is seen.
                if self.exchange(seen, seen + ONE, Ordering::Acquire, me) {
                    return;
                }
            } else if matches!(self.wait_shared(seen, &mut spins), Next::Sleep) {
                self.sleep(Mode::Shared, me);
            }
        }
    }

    fn unlock_shared(&self, me: &mut Caller) {
        loop {
            // Relaxed: the exchange decides.
            let seen = self.word.load(Ordering::Relaxed);
            let done = if seen / ONE > 1 {
                // Release: a writer sees that this reader has read.
                self.exchange(seen, seen - ONE, Ordering::Release, me)
            } else if seen & WAITERS == 0 {
                // Release: as above. The spinner's flag goes, and the spinner sees it go.
                self.exchange(seen, FREE, Ordering::Release, me)
            } else {
                self.open(READ | ONE, me)
            };
            if done {
                return;
            }
        }
    }

    fn lock(&self, me: &mut Caller) {
        let processor = running::note(me.number());
        let own = writer(me);
        let mut spins = 0;
        // Acquire: what the last holder wrote is seen.
        while !self.exchange(FREE, own, Ordering::Acquire, me) {
            // Relaxed: the exchanges decide.
            let seen = self.word.load(Ordering::Relaxed);
            let next = self.wait_exclusive(seen, &mut spins, me);
            if matches!(next, Next::Sleep) && self.sleep(Mode::Exclusive, me) {
                break;
            }
        }
        // Relaxed: a hint for waiters.
        self.processor.store(processor, Ordering::Relaxed);
    }

    fn unlock(&self, me: &mut Caller) {
        let own = writer(me);
        // Release: the next holder sees what this one wrote.
        while !self.exchange(own, FREE, Ordering::Release, me) {
            if self.open(own, me) {
                return;
            }
        }
    }

    fn shares(&self, _: &mut Caller) -> u32 {
        // Relaxed: a count.
        let seen = self.word.load(Ordering::Relaxed);
        if seen & READ != 0 { (seen / ONE) as u32 } else { 0 }
    }
}
