//! The real pgbench as the driver: its command line from target and load, and its output as
//! [`Measured`].
//!
//! Its progress lines, one a second, give the transactions done. Its log gives their latencies. At
//! all but low rates pgbench logs only a sample, so that the log hardly slows the load.
//!
//! The counted time begins and ends with a progress line, which leaves out pgbench's start and its
//! connecting. Its CPU time is that of its process between these two lines.

mod tool;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use crate::arm::{Dialect, Target};
use crate::drive::{Driver, Kind, Live, Measured, Native, Phase, cpu_since, cpu_time, histogram};
use crate::load::{Arrivals, Load, Pace};
use crate::record::CpuTime;
use crate::workload::{Original, Workload};
use tool::Tool;

/// Highest rate, in transactions a second, at which pgbench logs all of them. The log costs little
/// there, and a sample of few would tell little.
const LOGGED_WHOLLY: f64 = 1000.0;

#[derive(Debug, Clone)]
pub struct Pgbench {
    /// The program; PATH resolves a bare name.
    pub program: PathBuf,
    /// The share of transactions whose latency pgbench logs, above 0 and up to 1. At low rates it
    /// logs all.
    pub logged: f64,
}

impl Default for Pgbench {
    fn default() -> Self {
        Self { program: "pgbench".into(), logged: 0.1 }
    }
}

impl Driver for Pgbench {
    fn suits(&self, workload: &dyn Workload, load: &Load) -> Result<(), String> {
        original(workload)?;
        times(load).map(drop)
    }

    fn run(
        &self,
        to: &Target,
        workload: &dyn Workload,
        load: &Load,
        live: &Live,
    ) -> Result<Measured, String> {
        let folder =
            tempfile::tempdir().map_err(|error| format!("can't make a folder for pgbench's log: {error}"))?;
        let mut plan = Plan::of(self, to, workload, load, folder.path())?;
        let mut tool = Tool::start(&mut plan.command)?;
        let watched = Watched::of(&mut tool, &plan, live)?;
        drop(tool);
        plan.measured(&watched, folder.path())
    }
}

/// Keeps libpq from TLS and GSSAPI encryption, which it uses where the server offers them. The
/// native driver speaks neither.
const PLAIN: [(&str, &str); 2] = [("PGSSLMODE", "disable"), ("PGGSSENCMODE", "disable")];

fn original(workload: &dyn Workload) -> Result<Original, String> {
    let unknown = || format!("{} is no workload of pgbench; take the native driver", workload.name());
    workload.original().ok_or_else(unknown)
}

/// Seconds before counting and of counting, and the steady rate (`None` for a closed loop). pgbench
/// takes whole seconds only: a rounded warm-up would differ from that of the driver beside it.
fn times(load: &Load) -> Result<(u64, u64, Option<f64>), String> {
    let whole = |time: Duration| time.subsec_nanos() == 0;
    let refused = match load.pace {
        _ if !load.ramp.is_zero() => "begins with all clients at once: leave out --ramp",
        _ if !whole(load.warmup) => "knows whole seconds only: make --warmup whole",
        _ if !whole(load.measured) => "knows whole seconds only: make --round whole",
        _ if load.warmup.is_zero() => "has its start in its first second: take a --warmup of at least 1s",
        Pace::Closed { think } if !think.is_zero() => "can't think between transactions: leave out --think",
        Pace::Open { from, to, .. } if from != to => "keeps one rate: give --rate a single number",
        Pace::Open { arrivals: Arrivals::Even, .. } => {
            "spaces transactions by chance, not evenly: take Poisson arrivals"
        }
        Pace::Closed { .. } => return Ok((load.warmup.as_secs(), load.measured.as_secs(), None)),
        Pace::Open { from, .. } => return Ok((load.warmup.as_secs(), load.measured.as_secs(), Some(from))),
    };
    Err(format!("pgbench {refused}, or take the native driver"))
}

/// The command to run, and the seconds to count.
struct Plan {
    command: Command,
    kinds: usize,
    skipped: u64,
    counted: u64,
    logged: f64,
    open: bool,
}

