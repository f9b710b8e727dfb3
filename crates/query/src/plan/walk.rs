//! Walks over plans: the plans below a node, and a node's expressions, by shared and by mutable
//! reference.
//!
//! What must hold: a new kind of node does not compile until each walk handles it.

use expressions::expr::Expr;

use super::{
    AccessPath, AggregateCall, Assignment, Check, KeyBound, KeyRange, KeyValue, Operator, Plan, Scan,
    SecondLook, SetSide, SetStage, SortKey, SubqueryKind,
};

/// Calls `visit` for the plans below a node.
pub(crate) fn children<'p>(plan: &'p Plan, visit: &mut dyn FnMut(&'p Plan)) {
    match &plan.operator {
        Operator::OneRow
        | Operator::Nothing
        | Operator::Values { .. }
        | Operator::Scan(_)
        | Operator::Virtual { .. }
        | Operator::Function { .. }
        | Operator::CommonScan { .. }
        | Operator::Joined { .. } => {}
        Operator::Filter { input, .. }
        | Operator::Project { input, .. }
        | Operator::Aggregate { input, .. }
        | Operator::Window { input, .. }
        | Operator::Sort { input, .. }
        | Operator::Limit { input, .. }
        | Operator::Distinct { input, .. }
        | Operator::LockRows { input, .. } => visit(input),
        Operator::NestedLoop { left, right, beyond, .. } => {
            visit(left);
            visit(right);
            beyond.iter().for_each(|beyond| visit(&beyond.join));
        }
        Operator::EquiJoin { left, right, test, .. } => {
            visit(left);
            visit(right);
            test.iter().for_each(|test| visit(test));
        }
        Operator::SetOperation { first, stages, .. } => {
            set_sides(first, stages).for_each(|(side, _)| visit(side));
        }
        Operator::Subquery { input, subquery, .. } => {
            visit(input);
            visit(subquery);
        }
        Operator::With { tables, body } => {
            for table in tables {
                visit(&table.plan);
                if let Some(recursive) = &table.recursive {
                    visit(&recursive.plan);
                }
            }
            visit(body);
        }
        Operator::Insert(insert) => visit(&insert.input),
        Operator::Update(update) => visit(&update.input),
        Operator::Delete(delete) => visit(&delete.input),
    }
}

/// The inputs of a chain of set operations.
pub(crate) fn set_sides<'p>(first: &'p SetSide, stages: &'p [SetStage]) -> impl Iterator<Item = &'p SetSide> {
    std::iter::once(first).chain(stages.iter().flat_map(|stage| &stage.sides))
}

/// Calls `visit` for the plans below a node, and for its plans of a second look.
pub(crate) fn children_mut(root: &mut Plan, visit: &mut dyn FnMut(&mut Plan)) {
    match &mut root.operator {
        Operator::OneRow
        | Operator::Nothing
        | Operator::Values { .. }
        | Operator::Scan(_)
        | Operator::Virtual { .. }
        | Operator::Function { .. }
        | Operator::CommonScan { .. }
        | Operator::Joined { .. } => {}
        Operator::Filter { input, .. }
        | Operator::Project { input, .. }
        | Operator::Aggregate { input, .. }
        | Operator::Window { input, .. }
        | Operator::Sort { input, .. }
        | Operator::Limit { input, .. }
        | Operator::Distinct { input, .. } => visit(input),
        Operator::LockRows { input, second_look, .. } => {
            visit(input);
            second_look_mut(second_look.as_deref_mut(), visit);
        }
        Operator::NestedLoop { left, right, beyond, .. } => {
            visit(left);
            visit(right);
            beyond.iter_mut().for_each(|beyond| visit(&mut beyond.join));
        }
        Operator::EquiJoin { left, right, test, .. } => {
            visit(left);
            visit(right);
            test.iter_mut().for_each(|test| visit(test));
        }
        Operator::SetOperation { first, stages, .. } => {
            let others = stages.iter_mut().flat_map(|stage| &mut stage.sides);
            std::iter::once(&mut **first).chain(others).for_each(|(side, _)| visit(side));
        }
        Operator::Subquery { input, subquery, .. } => {
            visit(input);
            visit(subquery);
        }
        Operator::With { tables, body } => {
            for table in tables {
                visit(&mut table.plan);
                if let Some(recursive) = &mut table.recursive {
                    visit(&mut recursive.plan);
                }
            }
            visit(body);
        }
        Operator::Insert(insert) => visit(&mut insert.input),
        Operator::Update(update) => {
            visit(&mut update.input);
            second_look_mut(update.second_look.as_deref_mut(), visit);
        }
        Operator::Delete(delete) => {
            visit(&mut delete.input);
            second_look_mut(delete.second_look.as_deref_mut(), visit);
        }
    }
}

