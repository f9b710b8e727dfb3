//! The native driver: one thread per core, each with its own connections, clients, random numbers
//! and counts.
//!
//! A round goes as follows. The driver raises the limit of descriptors. All threads set their
//! connections up (`connect`). When all exist, the threads begin at one instant and step their
//! clients (`load`). Each thread counts for itself (`tally`), and the driver adds the counts up at
//! the end.
//!
//! What must hold:
//! 1. While the load runs, threads share only [`Live`]: a counter each, and the stop flag.
//! 2. A statement costs one send and one receive. With several clients it also costs a share of one
//!    wait for all ready sockets. (io_uring would need `unsafe` here: no crate offers it safely.)
//! 3. The driver reports its counts whatever happens to the server later.

mod arrivals;
mod connect;
mod load;
mod tally;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::thread;
use std::time::Instant;

use super::wire::Wire;
use super::wire_my::Mysql;
use super::wire_pg::Postgres;
use super::{Driver, Live, Load, Measured, Phase};
use crate::arm::{Dialect, Target};
use crate::workload::Workload;
use connect::{Connection, Peer};
use load::Thread;
use tally::Tally;

/// The driver that is part of this program. Make [`Live`] for [`Native::threads`] threads or more.
#[derive(Debug, Clone, Copy, Default)]
pub struct Native;

/// Descriptors of a round besides its connections.
const OTHER_FILES: u64 = 64;

impl Native {
    /// Number of threads that serve a round: at most the number of its clients.
    pub fn threads(load: &Load) -> usize {
        load.threads.clamp(1, load.clients.max(1))
    }
}

impl Driver for Native {
    fn suits(&self, _: &dyn Workload, load: &Load) -> Result<(), String> {
        raise_file_limit(load.clients)
    }

    fn run(
        &self,
        to: &Target,
        workload: &dyn Workload,
        load: &Load,
        live: &Live,
    ) -> Result<Measured, String> {
        let statements = workload.statements(to.dialect);
        raise_file_limit(load.clients).and_then(|()| match to.dialect {
            Dialect::Postgres => {
                run_over(&Postgres::new(to, &statements, load.protocol), to, workload, load, live)
            }
            Dialect::Mysql => run_over(&Mysql::new(to, &statements, load.protocol), to, workload, load, live),
        })
    }
}

fn run_over<W: Wire>(
    wire: &W,
    to: &Target,
    workload: &dyn Workload,
    load: &Load,
    live: &Live,
) -> Result<Measured, String> {
    if load.clients == 0 {
        return Err("a round needs a client".to_owned());
    }
    let threads = Native::threads(load);
    let peer = Peer::resolve(&to.address)?;
    let connections = connect_all(wire, &peer, threads, load, live)?;
    let round = load::Round::new(load, threads, workload, to.dialect, peer);
    // Clients are made here: a workload's preparations for them are no part of the load.
    let mut workers: Vec<Thread<'_, W>> = Vec::with_capacity(threads);
    for (number, connections) in connections.into_iter().enumerate() {
        let clients =
            (number..load.clients).step_by(threads).map(|index| workload.client(index, load.clients));
        let slots = connections.into_iter().zip(clients).collect();
        workers.push(Thread::new(wire, &round, number, slots).map_err(|error| format!("no epoll: {error}"))?);
    }
    let origin = Instant::now();
    let tallies: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> =
            workers.into_iter().map(|worker| scope.spawn(move || worker.run(origin, live))).collect();
        running.into_iter().map(|one| one.join().map_err(panicked)).collect()
    });
    live.enter(Phase::Over);
    Tally::sum(tallies.into_iter().collect::<Result<_, _>>()?, load.clients)
}

/// A thread of the driver ended by a panic: this round has no figures, and other arms go on.
fn panicked(panic: Box<dyn Any + Send>) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
    format!("a fault of the driver ended one of its threads: {said}")
}

/// Sets up each thread's connections, on all threads at the same time.
fn connect_all<W: Wire>(
    wire: &W,
    peer: &Peer,
    threads: usize,
    load: &Load,
    live: &Live,
) -> Result<Vec<Vec<Connection<W>>>, String> {
    let results: Vec<_> = thread::scope(|scope| {
        let connect = |thread: usize| {
            let (count, mut ready) = ((thread..load.clients).step_by(threads).len(), Vec::new());
            let ended = connect::connect(wire, peer, count, live, &mut ready);
            (ready, ended)
        };
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || connect(thread))).collect();
        let failed = |panic| (Vec::new(), Err(panicked(panic)));
        running.into_iter().map(|one| one.join().unwrap_or_else(failed)).collect()
    });
    let connected: usize = results.iter().map(|(ready, _)| ready.len()).sum();
    let all = results.into_iter().map(|(ready, ended)| ended.map(|()| ready));
    all.collect::<Result<_, _>>().map_err(|why| match connected {
        0 => why,
        some => format!("{some} of {} clients were connected, then {why}", load.clients),
    })
}

/// Raises the limit of descriptors to the most that this process may have. The lab starts perf,
/// which has one descriptor for each thread, event and CPU. It is an error if the clients need
/// more.
fn raise_file_limit(clients: usize) -> Result<(), String> {
    let needed = clients as u64 + OTHER_FILES;
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(limit) if limit < needed => Err(format!(
            "{clients} clients need {needed} open files, the limit is {limit}: raise it with `ulimit -n {needed}`, as \
             root or in /etc/security/limits.conf"
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("the limit of open files can't be raised: {error}")),
    }
}
