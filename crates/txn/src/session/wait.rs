//! Waiting for locks and for transactions to end.
//!
//! What must hold:
//!
//! 1. The slot expects a grant before the request can be queued. So a grant that comes at once is
//!    not lost.
//! 2. A wait that ends with an error has left its queue. If it was granted meanwhile, the lock is
//!    given up again.
//! 3. A session that will lock or change a row takes the row's lock before it waits for the row's
//!    writer. So later sessions queue behind it. An insert waits for the writer alone.
//! 4. It looks at the row once more after it has registered with the writer. The writer may have
//!    put the row back before, and then wakes nobody.
//! 5. A wait that goes on searches for deadlocks again and again, at most [`LONGEST_PAUSE`] apart.
//!    A search that a change hides a circle from is not the last one.
//! 6. The new holder of a lock hears of the commits that its former holder knew.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use runtime::timer::{self, TimerId};
use runtime::wait_event::{self, WaitEvent};
use runtime::{fiber, interrupt};
use storage::Lsn;
use storage::btree::Tree;
use sync::park;
use sync::profile::{self, Kind, Site};

use super::{Inner, RowLock, Wait};
use crate::locks::{Request, Tag, TagRef};
use crate::slots::Target;
use crate::status::Status;
use crate::{Error, Stamp};

/// How long a session waits before it searches for a deadlock, if none is expected and no
/// `deadlock_timeout` is set. Most waits end earlier.
const FIRST_SEARCH: Duration = Duration::from_millis(10);

/// Time until a search is tried again that another session's search prevented.
const SEARCH_AGAIN: Duration = Duration::from_micros(200);

/// Longest time between two searches of one wait; the time doubles up to this. A circle that
/// changed during a search may have hidden another.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Outcome of a request for a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Acquired {
    /// Held, and not held in this mode before.
    New,
    /// Held in this mode before.
    Before,
    /// Another session holds it, and the caller does not want to wait.
    Refused,
}

/// A version of a row whose writer was running when it was seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Running {
    pub stamp: Stamp,
    /// The slot of the writer's session.
    pub owner: u32,
}

/// The events that can come due during a wait.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Due {
    Nothing,
    Search,
    Limit,
}

/// The timers of one wait, on this core. Dropping it cancels them.
struct Alarm {
    due: Rc<Cell<Due>>,
    search: Cell<TimerId>,
    limit: Option<TimerId>,
}

impl Alarm {
    fn set(due: &Rc<Cell<Due>>, what: Due, time: Duration) -> TimerId {
        let (due, waker) = (Rc::clone(due), park::current());
        timer::after(time, move || {
            // Both may come due before the fiber runs: the limit counts.
            if due.get() != Due::Limit {
                due.set(what);
            }
            waker.wake();
        })
    }

    fn new(due: Due, search: Duration, limit: Option<Duration>) -> Alarm {
        let due = Rc::new(Cell::new(due));
        let search = Cell::new(Alarm::set(&due, Due::Search, search));
        let limit = limit.map(|limit| Alarm::set(&due, Due::Limit, limit));
        Alarm { due, search, limit }
    }

    fn search_again(&self, time: Duration) {
        timer::cancel(self.search.get());
        self.search.set(Alarm::set(&self.due, Due::Search, time));
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        timer::cancel(self.search.get());
        self.limit.into_iter().for_each(timer::cancel);
    }
}

/// The wait event that `pg_stat_activity` shows for a wait on this lock.
fn kind(tag: TagRef<'_>) -> WaitEvent {
    match tag {
        TagRef::Row(..) => WaitEvent::Tuple,
        TagRef::Table(_) => WaitEvent::Relation,
        TagRef::Advisory(_) => WaitEvent::Advisory,
    }
}

impl Inner {
    /// Takes a lock that the end of the transaction gives up.
    #[track_caller]
    pub(super) fn lock_tag(&self, tag: TagRef<'_>, mode: u8, wait: Wait) -> Result<Acquired, Error> {
        let (acquired, own) = self.request(Site::here(tag.class(), Kind::Acquire), tag, mode, wait)?;
        self.held.borrow_mut().extend(own.map(|own| (own, mode)));
        Ok(acquired)
    }

    /// Takes a lock that the caller must give up.
    #[track_caller]
    pub(super) fn lock_tag_unlisted(&self, tag: TagRef<'_>, mode: u8, wait: Wait) -> Result<Acquired, Error> {
        let site = Site::here(tag.class(), Kind::Acquire);
        self.request(site, tag, mode, wait).map(|(acquired, _)| acquired)
    }

    /// Asks for a lock and waits for it if necessary. Returns the tag if the lock is new, or new in
    /// this mode.
    fn request(
        &self,
        site: Site,
        tag: TagRef<'_>,
        mode: u8,
        wait: Wait,
    ) -> Result<(Acquired, Option<Tag>), Error> {
        let slot = self.slot();
        slot.expect_grant();
        let (locks, slots) = (&self.engine.locks, &self.engine.slots);
        let waker = (wait == Wait::Block).then(park::current);
        let hash = tag.hash();
        let request = locks.request(site, (tag, hash), self.number.get(), mode, waker);
        let acquired = match request {
            Request::Granted(own) => (Acquired::New, Some(own)),
            Request::Held => (Acquired::Before, None),
            Request::Refused => return Ok((Acquired::Refused, None)),
            Request::Queued(own) => {
                slot.begin_wait(Target::Lock(own.clone(), mode));
                let waited = wait_event::during(kind(tag), || {
                    self.block(|| locks.leave(tag, self.number.get(), slots))
                });
                slot.end_wait();
                if waited.is_err() && slot.is_granted() {
                    // It was granted while the session gave up.
                    locks.release_modes(tag, (self.number.get(), 1 << mode), self.known(), slots);
                }
                waited?;
                (Acquired::New, Some(own))
            }
        };
        self.hear(locks.released(hash));
        Ok(acquired)
    }

