//! WITH queries in place of their one reader.
//!
//! What must hold:
//!
//! 1. Such a query is not recursive and not MATERIALIZED, locks no row and calls no volatile
//!    function. So it gives the same rows wherever it runs, as PostgreSQL decides it, too.
//! 2. A loop may run it for each row. So a query that groups or sorts its rows moves only to a
//!    statement that joins it with nothing, unless it is NOT MATERIALIZED.

use super::pushdown::{WRAPPED, is_open};
use super::stable::is_stable;
use crate::bind::Binder;
use crate::bound::walk::{self, Part};
use crate::bound::{Bound, CommonQuery, FromItem, OutputColumn, Query, QueryBody, Select, Source};
use expressions::expr::Expr;
use runtime::hash::HashMap;

/// Moves them.
pub(super) fn common_queries(bound: &mut Bound, binder: &Binder<'_>) {
    let mut readers: HashMap<u32, usize> = HashMap::default();
    let mut has_tables = false;
    walk::statement(bound, &mut |part| match part {
        Part::Source(_, Source::Common(id)) => *readers.entry(*id).or_default() += 1,
        Part::With(tables) => has_tables |= !tables.is_empty(),
        _ => {}
    });
    if !has_tables {
        return;
    }
    let alone = read_alone(bound);
    let mut movable: HashMap<u32, Query> = HashMap::default();
    walk::statement(bound, &mut |part| {
        let Part::With(tables) = part else { return };
        let is_movable = |table: &mut CommonQuery| {
            readers.get(&table.id) == Some(&1)
                && table.recursive.is_none()
                && !table.materialized
                && (table.inlined || is_open(&table.query) || alone == Some(table.id))
                && is_stable(&mut table.query)
        };
        movable.extend(tables.extract_if(.., is_movable).map(|table| (table.id, table.query)));
    });
    // A source is visited before what replaced it. So the WITH queries that a moved one reads are
    // moved, too.
    let mut place = |part: Part<'_>| {
        let Part::Source(source, of) = part else { return };
        let Source::Common(id) = of else { return };
        if let Some(query) = movable.remove(id) {
            let columns = &binder.sources[*source].columns;
            *of = Source::Query(Box::new(renamed(query, columns)));
        }
    };
    walk::statement(bound, &mut place);
}

/// The WITH query that is all of the statement's FROM.
fn read_alone(bound: &Bound) -> Option<u32> {
    let Bound::Query(query) = bound else { return None };
    let QueryBody::Select(select) = &query.body else { return None };
    match &select.from {
        Some(FromItem::Source(_, Source::Common(id))) => Some(*id),
        _ => None,
    }
}

/// A query whose columns fill other registers, as far as anything reads them.
pub(super) fn renamed(query: Query, registers: &[Option<u32>]) -> Query {
    let (mut targets, mut output) = (Vec::new(), Vec::new());
    for (column, register) in query.output.iter().zip(registers) {
        let Some(register) = *register else { continue };
        targets.push((Expr::column(column.register, column.type_), register));
        output.push(OutputColumn { register, ..column.clone() });
    }
    let from = Some(FromItem::Source(WRAPPED, Source::Query(Box::new(query))));
    let select = Select { from, targets, ..Select::default() };
    Query::of(QueryBody::Select(Box::new(select)), output)
}
