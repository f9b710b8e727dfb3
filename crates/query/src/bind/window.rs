//! Window functions and the windows they are computed over.
//!
//! Functions with equal keys share one [`crate::bound::Window`].
//!
//! What must hold:
//!
//! 1. Keys are equal only if their order and their place of NULLs are. Subqueries in them may be
//!    twins.
//! 2. A window of the WINDOW clause refers to earlier ones only, so references end.
//! 3. The keys of a named window that no function uses are bound and computed too, because their
//!    errors count in PostgreSQL.

use pg_query::protobuf::{FuncCall, WindowDef};

use super::call::Before;
use super::target::Target;
use super::{Binder, Clause};
use crate::bound::Window;
use crate::plan::{SortKey, WindowCall};
use expressions::expr::Expr;
use expressions::function::WindowFunction;
use values::error::{SqlError, SqlState};
use values::types::Type;

/// PostgreSQL's FRAMEOPTION_NONDEFAULT: the window has a frame clause.
const FRAME_GIVEN: i32 = 1;

fn is_framed(window: &WindowDef) -> bool {
    window.frame_options & FRAME_GIVEN != 0
}

impl Binder<'_> {
    /// A call of a window function.
    pub(super) fn window_call(
        &mut self,
        call: &FuncCall,
        over: &WindowDef,
        before: &Before,
        (function, arguments, type_): (WindowFunction, Vec<Expr>, Type),
    ) -> Result<Expr, SqlError> {
        self.no_sets_since(before.sets, "window function calls cannot contain set-returning function calls")?;
        if self.window_calls() > before.windows {
            let at = self.level().window_at;
            return Err(self.error(SqlState::WINDOWING_ERROR, "window function calls cannot be nested", at));
        }
        let clause = self.level().clause;
        if !matches!(clause, Clause::Target | Clause::Order) {
            return Err(self.error(
                SqlState::WINDOWING_ERROR,
                format!("window functions are not allowed in {}", clause.name()),
                call.location,
            ));
        }
        if call.agg_distinct || call.agg_filter.is_some() || !call.agg_order.is_empty() {
            return Err(self.unsupported("DISTINCT, ORDER BY or FILTER of a window function", call.location));
        }
        let named = self.level().window_names.iter().find(|window| window.name == over.name);
        if is_framed(over) || named.is_some_and(is_framed) {
            return Err(self.unsupported("a window frame clause", over.location));
        }
        self.level().in_window = true;
        let known = self.level().window_names.len();
        let definition = self.in_clause(Clause::Window, |binder| binder.window(over, known));
        self.level().in_window = false;
        let (partition, order) = definition?;
        self.level().window_at = call.location;
        let output = self.register();
        self.level().calls_at.insert(output, call.location);
        let call = WindowCall { function, arguments, output };
        self.find_twins();
        let twins = self.twins();
        let same_part = |(a, b): (&Expr, &Expr)| twins.same(a, b);
        let same_key = |(a, b): (&SortKey, &SortKey)| {
            (a.descending, a.nulls_first) == (b.descending, b.nulls_first) && twins.same(&a.expr, &b.expr)
        };
        let same = |window: &Window| {
            (window.partition.len(), window.order.len()) == (partition.len(), order.len())
                && window.partition.iter().zip(&partition).all(same_part)
                && window.order.iter().zip(&order).all(same_key)
        };
        match self.levels.last().and_then(|level| level.windows.iter().position(same)) {
            Some(index) => self.level().windows[index].calls.push(call),
            None => {
                self.level().windows.push(Window { partition, order, calls: vec![call], run: Vec::new() })
            }
        }
        Ok(Expr::column(output, type_))
    }

    /// The keys of a window. It may refer to the first `known` windows of the WINDOW clause.
    fn window(&mut self, over: &WindowDef, known: usize) -> Result<(Vec<Expr>, Vec<SortKey>), SqlError> {
        let reference = if over.name.is_empty() { &over.refname } else { &over.name };
        let (mut partition, mut order) = (Vec::new(), Vec::new());
        if !reference.is_empty() {
            let names = &self.level().window_names[..known];
            let Some(at) = names.iter().position(|window| &window.name == reference) else {
                return Err(self.error(
                    SqlState::UNDEFINED_OBJECT,
                    format!("window \"{reference}\" does not exist"),
                    over.location,
                ));
            };
            let named = names[at].clone();
            self.level().windows_used.push(at);
            // The definition's own name is not a reference.
            let framed = is_framed(&named);
            let definition = WindowDef { name: String::new(), ..named };
            (partition, order) = self.window(&definition, at)?;
            let refused = if !over.partition_clause.is_empty() {
                format!("cannot override PARTITION BY clause of window \"{reference}\"")
            } else if !over.order_clause.is_empty() && !order.is_empty() {
                format!("cannot override ORDER BY clause of window \"{reference}\"")
            } else if framed && over.name.is_empty() {
                format!("cannot copy window \"{reference}\" because it has a frame clause")
            } else {
                String::new()
            };
            if !refused.is_empty() {
                return Err(self.error(SqlState::WINDOWING_ERROR, refused, over.location));
            }
        }
        for item in &over.partition_clause {
            let expr = self.expr(item)?;
            partition.push(self.sortable(expr, super::location::location(item))?);
        }
        for item in &over.order_clause {
            order.push(self.plain_sort_key(item)?);
        }
        Ok((partition, order))
    }

    /// The keys of named windows that no function uses, as hidden columns, because PostgreSQL
    /// checks and computes them.
    pub(super) fn unused_windows(&mut self, targets: &mut Vec<Target>) -> Result<(), SqlError> {
        for at in 0..self.level().window_names.len() {
            if self.level().windows_used.contains(&at) {
                continue;
            }
            let named = self.level().window_names[at].clone();
            let place = named.location;
            let definition = WindowDef { name: String::new(), ..named };
            let (partition, order) =
                self.in_clause(Clause::Window, |binder| binder.window(&definition, at))?;
            let keys = partition.into_iter().chain(order.into_iter().map(|key| key.expr));
            targets.extend(keys.map(|key| Target::new(String::new(), key, place)));
        }
        Ok(())
    }
}
