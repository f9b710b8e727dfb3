//! A server's description of itself: its version, and the settings that matter for a benchmark.

use super::Dialect;
use super::control::{Control, Fault};

/// PostgreSQL's settings that matter. A server that does not know some of them answers the others.
const POSTGRES: &str = "shared_buffers synchronous_commit fsync full_page_writes wal_level wal_compression wal_buffers \
    max_wal_size checkpoint_timeout commit_delay huge_pages huge_pages_status io_method update_process_title \
    max_connections jit autovacuum default_transaction_isolation data_checksums";

/// MySQL's and MariaDB's.
const MYSQL: &str = "innodb_buffer_pool_size innodb_flush_log_at_trx_commit innodb_flush_method innodb_doublewrite \
    innodb_log_file_size innodb_redo_log_capacity innodb_io_capacity log_bin sync_binlog large_pages max_connections \
    performance_schema thread_handling thread_pool_size transaction_isolation tx_isolation";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    pub server: String,
    pub settings: Vec<(String, String)>,
}

/// MySQL's settings that are sizes; the server reports them in bytes.
const BYTES: [&str; 3] = ["innodb_buffer_pool_size", "innodb_log_file_size", "innodb_redo_log_capacity"];

/// Formats bytes as MySQL's options take them: `2G`, `512M`.
fn short(bytes: &str) -> String {
    match bytes.parse::<u64>() {
        Ok(bytes) if bytes > 0 && bytes % (1 << 30) == 0 => format!("{}G", bytes >> 30),
        Ok(bytes) if bytes > 0 && bytes % (1 << 20) == 0 => format!("{}M", bytes >> 20),
        _ => bytes.to_owned(),
    }
}

impl About {
    pub fn ask(control: &mut Control) -> Result<Self, Fault> {
        match control.dialect() {
            Dialect::Postgres => {
                let server = control.value("SELECT version()")?.unwrap_or_default();
                let mut settings = Vec::new();
                for name in POSTGRES.split(' ') {
                    match control.value(&format!("SHOW {name}")) {
                        Ok(Some(value)) => settings.push((name.to_owned(), value)),
                        // The server does not know this setting.
                        Ok(None) => {}
                        Err(fault) if fault.code().is_some() => {}
                        Err(fault) => return Err(fault),
                    }
                }
                Ok(Self { server, settings })
            }
            Dialect::Mysql => {
                let version = "SELECT concat(@@version_comment, ' ', version())";
                let server = control.value(version)?.unwrap_or_default();
                let names = MYSQL.replace(' ', "', '");
                let rows =
                    control.query(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('{names}')"))?;
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
    fn sizes_are_written_as_mysql_takes_them() {
        let shown = ["2147483648", "536870912", "1000", "0", "many"].map(short);
        assert_eq!(shown, ["2G", "512M", "1000", "0", "many"]);
    }
}