    /// The highest commit that this session knows. The next holder of a lock it gives up must see
    /// that commit.
    pub(super) fn known(&self) -> Lsn {
        self.seen.get().max(self.heard.get())
    }

    /// Gives up modes of an explicit lock before the transaction ends: those that were taken only
    /// to wait, as a mask. Modes that the transaction held before stay.
    pub(super) fn unlock_tag(&self, tag: TagRef<'_>, modes: u8) {
        let mut held = self.held.borrow_mut();
        for mode in (0..u8::BITS as u8).filter(|mode| modes >> mode & 1 != 0) {
            // The newest entry or close to it, so a million older ones cost nothing.
            let at = held.iter().rposition(|(held, of)| *of == mode && held.as_ref() == tag);
            at.map(|at| held.swap_remove(at));
        }
        drop(held);
        self.engine.locks.release_modes(tag, (self.number.get(), modes), self.known(), &self.engine.slots);
    }

    /// Takes the row's lock, then waits for the row's writer. The wait ends when the writer has
    /// ended or has put another version there, also by going back to a savepoint. Later sessions
    /// queue behind this one, except for FOR KEY SHARE if the writer leaves the row's keys as they
    /// are.
    pub(super) fn wait_for_writer(
        &self,
        (tree, key): (&Tree, &[u8]),
        lock: RowLock,
        running: Running,
    ) -> Result<Acquired, Error> {
        let tag = TagRef::Row(tree.id, key);
        let acquired = self.lock_tag(tag, lock as u8, Wait::Block)?;
        // FOR KEY SHARE is a claim too: its writer may still delete the row.
        let claims = lock == RowLock::KeyShare || lock == RowLock::Update && !running.stamp.holds_keys();
        let waited = match claims {
            false => self.wait_for_end(tree, key, running),
            true => {
                self.engine.locks.claim(tag, self.number.get(), lock as u8, &self.engine.slots);
                // A session that passed meanwhile goes first.
                let waited = self.wait_for_end(tree, key, running);
                let again = Site::here(tag.class(), Kind::Reacquire);
                waited.and_then(|()| self.request(again, tag, lock as u8, Wait::Block).map(drop))
            }
        };
        if let Err(error) = waited {
            if acquired == Acquired::New {
                self.unlock_tag(tag, 1 << lock as u8);
            }
            return Err(error);
        }
        Ok(acquired)
    }

    pub(super) fn wait_for_end(&self, tree: &Tree, key: &[u8], running: Running) -> Result<(), Error> {
        let Running { stamp: Stamp { txid, .. }, owner } = running;
        let (slot, owner_slot) = (self.slot(), self.engine.slots.get(owner));
        slot.expect_grant();
        let finished = || self.engine.status.get(txid) != Status::Running(owner);
        if !owner_slot.await_end(self.number.get(), park::current(), finished) {
            return Ok(());
        }
        // The owner may have put the row back (to a savepoint) since the look at it. An earlier
        // version of its own may be there now, with which the lock need not conflict. It may have
        // woken those that were in the queue by then. From here on it wakes this session too.
        let is_there = |value: &[u8]| Stamp::decode(value) == Some(running.stamp);
        match tree.get(self.engine.store(), key, is_there) {
            Ok(Some(true)) => {}
            other => {
                owner_slot.leave_end(self.number.get());
                other?;
                // The caller looks again, however often that happens.
                return interrupt::check().map_err(Error::from);
            }
        }
        slot.begin_wait(Target::End(owner, txid, TagRef::Row(tree.id, key).to_tag()));
        let leave = || owner_slot.leave_end(self.number.get());
        let waited = profile::wait(&"transaction end", || {
            wait_event::during(WaitEvent::TransactionId, || self.block(leave))
        });
        slot.end_wait();
        waited?;
        if let Status::Committed(lsn) = self.engine.status.get(txid) {
            self.hear(lsn);
        }
        Ok(())
    }

    /// Parks until the wait is granted. On an error, `leave` has taken the session out of its
    /// queue; a grant may have come before that.
    fn block(&self, leave: impl Fn()) -> Result<(), Error> {
        let own = self.limits.deadlock_timeout();
        let at_once = own.is_none() && self.engine.expects_deadlock();
        let first = if at_once { Due::Search } else { Due::Nothing };
        let alarm = Alarm::new(first, own.unwrap_or(FIRST_SEARCH), self.limits.lock_timeout());
        let (mut pause, mut short) = (FIRST_SEARCH, true);
        let waited = loop {
            if self.slot().is_granted() {
                return Ok(());
            }
            match alarm.due.replace(Due::Nothing) {
                Due::Nothing => {}
                Due::Limit => break Err(Error::LockTimeout),
                Due::Search => match self.engine.search_deadlock(self.number.get(), &leave) {
                    Some(true) => return Err(Error::Deadlock),
                    Some(false) => {
                        if std::mem::take(&mut short) {
                            // The wait is a long one: the fiber need not keep the stack pages that
                            // evaluation used so far.
                            fiber::shed_stack();
                        }
                        alarm.search_again(pause);
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                    None => alarm.search_again(SEARCH_AGAIN),
                },
            }
            if let Err(interrupted) = interrupt::park() {
                break Err(interrupted.into());
            }
        };
        leave();
        waited
    }

    /// Waits until every commit up to `lsn` is in the status table. This takes as long as other
    /// cores' unfinished copies into the log.
    pub(super) fn wait_filled(&self, lsn: Lsn) {
        while self.engine.store().wal().filled() < lsn {
            fiber::yield_now();
        }
    }
}
