//! Subqueries: one value, existence, comparison with all or any of their rows, arrays.
//!
//! What must hold: a correlated subquery runs again for every outer row, unless [`Results`] has its
//! result for the same outer values. Any other subquery runs at the first outer row only. Its
//! value, or the rows that a quantified comparison searches, are kept for the other outer rows.

use super::keyset::KeySet;
use super::memory::{encode_key, pack_registers, unpack_registers};
use super::results::Results;
use super::{Arena, Executor, File, Flow, Sink, run};
use crate::spill::{Rows, RowsReader};
use expressions::expr::Expr;
use expressions::functions::accumulator::add_array;
use query::plan::{Guard, Plan, Reg, SubqueryKind};
use values::error::{SqlError, SqlState};
use values::types::{ArrayBuilder, Datum, oid};
use values::work;

/// Outer rows for which a correlated subquery keeps no result.
const FIRST: u64 = 8;
/// Looks of the trial whether to keep more.
const TRIAL: u64 = 512;

/// The parts of a subquery node.
pub(super) struct Subquery<'s> {
    pub input: &'s Plan,
    pub subquery: &'s Plan,
    pub kind: &'s SubqueryKind,
    pub output: Reg,
    pub correlated: bool,
    /// The registers by whose values the results of a correlated subquery are kept. Empty: none is.
    pub parameters: &'s [Reg],
    /// The subquery's registers that a kept row holds.
    pub keep: &'s [Reg],
    /// The outer rows for which it runs; all without a guard.
    pub guard: Option<&'s Guard>,
}

