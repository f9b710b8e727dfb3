//! A run from the command line to the report: it reaches or starts arms, loads tables, runs the
//! sweep, checks the data, and writes every output.
//!
//! What must hold:
//! 1. A run refuses an impossible request before it starts anything (`asked`, `outputs`).
//! 2. The report names an arm that can't be reached, loaded or prepared, with its reason; the
//!    others go on. Only without any arm is there no run.
//! 3. A run writes all its measurements, however it ends: it stores them as soon as the sweep is
//!    over, and again with the checks' results. A closed standard error does not end the run.

mod asked;
mod named;
mod outputs;
mod ready;

use std::path::{Path, PathBuf};

use sync::atomic::{AtomicBool, Ordering};

use crate::figures;
use crate::files;
use crate::findings;
use crate::interrupt::STOPPED;
use crate::observe::{self, Awake, Split};
use crate::options::{Bench, Outputs, RunOptions, Verb};
use crate::record::{self, Report};
use crate::report::{self, Stored};
use crate::sweep::{Contender, Swept, ThisMachine, sweep};
use crate::view;

use asked::Asked;
use outputs::Files;
pub use outputs::stored;
use ready::Arm;

/// The outcome of a run or a comparison; from [`Ending::Stopped`] on, the first that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The run measured everything asked for, and all checks hold; no threshold was crossed.
    Whole,
    /// The run was stopped; the report has the measurements until then.
    Stopped,
    /// A check of the data failed.
    Broken,
    /// Something is missing, or a threshold cannot judge a point; the report says what.
    Missing,
    /// An interval stayed wider than asked.
    Wide,
    /// Two runs have no point in common.
    Incomparable,
    /// A threshold of a comparison was crossed.
    Crossed,
}

impl Ending {
    /// The program's exit status; [`Fault`] has 1 and 2.
    pub fn status(self) -> u8 {
        match self {
            Self::Whole => 0,
            Self::Missing => 3,
            Self::Wide => 4,
            Self::Broken => 5,
            Self::Incomparable => 6,
            Self::Crossed => 7,
            Self::Stopped => STOPPED,
        }
    }
}

/// The reason why there is no outcome.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// A line for people; a script's fault has several.
    pub reason: String,
    /// The program's exit status: 2 if the command line asks for the impossible, 1 otherwise.
    pub status: u8,
}

impl Fault {
    /// A request that the lab refuses before it starts anything.
    fn asked(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), status: 2 }
    }
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self { reason, status: 1 }
    }
}

/// Runs the command line. `executable` is the program that has a `serve` command; setting `stop`
/// ends the run early.
///
/// # Errors
/// The request is impossible, nothing could be measured at all, or a report could not be written.
pub fn bench(options: &Bench, executable: &Path, stop: &AtomicBool) -> Result<Ending, Fault> {
    match &options.verb {
        Some(Verb::Compare { first, second, fail_if }) => {
            let (first, second) = (concluded(first)?, concluded(second)?);
            let compared = report::compare::compare(&first, &second, fail_if);
            files::print(&compared.table(files::width()))?;
            Ok(match () {
                () if !compared.broken.is_empty() => Ending::Broken,
                () if !compared.is_any() => Ending::Incomparable,
                () if !compared.crossed.is_empty() => Ending::Crossed,
                () if !compared.unjudged.is_empty() => Ending::Missing,
                () => Ending::Whole,
            })
        }
        Some(Verb::Report { runs, outputs }) => match &runs[..] {
            [run] => shown_again(run, outputs),
            several => shown_together(several, outputs),
        },
        None => run(&options.run, executable, stop),
    }
}

/// A stored run with its conclusions. They follow from the points alone: an older program may have
/// found less in them.
fn concluded(run: &Path) -> Result<Report, String> {
    let mut report = outputs::stored(run)?;
    findings::conclude(&mut report);
    Ok(report)
}

fn shown_again(run: &Path, outputs: &Outputs) -> Result<Ending, Fault> {
    let files = Files { json: None, outputs };
    files.writable(&[run]).map_err(Fault::asked)?;
    let report = concluded(run)?;
    files.write(&report)?;
    Ok(Ending::Whole)
}

