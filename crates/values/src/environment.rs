//! The [`Environment`]: the trait by which input, output and functions get settings, names and the
//! time from the session.
//!
//! The trait lies below everything that evaluates, and a session implements it above. So no crate
//! names the one above it.

use bumpalo::Bump;

use crate::error::{SqlError, SqlState};
use crate::types::{Datum, Settings};

/// The session, as functions see it. Times are in microseconds since 2000-01-01 UTC. Default
/// methods answer as a session without a catalog would. Methods take `&self`, so a session that
/// changes keeps its state in cells.
pub trait Environment {
    /// Formats and the time zone; `settings().transaction_time` is now().
    fn settings(&self) -> &Settings;
    /// statement_timestamp().
    fn statement_time(&self) -> i64 {
        self.settings().transaction_time
    }
    /// clock_timestamp().
    fn clock_time(&self) -> i64 {
        self.settings().transaction_time
    }
    /// 64 random bits.
    fn random(&self) -> u64;
    /// setseed(seed), -1.0 to 1.0.
    fn set_seed(&self, _seed: f64) {}
    /// A setting's value; None when there is no such setting.
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }
    /// set_config(name, value, is_local); the new value.
    fn set_setting(&self, name: &str, _value: Option<&str>, _local: bool) -> Result<String, SqlError> {
        Err(unrecognized(name))
    }
    /// current_user.
    fn current_user(&self) -> String {
        "postgres".to_owned()
    }
    /// session_user.
    fn session_user(&self) -> String {
        self.current_user()
    }
    /// current_database().
    fn current_database(&self) -> String {
        "postgres".to_owned()
    }
    /// current_schema().
    fn current_schema(&self) -> Option<String> {
        Some("public".to_owned())
    }
    /// current_schemas(include_implicit).
    fn current_schemas(&self, implicit: bool) -> Vec<String> {
        if implicit { vec!["pg_catalog".to_owned(), "public".to_owned()] } else { vec!["public".to_owned()] }
    }
    /// pg_backend_pid().
    fn backend_pid(&self) -> i32 {
        0
    }
    /// A relation's OID by the parts of its name, the last perhaps after its schema and this after
    /// the database.
    fn class_oid(&self, _names: &[String]) -> Option<u32> {
        None
    }
    /// The OID of the type that a text names by the grammar, without its modifiers.
    fn type_oid(&self, _name: &str) -> Result<u32, SqlError> {
        Err(SqlError::unsupported("a type's name here"))
    }
    /// A relation's name (qualified when it is not in the search path), quoted as regclass output
    /// gives it.
    fn class_name(&self, _oid: u32) -> Option<String> {
        None
    }
    /// A schema's OID by name.
    fn schema_oid(&self, _name: &str) -> Option<u32> {
        None
    }
    /// A schema's name, quoted as regnamespace output gives it.
    fn schema_name(&self, _oid: u32) -> Option<String> {
        None
    }
    /// The OID of the function of this name, which is unquoted.
    fn function_oid(&self, _name: &str) -> Option<u32> {
        None
    }
    /// A function's name.
    fn function_name(&self, _oid: u32) -> Option<&'static str> {
        None
    }
    /// A role's OID by name.
    fn role_oid(&self, _name: &str) -> Option<u32> {
        None
    }
    /// A role's name, quoted as regrole output gives it.
    fn role_name(&self, _oid: u32) -> Option<String> {
        None
    }
    /// nextval.
    fn sequence_next(&self, _sequence: u32) -> Result<i64, SqlError> {
        Err(SqlError::unsupported("a sequence here"))
    }
    /// currval.
    fn sequence_current(&self, _sequence: u32) -> Result<i64, SqlError> {
        Err(SqlError::unsupported("a sequence here"))
    }
    /// lastval.
    fn sequence_last(&self) -> Result<i64, SqlError> {
        Err(SqlError::unsupported("a sequence here"))
    }
    /// setval.
    fn sequence_set(&self, _sequence: u32, _value: i64, _called: bool) -> Result<i64, SqlError> {
        Err(SqlError::unsupported("a sequence here"))
    }
    /// Any other function that needs the catalog or the session: `pg_get_indexdef`,
    /// `pg_table_is_visible`, `pg_advisory_lock` ..., by name. The result must have the function's
    /// declared type.
    fn catalog_function<'a>(
        &self,
        name: &str,
        _arguments: &[Datum<'a>],
        _arena: &'a Bump,
    ) -> Result<Datum<'a>, SqlError> {
        Err(SqlError::unsupported(format_args!("function {name}")))
    }
}

fn unrecognized(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}

/// A session without any setting of its own, for inputs that need none.
#[derive(Default)]
pub struct NoSession(Settings);

impl NoSession {
    /// An environment with these settings and no session.
    pub fn with(settings: Settings) -> NoSession {
        NoSession(settings)
    }
}

impl Environment for NoSession {
    fn settings(&self) -> &Settings {
        &self.0
    }

    fn random(&self) -> u64 {
        0
    }
}
