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

/// INSERTs in one MySQL transaction: commits wait for the log rarely, and no transaction is too big
/// to undo.
const PORTIONS_PER_COMMIT: usize = 16;

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

/// Takes all rows of the source and sends them in portions that each begin with `head`. `write`
/// adds a row to a portion; its flag marks the first row. `send` takes each full portion. Returns
/// the number of rows.
fn in_portions(
    head: &[u8],
    progress: &Progress,
    next: Source<'_>,
    write: impl Fn(&Params, bool, &mut Vec<u8>),
    mut send: impl FnMut(&[u8]) -> Result<(), Fault>,
) -> Result<u64, Fault> {
    let mut portion = Vec::with_capacity(PORTION + 4096);
    let (mut row, mut all, mut more) = (Params::default(), 0, true);
    while more {
        portion.clear();
        portion.extend_from_slice(head);
        let mut rows = 0;
        while portion.len() < PORTION {
            row.clear();
            more = next(&mut row);
            if !more {
                break;
            }
            write(&row, rows == 0, &mut portion);
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
    let all = in_portions(b"", progress, next, |row, _, portion| write_copied(row, portion), send)?;
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
            Param::Verbatim(text) | Param::Unset(text) => to.extend_from_slice(text),
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

pub(super) fn insert(
    conn: &mut mysql::Conn,
    table: &str,
    progress: &Progress,
    next: Source<'_>,
) -> Result<u64, Fault> {
    let head = format!("INSERT INTO {table} VALUES ");
    let mut run = |sql: &[u8]| {
        let sql = std::str::from_utf8(sql).expect("rows are made of texts");
        conn.query_drop(sql).map_err(|error| Fault::from(error).in_statement(&head))
    };
    let write = |row: &Params, first: bool, portion: &mut Vec<u8>| {
        portion.extend_from_slice(if first { b"(" } else { b",(" });
        write_inserted(row, portion);
        portion.push(b')');
    };
    let mut open = 0;
    let all = in_portions(head.as_bytes(), progress, next, write, |portion| {
        if open == 0 {
            run(b"BEGIN")?;
        }
        run(portion)?;
        open += 1;
        if open == PORTIONS_PER_COMMIT {
            run(b"COMMIT")?;
            open = 0;
        }
        Ok(())
    })?;
    if open > 0 {
        run(b"COMMIT")?;
    }
    Ok(all)
}

fn write_inserted(row: &Params, to: &mut Vec<u8>) {
    for (at, value) in row.iter().enumerate() {
        if at > 0 {
            to.push(b',');
        }
        match value {
            Param::Null => to.extend_from_slice(b"NULL"),
            Param::Verbatim(text) | Param::Unset(text) => to.extend_from_slice(text),
            Param::Text(text) => {
                to.push(b'\'');
                for &byte in text {
                    match byte {
                        b'\'' => to.extend_from_slice(b"''"),
                        b'\\' => to.extend_from_slice(b"\\\\"),
                        0 => to.extend_from_slice(b"\\0"),
                        byte => to.push(byte),
                    }
                }
                to.push(b'\'');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_so_that_they_are_read_back() {
        let mut row = Params::default();
        row.int(-7);
        row.null();
        row.text("a\tb\\c'd\ne");
        row.text("");
        let mut copied = Vec::new();
        write_copied(&row, &mut copied);
        assert_eq!(String::from_utf8(copied).unwrap(), "-7\t\\N\ta\\tb\\\\c'd\\ne\t\n");
        let mut inserted = Vec::new();
        write_inserted(&row, &mut inserted);
        assert_eq!(String::from_utf8(inserted).unwrap(), "-7,NULL,'a\tb\\\\c''d\ne',''");
    }
}
