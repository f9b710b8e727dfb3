//! The plans of statements, as EXPLAIN shows them, are those that `plans/<theme>.out` has.
//!
//! With `ALLCORE_RECORD=1` the files are recorded afresh, from Allcore. A change of them is to be
//! read before it is committed.

use std::fs;
use std::path::Path;

use crate::common::Server;
use crate::differential::{answer, difference, scripts};

#[test]
fn statements_have_the_plans_that_were_recorded() {
    let scripts = scripts(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plans"));
    assert!(!scripts.is_empty());
    let server = Server::start(&["--autoanalyze", "off"]);
    let record = std::env::var_os("ALLCORE_RECORD").is_some_and(|value| value == "1");
    let mut wrong = Vec::new();
    for script in &scripts {
        let actual = answer(|program| server.client(program), script);
        let recorded = script.with_extension("out");
        if record {
            fs::write(&recorded, &actual).unwrap();
        }
        if let Some(difference) = difference(&fs::read_to_string(&recorded).unwrap(), "recorded", &actual) {
            wrong.push(format!("{}: {difference}", script.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}
