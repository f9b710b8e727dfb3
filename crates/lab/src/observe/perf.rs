//! System calls and symbols, by `perf`, in short parts of a round: first calls are counted, then the CPU is sampled.
//!
//! perf's own words are the reason where it isn't there or isn't permitted.

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::report::Share;

/// Shorter rounds are left alone.
const SHORTEST: Duration = Duration::from_secs(2);

/// perf opens descriptors for each process it counts.
const MOST_COUNTED: usize = 400;

/// Processes of a server are alike: so many are enough to see where its time goes.
const MOST_SAMPLED: usize = 64;

/// Samples a second of each CPU: a prime, so as not to beat with the kernel's ticks.
const FREQUENCY: &str = "199";

/// So many symbols are kept.
const KEPT: usize = 25;

/// perf at work on one round.
pub(super) struct Sampling {
    folder: TempDir,
    sampled: String,
    length: Duration,
    stage: Stage,
    /// System calls a second.
    calls: Result<f64, String>,
    recorded: Result<(), String>,
}

enum Stage {
    Counting(Child),
    Recording(Child),
    Over,
}

impl Sampling {
    /// Begins to count the system calls of these processes, for a part of `window`.
    pub(super) fn begin(processes: &[i32], window: Duration) -> Result<Self, String> {
        if window < SHORTEST {
            return Err(format!("rounds of less than {} seconds are too short for perf", SHORTEST.as_secs()));
        }
        let folder = tempfile::tempdir().map_err(|error| format!("no folder for perf's files: {error}"))?;
        let mut sampling = Self {
            sampled: list(&some_of(processes, MOST_SAMPLED)),
            length: (window / 4).min(Duration::from_secs(2)),
            stage: Stage::Over,
            calls: Err("the round ended before they were counted".into()),
            recorded: Err("the round ended before the CPU was sampled".into()),
            folder,
        };
        if processes.len() > MOST_COUNTED {
            sampling.calls = Err(format!(
                "the server has {} processes, more than perf can count at once",
                processes.len()
            ));
            sampling.record();
        } else {
            let length = (window / 5).min(Duration::from_secs(1));
            let of = list(processes);
            match sampling.start(&["stat", "-e", "raw_syscalls:sys_enter", "-p", &of], length) {
                Ok(child) => sampling.stage = Stage::Counting(child),
                Err(reason) => {
                    sampling.calls = Err(reason.clone());
                    sampling.recorded = Err(reason);
                }
            }
        }
        Ok(sampling)
    }

    /// Goes on to the next part when one is over.
    pub(super) fn tick(&mut self) {
        let (Stage::Counting(child) | Stage::Recording(child)) = &mut self.stage else { return };
        let Ok(Some(status)) = child.try_wait() else { return };
        let said = self.said();
        if matches!(self.stage, Stage::Counting(_)) {
            self.calls = calls_a_second(&said);
            self.record();
        } else {
            self.recorded = if status.success() { Ok(()) } else { Err(reason(&said)) };
            self.stage = Stage::Over;
        }
    }

    /// System calls a second, and the symbols' shares of the samples, the largest first.
    pub(super) fn end(mut self) -> (Result<f64, String>, Result<Vec<Share>, String>) {
        self.tick();
        if let Stage::Counting(child) | Stage::Recording(child) = &mut self.stage {
            // What it has so far covers a part that nobody knows: it is not used. An error means that it has ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        let symbols = std::mem::replace(&mut self.recorded, Ok(())).and_then(|()| report(&self.data()));
        (self.calls, symbols)
    }

    fn record(&mut self) {
        let (data, of) = (self.data(), self.sampled.clone());
        let path = data.to_string_lossy();
        self.stage = match self.start(&["record", "-F", FREQUENCY, "-o", &path, "-p", &of], self.length) {
            Ok(child) => Stage::Recording(child),
            Err(reason) => {
                self.recorded = Err(reason);
                Stage::Over
            }
        };
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("perf.data")
    }

    /// Starts perf, for so long.
    fn start(&self, arguments: &[&str], length: Duration) -> Result<Child, String> {
        let said = File::create(self.folder.path().join("said"))
            .map_err(|error| format!("no file for perf: {error}"))?;
        Command::new("perf")
            .args(arguments)
            .args(["--", "sleep", &length.as_secs_f64().to_string()])
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .map_err(not_started)
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("said")).unwrap_or_default()
    }
}

