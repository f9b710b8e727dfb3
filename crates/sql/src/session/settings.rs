//! A session's settings: SET, SHOW, RESET, SET LOCAL.
//!
//! Every setting PostgreSQL's clients commonly set is known; those that mean something here have a typed field, the
//! others are kept as text. A transaction remembers what to put back: after SET when it rolls back, after SET LOCAL always.

use std::time::Duration;

use jiff::tz::TimeZone;

use crate::error::{SqlError, SqlState};
use crate::plan::{Isolation, TransactionModes};
use crate::types::Settings;
use crate::types::settings::{DateOrder, DateStyle, IntervalStyle};

/// How a setting's value is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Bool,
    Integer(i64, i64),
    /// Milliseconds, with an optional unit.
    Time,
    /// Memory in kilobytes, at least 64, with an optional unit.
    Memory,
    Words(&'static [&'static str]),
    /// Cannot be changed.
    Fixed,
}

/// A setting that is known.
struct Known {
    name: &'static str,
    kind: Kind,
    default: &'static str,
    /// Clients are told of changes.
    reported: bool,
}

const fn known(name: &'static str, kind: Kind, default: &'static str, reported: bool) -> Known {
    Known { name, kind, default, reported }
}

const LEVELS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "notice", "info", "warning", "error",
    "fatal",
];

/// All settings, in SHOW ALL's order.
const KNOWN: &[Known] = &[
    known("application_name", Kind::Text, "", true),
    known("autovacuum", Kind::Fixed, "on", false),
    known("bytea_output", Kind::Words(&["hex", "escape"]), "hex", false),
    known("check_function_bodies", Kind::Bool, "on", false),
    known("client_encoding", Kind::Text, "UTF8", true),
    known("client_min_messages", Kind::Words(LEVELS), "notice", false),
    known("DateStyle", Kind::Text, "ISO, MDY", true),
    known("default_table_access_method", Kind::Text, "heap", false),
    known("default_tablespace", Kind::Text, "", false),
    known(
        "default_transaction_isolation",
        Kind::Words(&["serializable", "repeatable read", "read committed", "read uncommitted"]),
        "read committed",
        false,
    ),
    known("default_transaction_read_only", Kind::Bool, "off", true),
    known("enable_hashjoin", Kind::Bool, "on", false),
    known("enable_indexscan", Kind::Bool, "on", false),
    known("enable_mergejoin", Kind::Bool, "on", false),
    known("enable_nestloop", Kind::Bool, "on", false),
    known("enable_seqscan", Kind::Bool, "on", false),
    known("extra_float_digits", Kind::Integer(-15, 3), "1", false),
    known("idle_in_transaction_session_timeout", Kind::Time, "0", false),
    known("idle_session_timeout", Kind::Time, "0", false),
    known("in_hot_standby", Kind::Fixed, "off", true),
    known("integer_datetimes", Kind::Fixed, "on", true),
    known(
        "IntervalStyle",
        Kind::Words(&["postgres", "postgres_verbose", "sql_standard", "iso_8601"]),
        "postgres",
        true,
    ),
    known("is_superuser", Kind::Fixed, "on", true),
    known("jit", Kind::Bool, "off", false),
    known("lc_messages", Kind::Text, "C", false),
    known("lock_timeout", Kind::Time, "0", false),
    known("log_statement", Kind::Text, "none", false),
    known("maintenance_work_mem", Kind::Memory, "64MB", false),
    known("max_connections", Kind::Fixed, "", false),
    known("max_identifier_length", Kind::Fixed, "63", false),
    known("max_index_keys", Kind::Fixed, "32", false),
    known("max_parallel_workers_per_gather", Kind::Integer(0, 1024), "0", false),
    known("plan_cache_mode", Kind::Text, "auto", false),
    known("random_page_cost", Kind::Text, "4", false),
    known("role", Kind::Text, "none", false),
    known("row_security", Kind::Bool, "on", false),
    known("search_path", Kind::Text, "\"$user\", public", true),
    known("server_encoding", Kind::Fixed, "UTF8", true),
    known("server_version", Kind::Fixed, "18.0", true),
    known("server_version_num", Kind::Fixed, "180000", false),
    known("session_authorization", Kind::Text, "", true),
    known("standard_conforming_strings", Kind::Bool, "on", true),
    known("statement_timeout", Kind::Time, "0", false),
    known(
        "synchronous_commit",
        Kind::Words(&["on", "off", "local", "remote_write", "remote_apply"]),
        "on",
        false,
    ),
    known("TimeZone", Kind::Text, "UTC", true),
    known("transaction_isolation", Kind::Text, "read committed", false),
    known("transaction_read_only", Kind::Bool, "off", false),
    known("work_mem", Kind::Memory, "4MB", false),
    known("xmloption", Kind::Text, "content", false),
];

