//! sysbench as the driver. Its warm-up ends with a checkpoint, at which it reports and counts anew, with the same sessions.
//! Its histogram gives latencies of all events, in steps of 1.9%.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tempfile::NamedTempFile;

use super::tool::{Event, Tool, between};
use super::{PLAIN, rate, seconds};
use crate::arm::{Address, Dialect, Target};
use crate::drive::{Driver, Kind, Live, Measured, Phase, histogram};
use crate::load::{Load, Protocol};
use crate::record::{CpuTime, Errors};
use crate::workload::{Original, Workload};

/// The driver.
#[derive(Debug, Clone)]
pub struct Sysbench {
    /// The program; a bare name is looked for in PATH.
    pub program: PathBuf,
}

impl Default for Sysbench {
    fn default() -> Self {
        Self { program: "sysbench".into() }
    }
}

/// How long after its time it may still print.
const GRACE: Duration = Duration::from_secs(120);

/// Its sessions part as soon as its time is up, without a word before: so much earlier the server is looked at.
const EARLY: Duration = Duration::from_millis(150);

impl Driver for Sysbench {
    fn suits(&self, workload: &dyn Workload, load: &Load) -> Result<(), String> {
        original(workload)?;
        statements(load)?;
        seconds("sysbench", load)?;
        whole_rate(load).map(drop)
    }

    fn run(
        &self,
        to: &Target,
        workload: &dyn Workload,
        load: &Load,
        live: &Live,
    ) -> Result<Measured, String> {
        let arguments = arguments(to, workload, load)?;
        let secret = secret(to)?;
        let (skipped, counted) = seconds("sysbench", load)?;
        let mut command = Command::new(&self.program);
        command.envs(PLAIN);
        if let Some(secret) = &secret {
            command.arg(format!("--config-file={}", secret.path().display()));
        }
        command.args(&arguments).arg(format!("--time={}", skipped + counted));
        if skipped > 0 {
            command.arg(format!("--report-checkpoints={skipped}"));
        }
        Watched::of(&mut Tool::start(command.arg("run"), "sysbench")?, skipped, counted, live)?.measured()
    }
}

/// What sysbench knows a workload as: the test, and its options.
fn original(workload: &dyn Workload) -> Result<(String, Vec<(String, String)>), String> {
    match workload.original() {
        Some(Original::Sysbench { test, options }) => Ok((test, options)),
        _ => Err(format!("{} is no workload of sysbench; take the native driver", workload.name())),
    }
}

/// Its word for how statements are sent.
fn statements(load: &Load) -> Result<&'static str, String> {
    match load.protocol {
        Protocol::Simple => Ok("disable"),
        Protocol::Prepared => Ok("auto"),
        Protocol::Extended => {
            Err("sysbench sends statements as text or prepared once, not parsed each time".to_owned())
        }
    }
}

/// The rate it is told, in whole events as it takes it; `None` for a closed loop.
fn whole_rate(load: &Load) -> Result<Option<u64>, String> {
    match rate("sysbench", load)? {
        Some(rate) if rate < 1.0 || rate.fract() != 0.0 => Err(format!(
            "sysbench keeps whole transactions a second, not {rate}; take a whole --rate or the native driver"
        )),
        rate => Ok(rate.map(|rate| rate as u64)),
    }
}

/// Its arguments but for the time.
fn arguments(to: &Target, workload: &dyn Workload, load: &Load) -> Result<Vec<String>, String> {
    let (test, options) = original(workload)?;
    let statements = statements(load)?;
    let prefix = prefix(to.dialect);
    let mut all = vec![test, format!("--db-driver={prefix}"), format!("--db-ps-mode={statements}")];
    let mut add = |name: &str, value: &str| all.push(format!("--{name}={value}"));
    match &to.address {
        Address::Unix(socket) if to.dialect == Dialect::Mysql => {
            add("mysql-socket", &socket.display().to_string());
        }
        address => {
            let (host, port) = address.libpq();
            // MySQL's client library takes this name as that of its usual socket, whatever the port.
            let socket = to.dialect == Dialect::Mysql && host == "localhost";
            let host = if socket { "127.0.0.1".to_owned() } else { host };
            add(&format!("{prefix}-host"), &host);
            add(&format!("{prefix}-port"), &port.to_string());
        }
    }
    add(&format!("{prefix}-user"), &to.user);
    add(&format!("{prefix}-db"), &to.database);
    for (name, value) in &options {
        add(name, value);
    }
    add("threads", &load.clients.to_string());
    add("events", "0");
    add("rand-seed", &load.seed.to_string());
    add("report-interval", "1");
    add("histogram", "on");
    if let Some(rate) = whole_rate(load)? {
        add("rate", &rate.to_string());
    }
    Ok(all)
}

