//! Random schedules of interleaved transactions against a model: the list of all committed states
//! and, for each open transaction, its own changes by savepoint.
//!
//! The model says what each session sees, which write succeeds, and which one fails because of a
//! newer commit. A write that would wait for another session's lock is left out. A failure prints
//! the seed and the shortest schedule that fails; `ALLCORE_MODEL_SEED` repeats it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use crate::common::{Bench, table, text};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use txn::{Direction, Engine, Error, InsertOutcome, Isolation, Outcome, Range, SavepointId, TxnSession};

/// Schedules of one run: about 3 s in a debug build.
const CASES: u32 = 1000;
const SESSIONS: usize = 3;
/// Keys of a schedule: few, so that sessions meet.
const KEYS: u8 = 6;

/// A step of one session.
#[derive(Clone, Debug)]
enum Step {
    Begin { repeatable: bool },
    Insert(u8, usize),
    Update(u8, usize),
    Delete(u8),
    Savepoint,
    RollbackTo(usize),
    Release(usize),
    Read,
    Commit,
    Rollback,
    Vacuum,
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![4 => 0..40_usize, 1 => 900..1100_usize];
    prop_oneof![
        4 => any::<bool>().prop_map(|repeatable| Step::Begin { repeatable }),
        4 => (0..KEYS, length.clone()).prop_map(|(key, length)| Step::Insert(key, length)),
        4 => (0..KEYS, length).prop_map(|(key, length)| Step::Update(key, length)),
        2 => (0..KEYS).prop_map(Step::Delete),
        2 => Just(Step::Savepoint),
        1 => (0..4_usize).prop_map(Step::RollbackTo),
        1 => (0..4_usize).prop_map(Step::Release),
        4 => Just(Step::Read),
        2 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        1 => Just(Step::Vacuum),
    ]
}

type Schedule = Vec<(usize, Step)>;
type Rows = BTreeMap<u8, String>;
/// Changes by key: the new row, or None for a deletion.
type Changes = BTreeMap<u8, Option<String>>;

/// An open transaction of the model.
struct Open {
    isolation: Isolation,
    /// The committed state that a repeatable read transaction sees.
    snapshot: usize,
    /// The transaction's changes up to each savepoint and after the last one.
    changes: Vec<Changes>,
    savepoints: Vec<SavepointId>,
    /// Keys whose locks the session may hold.
    touched: BTreeSet<u8>,
}

impl Open {
    /// The transaction's own change of a key, the newest one.
    fn own(&self, key: u8) -> Option<&Option<String>> {
        self.changes.iter().rev().find_map(|changes| changes.get(&key))
    }
}

/// The committed states, oldest first, and the state that last changed each key.
struct Committed {
    states: Vec<Rows>,
    changed: BTreeMap<u8, usize>,
}

impl Committed {
    fn newest(&self) -> &Rows {
        &self.states[self.states.len() - 1]
    }

    fn commit(&mut self, open: Open) {
        let mut rows = self.newest().clone();
        for (key, row) in open.changes.into_iter().flatten() {
            match row {
                Some(row) => rows.insert(key, row),
                None => rows.remove(&key),
            };
            self.changed.insert(key, self.states.len());
        }
        self.states.push(rows);
    }

    /// The rows that a transaction sees.
    fn seen(&self, open: &Open) -> Rows {
        let base = match open.isolation {
            Isolation::RepeatableRead => &self.states[open.snapshot],
            _ => self.newest(),
        };
        let mut rows = base.clone();
        for (key, row) in open.changes.iter().flatten() {
            match row {
                Some(row) => rows.insert(*key, row.clone()),
                None => rows.remove(key),
            };
        }
        rows
    }

    /// Whether a commit after the transaction's snapshot changed the key.
    fn is_newer(&self, open: &Open, key: u8) -> bool {
        open.isolation == Isolation::RepeatableRead
            && open.own(key).is_none()
            && self.changed.get(&key).is_some_and(|changed| *changed > open.snapshot)
    }
}

/// One schedule on a range of keys of its own.
struct Play<'a> {
    engine: &'a Arc<Engine>,
    prefix: String,
    sessions: Vec<TxnSession>,
    open: Vec<Option<Open>>,
    committed: Committed,
    /// Numbers the rows, so that no two are alike.
    rows: usize,
}

