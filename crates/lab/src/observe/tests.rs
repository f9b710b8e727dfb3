//! Observations computed from two moments.

use super::processes::Spent;
use super::processes::tests::threads;
use super::*;
use crate::tests::{Spawned, wait_until};

fn snapshot(all: u64, idle: u64, server: (u64, u64), client: (u64, u64)) -> Snapshot {
    let ticks = |(user, kernel)| Spent { user, kernel, nanos: nanos(user + kernel) };
    let machine = Time { all, idle };
    Snapshot { machine, server: ticks(server), client: ticks(client), ..Snapshot::default() }
}

fn parts(split: CpuSplit) -> [f64; 5] {
    [split.client, split.server_user, split.server_kernel, split.other, split.idle]
}

#[test]
fn the_parts_of_cpu_time_add_up() {
    let before = snapshot(1_000, 500, (100, 50), (10, 10));
    let split_at = |after: Snapshot| split(&before, &after).map(parts);
    let whole = split_at(snapshot(2_000, 600, (500, 150), (160, 60)));
    assert_eq!(whole, Some([0.2, 0.4, 0.1, 0.2, 0.1]));
    // The kernel counts more for the processes than for the CPUs.
    let cut = split_at(snapshot(1_100, 500, (200, 75), (10, 10))).unwrap();
    assert!((cut.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert_eq!(cut[1], 0.8);
    assert_eq!(split_at(before.clone()), None, "no time has passed");
}

#[test]
fn idle_time_of_cpus_of_ones_own_is_known_where_there_are_some() {
    type Cpus = Option<(u64, u64)>;
    let at = |all, idle, servers: Cpus, clients: Cpus| {
        let time = |(all, idle)| Time { all, idle };
        let (servers, clients) = (servers.map(time), clients.map(time));
        Snapshot { servers, clients, ..snapshot(all, idle, (0, 0), (0, 0)) }
    };
    let before = |servers, clients| at(1_000, 500, servers, clients);
    let after = |servers, clients| at(1_200, 560, servers, clients);
    let (server, later) = (Some((500, 100)), Some((600, 101)));
    assert_eq!(own_cpus(&before(None, None), &after(None, None)), None, "all are everybody's");
    let pinned = own_cpus(&before(server, Some((500, 400))), &after(later, Some((600, 480))));
    assert_eq!(pinned, Some(OwnCpus { server_idle: 0.01, client_idle: 0.8 }));
    let confined = own_cpus(&before(server, None), &after(later, None));
    assert_eq!(confined, Some(OwnCpus { server_idle: 0.01, client_idle: 0.3 }));
    assert_eq!(own_cpus(&before(None, None), &after(later, None)), None, "pinned meanwhile");
}

#[test]
fn a_transactions_events_follow_its_cpu_time_where_it_is_known() {
    let a_second = |cpu| Counters { cpu, ..Counters::default() };
    // A transaction of 20 µs, while the server worked for half a second.
    assert!((seconds_of_one(&a_second(500_000.0), 1_000.0, Some(20.0)) - 0.00004).abs() < 1e-12);
    for (a_second, cpu) in
        [(a_second(f64::NAN), Some(20.0)), (a_second(0.0), Some(20.0)), (a_second(1.0), None)]
    {
        assert_eq!(seconds_of_one(&a_second, 1_000.0, cpu), 0.001);
    }
}

fn target(processes: Vec<u32>) -> Target {
    let elsewhere = crate::arm::Address::Tcp("elsewhere".into(), 5432);
    Target { processes, ..crate::tests::target_at(crate::arm::Dialect::Postgres, elsewhere) }
}

#[test]
fn a_server_elsewhere_is_reported_as_unseen() {
    let mut observer = Observer::new(&target(Vec::new()), None, None);
    observer.begin(Duration::from_secs(10), true);
    observer.end();
    let observed = observer.seen(100, Duration::from_secs(10));
    assert_eq!((observed.cpu, observed.switches, observed.calls), (None, None, None));
    assert_eq!(
        observed.unseen,
        [
            "no CPU split and no context switches: the server's processes are not known here (it runs elsewhere)",
            "no system calls, no counters and no symbols: the server's processes are not known here (it runs elsewhere)",
        ]
    );
    let mut behind = Observer::new(&target(Vec::new()), Some("ssh listens in its server's place"), None);
    behind.begin(Duration::from_secs(10), false);
    behind.end();
    let observed = behind.seen(100, Duration::from_secs(10));
    assert_eq!(observed.unseen, ["no CPU split and no context switches: ssh listens in its server's place"]);
}

#[test]
fn threads_that_work_all_the_time_are_counted() {
    let moment = |worked| {
        let mut threads = threads(worked);
        threads.insert(3, processes::Thread::default());
        Snapshot { threads, ..Snapshot::default() }
    };
    let before = moment(&[(1, 0, 0, 100), (2, 0, 0, 0), (4, 0, 0, 1)]);
    let after = moment(&[(1, 0, 0, 500), (2, 0, 0, 100), (5, 0, 0, 400)]);
    assert_eq!(busy(&before, &after, Duration::from_secs(4)), 1, "the first, not one that came since");
}

#[test]
fn a_busy_local_server_has_the_cheap_observations() {
    let busy = Spawned::busy();
    let mut observer = Observer::new(&target(vec![busy.id()]), None, None);
    observer.begin(Duration::from_millis(500), false);
    // Long enough for it to get the CPU on a busy machine, too.
    let mut seen = Observed::default();
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(100));
        if Snapshot::take(&[busy.id()], &[]).unwrap().server.nanos >= nanos(20) {
            observer.end();
            seen = observer.seen(10, Duration::from_secs(1));
            break;
        }
    }
    let cpu = seen.cpu.unwrap();
    assert!(cpu.server_user + cpu.server_kernel > 0.0, "{cpu:?}");
    // On an idle machine there may have been none.
    assert!(seen.switches.is_some());
    assert_eq!((seen.calls, seen.symbols.len(), seen.unseen.len()), (None, 0, 0));
}

