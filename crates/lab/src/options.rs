//! The command line of `allcore bench`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum, value_parser};
use jiff::SignedDuration;

use crate::client::random::sysbench::Distribution;
use crate::load::{Arrivals, Pace, Protocol};
use crate::stats::Limit;
use crate::workload::connect;

/// `allcore bench`. A program that offers more commands than the lab's own names them by `V`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, args_override_self = true, after_help = STATUSES)]
pub struct Bench<V: Subcommand = Verb> {
    /// The command on stored runs; without one, the lab makes a run.
    #[command(subcommand)]
    pub verb: Option<V>,
    /// The run.
    #[command(flatten)]
    pub run: RunOptions,
}

/// The exit statuses; docs/lab.md lists them, too.
pub(crate) const STATUSES: &str = "\
Exit status:
  0    everything was measured; compare: no threshold was crossed
  1    nothing could be measured, or a file cannot be read or written
  2    the command line cannot be read, or asks for the impossible; nothing was started
  3    something is missing: an arm, a point, or the checks of the data; compare: what --fail-if judges
  4    an interval stayed wider than asked
  5    a check of the data failed; compare: in either run
  6    compare: nothing is comparable between the two runs
  7    compare: a threshold of --fail-if was crossed
  130  Ctrl-C";

/// The commands on stored runs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Compare a stored run with an earlier one, point by point
    #[command(after_help = STATUSES)]
    Compare {
        /// The earlier run, written by --json
        first: PathBuf,
        /// The later one
        second: PathBuf,
        /// Fail (status 7) if a point's ratio, second / first, crosses this threshold beyond the
        /// noise. FIGURE is tps, mean, p50, p90, p95, p99, p999 or max: 'tps < 0.95', 'p99 > 1.2'
        #[arg(long, value_name = "FIGURE<RATIO", value_parser = Limit::parse)]
        fail_if: Vec<Limit>,
    },
    /// Show a stored run again: its table, and the reports named below; or several runs on one page
    /// of Markdown
    Report {
        /// The runs, written by --json
        #[arg(required = true)]
        runs: Vec<PathBuf>,
        /// The files to write.
        #[command(flatten)]
        outputs: Outputs,
    },
}

/// Reports of a run, besides the table.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reports")]
pub struct Outputs {
    /// Write the report as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the report as one self-contained HTML page with plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the plots of throughput, efficiency and p99 as SVG files into this folder
    #[arg(long, value_name = "FOLDER")]
    pub(crate) plots: Option<PathBuf>,
}