/// Several runs on one page, each under its file's name, and their plots. A repeated name gets a
/// number.
fn shown_together(runs: &[PathBuf], outputs: &Outputs) -> Result<Ending, Fault> {
    let Outputs { markdown: Some(page), html: None, plots } = outputs else {
        return Err(Fault::asked(
            "several runs make one page of Markdown: take --markdown, and --plots for their plots",
        ));
    };
    Files { json: None, outputs }.writable(runs).map_err(Fault::asked)?;
    let mut stored: Vec<Stored> = Vec::new();
    for run in runs {
        let report = concluded(run)?;
        let stem = run.file_stem().unwrap_or_default().to_string_lossy();
        let mut names = (2..).map(|number| format!("{stem}-{number}"));
        let is_new = |name: &String| stored.iter().all(|one| one.name != *name);
        let name = Some(stem.to_string()).filter(is_new).or_else(|| names.find(is_new));
        let name = name.expect("numbers do not end");
        let mut shown = Vec::new();
        for (what, _, svg) in plots.iter().flat_map(|_| report::pictures(&report)) {
            let file = plots.clone().unwrap_or_default().join(format!("{name}-{what}.svg"));
            files::put(&file, &svg)?;
            let beside = file.strip_prefix(page.parent().unwrap_or(Path::new(""))).unwrap_or(&file);
            shown.push((what, beside.display().to_string()));
        }
        stored.push(Stored { name, report, plots: shown });
    }
    files::put(page, &report::runs(&stored))?;
    Ok(Ending::Whole)
}

fn run(options: &RunOptions, executable: &Path, stop: &AtomicBool) -> Result<Ending, Fault> {
    let command = outputs::command(std::env::args_os());
    let asked = Asked::of(options).map_err(Fault::asked)?;
    let files = Files { json: options.json.as_deref(), outputs: &options.outputs };
    let scripts: Vec<&str> =
        options.file.iter().map(|file| file.rsplit_once('@').map_or(&**file, |(name, _)| name)).collect();
    files.writable(&scripts).map_err(Fault::asked)?;
    let awake = options.awake.then(Awake::keep).transpose();
    let _awake = awake.map_err(|why| Fault::asked(format!("--awake: {why}")))?;
    let began = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let machine = ThisMachine::begin();
    let mut facts = observe::facts();
    let (mut arms, mut missing) = ready::arms(options, &asked, executable, stop);
    if arms.is_empty() {
        if !is_set(stop) {
            return Err("no arm is left".to_owned().into());
        }
        view::say("stopped before anything was measured");
        return Ok(Ending::Stopped);
    }
    let servers: Vec<u32> =
        arms.iter().flat_map(|arm| arm.running.target.processes.iter().copied()).collect();
    for arm in &mut arms {
        arm.observer.leave_out(&servers);
    }
    if let Some(split) = &asked.split {
        pin(split, &arms, &mut facts, &mut missing);
    }
    let swept = swept(&mut arms, &asked, &machine, stop);
    let wide = swept.wide.len();
    missing.extend(swept.missing.into_iter().chain(swept.wide));
    let mut report = Report {
        version: record::VERSION,
        began,
        command,
        machine: record::Machine { facts, noise: swept.noise },
        load: asked.note(options),
        arms: arms.iter().map(Arm::note).collect(),
        points: swept.points,
        fits: Vec::new(),
        verdict: Vec::new(),
        findings: Vec::new(),
        missing,
    };
    store_unchecked(&mut report, &files);
    check(&mut report, &arms, stop);
    findings::conclude(&mut report);
    match report.points.is_empty() {
        // The files may have the measurements of an earlier run, which are worth more.
        true => files::print(&report::table(&report, files::width()))?,
        false => files.write(&report)?,
    }
    // Servers may take long to stop: stop them after everything is written.
    drop(arms);
    Ok(ending(&report, wide, is_set(stop))?)
}

