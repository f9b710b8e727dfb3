//! Visibility: transactions see others and themselves after rollbacks, deletions and restarts.

use std::ops::Bound;
use std::time::Duration;

use crate::common::{Bench, Short, store_of, table, text, until};
use runtime::fiber;
use txn::{Direction, Engine, Error, InsertOutcome, Isolation, Outcome, Range, TxnSession};

use Isolation::{ReadCommitted, RepeatableRead};

#[test]
fn changes_are_seen_once_committed() {
    Bench::new("seen").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        a.start(ReadCommitted);
        assert_eq!(a.put("k", "1"), InsertOutcome::Done);
        assert_eq!(a.read("k"), None, "a statement does not see its own changes");
        a.statement_start().unwrap();
        assert_eq!(a.read("k").as_deref(), Some("1"));
        b.start(ReadCommitted);
        assert_eq!(b.read("k"), None);
        a.commit(true).unwrap();
        assert_eq!(b.read("k"), None, "the statement's snapshot stands");
        b.statement_start().unwrap();
        assert_eq!(b.read("k").as_deref(), Some("1"));
        b.commit(true).unwrap();
    });
}

#[test]
fn repeatable_read_keeps_its_snapshot_and_refuses_newer_rows() {
    Bench::new("repeatable").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        a.alone(|| a.put("k", "1"));
        b.start(RepeatableRead);
        assert_eq!(b.read("k").as_deref(), Some("1"));
        a.alone(|| a.set("k", "2"));
        a.alone(|| a.set("k", "3"));
        a.alone(|| a.put("new", "x"));
        b.statement_start().unwrap();
        assert_eq!(b.all(), [("k".to_owned(), "1".to_owned())]);
        let seen = b.stamp("k").unwrap();
        assert_eq!(b.update(&table(), b"k", seen, b"4"), Err(Error::Serialization));
        b.rollback().unwrap();
        assert_eq!(b.alone(|| b.read("k")).as_deref(), Some("3"));
    });
}

#[test]
fn repeatable_read_puts_no_row_in_the_place_of_one_that_it_sees() {
    Bench::new("hidden").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        a.alone(|| (a.put("seen", "1"), a.put("gone", "1"), a.put("own", "1")));
        a.alone(|| a.remove("gone"));
        b.start(RepeatableRead);
        a.alone(|| (a.remove("seen"), a.put("unseen", "2")));
        a.alone(|| a.remove("unseen"));
        assert_eq!(b.insert(&table(), b"seen", b"3"), Err(Error::Serialization));
        assert_eq!(b.put("gone", "3"), InsertOutcome::Done);
        assert_eq!(b.put("unseen", "3"), InsertOutcome::Done);
        assert_eq!((b.remove("own"), b.put("own", "3")), (Outcome::Done, InsertOutcome::Done));
        assert_eq!(b.read("seen").as_deref(), Some("1"));
        b.commit(true).unwrap();
        let all = ["gone", "own", "unseen"].map(|key| (key.to_owned(), "3".to_owned()));
        assert_eq!(a.alone(|| a.all()), all);
    });
}

#[test]
fn an_entry_is_removed_whichever_its_newest_version_is() {
    Bench::new("entries").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        a.alone(|| (a.put("old", "1"), a.put("newer", "1"), a.put("gone", "1")));
        a.alone(|| a.remove("gone"));
        let remove = |key: &str| b.remove_entry(&table(), key.as_bytes()).unwrap();
        let commit = |session: &TxnSession| session.commit(true);
        for (end, left) in [(TxnSession::rollback as fn(&TxnSession) -> _, 2), (commit, 0)] {
            b.start(ReadCommitted);
            // Neither version is in the snapshot: another session's, and one of this command.
            a.alone(|| a.set("newer", "2"));
            assert_eq!(b.put("own", "1"), InsertOutcome::Done);
            // A removed entry stays removed.
            ["old", "newer", "own", "gone", "never", "old", "own"].iter().for_each(|key| remove(key));
            assert_eq!(b.read("old").as_deref(), Some("1"), "a statement does not see its own changes");
            b.statement_start().unwrap();
            assert_eq!(b.all(), []);
            end(&b).unwrap();
            assert_eq!(a.alone(|| a.all()).len(), left);
        }
    });
}

