//! Statements other than queries and row changes.
//!
//! What must hold: an unsupported statement raises 0A000. It never succeeds without an effect that
//! the client would rely on.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{
    DefElem, DiscardMode, ExecuteStmt, LockStmt, Node, PrepareStmt, TransactionStmt, TransactionStmtKind,
    TruncateStmt, VariableSetKind, VariableSetStmt, a_const,
};
use txn::TableLock;

use super::{Refused, compile_node};
use crate::bind::{Binder, inner, inner_of};
use crate::plan::{
    ColumnDesc, Command, Discard, Isolation, PreparedCall, QualifiedName, Statement, TransactionModes,
};
use crate::request::{Context, Request};
use values::error::{SqlError, SqlState};
use values::identifier;
use values::types::settings::{IntervalStyle, proper_name};
use values::types::{Interval, Type, interval, oid};

/// Tables by OID, each with its lock.
pub type Locks = Vec<(u32, TableLock)>;

/// Binds a statement that is no query. Returns the command, its result's columns, and the locks of
/// the tables it was bound to.
///
/// # Errors
/// Any error in the statement; 0A000 for unsupported statements.
pub(crate) fn bind_command(
    context: &Context<'_>,
    request: &Request<'_>,
    node: &NodeEnum,
) -> Result<(Command, Vec<ColumnDesc>, Locks), Refused> {
    let request = Request { literals: &[], ..*request };
    let mut binder = Binder::new(context, &request, &[]);
    let command = match binder.command(node) {
        Ok(command) => command,
        Err(error) => return Err(Refused { error, resolved: binder.locks }),
    };
    let text_column =
        |name: &str| ColumnDesc { name: name.to_owned(), type_: Type::TEXT, table: 0, attribute: 0 };
    let columns = match &command {
        Command::Show(Some(name)) => vec![text_column(proper_name(name))],
        Command::Show(None) => vec![text_column("name"), text_column("setting"), text_column("description")],
        Command::Explain(_) => vec![text_column("QUERY PLAN")],
        _ => Vec::new(),
    };
    Ok((command, columns, binder.locks))
}

