//! The driver against a server whose answers a test decides ([`fake`]). Further tests cover
//! connections that clients set up themselves ([`connections`]), paces ([`pace`]), pipelines
//! ([`pipeline`]), thousands of clients ([`many`]), and real servers ([`real`]).

mod connections;
mod fake;
mod many;
mod pace;
mod pipeline;
mod real;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::net;
use sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::arm::Address;
use crate::client::{Client, StatementId, Step, Turn};
use crate::client::{Prepare, Statement, Wanted};
use crate::load::{Pace, Protocol};
use fake::{Act, Asked, Fake};

/// A workload whose clients take the same steps in each transaction.
pub struct Steps {
    kinds: Vec<String>,
    statements: Vec<Statement>,
    steps: Vec<Step>,
    /// The row's value, where it is known.
    row: Option<i64>,
    /// A client stops after this many transactions.
    most: usize,
    /// Clients that stop at the beginning.
    lost: &'static [usize],
    /// Errors it tolerates.
    tolerated: &'static [&'static str],
    /// The `again` flags that clients got with failures.
    failures: Arc<Mutex<Vec<bool>>>,
}

struct Stepper {
    steps: Vec<Step>,
    row: Option<i64>,
    at: usize,
    left: usize,
    failures: Arc<Mutex<Vec<bool>>>,
}

const SELECT: StatementId = StatementId(0);
const BEGIN: StatementId = StatementId(1);
const COMMIT: StatementId = StatementId(2);

impl Steps {
    pub fn new(steps: &[Step]) -> Self {
        let statement = |text: &str, prepare, wanted| Statement {
            pieces: text.split('@').map(str::to_owned).collect(),
            prepare,
            wanted,
        };
        Self {
            kinds: vec!["only".to_owned()],
            statements: vec![
                statement("SELECT v FROM lab_native WHERE k = @", Prepare::AtConnect, Wanted::Rows),
                statement("BEGIN", Prepare::Never, Wanted::Nothing),
                statement("COMMIT", Prepare::Never, Wanted::Nothing),
            ],
            steps: steps.to_vec(),
            row: Some(42),
            most: usize::MAX,
            lost: &[],
            tolerated: &[],
            failures: Arc::default(),
        }
    }
}

impl Workload for Steps {
    fn name(&self) -> &str {
        "steps"
    }

    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn tolerated(&self, _: Dialect) -> &'static [&'static str] {
        self.tolerated
    }

    fn statements(&self, _: Dialect) -> Vec<Statement> {
        self.statements.clone()
    }

    fn client(&self, index: usize, _: usize) -> Box<dyn Client> {
        Box::new(Stepper {
            steps: self.steps.clone(),
            row: self.row,
            at: 0,
            left: if self.lost.contains(&index) { 0 } else { self.most },
            failures: self.failures.clone(),
        })
    }
}

impl Client for Stepper {
    fn next(&mut self, turn: Turn<'_>) -> Step {
        let before = self.at.checked_sub(1).map(|before| &self.steps[before]);
        let known = self.row.is_some();
        if before == Some(&Step::Run(SELECT)) && known && turn.reply.int(0, 0) != self.row {
            return Step::Abort(format!("not the row: {:?}", turn.reply.text(0, 0)).into());
        }
        if before != Some(&Step::Run(SELECT)) && turn.reply.rows() > 0 {
            return Step::Abort("rows nobody asked for".into());
        }
        if self.left == 0 {
            return Step::Abort("enough".into());
        }
        let step = self.steps[self.at].clone();
        self.at = (self.at + 1) % self.steps.len();
        match step {
            Step::Done(_) => self.left -= 1,
            Step::Run(SELECT) => turn.params.int(turn.random.between(1, 1000)),
            _ => (),
        }
        step
    }

    fn failed(&mut self, again: bool) -> u8 {
        self.failures.lock().unwrap().push(again);
        self.at = 0;
        0
    }
}

pub fn load(clients: usize, threads: usize, milliseconds: u64) -> Load {
    Load { tries: 3, ..Load::closed(clients, threads, Duration::from_millis(milliseconds)) }
}

