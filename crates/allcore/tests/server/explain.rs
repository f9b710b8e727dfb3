//! EXPLAIN's options, formats and ways to call it. The figures of nodes are in `plans/analyze.out`.

use postgres::SimpleQueryMessage;
use postgres::error::SqlState;
use serde_json::Value;

use crate::common::{Server, pid};

/// Two tables of 1,000 and 100 rows.
fn fixture() -> Server {
    let server = Server::start(&["--autoanalyze", "off"]);
    server.psql(
        "create table t (id int primary key, a int, b text);
         create table u (id int primary key, t int);
         insert into t select i, i % 10, 'x' from generate_series(1, 1000) i;
         insert into u select i, i from generate_series(1, 100) i;
         analyze t; analyze u",
    );
    server
}

/// The rows of a statement's only column.
fn lines(client: &mut postgres::Client, statement: &str) -> Vec<String> {
    let answer = client.simple_query(statement).unwrap_or_else(|error| panic!("{statement}: {error:?}"));
    let row = |message: SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
        _ => None,
    };
    answer.into_iter().filter_map(row).collect()
}

/// EXPLAIN's document, of which the first and only entry is returned.
fn document(client: &mut postgres::Client, statement: &str) -> Value {
    let lines = lines(client, statement);
    assert_eq!(lines.len(), 1, "{statement}");
    let parsed: Value = serde_json::from_str(&lines[0]).unwrap_or_else(|error| panic!("{error}: {lines:?}"));
    parsed[0].clone()
}

fn refused(client: &mut postgres::Client, statement: &str) -> (SqlState, String) {
    let error = client.simple_query(statement).expect_err(statement);
    let error = error.as_db_error().expect("an error of the server");
    (error.code().clone(), error.message().to_owned())
}

#[test]
fn text_shows_estimates_and_figures_in_postgresqls_form() {
    let server = fixture();
    let mut client = server.connect();
    let plain = lines(&mut client, "explain select * from t where a = 3");
    assert_eq!(plain.len(), 2, "{plain:?}");
    assert!(plain[0].starts_with("Seq Scan on t  (cost=0.00.."), "{plain:?}");
    assert!(plain[0].ends_with(" rows=100 width=10)"), "{plain:?}");
    let all = lines(&mut client, "explain analyze select * from t where a = 3");
    assert!(all[0].contains(" width=10) (actual time="), "{all:?}");
    assert!(all[0].ends_with(" rows=100.00 loops=1)"), "{all:?}");
    assert_eq!(all[2], "  Rows Removed by Filter: 900");
    let last = [&all[all.len() - 2], &all[all.len() - 1]].map(|line| line.split(':').next().unwrap());
    assert_eq!(last, ["Planning Time", "Execution Time"]);
    let (start, total) = all[0].split("actual time=").nth(1).unwrap().split_once("..").unwrap();
    let total = total.split(' ').next().unwrap();
    let [start, total]: [f64; 2] = [start, total].map(|time| time.parse().unwrap());
    assert!(0.0 <= start && start <= total, "{all:?}");
    let execution: f64 = all.last().unwrap().split(' ').nth(2).unwrap().parse().unwrap();
    assert!(total <= execution, "{all:?}");
}

/// The pages (hit, read) of each node, from lines such as `Buffers: shared hit=3 read=1`.
fn pages(lines: &[String]) -> Vec<(u64, u64)> {
    let counts = |line: &String| {
        let (_, counts) = line.split_once("Buffers: shared ")?;
        let of = |name: &str| counts.split(' ').find_map(|count| count.strip_prefix(name)?.parse().ok());
        Some((of("hit=").unwrap_or(0), of("read=").unwrap_or(0)))
    };
    lines.iter().filter_map(counts).collect()
}

#[test]
fn analyze_shows_the_pages_of_each_node_and_of_those_below() {
    let mut server = fixture();
    let join = "explain (analyze, costs off) select * from u join t on t.id = u.t where u.id <= 50";
    let client = &mut server.connect();
    lines(client, join);
    let warm = pages(&lines(client, join));
    let [(all, 0), (left, 0), (right, 0)] = warm[..] else { panic!("{warm:?}") };
    assert!(left >= 1 && right >= 50 && all == left + right, "{warm:?}");
    assert_eq!(pages(&lines(client, "explain (analyze, buffers off) select * from t")), []);
    assert_eq!(pages(&lines(client, "explain (buffers) select * from t")), []);
    assert_eq!(pages(&lines(client, "explain (analyze) select 1")), []);
    let json = document(client, "explain (analyze, format json) select * from t");
    assert!(json["Plan"]["Shared Hit Blocks"].as_u64() >= Some(1), "{json}");
    assert_eq!(json["Plan"]["Shared Read Blocks"], 0, "{json}");
    let json = document(client, "explain (analyze, buffers off, format json) select * from t");
    assert!(json["Plan"].get("Shared Hit Blocks").is_none(), "{json}");
    server.psql("checkpoint");
    server.crash();
    server.launch();
    let cold = pages(&lines(&mut server.connect(), "explain (analyze) select count(*) from t"));
    assert!(!cold.is_empty() && cold.iter().all(|(_, read)| *read >= 1), "{cold:?}");
}

