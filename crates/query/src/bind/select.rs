//! SELECT: from the FROM clause to the output columns.
//!
//! What must hold: clauses are bound in PostgreSQL's order, so that of two errors both servers
//! report the same one. So the target list precedes WHERE.

use pg_query::NodeEnum;
use pg_query::protobuf::{
    FuncCall, LimitOption, LockClauseStrength, LockWaitPolicy, Node, SelectStmt, SetOperation,
};

use super::location::location;
use super::order::DistinctTargets;
use super::target::Target;
use super::{Binder, Clause, Level, MAX_TARGETS, inner};
use crate::bound::{Distinct, FromItem, OutputColumn, Query, QueryBody, Select, Source, SourceId};
use crate::parse::strings;
use crate::plan::RowIdentity;
use crate::registers::Registers;
use expressions::expr::Expr;
use expressions::functions::{self, CastContext};
use values::error::{SqlError, SqlState};
use values::types::{Type, oid};

impl Binder<'_> {
    /// Binds a query. `resolve`: whether untyped literals in its output become text. None means
    /// yes. INSERT and set operations give such literals a type of their own.
    pub(crate) fn query(&mut self, select: &SelectStmt, resolve: Option<bool>) -> Result<Query, SqlError> {
        if self.levels.len() >= super::MAX_QUERY_DEPTH {
            return Err(SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded"));
        }
        let depth = std::mem::take(&mut self.depth);
        self.levels.push(Level::default());
        let mark = self.common_mark();
        let result = self.query_here(select, resolve.unwrap_or(true));
        self.forget_common(mark);
        self.levels.pop();
        self.depth = depth;
        result
    }

    fn query_here(&mut self, select: &SelectStmt, resolve: bool) -> Result<Query, SqlError> {
        if let Some(into) = &select.into_clause {
            let location = into.rel.as_ref().map_or(-1, |range| range.location);
            return Err(self.error(SqlState::SYNTAX_ERROR, "SELECT ... INTO is not allowed here", location));
        }
        let tables = self.with_clause(select.with_clause.as_ref())?;
        let mut query = if select.op != SetOperation::SetopNone as i32 && select.larg.is_some() {
            self.set_operation(select)?
        } else if select.values_lists.is_empty() {
            self.plain_select(select, resolve)?
        } else {
            self.values(select, resolve)?
        };
        query.tables = tables;
        self.limit_clause(select, &mut query)?;
        Ok(query)
    }

    fn plain_select(&mut self, select: &SelectStmt, resolve: bool) -> Result<Query, SqlError> {
        for window in &select.window_clause {
            if let NodeEnum::WindowDef(definition) = inner(window)? {
                if self.level().window_names.iter().any(|other| other.name == definition.name) {
                    let message = format!("window \"{}\" is already defined", definition.name);
                    return Err(self.error(SqlState::WINDOWING_ERROR, message, definition.location));
                }
                self.level().window_names.push((**definition).clone());
            }
        }
        let from = self.in_clause(Clause::From, |binder| binder.sources_of(&select.from_clause))?;
        // These clauses match expressions with each other, so constants in them stay constants.
        let matched = !select.group_clause.is_empty()
            || !select.sort_clause.is_empty()
            || !select.distinct_clause.is_empty()
            || select.having_clause.is_some();
        let lift = self.lift;
        self.lift = lift && !matched;
        let targets = self.target_list(&select.target_list);
        self.lift = lift;
        let targets = targets?;
        // WHERE is bound after the target list, so that of two errors the report shows the one that
        // PostgreSQL finds first.
        let mut conditions = self
            .in_clause(Clause::Where, |binder| binder.conjuncts(select.where_clause.as_deref(), "WHERE"))?;
        self.drop_decided(&mut conditions);
        self.lift = lift && !matched;
        let query = self.select_list(select, from, targets, conditions, resolve);
        self.lift = lift;
        query
    }

    fn select_list(
        &mut self,
        select: &SelectStmt,
        from: Option<FromItem>,
        mut targets: Vec<Target>,
        conditions: Vec<Expr>,
        resolve: bool,
    ) -> Result<Query, SqlError> {
        let groups = self.group_clause(&select.group_clause, &mut targets)?;
        let having_uses = self.level().uses.len();
        let having = self.in_clause(Clause::Having, |binder| {
            binder.conjuncts(select.having_clause.as_deref(), "HAVING")
        })?;
        let having_uses = having_uses..self.level().uses.len();
        let visible = targets.len();
        let mut ordering = self.order_clause(&select.sort_clause, &mut targets, visible)?;
        let distinct = self.distinct_clause(select, &mut targets, visible, &mut ordering)?;
        let all_distinct = matches!(distinct, DistinctTargets::All);
        for target in &mut targets {
            if resolve || all_distinct || targets_is_hidden(target) {
                self.resolve_unknown(target)?;
            }
        }
        self.unused_windows(&mut targets)?;
        let level = self.level();
        let grouped = !groups.is_empty() || !level.aggregates.is_empty() || select.having_clause.is_some();
        if level.reads_itself && !level.aggregates.is_empty() {
            let message = "aggregate functions are not allowed in a recursive query's recursive term";
            let at = level.aggregate_at;
            return Err(self.error(SqlState::INVALID_RECURSION, message, at));
        }
        let mut windows = std::mem::take(&mut self.level().windows);
        let sets = self.take_sets(&groups, &mut targets, &mut windows);
        let mut body = Select { conditions, grouped, having, windows, sets, ..Select::default() };
        if grouped {
            self.check_grouping(groups, from.as_ref(), &mut targets, &mut body, having_uses)?;
            self.drop_decided(&mut body.having);
        }
        let mut from = from;
        let locks = self.locking_clause(select, from.as_mut(), &body)?;
        body.from = from;
        let registers = self.project(&targets, &mut body.targets);
        let output = self.outputs(&targets[..visible], &registers);
        let order = self.sort_keys(&ordering, &registers, &targets);
        body.distinct = match distinct {
            DistinctTargets::No => Distinct::No,
            DistinctTargets::All => {
                let column = |column: &OutputColumn| Expr::column(column.register, column.type_);
                Distinct::All(output.iter().map(column).collect())
            }
            DistinctTargets::On(list) => Distinct::On(
                list.iter().map(|&i| Expr::column(registers[i], targets[i].expr.type_())).collect(),
            ),
        };
        let level = self.level();
        body.aggregates = std::mem::take(&mut level.aggregates);
        body.sublinks = std::mem::take(&mut level.sublinks);
        let matched = level.twins.any();
        let mut query = Query { order, locks, ..Query::of(QueryBody::Select(Box::new(body)), output) };
        if matched {
            super::alike::drop_unread(&mut query);
        }
        Ok(query)
    }

    /// Makes a target of an unknown type text.
    fn resolve_unknown(&mut self, target: &mut Target) -> Result<(), SqlError> {
        if target.expr.type_().oid == oid::UNKNOWN {
            let expr = std::mem::replace(&mut target.expr, Expr::null(Type::TEXT));
            let cast = functions::cast(expr, Type::TEXT, CastContext::Implicit);
            target.set(self.built(cast, target.location)?);
        }
        Ok(())
    }

    /// Binds the target list and expands stars.
    pub(crate) fn target_list(&mut self, nodes: &[Node]) -> Result<Vec<Target>, SqlError> {
        let mut targets = Vec::with_capacity(nodes.len());
        for node in nodes {
            let NodeEnum::ResTarget(target) = inner(node)? else {
                return Err(SqlError::internal("target list without targets"));
            };
            let value = target.val.as_deref().ok_or_else(|| SqlError::internal("target without value"))?;
            if let Some(columns) = self.star_of(value)? {
                let location = location(value);
                targets.extend(columns.into_iter().map(|(name, expr)| Target::new(name, expr, location)));
                continue;
            }
            let name = if target.name.is_empty() { column_name(value).0 } else { target.name.clone() };
            let uses = self.level().uses.len();
            let expr = self.expr(value)?;
            let mut target = Target::new(name, expr, location(value));
            target.uses = uses..self.level().uses.len();
            targets.push(target);
        }
        at_most_targets(targets.len())?;
        Ok(targets)
    }

    /// Gives every target a register. A plain column keeps its own; other targets are computed.
    pub(crate) fn project(&mut self, targets: &[Target], computed: &mut Vec<(Expr, u32)>) -> Vec<u32> {
        let outer = self.outer_registers();
        let mut registers = Vec::with_capacity(targets.len());
        for target in targets {
            registers.push(match &target.expr {
                Expr::Column { register, .. } if !outer.contains(register) => *register,
                expr => {
                    let register = self.register();
                    if let Expr::Column { register: from, .. } = expr
                        && let Some(origin) = self.origins.get(from).copied()
                    {
                        self.origins.insert(register, origin);
                    }
                    if let Some(fields) = self.field_names(expr) {
                        self.records.insert(register, fields);
                    }
                    computed.push((expr.clone(), register));
                    register
                }
            });
        }
        registers
    }

    /// Registers of columns and aggregates of the surrounding queries. A query's output register is
    /// never one of them, because an outer join may set the output to NULL.
    pub(super) fn outer_registers(&self) -> Registers {
        let around = self.levels.len().saturating_sub(1);
        self.levels[..around].iter().flat_map(|level| self.readable(level)).collect()
    }

    /// The output columns of targets.
    pub(crate) fn outputs(&self, targets: &[Target], registers: &[u32]) -> Vec<OutputColumn> {
        let column = |(target, register): (&Target, &u32)| OutputColumn {
            name: target.name.clone(),
            type_: target.expr.type_(),
            register: *register,
            origin: self.origins.get(register).copied(),
        };
        targets.iter().zip(registers).map(column).collect()
    }

    /// LIMIT and OFFSET.
    fn limit_clause(&mut self, select: &SelectStmt, query: &mut Query) -> Result<(), SqlError> {
        let mut bind = |node: Option<&Node>, what: &str| -> Result<Option<Expr>, SqlError> {
            let Some(node) = node else { return Ok(None) };
            let before = self.level().uses.len();
            let expr = self.in_clause(Clause::Limit, |binder| binder.expr(node))?;
            if !functions::can_cast(expr.type_(), Type::INT8, CastContext::Assignment)
                && expr.type_().oid != oid::UNKNOWN
            {
                return Err(self.error(
                    SqlState::DATATYPE_MISMATCH,
                    format!("argument of {what} must be type bigint, not type {}", expr.type_()),
                    location(node),
                ));
            }
            if let Some(used) = self.level().uses.get(before) {
                let place = used.location;
                return Err(self.error(
                    SqlState::INVALID_COLUMN_REFERENCE,
                    format!("argument of {what} must not contain variables"),
                    place,
                ));
            }
            let cast = functions::cast(expr, Type::INT8, CastContext::Assignment);
            self.built(cast, location(node)).map(Some)
        };
        let limit = bind(select.limit_count.as_deref(), "LIMIT")?;
        let offset = bind(select.limit_offset.as_deref(), "OFFSET")?;
        query.limit_sublinks = std::mem::take(&mut self.level().sublinks);
        query.ties = select.limit_option == LimitOption::WithTies as i32;
        if query.ties && query.order.is_empty() {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "WITH TIES cannot be specified without ORDER BY clause",
            ));
        }
        // LIMIT ALL is LIMIT NULL.
        query.limit = limit.filter(|expr| !matches!(expr.as_const(), Some(values::types::Value::Null)));
        query.offset = offset;
        Ok(())
    }

    /// Binds FOR UPDATE and the other locking clauses.
    fn locking_clause(
        &mut self,
        select: &SelectStmt,
        mut from: Option<&mut FromItem>,
        body: &Select,
    ) -> Result<Vec<RowLocked>, SqlError> {
        let mut locks: Vec<RowLocked> = Vec::new();
        for node in &select.locking_clause {
            let NodeEnum::LockingClause(clause) = inner(node)? else { continue };
            let (name, lock) = match LockClauseStrength::try_from(clause.strength) {
                Ok(LockClauseStrength::LcsForkeyshare) => ("FOR KEY SHARE", txn::RowLock::KeyShare),
                Ok(LockClauseStrength::LcsForshare) => ("FOR SHARE", txn::RowLock::Share),
                Ok(LockClauseStrength::LcsFornokeyupdate) => ("FOR NO KEY UPDATE", txn::RowLock::NoKeyUpdate),
                _ => ("FOR UPDATE", txn::RowLock::Update),
            };
            let wait = match LockWaitPolicy::try_from(clause.wait_policy) {
                Ok(LockWaitPolicy::LockWaitSkip) => txn::Wait::Skip,
                Ok(LockWaitPolicy::LockWaitError) => txn::Wait::NoWait,
                _ => txn::Wait::Block,
            };
            let against = if !select.distinct_clause.is_empty() {
                Some("DISTINCT clause")
            } else if !select.group_clause.is_empty() {
                Some("GROUP BY clause")
            } else if select.having_clause.is_some() {
                Some("HAVING clause")
            } else if body.grouped {
                Some("aggregate functions")
            } else if !body.windows.is_empty() {
                Some("window functions")
            } else if !body.sets.is_empty() {
                Some("set-returning functions in the target list")
            } else {
                None
            };
            if let Some(against) = against {
                return Err(lock_refused(name, against));
            }
            self.lock_sources(&clause.locked_rels, name, from.as_deref_mut(), (lock, wait), &mut locks)?;
        }
        Ok(locks)
    }

    fn lock_sources(
        &mut self,
        named: &[Node],
        strength: &str,
        from: Option<&mut FromItem>,
        mode: (txn::RowLock, txn::Wait),
        locks: &mut Vec<RowLocked>,
    ) -> Result<(), SqlError> {
        let mut wanted: Vec<(SourceId, i32)> = Vec::new();
        for node in named {
            let NodeEnum::RangeVar(range) = inner(node)? else { continue };
            let entry = self.level().entries.iter().find(|e| e.name.as_deref() == Some(&range.relname));
            let Some(entry) = entry else {
                return Err(self.error(
                    SqlState::UNDEFINED_TABLE,
                    format!("relation \"{}\" in {strength} clause not found in FROM clause", range.relname),
                    range.location,
                ));
            };
            match entry.source {
                Some(source) => wanted.push((source, range.location)),
                None => return Err(self.not_lockable(strength, "a join", range.location)),
            }
        }
        let wanted = (!named.is_empty()).then_some(wanted.as_slice());
        from.map_or(Ok(()), |from| self.lock_item(from, wanted, (strength, mode), locks))
    }

    /// Locks an item's named sources, or all. A subquery locks its own sources.
    fn lock_item(
        &mut self,
        item: &mut FromItem,
        wanted: Option<&[(SourceId, i32)]>,
        (strength, mode): (&str, (txn::RowLock, txn::Wait)),
        locks: &mut Vec<RowLocked>,
    ) -> Result<(), SqlError> {
        let (source, item) = match item {
            FromItem::Join { left, right, .. } => {
                self.lock_item(left, wanted, (strength, mode), locks)?;
                return self.lock_item(right, wanted, (strength, mode), locks);
            }
            FromItem::Source(source, item) => (*source, item),
        };
        let named = wanted.and_then(|wanted| wanted.iter().find(|(name, _)| *name == source));
        if wanted.is_some() && named.is_none() {
            return Ok(());
        }
        match (item, named) {
            (Source::Table(table), _) if !table.is_virtual() => {
                self.writes = true;
                self.lock(table.oid, txn::TableLock::RowShare);
                self.identify(source);
                let (lock, wait) = mode;
                match locks.iter_mut().find(|(locked, _, _)| *locked == source) {
                    Some(held) if stronger(lock) > stronger(held.1) => *held = (source, lock, wait),
                    Some(_) => {}
                    None => locks.push((source, lock, wait)),
                }
                Ok(())
            }
            (Source::Query(query), _) => self.lock_query(query, (strength, mode)),
            (Source::Common(_), Some((_, at))) => Err(self.not_lockable(strength, "a WITH query", *at)),
            (Source::Table(_), Some((_, at))) => Err(self.unsupported("locking rows of this item", *at)),
            (_, Some((_, at))) => Err(self.not_lockable(strength, "a function", *at)),
            (_, None) => Ok(()),
        }
    }

    /// Locks all sources of a subquery in FROM.
    fn lock_query(
        &mut self,
        query: &mut Query,
        (strength, mode): (&str, (txn::RowLock, txn::Wait)),
    ) -> Result<(), SqlError> {
        let select = match &mut query.body {
            QueryBody::Select(select) => select,
            QueryBody::Values { .. } => return Ok(()),
            QueryBody::Set { .. } => return Err(lock_refused(strength, "UNION/INTERSECT/EXCEPT")),
        };
        let against = match &**select {
            select if !matches!(select.distinct, Distinct::No) => Some("DISTINCT clause"),
            select if !select.groups.is_empty() => Some("GROUP BY clause"),
            select if !select.having.is_empty() => Some("HAVING clause"),
            select if select.grouped => Some("aggregate functions"),
            select if !select.windows.is_empty() => Some("window functions"),
            select if !select.sets.is_empty() => Some("set-returning functions in the target list"),
            _ => None,
        };
        if let Some(against) = against {
            return Err(lock_refused(strength, against));
        }
        match &mut select.from {
            Some(from) => self.lock_item(from, None, (strength, mode), &mut query.locks),
            None => Ok(()),
        }
    }

    fn not_lockable(&self, strength: &str, what: &str, location: i32) -> SqlError {
        let message = format!("{strength} cannot be applied to {what}");
        self.error(SqlState::FEATURE_NOT_SUPPORTED, message, location)
    }

    /// The registers that identify a source's row.
    pub(crate) fn identify(&mut self, source: SourceId) -> RowIdentity {
        if let Some(identity) = self.sources[source].identity {
            return identity;
        }
        let identity = RowIdentity { key: self.register(), stamp: self.register(), row: self.register() };
        self.sources[source].identity = Some(identity);
        identity
    }
}