#[test]
fn repeatable_read_tells_a_deletion_from_an_update() {
    Bench::new("deleted-or-changed").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        let keys = ["changed", "gone", "moved", "other", "replaced at once", "twice"];
        a.alone(|| keys.iter().for_each(|key| assert_eq!(a.put(key, "1"), InsertOutcome::Done)));
        let refused = |key: &str, error: Error| {
            for delete in [false, true] {
                b.start(RepeatableRead);
                let seen = b.stamp(key).unwrap();
                let outcome = match delete {
                    true => b.delete(&table(), key.as_bytes(), seen),
                    false => b.update(&table(), key.as_bytes(), seen, b"9"),
                };
                assert_eq!(outcome, Ok(Outcome::Done), "{key}");
                b.rollback().unwrap();
            }
            // The transaction keeps its snapshot while the other one commits.
            b.start(RepeatableRead);
            let seen = b.stamp(key).unwrap();
            a.alone(|| match key {
                "changed" => assert_eq!(a.set(key, "2"), Outcome::Done),
                "gone" | "other" => assert_eq!(a.remove(key), Outcome::Done),
                "moved" => {
                    let seen = a.stamp(key).unwrap();
                    assert_eq!(a.delete_moved(&table(), b"moved", seen, b"to"), Ok(Outcome::Done));
                    assert_eq!(a.put("to", "1"), InsertOutcome::Done);
                }
                "replaced at once" => {
                    assert_eq!(a.remove(key), Outcome::Done);
                    a.statement_start().unwrap();
                    assert_eq!(a.put(key, "2"), InsertOutcome::Done);
                }
                _ => assert_eq!(a.set(key, "2"), Outcome::Done),
            });
            match key {
                "other" => assert_eq!(a.alone(|| a.put(key, "2")), InsertOutcome::Done),
                "twice" => assert_eq!(a.alone(|| a.set(key, "3")), Outcome::Done),
                _ => {}
            }
            b.statement_start().unwrap();
            let savepoint = b.savepoint();
            assert_eq!(b.update(&table(), key.as_bytes(), seen, b"9"), Err(error.clone()), "{key}");
            b.rollback_to(savepoint).unwrap();
            assert_eq!(b.delete(&table(), key.as_bytes(), seen), Err(error), "{key}");
            b.rollback().unwrap();
        };
        for key in ["changed", "moved", "twice"] {
            refused(key, Error::Serialization);
        }
        for key in ["gone", "other", "replaced at once"] {
            refused(key, Error::ConcurrentDelete);
        }
    });
}

#[test]
fn read_committed_learns_that_a_row_has_changed() {
    Bench::new("changed").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        a.alone(|| (a.put("k", "1"), a.put("gone", "1")));
        b.start(ReadCommitted);
        let (k, gone) = (b.stamp("k").unwrap(), b.stamp("gone").unwrap());
        a.alone(|| (a.set("k", "2"), a.remove("gone")));
        assert_eq!(b.update(&table(), b"k", k, b"3"), Ok(Outcome::Changed));
        assert_eq!(b.delete(&table(), b"gone", gone), Ok(Outcome::Gone));
        b.commit(true).unwrap();
    });
}

#[test]
fn deleted_rows_come_back_as_new_ones_and_old_snapshots_see_the_old() {
    Bench::new("reborn").run(|engine| {
        let (a, old) = (engine.session().unwrap(), engine.session().unwrap());
        a.alone(|| a.put("k", "1"));
        old.start(RepeatableRead);
        assert_eq!(old.read("k").as_deref(), Some("1"));
        a.alone(|| a.remove("k"));
        assert_eq!(a.alone(|| a.read("k")), None);
        assert_eq!(a.alone(|| a.put("k", "2")), InsertOutcome::Done);
        assert_eq!(a.alone(|| a.put("k", "3")), InsertOutcome::Duplicate);
        assert_eq!(old.read("k").as_deref(), Some("1"));
        old.commit(true).unwrap();
        // The row is inserted twice in one transaction, the second time over its own deletion.
        a.start(ReadCommitted);
        for row in ["4", "5"] {
            assert_eq!(a.remove("k"), Outcome::Done);
            assert_eq!(a.put("k", row), InsertOutcome::Done);
            a.statement_start().unwrap();
        }
        assert_eq!(a.read("k").as_deref(), Some("5"));
        a.rollback().unwrap();
        assert_eq!(a.alone(|| a.read("k")).as_deref(), Some("2"));
    });
}

