//! Prepares arms: reaches or starts them, loads their tables, and runs the workload's preparation.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use sync::atomic::AtomicBool;

use super::asked::{self, Asked};
use super::is_set;
use crate::arm::control::{self, Control};
use crate::arm::spec::Spec;
use crate::arm::{Running, Target};
use crate::drive::Driver;
use crate::observe::{self, Observer};
use crate::options::{DriverName, RunOptions};
use crate::record;
use crate::record::Check;
use crate::run::named;
use crate::view;
use crate::workload::{Before, Found, Workload};

pub(super) struct Arm {
    pub running: Running,
    pub driver: Box<dyn Driver>,
    pub workload: Arc<dyn Workload>,
    pub observer: Observer,
    /// The state of its tables before the first round; `None` with `--as-is`.
    before: Option<Before>,
}

/// The available arms, and a reason for each missing one.
pub(super) fn arms(
    options: &RunOptions,
    asked: &Asked,
    executable: &Path,
    stop: &AtomicBool,
) -> (Vec<Arm>, Vec<String>) {
    let (mut arms, mut missing) = (Vec::new(), Vec::new());
    let mut lacks = |reason: String| {
        view::say(&reason);
        missing.push(reason);
    };
    for asked::Server { spec, arms: names } in &asked.servers {
        if is_set(stop) {
            lacks(format!("arm {}: the run was stopped before it was its turn", spec.name));
            continue;
        }
        match Server::ready(spec, options, asked, executable, stop) {
            Ok(server) => arms.extend(names.iter().map(|(name, driver)| server.arm(name, *driver))),
            Err(reason) => lacks(reason),
        }
    }
    (arms, missing)
}

/// A server with the workload's tables.
struct Server {
    running: Running,
    workload: Arc<dyn Workload>,
    before: Option<Before>,
}

impl Server {
    /// Reaches or starts the server, loads and prepares it. The error is a line that names the arm.
    fn ready(
        spec: &Spec,
        options: &RunOptions,
        asked: &Asked,
        executable: &Path,
        stop: &AtomicBool,
    ) -> Result<Self, String> {
        let start = || Running::start(spec, executable, stop);
        let running = match &asked.split {
            Some(split) => split.on_servers(start)?,
            None => start(),
        }?;
        let name = &spec.name;
        let workload = named::named(options).map_err(|why| format!("arm {name}: {why}"))?;
        let fail = |fault: control::Fault| format!("arm {name}: {fault}");
        let mut control = Control::connect(&running.target).map_err(fail)?;
        if options.as_is {
            return Ok(Self { running, workload: workload.into(), before: None });
        }
        let found = workload.found(&mut control).map_err(fail)?;
        match found {
            Found::Loaded if !options.reload => {}
            Found::Other(what) if !options.reload => {
                return Err(format!(
                    "arm {name}: its database holds {what}, not the data asked for: ask for that, or replace it with \
                     --reload"
                ));
            }
            _ => fill(&running.target, &*workload, asked.plan.load.threads, stop).map_err(fail)?,
        }
        let before = workload.prepare(&mut control).map_err(fail)?;
        Ok(Self { running, workload: workload.into(), before: Some(before) })
    }

    fn arm(&self, name: &str, driver: DriverName) -> Arm {
        let running = self.running.under(name);
        let connect = observe::connect_to(&running.target);
        let observer = Observer::new(&running.target, running.unseen.as_deref(), Some(connect));
        let (workload, before) = (Arc::clone(&self.workload), self.before.clone());
        Arm { running, driver: asked::driver(driver), workload, before, observer }
    }
}

impl Arm {
    /// The conditions that must hold, and whether they do; `None` once `stop` is set.
    pub fn check(&self, stop: &AtomicBool) -> Option<Result<Vec<Check>, control::Fault>> {
        let Some(before) = self.before.clone() else { return Some(Ok(Vec::new())) };
        let (target, workload) = (self.running.target.clone(), Arc::clone(&self.workload));
        control::unless_stopped(stop, move || workload.check(&mut Control::connect(&target)?, &before))
    }

    pub fn note(&self) -> record::Arm {
        record::Arm {
            name: self.running.target.arm.clone(),
            dialect: self.running.target.dialect,
            server: self.running.about.server.clone(),
            settings: self.running.about.settings.clone(),
        }
    }
}

/// Loads an arm's tables; shows a bar on a terminal, or a line before and after elsewhere.
fn fill(
    target: &Target,
    workload: &dyn Workload,
    threads: usize,
    stop: &AtomicBool,
) -> Result<(), control::Fault> {
    let progress = control::Progress::new(0);
    let arm = &target.arm;
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
        let loading = scope.spawn(|| workload.load(target, threads, &progress));
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
