//! Grouping and aggregates.
//!
//! A hash table finds a group by its key's bytes. Each group has an accumulator for every call. A
//! call with DISTINCT or ORDER BY keeps the arguments of all groups in one sorter and feeds them at
//! the end. A table that has outgrown `work_mem` takes no more groups. Rows of other groups wait in
//! a sorter, which gives them group by group, so only one group at a time needs memory. Input that
//! is sorted by the groups needs no table.
//!
//! What must hold: a group's rows are all in the table or all in the sorter.

use super::firsts::{Seen, Sight};
use super::memory::{encode_key, give, pack_registers, unpack_registers, used};
use super::records::Keys;
use super::sort::sort_key;
use super::{Arena, Executor, File, Flow, Sink, counting, run};
use crate::spill::{Sorted, Sorter, pack, unpack};
use expressions::expr::Expr;
use expressions::functions::Accumulator;
use query::plan::{AggregateCall, Plan, Reg};
use values::error::SqlError;
use values::key_table::KeyTable;
use values::types::Datum;
use values::work::{self, tick_parts};

/// A state of more bytes is dropped with its group, not kept for the next one.
const LONG: usize = 4096;
/// States that are dropped at once, and their bytes.
const MANY: usize = 10_000;
const MUCH: usize = 16 << 20;
/// Most arguments an aggregate has.
const ARGUMENTS_MAX: usize = 4;

/// The parts of an aggregate node.
pub(super) struct Aggregation<'s> {
    pub input: &'s Plan,
    pub groups: &'s [(Expr, Reg)],
    pub calls: &'s [AggregateCall],
    pub keep: &'s [Reg],
    /// Rows of one group come one after the other.
    pub sorted: bool,
}

/// The groups found: their packed keys, and the states of their calls, group by group.
struct Groups<'b> {
    keys: Vec<&'b [u8]>,
    states: Vec<Accumulator>,
    /// Number of calls.
    calls: usize,
}

impl Groups<'_> {
    /// The states of a group.
    fn states(&mut self, group: usize) -> &mut [Accumulator] {
        &mut self.states[group * self.calls..][..self.calls]
    }
}

impl Drop for Groups<'_> {
    /// Some hundred thousand states that have memory of their own take tens of milliseconds.
    fn drop(&mut self) {
        let bytes = self.states.iter().map(Accumulator::size).sum();
        if self.states.len() > MANY || bytes > MUCH {
            runtime::aside::discard(bytes, std::mem::take(&mut self.states));
        }
    }
}

/// Arguments that are fed at the end. Their sort key is the group's number (u64), the call's number
/// (u32) and the ORDER BY values; for DISTINCT, the arguments follow.
struct Kept<'s, 'b> {
    sorter: Option<Sorter<'s>>,
    /// Arguments of distinct calls, as long as there is room, and the room itself.
    seen: Option<(Seen<'b>, &'b Arena<'s>)>,
    /// The keys of arguments that are to be distinct, and of their order.
    distinct: Keys,
    order: Keys,
}

impl<'s, 'b> Kept<'s, 'b> {
    fn new(seen: Option<(Seen<'b>, &'b Arena<'s>)>) -> Kept<'s, 'b> {
        Kept { sorter: None, seen, distinct: Keys::default(), order: Keys::default() }
    }
}

impl<'s> Aggregation<'s> {
    pub fn run<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        if self.sorted && !self.groups.is_empty() {
            return self.streamed(cx, file, arena, sink);
        }
        let mut late = None;
        let flow = cx.scoped(|cx, memory| {
            let (mut found, mut feed) = cx.scoped(|cx, own| {
                let mut kept = Kept::new(Some((Seen::new(cx.work_mem()), &*own)));
                let found = self.gather(cx, (file, arena), (&*memory, &mut kept, &mut late))?;
                Ok((found, Feed::new(kept.sorter)?))
            })?;
            cx.scoped(|cx, own| {
                for number in 0..found.keys.len() {
                    feed.feed(cx, number as u64, self.calls, found.states(number), own)?;
                    let keys = found.keys[number];
                    if self.give(cx, own, (file, keys), found.states(number), sink)? == Flow::Stop {
                        return Ok(Flow::Stop);
                    }
                    // Large states are not kept for the groups to come.
                    for (state, call) in found.states(number).iter_mut().zip(self.calls) {
                        if state.size() > LONG {
                            *state = call.function.start();
                        }
                    }
                }
                Ok(Flow::More)
            })
        })?;
        match late {
            Some(late) if flow == Flow::More => self.late(cx, late, file, sink),
            _ => Ok(flow),
        }
    }

