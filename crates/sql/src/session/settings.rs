//! A session's settings: SET, SHOW, RESET, SET LOCAL.
//!
//! Every setting that PostgreSQL's clients commonly set is known. Settings with an effect here have
//! a typed field; the others are kept as text. What must hold: a rollback restores the values
//! before SET, and the end of the transaction those before SET LOCAL.

mod amounts;
mod described;
mod known;
mod reload;
mod role;

use std::sync::Arc;
use std::time::Duration;

use runtime::interrupt::Interrupt;
use txn::WaitLimits;

use super::characteristics::{self, Characteristics};
use crate::shared::read_only::ReadOnlySettings;
use crate::units::{limit, parse_bool, parse_time};
use amounts::parse_memory;
use execution::client::Severity;
use known::{Change, KNOWN, Kind, Known, default_statement_memory, position, spelled};
use query::plan::{Isolation, TransactionModes};
use query::request::Methods;
use values::error::{SqlError, SqlState, for_message};
use values::identifier;
use values::memory;
use values::types::Settings;
use values::types::datetime::{self, Zone};
use values::types::interval::{self, Interval};
use values::types::settings::{DateOrder, DateStyle, IntervalStyle};

/// A change that the running transaction may have to put back.
#[derive(Clone)]
struct Undo {
    setting: usize,
    before: String,
    source: Source,
    /// Put back at commit too.
    local: bool,
}

/// Where a setting's value comes from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The server: its settings or the built-in default. A reload changes it.
    Server,
    /// The client's startup packet.
    Client,
    /// SET in the session.
    Session,
}

/// Every setting's text and where it comes from.
#[derive(Clone)]
struct Texts {
    values: Vec<String>,
    /// The values that RESET goes back to: defaults and the startup packet.
    initial: Vec<String>,
    sources: Vec<Source>,
    /// Those of `initial`.
    initial_sources: Vec<Source>,
}

/// A session's settings. A copy shares the texts with its original until one of the two changes.
#[derive(Clone)]
pub(crate) struct SettingsTable {
    texts: Arc<Texts>,
    read_only: Arc<ReadOnlySettings>,
    undo: Vec<Undo>,
    /// The reported settings that have changed since the last report, and the values of that
    /// report.
    changed: Vec<(usize, String)>,
    /// The settings values' text depends on.
    pub formats: Settings,
    /// search_path as schema names.
    pub search_path: Arc<[String]>,
    /// Distinguishes plans made under different search paths.
    pub path_key: u64,
    /// The methods that plans may use.
    pub methods: Methods,
    pub statement_timeout: Option<Duration>,
    pub idle_transaction_timeout: Option<Duration>,
    pub idle_timeout: Option<Duration>,
    /// `lock_timeout` and `deadlock_timeout`.
    limits: Arc<WaitLimits>,
    pub transaction_timeout: Option<Duration>,
    /// Statements that take so long or longer are logged.
    pub log_min_duration: Option<Duration>,
    /// Statements' errors are logged.
    pub logs_errors: bool,
    /// With the statement's text.
    pub logs_failed_statements: bool,
    pub synchronous: bool,
    /// A prepared statement has one plan for all values: `plan_cache_mode` is `force_generic_plan`.
    pub generic_plans: bool,
    /// The characteristics that a new transaction begins with.
    pub defaults: Characteristics,
    /// Bytes an operator keeps in memory before it uses temporary pages.
    pub work_mem: usize,
    /// As `work_mem`, for keys and indexes being built.
    pub maintenance_work_mem: usize,
    /// Bytes of memory the session may hold: its statement, cursors and prepared statements.
    statement_memory: u64,
    /// `work_mem` and `maintenance_work_mem` as they were set. `statement_memory` bounds the values
    /// in effect.
    wanted: (usize, usize),
    /// Bounded by `statement_memory`.
    interrupt: Arc<Interrupt>,
    user: Arc<str>,
    /// The lowest severity of messages that the client gets (`client_min_messages`); None: errors
    /// only.
    least: Option<Severity>,
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}

