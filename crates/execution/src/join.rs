//! Joins: nested loops, whose right side may depend on the left row, and hash joins. A nested loop
//! becomes a hash join when it meets many left rows. A hash join becomes a merge join ([`merge`])
//! when its right side outgrows `work_mem`.
//!
//! What must hold: a hash join gives no row before it knows that the right side fits.

use super::equi_join::EquiJoin;
use super::memo::Memo;
use super::memory::{copy_all, load, null_all, pack_registers, store, used};
use super::records::Keys;
use super::{Arena, Executor, File, Flow, Sink, merge, run};
use crate::spill::{Rows, RowsReader, Sorter, pack};
use expressions::expr::Expr;
use query::plan::{HashBeyond, JoinKind, Plan, Reg};
use values::error::SqlError;
use values::key_table::KeyTable;
use values::types::Datum;
use values::work;

/// Runs the right side again for every left row.
pub(super) struct NestedLoop<'s> {
    pub kind: JoinKind,
    pub left: &'s Plan,
    pub right: &'s Plan,
    pub condition: Option<&'s Expr>,
    pub right_registers: &'s [Reg],
    /// The left registers by whose values the right rows are kept, if they are.
    pub memo: Option<&'s [Reg]>,
    pub beyond: Option<&'s HashBeyond>,
    /// The number of the plan's node.
    pub node: u32,
}

impl<'s> NestedLoop<'s> {
    pub fn run<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let one = matches!(self.kind, JoinKind::Semi | JoinKind::Anti) && self.condition.is_none();
        let mut memo = self.memo.map(|keys| Memo::new(cx, (self.right, keys), self.right_registers, one));
        let flow = match self.beyond {
            None => run(cx, self.left, file, arena, &mut |cx, file, arena| {
                self.step(cx, memo.as_mut(), (file, arena), sink)
            }),
            Some(beyond) => {
                let hash = EquiJoin::of(&beyond.join)?;
                cx.scoped(|cx, memory| {
                    self.run_and_go_on(cx, (file, arena), (beyond.rows, &hash, memory), (&mut memo, sink))
                })
            }
        };
        if let (Some(measures), Some(memo)) = (cx.measures, &memo) {
            measures.memory(self.node, memo.figures());
        }
        flow
    }

    /// Joins one left row.
    fn step<'x>(
        &self,
        cx: &mut Executor<'s>,
        memo: Option<&mut Memo<'s>>,
        (file, arena): (&mut File<'x>, &'x Arena<'s>),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let mut matched = false;
        let mut stopped = false;
        let joined: &mut Sink<'s, '_> = &mut |cx, file, arena| {
            if let Some(condition) = self.condition
                && !cx.test(condition, file, arena)?
            {
                return Ok(Flow::More);
            }
            matched = true;
            if matches!(self.kind, JoinKind::Semi | JoinKind::Anti) {
                return Ok(Flow::Stop);
            }
            let flow = sink(cx, file, arena)?;
            stopped = flow == Flow::Stop;
            Ok(flow)
        };
        match memo {
            Some(memo) => memo.give(cx, file, arena, joined)?,
            None => run(cx, self.right, file, arena, joined)?,
        };
        if stopped {
            return Ok(Flow::Stop);
        }
        match self.kind {
            JoinKind::Left | JoinKind::Anti if !matched => {
                null_all(self.right_registers, file);
                sink(cx, file, arena)
            }
            JoinKind::Semi if matched => sink(cx, file, arena),
            _ => Ok(Flow::More),
        }
    }

    /// Joins `most` left rows, then those that follow by a hash of the right side. If that does not
    /// fit in memory, the loop goes on, and gives the memory back when it ends.
    fn run_and_go_on<'x>(
        &self,
        cx: &mut Executor<'s>,
        (file, arena): (&mut File<'x>, &'x Arena<'s>),
        (most, hash, memory): (u64, &EquiJoin<'s>, &Arena<'s>),
        (memo, sink): (&mut Option<Memo<'s>>, &mut Sink<'s, '_>),
    ) -> Result<Flow, SqlError> {
        let (mut rows, mut table) = (0, None);
        let (mut maker, mut key) = (Keys::default(), Vec::new());
        run(cx, self.left, file, arena, &mut |cx, file, arena| {
            if rows == most {
                table = hash.kept(cx, (file, arena), memory, (&mut maker, &mut key))?;
                maker.flip();
            }
            rows += 1;
            let Some(table) = &mut table else { return self.step(cx, memo.as_mut(), (file, arena), sink) };
            hash.match_left(cx, table, (file, arena), (&mut maker, &mut key), sink)
        })
    }
}