fn not_started(error: std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "perf is not installed (Debian: linux-perf)".into(),
        _ => format!("perf does not start: {error}"),
    }
}

/// At most so many, evenly out of all.
fn some_of(processes: &[i32], most: usize) -> Vec<i32> {
    let mut sorted = processes.to_vec();
    sorted.sort_unstable();
    let count = sorted.len().min(most);
    (0..count).map(|index| sorted[index * sorted.len() / count]).collect()
}

fn list(processes: &[i32]) -> String {
    processes.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}

/// What `perf stat` counted, by the time it says it took.
fn calls_a_second(said: &str) -> Result<f64, String> {
    let first = |line: &str| line.split_whitespace().next().map(|word| word.replace(',', ""));
    let line_with = |text: &str| said.lines().find(|line| line.contains(text)).and_then(first);
    let (count, elapsed) = (line_with("raw_syscalls:sys_enter"), line_with("seconds time elapsed"));
    let number = |word: Option<String>| word.and_then(|word| word.parse::<f64>().ok());
    match (number(count), number(elapsed)) {
        (Some(count), Some(elapsed)) if elapsed > 0.0 => Ok(count / elapsed),
        _ => Err(reason(said)),
    }
}

/// The line in which perf says what was wrong.
fn reason(said: &str) -> String {
    const SIGNS: [&str; 8] =
        ["denied", "limited", "permi", "not supported", "not counted", "can't", "No such", "failed"];
    let lines =
        || said.lines().map(str::trim).filter(|line| line.len() > 6 && !line.starts_with("Performance"));
    let sign = |line: &&str| SIGNS.iter().any(|sign| line.contains(sign));
    let line = lines().find(sign).or_else(|| lines().next()).unwrap_or("it says nothing");
    format!("perf: {}", line.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The symbols of a recording.
fn report(data: &Path) -> Result<Vec<Share>, String> {
    let output = Command::new("perf")
        .args([
            "report",
            "--stdio",
            "-q",
            "--no-children",
            "-g",
            "none",
            "--sort",
            "dso,sym",
            "-t",
            "|",
            "-i",
        ])
        .arg(data)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(not_started)?;
    if !output.status.success() {
        return Err(reason(&String::from_utf8_lossy(&output.stderr)));
    }
    let symbols = symbols(&String::from_utf8_lossy(&output.stdout));
    if symbols.is_empty() { Err("perf took no samples: the server did not run".into()) } else { Ok(symbols) }
}

/// Reads lines of share, object and symbol. Symbols of the kernel are marked as such; what has no name goes by the object
/// it lies in.
fn symbols(report: &str) -> Vec<Share> {
    let mut symbols: Vec<Share> = Vec::new();
    for line in report.lines() {
        let mut parts = line.splitn(3, '|').map(str::trim);
        let (Some(share), Some(object), Some(symbol)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let Some(share) = share.strip_suffix('%').and_then(|share| share.trim().parse::<f64>().ok()) else {
            continue;
        };
        let (kernel, symbol) = match symbol.split_once(']') {
            Some((kind, symbol)) if kind.starts_with('[') => (kind == "[k", symbol.trim()),
            _ => (false, symbol),
        };
        let name = match (symbol.starts_with("0x"), kernel) {
            (true, _) => format!("unknown in {object}"),
            (false, true) => format!("{symbol} (kernel)"),
            (false, false) => symbol.to_string(),
        };
        match symbols.iter_mut().find(|one| one.name == name) {
            Some(known) => known.share += share / 100.0,
            None => symbols.push(Share { name, share: share / 100.0 }),
        }
    }
    symbols.sort_by(|one, other| other.share.total_cmp(&one.share));
    symbols.truncate(KEPT);
    symbols
}

#[cfg(test)]
#[path = "perf_tests.rs"]
mod tests;
