//! The request of a command line: arms with their drivers, the sweep's plan, the CPUs. An
//! impossible or ineffective request is refused here, before hours of loading and measuring.

use std::time::Duration;

use crate::arm::Dialect;
use crate::arm::spec::{self, Spec};
use crate::drive::{Driver, Native, Pgbench};
use crate::load::{Load, Pace, Protocol};
use crate::observe::Split;
use crate::options::{DriverName, RunOptions, word};
use crate::record::PIPELINE;
use crate::run::named;
use crate::sweep::{Plan, steps};
use crate::workload::Workload;

pub(super) struct Asked {
    pub servers: Vec<Server>,
    pub plan: Plan,
    /// The split of the CPUs, with `--pin`.
    pub split: Option<Split>,
    /// The workload's size and scripts, for the report.
    workload: Vec<(String, String)>,
}

/// A server and its arms: one arm for each driver, so that the report compares drivers on the same
/// server.
pub(super) struct Server {
    pub spec: Spec,
    /// Each arm's name and driver.
    pub arms: Vec<(String, DriverName)>,
}

impl Asked {
    /// Reads the command line.
    ///
    /// # Errors
    /// A line: the fault, and the remedy.
    pub fn of(options: &RunOptions) -> Result<Self, String> {
        let servers = servers(options)?;
        let split = options.pin.then(Split::of_this_machine).transpose()?;
        let plan = plan(options, split.as_ref())?;
        let planned = named::named(options)?;
        if options.pipeline {
            pipelined(options, &servers, &*planned).map_err(|why| format!("--pipeline: {why}"))?;
        }
        for name in &options.driver {
            driver(*name)
                .suits(&*planned, &plan.load)
                .map_err(|why| format!("--driver {}: {why}", word(*name)))?;
        }
        Ok(Self { servers, plan, split, workload: named::about(options, &*planned) })
    }

    /// The load for the report: everything that two runs must have in common to be compared.
    pub fn note(&self, options: &RunOptions) -> Vec<(String, String)> {
        let pace = match options.pace() {
            Pace::Closed { think } if think.is_zero() => "closed loop".into(),
            Pace::Closed { think } => format!("closed loop, {think:?} of thinking"),
            Pace::Open { from, to, arrivals } if from == to => format!("{from} a second, {arrivals:?}"),
            Pace::Open { from, to, arrivals } => format!("{from} to {to} a second, {arrivals:?}"),
        };
        let drivers: Vec<String> = options.driver.iter().map(|driver| word(*driver)).collect();
        let Plan { load, least_rounds, most_rounds, .. } = &self.plan;
        let mut note = self.workload.clone();
        let mut add = |name: &str, value: String| note.push((name.to_owned(), value));
        add("driver", drivers.join(", "));
        if options.pipeline {
            add(PIPELINE, "all statements of a transaction".to_owned());
        }
        add("threads", load.threads.to_string());
        add("pace", pace);
        add("round", format!("{:?} after {:?}", options.round, options.ramp + options.warmup));
        add(
            "rounds",
            match least_rounds == most_rounds {
                true => least_rounds.to_string(),
                false => format!("{least_rounds} to {most_rounds}, until {}% wide", options.width),
            },
        );
        add("seed", options.seed.to_string());
        if options.awake {
            add("CPUs", "kept awake".to_owned());
        }
        if options.tries > 1 {
            add("tries", options.tries.to_string());
        }
        note
    }
}

/// Refuses pipelines where they are impossible or without effect.
fn pipelined(options: &RunOptions, servers: &[Server], planned: &dyn Workload) -> Result<(), String> {
    planned.pipelines().map_err(|why| format!("{why}: leave --pipeline out, or take another workload"))?;
    if options.protocol() == Protocol::Simple {
        return Err("the simple protocol has no pipelines: take --protocol prepared or extended".into());
    }
    if let Some(driver) = options.driver.iter().find(|driver| **driver != DriverName::Native) {
        return Err(format!(
            "{} has no such option: take --driver native, or leave --pipeline out",
            word(*driver)
        ));
    }
    if let Some(Server { spec, .. }) = servers.iter().find(|server| server.spec.dialect() == Dialect::Mysql) {
        return Err(format!(
            "arm {} speaks MySQL's protocol, in which the lab waits for each answer: leave it or --pipeline out",
            spec.name
        ));
    }
    Ok(())
}

fn servers(options: &RunOptions) -> Result<Vec<Server>, String> {
    let mut specs = options.arms.iter().map(|arm| Spec::parse(arm)).collect::<Result<Vec<_>, _>>()?;
    for vary in &options.vary {
        specs = spec::vary(&specs, vary)?;
    }
    let name = |spec: &Spec, driver: DriverName| match options.driver.len() {
        1 => spec.name.clone(),
        _ => format!("{} by {}", spec.name, word(driver)),
    };
    let arms = |spec: &Spec| options.driver.iter().map(|driver| (name(spec, *driver), *driver)).collect();
    let servers: Vec<Server> = specs.into_iter().map(|spec| Server { arms: arms(&spec), spec }).collect();
    let names: Vec<&String> = servers.iter().flat_map(|server| &server.arms).map(|(name, _)| name).collect();
    for (index, name) in names.iter().enumerate() {
        if names[..index].contains(name) {
            return Err(format!("two arms are named {name}: give each arm, value and driver once"));
        }
    }
    Ok(servers)
}

fn plan(options: &RunOptions, split: Option<&Split>) -> Result<Plan, String> {
    if options.round < Duration::from_millis(100) {
        return Err(format!("--round {:?}: at least 100ms are needed to count anything", options.round));
    }
    if !(options.width > 0.0 && options.width <= 100.0) {
        return Err(format!("--width {}: write a percentage above 0", options.width));
    }
    let all = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let given = options.threads.map(|threads| threads as usize);
    let clients = steps("--clients", &options.clients)?;
    let load = Load {
        clients: clients.last().copied().unwrap_or(1),
        threads: given.unwrap_or_else(|| split.map_or_else(all, |split| split.client.len())),
        protocol: options.protocol(),
        pipeline: options.pipeline,
        pace: options.pace(),
        ramp: options.ramp,
        warmup: options.warmup,
        measured: options.round,
        tries: options.tries,
        seed: options.seed,
    };
    Ok(Plan {
        clients,
        load,
        width: options.width / 100.0,
        least_rounds: options.rounds.0,
        most_rounds: options.rounds.1,
        time: options.time,
    })
}

pub(super) fn driver(name: DriverName) -> Box<dyn Driver> {
    match name {
        DriverName::Native => Box::new(Native),
        DriverName::Pgbench => Box::new(Pgbench::default()),
    }
}
