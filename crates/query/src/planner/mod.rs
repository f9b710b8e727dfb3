//! The planner: from bound queries to plans.
//!
//! It chooses access paths, the order and methods of joins, and the place of every subquery. What
//! must hold: a plan returns what the bound query means, under any catalog statistics.

mod access;
mod bounding;
mod chain;
mod classes;
mod collapse;
mod combined;
mod common;
mod copies;
mod cost;
mod covering;
mod defer;
mod drive;
mod equalities;
mod estimate;
mod extremes;
mod factor;
mod fixed_keys;
mod from;
mod full;
mod gather;
mod go_on;
mod graph;
mod grouped;
mod grouping;
mod guard;
mod inline;
mod join;
mod keep;
mod key_interval;
mod key_value;
mod leaf;
mod matches;
mod merging;
mod modify;
mod moments;
mod nested_loop;
mod order;
mod part;
mod pending;
mod positive;
mod premises;
mod price;
mod prune;
mod pushdown;
mod query;
mod reach;
mod rejects;
mod run;
mod safe;
mod search;
mod second_look;
mod semi;
mod sets;
mod single;
mod stable;
mod stale;
mod together;
mod top;
mod unique;
mod unmatched;
mod useless;
mod window;
mod written;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use expressions::expr::Expr;
use values::error::SqlError;
use values::types::{Datum, Value};

use crate::bind::Binder;
use crate::bound::{Bound, OutputColumn};
use crate::plan::{
    Body, Choice, Classes, ColumnDesc, Generation, Plan, QueryTag, Reg, Statement, classes, number,
};
use crate::request::Context;
use pending::Pending;

pub(crate) use cost::OFF;
pub(crate) use keep::{free, node_reads};
pub(crate) use written::written;

/// A planned statement.
struct Planned {
    pub(super) root: Plan,
    pub(super) tag: QueryTag,
    pub(super) columns: Vec<OutputColumn>,
}

/// Plans one statement.
struct Planner<'b, 'a> {
    pub(super) binder: &'b mut Binder<'a>,
    /// Subqueries of the present query's expressions that no node computes yet, by result register.
    pub(super) pending: BTreeMap<Reg, Pending>,
    /// The WITH queries planned so far.
    pub(super) common: common::Known,
    /// The choices of access paths that depend on parameters.
    pub(super) choices: RefCell<Vec<Choice>>,
    /// The statement's premises that the plan does not know.
    premises: Vec<Expr>,
    /// The depth of the query being planned.
    nesting: usize,
    /// Further plans made for conditions that may drive.
    drives: usize,
}

impl<'b, 'a> Planner<'b, 'a> {
    pub(super) fn new(binder: &'b mut Binder<'a>) -> Planner<'b, 'a> {
        Planner {
            binder,
            pending: BTreeMap::new(),
            common: common::Known::default(),
            choices: RefCell::default(),
            premises: Vec::new(),
            nesting: 0,
            drives: 0,
        }
    }

    pub(super) fn context(&self) -> &'a Context<'a> {
        self.binder.context
    }
}

/// Plans a bound query. `binder` is the one that bound it and knows its registers.
pub(crate) fn plan_bound(binder: &mut Binder<'_>, bound: Bound) -> Result<Statement, SqlError> {
    let parameters = binder.finish()?.types;
    let mut planner = Planner::new(binder);
    let planned = planner.statement(bound)?;
    let choices = planner.choices.take();
    let premises = planner.premises;
    let made_for = made_for(binder, &choices, parameters.len());
    let mut root = planned.root;
    crate::fold::plan(&mut root);
    number(&mut root);
    keep::fill(&mut root, planned.columns.iter().map(|column| column.register).collect());
    let columns: Arc<[ColumnDesc]> = planned
        .columns
        .iter()
        .map(|column| {
            let (table, attribute) = column.origin.unwrap_or((0, 0));
            ColumnDesc { name: column.name.clone(), type_: column.type_, table, attribute }
        })
        .collect();
    Ok(Statement {
        body: Body::Query { root, tag: planned.tag },
        columns,
        output: planned.columns.iter().map(|column| column.register).collect(),
        registers: binder.register_count(),
        parameters,
        writes: binder.writes,
        generation: Generation::of(binder.context.catalog),
        locks: std::mem::take(&mut binder.locks),
        choices,
        premises,
        made_for,
    })
}

/// The classes of the parameters' values, if they are known.
fn made_for(binder: &Binder<'_>, choices: &[Choice], parameters: usize) -> Option<Classes> {
    let mut values = vec![Value::Null; parameters];
    for index in choices.iter().flat_map(Choice::parameters) {
        *values.get_mut(index as usize)? = binder.peek(index)?;
    }
    let datums: Vec<Datum<'_>> = values.iter().map(Value::datum).collect();
    Some(classes(choices, &datums))
}
