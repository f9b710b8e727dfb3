//! The settings file: TOML, `name = value`, names as the long options; `[set]` holds the settings
//! with which sessions begin.
//!
//! What must hold:
//!
//! 1. The file fills in what is absent, and changes nothing that the command line or the
//!    environment has set.
//! 2. Entries of `[set]` stand before those from elsewhere, which therefore win.
//! 3. A name that no setting has is an error, as is a value that cannot be read. So a misspelt
//!    setting is never silently without effect.
//! 4. An error names the line and the setting.

use super::{
    AuthKind, FileIoKind, HugePagesKind, LogFormat, LogLevel, ServeSettings, Switch, TlsKind, at_least_one,
};
use clap::ValueEnum;
use std::path::Path;

impl ServeSettings {
    /// Fills in, from the settings file if one is named, what neither the command line nor the
    /// environment sets.
    pub fn with_file(mut self) -> Result<Self, String> {
        let Some(path) = self.config.clone() else { return Ok(self) };
        let text = runtime::file::open_to_read(&path)
            .and_then(std::io::read_to_string)
            .map_err(|e| format!("cannot read {}: {e}", path.display()))?;
        self.fill_in(&text).map_err(|fault| format!("{}: {fault}", path.display()))?;
        Ok(self)
    }

    fn fill_in(&mut self, text: &str) -> Result<(), String> {
        let table: toml::Table = text.parse().map_err(|fault: toml::de::Error| {
            let start = fault.span().map_or(0, |span| span.start);
            let line = 1 + text.bytes().take(start).filter(|&byte| byte == b'\n').count();
            format!("line {line}: {}", fault.message())
        })?;
        for (key, value) in table {
            let name = key.replace('_', "-");
            let is_its_line = |line: &str| {
                let left = line.split('=').next().unwrap_or(line);
                left.trim().trim_matches(['"', '[', ']']) == key
            };
            let line = 1 + text.lines().position(is_its_line).unwrap_or(0);
            let texts: Vec<String> = match value {
                toml::Value::Table(entries) if name == "set" => {
                    self.begin_sessions_with(&entries);
                    continue;
                }
                toml::Value::Array(items) => items.iter().map(plain).collect(),
                single => vec![plain(&single)],
            };
            let [text] = texts.as_slice() else {
                if name == "listen" {
                    self.listen =
                        if self.listen.is_empty() { texts } else { std::mem::take(&mut self.listen) };
                    continue;
                }
                return Err(format!("line {line}: {name} takes one value"));
            };
            self.fill_one(&name, text).map_err(|fault| format!("line {line}: {name}: {fault}"))?;
        }
        Ok(())
    }

    /// Puts the `[set]` table before settings from elsewhere: the last one counts.
    fn begin_sessions_with(&mut self, entries: &toml::Table) {
        let said = std::mem::take(&mut self.set);
        self.set = entries.iter().map(|(name, value)| (name.clone(), plain(value))).chain(said).collect();
    }