/// The options of a run.
#[derive(Debug, Args)]
pub struct RunOptions {
    /// A server: NAME=postgres://..., NAME=mysql://..., or one the lab starts itself on an empty
    /// folder: 'NAME=serve:--cores 2', 'NAME=serve-postgres:shared_buffers=1GB',
    /// NAME=serve-mariadb. May be given several times; the report compares the others with the
    /// first
    #[arg(long = "arm", value_name = "NAME=SERVER", required = true, help_heading = "Servers")]
    pub(crate) arms: Vec<String>,
    /// Make several arms of each that the lab starts, which differ in this setting only:
    /// shared_buffers=1GB,4GB. Given twice, it makes all combinations
    #[arg(long, value_name = "SETTING=A,B,...", help_heading = "Servers")]
    pub(crate) vary: Vec<String>,
    /// The clients' transactions
    #[arg(long, short, value_name = "NAME", default_value = "tpcb-like", value_parser = PossibleValuesParser::new(NAMES.split(' ')), hide_possible_values = true, long_help = WORKLOADS, help_heading = "Workload")]
    pub(crate) workload: String,
    /// A script for pgbench instead of a workload; several, with weights, make a mix
    #[arg(
        long,
        short,
        value_name = "SCRIPT[@WEIGHT]",
        conflicts_with = "workload",
        help_heading = "Workload"
    )]
    pub(crate) file: Vec<String>,
    /// A variable of the scripts, except scale, which --scale sets
    #[arg(long, short = 'D', value_name = "NAME=VALUE", requires = "file", help_heading = "Workload")]
    pub(crate) define: Vec<String>,
    /// Size of pgbench's tables (100,000 accounts each), or warehouses of TPC-C (10)
    #[arg(long, short, value_name = "NUMBER", value_parser = value_parser!(u32).range(1..), help_heading = "Workload")]
    pub(crate) scale: Option<u32>,
    /// sysbench's tables (4)
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u32).range(1..), help_heading = "Workload")]
    pub(crate) tables: Option<u32>,
    /// Rows of each of sysbench's tables, or YCSB's records (100,000)
    #[arg(long, value_name = "ROWS", value_parser = value_parser!(u32).range(1..), help_heading = "Workload")]
    pub(crate) table_size: Option<u32>,
    /// The distribution of sysbench's row numbers (special), with sysbench's parameters
    #[arg(long, value_enum, value_name = "HOW", help_heading = "Workload")]
    pub(crate) rand_type: Option<Distribution>,
    /// Reload the tables even if they are there; only this option replaces tables of another size
    #[arg(long, help_heading = "Workload")]
    pub(crate) reload: bool,
    /// Use the tables as they are: the lab neither inspects nor loads, prepares or checks them
    #[arg(long, conflicts_with = "reload", help_heading = "Workload")]
    pub(crate) as_is: bool,

    /// Connections of each point: a range in sensible steps, a list, or both mixed
    #[arg(long, short, value_name = "LIST", default_value = "1..64", help_heading = "Load")]
    pub(crate) clients: String,
    /// The program that makes the load; several, as in native,pgbench, give each server one arm
    /// with each, to compare them
    #[arg(long, value_enum, value_delimiter = ',', default_value = "native", help_heading = "Load")]
    pub(crate) driver: Vec<DriverName>,
    /// The protocol for statements (prepared; for connect simple)
    #[arg(long, short = 'M', value_enum, help_heading = "Load")]
    pub(crate) protocol: Option<Protocol>,
    /// Send all statements of a transaction at once and wait for their answers together
    /// (PostgreSQL's protocol, prepared or extended; workloads in which no statement depends on an
    /// earlier one's answer)
    #[arg(long, help_heading = "Load")]
    pub(crate) pipeline: bool,
    /// Threads of the driver (as many as CPUs; with --pin, as many as the client's CPUs)
    #[arg(long, short = 'j', value_name = "NUMBER", value_parser = value_parser!(u32).range(1..), help_heading = "Load")]
    pub(crate) threads: Option<u32>,
    /// Transactions a second over all clients, whether the server keeps up or not, or a rate that
    /// rises over each round: 500..5000. Latency counts from a transaction's arrival
    #[arg(long, short = 'R', value_name = "TPS", value_parser = rate, conflicts_with = "think", help_heading = "Load")]
    pub(crate) rate: Option<(f64, f64)>,
    /// The spacing of arrivals at a rate (poisson)
    #[arg(long, value_enum, requires = "rate", help_heading = "Load")]
    pub(crate) arrivals: Option<Arrivals>,
    /// Pause of a client between two transactions
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "0s", help_heading = "Load")]
    pub(crate) think: Duration,
    /// Tries of a transaction that a deadlock or a serialization failure ends (on MySQL also a lock
    /// wait timeout, or a row changed since it was read); sysbench's workloads try without limit
    #[arg(long, value_name = "NUMBER", value_parser = value_parser!(u32).range(1..), default_value_t = 1, help_heading = "Load")]
    pub(crate) tries: u32,

    /// Time of a round that the lab counts
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "5s", help_heading = "Rounds")]
    pub(crate) round: Duration,
    /// Time before it that the lab does not count
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "1s", help_heading = "Rounds")]
    pub(crate) warmup: Duration,
    /// Time before the warm-up over which the clients begin, one after the other
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "0s", help_heading = "Rounds")]
    pub(crate) ramp: Duration,
    /// Rounds of a point: at least and at most
    #[arg(long, value_name = "LEAST..MOST", value_parser = rounds, default_value = "3..10", help_heading = "Rounds")]
    pub(crate) rounds: (u32, u32),
    /// A point is done when its confidence interval is at most this wide, in percent of its median
    #[arg(long, value_name = "PERCENT", default_value_t = 3.0, help_heading = "Rounds")]
    pub(crate) width: f64,
    /// Begin no round that would end later than this
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = "Rounds")]
    pub(crate) time: Option<Duration>,
    /// The seed of all random numbers
    #[arg(long, value_name = "NUMBER", default_value_t = 1, help_heading = "Load")]
    pub(crate) seed: u64,
    /// Give client and the lab's servers separate cores, of those that this process may use: a
    /// quarter to the client, the others to the servers
    #[arg(long, help_heading = "Servers")]
    pub(crate) pin: bool,
    /// Keep this machine's CPUs awake: a sleeping CPU takes time to wake, most of all on a virtual
    /// machine
    #[arg(long, help_heading = "Servers")]
    pub(crate) awake: bool,

    /// Store the run, for `compare`, `report` and other programs
    #[arg(long, value_name = "FILE", help_heading = "Reports")]
    pub(crate) json: Option<PathBuf>,
    /// Reports besides the table.
    #[command(flatten)]
    pub(crate) outputs: Outputs,
}

