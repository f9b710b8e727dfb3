//! The times and costs of observations, in order with the driver's actions.

use super::*;

/// The events of a round, in order.
type Log = std::sync::Mutex<Vec<String>>;

/// Counts until the observer has looked, and then ends its sessions; then it fails, if the test
/// says so.
struct Parting<'a>(&'a Log, Option<&'static str>);

impl Driver for Parting<'_> {
    fn run(&self, to: &Target, _: &dyn Workload, load: &Load, live: &Live) -> Result<Measured, String> {
        let begun = self.0.lock().unwrap().len();
        live.enter(Phase::Measuring);
        crate::tests::wait_until(|| self.0.lock().unwrap().len() > begun);
        live.enter(Phase::Over);
        live.hold();
        self.0.lock().unwrap().push(format!("{} parts", to.arm));
        self.1.map_or(Ok(measured(800, load.measured)), |why| Err(why.into()))
    }
}

/// An observer that looks after a while; it sees symbols from its n-th costly observation on.
struct Slow<'a>(&'a Log, usize);

impl Observe for Slow<'_> {
    fn begin(&mut self, _: Duration, deep: bool) {
        self.1 = self.1.saturating_sub(usize::from(deep));
        self.0.lock().unwrap().push(format!("begins{}", if deep { " deep" } else { "" }));
    }
    fn tick(&mut self) {}
    fn end(&mut self) {
        std::thread::sleep(Duration::from_millis(50));
        self.0.lock().unwrap().push("looked".into());
    }
    fn seen(&mut self, _: u64, _: Duration) -> Observed {
        let symbols = vec![crate::record::Share { name: "s_lock".into(), share: 0.5 }];
        let calls = Some(3.0);
        if self.1 > 0 { Observed::default() } else { Observed { symbols, calls, ..Observed::default() } }
    }
    fn forget(&mut self) {
        self.0.lock().unwrap().push("forgotten".into());
    }
}

/// The events of a sweep of this many rounds. Each arm sees symbols from the costly observation
/// with its number in `sees` on.
fn happens(rounds: u32, sees: &[usize], fails: Option<&'static str>) -> Vec<String> {
    let (workload, log) = (Named(vec!["select".into()]), Log::default());
    let targets: Vec<Target> = ["a", "b"].map(target).into();
    let driver = Parting(&log, fails);
    let mut observers: Vec<Slow<'_>> = sees.iter().map(|from| Slow(&log, *from)).collect();
    let mut contenders: Vec<Contender<'_>> = (targets.iter().zip(&mut observers))
        .map(|(target, observer)| Contender {
            target,
            driver: &driver,
            workload: &workload,
            observer,
            ended: Box::new(|| None),
        })
        .collect();
    let plan = Plan { least_rounds: rounds, most_rounds: rounds, ..plan(&[1]) };
    let stop = AtomicBool::new(false);
    sweep(&mut contenders, &plan, &Bench::default(), &stop, &mut Told::default());
    drop(contenders);
    log.into_inner().unwrap()
}

#[test]
fn sessions_stay_until_the_observer_has_looked() {
    assert_eq!(happens(1, &[1], None), ["begins deep", "looked", "a parts"]);
}

#[test]
fn observations_of_a_failed_round_are_dropped() {
    assert_eq!(happens(1, &[1], Some("it fell")), ["begins deep", "looked", "a parts", "forgotten"]);
}

#[test]
fn the_costly_looks_come_with_the_same_rounds_of_all_arms() {
    let deep = |sees: &[usize]| -> Vec<bool> {
        let log = happens(4, sees, None);
        log.iter().filter(|line| line.starts_with("begins")).map(|line| line.ends_with("deep")).collect()
    };
    let pairs = |rounds: [bool; 4]| rounds.iter().flat_map(|deep| [*deep; 2]).collect::<Vec<bool>>();
    assert_eq!(deep(&[1, 1]), pairs([true, false, false, false]));
    assert_eq!(deep(&[1, 2]), pairs([true, true, false, false]), "the other arm saw nothing in its first");
    assert_eq!(deep(&[9, 1]), pairs([true, true, false, false]), "twice is enough");
}
