//! Tests of the lock table's rules: conflicts, order, hand-over.

use super::*;
use sync::Mutex;

#[derive(Default)]
struct Granted(Mutex<Vec<u32>>);

impl Grants for Granted {
    fn granted(&self, slot: u32) {
        self.0.lock().push(slot);
    }
}

impl Granted {
    fn take(&self) -> Vec<u32> {
        std::mem::take(&mut self.0.lock())
    }
}

const ROW: TagRef<'static> = TagRef::Row(7, b"key");
const UPDATE: u8 = 3;
const SHARE: u8 = 1;
const KEY_SHARE: u8 = 0;
const NO_KEY_UPDATE: u8 = 2;

/// Not counted: the profiler is off.
fn site() -> Site {
    Site::here(&"test", Kind::Acquire)
}

fn ask(locks: &LockTable, slot: u32, mode: u8) -> Request {
    locks.request(site(), (ROW, ROW.hash()), slot, mode, Some(Waker::noop().clone()))
}

fn is_queued(request: &Request) -> bool {
    matches!(request, Request::Queued(_))
}

#[test]
fn conflicts_are_symmetric_and_as_documented() {
    for tag in [ROW, TagRef::Table(1), TagRef::Advisory(AdvisoryKey { database: 1, key: 1, class: 1 })] {
        let modes = match tag {
            TagRef::Row(..) => 5,
            TagRef::Table(_) => 8,
            TagRef::Advisory(_) => 2,
        };
        for a in 0..modes {
            for b in 0..modes {
                assert_eq!(tag.conflicts(a) >> b & 1, tag.conflicts(b) >> a & 1, "{tag:?} {a} {b}");
            }
        }
    }
    assert_eq!(ROW.conflicts(KEY_SHARE), 1 << UPDATE | 1 << OWN_DELETE);
    // ACCESS SHARE conflicts with ACCESS EXCLUSIVE alone; SHARE with ROW EXCLUSIVE but not with
    // itself.
    assert_eq!(TagRef::Table(1).conflicts(0), 1 << 7);
    assert_eq!(TagRef::Table(1).conflicts(4) & (1 << 4 | 1 << 2), 1 << 2);
}

#[test]
fn key_share_passes_a_claim_and_then_excludes_it() {
    let (locks, granted) = (LockTable::new(), Granted::default());
    assert!(matches!(ask(&locks, 1, UPDATE), Request::Granted(_)));
    assert!(is_queued(&ask(&locks, 2, KEY_SHARE)));
    locks.claim(ROW, 1, UPDATE, &granted);
    assert_eq!(granted.take(), [2]);
    assert!(matches!(ask(&locks, 3, KEY_SHARE), Request::Granted(_)));
    for mode in [SHARE, NO_KEY_UPDATE, UPDATE] {
        assert!(locks.must_wait(ROW, ROW.hash(), 4, mode));
    }
    assert!(is_queued(&ask(&locks, 4, UPDATE)));
    // The claimant goes before later sessions, and waits only for those that passed it.
    assert!(is_queued(&ask(&locks, 1, UPDATE)));
    let mut blockers = Vec::new();
    locks.blockers(ROW, 1, UPDATE, &mut blockers);
    assert_eq!(blockers, [2, 3]);
    locks.release(ROW, 2, Lsn::ZERO, &granted);
    assert!(granted.take().is_empty());
    locks.release(ROW, 3, Lsn::ZERO, &granted);
    assert_eq!(granted.take(), [1]);
    assert!(locks.must_wait(ROW, ROW.hash(), 3, KEY_SHARE));
    locks.release(ROW, 1, Lsn::ZERO, &granted);
    assert_eq!(granted.take(), [4]);
    locks.claim(ROW, 4, UPDATE, &granted);
    locks.release(ROW, 4, Lsn::ZERO, &granted);
    locks.for_each(|tag, slot, modes, _| panic!("{tag:?} {slot} {modes}"));
}

#[test]
fn a_rows_writer_passes_the_claims_of_its_waiters() {
    let (locks, granted) = (LockTable::new(), Granted::default());
    for claimant in [1, 2] {
        assert!(matches!(ask(&locks, claimant, KEY_SHARE), Request::Granted(_)));
        locks.claim(ROW, claimant, KEY_SHARE, &granted);
    }
    assert!(locks.must_wait(ROW, ROW.hash(), 3, UPDATE));
    assert!(!locks.must_wait(ROW, ROW.hash(), 4, OWN_DELETE));
    assert!(matches!(ask(&locks, 4, OWN_DELETE), Request::Granted(_)));
    // The claimants get the mode they claim once the writer has ended, before later sessions.
    assert!(is_queued(&ask(&locks, 3, UPDATE)));
    assert!(is_queued(&ask(&locks, 1, KEY_SHARE)));
    locks.release(ROW, 4, Lsn::ZERO, &granted);
    assert_eq!(granted.take(), [1]);
    assert!(matches!(ask(&locks, 2, KEY_SHARE), Request::Granted(_)));
    locks.release(ROW, 1, Lsn::ZERO, &granted);
    assert!(granted.take().is_empty());
    locks.release(ROW, 2, Lsn::ZERO, &granted);
    assert_eq!(granted.take(), [3]);
    locks.release(ROW, 3, Lsn::ZERO, &granted);
    locks.for_each(|tag, slot, modes, _| panic!("{tag:?} {slot} {modes}"));
}

