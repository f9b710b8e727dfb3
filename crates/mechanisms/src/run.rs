//! A run: the rows, one after the other; within a row, passes in which the arms take turns with
//! each number of threads.
//!
//! What must hold:
//! 1. An impossible request ends with status 2 before anything is measured.
//! 2. Each pass begins with another arm, so that no arm always runs behind the same one.
//! 3. Each arm has a round with the lock profiler on, with the most threads, after all others.
//! 4. Ctrl-C ends the round under way. The outputs have the rounds until then.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use lab::files;
use lab::run::{Ending, Fault};
use sync::atomic::{AtomicBool, Ordering};

use crate::engine::{self, Run};
use crate::locks;
use crate::options::Mechanism;
use crate::page;
use crate::report::{Measured, Report};
use crate::round::{Outcome, round};
use crate::rows::{ROWS, Row};

/// More threads than any machine of today has, and few enough to be started.
const MOST_THREADS: usize = 10_000;
/// The least of the highest number of threads by default.
const PAST: usize = 64;
/// The shortest round: a time slice of each of a few threads.
const SHORTEST: f64 = 0.01;
/// The longest round, an hour.
const LONGEST: f64 = 3_600.0;

/// Runs the command line. Setting `stop` ends the run early.
///
/// # Errors
/// The request is impossible, threads cannot be started, or an output cannot be written.
pub fn run(options: &Mechanism, stop: &AtomicBool) -> Result<Ending, Fault> {
    if options.list {
        files::print(&list())?;
        return Ok(Ending::Whole);
    }
    let refused = |reason| Fault { reason, status: 2 };
    let outputs = [&options.json, &options.html, &options.markdown];
    outputs.into_iter().flatten().try_for_each(|path| files::writable(path)).map_err(refused)?;
    if let Some(folder) = &options.plots {
        fs::create_dir_all(folder).map_err(|error| refused(format!("{}: {error}", folder.display())))?;
    }
    let engine = options.engine.iter().map(|path| Run::stored(path));
    let engine = engine.collect::<Result<Vec<_>, _>>().map_err(refused)?;
    if let Some(name) = engine::repeated(&engine) {
        return Err(refused(format!("--engine: two runs are named {name}: rename a file")));
    }
    if let Some(path) = &options.from {
        put(options, &Report::stored(path).map_err(refused)?, &engine)?;
        return Ok(Ending::Whole);
    }
    let plan = Plan::of(options).map_err(refused)?;
    let mut report = Report::begin(plan.time, plan.rounds);
    let mut broken = Vec::new();
    for row in &plan.rows {
        lab::say(&format!("{}: {} arms, threads {:?}", row.id, row.arms.len(), plan.threads));
        match plan.measure(row, stop) {
            Ok(measured) => report.add(row, &plan.threads, &measured),
            Err(fault) => {
                lab::say(&format!("{}: {fault}", row.id));
                broken.push(fault);
            }
        }
        if is_set(stop) {
            lab::say("stopped: the report has what was measured until now");
            break;
        }
    }
    put(options, &report, &engine)?;
    Ok(match broken.is_empty() {
        _ if is_set(stop) => Ending::Stopped,
        true => Ending::Whole,
        false => Ending::Broken,
    })
}

/// Writes the outputs, and prints the table.
fn put(options: &Mechanism, report: &Report, engine: &[Run]) -> Result<(), String> {
    let put = |path: &Option<PathBuf>, text: &dyn Fn() -> String| {
        path.as_deref().map_or(Ok(()), |path| files::put(path, &text()))
    };
    put(&options.json, &|| report.json())?;
    let page = page::page(report, engine);
    put(&options.html, &|| page.html())?;
    put(&options.markdown, &|| page.markdown(plots(options).as_deref()))?;
    if let Some(folder) = &options.plots {
        page.pictures().try_for_each(|(name, text)| files::put(&folder.join(name), &text))?;
    }
    files::print(&report.table(files::width()))
}

/// The plots' folder as the Markdown names it: seen from its own folder, if it lies in that.
fn plots(options: &Mechanism) -> Option<String> {
    let folder = options.plots.as_deref()?;
    let beside = options.markdown.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
    Some(folder.strip_prefix(beside).unwrap_or(folder).display().to_string())
}

