//! The rows of pg_locks: the engine's locks in PostgreSQL's terms, gathered when a session asks.
//!
//! pg_locks has a row for each mode of a table that a session holds, and for each that it waits
//! for. A row lock has a row (`tuple`) while a session holds it explicitly or waits for it. A row
//! version that was only written has none: a session that waits for its writer waits for that
//! transaction (`transactionid`).

use runtime::hash::HashMap;

use txn::{LockInfo, LockedObject};

use crate::shared::Shared;
use catalog::Catalog;
use catalog::pg_catalog::{Lock, Locked, table_by_oid};

/// PostgreSQL's names of the modes, in the order of [`txn::TableLock`].
const TABLE_MODES: [&str; 8] = [
    "AccessShareLock",
    "RowShareLock",
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
];
/// The modes of row locks in PostgreSQL's names for table locks, in the order of [`txn::RowLock`].
/// The last one is the deletion of the transaction's own version.
const ROW_MODES: [&str; 5] =
    ["AccessShareLock", "RowShareLock", "ExclusiveLock", "AccessExclusiveLock", "AccessExclusiveLock"];
/// The modes of advisory locks.
pub(super) const ADVISORY_MODES: [&str; 2] = ["ShareLock", "ExclusiveLock"];
/// The OID of `pg_namespace`.
const PG_NAMESPACE: u32 = 2615;

/// All locks that sessions hold or wait for.
pub(super) fn list(shared: &Shared, catalog: &Catalog) -> Vec<Lock> {
    let databases: HashMap<u32, u32> =
        shared.activity.list().iter().map(|seen| (seen.session, seen.database)).collect();
    let rows_of: HashMap<u32, u32> =
        catalog.tables().flat_map(|table| table.trees().map(|tree| (tree.id, table.oid))).collect();
    let mut locks = Vec::new();
    for info in shared.engine.locks() {
        let (on, modes) = described(catalog, &rows_of, &info);
        let held = modes.iter().enumerate().filter(|(mode, _)| info.modes >> mode & 1 != 0);
        locks.extend(held.map(|(_, mode)| Lock {
            pid: (info.session != 0).then_some(info.session as i32),
            database: databases.get(&info.session).copied(),
            on,
            mode,
            granted: info.granted,
            fast_path: info.fast_path,
        }));
    }
    locks
}

fn described(
    catalog: &Catalog,
    rows_of: &HashMap<u32, u32>,
    info: &LockInfo,
) -> (Locked, &'static [&'static str]) {
    match &info.object {
        LockedObject::Table(oid) if is_schema(catalog, *oid) => {
            (Locked::Object(PG_NAMESPACE, *oid), &TABLE_MODES)
        }
        LockedObject::Table(oid) => (Locked::Relation(*oid), &TABLE_MODES),
        LockedObject::Row(tree, _) => {
            (Locked::Row(rows_of.get(tree).copied().unwrap_or_default()), &ROW_MODES)
        }
        LockedObject::Transaction(txid) => (Locked::Transaction(*txid), &TABLE_MODES),
        LockedObject::Advisory(key) => (Locked::Advisory(*key), &ADVISORY_MODES),
    }
}

/// Schemas are locked by their OIDs, as tables are.
fn is_schema(catalog: &Catalog, oid: u32) -> bool {
    table_by_oid(oid).is_none() && catalog.schema_by_oid(oid).is_some()
}
