//! Set-returning functions of the target list.
//!
//! Those of one query run side by side. A call written twice is one call, so that ORDER BY and GROUP BY find the target
//! they name. A function that GROUP BY reads runs below the grouping, every other one above it.

use pg_query::protobuf::FuncCall;

use super::{Binder, Clause, Select};
use crate::error::{SqlError, SqlState};
use crate::expr::Expr;
use crate::functions::Volatility;
use crate::plan::{SetCall, SetFunction};
use crate::planner::registers;
use crate::types::Type;

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
        if !matches!(clause, Clause::Target | Clause::Order | Clause::Group) {
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
            level.sets.iter().flat_map(|set| &set.output).any(|output| reads.contains(output))
        };
        if arguments.iter().any(reads_set) {
            return Err(self.unsupported("a set-returning function of another one's rows", call.location));
        }
        let printed = format!("{function:?}{arguments:?}");
        let constant = arguments.iter().all(|argument| argument.volatility() < Volatility::Volatile);
        let same = |set: &&SetCall| format!("{:?}{:?}", set.function, set.arguments) == printed;
        let output = match self.level().sets.iter().find(same).filter(|_| constant) {
            Some(set) => set.output.clone(),
            None => {
                let output: Vec<u32> = columns.iter().map(|_| self.register()).collect();
                self.level().sets.push(SetCall { function, arguments, output: output.clone() });
                output
            }
        };
        Ok(self.set_value(&output, columns))
    }

    /// What a call stands for: its column, or a row of them.
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

    /// How many calls were met in the present query, for [`Binder::no_sets_since`].
    pub(super) fn sets_met(&mut self) -> usize {
        self.level().sets_met
    }

    /// 0A000 where a set-returning function was met since then; `what` cannot have one.
    pub(super) fn no_sets_since(&mut self, before: usize, what: &str) -> Result<(), SqlError> {
        if self.level().sets_met == before {
            return Ok(());
        }
        let at = self.level().set_at;
        Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, what, at).with_hint(HINT))
    }

    /// Takes the functions that GROUP BY reads out of the target list's.
    pub(super) fn split_grouped_sets(&self, groups: &[Expr], body: &mut Select) {
        if body.sets.is_empty() {
            return;
        }
        let mut read = registers::Registers::new();
        groups.iter().for_each(|group| registers::of_expr(group, &mut read));
        let sets = std::mem::take(&mut body.sets);
        (body.grouped_sets, body.sets) =
            sets.into_iter().partition(|set| set.output.iter().any(|output| read.contains(output)));
    }
}
