//! Symbols and system calls, by `perf`, in short parts of a round: first the CPU is sampled, then calls are counted. What is
//! under way when the round ends is cut short and used as far as it came.
//!
//! perf's own words are the reason where it isn't there or isn't permitted.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::report::Share;

/// Shorter rounds are over before perf has begun.
const SHORTEST: Duration = Duration::from_millis(500);

/// A process that ends while perf looks at its threads fails the whole start: so often it is tried with those that live.
const TRIES: u32 = 3;

/// perf writes what it has when it is interrupted; after so long it is given up.
const PATIENCE: Duration = Duration::from_secs(5);

/// perf opens descriptors for each process it counts.
const MOST_COUNTED: usize = 400;

/// Why there are no symbols of a round that was over too soon.
const UNSAMPLED: &str = "the round ended before the CPU was sampled";

/// Processes of a server are alike: so many are enough to see where its time goes.
const MOST_SAMPLED: usize = 64;

/// Samples a second of each CPU: a prime, so as not to beat with the kernel's ticks.
const FREQUENCY: &str = "199";

/// So many symbols are kept.
const KEPT: usize = 25;

/// perf at work on one round.
pub(super) struct Sampling {
    folder: TempDir,
    processes: Vec<i32>,
    window: Duration,
    stage: Stage,
    /// Starts of this stage so far.
    tries: u32,
    /// Whether perf was told to end before its time, as the round did.
    interrupted: bool,
    /// System calls a second.
    calls: Result<f64, String>,
    recorded: Result<(), String>,
}

enum Stage {
    Recording(Child),
    Counting(Child),
    Over,
}

impl Sampling {
    /// Begins to sample the CPU where these processes run, for a part of `window`.
    pub(super) fn begin(processes: &[i32], window: Duration) -> Result<Self, String> {
        if window < SHORTEST {
            return Err(format!("rounds of less than {SHORTEST:?} are too short for perf"));
        }
        let folder = tempfile::tempdir().map_err(|error| format!("no folder for perf's files: {error}"))?;
        let mut sampling = Self {
            folder,
            processes: processes.to_vec(),
            window,
            stage: Stage::Over,
            tries: 0,
            interrupted: false,
            calls: Err("the round ended before they were counted".into()),
            recorded: Err(UNSAMPLED.into()),
        };
        sampling.stage = Stage::Recording(sampling.record()?);
        Ok(sampling)
    }

    /// Goes on to the next part when one is over.
    pub(super) fn tick(&mut self) {
        let (Stage::Recording(child) | Stage::Counting(child)) = &mut self.stage else { return };
        let Ok(Some(status)) = child.try_wait() else { return };
        self.over(status.success());
    }

    /// The round has ended: perf is to say what it has. It is sampled evenly, so that any part will do.
    pub(super) fn interrupt(&mut self) {
        self.tick();
        if let Stage::Recording(child) | Stage::Counting(child) = &self.stage {
            self.interrupted = true;
            if let Some(process) = Pid::from_raw(child.id() as i32) {
                // An error means that it has ended by itself.
                let _ = kill_process_group(process, Signal::INT);
            }
        }
    }

    /// System calls a second, and the symbols' shares of the samples, the largest first.
    pub(super) fn end(mut self) -> (Result<f64, String>, Result<Vec<Share>, String>) {
        self.interrupt();
        let until = Instant::now() + PATIENCE;
        while let Stage::Recording(child) | Stage::Counting(child) = &mut self.stage {
            match child.try_wait() {
                // It ends by the signal after it has written; whether it has is seen by its data.
                Ok(Some(_)) => self.over(true),
                Ok(None) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
                _ => {
                    let _ = child.kill();
                    let _ = child.wait();
                    self.stage = Stage::Over;
                }
            }
        }
        let symbols = std::mem::replace(&mut self.recorded, Ok(())).and_then(|()| {
            report(&self.data()).map_err(|reason| if self.interrupted { UNSAMPLED.into() } else { reason })
        });
        (self.calls, symbols)
    }

    /// perf has ended in this stage, by its own word well or not.
    fn over(&mut self, well: bool) {
        let said = self.said();
        let again = !self.interrupted && self.tries < TRIES && said.contains(" maps");
        let next = match &self.stage {
            Stage::Recording(_) if !well && again => self.record().map(Stage::Recording),
            Stage::Recording(_) => {
                self.recorded = if well { Ok(()) } else { Err(reason(&said)) };
                self.tries = 0;
                if self.interrupted { Ok(Stage::Over) } else { self.count().map(Stage::Counting) }
            }
            Stage::Counting(_) if !well && again => self.count().map(Stage::Counting),
            Stage::Counting(_) => {
                let counted = calls_a_second(&said);
                // Cut short before it had begun, it says nothing; then the reason stands that is there already.
                if counted.is_ok() || !self.interrupted {
                    self.calls = counted;
                }
                Ok(Stage::Over)
            }
            Stage::Over => Ok(Stage::Over),
        };
        self.stage = next.unwrap_or_else(|reason| {
            self.calls = Err(reason);
            Stage::Over
        });
    }

    fn record(&mut self) -> Result<Child, String> {
        let (data, of) = (self.data(), list(&some_of(&self.living(), MOST_SAMPLED)));
        let path = data.to_string_lossy();
        let length = (self.window / 2).min(Duration::from_secs(2));
        // Without build ids: to look for them takes perf longer than a short round.
        self.start(&["record", "-B", "-N", "-F", FREQUENCY, "-o", &path, "-p", &of], length)
    }

    fn count(&mut self) -> Result<Child, String> {
        let living = self.living();
        if living.len() > MOST_COUNTED {
            return Err(format!(
                "the server has {} processes, more than perf can count at once",
                living.len()
            ));
        }
        let length = (self.window / 5).min(Duration::from_secs(1));
        self.start(&["stat", "-e", "raw_syscalls:sys_enter", "-p", &list(&living)], length)
    }

    /// The server's processes that have not ended meanwhile.
    fn living(&self) -> Vec<i32> {
        let living = |process: &&i32| Path::new("/proc").join(process.to_string()).exists();
        self.processes.iter().filter(living).copied().collect()
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("perf.data")
    }

    /// Starts perf, for so long.
    fn start(&mut self, arguments: &[&str], length: Duration) -> Result<Child, String> {
        self.tries += 1;
        let said = File::create(self.folder.path().join("said"))
            .map_err(|error| format!("no file for perf: {error}"))?;
        Command::new("perf")
            .args(arguments)
            .args(["--", "sleep", &length.as_secs_f64().to_string()])
            .env("LC_ALL", "C")
            // perf and its sleep in a group of their own, to be interrupted together; Ctrl-C is for the lab.
            .process_group(0)
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
    let line = lines().find(sign).or_else(|| lines().next()).unwrap_or(
        "it ended without a word; `perf record -p` with the server's process shows whether it works here",
    );
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
mod tests;