#[test]
fn rollback_and_savepoints_take_back_exactly_what_came_after() {
    Bench::new("savepoints").run(|engine| {
        let s = engine.session().unwrap();
        s.alone(|| (s.put("a", "1"), s.put("b", "1")));
        s.start(ReadCommitted);
        s.set("a", "2");
        s.statement_start().unwrap();
        let first = s.savepoint();
        s.set("a", "3");
        s.put("c", "1");
        s.statement_start().unwrap();
        let second = s.savepoint();
        s.remove("b");
        s.set("a", "4");
        s.statement_start().unwrap();
        assert_eq!(s.all(), pairs(&[("a", "4"), ("c", "1")]));
        s.rollback_to(second).unwrap();
        s.statement_start().unwrap();
        assert_eq!(s.all(), pairs(&[("a", "3"), ("b", "1"), ("c", "1")]));
        s.rollback_to(first).unwrap();
        assert_eq!(s.rollback_to(second), Err(Error::NoSuchSavepoint));
        s.statement_start().unwrap();
        assert_eq!(s.all(), pairs(&[("a", "2"), ("b", "1")]));
        s.release(first).unwrap();
        assert_eq!(s.release(first), Err(Error::NoSuchSavepoint));
        s.put("d", "1");
        s.rollback().unwrap();
        assert_eq!(s.alone(|| s.all()), pairs(&[("a", "1"), ("b", "1")]));
    });
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|&(key, row)| (key.to_owned(), row.to_owned())).collect()
}

#[test]
fn scans_keep_to_their_bounds_in_both_directions() {
    Bench::new("bounds").run(|engine| {
        let s = engine.session().unwrap();
        s.start(ReadCommitted);
        for n in 0..2000 {
            s.put(&format!("{n:04}"), &format!("row {n}"));
        }
        s.statement_start().unwrap();
        let bounds = |n: usize, which: usize| match which {
            0 => Bound::Unbounded,
            1 => Bound::Included(format!("{n:04}")),
            _ => Bound::Excluded(format!("{n:04}")),
        };
        for (lower, upper) in [(0, 0), (1, 1), (1, 2), (2, 1), (2, 2), (0, 2), (1, 0)] {
            let (from, to) = (bounds(700, lower), bounds(1300, upper));
            let low = [0, 700, 701][lower];
            let high = [2000, 1301, 1300][upper];
            for direction in [Direction::Forward, Direction::Backward] {
                let lower = from.as_ref().map(|key| key.as_bytes());
                let range = Range { lower, upper: to.as_ref().map(|key| key.as_bytes()) };
                let mut scan = s.scan(&table(), range, direction);
                let mut found = Vec::new();
                while let Some((key, _, _)) = scan.next(&s).unwrap() {
                    found.push(text(key).parse::<usize>().unwrap());
                }
                let expected: Vec<usize> = match direction {
                    Direction::Forward => (low..high).collect(),
                    Direction::Backward => (low..high).rev().collect(),
                };
                assert_eq!(found, expected);
            }
        }
        s.rollback().unwrap();
        assert!(s.alone(|| s.all()).is_empty());
    });
}

#[test]
fn an_update_over_a_scan_meets_each_row_once() {
    Bench::new("halloween").run(|engine| {
        let s = engine.session().unwrap();
        s.alone(|| (0..500).for_each(|n| assert_eq!(s.put(&format!("{n:05}"), "0"), InsertOutcome::Done)));
        s.start(ReadCommitted);
        let mut scan = s.scan(&table(), Range::ALL, Direction::Forward);
        let mut moved = 0;
        while let Some((key, stamp)) = scan.next(&s).unwrap().map(|(key, _, stamp)| (key.to_vec(), stamp)) {
            assert_eq!(s.delete(&table(), &key, stamp), Ok(Outcome::Done));
            // A key behind the scan's present one.
            let later = format!("{}x", text(&key));
            assert_eq!(s.put(&later, "1"), InsertOutcome::Done);
            moved += 1;
        }
        assert_eq!(moved, 500);
        s.commit(true).unwrap();
        assert_eq!(s.alone(|| s.all()).len(), 500);
    });
}

