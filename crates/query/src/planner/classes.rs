//! Classes of columns that conditions say to be equal, and the conditions that follow.
//!
//! What must hold:
//!
//! 1. A class has columns of one type, of sides whose rows are there: not of the nullable sides of
//!    left joins.
//! 2. Every two columns of a class that no value fixes are compared by a condition. So a join of
//!    two sets of sides needs to test one condition of each class only.
//! 3. If a value fixes a class, each of its columns is compared with the value. The conditions
//!    between its columns are then redundant.

use super::graph::{Class, Clause, Graph, Member, Set};
use crate::plan::Reg;
use crate::registers;
use expressions::expr::{CastPath, Expr};
use expressions::function::{Comparison, Volatility};
use expressions::functions;

/// The most columns of a class; beyond it conditions stay as they are.
const MOST_MEMBERS: usize = 8;

/// A column of a side, as conditions write it.
struct Column {
    register: Reg,
    expr: Expr,
    side: usize,
}

/// The column that an expression is, ignoring casts that only rename the type.
pub(super) fn column_of(expr: &Expr) -> Option<Reg> {
    match expr {
        Expr::Column { register, .. } => Some(*register),
        Expr::Cast(cast) if matches!(cast.path, CastPath::Relabel) => column_of(&cast.input),
        _ => None,
    }
}

impl Graph {
    /// Finds the classes among its clauses and adds the conditions that follow from them.
    /// `is_late`: conditions on subqueries' results. `distinct`: a column's number of values.
    pub(super) fn add_classes(
        &mut self,
        is_late: impl Fn(&Expr) -> bool,
        distinct: impl Fn(usize, Reg) -> f64,
    ) {
        let mut found: Vec<Vec<Column>> = Vec::new();
        for clause in self.clauses.iter().filter(|clause| !is_late(&clause.condition)) {
            if let Some((left, right)) = self.pair(&clause.condition) {
                join(&mut found, left, right);
            }
        }
        found.retain(|columns| columns.len() <= MOST_MEMBERS);
        for columns in found {
            self.add_class(&columns, &is_late, &distinct);
        }
    }

    /// The two columns that a condition compares for equality.
    fn pair(&self, condition: &Expr) -> Option<(Column, Column)> {
        let (Comparison::Equal, left, right) = condition.as_comparison()? else { return None };
        if left.type_().oid != right.type_().oid {
            return None;
        }
        let column = |expr: &Expr| {
            let register = column_of(expr)?;
            let side = self.nodes.iter().position(|node| node.writes.contains(&register))?;
            (!self.nodes[side].attached).then(|| Column { register, expr: expr.clone(), side })
        };
        Some((column(left)?, column(right)?))
    }

    fn add_class(
        &mut self,
        columns: &[Column],
        is_late: &impl Fn(&Expr) -> bool,
        distinct: &impl Fn(usize, Reg) -> f64,
    ) {
        let number = self.classes.len();
        let Stated { own, pairs, fixed } = self.stated(columns, is_late);
        let mut follows: Vec<(Expr, Set, Set)> = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            let others: Vec<(&Expr, Set)> = match fixed.first() {
                Some((_, value)) => {
                    let is_it = |(fixed, other): &(usize, Expr)| *fixed == at && is_same(other, value);
                    if fixed.iter().any(is_it) { Vec::new() } else { vec![(value, 0)] }
                }
                None => {
                    let earlier = columns[..at].iter().enumerate();
                    let unsaid = earlier.filter(|(other, _)| !pairs.contains(&(at, *other)));
                    unsaid.map(|(_, other)| (&other.expr, 1 << other.side)).collect()
                }
            };
            for (value, side) in others {
                let equal = functions::operator("=", Some(column.expr.clone()), value.clone());
                let Ok(condition) = equal else { return };
                follows.push((condition, 1 << column.side, side));
            }
        }
        for at in own {
            self.clauses[at].class = Some(number);
            self.clauses[at].redundant = !fixed.is_empty();
        }
        for (condition, one, other) in follows {
            self.clauses.push(Clause {
                condition,
                sides: one | other,
                equates: (other != 0).then_some((one, other)),
                class: (other != 0).then_some(number),
                redundant: false,
                selectivity: 1.0,
            });
        }
        let members = columns
            .iter()
            .map(|column| Member { side: column.side, distinct: distinct(column.side, column.register) });
        self.classes.push(Class { members: members.collect(), fixed: !fixed.is_empty() });
    }

    /// The clauses about columns of a class.
    fn stated(&self, columns: &[Column], is_late: &impl Fn(&Expr) -> bool) -> Stated {
        let index = |expr: &Expr| {
            let register = column_of(expr)?;
            columns.iter().position(|column| column.register == register)
        };
        let is_known = |value: &Expr| {
            let read = registers::reads(value);
            value.volatility() < Volatility::Volatile
                && self.nodes.iter().all(|node| node.writes.is_disjoint(&read))
        };
        let mut stated = Stated::default();
        for (at, clause) in self.clauses.iter().enumerate() {
            let Some((Comparison::Equal, left, right)) = clause.condition.as_comparison() else { continue };
            if left.type_().oid != right.type_().oid || is_late(&clause.condition) {
                continue;
            }
            match (index(left), index(right)) {
                (Some(one), Some(other)) => {
                    stated.own.push(at);
                    stated.pairs.extend([(one, other), (other, one)]);
                }
                (Some(one), None) if is_known(right) => stated.fixed.push((one, right.clone())),
                (None, Some(other)) if is_known(left) => stated.fixed.push((other, left.clone())),
                _ => {}
            }
        }
        stated
    }
}

/// The clauses about columns of a class.
#[derive(Default)]
struct Stated {
    /// The positions of those that compare two of its columns.
    own: Vec<usize>,
    /// The pairs that they compare, both ways round.
    pairs: Vec<(usize, usize)>,
    /// Columns and the known values that they equal.
    fixed: Vec<(usize, Expr)>,
}

/// Whether two known values are surely one.
fn is_same(one: &Expr, other: &Expr) -> bool {
    match (one, other) {
        (Expr::Param { index, .. }, Expr::Param { index: other, .. }) => index == other,
        (Expr::Column { register, .. }, Expr::Column { register: other, .. }) => register == other,
        _ => std::ptr::eq(one, other),
    }
}

/// Adds an equality of two columns to the classes.
fn join(classes: &mut Vec<Vec<Column>>, left: Column, right: Column) {
    let find = |classes: &Vec<Vec<Column>>, column: &Column| {
        classes.iter().position(|class| {
            let same = |other: &Column| {
                other.register == column.register && other.expr.type_().oid == column.expr.type_().oid
            };
            class.iter().any(same)
        })
    };
    match (find(classes, &left), find(classes, &right)) {
        (Some(one), Some(other)) if one == other => {}
        (Some(one), Some(other)) => {
            let moved = classes.remove(one.max(other));
            classes[one.min(other)].extend(moved);
        }
        (Some(one), None) => classes[one].push(right),
        (None, Some(other)) => classes[other].push(left),
        (None, None) => classes.push(vec![left, right]),
    }
}
