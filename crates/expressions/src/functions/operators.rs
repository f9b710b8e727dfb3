//! The comparison operators of every type, and the equality that the binder uses.
//!
//! What must hold:
//!
//! 1. `compare` orders the representations of each pair in [`PAIRS`] by value. A pair of types that
//!    it would order by their tags does not belong there.
//! 2. Every function here names its `comparison`, by which the planner knows it.
//! 3. Types without an order have `=` and `<>` only: transaction numbers wrap around.
//! 4. Records compare by code of their own, because their fields may have types without the
//!    operator. So they are not evaluated in place.

use sync::LazyLock;

use crate::context::EvalContext;
use crate::function::{Comparison, Fast, Function, func};
use values::error::SqlError;
use values::types::{Datum, compare, compare_records, oid};

macro_rules! comparison_code {
    ($($name:ident $of_records:ident $comparison:ident;)*) => {
        $(fn $name<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>, SqlError> {
            Ok(Datum::Bool(Comparison::$comparison.holds(compare(arguments[0], arguments[1])?)))
        }
        fn $of_records<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>, SqlError> {
            Ok(Datum::Bool(Comparison::$comparison.holds(compare_records(arguments[0], arguments[1], needed_for(Comparison::$comparison))?)))
        })*
        /// Name, operator, comparison, code, and code for records.
        const KINDS: [(&str, &str, Comparison, crate::function::Code, crate::function::Code); 6] = [
            $((stringify!($name), symbol(Comparison::$comparison), Comparison::$comparison, $name, $of_records)),*
        ];
    };
}

const fn needed_for(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal | Comparison::NotEqual => "an equality operator",
        _ => "a comparison function",
    }
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
    equal records_equal Equal;
    not_equal records_not_equal NotEqual;
    less records_less Less;
    less_equal records_less_equal LessEqual;
    greater records_greater Greater;
    greater_equal records_greater_equal GreaterEqual;
}

/// The pairs of types that compare without a cast.
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
    [oid::XID, oid::INT4],
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
    for (name, operator, comparison, code, of_records) in KINDS {
        // Transaction numbers wrap around: they are equal or not, and have no order.
        let ordered = !matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        for pair in PAIRS.iter().filter(|pair| !(ordered && pair.contains(&oid::XID))) {
            let records = pair.contains(&oid::RECORD);
            let code = if records { of_records } else { code };
            let mut function = func(name, pair.as_slice(), oid::BOOL, code).op(operator);
            function.comparison = Some(comparison);
            function.fast = (!records).then_some(Fast::Compare(comparison));
            all.push(function);
        }
    }
    all
});
