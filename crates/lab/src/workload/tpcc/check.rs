//! The consistency conditions (3.3.2), each a statement that counts violations, the same on both
//! dialects.

use crate::arm::control::{Control, Fault};
use crate::record::Check;

/// Paragraphs, each of a condition in a comment and the count of its violations.
const CONDITIONS: &str = include_str!("conditions.sql");

pub(super) fn check(control: &mut Control) -> Result<Vec<Check>, Fault> {
    let one = |condition: &str| {
        let (claim, sql) = condition.split_once('\n').expect("a statement follows the comment");
        let broken = control.value(sql)?.unwrap_or_default();
        let fault = (broken != "0").then(|| format!("does not hold in {broken} places"));
        Ok(Check { claim: claim.trim_start_matches("-- ").to_owned(), fault })
    };
    CONDITIONS.split("\n\n").map(one).collect()
}
