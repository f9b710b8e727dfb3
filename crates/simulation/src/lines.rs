//! The cache lines that a transaction moves between the cores.
//!
//! As many clients as cores run one kind of transaction each. The [ledger](ledger) counts the
//! transfers that the workers wait for, by place of the program. What must hold:
//!
//! 1. Sessions that select or update share no row, and no leaf but those at the edges of their
//!    rows. So what moves belongs to the engine's structures. Those that insert share the last leaf
//!    of one table, for whose latch they contend.
//! 2. The count begins when each session has warmed its core up. It ends when all have left, so
//!    each transaction bears its share of a session's end.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use runtime::model::thread_name;
use runtime::net::Address;
use sync::atomic::{AtomicUsize, Ordering};
use sync::ledger;

use crate::client::{Client, expect};
use crate::served::{start, with_server};

/// Frames of the pool, in bytes: all pages stay in it.
const BUFFERS: usize = 64 << 20;
/// Rows of a session.
const ROWS: usize = 64;
/// Transactions of a session before the count begins, and within it.
const WARM: usize = 20;
const COUNTED: usize = 40;
/// How long the main thread waits between two looks at its clients, in milliseconds.
const LOOK: u64 = 1;

/// A kind of transaction.
struct Kind {
    name: &'static str,
    /// The setting with which its sessions begin.
    setting: Option<&'static str>,
    /// Its statement, on a row.
    statement: fn(usize) -> String,
    /// The least and the most transfers of a transaction that are right with 4 to 384 cores. For
    /// updates and inserts, these are up to 1.3 times ARCHITECTURE.md's figures with 4 cores.
    bounds: (f64, f64),
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "select",
        setting: None,
        statement: |row| format!("SELECT balance FROM accounts WHERE id = {row}"),
        // A reader's come from the ends of the sessions and from the engine's work beside.
        bounds: (0.0, 1.0),
    },
    Kind {
        name: "update",
        setting: None,
        statement: |row| format!("UPDATE accounts SET balance = balance + 1 WHERE id = {row}"),
        bounds: (LEAST, 44.0),
    },
    Kind {
        name: "insert",
        setting: None,
        statement: |row| format!("INSERT INTO journal VALUES ({row}, 1)"),
        // With many cores more wait for the table's last leaf.
        bounds: (LEAST, 48.0),
    },
    Kind {
        // They contend for the last leaf, since nobody waits for the disk.
        name: "burst",
        setting: Some("SET synchronous_commit = off"),
        statement: |row| format!("INSERT INTO journal VALUES ({row}, 1)"),
        // A commit looks at all cores' places in the log, unless another one's look serves it.
        bounds: (LEAST, 48.0),
    },
];

/// A writer makes at least this number of transfers. With fewer the ledger heard nothing.
const LEAST: f64 = 1.0;

/// Transfers for each kind of transaction, by a text that names their place.
type Counts = BTreeMap<String, [u64; KINDS.len()]>;

/// Counts the transfers with this number of cores. Returns them as text, and what is wrong.
pub fn run(cores: usize) -> (String, Option<String>) {
    let (mut files, mut places) = (Counts::new(), Counts::new());
    with_server(cores, BUFFERS, |address| {
        let mut client = Client::connect(address);
        expect(&mut client, "CREATE TABLE accounts (id int PRIMARY KEY, balance bigint, note text)");
        let rows = format!("generate_series(0, {}) n", cores * ROWS - 1);
        expect(&mut client, &format!("INSERT INTO accounts SELECT n, 0, repeat('x', 500) FROM {rows}"));
        expect(&mut client, "CREATE TABLE journal (id int, amount int)");
        drop(client);
        for (kind, of) in KINDS.iter().enumerate() {
            let of_workers = |entry: &ledger::Entry| thread_name(entry.thread).starts_with("core-");
            for entry in count(address, cores, of).into_iter().filter(of_workers) {
                let file = entry.place.file();
                let verb = if entry.is_write { "write" } else { "read" };
                let place = format!("{file}:{} {verb}", entry.place.line());
                files.entry(file.to_owned()).or_default()[kind] += entry.transfers;
                places.entry(place).or_default()[kind] += entry.transfers;
            }
        }
    });
    let transactions = (cores * COUNTED) as f64;
    let text = table("file", &files, transactions) + &table("place", &places, transactions);
    (text, wrong(&files, transactions))
}

/// The kinds of transaction whose transfers are out of bounds.
fn wrong(files: &Counts, transactions: f64) -> Option<String> {
    let wrong: Vec<String> = (KINDS.iter().enumerate())
        .filter_map(|(kind, Kind { name, bounds, .. })| {
            let (transfers, (least, most)) = (total(files, kind) as f64 / transactions, *bounds);
            (!(least..=most).contains(&transfers)).then(|| {
                format!(
                    "{name}: {transfers:.2} transfers a transaction, expected are {least:.2} to {most:.2}"
                )
            })
        })
        .collect();
    (!wrong.is_empty()).then(|| wrong.join("; "))
}

fn total(counts: &Counts, kind: usize) -> u64 {
    counts.values().map(|of_kinds| of_kinds[kind]).sum()
}

/// Runs one kind of transaction in a number of sessions; the ledger's entries.
fn count(address: &Address, sessions: usize, kind: &'static Kind) -> Vec<ledger::Entry> {
    ledger::begin();
    let left = Arc::new(AtomicUsize::new(sessions));
    let cold = Arc::new(AtomicUsize::new(sessions));
    // Down to 0 when the count begins.
    let held = Arc::new(AtomicUsize::new(1));
    for session in 0..sessions {
        let (cold, held) = (Arc::clone(&cold), Arc::clone(&held));
        start(address, &left, move |client| {
            kind.setting.into_iter().for_each(|setting| drop(expect(client, setting)));
            let mut transact = |number| expect(client, &(kind.statement)(session * ROWS + number % ROWS));
            (0..WARM).for_each(|number| drop(transact(number)));
            cold.fetch_sub(1, Ordering::Relaxed); // Relaxed: a count orders nothing else
            wait_for(&held);
            (0..COUNTED).for_each(|number| drop(transact(WARM + number)));
        });
    }
    wait_for(&cold);
    ledger::reset();
    held.store(0, Ordering::Relaxed); // Relaxed: as above
    wait_for(&left);
    ledger::end()
}

/// Waits until a number is 0.
fn wait_for(number: &AtomicUsize) {
    // Relaxed: virtual threads run one at a time.
    while number.load(Ordering::Relaxed) > 0 {
        runtime::time::sleep_thread(Duration::from_millis(LOOK));
    }
}

/// The transfers of a transaction, the places with most of them first.
fn table(title: &str, counts: &Counts, transactions: f64) -> String {
    let a_transaction = |transfers: u64| transfers as f64 / transactions;
    let line = |place: &str, cells: [String; KINDS.len()]| {
        let cells: String = cells.iter().map(|cell| format!(" {cell:>9}")).collect();
        format!("{place:60}{cells}\n")
    };
    let figures = |of_kinds: [u64; KINDS.len()]| of_kinds.map(|count| format!("{:.3}", a_transaction(count)));
    let mut lines: Vec<_> = counts.iter().collect();
    lines.sort_by_key(|(_, of_kinds)| Reverse(of_kinds.iter().sum::<u64>()));
    let mut text = line(title, std::array::from_fn(|kind| KINDS[kind].name.to_owned()));
    text += &line("all", figures(std::array::from_fn(|kind| total(counts, kind))));
    for (place, of_kinds) in lines {
        text += &line(place, figures(*of_kinds));
    }
    text
}
