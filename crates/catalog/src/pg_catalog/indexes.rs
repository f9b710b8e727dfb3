//! The indexes of a table as clients see them: the primary key's index among the others.

use super::super::{Index, Table};

/// An index of a table: its OID, name, columns, and whether it is the primary key's.
pub(super) struct AnyIndex<'t> {
    pub(super) oid: u32,
    pub(super) name: &'t str,
    pub(super) constraint: u32,
    pub(super) primary: bool,
    pub(super) unique: bool,
    pub(super) index: Option<&'t Index>,
    pub(super) columns: Vec<u32>,
    pub(super) included: &'t [u32],
}

impl AnyIndex<'_> {
    /// Positions of its columns; those of INCLUDE come last.
    pub(super) fn all_columns(&self) -> impl Iterator<Item = u32> {
        self.columns.iter().chain(self.included).copied()
    }
}

pub(super) fn indexes_of(table: &Table) -> Vec<AnyIndex<'_>> {
    let primary = table.primary_key.iter().map(|key| AnyIndex {
        oid: key.oid,
        name: &key.name,
        constraint: key.constraint,
        primary: true,
        unique: true,
        index: None,
        columns: key.columns.clone(),
        included: &key.included,
    });
    let others = table.indexes.iter().map(|index| AnyIndex {
        oid: index.oid,
        name: &index.name,
        constraint: index.constraint,
        primary: false,
        unique: index.unique,
        index: Some(index),
        columns: index.columns.iter().map(|key| key.column).collect(),
        included: &index.included,
    });
    primary.chain(others).collect()
}
