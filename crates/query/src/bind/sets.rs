//! Set-returning functions of the target list.
//!
//! - Those of one query run side by side. A call written twice is one call, so that ORDER BY and
//!   GROUP BY find the target they name. Functions that GROUP BY reads run below the grouping, all
//!   others above it.
//! - A call in a window definition runs below the window. A call with the same text in the target
//!   list is another call. There is one exception: if a part of a target equals a whole key of the
//!   window, the target reads that key.
//! - A row of VALUES in INSERT may contain such functions if it is the only row. It becomes the
//!   target list of a query.

use pg_query::protobuf::FuncCall;

use super::alike::Twins;
use super::target::Target;
use super::{Binder, Clause};
use crate::bound::{OutputColumn, Query, QueryBody, Select, Window};
use crate::plan::{Reg, SetCall};
use crate::registers::{self, Registers};
use expressions::expr::Expr;
use expressions::function::SetFunction;
use expressions::function::Volatility;
use values::error::{SqlError, SqlState};
use values::types::Type;

const HINT: &str = "You might be able to move the set-returning function into a LATERAL FROM item.";

impl Binder<'_> {
    /// A call in an expression.
    pub(super) fn set_call(
        &mut self,
        call: &FuncCall,
        function: SetFunction,
        arguments: Vec<Expr>,
        columns: &[(&'static str, Type)],
    ) -> Result<Expr, SqlError> {
        let clause = self.level().clause;
        if !matches!(
            clause,
            Clause::Target | Clause::Order | Clause::Window | Clause::Group | Clause::InsertedRow
        ) {
            let message = match clause {
                Clause::From => "set-returning functions must appear at top level of FROM".to_owned(),
                _ => format!("set-returning functions are not allowed in {}", clause.name()),
            };
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, call.location));
        }
        if arguments.len() > 1 && columns[0].0 == "unnest" {
            return Err(self.unsupported("unnest of several arrays here", call.location));
        }
        let level = self.level();
        level.sets_met += 1;
        level.set_at = call.location;
        let reads_set = |argument: &Expr| {
            let reads = registers::reads(argument);
            let mut sets = level.sets.iter().chain(&level.window_sets);
            sets.any(|set| set.output.iter().any(|output| reads.contains(output)))
        };
        if arguments.iter().any(reads_set) {
            return Err(self.unsupported("a set-returning function of another one's rows", call.location));
        }
        self.find_twins();
        let level = self.level();
        let known = if level.in_window { &level.window_sets } else { &level.sets };
        let twins = &level.twins;
        if let Some(set) = known.iter().find(|set| is_same_call(set, function, &arguments, twins)) {
            let output = set.output.clone();
            return Ok(self.set_value(&output, columns));
        }
        let output: Vec<Reg> = columns.iter().map(|_| self.register()).collect();
        let set = SetCall { function, arguments, output: output.clone() };
        let level = self.level();
        if level.in_window { &mut level.window_sets } else { &mut level.sets }.push(set);
        Ok(self.set_value(&output, columns))
    }

    /// The value of a call: its column, or a row of its columns.
    fn set_value(&mut self, output: &[u32], columns: &[(&'static str, Type)]) -> Expr {
        let mut fields: Vec<Expr> = output
            .iter()
            .zip(columns)
            .map(|(register, (_, type_))| Expr::column(*register, *type_))
            .collect();
        if fields.len() == 1 {
            return fields.remove(0);
        }
        let names = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
        Expr::Row { fields, names: Some(names) }
    }

    /// Number of calls found in the present query, for [`Binder::no_sets_since`].
    pub(super) fn sets_met(&mut self) -> usize {
        self.level().sets_met
    }

    /// Raises 0A000 if a set-returning function was found after the count `before`. `what` names
    /// the place that cannot contain one.
    pub(super) fn no_sets_since(&mut self, before: usize, what: &str) -> Result<(), SqlError> {
        if self.level().sets_met == before {
            return Ok(());
        }
        let at = self.level().set_at;
        Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, what, at).with_hint(HINT))
    }

    /// Whether one of these expressions of the present query returns a set.
    pub(super) fn returns_set<'e>(&self, exprs: impl IntoIterator<Item = &'e Expr>) -> bool {
        let Some(level) = self.levels.last().filter(|level| level.sets_met > 0) else { return false };
        let mut read = Registers::default();
        exprs.into_iter().for_each(|expr| registers::of_expr(expr, &mut read));
        let mut sets = level.sets.iter().chain(&level.window_sets);
        sets.any(|set| set.output.iter().any(|output| read.contains(output)))
    }

    /// The error 42804: `what` must not return a set.
    pub(super) fn refused_set(&self, what: &str, location: i32) -> SqlError {
        let message = format!("{what} must not return a set");
        self.error(SqlState::DATATYPE_MISMATCH, message, location)
    }

    /// Takes the functions of the target list and of the window definitions. Targets then read the
    /// window keys that they equal, and windows read the functions of GROUP BY.
    pub(super) fn take_sets(
        &mut self,
        groups: &[Expr],
        targets: &mut [Target],
        windows: &mut [Window],
    ) -> Vec<SetCall> {
        self.find_twins();
        let level = self.levels.last().expect("a query is bound");
        if !level.sets.is_empty() && !level.window_sets.is_empty() {
            let sets = level.sets.iter().chain(&level.window_sets).flat_map(|set| set.arguments.clone());
            let keys = windows.iter_mut().flat_map(Window::keys_mut).map(|key| key.clone());
            let matched: Vec<Expr> =
                sets.chain(keys).chain(targets.iter().map(|target| target.expr.clone())).collect();
            self.refuse_lifted(matched.into_iter());
        }
        let level = self.level();
        let (mut sets, window_sets) =
            (std::mem::take(&mut level.sets), std::mem::take(&mut level.window_sets));
        let mut grouped = Registers::default();
        groups.iter().for_each(|group| registers::of_expr(group, &mut grouped));
        // Outputs of calls in windows, paired with those of the same calls in the target list.
        let mut alike: Vec<(Reg, Reg)> = Vec::new();
        for set in window_sets {
            let same = |other: &&SetCall| is_same_call(other, set.function, &set.arguments, &level.twins);
            let twin = sets.iter().find(same);
            let outputs = twin.into_iter().flat_map(|twin| set.output.iter().zip(&twin.output));
            let outputs: Vec<(Reg, Reg)> = outputs.map(|(own, other)| (*own, *other)).collect();
            if outputs.iter().any(|(_, other)| grouped.contains(other)) {
                let keys = windows.iter_mut().flat_map(Window::keys_mut);
                keys.for_each(|key| replace_registers(key, &outputs));
                continue;
            }
            alike.extend(outputs);
            sets.push(set);
        }
        if alike.is_empty() {
            return sets;
        }
        let keys = windows.iter_mut().flat_map(Window::keys_mut).map(|key| {
            let mut wanted = key.clone();
            replace_registers(&mut wanted, &alike);
            (wanted, key.clone())
        });
        let keys: Vec<(Expr, Expr)> = keys.filter(|(wanted, key)| !level.twins.same(wanted, key)).collect();
        targets.iter_mut().for_each(|target| replace_parts(&mut target.expr, &keys, &level.twins));
        let mut read = Registers::default();
        targets.iter().for_each(|target| registers::of_expr(&target.expr, &mut read));
        // Drops a twin if all its readers now read the window's key.
        sets.retain(|set| {
            let is_twin = alike.iter().any(|(_, twin)| set.output.contains(twin));
            !is_twin || set.output.iter().any(|output| read.contains(output))
        });
        sets
    }

    /// The query that computes an inserted row, if functions in the row return sets. The row then
    /// reads the query's columns.
    pub(super) fn inserted_sets(&mut self, row: &mut [Option<Expr>]) -> Option<Query> {
        let mut sets = std::mem::take(&mut self.level().sets);
        let mut read = Registers::default();
        row.iter().flatten().for_each(|value| registers::of_expr(value, &mut read));
        sets.retain(|set| set.output.iter().any(|output| read.contains(output)));
        if sets.is_empty() {
            return None;
        }
        let sublinks = std::mem::take(&mut self.level().sublinks);
        let mut body = Select { sets, sublinks, ..Select::default() };
        let mut output = Vec::new();
        for value in row.iter_mut().flatten() {
            let (register, type_) = (self.register(), value.type_());
            body.targets.push((std::mem::replace(value, Expr::column(register, type_)), register));
            output.push(OutputColumn { name: String::new(), type_, register, origin: None });
        }
        Some(Query::of(QueryBody::Select(Box::new(body)), output))
    }

    /// Moves the functions that GROUP BY reads out of the target list's.
    pub(super) fn split_grouped_sets(&self, groups: &[Expr], body: &mut Select) {
        if body.sets.is_empty() {
            return;
        }
        let mut read = Registers::default();
        groups.iter().for_each(|group| registers::of_expr(group, &mut read));
        let sets = std::mem::take(&mut body.sets);
        (body.grouped_sets, body.sets) =
            sets.into_iter().partition(|set| set.output.iter().any(|output| read.contains(output)));
    }
}

/// Whether a call of this function with these arguments returns the rows of `set`.
fn is_same_call(set: &SetCall, function: SetFunction, arguments: &[Expr], twins: &Twins) -> bool {
    set.function == function
        && set.arguments.len() == arguments.len()
        && set.arguments.iter().zip(arguments).all(|(a, b)| twins.same(a, b))
        && arguments.iter().all(|argument| argument.volatility() < Volatility::Volatile)
}

/// Replaces the registers that an expression reads.
fn replace_registers(expr: &mut Expr, by: &[(Reg, Reg)]) {
    if let Expr::Column { register, .. } = expr
        && let Some((_, other)) = by.iter().find(|(from, _)| from == register)
    {
        *register = *other;
    }
    expr.for_each_child_mut(&mut |child| replace_registers(child, by));
}

/// Replaces parts of an expression that equal an entry of `by`.
fn replace_parts(expr: &mut Expr, by: &[(Expr, Expr)], twins: &Twins) {
    if let Some((_, other)) = by.iter().find(|(from, _)| twins.same(from, expr)) {
        *expr = other.clone();
        return;
    }
    expr.for_each_child_mut(&mut |child| replace_parts(child, by, twins));
}
