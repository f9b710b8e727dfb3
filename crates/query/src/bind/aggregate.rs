//! GROUP BY, and the check that nothing above the grouping reads an ungrouped column.
//!
//! What must hold: a grouped column keeps its register through the grouping, so subqueries that
//! read it need no rewriting. Any other grouped expression gets a new register, which replaces
//! equal expressions above the grouping.

use crate::bound::reads::sublink_reads;
use runtime::hash::{HashMap, HashSet};
use std::ops::Range;

use pg_query::NodeEnum;
use pg_query::protobuf::Node;

use super::target::Target;
use super::{Binder, Clause, Level, Use, inner};
use crate::bound::{FromItem, Select, Source, SourceId, Sublink};
use crate::plan::{Reg, SubqueryKind};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::functions::{self, CastContext};
use values::error::{SqlError, SqlState};
use values::types::{Type, oid};

impl Binder<'_> {
    /// Binds the expressions of GROUP BY.
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
            self.find_twins();
            let fingerprint = targets[target].fingerprint(self.twins());
            let expr = targets[target].expr.clone();
            targets.truncate(visible);
            self.refuse_calls(&expr, aggregates)?;
            if !groups.iter().any(|(print, group)| *print == fingerprint && self.twins().same(group, &expr)) {
                groups.push((fingerprint, expr));
            }
        }
        Ok(groups.into_iter().map(|(_, group)| group).collect())
    }

    /// Refuses an item that GROUP BY found by position or name, if it reads a window function or
    /// one of the level's first `aggregates`.
    fn refuse_calls(&mut self, expr: &Expr, aggregates: usize) -> Result<(), SqlError> {
        let level = self.level();
        let calls: Vec<Reg> = level.aggregates[..aggregates].iter().map(|call| call.output).collect();
        let windows = level.windows.iter().flat_map(|window| &window.calls).map(|call| call.output);
        let mut windows: Vec<Reg> = windows.collect();
        windows.sort_unstable();
        for (state, what, calls) in [
            (SqlState::GROUPING_ERROR, "aggregate functions", calls),
            (SqlState::WINDOWING_ERROR, "window functions", windows),
        ] {
            if !self.reads_any(expr, &calls.iter().copied().collect()) {
                continue;
            }
            let first = calls.iter().find(|call| self.reads_any(expr, &Registers::from_iter([**call])));
            let at = first.and_then(|call| self.level().calls_at.get(call).copied()).unwrap_or(-1);
            return Err(self.error(state, format!("{what} are not allowed in GROUP BY"), at));
        }
        Ok(())
    }

    /// The level whose rows an aggregate is computed over. It is the level of the innermost column
    /// or aggregate in the call, subqueries included; without any it is the present level.
    ///
    /// Columns of that level inside the call need no grouping, so they leave the level's uses.
    /// `uses` holds the number of uses before the call. The call's subqueries move to that level,
    /// which computes them.
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

    /// The level of the innermost column or aggregate that these parts read, subqueries included,
    /// and the subqueries' registers.
    fn innermost_read<'e>(&self, parts: impl Iterator<Item = &'e Expr>) -> (Option<usize>, Registers) {
        let mut read = Registers::default();
        parts.for_each(|part| registers::of_expr(part, &mut read));
        let (mut open, mut known): (Vec<Reg>, Registers) = (read.iter().copied().collect(), read);
        let (mut innermost, mut links) = (None, Registers::default());
        while let Some(register) = open.pop() {
            let sublinks = self.levels.last().map_or(&[][..], |level| &level.sublinks);
            match sublinks.iter().find(|link| link.output == register) {
                None => innermost = innermost.max(self.level_of(register)),
                Some(link) => {
                    let mut inside = Registers::default();
                    sublink_reads(link, &mut inside);
                    open.extend(inside.into_iter().filter(|register| known.insert(*register)));
                    links.insert(register);
                }
            }
        }
        (innermost, links)
    }

    /// Whether an expression reads one of these columns, directly or through subqueries and calls
    /// of the present query whose results it reads. A window's keys do not count as part of a call.
    pub(super) fn reads_any(&self, expr: &Expr, columns: &Registers) -> bool {
        let Some(level) = self.levels.last() else { return false };
        let mut known = registers::reads(expr);
        let mut open: Vec<Reg> = known.iter().copied().collect();
        while let Some(register) = open.pop() {
            if columns.contains(&register) {
                return true;
            }
            let mut inside = Registers::default();
            let mut part = |part: &Expr| registers::of_expr(part, &mut inside);
            let aggregates = level.aggregates.iter().filter(|call| call.output == register);
            for call in aggregates {
                call.arguments.iter().chain(&call.filter).for_each(&mut part);
                call.order.iter().for_each(|key| part(&key.expr));
            }
            let windows = level.windows.iter().flat_map(|window| &window.calls);
            let windows = windows.filter(|call| call.output == register);
            windows.flat_map(|call| &call.arguments).for_each(&mut part);
            let sets = level.sets.iter().filter(|set| set.output.contains(&register));
            sets.flat_map(|set| &set.arguments).for_each(&mut part);
            let links = level.sublinks.iter().filter(|link| link.output == register);
            links.for_each(|link| sublink_reads(link, &mut inside));
            open.extend(inside.into_iter().filter(|register| known.insert(*register)));
        }
        false
    }

    /// The query whose FROM or aggregates own a register; None for a computed register.
    fn level_of(&self, register: Reg) -> Option<usize> {
        self.levels.iter().rposition(|level| self.readable(level).contains(&register))
    }

    fn is_sublink(&self, register: Reg) -> bool {
        self.levels.last().is_some_and(|level| level.sublinks.iter().any(|link| link.output == register))
    }

    /// Replaces grouped expressions above the grouping by their registers, and refuses ungrouped
    /// columns. `having`: the places of HAVING's columns in the level's uses.
    pub(crate) fn check_grouping(
        &mut self,
        groups: Vec<Expr>,
        from: Option<&FromItem>,
        targets: &mut [Target],
        body: &mut Select,
        having: Range<usize>,
    ) -> Result<(), SqlError> {
        self.split_grouped_sets(&groups, body);
        self.find_twins();
        let outer = self.outer_registers();
        let mut columns: HashSet<Reg> = HashSet::default();
        let mut computed: HashMap<u64, Vec<(Expr, Expr)>> = HashMap::default();
        for group in groups {
            match &group {
                // A bare subquery is a column too, but each place where it is written computes it.
                Expr::Column { register, .. } if outer.contains(register) => {
                    // An outer column has the same value in all rows. Its register belongs to the
                    // outer query and must not be filled here.
                    let register = self.register();
                    body.groups.push((group, register));
                }
                Expr::Column { register, .. } if !self.is_sublink(*register) => {
                    columns.insert(*register);
                    body.groups.push((group.clone(), *register));
                }
                _ => {
                    let register = self.register();
                    let replacement = Expr::column(register, group.type_());
                    computed
                        .entry(self.twins().fingerprint(&group))
                        .or_default()
                        .push((group.clone(), replacement));
                    body.groups.push((group, register));
                }
            }
        }
        if let Some(from) = from {
            self.add_dependent_columns(from, &mut columns, body);
        }
        let mut own: HashSet<Reg> = self.level().uses.iter().map(|used| used.register).collect();
        own.extend(body.grouped_sets.iter().flat_map(|set| &set.output));
        let mut links = std::mem::take(&mut self.level().sublinks);
        let level = self.level();
        let mut check = Check {
            columns: &columns,
            computed: &computed,
            own: &own,
            links: &mut links,
            level,
            met: HashMap::default(),
        };
        let failed = check_parts(&mut check, targets, body, having);
        self.level().sublinks = links;
        match failed {
            Ok(()) => Ok(()),
            // Below the grouping the function runs side by side with grouped ones; above it, it
            // would run alone.
            Err((Ungrouped::Own(register, _), _))
                if body.grouped_sets.iter().any(|set| set.output.contains(&register)) =>
            {
                Err(SqlError::unsupported("a set-returning function both in GROUP BY and outside of it"))
            }
            Err((ungrouped, part)) => Err(self.ungrouped(ungrouped, part)),
        }
    }

    /// If GROUP BY contains a table's whole primary key, the table's other columns have one value a
    /// group. This counts them as grouped.
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

    /// The error 42803. `part`: the uses of the part that reads the column.
    fn ungrouped(&mut self, column: Ungrouped, part: Range<usize>) -> SqlError {
        let uses = &self.level().uses;
        let (used, inner) = match column {
            Ungrouped::Inner(at) => (uses.get(at), true),
            Ungrouped::Own(register, before) => {
                let part = uses.get(part).unwrap_or_default();
                let own = |used: &&Use| used.register == register && !used.inner;
                let (mut here, anywhere) = (part.iter().filter(own), || uses.iter().find(own));
                let last = here.clone().next_back();
                (here.nth(before).or(last).or_else(anywhere), false)
            }
        };
        let (location, name) = used.map_or((-1, "?".to_owned()), |used| (used.location, used.name.clone()));
        let message = match inner {
            true => format!("subquery uses ungrouped column \"{name}\" from outer query"),
            false => format!(
                "column \"{name}\" must appear in the GROUP BY clause or be used in an aggregate function"
            ),
        };
        self.error(SqlState::GROUPING_ERROR, message, location)
    }
}

