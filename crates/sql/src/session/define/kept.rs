//! Texts that the catalog keeps. Their constants may name sequences that the same statement makes.
//! Once those exist, their OIDs replace the names.

use std::cell::RefCell;

use super::super::Session;
use catalog::stored;
use query::parse::rewrite::numbered_relations;
use values::error::{SqlError, SqlState};

/// Replaces the names of relations in the text's constants by OIDs.
///
/// # Errors
/// 42P01 for one that is not there.
pub(super) fn number_relations(session: &Session, text: &mut String) -> Result<(), SqlError> {
    let (environment, missing) = (&session.environment, RefCell::new(None));
    let found = |name: &str| {
        let relation = environment.catalog.named_by_constant(&environment.table.search_path, name);
        if relation.is_none() && !stored::is_number(name) {
            missing.replace(Some(name.to_owned()));
        }
        relation.map(|relation| relation.oid())
    };
    let numbered = numbered_relations(text, &found)?;
    if let Some(name) = missing.into_inner() {
        return Err(SqlError::new(SqlState::UNDEFINED_TABLE, stored::missing(&name)));
    }
    *text = numbered;
    Ok(())
}
