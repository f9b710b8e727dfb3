//! The interval of one key column that comparisons bound.

use super::bounding::{Bounding, End};
use super::key_value;
use crate::plan::{KeyBound, KeyRange};
use catalog::Table;
use expressions::function::Comparison;
use values::error::SqlError;

/// The interval of one column between ends.
pub(super) fn interval(ends: &[Bounding<'_>], table: &Table) -> Result<KeyRange, SqlError> {
    let mut key = KeyRange::default();
    for bounding in ends {
        match bounding.end() {
            Some(End::Compared(comparison, value)) => {
                let type_ = table.columns[bounding.column as usize].type_;
                let end = key_value::end(value, type_, comparison)?;
                match comparison {
                    Comparison::Greater | Comparison::GreaterEqual => key.low.push(end),
                    _ => key.high.push(end),
                }
            }
            Some(End::Matched(matching, pattern)) => {
                for ends in [&mut key.low, &mut key.high] {
                    ends.push(KeyBound::Pattern { pattern: pattern.clone(), matching });
                }
            }
            Some(End::NotNull) => key.low.push(KeyBound::NotNull),
            None => {}
        }
    }
    Ok(key)
}
