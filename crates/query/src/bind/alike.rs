//! Equality of bound expressions. It finds the expression that GROUP BY, DISTINCT or ORDER BY
//! means.
//!
//! Each place where a subquery is written binds it again, with registers of its own. Two subqueries
//! are alike, and called twins, if they differ only in the numbers of their own registers, sources
//! and WITH queries. Registers of the queries around them must be the same. Expressions that read
//! twins are alike. Calls of aggregates and window functions are treated in the same way.

use crate::bound::reads::query_reads;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt::{Debug, Write as _};
use std::hash::{BuildHasher, Hasher};
use std::ops::Range;

use runtime::hash::{HashMap, Seeded, SeededMap};
use sync::LazyLock;

use super::{Binder, ColumnValue, Level};
use crate::bound::walk::{self, Part};
use crate::bound::{Query, QueryBody, Select, Source, SourceId, Sublink, Window};
use crate::plan::{AggregateCall, Reg, WindowCall};
use crate::registers::{self, Registers};
use expressions::expr::Expr;

/// Work of printing one byte, in ns: about ten nanoseconds.
const PRINTING: usize = 10;

/// The compared subqueries, aggregates and window functions of one query.
#[derive(Default)]
pub(super) struct Twins {
    /// The first one of each printed form, with its own numbers left out.
    first: SeededMap<String, Reg>,
    /// From the register of a result to that of its first twin.
    of: HashMap<Reg, Reg>,
}

impl Twins {
    /// The expression with each twin replaced by the first of its set.
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

    /// Whether two expressions are alike: their printed forms are equal.
    pub(super) fn same(&self, a: &Expr, b: &Expr) -> bool {
        same(&self.canonical(a), &self.canonical(b))
    }

    /// A hash of the expression's printed form. Alike expressions have the same hash; others rarely
    /// do. It saves comparing every pair of a long list.
    pub(super) fn fingerprint(&self, expr: &Expr) -> u64 {
        fingerprint(&self.canonical(expr))
    }

    /// Whether the query has twins.
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

/// The columns of the surrounding query that a subquery reads.
#[derive(Default)]
pub(super) struct LinkUses {
    /// Their places in the level's uses.
    pub(super) places: Range<usize>,
    /// Their registers. They include those that nothing reads any more because a condition was
    /// decided beforehand.
    registers: Vec<Reg>,
}

/// A subquery or call that may have a twin.
enum Met<'m> {
    Link(&'m Sublink),
    Aggregate(&'m AggregateCall),
    Window(&'m Window, &'m WindowCall),
}

/// Whether expressions are equal, without looking into their subqueries.
pub(crate) fn same(a: &Expr, b: &Expr) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

fn fingerprint(printed: &dyn Debug) -> u64 {
    struct Hashing<H>(H);
    impl<H: Hasher> std::fmt::Write for Hashing<H> {
        fn write_str(&mut self, part: &str) -> std::fmt::Result {
            self.0.write(part.as_bytes());
            Ok(())
        }
    }
    let mut hashing = Hashing(Seeded::default().build_hasher());
    // Writing to a hasher does not fail.
    let _ = write!(hashing, "{printed:?}");
    hashing.0.finish()
}

impl Binder<'_> {
    /// The present query's twins, as far as [`Binder::find_twins`] has compared its subqueries.
    pub(super) fn twins(&self) -> &Twins {
        static NONE: LazyLock<Twins> = LazyLock::new(Twins::default);
        self.levels.last().map_or(&NONE, |level| &level.twins)
    }

    /// Records the columns that a subquery reads: the uses since the count `before`.
    pub(super) fn note_uses(&mut self, output: Reg, before: usize) {
        let level = self.level();
        let places = before..level.uses.len();
        let registers = level.uses.get(places.clone()).unwrap_or_default();
        let registers = registers.iter().map(|used| used.register).collect();
        level.link_uses.insert(output, LinkUses { places, registers });
    }

    /// Compares the subqueries, aggregates and window functions found so far in the present query.
    /// Call it before comparing expressions.
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
            // One can read another's result only if the other has a lower register.
            met.sort_unstable_by_key(|(output, _)| *output);
            let outer: OnceCell<Registers> = OnceCell::new();
            let readable = || self.levels.iter().flat_map(|level| self.readable(level)).collect();
            for (output, part) in met {
                let print = match part {
                    Met::Link(link) => self.print(link.clone(), outer.get_or_init(readable), &twins),
                    Met::Aggregate(call) => twins.print_aggregate(call.clone()),
                    Met::Window(window, call) => twins.print_window(window, call),
                };
                runtime::work::yield_after(print.len() * PRINTING);
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
        let mut columns = Registers::default();
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

    /// The printed form of a subquery, with its own registers, sources and WITH queries numbered in
    /// the order of the walk.
    fn print(&self, mut link: Sublink, outer: &Registers, twins: &Twins) -> String {
        let output = link.output;
        let mut registers: HashMap<Reg, Reg> = twins.of.clone();
        let mut sources: HashMap<SourceId, SourceId> = HashMap::default();
        let mut tables: HashMap<u32, u32> = HashMap::default();
        let mut print = String::new();
        let mut count = 0;
        let mut name = |register: Reg, registers: &mut HashMap<Reg, Reg>| -> Reg {
            if outer.contains(&register) {
                return register;
            }
            // Numbers count down from the maximum, so that no register of a surrounding query has
            // one.
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
            Part::Expr(_)
            | Part::Conditions(_)
            | Part::Join(_)
            | Part::Locked(_)
            | Part::With(_)
            | Part::Select(_) => {}
        });
        // The table was printed above. Its definition must not be printed, because it computes some
        // parts only on first use.
        walk::sublink(&mut link, &mut |part| {
            if let Part::Source(_, source @ Source::Table(_)) = part {
                *source = Source::Function(Vec::new(), None);
            }
        });
        renumber(&mut |visit| walk::sublink(&mut link, visit), (&registers, &sources, &tables));
        let uses = self.levels.last().and_then(|level| level.link_uses.get(&output));
        let _ = write!(print, "{link:?}{:?}", uses.map(|uses| &uses.registers));
        print
    }
}

/// Drops subqueries and calls that nothing reads because their twin is read instead.
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

/// New numbers of registers, of sources and of WITH queries.
type Numbers<'n> = (&'n HashMap<Reg, Reg>, &'n HashMap<SourceId, SourceId>, &'n HashMap<u32, u32>);

/// Shows the parts of a query to a visitor.
type Walk<'w> = dyn FnMut(&mut dyn FnMut(Part<'_>)) + 'w;

/// Gives the parts that a walk visits other numbers.
pub(crate) fn renumber(walk: &mut Walk<'_>, (registers, sources, tables): Numbers<'_>) {
    walk(&mut |part| match part {
        Part::Expr(expr) => rename(expr, registers),
        Part::Register(register) => replace(register, registers),
        Part::Source(id, source) => {
            replace(id, sources);
            if let Source::Common(table) = source {
                replace(table, tables);
            }
        }
        Part::Locked(source) => replace(source, sources),
        Part::Table(id) => replace(id, tables),
        Part::Conditions(_) | Part::Join(_) | Part::With(_) | Part::Select(_) => {}
    });
}

/// Gives the registers that an expression reads other names.
pub(crate) fn rename(expr: &mut Expr, names: &HashMap<Reg, Reg>) {
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
