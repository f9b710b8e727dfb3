//! Wait events: a session's fiber names the event before it parks, and any core can read it.
//!
//! The event is kept with the session's interrupt. The fiber writes it twice, on the way into a
//! wait and out of it. A session that does not wait pays nothing. Names are PostgreSQL's where it
//! has the same wait.

use crate::interrupt::{self, Interrupt};

/// The event that a session waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum WaitEvent {
    /// The end of a transaction that wrote a row.
    TransactionId = 1,
    /// The lock of a row.
    Tuple = 2,
    /// The lock of a table.
    Relation = 3,
    /// An advisory lock.
    Advisory = 4,
    /// The read of a page.
    DataFileRead = 5,
    /// The read of a page that another fiber has begun.
    BufferIo = 6,
    /// A free frame, which the page writer makes.
    FreeFrame = 7,
    /// The extension of a data file.
    DataFileExtend = 8,
    /// The write and sync of the log.
    WalSync = 9,
    /// Another session, which writes and syncs the log.
    WalWrite = 10,
    /// A new segment of the log.
    WalInit = 11,
    /// Data from the client.
    ClientRead = 12,
    /// The client, until it takes data.
    ClientWrite = 13,
    /// A time, as pg_sleep does.
    Sleep = 14,
    /// Its turn on the core, after its time slice was used up.
    Turn = 15,
    /// Nothing: the session runs and has held its core for longer than the watchdog's limit
    /// (1 s). The reader of `pg_stat_activity` computes this event; the session never stores it.
    Held = 16,
    /// The latch of a page, or the end of changes to it.
    PageLatch = 17,
    /// A spin lock that a thread holds which has lost its processor.
    SpinLock = 18,
    /// Memory for the statement, until another one has given some back.
    Memory = 19,
    /// Another session, which logs the next values of a sequence.
    Sequence = 20,
    /// The end of autovacuum's round.
    Autovacuum = 21,
}

impl WaitEvent {
    const ALL: [WaitEvent; 21] = [
        WaitEvent::TransactionId,
        WaitEvent::Tuple,
        WaitEvent::Relation,
        WaitEvent::Advisory,
        WaitEvent::DataFileRead,
        WaitEvent::BufferIo,
        WaitEvent::FreeFrame,
        WaitEvent::DataFileExtend,
        WaitEvent::WalSync,
        WaitEvent::WalWrite,
        WaitEvent::WalInit,
        WaitEvent::ClientRead,
        WaitEvent::ClientWrite,
        WaitEvent::Sleep,
        WaitEvent::Turn,
        WaitEvent::Held,
        WaitEvent::PageLatch,
        WaitEvent::SpinLock,
        WaitEvent::Memory,
        WaitEvent::Sequence,
        WaitEvent::Autovacuum,
    ];

    /// The event that the session of this interrupt waits for now; `None` when it runs.
    pub fn of(interrupt: &Interrupt) -> Option<WaitEvent> {
        WaitEvent::from_code(interrupt.wait_event())
    }

    fn from_code(code: u8) -> Option<WaitEvent> {
        WaitEvent::ALL.into_iter().find(|wait_event| *wait_event as u8 == code)
    }

    /// Its kind and name, as pg_stat_activity shows them.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            WaitEvent::TransactionId => ("Lock", "transactionid"),
            WaitEvent::Tuple => ("Lock", "tuple"),
            WaitEvent::Relation => ("Lock", "relation"),
            WaitEvent::Advisory => ("Lock", "advisory"),
            WaitEvent::DataFileRead => ("IO", "DataFileRead"),
            WaitEvent::BufferIo => ("IPC", "BufferIo"),
            WaitEvent::FreeFrame => ("IPC", "FreeFrame"),
            WaitEvent::DataFileExtend => ("IO", "DataFileExtend"),
            WaitEvent::WalSync => ("IO", "WalSync"),
            WaitEvent::WalWrite => ("LWLock", "WALWrite"),
            WaitEvent::WalInit => ("IO", "WalInitWrite"),
            WaitEvent::ClientRead => ("Client", "ClientRead"),
            WaitEvent::ClientWrite => ("Client", "ClientWrite"),
            WaitEvent::Sleep => ("Timeout", "PgSleep"),
            WaitEvent::Turn => ("Core", "Turn"),
            WaitEvent::Held => ("Core", "Held"),
            WaitEvent::PageLatch => ("LWLock", "BufferContent"),
            WaitEvent::SpinLock => ("Timeout", "SpinDelay"),
            WaitEvent::Memory => ("IPC", "MemoryReservation"),
            WaitEvent::Sequence => ("IPC", "SequenceRecord"),
            WaitEvent::Autovacuum => ("IPC", "AutovacuumEnd"),
        }
    }
}