pub fn run(target: &Target, workload: &Steps, load: &Load) -> Result<Measured, String> {
    Native.run(target, workload, load, &Live::new(Native::threads(load)))
}

fn point() -> Steps {
    Steps::new(&[Step::Run(SELECT), Step::Done(0)])
}

#[test]
fn each_protocol_brings_the_row_and_sends_what_it_says() {
    for (protocol, wanted) in
        [(Protocol::Simple, ""), (Protocol::Extended, "PBDES"), (Protocol::Prepared, "BDES")]
    {
        let fake = Fake::new(|_| Act::Row);
        let workload = Steps { most: 4, ..point() };
        let measured = run(&fake.target, &workload, &Load { protocol, ..load(3, 2, 60_000) }).unwrap();
        assert_eq!((measured.lost_clients, measured.errors.len()), (Some((3, "enough".to_owned())), 0));
        let only = &measured.kinds[0];
        assert_eq!((only.done, only.latency.len()), (12, 12), "{protocol:?}");
        let seen = fake.seen.lock().unwrap().join("");
        match protocol {
            Protocol::Simple => assert!(seen.starts_with("SELECT v FROM lab_native WHERE k = "), "{seen}"),
            _ => assert!(seen.contains(wanted) && !seen.contains("SELECT"), "{seen}"),
        }
        // Each protocol prepares the statement once or each time.
        match protocol {
            Protocol::Prepared => assert_eq!(fake.count("P"), 3),
            Protocol::Extended => assert_eq!(fake.count("P"), fake.count("B")),
            Protocol::Simple => assert_eq!(fake.count("P"), 0),
        }
    }
}

#[test]
fn an_answer_in_pieces_longer_than_the_buffer_is_put_together() {
    let fake = Fake::new(|asked| if asked.tag == b'E' { Act::Long(200_000) } else { Act::Row });
    let measured = run(&fake.target, &point(), &load(1, 1, 5_000)).unwrap();
    let (_, why) = measured.lost_clients.unwrap();
    assert!(why.starts_with("not the row"), "{:.80}", why);
    assert!(why.contains(&"7".repeat(200_000)), "{:.80}", why);
}

fn transaction() -> Steps {
    Steps::new(&[Step::Run(BEGIN), Step::Run(SELECT), Step::Run(COMMIT), Step::Done(0)])
}

/// A server that fails statements chosen by their number on their connection.
fn failing(code: &'static [u8; 5], which: fn(usize) -> bool) -> Fake {
    Fake::new(move |asked: Asked| match asked.tag {
        b'E' if which(asked.executed) => Act::Error(code),
        _ => Act::Row,
    })
}

#[test]
fn a_serialization_failure_is_rolled_back_and_tried_again() {
    // SELECT and COMMIT count: the first SELECT fails.
    let fake = failing(b"40001", |executed| executed == 0);
    let workload = Steps { most: 5, ..transaction() };
    let measured = run(&fake.target, &workload, &load(1, 1, 5_000)).unwrap();
    let only = &measured.kinds[0];
    assert_eq!((only.done, only.retried, only.failed), (5, 1, 0));
    assert_eq!(fake.count("ROLLBACK"), 1);
    assert_eq!(*workload.failures.lock().unwrap(), [true]);
    assert_eq!((measured.errors[0].code.as_str(), measured.errors[0].count), ("40001", 1));
    assert_eq!(measured.errors[0].message, "no luck (steps, `SELECT v FROM lab_native WHERE k = $1`)");
}

#[test]
fn a_transaction_is_given_up_after_its_tries_and_after_lasting_errors() {
    let fake = failing(b"40P01", |executed| executed < 3);
    let workload = Steps { most: 5, ..transaction() };
    let measured = run(&fake.target, &workload, &load(1, 1, 5_000)).unwrap();
    let only = &measured.kinds[0];
    assert_eq!((only.done, only.retried, only.failed), (5, 2, 1));
    assert_eq!(*workload.failures.lock().unwrap(), [true, true, false]);

    let fake = failing(b"23505", |executed| executed == 0);
    let workload = Steps { most: 5, ..transaction() };
    let measured = run(&fake.target, &workload, &load(1, 1, 5_000)).unwrap();
    assert_eq!((measured.kinds[0].done, measured.kinds[0].retried, measured.kinds[0].failed), (5, 0, 1));
    assert_eq!(fake.count("ROLLBACK"), 1);
}

