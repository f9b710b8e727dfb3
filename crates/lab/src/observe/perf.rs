//! Symbols, system calls and counters, by `perf`, in short parts of a round. First it samples the
//! CPU, then it counts calls, then the events of hardware and kernel ([`counters`]). A part that
//! outlasts its time or the round is interrupted, and its results so far count.
//!
//! A shell runs the parts one after the other ([`SCRIPT`]). The lab sees from its files how far it
//! is, and interrupts it with the round.
//!
//! What must hold:
//! 1. perf takes long to begin on a busy machine. The sampling ends with the first half of the
//!    round all the same, so that counting has its part.
//! 2. perf's CPU time is never the load driver's. It would be after a wait for the shell, so that
//!    wait comes at the end; until then callers leave out [`Sampling::process`] and those below it.
//! 3. Nothing of perf outlives this value.
//! 4. No part sees the cost of another: samples and a stop at each system call would show in the
//!    counters.
//!
//! perf samples the whole machine where it has the permission, and `samples` selects the server's
//! part afterwards. So it sees all of a thousand sessions' processes alike, and no counters change
//! with the server's context switches. Elsewhere it samples some of the server's processes.
//!
//! Where perf is missing or lacks permission, its own message is the reason.

pub(super) mod counters;
mod samples;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::record::Profile;
use counters::Counted;

/// Shorter rounds end before perf begins.
const SHORTEST: Duration = Duration::from_millis(500);

/// Time limit for perf to write its results after an interrupt.
const EXIT_MAX: Duration = Duration::from_secs(5);

/// perf opens descriptors for each process it counts.
const MOST_COUNTED: usize = 400;

/// The reason for missing symbols in a round that was too short for perf's start, which waits for
/// the CPU like everything else.
const UNSAMPLED: &str =
    "most of the round was over before perf had begun to sample; longer rounds (--round) show more";

/// The reason for missing counts in such a round.
const UNCOUNTED: &str = "the round ended before they were counted";

/// Number of the server's processes, which are alike, to sample where perf may not sample the
/// machine.
const MOST_SAMPLED: usize = 64;

/// Samples the machine, or else `$some` of the server's processes, into the file `data`. Then it
/// counts the system calls of the processes `$counted`, and then `$events` of theirs. Times are in
/// seconds. The file `begun` exists once perf samples, and the file `sampled` once it no longer
/// does.
///
/// A process or thread that ends while perf reads its threads fails the whole start. So a start is
/// tried three times, with the processes that still live. 499 samples a second are a prime, so as
/// not to beat with the kernel's ticks. perf looks for no build ids (-B, -N): that takes longer
/// than a short round. A perf that `timeout` ends (124) or the round (130, a signal) has written
/// its results.
const SCRIPT: &str = r#"
over=
trap over=1 INT
export LC_ALL=C
command -v "$perf" >/dev/null || {
    echo 'it is not installed (Debian: linux-perf)' | tee recorded counted >evented
    : >sampled
    exit
}
living() {
    list=
    for process; do
        [ -d "/proc/$process" ] && list=$list,$process
    done
    echo "${list#,}"
}
record() {
    timeout --foreground -s INT "$half" "$perf" record -B -N -F 499 -o data "$@" \
        -- sh -c ': >begun; exec sleep "$0"' "$sampling" 2>recorded
    case $? in 0 | 124 | 130) : >recorded ;; *) false ;; esac
}
tries() {
    for try in 1 2 3; do
        [ "$over" ] || "$@" && return
    done
}
some() {
    record -p "$(living $some)"
}
count() {
    "$perf" stat -e "$1" -p "$(living $counted)" -- sleep "$counting" 2>"$2"
}
record -a || tries some
: >sampled
[ "$counted" ] || exit
tries count raw_syscalls:sys_enter counted
tries count "$events" evented
"#;

pub(super) struct Sampling {
    perf: PathBuf,
    folder: TempDir,
    processes: Vec<i32>,
    shell: Child,
}

/// Each result, or the reason why it is missing.
pub(super) struct Results {
    /// System calls a second.
    pub(super) calls: Result<f64, String>,
    pub(super) counters: Result<Counted, String>,
    /// The symbols' shares of the samples, the largest first.
    pub(super) symbols: Result<Profile, String>,
}

