//! Comparison with pgbench itself.

use std::process::{Command, Output};

use super::super::value::Value;
use super::{Driver, program, refusal};
use crate::arm::{Dialect, Target};

/// Expressions and the output of debug() for them.
const ANSWERS: &[(&str, &str)] = &[
    ("1 + 2 * 3 - 4 / 2 % 3", "int 5"),
    ("-5 / 2", "int -2"),
    ("-7 % 3", "int -1"),
    ("1 - -1", "int 2"),
    ("- - 3", "int 3"),
    ("+3.50", "double 3.5"),
    (".5e-3", "double 0.0005"),
    ("1e-5", "double 0.00001"),
    ("9223372036854775807", "int 9223372036854775807"),
    ("-9223372036854775808", "int -9223372036854775808"),
    ("-9223372036854775808 % -1", "int 0"),
    ("1 <> 2", "boolean true"),
    ("1 != 1", "boolean false"),
    ("2 > 1", "boolean true"),
    ("1 <= 1", "boolean true"),
    ("not 1 = 2", "boolean true"),
    ("not true or true", "boolean true"),
    ("true or 1 / 0 = 1", "boolean true"),
    ("false and 1 / 0 = 1", "boolean false"),
    ("true or false and false", "boolean true"),
    ("RANDOM(5, 5) + 1", "int 6"),
    ("2 >= 3", "boolean false"),
    ("random_zipfian(5, 5, 1.5)", "int 5"),
];

/// Expressions that parse but have no value, and the reason.
const FAILURES: &[(&str, &str)] = &[
    ("1 / 0", "division by zero"),
    ("1 % 0", "division by zero"),
    ("9223372036854775807 + 1", "out of range"),
    ("-9223372036854775808 - 1", "out of range"),
    ("9223372036854775807 * 2", "out of range"),
    ("-9223372036854775808 / -1", "out of range"),
    ("not 1", "cannot coerce"),
    ("1 and true", "cannot coerce"),
    ("random(2, 1)", "empty range given to random"),
    ("random(-9223372036854775808, 1)", "random range is too large"),
    ("random_zipfian(1, 2, 1)", "zipfian parameter must be in range [1.001, 1000] (not 1.000000)"),
    (":nosuch", "undefined variable \"nosuch\""),
];

/// Commands that do not parse: the message and the caret's position.
const REFUSALS: &[(&str, &str)] = &[
    ("\\set a 1 +", "syntax error"),
    ("\\set a", "syntax error"),
    ("\\set a 1 2", "syntax error"),
    ("\\set a (1", "syntax error"),
    ("\\set a 1 = 2 = 3", "syntax error"),
    ("\\set a 1 ; 2", "unexpected character (;)"),
    ("\\set a nosuch(1)", "unexpected function name (nosuch)"),
    ("\\set a random(1, 2, 3) + 1", "unexpected number of arguments (random)"),
    ("\\set a 9223372036854775809 + 1", "bigint constant overflow (9223372036854775809)"),
    ("\\set a 1e400", "double constant overflow (1e400)"),
    ("\\if 1 +* 2\n\\endif", "syntax error"),
    ("\\sleep 1 hour", "unrecognized time unit, must be us, ms or s (hour)"),
];

/// The output that debug() would print.
fn answer(expression: &str) -> Result<String, String> {
    let mut driver = Driver::of(&program(&format!("\\set v {expression}")));
    match driver.steps().pop() {
        Some(step) if step == "done 0" => Ok(match driver.client.value("v") {
            value @ Value::Bool(_) => format!("boolean {value}"),
            value @ Value::Int(_) => format!("int {value}"),
            value @ Value::Double(_) => format!("double {value}"),
        }),
        other => Err(other.unwrap_or_default()),
    }
}

fn pgbench(target: Option<&Target>, script: &str) -> Option<Output> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let mut command = target.map_or_else(|| Command::new("pgbench"), crate::tests::pgbench);
    let output = command.args(["-n", "-t", "1", "-f"]).arg(file.path()).output();
    if output.is_err() {
        crate::tests::skip("pgbench is not installed");
    }
    output.ok()
}

#[test]
fn expressions_have_the_values_written_here() {
    for (expression, expected) in ANSWERS {
        assert_eq!(answer(expression).as_deref(), Ok(*expected), "{expression}");
    }
    for (expression, expected) in FAILURES {
        let fault = answer(expression).unwrap_err();
        assert!(fault.starts_with("abort t.sql:1: ") && fault.contains(expected), "{expression}: {fault}");
    }
    // pgbench has doubles and NULLs in arithmetic; the lab refuses them.
    assert!(answer("1 + 0.5").unwrap_err().ends_with("cannot coerce Double(0.5) to int"));
}

#[test]
fn expressions_have_the_values_that_pgbench_gives() {
    let Some(target) = crate::tests::target(Dialect::Postgres) else { return };
    let script: String =
        ANSWERS.iter().map(|(expression, _)| format!("\\set v debug({expression})\n")).collect();
    let Some(output) = pgbench(Some(&target), &script) else { return };
    let printed = String::from_utf8(output.stderr).unwrap();
    let theirs: Vec<_> = printed.lines().filter(|line| line.starts_with("debug(")).collect();
    assert_eq!(theirs.len(), ANSWERS.len(), "{printed}");
    for (theirs, (expression, expected)) in theirs.iter().zip(ANSWERS) {
        let (_, theirs) = theirs.split_once("): ").unwrap();
        // pgbench writes some doubles with an exponent.
        let double = |text: &str| text.strip_prefix("double ").map(|text| text.parse::<f64>().unwrap());
        match double(expected) {
            None => assert_eq!(theirs, *expected, "{expression}"),
            expected => assert_eq!(double(theirs), expected, "{expression}"),
        }
    }
    for (expression, expected) in FAILURES {
        let Some(output) = pgbench(Some(&target), &format!("\\set v {expression}\n")) else { return };
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(printed.contains(expected), "{expression}: {printed}");
    }
}

#[test]
fn refusals_are_pgbench_s_with_its_caret() {
    for (text, expected) in REFUSALS {
        let ours = refusal(text);
        assert!(ours.contains(expected), "{text}: {ours}");
        let Some(output) = pgbench(None, &format!("{text}\n")) else { return };
        let theirs = String::from_utf8(output.stderr).unwrap();
        let caret = |message: &str| {
            message.lines().find(|line| line.trim() == "^ error found here").map(str::to_owned)
        };
        assert!(theirs.contains(expected), "{text}: {theirs}");
        assert_eq!(caret(&refusal(&format!("{text}\n"))), caret(&theirs), "{text}:\n{ours}\n{theirs}");
    }
}