#[test]
fn tolerated_errors_begin_another_transaction_without_limit_and_fail_none() {
    let fake = Fake::new(|asked| match (asked.tag, asked.executed) {
        (b'E', 0..8) => Act::Error(b"23505"),
        // The row takes 30 ms. No statement follows it in the transaction's time, and its latency
        // goes on.
        (b'E', 8) => Act::After(Duration::from_millis(30)),
        _ => Act::Row,
    });
    let workload = Steps { most: 3, tolerated: &["40P01", "23505"], ..transaction() };
    let measured = run(&fake.target, &workload, &Load { tries: 1, ..load(1, 1, 5_000) }).unwrap();
    let only = &measured.kinds[0];
    assert_eq!((only.done, only.retried, only.failed), (3, 8, 0));
    assert_eq!(*workload.failures.lock().unwrap(), [false; 8]);
    assert!(only.latency.max() >= 30_000_000, "{}", only.latency.max());
    let errors = &measured.errors[0];
    assert_eq!((errors.code.as_str(), errors.count, errors.tolerated), ("23505", 8, true));
}

#[test]
fn an_error_of_the_statement_itself_ends_the_client_with_advice() {
    let fake = failing(b"42P01", |executed| executed == 4);
    let measured = run(&fake.target, &transaction(), &load(1, 1, 5_000)).unwrap();
    let (lost, why) = measured.lost_clients.unwrap();
    assert_eq!((lost, measured.kinds[0].done), (1, 2));
    let running = "steps: 42P01: no luck (running `SELECT v FROM lab_native WHERE k = $1`)";
    assert_eq!(why, format!("{running}; load the workload's tables first"));
}

#[test]
fn measurements_before_the_servers_death_are_kept() {
    let fake = Fake::new(|asked| match (asked.tag, asked.executed) {
        (b'E', 100) if asked.connection == 0 => Act::Close,
        (b'E', 100) => Act::Fatal(b"57P01"),
        _ => Act::Row,
    });
    let measured = run(&fake.target, &point(), &load(4, 2, 60_000)).unwrap();
    assert_eq!(measured.kinds[0].done, 400);
    let (lost, why) = measured.lost_clients.unwrap();
    assert_eq!(lost, 4);
    assert!(why == "57P01: no luck" || why == "the server closed the connection", "{why}");
    assert!(measured.elapsed < Duration::from_secs(20), "{:?}", measured.elapsed);
    assert_eq!(measured.errors[0].count, 3);
}

/// A socket that has a port and does not listen.
fn taken_port() -> (std::os::fd::OwnedFd, u16) {
    let any = std::net::SocketAddrV4::new(std::net::Ipv4Addr::LOCALHOST, 0);
    let socket = net::socket(net::AddressFamily::INET, net::SocketType::STREAM, None).unwrap();
    net::bind(&socket, &any).unwrap();
    let bound = std::net::SocketAddr::try_from(net::getsockname(&socket).unwrap()).unwrap();
    (socket, bound.port())
}

#[test]
fn set_up_errors_have_advice() {
    let prepares = Fake::new(|asked| if asked.tag == b'P' { Act::Error(b"42P01") } else { Act::Row });
    let error = run(&prepares.target, &point(), &load(1, 1, 100)).unwrap_err();
    assert!(error.contains("preparing `SELECT v FROM lab_native WHERE k = $1`"), "{error}");
    assert!(error.ends_with("load the workload's tables first"), "{error}");

    let full = Fake::new(|asked| if asked.connection >= 5 { Act::Fatal(b"53300") } else { Act::Row });
    let error = run(&full.target, &point(), &load(9, 1, 100)).unwrap_err();
    assert!(error.contains(" of 9 clients were connected") && error.contains("max_connections"), "{error}");

    let mut target = full.target.clone();
    target.address = Address::Unix("/nowhere/at/all".into());
    let error = run(&target, &point(), &load(1, 1, 100)).unwrap_err();
    assert!(error.contains("no server can be reached at /nowhere/at/all"), "{error}");

    // A port that no other process can take meanwhile, and where none listens.
    let (_bound, port) = taken_port();
    target.address = Address::Tcp("localhost".to_owned(), port);
    let error = run(&target, &point(), &load(1, 1, 100)).unwrap_err();
    assert!(error.contains(&format!("no server can be reached at localhost:{port}")), "{error}");

    let closes = Fake::new(|_| Act::Close);
    let error = run(&closes.target, &point(), &load(2, 1, 100)).unwrap_err();
    assert!(error.contains("closed the connection while it was set up"), "{error}");

    let error = raise_file_limit(1 << 40).unwrap_err();
    assert!(error.contains("ulimit -n"), "{error}");
}

