//! Whether columns of an item of FROM tell its rows apart.
//!
//! Primary keys and unique indexes tell the rows of a table apart. GROUP BY and DISTINCT tell those
//! of a subquery apart, as a set operation without ALL does.
//!
//! What must hold: a plan that relies on a key is made anew when the key is dropped. Each DDL
//! statement begins a generation of the catalog, so all plans are.

use super::classes::column_of;
use super::key_value::is_comparable;
use crate::bind::SourceRegisters;
use crate::bound::{Distinct, FromItem, Query, QueryBody, Select, Source};
use crate::plan::Reg;
use crate::registers::{self, Registers};
use catalog::Table;
use expressions::expr::Expr;
use expressions::function::{Comparison, Volatility};

/// The rows that columns may have to tell apart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// Those without a NULL in the columns, because an equality compares them.
    Matching,
    /// All, as DISTINCT sees them: it counts NULLs as equal.
    All,
}

/// The look for keys under a statement's sources.
#[derive(Clone, Copy)]
pub(super) struct Unique<'s> {
    pub(super) sources: &'s [SourceRegisters],
    pub(super) rows: Rows,
}

impl Unique<'_> {
    /// Whether no two rows of an item of FROM have the same values in these registers.
    pub(super) fn item(self, item: &FromItem, columns: &Registers) -> bool {
        match item {
            FromItem::Source(source, Source::Table(table)) => {
                let registers = &self.sources[*source].columns;
                self.table(table, |column| {
                    let register = registers.get(column as usize).copied().flatten();
                    register.is_some_and(|register| columns.contains(&register))
                })
            }
            FromItem::Source(_, Source::Query(query)) => self.query(query, columns),
            FromItem::Source(..) | FromItem::Join { .. } => false,
        }
    }

    fn table(self, table: &Table, has: impl Fn(u32) -> bool) -> bool {
        let is_filled = |column: u32| table.columns[column as usize].not_null;
        let primary = table.primary_key.iter().any(|key| key.columns.iter().all(|column| has(*column)));
        primary
            || table.indexes.iter().filter(|index| index.unique).any(|index| {
                let compares = |column: u32| {
                    self.rows == Rows::Matching || index.nulls_not_distinct || is_filled(column)
                };
                index.columns.iter().all(|key| has(key.column) && compares(key.column))
            })
    }

    fn query(self, query: &Query, columns: &Registers) -> bool {
        match &query.body {
            QueryBody::Select(select) => self.select(select, columns),
            QueryBody::Set { steps, output, .. } => {
                steps.last().is_some_and(|(_, all)| !all) && output.iter().all(|of| columns.contains(of))
            }
            QueryBody::Values { rows, .. } => rows.len() <= 1,
        }
    }

    fn select(self, select: &Select, columns: &Registers) -> bool {
        match &select.distinct {
            Distinct::All(keys) | Distinct::On(keys) if are_among(keys, columns) => true,
            _ => self.selected(select, columns),
        }
    }

    /// The same for the rows of a SELECT before its DISTINCT.
    pub(super) fn selected(self, select: &Select, columns: &Registers) -> bool {
        if !select.sets.is_empty() {
            return false;
        }
        let mut columns = columns.clone();
        // A target may read an earlier one.
        for (expr, register) in select.targets.iter().rev() {
            if columns.contains(register) {
                columns.extend(column_of(expr));
            }
        }
        if select.grouped {
            return select.groups.iter().all(|(_, register)| columns.contains(register));
        }
        columns.extend(select.conditions.iter().filter_map(|condition| equated(condition, |_| true)));
        select.from.as_ref().is_none_or(|from| self.item(from, &columns))
    }
}

/// Whether all these expressions are columns of the set.
fn are_among(keys: &[Expr], columns: &Registers) -> bool {
    keys.iter().all(|key| column_of(key).is_some_and(|register| columns.contains(&register)))
}

/// The own register that an equality compares with a value that reads no own register.
///
/// What must hold: the equality is that of the column's keys. So of rows with different keys, one
/// at most equals the value.
pub(super) fn equated(condition: &Expr, is_own: impl Fn(&Reg) -> bool) -> Option<Reg> {
    let (Comparison::Equal, left, right) = condition.as_comparison()? else { return None };
    [(left, right), (right, left)].into_iter().find_map(|(side, value)| {
        let fits = is_comparable(value.type_(), side.type_())
            && value.volatility() < Volatility::Volatile
            && !registers::reads(value).iter().any(&is_own);
        column_of(side).filter(|register| fits && is_own(register))
    })
}
