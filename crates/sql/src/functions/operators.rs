//! Comparison operators of every type, and the equality the binder uses.

use std::cmp::Ordering;
use std::sync::LazyLock;

use super::{Comparison, Fast, Function, func};
use crate::expr::EvalContext;
use values::error::{SqlError, SqlState};
use values::types::{Datum, Type, compare, oid};

/// Compares records column by column; 42804 for columns of other types, or another number of them. `lacking`: what a type
/// without comparisons does not have, for the error.
pub(crate) fn compare_records(
    left: Datum<'_>,
    right: Datum<'_>,
    lacking: &str,
) -> Result<Ordering, SqlError> {
    let (Datum::Record(a), Datum::Record(b)) = (left, right) else { return compare(left, right) };
    for at in 0..a.fields.len().min(b.fields.len()) {
        let (x, y) = (a.types[at].oid, b.types[at].oid);
        if x != y {
            return Err(dissimilar(x, y, at + 1));
        }
        if x == oid::UNKNOWN {
            return Err(incomparable(lacking));
        }
        let order = compare_records(a.fields[at], b.fields[at], lacking)?;
        if order.is_ne() {
            return Ok(order);
        }
    }
    if a.fields.len() == b.fields.len() { Ok(Ordering::Equal) } else { Err(unequal_widths()) }
}

/// 42804 for fields of two types, by their OIDs.
pub(crate) fn dissimilar(x: u32, y: u32, column: usize) -> SqlError {
    let (x, y) = (Type::new(x), Type::new(y));
    SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("cannot compare dissimilar column types {x} and {y} at record column {column}"),
    )
}

/// 42804 for rows of different numbers of fields.
pub(crate) fn unequal_widths() -> SqlError {
    let message = "cannot compare record types with different numbers of columns";
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

/// 42883 for two literals in rows whose type nothing decided.
pub(crate) fn incomparable(lacking: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("could not identify {lacking} for type unknown"))
}

macro_rules! comparison_code {
    ($($name:ident $of_records:ident $comparison:ident;)*) => {
        $(fn $name<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>, SqlError> {
            Ok(Datum::Bool(Comparison::$comparison.holds(compare(arguments[0], arguments[1])?)))
        }
        fn $of_records<'a>(_: &mut EvalContext<'a, '_>, arguments: &[Datum<'a>]) -> Result<Datum<'a>, SqlError> {
            Ok(Datum::Bool(Comparison::$comparison.holds(compare_records(arguments[0], arguments[1], lacking(Comparison::$comparison))?)))
        })*
        /// Name, operator, which comparison, its code, and that for records.
        const KINDS: [(&str, &str, Comparison, super::Code, super::Code); 6] = [
            $((stringify!($name), symbol(Comparison::$comparison), Comparison::$comparison, $name, $of_records)),*
        ];
    };
}

const fn lacking(comparison: Comparison) -> &'static str {
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