/// The names of the workloads.
pub(crate) const NAMES: &str = "tpcb-like simple-update select-only oltp_point_select oltp_read_only oltp_read_write \
    oltp_write_only oltp_update_index oltp_update_non_index ycsb-a ycsb-b ycsb-c ycsb-d ycsb-e ycsb-f tpcc connect";

const WORKLOADS: &str = "\
The clients' transactions:
  tpcb-like, simple-update, select-only   pgbench's builtin scripts (--scale)
  oltp_point_select, oltp_read_only, oltp_read_write, oltp_write_only,
  oltp_update_index, oltp_update_non_index   sysbench's scripts (--tables, --table-size, --rand-type)
  ycsb-a ... ycsb-f   YCSB's workloads (--table-size)
  tpcc   TPC-C's full mix (--scale warehouses)
  connect   each transaction connects, runs one query and disconnects, as pgbench -C does
Tables, data and statements are the originals'; the lab loads missing tables.";

/// The program that makes the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DriverName {
    /// The lab's own: a thread per core, thousands of connections, any workload
    Native,
    /// The real pgbench, which must be installed
    Pgbench,
}

/// A value's word on the command line.
pub(crate) fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().expect("no value is hidden").get_name().to_owned()
}

impl RunOptions {
    pub(crate) fn scale(&self) -> u32 {
        self.scale.unwrap_or(10)
    }

    pub(crate) fn tables(&self) -> u32 {
        self.tables.unwrap_or(4)
    }

    pub(crate) fn table_size(&self) -> u32 {
        self.table_size.unwrap_or(100_000)
    }

    pub(crate) fn protocol(&self) -> Protocol {
        match self.protocol {
            Some(protocol) => protocol,
            // The client runs each statement once, so it does not prepare it.
            None if self.file.is_empty() && self.workload == connect::NAME => Protocol::Simple,
            None => Protocol::Prepared,
        }
    }

    pub(crate) fn pace(&self) -> Pace {
        let arrivals = self.arrivals.unwrap_or(Arrivals::Poisson);
        match self.rate {
            Some((from, to)) => Pace::Open { from, to, arrivals },
            None => Pace::Closed { think: self.think },
        }
    }
}

