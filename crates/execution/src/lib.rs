//! The crate that runs plans, and spills rows that outgrow their memory.
//!
//! Every operator is a loop that fills registers of a row and calls the operator above it (its
//! *sink*) before it goes on to its next row. So an operator keeps its state between rows in local
//! variables of its loop. A row lives exactly as long as the call that hands it up. Its bytes are
//! borrowed from the scan's private copy of a leaf: nothing is saved, copied or freed between
//! operators. What must hold:
//!
//! 1. A loop gives each of its rows a scope of its own: a copy of the register file in its arena.
//!    The loop resets the arena before the next row. Arenas and buffers come from the core's stock
//!    ([`scratch`]) and go back there: no allocation when warm.
//! 2. [`Flow::Stop`] means that the operator above needs no more rows: loops end at once and pass
//!    it on. A node that stopped its input for a reason of its own (a limit, a found match) answers
//!    More.
//! 3. No latch is held while a sink runs: scans hand out private copies. Every loop passes
//!    [`Executor::check`], where long statements yield and interrupts are noticed.

#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod access;
mod aggregate;
mod analyze;
pub mod client;
mod combined;
mod common;
mod constraint;
pub mod copy;
mod counting;
pub mod ddl;
mod equi_join;
pub mod error;
mod fill;
mod firsts;
mod foreign;
mod function;
mod insert;
mod join;
pub mod keys;
mod keyset;
mod load;
pub mod measures;
mod memo;
pub mod memory;
mod merge;
mod merge_join;
mod modify;
pub mod out_of_line;
mod pending;
mod pulled;
mod ranges;
mod records;
mod removals;
mod results;
pub mod row_numbers;
mod scan;
pub mod scratch;
mod second_look;
mod session;
mod set;
mod sort;
pub mod spill;
mod stack;
mod subquery;
mod vacuum;
mod window;

use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use bumpalo::Bump;
use txn::{Folder, TxnSession};

use crate::spill::Sorter;
use catalog::{Catalog, TreeAddress};
use expressions::context::EvalContext;
use expressions::expr::Expr;
use expressions::lists::Lists;
use measures::Measures;
use query::plan::{EquiMethod, Operator, Plan, Reg};
use row_numbers::RowNumbers;
pub use session::RunningSession;
use values::environment::Environment;
use values::error::SqlError;
use values::types::Datum;
use values::work::{Pace, tick_part, tick_parts};

pub use analyze::analyze;
pub use copy::{copy_in, copy_out};
pub use error::{from_storage, from_txn};
pub use keys::tree;
pub use vacuum::vacuum;

/// The registers of one row in the making.
pub type File<'x> = [Datum<'x>];

/// Whether more rows are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// Go on.
    More,
    /// No further row is needed.
    Stop,
}

/// The consumer of an operator's rows.
pub type Sink<'s, 'k> =
    dyn for<'x> FnMut(&mut Executor<'s>, &mut File<'x>, &'x Arena<'s>) -> Result<Flow, SqlError> + 'k;

/// Memory of one scope. The parameter ties it to the statement, so that a row's scope is known to
/// end before the plan.
pub struct Arena<'s> {
    /// The memory itself.
    pub bump: Bump,
    statement: PhantomData<&'s ()>,
}

impl<'s> Arena<'s> {
    /// An arena over this memory.
    pub fn over(bump: Bump) -> Arena<'s> {
        Arena { bump, statement: PhantomData }
    }

    /// A copy of a register file for a scope inside this arena.
    pub fn file<'x>(&'x self, file: &File<'x>) -> &'x mut File<'x> {
        self.bump.alloc_slice_copy(file)
    }
}

/// A statement in execution.
pub struct Executor<'s> {
    /// The session's transactions.
    pub txn: &'s TxnSession,
    /// The numbers that rows get.
    pub numbers: &'s RowNumbers,
    /// The definitions this statement was planned with.
    pub catalog: &'s Arc<Catalog>,
    /// The parameters.
    pub params: &'s [Datum<'s>],
    /// The session as functions see it.
    pub environment: &'s dyn Environment,
    /// The same session as operators see it.
    pub session: &'s dyn RunningSession,
    /// Trees that the transaction made since its last savepoint. A rollback drops them whole, so
    /// changes in them need no undo.
    pub fresh: &'s [TreeAddress],
    /// Where the figures of each node go, for EXPLAIN ANALYZE.
    pub measures: Option<&'s Measures>,
    /// Rows inserted, changed or deleted by the statement.
    pub affected: u64,
    /// Referential checks and actions to be done at the statement's end.
    pending: Vec<pending::Pending>,
    /// Common table expressions.
    common: Vec<Rc<common::Common<'s>>>,
    /// Further stacks that operators stand on, one above the other.
    stacks: u32,
    /// An operator below this address of the stack tests the stack's depth ([`stack`]).
    mark: usize,
    /// The table the statement fills, if it fills one.
    load: Option<load::TableLoad>,
    /// The long lists its expressions have tested.
    lists: Lists,
    pace: Pace,
}

