//! Left joins that add neither rows nor columns, DISTINCT over rows that differ anyway, and LIMIT
//! of EXISTS. All are dropped.
//!
//! What must hold:
//!
//! 1. The nullable side has one match at most: ON equates all columns of a key with values of the
//!    other side. Further conditions of ON only take matches away.
//! 2. Nothing but ON reads a column of the nullable side. No row of it is locked or changed.
//! 3. Neither ON nor the nullable side calls a volatile function.
//! 4. A limit is a constant: the binder makes no parameter of it. One of 0 rows or with an OFFSET
//!    counts, and so does one that limits the rows to lock.
//! 5. The statement keeps its lock of the dropped table, so its keys stay while it runs.

use super::classes::column_of;
use super::stable::is_stable;
use super::unique::{Rows, Unique, equated};
use crate::bind::SourceRegisters;
use crate::bound::walk::{self, Part};
use crate::bound::{Bound, Distinct, FromItem, QueryBody, Source, SourceId, Sublink};
use crate::plan::{JoinKind, Reg, SubqueryKind};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::Volatility;
use runtime::hash::HashMap;
use values::types::Value;

/// How often registers are read or filled.
type Uses = HashMap<Reg, usize>;

/// Drops DISTINCT where its columns have a key of the rows, and LIMIT of EXISTS.
pub(super) fn clauses(bound: &mut Bound, sources: &[SourceRegisters]) {
    let unique = Unique { sources, rows: Rows::All };
    walk::statement(bound, &mut |part| {
        let Part::Select(select) = part else { return };
        select.sublinks.iter_mut().for_each(drop_limit);
        let (Distinct::All(keys) | Distinct::On(keys)) = &select.distinct else { return };
        let columns = keys.iter().filter_map(column_of).collect();
        if unique.selected(select, &columns) {
            select.distinct = Distinct::No;
        }
    });
}

/// Drops the limit of an EXISTS, which asks for one row. LIMIT 0 becomes a condition.
fn drop_limit(link: &mut Sublink) {
    let query = &mut link.query;
    if !matches!(link.kind, SubqueryKind::Exists) || query.offset.is_some() || !query.locks.is_empty() {
        return;
    }
    let limit = match &query.limit {
        Some(Expr::Cast(cast)) => cast.input.as_const(),
        Some(limit) => limit.as_const(),
        None => None,
    };
    match limit {
        Some(Value::Int4(1..) | Value::Int8(1..)) => query.limit = None,
        Some(Value::Int4(0) | Value::Int8(0)) => {
            if let QueryBody::Select(select) = &mut query.body
                && !select.grouped
            {
                select.conditions.push(Expr::boolean(false));
                query.limit = None;
            }
        }
        _ => {}
    }
}

/// Drops left joins; returns whether there were any.
pub(super) fn joins(bound: &mut Bound, sources: &[SourceRegisters]) -> bool {
    let mut dropped = false;
    // A dropped join may have been the only reader of another one's columns.
    while sources.len() > 1 && drop_joins(bound, sources) {
        dropped = true;
    }
    dropped
}

fn drop_joins(bound: &mut Bound, sources: &[SourceRegisters]) -> bool {
    let mut found: HashMap<SourceId, Uses> = HashMap::default();
    walk::statement(bound, &mut |part| {
        if let Part::Join(join) = part {
            found.extend(candidate(join, sources));
        }
    });
    if found.is_empty() {
        return false;
    }
    let mut all: Uses = found.values().flat_map(|own| own.keys().map(|register| (*register, 0))).collect();
    walk::statement(bound, &mut |part| count(part, &mut all));
    found.retain(|_, own| own.iter().all(|(register, uses)| all.get(register) == Some(uses)));
    walk::statement(bound, &mut |part| {
        let Part::Join(join) = part else { return };
        let FromItem::Join { kind, left, right, .. } = join else { return };
        let (preserved, nullable) = if *kind == JoinKind::Left { (left, right) } else { (right, left) };
        if matches!(&**nullable, FromItem::Source(source, _) if found.contains_key(source)) {
            let none = FromItem::Source(SourceId::MAX, Source::Common(u32::MAX));
            *join = std::mem::replace(&mut **preserved, none);
        }
    });
    !found.is_empty()
}

/// Counts the uses of registers that are in the map.
fn count(part: Part<'_>, uses: &mut Uses) {
    let add = |register: &Reg| {
        if let Some(uses) = uses.get_mut(register) {
            *uses += 1;
        }
    };
    match part {
        Part::Expr(expr) => registers::reads(expr).iter().for_each(add),
        Part::Register(register) => Some(&*register).into_iter().for_each(add),
        _ => {}
    }
}

/// The nullable source of a left join that adds no rows. With it come the registers that it fills,
/// and how often the source itself and ON use them.
fn candidate(join: &mut FromItem, sources: &[SourceRegisters]) -> Option<(SourceId, Uses)> {
    let FromItem::Join { kind, left, right, condition, .. } = join else { return None };
    let nullable = match kind {
        JoinKind::Left => right,
        JoinKind::Right => left,
        _ => return None,
    };
    let FromItem::Source(source, of) = &mut **nullable else { return None };
    let source = *source;
    let writes: Registers = match of {
        Source::Table(table) if !table.is_virtual() && sources[source].identity.is_none() => {
            sources[source].columns.iter().flatten().copied().collect()
        }
        Source::Query(query) => {
            if !is_stable(query) {
                return None;
            }
            query.output.iter().map(|column| column.register).collect()
        }
        _ => return None,
    };
    let equated = condition.iter().filter_map(|expr| equated(expr, |register| writes.contains(register)));
    let equated: Registers = equated.collect();
    let is_useless = condition.iter().all(|expr| expr.volatility() < Volatility::Volatile)
        && Unique { sources, rows: Rows::Matching }.item(nullable, &equated);
    if !is_useless {
        return None;
    }
    let mut own: Uses = writes.into_iter().map(|register| (register, 0)).collect();
    walk::item(nullable, &mut |part| count(part, &mut own));
    condition.iter_mut().for_each(|expr| count(Part::Expr(expr), &mut own));
    Some((source, own))
}
