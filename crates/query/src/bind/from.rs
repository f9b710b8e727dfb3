//! FROM: tables, subqueries and joins, and the names they make visible. Functions are in
//! [`super::from_function`].
//!
//! What must hold:
//!
//! 1. A name is visible to a subquery on its right only if that is LATERAL. Names that a join bars
//!    are found and refused, and never taken for a name further out.
//! 2. An item that hides names while it is bound restores them afterwards, also after an error.
//! 3. Columns of a side that an outer join may leave out are nullable outside of the join. Its own
//!    condition sees rows of both sides.
//! 4. A column that USING merges reads a side that is always present, and hides both originals.
//! 5. A name stands for one item of a FROM list, unless tables of two schemas bear it.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{Alias, JoinExpr, JoinType, Node, RangeSubselect, RangeVar};
use runtime::hash::SeededSet;

use super::{Barred, Binder, Clause, ColumnValue, Entry, EntryColumn, SourceRegisters, inner, inner_of};
use crate::bound::{FromItem, Source, SourceId};
use crate::parse::strings;
use crate::plan::JoinKind;
use catalog::{Relation, Table};
use expressions::expr::Expr;
use expressions::functions::{self, CastContext};
use values::error::{SqlError, SqlState};

impl Binder<'_> {
    /// Binds a FROM list as an inner join of its items, and makes their names visible.
    pub(crate) fn sources_of(&mut self, items: &[Node]) -> Result<Option<FromItem>, SqlError> {
        let mut result: Option<FromItem> = None;
        for node in items {
            let (item, entries) = self.item(node)?;
            self.add_entries(entries)?;
            result = Some(match result {
                None => item,
                Some(left) => FromItem::Join {
                    kind: JoinKind::Inner,
                    left: Box::new(left),
                    right: Box::new(item),
                    condition: Vec::new(),
                    listed: true,
                    items: Some(0),
                },
            });
        }
        Ok(result)
    }

    /// Makes names visible. Each name may occur once.
    pub(crate) fn add_entries(&mut self, entries: Vec<Entry>) -> Result<(), SqlError> {
        for entry in entries {
            self.check_new_name(&entry, None)?;
            self.level().entries.push(entry);
        }
        Ok(())
    }

    fn check_new_name(&self, entry: &Entry, among: Option<&[Entry]>) -> Result<(), SqlError> {
        let own = self.levels.last().map_or(&[][..], |level| &level.entries);
        let taken = among.unwrap_or(own).iter().any(|other| {
            other.name.is_some()
                && other.name == entry.name
                && (other.schema.is_none() || entry.schema.is_none() || other.schema == entry.schema)
        });
        match &entry.name {
            Some(name) if taken => Err(SqlError::new(
                SqlState::DUPLICATE_ALIAS,
                format!("table name \"{name}\" specified more than once"),
            )),
            _ => Ok(()),
        }
    }

    fn item(&mut self, node: &Node) -> Result<(FromItem, Vec<Entry>), SqlError> {
        match inner(node)? {
            NodeEnum::RangeVar(range) => self.range_var(range),
            NodeEnum::RangeSubselect(subselect) => self.subselect(subselect),
            NodeEnum::RangeFunction(function) => self.range_function(function),
            NodeEnum::JoinExpr(join) => self.join(join),
            NodeEnum::RangeTableSample(sample) => Err(self.unsupported("TABLESAMPLE", sample.location)),
            _ => Err(self.unsupported("this item in FROM", -1)),
        }
    }

    /// Registers a new source.
    pub(crate) fn source(&mut self) -> SourceId {
        self.sources.push(SourceRegisters::default());
        self.sources.len() - 1
    }

    fn range_var(&mut self, range: &RangeVar) -> Result<(FromItem, Vec<Entry>), SqlError> {
        if range.schemaname.is_empty()
            && let Some(found) = self.common_reference(range)?
        {
            return Ok(found);
        }
        match self.find_relation(range)? {
            Some(Relation::Table(table)) => {
                if !table.is_virtual() {
                    self.lock(table.oid, txn::TableLock::AccessShare);
                }
                let source = self.source();
                let entry = self.table_entry(source, &table, range)?;
                Ok((FromItem::Source(source, Source::Table(table)), vec![entry]))
            }
            Some(Relation::Sequence(sequence)) => {
                Err(self.unsupported(&format!("reading sequence \"{}\"", sequence.name), range.location))
            }
            Some(Relation::Index(..)) => Err(self
                .error(
                    SqlState::WRONG_OBJECT_TYPE,
                    format!("cannot open relation \"{}\"", range.relname),
                    range.location,
                )
                .with_detail("This operation is not supported for indexes.")),
            None => Err(self.no_relation(range)),
        }
    }

    /// The entry of a table under its name or alias.
    pub(crate) fn table_entry(
        &mut self,
        source: SourceId,
        table: &Arc<Table>,
        range: &RangeVar,
    ) -> Result<Entry, SqlError> {
        let columns = table.live_columns().map(|(position, column)| EntryColumn {
            name: column.name.clone(),
            value: ColumnValue::Source { source, column: position, type_: column.type_ },
            hidden: false,
        });
        let schema = range.alias.is_none().then(|| self.catalog().schema_name(table.schema).to_owned());
        let mut entry = Entry {
            name: Some(table.name.clone()),
            schema,
            columns: columns.collect(),
            source: Some(source),
            table: Some(Arc::clone(table)),
            scalar: false,
            nullable: false,
        };
        self.apply_alias(&mut entry, range.alias.as_ref())?;
        Ok(entry)
    }

    pub(crate) fn apply_alias(&self, entry: &mut Entry, alias: Option<&Alias>) -> Result<(), SqlError> {
        let Some(alias) = alias else { return Ok(()) };
        entry.name = Some(alias.aliasname.clone());
        let names = strings(&alias.colnames);
        if names.len() > entry.columns.len() {
            let message = format!(
                "table \"{}\" has {} columns available but {} columns specified",
                alias.aliasname,
                entry.columns.len(),
                names.len()
            );
            return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
        }
        for (column, name) in entry.columns.iter_mut().zip(names) {
            name.clone_into(&mut column.name);
        }
        Ok(())
    }

    fn subselect(&mut self, subselect: &RangeSubselect) -> Result<(FromItem, Vec<Entry>), SqlError> {
        let NodeEnum::SelectStmt(select) = inner_of(subselect.subquery.as_deref())? else {
            return Err(SqlError::internal("subquery in FROM is no SELECT"));
        };
        let level = self.level();
        let hidden = match subselect.lateral {
            true => None,
            false => Some((std::mem::take(&mut level.entries), std::mem::take(&mut level.barred))),
        };
        let query = self.query(select, None);
        if let Some(hidden) = hidden {
            let level = self.level();
            (level.entries, level.barred) = hidden;
        }
        let query = query?;
        let columns = query.output.iter().map(|column| EntryColumn {
            name: column.name.clone(),
            value: ColumnValue::Value(Expr::column(column.register, column.type_)),
            hidden: false,
        });
        let source = self.source();
        let mut entry = Entry {
            // Without an alias the columns have no qualifier.
            name: None,
            schema: None,
            columns: columns.collect(),
            source: Some(source),
            table: None,
            scalar: false,
            nullable: false,
        };
        self.apply_alias(&mut entry, subselect.alias.as_ref())?;
        Ok((FromItem::Source(source, Source::Query(Box::new(query))), vec![entry]))
    }

    fn join(&mut self, join: &JoinExpr) -> Result<(FromItem, Vec<Entry>), SqlError> {
        let kind = match JoinType::try_from(join.jointype) {
            Ok(JoinType::JoinInner) => JoinKind::Inner,
            Ok(JoinType::JoinLeft) => JoinKind::Left,
            Ok(JoinType::JoinRight) => JoinKind::Right,
            Ok(JoinType::JoinFull) => JoinKind::Full,
            _ => return Err(self.unsupported("this join", -1)),
        };
        let (left, left_entries) = self.item(inner_node(join.larg.as_deref())?)?;
        let before = self.level().entries.len();
        self.level().entries.extend(left_entries.iter().cloned());
        let level = self.level();
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            level.barred.push((before..level.entries.len(), Barred::Joined));
        }
        let barred = level.barred.len();
        let right = self.item(inner_node(join.rarg.as_deref())?);
        let level = self.level();
        level.entries.truncate(before);
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            level.barred.truncate(barred - 1);
        }
        let (right, right_entries) = right?;
        for entry in &right_entries {
            self.check_new_name(entry, Some(&left_entries))?;
        }
        let (mut left_entries, mut right_entries) = (left_entries, right_entries);
        // The join's own condition sees rows of both sides.
        let absent = (
            matches!(kind, JoinKind::Right | JoinKind::Full),
            matches!(kind, JoinKind::Left | JoinKind::Full),
        );
        let (merged, mut condition) =
            self.merged_columns(join, kind, &mut left_entries, &mut right_entries)?;
        let mut entries = Vec::new();
        if !merged.is_empty() {
            let name = join.join_using_alias.as_ref().map(|alias| alias.aliasname.clone());
            entries.push(joined_entry(name, merged));
        }
        let left_side = entries.len()..entries.len() + left_entries.len();
        entries.extend(left_entries);
        entries.extend(right_entries);
        if let Some(quals) = join.quals.as_deref() {
            condition.extend(self.join_condition(quals, &entries)?);
        }
        for (at, entry) in entries.iter_mut().enumerate().skip(left_side.start) {
            entry.nullable |= if left_side.contains(&at) { absent.0 } else { absent.1 };
        }
        if let Some(alias) = &join.alias {
            let columns = shown(&entries).map(|(_, _, column)| column.clone()).collect();
            // The joined row is present even if one side is missing.
            let mut entry = joined_entry(None, columns);
            self.apply_alias(&mut entry, Some(alias))?;
            entries = vec![entry];
        }
        let (left, right) = (Box::new(left), Box::new(right));
        let item = FromItem::Join { kind, left, right, condition, listed: false, items: Some(0) };
        Ok((item, entries))
    }

    /// The columns that NATURAL or USING merges, and the conditions that they are equal. Hides them
    /// on both sides.
    fn merged_columns(
        &mut self,
        join: &JoinExpr,
        kind: JoinKind,
        left_entries: &mut [Entry],
        right_entries: &mut [Entry],
    ) -> Result<(Vec<EntryColumn>, Vec<Expr>), SqlError> {
        let names: Vec<String> = if join.is_natural {
            let right_names: SeededSet<String> =
                shown(right_entries).map(|(_, _, c)| c.name.clone()).collect();
            shown(left_entries).map(|(_, _, c)| c.name.clone()).filter(|n| right_names.contains(n)).collect()
        } else {
            strings(&join.using_clause).into_iter().map(str::to_owned).collect()
        };
        let (mut merged, mut condition) = (Vec::new(), Vec::new());
        for name in names {
            let (a, b) = (
                self.using_column(left_entries, &name, "left")?,
                self.using_column(right_entries, &name, "right")?,
            );
            condition.push(functions::operator("=", Some(a.clone()), b.clone())?);
            let value = merged_value(kind, &a, &b)?;
            merged.push(EntryColumn { name, value: ColumnValue::Value(value), hidden: false });
        }
        Ok((merged, condition))
    }

    /// The conjuncts of ON. ON sees only the names of the join's two sides.
    fn join_condition(&mut self, quals: &Node, entries: &[Entry]) -> Result<Vec<Expr>, SqlError> {
        let level = self.level();
        let hidden =
            (std::mem::replace(&mut level.entries, entries.to_vec()), std::mem::take(&mut level.barred));
        let bound = self.in_clause(Clause::Join, |binder| binder.conjuncts(Some(quals), "JOIN/ON"));
        let level = self.level();
        (level.entries, level.barred) = hidden;
        let mut bound = bound?;
        self.drop_decided(&mut bound);
        Ok(bound)
    }

    /// The column of one side that USING names. From now on the merged column hides it.
    fn using_column(&mut self, entries: &mut [Entry], name: &str, side: &str) -> Result<Expr, SqlError> {
        let found: Vec<(usize, usize)> =
            shown(entries).filter(|(_, _, column)| column.name == name).map(|(e, c, _)| (e, c)).collect();
        match *found.as_slice() {
            [(entry, column)] => {
                let expr = self.entry_column(&entries[entry], column);
                entries[entry].columns[column].hidden = true;
                Ok(expr)
            }
            [] => Err(SqlError::new(
                SqlState::UNDEFINED_COLUMN,
                format!("column \"{name}\" specified in USING clause does not exist in {side} table"),
            )),
            _ => Err(SqlError::new(
                SqlState::AMBIGUOUS_COLUMN,
                format!("common column name \"{name}\" appears more than once in {side} table"),
            )),
        }
    }
}