#[test]
fn each_option_adds_or_removes_its_part() {
    let server = fixture();
    let mut client = server.connect();
    let mut shown = |options: &str| lines(&mut client, &format!("explain ({options}) select * from t"));
    assert_eq!(shown("costs off"), ["Seq Scan on t"]);
    assert_eq!(shown("costs off, verbose off, buffers off"), ["Seq Scan on t"]);
    let actual = ["Seq Scan on t (actual rows=1000.00 loops=1)"];
    assert_eq!(shown("analyze, costs off, timing off, summary off, buffers off"), actual);
    assert_eq!(shown("analyze false, costs off"), ["Seq Scan on t"]);
    let summary = shown("summary, costs off");
    assert!(summary.len() == 2 && summary[1].starts_with("Planning Time: "), "{summary:?}");
    assert_eq!(shown("settings, costs off"), ["Seq Scan on t"]);
    assert_eq!(shown("format text, costs off"), ["Seq Scan on t"]);
    client.batch_execute("set work_mem = '8MB'; set enable_hashjoin = off").unwrap();
    assert_eq!(
        lines(&mut client, "explain (settings, costs off) select 1"),
        ["Result", "Settings: enable_hashjoin = 'off', work_mem = '8MB'"]
    );
    let settings = document(&mut client, "explain (settings, format json) select 1")["Settings"].clone();
    assert_eq!(settings, serde_json::json!({"enable_hashjoin": "off", "work_mem": "8MB"}));
}

#[test]
fn a_disabled_method_is_marked_and_its_cost_is_its_own() {
    let server = fixture();
    let mut client = server.connect();
    client.batch_execute("set enable_seqscan = off").unwrap();
    let shown = lines(&mut client, "explain select * from t where a = 3");
    assert_eq!(shown[2], "  Disabled: true");
    assert!(!shown[0].contains("0000"), "{shown:?}");
    let plan = document(&mut client, "explain (format json) select * from t where id = 3")["Plan"].clone();
    assert_eq!(plan["Disabled"], false);
}

#[test]
fn unknown_options_and_those_that_are_not_built_are_refused() {
    let server = fixture();
    let mut client = server.connect();
    let unbuilt = SqlState::FEATURE_NOT_SUPPORTED;
    for (options, state, message) in [
        ("analyze, wal", &unbuilt, "EXPLAIN option WAL is not supported"),
        ("memory", &unbuilt, "EXPLAIN option MEMORY is not supported"),
        ("analyze, serialize", &unbuilt, "EXPLAIN option SERIALIZE is not supported"),
        ("generic_plan", &unbuilt, "EXPLAIN option GENERIC_PLAN is not supported"),
        ("format xml", &unbuilt, "EXPLAIN format xml is not supported"),
        ("format yaml", &unbuilt, "EXPLAIN format yaml is not supported"),
        ("nosuch", &SqlState::SYNTAX_ERROR, "unrecognized EXPLAIN option \"nosuch\""),
        (
            "format nosuch",
            &SqlState::INVALID_PARAMETER_VALUE,
            "unrecognized value for EXPLAIN option \"format\": \"nosuch\"",
        ),
        ("timing", &SqlState::INVALID_PARAMETER_VALUE, "EXPLAIN option TIMING requires ANALYZE"),
        ("costs 3", &SqlState::SYNTAX_ERROR, "costs requires a Boolean value"),
    ] {
        let (code, said) = refused(&mut client, &format!("explain ({options}) select 1"));
        assert_eq!((&code, said.as_str()), (state, message), "{options}");
    }
}

#[test]
fn json_has_postgresqls_keys_for_each_node() {
    let server = fixture();
    let mut client = server.connect();
    let text = "explain (analyze, format json) select t.a, count(*) from t join u on u.t = t.id
                where t.id < 50 and t.b = 'x' group by t.a order by t.a";
    let shown = document(&mut client, text);
    for key in ["Planning Time", "Execution Time"] {
        assert!(shown[key].as_f64().is_some_and(|time| time > 0.0), "{key}: {shown}");
    }
    assert_eq!(shown["Triggers"], serde_json::json!([]));
    let mut kinds = Vec::new();
    nodes(&shown["Plan"], &mut |node| {
        for key in ["Startup Cost", "Total Cost", "Plan Rows", "Plan Width", "Actual Startup Time"] {
            assert!(node[key].is_number(), "{key}: {node}");
        }
        for key in ["Actual Total Time", "Actual Rows", "Actual Loops"] {
            assert!(node[key].is_number(), "{key}: {node}");
        }
        assert!(node["Startup Cost"].as_f64() <= node["Total Cost"].as_f64(), "{node}");
        kinds.push(node["Node Type"].as_str().unwrap().to_owned());
        if node["Relation Name"] == "t" {
            assert_eq!(node["Filter"], "(b = 'x'::text)");
            assert_eq!(node["Rows Removed by Filter"], 0);
        }
    });
    assert_eq!(kinds[0], "Sort");
    assert_eq!(kinds[1], "Aggregate");
    let top = &shown["Plan"];
    assert_eq!(top["Sort Key"], serde_json::json!(["t.a"]));
    assert_eq!(top["Actual Rows"], 10.0);
    assert_eq!(top["Plans"][0]["Parent Relationship"], "Outer");
    assert_eq!(top["Plans"][0]["Strategy"], "Hashed");
    let subquery = document(&mut client, "explain (format json) select (select max(id) from t)");
    assert_eq!(subquery["Plan"]["Plans"][0]["Subplan Name"], "InitPlan 1");
    assert_eq!(subquery["Plan"]["Plans"][0]["Parent Relationship"], "InitPlan");
    assert!(subquery.get("Planning Time").is_none());
    let change = document(&mut client, "explain (format json) delete from t");
    assert_eq!(change["Plan"]["Node Type"], "ModifyTable");
    assert_eq!(change["Plan"]["Operation"], "Delete");
}

