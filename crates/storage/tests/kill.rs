//! Kills a process at each stop point of the log, of checkpoints and of recovery, and checks that
//! no acknowledged number is lost.
//!
//! The child is this test's own program with [`FOLDER`] set. It opens the store, goes on where the
//! last life ended, and prints each number that is durable, until the stop point kills it. The next
//! child recovers. At the end this process does, and checks that exactly the numbers up to at least
//! the last acknowledged one are there.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use sync::atomic::{AtomicU64, Ordering};

use runtime::Runtime;
use storage::btree::{Action, EntryChange, Tree};
use storage::log::{TxnLink, WalOptions};
use storage::recovery::UndoHandler;
use storage::store::StoreOptions;
use storage::{Error, Lsn, Store};

/// The variable that names the data folder to the child.
const FOLDER: &str = "ALLCORE_KILL_FOLDER";
/// The most numbers that a child inserts if nothing kills it.
const MOST: u64 = 6000;
const TREE: u32 = 1;

/// A transaction's change without a commit, for recovery to undo.
const LOSER: u64 = 1 << 40;

/// Puts one entry, or removes it.
struct Change {
    value: Option<Vec<u8>>,
    link: TxnLink,
    lsn: Lsn,
}

impl EntryChange for Change {
    fn decide(&mut self, present: Option<&[u8]>) -> Action {
        match (&self.value, present) {
            (Some(_), _) => Action::Put,
            (None, Some(_)) => Action::Remove,
            (None, None) => Action::None,
        }
    }
    fn value_len(&self) -> usize {
        self.value.as_ref().map_or(0, Vec::len)
    }
    fn apply(&mut self, _present: Option<&[u8]>, value: &mut [u8], undo: &mut Vec<u8>) -> TxnLink {
        if let Some(new) = &self.value {
            value.copy_from_slice(new);
        }
        undo.extend_from_slice(b"remove");
        self.link
    }
    fn logged(&mut self, lsn: Lsn) {
        self.lsn = lsn;
    }
}

fn change(store: &Store, tree: Tree, key: u64, value: Option<Vec<u8>>, link: TxnLink) -> Lsn {
    let mut change = Change { value, link, lsn: Lsn::ZERO };
    tree.change(store, &key.to_be_bytes(), &mut change).expect("the change is made");
    change.lsn
}

fn value_of(number: u64) -> Vec<u8> {
    vec![number as u8; 20 + (number % 700) as usize]
}

/// Removes the losers' entries. The number is the transaction's, so undo needs no more.
struct Undo<'a>(&'a Store);

impl UndoHandler for Undo<'_> {
    fn undo(&mut self, txn: u64, _lsn: Lsn, undo: &[u8], prev: Lsn, last: Lsn) -> Result<Lsn, Error> {
        assert_eq!(undo, b"remove");
        let link = TxnLink { txn, prev: last, compensation: Some(prev) };
        Ok(change(self.0, Tree::new(TREE, storage::space::SYSTEM_ROOT), txn, None, link).max(last))
    }
}

fn start(folder: &Path) -> (Arc<Runtime>, Arc<Store>, Tree) {
    let options = runtime::Options { cores: Some(2), pin: false, ..Default::default() };
    let machine = Runtime::start(options).unwrap();
    let wal = WalOptions { segment_bytes: 1 << 20, checkpoint_bytes: 2 << 20, ..WalOptions::new(2) };
    let options = StoreOptions { wal, ..StoreOptions::new(512, 2) };
    let (store, tree) = machine.call(0, || {
        if folder.join("ALLCORE").exists() {
            let store = Store::open(folder, &machine, &options).unwrap();
            store.recover(&mut Undo(&store)).unwrap();
            return (store, Tree::new(TREE, storage::space::SYSTEM_ROOT));
        }
        let store = Store::create(folder, &machine, &options).unwrap();
        let tree = Tree::create_first(&store, TREE).unwrap();
        store.recover(&mut Undo(&store)).unwrap();
        store.wal().wait_durable(store.wal().position()).unwrap();
        (store, tree)
    });
    (machine, store, tree)
}

