//! A run from the command line to the report: arms are reached or started, tables loaded, the sweep run, what must hold
//! checked, and every output written.
//!
//! What must hold:
//! 1. An arm that can't be reached, loaded or prepared is named with its reason; the others go on. Only without any arm
//!    there is no run.
//! 2. Whatever was measured is written, however the run ends.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use sync::atomic::{AtomicBool, Ordering};

use crate::arm::Running;
use crate::arm::control::{self, Control};
use crate::arm::spec::{self, Spec};
use crate::drive::{Driver, Load, Native, Pace, Pgbench, Sysbench};
use crate::findings;
use crate::observe::{self, Observer, Pinned, Split};
use crate::options::{Bench, DriverName, Outputs, RunOptions, Verb};
use crate::report::{self, Report};
use crate::sweep::{Contender, Plan, ThisMachine, steps, sweep};
use crate::view;
use crate::workload::{Before, Found, Original, Workload, named};

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// All that was asked for was measured, and what must hold does.
    Whole,
    /// Something is missing or does not hold; the report says what.
    Lacking,
    /// It was stopped; the report has what was measured until then.
    Stopped,
}

/// Does what the command line says. `executable` is what has a `serve` of its own; `stop` is set by who wants the run to
/// end early.
///
/// # Errors
/// A line for people: nothing could be measured at all, or a report could not be written.
pub fn bench(options: &Bench, executable: &Path, stop: &AtomicBool) -> Result<Ending, String> {
    match &options.verb {
        Some(Verb::Compare { first, second }) => {
            let compared = report::compare::compare(&stored(first)?, &stored(second)?);
            say(&compared.table(width()))?;
            Ok(Ending::Whole)
        }
        Some(Verb::Report { run, outputs }) => {
            let mut report = stored(run)?;
            writable(outputs, None)?;
            // They follow from the points alone: an older program may have found less in them.
            findings::conclude(&mut report);
            write(outputs, None, &report)?;
            Ok(Ending::Whole)
        }
        None => run(&options.run, executable, stop),
    }
}

