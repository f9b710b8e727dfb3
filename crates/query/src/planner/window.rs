//! The plan nodes of windows.

use super::Planner;
use super::cost;
use super::grouping::{Order, User};
use super::part::{Part, Share};
use super::query::keep_order;
use super::top::copy_key;
use crate::bound::{Select, Window};
use crate::plan::{Operator, RunCondition};
use values::error::SqlError;

impl Planner<'_, '_> {
    /// The order that the only window of a SELECT wants, if a run condition ends it.
    pub(super) fn order_for_window(&self, select: &Select) -> Option<Order> {
        let [window] = select.windows.as_slice() else { return None };
        if window.run.is_empty() || !window.partition.is_empty() {
            return None;
        }
        let keys = window.order.iter().map(copy_key).collect();
        Some(Order { user: User::Window, keys, share: self.share_of_window(window), groups: None })
    }

    /// The share of its rows that a window without partitions reads.
    fn share_of_window(&self, window: &Window) -> Share {
        let counts = window.bounds(|_| true).filter_map(|bound| self.count(bound));
        match counts.map(|count| count.unwrap_or(0.0)).reduce(f64::min) {
            Some(count) => Share::Rows(count.max(1.0)),
            None if window.run.is_empty() => Share::All,
            None => Share::Some,
        }
    }

    /// Computes the calls over one window.
    pub(super) fn windowed(&mut self, part: Part, window: Window) -> Result<Part, SqlError> {
        let inputs = window.partition.iter().chain(window.order.iter().map(|key| &key.expr));
        let mut part =
            self.attached(part, inputs.chain(window.calls.iter().flat_map(|call| &call.arguments)))?;
        let is_single = window.partition.is_empty();
        let share = if is_single { self.share_of_window(&window) } else { Share::All };
        let most = window.most();
        // FROM's rows are in order only for a window with a run condition.
        let (in_order, mut estimate) = (part.ordered, part.plan.estimate);
        if in_order {
            keep_order(&mut part.plan);
            part.ordered = false;
        } else if !(is_single && window.order.is_empty()) {
            let kept = if most.is_some() { share.kept(estimate.rows) } else { estimate.rows };
            estimate.cost += cost::sort(estimate.rows, kept);
            estimate.start = estimate.cost;
        }
        estimate.rows = match share {
            Share::Rows(_) => share.kept(estimate.rows),
            _ => estimate.rows * window.run.iter().map(cost::selectivity).product::<f64>(),
        }
        .max(1.0);
        let run = match window.run.is_empty() {
            true => None,
            false => Some(Box::new(RunCondition { conditions: window.run, most, in_order })),
        };
        let node = |input| Operator::Window {
            input,
            partition: window.partition,
            order: window.order,
            calls: window.calls,
            keep: Vec::new(),
            run,
        };
        Ok(part.below(node, estimate))
    }
}
