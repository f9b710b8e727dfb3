//! Symbols and system calls, by `perf`, in short parts of a round: first it samples the CPU, then
//! it counts calls. A part that outlasts its time or the round is interrupted, and its results so
//! far count.
//!
//! What must hold:
//! 1. perf takes long to begin on a busy machine, and lengths count from its beginning. The
//!    sampling ends with the first half of the round all the same, so that counting has its part.
//!    Only a sampling that has hardly begun by then may go on, up to three quarters: a start
//!    without a result is worse than none.
//! 2. perf's CPU time is never the load driver's. It would be after a wait for perf, so that wait
//!    comes at the end; until then callers leave out [`Sampling::perfs`].
//! 3. Nothing of perf outlives this value.
//!
//! perf samples the whole machine where it has the permission, and `samples` selects the server's
//! part afterwards. So it sees all of a thousand sessions' processes alike, and no counters change
//! with the server's context switches. Elsewhere it samples some of the server's processes.
//!
//! Where perf is missing or lacks permission, its own message is the reason.

mod samples;

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tempfile::TempDir;

use crate::record::Profile;

/// Shorter rounds end before perf begins.
const SHORTEST: Duration = Duration::from_millis(500);

/// Tries with the processes that still live. A process or thread that ends while perf reads its
/// threads fails the whole start, with a message about maps or none.
const TRIES: u32 = 3;

/// Time limit for perf to write its results after an interrupt.
const EXIT_MAX: Duration = Duration::from_secs(5);

/// perf opens descriptors for each process it counts.
const MOST_COUNTED: usize = 400;

/// The reason for missing symbols in a round that was too short for perf's start, which waits for
/// the CPU like everything else.
const UNSAMPLED: &str =
    "most of the round was over before perf had begun to sample; longer rounds (--round) show more";

/// Number of the server's processes, which are alike, to sample where perf may not sample the
/// machine.
const MOST_SAMPLED: usize = 64;

/// Samples a second of each CPU: a prime, so as not to beat with the kernel's ticks.
const FREQUENCY: &str = "499";

pub(super) struct Sampling {
    /// The program and its first arguments.
    program: Vec<String>,
    folder: TempDir,
    processes: Vec<i32>,
    window: Duration,
    begun: Instant,
    /// The first time perf was seen sampling.
    sampled_from: Option<Instant>,
    stage: Stage,
    /// perf processes of stages that are over.
    ended: Vec<Child>,
    tries: u32,
    /// Whether perf samples the whole machine, as far as is known.
    all: bool,
    /// Whether the sampling was interrupted before its time.
    cut: bool,
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
    /// Begins to sample the CPUs of these processes, for a part of `window`.
    pub(super) fn begin(processes: &[i32], window: Duration) -> Result<Self, String> {
        Self::begin_by(vec!["perf".into()], processes, window)
    }

    pub(super) fn begin_by(
        program: Vec<String>,
        processes: &[i32],
        window: Duration,
    ) -> Result<Self, String> {
        if window < SHORTEST {
            return Err(format!("rounds of less than {SHORTEST:?} are too short for perf"));
        }
        let folder = tempfile::tempdir().map_err(|error| format!("no folder for perf's files: {error}"))?;
        let mut sampling = Self {
            program,
            folder,
            processes: processes.to_vec(),
            window,
            begun: Instant::now(),
            sampled_from: None,
            stage: Stage::Over,
            ended: Vec::new(),
            tries: 0,
            all: true,
            cut: false,
            interrupted: false,
            calls: Err("the round ended before they were counted".into()),
            recorded: Err(UNSAMPLED.into()),
        };
        sampling.stage = Stage::Recording(sampling.record()?);
        Ok(sampling)
    }

    /// Goes on to the next part when one is over.
    pub(super) fn tick(&mut self) {
        if let Some(well) = self.has_ended() {
            self.over(well);
        } else if self.is_recording() && !self.cut && self.has_its_part() {
            self.cut = true;
            self.tell(Signal::INT);
        }
    }

    /// The round has ended: interrupts perf, which writes its results so far. It samples evenly, so
    /// that any part will do.
    pub(super) fn interrupt(&mut self) {
        if std::mem::replace(&mut self.interrupted, true) {
            return;
        }
        self.cut |= self.is_recording();
        self.tell(Signal::INT);
    }

    pub(super) fn is_recording(&self) -> bool {
        matches!(self.stage, Stage::Recording(_))
    }

    /// perf's processes, including ended ones.
    pub(super) fn perfs(&self) -> Vec<u32> {
        self.ended.iter().chain(self.stage.perf()).map(Child::id).collect()
    }

    /// System calls a second, and the symbols' shares of the samples, the largest first.
    pub(super) fn end(mut self) -> (Result<f64, String>, Result<Profile, String>) {
        self.interrupt();
        let until = Instant::now() + EXIT_MAX;
        while self.stage.perf().is_some() {
            match self.has_ended() {
                Some(well) => self.over(well),
                None if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
                None => break,
            }
        }
        let recorded = std::mem::replace(&mut self.recorded, Ok(()));
        let symbols = recorded.and_then(|()| {
            let read = samples::read(&self.program, &self.data(), self.processes.iter().copied().collect());
            // If perf was interrupted before it sampled, it has no message of its own.
            read.map_err(
                |reason| if self.cut && self.sampled_from.is_none() { UNSAMPLED.into() } else { reason },
            )
        });
        (std::mem::replace(&mut self.calls, Ok(0.0)), symbols)
    }

