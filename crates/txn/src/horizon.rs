//! The horizon's keeper. It computes, now and then, the transaction number below which every
//! transaction has ended and everybody sees its outcome. Undo and dead versions below it are
//! recycled.
//!
//! Each tick it starts a short task on every core, which raises the core's floor and gives empty
//! undo pages back ([`announce`]). Then it moves the horizon over all transactions that ended
//! before the oldest snapshot in use. An idle core may hold an unused number; the keeper takes the
//! number away when it stands in the way for a whole tick.
//!
//! [`announce`]: crate::announce

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use runtime::fiber;
use storage::Lsn;
use sync::atomic::Ordering;

use crate::Engine;
use crate::status::Status;

/// Time between ticks while there is work. A dead row version outlives its last reader by about
/// this.
const TICK: Duration = Duration::from_millis(20);
/// Time between ticks while nothing happens.
const IDLE_TICK: Duration = Duration::from_millis(100);
/// Time between two looks for transactions that keep the log.
const LOOK: Duration = Duration::from_secs(1);
/// A transaction that keeps more log than this many checkpoint distances is logged.
const KEPT_DISTANCES: u64 = 4;
/// A horizon that stands still for this long is logged.
const HELD: Duration = Duration::from_secs(60);
/// Transactions between two yields.
const STEPS: u64 = 4096;

/// The keeper's state between ticks.
#[derive(Default)]
struct Progress {
    /// The number at which the horizon stopped last time.
    stuck: Option<u64>,
    /// Whether nothing is left to do since the horizon caught up.
    settled: bool,
    /// Time of the next look for transactions that keep the log.
    next_look: u64,
    /// The transaction that was logged last because of the log it keeps.
    told: u64,
    /// The transaction that the keeper ended last because of the log it keeps.
    ended: u64,
    /// The horizon at the last look.
    stood: u64,
    /// Time since which the horizon has had the value `stood`.
    since: u64,
    /// Whether the log names its holder already.
    holder_told: bool,
}

/// The transaction that keeps the most log. Recovery would need that log to undo the transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeptLog {
    /// Its session, as [`crate::TxnSession::set_label`] named it.
    pub session: u32,
    /// Its transaction number.
    pub txid: u64,
    /// Time since its first change.
    pub age: Duration,
    /// Bytes of log since its first change.
    pub bytes: u64,
}

impl fmt::Display for KeptLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the transaction of session {} has been open for {} s and keeps {} MiB of log from being let go: \
             end it, or the log will fill the disk",
            self.session,
            self.age.as_secs(),
            self.bytes >> 20
        )
    }
}

/// Starts the keeper, which ends with the engine.
pub fn start(engine: &Arc<Engine>) {
    let keeper = Arc::downgrade(engine);
    engine.store().runtime().spawn(0, move || {
        let mut progress = Progress::default();
        while let Some(engine) = keeper.upgrade().filter(|engine| !engine.is_closed()) {
            let busy = engine.tick(&keeper, &mut progress);
            drop(engine);
            fiber::sleep(if busy { TICK } else { IDLE_TICK });
        }
    });
}

impl Engine {
    /// One tick. Returns whether there was work.
    fn tick(&self, keeper: &Weak<Engine>, progress: &mut Progress) -> bool {
        let caught_up = self.horizon() == self.txids.end();
        // One more tick after catching up: cores give back what the last step of the horizon freed.
        if caught_up && std::mem::replace(&mut progress.settled, true) {
            return false;
        }
        progress.settled = caught_up;
        self.raise_floors(keeper);
        self.advance_horizon(&mut progress.stuck);
        self.tell_of_kept_log(progress);
        true
    }

    /// Logs, once for each transaction, that it keeps far more log than lies between two
    /// checkpoints.
    fn tell_of_kept_log(&self, progress: &mut Progress) {
        let now = runtime::time::now();
        if now < progress.next_look {
            return;
        }
        progress.next_look = now + LOOK.as_nanos() as u64;
        self.tell_of_held_horizon(progress, now);
        let Some(kept) = self.kept_log() else { return };
        if kept.txid != progress.told
            && kept.bytes > KEPT_DISTANCES * self.store().wal().options().checkpoint_bytes
        {
            progress.told = kept.txid;
            log::warn!("{kept}");
        }
        // Relaxed: a changed limit takes effect at one of the next looks.
        if kept.bytes > self.retained.bytes.load(Ordering::Relaxed) {
            self.end_for_kept_log(&kept, progress);
        }
    }

    /// Logs once which session holds the horizon where it stands.
    fn tell_of_held_horizon(&self, progress: &mut Progress, now: u64) {
        let horizon = self.horizon();
        if std::mem::replace(&mut progress.stood, horizon) != horizon {
            progress.since = now;
            progress.holder_told = false;
        }
        let stood = Duration::from_nanos(now.saturating_sub(progress.since));
        if stood < HELD || std::mem::replace(&mut progress.holder_told, true) {
            return;
        }
        if let Some(session) = self.horizon_holder() {
            log::warn!(
                "session {session} has held back the horizon for {} s: what was deleted or replaced since then \
                 cannot be removed before its transaction ends",
                stood.as_secs()
            );
        }
    }

