//! Comparison operators of every type, and the equality the binder uses.

use std::sync::LazyLock;

use super::{Comparison, Fast, Function, func};
use crate::error::SqlError;
use crate::expr::EvalContext;
use crate::types::{Datum, compare, oid};

macro_rules! comparison_code {
    ($($name:ident $comparison:ident;)*) => {
        $(fn $name<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>, SqlError> {
            Ok(Datum::Bool(Comparison::$comparison.holds(compare(arguments[0], arguments[1]))))
        })*
        const KINDS: [(&str, &str, Comparison, super::Code); 6] = [$((stringify!($name), symbol(Comparison::$comparison), Comparison::$comparison, $name)),*];
    };
}

const fn symbol(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "<>",
        Comparison::Less => "<",
        Comparison::LessEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterEqual => ">=",
    }
}

comparison_code! {
    equal Equal;
    not_equal NotEqual;
    less Less;
    less_equal LessEqual;
    greater Greater;
    greater_equal GreaterEqual;
}

/// The pairs of types that compare as they are.
static PAIRS: &[[u32; 2]] = &[
    [oid::BOOL, oid::BOOL],
    [oid::BYTEA, oid::BYTEA],
    [oid::CHAR, oid::CHAR],
    [oid::INT2, oid::INT2],
    [oid::INT4, oid::INT4],
    [oid::INT8, oid::INT8],
    [oid::INT2, oid::INT4],
    [oid::INT4, oid::INT2],
    [oid::INT2, oid::INT8],
    [oid::INT8, oid::INT2],
    [oid::INT4, oid::INT8],
    [oid::INT8, oid::INT4],
    [oid::TEXT, oid::TEXT],
    [oid::BPCHAR, oid::BPCHAR],
    [oid::NAME, oid::NAME],
    [oid::NAME, oid::TEXT],
    [oid::TEXT, oid::NAME],
    [oid::OID, oid::OID],
    [oid::XID, oid::XID],
    [oid::FLOAT4, oid::FLOAT4],
    [oid::FLOAT8, oid::FLOAT8],
    [oid::FLOAT4, oid::FLOAT8],
    [oid::FLOAT8, oid::FLOAT4],
    [oid::DATE, oid::TIMESTAMP],
    [oid::TIMESTAMP, oid::DATE],
    [oid::NUMERIC, oid::NUMERIC],
    [oid::DATE, oid::DATE],
    [oid::TIME, oid::TIME],
    [oid::TIMESTAMP, oid::TIMESTAMP],
    [oid::TIMESTAMPTZ, oid::TIMESTAMPTZ],
    [oid::INTERVAL, oid::INTERVAL],
    [oid::UUID, oid::UUID],
    [oid::OIDVECTOR, oid::OIDVECTOR],
    [oid::ANYARRAY, oid::ANYARRAY],
    [oid::RECORD, oid::RECORD],
];

/// All comparison operators.
pub(super) static COMPARISONS: LazyLock<Vec<Function>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for (name, operator, comparison, code) in KINDS {
        for pair in PAIRS {
            let mut function = func(name, pair.as_slice(), oid::BOOL, code).op(operator);
            function.comparison = Some(comparison);
            function.fast = Some(Fast::Compare(comparison));
            all.push(function);
        }
    }
    all
});
