//! Statements whose calls take long: each is cancelled, and another session of the same core is
//! served meanwhile.
//!
//! A bomb evaluates one long call for each of a billion rows, so that it never ends by itself.
//! `make test` runs a tenth of them. It allows 2 s for a cancel and for each statement of the other
//! session, because the machine may be busy. `make bombs` sets `ALLCORE_BOMBS` and runs all of them
//! on a release build, one corpus after another. It allows 100 ms for a cancel, 20 ms for the other
//! session's 99th percentile and 250 ms for its longest statement. A server that may have 1 GiB
//! (`ALLCORE_BOMBS=small`) may refuse a bomb with 53200 instead.

mod large;
mod lists;
mod texts;

use crate::common::{Server, pid};
use postgres::error::SqlState;
use postgres::{Client, NoTls};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// Waiting longer than this is a failure.
const LONG: Duration = Duration::from_secs(120);

/// The limits of a run.
struct Limits {
    cancel: Duration,
    /// The 99th percentile of another session's statements, and the longest of them.
    p99: Duration,
    longest: Duration,
}

const STRICT: Limits = Limits {
    cancel: Duration::from_millis(100),
    p99: Duration::from_millis(20),
    longest: Duration::from_millis(250),
};
/// A busy machine stays within them; a core that is held for seconds does not.
const GENEROUS: Limits =
    Limits { cancel: Duration::from_secs(2), p99: Duration::from_secs(2), longest: Duration::from_secs(2) };

/// Calls over a long text `T`.
const OVER_TEXT: &[&str] = &[
    "T like '%' || repeat('a', 2500000) || 'b'",
    "T like '%' || repeat('ab', 1000000) || 'c%'",
    "T like '%a%b%c'",
    "T like '%a_a_a_a_a_a_a_b'",
    "T not like '%' || repeat('a', 2500000) || 'b%'",
    "T ilike '%' || repeat('A', 2500000) || 'B'",
    "T not ilike '%x_y%'",
    "T ~ '(a|b)*c$'",
    "T ~* '(A|B)+x'",
    "T !~ 'a.{250}x'",
    "T ~ '^\\w{1,255}$'",
    "T similar to '(a|b)*c'",
    "regexp_like(T, 'b+c')",
    "regexp_count(T, 'a')",
    "regexp_replace(T, 'a', 'xy', 'g')",
    "regexp_replace(T, '(a)(b)', '\\2\\1', 'g')",
    "regexp_match(T, '(a+)(c)')",
    "regexp_split_to_array(T, 'a')",
    "regexp_substr(T, 'b+c')",
    "regexp_instr(T, 'b+c')",
    "substring(T from 'b+c')",
    "upper(T)",
    "lower(T)",
    "initcap(T)",
    "reverse(T)",
    "md5(T)",
    "md5(T::bytea)",
    "length(T || '\u{e9}')",
    "repeat(T, 4)",
    "replace(T, 'a', 'bb')",
    "replace(T, repeat('ab', 3000), 'x')",
    "replace(T, 'abc', 'x')",
    "translate(T, 'ab', 'xy')",
    "split_part(T, 'a', 3000000)",
    "split_part(T, 'b', -3000000)",
    "string_to_array(T, 'a')",
    "string_to_array(T, null)",
    "array_length(string_to_array(T, 'b'), 1)",
    "array_to_string(string_to_array(T, 'a'), ',')",
    "array_append(string_to_array(T, 'a'), 'x')",
    "array_position(string_to_array(T, 'a'), 'x')",
    "array_remove(string_to_array(T, 'a'), 'b')",
    "string_to_array(T, 'a') @> array['x']",
    "string_to_array(T, 'a') && array['x']",
    "string_to_array(T, 'a')::text",
    "lpad(T, 9000000, 'xyz')",
    "rpad(T, 9000000, 'xyz')",
    "lpad('', 9000000, left(T, 100))",
    "overlay(T placing 'xyz' from 2000000)",
    "substr(T || '\u{e9}', 3000000)",
    "left(T || '\u{e9}', -1000)",
    "right(T || '\u{e9}', 3000000)",
    "position('bc' in T)",
    "strpos(T, repeat('ab', 10000) || 'c')",
    "btrim(T, 'ab')",
    "ltrim(T, 'ba')",
    "rtrim(T, 'ba')",
    "encode(T::bytea, 'hex')",
    "encode(T::bytea, 'base64')",
    "encode(T::bytea, 'escape')",
    "decode(encode(T::bytea, 'hex'), 'hex')",
    "decode(encode(T::bytea, 'base64'), 'base64')",
    "concat(T, T, T)",
    "concat_ws(', ', T, T)",
    "format('%s and %L', T, T)",
    "T || T || T",
    "T::bytea || T::bytea",
    "quote_literal(T || '''')",
    "to_json(T)",
    "json_build_object('key', T)",
    "T || 'x' = T || 'y'",
    "T::varchar(3000000)",
    "('{' || replace(left(T, 1000000), 'a', '1,') || '1}')::text[]",
];

