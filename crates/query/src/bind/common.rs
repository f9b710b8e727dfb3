//! WITH: common table expressions.
//!
//! A WITH query has a number that is unique in the statement. Its name is visible to later queries
//! of the clause and to the statement itself; with RECURSIVE, to all queries of the clause.

use pg_query::NodeEnum;
use pg_query::protobuf::{CommonTableExpr, CteMaterialize, RangeVar, SelectStmt, WithClause};

use super::{Binder, ColumnValue, Entry, EntryColumn, inner, inner_of};
use crate::bound::{CommonQuery, FromItem, OutputColumn, Query, Source};
use crate::parse::strings;
use expressions::expr::Expr;
use expressions::functions::{self, CastContext};
use values::error::{SqlError, SqlState};
use values::types::{Type, oid};

/// A WITH query that the current place may name.
pub(crate) struct Visible {
    name: String,
    id: u32,
    columns: Vec<(String, Type)>,
    /// Names and types of the fields of columns that are rows.
    records: Vec<Option<Vec<(String, Type)>>>,
    /// Whether its recursive term is being bound.
    working: bool,
}

impl Binder<'_> {
    /// Binds a WITH clause. Afterwards the caller removes the names with [`Binder::forget_common`].
    pub(crate) fn with_clause(&mut self, with: Option<&WithClause>) -> Result<Vec<CommonQuery>, SqlError> {
        let Some(with) = with else { return Ok(Vec::new()) };
        let mut queries: Vec<&CommonTableExpr> = Vec::with_capacity(with.ctes.len());
        for node in &with.ctes {
            let NodeEnum::CommonTableExpr(common) = inner(node)? else {
                return Err(SqlError::internal("WITH without a query"));
            };
            if queries.iter().any(|other| other.ctename == common.ctename) {
                return Err(self.error(
                    SqlState::DUPLICATE_ALIAS,
                    format!("WITH query name \"{}\" specified more than once", common.ctename),
                    common.location,
                ));
            }
            queries.push(common);
        }
        if with.recursive {
            queries = self.in_order(&queries)?;
        }
        let mut tables = Vec::with_capacity(queries.len());
        for common in queries {
            if common.search_clause.is_some() || common.cycle_clause.is_some() {
                return Err(self.unsupported("SEARCH or CYCLE", common.location));
            }
            let NodeEnum::SelectStmt(select) = inner_of(common.ctequery.as_deref())? else {
                return Err(self.unsupported("a data-modifying statement in WITH", common.location));
            };
            let names = strings(&common.aliascolnames);
            let id = self.common_number();
            let recursive = with.recursive && self.is_recursive(select, &common.ctename, common.location)?;
            let mark = self.common_mark();
            let query = if recursive {
                // WITH of the UNION itself: both its terms read those tables, which stay the same
                // in every iteration.
                tables.extend(self.with_clause(select.with_clause.as_ref())?);
                self.recursive(select, &common.ctename, id, &names, common.location)?
            } else {
                let materialized = common.ctematerialized() == CteMaterialize::Always;
                let inlined = common.ctematerialized() == CteMaterialize::Never;
                let (name, query) = (common.ctename.clone(), self.query(select, None)?);
                CommonQuery { id, name, query, recursive: None, materialized, inlined }
            };
            let columns =
                self.common_columns(&query.query.output, &names, &common.ctename, common.location)?;
            let records = self.output_records(&query.query);
            self.forget_common(mark);
            self.common.push(Visible { name: common.ctename.clone(), id, columns, records, working: false });
            tables.push(query);
        }
        Ok(tables)
    }

    /// The known fields of a query's row-valued columns.
    fn output_records(&self, query: &Query) -> Vec<Option<Vec<(String, Type)>>> {
        let fields = |column: &OutputColumn| self.field_names(&Expr::column(column.register, column.type_));
        query.output.iter().map(fields).collect()
    }

    /// The number of visible WITH names, for [`Binder::forget_common`].
    pub(crate) fn common_mark(&self) -> usize {
        self.common.len()
    }

    /// Removes the WITH names added since a mark.
    pub(crate) fn forget_common(&mut self, mark: usize) {
        self.common.truncate(mark);
    }

    fn common_columns(
        &self,
        output: &[OutputColumn],
        names: &[&str],
        name: &str,
        location: i32,
    ) -> Result<Vec<(String, Type)>, SqlError> {
        if names.len() > output.len() {
            return Err(self.error(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!(
                    "WITH query \"{name}\" has {} columns available but {} columns specified",
                    output.len(),
                    names.len()
                ),
                location,
            ));
        }
        let aliases = names.iter().map(|name| (*name).to_owned());
        let own = output.iter().skip(names.len()).map(|column| column.name.clone());
        Ok(aliases.chain(own).zip(output).map(|(name, column)| (name, column.type_)).collect())
    }

    /// Binds `base UNION [ALL] term`, where the term names the query itself.
    fn recursive(
        &mut self,
        select: &SelectStmt,
        name: &str,
        id: u32,
        names: &[&str],
        location: i32,
    ) -> Result<CommonQuery, SqlError> {
        let (Some(left), Some(right)) = (&select.larg, &select.rarg) else {
            return Err(SqlError::internal("a recursive query of one term"));
        };
        let base = self.query(left, None)?;
        let columns = self.common_columns(&base.output, names, name, location)?;
        let records = self.output_records(&base);
        self.common.push(Visible { name: name.to_owned(), id, columns, records, working: true });
        let mut term = self.query(right, Some(false))?;
        if term.output.len() != base.output.len() {
            return Err(self.error(
                SqlState::SYNTAX_ERROR,
                "each UNION query must have the same number of columns",
                location,
            ));
        }
        for (index, column) in base.output.iter().enumerate() {
            let term_type = term.output[index].type_;
            let differs = column.type_.modifier >= 0 && term_type != column.type_;
            if term_type.oid == column.type_.oid && !differs {
                continue;
            }
            let castable = term_type.oid == oid::UNKNOWN
                || functions::can_cast(term_type, column.type_, CastContext::Implicit);
            if differs || !castable {
                let term_type = Type::new(if castable { column.type_.oid } else { term_type.oid });
                return Err(self
                    .error(
                        SqlState::DATATYPE_MISMATCH,
                        format!(
                            "recursive query \"{name}\" column {} has type {} in non-recursive term but type {term_type} overall",
                            index + 1,
                            column.type_
                        ),
                        target_location(left, index).unwrap_or(location),
                    )
                    .with_hint("Cast the output of the non-recursive term to the correct type."));
            }
            self.coerce_output(&mut term, index, column.type_, CastContext::Implicit)?;
        }
        let (name, recursive) = (name.to_owned(), Some((term, select.all)));
        Ok(CommonQuery { id, name, query: base, recursive, materialized: true, inlined: false })
    }

    /// The FROM item that a plain name stands for, if a visible WITH query has the name.
    pub(crate) fn common_reference(
        &mut self,
        range: &RangeVar,
    ) -> Result<Option<(FromItem, Vec<Entry>)>, SqlError> {
        let Some(found) = self.common.iter().rposition(|visible| visible.name == range.relname) else {
            return Ok(None);
        };
        let source = self.source();
        self.level().reads_itself |= self.common[found].working;
        let visible = &self.common[found];
        let (id, records) = (visible.id, visible.records.clone());
        let columns = visible.columns.iter().enumerate().map(|(column, (name, type_))| EntryColumn {
            name: name.clone(),
            value: ColumnValue::Source { source, column, type_: *type_ },
            hidden: false,
        });
        let mut entry = Entry {
            name: Some(visible.name.clone()),
            schema: None,
            columns: columns.collect(),
            source: Some(source),
            table: None,
            scalar: false,
            nullable: false,
        };
        if let Some(alias) = &range.alias {
            entry.name = Some(alias.aliasname.clone());
            for (column, name) in entry.columns.iter_mut().zip(strings(&alias.colnames)) {
                name.clone_into(&mut column.name);
            }
        }
        for (column, fields) in records.into_iter().enumerate() {
            if let Some(fields) = fields {
                let register = self.source_register(source, column);
                self.records.insert(register, fields);
            }
        }
        Ok(Some((FromItem::Source(source, Source::Common(id)), vec![entry])))
    }
}

/// The location of this column in the first query of a union, if the query lists it.
fn target_location(select: &SelectStmt, index: usize) -> Option<i32> {
    if let Some(left) = &select.larg {
        return target_location(left, index);
    }
    let NodeEnum::ResTarget(target) = select.target_list.get(index)?.node.as_ref()? else { return None };
    target.val.as_deref().map(super::location::location)
}

/// The names and types of a query's output, for errors and definitions.
impl Query {
    /// Names and types of the columns.
    pub fn shape(&self) -> impl Iterator<Item = (&str, Type)> {
        self.output.iter().map(|column| (column.name.as_str(), column.type_))
    }
}