/// The outcome of a run; `wide` of its missing lines are intervals that stayed wide.
fn ending(report: &Report, wide: usize, stopped: bool) -> Result<Ending, String> {
    if report.points.is_empty() && !stopped {
        return Err("nothing was measured".into());
    }
    let broken = report.points.iter().flat_map(|point| &point.checks).any(|check| check.fault.is_some());
    Ok(match report.missing.len() {
        _ if stopped => Ending::Stopped,
        _ if broken => Ending::Broken,
        missing if missing > wide => Ending::Missing,
        1.. => Ending::Wide,
        0 => Ending::Whole,
    })
}

fn is_set(stop: &AtomicBool) -> bool {
    // Relaxed: the flag publishes nothing else.
    stop.load(Ordering::Relaxed)
}

/// Pins the client; the lab's own servers run on their CPUs already. A failure appears under
/// Missing, as other servers do; the run goes on.
fn pin(split: &Split, arms: &[Arm], facts: &mut Vec<(String, String)>, missing: &mut Vec<String>) {
    if let Err(reason) = split.pin_client() {
        let line = format!("the client is not pinned: {reason}");
        view::say(&line);
        return missing.push(line);
    }
    let (own, others): (Vec<&Arm>, Vec<&Arm>) = arms.iter().partition(|arm| arm.running.is_own());
    let name = |arm: &&Arm| arm.running.target.arm.clone();
    let servers = figures::list(&own.iter().map(name).collect::<Vec<_>>());
    let Split { client, server } = split;
    facts.push(("pinned".into(), format!("client to CPUs {client:?}, servers ({servers}) to {server:?}")));
    missing.extend(others.iter().map(name).map(|name| {
        format!("{name}: its server is not pinned, since it ran already: pin it to {server:?} with taskset")
    }));
}

fn swept(arms: &mut [Arm], asked: &Asked, machine: &ThisMachine, stop: &AtomicBool) -> Swept {
    let mut contenders: Vec<Contender<'_>> = arms
        .iter_mut()
        .map(|arm| {
            let (target, ended) = arm.running.watched();
            Contender {
                target,
                driver: &*arm.driver,
                workload: &*arm.workload,
                observer: &mut arm.observer,
                ended: Box::new(ended),
            }
        })
        .collect();
    let mut progress = view::progress();
    sweep(&mut contenders, &asked.plan, machine, stop, &mut *progress)
}

/// Stores the measurements before the checks, which may take long and be ended.
fn store_unchecked(report: &mut Report, files: &Files<'_>) {
    if report.points.is_empty() {
        return;
    }
    report.missing.push("the data was not checked: the run ended before".into());
    findings::conclude(report);
    match files.store(report) {
        Ok(Some(stored)) => view::say(&format!("{} has what was measured", stored.display())),
        Ok(None) => {}
        // The run tries once more at the end.
        Err(error) => view::say(&error),
    }
    report.missing.pop();
}

/// Checks each arm's data, and notes the results at its last point. A Ctrl-C ends the checks,
/// unless one has ended the run before.
fn check(report: &mut Report, arms: &[Arm], stop: &AtomicBool) {
    let stopped = is_set(stop);
    if stopped {
        view::say(
            "stopped: what was measured until now is checked and reported (a second Ctrl-C ends at once)",
        );
    }
    let never = AtomicBool::new(false);
    let stop = if stopped { &never } else { stop };
    for arm in arms {
        let name = &arm.running.target.arm;
        let mut points = report.points.iter_mut();
        let Some(last) = points.rfind(|point| point.arm == *name && !point.rounds.is_empty()) else {
            continue;
        };
        let checked = (!is_set(stop)).then(|| {
            view::say(&format!("{name}: checking the data"));
            arm.check(stop)
        });
        match checked.flatten() {
            Some(Ok(checks)) => last.checks = checks,
            Some(Err(why)) => report.missing.push(format!("{name}: the data could not be checked: {why}")),
            None => report.missing.push(format!("{name}: the data was not checked: the run was stopped")),
        }
    }
}

#[cfg(test)]
mod tests;
