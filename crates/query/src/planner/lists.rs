//! IN lists over keys: converts them to joins with the list's distinct values.

use super::written::written;
use std::sync::Arc;

use super::Planner;
use super::part::{Leaf, Part, Wanted};
use crate::plan::{Plan, SetCall, SortKey};
use expressions::expr::{Expr, QuantifiedOver};
use expressions::function::SetFunction;
use expressions::function::{Comparison, Volatility};
use expressions::functions;
use values::types::Type;

impl Planner<'_, '_> {
    /// Converts `x = ANY (array)` and `x IN (list)` over a key to a join with the distinct values,
    /// so that each value is one lookup.
    pub(super) fn lists(&mut self, conditions: &mut [Expr], leaves: &mut Vec<Leaf>) {
        let [Leaf::Table(source, table)] = leaves.as_slice() else { return };
        let (source, table) = (*source, Arc::clone(table));
        if table.is_virtual() {
            return;
        }
        for index in 0..conditions.len() {
            let Some((values, equal, rows)) = self.list_values(&conditions[index]) else { continue };
            let available = written(&values);
            let mut with_list = conditions.to_vec();
            with_list[index] = equal.clone();
            let access = self.search(source, &table, &with_list, &available, Wanted::default()).best();
            let plain = self.search(source, &table, conditions, &available, Wanted::default()).best();
            if access.used.contains(&index) && rows * access.cost < plain.cost {
                conditions[index] = equal;
                let part = Part { plan: values, rows, cost: rows, ordered: false };
                leaves.push(Leaf::Planned(Box::new(part)));
                return;
            }
        }
    }

    /// The sorted distinct values of a list, the equality with them, and their estimated number.
    /// They are sorted so that statements with the same values in another order lock the rows in
    /// one order.
    fn list_values(&mut self, condition: &Expr) -> Option<(Plan, Expr, f64)> {
        let Expr::Quantified(quantified) = condition else { return None };
        if quantified.all || quantified.function.comparison != Some(Comparison::Equal) {
            return None;
        }
        let type_ = Type::new(*quantified.function.arguments.get(1)?);
        let register = self.binder.register();
        let constant = |expr: &Expr| expr.is_row_free() && expr.volatility() < Volatility::Volatile;
        let (input, rows) = match &quantified.right {
            QuantifiedOver::List(list) if list.iter().all(constant) => {
                let rows = list.iter().map(|expr| vec![expr.clone()]).collect();
                (Plan::Values { rows, output: vec![register] }, list.len() as f64)
            }
            QuantifiedOver::Array(array) if constant(array) => {
                let function = SetFunction::Unnest;
                let arguments = vec![array.clone()];
                let calls = vec![SetCall { function, arguments, output: vec![register] }];
                (Plan::Function { calls, ordinality: None }, 10.0)
            }
            _ => return None,
        };
        let value = Expr::column(register, type_);
        let equal = functions::operator("=", Some(quantified.left.clone()), value.clone()).ok()?;
        let distinct = Plan::Distinct { input: Box::new(input), keys: vec![value.clone()], keep: Vec::new() };
        let keys = vec![SortKey { expr: value, descending: false, nulls_first: false }];
        let sorted = Plan::Sort { input: Box::new(distinct), keys, keep: Vec::new(), limit: None };
        Some((sorted, equal, rows))
    }
}