    /// Whether perf has ended in this stage, and then whether well. An interrupted perf dies of the
    /// signal once it has written. If its sleep had not begun, perf ends the sleep, and dies as the
    /// sleep did. This does not wait for it: see above.
    fn has_ended(&self) -> Option<bool> {
        let perf = Pid::from_raw(self.stage.perf()?.id() as i32)?;
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(perf), look).ok().flatten()?;
        let told = [Signal::INT, Signal::TERM].map(|signal| Some(signal.as_raw()));
        Some(status.exit_status() == Some(0) || told.contains(&status.terminating_signal()))
    }

    /// Whether the sampling must end so that counting has its part.
    fn has_its_part(&mut self) -> bool {
        if self.sampled_from.is_none() && self.mark().exists() {
            self.sampled_from = Some(Instant::now());
        }
        let least = self.window / 10;
        let is_sampled = self.sampled_from.is_some_and(|from| from.elapsed() >= least);
        self.is_half_over() && is_sampled || self.begun.elapsed() >= self.window / 4 * 3
    }

    fn is_half_over(&self) -> bool {
        self.begun.elapsed() >= self.window / 2
    }

    /// Sends perf and its sleep a signal.
    fn tell(&self, signal: Signal) {
        if let Some(group) = self.stage.perf().and_then(|perf| Pid::from_raw(perf.id() as i32)) {
            // An error means that it has ended by itself.
            let _ = kill_process_group(group, signal);
        }
    }

    /// perf has ended in this stage; `well` is its own verdict.
    fn over(&mut self, well: bool) {
        let said = self.said();
        let stumbled = said.trim().is_empty() || said.contains(" maps");
        let mut again = !well && stumbled && !self.interrupted && self.tries < TRIES;
        let next = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Recording(perf) => {
                self.ended.push(perf);
                if !well && !again && std::mem::take(&mut self.all) {
                    (again, self.tries) = (!self.interrupted, 0);
                }
                if again && !self.is_half_over() {
                    self.record().map(Stage::Recording)
                } else {
                    self.recorded = if well { Ok(()) } else { Err(reason(&said)) };
                    self.tries = 0;
                    if self.interrupted { Ok(Stage::Over) } else { self.count().map(Stage::Counting) }
                }
            }
            Stage::Counting(perf) => {
                self.ended.push(perf);
                if again {
                    self.count().map(Stage::Counting)
                } else {
                    let counted = calls_a_second(&said);
                    // If perf was interrupted before it began, it has no result; then the earlier
                    // reason stays.
                    if counted.is_ok() || !well || !self.interrupted {
                        self.calls = counted;
                    }
                    Ok(Stage::Over)
                }
            }
            Stage::Over => Ok(Stage::Over),
        };
        self.stage = next.unwrap_or_else(|reason| {
            self.calls = Err(reason);
            Stage::Over
        });
    }

    fn record(&mut self) -> Result<Child, String> {
        let (data, some) = (self.data(), list(&some_of(&self.living(), MOST_SAMPLED)));
        let path = data.to_string_lossy();
        let length = (self.window / 2).min(Duration::from_secs(2));
        // Without build ids: perf takes longer than a short round to find them.
        let mut arguments = vec!["record", "-B", "-N", "-F", FREQUENCY, "-o", &path];
        arguments.extend(if self.all { vec!["-a"] } else { vec!["-p", &some] });
        self.start(&arguments, length)
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

    /// The server's processes that still live.
    fn living(&self) -> Vec<i32> {
        let living = |process: &&i32| Path::new("/proc").join(process.to_string()).exists();
        self.processes.iter().filter(living).copied().collect()
    }

    fn data(&self) -> std::path::PathBuf {
        self.folder.path().join("perf.data")
    }

    /// A file that exists once perf's command runs, and with it perf samples or counts.
    fn mark(&self) -> std::path::PathBuf {
        self.folder.path().join("begun")
    }

    fn start(&mut self, arguments: &[&str], length: Duration) -> Result<Child, String> {
        self.tries += 1;
        let said = File::create(self.folder.path().join("said"))
            .map_err(|error| format!("no file for perf: {error}"))?;
        perf(&self.program)
            .args(arguments)
            .args(["--", "sh", "-c", r#": > "$0"; exec sleep "$1""#])
            .arg(self.mark())
            .arg(length.as_secs_f64().to_string())
            // perf and its sleep have a process group of their own, for a common interrupt; Ctrl-C
            // is for the lab.
            .process_group(0)
            .stdout(Stdio::null())
            .stderr(said)
            .spawn()
            .map_err(not_started)
    }

    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("said")).unwrap_or_default()
    }
}

impl Stage {
    fn perf(&self) -> Option<&Child> {
        match self {
            Self::Recording(perf) | Self::Counting(perf) => Some(perf),
            Self::Over => None,
        }
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.tell(Signal::KILL);
        if let Stage::Recording(perf) | Stage::Counting(perf) =
            std::mem::replace(&mut self.stage, Stage::Over)
        {
            self.ended.push(perf);
        }
        for perf in &mut self.ended {
            // An error means that another caller has waited for it.
            let _ = perf.wait();
        }
    }
}

fn perf(program: &[String]) -> Command {
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).env("LC_ALL", "C").stdin(Stdio::null());
    command
}

fn not_started(error: std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "perf is not installed (Debian: linux-perf)".into(),
        _ => format!("perf does not start: {error}"),
    }
}

/// At most `most` processes, evenly out of all.
fn some_of(processes: &[i32], most: usize) -> Vec<i32> {
    let mut sorted = processes.to_vec();
    sorted.sort_unstable();
    let count = sorted.len().min(most);
    (0..count).map(|index| sorted[index * sorted.len() / count]).collect()
}

fn list(processes: &[i32]) -> String {
    processes.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}

/// System calls a second, from the counts of `perf stat` and the time it reports.
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

/// The line in which perf explains its failure.
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

#[cfg(test)]
mod tests;
