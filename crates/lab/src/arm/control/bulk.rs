//! Loads generated rows: COPY on PostgreSQL, multi-row INSERTs on MySQL. Several threads each load
//! a part.

use std::io::Write as _;
use std::thread;

use mysql::prelude::Queryable;
use sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use super::{Control, Fault};
use crate::arm::Target;
use crate::client::{Param, Params};

/// Bytes sent to the server at once. That is enough to make the wait for each portion negligible.
/// It is below every server's limit of a statement's length (MySQL's max_allowed_packet was 1 MiB
/// once).
const PORTION: usize = 512 << 10;

#[derive(Debug)]
pub struct Progress {
    rows: AtomicU64,
    total: AtomicU64,
    stop: AtomicBool,
}

impl Progress {
    pub fn new(total: u64) -> Self {
        Self { rows: AtomicU64::new(0), total: AtomicU64::new(total), stop: AtomicBool::new(false) }
    }

    pub fn rows(&self) -> u64 {
        // Relaxed: readers need this number alone.
        self.rows.load(Ordering::Relaxed)
    }

    /// The expected number of rows; 0 until it is known.
    pub fn total(&self) -> u64 {
        // Relaxed: as above.
        self.total.load(Ordering::Relaxed)
    }

    /// Sets the expected number of rows: a load's first act.
    pub fn set_total(&self, rows: u64) {
        // Relaxed: as above.
        self.total.store(rows, Ordering::Relaxed);
    }

    /// Ends the load early. It fails at its next portion, or before the statement that follows the
    /// last one.
    pub fn stop(&self) {
        // Relaxed: the flag publishes nothing else.
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Counts rows that were sent; fails once the load must end.
    fn advance(&self, rows: u64) -> Result<(), Fault> {
        // Relaxed: as above.
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.go_on()
    }

    pub fn go_on(&self) -> Result<(), Fault> {
        // Relaxed: as above.
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Fault::stopped()),
            false => Ok(()),
        }
    }
}

/// Runs parts `0..parts` of a load on that many threads, each with its own connection. The first
/// fault ends all of them and is returned.
pub fn in_parallel(
    to: &Target,
    threads: usize,
    parts: usize,
    progress: &Progress,
    load: impl Fn(&mut Control, usize) -> Result<(), Fault> + Sync,
) -> Result<(), Fault> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut control = Control::connect(to)?;
        loop {
            // Relaxed: the counter hands out numbers and nothing else.
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= parts {
                return Ok(());
            }
            load(&mut control, part)?;
        }
    };
    thread::scope(|scope| {
        let begin = |_| scope.spawn(|| work().inspect_err(|_| progress.stop()));
        let running: Vec<_> = (0..threads.clamp(1, parts.max(1))).map(begin).collect();
        let ended = running.into_iter().map(|thread| thread.join().expect("a loader does not panic"));
        // Threads that another's fault stopped report no fault of their own.
        let faults: Vec<Fault> = ended.filter_map(Result::err).collect();
        match faults.iter().find(|fault| **fault != Fault::stopped()).or(faults.first()) {
            Some(fault) => Err(fault.clone()),
            None => Ok(()),
        }
    })
}

/// Source of rows: fills one row, or returns false at the end.
type Source<'a> = &'a mut dyn FnMut(&mut Params) -> bool;

/// Takes all rows of the source and sends them in portions. `write` adds a row to a portion, and
/// `send` takes each full one. Returns the number of rows.
fn in_portions(
    progress: &Progress,
    next: Source<'_>,
    write: impl Fn(&Params, &mut Vec<u8>),
    mut send: impl FnMut(&[u8]) -> Result<(), Fault>,
) -> Result<u64, Fault> {
    let mut portion = Vec::with_capacity(PORTION + 4096);
    let (mut row, mut all, mut more) = (Params::default(), 0, true);
    while more {
        portion.clear();
        let mut rows = 0;
        while portion.len() < PORTION {
            row.clear();
            more = next(&mut row);
            if !more {
                break;
            }
            write(&row, &mut portion);
            rows += 1;
        }
        if rows > 0 {
            send(&portion)?;
        }
        progress.advance(rows)?;
        all += rows;
    }
    Ok(all)
}

pub(super) fn copy(
    client: &mut postgres::Client,
    table: &str,
    progress: &Progress,
    next: Source<'_>,
) -> Result<u64, Fault> {
    let sql = format!("COPY {table} FROM STDIN");
    let fault = |error: postgres::Error| Fault::from(error).in_statement(&sql);
    let mut writer = client.copy_in(&sql).map_err(fault)?;
    let send = |portion: &[u8]| {
        // The server's complaint about a row arrives as an I/O error here.
        writer.write_all(portion).map_err(|error| match error.downcast() {
            Ok(inner) => fault(inner),
            Err(error) => Fault::broken(&error.to_string()),
        })
    };
    let all = in_portions(progress, next, write_copied, send)?;
    writer.finish().map_err(fault)?;
    Ok(all)
}

/// A row as a line of COPY's text form.
fn write_copied(row: &Params, to: &mut Vec<u8>) {
    for (at, value) in row.iter().enumerate() {
        if at > 0 {
            to.push(b'\t');
        }
        match value {
            Param::Null => to.extend_from_slice(b"\\N"),
            Param::Verbatim(text) => to.extend_from_slice(text),
            Param::Text(text) => {
                for &byte in text {
                    match byte {
                        b'\\' => to.extend_from_slice(b"\\\\"),
                        b'\t' => to.extend_from_slice(b"\\t"),
                        b'\n' => to.extend_from_slice(b"\\n"),
                        b'\r' => to.extend_from_slice(b"\\r"),
                        byte => to.push(byte),
                    }
                }
            }
        }
    }
    to.push(b'\n');
}

/// Each portion is an INSERT and commits by itself: its rows take far longer than its commit.
pub(super) fn insert(
    conn: &mut mysql::Conn,
    table: &str,
    progress: &Progress,
    next: Source<'_>,
) -> Result<u64, Fault> {
    let head = format!("INSERT INTO {table} VALUES ");
    in_portions(progress, next, write_inserted, |rows| {
        let rows = std::str::from_utf8(rows).expect("rows are made of texts").trim_end_matches(',');
        conn.query_drop([&head, rows].concat()).map_err(|error| Fault::from(error).in_statement(&head))
    })
}

/// A row as a list of literals, and a comma.
fn write_inserted(row: &Params, to: &mut Vec<u8>) {
    let literal = |value: Param<'_>| match value {
        Param::Null => "NULL".to_owned(),
        Param::Verbatim(text) => String::from_utf8_lossy(text).into_owned(),
        Param::Text(text) => mysql::Value::from(text).as_sql(false),
    };
    let literals: Vec<String> = row.iter().map(literal).collect();
    to.extend_from_slice(format!("({}),", literals.join(",")).as_bytes());
}
