//! Drops columns of subqueries in FROM, and subqueries in expressions, that nothing reads. They are
//! not computed, so the functions in them are not called. Columns of tables that only they read are
//! not read either.
//!
//! What must hold:
//!
//! 1. A column goes only if its expression is not volatile. Functions with an effect still run.
//! 2. The columns of the statement, of WITH queries, of set operations and of subqueries in
//!    expressions stay, because their position counts.
//! 3. Columns that DISTINCT or a set operation compares stay: without them other rows would come
//!    out. The sides of UNION ALL lose the same places.
//! 4. `keep_outputs` and `each_query` visit every kind of subquery. A reader that they leave out
//!    would read a register that nothing fills.
//! 5. The passes repeat until none drops anything, since a dropped column may have been the only
//!    reader of another.

use crate::bind::SourceRegisters;
use crate::bound::reads::{query_reads, sublink_reads};
use crate::bound::walk::{self, Part};
use crate::bound::{Bound, Distinct, FromItem, Query, QueryBody, Source, Sublink};
use crate::plan::{Reg, SetKind};
use crate::registers::Registers;
use expressions::function::Volatility;

/// Drops them from the queries of a statement.
pub(super) fn statement(bound: &mut Bound) {
    let (tables, sublinks, returning) = match bound {
        Bound::Query(query) => return prune(query),
        Bound::Insert(insert) => {
            if let Some(input) = &mut insert.input {
                let mut read = Registers::default();
                insert.values.iter().for_each(|value| crate::registers::of_expr(value, &mut read));
                insert.sublinks.iter().for_each(|link| sublink_reads(link, &mut read));
                query_reads(input, &mut read);
                // OVERRIDING USER VALUE replaces the values of some columns. Nothing reads the
                // originals.
                drop_columns(input, &read);
                prune(input);
            }
            (&mut insert.tables, &mut insert.sublinks, &mut insert.returning)
        }
        Bound::Update(change) | Bound::Delete(change) => {
            change.select.from.iter_mut().for_each(prune_item);
            (&mut change.tables, &mut change.select.sublinks, &mut change.returning)
        }
    };
    for table in tables {
        prune(&mut table.query);
        table.recursive.iter_mut().for_each(|(term, _)| prune(term));
    }
    let mut read: Registers = returning.output.iter().map(|column| column.register).collect();
    returning.targets.iter().for_each(|(expr, _)| crate::registers::of_expr(expr, &mut read));
    returning.sublinks.iter().for_each(|link| sublink_reads(link, &mut read));
    returning.sublinks.retain(|link| read.contains(&link.output));
    sublinks.iter_mut().chain(&mut returning.sublinks).for_each(|link| prune(&mut link.query));
}

/// Takes the registers from columns of tables that nothing in the statement reads. A statement that
/// locks or changes rows keeps them, for the second look at a row that has changed.
pub(super) fn sources(bound: &mut Bound, sources: &mut [SourceRegisters]) {
    if sources.iter().any(|source| source.identity.is_some()) {
        return;
    }
    let mut read = Registers::default();
    walk::statement(bound, &mut |part| match part {
        Part::Expr(expr) => crate::registers::of_expr(expr, &mut read),
        Part::Register(register) => drop(read.insert(*register)),
        _ => {}
    });
    for column in sources.iter_mut().flat_map(|source| &mut source.columns) {
        column.take_if(|register| !read.contains(register));
    }
}

fn prune_item(item: &mut FromItem) {
    match item {
        FromItem::Join { left, right, .. } => {
            prune_item(left);
            prune_item(right);
        }
        FromItem::Source(_, Source::Query(query)) => prune(query),
        FromItem::Source(..) => {}
    }
}

/// Drops them from a query and from all queries inside it.
fn prune(query: &mut Query) {
    let mut inner = 0;
    each_query(query, false, &mut |_, _| inner += 1);
    let mut again = inner > 1;
    // A dropped column may have been the only reader of another one.
    while again {
        let mut read = Registers::default();
        query_reads(query, &mut read);
        keep_outputs(query, &mut read);
        again = false;
        each_query(query, false, &mut |part, in_from| {
            again |= in_from && drop_columns(part, &read);
            again |= drop_sublinks(part, &read);
        });
    }
}

/// Drops subqueries in expressions whose result nothing reads.
fn drop_sublinks(query: &mut Query, read: &Registers) -> bool {
    let QueryBody::Select(select) = &mut query.body else { return false };
    let before = select.sublinks.len();
    select.sublinks.retain(|link| read.contains(&link.output));
    before > select.sublinks.len()
}