fn second_look_mut(second_look: Option<&mut SecondLook>, visit: &mut dyn FnMut(&mut Plan)) {
    let Some(second_look) = second_look else { return };
    for part in &mut second_look.matches {
        visit(&mut part.subquery);
        part.plan.iter_mut().for_each(&mut *visit);
    }
    second_look.plan.iter_mut().for_each(visit);
}

/// Calls `visit` for the comparisons that a node's second look uses to match subqueries with a
/// newer version of a row.
pub(crate) fn comparisons_mut(root: &mut Plan, visit: &mut dyn FnMut(&mut Expr)) {
    let second_look = match &mut root.operator {
        Operator::LockRows { second_look, .. } => second_look,
        Operator::Update(update) => &mut update.second_look,
        Operator::Delete(delete) => &mut delete.second_look,
        _ => return,
    };
    let Some(second_look) = second_look.as_deref_mut() else { return };
    second_look.matches.iter_mut().for_each(|part| part.comparison.iter_mut().for_each(&mut *visit));
}

/// One walk over a node's own expressions, by shared or mutable reference.
macro_rules! node_exprs {
    ($operator:expr, $visit:ident, $iter:ident, $sort:ident, $calls:ident, $scan:ident, $kind:ident,
     $checks:ident, $assign:ident) => {
        match $operator {
            Operator::OneRow
            | Operator::Nothing
            | Operator::SetOperation { .. }
            | Operator::With { .. }
            | Operator::CommonScan { .. }
            | Operator::LockRows { .. }
            | Operator::Joined { .. }
            | Operator::Delete(_) => {}
            Operator::Values { rows, .. } => rows.$iter().for_each(|row| row.$iter().for_each(&mut *$visit)),
            Operator::Scan(scan) => $scan(scan, $visit),
            Operator::Virtual { filter, .. } => filter.$iter().for_each($visit),
            Operator::Function { calls, .. } => {
                calls.$iter().for_each(|call| call.arguments.$iter().for_each(&mut *$visit));
            }
            Operator::Filter { condition, .. } => $visit(condition),
            Operator::Project { expressions, .. } => expressions.$iter().for_each(|pair| {
                let (expr, _) = pair;
                $visit(expr)
            }),
            Operator::NestedLoop { condition, .. } => condition.$iter().for_each($visit),
            Operator::EquiJoin { keys, condition, .. } => {
                keys.$iter().for_each(|pair| {
                    let (left, right) = pair;
                    $visit(left);
                    $visit(right);
                });
                condition.$iter().for_each($visit);
            }
            Operator::Subquery { kind, guard, .. } => {
                $kind(kind, $visit);
                guard.$iter().for_each(|guard| {
                    guard.flags.$iter().for_each(|pair| {
                        let (expr, _) = pair;
                        $visit(expr)
                    });
                    guard.conditions.$iter().for_each(&mut *$visit);
                });
            }
            Operator::Aggregate { groups, calls, .. } => {
                groups.$iter().for_each(|pair| {
                    let (expr, _) = pair;
                    $visit(expr)
                });
                $calls(calls, $visit);
            }
            Operator::Window { partition, order, calls, run, .. } => {
                partition.$iter().for_each(&mut *$visit);
                $sort(order, $visit);
                calls.$iter().for_each(|call| call.arguments.$iter().for_each(&mut *$visit));
                run.$iter().for_each(|run| {
                    run.conditions.$iter().for_each(&mut *$visit);
                    run.most.$iter().for_each(&mut *$visit);
                });
            }
            Operator::Sort { keys, limit, .. } => {
                $sort(keys, $visit);
                limit.$iter().for_each($visit);
            }
            Operator::Limit { limit, offset, ties, .. } => {
                limit.$iter().for_each(&mut *$visit);
                offset.$iter().for_each(&mut *$visit);
                ties.$iter().for_each($visit);
            }
            Operator::Distinct { keys, .. } => keys.$iter().for_each($visit),
            Operator::Insert(insert) => {
                insert.values.$iter().for_each(&mut *$visit);
                $checks!(insert.checks, $visit);
                insert.conflict.$iter().for_each(|conflict| {
                    conflict.update.$iter().for_each(|update| {
                        update.condition.$iter().for_each(&mut *$visit);
                        $assign!(update.assignments, $visit);
                        $checks!(update.checks, $visit);
                    });
                });
            }
            Operator::Update(update) => {
                $assign!(update.assignments, $visit);
                $checks!(update.checks, $visit);
            }
        }
    };
}