#[test]
fn exclusive_locks_go_over_in_order_of_arrival() {
    let (locks, granted) = (LockTable::new(), Granted::default());
    assert!(matches!(ask(&locks, 0, UPDATE), Request::Granted(_)));
    for slot in 1..100 {
        assert!(is_queued(&ask(&locks, slot, UPDATE)));
    }
    for slot in 0..99 {
        locks.release(ROW, slot, Lsn::ZERO, &granted);
        assert_eq!(granted.take(), [slot + 1]);
    }
    assert!(locks.may_be_locked(ROW.hash()));
    locks.release(ROW, 99, Lsn::ZERO, &granted);
    assert!(!locks.may_be_locked(ROW.hash()) && granted.take().is_empty());
}

#[test]
fn shared_locks_are_granted_together_and_new_row_requests_pass_waiters() {
    let (locks, granted) = (LockTable::new(), Granted::default());
    ask(&locks, 0, UPDATE);
    for slot in 1..4 {
        assert!(is_queued(&ask(&locks, slot, SHARE)));
    }
    assert!(is_queued(&ask(&locks, 4, NO_KEY_UPDATE)));
    locks.release(ROW, 0, Lsn::ZERO, &granted);
    assert_eq!(granted.take(), [1, 2, 3]);
    assert!(!locks.must_wait(ROW, ROW.hash(), 5, SHARE));
    assert!(matches!(ask(&locks, 5, SHARE), Request::Granted(_)), "the writer that waits is passed");
    assert!(matches!(ask(&locks, 6, KEY_SHARE), Request::Granted(_)), "key share bothers nobody here");
    for slot in 1..5 {
        assert!(granted.take().is_empty());
        locks.release(ROW, if slot == 4 { 5 } else { slot }, Lsn::ZERO, &granted);
    }
    assert_eq!(granted.take(), [4]);
    assert!(is_queued(&ask(&locks, 7, SHARE)), "who holds it is not passed");
}

#[test]
fn new_table_requests_queue_behind_waiters_unless_they_may_pass() {
    let (locks, granted) = (LockTable::new(), Granted::default());
    let table = TagRef::Table(1);
    let (access_share, access_exclusive) = (0, 7);
    let ask =
        |slot, mode| locks.request(site(), (table, table.hash()), slot, mode, Some(Waker::noop().clone()));
    ask(0, access_share);
    assert!(is_queued(&ask(1, access_exclusive)));
    assert!(is_queued(&ask(2, access_share)) && is_queued(&ask(3, access_exclusive)));
    let mut blockers = Vec::new();
    locks.blockers(table, 2, access_share, &mut blockers);
    assert_eq!(blockers, [0]);
    assert!(locks.stands_behind(table, 2, access_share, 0));
    assert!(!locks.stands_behind(table, 1, access_exclusive, 0), "it conflicts itself");
    assert!(!locks.stands_behind(table, 9, access_share, 0), "it does not wait");
    locks.pass(table, 3, &granted);
    assert!(granted.take().is_empty(), "the first in the queue still conflicts");
    locks.pass(table, 2, &granted);
    assert_eq!(granted.take(), [2]);
    blockers.clear();
    locks.blockers(table, 2, access_share, &mut blockers);
    assert!(blockers.is_empty(), "granted, it waits for nobody");
    locks.release(table, 0, Lsn::ZERO, &granted);
    locks.release(table, 2, Lsn::ZERO, &granted);
    assert_eq!(granted.take(), [3]);
}

#[test]
fn a_holder_that_wants_more_goes_first() {
    let (locks, granted) = (LockTable::new(), Granted::default());
    ask(&locks, 0, SHARE);
    ask(&locks, 1, SHARE);
    assert!(is_queued(&ask(&locks, 2, UPDATE)));
    assert!(is_queued(&ask(&locks, 0, UPDATE)));
    let mut blockers = Vec::new();
    locks.blockers(ROW, 2, UPDATE, &mut blockers);
    assert_eq!(blockers, [0, 1, 0]);
    locks.release(ROW, 1, Lsn::ZERO, &granted);
    assert_eq!(granted.take(), [0]);
    locks.release(ROW, 0, Lsn::ZERO, &granted);
    assert_eq!(granted.take(), [2]);
}