fn stored(path: &Path) -> Result<Report, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Report::from_json(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// An arm that is ready.
struct Arm {
    running: Running,
    driver: Box<dyn Driver>,
    workload: Box<dyn Workload>,
    before: Before,
    observer: Observer,
}

fn run(options: &RunOptions, executable: &Path, stop: &AtomicBool) -> Result<Ending, String> {
    let specs = specs(options)?;
    let plan = plan(options)?;
    writable(&options.outputs, options.json.as_deref())?;
    let planned = named::planned(options)?;
    options.driver.iter().try_for_each(|driver| suits(*driver, &*planned))?;
    let began = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let machine = ThisMachine::begin();
    let mut facts = observe::facts(Path::new("/"));
    let (mut arms, mut missing) = (Vec::new(), Vec::new());
    for (spec, driver) in &specs {
        if is_set(stop) {
            break;
        }
        match arm(spec, *driver, options, &plan.load, executable, stop) {
            Ok(ready) => arms.push(ready),
            Err(reason) => {
                eprintln!("{reason}");
                missing.push(reason);
            }
        }
    }
    if arms.is_empty() {
        return Err(
            if is_set(stop) { "stopped before anything was measured" } else { "no arm is left" }.into()
        );
    }
    let servers: Vec<u32> =
        arms.iter().flat_map(|arm| arm.running.target.processes.iter().copied()).collect();
    for arm in &mut arms {
        arm.observer.leave_out(&servers);
    }
    let pinned = match &options.pin {
        Some(text) => Some(pin(text, &servers, &mut facts)?),
        None => None,
    };
    let swept = {
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
        sweep(&mut contenders, &plan, &machine, stop, &mut *progress)
    };
    if is_set(stop) {
        eprintln!(
            "stopped: what was measured until now is checked and reported (a second Ctrl-C ends at once)"
        );
    }
    drop(pinned);
    let mut points = swept.points;
    for arm in &arms {
        let last =
            points.iter_mut().rfind(|point| point.arm == arm.running.target.arm && !point.rounds.is_empty());
        let Some(last) = last else { continue };
        match check(arm) {
            Ok(checks) => last.checks = checks,
            Err(reason) => {
                missing.push(format!("{}: what must hold could not be checked: {reason}", last.arm))
            }
        }
    }
    missing.extend(swept.missing);
    let mut report = Report {
        version: report::VERSION,
        began,
        command: std::env::args().collect(),
        machine: report::Machine { facts, noise: swept.noise },
        load: load_note(options),
        arms: arms.iter().map(note).collect(),
        points,
        fits: Vec::new(),
        findings: Vec::new(),
        missing,
    };
    findings::conclude(&mut report);
    drop(arms);
    write(&options.outputs, options.json.as_deref(), &report)?;
    if report.points.is_empty() && !is_set(stop) {
        return Err("nothing was measured".into());
    }
    let broken = report.points.iter().flat_map(|point| &point.checks).any(|check| check.fault.is_some());
    Ok(match is_set(stop) {
        true => Ending::Stopped,
        false if broken || !report.missing.is_empty() => Ending::Lacking,
        false => Ending::Whole,
    })
}

fn is_set(stop: &AtomicBool) -> bool {
    // Relaxed: nothing else is handed over by it.
    stop.load(Ordering::Relaxed)
}

/// The arms, each with what makes its load.
fn specs(options: &RunOptions) -> Result<Vec<(Spec, DriverName)>, String> {
    let mut specs = options.arms.iter().map(|arm| Spec::parse(arm)).collect::<Result<Vec<_>, _>>()?;
    for vary in &options.vary {
        specs = spec::vary(&specs, vary)?;
    }
    let with = |spec: &Spec, driver: DriverName| match options.driver.len() {
        1 => (spec.clone(), driver),
        _ => (spec.renamed(format!("{} by {}", spec.name, driver.word())), driver),
    };
    let specs: Vec<(Spec, DriverName)> =
        specs.iter().flat_map(|spec| options.driver.iter().map(move |driver| with(spec, *driver))).collect();
    for (index, (spec, _)) in specs.iter().enumerate() {
        if specs[..index].iter().any(|(other, _)| other.name == spec.name) {
            return Err(format!("two arms are named {}: give each a name of its own", spec.name));
        }
    }
    Ok(specs)
}

fn plan(options: &RunOptions) -> Result<Plan, String> {
    if options.round < Duration::from_millis(100) {
        return Err(format!("--round {:?}: at least 100ms are needed to count anything", options.round));
    }
    if !(options.width > 0.0 && options.width <= 100.0) {
        return Err(format!("--width {}: write a percentage above 0", options.width));
    }
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let load = Load {
        clients: 1,
        threads: options.threads.unwrap_or(cores).max(1),
        protocol: options.protocol(),
        pace: options.pace(),
        ramp: options.ramp,
        warmup: options.warmup,
        measured: options.round,
        tries: options.tries.max(1),
        seed: options.seed,
    };
    Ok(Plan {
        clients: steps(&options.clients)?,
        load,
        width: options.width / 100.0,
        least_rounds: options.rounds.0,
        most_rounds: options.rounds.1,
        time: options.time,
    })
}

/// Whether the reports can be written is found out before hours of measuring, not after.
fn writable(outputs: &Outputs, json: Option<&Path>) -> Result<(), String> {
    let unusable =
        |path: &Path| format!("{} can't be written: name a file in a folder that is there", path.display());
    let files = [json, outputs.markdown.as_deref(), outputs.html.as_deref()];
    for path in files.into_iter().flatten() {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
            return Err(unusable(path));
        }
    }
    match &outputs.plots {
        Some(folder) if !folder.is_dir() => {
            Err(format!("{} is no folder: name one that is there for the plots", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Whether a driver knows the workload, before anything is started and loaded.
fn suits(driver: DriverName, workload: &dyn Workload) -> Result<(), String> {
    let tool = match (driver, workload.original()) {
        (DriverName::Pgbench, Some(Original::Pgbench { .. })) => return Ok(()),
        (DriverName::Sysbench, Some(Original::Sysbench { .. })) => return Ok(()),
        (DriverName::Native, _) => return Ok(()),
        (DriverName::Pgbench, _) => "pgbench",
        (DriverName::Sysbench, _) => "sysbench",
    };
    Err(format!("--driver {tool}: {} is no workload of {tool}; leave the driver out", workload.name()))
}

fn driver(name: DriverName) -> Box<dyn Driver> {
    match name {
        DriverName::Native => Box::new(Native),
        DriverName::Pgbench => Box::new(Pgbench::default()),
        DriverName::Sysbench => Box::new(Sysbench::default()),
    }
}

/// Reaches or starts an arm, and makes its tables ready.
fn arm(
    spec: &Spec,
    driver: DriverName,
    options: &RunOptions,
    load: &Load,
    executable: &Path,
    stop: &AtomicBool,
) -> Result<Arm, String> {
    let running = Running::start(spec, executable, stop)?;
    let workload =
        named::named(options, &running.about).map_err(|why| format!("arm {}: {why}", spec.name))?;
    let fail = |fault: control::Fault| format!("arm {}: {fault}", spec.name);
    let mut control = Control::connect(&running.target).map_err(fail)?;
    let found = workload.found(&mut control).map_err(fail)?;
    match found {
        Found::Loaded if !options.reload => {}
        Found::Other(what) if !options.reload => {
            return Err(format!(
                "arm {}: its database holds {what}, which is not what was asked for: ask for that, or replace it \
                 with --reload",
                spec.name
            ));
        }
        _ => fill(&running, &*workload, load.threads, stop).map_err(fail)?,
    }
    let before = workload.prepare(&mut control).map_err(fail)?;
    let observer = Observer::new(&running.target, Some(observe::connect_to(&running.target)));
    let driver = self::driver(driver);
    Ok(Arm { running, driver, workload, before, observer })
}

/// Loads an arm's tables, with a bar on a terminal.
fn fill(
    running: &Running,
    workload: &dyn Workload,
    threads: usize,
    stop: &AtomicBool,
) -> Result<(), control::Fault> {
    let progress = control::Progress::new(0);
    let bar =
        ProgressBar::new(0).with_message(format!("loading {} on {}", workload.name(), running.target.arm));
    let style = "{msg} [{bar:40}] {pos}/{len} rows, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a valid template").progress_chars("=> "));
    std::thread::scope(|scope| {
        let loading = scope.spawn(|| workload.load(&running.target, threads, &progress));
        while !loading.is_finished() {
            std::thread::sleep(Duration::from_millis(100));
            if is_set(stop) {
                progress.stop();
            }
            bar.set_length(progress.total());
            bar.set_position(progress.rows());
        }
        bar.finish_and_clear();
        loading.join().expect("a loader does not panic")
    })
}

fn pin(text: &str, servers: &[u32], facts: &mut Vec<(String, String)>) -> Result<Pinned, String> {
    let split = if text.is_empty() { Split::of_this_machine()? } else { Split::parse(text)? };
    let pinned = Pinned::pin(&split, servers)?;
    facts
        .push(("pinned".into(), format!("client to CPUs {:?}, servers to {:?}", split.client, split.server)));
    Ok(pinned)
}

fn check(arm: &Arm) -> Result<Vec<crate::workload::Check>, control::Fault> {
    arm.workload.check(&mut Control::connect(&arm.running.target)?, &arm.before)
}

fn note(arm: &Arm) -> report::Arm {
    report::Arm {
        name: arm.running.target.arm.clone(),
        dialect: arm.running.target.dialect,
        server: arm.running.about.server.clone(),
        settings: arm.running.about.settings.clone(),
    }
}

fn load_note(options: &RunOptions) -> Vec<(String, String)> {
    let pace = match options.pace() {
        Pace::Closed { think } if think.is_zero() => "closed loop".into(),
        Pace::Closed { think } => format!("closed loop, {think:?} of thinking"),
        Pace::Open { from, to, arrivals } if from == to => format!("{from} a second, {arrivals:?}"),
        Pace::Open { from, to, arrivals } => format!("{from} to {to} a second, {arrivals:?}"),
    };
    let drivers: Vec<&str> = options.driver.iter().map(|driver| driver.word()).collect();
    let mut note = vec![
        ("driver".to_owned(), drivers.join(", ")),
        ("pace".to_owned(), pace),
        ("round".to_owned(), format!("{:?} after {:?}", options.round, options.ramp + options.warmup)),
        ("seed".to_owned(), options.seed.to_string()),
    ];
    if options.keying {
        note.push(("terminals".to_owned(), "key and think as TPC-C says".to_owned()));
    }
    if options.tries > 1 {
        note.push(("tries".to_owned(), options.tries.to_string()));
    }
    note
}

/// Columns of the terminal; of a file or pipe, enough.
fn width() -> usize {
    let columns = ratatui::crossterm::terminal::size().ok().map(|(columns, _)| usize::from(columns));
    columns.filter(|_| std::io::stdout().is_terminal()).unwrap_or(120)
}

fn say(text: &str) -> Result<(), String> {
    let written = std::io::stdout().lock().write_all(text.as_bytes());
    written.map_err(|error| format!("standard output: {error}"))
}

fn write(outputs: &Outputs, json: Option<&Path>, report: &Report) -> Result<(), String> {
    let file = |path: Option<&Path>, text: &dyn Fn() -> String| match path {
        Some(path) => fs::write(path, text()).map_err(|error| format!("{}: {error}", path.display())),
        None => Ok(()),
    };
    let plots = |folder: &PathBuf| {
        let mut pictures = report::pictures(report).into_iter();
        pictures.try_for_each(|(name, svg)| file(Some(&folder.join(name)), &|| svg.clone()))
    };
    // All are tried: one that can't be written must not cost the others.
    let outcomes = [
        file(json, &|| report.to_json()),
        file(outputs.markdown.as_deref(), &|| report::markdown(report)),
        file(outputs.html.as_deref(), &|| report::html(report)),
        outputs.plots.as_ref().map_or(Ok(()), plots),
        say(&report::table(report, width())),
    ];
    outcomes.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::report::samples;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        bench: Bench,
    }

    #[test]
    fn a_stored_run_is_shown_with_what_this_program_finds_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let (run, page) = (folder.path().join("run.json"), folder.path().join("run.md"));
        fs::write(&run, samples::open_loop().to_json()).unwrap();
        let words = ["bench", "report", run.to_str().unwrap(), "--markdown", page.to_str().unwrap()];
        let ending = bench(&Line::parse_from(words).bench, Path::new("allcore"), &AtomicBool::new(false));
        assert_eq!(ending, Ok(Ending::Whole));
        let text = fs::read_to_string(&page).unwrap();
        assert!(text.contains("the rate of 5,000 a second is held with 8 and 64 clients."), "{text}");
        assert!(!text.contains("54321"), "what was stored with it: {text}");
    }
}
