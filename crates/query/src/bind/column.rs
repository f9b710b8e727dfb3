//! Column references and stars.
//!
//! A name is searched from the innermost query to the outermost. The first use of a source's column
//! gives it a register.

use pg_query::NodeEnum;
use pg_query::protobuf::ColumnRef;

use super::{Barred, Binder, Clause, ColumnValue, Entry};
use crate::bound::SourceId;
use crate::parse::strings;
use catalog::system_columns::SYSTEM_COLUMNS;
use expressions::expr::{Case, Expr};
use values::error::{SqlError, SqlState};
use values::types::Type;

/// A column found by a search through the levels.
struct Found {
    level: usize,
    entry: usize,
    column: usize,
}

impl Binder<'_> {
    /// A column reference in an expression.
    pub(crate) fn column_ref(&mut self, reference: &ColumnRef) -> Result<Expr, SqlError> {
        let location = reference.location;
        if self.level().clause == Clause::Default {
            let message = "cannot use column reference in DEFAULT expression";
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location));
        }
        let names = strings(&reference.fields);
        if reference.fields.last().is_some_and(|node| matches!(node.node, Some(NodeEnum::AStar(_)))) {
            let Some(table) = names.last() else {
                let message = "row expansion via \"*\" is not supported here";
                return Err(self.error(SqlState::SYNTAX_ERROR, message, location));
            };
            // As an argument, `table.*` is the whole row.
            let schema = (names.len() > 1).then(|| names[names.len() - 2]);
            let Some((level, entry)) = self.find_entry(schema, table, location)? else {
                return Err(self.no_entry(schema, table, location));
            };
            return self.whole_row(level, entry, location);
        }
        match *names.as_slice() {
            [name] => self.plain_column(name, location),
            [table, name] => self.qualified_column(None, table, name, location),
            [schema, table, name] => self.qualified_column(Some(schema), table, name, location),
            [database, schema, table, name] if database == self.catalog().database.name => {
                self.qualified_column(Some(schema), table, name, location)
            }
            _ => Err(self.error(
                SqlState::SYNTAX_ERROR,
                format!("improper qualified name (too many dotted names): {}", names.join(".")),
                location,
            )),
        }
    }

    fn plain_column(&mut self, name: &str, location: i32) -> Result<Expr, SqlError> {
        for level in (0..self.levels.len()).rev() {
            let mut found: Option<Found> = None;
            for (entry, candidate) in self.levels[level].entries.iter().enumerate() {
                for (column, _) in
                    candidate.columns.iter().enumerate().filter(|(_, c)| !c.hidden && c.name == name)
                {
                    if found.is_some() {
                        return Err(self.error(
                            SqlState::AMBIGUOUS_COLUMN,
                            format!("column reference \"{name}\" is ambiguous"),
                            location,
                        ));
                    }
                    found = Some(Found { level, entry, column });
                }
            }
            if let Some(found) = found {
                self.check_joined(level, found.entry, location)?;
                return Ok(self.use_column(&found, location));
            }
            if let Some(entry) = self.system_entry(level, name, location)? {
                self.check_joined(level, entry, location)?;
                return self.system_column(level, entry, name, location);
            }
        }
        // A bare name of an entry of FROM is that entry's whole row.
        for level in (0..self.levels.len()).rev() {
            if let Some(entry) =
                self.levels[level].entries.iter().position(|e| e.name.as_deref() == Some(name))
            {
                self.check_joined(level, entry, location)?;
                return self.whole_row(level, entry, location);
            }
        }
        Err(self.error(SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"), location))
    }

    fn qualified_column(
        &mut self,
        schema: Option<&str>,
        table: &str,
        name: &str,
        location: i32,
    ) -> Result<Expr, SqlError> {
        let Some((level, entry)) = self.find_entry(schema, table, location)? else {
            return Err(self.no_entry(schema, table, location));
        };
        let columns = &self.levels[level].entries[entry].columns;
        let matching: Vec<usize> = (0..columns.len()).filter(|&i| columns[i].name == name).collect();
        match *matching.as_slice() {
            [column] => Ok(self.use_column(&Found { level, entry, column }, location)),
            [] if SYSTEM_COLUMNS.contains(&name)
                && has_system_columns(&self.levels[level].entries[entry]) =>
            {
                self.system_column(level, entry, name, location)
            }
            [] => Err(self.error(
                SqlState::UNDEFINED_COLUMN,
                format!("column {table}.{name} does not exist"),
                location,
            )),
            _ => Err(self.error(
                SqlState::AMBIGUOUS_COLUMN,
                format!("column reference \"{name}\" is ambiguous"),
                location,
            )),
        }
    }

    /// Raises 42P10 if an item of FROM names an entry that it may not name.
    fn check_joined(&self, level: usize, entry: usize, location: i32) -> Result<(), SqlError> {
        let level = &self.levels[level];
        let Some((_, why)) = level.barred.iter().find(|(range, _)| range.contains(&entry)) else {
            return Ok(());
        };
        let name = level.entries[entry].name.as_deref().unwrap_or_default();
        let message = format!("invalid reference to FROM-clause entry for table \"{name}\"");
        let error = self.error(SqlState::INVALID_COLUMN_REFERENCE, message, location);
        Err(match why {
            Barred::Joined => {
                error.with_detail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
            }
            Barred::Changed => error.with_hint(format!(
                "There is an entry for table \"{name}\", but it cannot be referenced from this part of the query."
            )),
        })
    }

    /// The entry with this name; inner levels come first.
    fn find_entry(
        &self,
        schema: Option<&str>,
        table: &str,
        location: i32,
    ) -> Result<Option<(usize, usize)>, SqlError> {
        for level in (0..self.levels.len()).rev() {
            let entries = &self.levels[level].entries;
            let mut matching = entries.iter().enumerate().filter(|(_, entry)| {
                entry.name.as_deref() == Some(table)
                    && schema.is_none_or(|schema| entry.schema.as_deref() == Some(schema))
            });
            if let Some((entry, _)) = matching.next() {
                if matching.next().is_some() {
                    return Err(self.error(
                        SqlState::AMBIGUOUS_ALIAS,
                        format!("table reference \"{table}\" is ambiguous"),
                        location,
                    ));
                }
                self.check_joined(level, entry, location)?;
                return Ok(Some((level, entry)));
            }
        }
        Ok(None)
    }

    fn no_entry(&self, schema: Option<&str>, table: &str, location: i32) -> SqlError {
        let returning = self.levels.iter().any(|level| level.clause == Clause::Returning);
        if returning && schema.is_none() && matches!(table, "old" | "new") {
            return self.unsupported("OLD and NEW in RETURNING", location);
        }
        let name = schema.map_or_else(|| table.to_owned(), |schema| format!("{schema}.{table}"));
        let aliased = self.levels.iter().rev().flat_map(|level| &level.entries).find(|entry| {
            entry.name.as_deref() != Some(table) && entry.table.as_ref().is_some_and(|t| t.name == table)
        });
        if let Some(alias) = aliased.and_then(|entry| entry.name.as_deref()) {
            return self
                .error(
                    SqlState::UNDEFINED_TABLE,
                    format!("invalid reference to FROM-clause entry for table \"{name}\""),
                    location,
                )
                .with_hint(format!("Perhaps you meant to reference the table alias \"{alias}\"."));
        }
        self.error(
            SqlState::UNDEFINED_TABLE,
            format!("missing FROM-clause entry for table \"{name}\""),
            location,
        )
    }

    /// The value of a found column. The first use gives the column a register.
    fn use_column(&mut self, found: &Found, location: i32) -> Expr {
        let entry = &self.levels[found.level].entries[found.entry];
        let column = &entry.columns[found.column];
        let shown = match &entry.name {
            Some(table) => format!("{table}.{}", column.name),
            None => column.name.clone(),
        };
        let expr = self.column_value(&column.value.clone());
        let inner = found.level + 1 < self.levels.len();
        let level = &mut self.levels[found.level];
        // The binder notes the column only in these clauses. Clauses with aggregates are evaluated
        // above the grouping; GROUP BY is compared with them; LIMIT may read no column.
        if level.clause.allows_aggregates() || matches!(level.clause, Clause::Group | Clause::Limit) {
            expr.walk(&mut |part| {
                if let Expr::Column { register, .. } = part {
                    level.uses.push(super::Use { register: *register, location, name: shown.clone(), inner });
                }
            });
        }
        expr
    }

    /// The expression of an entry's column.
    fn column_value(&mut self, value: &ColumnValue) -> Expr {
        match value {
            ColumnValue::Value(expr) => expr.clone(),
            ColumnValue::Source { source, column, type_ } => {
                Expr::column(self.source_register(*source, *column), *type_)
            }
        }
    }

    /// The register of a source's column. The first use assigns it.
    pub(crate) fn source_register(&mut self, source: SourceId, column: usize) -> u32 {
        let columns = &mut self.sources[source].columns;
        if columns.len() <= column {
            columns.resize(column + 1, None);
        }
        if let Some(register) = self.sources[source].columns[column] {
            return register;
        }
        let register = self.register();
        self.sources[source].columns[column] = Some(register);
        let table = self.levels.iter().flat_map(|level| &level.entries).find(|e| e.source == Some(source));
        if let Some(table) = table.and_then(|entry| entry.table.as_ref()) {
            let attribute = i16::try_from(column + 1).unwrap_or(0);
            self.origins.insert(register, (table.oid, attribute));
        }
        register
    }

    fn whole_row(&mut self, level: usize, entry: usize, location: i32) -> Result<Expr, SqlError> {
        let found = &self.levels[level].entries[entry];
        if found.scalar {
            return Ok(self.use_column(&Found { level, entry, column: 0 }, location));
        }
        let names = found.columns.iter().map(|column| column.name.clone()).collect();
        let fields = (0..found.columns.len())
            .map(|column| self.use_column(&Found { level, entry, column }, location))
            .collect();
        let row = Expr::Row { fields, names: Some(names) };
        self.where_present(level, entry, row, location)
    }

    /// A value of an entry's row, or NULL where an outer join found no row.
    fn where_present(
        &mut self,
        level: usize,
        entry: usize,
        value: Expr,
        location: i32,
    ) -> Result<Expr, SqlError> {
        let found = &self.levels[level].entries[entry];
        if !found.nullable {
            return Ok(value);
        }
        let (Some(source), Some(table)) = (found.source, &found.table) else {
            return Err(self.unsupported("the row of a subquery or function in an outer join", location));
        };
        if table.is_virtual() {
            return Err(self.unsupported("the row of a catalog relation in an outer join", location));
        }
        let key = self.identify(source).key;
        let absent = Expr::NullTest { input: Box::new(Expr::column(key, Type::BYTEA)), negated: false };
        let type_ = value.type_();
        let branches = vec![(absent, Expr::null(type_))];
        Ok(Expr::Case(Box::new(Case { branches, otherwise: value, type_ })))
    }

    /// The entry of a level whose system column has this plain name.
    fn system_entry(&self, level: usize, name: &str, location: i32) -> Result<Option<usize>, SqlError> {
        if !SYSTEM_COLUMNS.contains(&name) {
            return Ok(None);
        }
        let entries = self.levels[level].entries.iter().enumerate();
        let mut tables = entries.filter(|(_, entry)| has_system_columns(entry));
        match (tables.next(), tables.next()) {
            (Some(_), Some(_)) => {
                let message = format!("column reference \"{name}\" is ambiguous");
                Err(self.error(SqlState::AMBIGUOUS_COLUMN, message, location))
            }
            (only, _) => Ok(only.map(|(entry, _)| entry)),
        }
    }

    /// A system column of a table. Rows are in a tree by their keys and have no address, so there
    /// is no ctid.
    fn system_column(
        &mut self,
        level: usize,
        entry: usize,
        name: &str,
        location: i32,
    ) -> Result<Expr, SqlError> {
        match &self.levels[level].entries[entry].table {
            Some(table) if name == "tableoid" => {
                let number = table_oid(table.oid);
                self.where_present(level, entry, number, location)
            }
            _ => Err(self.unsupported(&format!("system column \"{name}\""), location)),
        }
    }

    /// The names and values of the columns that `*` or `table.*` stands for.
    pub(crate) fn star(&mut self, reference: &ColumnRef) -> Result<Vec<(String, Expr)>, SqlError> {
        let location = reference.location;
        let names = strings(&reference.fields);
        let level = self.levels.len() - 1;
        let picked: Vec<(usize, usize, usize)> = match *names.as_slice() {
            [] => {
                let entries = &self.levels[level].entries;
                if entries.is_empty() {
                    return Err(self.error(
                        SqlState::SYNTAX_ERROR,
                        "SELECT * with no tables specified is not valid",
                        location,
                    ));
                }
                let all = entries.iter().enumerate().flat_map(|(entry, candidate)| {
                    let shown = candidate.columns.iter().enumerate().filter(|(_, c)| !c.hidden);
                    shown.map(move |(column, _)| (level, entry, column))
                });
                all.collect()
            }
            [.., table] => {
                let schema = (names.len() > 1).then(|| names[names.len() - 2]);
                let Some((level, entry)) = self.find_entry(schema, table, location)? else {
                    return Err(self.no_entry(schema, table, location));
                };
                (0..self.levels[level].entries[entry].columns.len())
                    .map(|column| (level, entry, column))
                    .collect()
            }
        };
        let mut columns = Vec::with_capacity(picked.len());
        for (level, entry, column) in picked {
            let name = self.levels[level].entries[entry].columns[column].name.clone();
            columns.push((name, self.use_column(&Found { level, entry, column }, location)));
        }
        Ok(columns)
    }

    /// The value of a column of an entry that is in no level yet (USING).
    pub(crate) fn entry_column(&mut self, entry: &Entry, column: usize) -> Expr {
        let value = entry.columns[column].value.clone();
        let expr = self.column_value(&value);
        if let (Expr::Column { register, .. }, ColumnValue::Source { column, .. }, Some(table)) =
            (&expr, &value, &entry.table)
        {
            self.origins.insert(*register, (table.oid, i16::try_from(column + 1).unwrap_or(0)));
        }
        expr
    }
}

/// Whether an entry is a stored table's row. The row `excluded` of ON CONFLICT has no system
/// columns.
fn has_system_columns(entry: &Entry) -> bool {
    entry.table.is_some() && entry.name.as_deref() != Some("excluded")
}

fn table_oid(oid: u32) -> Expr {
    Expr::constant(values::types::Value::Oid(oid), Type::OID)
}
