//! Visibility of row versions: a decision table, and the classification that leads to its rows.
//!
//! What must hold:
//!
//! 1. [`TABLE`] stands in the order of [`Writer`], because a decision is looked up by its number.
//! 2. A snapshot sees the commits up to its own number, and all writers below its horizon. It sees
//!    its own transaction's earlier commands only.
//! 3. A commit that is seen before it is on disk is reported, because the reader depends on it.
//! 4. An aborted writer's version can still be met, in a copy of its page. The reader goes on to
//!    the version before.
//! 5. A transaction whose status word was given back is older than the present horizon, so it
//!    counts as seen.

use storage::Lsn;

use crate::snapshot::Snapshot;
use crate::status::{Status, StatusTable};
use crate::version::Stamp;

/// A version's writer, as the reader's snapshot classifies it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Writer {
    /// Older than the horizon, or committed within the snapshot.
    Seen,
    /// This transaction, in an earlier command.
    OwnEarlier,
    /// This transaction, in this command or in a later one (for an older snapshot of it).
    OwnLater,
    /// Another running transaction.
    Running,
    /// Committed after the snapshot.
    Later,
    /// Rolled back: the reader holds a copy made before the row was put back.
    Aborted,
}

/// A reader's decision about a version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sight {
    /// The reader sees this version.
    This,
    /// The reader sees that the row is deleted.
    Absent,
    /// The reader looks at the version before.
    Older,
}

/// The decision table: one line for each kind of writer, with the sight of a live version and of a
/// deleted one.
pub const TABLE: [(Writer, Sight, Sight); 6] = [
    (Writer::Seen, Sight::This, Sight::Absent),
    (Writer::OwnEarlier, Sight::This, Sight::Absent),
    (Writer::OwnLater, Sight::Older, Sight::Older),
    (Writer::Running, Sight::Older, Sight::Older),
    (Writer::Later, Sight::Older, Sight::Older),
    (Writer::Aborted, Sight::Older, Sight::Older),
];

/// Looks the decision up in [`TABLE`].
#[inline]
pub(crate) fn sight(writer: Writer, deleted: bool) -> Sight {
    let (_, live, gone) = TABLE[writer as usize];
    if deleted { gone } else { live }
}

/// Classifies the writer of `stamp` by `snapshot`. A writer below the snapshot's horizon costs no
/// look at the status table. If the reader sees a commit that is not on disk yet, `depends` is
/// raised to its number.
#[inline]
pub fn writer(stamp: &Stamp, snapshot: &Snapshot, status: &StatusTable, depends: &mut Lsn) -> Writer {
    if stamp.txid < snapshot.horizon {
        return Writer::Seen;
    }
    if stamp.txid == snapshot.txid {
        return if stamp.command < snapshot.command { Writer::OwnEarlier } else { Writer::OwnLater };
    }
    by_outcome(stamp, snapshot, status, depends)
}

/// Classifies a writer that is not the reader, by its outcome. Out of line: most writers are below
/// the horizon, and readers keep that look within their loops.
#[inline(never)]
fn by_outcome(stamp: &Stamp, snapshot: &Snapshot, status: &StatusTable, depends: &mut Lsn) -> Writer {
    match status.get(stamp.txid) {
        Status::Old => Writer::Seen,
        Status::Committed(lsn) if lsn <= snapshot.csn => {
            if lsn > snapshot.durable {
                *depends = (*depends).max(lsn);
            }
            Writer::Seen
        }
        Status::Committed(_) => Writer::Later,
        Status::Running(_) => Writer::Running,
        Status::Aborted(_) => Writer::Aborted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::UndoPointer;

    #[test]
    fn the_table_is_complete_and_in_order() {
        for (place, (writer, ..)) in TABLE.iter().enumerate() {
            assert_eq!(*writer as usize, place);
            // A kind of writer missing above would not compile here.
            let expected = match writer {
                Writer::Seen | Writer::OwnEarlier => (Sight::This, Sight::Absent),
                Writer::OwnLater | Writer::Running | Writer::Later | Writer::Aborted => {
                    (Sight::Older, Sight::Older)
                }
            };
            assert_eq!((sight(*writer, false), sight(*writer, true)), expected);
        }
    }

    #[test]
    fn every_state_of_a_writer_is_classified() {
        let status = StatusTable::new().expect("reserve");
        status.set(10, Status::Committed(Lsn(100)));
        status.set(11, Status::Committed(Lsn(200)));
        status.set(12, Status::Committed(Lsn(201)));
        status.set(13, Status::Running(3));
        status.set(14, Status::Aborted(Lsn(150)));
        status.set(15, Status::Running(1));
        let snapshot = Snapshot { csn: Lsn(200), durable: Lsn(150), horizon: 10, txid: 15, command: 7 };
        let cases = [
            (9, 0, Writer::Seen, 0),
            (10, 0, Writer::Seen, 0),
            (11, 9, Writer::Seen, 200),
            (12, 0, Writer::Later, 0),
            (13, 0, Writer::Running, 0),
            (14, 0, Writer::Aborted, 0),
            (15, 6, Writer::OwnEarlier, 0),
            (15, 7, Writer::OwnLater, 0),
            (15, 8, Writer::OwnLater, 0),
            (16, 0, Writer::Seen, 0), // its word was given back: older than the present horizon
        ];
        for (txid, command, expected, dependence) in cases {
            for deleted in [false, true] {
                let stamp = Stamp { txid, undo: UndoPointer::NONE, command, keys: false, deleted };
                let mut depends = Lsn::ZERO;
                assert_eq!(writer(&stamp, &snapshot, &status, &mut depends), expected, "txid {txid}");
                assert_eq!(depends, Lsn(dependence), "txid {txid}");
            }
        }
    }
}