impl Binder<'_> {
    fn command(&mut self, node: &NodeEnum) -> Result<Command, SqlError> {
        match node {
            NodeEnum::TransactionStmt(statement) => self.transaction(statement),
            NodeEnum::VariableSetStmt(set) => self.set(set),
            NodeEnum::VariableShowStmt(show) => {
                Ok(Command::Show((!show.name.eq_ignore_ascii_case("all")).then(|| show.name.to_lowercase())))
            }
            NodeEnum::PrepareStmt(prepare) => self.prepare(prepare),
            NodeEnum::ExecuteStmt(execute) => Ok(Command::Execute(self.prepared_call(execute)?)),
            NodeEnum::DeallocateStmt(deallocate) => {
                Ok(Command::Deallocate((!deallocate.isall).then(|| deallocate.name.clone())))
            }
            NodeEnum::DiscardStmt(discard) => {
                Ok(Command::Discard(match DiscardMode::try_from(discard.target) {
                    Ok(DiscardMode::DiscardAll) => Discard::All,
                    Ok(DiscardMode::DiscardSequences) => Discard::Sequences,
                    Ok(DiscardMode::DiscardPlans) => Discard::Plans,
                    _ => Discard::Temporary,
                }))
            }
            NodeEnum::DeclareCursorStmt(declare) => self.declare(declare),
            NodeEnum::FetchStmt(fetch) => Ok(super::cursor::fetch(fetch)),
            NodeEnum::ClosePortalStmt(close) => {
                Ok(Command::CloseCursor((!close.portalname.is_empty()).then(|| close.portalname.clone())))
            }
            NodeEnum::LockStmt(lock) => self.lock_table(lock),
            NodeEnum::CopyStmt(copy) => self.copy(copy),
            NodeEnum::ExplainStmt(explain) => self.explain(explain),
            NodeEnum::VacuumStmt(vacuum) => self.vacuum(vacuum),
            NodeEnum::CheckPointStmt(_) => Ok(Command::Checkpoint),
            NodeEnum::TruncateStmt(truncate) => self.truncate(truncate),
            // A client that got a success would rely on the effect, so these are refused.
            NodeEnum::CommentStmt(_) => Err(self.unsupported("COMMENT", 0)),
            NodeEnum::GrantStmt(_) | NodeEnum::GrantRoleStmt(_) | NodeEnum::AlterDefaultPrivilegesStmt(_) => {
                Err(self.unsupported("GRANT or REVOKE", 0))
            }
            NodeEnum::ReindexStmt(reindex) => self.reindex(reindex),
            // LISTEN does not exist, so there is nothing to stop. Connection pools send UNLISTEN at
            // each return of a connection.
            NodeEnum::UnlistenStmt(_) => Ok(Command::NoEffect("UNLISTEN".to_owned())),
            NodeEnum::ConstraintsSetStmt(set) => self.set_constraints(&set.constraints),
            other => self.definition(other),
        }
    }

    /// SET CONSTRAINTS. No constraint is deferrable, so ALL changes nothing and a name is an error.
    fn set_constraints(&self, names: &[Node]) -> Result<Command, SqlError> {
        for node in names {
            let NodeEnum::RangeVar(range) = inner(node)? else { continue };
            let name = &range.relname;
            let known = self.catalog().tables().any(|table| table.has_constraint(name));
            let (code, what) = match known {
                true => (SqlState::WRONG_OBJECT_TYPE, "is not deferrable"),
                false => (SqlState::UNDEFINED_OBJECT, "does not exist"),
            };
            return Err(SqlError::new(code, format!("constraint \"{name}\" {what}")));
        }
        Ok(Command::SetConstraints)
    }

    /// Compiles an inner statement (of EXPLAIN, DECLARE, CREATE TABLE AS, COPY).
    pub(crate) fn compiled(&mut self, node: Option<&Node>) -> Result<Arc<Statement>, SqlError> {
        let compiled = compile_node(self.context, self.request, inner_of(node)?);
        let locks = match &compiled {
            Ok(compiled) => &compiled.statement.locks,
            Err(refused) => &refused.resolved,
        };
        for (table, lock) in locks {
            self.lock(*table, *lock);
        }
        Ok(compiled?.statement)
    }

    fn transaction(&self, statement: &TransactionStmt) -> Result<Command, SqlError> {
        use TransactionStmtKind as Kind;
        let name = || statement.savepoint_name.clone();
        let chain = statement.chain;
        match Kind::try_from(statement.kind) {
            Ok(kind @ (Kind::TransStmtBegin | Kind::TransStmtStart)) => {
                let tag = if kind == Kind::TransStmtBegin { "BEGIN" } else { "START TRANSACTION" };
                Ok(Command::Begin { modes: self.modes(&statement.options)?, tag })
            }
            Ok(Kind::TransStmtCommit) => Ok(Command::Commit { chain }),
            Ok(Kind::TransStmtRollback) => Ok(Command::Rollback { chain }),
            Ok(Kind::TransStmtSavepoint) => Ok(Command::Savepoint(name())),
            Ok(Kind::TransStmtRelease) => Ok(Command::Release(name())),
            Ok(Kind::TransStmtRollbackTo) => Ok(Command::RollbackTo(name())),
            _ => Err(self.unsupported("two-phase commit", statement.location)),
        }
    }

    fn modes(&self, options: &[Node]) -> Result<TransactionModes, SqlError> {
        let mut modes = TransactionModes::default();
        for node in options {
            let NodeEnum::DefElem(option) = inner(node)? else { continue };
            match option.defname.as_str() {
                "transaction_isolation" => {
                    modes.isolation = Some(match option_text(option).as_str() {
                        "serializable" => Isolation::Serializable,
                        "repeatable read" => Isolation::RepeatableRead,
                        "read uncommitted" => Isolation::ReadUncommitted,
                        _ => Isolation::ReadCommitted,
                    });
                }
                "transaction_read_only" => modes.read_only = Some(self.option_bool(option)?),
                "transaction_deferrable" => modes.deferrable = Some(self.option_bool(option)?),
                _ => {}
            }
        }
        Ok(modes)
    }

    fn set(&self, set: &VariableSetStmt) -> Result<Command, SqlError> {
        let name = set.name.to_lowercase();
        let local = set.is_local;
        match VariableSetKind::try_from(set.kind) {
            Ok(VariableSetKind::VarSetValue) => {
                if set.args.len() > 1 && !matches!(name.as_str(), "search_path" | "datestyle") {
                    let message = format!("SET {name} takes only one argument");
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
                }
                let value = |arg| {
                    let value = self.setting(arg)?;
                    Ok(if name == "search_path" { identifier::quoted(&value) } else { value })
                };
                let values: Result<Vec<String>, SqlError> = set.args.iter().map(value).collect();
                let value = Some(values?.join(", "));
                Ok(Command::Set { name, value, local })
            }
            Ok(VariableSetKind::VarSetDefault) => Ok(Command::Set { name, value: None, local }),
            Ok(VariableSetKind::VarSetMulti) if name == "transaction snapshot" => {
                Err(self.unsupported("SET TRANSACTION SNAPSHOT", set.location))
            }
            Ok(VariableSetKind::VarSetMulti) => {
                Ok(Command::SetTransaction { modes: self.modes(&set.args)?, session: name != "transaction" })
            }
            Ok(VariableSetKind::VarReset) => Ok(Command::Reset(Some(name))),
            Ok(VariableSetKind::VarResetAll) => Ok(Command::Reset(None)),
            _ => Err(self.unsupported("SET FROM CURRENT", set.location)),
        }
    }

    /// A setting's value as text.
    fn setting(&self, node: &Node) -> Result<String, SqlError> {
        match inner(node)? {
            NodeEnum::TypeCast(cast) => {
                let text =
                    self.setting(cast.arg.as_deref().ok_or_else(|| SqlError::internal("empty cast"))?)?;
                match cast.type_name.as_ref().map(|name| self.type_name(name)).transpose()? {
                    Some(kind) if kind.oid == oid::INTERVAL => interval_setting(&text, kind.modifier),
                    _ => Ok(text),
                }
            }
            NodeEnum::AConst(_) | NodeEnum::String(_) | NodeEnum::Integer(_) | NodeEnum::Float(_) => {
                Ok(node_text(node))
            }
            _ => {
                self.refuse_parameter(Some(node))?;
                Err(self.unsupported("this value in SET", crate::bind::location::location(node)))
            }
        }
    }

    /// Binds EXECUTE name (arguments).
    pub(super) fn prepared_call(&mut self, execute: &ExecuteStmt) -> Result<PreparedCall, SqlError> {
        let arguments = self.scoped(|binder| binder.exprs(&execute.params))?;
        let places = execute.params.iter().map(|node| match &node.node {
            Some(NodeEnum::AConst(constant)) => self.position(constant.location),
            _ => None,
        });
        let places = places.collect();
        Ok(PreparedCall { name: execute.name.clone(), arguments, places })
    }

    fn prepare(&self, prepare: &PrepareStmt) -> Result<Command, SqlError> {
        let mut types = Vec::with_capacity(prepare.argtypes.len());
        for node in &prepare.argtypes {
            if let NodeEnum::TypeName(name) = inner(node)? {
                types.push(self.type_name(name)?);
            }
        }
        // The prepared statement is the text after the first AS outside brackets.
        let text = self.request.text.get(self.request.range()).unwrap_or_default();
        let (mut depth, mut start) = (0_i32, None);
        crate::normalize::for_each_token(text, |from, to| match &text.as_bytes()[from..to] {
            b"(" => depth += 1,
            b")" => depth -= 1,
            token if depth == 0 && start.is_none() && token.eq_ignore_ascii_case(b"as") => start = Some(to),
            _ => {}
        });
        let rest = text.get(start.unwrap_or(0)..).unwrap_or_default().trim_start();
        let before = self.request.start + (text.len() - rest.len());
        let before = self.request.text.get(..before).map_or(0, |text| text.chars().count());
        let (text, before) = (rest.trim_end().to_owned(), u32::try_from(before).unwrap_or(0));
        let source = self.request.text.into();
        Ok(Command::Prepare { name: prepare.name.clone(), types, text, before, source })
    }

    fn lock_table(&self, lock: &LockStmt) -> Result<Command, SqlError> {
        use TableLock as Lock;
        let mode = match lock.mode {
            1 => Lock::AccessShare,
            2 => Lock::RowShare,
            3 => Lock::RowExclusive,
            4 => Lock::ShareUpdateExclusive,
            5 => Lock::Share,
            6 => Lock::ShareRowExclusive,
            7 => Lock::Exclusive,
            _ => Lock::AccessExclusive,
        };
        let tables = self.names(&lock.relations)?;
        Ok(Command::LockTable { tables, mode, nowait: lock.nowait })
    }

    /// The names of a list. The command resolves each when it locks the named object.
    fn names(&self, nodes: &[Node]) -> Result<Vec<QualifiedName>, SqlError> {
        let mut names = Vec::with_capacity(nodes.len());
        for node in nodes {
            if let NodeEnum::RangeVar(range) = inner(node)? {
                names.push(self.qualified(range).map_err(without_position)?);
            }
        }
        Ok(names)
    }

    fn truncate(&self, truncate: &TruncateStmt) -> Result<Command, SqlError> {
        let tables = self.names(&truncate.relations)?;
        let cascade = truncate.behavior == pg_query::protobuf::DropBehavior::DropCascade as i32;
        Ok(Command::Truncate { tables, restart_identity: truncate.restart_seqs, cascade })
    }

    /// Raises 42601 for a repeated option.
    pub(super) fn refuse_repeated(&self, options: &[Node]) -> Result<(), SqlError> {
        let mut seen: Vec<&str> = Vec::with_capacity(options.len());
        for node in options {
            let NodeEnum::DefElem(option) = inner(node)? else { continue };
            if seen.contains(&option.defname.as_str()) {
                let message = "conflicting or redundant options";
                return Err(self.error(SqlState::SYNTAX_ERROR, message, option.location));
            }
            seen.push(&option.defname);
        }
        Ok(())
    }

    /// A boolean option. Without a value it is on; 42601 for a wrong value.
    pub(crate) fn option_bool(&self, option: &DefElem) -> Result<bool, SqlError> {
        if option.arg.is_none() {
            return Ok(true);
        }
        match option_text(option).to_lowercase().as_str() {
            "true" | "on" | "1" => Ok(true),
            "false" | "off" | "0" => Ok(false),
            _ => {
                let message = format!("{} requires a Boolean value", option.defname);
                Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
            }
        }
    }
}

