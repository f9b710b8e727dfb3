//! Walks over the parts of bound statements and queries, to change them.
//!
//! What must hold: a walk visits every expression, register and source. `bind::alike` renumbers
//! them all.

use super::{Bound, CommonQuery, Distinct, FromItem, Query, QueryBody, Select, Source, SourceId, Sublink};
use crate::plan::{Reg, SetCall, SortKey, SubqueryKind};
use expressions::expr::Expr;

/// A part of a bound query. Every expression, name and register of the query is a part.
pub(crate) enum Part<'q> {
    /// An expression.
    Expr(&'q mut Expr),
    /// Conditions that must all hold, visited before the expressions that they are.
    Conditions(&'q mut Vec<Expr>),
    /// A register that the query fills.
    Register(&'q mut Reg),
    /// A source of rows, visited before its contents.
    Source(&'q mut SourceId, &'q mut Source),
    /// A join of FROM, visited after its sides.
    Join(&'q mut FromItem),
    /// A source whose rows are locked.
    Locked(&'q mut SourceId),
    /// The number of a WITH query, at each place that has it.
    Table(&'q mut u32),
    /// A WITH clause, visited before its queries.
    With(&'q mut Vec<CommonQuery>),
    /// A SELECT, visited before its parts.
    Select(&'q mut Select),
}

/// Visits the parts of a statement that may read subqueries.
pub(crate) fn statement(bound: &mut Bound, visit: &mut dyn FnMut(Part<'_>)) {
    let returning = match bound {
        Bound::Query(query) => return self::query(query, visit),
        Bound::Insert(insert) => {
            tables(&mut insert.tables, visit);
            insert.input.iter_mut().for_each(|input| query(input, visit));
            insert.sublinks.iter_mut().for_each(|link| sublink(link, visit));
            exprs(insert.values.iter_mut(), visit);
            &mut insert.returning
        }
        Bound::Update(change) | Bound::Delete(change) => {
            tables(&mut change.tables, visit);
            select(&mut change.select, visit);
            exprs(change.assignments.iter_mut().map(|assignment| &mut assignment.value), visit);
            &mut change.returning
        }
    };
    returning.sublinks.iter_mut().for_each(|link| sublink(link, visit));
    exprs(returning.targets.iter_mut().map(|(expr, _)| expr), visit);
    returning.output.iter_mut().for_each(|column| visit(Part::Register(&mut column.register)));
}

/// Visits all parts of a query and of the queries in it, WITH first, then FROM.
pub(crate) fn query(query: &mut Query, visit: &mut dyn FnMut(Part<'_>)) {
    tables(&mut query.tables, visit);
    match &mut query.body {
        QueryBody::Select(select) => self::select(select, visit),
        QueryBody::Values { rows, output, sublinks } => {
            sublinks.iter_mut().for_each(|link| sublink(link, visit));
            exprs(rows.iter_mut().flatten(), visit);
            registers(output, visit);
        }
        QueryBody::Set { sides, output, .. } => {
            sides.iter_mut().for_each(|side| self::query(side, visit));
            registers(output, visit);
        }
    }
    query.output.iter_mut().for_each(|column| visit(Part::Register(&mut column.register)));
    keys(&mut query.order, visit);
    query.limit_sublinks.iter_mut().for_each(|link| sublink(link, visit));
    exprs(query.limit.iter_mut().chain(&mut query.offset), visit);
    query.locks.iter_mut().for_each(|(source, _, _)| visit(Part::Locked(source)));
}

/// Visits all parts of a subquery.
pub(crate) fn sublink(link: &mut Sublink, visit: &mut dyn FnMut(Part<'_>)) {
    query(&mut link.query, visit);
    match &mut link.kind {
        SubqueryKind::Scalar { value } | SubqueryKind::Array { value, .. } => visit(Part::Expr(value)),
        SubqueryKind::Exists => {}
        SubqueryKind::Matches { pairs } => {
            for (left, right) in pairs {
                visit(Part::Expr(left));
                visit(Part::Expr(right));
            }
        }
        SubqueryKind::Quantified { comparison, hash, .. } => {
            visit(Part::Expr(comparison));
            for (left, right) in hash.iter_mut().flatten() {
                visit(Part::Expr(left));
                visit(Part::Expr(right));
            }
        }
    }
    visit(Part::Register(&mut link.output));
}

/// Visits all parts of a SELECT.
pub(crate) fn select(select: &mut Select, visit: &mut dyn FnMut(Part<'_>)) {
    visit(Part::Select(select));
    select.from.iter_mut().for_each(|from| item(from, visit));
    select.sublinks.iter_mut().for_each(|link| sublink(link, visit));
    conditions(&mut select.conditions, visit);
    conditions(&mut select.having, visit);
    for (expr, register) in select.groups.iter_mut().chain(&mut select.targets) {
        visit(Part::Expr(expr));
        visit(Part::Register(register));
    }
    for call in &mut select.aggregates {
        exprs(call.arguments.iter_mut().chain(&mut call.filter), visit);
        keys(&mut call.order, visit);
        visit(Part::Register(&mut call.output));
    }
    for window in &mut select.windows {
        exprs(window.keys_mut(), visit);
        for call in &mut window.calls {
            exprs(call.arguments.iter_mut(), visit);
            visit(Part::Register(&mut call.output));
        }
        exprs(window.run.iter_mut(), visit);
    }
    sets(&mut select.grouped_sets, visit);
    sets(&mut select.sets, visit);
    select.ordinality.iter_mut().for_each(|register| visit(Part::Register(register)));
    if let Distinct::All(keys) | Distinct::On(keys) = &mut select.distinct {
        exprs(keys.iter_mut(), visit);
    }
}

fn tables(tables: &mut Vec<CommonQuery>, visit: &mut dyn FnMut(Part<'_>)) {
    visit(Part::With(tables));
    for table in tables {
        visit(Part::Table(&mut table.id));
        query(&mut table.query, visit);
        table.recursive.iter_mut().for_each(|(term, _)| query(term, visit));
    }
}

/// Visits all parts of an item of FROM.
pub(crate) fn item(item: &mut FromItem, visit: &mut dyn FnMut(Part<'_>)) {
    match item {
        FromItem::Join { left, right, condition, .. } => {
            self::item(left, visit);
            self::item(right, visit);
            conditions(condition, visit);
            visit(Part::Join(item));
        }
        FromItem::Source(id, source) => {
            visit(Part::Source(id, source));
            match source {
                Source::Query(inner) => query(inner, visit),
                Source::Function(calls, ordinality) => {
                    sets(calls, visit);
                    ordinality.iter_mut().for_each(|register| visit(Part::Register(register)));
                }
                Source::Table(_) | Source::Common(_) => {}
            }
        }
    }
}

fn sets(calls: &mut [SetCall], visit: &mut dyn FnMut(Part<'_>)) {
    for call in calls {
        exprs(call.arguments.iter_mut(), visit);
        registers(&mut call.output, visit);
    }
}

fn keys(keys: &mut [SortKey], visit: &mut dyn FnMut(Part<'_>)) {
    exprs(keys.iter_mut().map(|key| &mut key.expr), visit);
}

fn exprs<'q>(exprs: impl Iterator<Item = &'q mut Expr>, visit: &mut dyn FnMut(Part<'_>)) {
    exprs.for_each(|expr| visit(Part::Expr(expr)));
}

fn conditions(conditions: &mut Vec<Expr>, visit: &mut dyn FnMut(Part<'_>)) {
    visit(Part::Conditions(conditions));
    exprs(conditions.iter_mut(), visit);
}

fn registers(registers: &mut [Reg], visit: &mut dyn FnMut(Part<'_>)) {
    registers.iter_mut().for_each(|register| visit(Part::Register(register)));
}
