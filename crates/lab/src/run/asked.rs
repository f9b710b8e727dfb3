//! What a command line asks for: arms with their drivers, the sweep's plan, the CPUs. What can't be done, or would be
//! without effect, is refused here, before hours of loading and measuring.

use std::time::Duration;

use crate::arm::spec::{self, Spec};
use crate::drive::{Driver, Load, Native, Pace, Pgbench, Sysbench};
use crate::observe::Split;
use crate::options::{DriverName, RunOptions};
use crate::sweep::{Plan, steps};
use crate::workload::named;

/// All of it.
pub(super) struct Asked {
    /// The arms, each with what makes its load.
    pub specs: Vec<(Spec, DriverName)>,
    pub plan: Plan,
    /// Where CPUs of their own are wanted.
    pub split: Option<Split>,
}

impl Asked {
    /// From the command line.
    ///
    /// # Errors
    /// A line: what is wrong, and what to do.
    pub fn of(options: &RunOptions) -> Result<Self, String> {
        let specs = specs(options)?;
        let split = match options.pin.as_deref() {
            None => None,
            Some("") => Some(Split::of_this_machine()?),
            Some(text) => Some(Split::parse(text)?),
        };
        let plan = plan(options, split.as_ref())?;
        let planned = named::planned(options)?;
        for name in &options.driver {
            driver(*name)
                .suits(&*planned, &plan.load)
                .map_err(|why| format!("--driver {}: {why}", name.word()))?;
        }
        Ok(Self { specs, plan, split })
    }

    /// How the load is made, for the report: all that two runs must have in common to be compared.
    pub fn note(&self, options: &RunOptions) -> Vec<(String, String)> {
        let pace = match options.pace() {
            Pace::Closed { think } if think.is_zero() => "closed loop".into(),
            Pace::Closed { think } => format!("closed loop, {think:?} of thinking"),
            Pace::Open { from, to, arrivals } if from == to => format!("{from} a second, {arrivals:?}"),
            Pace::Open { from, to, arrivals } => format!("{from} to {to} a second, {arrivals:?}"),
        };
        let drivers: Vec<&str> = options.driver.iter().map(|driver| driver.word()).collect();
        let Plan { load, least_rounds, most_rounds, .. } = &self.plan;
        let mut note = named::size(options);
        let mut add = |name: &str, value: String| note.push((name.to_owned(), value));
        add("driver", drivers.join(", "));
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
        if options.keying {
            add("terminals", "key and think as TPC-C says".to_owned());
        }
        if options.tries > 1 {
            add("tries", options.tries.to_string());
        }
        note
    }
}

/// The arms, each with what makes its load.
fn specs(options: &RunOptions) -> Result<Vec<(Spec, DriverName)>, String> {
    let mut specs = options.arms.iter().map(|arm| Spec::parse(arm)).collect::<Result<Vec<_>, _>>()?;
    // Before they vary, since arms of one name would vary together.
    for (index, spec) in specs.iter().enumerate() {
        if specs[..index].iter().any(|other| other.name == spec.name) {
            return Err(format!("two arms are named {}: give each a name of its own", spec.name));
        }
    }
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
            return Err(format!("two arms are named {}: give each value and driver once", spec.name));
        }
    }
    Ok(specs)
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
    let load = Load {
        clients: 1,
        threads: given.unwrap_or_else(|| split.map_or_else(all, |split| split.client.len())),
        protocol: options.protocol(),
        pace: options.pace(),
        ramp: options.ramp,
        warmup: options.warmup,
        measured: options.round,
        tries: options.tries,
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

pub(super) fn driver(name: DriverName) -> Box<dyn Driver> {
    match name {
        DriverName::Native => Box::new(Native),
        DriverName::Pgbench => Box::new(Pgbench::default()),
        DriverName::Sysbench => Box::new(Sysbench::default()),
    }
}
