//! The [`Environment`]: what input, output and functions ask of the session, such as settings,
//! names and the time.
//!
//! The trait lies below everything that evaluates. A session implements it above, so that no lower
//! crate names an upper one.

use bumpalo::Bump;

use crate::error::{SqlError, SqlState};
use crate::types::{Datum, Settings};

/// The session, as input, output and functions see it.
///
/// Times are microseconds since 2000-01-01 UTC. The default methods answer as a session without a
/// catalog does. All methods take `&self`: a session keeps what changes in cells.
pub trait Environment {
    /// Formats and time zone. `settings().transaction_time` is the value of now().
    fn settings(&self) -> &Settings;
    /// The value of statement_timestamp().
    fn statement_time(&self) -> i64 {
        self.settings().transaction_time
    }
    /// The value of clock_timestamp().
    fn clock_time(&self) -> i64 {
        self.settings().transaction_time
    }
    /// 64 random bits.
    fn random(&self) -> u64;
    /// Seeds the session's random numbers: setseed(seed), from -1.0 to 1.0.
    fn set_seed(&self, _seed: f64) {}
    /// A setting's value; None when no setting has this name.
    fn setting(&self, _name: &str) -> Option<String> {
        None
    }
    /// Runs set_config(name, value, is_local) and returns the new value.
    fn set_setting(&self, name: &str, _value: Option<&str>, _local: bool) -> Result<String, SqlError> {
        Err(unrecognized(name))
    }
    /// The value of current_user.
    fn current_user(&self) -> String {
        "postgres".to_owned()
    }
    /// The value of session_user.
    fn session_user(&self) -> String {
        self.current_user()
    }
    /// The value of current_database().
    fn current_database(&self) -> String {
        "postgres".to_owned()
    }
    /// The value of current_schema().
    fn current_schema(&self) -> Option<String> {
        Some("public".to_owned())
    }
    /// The value of current_schemas(include_implicit).
    fn current_schemas(&self, implicit: bool) -> Vec<String> {
        if implicit { vec!["pg_catalog".to_owned(), "public".to_owned()] } else { vec!["public".to_owned()] }
    }
    /// The value of pg_backend_pid().
    fn backend_pid(&self) -> i32 {
        0
    }
    /// A relation's OID by the parts of its name: the relation, before it perhaps its schema,
    /// before that perhaps the database.
    fn class_oid(&self, _names: &[String]) -> Option<u32> {
        None
    }
    /// The OID of the type that a text names in SQL's grammar. The modifiers in the text are
    /// ignored.
    fn type_oid(&self, _name: &str) -> Result<u32, SqlError> {
        Err(SqlError::unsupported("a type's name here"))
    }
    /// A relation's name as regclass shows it: quoted where needed, qualified when the search path
    /// does not find it.
    fn class_name(&self, _oid: u32) -> Option<String> {
        None
    }
    /// A schema's OID by name.
    fn schema_oid(&self, _name: &str) -> Option<u32> {
        None
    }
    /// A schema's name, quoted as regnamespace shows it.
    fn schema_name(&self, _oid: u32) -> Option<String> {
        None
    }
    /// The OID of a function by its unquoted name.
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
    /// A role's name, quoted as regrole shows it.
    fn role_name(&self, _oid: u32) -> Option<String> {
        None
    }
    /// Runs nextval.
    fn sequence_next(&self, _sequence: u32) -> Result<i64, SqlError> {
        Err(SqlError::unsupported("a sequence here"))
    }
    /// Runs currval.
    fn sequence_current(&self, _sequence: u32) -> Result<i64, SqlError> {
        Err(SqlError::unsupported("a sequence here"))
    }
    /// Runs lastval.
    fn sequence_last(&self) -> Result<i64, SqlError> {
        Err(SqlError::unsupported("a sequence here"))
    }
    /// Runs setval and returns the value set.
    fn sequence_set(&self, _sequence: u32, _value: i64, _called: bool) -> Result<i64, SqlError> {
        Err(SqlError::unsupported("a sequence here"))
    }
    /// Calls another function that needs the catalog or the session, by name: `pg_get_indexdef`,
    /// `pg_table_is_visible`, `pg_advisory_lock` and so on. The result must have the function's
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

/// A session with default settings, for conversions that need nothing else of a session.
#[derive(Default)]
pub struct NoSession(Settings);

impl NoSession {
    /// A session of which only the settings are known.
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
