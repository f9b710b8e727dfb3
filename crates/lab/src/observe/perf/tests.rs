//! perf's output as the lab parses it, and perf itself where it is installed.

use super::*;
use crate::tests::wait_until;

#[test]
fn calls_a_second_use_the_time_that_perf_reports() {
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
fn a_sample_of_processes_is_spread_evenly() {
    let all: Vec<i32> = (0..1_000).rev().collect();
    let some = some_of(&all, 64);
    assert_eq!((some.len(), some[0], some[63]), (64, 0, 63 * 1_000 / 64));
    assert_eq!(some_of(&[3, 1], 64), [1, 3]);
}

/// Reads and writes single bytes until it is killed.
struct Busy(Child);

impl Busy {
    fn new() -> Self {
        let mut dd = Command::new("dd");
        dd.args(["if=/dev/zero", "of=/dev/null", "bs=1"]).stderr(Stdio::null());
        Self(dd.spawn().unwrap())
    }

    fn process(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // An error means that it has ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether perf is installed; prints a message where it isn't.
fn has_perf() -> bool {
    let has = Command::new("perf").arg("--version").output().is_ok();
    if !has {
        crate::tests::skip("perf is not installed");
    }
    has
}

/// Ticks the sampling until it is over.
fn through(mut sampling: Sampling) -> Sampling {
    wait_until(|| {
        sampling.tick();
        sampling.stage.perf().is_none()
    });
    sampling
}

const UNCOUNTED: &str = "the round ended before they were counted";

#[test]
fn perf_samples_a_busy_process() {
    if !has_perf() {
        return;
    }
    let busy = Busy::new();
    let sampling = through(Sampling::begin(&[busy.process()], Duration::from_secs(4)).unwrap());
    let (calls, symbols) = sampling.end();
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
fn short_rounds_are_left_alone() {
    let refused = Sampling::begin(&[1], Duration::from_millis(499)).err();
    assert_eq!(refused.as_deref(), Some("rounds of less than 500ms are too short for perf"));
}

#[test]
fn a_count_that_ends_with_the_round_is_used_and_ended_processes_are_left_out() {
    if !has_perf() {
        return;
    }
    let mut brief = Command::new("true").spawn().unwrap();
    brief.wait().unwrap();
    let busy = Busy::new();
    let processes = [brief.id() as i32, busy.process()];
    // The window never ends: the test interrupts perf in the middle of its first part.
    let sampling = Sampling::begin(&processes, Duration::from_secs(60)).unwrap();
    assert_eq!(sampling.living(), [busy.process()]);
    wait_until(|| sampling.data().exists());
    std::thread::sleep(Duration::from_millis(1_500));
    let (calls, symbols) = sampling.end();
    assert_eq!(calls, Err(UNCOUNTED.into()));
    match symbols {
        Ok(profile) => assert!(!profile.shares.is_empty()),
        Err(reason) => assert!(reason.starts_with("perf") || reason == UNSAMPLED, "{reason}"),
    }
}

/// A script in perf's place, with these bodies for `record`, `stat` and `report`. `$at` is a folder
/// for its files.
fn scripted(record: &str, stat: &str) -> (TempDir, Vec<String>) {
    let (folder, process) = (tempfile::tempdir().unwrap(), std::process::id());
    let script = format!(
        "at={}\nfor word; do if [ \"$before\" = -o ]; then data=$word; fi; before=$word; done\n\
         wait_for_ever() {{ touch $at/waits; : > $(dirname $data)/begun; while :; do sleep 0.01; done; }}\n\
         case $1 in\nrecord) {record};;\nstat) {stat};;\nscript) echo \" {process} 1 10 $(cat $word) (server)\";;\nesac\n",
        folder.path().display()
    );
    let file = folder.path().join("perf");
    std::fs::write(&file, script).unwrap();
    // A test that runs in the background ignores SIGINT from its start, and sh could not trap it.
    let words = ["env", "--default-signal=INT", "sh", &file.display().to_string()];
    (folder, words.map(String::from).to_vec())
}

/// Writes its data on SIGINT and dies of it, as perf does.
const UNTIL_TOLD: &str = "trap 'echo hot > $data; trap - INT; kill -INT $$' INT; wait_for_ever";
const COUNTED: &str = "echo ' 700 raw_syscalls:sys_enter'; echo ' 0.5 seconds time elapsed'";

fn begun(folder: &TempDir, program: Vec<String>, window: Duration) -> Sampling {
    let sampling = Sampling::begin_by(program, &[std::process::id() as i32], window).unwrap();
    wait_until(|| folder.path().join("waits").exists());
    sampling
}

fn names(symbols: Result<Profile, String>) -> Vec<String> {
    symbols.unwrap().shares.into_iter().map(|one| one.name).collect()
}

#[test]
fn a_recording_that_the_rounds_end_cuts_short_is_used() {
    let (folder, program) = scripted(UNTIL_TOLD, COUNTED);
    let mut sampling = begun(&folder, program, Duration::from_secs(600));
    sampling.interrupt();
    // perf ends long before the test asks for its results.
    wait_until(|| sampling.has_ended().is_some());
    assert_eq!(sampling.has_ended(), Some(true));
    let (calls, symbols) = sampling.end();
    assert_eq!(names(symbols), ["hot"]);
    assert_eq!(calls, Err(UNCOUNTED.into()), "nothing is begun after the end");
}

#[test]
fn a_recording_ends_with_the_first_half_and_calls_are_counted() {
    let (folder, program) = scripted(UNTIL_TOLD, &format!("({COUNTED}) >&2"));
    let sampling = through(begun(&folder, program, Duration::from_secs(2)));
    assert_eq!(sampling.perfs().len(), 2, "neither is waited for yet");
    let (calls, symbols) = sampling.end();
    assert_eq!((calls, names(symbols)), (Ok(1_400.0), vec!["hot".to_string()]));
}

#[test]
fn a_recording_that_has_hardly_begun_gets_a_little_more_but_not_all() {
    let (folder, program) = scripted(UNTIL_TOLD, COUNTED);
    let mut sampling = begun(&folder, program, Duration::from_secs(100));
    let mark = sampling.mark();
    wait_until(|| mark.exists());
    std::fs::remove_file(&mark).unwrap();
    let at = |seconds| Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
    let mut has_its_part = |begun, sampled: Option<u64>| {
        sampling.begun = at(begun);
        sampling.sampled_from = sampled.map(at);
        sampling.has_its_part()
    };
    assert!(!has_its_part(40, Some(20)) && has_its_part(51, Some(20)));
    assert!(!has_its_part(51, Some(5)) && !has_its_part(51, None) && !has_its_part(70, Some(5)));
    assert!(has_its_part(76, Some(1)) && has_its_part(76, None));
    std::fs::write(&mark, "").unwrap();
    assert!(!has_its_part(51, None));
    assert!(sampling.sampled_from.is_some(), "it is seen to have begun");
}

#[test]
fn a_recording_that_ends_early_and_silently_is_tried_again() {
    let once = "if [ -e $at/tried ]; then echo hot > $data; else touch $at/tried; exit 1; fi";
    let (_folder, program) = scripted(once, &format!("({COUNTED}) >&2"));
    let own = [std::process::id() as i32];
    let sampling = Sampling::begin_by(program, &own, Duration::from_secs(600)).unwrap();
    let (calls, symbols) = through(sampling).end();
    assert_eq!((calls, names(symbols)), (Ok(1_400.0), vec!["hot".to_string()]));

    let (_folder, program) = scripted("echo access denied >&2; exit 1", "echo access denied >&2; exit 1");
    let mut sampling = Sampling::begin_by(program, &own, Duration::from_secs(600)).unwrap();
    for expected in ["all, then some", "some, then no more"] {
        assert!(sampling.is_recording(), "{expected}");
        wait_until(|| sampling.has_ended().is_some());
        sampling.tick();
    }
    assert!(matches!(sampling.stage, Stage::Counting(_)), "what was refused twice is not tried again");
    wait_until(|| sampling.has_ended().is_some());
    let (calls, symbols) = sampling.end();
    assert_eq!((calls, symbols), (Err("perf: access denied".into()), Err("perf: access denied".into())));
}

#[test]
fn nothing_of_perf_outlives_its_sampling() {
    let (folder, program) = scripted("trap '' INT; wait_for_ever", COUNTED);
    let mut sampling = begun(&folder, program, Duration::from_secs(600));
    sampling.interrupt();
    let perf = Path::new("/proc").join(sampling.perfs()[0].to_string());
    assert!(perf.exists());
    drop(sampling);
    assert!(!perf.exists());
}