impl<'a> Play<'a> {
    fn new(engine: &'a Arc<Engine>, number: u32) -> Play<'a> {
        Play {
            engine,
            prefix: format!("{number:06}-"),
            sessions: (0..SESSIONS).map(|_| engine.session().expect("a session")).collect(),
            open: (0..SESSIONS).map(|_| None).collect(),
            committed: Committed { states: vec![Rows::new()], changed: BTreeMap::new() },
            rows: 0,
        }
    }

    fn key(&self, key: u8) -> Vec<u8> {
        format!("{}{key}", self.prefix).into_bytes()
    }

    fn row(&mut self, length: usize) -> String {
        self.rows += 1;
        format!("{}{}", self.rows, "x".repeat(length))
    }

    /// All rows of the schedule as the session sees them, in a statement of their own.
    fn read(&self, session: &TxnSession) -> Result<Rows, Error> {
        session.statement_start()?;
        let upper = format!("{}~", self.prefix);
        let range = Range {
            lower: Bound::Included(self.prefix.as_bytes()),
            upper: Bound::Excluded(upper.as_bytes()),
        };
        let mut scan = session.scan(&table(), range, Direction::Forward);
        let mut rows = Rows::new();
        while let Some((key, row, _)) = scan.next(session)? {
            rows.insert(key[key.len() - 1] - b'0', text(row));
        }
        Ok(rows)
    }

    /// Whether another session may hold the key's lock, for which a write would wait.
    fn would_wait(&self, at: usize, key: u8) -> bool {
        let others = self.open.iter().enumerate().filter(|(other, _)| *other != at);
        others.filter_map(|(_, open)| open.as_ref()).any(|open| open.touched.contains(&key))
    }

    fn step(&mut self, at: usize, step: &Step) -> Result<(), TestCaseError> {
        match step {
            Step::Begin { repeatable } => self.begin(at, *repeatable)?,
            Step::Vacuum => drop(self.engine.vacuum(&table()).expect("a vacuum")),
            _ if self.open[at].is_none() => {}
            Step::Insert(key, _) | Step::Update(key, _) | Step::Delete(key) if self.would_wait(at, *key) => {}
            Step::Insert(key, length) => self.insert(at, *key, *length)?,
            Step::Update(key, length) => self.replace(at, *key, Some(*length))?,
            Step::Delete(key) => self.replace(at, *key, None)?,
            Step::Savepoint => {
                let savepoint = self.sessions[at].savepoint();
                let open = self.open[at].as_mut().expect("open");
                open.savepoints.push(savepoint);
                open.changes.push(Changes::new());
            }
            Step::RollbackTo(index) => self.rollback_to(at, *index)?,
            Step::Release(index) => self.release(at, *index)?,
            Step::Read => {
                let found = self.read(&self.sessions[at]);
                let expected = self.committed.seen(self.open[at].as_ref().expect("open"));
                prop_assert_eq!(found, Ok(expected));
            }
            Step::Commit => {
                self.sessions[at].commit(true).expect("commits");
                let open = self.open[at].take().expect("open");
                self.committed.commit(open);
            }
            Step::Rollback => self.rollback(at),
        }
        Ok(())
    }

    fn begin(&mut self, at: usize, repeatable: bool) -> Result<(), TestCaseError> {
        if self.open[at].is_some() {
            return Ok(());
        }
        let isolation = if repeatable { Isolation::RepeatableRead } else { Isolation::ReadCommitted };
        self.sessions[at].begin(isolation, false);
        let snapshot = self.committed.states.len() - 1;
        let (changes, savepoints, touched) = (vec![Changes::new()], Vec::new(), BTreeSet::new());
        self.open[at] = Some(Open { isolation, snapshot, changes, savepoints, touched });
        // The snapshot of a repeatable read transaction is that of its first statement.
        prop_assert_eq!(self.read(&self.sessions[at]), Ok(self.committed.newest().clone()));
        Ok(())
    }

    fn rollback(&mut self, at: usize) {
        self.sessions[at].rollback().expect("rolls back");
        self.open[at] = None;
    }

    fn note(&mut self, at: usize, key: u8, row: Option<String>) {
        let open = self.open[at].as_mut().expect("open");
        open.changes.last_mut().expect("one at least").insert(key, row);
    }

    fn insert(&mut self, at: usize, key: u8, length: usize) -> Result<(), TestCaseError> {
        let row = self.row(length);
        self.open[at].as_mut().expect("open").touched.insert(key);
        let session = &self.sessions[at];
        session.statement_start().expect("starts");
        let outcome = session.insert(&table(), &self.key(key), row.as_bytes());
        let open = self.open[at].as_ref().expect("open");
        let is_live = match open.own(key) {
            Some(own) => own.is_some(),
            None => self.committed.newest().contains_key(&key),
        };
        if is_live {
            prop_assert_eq!(outcome, Ok(InsertOutcome::Duplicate));
        } else if self.committed.is_newer(open, key) && self.committed.seen(open).contains_key(&key) {
            prop_assert_eq!(outcome, Err(Error::Serialization));
            self.rollback(at);
        } else {
            prop_assert_eq!(outcome, Ok(InsertOutcome::Done));
            self.note(at, key, Some(row));
        }
        Ok(())
    }

    /// An update to a row of this length, or a deletion.
    fn replace(&mut self, at: usize, key: u8, length: Option<usize>) -> Result<(), TestCaseError> {
        if !self.committed.seen(self.open[at].as_ref().expect("open")).contains_key(&key) {
            return Ok(());
        }
        let row = length.map(|length| self.row(length));
        self.open[at].as_mut().expect("open").touched.insert(key);
        let session = &self.sessions[at];
        session.statement_start().expect("starts");
        let seen = session.get(&table(), &self.key(key), &mut Vec::new()).expect("reads");
        let seen = seen.ok_or_else(|| TestCaseError::fail(format!("{key} is not seen")))?;
        let outcome = match &row {
            Some(row) => session.update(&table(), &self.key(key), seen, row.as_bytes()),
            None => session.delete(&table(), &self.key(key), seen),
        };
        let open = self.open[at].as_ref().expect("open");
        if self.committed.is_newer(open, key) {
            let since = &self.committed.states[open.snapshot..];
            if since.iter().all(|rows| rows.contains_key(&key)) {
                // One transaction may have deleted the row and put another one in its place.
                let refused = matches!(outcome, Err(Error::Serialization | Error::ConcurrentDelete));
                prop_assert!(refused, "{outcome:?}");
            } else {
                prop_assert_eq!(outcome, Err(Error::ConcurrentDelete));
            }
            self.rollback(at);
        } else {
            prop_assert_eq!(outcome, Ok(Outcome::Done));
            self.note(at, key, row);
        }
        Ok(())
    }

    fn rollback_to(&mut self, at: usize, index: usize) -> Result<(), TestCaseError> {
        let open = self.open[at].as_mut().expect("open");
        let Some(savepoint) = open.savepoints.get(index).copied() else { return Ok(()) };
        prop_assert_eq!(self.sessions[at].rollback_to(savepoint), Ok(()));
        // The savepoint stays.
        open.savepoints.truncate(index + 1);
        open.changes.truncate(index + 1);
        open.changes.push(Changes::new());
        Ok(())
    }

    fn release(&mut self, at: usize, index: usize) -> Result<(), TestCaseError> {
        let open = self.open[at].as_mut().expect("open");
        let Some(savepoint) = open.savepoints.get(index).copied() else { return Ok(()) };
        prop_assert_eq!(self.sessions[at].release(savepoint), Ok(()));
        open.savepoints.truncate(index);
        let released: Vec<Changes> = open.changes.drain(index + 1..).collect();
        open.changes[index].extend(released.into_iter().flatten());
        Ok(())
    }

    /// Ends the open transactions and compares the committed rows with the model's.
    fn end(mut self) -> Result<(), TestCaseError> {
        for at in 0..SESSIONS {
            if self.open[at].is_some() {
                self.rollback(at);
            }
        }
        self.sessions[0].begin(Isolation::ReadCommitted, false);
        prop_assert_eq!(self.read(&self.sessions[0]), Ok(self.committed.newest().clone()));
        self.sessions[0].commit(true).expect("commits");
        Ok(())
    }
}

#[test]
fn each_session_sees_and_writes_what_the_model_says() {
    let seed = match std::env::var("ALLCORE_MODEL_SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        Err(_) => runtime::time::precise(),
    };
    Bench::new("model").run(|engine| {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        let bytes = [seed.to_le_bytes(); 4].concat();
        let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
        let mut runner = TestRunner::new_with_rng(config, random);
        let number = std::cell::Cell::new(0);
        let schedules = prop::collection::vec((0..SESSIONS, step()), 1..80);
        let outcome = runner.run(&schedules, |schedule: Schedule| {
            number.set(number.get() + 1);
            let mut play = Play::new(engine, number.get());
            schedule.iter().try_for_each(|(at, step)| play.step(*at, step))?;
            play.end()
        });
        if let Err(error) = outcome {
            panic!("ALLCORE_MODEL_SEED={seed}: {error}");
        }
    });
}
