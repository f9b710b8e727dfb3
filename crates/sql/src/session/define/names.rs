//! Names of objects: claims on names that a statement gives, and names that PostgreSQL generates.
//!
//! What must hold: when two transactions give one name to two objects, the second waits for the
//! first. A generated name makes no session wait. The generator skips a name that a running
//! transaction gives to a relation or takes from one.

use runtime::hash::SeededSet;

use super::{Session, safe_point};
use crate::shared::system;
use catalog::{Change, GivenName, Table};
use values::error::{SqlError, SqlState};

/// Bytes of a name at most.
const LONGEST: usize = 63;

impl Session {
    /// Claims the names that a change gives, until the transaction ends.
    pub(in crate::session) fn claim_names(&mut self, change: &Change) -> Result<(), SqlError> {
        let names = self.environment.catalog.new_names(change);
        if names.is_empty() {
            return Ok(());
        }
        for name in names {
            system::claim(&self.environment.txn, system::NAMES, &self.name_key(name))?;
        }
        // A transaction that claimed one of them before has published it by now, or rolled back.
        self.refresh_catalog();
        match self.environment.catalog.taken(change) {
            None => Ok(()),
            Some((what, name)) => Err(duplicate(what, &name)),
        }
    }

    /// Claims the name of a relation that is being made, before names are generated for what
    /// belongs to it.
    pub(super) fn claim_relation(&mut self, schema: u32, name: &str) -> Result<(), SqlError> {
        let key = self.name_key(GivenName::Relation(schema, name));
        system::claim(&self.environment.txn, system::NAMES, &key)?;
        self.refresh_catalog();
        match self.environment.catalog.relation_in(schema, name) {
            None => Ok(()),
            Some(_) => Err(duplicate("relation", name)),
        }
    }

    fn name_key(&self, name: GivenName<'_>) -> Vec<u8> {
        let database = self.environment.definitions.oid.to_be_bytes();
        // No name of a relation begins with a zero.
        let (schema, before, name) = match name {
            GivenName::Schema(name) => (0, "", name),
            GivenName::Relation(schema, name) => (schema, "", name),
            GivenName::Statistics(schema, name) => (schema, "\0", name),
        };
        [&database[..], &schema.to_be_bytes(), before.as_bytes(), name.as_bytes()].concat()
    }

    /// The name that PostgreSQL generates for an index or a sequence of a table. No relation of the
    /// table's schema has it, and in a `constraint` no constraint either.
    pub(super) fn relation_name(
        &mut self,
        table: &Table,
        columns: &[String],
        (label, constraint): (&str, bool),
    ) -> Result<String, SqlError> {
        self.refresh_catalog();
        let own: SeededSet<&str> = table.index_names().map(|(name, _)| name).collect();
        first_free(&table.name, columns, label, |name| {
            let is_there = own.contains(name)
                || self.environment.catalog.relation_in(table.schema, name).is_some()
                || constraint && (table.has_constraint(name) || self.is_constraint(table, name));
            let claimed = || {
                let key = self.name_key(GivenName::Relation(table.schema, name));
                system::is_claimed(&self.environment.txn, system::NAMES, &key)
            };
            Ok(is_there || claimed()?)
        })
    }

    /// The name that PostgreSQL generates for a constraint without an index: no constraint of the
    /// table's schema has it.
    pub(super) fn constraint_name(
        &self,
        table: &Table,
        columns: &[String],
        label: &str,
    ) -> Result<String, SqlError> {
        let own: SeededSet<&str> = table.constraint_names().collect();
        first_free(&table.name, columns, label, |name| {
            Ok(own.contains(name) || self.is_constraint(table, name))
        })
    }

    /// The name that PostgreSQL generates for statistics of columns of a table: no statistics
    /// object of the table's schema has it.
    pub(super) fn statistics_name(&mut self, table: &Table, columns: &[String]) -> Result<String, SqlError> {
        self.refresh_catalog();
        first_free(&table.name, columns, "stat", |name| {
            let is_there = self.environment.catalog.statistics_in(table.schema, name).is_some();
            let key = self.name_key(GivenName::Statistics(table.schema, name));
            Ok(is_there || system::is_claimed(&self.environment.txn, system::NAMES, &key)?)
        })
    }

    /// Whether another table of the table's schema has a constraint of this name.
    fn is_constraint(&self, table: &Table, name: &str) -> bool {
        let others = self.environment.catalog.tables();
        let mut others = others.filter(|other| other.schema == table.schema && other.oid != table.oid);
        others.any(|other| other.has_constraint(name))
    }
}

/// Error 23505, because PostgreSQL's catalog has a unique index on names.
fn duplicate(what: &str, name: &str) -> SqlError {
    let index = match what {
        "schema" => "pg_namespace_nspname_index",
        "relation" => "pg_class_relname_nsp_index",
        _ => "pg_statistic_ext_name_index",
    };
    let message = format!("duplicate key value violates unique constraint \"{index}\"");
    let error = SqlError::new(SqlState::UNIQUE_VIOLATION, message);
    error.with_detail(format!("The {what} \"{name}\" already exists."))
}

/// The default name with this label, or with the label and the first number that makes it free.
fn first_free(
    table: &str,
    columns: &[String],
    label: &str,
    is_taken: impl Fn(&str) -> Result<bool, SqlError>,
) -> Result<String, SqlError> {
    let joined = columns.join("_");
    let mut name = default_name(table, &joined, label);
    let mut number = 0_u64;
    while is_taken(&name)? {
        safe_point()?;
        number += 1;
        name = default_name(table, &joined, &format!("{label}{number}"));
    }
    Ok(name)
}

/// PostgreSQL's default name: parts joined by underscores, the longer ones cut so that 63 bytes
/// hold it.
fn default_name(table: &str, columns: &str, label: &str) -> String {
    let room = LONGEST.saturating_sub(label.len() + 1 + usize::from(!columns.is_empty()));
    let (mut first, mut second) = (table.len(), columns.len());
    while first + second > room {
        let longer = if first > second { &mut first } else { &mut second };
        *longer -= 1;
    }
    let table = cut(table, first);
    match columns.is_empty() {
        true => format!("{table}_{label}"),
        false => format!("{table}_{}_{label}", cut(columns, second)),
    }
}

/// The first `bytes` bytes of a text, or fewer if the cut would fall within a character.
fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

/// Names of an index's columns as its default name has them: a repeated one with the first number
/// that makes it new.
pub(super) fn distinct(columns: impl Iterator<Item = impl AsRef<str>>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for column in columns {
        let (column, mut number) = (column.as_ref(), 0_u64);
        let mut name = column.to_owned();
        while names.contains(&name) {
            number += 1;
            let digits = number.to_string();
            name = format!("{}{digits}", cut(column, LONGEST - digits.len()));
        }
        names.push(name);
    }
    names
}

/// Error 42501: users make no objects in pg_catalog.
pub(super) fn not_in_the_catalog(name: &str) -> SqlError {
    let message = format!("permission denied to create \"pg_catalog.{name}\"");
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
        .with_detail("System catalog modifications are currently disallowed.")
}