impl<'s> Executor<'s> {
    /// An executor for one statement.
    pub fn new(
        txn: &'s TxnSession,
        numbers: &'s RowNumbers,
        catalog: &'s Arc<Catalog>,
        params: &'s [Datum<'s>],
        session: &'s dyn RunningSession,
    ) -> Executor<'s> {
        Executor {
            txn,
            numbers,
            catalog,
            params,
            environment: session,
            session,
            fresh: &[],
            measures: None,
            affected: 0,
            pending: Vec::new(),
            common: Vec::new(),
            stacks: 0,
            // Unknown until it runs.
            mark: usize::MAX,
            load: None,
            lists: Lists::default(),
            pace: Pace::new(),
        }
    }

    /// An executor for a query of the same statement that is run beside the rest of it.
    fn beside(&self) -> Executor<'s> {
        let common = self.common.clone();
        let other = Executor::new(self.txn, self.numbers, self.catalog, self.params, self.session);
        Executor { common, fresh: self.fresh, measures: self.measures, ..other }
    }

    /// Runs a query to its end, with the checks due then. Each row's output registers go to `row`.
    pub fn query(
        &mut self,
        root: &'s Plan,
        registers: u32,
        output: &[Reg],
        row: &mut dyn FnMut(&[Datum<'_>]) -> Result<Flow, SqlError>,
    ) -> Result<(), SqlError> {
        self.mark = stack::mark(self);
        let arena = self.take_arena();
        let result = (|| {
            if !self.fresh.is_empty() {
                load::begin_query(self, root)?;
            }
            let file = arena.bump.alloc_slice_fill_copy(registers as usize, Datum::Null);
            run(self, root, file, &arena, &mut |_, file, arena| {
                row(arena.bump.alloc_slice_fill_iter(output.iter().map(|register| file[*register as usize])))
            })?;
            self.finish()
        })();
        self.give_arena(arena);
        result
    }

    /// Work that is due at the end of a statement that may have changed rows.
    pub fn finish(&mut self) -> Result<(), SqlError> {
        if let Some(load) = self.load.take() {
            load.finish(self.txn)?;
        }
        if self.pending.is_empty() { Ok(()) } else { foreign::settle(self) }
    }

    /// The value of an expression.
    #[inline]
    pub fn eval<'x>(
        &mut self,
        expr: &'s Expr,
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<Datum<'x>, SqlError> {
        let context = EvalContext::new(file, self.params, &arena.bump, self.environment);
        expr.eval(&mut context.with_lists(&self.lists))
    }

    /// Whether a condition is true. The first conjunct that is false or NULL ends it.
    #[inline]
    pub fn test<'x>(
        &mut self,
        expr: &'s Expr,
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<bool, SqlError> {
        let Expr::And(parts) = expr else { return self.holds(expr, file, arena) };
        for part in parts {
            tick_part(parts.len())?;
            if !self.holds(part, file, arena)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    #[inline]
    fn holds<'x>(&mut self, expr: &'s Expr, file: &File<'x>, arena: &'x Arena<'s>) -> Result<bool, SqlError> {
        Ok(matches!(self.eval(expr, file, arena)?, Datum::Bool(true)))
    }

    /// A safe point: other fibers may run, and an interrupt ends the statement.
    #[inline]
    pub fn check(&mut self) -> Result<(), SqlError> {
        self.pace.step()
    }

    /// Where rows beyond `work_mem` go.
    pub fn folder(&self) -> &'s Folder {
        self.txn.engine().folder()
    }

    /// Bytes an operator may keep in memory.
    pub fn work_mem(&self) -> usize {
        self.session.work_mem()
    }

    /// A sorter within it.
    pub(crate) fn sorter(&self) -> Sorter<'s> {
        Sorter::new(self.folder(), self.work_mem())
    }

    /// An empty arena from the core's stock.
    pub fn take_arena(&mut self) -> Arena<'s> {
        Arena::over(scratch::take_arena())
    }

    /// Gives an arena back.
    pub fn give_arena(&mut self, arena: Arena<'s>) {
        scratch::give_arena(arena.bump);
    }

    /// An empty buffer from the core's stock.
    pub(crate) fn take_bytes(&mut self) -> Vec<u8> {
        scratch::take_bytes()
    }

    /// Gives a buffer back.
    pub(crate) fn give_bytes(&mut self, bytes: Vec<u8>) {
        scratch::give_bytes(bytes);
    }

    /// Runs a loop with an arena of its own.
    pub fn scoped<R>(
        &mut self,
        body: impl FnOnce(&mut Executor<'s>, &mut Arena<'s>) -> Result<R, SqlError>,
    ) -> Result<R, SqlError> {
        let mut arena = self.take_arena();
        let result = body(self, &mut arena);
        self.give_arena(arena);
        result
    }
}

