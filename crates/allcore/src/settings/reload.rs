//! A reload of the settings: the settings that it changes, and those that it must leave as they
//! are.
//!
//! What must hold:
//!
//! 1. A setting of the file is either among those of [`ServeSettings::fixed_differences`] and
//!    [`ServeSettings::keep_fixed`], or among those of [`ServeSettings::changes`]. The first two
//!    name the same settings.
//! 2. A setting that is absent now never lets clients in with less proof or less encryption than
//!    before. Only a named value does that.
//! 3. A change is logged with both values, and as a warning where clients are protected less than
//!    before.
//! 4. Naming a default is no change.

use super::{AuthKind, ServeSettings, TlsKind};
use crate::units::Span;
use clap::ValueEnum;
use std::fmt::Display;
use std::path::PathBuf;

/// A setting that has another value than before.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    /// The setting's name; that of a setting of sessions begins with `set.`.
    pub name: String,
    /// Its value before.
    pub from: String,
    /// Its value now.
    pub to: String,
    /// Whether clients that were refused or protected before no longer are.
    pub weakens: bool,
}

/// The text for a setting that has no value and no single default.
const UNSET: &str = "nothing";

impl ServeSettings {
    /// Names of the settings that differ from another's and take effect only at the server's start.
    pub fn fixed_differences(&self, other: &Self) -> Vec<&'static str> {
        let differs = [
            ("data", self.data != other.data),
            ("listen", self.listen != other.listen),
            ("socket-dir", self.socket_dir != other.socket_dir),
            ("cores", self.cores != other.cores),
            ("node", self.node != other.node),
            ("buffers", self.buffers != other.buffers),
            ("memory", self.memory != other.memory),
            ("file-io", self.file_io != other.file_io),
            ("clock-sweep-batch", self.clock_sweep_batch != other.clock_sweep_batch),
            ("huge-pages", self.huge_pages != other.huge_pages),
            ("preload", self.preload != other.preload),
            ("autoanalyze", self.autoanalyze != other.autoanalyze),
            ("metrics", self.metrics != other.metrics),
            ("max-connections", self.max_connections != other.max_connections),
            (
                "superuser-reserved-connections",
                self.superuser_reserved_connections != other.superuser_reserved_connections,
            ),
            ("max-logins", self.max_logins != other.max_logins),
        ];
        differs.into_iter().filter_map(|(name, differs)| differs.then_some(name)).collect()
    }

    /// Takes over from another the settings that take effect only at the server's start.
    pub fn keep_fixed(&mut self, other: &Self) {
        let other = other.clone();
        self.data = other.data;
        self.listen = other.listen;
        self.socket_dir = other.socket_dir;
        self.cores = other.cores;
        self.node = other.node;
        self.buffers = other.buffers;
        self.memory = other.memory;
        self.file_io = other.file_io;
        self.clock_sweep_batch = other.clock_sweep_batch;
        self.huge_pages = other.huge_pages;
        self.preload = other.preload;
        self.autoanalyze = other.autoanalyze;
        self.metrics = other.metrics;
        self.max_connections = other.max_connections;
        self.superuser_reserved_connections = other.superuser_reserved_connections;
        self.max_logins = other.max_logins;
    }

    /// Refuses to let clients in with less proof than before only because a setting is absent. So a
    /// settings file that was emptied by mistake opens nothing.
    pub fn check_weakened(&self, before: &Self) -> Result<(), String> {
        let gone = |name: &str, less: &str| {
            Err(format!(
                "\"{name}\" is no longer set, so that {less}; if that is meant, say it by name, or restart"
            ))
        };
        if before.auth() == AuthKind::Scram && self.auth.is_none() {
            return gone("auth", "clients would log in without a password (auth = \"trust\")");
        }
        if before.tls == Some(TlsKind::Required) && self.tls.is_none() {
            return gone("tls", "clients could send all in the clear (tls = \"offered\")");
        }
        Ok(())
    }

    /// The settings that differ from those before and take effect at once.
    pub fn changes(&self, before: &Self) -> Vec<Change> {
        let auth = |settings: &Self| choice(Some(settings.auth()), "");
        let tls = |settings: &Self| choice(settings.tls, "offered");
        let file = |path: &Option<PathBuf>| shown(path.as_ref().map(|path| path.display()));
        let limit = |settings: &Self| settings.authentication_timeout.unwrap_or(Span::MINUTE).to_string();
        let certificate_gone = before.tls_cert.is_some() && self.tls_cert.is_none();
        let less_auth = before.auth() == AuthKind::Scram && self.auth() == AuthKind::Trust;
        let less_tls = before.tls == Some(TlsKind::Required) && self.tls != before.tls;
        let mut pairs = vec![
            ("auth".to_owned(), auth(before), auth(self), less_auth),
            ("i-know".to_owned(), shown(before.i_know), shown(self.i_know), self.i_know == Some(true)),
            ("tls".to_owned(), tls(before), tls(self), less_tls),
            ("tls-cert".to_owned(), file(&before.tls_cert), file(&self.tls_cert), certificate_gone),
            ("tls-key".to_owned(), file(&before.tls_key), file(&self.tls_key), false),
            ("authentication-timeout".to_owned(), limit(before), limit(self), false),
            (
                "max-retained-log".to_owned(),
                shown(before.max_retained_log),
                shown(self.max_retained_log),
                false,
            ),
            (
                "log-format".to_owned(),
                choice(before.log_format, "text"),
                choice(self.log_format, "text"),
                false,
            ),
            ("log-level".to_owned(), choice(before.log_level, "info"), choice(self.log_level, "info"), false),
        ];
        let mut names: Vec<&String> = before.set.iter().chain(&self.set).map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            pairs.push((
                format!("set.{name}"),
                before.session_setting(name),
                self.session_setting(name),
                false,
            ));
        }
        let changed = pairs.into_iter().filter(|(_, from, to, _)| from != to);
        changed.map(|(name, from, to, weakens)| Change { name, from, to, weakens }).collect()
    }

    /// The value with which sessions begin: the last one counts.
    fn session_setting(&self, name: &str) -> String {
        shown(self.set.iter().rfind(|(one, _)| one == name).map(|(_, value)| value))
    }
}

