//! The settings of `allcore serve`: from the command line, else the environment, else a file, else their defaults.

use crate::units::Bytes;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};

/// How clients prove who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AuthKind {
    /// Every client is believed.
    Trust,
    /// A password, proved by SCRAM-SHA-256 (set one with `allcore passwd`).
    Scram,
}

/// How files are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FileIoKind {
    /// io_uring where the kernel grants it, threads elsewhere.
    Auto,
    /// io_uring, or refuse to start.
    #[value(name = "io_uring")]
    IoUring,
    /// A small pool of I/O threads.
    Threads,
}

/// Everything `allcore serve` can be told.
#[derive(Debug, Default, Clone, Args)]
pub struct ServeSettings {
    /// Folder of the database; created if it is empty or not there
    #[arg(long, value_name = "DIR", env = "ALLCORE_DATA")]
    pub data: Option<PathBuf>,
    /// Address to accept TCP connections on; may be given more than once; 'none' for no TCP [default: 127.0.0.1:5432]
    #[arg(long, value_name = "HOST:PORT", env = "ALLCORE_LISTEN", value_delimiter = ',')]
    pub listen: Vec<String>,
    /// Folder for the Unix socket .s.PGSQL.PORT [default: none]
    #[arg(long, value_name = "DIR", env = "ALLCORE_SOCKET_DIR")]
    pub socket_dir: Option<PathBuf>,
    /// Cores to use, each with one pinned worker [default: all the process may use]
    #[arg(long, value_name = "N", env = "ALLCORE_CORES", value_parser = at_least_one)]
    pub cores: Option<usize>,
    /// Memory for the buffer pool, as in 2GiB [default: a quarter of the machine's memory]
    #[arg(long, value_name = "SIZE", env = "ALLCORE_BUFFERS")]
    pub buffers: Option<Bytes>,
    /// How clients prove who they are [default: trust]
    #[arg(long, value_name = "KIND", env = "ALLCORE_AUTH")]
    pub auth: Option<AuthKind>,
    /// How files are read and written [default: auto]
    #[arg(long, value_name = "KIND", env = "ALLCORE_FILE_IO")]
    pub file_io: Option<FileIoKind>,
    /// Certificate chain (PEM) to offer TLS with; needs --tls-key
    #[arg(long, value_name = "FILE", env = "ALLCORE_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate
    #[arg(long, value_name = "FILE", env = "ALLCORE_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// Sessions at one time; the next one is refused with 53300 [default: 5000]
    #[arg(long, value_name = "N", env = "ALLCORE_MAX_CONNECTIONS", value_parser = at_least_one)]
    pub max_connections: Option<usize>,
    /// Start although the log is damaged at LSN, which the refusal names, and give up what follows; a copy is kept
    #[arg(long, value_name = "LSN", value_parser = log_position)]
    pub discard_log_after: Option<u64>,
    /// File with settings, `name = value` a line, names as the long options
    #[arg(long, value_name = "FILE", env = "ALLCORE_CONFIG")]
    pub config: Option<PathBuf>,
}

/// The address TCP connections are accepted on where nothing is said.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:5432";
/// Sessions at one time where nothing is said.
pub const DEFAULT_MAX_CONNECTIONS: usize = 5000;

impl ServeSettings {
    /// Takes from the settings file, where one is named, what neither the command line nor the environment said.
    pub fn with_file(mut self) -> Result<Self, String> {
        let Some(path) = self.config.clone() else { return Ok(self) };
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("cannot read {}: {e}", path.display()))?;
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
            let is_its_line =
                |line: &str| line.split('=').next().is_some_and(|left| left.trim().trim_matches('"') == key);
            let line = 1 + text.lines().position(is_its_line).unwrap_or(0);
            let texts: Vec<String> = match value {
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

    fn fill_one(&mut self, name: &str, text: &str) -> Result<(), String> {
        fn put<T>(place: &mut Option<T>, value: Result<T, String>) -> Result<(), String> {
            let value = value?;
            place.get_or_insert(value);
            Ok(())
        }
        let number = || at_least_one(text);
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
            "buffers" => put(&mut self.buffers, text.parse()),
            "auth" => put(&mut self.auth, AuthKind::from_str(text, true)),
            "file-io" => put(&mut self.file_io, FileIoKind::from_str(text, true)),
            "tls-cert" => put(&mut self.tls_cert, path()),
            "tls-key" => put(&mut self.tls_key, path()),
            "max-connections" => put(&mut self.max_connections, number()),
            _ => Err("there is no such setting; see 'allcore serve --help'".to_owned()),
        }
    }
}

/// A position of the log as messages name it: two hexadecimal numbers with a stroke between.
fn log_position(text: &str) -> Result<u64, String> {
    let part = |text: &str| u32::from_str_radix(text, 16).ok().map(u64::from);
    text.split_once('/')
        .and_then(|(high, low)| Some(part(high)? << 32 | part(low)?))
        .ok_or_else(|| format!("'{text}' is no position of the log, as 0/1A2B3C8"))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("'{text}' is no number of at least 1")),
        Ok(number) => Ok(number),
    }
}

fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_fills_in_only_what_was_not_said() {
        let mut settings = ServeSettings { cores: Some(3), ..ServeSettings::default() };
        settings
            .fill_in("cores = 8\nbuffers = \"2GiB\"\nfile_io = \"threads\"\nlisten = [\"a:1\", \"b:2\"]")
            .unwrap();
        assert_eq!(settings.cores, Some(3));
        assert_eq!(settings.buffers, Some(Bytes(2 << 30)));
        assert_eq!(settings.file_io, Some(FileIoKind::Threads));
        assert_eq!(settings.listen, ["a:1", "b:2"]);
    }

    #[test]
    fn a_faulty_file_is_named_by_its_setting() {
        for (text, said) in [
            ("# few\n\ncoers = 8", "line 3: coers"),
            ("cores = \"x\"", "line 1: cores"),
            ("cores = 0", "line 1: cores"),
            ("cores = 2\nauth = \"pam\"", "line 2: auth"),
            ("cores = 2\n=", "line 2: "),
        ] {
            let fault = ServeSettings::default().fill_in(text).unwrap_err();
            assert!(fault.contains(said), "{text}: {fault}");
        }
    }
}
