//! The settings there are, and how each one's value is read.
//!
//! What must hold:
//!
//! 1. [`KNOWN`] is in the order of SHOW ALL. A setting's index in it is the setting's number in the
//!    lists of texts and sources, and in the undo list.
//! 2. Names are found without regard to case, so no two differ in case alone.
//! 3. [`spelled`] accepts its own results: a rollback and RESET set values that it has spelled.
//! 4. [`Kind::Text`] is not checked here. A setting of that kind with an effect is checked where
//!    its typed field is set.

use std::fmt::Write as _;

use super::amounts::parse_memory;
use super::{invalid, no_boolean};
use crate::units::{parse_bool, parse_time, show_memory, show_time};
use values::error::{SqlError, SqlState};
use values::identifier::truncate_name;

/// How a setting's value is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// Text of at most 63 bytes, which are printed in ASCII; longer ones are cut.
    Name,
    Bool,
    Integer(i64, i64),
    /// Milliseconds, with an optional unit.
    Time,
    /// The same, or -1 for never.
    TimeOrNever,
    /// Memory in kilobytes, at least 64, with an optional unit.
    Memory,
    Words(&'static [&'static str]),
    /// Cannot be changed.
    Fixed,
    /// A read-only setting ([`crate::shared::read_only::ReadOnlySettings`]), unknown if that list
    /// lacks it. [`Change`] says when PostgreSQL would let it change.
    ReadOnly(Change),
}

/// When PostgreSQL lets a setting be changed that can't be changed by SET.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Never,
    AtStart,
    ByFile,
}

/// A setting that is known.
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) default: &'static str,
    /// The server reports changes to clients.
    pub(super) reported: bool,
}

impl Known {
    /// The value where nobody sets it.
    pub(super) fn default_for(&self, user: &str) -> String {
        match self.name {
            "session_authorization" => user.to_owned(),
            "statement_memory" => show_memory(default_statement_memory() >> 10),
            _ => self.default.to_owned(),
        }
    }
}

const fn known(name: &'static str, kind: Kind, default: &'static str, reported: bool) -> Known {
    Known { name, kind, default, reported }
}

