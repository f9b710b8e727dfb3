//! The order of records, and the errors of records that cannot be compared.

use std::cmp::Ordering;

use super::{Datum, Type, compare, oid};
use crate::error::{SqlError, SqlState};

/// Compares records column by column.
///
/// 42804 when the types or the number of columns differ. `lacking` names, for the error, what a
/// type without comparisons does not have.
pub fn compare_records(left: Datum<'_>, right: Datum<'_>, lacking: &str) -> Result<Ordering, SqlError> {
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
pub fn dissimilar(x: u32, y: u32, column: usize) -> SqlError {
    let (x, y) = (Type::new(x), Type::new(y));
    SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("cannot compare dissimilar column types {x} and {y} at record column {column}"),
    )
}

/// 42804 for rows of different numbers of fields.
pub fn unequal_widths() -> SqlError {
    let message = "cannot compare record types with different numbers of columns";
    SqlError::new(SqlState::DATATYPE_MISMATCH, message)
}

/// 42883 for two literals in records whose type nothing determines.
pub fn incomparable(lacking: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_FUNCTION, format!("could not identify {lacking} for type unknown"))
}
