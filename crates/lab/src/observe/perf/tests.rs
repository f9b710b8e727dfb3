//! perf's output as the lab parses it, and perf itself where it is installed.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::tests::{Spawned, wait_until};

#[test]
fn calls_a_second_use_the_time_that_perf_reports() {
    let said = "\n Performance counter stats for process id '1,2':\n\n           123,456      raw_syscalls:sys_enter    \n\n\
                \n       0.500000000 seconds time elapsed\n\n";
    assert_eq!(calls_a_second(said), Ok(246_912.0));
    assert_eq!(calls_a_second(&said.replace("123,456", "<not counted>")), Err(UNCOUNTED.into()));
    let refused = "event syntax error: 'raw_syscalls:sys_enter'\n  \\___ can't access trace events\n\nError:\tNo permissions to read \
                   /sys/kernel/tracing//events/raw_syscalls/sys_enter\n";
    assert!(calls_a_second(refused).unwrap_err().contains("can't access trace events"));
}

#[test]
fn a_sample_of_processes_is_spread_evenly() {
    let all: Vec<i32> = (0..1_000).rev().collect();
    let some = some_of(&all, 64);
    assert_eq!((some.len(), some[0], some[63]), (64, 0, 63 * 1_000 / 64));
    assert_eq!(some_of(&[3, 1], 64), [1, 3]);
}

#[test]
fn perf_samples_a_busy_process() {
    if Command::new("perf").arg("--version").output().is_err() {
        return crate::tests::skip("perf is not installed");
    }
    let mut ended = Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let busy = Spawned::busy();
    let processes = [ended.id() as i32, busy.id() as i32];
    let mut sampling = Sampling::begin(Path::new("perf"), &processes, Duration::from_secs(1)).unwrap();
    wait_until(|| !matches!(sampling.shell.try_wait(), Ok(None)));
    let Results { calls, counters, symbols } = sampling.end();
    drop(busy);
    match counters {
        // A machine without counters of hardware has those of the kernel.
        Ok(Counted { a_second, .. }) => assert!(a_second.cpu > 1_000.0, "{a_second:?}"),
        Err(reason) => assert!(reason.starts_with("perf: ") || reason == UNCOUNTED, "{reason}"),
    }
    // Without permission, perf's own message is the reason; if perf got no CPU, the lab's message
    // is.
    match calls {
        Ok(calls) => assert!(calls > 100.0, "{calls} a second"),
        Err(reason) => assert!(reason.starts_with("perf: ") || reason == UNCOUNTED, "{reason}"),
    }
    match symbols {
        Ok(profile) => {
            let all: f64 = profile.shares.iter().map(|one| one.share).sum();
            assert!(profile.samples > 0 && all > 0.3 && all < 1.001, "{profile:?}");
        }
        Err(reason) => assert!(reason.starts_with("perf") || reason == UNSAMPLED, "{reason}"),
    }
}

#[test]
fn rounds_that_are_too_short_and_servers_that_are_too_large_are_left_alone() {
    let refused = Sampling::begin(Path::new("perf"), &[1], Duration::from_millis(499)).err();
    assert_eq!(refused.as_deref(), Some("rounds of less than 500ms are too short for perf"));
    let (_folder, perf) = scripted("echo hot >data", "exit");
    let many: Vec<i32> = (1..=401).collect();
    let Results { calls, counters, .. } =
        Sampling::begin(&perf, &many, Duration::from_secs(1)).unwrap().end();
    let why = Some("the server has 401 processes, more than perf can count at once");
    assert_eq!((calls.err().as_deref(), counters.err().as_deref()), (why, why));
}

/// A script in perf's place, with these bodies for `record` and `stat`. `$at` is a folder for its
/// files.
pub(in crate::observe) fn scripted(record: &str, stat: &str) -> (TempDir, PathBuf) {
    let (folder, process) = (tempfile::tempdir().unwrap(), std::process::id());
    let script = format!(
        "#!/bin/sh\nat={}\n\
         wait_for_ever() {{ : >begun; touch $at/waits; while :; do sleep 0.01; done; }}\n\
         case $1 in\nrecord) {record};;\nstat) {stat};;\n\
         script) for file; do :; done; echo \" {process} 1 10 $(cat $file) (server)\";;\nesac\n",
        folder.path().display()
    );
    let file = folder.path().join("perf");
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    (folder, file)
}

/// Writes its data on SIGINT and dies of it, as perf does.
const UNTIL_TOLD: &str = "trap 'echo hot >data; trap - INT; kill -INT $$' INT; wait_for_ever";
const COUNTED: &str = "(echo ' 700 raw_syscalls:sys_enter'; echo ' 0.5 seconds time elapsed') >&2";