/// Checks everything above the grouping. Err: an ungrouped column, and the uses of the part that
/// reads it.
fn check_parts(
    check: &mut Check<'_>,
    targets: &mut [Target],
    body: &mut Select,
    having: Range<usize>,
) -> Result<(), (Ungrouped, Range<usize>)> {
    for target in targets {
        check.met.clear();
        check.rewrite(&mut target.expr).map_err(|column| (column, target.uses.clone()))?;
    }
    check.met.clear();
    body.having.iter_mut().try_for_each(|expr| check.rewrite(expr)).map_err(|column| (column, having))?;
    let windows = body.windows.iter_mut().flat_map(|window| {
        let keys = window.partition.iter_mut().chain(window.order.iter_mut().map(|key| &mut key.expr));
        keys.chain(window.calls.iter_mut().flat_map(|call| &mut call.arguments))
    });
    let sets = body.sets.iter_mut().flat_map(|set| &mut set.arguments);
    windows.chain(sets).try_for_each(|expr| check.rewrite(expr)).map_err(|column| (column, 0..0))
}

/// Work of checking one expression, in ns: about a microsecond.
const CHECKING: usize = 1000;

/// Checks what is computed above a grouping, and replaces grouped expressions on the way.
struct Check<'c> {
    /// Grouped columns.
    columns: &'c HashSet<Reg>,
    /// Grouped expressions and their replacements, by fingerprint.
    computed: &'c HashMap<u64, Vec<(Expr, Expr)>>,
    /// Registers of this query's own columns.
    own: &'c HashSet<Reg>,
    /// The query's subqueries. Their comparisons and reads are checked where an expression reads
    /// their result.
    links: &'c mut [Sublink],
    level: &'c Level,
    /// How often the part being checked has read each column.
    met: HashMap<Reg, usize>,
}

