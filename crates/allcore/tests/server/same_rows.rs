//! All plans of a query give the same rows.
//!
//! Random queries over small tables run by the plan that the planner likes best, and then by
//! others that settings force. These do without each method and take joins in the written order or
//! a shuffled one. They have little memory, or tables without indexes or without statistics. They
//! are prepared statements. Rows are compared as text: in order if the query orders them, else as a
//! multiset.
//!
//! `ALLCORE_PLANS_SECONDS` sets for how long: 25 s in `make test`. `ALLCORE_PLANS_SEED` is the
//! first round's seed. With `ALLCORE_PLANS_PEER=1` PostgreSQL 18 answers each query, too; the
//! folder of its socket may stand for the 1. At the first difference the test prints the smallest
//! query found that still shows one, with both plans.

mod generator;
mod query;
mod tables;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use postgres::{Client, NoTls, SimpleQueryMessage};

use crate::common::dice::Dice;
use crate::common::{Server, skip, succeed};
use crate::methods::METHODS;
use generator::Generator;
use query::{Query, plain, with_parameters};
use tables::SCHEMAS;

/// Queries of a round. Each round has tables of its own.
const QUERIES: usize = 40;
/// A statement that takes longer is not compared. Joins of skewed columns have many rows.
const LIMIT: &str = "set statement_timeout = '2s'";

/// How a query runs.
#[derive(Clone, Debug)]
struct Way {
    /// The settings that differ from their defaults.
    settings: Vec<String>,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Form {
    Written,
    /// With its joins in the order that this seed gives.
    Shuffled(u64),
    /// Prepared, with its literals as parameters.
    Prepared,
}

/// The rows of an answer, or an SQLSTATE with its message.
type Answer = Result<Vec<Vec<Option<String>>>, (String, String)>;

fn run(client: &mut Client, sql: &str) -> Answer {
    let answer = client.simple_query(sql).map_err(|error| match error.as_db_error() {
        Some(error) => (error.code().code().to_owned(), error.message().to_owned()),
        None => ("lost".to_owned(), error.to_string()),
    })?;
    let row = |message| match message {
        SimpleQueryMessage::Row(row) => {
            Some((0..row.len()).map(|at| row.get(at).map(str::to_owned)).collect())
        }
        _ => None,
    };
    Ok(answer.into_iter().filter_map(row).collect())
}

/// An answer as it is compared.
fn compared(mut answer: Answer, ordered: bool) -> Answer {
    if let Ok(rows) = &mut answer
        && !ordered
    {
        rows.sort_unstable();
    }
    answer
}

fn took_too_long(answer: &Answer) -> bool {
    answer.as_ref().is_err_and(|(code, _)| code == "57014")
}

impl Way {
    fn new(settings: Vec<String>) -> Way {
        Way { settings, form: Form::Written }
    }

    /// The ways to run a query after the first one, in the schema that has statistics.
    fn all(dice: &mut Dice) -> Vec<Way> {
        let off = |method: &str| format!("{method} = off");
        let mut ways: Vec<Way> = METHODS.iter().map(|method| Way::new(vec![off(method)])).collect();
        // Merge joins, and loops that keep the rows of their right side.
        ways.push(Way::new(vec![off("enable_hashjoin"), off("enable_nestloop")]));
        ways.push(Way::new(vec![off("enable_hashjoin"), off("enable_mergejoin")]));
        for _ in 0..3 {
            let some = METHODS.iter().filter(|_| dice.roll(3) == 0).map(|method| off(method));
            ways.push(Way::new(some.collect()));
        }
        let ordered = || "join_collapse_limit = 1".to_owned();
        ways.push(Way::new(vec![ordered()]));
        for _ in 0..2 {
            let method = off(METHODS[dice.roll(METHODS.len())]);
            let form = Form::Shuffled(dice.roll(usize::MAX) as u64);
            ways.push(Way { settings: vec![ordered(), method], form });
        }
        for mode in ["force_generic_plan", "force_custom_plan"] {
            ways.push(Way { settings: vec![format!("plan_cache_mode = {mode}")], form: Form::Prepared });
        }
        // Little memory and other tables go with any of these.
        let small = || "work_mem = '64kB'".to_owned();
        ways.push(Way::new(vec![small()]));
        for schema in SCHEMAS {
            ways.push(Way::new(vec![format!("search_path = {schema}")]));
        }
        for way in &mut ways {
            if dice.roll(3) == 0 {
                way.settings.push(format!("search_path = {}", SCHEMAS[dice.roll(SCHEMAS.len())]));
            }
            if dice.roll(4) == 0 {
                way.settings.push(small());
            }
        }
        ways
    }

