//! Stop points: their actions, and the text that arms them.

use super::*;

#[test]
fn text_is_parsed_or_refused() {
    for bad in ["runtime.test", "runtime.test=explode", "runtime.test=sleep:x", "runtime.test=park@x"] {
        assert_eq!(arm_all(bad), Err(ParseError(bad.into())));
    }
}

#[test]
fn a_name_that_no_room_lists_is_refused_with_all_names() {
    let lists: [&[&str]; 2] = [&["runtime.test.two", "runtime.test.one"], &["runtime.test"]];
    assert_eq!(refuse_unknown_in("runtime.test=kill; runtime.test.two=park@2;", &lists), Ok(()));
    let refused = refuse_unknown_in("runtime.test=kill; runtime.test.tow=park@2", &lists).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "ALLCORE_STOP names \"runtime.test.tow\", which is no stop point; \
         name one of runtime.test, runtime.test.one, runtime.test.two"
    );
}

#[test]
fn park_waits_for_release_and_nth_counts() {
    arm_all("runtime.test=park@2; ").unwrap();
    point("runtime.test");
    std::thread::scope(|scope| {
        let parked = scope.spawn(|| point("runtime.test"));
        while hits("runtime.test") < 2 {
            std::thread::yield_now();
        }
        assert!(!parked.is_finished());
        release("runtime.test");
    });
    clear();
    point("runtime.test");
    assert_eq!(hits("runtime.test"), 0);
}

#[test]
fn a_fault_is_the_error_asked_for_at_the_hit_asked_for() {
    // Other tests clear all points: only what this one sees at once counts.
    arm("runtime.test.fault", Action::Fail(libc::ENOSPC), Some(2));
    let seen: Vec<Option<i32>> =
        (0..3).map(|_| fault("runtime.test.fault").err().and_then(|error| error.raw_os_error())).collect();
    assert_eq!(seen, [None, Some(libc::ENOSPC), None]);
    // A point passes a fault by.
    point("runtime.test.fault");
}