/// Parses `500ms`, `5s`, `2m`.
fn time(text: &str) -> Result<Duration, String> {
    let time = text.parse::<SignedDuration>().ok().and_then(|time| Duration::try_from(time).ok());
    time.ok_or_else(|| "write 500ms, 5s or 2m".into())
}

/// The highest rate: more than any server answers, and small enough to count each transaction.
const HIGHEST_RATE: f64 = 1e7;

/// Parses `500` or `500..5000`.
fn rate(text: &str) -> Result<(f64, f64), String> {
    let number =
        |text: &str| text.trim().parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= HIGHEST_RATE);
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    number(from)
        .zip(number(to))
        .filter(|(from, to)| from <= to)
        .ok_or_else(|| format!("write 500, or 500..5000 for one that rises, up to {HIGHEST_RATE} a second"))
}

/// Parses `3..10`, or `5` for exactly 5.
fn rounds(text: &str) -> Result<(u32, u32), String> {
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    match (least.trim().parse(), most.trim().parse()) {
        (Ok(least), Ok(most)) if (1..=most).contains(&least) => Ok((least, most)),
        _ => Err("write 3..10, or 5 for exactly five".into()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        bench: Bench,
    }

    /// The options of a command line, in a shell's quotes.
    pub(crate) fn read(words: &str) -> Result<Bench, String> {
        let words = std::iter::once("bench".to_owned()).chain(shlex::split(words).expect("closed quotes"));
        <Line as clap::Parser>::try_parse_from(words)
            .map(|line| line.bench)
            .map_err(|error| error.to_string())
    }

    /// Options of a run with one arm.
    pub(crate) fn options(words: &str) -> RunOptions {
        read(&format!("--arm a=serve {words}")).unwrap_or_else(|error| panic!("{error}")).run
    }

    #[test]
    fn a_run_and_a_comparison_are_distinct_commands() {
        assert!(read("--arm a=serve").unwrap().verb.is_none());
        let again = read("report a.json --html a.html").unwrap();
        assert!(matches!(again.verb, Some(Verb::Report { outputs: Outputs { html: Some(_), .. }, .. })));
        let compare = read("compare a.json b.json").unwrap();
        assert!(matches!(compare.verb, Some(Verb::Compare { .. })));
    }

    #[test]
    fn a_runs_options_are_read_and_the_last_of_two_counts() {
        let run = options("--rate 10..20 --rounds 4 --round 500ms");
        let open = Pace::Open { from: 10.0, to: 20.0, arrivals: Arrivals::Poisson };
        assert_eq!((run.rounds, run.round, run.pace()), ((4, 4), Duration::from_millis(500), open));
        assert_eq!(run.driver, [DriverName::Native]);
        assert!(read("--arm a=serve --rate 20..10").unwrap_err().contains("500..5000 for one that rises"));
        let later = options("--round 1s --arm b=serve --round 2s --driver native,pgbench");
        assert_eq!((later.arms.len(), later.round), (2, Duration::from_secs(2)));
        assert_eq!(later.driver, [DriverName::Native, DriverName::Pgbench]);
    }

    #[test]
    fn invalid_options_are_refused() {
        assert!(read("").unwrap_err().contains("--arm"));
        for (words, expected) in [
            ("--round '5 parsecs'", "write 500ms, 5s or 2m"),
            ("--round=-5s", "write 500ms, 5s or 2m"),
            ("--rate 0", "write 500, or 500..5000"),
            ("--rate 10..1e12", "write 500, or 500..5000"),
            ("--rounds 5..3", "write 3..10, or 5 for exactly five"),
            ("--rate 5 --think 1s", "--think"),
            ("-w tpcc --file x.sql", "--file"),
            ("-w tpcb", "[possible values: tpcb-like, simple-update"),
            ("-w oltp_read_only --rand-type pareto", "[possible values: uniform, special]"),
            ("--arrivals even", "--rate"),
            ("--tries 0", "0 is not in 1.."),
        ] {
            let error = read(&format!("--arm a=serve {words}")).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