#[test]
fn a_long_queue_waits_for_its_holder_and_not_for_each_other() {
    let locks = LockTable::new();
    for slot in 0..100 {
        ask(&locks, slot, if slot == 50 { SHARE } else { UPDATE });
    }
    let mut blockers = Vec::new();
    locks.blockers(ROW, 50, SHARE, &mut blockers);
    locks.blockers(ROW, 99, UPDATE, &mut blockers);
    assert_eq!(blockers, [0, 0]);
}

#[test]
fn a_deletion_of_ones_own_version_waits_for_key_share_alone_and_first() {
    let (locks, granted) = (LockTable::new(), Granted::default());
    ask(&locks, 0, UPDATE);
    assert!(is_queued(&ask(&locks, 1, KEY_SHARE)));
    assert!(!locks.must_wait(ROW, ROW.hash(), 9, OWN_DELETE), "they wait for the one who deletes");
    locks.release(ROW, 0, Lsn::ZERO, &granted);
    assert!(locks.must_wait(ROW, ROW.hash(), 9, OWN_DELETE));
    assert!(is_queued(&ask(&locks, 2, UPDATE)));
    assert!(is_queued(&ask(&locks, 9, OWN_DELETE)));
    granted.take();
    locks.release(ROW, 1, Lsn::ZERO, &granted);
    assert_eq!(granted.take(), [9, 2]);
}

#[test]
fn a_holder_that_wants_more_waits_for_the_deleter_before_it() {
    let (locks, granted) = (LockTable::new(), Granted::default());
    // Two hold the row for its keys. One of them wants to update it. Then the row's writer wants to
    // delete it.
    ask(&locks, 1, KEY_SHARE);
    ask(&locks, 2, KEY_SHARE);
    assert!(is_queued(&ask(&locks, 1, UPDATE)));
    assert!(is_queued(&ask(&locks, 9, OWN_DELETE)));
    let blockers = |slot, mode| {
        let mut blockers = Vec::new();
        locks.blockers(ROW, slot, mode, &mut blockers);
        blockers.sort_unstable();
        blockers
    };
    locks.release(ROW, 2, Lsn::ZERO, &granted);
    assert!(granted.take().is_empty(), "the first in the queue waits for the second one");
    assert_eq!((blockers(9, OWN_DELETE), blockers(1, UPDATE)), (vec![1], vec![9]));
    assert!(locks.stands_behind(ROW, 1, UPDATE, 9));
    locks.pass(ROW, 1, &granted);
    assert_eq!(granted.take(), [1]);
}

#[test]
fn a_waiter_that_leaves_lets_later_ones_through() {
    let (locks, granted) = (LockTable::new(), Granted::default());
    let table = TagRef::Table(1);
    let (share, exclusive) = (4, 7);
    let request = |slot, mode, waker| locks.request(site(), (table, table.hash()), slot, mode, waker);
    let ask = |slot, mode| request(slot, mode, Some(Waker::noop().clone()));
    ask(0, share);
    ask(1, exclusive);
    ask(2, share);
    locks.leave(table, 1, &granted);
    assert_eq!(granted.take(), [2]);
    locks.leave(table, 1, &granted);
    assert!(granted.take().is_empty());
    assert_eq!(request(3, exclusive, None), Request::Refused);
    let must_wait = |mode| locks.must_wait(table, table.hash(), 3, mode);
    assert!(must_wait(exclusive) && !must_wait(share));
}

#[test]
fn adopted_locks_are_held_and_listed() {
    let (locks, granted) = (LockTable::new(), Granted::default());
    let table = TagRef::Table(16384);
    locks.adopt(table, 5, 0b101, || true);
    locks.adopt(table, 6, 0b101, || false);
    let queued = locks.request(site(), (table, table.hash()), 1, 7, Some(Waker::noop().clone()));
    assert!(is_queued(&queued));
    let mut listed = Vec::new();
    locks.for_each(|tag, slot, modes, granted| listed.push((tag.clone(), slot, modes, granted)));
    assert_eq!(listed, [(Tag::Table(16384), 5, 0b101, true), (Tag::Table(16384), 1, 0b1000_0000, false)]);
    locks.release(table, 5, Lsn::ZERO, &granted);
    assert_eq!(granted.take(), [1]);
}

#[test]
fn the_highest_commit_of_former_holders_is_kept() {
    let (locks, granted) = (LockTable::new(), Granted::default());
    assert_eq!(locks.released(ROW.hash()), Lsn::ZERO);
    for (known, expected) in [(50, 50), (70, 70), (60, 70)] {
        ask(&locks, 0, UPDATE);
        assert!(is_queued(&ask(&locks, 1, UPDATE)));
        locks.release(ROW, 0, Lsn(known), &granted);
        assert_eq!((granted.take(), locks.released(ROW.hash())), (vec![1], Lsn(expected)));
        locks.release(ROW, 1, Lsn::ZERO, &granted);
        assert!(!locks.may_be_locked(ROW.hash()));
    }
}