/// Calls over a long number `N`.
const OVER_NUMBER: &[&str] = &[
    "N * N",
    "N / (N / 3 + 1)",
    "N % (N / 7 + 13)",
    "div(N, sqrt(N))",
    "mod(N, 12345678901234567891234567890)",
    "sqrt(N)",
    "ln(N)",
    "log(N)",
    "log(3, N)",
    "exp(ln(left(N::text, 500)::numeric / 10::numeric ^ 500))",
    "exp(5000.123456789 + sign(N))",
    "power(1.0000000123456789, 1000000000 * sign(N))",
    "power(9.87654321, 100000 * sign(N))",
    "9.9 ^ (120000 * sign(N))",
    "factorial((30000 * sign(N))::bigint)",
    "gcd(N, N / 3)",
    "lcm(N, N - 1)",
    "trim_scale(N / 10::numeric ^ 1000)",
    "round(N / 7, 1000)",
    "trunc(N / 7, -1000)",
    "ceil(N / 7)",
    "N::text",
    "N::text::numeric",
    "-N + N",
    "N = N + 1",
    "N < N - 0.5",
    "N + 0.001",
    "round(N, -5000)",
    "abs(-N)",
    "sign(N)",
    "scale(N * 1.0000)",
    "width_bucket(N, 0, N + 1, 1000)",
    "greatest(N, N - 1)",
    "N in (N - 1, N + 1)",
    "N in (select n from bombs)",
    "array_position(array[N, N + 1], N - 1)",
];

/// Calls over a long array of numbers `A`.
const OVER_ARRAY: &[&str] = &[
    "array_remove(A, 5)",
    "array_position(A, -1)",
    "A || A",
    "A || 1",
    "1 || A",
    "A = (A || 1)",
    "A < (A || 1)",
    "cardinality(A || A)",
    "A::text",
    "A::text::int[]",
    "A::bigint[]",
    "A @> array[-1]",
    "A && array[-1]",
    "array_to_string(A, ',')",
    "-1 = any(A)",
    "0 < all(A)",
    "(A)[150000]",
    "(select count(*) from unnest(A))",
    "array(select x from unnest(A) x)",
    "(select array_agg(x) from unnest(A) x)",
    "(select string_agg(x::text, ',') from unnest(A) x)",
    "(select count(distinct x) from unnest(A) x)",
];

/// How a call gets its long value: from constants, from a stored row, or from the row at hand.
const SOURCES: &[(&str, &str, &str)] = &[
    ("repeat('ab', 2000000)", "repeat('98', 20000)::numeric", "('{1' || repeat(',1', 200000) || '}')::int[]"),
    ("t", "n", "a"),
    (
        "repeat(chr((97 + g % 2)::int), 4000000)",
        "(repeat('98', 20000) || g)::numeric",
        "('{' || g || repeat(',1', 200000) || '}')::int[]",
    ),
];

/// As many digits as a number may have.
const LONGEST: &str = "(repeat('9', 131000) || '.' || repeat('9', 16000))::numeric";

/// Statements of other shapes.
const OTHERS: &[&str] = &[
    "select repeat('a', 5000000) like '%' || repeat('a', 2500000) || '_b'",
    "with recursive r(s, n) as (select repeat('a', 1000000), 0 union all select s || 'b', n + 1 from r)
     select max(length(s)) from r",
    "with recursive r(s) as (select 'a' union select reverse(s) || 'b' from r) select count(*) from r",
    "select count(*) from (select g from generate_series(1, 100000000) g order by md5(repeat('a', 100000) || g)) s",
    "select count(distinct md5(repeat('a', 100000) || g)) from generate_series(1, 100000000) g",
    "select string_agg(repeat('a', 100) || g, ',') from generate_series(1, 100000000) g",
    "select sum(n + g) from bombs, generate_series(1, 1000000000) g",
    "select avg(n + g), stddev(n + g) from bombs, generate_series(1, 1000000000) g",
    "select max(n + g) from bombs, generate_series(1, 1000000000) g",
    "select count(distinct n + g) from bombs, generate_series(1, 1000000000) g",
    "select count(*) from (select n + g from bombs, generate_series(1, 1000000000) g order by 1) s",
    "select count(*) from (select n + g from bombs, generate_series(1, 1000000000) g group by 1) s",
    "select max(a || g::int) from bombs, generate_series(1, 1000000000) g",
    "select count(*) from (select a || g::int from bombs, generate_series(1, 1000000000) g order by 1) s",
    "select count(*) from bombs b, generate_series(1, 1000000000) g, bombs c where b.a || g::int = c.a",
];

