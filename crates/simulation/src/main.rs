//! `allcore-model`: the engine on the model machine, one simulation a process.
//!
//! A simulation opens a database on a disk in memory and serves concurrent transfers over sockets
//! in memory, on virtual cores. Its seed decides everything. It prints the hash of its events: the
//! same seed prints the same hash, in another process and from another build. What must hold:
//!
//! 1. A wrong sum, or an error that is no deadlock, ends the process at once. The status is 70
//!    where a client finds it, and 101 where the main thread does.
//! 2. It prints nothing that depends on the host.
//!
//! `make model` builds it with `--cfg model`; without that it only says so.

#![forbid(unsafe_code)]

#[cfg(model)]
mod client;
#[cfg(model)]
mod fault;
#[cfg(model)]
mod lines;
#[cfg(model)]
mod served;
#[cfg(model)]
mod transfers;

use clap::Parser;

/// Runs the engine on the model machine: 200 concurrent transfers over virtual cores.
#[derive(Debug, Parser)]
#[command(name = "allcore-model", version)]
struct Arguments {
    /// The number that decides everything
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Virtual cores
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=384))]
    cores: u64,
    /// Counts the cache lines that transactions move between the cores, instead of transfers
    #[cfg(model)]
    #[arg(long, conflicts_with = "fault")]
    lines: bool,
    /// A fault that must fail the run: a test of its checks
    #[cfg(model)]
    #[arg(long, value_enum)]
    fault: Option<fault::Fault>,
}

#[cfg(model)]
fn main() {
    let Arguments { seed, cores, lines, fault } = Arguments::parse();
    let cores = usize::try_from(cores).expect("at most 384");
    if lines {
        let (_, (text, wrong)) = runtime::model::simulate(seed, move || lines::run(cores));
        print!("{text}");
        if let Some(wrong) = &wrong {
            eprintln!("allcore-model: {wrong}");
        }
        std::process::exit(if wrong.is_some() { 70 } else { 0 });
    }
    let (outcome, deadlocks) = runtime::model::simulate(seed, move || transfers::run(cores, fault));
    println!(
        "seed {seed}: hash {:016x}, {deadlocks} deadlocks, {} losses of a processor, {} switches, \
         {} accesses, {:.3} ms",
        outcome.hash,
        outcome.losses,
        outcome.switches,
        outcome.accesses,
        outcome.nanoseconds as f64 / 1e6
    );
    // The virtual threads that are left have nobody to end them.
    std::process::exit(0);
}

#[cfg(not(model))]
fn main() {
    let Arguments { .. } = Arguments::parse();
    eprintln!("allcore-model: this build has no model machine; build it with: make model");
    std::process::exit(2);
}