/// The change that setting `transaction_isolation`, `transaction_read_only` or
/// `transaction_deferrable` asks of the running transaction; None for other names.
pub(super) fn transaction_modes(
    name: &str,
    value: Option<&str>,
) -> Result<Option<TransactionModes>, SqlError> {
    let mut modes = TransactionModes::default();
    let name = SettingsTable::proper_name(name);
    if !characteristics::SETTINGS.contains(&name) {
        return Ok(None);
    }
    let Some(value) = value else {
        let message = format!("parameter \"{name}\" cannot be reset");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    };
    let value = for_message(value);
    let on = || parse_bool(value).ok_or_else(|| no_boolean(name));
    match name {
        "transaction_read_only" => modes.read_only = Some(on()?),
        "transaction_deferrable" => modes.deferrable = Some(on()?),
        _ => {
            modes.isolation = Some(match value.trim().to_ascii_lowercase().as_str() {
                "serializable" => Isolation::Serializable,
                "repeatable read" => Isolation::RepeatableRead,
                "read committed" => Isolation::ReadCommitted,
                "read uncommitted" => Isolation::ReadUncommitted,
                _ => return Err(invalid(name, value)),
            });
        }
    }
    Ok(Some(modes))
}

/// Checks a value that sessions are to begin with.
pub fn check_setting(name: &str, value: &str) -> Result<(), SqlError> {
    SettingsTable::new(&"".into(), &Arc::default(), (&Arc::default(), &Arc::default())).set(
        name,
        Some(value),
        false,
    )
}

/// Whether a setting tells the planner which methods and orders it may choose.
fn of_planner(name: &str) -> bool {
    name.starts_with("enable_") || name == "join_collapse_limit"
}

fn no_boolean(name: &str) -> SqlError {
    let message = format!("parameter \"{name}\" requires a Boolean value");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn invalid(name: &str, value: &str) -> SqlError {
    let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The part of a value that is read. Cuts a name. Refuses any other value with more bytes than a
/// message holds.
fn within<'v>(known: &Known, value: &'v str) -> Result<&'v str, SqlError> {
    let read = for_message(value);
    if read.len() == value.len() || known.kind == Kind::Name {
        Ok(read)
    } else {
        Err(invalid(known.name, read))
    }
}

impl SettingsTable {
    /// The defaults, for a user of a server with these read-only settings.
    pub fn new(
        user: &Arc<str>,
        read_only: &Arc<ReadOnlySettings>,
        (limits, interrupt): (&Arc<WaitLimits>, &Arc<Interrupt>),
    ) -> SettingsTable {
        let values: Vec<String> = KNOWN.iter().map(|known| known.default_for(user)).collect();
        let sources = vec![Source::Server; KNOWN.len()];
        let texts = Texts { initial: values.clone(), values, initial_sources: sources.clone(), sources };
        let mut table = SettingsTable {
            texts: Arc::new(texts),
            read_only: Arc::clone(read_only),
            least: Some(Severity::Notice),
            undo: Vec::new(),
            changed: Vec::new(),
            formats: Settings::default(),
            search_path: Arc::default(),
            path_key: 0,
            methods: Methods::default(),
            statement_timeout: None,
            idle_transaction_timeout: None,
            idle_timeout: None,
            limits: Arc::clone(limits),
            transaction_timeout: None,
            log_min_duration: None,
            logs_errors: true,
            logs_failed_statements: true,
            synchronous: true,
            generic_plans: false,
            defaults: Characteristics::PLAIN,
            work_mem: 4 << 20,
            maintenance_work_mem: 64 << 20,
            statement_memory: default_statement_memory(),
            wanted: (4 << 20, 64 << 20),
            interrupt: Arc::clone(interrupt),
            user: Arc::clone(user),
        };
        table.set_search_path(vec!["$user".to_owned(), "public".to_owned()]);
        table.bound_memory();
        table
    }