/// Calls over a number `N` of as many digits as there may be, which a strict run alone makes.
const OVER_LONGEST: &[&str] = &[
    "N + 1",
    "N * 2",
    "N = N - 1",
    "N < N - 0.5",
    "N / (N / 3 + 1)",
    "N % (N / 7 + 13)",
    "div(N, sqrt(N))",
    "sqrt(N)",
    "ln(N)",
    "round(N, -5000)",
    "trunc(N, 100)",
    "ceil(N / 7)",
    "abs(-N)",
    "sign(N)",
    "scale(N)",
    "trim_scale(N)",
    "gcd(N, N / 3)",
    "width_bucket(N, 0, N + 1, 1000)",
    "N in (N - 1, N + 1)",
    "N in (select n from bombs)",
    "N::text",
    "N::text::numeric",
    "array[N, N]::text",
    "format('%s', N)",
];

/// Calls over a text `T` of 100 MB, which a strict run alone makes.
const OVER_HUGE_TEXT: &[&str] = &[
    "T",
    "T = T || 'x'",
    "T < T || 'x'",
    "T || 'x'",
    "T::bytea",
    "T::varchar",
    "T::varchar(9999999)",
    "(T::char(9999999))",
    "length(T)",
    "greatest(T, T || 'x')",
    "array[T, T]",
    "array[T, T] = array[T, T || 'x']",
    "row(T, 1) = row(T || 'x', 1)",
    "T in (T || 'x', T || 'y')",
    "coalesce(T, 'x')",
    "md5(T)",
    "to_json(T)",
    "(select max(x) from (values (T), (T || 'x')) v (x))",
    "(select count(distinct x) from (values (T), (T || 'x')) v (x))",
    "(select string_agg(x, ',') from (values (T), (T || 'x')) v (x))",
    "(select count(*) from (select x from (values (T), (T || 'x')) v (x) order by x) s)",
    "(select count(*) from (select x from (values (T), (T || 'x')) v (x) group by x) s)",
    "(select array_agg(x) from (values (T), (T || 'x')) v (x))",
    "(select string_agg(x, x) from (values (T), (T || 'x')) v (x))",
    "(select count(*) from (select x from (values (T), (T || 'x')) v (x) order by x desc) s)",
    "(select count(*) from (select x from (values (T)) v (x) union select T || 'x') s)",
    "(select count(*) from (select x from (values (T)) v (x) except all select T || 'x') s)",
    "(select count(*) from (values (T)) v (x) join (values (T || 'x'), (T)) w (y) on x = y)",
    "(select count(y) from (select lag(x) over (order by x) y from (values (T), (T || 'x')) v (x)) s)",
    "quote_ident(T)",
    "quote_literal(T || '''')",
    "concat_ws(T, 'a', 'b')",
    "format('%I', T)",
    "format('%120000000s', 'x')",
    "starts_with(T || 'x', T)",
    "regexp_replace('aa', 'a', T, 'g')",
    "T::bytea::text",
    "array[T, T]::text",
    "repeat(' ', 100000000)::bpchar = T::bpchar",
    "(repeat(' ', 100000000) || '1')::int",
    "(repeat(' ', 100000000) || '1')::float8",
    "(repeat(' ', 100000000) || 'true')::bool",
    "(repeat(' ', 100000000) || '2020-01-01')::date",
    "repeat('1 ', 20000000)::int2vector",
    "T::int2vector",
    "T::oidvector",
    "(repeat('0', 100000000) || ' ')::int2vector",
    "(repeat(' ', 100000000) || '1')::oidvector",
    "(repeat(' ', 100000000) || '{1}')::int[]",
    "('[' || repeat('0', 100000000) || '1:2]={1,2}')::int[]",
    "string_to_array(left(T, 20000000), null)::text",
    "btrim(left(T, 1000000), (select string_agg(chr(c), '') from generate_series(1000, 21000) c) || 'ab')",
];