    /// Reads the input: the groups for which there was room. Rows of other groups go to `late`.
    fn gather<'x, 'b>(
        &self,
        cx: &mut Executor<'s>,
        (file, arena): (&mut File<'x>, &'x Arena<'s>),
        (memory, kept, late): (&'b Arena<'s>, &mut Kept<'s, '_>, &mut Option<Sorter<'s>>),
    ) -> Result<Groups<'b>, SqlError> {
        let calls = self.calls.len();
        let mut found = Groups { keys: Vec::new(), states: Vec::new(), calls };
        if self.groups.is_empty() {
            found.keys.push(&[]);
            found.states.extend(self.start());
            if self.calls.iter().all(counting::counts_rows)
                && let Some(rows) = counting::rows(cx, self.input, file, arena)?
            {
                found.states(0).iter_mut().for_each(|state| state.add_rows(rows));
                return Ok(found);
            }
            run(cx, self.input, file, arena, &mut |cx, file, arena| {
                self.feed(cx, (0, found.states(0)), kept, file, arena)?;
                Ok(Flow::More)
            })?;
            return Ok(found);
        }
        let mut by_key: KeyTable<&[u8], usize> = KeyTable::default();
        let before = runtime::account::held();
        let (mut maker, mut key, mut packed) = (Keys::default(), Vec::new(), Vec::new());
        run(cx, self.input, file, arena, &mut |cx, file, arena| {
            self.group(cx, (&mut maker, &mut key), file, arena)?;
            let at = if let Some(at) = by_key.get(&key)? {
                *at
            } else if let Some(late) = late {
                late.push(&key, |to| {
                    self.pack_keys(file, to)?;
                    pack_registers(self.keep, file, to)
                })?;
                return Ok(Flow::More);
            } else {
                packed.clear();
                self.pack_keys(file, &mut packed)?;
                by_key.insert(work::bytes_in(&key, &memory.bump)?, found.keys.len())?;
                found.keys.push(work::bytes_in(&packed, &memory.bump)?);
                found.states.extend(self.start());
                let each = size_of::<&[u8]>() + calls * size_of::<Accumulator>();
                let table = by_key.bytes();
                let grown = usize::try_from(runtime::account::held() - before).unwrap_or(0);
                let (kept, count) = (used(&memory.bump) + table, found.keys.len());
                // States grow (array_agg), and so may the operators below, so the bound is twice
                // `work_mem`.
                if grown > 2 * cx.work_mem() || kept + count * each > cx.work_mem() {
                    *late = Some(cx.sorter());
                }
                count - 1
            };
            self.feed(cx, (at as u64, found.states(at)), kept, file, arena)?;
            Ok(Flow::More)
        })?;
        Ok(found)
    }

    /// Computes the values of a row's group and their key.
    #[inline]
    fn group<'x>(
        &self,
        cx: &mut Executor<'s>,
        (maker, key): (&mut Keys, &mut Vec<u8>),
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<(), SqlError> {
        key.clear();
        tick_parts(self.groups.len())?;
        for (expr, register) in self.groups {
            let value = cx.eval(expr, file, arena)?;
            file[*register as usize] = value;
            maker.plain(value, key)?;
        }
        Ok(())
    }

    fn start(&self) -> impl Iterator<Item = Accumulator> {
        self.calls.iter().map(|call| call.function.start())
    }

    fn pack_keys(&self, file: &File<'_>, to: &mut Vec<u8>) -> Result<(), SqlError> {
        pack(self.groups.iter().map(|(_, register)| file[*register as usize]), to)
    }

    fn unpack_keys<'x>(
        &self,
        mut row: &'x [u8],
        file: &mut File<'x>,
        arena: &'x bumpalo::Bump,
    ) -> Result<&'x [u8], SqlError> {
        for (_, register) in self.groups {
            file[*register as usize] = unpack(&mut row, arena)?;
        }
        Ok(row)
    }

