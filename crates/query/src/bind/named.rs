//! Arguments by name: `make_interval(days => 10)`.

use pg_query::NodeEnum;
use pg_query::protobuf::{FuncCall, NamedArgExpr};

use super::location::location;
use super::{Binder, inner};
use expressions::expr::Expr;
use values::error::{SqlError, SqlState};
use values::types::{Type, Value};

/// The names of a function's parameters, and how many have no default.
fn parameters(function: &str) -> Option<(&'static [&'static str], usize)> {
    Some(match function {
        "make_date" => (&["year", "month", "day"], 3),
        "make_time" => (&["hour", "min", "sec"], 3),
        "make_timestamp" => (&["year", "month", "mday", "hour", "min", "sec"], 6),
        "make_timestamptz" => (&["year", "month", "mday", "hour", "min", "sec", "timezone"], 6),
        "make_interval" => (&["years", "months", "weeks", "days", "hours", "mins", "secs"], 0),
        _ => return None,
    })
}

impl Binder<'_> {
    /// A call's arguments in the order of the function's parameters, for calls that name some of
    /// them. An omitted parameter before a present one is 0.
    pub(super) fn arguments_by_name(
        &mut self,
        function: &str,
        call: &FuncCall,
    ) -> Result<Vec<Expr>, SqlError> {
        let Some((names, needed)) = parameters(function) else {
            return Err(self.unsupported("a named argument", call.location));
        };
        let mut placed: Vec<Option<Expr>> = names.iter().map(|_| None).collect();
        let mut shown = Vec::new();
        let mut fits = true;
        let mut taken: Vec<&str> = Vec::new();
        for (position, argument) in call.args.iter().enumerate() {
            let (place, value, name) = match inner(argument)? {
                NodeEnum::NamedArgExpr(named) => {
                    if taken.contains(&named.name.as_str()) {
                        let message = format!("argument name \"{}\" used more than once", named.name);
                        return Err(self.error(SqlState::SYNTAX_ERROR, message, named.location));
                    }
                    taken.push(&named.name);
                    let place = names.iter().position(|name| *name == named.name);
                    (place, self.named_value(named)?, Some(&named.name))
                }
                _ if !taken.is_empty() => {
                    let message = "positional argument cannot follow named argument";
                    return Err(self.error(SqlState::SYNTAX_ERROR, message, location(argument)));
                }
                _ => (Some(position), self.expr(argument)?, None),
            };
            let type_ = value.type_();
            shown.push(name.map_or_else(|| type_.to_string(), |name| format!("{name} => {type_}")));
            match place.and_then(|place| placed.get_mut(place)) {
                Some(free) if free.is_none() => *free = Some(value),
                _ => fits = false,
            }
        }
        if !fits || placed[..needed].iter().any(Option::is_none) {
            let message = format!("function {function}({}) does not exist", shown.join(", "));
            let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
            return Err(self.error(SqlState::UNDEFINED_FUNCTION, message, call.location).with_hint(hint));
        }
        let count = placed.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        let zero = || Expr::constant(Value::Int4(0), Type::INT4);
        Ok(placed.into_iter().take(count).map(|value| value.unwrap_or_else(zero)).collect())
    }

    fn named_value(&mut self, named: &NamedArgExpr) -> Result<Expr, SqlError> {
        let value =
            named.arg.as_deref().ok_or_else(|| SqlError::internal("a named argument without a value"))?;
        self.expr(value)
    }
}