fn is_strict() -> bool {
    std::env::var_os("ALLCORE_BOMBS").is_some()
}

/// Whether the server may have 1 GiB of memory only.
fn is_small() -> bool {
    std::env::var_os("ALLCORE_BOMBS").is_some_and(|value| value == "small")
}

/// Whether a bomb may end with this error.
fn is_refused(fault: &postgres::Error) -> bool {
    is_small() && fault.code() == Some(&SqlState::OUT_OF_MEMORY)
}

/// The distance between the bombs that a run takes, and the number of `select 1` beside each.
fn pace() -> (usize, usize) {
    if is_strict() { (1, 200) } else { (10, 10) }
}

fn bombs() -> Vec<String> {
    let mut bombs = Vec::new();
    let mut over = |calls: &[&str], name: char, value: &str, table: &str| {
        bombs.extend(calls.iter().map(|call| {
            let call = call.replace(name, value);
            format!("select count({call}) from {table}, generate_series(1, 1000000000) g")
        }));
    };
    for (text, number, array) in SOURCES {
        over(OVER_TEXT, 'T', text, "bombs");
        over(OVER_NUMBER, 'N', number, "bombs");
        over(OVER_ARRAY, 'A', array, "bombs");
    }
    if is_strict() {
        over(OVER_LONGEST, 'N', "longest", "huge");
        over(OVER_HUGE_TEXT, 'T', "t", "huge");
    }
    bombs.extend(OTHERS.iter().map(|&other| other.to_owned()));
    bombs
}

/// The effect of a bomb on other sessions, and its end.
struct Outcome {
    bomb: String,
    /// How long the cancel took; `None` where the server had refused the bomb.
    cancelled: Option<Duration>,
    selects: Vec<Duration>,
}

/// Runs a bomb beside a session that looks at it and asks `select 1`, then cancels it.
fn explode(server: &Server, beside: &mut Client, bomb: &str, selects: usize) -> Outcome {
    explode_on(server.connect(), beside, (bomb, bomb), selects)
}

/// As [`explode`] for a statement with a name, sent by `client`.
fn explode_on(
    mut client: Client,
    beside: &mut Client,
    (bomb, statement): (&str, &str),
    selects: usize,
) -> Outcome {
    let (session, token) = (pid(&mut client), client.cancel_token());
    let (answered, answer) = mpsc::channel();
    let statement = statement.to_owned();
    let running = thread::spawn(move || {
        let result = client.simple_query(&statement);
        answered.send(Instant::now()).unwrap();
        result.map(|rows| rows.len())
    });
    let begun = Instant::now();
    let looks = "select 1 from pg_stat_activity
                 where pid = $1 and state = 'active' and query not like '%pg_backend_pid%'";
    // The first rows are timed too: these looks wait for the core as `select 1` does.
    let mut times = Vec::new();
    while !running.is_finished() {
        let asked = Instant::now();
        let runs = !beside.query(looks, &[&session]).unwrap().is_empty();
        times.push(asked.elapsed());
        if runs {
            break;
        }
        assert!(begun.elapsed() < LONG, "it does not run: {bomb}");
    }
    for _ in 0..selects {
        let asked = Instant::now();
        beside.simple_query("select 1").unwrap();
        times.push(asked.elapsed());
        thread::sleep(Duration::from_millis(1));
    }
    let told = Instant::now();
    let ended = loop {
        token.cancel_query(NoTls).unwrap();
        match answer.recv_timeout(Duration::from_secs(1)) {
            Ok(ended) => break ended,
            Err(_) => assert!(told.elapsed() < LONG, "it is not cancelled: {bomb}"),
        }
    };
    let fault = running.join().unwrap().expect_err(bomb);
    let cancelled = (!is_refused(&fault)).then(|| {
        assert_eq!(fault.code(), Some(&SqlState::QUERY_CANCELED), "{bomb}\n{fault}");
        ended.saturating_duration_since(told)
    });
    Outcome { bomb: bomb.to_owned(), cancelled, selects: times }
}

