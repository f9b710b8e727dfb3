//! Texts that the catalog keeps, of which the constants name sequences that their own statement has made.

use std::cell::RefCell;

use super::super::Session;
use crate::error::{SqlError, SqlState};
use crate::identifier;
use crate::parse::stored;

/// Gives the relations that constants of the text still name their OIDs.
///
/// # Errors
/// 42P01 for one that is not there.
pub(super) fn number_relations(session: &Session, text: &mut String) -> Result<(), SqlError> {
    let (environment, missing) = (&session.environment, RefCell::new(None));
    let found = |name: &str| {
        if stored::is_number(name) {
            return None;
        }
        let names = identifier::split(name, '.');
        let relation = names
            .as_ref()
            .and_then(|names| environment.catalog.relation_of(&environment.table.search_path, names));
        if relation.is_none() {
            missing.replace(Some(names.map_or_else(|| name.to_owned(), |names| names.join("."))));
        }
        relation.map(|relation| relation.oid())
    };
    let numbered = stored::numbered_relations(text, &found)?;
    match missing.into_inner() {
        None => *text = numbered,
        Some(name) => {
            let message = format!("relation \"{name}\" does not exist");
            return Err(SqlError::new(SqlState::UNDEFINED_TABLE, message));
        }
    }
    Ok(())
}