#[test]
fn a_transaction_left_open_at_a_script_s_end_ends_its_client() {
    let fake = Fake::new(|_| Act::Row);
    let open = Steps::new(&[Step::Run(BEGIN), Step::Run(SELECT), Step::Done(0)]);
    let measured = run(&fake.target, &open, &load(2, 1, 20_000)).unwrap();
    let why = "end of script reached without completing the last transaction".to_owned();
    assert_eq!((measured.lost_clients, measured.kinds[0].done), (Some((2, why)), 0));
}

/// A workload whose two statements, SELECT and another, are prepared at first use.
fn late(steps: &[Step]) -> Steps {
    let mut workload = Steps { most: 20, ..Steps::new(steps) };
    workload.statements.push(Statement {
        pieces: vec!["SELECT 2".to_owned()],
        prepare: Prepare::AtFirstUse,
        wanted: Wanted::Nothing,
    });
    workload.statements[0].prepare = Prepare::AtFirstUse;
    workload
}

const OTHER: StatementId = StatementId(3);

#[test]
fn a_statement_that_is_prepared_when_it_is_first_used_is_prepared_once() {
    for (steps, pipeline) in [
        (&[Step::Run(SELECT), Step::Done(0)][..], false),
        (&[Step::Run(SELECT), Step::Run(SELECT), Step::Done(0)], true),
    ] {
        let fake = Fake::new(|_| Act::Row);
        let workload = Steps { row: None, ..late(steps) };
        let load = Load { pipeline, ..load(2, 1, 20_000) };
        let measured = run(&fake.target, &workload, &load).unwrap();
        assert_eq!((measured.kinds[0].done, fake.count("P")), (40, 2));
        // The Parse goes out with its first use, without a Sync of its own; nothing of the other
        // statement went out.
        assert_eq!(fake.count("S"), 40);
    }
}

#[test]
fn a_parse_skipped_after_an_error_is_sent_again() {
    // The Parse itself fails the first time.
    let failed = AtomicBool::new(false);
    // Relaxed: one thread reads its own writes.
    let fake = Fake::new(move |asked| match asked.tag {
        b'P' if !failed.swap(true, Ordering::Relaxed) => Act::Error(b"40001"),
        _ => Act::Row,
    });
    let measured =
        run(&fake.target, &late(&[Step::Run(SELECT), Step::Done(0)]), &load(1, 1, 20_000)).unwrap();
    let only = &measured.kinds[0];
    assert_eq!((only.done, only.retried, fake.count("P")), (20, 1, 2));
    assert_eq!(measured.lost_clients, Some((1, "enough".to_owned())));

    // The statement before it fails, so the server skips its Parse in the same pipeline.
    let fake = failing(b"40001", |executed| executed == 0);
    let both = Steps { row: None, ..late(&[Step::Run(SELECT), Step::Run(OTHER), Step::Done(0)]) };
    let load = Load { pipeline: true, ..load(1, 1, 20_000) };
    let measured = run(&fake.target, &both, &load).unwrap();
    let only = &measured.kinds[0];
    // The client counts the failed one among its twenty: it learns of the failure at the end.
    assert_eq!((only.done, only.retried, fake.count("P")), (19, 1, 3));
    assert_eq!(measured.lost_clients, Some((1, "enough".to_owned())));
}

