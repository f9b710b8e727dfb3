//! GROUP BY, and the check that nothing ungrouped is read above it.
//!
//! A grouped column keeps its register through the grouping, so subqueries that read it need no rewriting; any other
//! grouped expression gets a new register, and equal expressions above the grouping are replaced by it.

use std::collections::{HashMap, HashSet};

use pg_query::NodeEnum;
use pg_query::protobuf::Node;

use super::order::{DistinctTargets, fingerprint, same};
use super::select::Target;
use super::{Binder, Clause, ColumnValue, FromItem, Select, Source, SourceId, inner};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::functions::{self, CastContext};
use crate::plan::Reg;
use crate::planner::registers::{self, Registers};
use crate::types::{Type, oid};

impl Binder<'_> {
    /// GROUP BY: the expressions.
    pub(crate) fn group_clause(
        &mut self,
        items: &[Node],
        targets: &mut Vec<Target>,
    ) -> Result<Vec<Expr>, SqlError> {
        let mut groups: Vec<(u64, Expr)> = Vec::with_capacity(items.len());
        let visible = targets.len();
        let aggregates = self.level().aggregates.len();
        for item in items {
            if let NodeEnum::GroupingSet(set) = inner(item)? {
                return Err(self.unsupported("GROUPING SETS, CUBE and ROLLUP", set.location));
            }
            let target = self.target_of(item, targets, visible, Clause::Group)?;
            let location = targets[target].location;
            if targets[target].expr.type_().oid == oid::UNKNOWN {
                let taken = std::mem::replace(&mut targets[target].expr, Expr::boolean(true));
                let cast = functions::cast(taken, Type::TEXT, CastContext::Implicit);
                targets[target].set(self.built(cast, location)?);
            }
            let (expr, fingerprint) = (targets[target].expr.clone(), targets[target].fingerprint());
            targets.truncate(visible);
            let level = self.level();
            let read_below = |output: Reg| {
                let mut sets =
                    level.sets.iter().filter(|set| set.output.iter().any(|set| reads(&expr, *set)));
                reads(&expr, output) || sets.any(|set| set.arguments.iter().any(|part| reads(part, output)))
            };
            let reads_aggregate = level.aggregates[..aggregates].iter().any(|call| read_below(call.output));
            if reads_aggregate {
                return Err(self.error(
                    SqlState::GROUPING_ERROR,
                    "aggregate functions are not allowed in GROUP BY",
                    location,
                ));
            }
            if !groups.iter().any(|(print, group)| *print == fingerprint && same(group, &expr)) {
                groups.push((fingerprint, expr));
            }
        }
        Ok(groups.into_iter().map(|(_, group)| group).collect())
    }

    /// The level whose rows an aggregate goes over: that of the innermost column or aggregate in it, subqueries included,
    /// and the present one without any. The columns it reads there need no grouping: they leave the level's uses, of which
    /// `uses` gives the number before the call. Its subqueries move to that level, where they are computed.
    pub(crate) fn aggregate_level<'e>(
        &mut self,
        parts: impl Iterator<Item = &'e Expr>,
        uses: &[usize],
    ) -> usize {
        let present = self.levels.len() - 1;
        let (innermost, links) = self.innermost_read(parts);
        let owner = innermost.unwrap_or(present);
        self.levels[owner].uses.truncate(uses.get(owner).copied().unwrap_or(0));
        if owner < present {
            let links = self.levels[present].sublinks.extract_if(.., |link| links.contains(&link.output));
            let links: Vec<_> = links.collect();
            self.levels[owner].sublinks.extend(links);
        }
        owner
    }

    /// The level of the innermost column or aggregate that is read, subqueries included, and the subqueries' registers.
    pub(crate) fn innermost_read<'e>(
        &self,
        parts: impl Iterator<Item = &'e Expr>,
    ) -> (Option<usize>, Registers) {
        let mut read = Registers::new();
        parts.for_each(|part| registers::of_expr(part, &mut read));
        let (mut open, mut known): (Vec<Reg>, Registers) = (read.iter().copied().collect(), read);
        let (mut innermost, mut links) = (None, Registers::new());
        while let Some(register) = open.pop() {
            let sublinks = self.levels.last().map_or(&[][..], |level| &level.sublinks);
            match sublinks.iter().find(|link| link.output == register) {
                None => innermost = innermost.max(self.level_of(register)),
                Some(link) => {
                    let mut inside = Registers::new();
                    registers::of_sublink(link, &mut inside);
                    open.extend(inside.into_iter().filter(|register| known.insert(*register)));
                    links.insert(register);
                }
            }
        }
        (innermost, links)
    }

    /// The query in whose FROM a column's register is, or whose aggregate it is; None: it is computed.
    fn level_of(&self, register: Reg) -> Option<usize> {
        self.levels.iter().rposition(|level| {
            let aggregate = level.aggregates.iter().any(|call| call.output == register);
            aggregate
                || level.entries.iter().any(|entry| {
                    let read = |source: SourceId| self.sources[source].columns.contains(&Some(register));
                    entry.source.is_some_and(read)
                    || entry.columns.iter().any(
                        |column| matches!(&column.value, ColumnValue::Value(value) if reads(value, register)),
                    )
                })
        })
    }

    /// Replaces grouped expressions above the grouping by their registers, and refuses columns that are not grouped.
    pub(crate) fn check_grouping(
        &mut self,
        groups: Vec<Expr>,
        from: Option<&FromItem>,
        targets: &mut [Target],
        body: &mut Select,
        _distinct: &mut DistinctTargets,
    ) -> Result<(), SqlError> {
        self.split_grouped_sets(&groups, body);
        let mut columns: HashSet<Reg> = HashSet::new();
        let mut computed: HashMap<u64, Vec<(Expr, Expr)>> = HashMap::new();
        for group in groups {
            match &group {
                Expr::Column { register, .. } => {
                    columns.insert(*register);
                    body.groups.push((group.clone(), *register));
                }
                _ => {
                    let register = self.register();
                    let replacement = Expr::column(register, group.type_());
                    computed.entry(fingerprint(&group)).or_default().push((group.clone(), replacement));
                    body.groups.push((group, register));
                }
            }
        }
        if let Some(from) = from {
            self.add_dependent_columns(from, &mut columns, body);
        }
        let mut own: HashSet<Reg> = self.level().uses.iter().map(|used| used.register).collect();
        own.extend(body.grouped_sets.iter().flat_map(|set| &set.output));
        if let Some(used) =
            self.level().uses.iter().find(|used| used.inner && !columns.contains(&used.register))
        {
            let message = format!("subquery uses ungrouped column \"{}\" from outer query", used.name);
            let location = used.location;
            return Err(self.error(SqlState::GROUPING_ERROR, message, location));
        }
        let check = Check { columns: &columns, computed: &computed, own: &own };
        let mut failed: Option<Reg> = None;
        let mut rewrite = |expr: &mut Expr| {
            if failed.is_none() {
                failed = check.rewrite(expr).err();
            }
        };
        targets.iter_mut().for_each(|target| rewrite(&mut target.expr));
        body.having.iter_mut().for_each(&mut rewrite);
        for window in &mut body.windows {
            window.partition.iter_mut().for_each(&mut rewrite);
            window.order.iter_mut().for_each(|key| rewrite(&mut key.expr));
            window.calls.iter_mut().flat_map(|call| &mut call.arguments).for_each(&mut rewrite);
        }
        for set in &mut body.sets {
            set.arguments.iter_mut().for_each(&mut rewrite);
        }
        match failed {
            None => Ok(()),
            // Below the grouping it runs side by side with what is grouped, above it by itself.
            Some(register) if body.grouped_sets.iter().any(|set| set.output.contains(&register)) => {
                Err(SqlError::unsupported("a set-returning function both in GROUP BY and outside of it"))
            }
            Some(register) => Err(self.ungrouped(register)),
        }
    }

    /// With a table's whole primary key grouped, its other columns have one value a group: they are grouped too.
    fn add_dependent_columns(&mut self, from: &FromItem, columns: &mut HashSet<Reg>, body: &mut Select) {
        let mut tables = Vec::new();
        tables_of(from, &mut tables);
        for (source, keys, types) in tables {
            let registers = &self.sources[source].columns;
            let at = |position: usize| registers.get(position).copied().flatten();
            if keys.is_empty()
                || !keys.iter().all(|&key| at(key as usize).is_some_and(|r| columns.contains(&r)))
            {
                continue;
            }
            for (position, register) in registers.iter().enumerate() {
                if let Some(register) = *register
                    && columns.insert(register)
                {
                    body.groups.push((Expr::column(register, types[position]), register));
                }
            }
        }
    }

    fn ungrouped(&mut self, register: Reg) -> SqlError {
        let used = self.level().uses.iter().find(|used| used.register == register).cloned();
        let (location, name) = used.map_or((-1, "?".to_owned()), |used| (used.location, used.name));
        self.error(
            SqlState::GROUPING_ERROR,
            format!(
                "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
            ),
            location,
        )
    }
}