macro_rules! each_shared {
    ($list:expr, $visit:ident) => {
        each_part(&$list, $visit)
    };
}
macro_rules! each_mutable {
    ($list:expr, $visit:ident) => {
        each_part_mut(&mut $list, $visit)
    };
}

/// Something that holds one expression, or none.
trait Part {
    fn part(&self) -> Option<&Expr>;
    fn part_mut(&mut self) -> Option<&mut Expr>;
}

impl Part for Check {
    fn part(&self) -> Option<&Expr> {
        Some(&self.expr)
    }
    fn part_mut(&mut self) -> Option<&mut Expr> {
        Some(&mut self.expr)
    }
}

impl Part for Assignment {
    fn part(&self) -> Option<&Expr> {
        Some(&self.value)
    }
    fn part_mut(&mut self) -> Option<&mut Expr> {
        Some(&mut self.value)
    }
}

impl Part for SortKey {
    fn part(&self) -> Option<&Expr> {
        Some(&self.expr)
    }
    fn part_mut(&mut self) -> Option<&mut Expr> {
        Some(&mut self.expr)
    }
}

/// A list of parts, or a single one.
trait Parts {
    type Item: Part;
    fn parts(&self) -> &[Self::Item];
    fn parts_mut(&mut self) -> &mut [Self::Item];
}

impl<P: Part> Parts for Vec<P> {
    type Item = P;
    fn parts(&self) -> &[P] {
        self
    }
    fn parts_mut(&mut self) -> &mut [P] {
        self
    }
}

