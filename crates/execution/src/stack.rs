//! The stack that operators use. A statement whose operators nest deeper than one stack bears goes
//! on on further stacks, or ends with 54001.
//!
//! Operators use the stack on the way down and on the way up. A plan's operators call [`run`] on
//! their inputs, down to a leaf. The leaf calls its sink, which calls the next sink, up to the
//! root, on top of the calls that led down. What must hold:
//!
//! 1. [`run`] compares the stack's end with [`Executor::mark`]. After each `STRIDE` bytes of the
//!    way down it calls [`lower`], which tests the stack's depth. `lower` also wraps the sink, so
//!    the way up passes the same test. Only the sinks of one stride lie between two tests.
//! 2. The mark is an address on the executor's present stack, so code that changes stacks must set
//!    it again.

use runtime::fiber;

use super::{Arena, Executor, File, Flow, Sink, measures, run};
use query::plan::Plan;
use values::error::{SqlError, SqlState};

/// Further stacks that operators may stand on, one above the other; of each, half is used at most.
const MAX_STACKS: u32 = 16;

/// Bytes of stack that operators use on their way down from one test to the next. Their sinks use
/// less than a quarter of a stack on their way up, even at ten times the bytes of their operators.
const STRIDE: usize = 64 << 10;

/// The address where the stack of the caller ends.
#[inline]
pub(super) fn here() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

/// The mark of an executor that runs here. Every operator of a measured statement is below its
/// mark, so that [`lower`] runs it.
#[inline]
pub(super) fn mark(cx: &Executor<'_>) -> usize {
    if cx.measures.is_some() { usize::MAX } else { here().saturating_sub(STRIDE) }
}

#[cold]
pub(super) fn too_deep() -> SqlError {
    SqlError::new(SqlState::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded").with_hint(
        "Write the statement with fewer subqueries, joins and set operations, or as several statements.",
    )
}

/// Runs a plan below the mark: its operators and its sink go on where the stack bears them.
#[cold]
pub(super) fn lower<'s, 'x>(
    cx: &mut Executor<'s>,
    plan: &'s Plan,
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    let own = mark(cx);
    let before = std::mem::replace(&mut cx.mark, own);
    let result = go_on(cx, |cx| {
        let sink: &mut Sink<'s, '_> = &mut |cx, file, arena| go_on(cx, |cx| sink(cx, file, arena));
        match cx.measures {
            None => run(cx, plan, file, arena, sink),
            Some(measures) => measures::run(measures, (cx, plan), file, arena, sink),
        }
    });
    cx.mark = before;
    result
}

/// Calls on here, or on a further stack if this one is deep.
fn go_on<'s>(
    cx: &mut Executor<'s>,
    body: impl FnOnce(&mut Executor<'s>) -> Result<Flow, SqlError>,
) -> Result<Flow, SqlError> {
    if !fiber::is_deep() {
        return body(cx);
    }
    if cx.stacks == MAX_STACKS {
        return Err(too_deep());
    }
    cx.stacks += 1;
    let before = cx.mark;
    let result = fiber::on_further_stack(|| {
        cx.mark = mark(cx);
        body(cx)
    });
    cx.mark = before;
    cx.stacks -= 1;
    result.map_err(|_| too_deep())?
}
