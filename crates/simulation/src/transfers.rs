//! Concurrent transfers between accounts, and the sums that must come out.
//!
//! Clients speak the wire protocol over sockets in memory. The database lies on a disk in memory,
//! and is closed and opened again in the end. What must hold:
//!
//! 1. The pool holds less than the data, so pages are evicted and read again. A checkpoint runs in
//!    the middle. It or the one at the end frees a segment of the log. Both are counted.
//! 2. Rows of the accounts change their length with each transfer. So rows move within a page, and
//!    pages split and merge, while others read them.
//! 3. The readers go on until the last transfer ends.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sync::atomic::{AtomicUsize, Ordering};

use crate::client::{Client, expect};
use crate::fault::{Fault, Spinner};
use crate::served::{start, with_server};

/// Clients that transfer at the same time, each once.
const TRANSFERS: usize = 200;
/// Accounts, so few that many transfers meet.
const ACCOUNTS: usize = 10;
/// Balance of each account at first.
const BALANCE: i64 = 1_000;
/// Clients that add all balances up meanwhile.
const READERS: usize = 4;
/// Longest pause of a reader between two looks, in nanoseconds.
const PAUSE: u64 = 8_000_000;
/// An account's text has fewer digests than this.
const DIGESTS: i64 = 60;
/// Digests in the note of a transfer with an even number: the note lies in its row.
const SHORT_NOTE: usize = 32;
/// Digests in the other notes, which lie outside their rows.
const LONG_NOTE: usize = 768;
/// Numbers of transfers begin in steps of this, so that their rows come between others.
const STEP: usize = 77;
/// Folder of the log's segments, whose names are their numbers in hexadecimal digits.
const LOG: &str = "/data/log";
/// Frames of the pool, in bytes: fewer than the notes take.
const BUFFERS: usize = 2 << 20;

/// Opens a database, transfers, and looks at the sums, before and after it was closed and opened
/// again. Returns the number of deadlocks.
pub fn run(cores: usize, fault: Option<Fault>) -> usize {
    let deadlocks = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&deadlocks);
    let evicted = with_server(cores, BUFFERS, move |address| {
        let mut client = Client::connect(address);
        expect(&mut client, "CREATE TABLE accounts (id int PRIMARY KEY, balance bigint, text text)");
        expect(&mut client, "CREATE TABLE transfers (id int PRIMARY KEY, note text NOT NULL)");
        let text = text_of(&BALANCE.to_string());
        let accounts = format!("SELECT n, {BALANCE}, {text} FROM generate_series(1, {ACCOUNTS}) n");
        expect(&mut client, &format!("INSERT INTO accounts {accounts}"));
        let left = Arc::new(AtomicUsize::new(TRANSFERS + READERS));
        for number in 0..TRANSFERS {
            let deadlocks = Arc::clone(&counted);
            let number = number * STEP % TRANSFERS;
            start(address, &left, move |client| transfer(client, number, &deadlocks));
        }
        for _ in 0..READERS {
            let transfers = Arc::clone(&left);
            start(address, &left, move |client| look(client, &transfers, fault));
        }
        wait_until(&left, TRANSFERS / 2);
        expect(&mut client, "CHECKPOINT");
        wait_until(&left, 0);
        // An old transaction may have kept the segments from the first checkpoint.
        expect(&mut client, "CHECKPOINT");
        assert!(freed_segments() > 0, "no checkpoint has freed a segment of the log");
        expect_all(&mut client);
    });
    assert!(evicted > 0, "the pool holds all pages");
    with_server(cores, BUFFERS, |address| expect_all(&mut Client::connect(address)));
    deadlocks.load(Ordering::Relaxed) // Relaxed: the clients have ended
}

/// Waits until at most so many clients are left.
fn wait_until(left: &AtomicUsize, most: usize) {
    // Acquire: what the clients did is seen.
    while left.load(Ordering::Acquire) > most {
        runtime::time::sleep_thread(Duration::from_millis(1));
    }
}

/// Looks at the sum until the transfers have ended.
fn look(client: &mut Client, left: &AtomicUsize, fault: Option<Fault>) {
    let _spinner = fault.is_some_and(|fault| fault == Fault::Spin).then(|| Spinner);
    // Relaxed: a number of looks, whichever it is.
    while left.load(Ordering::Relaxed) > READERS {
        expect_sum(client, fault.map_or(0, |_| 1));
        runtime::time::sleep_thread(Duration::from_nanos(runtime::random::u64() % PAUSE));
    }
}

/// Moves an amount from one account to another; a deadlock begins it anew.
fn transfer(client: &mut Client, number: usize, deadlocks: &AtomicUsize) {
    let from = runtime::random::u64() as usize % ACCOUNTS;
    let to = (from + 1 + runtime::random::u64() as usize % (ACCOUNTS - 1)) % ACCOUNTS;
    let amount = 1 + runtime::random::u64() % 50;
    let steps = [
        "BEGIN".to_owned(),
        change(from, &format!("balance - {amount}")),
        change(to, &format!("balance + {amount}")),
        format!("INSERT INTO transfers SELECT {number}, {} FROM (VALUES ({number})) it (id)", note()),
        "COMMIT".to_owned(),
    ];
    while let Err((code, message)) = steps.iter().try_for_each(|step| client.run(step).map(drop)) {
        assert_eq!(code, "40P01", "{message}");
        deadlocks.fetch_add(1, Ordering::Relaxed); // Relaxed: a count orders nothing else
        expect(client, "ROLLBACK");
    }
}

/// The statement that gives an account a new balance and the text that belongs to it.
fn change(account: usize, balance: &str) -> String {
    format!("UPDATE accounts SET balance = {balance}, text = {} WHERE id = {}", text_of(balance), account + 1)
}

/// The text of an account with this balance.
fn text_of(balance: &str) -> String {
    format!("repeat(md5(({balance})::text), (({balance}) % {DIGESTS})::int)")
}

/// The note of the transfer `id`.
fn note() -> String {
    format!("repeat(md5(id::text), CASE WHEN id % 2 = 0 THEN {SHORT_NOTE} ELSE {LONG_NOTE} END)")
}

/// Number of the log's segments that checkpoints have freed.
fn freed_segments() -> u64 {
    let segments = runtime::file::list(Path::new(LOG)).expect("the log's folder");
    let names = segments.iter().filter_map(|path| path.file_name()?.to_str());
    let numbers = names.filter_map(|name| u64::from_str_radix(name, 16).ok());
    numbers.min().expect("a segment")
}

fn number(client: &mut Client, sql: &str) -> i64 {
    expect(client, sql)[0].parse().expect("a number")
}

/// In every snapshot all balances add up to the initial total. `wrong` is added to the sum to prove
/// that the check can fail (`--fault sum`). An account without the text of its balance is left out
/// of the sum.
fn expect_sum(client: &mut Client, wrong: i64) {
    let sum = format!("SELECT sum(balance) FROM accounts WHERE text = {}", text_of("balance"));
    assert_eq!(number(client, &sum) + wrong, BALANCE * ACCOUNTS as i64, "money was made or lost");
}

/// The sum is right, and every transfer is there with its note.
fn expect_all(client: &mut Client) {
    expect_sum(client, 0);
    let notes = format!("SELECT count(*) FROM transfers WHERE note = {}", note());
    assert_eq!(number(client, &notes), TRANSFERS as i64);
}