    /// Takes a row into a group.
    fn feed<'x>(
        &self,
        cx: &mut Executor<'s>,
        (group, states): (u64, &mut [Accumulator]),
        kept: &mut Kept<'s, '_>,
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<(), SqlError> {
        tick_parts(self.calls.len())?;
        for (number, (call, state)) in self.calls.iter().zip(states).enumerate() {
            if let Some(filter) = &call.filter
                && !matches!(cx.eval(filter, file, arena)?, Datum::Bool(true))
            {
                continue;
            }
            let mut computed;
            let arguments: &[Datum<'x>] = match call.arguments.as_slice() {
                [] => &[],
                // A column is read where it lies.
                [Expr::Column { register, .. }] => std::slice::from_ref(&file[*register as usize]),
                exprs => {
                    computed = [Datum::Null; ARGUMENTS_MAX];
                    let count = exprs.len().min(computed.len());
                    for (argument, expr) in computed.iter_mut().zip(exprs) {
                        *argument = cx.eval(expr, file, arena)?;
                    }
                    &computed[..count]
                }
            };
            if !call.distinct && call.order.is_empty() {
                state.add(arguments)?;
                continue;
            }
            if call.distinct && call.function.strict() && arguments.first().is_some_and(Datum::is_null) {
                continue;
            }
            let mut key = cx.take_bytes();
            key.extend_from_slice(&group.to_be_bytes());
            key.extend_from_slice(&(number as u32).to_be_bytes());
            let known = call.distinct && kept.knows(&mut key, arguments)?;
            if !known {
                sort_key(cx, &call.order, (file, arena), &mut kept.order, &mut key)?;
                // A distinct aggregate takes its arguments in sorted order, as in PostgreSQL.
                if call.distinct {
                    arguments.iter().try_for_each(|argument| encode_key(*argument, &mut key))?;
                }
                let sorter = kept.sorter.get_or_insert_with(|| cx.sorter());
                sorter.push(&key, |to| pack(arguments.iter().copied(), to))?;
            }
            cx.give_bytes(key);
        }
        Ok(())
    }

    /// Gives a group on.
    fn give(
        &self,
        cx: &mut Executor<'s>,
        own: &mut Arena<'s>,
        (file, keys): (&File<'_>, &[u8]),
        states: &[Accumulator],
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        give(
            cx,
            own,
            (file, keys),
            |keys, file, arena| {
                self.unpack_keys(keys, file, arena)?;
                tick_parts(self.calls.len())?;
                for (call, state) in self.calls.iter().zip(states) {
                    file[call.output as usize] = state.finish(arena)?;
                }
                Ok(())
            },
            sink,
        )
    }

    /// Gives the groups for which there was no memory, one after the other.
    fn late(
        &self,
        cx: &mut Executor<'s>,
        late: Sorter<'s>,
        file: &File<'_>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut sorted = late.finish()?;
        let (mut last, mut keys) = (None::<Vec<u8>>, Vec::new());
        let mut states = Vec::new();
        let mut kept = Kept::new(None);
        cx.scoped(|cx, own| {
            while let Some((key, row)) = sorted.next()? {
                cx.check()?;
                if !work::is(last.as_deref(), key)? {
                    if last.is_some()
                        && self.end(cx, own, (file, &keys), (&mut states, &mut kept), sink)? == Flow::Stop
                    {
                        return Ok(Flow::Stop);
                    }
                    let last = last.get_or_insert_default();
                    last.clear();
                    work::put(key, last)?;
                    keys.clear();
                    states.clear();
                    states.extend(self.start());
                }
                {
                    let own = &*own;
                    let file = own.file(file);
                    let rest = self.unpack_keys(row, file, &own.bump)?;
                    if keys.is_empty() {
                        work::put(&row[..row.len() - rest.len()], &mut keys)?;
                    }
                    unpack_registers(self.keep, rest, file, &own.bump)?;
                    self.feed(cx, (0, &mut states), &mut kept, file, own)?;
                }
                own.bump.reset();
            }
            match last {
                Some(_) => self.end(cx, own, (file, &keys), (&mut states, &mut kept), sink),
                None => Ok(Flow::More),
            }
        })
    }

    /// Gives each group once the first row of the next one has come, for sorted input.
    fn streamed<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let (mut last, mut keys, mut states) = (None::<Vec<u8>>, Vec::new(), Vec::new());
        let (mut kept, mut maker, mut key) = (Kept::new(None), Keys::default(), Vec::new());
        cx.scoped(|cx, own| {
            let flow = run(cx, self.input, file, arena, &mut |cx, file, arena| {
                self.group(cx, (&mut maker, &mut key), file, arena)?;
                if !work::is(last.as_deref(), &key)? {
                    if last.is_some()
                        && self.end(cx, own, (file, &keys), (&mut states, &mut kept), sink)? == Flow::Stop
                    {
                        return Ok(Flow::Stop);
                    }
                    std::mem::swap(last.get_or_insert_default(), &mut key);
                    keys.clear();
                    self.pack_keys(file, &mut keys)?;
                    states.clear();
                    states.extend(self.start());
                }
                self.feed(cx, (0, &mut states), &mut kept, file, arena)?;
                Ok(Flow::More)
            })?;
            match last {
                Some(_) if flow == Flow::More => {
                    self.end(cx, own, (file, &keys), (&mut states, &mut kept), sink)
                }
                _ => Ok(flow),
            }
        })
    }

