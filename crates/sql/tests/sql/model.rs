//! Random schedules of INSERT, UPDATE, DELETE and SELECT, with transactions and savepoints, against
//! a `BTreeMap`.
//!
//! The table has a secondary index and values long enough to lie out of line. Each SELECT runs by
//! primary key, by index and as a count. Another session must see committed rows only. A failure
//! prints the seed and the shortest schedule that fails; `ALLCORE_MODEL_SEED` repeats it.

use std::cell::Cell;
use std::collections::BTreeMap;

use crate::common::{Folder, close_sound, run};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use sql::database::Database;
use sql::embedded::EmbeddedSession;

/// Schedules of one run: about 2 s in a debug build.
const CASES: u32 = 150;
const KEYS: i32 = 30;
/// Length of a note that lies out of line.
const LONG: usize = 4000;

#[derive(Clone, Debug)]
enum Step {
    Begin,
    Commit,
    Rollback,
    Savepoint(usize),
    RollbackTo(usize),
    Release(usize),
    Insert { keys: Vec<i32>, value: i32, long: bool },
    Upsert { key: i32, value: i32 },
    Add { from: i32, to: i32, by: i32 },
    Note { from: i32, to: i32, long: bool },
    Move { from: i32, to: i32 },
    Delete { from: i32, to: i32 },
    DeleteByValue(i32),
    Select { from: i32, to: i32 },
    Peek,
}

fn step() -> impl Strategy<Value = Step> {
    let (key, value) = (0..KEYS, 0..10_i32);
    let range = (key.clone(), key.clone());
    let keys = prop::collection::vec(key.clone(), 1..4);
    prop_oneof![
        3 => Just(Step::Begin),
        2 => Just(Step::Commit),
        1 => Just(Step::Rollback),
        2 => (0..3_usize).prop_map(Step::Savepoint),
        2 => (0..3_usize).prop_map(Step::RollbackTo),
        1 => (0..3_usize).prop_map(Step::Release),
        6 => (keys, value.clone(), any::<bool>())
            .prop_map(|(keys, value, long)| Step::Insert { keys, value, long }),
        2 => (key.clone(), value.clone()).prop_map(|(key, value)| Step::Upsert { key, value }),
        3 => (range.clone(), 1..3_i32).prop_map(|((from, to), by)| Step::Add { from, to, by }),
        2 => (range.clone(), any::<bool>()).prop_map(|((from, to), long)| Step::Note { from, to, long }),
        2 => range.clone().prop_map(|(from, to)| Step::Move { from, to }),
        2 => range.clone().prop_map(|(from, to)| Step::Delete { from, to }),
        1 => value.prop_map(Step::DeleteByValue),
        4 => range.prop_map(|(from, to)| Step::Select { from, to }),
        1 => Just(Step::Peek),
    ]
}

/// A row by its key: the value and the note.
type Rows = BTreeMap<i32, (i32, String)>;

/// The transaction of the session under test.
enum Block {
    None,
    Open,
    /// A statement failed: all others fail until the end, or until a savepoint.
    Failed,
}

struct Model {
    committed: Rows,
    rows: Rows,
    block: Block,
    /// Savepoints by number, with the rows at each.
    savepoints: Vec<(usize, Rows)>,
}

impl Model {
    /// Ends the transaction with these rows.
    fn end(&mut self, rows: Rows) {
        self.committed.clone_from(&rows);
        self.rows = rows;
        self.block = Block::None;
        self.savepoints.clear();
    }

    /// Takes over the rows of a statement that succeeded.
    fn become_rows(&mut self, rows: Rows) {
        match self.block {
            Block::None => self.end(rows),
            _ => self.rows = rows,
        }
    }

    /// The transaction after a statement that failed.
    fn fail(&mut self) {
        if matches!(self.block, Block::Open) {
            self.block = Block::Failed;
        }
    }
}

fn note(value: i32, long: bool) -> String {
    format!("{value}").repeat(if long { LONG } else { 3 })
}

struct Play {
    session: EmbeddedSession,
    other: EmbeddedSession,
    table: String,
    model: Model,
}

impl Play {
    fn new(database: &Database, number: u32) -> Play {
        let mut session = database.session("postgres", 0).expect("a session");
        let table = format!("t{number}");
        run(
            &mut session,
            &format!(
                "CREATE TABLE {table} (id int PRIMARY KEY, v int, note text); CREATE INDEX ON {table} (v)"
            ),
        );
        let model =
            Model { committed: Rows::new(), rows: Rows::new(), block: Block::None, savepoints: Vec::new() };
        let other = database.session("postgres", 0).expect("a session");
        Play { session, other, table, model }
    }