/// Raises 54011 for a query with more columns than a row may have.
pub(super) fn at_most_targets(count: usize) -> Result<(), SqlError> {
    if count <= MAX_TARGETS {
        return Ok(());
    }
    let message = format!("target lists can have at most {MAX_TARGETS} entries");
    Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message))
}

/// Whether a target is hidden. Hidden targets have no name; they are sort keys and need a type.
fn targets_is_hidden(target: &Target) -> bool {
    target.name.is_empty()
}

fn stronger(lock: txn::RowLock) -> u8 {
    match lock {
        txn::RowLock::KeyShare => 0,
        txn::RowLock::Share => 1,
        txn::RowLock::NoKeyUpdate => 2,
        txn::RowLock::Update => 3,
    }
}

/// A locked source, the strength of its lock, and the behaviour when another transaction holds a
/// row's lock.
type RowLocked = (SourceId, txn::RowLock, txn::Wait);

fn lock_refused(strength: &str, against: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{strength} is not allowed with {against}"))
}

/// The name PostgreSQL gives a column without an alias, and the strength of that choice. A stronger
/// name from an inner expression wins.
pub(crate) fn column_name(node: &Node) -> (String, u8) {
    let named = |name: &str| (name.to_owned(), 2);
    let of = |node: Option<&Node>| node.map_or(("?column?".to_owned(), 0), column_name);
    match &node.node {
        Some(NodeEnum::ColumnRef(reference)) => {
            strings(&reference.fields).last().map_or(("?column?".to_owned(), 0), |name| named(name))
        }
        // The last field, even if subscripts follow it.
        Some(NodeEnum::AIndirection(indirection)) => match strings(&indirection.indirection).last() {
            Some(name) => named(name),
            None => of(indirection.arg.as_deref()),
        },
        Some(NodeEnum::FuncCall(call)) => call_name(call),
        Some(NodeEnum::AExpr(expr)) if expr.kind == pg_query::protobuf::AExprKind::AexprNullif as i32 => {
            named("nullif")
        }
        Some(NodeEnum::TypeCast(cast)) => {
            let (name, strength) = of(cast.arg.as_deref());
            if strength > 1 {
                return (name, strength);
            }
            let type_ = cast.type_name.as_ref().and_then(|type_| strings(&type_.names).last().copied());
            type_.map_or((name, strength), |name| (name.to_owned(), 1))
        }
        Some(NodeEnum::CollateClause(collate)) => of(collate.arg.as_deref()),
        Some(NodeEnum::CaseExpr(case)) => match of(case.defresult.as_deref()) {
            (name, strength) if strength > 1 => (name, strength),
            _ => ("case".to_owned(), 1),
        },
        Some(NodeEnum::CoalesceExpr(_)) => named("coalesce"),
        Some(NodeEnum::AArrayExpr(_)) => named("array"),
        Some(NodeEnum::RowExpr(_)) => named("row"),
        Some(NodeEnum::MinMaxExpr(extreme)) => {
            named(if extreme.op == pg_query::protobuf::MinMaxOp::IsGreatest as i32 {
                "greatest"
            } else {
                "least"
            })
        }
        Some(NodeEnum::SubLink(link)) => sublink_name(link),
        Some(NodeEnum::SqlvalueFunction(function)) => named(value_function_name(function.op)),
        _ => ("?column?".to_owned(), 0),
    }
}

