//! The cost of point selects and of an update by primary key without sockets.
//!
//! `cargo run --release -p sql --example hot_path -- data`

use execution::client::{Client, Notice};
use query::plan::ColumnDesc;
use runtime::interrupt::Interrupt;
use sql::SqlError;
use sql::database::{Database, Options};
use sql::session::Session;
use values::environment::Environment;
use values::types::Datum;

/// Counts rows.
struct Sink(u64);

impl Client for Sink {
    fn columns(&mut self, _: &[ColumnDesc], _: &[i16]) {}
    fn row(&mut self, _: &[Datum<'_>], _: &[ColumnDesc], _: &dyn Environment) -> Result<(), SqlError> {
        self.0 += 1;
        Ok(())
    }
    fn complete(&mut self, _: &str) {}
    fn empty(&mut self) {}
    fn notice(&mut self, _: &Notice) {}
    fn copy_out_begin(&mut self, _: usize, _: bool) {}
    fn copy_out(&mut self, _: &[u8]) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_out_end(&mut self) {}
    fn copy_in_begin(&mut self, _: usize, _: bool) -> Result<(), SqlError> {
        Ok(())
    }
    fn copy_in(&mut self) -> Result<Option<&[u8]>, SqlError> {
        Ok(None)
    }
}

fn bound(session: &mut Session, name: &str, key: u64, sink: &mut Sink) -> Result<(), SqlError> {
    let key = (key as i32).to_be_bytes();
    session.bind("", name, &[Some(&key)], &[1], &[])?;
    session.execute("", 0, sink)?;
    session.sync()
}

fn simple(session: &mut Session, key: u64, sink: &mut Sink) -> Result<(), SqlError> {
    use std::io::Write;
    let mut text = [0_u8; 64];
    let mut rest = &mut text[..];
    // The buffer is longer than any such text.
    let _ = write!(rest, "SELECT abalance FROM accounts WHERE aid = {key}");
    let left = rest.len();
    let text = std::str::from_utf8(&text[..64 - left]).unwrap_or_default();
    session.simple_query(text, sink)
}

const ROWS: u64 = 100_000;

fn measure(
    what: &str,
    turns: u64,
    mut body: impl FnMut(u64) -> Result<(), SqlError>,
) -> Result<(), SqlError> {
    for turn in 0..turns / 10 {
        body(turn)?;
    }
    let start = runtime::time::precise();
    let mut key = 1_u64;
    for _ in 0..turns {
        key = key.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        body((key >> 33) % ROWS + 1)?;
    }
    let time = runtime::time::precise() - start;
    println!("{what}: {:.0} ns", time as f64 / turns as f64);
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("which folder?")?;
    let options = Options { cores: Some(1), pin: false, memory: Some(256 << 20), ..Options::default() };
    let database = Database::open(folder.as_ref(), options)?;
    let handle = database.clone();
    database.runtime().call(0, move || -> Result<(), SqlError> {
        let mut session = handle.connect("postgres", "postgres", &Interrupt::new())?;
        let mut sink = Sink(0);
        session.simple_query(
            "CREATE TABLE accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84))",
            &mut sink,
        )?;
        session.simple_query(
            &format!("INSERT INTO accounts SELECT g, 1, 0, '' FROM generate_series(1, {ROWS}) g"),
            &mut sink,
        )?;
        session.simple_query("SET synchronous_commit = off", &mut sink)?;
        session.parse("select", "SELECT abalance FROM accounts WHERE aid = $1", &[])?;
        session.parse("update", "UPDATE accounts SET abalance = abalance + 1 WHERE aid = $1", &[])?;
        measure("prepared point select", 1_000_000, |key| bound(&mut session, "select", key, &mut sink))?;
        measure("simple point select", 1_000_000, |key| simple(&mut session, key, &mut sink))?;
        measure("prepared update", 200_000, |key| bound(&mut session, "update", key, &mut sink))?;
        Ok(())
    })?;
    database.shutdown()?;
    Ok(())
}