#[test]
fn pinned_snapshots_outlive_their_statement() {
    Bench::new("pins").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        a.alone(|| a.put("k", "0"));
        b.start(ReadCommitted);
        let pinned = b.pin();
        b.statement_end();
        for n in 1..200 {
            a.alone(|| a.set("k", &n.to_string()));
        }
        b.statement_start().unwrap();
        assert_eq!(b.read("k").as_deref(), Some("199"));
        let present = b.swap_snapshot(pinned);
        assert_eq!(b.read("k").as_deref(), Some("0"));
        b.swap_snapshot(present);
        b.unpin(&pinned);
        b.commit(true).unwrap();
    });
}

fn settle(engine: &Engine) {
    until(|| engine.horizon() == engine.next_txid());
}

#[test]
fn the_horizon_follows_and_undo_and_deletions_go_away() {
    Bench::new("horizon").run(|engine| {
        let (a, old) = (engine.session().unwrap(), engine.session().unwrap());
        a.alone(|| (0..300).for_each(|n| assert_eq!(a.put(&format!("{n:04}"), "0"), InsertOutcome::Done)));
        old.start(RepeatableRead);
        let before = engine.horizon();
        for round in 0..10 {
            a.alone(|| {
                (0..300)
                    .for_each(|n| assert_eq!(a.set(&format!("{n:04}"), &round.to_string()), Outcome::Done))
            });
        }
        a.alone(|| (0..150).for_each(|n| assert_eq!(a.remove(&format!("{n:04}")), Outcome::Done)));
        assert_eq!(engine.vacuum(&table()), Ok(0), "the old snapshot still sees them");
        assert_eq!(old.all().len(), 300);
        assert!(old.all().iter().all(|(_, row)| row == "0"));
        assert!(engine.horizon() <= before + 64);
        let pages = engine.undo_pages();
        assert!(pages > 10);
        old.commit(true).unwrap();
        settle(engine);
        until(|| engine.undo_pages() <= 6);
        assert_eq!(engine.vacuum(&table()), Ok(150));
        assert_eq!(a.alone(|| a.all()).len(), 150);
        assert_eq!(table().count(&store_of(engine)), Ok(150));
    });
}

#[test]
fn asynchronous_commits_are_seen_by_the_next_snapshot() {
    Bench::new("asynchronous").run(|engine| {
        let s = engine.session().unwrap();
        s.alone(|| s.put("k", "0"));
        for n in 1..500 {
            s.start(ReadCommitted);
            assert_eq!(s.set("k", &n.to_string()), Outcome::Done);
            s.commit(false).unwrap();
            s.start(ReadCommitted);
            assert_eq!(s.read("k"), Some(n.to_string()));
            s.commit(false).unwrap();
        }
        s.wait_seen().unwrap();
    });
}

#[test]
fn a_dropped_session_is_rolled_back() {
    Bench::new("dropped").run(|engine| {
        let (a, b) = (engine.session().unwrap(), engine.session().unwrap());
        a.alone(|| a.put("k", "1"));
        a.start(ReadCommitted);
        a.set("k", "2");
        a.put("new", "2");
        drop(a);
        b.start(ReadCommitted);
        // Waits until the row has been put back.
        assert_eq!(b.set("k", "3"), Outcome::Done);
        b.commit(true).unwrap();
        assert_eq!(b.alone(|| b.all()), pairs(&[("k", "3")]));
    });
}

