//! What is made of two moments.

use super::processes::Spent;
use super::*;

fn snapshot(all: u64, idle: u64, server: (u64, u64), client: (u64, u64)) -> Snapshot {
    let ticks = |(user, kernel)| Spent { user, kernel, nanos: nanos(user + kernel) };
    Snapshot { all, idle, server: ticks(server), client: ticks(client), ..Snapshot::default() }
}

fn parts(split: CpuSplit) -> [f64; 5] {
    [split.client, split.server_user, split.server_kernel, split.other, split.idle]
}

#[test]
fn the_parts_of_cpu_time_add_up() {
    let before = snapshot(1_000, 500, (100, 50), (10, 10));
    let after = snapshot(2_000, 600, (500, 150), (160, 60));
    let split = split(&before, &after).unwrap();
    assert_eq!(parts(split), [0.2, 0.4, 0.1, 0.2, 0.1]);
}

#[test]
fn parts_that_come_to_more_than_all_are_cut_to_it() {
    let before = snapshot(1_000, 500, (100, 50), (10, 10));
    let after = snapshot(1_100, 500, (200, 75), (10, 10));
    let split = split(&before, &after).unwrap();
    assert!((parts(split).iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert_eq!(split.server_user, 0.8);
    assert_eq!(super::split(&before, &before), None, "no time has passed");
}

fn target(processes: Vec<u32>) -> Target {
    Target {
        arm: "a".into(),
        dialect: crate::arm::Dialect::Postgres,
        address: crate::arm::Address::Tcp("elsewhere".into(), 5432),
        user: "u".into(),
        password: None,
        database: "d".into(),
        processes,
    }
}

#[test]
fn a_server_elsewhere_is_said_to_be_unseen() {
    let mut observer = Observer::new(&target(Vec::new()), None);
    observer.begin(Duration::from_secs(10), true);
    observer.tick();
    observer.end();
    let observed = observer.seen(100, Duration::from_secs(10));
    assert_eq!((observed.cpu, observed.switches, observed.calls), (None, None, None));
    assert_eq!(
        observed.unseen,
        [
            "no CPU split and no context switches: the server's processes are not known here (it runs elsewhere)",
            "no system calls and no symbols: the server's processes are not known here (it runs elsewhere)",
        ]
    );
}

#[test]
fn a_busy_server_here_is_seen_without_the_costly_looks() {
    let mut busy = std::process::Command::new("dd")
        .args(["if=/dev/zero", "of=/dev/null", "bs=1"])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut observer = Observer::new(&target(vec![busy.id()]), None);
    observer.begin(Duration::from_millis(500), false);
    // Long enough for it to get the CPU where others want it, too.
    let mut seen = Observed::default();
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(100));
        if Snapshot::take(&[busy.id()], &[]).unwrap().server.nanos >= nanos(20) {
            observer.end();
            seen = observer.seen(10, Duration::from_secs(1));
            break;
        }
    }
    busy.kill().unwrap();
    busy.wait().unwrap();
    let cpu = seen.cpu.unwrap();
    assert!(cpu.server_user + cpu.server_kernel > 0.0, "{cpu:?}");
    let switches = seen.switches.unwrap();
    assert!(switches.voluntary + switches.involuntary > 0.0, "{switches:?}");
    assert_eq!((seen.calls, seen.symbols.len(), seen.unseen.len()), (None, 0, 0));
}

#[test]
fn a_server_that_ended_is_said() {
    let mut brief = std::process::Command::new("true").spawn().unwrap();
    let observer = Observer::new(&target(vec![brief.id()]), None);
    brief.wait().unwrap();
    assert_eq!(observer.snapshot().err().as_deref(), Some("the server's processes have ended"));
}

#[test]
fn switches_that_went_with_ended_sessions_are_left_out() {
    let thread = |voluntary, worked| processes::Thread { voluntary, involuntary: 0, worked: Some(worked) };
    let moment = |ticks, threads: &[(i32, processes::Thread)]| Snapshot {
        threads: threads.iter().copied().collect(),
        ..snapshot(1_000 + ticks, 500, (ticks, 0), (0, 0))
    };
    let before = moment(0, &[(1, thread(0, 0)), (2, thread(0, 0))]);
    let after = |worked| moment(100, &[(1, thread(50, nanos(worked)))]);
    let seen = per_transaction(&before, &after(95), 25.0).unwrap().unwrap();
    assert_eq!((seen.voluntary, seen.involuntary), (2.0, 0.0));
    assert_eq!(per_transaction(&before, &after(80), 25.0), Err(SWITCHES_LOST.into()));
    assert_eq!(per_transaction(&before, &after(95), 0.0), Ok(None));
}

#[test]
fn what_a_driver_did_after_the_last_look_is_not_held_against_the_switches() {
    // As sysbench, whose sessions part without a word: looked at for 3 of 4 seconds, in which 300 of 400 were done.
    let mut observer = Observer::new(&target(Vec::new()), None);
    let thread = |voluntary| [(1, processes::Thread { voluntary, involuntary: 0, worked: None })].into();
    let before = Snapshot { threads: thread(0), ..snapshot(0, 0, (0, 0), (0, 0)) };
    let after = Snapshot { threads: thread(600), ..snapshot(300, 0, (100, 0), (0, 0)) };
    let lasted = Duration::from_secs(3);
    let (before, after) = (Ok(before), Some((Ok(after), lasted)));
    observer.window = Some(Window { before, begun: Instant::now(), sampling: None, after });
    let seen = observer.seen(400, Duration::from_secs(4));
    assert_eq!(seen.switches, Some(Switches { voluntary: 2.0, involuntary: 0.0 }));
}
