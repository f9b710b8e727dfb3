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
fn every_point_is_listed_and_used_by_a_test() {
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut folders: Vec<_> = vec![crates.to_path_buf()];
    let (mut there, mut tests) = (Vec::new(), String::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            if path.extension().is_none_or(|kind| kind != "rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            if path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests") {
                tests.push_str(&text);
                continue;
            }
            for call in text.split("stop::point(\"").skip(1).chain(text.split("stop::fault(\"").skip(1)) {
                let name = call.split('"').next().unwrap();
                assert!(NAMES.contains(&name), "{}: {name} is not in sync::stop::NAMES", path.display());
                there.push(name.to_owned());
            }
        }
    }
    for name in NAMES.iter().filter(|name| !name.starts_with("sync.test")) {
        assert!(there.iter().any(|point| point == name), "{name} is listed and nowhere");
        let used = [format!("\"{name}\""), format!("{name}=")].iter().any(|written| tests.contains(written));
        assert!(used, "no test uses {name}");
    }
}
