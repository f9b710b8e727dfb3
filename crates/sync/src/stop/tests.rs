//! Stop points: actions, the text form, and that every name in the source is listed.

use super::*;

#[test]
fn text_is_parsed_or_refused() {
    assert_eq!(arm_all("nowhere=kill"), Err(ParseError::UnknownName("nowhere".into())));
    for bad in ["sync.test", "sync.test=explode", "sync.test=sleep:x", "sync.test=park@x"] {
        assert_eq!(arm_all(bad), Err(ParseError::UnknownAction(bad.into())));
    }
}

#[test]
fn park_waits_for_release_and_nth_counts() {
    arm_all("sync.test=park@2; ").unwrap();
    point("sync.test");
    std::thread::scope(|scope| {
        let parked = scope.spawn(|| point("sync.test"));
        while hits("sync.test") < 2 {
            std::thread::yield_now();
        }
        assert!(!parked.is_finished());
        release("sync.test");
    });
    clear();
    point("sync.test");
    assert_eq!(hits("sync.test"), 0);
}

#[test]
fn a_fault_is_the_error_asked_for_at_the_hit_asked_for() {
    // Other tests clear all points: only what this one sees at once counts.
    arm("sync.test.fault", Action::Fail(libc::ENOSPC), Some(2)).unwrap();
    let seen: Vec<Option<i32>> =
        (0..3).map(|_| fault("sync.test.fault").err().and_then(|error| error.raw_os_error())).collect();
    assert_eq!(seen, [None, Some(libc::ENOSPC), None]);
    // A point passes a fault by.
    point("sync.test.fault");
}

#[test]
fn every_point_in_the_source_is_listed() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders: Vec<_> = vec![crates.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") && !path.ends_with("stop/tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                for call in text.split("stop::point(\"").skip(1).chain(text.split("stop::fault(\"").skip(1)) {
                    let name = call.split('"').next().unwrap();
                    assert!(NAMES.contains(&name), "{}: {name} is not in sync::stop::NAMES", path.display());
                }
            }
        }
    }
}
