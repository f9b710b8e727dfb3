//! Scripts behave as in pgbench: answers, refusals and statements. Where pgbench is installed (and,
//! for running scripts, a server is named), the tests compare with it.

mod pgbench;

use std::sync::Arc;

use super::value::Value;
use super::*;
use crate::client::stepped::Stepped;
use crate::client::{Prepare, Random, Step, Wanted};
use crate::tests::golden_cases;

fn settings() -> Settings {
    Settings { defines: Vec::new(), scale: 7, seed: 42 }
}

fn source(text: &str) -> Source {
    Source { name: "t.sql".into(), text: text.into(), weight: 1 }
}

fn program(text: &str) -> Arc<Program> {
    Arc::new(Program::new(&[source(text)], &settings()).unwrap_or_else(|error| panic!("{error}")))
}

fn refusal(text: &str) -> String {
    Program::new(&[source(text)], &settings()).map(drop).unwrap_err()
}

type Driver = Stepped<ScriptClient>;

impl Driver {
    fn of(program: &Arc<Program>) -> Self {
        let client = ScriptClient::new(Arc::clone(program), 3);
        Self::with(program.statements().to_vec(), Box::new(client), 2)
    }

    /// The next step in words; a statement as the simple protocol would send it.
    fn told(&mut self) -> String {
        match self.next() {
            Step::Run(id) => format!("run {}", self.written(id.0)),
            Step::Sleep(time) => format!("sleep {}us", time.as_micros()),
            Step::Done(kind) => format!("done {kind}"),
            Step::Abort(message) => format!("abort {message}"),
            Step::Connect | Step::Leave => unreachable!("no script says so"),
        }
    }

    /// All steps up to the transaction's end.
    fn steps(&mut self) -> Vec<String> {
        let mut steps = vec![self.told()];
        while !steps.last().is_some_and(|step| step.starts_with("done") || step.starts_with("abort")) {
            steps.push(self.told());
        }
        steps
    }

    /// Records a result of one statement.
    fn answer(&mut self, names: &[&str], rows: &[&[Option<&str>]]) {
        self.reply.set_columns(names.len());
        names.iter().for_each(|name| self.reply.name(name));
        rows.iter().flat_map(|row| row.iter()).for_each(|value| self.reply.push(value.map(str::as_bytes)));
    }
}

fn steps(text: &str) -> Vec<String> {
    Driver::of(&program(text)).steps()
}

#[test]
fn variables_stand_wherever_pgbench_replaces_them_and_sleeps_have_units() {
    let replaced = "\\set x -5\n\\set d 0.3\n\\set b 1 = 1\n\
                    SELECT :x, ':x', /* :d */ :b::text, '10:30', :unknown, a::x, :client_id;\nSELECT :scale";
    let sleeps = "\\set v 3\n\\sleep 2\n\\sleep 10 ms\n\\sleep 5us\n\\sleep :v S\n\\sleep -1";
    let scripts = [replaced, sleeps, "\\set v true\n\\sleep :v"];
    golden_cases("script_steps", scripts.map(|text| (text.replace('\n', "\n# "), steps(text))));
    let program = program(replaced);
    assert_eq!(program.statements()[0].pieces[1], ", '");
    let mut statements = program.statements().iter();
    assert!(statements.all(|one| one.prepare == Prepare::AtConnect && one.wanted == Wanted::Nothing));
}

#[test]
fn conditions_choose_their_branches_only() {
    let text = "\\if :v = 1\nSELECT 1;\n\\elif :v = 2\n\\if false\nSELECT 0;\n\\else\nSELECT 2;\n\\endif\n\\elif :v\nSELECT 3;\n\
                \\else\nSELECT 4;\n\\endif";
    for (value, expected) in
        [("1", "run SELECT 1;"), ("2", "run SELECT 2;"), ("3", "run SELECT 3;"), ("0", "run SELECT 4;")]
    {
        let mut settings = settings();
        settings.define(&format!("v={value}")).unwrap();
        let program = Arc::new(Program::new(&[source(text)], &settings).unwrap());
        assert_eq!(Driver::of(&program).steps(), [expected, "done 0"]);
    }
}