struct Check<'c> {
    /// Grouped columns.
    columns: &'c HashSet<Reg>,
    /// Grouped expressions, by fingerprint, and what replaces them.
    computed: &'c HashMap<u64, Vec<(Expr, Expr)>>,
    /// Registers of this query's own columns.
    own: &'c HashSet<Reg>,
}

impl Check<'_> {
    /// Err: a column that is not grouped.
    fn rewrite(&self, expr: &mut Expr) -> Result<(), Reg> {
        if !self.computed.is_empty() {
            let mut alike = self.computed.get(&fingerprint(expr)).into_iter().flatten();
            if let Some((_, replacement)) = alike.find(|(group, _)| same(group, expr)) {
                *expr = replacement.clone();
                return Ok(());
            }
        }
        if let Expr::Column { register, .. } = expr {
            return if self.own.contains(register) && !self.columns.contains(register) {
                Err(*register)
            } else {
                Ok(())
            };
        }
        let mut result = Ok(());
        expr.for_each_child_mut(&mut |child| {
            if result.is_ok() {
                result = self.rewrite(child);
            }
        });
        result
    }
}

fn reads(expr: &Expr, wanted: Reg) -> bool {
    let mut found = false;
    expr.walk(&mut |part| found |= matches!(part, Expr::Column { register, .. } if *register == wanted));
    found
}

/// The stored tables of FROM: source, primary key, types of the columns.
fn tables_of(item: &FromItem, into: &mut Vec<(SourceId, Vec<u32>, Vec<Type>)>) {
    match item {
        FromItem::Source(source, Source::Table(table)) => {
            let keys = table.primary_key.as_ref().map(|key| key.columns.clone()).unwrap_or_default();
            into.push((*source, keys, table.columns.iter().map(|column| column.type_).collect()));
        }
        FromItem::Source(..) => {}
        FromItem::Join { left, right, .. } => {
            tables_of(left, into);
            tables_of(right, into);
        }
    }
}