fn each_part<'p, P: Parts>(list: &'p P, visit: &mut dyn FnMut(&'p Expr))
where
    P::Item: 'p,
{
    list.parts().iter().filter_map(Part::part).for_each(visit);
}

fn each_part_mut<P: Parts>(list: &mut P, visit: &mut dyn FnMut(&mut Expr)) {
    list.parts_mut().iter_mut().filter_map(Part::part_mut).for_each(visit);
}

fn call_exprs<'p>(calls: &'p [AggregateCall], visit: &mut dyn FnMut(&'p Expr)) {
    for call in calls {
        call.arguments.iter().for_each(&mut *visit);
        each_part(&call.order, visit);
        call.filter.iter().for_each(&mut *visit);
    }
}

fn call_exprs_mut(calls: &mut [AggregateCall], visit: &mut dyn FnMut(&mut Expr)) {
    for call in calls {
        call.arguments.iter_mut().for_each(&mut *visit);
        each_part_mut(&mut call.order, visit);
        call.filter.iter_mut().for_each(&mut *visit);
    }
}

/// Calls `visit` for the expressions that turn a subquery's rows into its result.
pub(crate) fn kind_exprs<'p>(kind: &'p SubqueryKind, visit: &mut dyn FnMut(&'p Expr)) {
    match kind {
        SubqueryKind::Scalar { value } | SubqueryKind::Array { value, .. } => visit(value),
        SubqueryKind::Exists => {}
        SubqueryKind::Matches { pairs } => {
            for (left, right) in pairs {
                visit(left);
                visit(right);
            }
        }
        SubqueryKind::Quantified { comparison, hash, .. } => {
            visit(comparison);
            for (left, right) in hash.iter().flatten() {
                visit(left);
                visit(right);
            }
        }
    }
}

fn kind_exprs_mut(kind: &mut SubqueryKind, visit: &mut dyn FnMut(&mut Expr)) {
    match kind {
        SubqueryKind::Scalar { value } | SubqueryKind::Array { value, .. } => visit(value),
        SubqueryKind::Exists => {}
        SubqueryKind::Matches { pairs } => {
            for (left, right) in pairs {
                visit(left);
                visit(right);
            }
        }
        SubqueryKind::Quantified { comparison, hash, .. } => {
            visit(comparison);
            for (left, right) in hash.iter_mut().flatten() {
                visit(left);
                visit(right);
            }
        }
    }
}

fn scan_exprs_mut(scan: &mut Scan, visit: &mut dyn FnMut(&mut Expr)) {
    match &mut scan.path {
        AccessPath::Point { key } | AccessPath::UniquePoint { key, .. } => {
            key.iter_mut().for_each(&mut *visit)
        }
        AccessPath::Table { ranges, .. } | AccessPath::Index { ranges, .. } => {
            ranges.iter_mut().for_each(|range| range_exprs_mut(range, visit));
        }
        AccessPath::Combined { parts, .. } => {
            let ranges = parts.iter_mut().flat_map(|part| &mut part.ranges);
            ranges.for_each(|range| range_exprs_mut(range, visit));
        }
    }
    scan.filter.iter_mut().for_each(visit);
}

fn range_exprs_mut(range: &mut KeyRange, visit: &mut dyn FnMut(&mut Expr)) {
    for value in &mut range.equal {
        match value {
            KeyValue::One(value) | KeyValue::Array(value) => visit(value),
            KeyValue::List(list) => list.iter_mut().for_each(&mut *visit),
            KeyValue::Each { between, .. } => range_exprs_mut(between, visit),
            KeyValue::Null => {}
        }
    }
    range.low.iter_mut().chain(&mut range.high).filter_map(KeyBound::value_mut).for_each(visit);
}

/// Calls `visit` for a node's own expressions.
pub(crate) fn exprs<'p>(node: &'p Plan, visit: &mut dyn FnMut(&'p Expr)) {
    node_exprs!(
        &node.operator,
        visit,
        iter,
        each_part,
        call_exprs,
        scan_exprs,
        kind_exprs,
        each_shared,
        each_shared
    );
}

pub(crate) fn exprs_mut(node: &mut Plan, visit: &mut dyn FnMut(&mut Expr)) {
    node_exprs!(
        &mut node.operator,
        visit,
        iter_mut,
        each_part_mut,
        call_exprs_mut,
        scan_exprs_mut,
        kind_exprs_mut,
        each_mutable,
        each_mutable
    );
}

/// Calls `visit` for the expressions of a scan.
pub(crate) fn scan_exprs<'p>(scan: &'p Scan, visit: &mut dyn FnMut(&'p Expr)) {
    match &scan.path {
        AccessPath::Point { key } | AccessPath::UniquePoint { key, .. } => key.iter().for_each(&mut *visit),
        AccessPath::Table { ranges, .. } | AccessPath::Index { ranges, .. } => {
            ranges.iter().for_each(|range| range_exprs(range, visit));
        }
        AccessPath::Combined { parts, .. } => {
            let ranges = parts.iter().flat_map(|part| &part.ranges);
            ranges.for_each(|range| range_exprs(range, visit));
        }
    }
    scan.filter.iter().for_each(visit);
}

fn range_exprs<'p>(range: &'p KeyRange, visit: &mut dyn FnMut(&'p Expr)) {
    for value in &range.equal {
        match value {
            KeyValue::One(value) | KeyValue::Array(value) => visit(value),
            KeyValue::List(list) => list.iter().for_each(&mut *visit),
            KeyValue::Each { between, .. } => range_exprs(between, visit),
            KeyValue::Null => {}
        }
    }
    range.low.iter().chain(&range.high).filter_map(KeyBound::value).for_each(visit);
}