/// The entry of a joined row that is no table's.
fn joined_entry(name: Option<String>, columns: Vec<EntryColumn>) -> Entry {
    Entry { name, schema: None, columns, source: None, table: None, scalar: false, nullable: false }
}

/// The value of a column that USING merges, with the common type of both sides. It reads a side
/// that is always present; for an inner join, the side that needs no cast.
fn merged_value(kind: JoinKind, a: &Expr, b: &Expr) -> Result<Expr, SqlError> {
    let common = functions::common_type("JOIN/USING", &[a.type_(), b.type_()])?;
    let side = match kind {
        JoinKind::Full => {
            let (both, type_) = functions::unify("JOIN/USING", vec![a.clone(), b.clone()])?;
            return Ok(Expr::Coalesce(both, type_));
        }
        JoinKind::Right => b,
        JoinKind::Inner if a.type_().oid != common.oid && b.type_().oid == common.oid => b,
        _ => a,
    };
    functions::cast(side.clone(), common, CastContext::Implicit)
}

fn inner_node(node: Option<&Node>) -> Result<&Node, SqlError> {
    node.ok_or_else(|| SqlError::internal("join without a side"))
}

/// The columns visible without a qualifier: (entry, column, definition).
fn shown(entries: &[Entry]) -> impl Iterator<Item = (usize, usize, &EntryColumn)> {
    entries.iter().enumerate().flat_map(|(index, entry)| {
        entry.columns.iter().enumerate().filter(|(_, c)| !c.hidden).map(move |(c, column)| (index, c, column))
    })
}
