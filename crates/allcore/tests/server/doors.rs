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

#[test]
fn the_engine_reaches_the_machine_through_its_doors_only() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for name in ENGINE {
        let source = crates.join(name).join("src");
        let head = ["lib.rs", "main.rs"].iter().find_map(|head| fs::read_to_string(source.join(head)).ok());
        assert!(head.unwrap().contains(DENY), "{name}'s head lacks {DENY}");
        let mut files = Vec::new();
        sources(&source, &mut files);
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            let path = file.to_str().unwrap();
            let code = || text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let is_door = |doors: &[&str]| doors.iter().any(|door| path.contains(door));
            for (word, doors) in DOORS.iter().filter(|(_, doors)| !is_door(doors)) {
                let is_said = code().any(|line| line.contains(word));
                assert!(
                    !is_said || path.contains("tests"),
                    "{path} says {word}, which only {doors:?} may use"
                );
            }
        }
    }
}

/// The crate `readers` feeds hostile bytes to storage's formats. No part of the server imports it.
#[test]
fn only_txn_imports_storage() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let importers: Vec<String> = fs::read_dir(crates)
        .unwrap()
        .flatten()
        .filter(|entry| {
            let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap_or_default();
            let shipped = manifest.split("[dev-dependencies]").next().unwrap_or_default();
            shipped.lines().any(|line| line.starts_with("storage"))
        })
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    let engine: Vec<&str> = importers.iter().map(String::as_str).filter(|name| *name != "readers").collect();
    assert_eq!(engine, ["txn"]);
}