/// The result of an uncorrelated subquery.
enum Known<'b> {
    Nothing,
    Value(Datum<'b>),
    /// The keys of the rows of `= ANY` over one column, whether one of them was NULL, and whether
    /// there was any row.
    Keys {
        keys: Box<KeySet<'b>>,
        null: bool,
        any: bool,
    },
    /// The keys of the rows that may match, without those that have a NULL.
    Matches(Box<KeySet<'b>>),
    /// The rows of another comparison.
    Rows(Rows),
}

impl<'s> Subquery<'s> {
    pub fn run<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        if self.correlated {
            let mut results = Results::new(cx, self.parameters, (FIRST, TRIAL));
            return run(cx, self.input, file, arena, &mut |cx, file, arena| {
                if !self.wanted(cx, file, arena)? {
                    file[self.output as usize] = Datum::Null;
                } else if let Some(result) = results.recall(file)? {
                    let result = work::bytes_in(result, &arena.bump)?;
                    unpack_registers(&[self.output], result, file, &arena.bump)?;
                } else {
                    file[self.output as usize] = self.compute(cx, file, arena)?;
                    if results.is_in_use() {
                        let mut result = Vec::new();
                        pack_registers(&[self.output], file, &mut result)?;
                        results.keep(result)?;
                    }
                }
                sink(cx, file, arena)
            });
        }
        cx.scoped(|cx, memory| {
            let memory = &*memory;
            let mut known = Known::Nothing;
            run(cx, self.input, file, arena, &mut |cx, file, arena| {
                if !self.wanted(cx, file, arena)? {
                    file[self.output as usize] = Datum::Null;
                    return sink(cx, file, arena);
                }
                if matches!(known, Known::Nothing) {
                    known = self.prepare(cx, file, arena, memory)?;
                }
                let value = match &mut known {
                    Known::Nothing => Datum::Null,
                    Known::Value(value) => value.copy_in(&arena.bump)?,
                    Known::Keys { keys, null, any } => self.look_up(cx, keys, (*null, *any), file, arena)?,
                    Known::Matches(keys) => self.is_among(cx, keys, file, arena)?,
                    Known::Rows(rows) => self.compare_kept(cx, rows, file)?,
                };
                file[self.output as usize] = value;
                sink(cx, file, arena)
            })
        })
    }

    /// Whether the outer row needs the subquery's result.
    fn wanted<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<bool, SqlError> {
        let Some(guard) = self.guard else { return Ok(true) };
        for (condition, flag) in &guard.flags {
            file[*flag as usize] = Datum::Bool(cx.test(condition, file, arena)?);
        }
        for condition in &guard.conditions {
            if !cx.test(condition, file, arena)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The subquery's result for one outer row.
    fn compute<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<Datum<'x>, SqlError> {
        match self.kind {
            SubqueryKind::Scalar { value } => {
                let mut result = None;
                run(cx, self.subquery, file, arena, &mut |cx, file, inner| {
                    if result.is_some() {
                        return Err(SqlError::new(
                            SqlState::CARDINALITY_VIOLATION,
                            "more than one row returned by a subquery used as an expression",
                        ));
                    }
                    result = Some(cx.eval(value, file, inner)?.copy_in(&arena.bump)?);
                    Ok(Flow::More)
                })?;
                Ok(result.unwrap_or(Datum::Null))
            }
            SubqueryKind::Matches { .. } => Err(SqlError::internal("matches computed row by row")),
            SubqueryKind::Exists => {
                let mut found = false;
                run(cx, self.subquery, file, arena, &mut |_, _, _| {
                    found = true;
                    Ok(Flow::Stop)
                })?;
                Ok(Datum::Bool(found))
            }
            SubqueryKind::Quantified { comparison, all, .. } => {
                let mut state = Quantifier::new(*all);
                run(cx, self.subquery, file, arena, &mut |cx, file, arena| {
                    Ok(state.add(cx.eval(comparison, file, arena)?))
                })?;
                Ok(state.result())
            }
            SubqueryKind::Array { value, type_ } => {
                let element = values::types::element_of(type_.oid).unwrap_or(0);
                let mut builder = ArrayBuilder::new(element);
                // Arrays become the sub-arrays of one with a dimension more.
                let nested = value.type_().oid == type_.oid;
                let (mut count, mut shape) = (0, Vec::new());
                run(cx, self.subquery, file, arena, &mut |cx, file, inner| {
                    let value = cx.eval(value, file, inner)?;
                    if nested {
                        add_array(&mut builder, &mut shape, value, count == 0)?;
                        count += 1;
                    } else {
                        builder.push(value)?;
                    }
                    Ok(Flow::More)
                })?;
                if count == 0 {
                    return builder.array_in(&arena.bump);
                }
                shape.insert(0, (count, 1));
                builder.array_with_in(&shape, &arena.bump)
            }
        }
    }

    /// Runs an uncorrelated subquery once and keeps what later rows need of it.
    fn prepare<'x, 'b>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        memory: &'b Arena<'s>,
    ) -> Result<Known<'b>, SqlError> {
        if let SubqueryKind::Matches { pairs } = self.kind {
            return self.keys_of(cx, pairs, file, arena, memory);
        }
        let SubqueryKind::Quantified { hash, .. } = self.kind else {
            return Ok(Known::Value(self.compute(cx, file, arena)?.copy_in(&memory.bump)?));
        };
        // With several columns, a NULL in one column does not decide while another column differs,
        // so rows are compared one by one. Values that are rows are too, because their types may
        // not fit.
        let pair =
            hash.as_deref().filter(|pairs| matches!(pairs, [pair] if pair.1.type_().oid != oid::RECORD));
        let Some([pair]) = pair else {
            let mut rows = Rows::new(cx.work_mem());
            run(cx, self.subquery, file, arena, &mut |cx, file, _| {
                rows.push(cx.folder(), |to| pack_registers(self.keep, file, to))?;
                Ok(Flow::More)
            })?;
            return Ok(Known::Rows(rows));
        };
        let mut keys = KeySet::new(cx);
        let (mut null, mut any, mut key) = (false, false, Vec::new());
        run(cx, self.subquery, file, arena, &mut |cx, file, arena| {
            any = true;
            if !key_of(cx, &pair.1, file, arena, &mut key)? {
                null = true;
            } else {
                keys.insert(cx, &key, memory)?;
            }
            Ok(Flow::More)
        })?;
        keys.finish(cx)?;
        Ok(Known::Keys { keys: keys.into(), null, any })
    }

    /// Keeps the keys of all rows.
    fn keys_of<'x, 'b>(
        &self,
        cx: &mut Executor<'s>,
        pairs: &'s [(Expr, Expr)],
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        memory: &'b Arena<'s>,
    ) -> Result<Known<'b>, SqlError> {
        let mut keys = KeySet::new(cx);
        let mut key = Vec::new();
        run(cx, self.subquery, file, arena, &mut |cx, file, arena| {
            if whole_key(cx, pairs.iter().map(|(_, right)| right), file, arena, &mut key)? {
                keys.insert(cx, &key, memory)?;
            }
            Ok(Flow::More)
        })?;
        keys.finish(cx)?;
        Ok(Known::Matches(keys.into()))
    }

    /// Whether the outer row's key is among the kept ones.
    fn is_among<'x>(
        &self,
        cx: &mut Executor<'s>,
        keys: &mut KeySet<'_>,
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<Datum<'x>, SqlError> {
        let SubqueryKind::Matches { pairs } = self.kind else { return Ok(Datum::Null) };
        let mut key = cx.take_bytes();
        let known = whole_key(cx, pairs.iter().map(|(left, _)| left), file, arena, &mut key)?;
        let found = known && keys.contains(&key)?;
        cx.give_bytes(key);
        Ok(Datum::Bool(found))
    }

    /// `= ANY` against kept keys.
    fn look_up<'x>(
        &self,
        cx: &mut Executor<'s>,
        keys: &mut KeySet<'_>,
        (null, any): (bool, bool),
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<Datum<'x>, SqlError> {
        let SubqueryKind::Quantified { hash: Some(pairs), .. } = self.kind else { return Ok(Datum::Null) };
        let [pair] = pairs.as_slice() else { return Ok(Datum::Null) };
        if !any {
            return Ok(Datum::Bool(false));
        }
        let mut key = cx.take_bytes();
        let known = key_of(cx, &pair.0, file, arena, &mut key)?;
        let found = known && keys.contains(&key)?;
        cx.give_bytes(key);
        Ok(match (found, !known || null) {
            (true, _) => Datum::Bool(true),
            (false, true) => Datum::Null,
            (false, false) => Datum::Bool(false),
        })
    }

    /// A comparison with every kept row.
    fn compare_kept<'x>(
        &self,
        cx: &mut Executor<'s>,
        rows: &Rows,
        file: &File<'_>,
    ) -> Result<Datum<'x>, SqlError> {
        let SubqueryKind::Quantified { comparison, all, .. } = self.kind else { return Ok(Datum::Null) };
        let mut state = Quantifier::new(*all);
        let mut reader = RowsReader::default();
        cx.scoped(|cx, own| {
            while let Some(row) = reader.next(rows)? {
                cx.check()?;
                let flow = {
                    let own = &*own;
                    let file = own.file(file);
                    unpack_registers(self.keep, row, file, &own.bump)?;
                    state.add(cx.eval(comparison, file, own)?)
                };
                own.bump.reset();
                if flow == Flow::Stop {
                    break;
                }
            }
            Ok(state.result())
        })
    }
}

