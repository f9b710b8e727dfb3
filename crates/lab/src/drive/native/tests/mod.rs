//! The driver against a server whose answers a test decides ([`fake`]). Further tests cover
//! connections ([`connections`]), paces ([`pace`]) and errors ([`failures`]). The workloads' tests
//! run it on real servers.

mod connections;
mod failures;
mod fake;
mod pace;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::arm::Address;
use crate::client::{Client, Prepare, Statement, StatementId, Step, Turn, Wanted};
use crate::load::{Pace, Protocol};
use crate::tests::{golden_cases, wait_until};
use fake::{Act, Fake};

/// A workload whose clients take the same steps in each transaction, and such a client.
#[derive(Clone)]
pub struct Steps {
    kinds: Vec<String>,
    statements: Vec<Statement>,
    steps: Vec<Step>,
    /// The client's next step.
    at: usize,
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
                statement("BEGIN", Prepare::AtConnect, Wanted::Nothing),
                statement("COMMIT", Prepare::AtConnect, Wanted::Nothing),
            ],
            steps: steps.to_vec(),
            at: 0,
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
        let most = if self.lost.contains(&index) { 0 } else { self.most };
        Box::new(Self { most, ..self.clone() })
    }
}

impl Client for Steps {
    fn next(&mut self, turn: Turn<'_>) -> Step {
        let before = self.at.checked_sub(1).map(|before| &self.steps[before]);
        let known = self.row.is_some();
        if before == Some(&Step::Run(SELECT)) && known && turn.reply.int(0, 0) != self.row {
            return Step::Abort(format!("not the row: {:?}", turn.reply.text(0, 0)).into());
        }
        if before != Some(&Step::Run(SELECT)) && turn.reply.rows() > 0 {
            return Step::Abort("rows nobody asked for".into());
        }
        if self.most == 0 {
            return Step::Abort("enough".into());
        }
        let step = self.steps[self.at].clone();
        self.at = (self.at + 1) % self.steps.len();
        match step {
            Step::Done(_) => self.most -= 1,
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

const POINT: [Step; 2] = [Step::Run(SELECT), Step::Done(0)];

fn point() -> Steps {
    Steps::new(&POINT)
}

/// BEGIN, a SELECT and COMMIT. In a pipeline the client sees no rows.
fn transaction(pipeline: bool) -> Steps {
    let steps = [Step::Run(BEGIN), Step::Run(SELECT), Step::Run(COMMIT), Step::Done(0)];
    Steps { row: (!pipeline).then_some(42), ..Steps::new(&steps) }
}

#[test]
fn protocols_and_pipelines_send_these_messages() {
    let prepared = load(1, 1, 60_000);
    let (simple, extended) = (Protocol::Simple, Protocol::Extended);
    let pipeline = Load { pipeline: true, ..prepared.clone() };
    let cases = [
        ("simple", point(), Load { protocol: simple, ..prepared.clone() }),
        ("extended", point(), Load { protocol: extended, ..prepared.clone() }),
        ("prepared", point(), prepared.clone()),
        ("a transaction", transaction(false), prepared),
        ("a transaction as a pipeline", transaction(true), pipeline),
    ];
    let sent = cases.map(|(case, steps, load)| {
        let fake = Fake::rows();
        let measured = run(&fake.target, &Steps { most: 3, ..steps }, &load).unwrap();
        assert_eq!((measured.lost_clients, measured.errors.len()), (Some((1, "enough".to_owned())), 0));
        let only = &measured.kinds[0];
        assert_eq!((only.done, only.failed, only.latency.len()), (3, 0, 3), "{case}");
        (case, fake.seen.lock().unwrap().clone())
    });
    golden_cases("native_messages", sent.map(|(case, seen)| (case, vec![seen.join(" ")])));
}

#[test]
fn a_pipelines_latency_covers_all_its_statements() {
    for pipeline in [true, false] {
        let fake = Fake::new(|asked| match asked.tag {
            b'E' => Act::After(Duration::from_millis(2)),
            _ => Act::Row,
        });
        let workload = Steps { most: 20, ..transaction(pipeline) };
        let measured = run(&fake.target, &workload, &Load { pipeline, ..load(1, 1, 20_000) }).unwrap();
        let latency = &measured.kinds[0].latency;
        assert!(latency.len() == 20 && latency.min() >= 6_000_000, "{}", latency.min());
    }
}

#[test]
fn a_statement_longer_than_the_sockets_buffer_is_sent_whole() {
    let fake = Fake::rows();
    let mut workload = Steps { most: 3, ..point() };
    workload.statements[0].pieces[0].push_str(&" ".repeat(4 << 20));
    let load = Load { protocol: Protocol::Extended, ..load(2, 1, 60_000) };
    let measured = run(&fake.target, &workload, &load).unwrap();
    assert_eq!((measured.kinds[0].done, measured.lost_clients), (6, Some((2, "enough".to_owned()))));
}

#[test]
fn an_answer_in_pieces_longer_than_the_buffer_is_put_together() {
    let fake = Fake::new(|asked| if asked.tag == b'E' { Act::Long(200_000) } else { Act::Row });
    let measured = run(&fake.target, &point(), &load(1, 1, 5_000)).unwrap();
    let (_, why) = measured.lost_clients.unwrap();
    assert!(why.starts_with("not the row") && why.contains(&"7".repeat(200_000)), "{why:.80}");
}

/// Ends a round of 60 s once this many transactions are done; returns its measurements.
fn stopped_after(done: u64, workload: &Steps, load: &Load) -> Measured {
    let fake = Fake::rows();
    let live = Live::new(Native::threads(load));
    let measured = thread::scope(|scope| {
        let round = scope.spawn(|| Native.run(&fake.target, workload, load, &live));
        wait_until(|| live.done() >= done || round.is_finished());
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
        let fake = Fake::rows();
        let hold = if looked { Duration::from_secs(60) } else { Duration::from_millis(300) };
        let live = Live { hold, ..Live::watched(2) };
        let workload = point();
        let begun = Instant::now();
        let measured = thread::scope(|scope| {
            let round = scope.spawn(|| Native.run(&fake.target, &workload, &load(4, 2, 100), &live));
            wait_until(|| live.phase() == Phase::Over);
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
        wait_until(|| fake.count("X") >= 4);
        assert_eq!(fake.count("X"), 4);
        assert_eq!(measured.elapsed, Duration::from_millis(100), "the time held is not counted");
    }
}

#[test]
fn a_warm_driver_allocates_nothing() {
    let fake = Fake::rows();
    let allocated = |pipeline, most| {
        let workload = Steps { most, ..transaction(pipeline) };
        let load = Load { pipeline, ..load(2, 1, 60_000) };
        let live = Live::new(1);
        let wire = Postgres::new(&fake.target, &workload.statements(Dialect::Postgres), load.protocol);
        let peer = Peer::resolve(&fake.target.address).unwrap();
        let mut connections = Vec::new();
        connect::connect(&wire, &peer, 2, &live, &mut connections).unwrap();
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