    /// Gives a group all of whose rows have come.
    fn end(
        &self,
        cx: &mut Executor<'s>,
        own: &mut Arena<'s>,
        (file, keys): (&File<'_>, &[u8]),
        (states, kept): (&mut [Accumulator], &mut Kept<'s, '_>),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        Feed::new(kept.sorter.take())?.feed(cx, 0, self.calls, states, own)?;
        self.give(cx, own, (file, keys), states, sink)
    }
}

impl Kept<'_, '_> {
    /// Whether the key's call has had these arguments before, as far as memory tells. Remembers
    /// them if there is memory. Leaves the key unchanged.
    fn knows(&mut self, key: &mut Vec<u8>, arguments: &[Datum<'_>]) -> Result<bool, SqlError> {
        let len = key.len();
        arguments.iter().try_for_each(|argument| self.distinct.plain(*argument, key))?;
        let known = match &mut self.seen {
            Some((seen, memory)) => seen.see(key, memory)? == Sight::Known,
            None => false,
        };
        key.truncate(len);
        Ok(known)
    }
}

/// Kept arguments on their way to the accumulators.
struct Feed {
    sorted: Option<Sorted>,
    /// The next entry; the key is empty at the end.
    key: Vec<u8>,
    row: Vec<u8>,
}

impl Feed {
    fn new(sorter: Option<Sorter<'_>>) -> Result<Feed, SqlError> {
        let sorted = sorter.map(Sorter::finish).transpose()?;
        let mut feed = Feed { sorted, key: Vec::new(), row: Vec::new() };
        feed.advance()?;
        Ok(feed)
    }

    #[inline]
    fn advance(&mut self) -> Result<(), SqlError> {
        self.key.clear();
        self.row.clear();
        if let Some(sorted) = &mut self.sorted
            && let Some((key, row)) = sorted.next()?
        {
            work::put(key, &mut self.key)?;
            work::put(row, &mut self.row)?;
        }
        Ok(())
    }

    /// Feeds a group's kept arguments to its accumulators. The caller asks for groups in the order
    /// of their numbers.
    fn feed(
        &mut self,
        cx: &mut Executor<'_>,
        group: u64,
        calls: &[AggregateCall],
        states: &mut [Accumulator],
        own: &mut Arena<'_>,
    ) -> Result<(), SqlError> {
        let mut last = Vec::new();
        while let Some((number, rest)) = self.key.split_first_chunk()
            && u64::from_be_bytes(*number) == group
        {
            cx.check()?;
            let call = rest.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes)) as usize;
            // A row that was not remembered as known may have come twice.
            if !(calls[call].distinct && work::equal(&self.key, &last)?) {
                let mut arguments = [Datum::Null; ARGUMENTS_MAX];
                let count = calls[call].arguments.len().min(arguments.len());
                let mut row = self.row.as_slice();
                for argument in &mut arguments[..count] {
                    *argument = unpack(&mut row, &own.bump)?;
                }
                states[call].add(&arguments[..count])?;
                std::mem::swap(&mut last, &mut self.key);
            }
            self.advance()?;
            own.bump.reset();
        }
        Ok(())
    }
}