#[test]
fn results_become_variables() {
    let program = program("SELECT a, b \\gset p_\nSELECT :p_a, ':p_b', :q_a;");
    assert_eq!(program.statements()[0].wanted, Wanted::NamedRows);
    let mut driver = Driver::of(&program);
    assert_eq!(driver.told(), "run SELECT a, b");
    driver.answer(&["a", "b"], &[&[Some("12"), None]]);
    assert_eq!(driver.told(), "run SELECT 12, '', :q_a;");
    assert_eq!(driver.told(), "done 0");

    let unset = steps("\\if false\n\\set x 1\n\\endif\nSELECT :x;");
    assert_eq!(unset, ["abort t.sql:4: undefined variable \"x\""]);

    // `\gset` needs one row of the last statement, and names that a variable may have.
    type Row<'a> = &'a [Option<&'a str>];
    let cases: [(&[&str], &[Row<'_>], &str); 3] = [
        (&["a"], &[], "abort t.sql:1: \\gset: expected one row, got 0"),
        (&["a"], &[&[None], &[None]], "abort t.sql:1: \\gset: expected one row, got 2"),
        (&["?column?"], &[&[None]], "abort t.sql:1: invalid variable name: \"p_?column?\""),
    ];
    for (names, rows, expected) in cases {
        let mut driver = Driver::of(&program);
        driver.told();
        driver.answer(names, rows);
        assert_eq!(driver.told(), expected);
    }
}

#[test]
fn weights_choose_scripts() {
    let text = |number: usize| Source {
        name: format!("s{number}"),
        text: format!("SELECT {number};"),
        weight: [1, 0, 3][number],
    };
    let program = Arc::new(Program::new(&[text(0), text(1), text(2)], &settings()).unwrap());
    assert_eq!(program.kinds(), ["s0", "s1", "s2"]);
    let mut driver = Driver::of(&program);
    let mut seen = [0; 3];
    for _ in 0..4000 {
        let steps = driver.steps();
        let kind: usize = steps[1].strip_prefix("done ").unwrap().parse().unwrap();
        assert_eq!(steps[0], format!("run SELECT {kind};"));
        seen[kind] += 1;
    }
    assert_eq!(seen[1], 0);
    assert!((850..1150).contains(&seen[0]), "{seen:?}");

    assert_eq!(Source::weighted("a@b@4"), Ok(("a@b", 4)));
    assert_eq!(Source::weighted("a"), Ok(("a", 1)));
    assert!(Source::weighted("a@x").is_err() && Source::weighted("a@3000000000").is_err());
    assert!(Program::new(&[text(1)], &settings()).unwrap_err().contains("weight 0"));
    assert!(Source::file("/nowhere/a.sql@2").unwrap_err().contains("/nowhere/a.sql: No such file"));
}

#[test]
fn the_seed_decides_and_clients_differ() {
    let program = program("\\set a random(1, 1000000000)\nSELECT :a, :random_seed;");
    let first = |stream: u64| {
        let mut driver = Driver::of(&program);
        driver.random = Random::new(9, stream);
        driver.told()
    };
    assert_eq!(first(0), first(0));
    assert_ne!(first(0), first(1));
    assert!(first(0).ends_with(", 42;"));
    let clients = [3, 4].map(|index| ScriptClient::new(Arc::clone(&program), index).value("client_id"));
    assert_eq!(clients, [Value::Int(3), Value::Int(4)]);
}

#[test]
fn an_invalid_script_is_refused_with_its_place() {
    let cases = [
        ("\\shell ls", "1:2: invalid command; --driver pgbench may know it"),
        ("SELECT 1 \\; SELECT 2;", "1:11: invalid command"),
        ("SELECT 1;\n\\nosuch 1", "2:2: invalid command"),
        ("\\set", "1:2: missing argument"),
        ("\\set 1x 2", "1:6: invalid variable name: \"1x\""),
        ("-- nothing", " the script has no command"),
        ("\n\\elif 1\n", "2:1: \\elif without"),
        ("\\if 1\n\\else\n\\else\n\\endif", "3:1: \\else after"),
        ("\\if 1\n\\else\n \\elif 1\n\\endif", "3:2: \\elif after"),
        ("\\else", "1:1: \\else without"),
        ("SELECT 1;\n\\endif", "2:1: \\endif without"),
        ("\\endif now", "1:8: too many arguments"),
        ("\\if 1\nSELECT 1;\n", "1:1: \\if without"),
        ("\\gset", "1:1: \\gset must follow an SQL command"),
        ("SELECT 1;\n\\if 1\n\\endif\n\\gset", "4:1: \\gset must follow"),
        ("SELECT 1 \\gset a b", "1:18: too many arguments"),
        ("\\sleep", "1:2: missing argument"),
        ("\\sleep x", "1:8: invalid sleep time, must be an integer"),
        (
            "\\sleep 1 minute",
            "1:10: unrecognized time unit, must be us, ms or s (minute)\n\\sleep 1 minute\n         ^ error found here",
        ),
    ];
    for (text, expected) in cases {
        assert!(refusal(text).starts_with(&format!("t.sql:{expected}")), "{}", refusal(text));
    }
    let nested = format!("\\set a {}1{}", "(".repeat(5000), ")".repeat(5000));
    assert!(refusal(&nested).contains("expression is too long"));
    let mut settings = settings();
    assert!(
        settings.define("x").is_err() && settings.define("x=").is_err() && settings.define("1=2").is_err()
    );
}

/// On a stack as large as those of the driver's threads.
#[test]
fn as_many_operators_as_an_expression_may_have_are_evaluated() {
    for (first, operator, expected) in [("1", "+1", "250"), ("true", " and true", "true")] {
        let text = format!("\\set a {first}{}\nSELECT :a;", operator.repeat(249));
        let told = std::thread::spawn(move || steps(&text)).join().unwrap();
        assert_eq!(told, [format!("run SELECT {expected};"), "done 0".to_owned()]);
    }
}