/// Levels of the server's log, the least urgent first.
const LOG_LEVELS: &[&str] = &[
    "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "info", "notice", "warning", "error", "log",
    "fatal", "panic",
];
const LEVELS: &[&str] =
    &["debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "notice", "warning", "error"];
/// Words that a setting accepts but does not list.
const UNOFFERED: &[&str] = &["debug", "info"];

/// All settings, in SHOW ALL's order.
pub(super) const KNOWN: &[Known] = &[
    known("application_name", Kind::Name, "", true),
    known("authentication_timeout", Kind::ReadOnly(Change::ByFile), "", false),
    known("autovacuum", Kind::Fixed, "on", false),
    known("block_size", Kind::ReadOnly(Change::Never), "", false),
    known("buffer_memory", Kind::ReadOnly(Change::Never), "", false),
    known("bytea_output", Kind::Words(&["escape", "hex"]), "hex", false),
    known("check_function_bodies", Kind::Bool, "on", false),
    known("client_encoding", Kind::Text, "UTF8", true),
    known("client_min_messages", Kind::Words(LEVELS), "notice", false),
    known("data_checksums", Kind::ReadOnly(Change::Never), "", false),
    known("data_directory", Kind::ReadOnly(Change::AtStart), "", false),
    known("DateStyle", Kind::Text, "ISO, MDY", true),
    known("deadlock_timeout", Kind::Time, "10ms", false),
    known("default_statistics_target", Kind::Integer(1, 10_000), "100", false),
    known("default_table_access_method", Kind::Words(&["heap"]), "heap", false),
    known("default_tablespace", Kind::Text, "", false),
    known("default_transaction_deferrable", Kind::Bool, "off", false),
    known(
        "default_transaction_isolation",
        Kind::Words(&["serializable", "repeatable read", "read committed", "read uncommitted"]),
        "read committed",
        false,
    ),
    known("default_transaction_read_only", Kind::Bool, "off", true),
    known("enable_async_append", Kind::Bool, "on", false),
    known("enable_bitmapscan", Kind::Bool, "on", false),
    known("enable_distinct_reordering", Kind::Bool, "on", false),
    known("enable_gathermerge", Kind::Bool, "on", false),
    known("enable_group_by_reordering", Kind::Bool, "on", false),
    known("enable_hashagg", Kind::Bool, "on", false),
    known("enable_hashjoin", Kind::Bool, "on", false),
    known("enable_incremental_sort", Kind::Bool, "on", false),
    known("enable_indexonlyscan", Kind::Bool, "on", false),
    known("enable_indexscan", Kind::Bool, "on", false),
    known("enable_material", Kind::Bool, "on", false),
    known("enable_memoize", Kind::Bool, "on", false),
    known("enable_mergejoin", Kind::Bool, "on", false),
    known("enable_nestloop", Kind::Bool, "on", false),
    known("enable_parallel_append", Kind::Bool, "on", false),
    known("enable_parallel_hash", Kind::Bool, "on", false),
    known("enable_partition_pruning", Kind::Bool, "on", false),
    known("enable_partitionwise_aggregate", Kind::Bool, "off", false),
    known("enable_partitionwise_join", Kind::Bool, "off", false),
    known("enable_presorted_aggregate", Kind::Bool, "on", false),
    known("enable_self_join_elimination", Kind::Bool, "on", false),
    known("enable_seqscan", Kind::Bool, "on", false),
    known("enable_sort", Kind::Bool, "on", false),
    known("enable_tidscan", Kind::Bool, "on", false),
    known("extra_float_digits", Kind::Integer(-15, 3), "1", false),
    known("fsync", Kind::ReadOnly(Change::ByFile), "", false),
    known("full_page_writes", Kind::ReadOnly(Change::ByFile), "", false),
    known("huge_pages", Kind::ReadOnly(Change::AtStart), "", false),
    known("huge_pages_status", Kind::ReadOnly(Change::Never), "", false),
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
    known("join_collapse_limit", Kind::Integer(1, i32::MAX as i64), "100", false),
    known("lc_messages", Kind::Text, "C", false),
    known("listen_addresses", Kind::ReadOnly(Change::AtStart), "", false),
    known("lock_timeout", Kind::Time, "0", false),
    known("log_min_duration_statement", Kind::TimeOrNever, "-1", false),
    known("log_min_error_statement", Kind::Words(LOG_LEVELS), "error", false),
    known("log_min_messages", Kind::Words(LOG_LEVELS), "warning", false),
    known("log_statement", Kind::Text, "none", false),
    known("maintenance_work_mem", Kind::Memory, "64MB", false),
    known("max_connections", Kind::ReadOnly(Change::AtStart), "", false),
    known("max_identifier_length", Kind::Fixed, "63", false),
    known("max_index_keys", Kind::Fixed, "32", false),
    known("max_parallel_workers_per_gather", Kind::Integer(0, 1024), "0", false),
    known("max_wal_size", Kind::ReadOnly(Change::ByFile), "", false),
    known(
        "plan_cache_mode",
        Kind::Words(&["auto", "force_custom_plan", "force_generic_plan"]),
        "auto",
        false,
    ),
    known("port", Kind::ReadOnly(Change::AtStart), "", false),
    known("random_page_cost", Kind::Text, "4", false),
    known("role", Kind::Text, "none", false),
    known("row_security", Kind::Bool, "on", false),
    known("search_path", Kind::Text, "\"$user\", public", true),
    known("server_encoding", Kind::Fixed, "UTF8", true),
    known("server_version", Kind::Fixed, "18.0", true),
    known("server_version_num", Kind::Fixed, "180000", false),
    known("session_authorization", Kind::Text, "", true),
    known("shared_buffers", Kind::ReadOnly(Change::AtStart), "", false),
    known("ssl", Kind::ReadOnly(Change::ByFile), "", false),
    known("standard_conforming_strings", Kind::Bool, "on", true),
    known("statement_memory", Kind::Memory, "", false),
    known("statement_timeout", Kind::Time, "0", false),
    known("superuser_reserved_connections", Kind::ReadOnly(Change::AtStart), "", false),
    known(
        "synchronous_commit",
        Kind::Words(&["local", "remote_write", "remote_apply", "on", "off"]),
        "on",
        false,
    ),
    known("TimeZone", Kind::Text, "UTC", true),
    known("track_activities", Kind::ReadOnly(Change::ByFile), "", false),
    known("track_activity_query_size", Kind::ReadOnly(Change::AtStart), "", false),
    known("transaction_deferrable", Kind::Bool, "off", false),
    known("transaction_isolation", Kind::Text, "read committed", false),
    known("transaction_read_only", Kind::Bool, "off", false),
    known("transaction_timeout", Kind::Time, "0", false),
    known("unix_socket_directories", Kind::ReadOnly(Change::AtStart), "", false),
    known("wal_segment_size", Kind::ReadOnly(Change::Never), "", false),
    known("work_mem", Kind::Memory, "4MB", false),
    known("xmloption", Kind::Text, "content", false),
];

/// Half of the memory that all sessions may hold together, in whole kilobytes. Without such a
/// bound, the largest value that the setting takes.
pub(super) fn default_statement_memory() -> u64 {
    let half = u64::try_from(runtime::account::limit() / 2).unwrap_or(0);
    half.clamp(64 << 10, (i32::MAX as u64) << 10) & !1023
}

pub(super) fn position(name: &str) -> Option<usize> {
    KNOWN.iter().position(|known| known.name.eq_ignore_ascii_case(name))
}

/// A value in its setting's canonical spelling, for kinds that have one.
pub(super) fn spelled(known: &Known, value: &str) -> Result<String, SqlError> {
    Ok(match known.kind {
        Kind::Text | Kind::Fixed | Kind::ReadOnly(_) => value.to_owned(),
        Kind::Name => name(value),
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
        Kind::TimeOrNever if value.trim() == "-1" => "-1".to_owned(),
        Kind::Time | Kind::TimeOrNever => {
            show_time(parse_time(value).ok_or_else(|| invalid(known.name, value))?)
        }
        Kind::Memory => show_memory(parse_memory(known.name, value)?),
        Kind::Words(words) => {
            let lower = value.trim().to_ascii_lowercase();
            let lower = match (known.name, parse_bool(&lower)) {
                ("synchronous_commit", Some(on)) => if on { "on" } else { "off" }.to_owned(),
                _ => lower,
            };
            if !words.contains(&lower.as_str()) {
                let hint = format!("Available values: {}.", offered(words).join(", "));
                return Err(invalid(known.name, value).with_hint(hint));
            }
            lower
        }
    })
}

/// A name as PostgreSQL keeps it: cut behind a whole character, other bytes than those of printable
/// ASCII as `\xHH`.
fn name(value: &str) -> String {
    let mut shown = String::new();
    for byte in truncate_name(value).bytes() {
        match byte {
            b' '..=b'~' => shown.push(byte as char),
            _ => write!(shown, "\\x{byte:02x}").expect("a String takes everything"),
        }
    }
    shown
}

/// The words of a setting that errors and `pg_settings` name.
pub(super) fn offered(words: &[&'static str]) -> Vec<&'static str> {
    let is_log = words == LOG_LEVELS;
    let is_offered = |word: &&&str| !UNOFFERED.contains(word) || is_log && **word == "info";
    words.iter().filter(is_offered).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_cut_behind_a_character_and_shown_in_ascii() {
        let known = &KNOWN[position("application_name").unwrap()];
        let spelled = |value: &str| spelled(known, value).unwrap();
        assert_eq!(spelled(""), "");
        assert_eq!(spelled("psql ~"), "psql ~");
        assert_eq!(spelled(&"x".repeat(64)), "x".repeat(63));
        assert_eq!(spelled(&("é".to_owned() + &"x".repeat(100))), format!("\\xc3\\xa9{}", "x".repeat(61)));
        assert_eq!(spelled(&("x".repeat(62) + "é")), "x".repeat(62));
        assert_eq!(spelled("a\tb"), "a\\x09b");
    }
}