/// What the names of its options for servers of this kind begin with.
fn prefix(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "pgsql",
        Dialect::Mysql => "mysql",
    }
}

/// The password in a file of its own that nobody else can read: on the command line everybody would see it.
fn secret(to: &Target) -> Result<Option<NamedTempFile>, String> {
    let Some(password) = to.password.as_deref().filter(|password| !password.is_empty()) else {
        return Ok(None);
    };
    if password.contains(|letter: char| letter.is_whitespace() || letter == '#') {
        let why =
            "sysbench can't be given a password with blanks or # in it: take another, or the native driver";
        return Err(why.to_owned());
    }
    let mut file =
        NamedTempFile::new().map_err(|error| format!("no file for sysbench's password: {error}"))?;
    writeln!(file, "{}-password={password}", prefix(to.dialect))
        .map_err(|error| format!("can't write sysbench's password: {error}"))?;
    Ok(Some(file))
}

/// What was seen while it ran.
struct Watched {
    /// Seconds of its warm-up.
    skipped: u64,
    /// When what is counted began, by its own clock.
    begun: Option<Duration>,
    seconds: Vec<u64>,
    latency: Histogram<u64>,
    done: Option<u64>,
    elapsed: Option<Duration>,
    ignored: u64,
    cpu: CpuTime,
    lost: Option<(usize, String)>,
    failure: Option<String>,
    stopped: bool,
}

impl Watched {
    /// Reads its lines until it ends, or the round is ended.
    fn of(tool: &mut Tool, skipped: u64, counted: u64, live: &Live) -> Result<Self, String> {
        let mut all = Self {
            skipped,
            begun: None,
            seconds: Vec::new(),
            latency: histogram(),
            done: None,
            elapsed: None,
            ignored: 0,
            cpu: CpuTime::default(),
            lost: None,
            failure: None,
            stopped: false,
        };
        let until = Instant::now() + Duration::from_secs(skipped + counted) + 2 * GRACE;
        let (mut begun, mut over, mut looked_at) = (tool.cpu(), false, None);
        let mut told = CpuTime::default();
        loop {
            match tool.next(Duration::from_millis(20)) {
                Event::Line(line) => {
                    let (before, intervals) = (all.begun, all.seconds.len());
                    all.read(&line);
                    if before != all.begun {
                        begun = tool.cpu();
                        live.enter(Phase::Measuring);
                        let left = Duration::from_secs(skipped + counted)
                            .saturating_sub(all.begun.unwrap_or_default() + EARLY);
                        looked_at = Some(Instant::now() + left);
                    }
                    if all.seconds.len() > intervals {
                        told = between(begun, tool.cpu());
                        // It tells a percentile, which can't be added up.
                        live.publish(0, all.seconds.iter().sum(), 0);
                    }
                    // What follows its time is only its report.
                    over |= line.starts_with("Latency histogram");
                }
                Event::Nothing => {}
                Event::End => break,
            }
            if !over {
                all.cpu = between(begun, tool.cpu());
            }
            if looked_at.is_some_and(|at| Instant::now() >= at) {
                live.enter(Phase::Over);
            }
            // Its report is worth the moment that it takes.
            if live.is_stopped() && !over {
                all.stopped = true;
                // Nothing is known of the interval it is in.
                all.elapsed = Some(Duration::from_secs(all.seconds.len() as u64));
                all.cpu = told;
                break;
            }
            if Instant::now() > until {
                return Err("sysbench does not end".to_owned());
            }
        }
        live.enter(Phase::Over);
        live.hold();
        if all.stopped && all.seconds.is_empty() {
            return Err("ended before anything was measured".to_owned());
        }
        if !all.stopped && !tool.end()?.success() && all.done.is_none() {
            return Err(all.why_nothing());
        }
        Ok(all)
    }

