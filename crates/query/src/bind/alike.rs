//! Equality of bound expressions, which finds the one that GROUP BY, DISTINCT or ORDER BY means.
//!
//! A subquery is bound anew wherever it is written, with registers of its own. Two subqueries are
//! alike if they differ in the numbers of their own registers, sources and WITH queries alone: the
//! registers of the queries around them have to be the same ones. Alike subqueries are twins, and
//! expressions that read twins are alike. Calls of aggregates and window functions are treated in
//! the same way.

use crate::bound::reads::query_reads;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::fmt::{Debug, Write as _};
use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;
use std::sync::LazyLock;

use super::{Binder, ColumnValue, Level};
use crate::bound::walk::{self, Part};
use crate::bound::{Query, QueryBody, Select, Source, SourceId, Sublink, Window};
use crate::plan::{AggregateCall, Reg, WindowCall};
use crate::registers::{self, Registers};
use expressions::expr::Expr;

/// Work of printing one byte: about ten nanoseconds.
const PRINTING: usize = 10;

/// The subqueries, aggregates and window functions of one query that were compared.
#[derive(Default)]
pub(super) struct Twins {
    /// By how one prints with its numbers left out: the first one of this print.
    first: HashMap<String, Reg>,
    /// By the register of a result: that of the first one like it.
    of: HashMap<Reg, Reg>,
}

impl Twins {
    /// The expression with the first of each set of twins.
    fn canonical<'e>(&self, expr: &'e Expr) -> Cow<'e, Expr> {
        let mut known = false;
        if !self.of.is_empty() {
            expr.walk(&mut |part| {
                known |= matches!(part, Expr::Column { register, .. } if self.of.contains_key(register));
            });
        }
        if !known {
            return Cow::Borrowed(expr);
        }
        let mut canonical = expr.clone();
        rename(&mut canonical, &self.of);
        Cow::Owned(canonical)
    }

    /// Whether two expressions are alike: they print alike.
    pub(super) fn same(&self, a: &Expr, b: &Expr) -> bool {
        same(&self.canonical(a), &self.canonical(b))
    }

    /// A hash of how an expression prints: alike expressions share it, and others hardly ever. It
    /// spares comparing each of a long list with each other.
    pub(super) fn fingerprint(&self, expr: &Expr) -> u64 {
        fingerprint(&self.canonical(expr))
    }

    /// Whether some of them are twins.
    pub(super) fn any(&self) -> bool {
        self.first.len() < self.of.len()
    }

    fn print_aggregate(&self, mut call: AggregateCall) -> String {
        call.output = 0;
        let keys = call.order.iter_mut().map(|key| &mut key.expr);
        let parts = call.arguments.iter_mut().chain(&mut call.filter).chain(keys);
        parts.for_each(|part| rename(part, &self.of));
        format!("{call:?}")
    }

    fn print_window(&self, window: &Window, call: &WindowCall) -> String {
        let (mut window, mut call) = (Window { calls: Vec::new(), ..window.clone() }, call.clone());
        call.output = 0;
        window.keys_mut().chain(&mut call.arguments).for_each(|part| rename(part, &self.of));
        format!("{window:?}{call:?}")
    }
}

/// The columns of the query around it that a subquery reads.
#[derive(Default)]
pub(super) struct LinkUses {
    /// Their places in the level's uses.
    pub(super) places: Range<usize>,
    /// Their registers, with those that a condition decided beforehand no longer reads.
    registers: Vec<Reg>,
}

