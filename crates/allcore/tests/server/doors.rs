//! The engine touches the machine through `sync` and `runtime` only, and storage through `txn`.
//! Clippy refuses other types and functions (`clippy.toml`) in the crates that ask for it. These
//! tests hold the crates to asking, and refuse what clippy cannot.

use std::fs;
use std::path::{Path, PathBuf};

/// The engine's crates.
const ENGINE: [&str; 12] = [
    "sync",
    "runtime",
    "storage",
    "txn",
    "values",
    "expressions",
    "catalog",
    "query",
    "execution",
    "sql",
    "server",
    "allcore",
];
/// The head of each.
const DENY: &str = "#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]";
/// Words that only certain interfaces may use, and the paths of these interfaces.
const DOORS: [(&str, &[&str]); 2] =
    [("thread_local!", &["sync/src/machine/", "runtime/src/model/"]), ("asm!", &["sync/src/processor.rs"])];

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            files.push(path);
        }
    }
}

/// Whether a source is a module of tests: the file `tests.rs`, or one in the folder `tests`.
fn is_for_tests(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// The crates whose manifest names `library` before its dev-dependencies.
fn importers(library: &str) -> Vec<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let names = |entry: &fs::DirEntry| {
        let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap_or_default();
        let shipped = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        let key = |line: &str| line.split([' ', '.', '=']).next().unwrap_or_default().to_owned();
        shipped.lines().any(|line| key(line) == library)
    };
    let found = fs::read_dir(crates).unwrap().flatten().filter(names);
    found.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn the_engine_reaches_the_machine_through_its_doors_only() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for name in ENGINE {
        let source = crates.join(name).join("src");
        let heads = ["lib.rs", "main.rs"].map(|head| fs::read_to_string(source.join(head)).ok());
        let heads: Vec<String> = heads.into_iter().flatten().collect();
        assert!(!heads.is_empty(), "{name} has a head");
        assert!(heads.iter().all(|head| head.contains(DENY)), "a head of {name} lacks {DENY}");
        let mut files = Vec::new();
        sources(&source, &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let path = file.to_str().unwrap();
            let code = || text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let is_door = |doors: &[&str]| doors.iter().any(|door| path.contains(door));
            for (word, doors) in DOORS.iter().filter(|(_, doors)| !is_door(doors)) {
                let is_said = code().any(|line| line.contains(word));
                assert!(!is_said || is_for_tests(path), "{path} says {word}, whose doors are {doors:?}");
            }
        }
    }
}

/// The crate `readers` feeds hostile bytes to storage's formats. No part of the server imports it.
#[test]
fn only_txn_imports_storage() {
    let engine: Vec<String> = importers("storage").into_iter().filter(|name| name != "readers").collect();
    assert_eq!(engine, ["txn"]);
}

/// A crate with `libc` could go past the doors, where clippy's lists of the standard library do not
/// reach.
#[test]
fn only_runtime_imports_libc() {
    let engine: Vec<String> =
        importers("libc").into_iter().filter(|name| ENGINE.contains(&name.as_str())).collect();
    assert_eq!(engine, ["runtime"]);
}
