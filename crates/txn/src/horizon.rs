//! The horizon's keeper: works out, now and then, below which transaction number everything is finished and seen by
//! everybody, and has what is only needed above it recycled.
//!
//! Each tick it starts a short task on every core (raise the core's floor, give empty undo pages back: [`announce`]), and
//! moves the horizon over all transactions that ended before the oldest snapshot in use. A number that an idle core holds
//! unused is taken away when it stands in the way for a whole tick.
//!
//! [`announce`]: crate::announce

use std::fmt;
use std::sync::Arc;
use std::sync::{OnceLock, Weak};
use std::time::Duration;

use runtime::fiber;
use storage::Lsn;
use sync::atomic::{AtomicU64, Ordering};

use crate::Engine;
use crate::status::Status;

/// Time between ticks while there is something to do: what a dead row version may outlive its last reader by.
const TICK: Duration = Duration::from_millis(20);
/// Time between looks while nothing happens.
const IDLE_TICK: Duration = Duration::from_millis(100);
/// Time between looks at who keeps the log, and how many times the checkpoint distance it may be.
const LOOK: Duration = Duration::from_secs(1);
const KEPT_DISTANCES: u64 = 4;
/// A horizon that has not moved for this long is told of.
const HELD: Duration = Duration::from_secs(60);
/// Transactions between two chances for others to run.
const STEPS: u64 = 4096;

/// What the keeper remembers between ticks.
#[derive(Default)]
struct Progress {
    /// The number that stopped the horizon last time.
    stuck: Option<u64>,
    /// Nothing is left to do since the horizon caught up.
    settled: bool,
    /// When it is looked again who keeps the log, and of which transaction that has been said.
    next_look: u64,
    told: u64,
    /// The transaction that was last ended for the log it keeps.
    ended: u64,
    /// Where the horizon stood at the last look, since when, and whether it has been said who holds it there.
    stood: u64,
    since: u64,
    holder_told: bool,
}

/// The limit on the log that open transactions keep, and its enforcement.
pub(crate) struct RetainedLimit {
    bytes: AtomicU64,
    end_session: OnceLock<EndSession>,
}

/// Tells the session of a number to end; whether there is one.
type EndSession = Box<dyn Fn(u32) -> bool + Send + Sync>;

impl Default for RetainedLimit {
    fn default() -> Self {
        Self { bytes: AtomicU64::new(u64::MAX), end_session: OnceLock::new() }
    }
}

/// The transaction that keeps the most log: recovery would need it to take the transaction back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeptLog {
    /// Its session, as [`crate::TxnSession::set_label`] named it.
    pub session: u32,
    /// Its number.
    pub txid: u64,
    /// How long ago it began to write.
    pub age: Duration,
    /// The log since then.
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

/// Starts the keeper; it ends with the engine.
pub fn start(engine: &Arc<Engine>) {
    let keeper = Arc::downgrade(engine);
    engine.store.runtime.spawn(0, move || {
        let mut progress = Progress::default();
        while let Some(engine) = keeper.upgrade().filter(|engine| !engine.is_closed()) {
            let busy = engine.tick(&keeper, &mut progress);
            drop(engine);
            fiber::sleep(if busy { TICK } else { IDLE_TICK });
        }
    });
}

impl Engine {
    /// One round. Says whether there was anything to do.
    fn tick(&self, keeper: &Weak<Engine>, progress: &mut Progress) -> bool {
        let caught_up = self.horizon() == self.txids.end();
        // One more round after catching up: cores give back what the last step of the horizon freed.
        if caught_up && std::mem::replace(&mut progress.settled, true) {
            return false;
        }
        progress.settled = caught_up;
        self.raise_floors(keeper);
        self.advance_horizon(&mut progress.stuck);
        self.tell_of_kept_log(progress);
        true
    }

    /// Says once of a transaction that it keeps far more log than there is between checkpoints.
    fn tell_of_kept_log(&self, progress: &mut Progress) {
        let now = runtime::time::now();
        if now < progress.next_look {
            return;
        }
        progress.next_look = now + LOOK.as_nanos() as u64;
        self.tell_of_held_horizon(progress, now);
        let Some(kept) = self.kept_log() else { return };
        if kept.txid != progress.told
            && kept.bytes > KEPT_DISTANCES * self.store.wal.options().checkpoint_bytes
        {
            progress.told = kept.txid;
            log::warn!("{kept}");
        }
        // Relaxed: a limit that changes counts from some look on.
        if kept.bytes > self.retained.bytes.load(Ordering::Relaxed) {
            self.end_for_kept_log(&kept, progress);
        }
    }

    /// Says once who has held the horizon where it stands.
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

    /// The session that holds back the horizon: whose transaction is the oldest that runs, else whose snapshot is the
    /// oldest in use. None where nobody does.
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

    /// Has the session of a transaction ended that keeps more log than it may. Asks again at each look: a session that
    /// commits meanwhile takes no notice.
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

    /// The most log an open transaction may keep from being let go; `end_session` is how the session of this number is told
    /// to end when its transaction keeps more, and says whether there is one. It is set once.
    pub fn limit_retained_log(&self, bytes: u64, end_session: impl Fn(u32) -> bool + Send + Sync + 'static) {
        // Relaxed: as above.
        self.retained.bytes.store(bytes, Ordering::Relaxed);
        let _ = self.retained.end_session.set(Box::new(end_session));
    }

    /// Who keeps the most log from being let go: the transaction that began to write first of all that run. Not one that is
    /// taken back beside its session: to end the session would end nothing of it.
    pub fn kept_log(&self) -> Option<KeptLog> {
        // Relaxed: information only.
        let staying = self.slots.iter().filter(|(_, slot)| !slot.leaving.load(Ordering::Relaxed));
        let (_, slot) = staying.min_by_key(|(_, slot)| slot.first_lsn())?;
        let first = slot.first_lsn();
        let age = runtime::time::now().saturating_sub(slot.logging_since());
        // Read after the rest: a transaction that has ended meanwhile has none.
        let bytes = self.store.wal.position().0.checked_sub(first)?;
        // Relaxed: information only.
        let session = slot.label.load(Ordering::Relaxed);
        Some(KeptLog { session, txid: slot.txid(), age: Duration::from_nanos(age), bytes })
    }

    /// Has every core raise its floor. The floors count from the next look on: nobody waits here.
    fn raise_floors(&self, keeper: &Weak<Engine>) {
        for core in 0..self.store.runtime.worker_count() {
            let keeper = keeper.clone();
            self.store.runtime.spawn(core, move || {
                if let Some(engine) = keeper.upgrade() {
                    engine.floors.raise(core, &engine.published);
                    engine.undo.shrink(&engine.store, core, engine.horizon());
                }
            });
        }
    }

    fn advance_horizon(&self, stuck: &mut Option<u64>) {
        // Not beyond what is on disk: who sees a version below the horizon doesn't ask whose commit it depends on.
        let durable = self.store.wal.durable();
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
            // Release: who sees the horizon sees the outcomes below it as they are given back.
            self.horizon.store(horizon, Ordering::Release);
            self.status.release(start, horizon);
        }
    }
}
