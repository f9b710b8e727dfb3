//! Holds the stop points of the engine's source against the crates' lists and against the tests
//! that arm them. A start refuses any other name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Actions that follow a point's name in a text for `ALLCORE_STOP`.
const ACTIONS: [&str; 5] = ["kill", "yield", "sleep:", "park", "fail:"];

/// All Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|kind| kind == "rs") => files.push(path),
                false => {}
            }
        }
    }
    files
}

fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests")
}

/// The names in texts such as `"name=kill@2"` or `"{first}=kill; second=park"`.
fn armed_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('=')
        .filter(|(at, _)| ACTIONS.iter().any(|action| text[at + 1..].starts_with(action)))
        .map(|(at, _)| {
            let before = &text[..at];
            let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
            &before[before.trim_end_matches(is_part).len()..]
        })
}

#[test]
fn a_test_uses_each_stop_point_and_arms_no_other() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut points, mut tests) = (BTreeSet::new(), String::new());
    for path in sources(crates) {
        let text = fs::read_to_string(&path).unwrap();
        if is_test(&path) {
            tests.push_str(&text);
            continue;
        }
        for call in text.split("stop::point(\"").skip(1).chain(text.split("stop::fault(\"").skip(1)) {
            points.insert(call.split('"').next().unwrap().to_owned());
        }
    }
    assert!(points.len() > 30, "the stop points are no longer found: {points:?}");
    let listed: BTreeSet<String> = sql::stop_points().concat().into_iter().map(str::to_owned).collect();
    assert_eq!(listed, points, "the crates' lists (left) name the points of their code (right)");
    for point in &points {
        let is_used =
            [format!("\"{point}\""), format!("{point}=")].iter().any(|written| tests.contains(written));
        assert!(is_used, "no test uses {point}");
    }
    for armed in armed_in(&tests).filter(|name| name.contains('.') && !name.starts_with("runtime.test")) {
        assert!(points.contains(armed), "a test arms {armed}, which is no stop point");
    }
}

#[test]
fn a_start_refuses_a_name_that_no_stop_point_has() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let output = Command::new(env!("CARGO_BIN_EXE_allcore"))
        .args(["serve", "--listen", "none", "--buffers", "16MiB", "--socket-dir"])
        .arg(folder.path())
        .arg("--data")
        .arg(&data)
        .env("ALLCORE_STOP", format!("log.flush.write=fail:5@9; {}=kill", "log.flush.wriet"))
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{message}");
    let expected = "ALLCORE_STOP names \"log.flush.wriet\", which is no stop point; name one of btree.";
    assert!(message.contains(expected), "{message}");
    assert!(!data.join("ALLCORE").exists(), "the server opened the folder");
}