    /// Runs a statement. `expected` is the SQLSTATE of its failure, or the rows after its success.
    fn change(&mut self, sql: &str, expected: Result<Rows, &str>) -> Result<(), TestCaseError> {
        let expected = match self.model.block {
            Block::Failed => Err("25P02"),
            _ => expected,
        };
        let outcome = self.session.run(sql).map(drop).map_err(|error| error.code.as_str().to_owned());
        prop_assert_eq!(
            &outcome,
            &expected.as_ref().map(|_| ()).map_err(|code| (*code).to_owned()),
            "{}",
            sql
        );
        match expected {
            Ok(rows) => self.model.become_rows(rows),
            Err(_) => self.model.fail(),
        }
        Ok(())
    }

    fn step(&mut self, step: &Step) -> Result<(), TestCaseError> {
        let table = self.table.clone();
        match step {
            Step::Begin if matches!(self.model.block, Block::None) => {
                run(&mut self.session, "BEGIN");
                self.model.block = Block::Open;
            }
            Step::Commit | Step::Rollback if !matches!(self.model.block, Block::None) => self.end(step),
            Step::Savepoint(_) | Step::RollbackTo(_) | Step::Release(_) => self.savepoint(step)?,
            Step::Begin | Step::Commit | Step::Rollback => {}
            Step::Insert { keys, value, long } => self.insert(keys, *value, *long)?,
            Step::Upsert { key, value } => {
                let mut rows = self.model.rows.clone();
                rows.entry(*key).or_insert_with(|| (0, note(*value, false))).0 = *value;
                let sql = format!(
                    "INSERT INTO {table} VALUES ({key}, {value}, '{}') \
                     ON CONFLICT (id) DO UPDATE SET v = excluded.v",
                    note(*value, false)
                );
                self.change(&sql, Ok(rows))?;
            }
            Step::Add { from, to, by } => {
                let change = |row: &mut (i32, String)| row.0 += by;
                self.update(&format!("v = v + {by}"), (*from, *to), change)?;
            }
            Step::Note { from, to, long } => {
                let text = note(*to, *long);
                let change = |row: &mut (i32, String)| row.1.clone_from(&text);
                self.update(&format!("note = '{text}'"), (*from, *to), change)?;
            }
            Step::Move { from, to } => self.move_row(*from, *to)?,
            Step::Delete { from, to } => {
                let mut rows = self.model.rows.clone();
                rows.retain(|key, _| !(*from..=*to).contains(key));
                self.change(&format!("DELETE FROM {table} WHERE id BETWEEN {from} AND {to}"), Ok(rows))?;
            }
            Step::DeleteByValue(value) => {
                let mut rows = self.model.rows.clone();
                rows.retain(|_, row| row.0 != *value);
                self.change(&format!("DELETE FROM {table} WHERE v = {value}"), Ok(rows))?;
            }
            Step::Select { from, to } => self.select(*from, *to)?,
            Step::Peek => {
                let found = rows_of(&mut self.other, &format!("SELECT * FROM {table} ORDER BY id"))?;
                prop_assert_eq!(found, self.model.committed.clone(), "another session sees committed rows");
            }
        }
        Ok(())
    }

    fn end(&mut self, step: &Step) {
        let commits = matches!((step, &self.model.block), (Step::Commit, Block::Open));
        run(&mut self.session, if matches!(step, Step::Commit) { "COMMIT" } else { "ROLLBACK" });
        let rows = if commits { self.model.rows.clone() } else { self.model.committed.clone() };
        self.model.end(rows);
    }

    fn savepoint(&mut self, step: &Step) -> Result<(), TestCaseError> {
        if matches!(self.model.block, Block::None) {
            return Ok(());
        }
        let failed = matches!(self.model.block, Block::Failed);
        let find = |model: &Model, name: usize| model.savepoints.iter().rposition(|(one, _)| *one == name);
        let (sql, expected) = match step {
            Step::Savepoint(name) => (format!("SAVEPOINT s{name}"), if failed { "25P02" } else { "" }),
            Step::RollbackTo(name) => {
                let there = find(&self.model, *name).is_some();
                (format!("ROLLBACK TO s{name}"), if there { "" } else { "3B001" })
            }
            Step::Release(name) if !failed => {
                let there = find(&self.model, *name).is_some();
                (format!("RELEASE s{name}"), if there { "" } else { "3B001" })
            }
            Step::Release(name) => (format!("RELEASE s{name}"), "25P02"),
            _ => return Ok(()),
        };
        let state =
            self.session.run(&sql).err().map_or(String::new(), |error| error.code.as_str().to_owned());
        prop_assert_eq!(&state, expected, "{}", sql);
        if !state.is_empty() {
            self.model.fail();
            return Ok(());
        }
        match step {
            Step::Savepoint(name) => {
                let rows = self.model.rows.clone();
                self.model.savepoints.push((*name, rows));
            }
            Step::RollbackTo(name) => {
                let index = find(&self.model, *name).expect("is there");
                self.model.savepoints.truncate(index + 1);
                self.model.rows.clone_from(&self.model.savepoints[index].1);
                self.model.block = Block::Open;
            }
            Step::Release(name) => {
                let index = find(&self.model, *name).expect("is there");
                self.model.savepoints.truncate(index);
            }
            _ => {}
        }
        Ok(())
    }

