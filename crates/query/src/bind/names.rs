//! Qualified names of relations, and the search for the relations they name.
//!
//! What must hold:
//!
//! 1. A name without a schema is searched along the session's path, so the plan belongs to that
//!    path.
//! 2. Each stored table that the statement uses is noted with the strongest lock that it needs. The
//!    session takes the locks before it runs the plan.
//! 3. A relation of the catalog is computed. It needs no lock, and no statement changes it.

use std::sync::Arc;

use pg_query::protobuf::RangeVar;
use txn::TableLock;

use super::Binder;
use crate::plan::QualifiedName;
use catalog::{Relation, Table};
use values::error::{SqlError, SqlState};

impl Binder<'_> {
    /// The name as written.
    pub(crate) fn written(&self, range: &RangeVar) -> String {
        if range.schemaname.is_empty() {
            range.relname.clone()
        } else {
            format!("{}.{}", range.schemaname, range.relname)
        }
    }

    /// The name of a relation that the command creates or searches when it runs.
    pub(crate) fn qualified(&self, range: &RangeVar) -> Result<QualifiedName, SqlError> {
        self.check_database(range)?;
        let schema = (!range.schemaname.is_empty()).then(|| range.schemaname.clone());
        Ok(QualifiedName { schema, name: range.relname.clone() })
    }

    /// Refuses `database.schema.table` with another database than the session's.
    fn check_database(&self, range: &RangeVar) -> Result<(), SqlError> {
        if range.catalogname.is_empty() || range.catalogname == self.catalog().database.name {
            return Ok(());
        }
        Err(self.error(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "cross-database references are not implemented: \"{}.{}.{}\"",
                range.catalogname, range.schemaname, range.relname
            ),
            range.location,
        ))
    }

    /// The relation with this name, if there is one.
    pub(crate) fn find_relation(&self, range: &RangeVar) -> Result<Option<Relation>, SqlError> {
        self.check_database(range)?;
        let schema = (!range.schemaname.is_empty()).then_some(range.schemaname.as_str());
        Ok(self.catalog().relation(self.context.search_path, schema, &range.relname))
    }

    /// The error 42P01.
    pub(crate) fn no_relation(&self, range: &RangeVar) -> SqlError {
        let name = self.written(range);
        self.error(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"), range.location)
    }

    /// The stored table with this name, for statements that change it.
    pub(crate) fn stored_table(&self, range: &RangeVar) -> Result<Arc<Table>, SqlError> {
        match self.find_relation(range)? {
            Some(Relation::Table(table)) if !table.is_virtual() => Ok(table),
            Some(Relation::Table(table)) => Err(SqlError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("permission denied: \"{}\" is a system catalog", table.name),
            )),
            Some(Relation::Sequence(sequence)) => Err(self.error(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot change sequence \"{}\"", sequence.name),
                range.location,
            )),
            Some(Relation::Index(..)) => Err(self.error(
                SqlState::WRONG_OBJECT_TYPE,
                format!("cannot open relation \"{}\"", range.relname),
                range.location,
            )),
            None => Err(self.no_relation(range)),
        }
    }

    /// Records that the statement uses a table. The strongest lock counts.
    pub(crate) fn lock(&mut self, table: u32, mode: TableLock) {
        match self.locks.iter_mut().find(|(oid, _)| *oid == table) {
            Some((_, held)) => *held = (*held).max(mode),
            None => self.locks.push((table, mode)),
        }
    }
}