    /// The query's text in this way.
    fn text(&self, query: &Query) -> String {
        match self.form {
            Form::Shuffled(seed) => query.permuted(&mut Dice(seed)).text(),
            Form::Written | Form::Prepared => query.text(),
        }
    }

    /// Runs a statement under the settings. `verb` stands before the query or its EXECUTE.
    fn run(&self, client: &mut Client, query: &Query, verb: &str) -> Answer {
        // One message: a session takes longer to wake up than to change a setting.
        let settings: String = self.settings.iter().map(|setting| format!("; set {setting}")).collect();
        run(client, &format!("reset all; {LIMIT}; set search_path = {}{settings}", SCHEMAS[2]))?;
        let text = self.text(query);
        if self.form == Form::Prepared {
            let (text, types, values) = with_parameters(&text);
            let list = |parts: &[String]| match parts {
                [] => String::new(),
                parts => format!(" ({})", parts.join(", ")),
            };
            let prepared = run(client, &format!("prepare p{} as {text}", list(&types)));
            let answer = prepared.and_then(|_| run(client, &format!("{verb}execute p{}", list(&values))));
            let _ = run(client, "deallocate all");
            answer
        } else {
            run(client, &format!("{verb}{}", plain(&text)))
        }
    }

    fn plan(&self, client: &mut Client, query: &Query) -> String {
        let lines = self.run(client, query, "explain (costs off) ");
        match lines {
            Ok(lines) => lines.into_iter().flatten().flatten().collect::<Vec<_>>().join("\n"),
            Err((code, message)) => format!("{code} {message}"),
        }
    }
}

/// An answer beside another one: its first rows that the other one lacks. Rows in another order
/// alone are all there.
fn shown(answer: &Answer, other: &Answer) -> String {
    let rows = match answer {
        Ok(rows) => rows,
        Err((code, message)) => return format!("{code} {message}"),
    };
    let mut others: Vec<_> = other.as_ref().map_or(Vec::new(), |rows| rows.iter().collect());
    let is_more = |row: &&Vec<Option<String>>| match others.iter().position(|other| other == row) {
        Some(at) => {
            others.swap_remove(at);
            false
        }
        None => true,
    };
    let more: Vec<String> = rows.iter().filter(is_more).take(10).map(|row| format!("{row:?}")).collect();
    let said = if more.is_empty() { "none that the other answer lacks".to_owned() } else { more.join("\n") };
    format!("{} rows\n{said}", rows.len())
}

/// The servers, and the counts of all rounds.
struct Test {
    server: Server,
    client: Client,
    /// PostgreSQL 18, with the same tables.
    peer: Option<Client>,
    queries: usize,
    /// Queries that give a row.
    filled: usize,
    plans: usize,
    skipped: usize,
}

impl Test {
    /// Whether two ways to run a query give different answers. The second one is PostgreSQL's if it
    /// is `None`.
    fn differ(&mut self, query: &Query, ways: (&Way, Option<&Way>)) -> Option<(Answer, Answer)> {
        let first = compared(ways.0.run(&mut self.client, query, ""), query.is_ordered());
        self.differs_from(&first, query, ways.1).map(|second| (first, second))
    }

    /// The answer of another way if it differs from the first one.
    fn differs_from(&mut self, first: &Answer, query: &Query, way: Option<&Way>) -> Option<Answer> {
        let second = match (way, &mut self.peer) {
            (Some(way), _) => way.run(&mut self.client, query, ""),
            (None, Some(peer)) => run(peer, &plain(&query.text())),
            (None, None) => return None,
        };
        let second = compared(second, query.is_ordered());
        if took_too_long(first) || took_too_long(&second) {
            self.skipped += 1;
            return None;
        }
        let same = match (first, &second) {
            (Err((code, _)), Err((other, _))) => code == other,
            (first, second) => first == second,
        };
        (!same).then_some(second)
    }

    /// The smallest query found by leaving out one part after another that still shows a difference
    /// between rows.
    fn shrunk(&mut self, mut query: Query, ways: (&Way, Option<&Way>)) -> Query {
        let until = Instant::now() + Duration::from_secs(60);
        'smaller: loop {
            for smaller in query.smaller() {
                if Instant::now() > until {
                    return query;
                }
                if self.differ(&smaller, ways).is_some_and(|(first, _)| first.is_ok()) {
                    query = smaller;
                    continue 'smaller;
                }
            }
            return query;
        }
    }