    fn fill_one(&mut self, name: &str, text: &str) -> Result<(), String> {
        fn put<T>(place: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
            let value = value?;
            place.get_or_insert(value);
            Ok(())
        }
        fn choice<T: ValueEnum>(text: &str) -> Result<T, String> {
            T::from_str(text, true)
        }
        let number = || at_least_one(text);
        let truth = || text.parse::<bool>().map_err(|_| format!("'{text}' is not true or false"));
        let path = || Ok(Path::new(text).to_path_buf());
        match name {
            "data" => put(&mut self.data, path()),
            "listen" if self.listen.is_empty() => {
                self.listen = vec![text.to_owned()];
                Ok(())
            }
            "listen" => Ok(()),
            "socket-dir" => put(&mut self.socket_dir, path()),
            "cores" => put(&mut self.cores, number()),
            "node" => put(&mut self.node, super::node(text)),
            "memory" => put(&mut self.memory, text.parse()),
            "buffers" => put(&mut self.buffers, text.parse()),
            "auth" => put(&mut self.auth, choice::<AuthKind>(text)),
            "i-know" => put(&mut self.i_know, truth()),
            "file-io" => put(&mut self.file_io, choice::<FileIoKind>(text)),
            "clock-sweep-batch" => put(&mut self.clock_sweep_batch, text.parse()),
            "huge-pages" => put(&mut self.huge_pages, choice::<HugePagesKind>(text)),
            "preload" => put(&mut self.preload, truth()),
            "autoanalyze" => put(&mut self.autoanalyze, choice::<Switch>(text)),
            "metrics" => put(&mut self.metrics, Ok(text.to_owned())),
            "tls-cert" => put(&mut self.tls_cert, path()),
            "tls-key" => put(&mut self.tls_key, path()),
            "tls" => put(&mut self.tls, choice::<TlsKind>(text)),
            "max-connections" => put(&mut self.max_connections, number()),
            "superuser-reserved-connections" => {
                put(&mut self.superuser_reserved_connections, super::number(text))
            }
            "max-logins" => put(&mut self.max_logins, number()),
            "authentication-timeout" => put(&mut self.authentication_timeout, text.parse()),
            "max-retained-log" => put(&mut self.max_retained_log, text.parse()),
            "log-format" => put(&mut self.log_format, choice::<LogFormat>(text)),
            "log-level" => put(&mut self.log_level, choice::<LogLevel>(text)),
            _ => Err("there is no such setting; see 'allcore serve --help'".to_owned()),
        }
    }
}

fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SweepBatch;
    use crate::units::{Bytes, Span};
    use std::time::Duration;

    #[test]
    fn the_file_fills_in_only_what_was_not_said() {
        let set = vec![("work_mem".to_owned(), "1MB".to_owned())];
        let mut settings = ServeSettings { cores: Some(3), set, ..ServeSettings::default() };
        settings
            .fill_in(
                "cores = 8\nbuffers = \"2GiB\"\nfile_io = \"threads\"\nlisten = [\"a:1\", \"b:2\"]\n\
                 i_know = true\nauthentication_timeout = 5\nclock_sweep_batch = 16\n\
                 huge_pages = \"off\"\npreload = true\nautoanalyze = \"off\"\n[set]\nstatement_timeout = \"30s\"\n",
            )
            .unwrap();
        assert_eq!(settings.cores, Some(3));
        assert_eq!(settings.buffers, Some(Bytes(2 << 30)));
        assert_eq!(settings.file_io, Some(FileIoKind::Threads));
        assert_eq!(settings.listen, ["a:1", "b:2"]);
        assert_eq!(settings.i_know, Some(true));
        assert_eq!(settings.clock_sweep_batch, Some(SweepBatch::Frames(16)));
        assert_eq!((settings.huge_pages, settings.preload), (Some(HugePagesKind::Off), Some(true)));
        assert_eq!(settings.autoanalyze, Some(Switch::Off));
        assert_eq!(settings.authentication_timeout, Some(Span(Duration::from_secs(5))));
        let set: Vec<_> = settings.set.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(set, ["statement_timeout", "work_mem"]);
    }

    #[test]
    fn a_faulty_file_is_named_by_its_setting() {
        for (text, said) in [
            ("# few\n\ncoers = 8", "line 3: coers"),
            ("cores = \"x\"", "line 1: cores"),
            ("cores = 0", "line 1: cores"),
            ("cores = 2\nauth = \"pam\"", "line 2: auth"),
            ("clock_sweep_batch = \"much\"", "line 1: clock-sweep-batch: 'much' is no number"),
            ("huge_pages = \"perhaps\"", "line 1: huge-pages"),
            ("preload = 1", "line 1: preload: '1' is not true or false"),
            ("cores = 2\ntls = \"perhaps\"", "line 2: tls"),
            ("authentication_timeout = \"1 fortnight\"", "line 1: authentication-timeout"),
            ("cores = 2\n=", "line 2: "),
        ] {
            let fault = ServeSettings::default().fill_in(text).unwrap_err();
            assert!(fault.contains(said), "{text}: {fault}");
        }
    }
}