/// A kept right row that can match.
struct Kept<'b> {
    row: &'b [Datum<'b>],
    /// The next row of the same key.
    next: Option<usize>,
    matched: bool,
}

/// Kept right rows, and the first and last of each key.
#[derive(Default)]
struct Table<'b> {
    rows: Vec<Kept<'b>>,
    heads: KeyTable<&'b [u8], (usize, usize)>,
}

impl<'b> Table<'b> {
    fn insert(&mut self, key: &[u8], row: &'b [Datum<'b>], memory: &'b Arena<'_>) -> Result<(), SqlError> {
        let at = self.rows.len();
        self.rows.push(Kept { row, next: None, matched: false });
        if let Some((_, last)) = self.heads.get_mut(key)? {
            self.rows[*last].next = Some(at);
            *last = at;
        } else {
            self.heads.insert(work::bytes_in(key, &memory.bump)?, (at, at))?;
        }
        Ok(())
    }

    /// Bytes it takes beside its arena.
    fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Kept<'_>>() + self.heads.bytes()
    }

    /// Whether it takes more than `work_mem`. The test runs every 8 rows, because it costs more
    /// than keeping a short row.
    fn outgrows(&self, cx: &Executor<'_>, memory: &Arena<'_>) -> bool {
        self.rows.len().is_multiple_of(8) && used(&memory.bump) + self.bytes() > cx.work_mem()
    }

    /// Moves all rows into a sorter. Rows of one key keep their order.
    fn spill<'s>(&mut self, cx: &mut Executor<'s>) -> Result<Sorter<'s>, SqlError> {
        let mut sorter = cx.sorter();
        for (key, (first, _)) in self.heads.drain() {
            let mut next = Some(first);
            while let Some(at) = next {
                cx.check()?;
                sorter.push(key, |to| pack(self.rows[at].row.iter().copied(), to))?;
                next = self.rows[at].next;
            }
        }
        *self = Table::default();
        Ok(sorter)
    }
}

/// The outcome of a join's first attempt.
enum Attempt<'s> {
    Done(Flow),
    /// The right rows don't fit in memory.
    TooLarge(Sorter<'s>, Keys),
}

/// The hash join.
impl<'s> EquiJoin<'s> {
    /// Joins: the right rows lie in a hash table, the left rows stream past it.
    pub fn run<'x>(
        &self,
        cx: &mut Executor<'s>,
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        // Right rows with a NULL in their key, if the join gives unmatched right rows.
        let mut lonely = Rows::new(cx.work_mem());
        let attempt =
            cx.scoped(|cx, memory| self.run_in_memory(cx, (file, arena), (memory, &mut lonely), sink))?;
        let flow = match attempt {
            Attempt::Done(flow) => flow,
            Attempt::TooLarge(right, maker) => {
                merge::Merge::new(self, cx).run(cx, (right, maker), (file, arena), sink)?
            }
        };
        if flow == Flow::Stop || !self.keeps_unmatched() {
            return Ok(flow);
        }
        let mut reader = RowsReader::default();
        cx.scoped(|cx, own| {
            while let Some(row) = reader.next(&lonely)? {
                if self.give_unmatched(cx, own, (file, row), sink)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            Ok(Flow::More)
        })
    }