    /// The session that holds back the horizon: the one with the oldest running transaction, else
    /// the one with the oldest snapshot in use. `None` if no session does.
    pub fn horizon_holder(&self) -> Option<u32> {
        let horizon = self.horizon();
        let oldest_writer =
            self.slots.iter().map(|(_, slot)| slot).find(|slot| slot.txid() == horizon && horizon != 0);
        let oldest_reader = || {
            let readers = self.slots.iter().filter_map(|(_, slot)| Some((slot.floor.get()?, slot)));
            readers.min_by_key(|(floor, _)| *floor).map(|(_, slot)| slot)
        };
        // Relaxed: information only.
        oldest_writer.or_else(oldest_reader).map(|slot| slot.label.load(Ordering::Relaxed))
    }

    /// Ends the session of a transaction that keeps more log than the limit. Asks again at each
    /// look, because a session that commits meanwhile ignores the request.
    #[cold]
    fn end_for_kept_log(&self, kept: &KeptLog, progress: &mut Progress) {
        let told = self.retained.end_session.get().is_some_and(|end| end(kept.session));
        if told && kept.txid != progress.ended {
            progress.ended = kept.txid;
            log::warn!(
                "session {} is ended: its transaction has been open for {} s and keeps {} MiB of log, more than \
                 max_retained_log",
                kept.session,
                kept.age.as_secs(),
                kept.bytes >> 20
            );
        }
    }

    /// Limits the log that one open transaction may keep. `end_session` asks the session with this
    /// label to end and returns whether there is one; it is set once.
    pub fn limit_retained_log(&self, bytes: u64, end_session: impl Fn(u32) -> bool + Send + Sync + 'static) {
        // Relaxed: as above.
        self.retained.bytes.store(bytes, Ordering::Relaxed);
        let _ = self.retained.end_session.set(Box::new(end_session));
    }

    /// The transaction that keeps the most log: of all running ones, the one with the first change.
    /// A transaction whose rollback has left its session does not count, because ending the session
    /// would not end it.
    pub fn kept_log(&self) -> Option<KeptLog> {
        // Relaxed: information only.
        let staying = self.slots.iter().filter(|(_, slot)| !slot.leaving.load(Ordering::Relaxed));
        let (_, slot) = staying.min_by_key(|(_, slot)| slot.first_lsn())?;
        let first = slot.first_lsn();
        let age = runtime::time::now().saturating_sub(slot.logging_since());
        // Read last: a transaction that has ended meanwhile has no first LSN.
        let bytes = self.store().wal().position().0.checked_sub(first)?;
        // Relaxed: information only.
        let session = slot.label.load(Ordering::Relaxed);
        Some(KeptLog { session, txid: slot.txid(), age: Duration::from_nanos(age), bytes })
    }

    /// Has every core raise its floor. The new floors count from the next tick on, so nobody waits
    /// here.
    fn raise_floors(&self, keeper: &Weak<Engine>) {
        for core in 0..self.store().runtime().worker_count() {
            let keeper = keeper.clone();
            self.store().runtime().spawn(core, move || {
                if let Some(engine) = keeper.upgrade() {
                    engine.floors.raise(core, &engine.published);
                    engine.undo.shrink(engine.store(), core, engine.horizon());
                }
            });
        }
    }

    fn advance_horizon(&self, stuck: &mut Option<u64>) {
        // Not beyond the durable log: a reader of a version below the horizon does not ask on whose
        // commit it depends.
        let durable = self.store().wal().durable();
        let oldest = Lsn(self.floors.oldest(self.slots.iter().map(|(_, slot)| &slot.floor))).min(durable);
        let (start, end) = (self.horizon(), self.txids.end());
        let mut horizon = start;
        while horizon < end {
            match self.status.get(horizon) {
                Status::Committed(lsn) | Status::Aborted(lsn) if lsn <= oldest => horizon += 1,
                Status::Old if *stuck == Some(horizon) => match self.txids.take_rest(horizon) {
                    Some(unused) => unused.for_each(|txid| self.status.set(txid, Status::Aborted(Lsn::ZERO))),
                    None => break,
                },
                Status::Old | Status::Running(_) | Status::Committed(_) | Status::Aborted(_) => break,
            }
            if horizon.is_multiple_of(STEPS) {
                fiber::safe_point();
            }
        }
        *stuck = Some(horizon);
        if horizon > start {
            // First the words, since numbers are handed out by the distance to the horizon.
            self.status.release(start, horizon);
            // Release: a reader of the horizon sees the outcomes below it as they are given back.
            self.horizon.store(horizon, Ordering::Release);
        }
    }
}