fn call_name(call: &FuncCall) -> (String, u8) {
    (super::call::function_name(call).to_owned(), 2)
}

fn sublink_name(link: &pg_query::protobuf::SubLink) -> (String, u8) {
    use pg_query::protobuf::SubLinkType as Kind;
    match Kind::try_from(link.sub_link_type) {
        Ok(Kind::ExistsSublink) => ("exists".to_owned(), 2),
        Ok(Kind::ArraySublink) => ("array".to_owned(), 2),
        Ok(Kind::ExprSublink) => {
            let target = link.subselect.as_ref().and_then(|select| match &select.node {
                Some(NodeEnum::SelectStmt(select)) => first_target(select),
                _ => None,
            });
            target.unwrap_or(("?column?".to_owned(), 2))
        }
        _ => ("?column?".to_owned(), 0),
    }
}

fn first_target(select: &SelectStmt) -> Option<(String, u8)> {
    if let Some(left) = &select.larg {
        return first_target(left);
    }
    if !select.values_lists.is_empty() {
        return Some(("column1".to_owned(), 2));
    }
    match &select.target_list.first()?.node {
        Some(NodeEnum::ResTarget(target)) if !target.name.is_empty() => Some((target.name.clone(), 2)),
        Some(NodeEnum::ResTarget(target)) => Some((column_name(target.val.as_deref()?).0, 2)),
        _ => None,
    }
}

fn value_function_name(op: i32) -> &'static str {
    use pg_query::protobuf::SqlValueFunctionOp as Op;
    match Op::try_from(op) {
        Ok(Op::SvfopCurrentDate) => "current_date",
        Ok(Op::SvfopCurrentTime | Op::SvfopCurrentTimeN) => "current_time",
        Ok(Op::SvfopCurrentTimestamp | Op::SvfopCurrentTimestampN) => "current_timestamp",
        Ok(Op::SvfopLocaltime | Op::SvfopLocaltimeN) => "localtime",
        Ok(Op::SvfopLocaltimestamp | Op::SvfopLocaltimestampN) => "localtimestamp",
        Ok(Op::SvfopCurrentRole) => "current_role",
        Ok(Op::SvfopCurrentUser) => "current_user",
        Ok(Op::SvfopUser) => "user",
        Ok(Op::SvfopSessionUser) => "session_user",
        Ok(Op::SvfopCurrentCatalog) => "current_catalog",
        Ok(Op::SvfopCurrentSchema) => "current_schema",
        _ => "?column?",
    }
}