#[test]
fn rows_and_numbers_survive_a_restart() {
    let mut bench = Bench::new("restart");
    let next = bench.run(|engine| {
        let s = engine.session().unwrap();
        s.alone(|| (s.put("a", "1"), s.put("b", "1")));
        s.alone(|| s.remove("b"));
        engine.next_txid()
    });
    for _ in 0..3 {
        bench.reopen();
        bench.run(|engine| {
            assert!(engine.next_txid() >= next);
            let s = engine.session().unwrap();
            assert_eq!(s.alone(|| s.all()), pairs(&[("a", "1")]));
        });
    }
}

#[test]
fn read_only_transactions_change_nothing() {
    Bench::new("readonly").run(|engine| {
        let s = engine.session().unwrap();
        s.begin(ReadCommitted, true);
        s.statement_start().unwrap();
        assert_eq!(s.insert(&table(), b"k", b"1"), Err(Error::ReadOnly));
        s.rollback().unwrap();
    });
}

#[test]
fn undo_spills_and_comes_back_in_a_small_pool() {
    Bench::with_frames("small", 64).run(|engine| {
        let (a, old) = (engine.session().unwrap(), engine.session().unwrap());
        let row = "x".repeat(1000);
        a.alone(|| (0..1000).for_each(|n| assert_eq!(a.put(&format!("{n:05}"), &row), InsertOutcome::Done)));
        old.start(RepeatableRead);
        a.start(ReadCommitted);
        for n in 0..1000 {
            assert_eq!(a.set(&format!("{n:05}"), "short"), Outcome::Done);
        }
        assert!(old.all().iter().all(|(_, seen)| *seen == row));
        a.rollback().unwrap();
        let all = a.alone(|| a.all());
        assert!(all.len() == 1000 && all.iter().all(|(_, seen)| *seen == row));
        old.commit(true).unwrap();
    });
}

/// The engine names the transaction that keeps the log, with its age. When it ends, it names none.
#[test]
fn the_transaction_that_keeps_the_log_is_known() {
    Bench::new("kept-log").run(|engine| {
        assert_eq!(engine.kept_log(), None);
        let (old, other) = (engine.session().unwrap(), engine.session().unwrap());
        old.set_label(4711);
        other.set_label(1);
        old.start(ReadCommitted);
        assert_eq!(engine.kept_log(), None, "it has written nothing");
        old.put("k", "1");
        fiber::sleep(Duration::from_millis(30));
        for round in 0..500 {
            other.alone(|| other.put(&format!("other {round}"), &"x".repeat(1000)));
        }
        other.start(ReadCommitted);
        other.put("young", "1");
        let kept = engine.kept_log().unwrap();
        assert_eq!((kept.session, kept.txid), (4711, old.txid().unwrap()));
        assert!(kept.bytes > 500_000 && kept.age >= Duration::from_millis(30), "{kept:?}");
        let line = kept.to_string();
        assert!(line.contains("session 4711") && !line.contains('\n'), "{line}");
        let before = store_of(engine).checkpoint().unwrap();
        old.rollback().unwrap();
        let kept = engine.kept_log().unwrap();
        assert!(kept.session == 1 && kept.bytes < 500_000, "{kept:?}");
        other.commit(true).unwrap();
        assert_eq!(engine.kept_log(), None);
        assert!(store_of(engine).checkpoint().unwrap() >= before);
    });
}

/// The engine names the holder of the horizon: the oldest writer, else the oldest reader.
#[test]
fn the_session_that_holds_the_horizon_is_known() {
    Bench::new("horizon-holder").run(|engine| {
        let [writer, reader, other] = [7, 8, 9].map(|label| {
            let session = engine.session().unwrap();
            session.set_label(label);
            session
        });
        // The horizon moves up to its holder.
        let held_by = |label: u32| {
            for _ in 0..3000 {
                if engine.horizon_holder() == Some(label) {
                    return;
                }
                other.alone(|| other.put(&format!("{}", runtime::time::precise()), "1"));
                fiber::sleep(Duration::from_millis(20));
            }
            panic!("held by {:?}, not {label}", engine.horizon_holder());
        };
        reader.start(RepeatableRead);
        let _ = reader.all();
        held_by(8);
        writer.start(ReadCommitted);
        writer.put("w", "1");
        reader.commit(true).unwrap();
        held_by(7);
        writer.rollback().unwrap();
    });
}
