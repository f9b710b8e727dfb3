//! Equality of bound expressions, which finds the one that GROUP BY, DISTINCT or ORDER BY means.
//!
//! A subquery is bound anew wherever it is written, with registers of its own. Two subqueries are alike if they differ in
//! the numbers of their own registers, sources and WITH queries alone: the registers of the queries around them have to be
//! the same ones. Alike subqueries are twins, and expressions that read twins are alike.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::{Debug, Write as _};
use std::hash::{DefaultHasher, Hasher};
use std::sync::LazyLock;

use super::walk::{self, Part};
use super::{Binder, ColumnValue, Level, Query, QueryBody, Source, SourceId, Sublink};
use crate::expr::Expr;
use crate::plan::Reg;
use crate::planner::registers::{self, Registers};

/// The subqueries of one query that were compared.
#[derive(Default)]
pub(super) struct Twins {
    /// By how a subquery prints with its numbers left out: the first one of this print.
    first: HashMap<String, Reg>,
    /// By a subquery's register: that of the first one like it.
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

    /// A hash of how an expression prints: alike expressions share it, and others hardly ever. It spares comparing each
    /// of a long list with each other.
    pub(super) fn fingerprint(&self, expr: &Expr) -> u64 {
        fingerprint(&self.canonical(expr))
    }

    /// Whether a subquery is like another one.
    pub(super) fn any(&self) -> bool {
        self.first.len() < self.of.len()
    }
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
    /// Which subqueries of the present query are alike, as far as [`Binder::find_twins`] has compared them.
    pub(super) fn twins(&self) -> &Twins {
        static NONE: LazyLock<Twins> = LazyLock::new(Twins::default);
        self.levels.last().map_or(&NONE, |level| &level.twins)
    }

    /// Compares the subqueries met so far in the present query's expressions. Call it before expressions are compared.
    pub(super) fn find_twins(&mut self) {
        let Some(level) = self.levels.last() else { return };
        let known = |link: &Sublink| level.twins.of.contains_key(&link.output);
        if level.sublinks.len() < 2 || level.sublinks.iter().all(known) {
            return;
        }
        let outer: Registers = self.levels.iter().flat_map(|level| self.readable(level)).collect();
        let last = self.levels.len() - 1;
        let mut twins = std::mem::take(&mut self.levels[last].twins);
        for link in &self.levels[last].sublinks {
            if !twins.of.contains_key(&link.output) {
                let print = self.print(link.clone(), &outer, &twins);
                let first = *twins.first.entry(print).or_insert(link.output);
                twins.of.insert(link.output, first);
            }
        }
        self.levels[last].twins = twins;
    }

    /// The registers of a query's own columns and aggregates.
    pub(super) fn readable(&self, level: &Level) -> Registers {
        let mut readable: Registers = level.aggregates.iter().map(|call| call.output).collect();
        for column in level.entries.iter().flat_map(|entry| &entry.columns) {
            match &column.value {
                ColumnValue::Value(value) => registers::of_expr(value, &mut readable),
                ColumnValue::Source { source, column, .. } => {
                    readable.extend(self.sources[*source].columns.get(*column).copied().flatten());
                }
            }
        }
        readable
    }

    /// How a subquery prints with its own registers, sources and WITH queries numbered in the order of the walk.
    fn print(&self, mut link: Sublink, outer: &Registers, twins: &Twins) -> String {
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
                    // Printed above: parts of its definition are computed when they are first needed.
                    Source::Table(_) => *source = Source::Function(Vec::new(), None),
                    Source::Query(_) | Source::Function(..) => {}
                }
            }
            Part::Locked(source) => replace(source, &sources),
            Part::Table(id) => replace(id, &tables),
        });
        let _ = write!(print, "{link:?}");
        print
    }
}

/// Drops the subqueries whose twins are read in their place.
pub(super) fn drop_unread(query: &mut Query) {
    loop {
        let mut read: Registers = query.output.iter().map(|column| column.register).collect();
        registers::of_query(query, &mut read);
        let QueryBody::Select(select) = &mut query.body else { return };
        let before = select.sublinks.len();
        select.sublinks.retain(|link| read.contains(&link.output));
        if select.sublinks.len() == before {
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
