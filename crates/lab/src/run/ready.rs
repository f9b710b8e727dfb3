//! Arms made ready: reached or started, their tables loaded, prepared.

use std::io::IsTerminal;
use std::path::Path;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use sync::atomic::AtomicBool;

use super::asked::{self, Asked};
use super::is_set;
use crate::arm::Running;
use crate::arm::control::{self, Control};
use crate::arm::spec::Spec;
use crate::drive::Driver;
use crate::observe::{self, Observer};
use crate::options::{DriverName, RunOptions};
use crate::report;
use crate::view;
use crate::workload::{Before, Check, Found, Workload, named};

/// An arm that is ready.
pub(super) struct Arm {
    pub running: Running,
    pub driver: Box<dyn Driver>,
    pub workload: Box<dyn Workload>,
    pub observer: Observer,
    before: Before,
}

/// The arms that can be had, and what is missing of the others.
pub(super) fn arms(
    options: &RunOptions,
    asked: &Asked,
    executable: &Path,
    stop: &AtomicBool,
) -> (Vec<Arm>, Vec<String>) {
    let (mut arms, mut missing) = (Vec::new(), Vec::new());
    for (spec, driver) in &asked.specs {
        if is_set(stop) {
            missing.push(format!("arm {}: the run was stopped before it was its turn", spec.name));
            continue;
        }
        match Arm::new(spec, *driver, options, asked, executable, stop) {
            Ok(ready) => {
                missing.extend(ready.running.unseen.clone());
                arms.push(ready);
            }
            Err(reason) => {
                view::say(&reason);
                missing.push(reason);
            }
        }
    }
    (arms, missing)
}

impl Arm {
    fn new(
        spec: &Spec,
        driver: DriverName,
        options: &RunOptions,
        asked: &Asked,
        executable: &Path,
        stop: &AtomicBool,
    ) -> Result<Self, String> {
        let start = || Running::start(spec, executable, stop);
        let running = asked.split.as_ref().map_or_else(start, |split| split.on_servers(start))?;
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
            _ => fill(&running, &*workload, asked.plan.load.threads, stop).map_err(fail)?,
        }
        let before = workload.prepare(&mut control).map_err(fail)?;
        let observer = Observer::new(&running.target, Some(observe::connect_to(&running.target)));
        Ok(Self { running, driver: asked::driver(driver), workload, before, observer })
    }

    /// What must hold, and whether it does.
    pub fn check(&self) -> Result<Vec<Check>, control::Fault> {
        self.workload.check(&mut Control::connect(&self.running.target)?, &self.before)
    }

    /// As the report has it.
    pub fn note(&self) -> report::Arm {
        report::Arm {
            name: self.running.target.arm.clone(),
            dialect: self.running.target.dialect,
            server: self.running.about.server.clone(),
            settings: self.running.about.settings.clone(),
        }
    }
}

/// Loads an arm's tables, with a bar on a terminal and a line before and after elsewhere.
fn fill(
    running: &Running,
    workload: &dyn Workload,
    threads: usize,
    stop: &AtomicBool,
) -> Result<(), control::Fault> {
    let progress = control::Progress::new(0);
    let arm = &running.target.arm;
    let bar = ProgressBar::new(0).with_message(format!("loading {} on {arm}", workload.name()));
    let style = "{msg} [{bar:40}] {pos}/{len} rows, {eta} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a valid template").progress_chars("=> "));
    let say = |line: &str| {
        if !std::io::stderr().is_terminal() {
            view::say(&format!("{arm}: {line}"));
        }
    };
    say(&format!("loading {}", workload.name()));
    let began = Instant::now();
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
    })?;
    say(&format!("loaded {} rows in {:.1} s", progress.rows(), began.elapsed().as_secs_f64()));
    Ok(())
}