/// Drops columns that nothing reads and that do not affect the rows; returns whether there were
/// any. DISTINCT and set operations other than UNION ALL compare all columns, so theirs stay.
fn drop_columns(query: &mut Query, read: &Registers) -> bool {
    match &mut query.body {
        QueryBody::Select(select) if matches!(select.distinct, Distinct::No) => {
            let had = select.targets.len();
            select.targets.retain(|(expr, register)| {
                read.contains(register) || expr.volatility() == Volatility::Volatile
            });
            // A subquery's result and a column of FROM are columns of their own.
            let computed: Registers = select.targets.iter().map(|(_, register)| *register).collect();
            let before = query.output.len();
            let is_kept = |register: &Reg| read.contains(register) || computed.contains(register);
            query.output.retain(|column| is_kept(&column.register));
            before > query.output.len() || had > select.targets.len()
        }
        QueryBody::Set { sides, steps, output }
            if steps.iter().all(|step| *step == (SetKind::Union, true)) =>
        {
            let mut kept: Vec<bool> = output.iter().map(|register| read.contains(register)).collect();
            if kept.iter().all(|kept| *kept) || sides.iter().any(|side| side.output.len() != kept.len()) {
                return false;
            }
            // At least one column stays, since a set operation's rows need one.
            if !kept.contains(&true) {
                kept[0] = true;
            }
            let dropped = kept.contains(&false);
            retain_places(output, &kept);
            retain_places(&mut query.output, &kept);
            for branch in sides {
                retain_places(&mut branch.output, &kept);
                let mut inside = Registers::default();
                query_reads(branch, &mut inside);
                keep_outputs(branch, &mut inside);
                drop_columns(branch, &inside);
            }
            dropped
        }
        _ => false,
    }
}

fn retain_places<T>(list: &mut Vec<T>, kept: &[bool]) {
    let mut places = kept.iter();
    list.retain(|_| places.next().copied().unwrap_or(true));
}

/// Adds columns whose position matters: those of the statement, of WITH queries, of set operations,
/// and of subqueries in expressions.
fn keep_outputs(query: &Query, read: &mut Registers) {
    read.extend(query.output.iter().map(|column| column.register));
    keep_inner(query, read);
}

fn keep_inner(query: &Query, read: &mut Registers) {
    for table in &query.tables {
        keep_outputs(&table.query, read);
        table.recursive.iter().for_each(|(term, _)| keep_outputs(term, read));
    }
    let links = |links: &[Sublink], read: &mut Registers| {
        links.iter().for_each(|link| keep_outputs(&link.query, read));
    };
    links(&query.limit_sublinks, read);
    match &query.body {
        QueryBody::Values { sublinks, .. } => links(sublinks, read),
        QueryBody::Set { sides, .. } => sides.iter().for_each(|side| keep_outputs(side, read)),
        QueryBody::Select(select) => {
            if let Distinct::All(keys) | Distinct::On(keys) = &select.distinct {
                keys.iter().for_each(|key| crate::registers::of_expr(key, read));
            }
            links(&select.sublinks, read);
            select.from.iter().for_each(|item| keep_in_item(item, read));
        }
    }
}

fn keep_in_item(item: &FromItem, read: &mut Registers) {
    match item {
        FromItem::Join { left, right, .. } => {
            keep_in_item(left, read);
            keep_in_item(right, read);
        }
        FromItem::Source(_, Source::Query(query)) => keep_inner(query, read),
        FromItem::Source(..) => {}
    }
}

/// Visits a query and all queries inside it; the flag tells which are subqueries of FROM.
fn each_query(query: &mut Query, in_from: bool, visit: &mut dyn FnMut(&mut Query, bool)) {
    visit(query, in_from);
    for table in &mut query.tables {
        each_query(&mut table.query, false, visit);
        table.recursive.iter_mut().for_each(|(term, _)| each_query(term, false, visit));
    }
    query.limit_sublinks.iter_mut().for_each(|link| each_query(&mut link.query, false, visit));
    match &mut query.body {
        QueryBody::Values { sublinks, .. } => {
            sublinks.iter_mut().for_each(|link| each_query(&mut link.query, false, visit));
        }
        QueryBody::Set { sides, .. } => {
            sides.iter_mut().for_each(|side| each_query(side, false, visit));
        }
        QueryBody::Select(select) => {
            select.sublinks.iter_mut().for_each(|link| each_query(&mut link.query, false, visit));
            select.from.iter_mut().for_each(|item| each_in_item(item, visit));
        }
    }
}

fn each_in_item(item: &mut FromItem, visit: &mut dyn FnMut(&mut Query, bool)) {
    match item {
        FromItem::Join { left, right, .. } => {
            each_in_item(left, visit);
            each_in_item(right, visit);
        }
        FromItem::Source(_, Source::Query(query)) => each_query(query, true, visit),
        FromItem::Source(..) => {}
    }
}
