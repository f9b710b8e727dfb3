//! The tables that a row change reads or changes through foreign keys. The statement locks them
//! with its own tables.
//!
//! What must hold: the locks cover all that the executor does for the keys (`exec::foreign`). It
//! looks for the parent of a row that is new or whose key has changed. It acts on the children of a
//! row that is deleted or whose key has changed. A column without an assignment does not change.

use runtime::hash::HashMap;

use txn::TableLock;

use super::Binder;
use crate::plan::Assignment;
use catalog::ReferentialAction;
use catalog::{ForeignKey, Table};

/// The kind of change to a table's rows.
#[derive(Clone)]
pub(crate) enum Rows {
    /// They are inserted.
    New,
    /// They are deleted.
    Gone,
    /// These columns are assigned.
    Changed(Vec<u32>),
}

impl Rows {
    /// Rows in which a statement assigns these columns.
    pub(super) fn assigned(assignments: &[Assignment]) -> Rows {
        Rows::Changed(assignments.iter().map(|assignment| assignment.column).collect())
    }

    /// Whether the change may give one of these columns another value.
    fn change(&self, columns: &[u32]) -> bool {
        match self {
            Rows::New | Rows::Gone => true,
            Rows::Changed(changed) => columns.iter().any(|column| changed.contains(column)),
        }
    }

    /// The change that a key's action makes to the children's rows; None for a mere check.
    fn acted(&self, key: &ForeignKey) -> Option<Rows> {
        let action = if matches!(self, Rows::Gone) { key.on_delete } else { key.on_update };
        match (action, self) {
            (ReferentialAction::NoAction | ReferentialAction::Restrict, _) => None,
            (ReferentialAction::Cascade, Rows::Gone) => Some(Rows::Gone),
            _ => Some(Rows::Changed(key.columns.clone())),
        }
    }
}

/// All changes of one table's rows found so far.
#[derive(Default)]
struct Known {
    gone: bool,
    changed: Vec<u32>,
}

impl Known {
    /// Adds a change; returns whether it is new.
    fn add(&mut self, rows: &Rows) -> bool {
        match rows {
            Rows::New => false,
            Rows::Gone => !std::mem::replace(&mut self.gone, true),
            Rows::Changed(columns) => {
                let before = self.changed.len();
                for column in columns {
                    if !self.changed.contains(column) {
                        self.changed.push(*column);
                    }
                }
                self.changed.len() > before
            }
        }
    }
}

impl Binder<'_> {
    /// Records locks for the tables that foreign keys reach from a table's rows.
    pub(crate) fn lock_references(&mut self, table: &Table, rows: Rows) {
        self.lock_parents(table, &rows);
        let catalog = self.context.catalog;
        let mut known: HashMap<u32, Known> = HashMap::default();
        known.entry(table.oid).or_default().add(&rows);
        let mut open = vec![(table.oid, rows)];
        while let Some((parent, rows)) = open.pop() {
            if matches!(rows, Rows::New) {
                continue;
            }
            for reference in catalog.references(parent) {
                let Some(child) = catalog.table(reference.child) else { continue };
                let key = &child.foreign_keys[reference.key];
                if !rows.change(&key.parent_columns) {
                    continue;
                }
                let Some(acted) = rows.acted(key) else {
                    self.lock(child.oid, TableLock::RowShare);
                    continue;
                };
                self.lock(child.oid, TableLock::RowExclusive);
                self.lock_parents(child, &acted);
                if known.entry(child.oid).or_default().add(&acted) {
                    open.push((child.oid, acted));
                }
            }
        }
    }

    fn lock_parents(&mut self, table: &Table, rows: &Rows) {
        if matches!(rows, Rows::Gone) {
            return;
        }
        for key in table.foreign_keys.iter().filter(|key| rows.change(&key.columns)) {
            self.lock(key.parent, TableLock::RowShare);
        }
    }
}