    fn run_in_memory<'x>(
        &self,
        cx: &mut Executor<'s>,
        (file, arena): (&mut File<'x>, &'x Arena<'s>),
        (memory, lonely): (&Arena<'s>, &mut Rows),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Attempt<'s>, SqlError> {
        let mut table = Table::default();
        let mut sorter: Option<Sorter<'s>> = None;
        let (mut maker, mut key) = (Keys::default(), Vec::new());
        run(cx, self.right, file, arena, &mut |cx, file, arena| {
            if !self.key(cx, (false, &mut maker), file, arena, &mut key)? {
                if self.keeps_unmatched() {
                    lonely.push(cx.folder(), |to| pack_registers(self.right_registers, file, to))?;
                }
            } else if let Some(sorter) = &mut sorter {
                sorter.push(&key, |to| pack_registers(self.right_registers, file, to))?;
            } else {
                table.insert(&key, store(self.right_registers, file, &memory.bump)?, memory)?;
                if table.outgrows(cx, memory) {
                    sorter = Some(table.spill(cx)?);
                }
            }
            Ok(Flow::More)
        })?;
        if let Some(sorter) = sorter {
            maker.flip();
            return Ok(Attempt::TooLarge(sorter, maker));
        }
        if table.rows.is_empty() && matches!(self.kind, JoinKind::Inner | JoinKind::Semi | JoinKind::Right) {
            return Ok(Attempt::Done(Flow::More));
        }
        maker.flip();
        let mut flow = run(cx, self.left, file, arena, &mut |cx, file, arena| {
            self.match_left(cx, &mut table, (file, arena), (&mut maker, &mut key), sink)
        })?;
        if self.keeps_unmatched() && flow == Flow::More {
            flow = self.unmatched(cx, &table.rows, file, sink)?;
        }
        Ok(Attempt::Done(flow))
    }

    /// Keeps the right rows that can match. None if they do not fit in memory.
    fn kept<'x, 'b>(
        &self,
        cx: &mut Executor<'s>,
        (file, arena): (&mut File<'x>, &'x Arena<'s>),
        memory: &'b Arena<'s>,
        (maker, key): (&mut Keys, &mut Vec<u8>),
    ) -> Result<Option<Table<'b>>, SqlError> {
        let mut table = Table::default();
        let flow = run(cx, self.right, file, arena, &mut |cx, file, arena| {
            if self.key(cx, (false, maker), file, arena, key)? {
                table.insert(key, store(self.right_registers, file, &memory.bump)?, memory)?;
            }
            Ok(if table.outgrows(cx, memory) { Flow::Stop } else { Flow::More })
        })?;
        Ok((flow == Flow::More).then_some(table))
    }

    /// Gives a left row with each of its matches.
    fn match_left<'x>(
        &self,
        cx: &mut Executor<'s>,
        table: &mut Table<'_>,
        (file, arena): (&mut File<'x>, &'x Arena<'s>),
        (maker, key): (&mut Keys, &mut Vec<u8>),
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let head = match self.key(cx, (true, maker), file, arena, key)? {
            true => table.heads.get(key)?.map(|(first, _)| *first),
            false => None,
        };
        self.probe(cx, head, &mut table.rows, file, arena, sink)
    }

    /// Gives one left row with each of its matches.
    fn probe<'x>(
        &self,
        cx: &mut Executor<'s>,
        head: Option<usize>,
        rows: &mut [Kept<'_>],
        file: &mut File<'x>,
        arena: &'x Arena<'s>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        let (mut matched, mut flow) = (false, Flow::More);
        match head {
            None => {}
            // The only match uses the left row's scope.
            Some(at) if rows[at].next.is_none() => {
                copy_all(self.right_registers, rows[at].row, file, &arena.bump)?;
                (matched, flow) = self.pair(cx, file, arena, sink)?;
                rows[at].matched |= matched;
            }
            // Several right rows may match, each in a scope of its own.
            Some(_) => cx.scoped(|cx, own| {
                let mut next = head;
                while let Some(at) = next
                    && flow == Flow::More
                    && !(matched && self.wants_one())
                {
                    cx.check()?;
                    next = rows[at].next;
                    let pair = {
                        let own = &*own;
                        let file = own.file(file);
                        load(self.right_registers, rows[at].row, file);
                        self.pair(cx, file, own, sink)?
                    };
                    own.bump.reset();
                    matched |= pair.0;
                    rows[at].matched |= pair.0;
                    flow = pair.1;
                }
                Ok(())
            })?,
        }
        if flow == Flow::Stop {
            return Ok(Flow::Stop);
        }
        self.give_alone(cx, matched, file, arena, sink)
    }

    /// Gives the right rows nobody matched.
    fn unmatched(
        &self,
        cx: &mut Executor<'s>,
        rows: &[Kept<'_>],
        file: &File<'_>,
        sink: &mut Sink<'s, '_>,
    ) -> Result<Flow, SqlError> {
        cx.scoped(|cx, own| {
            for kept in rows.iter().filter(|kept| !kept.matched) {
                cx.check()?;
                let flow = {
                    let file = own.file(file);
                    null_all(self.left_registers, file);
                    load(self.right_registers, kept.row, file);
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
}
