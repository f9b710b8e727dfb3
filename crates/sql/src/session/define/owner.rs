//! Owners. Everything belongs to the single role, so an owner's name is checked and never stored.

use super::super::Session;
use values::error::{SqlError, SqlState};

/// Fails if the role named as an owner does not exist. `None` is the session's own role.
pub(super) fn check(session: &Session, role: Option<&str>) -> Result<(), SqlError> {
    let environment = &session.environment;
    let is_there = |name: &str| {
        name == &*environment.user || environment.catalog.roles.iter().any(|role| role.name == name)
    };
    match role {
        Some(name) if !is_there(name) => {
            Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("role \"{name}\" does not exist")))
        }
        _ => Ok(()),
    }
}

/// ALTER SCHEMA, ALTER DATABASE .. OWNER TO.
pub(super) fn alter(
    session: &mut Session,
    database: bool,
    name: &str,
    role: Option<&str>,
) -> Result<&'static str, SqlError> {
    session.refresh_catalog();
    check(session, role)?;
    let catalog = &session.environment.catalog;
    if database && catalog.databases.iter().all(|entry| entry.name != name) {
        let message = format!("database \"{name}\" does not exist");
        return Err(SqlError::new(SqlState::INVALID_CATALOG_NAME, message));
    }
    if !database && catalog.schema(name).is_none() {
        let message = format!("schema \"{name}\" does not exist");
        return Err(SqlError::new(SqlState::INVALID_SCHEMA_NAME, message));
    }
    Ok(if database { "ALTER DATABASE" } else { "ALTER SCHEMA" })
}