/// Puts back what was said before, in whatever way the wait ends.
struct Until(u8);

impl Drop for Until {
    fn drop(&mut self) {
        say(self.0);
    }
}

/// Runs `wait`, in which the running fiber's session waits for this. A fiber without a session says
/// nothing.
pub fn during<R>(wait_event: WaitEvent, wait: impl FnOnce() -> R) -> R {
    let _until = Until(say(wait_event as u8));
    wait()
}

/// As [`during`], unless the session waits for something already: then that stays.
pub(crate) fn during_else<R>(wait_event: WaitEvent, wait: impl FnOnce() -> R) -> R {
    let says =
        interrupt::with_obeyed(|interrupt| interrupt.is_some_and(|interrupt| interrupt.wait_event() != 0));
    if says { wait() } else { during(wait_event, wait) }
}

/// Says what the running fiber's session waits for; gives what it said before.
fn say(code: u8) -> u8 {
    interrupt::with_obeyed(|interrupt| interrupt.map_or(0, |interrupt| interrupt.set_wait_event(code)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use sync::SpinLock;
    use sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::{Options, Runtime, fiber};

    /// Waits until the session of this interrupt shows this event.
    fn until(interrupt: &Interrupt, expected: Option<WaitEvent>) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while WaitEvent::of(interrupt) != expected {
            assert!(Instant::now() < deadline, "{:?}, not {expected:?}", WaitEvent::of(interrupt));
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_session_shows_that_it_spins_or_yields_over_a_latch() {
        let runtime = Runtime::start(Options { cores: Some(1), pin: false, ..Options::default() }).unwrap();
        let (interrupt, lock) = (Interrupt::new(), Arc::new(SpinLock::new(&"test", ())));
        let over = Arc::new(AtomicBool::new(false));
        let (own, own_lock, own_over) = (interrupt.clone(), lock.clone(), over.clone());
        let held = lock.lock();
        runtime.spawn(0, move || {
            fiber::obey(Some(own));
            drop(own_lock.lock());
            while !own_over.load(Ordering::Acquire) {
                during(WaitEvent::PageLatch, fiber::yield_now);
            }
        });
        until(&interrupt, Some(WaitEvent::SpinLock));
        drop(held);
        until(&interrupt, Some(WaitEvent::PageLatch));
        for _ in 0..100 {
            let seen = WaitEvent::of(&interrupt);
            assert!(matches!(seen, None | Some(WaitEvent::PageLatch)), "{seen:?}: the yield hides the latch");
        }
        over.store(true, Ordering::Release);
        until(&interrupt, None);
    }

    #[test]
    fn a_spin_within_a_wait_shows_the_wait() {
        let runtime = Runtime::start(Options { cores: Some(1), pin: false, ..Options::default() }).unwrap();
        let (interrupt, lock) = (Interrupt::new(), Arc::new(SpinLock::new(&"test", ())));
        let (own, own_lock) = (interrupt.clone(), lock.clone());
        let held = lock.lock();
        runtime.spawn(0, move || {
            fiber::obey(Some(own));
            during(WaitEvent::PageLatch, || drop(own_lock.lock()));
        });
        until(&interrupt, Some(WaitEvent::PageLatch));
        for _ in 0..100 {
            assert_eq!(WaitEvent::of(&interrupt), Some(WaitEvent::PageLatch));
            std::thread::sleep(Duration::from_micros(100));
        }
        drop(held);
        until(&interrupt, None);
    }

    #[test]
    fn a_code_stands_for_one_wait() {
        for wait_event in WaitEvent::ALL {
            assert_eq!(WaitEvent::from_code(wait_event as u8), Some(wait_event));
        }
        assert_eq!(WaitEvent::from_code(0), None);
    }
}