    /// A setting's value.
    pub fn get(&self, name: &str) -> Result<&str, SqlError> {
        position(name).and_then(|at| self.value(at)).ok_or_else(|| unknown(name))
    }

    fn value(&self, at: usize) -> Option<&str> {
        match KNOWN[at].kind {
            Kind::ReadOnly(_) => self
                .read_only
                .iter()
                .find(|(name, _)| *name == KNOWN[at].name)
                .map(|(_, value)| value.as_str()),
            _ => Some(&self.texts.values[at]),
        }
    }

    /// The part of a value that a setting reads.
    ///
    /// # Errors
    /// When there is no such setting, or the value is too long for it.
    pub fn value_within<'v>(&self, name: &str, value: &'v str) -> Result<&'v str, SqlError> {
        self.get(name)?;
        position(name).map_or(Ok(value), |at| within(&KNOWN[at], value))
    }

    /// Whether the client wants messages of this severity.
    pub fn tells(&self, severity: Severity) -> bool {
        severity == Severity::Info || self.least.is_some_and(|least| severity >= least)
    }

    /// A setting's name as PostgreSQL writes it.
    pub fn proper_name(name: &str) -> &str {
        position(name).map_or(name, |at| KNOWN[at].name)
    }

    /// Name and value of every setting.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KNOWN.iter().enumerate().filter_map(|(at, known)| Some((known.name, self.value(at)?)))
    }

    /// Name and value of the settings that affect plans and differ from their defaults, as EXPLAIN
    /// shows them.
    pub fn planning(&self) -> Vec<(String, String)> {
        let affects = |name: &str| of_planner(name) || matches!(name, "plan_cache_mode" | "work_mem");
        let settings = KNOWN.iter().zip(&self.texts.values);
        settings
            .filter(|(known, value)| affects(known.name) && **value != known.default)
            .map(|(known, value)| (known.name.to_owned(), value.clone()))
            .collect()
    }

    /// Name and value of the settings that the server reports to clients.
    pub fn reported(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KNOWN
            .iter()
            .zip(&self.texts.values)
            .filter(|(known, _)| known.reported)
            .map(|(k, value)| (k.name, value.as_str()))
    }

    /// Names and values of the settings that changed since the server last reported them to the
    /// client.
    #[inline]
    pub fn take_changed(&mut self) -> Vec<(&'static str, String)> {
        if self.changed.is_empty() { Vec::new() } else { self.told() }
    }

    #[cold]
    fn told(&mut self) -> Vec<(&'static str, String)> {
        let changed = std::mem::take(&mut self.changed);
        let now = |(at, told): (usize, String)| {
            let value = &self.texts.values[at];
            (*value != told).then(|| (KNOWN[at].name, value.clone()))
        };
        changed.into_iter().filter_map(now).collect()
    }

    fn texts_mut(&mut self) -> &mut Texts {
        Arc::make_mut(&mut self.texts)
    }

    /// Puts a value in place; the one before.
    fn put(&mut self, at: usize, value: String) -> String {
        let before = std::mem::replace(&mut self.texts_mut().values[at], value);
        if role::SETTINGS.contains(&KNOWN[at].name) {
            self.role_changed();
        }
        if KNOWN[at].reported && self.changed.iter().all(|(other, _)| *other != at) {
            self.changed.push((at, before.clone()));
        }
        before
    }

    /// The number of a setting that may be set, and its new text: the value, or the default.
    fn wanted(&self, name: &str, value: Option<&str>) -> Result<(usize, String), SqlError> {
        let at = position(name).ok_or_else(|| unknown(name))?;
        let known = &KNOWN[at];
        let when = match known.kind {
            Kind::ReadOnly(_) if self.value(at).is_none() => return Err(unknown(name)),
            Kind::Fixed | Kind::ReadOnly(Change::Never) => Some(""),
            Kind::ReadOnly(Change::AtStart) => Some(" without restarting the server"),
            Kind::ReadOnly(Change::ByFile) => Some(" now"),
            _ => None,
        };
        if let Some(when) = when {
            let message = format!("parameter \"{}\" cannot be changed{when}", known.name);
            return Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message));
        }
        let value = value.map(|value| within(known, value)).transpose()?;
        Ok((at, value.map_or_else(|| self.texts.initial[at].clone(), str::to_owned)))
    }

    /// Sets a setting. As in PostgreSQL, `session_authorization` takes `role` back.
    pub fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<(), SqlError> {
        let (at, wanted) = self.wanted(name, value)?;
        let proper = self.apply(at, &wanted)?;
        let texts = self.texts_mut();
        let source = if value.is_some() { Source::Session } else { texts.initial_sources[at] };
        let source = std::mem::replace(&mut texts.sources[at], source);
        let before = self.put(at, proper);
        self.undo.push(Undo { setting: at, before, source, local });
        if KNOWN[at].name == "session_authorization" { self.set("role", Some("none"), local) } else { Ok(()) }
    }

    /// The text that SHOW would give after the setting takes a value, or its default. Fails if it
    /// cannot be set.
    pub fn shown_once_set(&self, name: &str, value: Option<&str>) -> Result<String, SqlError> {
        let (at, wanted) = self.wanted(name, value)?;
        let mut trial = SettingsTable { limits: Arc::default(), interrupt: Arc::default(), ..self.clone() };
        trial.apply(at, &wanted)
    }

    /// Sets a value that the session begins with and RESET restores. A reload changes values that
    /// the server sets, not those in the client's startup packet. Afterwards the server reports all
    /// settings to the client.
    pub fn set_initial(&mut self, name: &str, value: &str, by_client: bool) -> Result<(), SqlError> {
        self.set(name, Some(value), false)?;
        if let Some(at) = position(name) {
            let texts = self.texts_mut();
            texts.initial[at].clone_from(&texts.values[at]);
            texts.sources[at] = if by_client { Source::Client } else { Source::Server };
            texts.initial_sources[at] = texts.sources[at];
        }
        self.undo.clear();
        self.changed.clear();
        Ok(())
    }

    /// Resets everything but the roles, as in PostgreSQL.
    pub fn reset_all(&mut self) -> Result<(), SqlError> {
        let settable = |known: &&Known| {
            !matches!(known.kind, Kind::Fixed | Kind::ReadOnly(_))
                && !characteristics::SETTINGS.contains(&known.name)
                && !role::SETTINGS.contains(&known.name)
        };
        for known in KNOWN.iter().filter(settable) {
            self.set(known.name, None, false)?;
        }
        Ok(())
    }

    /// The number of changes to restore: a savepoint's mark.
    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    /// The transaction has ended, or is rolled back to a mark.
    pub fn end(&mut self, committed: bool, mark: usize) {
        if self.undo.len() <= mark {
            return;
        }
        let mut undo = self.undo.split_off(mark);
        // Settings that a later SET has decided.
        let mut decided = Vec::new();
        while let Some(change) = undo.pop() {
            if committed && !change.local {
                decided.push(change.setting);
            }
            if committed && decided.contains(&change.setting) {
                continue;
            }
            // A reload may have changed values meanwhile that no SET of this session decided.
            let before = match change.source {
                Source::Session => change.before,
                Source::Server | Source::Client => self.texts.initial[change.setting].clone(),
            };
            if let Ok(value) = self.apply(change.setting, &before) {
                self.put(change.setting, value);
                self.texts_mut().sources[change.setting] = change.source;
            }
        }
    }

    /// Checks a value, puts it into effect and returns its canonical spelling.
    fn apply(&mut self, at: usize, value: &str) -> Result<String, SqlError> {
        let known = &KNOWN[at];
        let mut proper = spelled(known, value)?;
        match known.name {
            "TimeZone" => proper = self.set_time_zone(value)?,
            "DateStyle" => proper = self.set_date_style(value).ok_or_else(|| invalid(known.name, value))?,
            "IntervalStyle" => {
                self.formats.interval_style = match proper.as_str() {
                    "postgres_verbose" => IntervalStyle::PostgresVerbose,
                    "sql_standard" => IntervalStyle::SqlStandard,
                    "iso_8601" => IntervalStyle::Iso8601,
                    _ => IntervalStyle::Postgres,
                }
            }
            "bytea_output" => self.formats.bytea_escape = proper == "escape",
            "extra_float_digits" => self.formats.extra_float_digits = proper.parse().unwrap_or(1),
            "search_path" => {
                let names = identifier::split(value, ',')
                    .ok_or_else(|| invalid(known.name, value).with_detail("List syntax is invalid."))?;
                self.set_search_path(names);
            }
            "statement_timeout" => self.statement_timeout = limit(&proper),
            "lock_timeout" => self.limits.set_lock_timeout(limit(&proper)),
            "deadlock_timeout" => {
                let time = limit(&proper).ok_or_else(no_deadlock_timeout)?;
                self.limits.set_deadlock_timeout((proper != known.default).then_some(time));
            }
            "idle_in_transaction_session_timeout" => self.idle_transaction_timeout = limit(&proper),
            "idle_session_timeout" => self.idle_timeout = limit(&proper),
            "transaction_timeout" => self.transaction_timeout = limit(&proper),
            "log_min_duration_statement" => {
                self.log_min_duration = parse_time(&proper).map(Duration::from_millis);
            }
            "log_min_messages" => self.logs_errors = logs_errors(&mut proper),
            "log_min_error_statement" => self.logs_failed_statements = logs_errors(&mut proper),
            "work_mem" | "maintenance_work_mem" | "statement_memory" => self.set_memory(known.name, value)?,
            name if of_planner(name) => self.set_method(name, &proper),
            "plan_cache_mode" => self.generic_plans = proper == "force_generic_plan",
            "synchronous_commit" => self.synchronous = proper != "off",
            "client_min_messages" => {
                self.least = least_loud(&mut proper);
            }
            "default_transaction_isolation" => {
                self.defaults.isolation = match proper.as_str() {
                    "serializable" => return Err(SqlError::unsupported("isolation level SERIALIZABLE")),
                    "repeatable read" => Isolation::RepeatableRead,
                    "read uncommitted" => Isolation::ReadUncommitted,
                    _ => Isolation::ReadCommitted,
                }
            }
            "default_transaction_read_only" => self.defaults.read_only = proper == "on",
            "default_transaction_deferrable" => self.defaults.deferrable = proper == "on",
            "client_encoding" => {
                let plain: String = value.chars().filter(|c| c.is_alphanumeric()).collect();
                if !matches!(plain.to_ascii_lowercase().as_str(), "utf8" | "unicode") {
                    return Err(invalid(known.name, value));
                }
                "UTF8".clone_into(&mut proper);
            }
            "role" | "session_authorization" => self.check_role(known.name, &proper)?,
            "standard_conforming_strings" if proper == "off" => {
                return Err(SqlError::unsupported("standard_conforming_strings = off"));
            }
            _ => {}
        }
        Ok(proper)
    }

    /// Puts a time zone into effect and gives its proper name.
    fn set_time_zone(&mut self, value: &str) -> Result<String, SqlError> {
        let zone = time_zone(value).map_err(|why| {
            let error = invalid("TimeZone", value);
            if let Some(why) = why { error.with_detail(why) } else { error }
        })?;
        let proper = zone.name().to_owned();
        self.formats.time_zone = zone;
        Ok(proper)
    }

    fn set_memory(&mut self, name: &'static str, value: &str) -> Result<(), SqlError> {
        let bytes = parse_memory(name, value)? << 10;
        match name {
            "work_mem" => self.wanted.0 = bytes as usize,
            "maintenance_work_mem" => self.wanted.1 = bytes as usize,
            _ => self.statement_memory = bytes,
        }
        self.bound_memory();
        Ok(())
    }

    /// Puts `statement_memory` into effect. Operators keep no more than a share of it, however much
    /// `work_mem` allows.
    fn bound_memory(&mut self) {
        self.interrupt.set_memory_limit(i64::try_from(self.statement_memory).unwrap_or(i64::MAX));
        let most = self.statement_memory.min(default_statement_memory());
        self.work_mem = memory::within(self.wanted.0, most);
        self.maintenance_work_mem = memory::within(self.wanted.1, most);
        self.methods.work_mem = self.work_mem;
        self.find_path_key();
    }

    fn set_date_style(&mut self, value: &str) -> Option<String> {
        let (mut style, mut order) = (self.formats.date_style, self.formats.date_order);
        if value.trim().eq_ignore_ascii_case("german") {
            order = DateOrder::Dmy;
        }
        for word in value.split(',') {
            match word.trim().to_ascii_lowercase().as_str() {
                "iso" => style = DateStyle::Iso,
                "sql" => style = DateStyle::Sql,
                "postgres" => style = DateStyle::Postgres,
                "german" => style = DateStyle::German,
                "mdy" | "us" | "noneuro" | "noneuropean" => order = DateOrder::Mdy,
                "dmy" | "euro" | "european" => order = DateOrder::Dmy,
                "ymd" => order = DateOrder::Ymd,
                "default" => (style, order) = (DateStyle::Iso, DateOrder::Mdy),
                _ => return None,
            }
        }
        (self.formats.date_style, self.formats.date_order) = (style, order);
        let style = match style {
            DateStyle::Iso => "ISO",
            DateStyle::Sql => "SQL",
            DateStyle::Postgres => "Postgres",
            DateStyle::German => "German",
        };
        let order = match order {
            DateOrder::Mdy => "MDY",
            DateOrder::Dmy => "DMY",
            DateOrder::Ymd => "YMD",
        };
        Some(format!("{style}, {order}"))
    }
}

