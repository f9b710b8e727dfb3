//! The command line of `allcore top`.

use std::time::Duration;

use clap::Args;

/// The shortest and the longest interval.
const INTERVALS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(3600));

/// `allcore top`.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// The server's address, or the folder of its Unix socket
    #[arg(long, env = "PGHOST", default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The server's port
    #[arg(long, env = "PGPORT", default_value_t = 5432)]
    pub(crate) port: u16,
    /// The user to log in as
    #[arg(long, env = "PGUSER", default_value = "postgres")]
    pub(crate) user: String,
    /// The database to connect to. The figures are those of all databases
    #[arg(long, env = "PGDATABASE", default_value = "postgres")]
    pub(crate) dbname: String,
    /// Time between two looks at the server, from 100ms to 1h
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = interval)]
    pub(crate) interval: Duration,
    /// Print one frame after one interval, and end. So does a standard output that is no terminal
    #[arg(long)]
    pub(crate) once: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let parsed = text.parse::<jiff::SignedDuration>().ok().and_then(|time| Duration::try_from(time).ok());
    match parsed {
        Some(time) if (INTERVALS.0..=INTERVALS.1).contains(&time) => Ok(time),
        _ => Err("give a time from 100ms to 1h, such as 2s".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_a_time_within_its_bounds() {
        assert_eq!(interval("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(interval("500ms"), Ok(Duration::from_millis(500)));
        for wrong in ["", "2", "0s", "-2s", "99ms", "2h", "x"] {
            interval(wrong).unwrap_err();
        }
    }
}
