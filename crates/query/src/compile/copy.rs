//! COPY: its relation or query, columns and options.
//!
//! COPY TO becomes a query, COPY FROM an INSERT. Options are checked in PostgreSQL's order, so that
//! of two errors both servers report the same one.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{CopyStmt, DefElem, Node};

use super::command::option_text;
use crate::bind::modify::relation;
pub(crate) use crate::bind::references::Rows;
use crate::bind::{Binder, inner};
use crate::bound::{Bound, Insert, Query, QueryBody, Returning, Select};
use crate::parse::strings;
use crate::plan::{Command, Copy, CopyFormat, CopyKind, CopyRelation, Statement};
use crate::planner::plan_bound;
use catalog::{Relation, Table};
use expressions::expr::Expr;
use values::error::{SqlError, SqlState};
use values::types::Type;

impl Binder<'_> {
    /// COPY.
    pub(crate) fn copy(&mut self, copy: &CopyStmt) -> Result<Command, SqlError> {
        if copy.is_program || !copy.filename.is_empty() {
            return Err(SqlError::unsupported("COPY to or from a file on the server")
                .with_hint("Use STDIN or STDOUT; psql's \\copy reads and writes files of the client."));
        }
        if copy.where_clause.is_some() {
            return Err(self.unsupported("COPY FROM with WHERE", -1));
        }
        if let Some(query) = copy.query.as_deref() {
            let statement = self.copied(query)?;
            let names: Vec<&str> = statement.columns.iter().map(|column| column.name.as_str()).collect();
            let format = self.copy_format(&copy.options, false, (None, &names))?;
            let relation = CopyRelation::Query(statement);
            return Ok(Command::Copy(Copy { relation, from: false, format }));
        }
        let range = relation(copy.relation.as_ref())?;
        let table = match self.find_relation(range)? {
            Some(Relation::Table(table)) if !copy.is_from => table,
            // PostgreSQL gives no position here.
            _ => self.stored_table(range).map_err(|mut error| {
                error.position = None;
                error
            })?,
        };
        if copy.is_from {
            self.writes = true;
            self.lock(table.oid, txn::TableLock::RowExclusive);
            self.lock_references(&table, Rows::New);
        } else if !table.is_virtual() {
            self.lock(table.oid, txn::TableLock::AccessShare);
        }
        let columns = self.insert_columns(&copy.attlist, &table)?;
        let names: Vec<&str> = columns.iter().map(|&column| table.columns[column].name.as_str()).collect();
        let format = self.copy_format(&copy.options, copy.is_from, (Some(&table), &names))?;
        let relation =
            if copy.is_from { self.copy_from(&table, &columns)? } else { self.copy_to(&table, &columns)? };
        Ok(Command::Copy(Copy { relation, from: copy.is_from, format }))
    }

    /// The statement of COPY (statement) TO. It returns rows.
    fn copied(&mut self, query: &Node) -> Result<Arc<Statement>, SqlError> {
        let returns = match &query.node {
            Some(NodeEnum::InsertStmt(statement)) => statement.returning_clause.is_some(),
            Some(NodeEnum::UpdateStmt(statement)) => statement.returning_clause.is_some(),
            Some(NodeEnum::DeleteStmt(statement)) => statement.returning_clause.is_some(),
            Some(NodeEnum::SelectStmt(select)) if select.into_clause.is_some() => {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "COPY (SELECT INTO) is not supported",
                ));
            }
            _ => true,
        };
        if !returns {
            let message = "COPY query must have a RETURNING clause";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        self.compiled(Some(query))
    }

    /// The query of COPY table TO.
    fn copy_to(&mut self, table: &Arc<Table>, columns: &[usize]) -> Result<CopyRelation, SqlError> {
        let source = self.source();
        let mut output = Vec::with_capacity(columns.len());
        for &column in columns {
            let definition = &table.columns[column];
            output.push(crate::bound::OutputColumn {
                name: definition.name.clone(),
                type_: definition.type_,
                register: self.source_register(source, column),
                origin: None,
            });
        }
        let from = crate::bound::FromItem::Source(source, crate::bound::Source::Table(Arc::clone(table)));
        let select = Select { from: Some(from), ..Select::default() };
        let query = Query::of(QueryBody::Select(Box::new(select)), output);
        let statement = Arc::new(plan_bound(self, Bound::Query(Box::new(query)))?);
        self.locks.clone_from(&statement.locks);
        Ok(CopyRelation::Query(statement))
    }

    /// COPY table FROM as an INSERT of values that the executor writes to registers.
    fn copy_from(&mut self, table: &Arc<Table>, columns: &[usize]) -> Result<CopyRelation, SqlError> {
        let mut exprs: Vec<Option<Expr>> = vec![None; table.columns.len()];
        let mut fields: Vec<(Type, String, u32)> = Vec::with_capacity(columns.len());
        for &column in columns {
            let definition = &table.columns[column];
            let register = self.register();
            exprs[column] = Some(Expr::column(register, definition.type_));
            fields.push((definition.type_, definition.name.clone(), register));
        }
        let values = self.complete_row(exprs, table)?;
        let new_row = self.register_block(table.columns.len());
        let checks = self.checks(table, new_row)?;
        let insert = Insert {
            tables: Vec::new(),
            table: Arc::clone(table),
            input: None,
            values,
            sublinks: Vec::new(),
            new_row,
            checks,
            conflict: None,
            returning: Returning::default(),
        };
        let statement = Arc::new(plan_bound(self, Bound::Insert(Box::new(insert)))?);
        self.locks.clone_from(&statement.locks);
        Ok(CopyRelation::Insert { statement, table: table.name.clone(), fields })
    }

    fn copy_format(
        &self,
        options: &[Node],
        from: bool,
        columns: (Option<&Table>, &[&str]),
    ) -> Result<CopyFormat, SqlError> {
        self.refuse_repeated(options)?;
        for node in options {
            let NodeEnum::DefElem(option) = inner(node)? else { continue };
            self.copy_option(option, from)?;
        }
        let find = |name: &str| -> Option<&DefElem> {
            options.iter().find_map(|node| match &node.node {
                Some(NodeEnum::DefElem(option)) if option.defname == name => Some(&**option),
                _ => None,
            })
        };
        let kind = find("format").map_or(Ok(CopyKind::Text), |option| self.copy_kind(option))?;
        let csv = kind == CopyKind::Csv;
        let binary = kind == CopyKind::Binary;
        let refused = |state: SqlState, message: String| Err(SqlError::new(state, message));
        // PostgreSQL checks in this order.
        if let Some(name) = ["delimiter", "null"].into_iter().find(|name| binary && find(name).is_some()) {
            let message = format!("cannot specify {} in BINARY mode", name.to_uppercase());
            return refused(SqlState::SYNTAX_ERROR, message);
        }
        let single = |name: &str, default: u8| find(name).map_or(Ok(default), single_byte);
        let delimiter = single("delimiter", if csv { b',' } else { b'\t' })?;
        let null =
            find("null").map_or_else(|| if csv { String::new() } else { "\\N".to_owned() }, option_text);
        check_signs(delimiter, &null, csv)?;
        let header = find("header").map(|option| self.header(option)).transpose()?.unwrap_or(false);
        if binary && header {
            return refused(
                SqlState::FEATURE_NOT_SUPPORTED,
                "cannot specify HEADER in BINARY mode".to_owned(),
            );
        }
        let only_csv = |name: &str| if csv { Ok(()) } else { find(name).map_or(Ok(()), needs_csv) };
        only_csv("quote")?;
        let quote = single("quote", b'"')?;
        if csv && delimiter == quote {
            let message = "COPY delimiter and quote must be different".to_owned();
            return refused(SqlState::INVALID_PARAMETER_VALUE, message);
        }
        only_csv("escape")?;
        let escape = single("escape", quote)?;
        only_csv("force_quote")?;
        if from && find("force_quote").is_some() {
            let message = "COPY FORCE_QUOTE cannot be used with COPY FROM";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        for (sign, what, counts) in [(delimiter, "COPY delimiter", !binary), (quote, "CSV quote", csv)] {
            if counts && null.as_bytes().contains(&sign) {
                let message = format!("{what} character must not appear in the NULL specification");
                return refused(SqlState::INVALID_PARAMETER_VALUE, message);
            }
        }
        Ok(CopyFormat {
            kind,
            delimiter,
            null,
            header,
            quote,
            escape,
            force_quote: match find("force_quote") {
                Some(option) => self.force_quote(option, columns)?,
                None => Vec::new(),
            },
        })
    }

    fn copy_kind(&self, option: &DefElem) -> Result<CopyKind, SqlError> {
        match option_text(option).as_str() {
            "text" => Ok(CopyKind::Text),
            "csv" => Ok(CopyKind::Csv),
            "binary" => Ok(CopyKind::Binary),
            other => Err(self.error(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("COPY format \"{other}\" not recognized"),
                option.location,
            )),
        }
    }

    fn header(&self, option: &DefElem) -> Result<bool, SqlError> {
        if option_text(option).eq_ignore_ascii_case("match") {
            return Err(self.unsupported("HEADER MATCH", option.location));
        }
        self.option_bool(option)
    }

    /// For each copied column, whether it is always quoted.
    fn force_quote(
        &self,
        option: &DefElem,
        (table, columns): (Option<&Table>, &[&str]),
    ) -> Result<Vec<bool>, SqlError> {
        match option.arg.as_deref().map(inner).transpose()? {
            Some(NodeEnum::List(list)) => {
                let named = strings(&list.items);
                for (at, name) in named.iter().enumerate() {
                    let (state, message) = match table {
                        Some(table) if table.column(name).is_none() => (
                            SqlState::UNDEFINED_COLUMN,
                            format!("column \"{name}\" of relation \"{}\" does not exist", table.name),
                        ),
                        None if !columns.contains(name) => {
                            (SqlState::UNDEFINED_COLUMN, format!("column \"{name}\" does not exist"))
                        }
                        _ if named[..at].contains(name) => (
                            SqlState::DUPLICATE_COLUMN,
                            format!("column \"{name}\" specified more than once"),
                        ),
                        _ => continue,
                    };
                    return Err(SqlError::new(state, message));
                }
                if let Some(name) = named.iter().find(|name| !columns.contains(name)) {
                    let message = format!("FORCE_QUOTE column \"{name}\" not referenced by COPY");
                    return Err(SqlError::new(SqlState::INVALID_COLUMN_REFERENCE, message));
                }
                // If several columns of a query have the name, it stands for the first.
                let first = |(at, column): (usize, &&str)| !columns[..at].contains(column);
                Ok(columns.iter().enumerate().map(|pair| named.contains(pair.1) && first(pair)).collect())
            }
            _ => Ok(vec![true; columns.len()]),
        }
    }

    fn copy_option(&self, option: &DefElem, from: bool) -> Result<(), SqlError> {
        match option.defname.as_str() {
            "format" | "delimiter" | "null" | "header" | "quote" | "escape" | "force_quote" => Ok(()),
            // Allcore never freezes rows, so there is nothing to do.
            "freeze" if from => Ok(()),
            "encoding"
                if matches!(option_text(option).to_lowercase().as_str(), "utf8" | "utf-8" | "unicode") =>
            {
                Ok(())
            }
            "encoding" | "force_not_null" | "force_null" | "on_error" | "log_verbosity" | "default"
            | "reject_limit" | "freeze" => {
                Err(self.unsupported(&format!("COPY option {}", option.defname), option.location))
            }
            other => Err(self.error(
                SqlState::SYNTAX_ERROR,
                format!("option \"{other}\" not recognized"),
                option.location,
            )),
        }
    }
}

/// The one byte of an option's text.
fn single_byte(option: &DefElem) -> Result<u8, SqlError> {
    match option_text(option).as_bytes() {
        [byte] => Ok(*byte),
        _ => {
            let message = format!("COPY {} must be a single one-byte character", option.defname);
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
    }
}

/// The refusal of an option outside of CSV mode.
fn needs_csv(option: &DefElem) -> Result<(), SqlError> {
    let message = format!("COPY {} requires CSV mode", option.defname.to_uppercase());
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// Refuses a delimiter or a text for NULL that lines of data cannot hold unambiguously.
fn check_signs(delimiter: u8, null: &str, csv: bool) -> Result<(), SqlError> {
    let ends_line = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let message = if ends_line(&delimiter) {
        "COPY delimiter cannot be newline or carriage return".to_owned()
    } else if null.as_bytes().iter().any(ends_line) {
        "COPY null representation cannot use newline or carriage return".to_owned()
    } else if !csv && matches!(delimiter, b'\\' | b'.' | b'a'..=b'z' | b'0'..=b'9') {
        format!("COPY delimiter cannot be \"{}\"", char::from(delimiter))
    } else {
        return Ok(());
    };
    Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}
