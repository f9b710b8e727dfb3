//! perf's words read, and perf itself where it is there.

use super::*;

#[test]
fn symbols_are_read_added_up_and_marked() {
    let report = "\n    31.25%|postgres         |[.] s_lock\n    20.00%|[kernel.kallsyms]|[k] futex_wait\n\
                  \n     5.50%|libc.so.6        |[.] 0x00000000000a1b2c\n     4.50%|libc.so.6|[.] 0x00000000000a1b2d\n\
                  \n     1.00%|mariadbd|[.] operator|(Flags, Flags)\nno line of it\n";
    let read: Vec<(String, f64)> = symbols(report).into_iter().map(|one| (one.name, one.share)).collect();
    let expected = [
        ("s_lock", 0.3125),
        ("futex_wait (kernel)", 0.2),
        ("unknown in libc.so.6", 0.1),
        ("operator|(Flags, Flags)", 0.01),
    ];
    assert_eq!(read.len(), expected.len(), "{read:?}");
    for ((name, share), (wanted, part)) in read.iter().zip(expected) {
        assert!(name == wanted && (share - part).abs() < 1e-9, "{read:?}");
    }
}

#[test]
fn counted_calls_go_by_the_time_perf_took() {
    let said = "\n Performance counter stats for process id '1,2':\n\n           123,456      raw_syscalls:sys_enter    \n\n\
                \n       0.500000000 seconds time elapsed\n\n";
    assert_eq!(calls_a_second(said), Ok(246_912.0));
    let nothing = said.replace("          123,456", "<not counted>");
    assert_eq!(calls_a_second(&nothing), Err("perf: <not counted> raw_syscalls:sys_enter".into()));
    let refused = "event syntax error: 'raw_syscalls:sys_enter'\n  \\___ can't access trace events\n\nError:\tNo permissions to read \
                   /sys/kernel/tracing//events/raw_syscalls/sys_enter\n";
    assert!(calls_a_second(refused).unwrap_err().contains("can't access trace events"));
}

#[test]
fn some_of_many_are_spread_over_all() {
    let all: Vec<i32> = (0..1_000).rev().collect();
    let some = some_of(&all, 64);
    assert_eq!((some.len(), some[0], some[63]), (64, 0, 63 * 1_000 / 64));
    assert_eq!(some_of(&[3, 1], 64), [1, 3]);
}

#[test]
fn a_busy_process_is_seen_through() {
    if Command::new("perf").arg("--version").output().is_err() {
        eprintln!("skipped: perf is not installed");
        return;
    }
    let mut busy = Command::new("dd")
        .args(["if=/dev/zero", "of=/dev/null", "bs=1"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut sampling = Sampling::begin(&[busy.id() as i32], Duration::from_secs(4)).unwrap();
    for _ in 0..400 {
        std::thread::sleep(Duration::from_millis(50));
        sampling.tick();
        if matches!(sampling.stage, Stage::Over) {
            break;
        }
    }
    let (calls, symbols) = sampling.end();
    busy.kill().unwrap();
    busy.wait().unwrap();
    // Where it isn't permitted, perf's own word is the reason; where it is, dd reads and writes single bytes.
    match calls {
        Ok(calls) => assert!(calls > 1_000.0, "{calls} a second"),
        Err(reason) => assert!(reason.starts_with("perf: "), "{reason}"),
    }
    match symbols {
        Ok(symbols) => {
            let all: f64 = symbols.iter().map(|one| one.share).sum();
            assert!(all > 0.3 && all < 1.001, "{symbols:?}");
        }
        Err(reason) => assert!(reason.starts_with("perf: "), "{reason}"),
    }
}

#[test]
fn short_rounds_are_left_alone() {
    let refused = Sampling::begin(&[1], Duration::from_millis(499)).err();
    assert_eq!(refused.as_deref(), Some("rounds of less than 500ms are too short for perf"));
}

#[test]
fn what_ends_with_the_round_is_used_and_who_has_ended_is_left_out() {
    if Command::new("perf").arg("--version").output().is_err() {
        eprintln!("skipped: perf is not installed");
        return;
    }
    let mut brief = Command::new("true").spawn().unwrap();
    brief.wait().unwrap();
    let mut busy = Command::new("dd")
        .args(["if=/dev/zero", "of=/dev/null", "bs=1"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let processes = [brief.id() as i32, busy.id() as i32];
    // The window is never reached: perf is interrupted in the middle of its first part.
    let sampling = Sampling::begin(&processes, Duration::from_secs(60)).unwrap();
    assert_eq!(sampling.living(), [busy.id() as i32]);
    let until = Instant::now() + Duration::from_secs(30);
    while !sampling.data().exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(1_500));
    let (calls, symbols) = sampling.end();
    busy.kill().unwrap();
    busy.wait().unwrap();
    assert_eq!(calls, Err("the round ended before they were counted".into()));
    match symbols {
        Ok(symbols) => assert!(!symbols.is_empty()),
        Err(reason) => assert!(reason.starts_with("perf: ") || reason == UNSAMPLED, "{reason}"),
    }
}