/// A line for each row.
fn list() -> String {
    let width = ROWS.iter().map(|row| row.id.len()).max().unwrap_or_default();
    let line = |row: &Row| {
        let needs = row.needs.map_or(String::new(), |needs| format!("; {}", needs.words()));
        format!("{:width$}  {} ({}{needs})\n", row.id, row.about, row.report)
    };
    ROWS.iter().map(line).collect()
}

fn is_set(stop: &AtomicBool) -> bool {
    // Relaxed: the flag publishes nothing else.
    stop.load(Ordering::Relaxed)
}

struct Plan {
    rows: Vec<&'static Row>,
    threads: Vec<usize>,
    time: Duration,
    rounds: u32,
}

impl Plan {
    /// Reads the command line.
    ///
    /// # Errors
    /// A line: the fault, and the remedy.
    fn of(options: &Mechanism) -> Result<Self, String> {
        let threads = match &options.threads {
            Some(threads) => lab::steps("--threads", threads)?,
            None => default_threads(thread::available_parallelism().map_or(1, usize::from)),
        };
        if let Some(most) = threads.iter().find(|threads| **threads > MOST_THREADS) {
            return Err(format!("--threads {most}: more than {MOST_THREADS}; name fewer"));
        }
        if !(SHORTEST..=LONGEST).contains(&options.seconds) {
            return Err(format!(
                "--seconds {}: write a number from {SHORTEST} to {LONGEST}",
                options.seconds
            ));
        }
        let time = Duration::from_secs_f64(options.seconds);
        Ok(Self { rows: rows(&options.rows)?, threads, time, rounds: options.rounds })
    }

    /// Measures a row. An arm that cannot be measured here with a number of threads is left out
    /// with that number from then on.
    fn measure(&self, row: &Row, stop: &AtomicBool) -> Result<Measured, String> {
        let mut measured = Measured::of(row, self.threads.len());
        for pass in 0..self.rounds {
            for (place, &threads) in self.threads.iter().enumerate() {
                for turn in 0..row.arms.len() {
                    let at = (turn + pass as usize) % row.arms.len();
                    let arm = &row.arms[at];
                    if measured.absent[at][place].is_some() {
                        continue;
                    }
                    let done = match (arm.start)(threads) {
                        Ok(subject) => round(&*subject, threads, pass, self.time, stop)
                            .map_err(|fault| format!("{}: {fault}", arm.name))?,
                        Err(reason) => Outcome::Refused(reason),
                    };
                    match done {
                        Outcome::Counted(round) => measured.rounds[at][place].push(round),
                        Outcome::Stopped => return Ok(measured),
                        Outcome::Refused(reason) => {
                            let name = arm.name;
                            lab::say(&format!("{}: {name} with {threads} threads: {reason}", row.id));
                            measured.absent[at][place] = Some(reason);
                            // It has no figure with this number, also where earlier passes had one.
                            measured.rounds[at][place].clear();
                        }
                    }
                }
            }
        }
        self.profile(row, stop, &mut measured)?;
        Ok(measured)
    }

    /// Looks in a round of its own where the threads of each arm wait for locks.
    fn profile(&self, row: &Row, stop: &AtomicBool, measured: &mut Measured) -> Result<(), String> {
        let (place, &threads) =
            self.threads.iter().enumerate().max_by_key(|(_, threads)| **threads).expect("some");
        for (at, arm) in row.arms.iter().enumerate() {
            if measured.absent[at][place].is_some() || is_set(stop) {
                continue;
            }
            let Ok(subject) = (arm.start)(threads) else { continue };
            let time = self.time.min(locks::ROUND);
            let (done, worst) = locks::during(|| round(&*subject, threads, 0, time, stop));
            match done.map_err(|fault| format!("{}: {fault}", arm.name))? {
                Outcome::Counted(_) => measured.locks[at] = worst,
                Outcome::Stopped | Outcome::Refused(_) => {}
            }
        }
        Ok(())
    }
}