/// The count of numbers in the tree. There is no gap, each has its value, and each was committed.
fn check(store: &Store, tree: Tree) -> u64 {
    let mut value = Vec::new();
    let mut next = 0;
    while tree.get_into(store, &next_key(next), &mut value).unwrap() {
        assert_eq!(value, value_of(next), "value of {next}");
        next += 1;
    }
    for later in next..next + 50 {
        assert!(!tree.get_into(store, &next_key(later), &mut value).unwrap(), "{later} without {next}");
    }
    for loser in LOSER..LOSER + MOST {
        assert!(!tree.get_into(store, &next_key(loser), &mut value).unwrap(), "{loser} was not committed");
    }
    next
}

fn next_key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

#[test]
#[ignore = "the child of the test below"]
fn the_child_inserts_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    runtime::stop::arm_from_environment().unwrap();
    let (machine, store, tree) = start(Path::new(&folder));
    let floor = Arc::new(AtomicU64::new(u64::MAX));
    let source = floor.clone();
    store.wal().set_floor_source(move || Lsn(source.load(Ordering::SeqCst)));
    machine.call(0, || {
        let first = check(&store, tree);
        println!("\nhas {first}");
        let mut live_loser = None;
        for number in first..first + MOST {
            if number % 100 == 99 {
                end_loser(&store, tree, live_loser);
                let txn = LOSER + number;
                let link = TxnLink { txn, ..TxnLink::NONE };
                // The loser's first record may be before a checkpoint that it outlives.
                floor.store(store.wal().position().0, Ordering::SeqCst);
                live_loser = Some((txn, change(&store, tree, txn, Some(vec![1; 50]), link)));
            }
            let lsn = change(&store, tree, number, Some(value_of(number)), TxnLink::NONE);
            store.wal().wait_durable(lsn).unwrap();
            println!("acknowledged {number}");
            if number % 500 == 250 {
                store.checkpoint().unwrap();
            }
        }
    });
}

/// Rolls a transaction back.
fn end_loser(store: &Store, tree: Tree, loser: Option<(u64, Lsn)>) {
    let Some((txn, lsn)) = loser else { return };
    let link = TxnLink { txn, prev: lsn, compensation: Some(Lsn::ZERO) };
    let last = change(store, tree, txn, None, link);
    store.wal().ensure_reserved(0).unwrap();
    store.wal().append_abort(txn, last);
}

/// Runs a child until it dies; returns how many numbers all lives had acknowledged, if it printed
/// any.
fn live(folder: &Path, stop: &str) -> Option<u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "the_child_inserts_until_it_is_killed",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FOLDER, folder)
        .env("ALLCORE_STOP", stop)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = None;
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        match line.split_once(' ') {
            // The kill may have cut a line short: then the child did not print it.
            Some(("acknowledged", number)) => {
                acknowledged = number.parse().ok().map(|number: u64| number + 1).max(acknowledged)
            }
            Some(("has", number)) => acknowledged = number.parse().ok().max(acknowledged),
            _ => {}
        }
    }
    let status = child.wait().unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(9), "killed at {stop}: {status:?}");
    acknowledged
}

#[test]
fn an_acknowledged_number_survives_a_kill_at_any_point() {
    let folder: PathBuf = std::env::temp_dir().join(format!("allcore-kill-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let mut acknowledged = 0;
    for stop in [
        "log.flush.before_write=kill@40",
        "log.flush.after_write=kill@300",
        "recovery.undo=kill@1",
        "recovery.undo=kill@1",
        "checkpoint.begin=kill@2",
        "checkpoint.pages_written=kill@2",
        "checkpoint.before_control=kill@2",
        "recovery.redo=kill@200",
        "checkpoint.after_control=kill@2",
        "log.segment.recycle=kill@1",
        "log.segment.make=kill@2",
        "checkpoint.before_control=kill@1",
        "log.flush.after_write=kill@777",
        "checkpoint.begin=kill@1",
    ] {
        let now = live(&folder, stop).unwrap_or(acknowledged);
        assert!(now >= acknowledged, "{stop}: {now} after {acknowledged}");
        acknowledged = now;
    }
    let (machine, store, tree) = start(&folder);
    let there = machine.call(0, || check(&store, tree));
    assert!(there >= acknowledged, "{there} are there, {acknowledged} were acknowledged");
    machine.call(0, || store.close().unwrap());
    drop(store);
    machine.shutdown();
    let _ = std::fs::remove_dir_all(&folder);
}