/// The setting's value for SET TIME ZONE INTERVAL.
fn interval_setting(text: &str, modifier: i32) -> Result<String, SqlError> {
    let fields = interval::fields::of(modifier);
    let span = Interval::parse(text, fields, IntervalStyle::Postgres)?.within(fields);
    let mut shown = Vec::new();
    span.write(IntervalStyle::Postgres, &mut shown);
    Ok(format!("INTERVAL '{}'", String::from_utf8_lossy(&shown)))
}

/// Removes the position, as PostgreSQL does for relations that utility commands do not find.
pub(crate) fn without_position(mut error: SqlError) -> SqlError {
    error.position = None;
    error
}

/// An option's value as text.
pub(crate) fn option_text(option: &DefElem) -> String {
    option.arg.as_deref().map(node_text).unwrap_or_default()
}

/// A simple value as text.
pub(crate) fn node_text(node: &Node) -> String {
    match &node.node {
        Some(NodeEnum::String(value)) => value.sval.clone(),
        Some(NodeEnum::Integer(value)) => value.ival.to_string(),
        Some(NodeEnum::Float(value)) => value.fval.clone(),
        Some(NodeEnum::Boolean(value)) => value.boolval.to_string(),
        Some(NodeEnum::TypeName(name)) => {
            crate::parse::strings(&name.names).last().copied().unwrap_or_default().to_owned()
        }
        Some(NodeEnum::AConst(constant)) => match &constant.val {
            Some(a_const::Val::Ival(value)) => value.ival.to_string(),
            Some(a_const::Val::Fval(value)) => value.fval.clone(),
            Some(a_const::Val::Boolval(value)) => value.boolval.to_string(),
            Some(a_const::Val::Sval(value)) => value.sval.clone(),
            Some(a_const::Val::Bsval(value)) => value.bsval.clone(),
            None => String::new(),
        },
        _ => String::new(),
    }
}