impl Sampling {
    /// Begins to sample the CPUs of these processes, for a part of `window`.
    pub(super) fn begin(perf: &Path, processes: &[i32], window: Duration) -> Result<Self, String> {
        if window < SHORTEST {
            return Err(format!("rounds of less than {SHORTEST:?} are too short for perf"));
        }
        let folder = tempfile::tempdir().map_err(|error| format!("no folder for perf's files: {error}"))?;
        let counted = if processes.len() > MOST_COUNTED { &[] } else { processes };
        let seconds = |time: Duration| time.as_secs_f64().to_string();
        // A program that began in the background of a script ignores SIGINT.
        let mut shell = Command::new("env");
        shell
            .args(["--default-signal=INT", "sh", "-c", SCRIPT])
            .current_dir(folder.path())
            .env("perf", perf)
            .env("half", seconds(window / 2))
            .env("sampling", seconds((window / 2).min(Duration::from_secs(2))))
            .env("counting", seconds((window / 8).min(Duration::from_secs(1))))
            .env("some", list(&some_of(processes, MOST_SAMPLED)))
            .env("counted", list(counted))
            .env("events", counters::EVENTS.join(","))
            // For a common interrupt; Ctrl-C is for the lab.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let shell = shell.spawn().map_err(|error| format!("no shell for perf: {error}"))?;
        Ok(Self { perf: perf.to_owned(), folder, processes: processes.to_vec(), shell })
    }

    /// A file that exists once perf no longer samples the CPU.
    pub(super) fn sampled(&self) -> PathBuf {
        self.folder.path().join("sampled")
    }

    /// The process above all of perf's.
    pub(super) fn process(&self) -> u32 {
        self.shell.id()
    }

    /// Ends perf's present part, and begins no other.
    pub(super) fn interrupt(&self) {
        self.tell(Signal::INT);
    }

    /// The results of all parts.
    pub(super) fn end(mut self) -> Results {
        self.interrupt();
        let until = Instant::now() + EXIT_MAX;
        while matches!(self.shell.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        let calls = self.counted("counted").and_then(|said| calls_a_second(&said));
        let counters = self.counted("evented").and_then(|said| counters::read(&said));
        let symbols = match self.said("recorded") {
            said if !said.trim().is_empty() => Err(reason(&said)),
            _ if !self.folder.path().join("begun").exists() => Err(UNSAMPLED.into()),
            _ => samples::read(
                &self.perf,
                &self.folder.path().join("data"),
                self.processes.iter().copied().collect(),
            ),
        };
        Results { calls, counters, symbols }
    }

    /// perf's messages in a part that counts. The error explains why it did not count.
    fn counted(&self, file: &str) -> Result<String, String> {
        let processes = self.processes.len();
        if processes > MOST_COUNTED {
            return Err(format!("the server has {processes} processes, more than perf can count at once"));
        }
        let said = self.said(file);
        if said.trim().is_empty() { Err(UNCOUNTED.into()) } else { Ok(said) }
    }

    /// Sends the shell and all that it started a signal.
    fn tell(&self, signal: Signal) {
        if let Some(group) = Pid::from_raw(self.shell.id() as i32) {
            // An error means that all have ended.
            let _ = kill_process_group(group, signal);
        }
    }

    /// perf's messages in a part.
    fn said(&self, file: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default()
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.tell(Signal::KILL);
        // An error means that another caller has waited for it.
        let _ = self.shell.wait();
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
    processes.iter().map(i32::to_string).collect::<Vec<_>>().join(" ")
}

/// System calls a second, from the counts of `perf stat` and the time it reports.
fn calls_a_second(said: &str) -> Result<f64, String> {
    if said.contains("<not counted>") {
        return Err(UNCOUNTED.into());
    }
    match (first_number(said, "raw_syscalls:sys_enter"), seconds(said)) {
        (Some(count), Some(elapsed)) => Ok(count / elapsed),
        _ => Err(reason(said)),
    }
}

/// The number at the beginning of the first line that contains `text`.
fn first_number(said: &str, text: &str) -> Option<f64> {
    let line = said.lines().find(|line| line.contains(text))?;
    line.split_whitespace().next()?.replace(',', "").parse().ok()
}

/// The time for which `perf stat` counted; `None` where it reports none.
fn seconds(said: &str) -> Option<f64> {
    first_number(said, "seconds time elapsed").filter(|elapsed| *elapsed > 0.0)
}

/// The line in which perf explains its failure.
fn reason(said: &str) -> String {
    const SIGNS: [&str; 7] = ["denied", "limited", "permi", "not supported", "can't", "No such", "failed"];
    let lines =
        || said.lines().map(str::trim).filter(|line| line.len() > 6 && !line.starts_with("Performance"));
    let sign = |line: &&str| SIGNS.iter().any(|sign| line.contains(sign));
    let line = lines().find(sign).or_else(|| lines().next()).unwrap_or("it gave no result");
    format!("perf: {}", line.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
pub(super) mod tests;