#[cold]
fn no_deadlock_timeout() -> SqlError {
    let message =
        "0 ms is outside the valid range for parameter \"deadlock_timeout\" (1 ms .. 2147483647 ms)";
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Whether a least severity of the log lets errors through. Replaces the value by its canonical
/// spelling.
fn logs_errors(value: &mut String) -> bool {
    if value == "debug" {
        "debug2".clone_into(value);
    }
    !matches!(value.as_str(), "log" | "fatal" | "panic")
}

/// The lowest severity that a value of `client_min_messages` lets through, or `None` for errors
/// only. Replaces the value by its canonical spelling.
fn least_loud(value: &mut String) -> Option<Severity> {
    if value == "debug" {
        "debug2".clone_into(value);
    }
    match value.as_str() {
        "log" => Some(Severity::Log),
        "info" | "notice" => Some(Severity::Notice),
        "warning" => Some(Severity::Warning),
        "error" => None,
        _ => Some(Severity::Debug),
    }
}

/// The time zone for a name, an interval or an offset in hours. The error is PostgreSQL's detail,
/// if it has one.
fn time_zone(value: &str) -> Result<Zone, Option<&'static str>> {
    const TOO_FAR: Option<&str> = Some("UTC timezone offset is out of range.");
    if value.get(..8).is_some_and(|word| word.eq_ignore_ascii_case("interval")) {
        let quoted = value[8..].trim_start().strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
        let text = quoted.ok_or(None)?;
        let span = Interval::parse(text, interval::fields::ALL, IntervalStyle::Postgres).map_err(|_| None)?;
        if span.months != 0 {
            return Err(Some("Cannot specify months in time zone interval."));
        }
        if span.days != 0 {
            return Err(Some("Cannot specify days in time zone interval."));
        }
        return Zone::constant(span.micros / datetime::SECOND).ok_or(TOO_FAR);
    }
    match value.parse::<f64>() {
        Ok(hours) if hours.abs() < 1e6 => Zone::constant((hours * 3600.0) as i64).ok_or(TOO_FAR),
        Ok(_) => Err(TOO_FAR),
        Err(_) => Zone::named(value).ok_or(None),
    }
}