impl Plan {
    fn of(
        driver: &Pgbench,
        to: &Target,
        workload: &dyn Workload,
        load: &Load,
        folder: &Path,
    ) -> Result<Self, String> {
        let Original { scripts, scale, variables, reconnect } = original(workload)?;
        if to.dialect != Dialect::Postgres {
            return Err(format!("pgbench speaks to PostgreSQL only, not to arm {}", to.arm));
        }
        let (skipped, counted, rate) = times(load)?;
        let logged = if rate.is_some_and(|rate| rate <= LOGGED_WHOLLY) { 1.0 } else { driver.logged };
        let mut command = Command::new(&driver.program);
        command.env("LC_ALL", "C").envs(PLAIN).args(["-n", "--log", "--progress-timestamp"]);
        let mut add = |name: &str, value: &str| _ = command.args([name, value]);
        add("--log-prefix", &folder.join("log").display().to_string());
        add("--sampling-rate", &logged.to_string());
        add("-P", "1");
        // One second more: the last line comes before the end.
        add("-T", &(skipped + counted + 1).to_string());
        add("-c", &load.clients.to_string());
        add("-j", &Native::threads(load).to_string());
        add("-M", load.protocol.name());
        add("--random-seed", &load.seed.to_string());
        add("-s", &scale.to_string());
        if load.tries != 1 {
            add("--max-tries", &load.tries.to_string());
        }
        if let Some(rate) = rate {
            add("-R", &rate.to_string());
        }
        for (at, (script, weight)) in scripts.iter().enumerate() {
            let file = folder.join(format!("script{at}"));
            fs::write(&file, script).map_err(|error| format!("can't write {}: {error}", file.display()))?;
            add("-f", &format!("{}@{weight}", file.display()));
        }
        for (name, value) in variables {
            add("-D", &format!("{name}={value}"));
        }
        let (host, port) = to.address.libpq();
        add("-h", &host);
        add("-p", &port.to_string());
        add("-U", &to.user);
        command.args(reconnect.then_some("-C")).arg(&to.database);
        command.envs(to.password.iter().map(|password| ("PGPASSWORD", password)));
        Ok(Self { command, kinds: scripts.len(), skipped, counted, logged, open: rate.is_some() })
    }

    /// Combines the progress lines and the log.
    fn measured(&self, watched: &Watched, folder: &Path) -> Result<Measured, String> {
        let (Some(first), Some(last)) = (watched.begun, watched.lines.last()) else {
            return Err(watched.why_nothing());
        };
        let mut kinds = vec![Kind::default(); self.kinds];
        let mut lag = histogram();
        let weight = (1.0 / self.logged).round() as u64;
        for_each_logged(folder, self.open, &mut |one| {
            if one.at <= first || one.at > last.at {
                return;
            }
            if let Some(kind) = kinds.get_mut(one.script) {
                kind.latency.saturating_record_n(one.latency * 1000, weight);
                kind.done += 1;
            }
            if let Some(microseconds) = one.lag {
                lag.saturating_record_n(microseconds * 1000, weight);
            }
        })?;
        let total: u64 = watched.lines.iter().map(|line| line.done).sum();
        share_out(total, &mut kinds);
        // The lines do not tell which script these belong to.
        kinds[0].failed = watched.lines.iter().map(|line| line.failed).sum();
        kinds[0].retried = watched.lines.iter().map(|line| line.retried).sum();
        Ok(Measured {
            elapsed: Duration::from_secs_f64(last.at - first),
            kinds,
            seconds: watched.lines.iter().map(|line| line.done).collect(),
            lag: self.open.then_some(lag),
            own_lag: None,
            by_rate: Vec::new(),
            unstarted: None,
            errors: Vec::new(),
            lost_clients: watched.lost.clone(),
            client_cpu: watched.cpu,
        })
    }
}

/// Divides the transactions done among kinds, in proportion to the logged ones.
fn share_out(total: u64, kinds: &mut [Kind]) {
    let logged: u64 = kinds.iter().map(|kind| kind.done).sum();
    let mut left = total;
    for kind in kinds.iter_mut() {
        kind.done = (total * kind.done).checked_div(logged).unwrap_or(0);
        left -= kind.done;
    }
    // Rounding leaves these over: all of them where the log is empty.
    kinds[0].done += left;
}

#[derive(Default)]
struct Watched {
    /// When counting began, in seconds since 1970.
    begun: Option<f64>,
    lines: Vec<Progress>,
    cpu: CpuTime,
    lost: Option<(usize, String)>,
    /// Its first complaint: later ones are often only consequences.
    error: Option<String>,
}