fn shown(value: Option<impl Display>) -> String {
    value.map_or_else(|| UNSET.to_owned(), |value| value.to_string())
}

/// The name of a choice, or of the default if none was made.
fn choice<T: ValueEnum>(value: Option<T>, default: &str) -> String {
    let value = value.and_then(|value| value.to_possible_value());
    value.map_or_else(|| default.to_owned(), |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::LogLevel;
    use std::time::Duration;

    #[test]
    fn each_change_is_named_with_both_values() {
        let session = |value: &str| ("work_mem".to_owned(), value.to_owned());
        let before = ServeSettings {
            auth: Some(AuthKind::Scram),
            tls: Some(TlsKind::Required),
            tls_cert: Some("a.crt".into()),
            set: vec![session("1MB"), session("2MB")],
            ..ServeSettings::default()
        };
        assert_eq!(before.changes(&before), []);
        // Naming the default changes nothing.
        let same = ServeSettings { log_level: Some(LogLevel::Info), ..before.clone() };
        assert_eq!(same.changes(&before), []);
        let after = ServeSettings {
            auth: Some(AuthKind::Trust),
            authentication_timeout: Some(Span(Duration::from_secs(5))),
            set: vec![session("3MB"), ("TimeZone".to_owned(), "UTC".to_owned())],
            ..ServeSettings::default()
        };
        let said: Vec<String> = after
            .changes(&before)
            .into_iter()
            .map(|Change { name, from, to, weakens }| format!("{name} {from} {to} {weakens}"))
            .collect();
        let expected = [
            "auth scram trust true",
            "tls required offered true",
            "tls-cert a.crt nothing true",
            "authentication-timeout 1min 5s false",
            "set.TimeZone nothing UTC false",
            "set.work_mem 2MB 3MB false",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_setting_that_is_gone_opens_nothing() {
        let auth = |auth| ServeSettings { auth, ..ServeSettings::default() };
        let tls = |tls| ServeSettings { tls, ..ServeSettings::default() };
        let (trust, scram) = (auth(Some(AuthKind::Trust)), auth(Some(AuthKind::Scram)));
        assert!(auth(None).check_weakened(&scram).unwrap_err().contains("\"auth\""));
        assert!(tls(None).check_weakened(&tls(Some(TlsKind::Required))).unwrap_err().contains("\"tls\""));
        for (new, old) in [
            (&trust, &scram),
            (&scram, &scram),
            (&scram, &trust),
            (&auth(None), &trust),
            (&tls(Some(TlsKind::Offered)), &tls(Some(TlsKind::Required))),
            (&tls(None), &tls(Some(TlsKind::Offered))),
        ] {
            assert_eq!(new.check_weakened(old), Ok(()), "{new:?}");
        }
    }
}
