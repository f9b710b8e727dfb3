//! Settings as `pg_settings` describes them: numbers in their unit, kinds, ranges, and who may
//! change them.
//!
//! What must hold:
//!
//! 1. A row gives a number in its own unit, truncated to a whole number. SHOW may use another unit
//!    for the same value.
//! 2. The range of a row is the range that SET accepts.
//! 3. A setting without a value in this server has no row.

use super::known::{Change, KNOWN, Kind, Known, offered};
use super::{SettingsTable, Source};
use crate::units::{bytes_of, parse_time};
use catalog::pg_catalog::Setting;

/// The unit of a setting that the server gives, as PostgreSQL has it.
fn read_only_unit(name: &str) -> Option<&'static str> {
    match name {
        "authentication_timeout" => Some("s"),
        "max_wal_size" => Some("MB"),
        "shared_buffers" => Some("8kB"),
        "track_activity_query_size" | "wal_segment_size" => Some("B"),
        _ => None,
    }
}

/// The type that `vartype` names, where the kind does not tell it.
fn read_only_kind(name: &str, value: &str) -> &'static str {
    match name {
        "huge_pages" | "huge_pages_status" => "enum",
        _ if matches!(value, "on" | "off") => "bool",
        _ if read_only_unit(name).is_some() || value.parse::<i64>().is_ok() => "integer",
        _ => "string",
    }
}

/// A value as SHOW gives it, in a unit.
fn in_unit(shown: &str, unit: &str) -> String {
    let bytes = |unit_bytes: f64| bytes_of(shown).map(|bytes| bytes / unit_bytes);
    let time = |unit_milliseconds: f64| parse_time(shown).map(|time| time as f64 / unit_milliseconds);
    let number = match unit {
        "B" => bytes(1.0),
        "kB" => bytes(1024.0),
        "8kB" => bytes(8192.0),
        "MB" => bytes(1_048_576.0),
        "s" => time(1000.0),
        _ => time(1.0),
    };
    number.map_or_else(|| shown.to_owned(), |number| number.trunc().to_string())
}

impl Known {
    fn unit(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Time | Kind::TimeOrNever => Some("ms"),
            Kind::Memory => Some("kB"),
            Kind::ReadOnly(_) => read_only_unit(self.name),
            _ => None,
        }
    }

    fn type_name(&self, value: &str) -> &'static str {
        match self.kind {
            Kind::Text if self.name == "random_page_cost" => "real",
            Kind::Text | Kind::Name => "string",
            Kind::Bool => "bool",
            Kind::Integer(..) | Kind::Time | Kind::TimeOrNever | Kind::Memory => "integer",
            Kind::Words(_) => "enum",
            Kind::Fixed if self.name == "server_version" => "string",
            Kind::Fixed | Kind::ReadOnly(_) => read_only_kind(self.name, value),
        }
    }

    fn context(&self) -> &'static str {
        match self.kind {
            Kind::Fixed | Kind::ReadOnly(Change::Never) => "internal",
            Kind::ReadOnly(Change::AtStart) => "postmaster",
            Kind::ReadOnly(Change::ByFile) => "sighup",
            _ => "user",
        }
    }

    fn range(&self) -> Option<(String, String)> {
        let most = i64::from(i32::MAX);
        let (least, most) = match self.kind {
            Kind::Integer(least, most) => (least, most),
            Kind::Time if self.name == "deadlock_timeout" => (1, most),
            Kind::Time => (0, most),
            Kind::TimeOrNever => (-1, most),
            Kind::Memory => (64, most),
            _ => return None,
        };
        Some((least.to_string(), most.to_string()))
    }
}

impl SettingsTable {
    /// Every setting that has a value. `present`: the value of a setting that belongs to the
    /// running transaction.
    pub fn described(&self, present: impl Fn(&str) -> Option<&'static str>) -> Vec<Setting> {
        let described = |(at, known): (usize, &Known)| {
            let value = self.value(at)?;
            let unit = known.unit();
            let text = |value: &str| unit.map_or_else(|| value.to_owned(), |unit| in_unit(value, unit));
            let is_read_only = matches!(known.kind, Kind::ReadOnly(_));
            let of_session = |own: &str| if is_read_only { text(value) } else { text(own) };
            Some(Setting {
                name: known.name.to_owned(),
                value: present(known.name).map_or_else(|| text(value), str::to_owned),
                unit,
                kind: known.type_name(value),
                context: known.context(),
                source: match self.texts.sources[at] {
                    Source::Server => "default",
                    Source::Client => "client",
                    Source::Session => "session",
                },
                range: known.range(),
                words: match known.kind {
                    Kind::Words(words) => Some(offered(words)),
                    _ => None,
                },
                boot: of_session(&known.default_for(&self.user)),
                reset: of_session(&self.texts.initial[at]),
            })
        };
        KNOWN.iter().enumerate().filter_map(described).collect()
    }
}
