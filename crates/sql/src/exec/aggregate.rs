//! Grouping and aggregates.
//!
//! Groups are found by the bytes of their keys in a hash table; each has an accumulator for every call. A call with
//! DISTINCT or ORDER BY first keeps its arguments and feeds them at the end.

use hashbrown::{HashMap, HashSet};

use super::memory::{copy_datum, encode_key};
use super::sort::sort_key;
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::functions::Accumulator;
use crate::plan::{AggregateCall, Plan, Reg};
use crate::types::Datum;

/// The state of one call in one group.
struct State<'b> {
    accumulator: Accumulator,
    /// Arguments seen (DISTINCT).
    seen: HashSet<Box<[u8]>>,
    /// Arguments kept to be fed in order (ORDER BY).
    kept: Vec<(&'b [u8], &'b [Datum<'b>])>,
}

/// A group: its keys and its states.
struct Group<'b> {
    keys: &'b [Datum<'b>],
    states: Vec<State<'b>>,
}

fn new_states<'b>(calls: &[AggregateCall]) -> Vec<State<'b>> {
    let state = |call: &AggregateCall| State {
        accumulator: call.function.start(),
        seen: HashSet::new(),
        kept: Vec::new(),
    };
    calls.iter().map(state).collect()
}

/// Grouping, or one group of everything.
pub(super) fn aggregate<'s, 'x>(
    cx: &mut Executor<'s>,
    (input, groups, calls): (&'s Plan, &'s [(Expr, Reg)], &'s [AggregateCall]),
    file: &mut File<'x>,
    arena: &'x Arena<'s>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    cx.scoped(|cx, memory| {
        let memory = &*memory;
        let mut found: Vec<Group<'_>> = Vec::new();
        if groups.is_empty() {
            found.push(Group { keys: &[], states: new_states(calls) });
            run(cx, input, file, arena, &mut |cx, file, arena| {
                feed(cx, calls, &mut found[0].states, file, arena, memory)?;
                Ok(Flow::More)
            })?;
        } else {
            let mut by_key: HashMap<&[u8], usize> = HashMap::new();
            let mut key = Vec::new();
            run(cx, input, file, arena, &mut |cx, file, arena| {
                key.clear();
                for (expr, register) in groups {
                    let value = cx.eval(expr, file, arena)?;
                    file[*register as usize] = value;
                    encode_key(value, &mut key)?;
                }
                let at = if let Some(at) = by_key.get(key.as_slice()) {
                    *at
                } else {
                    let keys =
                        groups.iter().map(|(_, register)| copy_datum(file[*register as usize], &memory.bump));
                    let keys = memory.bump.alloc_slice_fill_iter(keys);
                    found.push(Group { keys, states: new_states(calls) });
                    by_key.insert(memory.bump.alloc_slice_copy(&key), found.len() - 1);
                    found.len() - 1
                };
                feed(cx, calls, &mut found[at].states, file, arena, memory)?;
                Ok(Flow::More)
            })?;
        }
        emit(cx, (groups, calls), found, file, sink)
    })
}

/// Takes a row into a group.
fn feed<'s, 'x, 'b>(
    cx: &mut Executor<'s>,
    calls: &'s [AggregateCall],
    states: &mut [State<'b>],
    file: &File<'x>,
    arena: &'x Arena<'s>,
    memory: &'b Arena<'s>,
) -> Result<(), SqlError> {
    for (call, state) in calls.iter().zip(states) {
        if let Some(filter) = &call.filter
            && !cx.test(filter, file, arena)?
        {
            continue;
        }
        // Most aggregates have one argument; none has more than a few.
        let mut arguments = [Datum::Null; 4];
        let count = call.arguments.len().min(arguments.len());
        for (argument, expr) in arguments.iter_mut().zip(&call.arguments) {
            *argument = cx.eval(expr, file, arena)?;
        }
        let arguments = &arguments[..count];
        if call.distinct {
            if call.function.strict() && arguments.first().is_some_and(Datum::is_null) {
                continue;
            }
            let mut key = cx.take_bytes();
            for argument in arguments {
                encode_key(*argument, &mut key)?;
            }
            let known = state.seen.contains(key.as_slice());
            if !known {
                state.seen.insert(key.as_slice().into());
            }
            // A distinct aggregate takes its arguments in sorted order, as in PostgreSQL.
            if !known && call.order.is_empty() {
                keep(state, &key, arguments, memory);
            }
            cx.give_bytes(key);
            if known || call.order.is_empty() {
                continue;
            }
        }
        if call.order.is_empty() {
            state.accumulator.add(arguments)?;
        } else {
            let mut key = cx.take_bytes();
            sort_key(cx, &call.order, file, arena, &mut key)?;
            keep(state, &key, arguments, memory);
            cx.give_bytes(key);
        }
    }
    Ok(())
}

fn keep<'b>(state: &mut State<'b>, key: &[u8], arguments: &[Datum<'_>], memory: &'b Arena<'_>) {
    let copies = arguments.iter().map(|argument| copy_datum(*argument, &memory.bump));
    state.kept.push((memory.bump.alloc_slice_copy(key), memory.bump.alloc_slice_fill_iter(copies)));
}

/// Gives the groups on.
fn emit<'s>(
    cx: &mut Executor<'s>,
    (groups, calls): (&'s [(Expr, Reg)], &'s [AggregateCall]),
    found: Vec<Group<'_>>,
    file: &File<'_>,
    sink: &mut Sink<'s, '_>,
) -> Result<Flow, SqlError> {
    cx.scoped(|cx, own| {
        for mut group in found {
            let flow = {
                let file = own.file(file);
                for ((_, register), key) in groups.iter().zip(group.keys) {
                    file[*register as usize] = *key;
                }
                for (call, state) in calls.iter().zip(&mut group.states) {
                    state.kept.sort_by(|a, b| a.0.cmp(b.0));
                    for (_, arguments) in &state.kept {
                        state.accumulator.add(arguments)?;
                    }
                    file[call.output as usize] = state.accumulator.finish(&own.bump)?;
                }
                sink(cx, file, own)?
            };
            own.bump.reset();
            if flow == Flow::Stop {
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    })
}