/// The numbers of threads on a machine with so many processors. Powers of 4 come with the number of
/// processors and twice as many. The last is past the processors, where a holder loses its own.
fn default_threads(processors: usize) -> Vec<usize> {
    let most = PAST.max(2 * processors).min(MOST_THREADS);
    let fourfold = std::iter::successors(Some(1usize), |step| step.checked_mul(4));
    let mut threads: Vec<usize> = fourfold.take_while(|step| *step <= most).collect();
    threads.extend([processors.min(most), most.min(2 * processors)]);
    threads.sort_unstable();
    threads.dedup();
    threads
}

/// The rows with these names; all without names.
fn rows(names: &[String]) -> Result<Vec<&'static Row>, String> {
    if names.is_empty() {
        return Ok(ROWS.iter().collect());
    }
    let find = |name: &String| {
        let known = || ROWS.iter().map(|row| row.id.to_owned()).collect::<Vec<_>>();
        let found = ROWS.iter().find(|row| row.id == name);
        found.ok_or_else(|| format!("there is no row {name}: name {}", lab::figures::list(&known())))
    };
    names.iter().map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Mechanism,
    }

    fn read(words: &str) -> Mechanism {
        let words = std::iter::once("mechanism").chain(words.split_whitespace());
        <Line as clap::Parser>::try_parse_from(words).unwrap().options
    }

    #[test]
    fn the_default_goes_past_the_cores_and_has_all_rows() {
        let plan = Plan::of(&read("")).unwrap();
        assert_eq!(plan.rows.len(), ROWS.len());
        let cores = thread::available_parallelism().unwrap().get();
        assert!(plan.threads.contains(&cores) && plan.threads.last() >= Some(&(2 * cores)));
        for (processors, expected) in [
            (1, &[1, 2, 4, 16, 64][..]),
            (2, &[1, 2, 4, 16, 64]),
            (8, &[1, 4, 8, 16, 64]),
            (40, &[1, 4, 16, 40, 64, 80]),
            (384, &[1, 4, 16, 64, 256, 384, 768]),
            (MOST_THREADS, &[1, 4, 16, 64, 256, 1024, 4096, MOST_THREADS]),
        ] {
            assert_eq!(default_threads(processors), expected);
        }
    }

    #[test]
    fn impossible_requests_name_the_fault_and_the_remedy() {
        for (words, expected) in [
            ("spim", "there is no row spim: name spin, "),
            ("--threads 0", "begin at 1, not at 0"),
            ("--threads 20000", "more than 10000"),
            ("--seconds 0", "write a number from 0.01 to 3600"),
            ("--seconds NaN", "write a number"),
        ] {
            let fault = Plan::of(&read(words)).err().unwrap_or_else(|| panic!("{words} is refused"));
            assert!(fault.contains(expected), "{fault}");
        }
    }

    #[test]
    fn a_row_gives_each_arm_a_round_a_pass_and_a_stop_leaves_the_rest_out() {
        let _alone = crate::locks::tests::alone();
        let options = read("sleep-lock --threads 1,3 --seconds 0.01 --rounds 2");
        let plan = Plan::of(&options).unwrap();
        let measured = plan.measure(plan.rows[0], &AtomicBool::new(false)).unwrap();
        let passes =
            |rounds: &Vec<crate::round::Round>| rounds.iter().map(|round| round.pass).collect::<Vec<_>>();
        assert!(measured.rounds.iter().flatten().all(|rounds| passes(rounds) == [0, 1]));
        assert_eq!((measured.rounds.len(), measured.rounds[0].len()), (plan.rows[0].arms.len(), 2));
        assert!(measured.locks[2].as_ref().is_none_or(|worst| worst.count > 0));
        let measured = plan.measure(plan.rows[0], &AtomicBool::new(true)).unwrap();
        assert!(measured.rounds.iter().flatten().all(Vec::is_empty));
    }

    #[test]
    fn the_list_has_a_line_for_each_row() {
        let list = list();
        assert_eq!(list.lines().count(), ROWS.len());
        assert!(list.lines().zip(ROWS).all(|(line, row)| line.starts_with(row.id)), "{list}");
    }
}
