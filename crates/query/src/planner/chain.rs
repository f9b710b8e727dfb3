//! Set operations: converts a chain of them to stages.

use super::Planner;
use super::cost;
use super::part::Part;
use crate::bound::Query;
use crate::plan::{Estimate, Operator, Reg, SetKind, SetSide, SetStage};
use crate::registers::Registers;
use values::error::SqlError;

impl Planner<'_, '_> {
    /// A chain of set operations, applied from left to right.
    pub(super) fn set_operation(
        &mut self,
        queries: Vec<Query>,
        steps: &[(SetKind, bool)],
        output: Vec<Reg>,
        outside: &Registers,
    ) -> Result<Part, SqlError> {
        let (mut estimate, mut sides) = (Estimate::default(), Vec::with_capacity(queries.len()));
        for query in queries {
            let registers = query.output.iter().map(|column| column.register).collect();
            let side = self.query(query, outside)?;
            estimate.rows += side.rows();
            estimate.cost += side.cost();
            sides.push((side.plan, registers));
        }
        estimate.cost += estimate.rows * cost::HASH_BUILD;
        let mut sides = sides.into_iter();
        let first = sides.next().ok_or_else(|| SqlError::internal("a set operation without sides"))?;
        let mut stages: Vec<SetStage> = Vec::new();
        for (side, &(kind, all)) in sides.zip(steps) {
            add_step(&mut stages, side, (kind, all));
        }
        // UNION ALL passes its rows on, the others keep them.
        estimate.start = match stages.iter().all(|stage| stage.kind == SetKind::Union && stage.all) {
            true => first.0.estimate.start,
            false => estimate.cost,
        };
        Ok(Part::new(Operator::SetOperation { first: Box::new(first), stages, output }, estimate))
    }
}

/// Adds an operation as a stage, or merges it into the last stage.
fn add_step(stages: &mut Vec<SetStage>, side: SetSide, (kind, all): (SetKind, bool)) {
    // A UNION removes duplicates of all rows on its left. So the UNIONs directly before it need not
    // do it.
    if kind == SetKind::Union && !all {
        let others = stages.iter().rposition(|stage| stage.kind != SetKind::Union);
        let base = others.map_or(0, |last| last + 1);
        if base < stages.len() {
            let later: Vec<SetSide> = stages.drain(base + 1..).flat_map(|stage| stage.sides).collect();
            stages[base].sides.extend(later);
            stages[base].all = false;
        }
    }
    match stages.last_mut() {
        // EXCEPT removes rows that equal a row of any of its inputs.
        Some(last) if kind != SetKind::Intersect && (last.kind, last.all) == (kind, all) => {
            last.sides.push(side);
        }
        last => {
            let distinct = last.is_some_and(|last| leaves_distinct(last));
            stages.push(SetStage { kind, all, sides: vec![side], distinct });
        }
    }
}

/// Whether an operation's result rows are distinct.
fn leaves_distinct(stage: &SetStage) -> bool {
    !stage.all || (stage.distinct && stage.kind != SetKind::Union)
}
