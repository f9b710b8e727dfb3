//! Calls of functions by name, and PostgreSQL's errors where no function or several fit.

use super::registry;
use crate::expr::{Call, Expr};
use values::error::{SqlError, SqlState};
use values::types::Type;

fn type_list(types: &[Type]) -> String {
    types.iter().map(|ty| Type::new(ty.oid).to_string()).collect::<Vec<_>>().join(", ")
}

pub(super) fn types_of(exprs: &[Expr]) -> Vec<Type> {
    exprs.iter().map(Expr::type_).collect()
}

/// A call of the only function of this name. The arguments have the types it takes.
pub(super) fn call_named(name: &str, arguments: Vec<Expr>, type_: Type) -> Result<Expr, SqlError> {
    match registry::functions(name) {
        [function] => Ok(Expr::Call(Box::new(Call { function, arguments, type_ }))),
        _ => Err(SqlError::internal(format!("there is no one function {name}"))),
    }
}

/// 42883, with PostgreSQL's hint.
pub(super) fn no_such_function(name: &str, arguments: &[Expr]) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("function {name}({}) does not exist", type_list(&types_of(arguments))),
    )
    .with_hint(
        "No function matches the given name and argument types. You might need to add explicit type casts.",
    )
}

/// 42725, with PostgreSQL's hint.
pub(super) fn several_functions(name: &str, arguments: &[Expr]) -> SqlError {
    SqlError::new(
        SqlState::AMBIGUOUS_FUNCTION,
        format!("function {name}({}) is not unique", type_list(&types_of(arguments))),
    )
    .with_hint("Could not choose a best candidate function. You might need to add explicit type casts.")
}
