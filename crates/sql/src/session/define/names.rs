//! Names of objects: of two transactions that give one name to two objects, the second waits for the first.

use super::Session;
use crate::catalog::Change;
use crate::database::system;
use crate::error::{SqlError, SqlState};

impl Session {
    /// Claims the names that a change gives, until the transaction ends.
    pub(in crate::session) fn claim_names(&mut self, change: &Change) -> Result<(), SqlError> {
        let names = self.environment.catalog.new_names(change);
        if names.is_empty() {
            return Ok(());
        }
        let database = self.environment.definitions.oid.to_be_bytes();
        for (schema, name) in names {
            let key = [&database[..], &schema.to_be_bytes(), name.as_bytes()].concat();
            system::claim(&self.environment.txn, system::NAMES, &key)?;
        }
        // Who had one of them claimed has published it by now, or given it up.
        self.refresh_catalog();
        let Some((what, name)) = self.environment.catalog.taken(std::slice::from_ref(change)) else {
            return Ok(());
        };
        let index =
            if what == "schema" { "pg_namespace_nspname_index" } else { "pg_class_relname_nsp_index" };
        let message = format!("duplicate key value violates unique constraint \"{index}\"");
        let error = SqlError::new(SqlState::UNIQUE_VIOLATION, message);
        Err(error.with_detail(format!("The {what} \"{name}\" already exists.")))
    }
}