/// Runs a plan: each of its rows is handed to `sink`.
pub fn run<'s, 'x>(
    cx: &mut Executor<'s>,
    plan: &'s Plan,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    // Operators call each other, as deep as the plan is.
    if stack::here() < cx.mark {
        return stack::lower(cx, plan, file, arena, sink);
    }
    operate(cx, plan, file, arena, sink)
}

/// Runs the operator of a plan.
#[inline(always)]
fn operate<'s, 'x>(
    cx: &mut Executor<'s>,
    plan: &'s Plan,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    match &plan.operator {
        Operator::Scan(scan) => access::rows(cx, scan, file, arena, sink),
        Operator::Project { input, expressions } => run(cx, input, file, arena, &mut |cx, file, arena| {
            tick_parts(expressions.len())?;
            for (expr, register) in expressions {
                file[*register as usize] = cx.eval(expr, file, arena)?;
            }
            sink(cx, file, arena)
        }),
        Operator::Filter { input, condition } => run(cx, input, file, arena, &mut |cx, file, arena| {
            if cx.test(condition, file, arena)? { sink(cx, file, arena) } else { Ok(Flow::More) }
        }),
        Operator::Update(update) => modify::update(cx, update, file, arena, sink),
        Operator::Insert(insert) => insert::insert(cx, insert, file, arena, sink),
        Operator::Delete(delete) => modify::delete(cx, delete, file, arena, sink),
        Operator::OneRow => sink(cx, file, arena),
        Operator::Nothing => Ok(Flow::More),
        Operator::LockRows { input, targets, second_look } => {
            second_look::lock_rows(cx, (input, targets, second_look.as_deref()), file, arena, sink)
        }
        Operator::Sort { input, keys, presorted, keep, limit } => {
            let order = sort::Order { keys, presorted: *presorted };
            sort::sort(cx, (input, order, keep, limit.as_ref()), file, arena, sink)
        }
        Operator::Limit { input, limit, offset, ties } => {
            sort::limit(cx, (input, limit.as_ref(), offset.as_ref(), ties), file, arena, sink)
        }
        Operator::Distinct { input, keys, keep } => {
            sort::distinct(cx, (input, keys, keep), file, arena, sink)
        }
        _ => run_rest(cx, plan, file, arena, sink),
    }
}

/// The nodes with many parts.
fn run_rest<'s, 'x>(
    cx: &mut Executor<'s>,
    plan: &'s Plan,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    match &plan.operator {
        Operator::NestedLoop { kind, left, right, condition, right_registers, memo, beyond } => {
            let (kind, node, memo) = (*kind, plan.node, memo.as_deref());
            let (condition, beyond) = (condition.as_ref(), beyond.as_deref());
            join::NestedLoop { kind, left, right, condition, right_registers, memo, beyond, node }
                .run(cx, file, arena, sink)
        }
        Operator::EquiJoin { method: EquiMethod::Hash { .. }, .. } => {
            equi_join::EquiJoin::of(plan)?.run(cx, file, arena, sink)
        }
        Operator::EquiJoin { method: EquiMethod::Merge(order), .. } => {
            merge_join::merge_join(cx, (equi_join::EquiJoin::of(plan)?, &order.start), file, arena, sink)
        }
        Operator::Subquery { input, subquery, kind, output, correlated, parameters, keep, guard } => {
            let (output, correlated, guard) = (*output, *correlated, guard.as_deref());
            subquery::Subquery { input, subquery, kind, output, correlated, parameters, keep, guard }
                .run(cx, file, arena, sink)
        }
        Operator::Aggregate { input, groups, calls, keep, sorted } => {
            aggregate::Aggregation { input, groups, calls, keep, sorted: *sorted }.run(cx, file, arena, sink)
        }
        Operator::Window { input, partition, order, calls, keep, run } => {
            window::Window { input, partition, order, calls, keep, run }.run(cx, file, arena, sink)
        }
        Operator::SetOperation { first, stages, output } => {
            set::SetOperation { first, stages, output }.run(cx, file, arena, sink)
        }
        Operator::Joined { present, .. } => match present {
            Some(register) if file[*register as usize].is_null() => Ok(Flow::More),
            _ => sink(cx, file, arena),
        },
        Operator::With { tables, body } => common::with(cx, (tables, body), file, arena, sink),
        Operator::CommonScan { id, output, working } => {
            common::scan(cx, (*id, output, *working), file, arena, sink)
        }
        Operator::Values { rows, output } => cx.scoped(|cx, own| {
            for row in rows {
                let flow = {
                    let file = own.file(file);
                    for (expr, register) in row.iter().zip(output) {
                        file[*register as usize] = cx.eval(expr, file, own)?;
                    }
                    sink(cx, file, own)?
                };
                own.bump.reset();
                if flow == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::More)
        }),
        Operator::Function { calls, ordinality } => {
            function::function(cx, (calls, *ordinality), file, arena, sink)
        }
        Operator::Virtual { relation, columns, filter } => {
            scan::virtual_scan(cx, (*relation, columns, filter.as_ref()), file, sink)
        }
        _ => Err(SqlError::internal("a plan node without an operator")),
    }
}