fn begun(perf: &Path, window: Duration) -> Sampling {
    Sampling::begin(perf, &[std::process::id() as i32], window).unwrap()
}

/// The results of a sampling that is interrupted once this file exists.
fn ended(sampling: Sampling, once: &Path) -> (Result<f64, String>, Result<Vec<String>, String>) {
    wait_until(|| once.exists());
    let Results { calls, symbols, .. } = sampling.end();
    (calls, symbols.map(|profile| profile.shares.into_iter().map(|one| one.name).collect()))
}

#[test]
fn a_recording_that_the_rounds_end_cuts_short_is_used() {
    let (folder, perf) = scripted(UNTIL_TOLD, COUNTED);
    let sampling = begun(&perf, Duration::from_secs(600));
    let (calls, symbols) = ended(sampling, &folder.path().join("waits"));
    assert_eq!(symbols, Ok(vec!["hot".into()]));
    assert_eq!(calls, Err(UNCOUNTED.into()), "nothing is begun after the end");
}

#[test]
fn a_recording_ends_with_the_first_half_and_calls_are_counted() {
    let (folder, perf) = scripted(UNTIL_TOLD, &format!("{COUNTED}; touch $at/counted"));
    let sampling = begun(&perf, Duration::from_secs(2));
    wait_until(|| folder.path().join("waits").exists());
    assert!(!sampling.sampled().exists());
    let sampled = sampling.sampled();
    wait_until(|| sampled.exists());
    assert_eq!(ended(sampling, &folder.path().join("counted")), (Ok(1_400.0), Ok(vec!["hot".into()])));
}

#[test]
fn calls_and_events_are_counted_one_after_the_other() {
    let each =
        "case $3 in *cycles*) echo ' 500 msec task-clock';; *) echo ' 700 raw_syscalls:sys_enter';; esac";
    let stat =
        format!("({each}; echo ' 0.5 seconds time elapsed') >&2; [ -e evented ] && touch $at/over; true");
    let (folder, perf) = scripted(": >begun; echo hot >data", &stat);
    let sampling = begun(&perf, Duration::from_secs(600));
    wait_until(|| folder.path().join("over").exists());
    let Results { calls, counters, symbols } = sampling.end();
    assert_eq!((calls, symbols.unwrap().shares.len()), (Ok(1_400.0), 1));
    assert_eq!(counters.unwrap().a_second.cpu, 1e6);
}

#[test]
fn a_start_that_fails_is_tried_again_and_the_last_reason_is_reported() {
    let second = ": >begun; case \"$*\" in *' -a '*) echo denied >&2; exit 1;; esac; \
                  if [ -e $at/tried ]; then echo hot >data; else touch $at/tried; exit 1; fi";
    let (folder, perf) = scripted(second, &format!("{COUNTED}; touch $at/counted"));
    let sampling = begun(&perf, Duration::from_secs(600));
    assert_eq!(ended(sampling, &folder.path().join("counted")), (Ok(1_400.0), Ok(vec!["hot".into()])));
    let refused = "echo access denied >&2; echo >>$at/tries; exit 1";
    let (folder, perf) = scripted(refused, refused);
    let sampling = begun(&perf, Duration::from_secs(600));
    let tries = || std::fs::read_to_string(folder.path().join("tries")).unwrap_or_default().len();
    wait_until(|| tries() == 10);
    let denied = "perf: access denied".to_string();
    assert_eq!(ended(sampling, folder.path()), (Err(denied.clone()), Err(denied)));
    assert_eq!(tries(), 10, "once for the machine, then three times each to sample and to count twice");
    let mut missing = begun(Path::new("/nowhere/perf"), Duration::from_secs(1));
    wait_until(|| !matches!(missing.shell.try_wait(), Ok(None)));
    assert!(missing.sampled().exists());
    let absent = "perf: it is not installed (Debian: linux-perf)".to_string();
    assert_eq!(ended(missing, folder.path()), (Err(absent.clone()), Err(absent)));
}

#[test]
fn nothing_of_perf_outlives_its_sampling() {
    let (folder, perf) = scripted("trap '' INT; echo $$ >$at/process; wait_for_ever", COUNTED);
    let sampling = begun(&perf, Duration::from_secs(600));
    wait_until(|| folder.path().join("waits").exists());
    sampling.interrupt();
    let process = std::fs::read_to_string(folder.path().join("process")).unwrap();
    let is_there = || Path::new("/proc").join(process.trim()).join("exe").exists();
    assert!(is_there());
    drop(sampling);
    wait_until(|| !is_there());
    assert!(!is_there());
}