/// A subquery or call that may have a twin.
enum Met<'m> {
    Link(&'m Sublink),
    Aggregate(&'m AggregateCall),
    Window(&'m Window, &'m WindowCall),
}

/// Equality of expressions whose subqueries are not looked into.
pub(super) fn same(a: &Expr, b: &Expr) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

fn fingerprint(printed: &dyn Debug) -> u64 {
    struct Hashing(DefaultHasher);
    impl std::fmt::Write for Hashing {
        fn write_str(&mut self, part: &str) -> std::fmt::Result {
            self.0.write(part.as_bytes());
            Ok(())
        }
    }
    let mut hashing = Hashing(DefaultHasher::new());
    // Hashing does not fail.
    let _ = write!(hashing, "{printed:?}");
    hashing.0.finish()
}

impl Binder<'_> {
    /// Which subqueries of the present query are alike, as far as [`Binder::find_twins`] has
    /// compared them.
    pub(super) fn twins(&self) -> &Twins {
        static NONE: LazyLock<Twins> = LazyLock::new(Twins::default);
        self.levels.last().map_or(&NONE, |level| &level.twins)
    }

    /// Notes the columns that a subquery reads: the uses since there were so many.
    pub(super) fn note_uses(&mut self, output: Reg, before: usize) {
        let level = self.level();
        let places = before..level.uses.len();
        let registers = level.uses.get(places.clone()).unwrap_or_default();
        let registers = registers.iter().map(|used| used.register).collect();
        level.link_uses.insert(output, LinkUses { places, registers });
    }

    /// Compares the subqueries, aggregates and window functions met so far in the present query's
    /// expressions. Call it before expressions are compared.
    pub(super) fn find_twins(&mut self) {
        let Some(last) = self.levels.len().checked_sub(1) else { return };
        let mut twins = std::mem::take(&mut self.levels[last].twins);
        let level = &self.levels[last];
        let mut met: Vec<(Reg, Met<'_>)> = Vec::new();
        met.extend(level.sublinks.iter().map(|link| (link.output, Met::Link(link))));
        met.extend(level.aggregates.iter().map(|call| (call.output, Met::Aggregate(call))));
        for window in &level.windows {
            met.extend(window.calls.iter().map(|call| (call.output, Met::Window(window, call))));
        }
        if met.len() > 1 {
            met.retain(|(output, _)| !twins.of.contains_key(output));
            // One reads the results of others only if they have lower registers.
            met.sort_unstable_by_key(|(output, _)| *output);
            let outer: OnceCell<Registers> = OnceCell::new();
            let readable = || self.levels.iter().flat_map(|level| self.readable(level)).collect();
            for (output, part) in met {
                let print = match part {
                    Met::Link(link) => self.print(link.clone(), outer.get_or_init(readable), &twins),
                    Met::Aggregate(call) => twins.print_aggregate(call.clone()),
                    Met::Window(window, call) => twins.print_window(window, call),
                };
                runtime::work::give_way(print.len() * PRINTING);
                let first = *twins.first.entry(print).or_insert(output);
                twins.of.insert(output, first);
            }
        }
        self.levels[last].twins = twins;
    }

    /// The registers of a query's own columns and aggregates.
    pub(super) fn readable(&self, level: &Level) -> Registers {
        let mut readable = self.columns_of(level);
        readable.extend(level.aggregates.iter().map(|call| call.output));
        readable
    }

    /// The registers of a query's own columns.
    pub(super) fn columns_of(&self, level: &Level) -> Registers {
        let mut columns = Registers::new();
        for column in level.entries.iter().flat_map(|entry| &entry.columns) {
            match &column.value {
                ColumnValue::Value(value) => registers::of_expr(value, &mut columns),
                ColumnValue::Source { source, column, .. } => {
                    columns.extend(self.sources[*source].columns.get(*column).copied().flatten());
                }
            }
        }
        columns
    }

    /// How a subquery prints with its own registers, sources and WITH queries numbered in the order
    /// of the walk.
    fn print(&self, mut link: Sublink, outer: &Registers, twins: &Twins) -> String {
        let output = link.output;
        let mut registers: HashMap<Reg, Reg> = twins.of.clone();
        let mut sources: HashMap<SourceId, SourceId> = HashMap::new();
        let mut tables: HashMap<u32, u32> = HashMap::new();
        let mut print = String::new();
        let mut count = 0;
        let mut name = |register: Reg, registers: &mut HashMap<Reg, Reg>| -> Reg {
            if outer.contains(&register) {
                return register;
            }
            // Counted down, so that no register of a query around has the number.
            count += 1;
            *registers.entry(register).or_insert(Reg::MAX - count)
        };
        walk::sublink(&mut link, &mut |part| match part {
            Part::Register(register) => {
                name(*register, &mut registers);
            }
            Part::Source(id, source) => {
                let number = sources.len();
                sources.insert(*id, number);
                let own = &self.sources[*id];
                let columns = own.columns.iter().enumerate();
                let columns: Vec<(usize, Reg)> = columns
                    .filter_map(|(place, register)| Some((place, name((*register)?, &mut registers))))
                    .collect();
                let identity = own
                    .identity
                    .map(|row| [row.key, row.stamp, row.row].map(|register| name(register, &mut registers)));
                let relation = match source {
                    Source::Table(table) => Some(table.oid),
                    _ => None,
                };
                // Writing to a string does not fail.
                let _ = write!(print, "{number} {relation:?} {columns:?} {identity:?};");
            }
            Part::Table(id) => {
                let number = u32::MAX - u32::try_from(tables.len()).unwrap_or(u32::MAX);
                tables.insert(*id, number);
            }
            Part::Expr(_) | Part::Locked(_) => {}
        });
        walk::sublink(&mut link, &mut |part| match part {
            Part::Expr(expr) => rename(expr, &registers),
            Part::Register(register) => replace(register, &registers),
            Part::Source(id, source) => {
                replace(id, &sources);
                match source {
                    Source::Common(table) => replace(table, &tables),
                    // Printed above: parts of its definition are computed when they are first
                    // needed.
                    Source::Table(_) => *source = Source::Function(Vec::new(), None),
                    Source::Query(_) | Source::Function(..) => {}
                }
            }
            Part::Locked(source) => replace(source, &sources),
            Part::Table(id) => replace(id, &tables),
        });
        let uses = self.levels.last().and_then(|level| level.link_uses.get(&output));
        let _ = write!(print, "{link:?}{:?}", uses.map(|uses| &uses.registers));
        print
    }
}

/// Drops what is not read, because its twin is read in its place.
pub(super) fn drop_unread(query: &mut Query) {
    loop {
        let mut read: Registers = query.output.iter().map(|column| column.register).collect();
        query_reads(query, &mut read);
        let QueryBody::Select(select) = &mut query.body else { return };
        let count = |select: &Select| {
            let calls = select.windows.iter().map(|window| window.calls.len());
            calls.sum::<usize>() + select.sublinks.len() + select.aggregates.len()
        };
        let before = count(select);
        select.sublinks.retain(|link| read.contains(&link.output));
        select.aggregates.retain(|call| read.contains(&call.output));
        for window in &mut select.windows {
            window.calls.retain(|call| read.contains(&call.output));
        }
        select.windows.retain(|window| !window.calls.is_empty());
        if count(select) == before {
            return;
        }
    }
}

fn rename(expr: &mut Expr, names: &HashMap<Reg, Reg>) {
    if let Expr::Column { register, .. } = expr {
        replace(register, names);
    }
    expr.for_each_child_mut(&mut |child| rename(child, names));
}

fn replace<T: Copy + Eq + std::hash::Hash>(name: &mut T, names: &HashMap<T, T>) {
    if let Some(other) = names.get(name) {
        *name = *other;
    }
}
