//! What a server says it is: its version, and the settings that make a difference to a benchmark.

use super::Dialect;
use super::control::{Control, Fault};

/// PostgreSQL's settings that matter; a server that knows some of them not is asked for the others.
const POSTGRES: [&str; 19] = [
    "shared_buffers",
    "synchronous_commit",
    "fsync",
    "full_page_writes",
    "wal_level",
    "wal_compression",
    "wal_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "commit_delay",
    "huge_pages",
    "huge_pages_status",
    "io_method",
    "update_process_title",
    "max_connections",
    "jit",
    "autovacuum",
    "default_transaction_isolation",
    "data_checksums",
];

/// MySQL's and MariaDB's.
const MYSQL: [&str; 16] = [
    "innodb_buffer_pool_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_doublewrite",
    "innodb_log_file_size",
    "innodb_redo_log_capacity",
    "innodb_io_capacity",
    "log_bin",
    "sync_binlog",
    "large_pages",
    "max_connections",
    "performance_schema",
    "thread_handling",
    "thread_pool_size",
    "transaction_isolation",
    "tx_isolation",
];

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its name and version.
    pub server: String,
    /// Settings that matter, as name and value.
    pub settings: Vec<(String, String)>,
}

/// Settings that say how much of a database a server keeps in memory: PostgreSQL's, MySQL's, and that of `serve`.
const BUFFERS: [&str; 3] = ["shared_buffers", "innodb_buffer_pool_size", "buffers"];

/// `128MB`, `1GiB`, `2G` or a number of bytes; all units are powers of 1024, as servers have them.
pub fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let power = match text[digits.len()..].to_ascii_lowercase().trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        _ => return None,
    };
    digits.trim().parse::<u64>().ok()?.checked_mul(1 << (10 * power))
}

/// MySQL's settings that are sizes, which it tells in bytes.
const BYTES: [&str; 3] = ["innodb_buffer_pool_size", "innodb_log_file_size", "innodb_redo_log_capacity"];

/// Bytes as MySQL's options take them: `2G`, `512M`.
fn short(bytes: &str) -> String {
    match bytes.parse::<u64>() {
        Ok(bytes) if bytes > 0 && bytes % (1 << 30) == 0 => format!("{}G", bytes >> 30),
        Ok(bytes) if bytes > 0 && bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        _ => bytes.to_owned(),
    }
}

impl About {
    /// How much of a database it keeps in memory, where it says so.
    pub fn buffers(&self) -> Option<u64> {
        let mut settings = self.settings.iter();
        settings.find_map(|(name, value)| BUFFERS.contains(&name.as_str()).then(|| size(value))?)
    }

    /// Asks it.
    pub fn ask(control: &mut Control) -> Result<Self, Fault> {
        match control.dialect() {
            Dialect::Postgres => {
                let server = control.value("SELECT version()")?.unwrap_or_default();
                let mut settings = Vec::new();
                for name in POSTGRES {
                    match control.value(&format!("SHOW {name}")) {
                        Ok(Some(value)) => settings.push((name.to_owned(), value)),
                        // Not known to this server.
                        Ok(None) | Err(Fault::Statement { .. }) => {}
                        Err(fault) => return Err(fault),
                    }
                }
                Ok(Self { server, settings })
            }
            Dialect::Mysql => {
                let version = "SELECT concat(@@version_comment, ' ', version())";
                let server = control.value(version)?.unwrap_or_default();
                let names = MYSQL.map(|name| format!("'{name}'")).join(", ");
                let rows =
                    control.query(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"))?;
                let pair = |row: Vec<Option<String>>| match <[Option<String>; 2]>::try_from(row) {
                    Ok([Some(name), Some(value)]) if BYTES.contains(&name.as_str()) => {
                        Some((name, short(&value)))
                    }
                    Ok([Some(name), Some(value)]) => Some((name, value)),
                    _ => None,
                };
                Ok(Self { server, settings: rows.into_iter().filter_map(pair).collect() })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_read_as_each_server_writes_them() {
        let about = |name: &str, value: &str| About {
            server: String::new(),
            settings: vec![("fsync".into(), "on".into()), (name.into(), value.into())],
        };
        for (name, value, bytes) in [
            ("shared_buffers", "2GB", Some(2 << 30)),
            ("shared_buffers", "16400kB", Some(16400 << 10)),
            ("innodb_buffer_pool_size", "134217728", Some(128 << 20)),
            ("innodb_buffer_pool_size", "2G", Some(2 << 30)),
            ("buffers", "256MiB", Some(256 << 20)),
            ("buffers", "many", None),
            ("huge_pages", "2MB", None),
        ] {
            assert_eq!(about(name, value).buffers(), bytes, "{name} {value}");
        }
        assert_eq!(size("17000000TB"), None);
        let shown = ["2147483648", "536870912", "1000", "0", "many"].map(short);
        assert_eq!(shown, ["2G", "512M", "1000", "0", "many"]);
    }
}
