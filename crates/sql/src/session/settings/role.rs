//! The roles that a session acts as: `role`, `session_authorization`, and the `search_path` that
//! names the user.
//!
//! A session may take `postgres` and the user that it logged in as; both are superusers. Other
//! users of the password file answer like unknown roles. What must hold: the log and
//! `pg_stat_activity` name the user that logged in, whatever these settings say.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::SettingsTable;
use crate::shared::BOOTSTRAP_NAME;
use values::error::{SqlError, SqlState};
use values::identifier;

/// The settings that name roles. RESET ALL leaves them alone.
pub(super) const SETTINGS: [&str; 2] = ["role", "session_authorization"];

impl SettingsTable {
    /// The value of `current_user`.
    pub fn current_user(&self) -> &str {
        match self.get("role") {
            Ok("none") | Err(_) => self.session_user(),
            Ok(role) => role,
        }
    }

    /// The value of `session_user`.
    pub fn session_user(&self) -> &str {
        self.get("session_authorization").unwrap_or(&self.user)
    }

    /// Fails if a setting names a role that does not exist. The session's own user may be a role of
    /// the password file or of `--auth trust`, which `pg_roles` does not list.
    pub(super) fn check_role(&self, setting: &str, name: &str) -> Result<(), SqlError> {
        if name == &*self.user || name == BOOTSTRAP_NAME || (setting == "role" && name == "none") {
            return Ok(());
        }
        let message = format!("role \"{name}\" does not exist");
        Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
    }

    /// Finds the schema of the new current user, if `search_path` asks for it.
    pub(super) fn role_changed(&mut self) {
        let names = self.get("search_path").ok().and_then(|path| identifier::split(path, ','));
        if let Some(names) = names {
            self.set_search_path(names);
        }
    }

    pub(super) fn set_search_path(&mut self, mut names: Vec<String>) {
        for name in names.iter_mut().filter(|name| *name == "$user") {
            self.current_user().clone_into(name);
        }
        self.search_path = names.into();
        self.find_path_key();
    }

    /// Sets whether plans may use a method, or the joins whose order they may choose.
    pub(super) fn set_method(&mut self, name: &str, value: &str) {
        let (methods, on) = (&mut self.methods, value == "on");
        match name {
            "enable_hashjoin" => methods.hash_join = on,
            "enable_mergejoin" => methods.merge_join = on,
            "enable_nestloop" => methods.nested_loop = on,
            "enable_memoize" => methods.memoize = on,
            "enable_indexscan" => methods.index_scan = on,
            "enable_seqscan" => methods.table_scan = on,
            "enable_sort" => methods.sort = on,
            "enable_bitmapscan" => methods.bitmap_scan = on,
            "enable_indexonlyscan" => methods.index_only_scan = on,
            "enable_incremental_sort" => methods.incremental_sort = on,
            "join_collapse_limit" => methods.join_collapse_limit = value.parse().unwrap_or(usize::MAX),
            _ => return,
        }
        self.find_path_key();
    }

    pub(super) fn find_path_key(&mut self) {
        let mut hasher = DefaultHasher::new();
        (&self.search_path, self.methods).hash(&mut hasher);
        self.path_key = hasher.finish();
    }
}