    fn report(&mut self, seed: u64, query: Query, ways: (&Way, Option<&Way>)) -> ! {
        let query = self.shrunk(query, ways);
        let mut said = format!("ALLCORE_PLANS_SEED={seed}\n{};\n", plain(&query.text()));
        let answers = self.differ(&query, ways);
        let shown = answers.map(|(first, second)| (shown(&first, &second), shown(&second, &first)));
        let (first, second) = shown.unwrap_or_default();
        for (way, rows) in [(Some(ways.0), first), (ways.1, second)] {
            let plan = match way {
                Some(way) => {
                    let plan = way.plan(&mut self.client, &query);
                    format!("{way:?}\n{};\n{plan}", plain(&way.text(&query)))
                }
                None => "PostgreSQL".to_owned(),
            };
            said += &format!("--- {plan}\n{rows}\n");
        }
        panic!("{said}");
    }

    fn round(&mut self, seed: u64, until: Instant) {
        let mut dice = Dice(seed);
        for statement in tables::statements(&mut dice) {
            for client in [Some(&mut self.client), self.peer.as_mut()].into_iter().flatten() {
                run(client, &statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
            }
        }
        for client in [Some(&mut self.client), self.peer.as_mut()].into_iter().flatten() {
            run(client, &format!("{LIMIT}; set search_path = {}", SCHEMAS[2])).unwrap();
        }
        let usual = Way::new(Vec::new());
        for _ in 0..QUERIES {
            let query = Generator::new(&mut dice).query();
            let ways = Way::all(&mut dice);
            let answer = compared(usual.run(&mut self.client, &query, ""), query.is_ordered());
            self.queries += 1;
            if took_too_long(&answer) {
                self.skipped += 1;
                continue;
            }
            if let Err((code, message)) = &answer {
                panic!("ALLCORE_PLANS_SEED={seed}\n{};\n{code} {message}", plain(&query.text()));
            }
            self.filled += usize::from(answer.as_ref().is_ok_and(|rows| !rows.is_empty()));
            let mut plans = vec![usual.plan(&mut self.client, &query)];
            if self.differs_from(&answer, &query, None).is_some() {
                self.report(seed, query, (&usual, None));
            }
            for way in ways.iter().take_while(|_| Instant::now() < until) {
                // A plan runs again with less memory and over other tables.
                let others = way.settings.iter().filter(|setting| !setting.starts_with("enable_"));
                let plan = way.plan(&mut self.client, &query) + &others.cloned().collect::<String>();
                if plans.contains(&plan) {
                    continue;
                }
                plans.push(plan);
                if self.differs_from(&answer, &query, Some(way)).is_some() {
                    self.report(seed, query, (&usual, Some(way)));
                }
            }
            self.plans += plans.len();
            if Instant::now() > until {
                return;
            }
        }
    }
}

/// PostgreSQL 18 with an empty database for this test, if it is asked for and there.
fn peer() -> Option<Client> {
    let mut socket = std::env::var("ALLCORE_PLANS_PEER").ok()?;
    if socket == "1" {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/peers/pg18.sh");
        if !script.exists() {
            skip("the rows of PostgreSQL 18, which is not there");
            return None;
        }
        let said = succeed(Command::new(&script).arg("start"), "");
        said.trim_end().lines().last().unwrap().clone_into(&mut socket);
    }
    let connect = |database: &str| {
        Client::connect(&format!("host={socket} user=postgres dbname={database}"), NoTls).unwrap()
    };
    let mut client = connect("postgres");
    for statement in [
        "drop database if exists same_rows",
        "create database same_rows template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'",
    ] {
        client.batch_execute(statement).unwrap();
    }
    Some(connect("same_rows"))
}

#[test]
fn all_plans_of_a_query_give_the_same_rows() {
    let number = |name: &str, default: u64| {
        std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
    };
    let seconds = number("ALLCORE_PLANS_SECONDS", 25);
    let seed = number("ALLCORE_PLANS_SEED", 1);
    println!("ALLCORE_PLANS_SEED={seed}");
    let server = Server::start(&["--autoanalyze", "off"]);
    let client = server.connect();
    let mut test = Test { server, client, peer: peer(), queries: 0, filled: 0, plans: 0, skipped: 0 };
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut rounds = 0;
    while rounds == 0 || Instant::now() < until {
        test.round(seed + rounds, until);
        rounds += 1;
    }
    let Test { server, queries, filled, plans, skipped, .. } = test;
    println!(
        "{queries} queries in {rounds} rounds, {filled} with rows, {plans} plans, {skipped} took too long"
    );
    drop(server);
}
