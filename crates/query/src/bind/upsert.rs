//! INSERT ... ON CONFLICT.
//!
//! DO UPDATE sees two rows: the existing one under the table's name, and the refused one as
//! `excluded`.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{InferClause, OnConflictAction, OnConflictClause};

use super::{Binder, Clause, inner};
use crate::bound::Conflict;
use crate::plan::{Arbiter, ColumnRead, ConflictUpdate, Reg};
use catalog::Table;
use catalog::system_columns::SYSTEM_COLUMNS;
use values::error::{SqlError, SqlState};

impl Binder<'_> {
    /// Binds ON CONFLICT. `name` and `schema`: the statement's names for the table.
    pub(crate) fn on_conflict(
        &mut self,
        clause: &OnConflictClause,
        table: &Arc<Table>,
        (name, schema): (&str, Option<&str>),
        new_row: Reg,
    ) -> Result<Conflict, SqlError> {
        let arbiter = clause.infer.as_ref().map(|infer| self.arbiter(infer, table)).transpose()?;
        let arbiter = || arbiter.map(|key| key.ok_or_else(no_arbiter)).transpose();
        if clause.action != OnConflictAction::OnconflictUpdate as i32 {
            return Ok(Conflict { arbiter: arbiter()?, update: None });
        }
        if clause.infer.is_none() {
            return Err(self
                .error(
                    SqlState::SYNTAX_ERROR,
                    "ON CONFLICT DO UPDATE requires inference specification or constraint name",
                    clause.location,
                )
                .with_hint("For example, ON CONFLICT (column_name)."));
        }
        self.scoped(|binder| {
            let source = binder.source();
            let existing = super::Entry {
                name: Some(name.to_owned()),
                schema: schema.map(str::to_owned),
                source: Some(source),
                ..binder.source_entry(source, table)
            };
            // Both rows have the plain column names, so those are ambiguous.
            let excluded = binder.row_entry("excluded", table, new_row);
            binder.level().entries = vec![existing, excluded];
            let assignments =
                binder.in_clause(Clause::Set, |binder| binder.assignments(&clause.target_list, table))?;
            let conditions = binder.in_clause(Clause::Where, |binder| {
                binder.conjuncts(clause.where_clause.as_deref(), "WHERE")
            })?;
            if !binder.level().sublinks.is_empty() {
                return Err(binder.unsupported("a subquery in ON CONFLICT DO UPDATE", clause.location));
            }
            let condition = (!conditions.is_empty()).then(|| expressions::expr::Expr::and(conditions));
            let updated_row = binder.register_block(table.columns.len());
            let checks = binder.checks(table, updated_row)?;
            let existing = binder.sources[source].columns.iter().enumerate();
            let existing = existing
                .filter_map(|(column, register)| {
                    register.map(|register| ColumnRead { column: column as u32, register })
                })
                .collect();
            let update = Some(ConflictUpdate { existing, condition, assignments, updated_row, checks });
            // PostgreSQL searches the key after it has analysed the action.
            Ok(Conflict { arbiter: arbiter()?, update })
        })
    }

    fn source_entry(&self, source: crate::bound::SourceId, table: &Arc<Table>) -> super::Entry {
        let columns = table.live_columns().map(|(column, definition)| super::EntryColumn {
            name: definition.name.clone(),
            value: super::ColumnValue::Source { source, column, type_: definition.type_ },
            hidden: false,
        });
        super::Entry {
            name: None,
            schema: None,
            columns: columns.collect(),
            source: None,
            table: Some(Arc::clone(table)),
            scalar: false,
            nullable: false,
        }
    }

    /// The unique key that ON CONFLICT (columns) or ON CONSTRAINT means; None if no key has these
    /// columns.
    fn arbiter(&self, infer: &InferClause, table: &Table) -> Result<Option<Arbiter>, SqlError> {
        if !infer.conname.is_empty() {
            let primary = table.primary_key.as_ref().is_some_and(|key| key.name == infer.conname);
            let index =
                table.indexes.iter().position(|index| index.constraint != 0 && index.name == infer.conname);
            return match (primary, index) {
                (true, _) => Ok(Some(Arbiter::PrimaryKey)),
                (false, Some(index)) => Ok(Some(Arbiter::Index(index))),
                (false, None) => Err(self.error(
                    SqlState::UNDEFINED_OBJECT,
                    format!("constraint \"{}\" for table \"{}\" does not exist", infer.conname, table.name),
                    -1,
                )),
            };
        }
        let mut wanted = Vec::with_capacity(infer.index_elems.len());
        for element in &infer.index_elems {
            let NodeEnum::IndexElem(element) = inner(element)? else { continue };
            if element.name.is_empty() {
                return Err(self.unsupported("ON CONFLICT by an expression", infer.location));
            }
            if SYSTEM_COLUMNS.contains(&element.name.as_str()) {
                return Ok(None);
            }
            let column = table.column(&element.name).ok_or_else(|| {
                self.error(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{}\" does not exist", element.name),
                    infer.location,
                )
            })?;
            wanted.push(column as u32);
        }
        wanted.sort_unstable();
        wanted.dedup();
        let matches = |columns: &mut dyn Iterator<Item = u32>| {
            let mut columns: Vec<u32> = columns.collect();
            columns.sort_unstable();
            columns == wanted
        };
        if table.primary_key.as_ref().is_some_and(|key| matches(&mut key.columns.iter().copied())) {
            return Ok(Some(Arbiter::PrimaryKey));
        }
        let index = table
            .indexes
            .iter()
            .position(|index| index.unique && matches(&mut index.columns.iter().map(|key| key.column)));
        Ok(index.map(Arbiter::Index))
    }
}

fn no_arbiter() -> SqlError {
    let message = "there is no unique or exclusion constraint matching the ON CONFLICT specification";
    SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message)
}