/// Calls `visit` for a node and those below it.
fn nodes(node: &Value, visit: &mut impl FnMut(&Value)) {
    visit(node);
    node["Plans"].as_array().into_iter().flatten().for_each(|child| nodes(child, visit));
}

#[test]
fn json_of_a_node_that_never_ran_has_zeros_and_no_times_without_timing() {
    let server = fixture();
    let mut client = server.connect();
    let text = "explain (analyze, timing off, summary off, format json)
                select * from t join u on u.t = t.id where t.id = 5000";
    let shown = document(&mut client, text);
    assert!(shown.get("Planning Time").is_none() && shown.get("Execution Time").is_none(), "{shown}");
    let mut loops = Vec::new();
    nodes(&shown["Plan"], &mut |node| {
        assert!(node.get("Actual Total Time").is_none(), "{node}");
        assert_eq!(node["Actual Rows"], 0.0);
        loops.push(node["Actual Loops"].as_u64().unwrap());
    });
    assert!(loops.contains(&0) && loops[0] == 1, "{shown}");
}

#[test]
fn analyze_runs_changes_and_plain_explain_does_not() {
    let server = fixture();
    let mut client = server.connect();
    client.batch_execute("explain insert into u values (1000, 1); explain delete from u").unwrap();
    assert_eq!(server.psql("select count(*) from u"), "100");
    client.batch_execute("explain analyze insert into u values (1000, 1), (1001, 1)").unwrap();
    client.batch_execute("explain analyze update u set t = 7 where id > 999").unwrap();
    assert_eq!(server.psql("select count(*), sum(t) from u where id > 999"), "2|14");
    client.batch_execute("begin; explain analyze delete from u; rollback").unwrap();
    assert_eq!(server.psql("select count(*) from u"), "102");
    client.batch_execute("explain analyze create table made as select * from u").unwrap();
    assert_eq!(server.psql("select count(*) from made"), "102");
    let (code, _) = refused(&mut client, "explain analyze insert into u values (1, 1)");
    assert_eq!(code, SqlState::UNIQUE_VIOLATION);
}

#[test]
fn an_explain_that_is_cancelled_ends_and_leaves_the_session_usable() {
    let server = fixture();
    let mut client = server.connect();
    let (number, cancel) = (pid(&mut client), client.cancel_token());
    let long = "explain analyze select count(*) from t a, t b, t c, t d where a.a + b.a + c.a + d.a < 0";
    let run = std::thread::spawn(move || {
        let error = client.simple_query(long).expect_err("it is cancelled");
        (client, error.code().cloned())
    });
    server.wait_active(number);
    cancel.cancel_query(postgres::NoTls).unwrap();
    let (mut client, code) = run.join().unwrap();
    assert_eq!(code, Some(SqlState::QUERY_CANCELED));
    // The next statement is not measured.
    assert_eq!(lines(&mut client, "select count(*) from u"), ["100"]);
    let again = lines(
        &mut client,
        "explain (analyze, costs off, timing off, summary off, buffers off) select * from u",
    );
    assert_eq!(again, ["Seq Scan on u (actual rows=100.00 loops=1)"]);
}

#[test]
fn execute_and_the_extended_protocol_show_the_plan_that_runs() {
    let server = fixture();
    let mut client = server.connect();
    client.batch_execute("prepare p (int) as select * from t where id = $1").unwrap();
    let options = "analyze, costs off, timing off, summary off, buffers off";
    assert_eq!(
        lines(&mut client, &format!("explain ({options}) execute p(5)")),
        ["Index Scan using t_pkey on t (actual rows=1.00 loops=1)", "  Index Cond: (id = $1)",]
    );
    assert!(lines(&mut client, "explain (summary) execute p(5)")[2].starts_with("Planning Time: "));
    let rows = client.query(&format!("explain ({options}) select * from t where id < $1"), &[&11]).unwrap();
    let shown: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(shown[0], "Index Scan using t_pkey on t (actual rows=10.00 loops=1)");
}
