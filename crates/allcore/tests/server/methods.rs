//! The answers of a statement do not depend on the methods that its plan uses.
//!
//! Scripts of `sql/` about queries run again with each method off: joins, scans and sorts. Their
//! lines must be those of the first run, apart from their order: SQL leaves the order of rows open
//! without ORDER BY.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::Server;
use crate::differential::{answer, scripts};

/// Scripts about joins, subqueries, groups and orders. ALLCORE_THEMES names others.
const THEMES: [&str; 10] = [
    "full_joins",
    "grouped_subqueries",
    "joined_orders",
    "joins",
    "kept_rows",
    "lateral",
    "merge_joins",
    "ordering",
    "semi_joins",
    "subqueries_in_joins",
];
/// The settings that switch a method of the planner off.
pub const METHODS: [&str; 10] = [
    "enable_hashjoin",
    "enable_mergejoin",
    "enable_nestloop",
    "enable_memoize",
    "enable_indexscan",
    "enable_seqscan",
    "enable_bitmapscan",
    "enable_indexonlyscan",
    "enable_sort",
    "enable_incremental_sort",
];

/// How often each line comes.
fn lines(said: &str) -> BTreeMap<&str, i64> {
    let mut lines = BTreeMap::new();
    said.lines().for_each(|line| *lines.entry(line).or_default() += 1);
    lines
}

/// The lines that come more or less often in the second text, with the difference.
fn differences(first: &str, second: &str) -> Vec<(String, i64)> {
    let mut counts = lines(second);
    for (line, count) in lines(first) {
        *counts.entry(line).or_default() -= count;
    }
    counts
        .into_iter()
        .filter(|(_, count)| *count != 0)
        .map(|(line, count)| (line.to_owned(), count))
        .collect()
}

#[test]
fn answers_do_not_depend_on_the_methods_of_the_plan() {
    let server = Server::start(&[]);
    let mut wrong = Vec::new();
    let scripts = scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sql"));
    let themes = std::env::var("ALLCORE_THEMES").unwrap_or_else(|_| THEMES.join(","));
    let own = scripts.iter().filter(|script| {
        let name = script.file_stem().unwrap().to_str().unwrap();
        themes.split(',').any(|theme| theme == name)
    });
    for script in own {
        let usual = answer(|program| server.client(program), script);
        for method in METHODS {
            let client = |program: &str| {
                let mut command = server.client(program);
                command.env("PGOPTIONS", format!("-c {method}=off"));
                command
            };
            let different = differences(&usual, &answer(client, script));
            if !different.is_empty() {
                wrong.push(format!("{} without {method}: {different:?}", script.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