/// What the running transaction has to put back.
struct Undo {
    setting: usize,
    before: String,
    /// Put back at commit too.
    local: bool,
}

/// A session's settings.
pub(crate) struct SettingsTable {
    values: Vec<String>,
    /// What RESET goes back to: defaults and the startup packet.
    initial: Vec<String>,
    undo: Vec<Undo>,
    /// The settings clients follow that have changed since they were last told, and the values they were told.
    changed: Vec<(usize, String)>,
    /// The settings values' text depends on.
    pub formats: Settings,
    /// search_path as schema names.
    pub search_path: Vec<String>,
    /// Tells plans made under different search paths apart.
    pub path_key: u64,
    pub statement_timeout: Option<Duration>,
    pub lock_timeout: Duration,
    pub idle_transaction_timeout: Option<Duration>,
    pub idle_timeout: Option<Duration>,
    pub synchronous: bool,
    pub default_isolation: Isolation,
    pub default_read_only: bool,
    /// Bytes an operator keeps in memory before it uses temporary pages.
    pub work_mem: usize,
    /// As `work_mem`, for keys and indexes being built.
    pub maintenance_work_mem: usize,
    user: String,
}

fn position(name: &str) -> Option<usize> {
    KNOWN.iter().position(|known| known.name.eq_ignore_ascii_case(name))
}

fn unknown(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("unrecognized configuration parameter \"{name}\""))
}

/// What setting `transaction_isolation` or `transaction_read_only` asks of the running transaction; None for other names.
pub(super) fn transaction_modes(
    name: &str,
    value: Option<&str>,
) -> Result<Option<TransactionModes>, SqlError> {
    let mut modes = TransactionModes::default();
    let name = SettingsTable::proper_name(name);
    if !matches!(name, "transaction_isolation" | "transaction_read_only") {
        return Ok(None);
    }
    let Some(value) = value else {
        let message = format!("parameter \"{name}\" cannot be reset");
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    };
    if name == "transaction_read_only" {
        modes.read_only = Some(parse_bool(value).ok_or_else(|| no_boolean(name))?);
    } else {
        modes.isolation = Some(match value.trim().to_ascii_lowercase().as_str() {
            "serializable" => Isolation::Serializable,
            "repeatable read" => Isolation::RepeatableRead,
            "read committed" => Isolation::ReadCommitted,
            "read uncommitted" => Isolation::ReadUncommitted,
            _ => return Err(invalid(name, value)),
        });
    }
    Ok(Some(modes))
}