/// The value below which a share of the sorted times lies.
fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times.get((times.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

#[test]
fn a_bomb_is_cancelled_and_its_core_serves_others() {
    let strict = is_strict();
    let server = Server::start(&["--cores", "1"]);
    server.psql(
        "create table bombs (t text, n numeric, a int[]);
         insert into bombs values (repeat('ab', 2000000), repeat('98', 20000)::numeric,
                                   ('{1' || repeat(',1', 200000) || '}')::int[])",
    );
    if strict {
        let huge = format!(
            "create table huge (t text, longest numeric);
             insert into huge values (repeat('ab', 50000000), {LONGEST})"
        );
        server.psql(&huge);
    }
    let mut beside = server.connect();
    // One of them, to see what it does.
    let only = std::env::var("ALLCORE_BOMB").unwrap_or_default();
    let bombs: Vec<String> = bombs().into_iter().filter(|bomb| bomb.contains(&only)).collect();
    let (step, selects) = pace();
    let outcomes =
        bombs.iter().rev().step_by(step).map(|bomb| explode(&server, &mut beside, bomb, selects)).collect();
    judge(outcomes);
    assert_eq!(server.psql("select 1"), "1");
}

/// Prints the outcomes of the bombs, and asserts the run's limits.
fn judge(mut outcomes: Vec<Outcome>) {
    let mut cancels: Vec<Duration> = outcomes.iter().filter_map(|outcome| outcome.cancelled).collect();
    let mut all: Vec<Duration> = outcomes.iter().flat_map(|outcome| outcome.selects.clone()).collect();
    println!(
        "{} bombs: cancelled after {:?} (median), {:?} (most); select 1 beside them: {:?} (median), {:?} (p99), \
         {:?} (longest)",
        outcomes.len(),
        percentile(&mut cancels, 50),
        percentile(&mut cancels, 100),
        percentile(&mut all, 50),
        percentile(&mut all, 99),
        percentile(&mut all, 100),
    );
    let limits = if is_strict() { STRICT } else { GENEROUS };
    let mut slow = Vec::new();
    for outcome in &mut outcomes {
        let (p99, longest) = (percentile(&mut outcome.selects, 99), percentile(&mut outcome.selects, 100));
        let Outcome { bomb, cancelled, .. } = outcome;
        if cancelled.is_none() {
            println!("refused: {bomb}");
        }
        let late = cancelled.is_some_and(|after| after > limits.cancel);
        if late || p99 > limits.p99 || longest > limits.longest {
            slow.push(format!("cancel {cancelled:?}, select 1 {p99:?} (p99), {longest:?} (longest): {bomb}"));
        }
    }
    slow.iter().for_each(|line| println!("{line}"));
    assert!(slow.is_empty(), "{} bombs of {} are too slow", slow.len(), outcomes.len());
}

#[test]
fn numbers_of_absurd_length_are_refused() {
    let server = Server::start(&["--cores", "1"]);
    let mut client = server.connect();
    for statement in [
        "select repeat('9', 131073)::numeric",
        "select repeat('9', 5000000)::numeric",
        "select ('1e' || 131072)::numeric",
        "select ('1e' || repeat('9', 100000))::numeric",
        "select 10::numeric ^ 131072",
        "select 9.9 ^ 10000000",
        "select exp(1000000.5)",
        "select factorial(32178)",
        "select repeat('9', 100000)::numeric * repeat('9', 100000)::numeric",
    ] {
        let fault = client.simple_query(statement).expect_err(statement);
        assert_eq!(fault.code(), Some(&SqlState::NUMERIC_VALUE_OUT_OF_RANGE), "{statement}\n{fault}");
    }
}

#[test]
fn the_watchdog_names_the_statement_that_holds_a_core() {
    let mut server = Server::start(&["--cores", "2"]);
    server.stop();
    server.environment("ALLCORE_STOP", Some("sql.tree.made=sleep:3600000"));
    server.launch();
    let mut holder = server.connect();
    let session = pid(&mut holder);
    // It ends with the server.
    let holding = thread::spawn(move || holder.simple_query("create table holds_its_core (i int)").is_err());
    let begun = Instant::now();
    let said = format!("s by session {session}: create table holds_its_core");
    while !server.log().contains(&said) {
        assert!(begun.elapsed() < LONG, "no word of it:\n{}", server.log());
        thread::sleep(Duration::from_millis(20));
    }
    // New sessions avoid the core, see who holds it, and come and go.
    for _ in 0..4 {
        let mut other = server.connect();
        let shown = other
            .query_one(
                "select wait_event_type, wait_event, query from pg_stat_activity where pid = $1",
                &[&session],
            )
            .unwrap();
        assert_eq!(shown.get::<_, &str>(0), "Core");
        assert_eq!(shown.get::<_, &str>(1), "Held");
        assert_eq!(shown.get::<_, &str>(2), "create table holds_its_core (i int)");
    }
    server.crash();
    assert!(holding.join().unwrap());
}