/// The bytes of a key; false when it is NULL.
fn key_of<'s, 'x>(
    cx: &mut Executor<'s>,
    part: &'s Expr,
    file: &File<'x>,
    arena: &'x Arena<'s>,
    key: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    key.clear();
    let value = cx.eval(part, file, arena)?;
    encode_key(value, key)?;
    Ok(!value.is_null())
}

/// The bytes of a key of several parts; false when one of them is NULL.
fn whole_key<'s, 'x>(
    cx: &mut Executor<'s>,
    parts: impl Iterator<Item = &'s Expr>,
    file: &File<'x>,
    arena: &'x Arena<'s>,
    key: &mut Vec<u8>,
) -> Result<bool, SqlError> {
    key.clear();
    for part in parts {
        let value = cx.eval(part, file, arena)?;
        if value.is_null() {
            return Ok(false);
        }
        encode_key(value, key)?;
    }
    Ok(true)
}

/// ANY and ALL in three-valued logic.
struct Quantifier {
    all: bool,
    null: bool,
    decided: bool,
}

impl Quantifier {
    fn new(all: bool) -> Quantifier {
        Quantifier { all, null: false, decided: false }
    }

    /// One more comparison; Stop once nothing can change the result.
    fn add(&mut self, result: Datum<'_>) -> Flow {
        match result {
            Datum::Bool(value) => self.decided |= value != self.all,
            _ => self.null = true,
        }
        if self.decided { Flow::Stop } else { Flow::More }
    }

    fn result<'x>(&self) -> Datum<'x> {
        match (self.decided, self.null) {
            (true, _) => Datum::Bool(!self.all),
            (false, true) => Datum::Null,
            (false, false) => Datum::Bool(self.all),
        }
    }
}