    fn insert(&mut self, keys: &[i32], value: i32, long: bool) -> Result<(), TestCaseError> {
        let text = note(value, long);
        let values: Vec<String> = keys.iter().map(|key| format!("({key}, {value}, '{text}')")).collect();
        let mut rows = self.model.rows.clone();
        let fits = keys.iter().all(|key| rows.insert(*key, (value, text.clone())).is_none());
        let sql = format!("INSERT INTO {} VALUES {}", self.table, values.join(", "));
        self.change(&sql, if fits { Ok(rows) } else { Err("23505") })
    }

    fn update(
        &mut self,
        assignment: &str,
        (from, to): (i32, i32),
        change: impl Fn(&mut (i32, String)),
    ) -> Result<(), TestCaseError> {
        let mut rows = self.model.rows.clone();
        rows.iter_mut().filter(|(key, _)| (from..=to).contains(*key)).for_each(|(_, row)| change(row));
        let sql = format!("UPDATE {} SET {assignment} WHERE id BETWEEN {from} AND {to}", self.table);
        self.change(&sql, Ok(rows))
    }

    /// Changes a row's key; fails when the new one is taken.
    fn move_row(&mut self, from: i32, to: i32) -> Result<(), TestCaseError> {
        let mut rows = self.model.rows.clone();
        let fits = match rows.remove(&from) {
            Some(row) => rows.insert(to, row).is_none(),
            None => true,
        };
        let sql = format!("UPDATE {} SET id = {to} WHERE id = {from}", self.table);
        self.change(&sql, if fits { Ok(rows) } else { Err("23505") })
    }

    fn select(&mut self, from: i32, to: i32) -> Result<(), TestCaseError> {
        if matches!(self.model.block, Block::Failed) {
            return self.change("SELECT 1", Err("25P02"));
        }
        let table = &self.table;
        let in_range = |key: &i32| (from..=to).contains(key);
        let expected: Rows = self
            .model
            .rows
            .iter()
            .filter(|(key, _)| in_range(key))
            .map(|(k, row)| (*k, row.clone()))
            .collect();
        let by_key = format!("SELECT * FROM {table} WHERE id BETWEEN {from} AND {to} ORDER BY id");
        prop_assert_eq!(rows_of(&mut self.session, &by_key)?, expected);
        let value = from % 10;
        let expected: Rows = self
            .model
            .rows
            .iter()
            .filter(|(_, row)| row.0 == value)
            .map(|(k, row)| (*k, row.clone()))
            .collect();
        let by_index = format!("SELECT * FROM {table} WHERE v = {value}");
        prop_assert_eq!(rows_of(&mut self.session, &by_index)?, expected);
        let count = crate::common::rows(
            &mut self.session,
            &format!("SELECT count(*), sum(length(note)) FROM {table}"),
        );
        let length: usize = self.model.rows.values().map(|row| row.1.len()).sum();
        let length = if self.model.rows.is_empty() { "-".to_owned() } else { length.to_string() };
        prop_assert_eq!(count, [format!("{}|{length}", self.model.rows.len())]);
        Ok(())
    }

    /// Ends the transaction, compares all rows, and drops the table.
    fn close(mut self) -> Result<(), TestCaseError> {
        self.step(&Step::Rollback)?;
        self.step(&Step::Select { from: 0, to: KEYS })?;
        self.step(&Step::Peek)?;
        run(&mut self.session, &format!("DROP TABLE {}", self.table));
        Ok(())
    }
}

/// The rows of a query over all columns.
fn rows_of(session: &mut EmbeddedSession, sql: &str) -> Result<Rows, TestCaseError> {
    let mut rows = Rows::new();
    for line in crate::common::rows(session, sql) {
        let mut columns = line.splitn(3, '|');
        let mut number = || columns.next().and_then(|text| text.parse::<i32>().ok());
        let (Some(key), Some(value)) = (number(), number()) else {
            return Err(TestCaseError::fail(format!("{sql}: {line:.60}")));
        };
        let text = columns.next().unwrap_or_default().to_owned();
        prop_assert!(rows.insert(key, (value, text)).is_none(), "{}: {} twice", sql, key);
    }
    Ok(rows)
}

#[test]
fn statements_change_and_select_the_rows_of_the_model() {
    let seed = match std::env::var("ALLCORE_MODEL_SEED") {
        Ok(seed) => seed.parse().expect("a number"),
        Err(_) => runtime::time::precise(),
    };
    let folder = Folder::new("model");
    let database = folder.open();
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed.to_le_bytes(); 4].concat());
    let mut runner = TestRunner::new_with_rng(config, random);
    let number = Cell::new(0);
    let outcome = runner.run(&prop::collection::vec(step(), 1..60), |schedule| {
        number.set(number.get() + 1);
        let mut play = Play::new(&database, number.get());
        schedule.iter().try_for_each(|step| play.step(step))?;
        play.close()
    });
    if let Err(error) = outcome {
        panic!("ALLCORE_MODEL_SEED={seed}: {error}");
    }
    close_sound(&folder, database);
}