/// An ungrouped column.
#[derive(Clone, Copy)]
enum Ungrouped {
    /// The query itself reads it, after this many earlier reads in the same part.
    Own(Reg, usize),
    /// A subquery reads it: the place in the level's uses.
    Inner(usize),
}

impl Check<'_> {
    fn rewrite(&mut self, expr: &mut Expr) -> Result<(), Ungrouped> {
        runtime::work::yield_after(CHECKING);
        let (computed, twins) = (self.computed, &self.level.twins);
        if !computed.is_empty() {
            let mut alike = computed.get(&twins.fingerprint(expr)).into_iter().flatten();
            if let Some((_, replacement)) = alike.find(|(group, _)| twins.same(group, expr)) {
                self.pass(expr);
                *expr = replacement.clone();
                return Ok(());
            }
        }
        if let Expr::Column { register, .. } = expr {
            if let Some(link) = self.links.iter().position(|link| link.output == *register) {
                return self.rewrite_link(link);
            }
            let met = self.met.entry(*register).or_default();
            if self.own.contains(register) && !self.columns.contains(register) {
                return Err(Ungrouped::Own(*register, *met));
            }
            *met += 1;
            return Ok(());
        }
        let mut result = Ok(());
        expr.for_each_child_mut(&mut |child| {
            if result.is_ok() {
                result = self.rewrite(child);
            }
        });
        result
    }

    /// Checks a subquery's left-hand expressions, then the columns that the subquery reads.
    fn rewrite_link(&mut self, link: usize) -> Result<(), Ungrouped> {
        let mut kind = std::mem::replace(&mut self.links[link].kind, SubqueryKind::Exists);
        let result = match &mut kind {
            SubqueryKind::Quantified { comparison, hash, .. } => {
                let sides = hash.iter_mut().flatten().map(|(left, _)| left);
                std::iter::once(comparison).chain(sides).try_for_each(|expr| self.rewrite(expr))
            }
            SubqueryKind::Scalar { .. }
            | SubqueryKind::Array { .. }
            | SubqueryKind::Exists
            | SubqueryKind::Matches { .. } => Ok(()),
        };
        self.links[link].kind = kind;
        result?;
        let known = self.level.link_uses.get(&self.links[link].output);
        let mut uses = known.map_or(0..0, |uses| uses.places.clone());
        let ungrouped = |at: &usize| {
            let used = self.level.uses.get(*at);
            used.is_some_and(|used| used.inner && !self.columns.contains(&used.register))
        };
        uses.find(ungrouped).map_or(Ok(()), |at| Err(Ungrouped::Inner(at)))
    }

    /// Counts the columns of a grouped expression.
    fn pass(&mut self, expr: &Expr) {
        expr.walk(&mut |part| {
            if let Expr::Column { register, .. } = part {
                *self.met.entry(*register).or_default() += 1;
            }
        });
    }
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