fn no_boolean(name: &str) -> SqlError {
    let message = format!("parameter \"{name}\" requires a Boolean value");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn invalid(name: &str, value: &str) -> SqlError {
    let message = format!("invalid value for parameter \"{name}\": \"{value}\"");
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

impl SettingsTable {
    /// The defaults, for a user of a server that lets so many in.
    pub fn new(user: &str, max_connections: usize) -> SettingsTable {
        let own = |known: &Known| match known.name {
            "session_authorization" => user.to_owned(),
            "max_connections" => max_connections.to_string(),
            _ => known.default.to_owned(),
        };
        let values: Vec<String> = KNOWN.iter().map(own).collect();
        let mut table = SettingsTable {
            initial: values.clone(),
            values,
            undo: Vec::new(),
            changed: Vec::new(),
            formats: Settings::default(),
            search_path: Vec::new(),
            path_key: 0,
            statement_timeout: None,
            lock_timeout: Duration::ZERO,
            idle_transaction_timeout: None,
            idle_timeout: None,
            synchronous: true,
            default_isolation: Isolation::ReadCommitted,
            default_read_only: false,
            work_mem: 4 << 20,
            maintenance_work_mem: 64 << 20,
            user: user.to_owned(),
        };
        table.set_search_path("\"$user\", public");
        table
    }

    /// A setting's value.
    pub fn get(&self, name: &str) -> Result<&str, SqlError> {
        position(name).map(|at| self.values[at].as_str()).ok_or_else(|| unknown(name))
    }

    /// A setting's name as PostgreSQL writes it.
    pub fn proper_name(name: &str) -> &str {
        position(name).map_or(name, |at| KNOWN[at].name)
    }

    /// Name and value of every setting.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KNOWN.iter().zip(&self.values).map(|(known, value)| (known.name, value.as_str()))
    }

    /// The settings clients are told of.
    pub fn reported(&self) -> impl Iterator<Item = (&'static str, &str)> {
        KNOWN
            .iter()
            .zip(&self.values)
            .filter(|(known, _)| known.reported)
            .map(|(k, value)| (k.name, value.as_str()))
    }

    /// What the client is to be told: names and values of settings that changed since it was last told.
    #[inline]
    pub fn take_changed(&mut self) -> Vec<(&'static str, String)> {
        if self.changed.is_empty() { Vec::new() } else { self.told() }
    }

    #[cold]
    fn told(&mut self) -> Vec<(&'static str, String)> {
        let changed = std::mem::take(&mut self.changed);
        let now = |(at, told): (usize, String)| {
            (self.values[at] != told).then(|| (KNOWN[at].name, self.values[at].clone()))
        };
        changed.into_iter().filter_map(now).collect()
    }

    /// Puts a value in place; the one before.
    fn put(&mut self, at: usize, value: String) -> String {
        let before = std::mem::replace(&mut self.values[at], value);
        if KNOWN[at].reported && self.changed.iter().all(|(other, _)| *other != at) {
            self.changed.push((at, before.clone()));
        }
        before
    }

    /// Sets a setting.
    pub fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<(), SqlError> {
        let at = position(name).ok_or_else(|| unknown(name))?;
        let known = &KNOWN[at];
        if known.kind == Kind::Fixed {
            let message = format!("parameter \"{}\" cannot be changed", known.name);
            return Err(SqlError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message));
        }
        let wanted = value.map_or_else(|| self.initial[at].clone(), str::to_owned);
        let value = self.apply(at, &wanted)?;
        let before = self.put(at, value);
        self.undo.push(Undo { setting: at, before, local });
        Ok(())
    }

    /// Sets a setting from the startup packet: RESET goes back to it. The client is told of all settings after that.
    pub fn set_initial(&mut self, name: &str, value: &str) -> Result<(), SqlError> {
        self.set(name, Some(value), false)?;
        if let Some(at) = position(name) {
            self.initial[at] = self.values[at].clone();
        }
        self.undo.clear();
        self.changed.clear();
        Ok(())
    }

    /// Resets everything.
    pub fn reset_all(&mut self) -> Result<(), SqlError> {
        for known in
            KNOWN.iter().filter(|known| known.kind != Kind::Fixed && !known.name.starts_with("transaction_"))
        {
            self.set(known.name, None, false)?;
        }
        Ok(())
    }

    /// How many changes there are to put back: a savepoint's mark.
    pub fn mark(&self) -> usize {
        self.undo.len()
    }

    /// The transaction has ended, or is rolled back to a mark.
    pub fn end(&mut self, committed: bool, mark: usize) {
        if self.undo.len() <= mark {
            return;
        }
        let mut undo = self.undo.split_off(mark);
        // Settings that a SET after it decides.
        let mut decided = Vec::new();
        while let Some(change) = undo.pop() {
            if committed && !change.local {
                decided.push(change.setting);
            }
            if committed && decided.contains(&change.setting) {
                continue;
            }
            if let Ok(value) = self.apply(change.setting, &change.before) {
                self.put(change.setting, value);
            }
        }
    }

    /// Checks a value, puts it into effect and gives its proper spelling.
    fn apply(&mut self, at: usize, value: &str) -> Result<String, SqlError> {
        let known = &KNOWN[at];
        let mut proper = match known.kind {
            Kind::Text | Kind::Fixed => value.to_owned(),
            Kind::Bool => match parse_bool(value) {
                Some(true) => "on".to_owned(),
                Some(false) => "off".to_owned(),
                None => return Err(no_boolean(known.name)),
            },
            Kind::Integer(low, high) => match value.trim().parse::<i64>() {
                Ok(number) if (low..=high).contains(&number) => number.to_string(),
                Ok(number) => {
                    let message = format!(
                        "{number} is outside the valid range for parameter \"{}\" ({low} .. {high})",
                        known.name
                    );
                    return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
                }
                Err(_) => return Err(invalid(known.name, value)),
            },
            Kind::Time => show_time(parse_time(value).ok_or_else(|| invalid(known.name, value))?),
            Kind::Memory => show_memory(parse_memory(known.name, value)?),
            Kind::Words(words) => {
                let lower = value.trim().to_ascii_lowercase();
                let lower = match (known.name, parse_bool(&lower)) {
                    ("synchronous_commit", Some(on)) => if on { "on" } else { "off" }.to_owned(),
                    _ => lower,
                };
                if !words.contains(&lower.as_str()) {
                    let hint = format!("Available values: {}.", words.join(", "));
                    return Err(invalid(known.name, value).with_hint(hint));
                }
                lower
            }
        };
        match known.name {
            "TimeZone" => {
                let zone = time_zone(value).ok_or_else(|| invalid(known.name, value))?;
                self.formats.time_zone = zone;
                self.formats.time_zone_name.clone_from(&proper);
            }
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
            "search_path" => self.set_search_path(value),
            "statement_timeout" => self.statement_timeout = limit(&proper),
            "lock_timeout" => self.lock_timeout = limit(&proper).unwrap_or_default(),
            "idle_in_transaction_session_timeout" => self.idle_transaction_timeout = limit(&proper),
            "idle_session_timeout" => self.idle_timeout = limit(&proper),
            "work_mem" | "maintenance_work_mem" => {
                let bytes = usize::try_from(parse_memory(known.name, value)? << 10).unwrap_or(usize::MAX);
                let kept = if known.name == "work_mem" {
                    &mut self.work_mem
                } else {
                    &mut self.maintenance_work_mem
                };
                *kept = bytes;
            }
            "synchronous_commit" => self.synchronous = proper != "off",
            "default_transaction_isolation" => {
                self.default_isolation = match proper.as_str() {
                    "serializable" => return Err(SqlError::unsupported("isolation level SERIALIZABLE")),
                    "repeatable read" => Isolation::RepeatableRead,
                    _ => Isolation::ReadCommitted,
                }
            }
            "default_transaction_read_only" => self.default_read_only = proper == "on",
            "client_encoding" => {
                let plain: String = value.chars().filter(|c| c.is_alphanumeric()).collect();
                if !matches!(plain.to_ascii_lowercase().as_str(), "utf8" | "unicode") {
                    return Err(invalid(known.name, value));
                }
                "UTF8".clone_into(&mut proper);
            }
            "role" | "session_authorization"
                if proper != self.user && (known.name != "role" || proper != "none") =>
            {
                let message = format!("role \"{proper}\" does not exist");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
            "standard_conforming_strings" if proper == "off" => {
                return Err(SqlError::unsupported("standard_conforming_strings = off"));
            }
            _ => {}
        }
        Ok(proper)
    }

    fn set_search_path(&mut self, value: &str) {
        use std::hash::{DefaultHasher, Hash, Hasher};
        self.search_path.clear();
        for name in value.split(',') {
            let name = name.trim();
            let name = match name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) {
                Some(quoted) => quoted.replace("\"\"", "\""),
                None => name.to_ascii_lowercase(),
            };
            match name.as_str() {
                "" => {}
                "$user" => self.search_path.push(self.user.clone()),
                _ => self.search_path.push(name),
            }
        }
        let mut hasher = DefaultHasher::new();
        self.search_path.hash(&mut hasher);
        self.path_key = hasher.finish();
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

/// The time zone of a name or an offset in hours.
fn time_zone(value: &str) -> Option<TimeZone> {
    let value = value.trim();
    if value.eq_ignore_ascii_case("utc")
        || value.eq_ignore_ascii_case("gmt")
        || value.eq_ignore_ascii_case("z")
    {
        return Some(TimeZone::UTC);
    }
    if let Ok(hours) = value.parse::<f64>() {
        let seconds = (hours * 3600.0) as i32;
        return jiff::tz::Offset::from_seconds(seconds).ok().map(TimeZone::fixed);
    }
    TimeZone::get(value).ok()
}

fn parse_bool(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "1" | "t" | "y" => Some(true),
        "off" | "false" | "no" | "0" | "f" | "n" => Some(false),
        _ => None,
    }
}

/// Milliseconds of "5s", "100ms", "2min", "1h", "1d" or a plain number.
fn parse_time(value: &str) -> Option<u64> {
    let value = value.trim();
    let split = value.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(value.len());
    let (number, unit) = value.split_at(split);
    let number: f64 = number.parse().ok()?;
    let factor = match unit.trim() {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1e3,
        "min" => 60e3,
        "h" => 3600e3,
        "d" => 86400e3,
        _ => return None,
    };
    let milliseconds = (number * factor).round();
    (milliseconds <= f64::from(i32::MAX)).then_some(milliseconds as u64)
}

/// A time as SHOW gives it: in the largest unit without a fraction.
fn show_time(milliseconds: u64) -> String {
    for (unit, factor) in [("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)] {
        if milliseconds > 0 && milliseconds.is_multiple_of(factor) {
            return format!("{}{unit}", milliseconds / factor);
        }
    }
    if milliseconds == 0 { "0".to_owned() } else { format!("{milliseconds}ms") }
}

/// Kilobytes of "64kB", "4MB", "1.5GB" or a plain number.
fn parse_memory(name: &str, value: &str) -> Result<u64, SqlError> {
    const LEAST: f64 = 64.0;
    const MOST: f64 = i32::MAX as f64;
    let text = value.trim();
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '-').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim() {
        "B" => Some(1.0 / 1024.0),
        "" | "kB" => Some(1.0),
        "MB" => Some(1024.0),
        "GB" => Some(1024.0 * 1024.0),
        "TB" => Some(1024.0 * 1024.0 * 1024.0),
        _ => None,
    };
    let (Ok(number), Some(factor)) = (number.parse::<f64>(), factor) else {
        let error = invalid(name, value);
        // Without a number there is no unit to speak of.
        return Err(match number.is_empty() {
            true => error,
            false => error
                .with_hint("Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\"."),
        });
    };
    let kilobytes = (number * factor).round();
    if kilobytes > MOST {
        return Err(invalid(name, value).with_hint("Value exceeds integer range."));
    }
    if !(LEAST..=MOST).contains(&kilobytes) {
        let message = format!(
            "{kilobytes} kB is outside the valid range for parameter \"{name}\" ({LEAST} kB .. {MOST} kB)"
        );
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(kilobytes as u64)
}

/// Memory as SHOW gives it: in the largest unit without a fraction.
fn show_memory(kilobytes: u64) -> String {
    for (unit, factor) in [("TB", 1 << 30), ("GB", 1 << 20), ("MB", 1 << 10)] {
        if kilobytes.is_multiple_of(factor) {
            return format!("{}{unit}", kilobytes / factor);
        }
    }
    format!("{kilobytes}kB")
}

fn limit(shown: &str) -> Option<Duration> {
    parse_time(shown).filter(|milliseconds| *milliseconds > 0).map(Duration::from_millis)
}
