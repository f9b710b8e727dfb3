//! Shrinking lists: what a rule tolerates today, by file or by module, and nothing beyond it.
//!
//! A list is `crates/tidy/lists/RULE.txt`; a rule without one tolerates nothing. Each line holds a
//! weight and a key. [`check`] compares exactly, so an entry that is too large is an error too.
//! [`shrink`] writes the lists anew and refuses where the sum of a list would grow. A moved file
//! passes, because the sum stays.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use crate::workspace::Workspace;
use crate::{Finding, Rule};

/// How many findings a report spells out.
const SHOWN: usize = 40;

/// The command that brings the lists down to the sources.
const SHRINK: &str = "cargo run -p tidy -- shrink";

type Weights = BTreeMap<String, usize>;

/// Compares a rule's findings with its list.
///
/// # Errors
/// The text names each finding beyond the list, and each entry that is too large.
pub fn check(workspace: &Workspace, rule: &Rule) -> Result<(), String> {
    let findings = (rule.find)(workspace);
    let found = weights(&findings);
    let listed = read(workspace, rule);
    let mut text = String::new();
    let beyond = |key: &String| found[key] > listed.get(key).copied().unwrap_or(0);
    let over: Vec<_> = findings.iter().filter(|finding| beyond(&finding.key)).collect();
    if !over.is_empty() {
        writeln!(text, "{}: {}", rule.name, rule.advice).expect("a String takes all");
        for finding in over.iter().take(SHOWN) {
            writeln!(text, "  {}", finding.message).expect("a String takes all");
        }
        if over.len() > SHOWN {
            writeln!(text, "  and {} more", over.len() - SHOWN).expect("a String takes all");
        }
        for (key, weight) in found.iter().filter(|(key, _)| beyond(key)) {
            let bound = listed.get(key).copied().unwrap_or(0);
            writeln!(text, "  {key} has {weight}, the list allows {bound}").expect("a String takes all");
        }
    }
    for (key, bound) in &listed {
        let weight = found.get(key).copied().unwrap_or(0);
        if weight < *bound {
            writeln!(text, "{}: {key} has {weight}, the list says {bound}: run `{SHRINK}`", rule.name)
                .expect("a String takes all");
        }
    }
    if text.is_empty() { Ok(()) } else { Err(text) }
}

/// Writes a rule's list anew and returns what it says about it.
///
/// # Errors
/// Refuses where the list's sum would grow and must not, or where the file cannot be written.
pub fn shrink(workspace: &Workspace, rule: &Rule, may_grow: bool) -> Result<String, String> {
    let found = weights(&(rule.find)(workspace));
    let file = file(workspace, rule);
    let (old, new) = (read(workspace, rule).values().sum::<usize>(), found.values().sum::<usize>());
    if new > old && !may_grow {
        return Err(format!("{}: the list would grow from {old} to {new}; {}", rule.name, rule.advice));
    }
    let fail = |error: std::io::Error| format!("{}: {error}", file.display());
    if found.is_empty() {
        if file.exists() {
            fs::remove_file(&file).map_err(fail)?;
        }
        return Ok(format!("{}: clean", rule.name));
    }
    let mut text = format!("# Tolerated by the rule `{}`. The list only shrinks: `{SHRINK}`.\n", rule.name);
    for (key, weight) in &found {
        writeln!(text, "{weight} {key}").expect("a String takes all");
    }
    fs::write(&file, text).map_err(fail)?;
    Ok(format!("{}: {old} -> {new}", rule.name))
}

fn file(workspace: &Workspace, rule: &Rule) -> PathBuf {
    workspace.root.join(format!("crates/tidy/lists/{}.txt", rule.name))
}

fn weights(findings: &[Finding]) -> Weights {
    let mut sums = Weights::new();
    for finding in findings {
        *sums.entry(finding.key.clone()).or_default() += finding.weight;
    }
    sums
}

/// The list as it is checked in. Panics at a line that is no weight and key.
///
/// git merges lists by keeping the lines of both sides (`.gitattributes`). The smaller weight
/// counts.
fn read(workspace: &Workspace, rule: &Rule) -> Weights {
    let Ok(text) = fs::read_to_string(file(workspace, rule)) else { return Weights::new() };
    let entry = |line: &str| {
        let (weight, key) = line.split_once(' ')?;
        Some((key.to_owned(), weight.parse::<usize>().ok()?))
    };
    let mut listed = Weights::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (key, weight) = entry(line).unwrap_or_else(|| panic!("lists/{}.txt: `{line}`", rule.name));
        listed.entry(key).and_modify(|least| *least = weight.min(*least)).or_insert(weight);
    }
    listed
}