#[test]
fn a_server_that_ended_is_reported() {
    let mut brief = std::process::Command::new("true").spawn().unwrap();
    let observer = Observer::new(&target(vec![brief.id()]), None, None);
    brief.wait().unwrap();
    assert_eq!(observer.snapshot().err().as_deref(), Some("the server's processes have ended"));
}

#[test]
fn switches_that_went_with_ended_sessions_are_left_out() {
    let moment = |ticks, all: &[(i32, u64, u64, u64)]| Snapshot {
        threads: threads(all),
        ..snapshot(1_000 + ticks, 500, (ticks, 0), (0, 0))
    };
    let before = moment(0, &[(1, 0, 0, 0), (2, 0, 0, 0)]);
    let after = |worked| moment(100, &[(1, 50, 0, worked)]);
    let seen = per_transaction(&before, &after(95), 25.0).unwrap().unwrap();
    assert_eq!((seen.voluntary, seen.involuntary), (2.0, 0.0));
    assert_eq!(per_transaction(&before, &after(80), 25.0), Err(SWITCHES_LOST.into()));
    assert_eq!(per_transaction(&before, &after(95), 0.0), Ok(None));
}

#[test]
fn nothing_is_asked_while_the_cpu_is_sampled_and_everything_once_it_is_not() {
    let asked = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let to = std::sync::Arc::clone(&asked);
    let connect: Connect = std::sync::Arc::new(move || {
        let to = std::sync::Arc::clone(&to);
        Ok(Box::new(move |sql: &str| {
            to.lock().unwrap().push(sql.to_string());
            Ok(vec![vec![Some(RUNNING.into()), Some("3".into())]])
        }))
    });
    let questions = || asked.lock().unwrap().iter().filter(|sql| sql.contains("pg_stat_activity")).count();
    let mut observer = Observer::new(&target(vec![std::process::id()]), None, Some(connect));
    // This perf samples until it is interrupted.
    let (_folder, perf) = perf::tests::scripted("while :; do sleep 0.01; done", "exit");
    observer.perf = perf;
    observer.begin(Duration::from_secs(600), true);
    std::thread::sleep(Duration::from_millis(800));
    assert_eq!(questions(), 0, "perf samples");
    let Some(Window { sampling: Some(Ok(sampling)), .. }) = &observer.window else { panic!() };
    sampling.interrupt();
    wait_until(|| questions() > 0);
    observer.end();
    let seen = observer.seen(1, Duration::from_secs(1));
    assert_eq!((seen.looks, seen.waits[0].name.as_str()), (questions() as u64, RUNNING));
}
