//! Statements that are long, or costly to plan: none of their stages holds the core.
//!
//! Such a bomb ends by itself, so its session runs it again and again until it is cancelled.

use super::{Outcome, is_refused, is_strict, judge, pace};
use crate::common::{Server, pid};
use postgres::error::SqlState;
use postgres::{Client, NoTls, SimpleQueryMessage};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A cancel that arrives between two runs of a bomb is lost, so it is sent again after this long.
const CANCEL_AGAIN: Duration = Duration::from_millis(400);

/// How a client sends a bomb.
#[derive(Clone, Copy, Debug)]
pub enum Sent {
    Simple,
    /// As a Parse message, without running it.
    Parse,
    /// COPY to the client, which reads it all.
    Copy,
}

/// A bomb's name, how it is sent, and its text.
pub type Bomb = (&'static str, Sent, String);

/// Tables in the bombs over many of them.
fn many_tables() -> usize {
    if is_strict() { 2000 } else { 100 }
}

/// `count` pieces, numbered from 0 and separated.
fn list(count: usize, separator: &str, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect::<Vec<_>>().join(separator)
}

/// Names, and texts of so many pieces that each held its core for half a second at least.
fn bombs() -> Vec<Bomb> {
    let numbers = list(100_000, ",", |i| i.to_string());
    let rows = list(100_000, ",", |i| format!("({i})"));
    let literal = "ab".repeat(25_000_000);
    let computed = list(30_000, ",", |i| format!("g+{i}"));
    let columns = |count, separator, shape: fn(usize) -> String| list(count, separator, shape);
    let key = |i: usize| format!("length(t) + {i}");
    let keys = columns(1500, ",", key);
    let checks = columns(2000, ",", |i| format!("check (a <> {i})"));
    let references = columns(1500, ",", |_| "foreign key (a) references parent".to_owned());
    let joins = columns(60, " join ", |i| format!("joined{i} j{i}"));
    let chained = columns(60, " and ", |i| format!("j{i}.i = j{}.i", (i + 1) % 60));
    let tables = list(many_tables(), ",", |i| format!("many{i}"));
    let counted = format!("select 1 from generate_series(1, 1) g where g in ({numbers})");
    let of_values = format!("select count(*) from (values {rows}) v");
    let bombs = [
        ("constants in IN", counted.clone()),
        ("expressions in IN", format!("select 1 from generate_series(1, 1) g where g in ({computed})")),
        ("rows of VALUES", of_values.clone()),
        ("EXPLAIN of VALUES", format!("explain {of_values}")),
        ("PREPARE of VALUES", format!("deallocate all; prepare p as {of_values}")),
        ("a literal", format!("select length('{literal}')")),
        ("a literal with escapes", format!("select length(E'{literal}\\n')")),
        ("a quoted text", format!("select length($long${literal}$long$)")),
        ("a comment", format!("/*{literal}*/ select 1")),
        ("statements", "select 1;".repeat(20_000)),
        ("statements with an error", format!("{} selec 1", "select 1;".repeat(20_000))),
        ("GROUP BY", format!("select count(*) from bombs group by {keys}")),
        ("GROUP BY and targets", format!("select {keys} from bombs group by {keys}")),
        ("ORDER BY", format!("select 1 from bombs order by {}", columns(1600, ",", key))),
        ("DISTINCT", format!("select distinct {keys} from bombs")),
        ("sums", format!("select {} from bombs", columns(1600, ",", |i| format!("sum(length(t) + {i})")))),
        ("windows", {
            let call = |i| format!("count(*) over (order by length(t) + {i})");
            format!("select {} from bombs", columns(300, ",", call))
        }),
        ("GREATEST", format!("select greatest({}) from bombs", columns(20_000, ",", key))),
        ("COALESCE", format!("select coalesce({}) from bombs", columns(20_000, ",", key))),
        ("ARRAY", format!("select array[{}] from bombs", columns(20_000, ",", key))),
        ("CASE", {
            let branch = |i| format!("when length(t) = {i} then {i}");
            format!("select case {} end from bombs", columns(10_000, " ", branch))
        }),
        ("OR", {
            format!("select 1 from bombs where {}", columns(20_000, " or ", |i| format!("length(t) = {i}")))
        }),
        ("AND", {
            format!("select 1 from bombs where {}", columns(20_000, " and ", |i| format!("length(t) <> {i}")))
        }),
        ("UNION", columns(90, " union all ", |i| format!("select {i} from bombs"))),
        ("WITH", {
            let tables = columns(1000, ",", |i| format!("w{i} as (select {i})"));
            format!("with {tables} select * from w0")
        }),
        ("subqueries", {
            format!("select {}", columns(1000, ",", |i| format!("(select {i} from bombs where n > {i})")))
        }),
        ("a join", format!("select 1 from {} where {chained}", joins.replace(" join ", ", "))),
        ("a cross join", format!("select 1 from {}", joins.replace(" join ", " cross join "))),
        ("checks", format!("drop table if exists checked; create table checked (a int, {checks})")),
        ("checked rows", "insert into checks values (-1); delete from checks".to_owned()),
        ("foreign keys", { format!("drop table if exists child; create table child (a int, {references})") }),
        ("ADD COLUMN", {
            let added = columns(1500, ",", |i| format!("add column c{i} int"));
            format!("begin; alter table altered {added}; rollback")
        }),
        ("columns", {
            let defined = columns(1600, ",", |i| format!("c{i} int default {i}"));
            format!("drop table if exists wide; create table wide ({defined})")
        }),
        ("ANALYZE of many tables", "analyze".to_owned()),
        ("columns of many tables", "select count(*) from information_schema.columns".to_owned()),
        ("names of many indexes", "select count(indexrelid::regclass::text) from pg_index".to_owned()),
        ("TRUNCATE of many tables", format!("begin; truncate {tables}; rollback")),
        ("DROP of many tables", format!("begin; drop table {tables}; rollback")),
        ("LOCK of many tables", format!("begin; lock table {tables}; rollback")),
        ("an UPDATE of all columns", {
            let set = columns(1600, ",", |i| format!("c{i} = c{i} + 1"));
            format!("update widest set {set}")
        }),
    ];
    let simple = bombs.into_iter().map(|(name, text)| (name, Sent::Simple, text));
    let parsed = [("a Parse message of IN", counted), ("a Parse message of VALUES", of_values)];
    simple.chain(parsed.map(|(name, text)| (name, Sent::Parse, text))).collect()
}

/// Sends a bomb again and again until it is cancelled, and returns when that was; `None` where the
/// server refuses it.
fn run(client: &mut Client, (name, sent, text): (&str, Sent, &str), runs: &AtomicU64) -> Option<Instant> {
    loop {
        let done = match sent {
            Sent::Simple => client.simple_query(text).map(|answer: Vec<SimpleQueryMessage>| drop(answer)),
            Sent::Parse => client.prepare(text).map(drop),
            Sent::Copy => {
                client.copy_out(text).and_then(|mut rows| match io::copy(&mut rows, &mut io::sink()) {
                    Ok(_) => Ok(()),
                    Err(fault) => Err(*fault.into_inner().and_then(|inner| inner.downcast().ok()).unwrap()),
                })
            }
        };
        // Relaxed: a count, which orders nothing.
        runs.fetch_add(1, Ordering::Relaxed);
        match done {
            Err(fault) if fault.code() == Some(&SqlState::QUERY_CANCELED) => return Some(Instant::now()),
            Err(fault) if is_refused(&fault) => return None,
            Err(fault) if fault.code() == Some(&SqlState::SYNTAX_ERROR) => {}
            Err(fault) => panic!("{name}: {fault:?}"),
            Ok(()) => {}
        }
    }
}

/// Runs a bomb beside a session that asks `select 1`, then cancels it.
pub fn explode(server: &Server, beside: &mut Client, bomb: Bomb, asked: usize) -> Outcome {
    let mut client = server.connect();
    let token = client.cancel_token();
    let looks = "select 1 from pg_stat_activity where pid = $1 and state = 'active'";
    let session = pid(&mut client);
    let runs = Arc::new(AtomicU64::new(0));
    let ran = Arc::clone(&runs);
    let (name, sent, text) = bomb;
    let running = thread::spawn(move || run(&mut client, (name, sent, &text), &ran));
    let mut selects = Vec::new();
    // Relaxed: as above.
    while runs.load(Ordering::Relaxed) == 0 {
        let begun = Instant::now();
        let runs = !beside.query(looks, &[&session]).unwrap().is_empty();
        selects.push(begun.elapsed());
        if runs {
            break;
        }
    }
    for _ in 0..asked {
        let begun = Instant::now();
        beside.simple_query("select 1").unwrap();
        selects.push(begun.elapsed());
        thread::sleep(Duration::from_millis(1));
    }
    let (mut told, mut ran_before) = (Instant::now(), runs.load(Ordering::Relaxed));
    let mut asked = told;
    token.cancel_query(NoTls).unwrap();
    while !running.is_finished() {
        if asked.elapsed() > CANCEL_AGAIN {
            asked = Instant::now();
            // The cancel is late unless a run has ended without it.
            let ran = runs.load(Ordering::Relaxed);
            if std::mem::replace(&mut ran_before, ran) != ran {
                told = asked;
            }
            token.cancel_query(NoTls).unwrap();
        }
        thread::sleep(Duration::from_millis(1));
    }
    let ended = running.join().unwrap();
    let cancelled = ended.map(|ended| ended.saturating_duration_since(told));
    Outcome { bomb: name.to_owned(), cancelled, selects }
}

#[test]
fn a_long_statement_is_cancelled_and_its_core_serves_others() {
    let server = Server::start(&["--cores", "1"]);
    let checks = list(2000, ",", |i| format!("check (a <> {i})"));
    let columns = list(1600, ",", |i| format!("c{i} int"));
    let joined = list(60, ";", |i| format!("create table joined{i} (i int primary key)"));
    server.psql(&format!(
        "create table bombs (t text, n int); insert into bombs values ('a', 1);
         create table parent (a int primary key); create table altered (a int);
         create table widest ({columns}); {joined}"
    ));
    let many = list(many_tables(), ";", |i| format!("create table many{i} (i serial primary key, t text)"));
    server.connect().batch_execute(&many).unwrap();
    server.connect().batch_execute(&format!("create table checks (a int, {checks})")).unwrap();
    let mut beside = server.connect();
    // One of them, to see what it does.
    let only = std::env::var("ALLCORE_BOMB").unwrap_or_default();
    let (step, selects) = pace();
    let chosen = bombs().into_iter().filter(|(name, ..)| name.contains(&only));
    judge(chosen.step_by(step).map(|bomb| explode(&server, &mut beside, bomb, selects)).collect());
    assert_eq!(server.psql("select 1"), "1");
}