    fn read(&mut self, line: &str) {
        let line = line.trim();
        if let Some((at, rate)) = interval(line) {
            // The one that ends with the warm-up may come after the checkpoint.
            if at > self.skipped {
                self.seconds.push(rate.round() as u64);
            }
        } else if self.skipped == 0 && line.starts_with("Threads started!") {
            self.begun = Some(Duration::ZERO);
        } else if let Some((milliseconds, count)) = step(line) {
            self.latency.saturating_record_n((milliseconds * 1e6) as u64, count);
        } else if let Some(count) = number(line, "transactions:") {
            self.done = Some(count as u64);
        } else if let Some(count) = number(line, "ignored errors:") {
            self.ignored = count as u64;
        } else if let Some(seconds) = number(line, "total time:") {
            let time = Duration::from_secs_f64(seconds);
            match self.begun {
                // The checkpoint's.
                None => (self.begun, self.done, self.ignored) = (Some(time), None, 0),
                Some(begun) => self.elapsed = Some(time.saturating_sub(begun)),
            }
        } else if let Some(option) = line.strip_prefix("invalid option: ") {
            self.failure.get_or_insert_with(|| format!("this version does not know {option}"));
        } else if let Some(fault) = line.strip_prefix("FATAL: ") {
            let lost = self.lost.get_or_insert_with(|| (0, fault.to_owned()));
            lost.0 += usize::from(fault.starts_with("Thread ") || fault.contains("unable to connect"));
            self.failure.get_or_insert_with(|| fault.to_owned());
        }
    }

    fn why_nothing(&self) -> String {
        let why = self.failure.as_deref().unwrap_or("it ended before anything was measured");
        format!("sysbench: {why}")
    }

    fn measured(self) -> Result<Measured, String> {
        // Ended early, it prints no report, but its intervals have been counted.
        let done = self.done.or(self.stopped.then(|| self.seconds.iter().sum()));
        let (Some(done), Some(elapsed)) = (done, self.elapsed) else { return Err(self.why_nothing()) };
        // Which these were it does not say.
        let ignored = (self.ignored > 0).then(|| Errors {
            code: "ignored".into(),
            message: "errors that sysbench ignores".into(),
            count: self.ignored,
            tolerated: true,
        });
        let kind = Kind { done, failed: 0, retried: self.ignored, latency: self.latency };
        Ok(Measured {
            elapsed,
            kinds: vec![kind],
            seconds: self.seconds,
            lag: None,
            unstarted: None,
            errors: ignored.into_iter().collect(),
            lost_clients: self.lost.filter(|(count, _)| *count > 0),
            client_cpu: self.cpu,
        })
    }
}

/// The second and the rate of `[ 3s ] thds: 4 tps: 123.45 qps: ...`.
fn interval(line: &str) -> Option<(u64, f64)> {
    let (at, rest) = line.strip_prefix('[')?.split_once("s ]")?;
    let (_, rate) = rest.split_once(" tps: ")?;
    Some((at.trim().parse().ok()?, rate.split_whitespace().next()?.parse().ok()?))
}

/// Milliseconds and count of a histogram's line, `0.118 |*****     12`.
fn step(line: &str) -> Option<(f64, u64)> {
    let (value, bar) = line.split_once('|')?;
    Some((value.trim().parse().ok()?, bar.split_whitespace().next_back()?.parse().ok()?))
}

/// The first number after a title, `transactions:     1234   (123.40 per sec.)`.
fn number(line: &str, title: &str) -> Option<f64> {
    line.strip_prefix(title)?.split_whitespace().next()?.trim_end_matches('s').parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_password_is_in_a_file_that_only_its_owner_reads() {
        let url = "mysql://me:it=is\"so@h/db";
        let mut to = crate::arm::url::parse("a", url).unwrap();
        let file = secret(&to).unwrap().unwrap();
        assert_eq!(fs::read_to_string(file.path()).unwrap(), "mysql-password=it=is\"so\n");
        assert_eq!(fs::metadata(file.path()).unwrap().permissions().mode() & 0o777, 0o600);
        to.password = None;
        assert!(secret(&to).unwrap().is_none());
        for odd in ["a b", "a#b", "a\n"] {
            to.password = Some(odd.to_owned());
            assert!(secret(&to).unwrap_err().contains("blanks or #"), "{odd}");
        }
    }

    #[test]
    fn what_sysbench_prints_is_read() {
        let line = "[ 1s ] thds: 4 tps: 1234.56 qps: 24691.15 (r/w/o: 1/2/3) lat (ms,95%): 4.33 err/s: 0.00";
        assert_eq!(interval(line), Some((1, 1234.56)));
        assert_eq!(interval("[ 2s ] Checkpoint report:"), None);
        assert_eq!(step("0.118 |****                                    12"), Some((0.118, 12)));
        assert_eq!(step("value  ------------- distribution ------------- count"), None);
        assert_eq!(
            number("transactions:                        5071   (506.99 per sec.)", "transactions:"),
            Some(5071.0)
        );
        assert_eq!(number("total time:                          10.0012s", "total time:"), Some(10.0012));
        assert_eq!(number("queries:  5", "transactions:"), None);
    }
}