impl Watched {
    /// Reads its lines until the counted time is over, the round is stopped, or pgbench ends.
    fn of(tool: &mut Tool, plan: &Plan, live: &Live) -> Result<Self, String> {
        let mut all = Self::default();
        let (mut seen, mut before, mut done) = (0, None::<f64>, 0);
        let mut start = CpuTime::default();
        // The first line comes a second after all clients have connected.
        let mut silent_since = Instant::now();
        while !live.is_stopped() && all.lines.len() < plan.counted as usize {
            let line = match tool.lines.recv_timeout(LOOK) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) if silent_since.elapsed() > SILENCE => {
                    return Err(format!("pgbench says nothing for {} s", SILENCE.as_secs()));
                }
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => break,
            };
            silent_since = Instant::now();
            let Some(progress) = Progress::of(&line, before) else {
                all.note(line);
                continue;
            };
            seen += 1;
            before = Some(progress.at);
            done += progress.done;
            live.publish(0, done);
            if seen == plan.skipped {
                all.begun = before;
                start = cpu_time(&tool.stat);
                live.enter(Phase::Measuring);
            } else if seen > plan.skipped {
                all.cpu = cpu_since(start, &tool.stat);
                all.lines.push(progress);
            }
        }
        live.enter(Phase::Over);
        // A stopped pgbench ends at once; otherwise it runs for another second, and no one has to
        // wait.
        live.hold();
        // pgbench keeps the last of its log to itself until it ends, which is a second later.
        let over = Instant::now();
        while !live.is_stopped()
            && over.elapsed() < END
            && !matches!(tool.lines.recv_timeout(LOOK), Err(RecvTimeoutError::Disconnected))
        {}
        Ok(all)
    }

    fn note(&mut self, line: String) {
        let Some(error) = line.strip_prefix("pgbench: error: ") else { return };
        if error.starts_with("client ") {
            self.lost.get_or_insert_with(|| (0, error.to_owned())).0 += 1;
        }
        self.error.get_or_insert_with(|| error.to_owned());
    }

    fn why_nothing(&self) -> String {
        match &self.error {
            Some(error) => format!("pgbench: {error}"),
            None => "pgbench ended before anything was measured".to_owned(),
        }
    }
}

/// Interval between two checks of the stop flag.
const LOOK: Duration = Duration::from_millis(20);

const END: Duration = Duration::from_secs(20);

/// Longest silence: longer than thousands of connections take.
const SILENCE: Duration = Duration::from_secs(120);

#[derive(Debug, PartialEq)]
struct Progress {
    /// Seconds since 1970.
    at: f64,
    done: u64,
    failed: u64,
    retried: u64,
}

impl Progress {
    /// Parses `progress: 1763755000.123 s, 1234.5 tps, lat 0.809 ms stddev 0.123, 0 failed, 3
    /// retried, 4 retries`; `before` is the time of the line before.
    fn of(line: &str, before: Option<f64>) -> Option<Self> {
        let mut parts = line.strip_prefix("progress: ")?.split(", ");
        let at: f64 = parts.next()?.strip_suffix(" s")?.parse().ok()?;
        let rate: f64 = parts.next()?.strip_suffix(" tps")?.parse().ok()?;
        let counts: Vec<&str> = parts.collect();
        let count =
            |what: &str| counts.iter().find_map(|part| part.strip_suffix(what)?.parse().ok()).unwrap_or(0);
        // A line covers the time since the one before.
        let done = rate * before.map_or(1.0, |before| at - before);
        Some(Self { at, done: done.round() as u64, failed: count(" failed"), retried: count(" retries") })
    }
}

#[derive(Debug, PartialEq)]
struct Logged {
    script: usize,
    /// Its end, in seconds since 1970.
    at: f64,
    latency: u64,
    lag: Option<u64>,
}

impl Logged {
    /// Parses `client transaction latency script second microsecond [lag] [retries]`; `None` for a
    /// transaction that failed.
    fn of(line: &str, open: bool) -> Option<Self> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, _, latency, script, second, microsecond, rest @ ..] = &fields[..] else { return None };
        let microsecond: f64 = microsecond.parse().ok()?;
        Some(Self {
            script: script.parse().ok()?,
            at: second.parse::<f64>().ok()? + microsecond / 1e6,
            latency: latency.parse().ok()?,
            lag: if open { rest.first()?.parse().ok() } else { None },
        })
    }
}

fn for_each_logged(folder: &Path, open: bool, each: &mut dyn FnMut(Logged)) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("can't read pgbench's log: {error}");
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log.")) {
            let text = fs::read_to_string(&path).map_err(failed)?;
            text.lines().filter_map(|line| Logged::of(line, open)).for_each(&mut *each);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