#[test]
fn a_thread_that_panics_ends_the_round_with_an_error_and_nothing_else() {
    // The workload has no such statement.
    let broken = Steps::new(&[Step::Run(SELECT), Step::Run(StatementId(9)), Step::Done(0)]);
    let fake = Fake::new(|_| Act::Row);
    let error = run(&fake.target, &broken, &load(4, 2, 300)).unwrap_err();
    assert!(error.starts_with("a fault of the driver ended one of its threads: index out of"), "{error}");
}

/// Ends a round of 60 s once this many transactions are done; returns its measurements.
fn stopped_after(done: u64, workload: &Steps, load: &Load) -> Measured {
    let fake = Fake::new(|_| Act::Row);
    let live = Live::new(Native::threads(load));
    let measured = thread::scope(|scope| {
        let round = scope.spawn(|| Native.run(&fake.target, workload, load, &live));
        while live.done() < done && !round.is_finished() {
            thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(live.phase(), Phase::Measuring);
        live.stop();
        round.join().unwrap().unwrap()
    });
    assert_eq!(live.phase(), Phase::Over);
    assert!(measured.kinds[0].done >= done && measured.elapsed < load.measured / 2, "{measured:?}");
    assert_eq!(measured.lost_clients, None);
    measured
}

#[test]
fn transactions_without_statements_leave_the_thread_to_others() {
    stopped_after(100, &Steps::new(&[Step::Done(0)]), &load(2, 1, 60_000));
}

#[test]
fn a_stopped_round_keeps_its_counts() {
    let measured = stopped_after(100, &point(), &load(4, 2, 60_000));
    assert_eq!(measured.seconds.len() as u64, measured.elapsed.as_secs());
}

#[test]
fn sessions_wait_for_the_observer_up_to_a_limit() {
    for looked in [true, false] {
        let fake = Fake::new(|_| Act::Row);
        let hold = if looked { Duration::from_secs(60) } else { Duration::from_millis(300) };
        let live = Live { hold, ..Live::watched(2) };
        let workload = point();
        let begun = Instant::now();
        let measured = thread::scope(|scope| {
            let round = scope.spawn(|| Native.run(&fake.target, &workload, &load(4, 2, 100), &live));
            while live.phase() != Phase::Over {
                thread::sleep(Duration::from_millis(5));
            }
            if looked {
                thread::sleep(Duration::from_millis(200));
                assert_eq!((fake.count("X"), round.is_finished()), (0, false));
                live.looked();
            }
            round.join().unwrap().unwrap()
        });
        assert!(looked || begun.elapsed() >= hold, "{:?}", begun.elapsed());
        assert!(begun.elapsed() < Duration::from_secs(50), "{:?}", begun.elapsed());
        // The server may read the last ones a while later.
        crate::tests::wait_until(|| fake.count("X") >= 4);
        assert_eq!(fake.count("X"), 4);
        assert_eq!(measured.elapsed, Duration::from_millis(100), "the time held is not counted");
    }
}

#[test]
fn a_warm_driver_allocates_nothing() {
    let fake = Fake::new(|_| Act::Row);
    let allocated = |pipeline, most| {
        let workload = Steps { most, ..pipeline::prepared_transaction() };
        let load = Load { pipeline, ..load(2, 1, 60_000) };
        let live = Live::new(1);
        let wire = Postgres::new(&fake.target, &workload.statements(Dialect::Postgres), load.protocol);
        let peer = Peer::resolve(&fake.target.address).unwrap();
        let connections = connect::connect(&wire, &peer, 2, &live).map_err(|failed| failed.why).unwrap();
        let round = load::Round::new(&load, 1, &workload, Dialect::Postgres, peer);
        let slots = connections.into_iter().map(|one| (one, workload.client(0, 2))).collect();
        let worker = Thread::new(&wire, &round, 0, slots).unwrap();
        let counted = allocation_counter::measure(|| {
            worker.run(Instant::now(), &live);
        });
        counted.count_total
    };
    for pipeline in [false, true] {
        let (few, many) = (allocated(pipeline, 20), allocated(pipeline, 2_000));
        assert_eq!(
            few, many,
            "20 transactions of a client allocate as often as 2,000 (pipeline: {pipeline})"
        );
    }
}
