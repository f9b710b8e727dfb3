//! Tests of plan shapes and of the use of literals.

use super::sample::{catalog, compile};
use crate::explain::{Figures, explain};
use crate::normalize::{LiteralUse, Normalized};
use crate::plan::ExplainOptions;
use crate::request::Request;
use values::error::SqlError;
use values::types::Type;

/// (statement, the lines that EXPLAIN returns).
#[rustfmt::skip]
const SHAPES: &[(&str, &[&str])] = &[
    (
        "SELECT abalance FROM pgbench_accounts WHERE aid = 42",
        &["Index Scan using pgbench_accounts_pkey on pgbench_accounts"],
    ),
    (
        "UPDATE pgbench_accounts SET abalance = abalance + -5 WHERE aid = 42",
        &["Update on pgbench_accounts", "  ->  Index Scan using pgbench_accounts_pkey on pgbench_accounts"],
    ),
    (
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 2, 3, 4, CURRENT_TIMESTAMP)",
        &["Insert on pgbench_history", "  ->  Result"],
    ),
    (
        "select * from t where a = 5000000000",
        &["Index Scan using t_pkey on t"],
    ),
    (
        "select * from t where a = $1::bigint",
        &["Index Scan using t_pkey on t"],
    ),
    (
        "select * from u where id = 5 and name = 'x'",
        &["Index Scan using u_pkey on u"],
    ),
    (
        "select * from u where name = 'x'",
        &["Index Scan using u_name_key on u"],
    ),
    (
        "select * from u where t_a = 7 order by id",
        &["Index Scan using u_t_a on u"],
    ),
    (
        "select * from u order by id desc limit 10",
        &["Limit", "  ->  Seq Scan Backward on u"],
    ),
    (
        "select * from u order by t_a limit 10",
        &["Limit", "  ->  Index Scan using u_t_a on u"],
    ),
    (
        "select * from u order by name desc nulls first limit 10",
        &["Limit", "  ->  Index Scan Backward using u_name_key on u"],
    ),
    (
        "select * from t where a between 10 and 20 order by a desc",
        &["Index Scan Backward using t_pkey on t"],
    ),
    (
        "select * from t where a > 10 and a <= $1",
        &["Index Scan using t_pkey on t"],
    ),
    (
        "select * from t where a in (1, 2, 3)",
        &["Index Scan using t_pkey on t"],
    ),
    (
        "select * from t where a in (select t_a from u order by name || name limit 3)",
        &[
            "Nested Loop",
            "  ->  Unique",
            "        ->  Limit",
            "              ->  Sort",
            "                    ->  Seq Scan on u",
            "  ->  Index Scan using t_pkey on t",
        ],
    ),
    (
        "delete from t where a in (select s.a from (select t_a a, rank() over (order by name) r from u) s where r = 1)",
        &[
            "Delete on t",
            "  ->  Nested Loop",
            "        ->  Unique",
            "              ->  Filter",
            "                    ->  WindowAgg",
            "                          ->  Index Scan using u_name_key on u",
            "        ->  Index Scan using t_pkey on t",
        ],
    ),
    (
        "update t set a = q.a from (select t_a a from u order by name || name limit 3) q where t.a = q.a returning (select name from u where id = q.a)",
        &[
            "Update on t",
            "  ->  Nested Loop",
            "        ->  Limit",
            "              ->  Sort",
            "                    ->  Seq Scan on u",
            "        ->  Index Scan using t_pkey on t",
            "  SubPlan 1",
            "    ->  Index Scan using u_pkey on u",
        ],
    ),
    (
        "select * from t where a = any($1)",
        &["Index Scan using t_pkey on t"],
    ),
    (
        "select * from t join u on u.t_a = t.a where t.a = 5",
        &["Nested Loop", "  ->  Index Scan using t_pkey on t", "  ->  Index Scan using u_t_a on u"],
    ),
    (
        "select * from t join u on u.t_a = t.a where u.id = 5",
        &["Nested Loop", "  ->  Index Scan using u_pkey on u", "  ->  Index Scan using t_pkey on t"],
    ),
    (
        "select * from t join u on u.t_a = t.a",
        &["Hash Join", "  ->  Seq Scan on u", "  ->  Hash", "        ->  Seq Scan on t"],
    ),
    (
        "select * from pgbench_branches b join pgbench_accounts a on a.bid = b.bid",
        &["Hash Join", "  ->  Seq Scan on pgbench_accounts", "  ->  Hash", "        ->  Seq Scan on pgbench_branches"],
    ),
    (
        "select * from pgbench_branches b left join pgbench_accounts a on a.bid = b.bid",
        &["Hash Left Join", "  ->  Seq Scan on pgbench_branches", "  ->  Hash", "        ->  Seq Scan on pgbench_accounts"],
    ),
    (
        "select * from t left join u on u.t_a = t.a where t.b = 'x'",
        &["Nested Loop Left Join", "  ->  Seq Scan on t", "  ->  Index Scan using u_t_a on u"],
    ),
    (
        "select * from t left join h on h.x = t.a",
        &["Hash Left Join", "  ->  Seq Scan on t", "  ->  Hash", "        ->  Seq Scan on h"],
    ),
    (
        "select * from h full join t on h.x = t.a",
        &["Hash Full Join", "  ->  Seq Scan on h", "  ->  Hash", "        ->  Seq Scan on t"],
    ),
    (
        "select * from t where a in (select x from h)",
        &["Nested Loop", "  ->  Unique", "        ->  Seq Scan on h", "  ->  Index Scan using t_pkey on t"],
    ),
    (
        "select * from t where a = (select max(x) from h)",
        &["Index Scan using t_pkey on t", "  InitPlan 1", "    ->  Aggregate", "          ->  Seq Scan on h"],
    ),
    (
        "select * from t where exists (select 1 from u where u.t_a = t.a)",
        &["Merge Semi Join", "  ->  Seq Scan on t", "  ->  Index Only Scan using u_t_a on u"],
    ),
    (
        "select count(*) from t",
        &["Aggregate", "  ->  Seq Scan on t"],
    ),
    (
        "select c, count(*) from t group by c having count(*) > 1 order by 2 desc limit 5",
        &["Limit", "  ->  Sort", "        ->  HashAggregate", "              ->  Seq Scan on t"],
    ),
    (
        "select distinct c from t order by c",
        &["Sort", "  ->  Unique", "        ->  Seq Scan on t"],
    ),
    (
        "select * from (select a, b from t) s where s.a = 5",
        &["Index Scan using t_pkey on t"],
    ),
    (
        "select * from (select a + 1 as x, b from t) s where s.x = 5",
        &["Seq Scan on t"],
    ),
    (
        "select a from t union all select x from h order by 1",
        &["Sort", "  ->  Append", "        ->  Seq Scan on t", "        ->  Seq Scan on h"],
    ),
    (
        "with w as (select * from t where a < 5) select * from w join h on h.x = w.a",
        &["Nested Loop", "  ->  Seq Scan on h", "  ->  Index Scan using t_pkey on t"],
    ),
    (
        "with recursive w(n) as (select 1 union all select n + 1 from w where n < 5) select * from w",
        &["CTE Scan on w", "  CTE w", "    ->  Recursive Union", "          ->  Result", "          ->  WorkTable Scan on w"],
    ),
    (
        "select * from t for update",
        &["LockRows", "  ->  Seq Scan on t"],
    ),
    (
        "select * from t where a = 1 for update skip locked limit 1",
        &["Limit", "  ->  LockRows", "        ->  Index Scan using t_pkey on t"],
    ),
    (
        "delete from t using u where u.t_a = t.a and u.id = 4",
        &["Delete on t", "  ->  Nested Loop", "        ->  Index Scan using u_pkey on u", "        ->  Index Scan using t_pkey on t"],
    ),
    (
        "update t set b = u.name from u where u.t_a = t.a and u.id = 4 returning t.*",
        &["Update on t", "  ->  Nested Loop", "        ->  Index Scan using u_pkey on u", "        ->  Index Scan using t_pkey on t"],
    ),
    (
        "insert into h select a, c from t where a < 5",
        &["Insert on h", "  ->  Index Scan using t_pkey on t"],
    ),
    (
        "insert into t (a, b) values (1, 'x') on conflict (a) do update set b = excluded.b returning a",
        &["Insert on t", "  ->  Result"],
    ),
    (
        "select generate_series(1, 3)",
        &["Function Scan on generate_series"],
    ),
    (
        "select * from generate_series(1, 3) g(x) join t on t.a = g.x",
        &["Nested Loop", "  ->  Function Scan on generate_series", "  ->  Index Scan using t_pkey on t"],
    ),
    (
        "select t.a, (select max(id) from u where u.t_a = t.a) from t where c = 3",
        &[
            "Seq Scan on t",
            "  SubPlan 1",
            "    ->  Aggregate",
            "          ->  Limit",
            "                ->  Index Only Scan Backward using u_t_a on u",
        ],
    ),
    (
        "select row_number() over (partition by c order by a) from t",
        &["WindowAgg", "  ->  Seq Scan on t"],
    ),
    (
        "values (1, 'a'), (2, 'b')",
        &["Values Scan on \"*VALUES*\""],
    ),
    (
        "select relname from pg_class where relname = 't'",
        &["Seq Scan on pg_class"],
    ),
];

#[test]
fn plans_have_the_expected_shape() {
    let mut wrong = Vec::new();
    for (text, expected) in SHAPES {
        match compile(&Request::plain(text)) {
            Ok(compiled) => {
                let actual: Vec<String> =
                    explained(&compiled.statement).into_iter().filter(|line| !line.contains(": ")).collect();
                if actual != *expected {
                    wrong.push(format!("{text}\n{}", actual.join("\n")));
                }
            }
            Err(error) => {
                wrong.push(format!("{text}\n{}: {} at {:?}", error.code, error.message, error.position))
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

struct NoSession(values::types::Settings);

impl values::environment::Environment for NoSession {
    fn settings(&self) -> &values::types::Settings {
        &self.0
    }
    fn random(&self) -> u64 {
        0
    }
}

fn explained(statement: &crate::plan::Statement) -> Vec<String> {
    shown(statement, false).expect("lines")
}

/// EXPLAIN's answer without costs.
fn shown(statement: &crate::plan::Statement, json: bool) -> Result<Vec<String>, SqlError> {
    let session = NoSession(values::types::Settings::default());
    let (analyze, costs, buffers, timing, summary, settings) = (false, false, false, false, false, false);
    let options = ExplainOptions { analyze, costs, buffers, timing, summary, settings, json };
    explain(statement, (options, &Figures::default()), &catalog(), &session)
}

/// (statement, conditions that EXPLAIN shows at its nodes).
#[rustfmt::skip]
const CONDITIONS: &[(&str, &[&str])] = &[
    ("select * from u where id = 5 and name = 'x'", &["Index Cond: (id = '5'::bigint)", "Filter: ((name)::text = 'x'::text)"]),
    ("select * from t where a between 10 and 20", &["Index Cond: ((a >= 10) AND (a <= 20))"]),
    ("select * from t where a = $1", &["Index Cond: (a = $1)"]),
    ("select t_a, count(*) from u group by t_a having count(*) > 1", &["Group Key: t_a", "Filter: (count(*) > 1)"]),
    ("select * from t join u on u.t_a = t.a where t.c = 2", &["Filter: (c = 2)", "Index Cond: (t_a = t.a)"]),
    ("select * from t join u on u.t_a = t.a", &["Hash Cond: (u.t_a = t.a)"]),
    ("select * from t where exists (select 1 from u where t_a = a)", &["Merge Cond: (t.a = u.t_a)", "Index Cond: (t_a >= t.a)"]),
    ("select * from (select * from t order by b limit 9) s where c = 3", &["Filter: (c = 3)", "Sort Key: b"]),
    ("select * from u where t_a = 7 order by name desc nulls last", &["Sort Key: name DESC NULLS LAST", "Index Cond: (t_a = 7)"]),
];

#[test]
fn explain_shows_conditions_of_each_step() {
    let mut wrong = Vec::new();
    for (text, expected) in CONDITIONS {
        let compiled = compile(&Request::plain(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
        let actual = explained(&compiled.statement);
        let said: Vec<&str> =
            actual.iter().map(|line| line.trim()).filter(|line| line.contains(": ")).collect();
        if said != *expected {
            wrong.push(format!("{text}\n{}", actual.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn explain_json_is_valid_for_any_literal() {
    let compiled =
        compile(&Request::plain("select * from t where b = e'\"\\\\\\n\\u0001'")).expect("compiles");
    let actual = shown(&compiled.statement, true).expect("a document");
    let expected = r#""Filter": "(b = '\"\\\n\u0001'::text)""#;
    assert!(actual[0].contains(expected), "{}", actual[0]);
}

/// Each subquery is a node above the one before, and reads a table with a filter.
#[test]
fn explain_shows_many_subqueries_in_lines_that_do_not_grow() {
    const COUNT: usize = 600;
    let one = |n| format!("(select b from t where c = {n})");
    let text = format!("select {}", (0..COUNT).map(one).collect::<Vec<_>>().join(", "));
    let compiled = compile(&Request::plain(&text)).expect("compiles");
    let actual = explained(&compiled.statement);
    let mut expected = vec!["Result".to_owned()];
    for n in 0..COUNT {
        let (label, filter) = (format!("  InitPlan {}", n + 1), format!("          Filter: (c = {n})"));
        expected.extend([label, "    ->  Seq Scan on t".to_owned(), filter]);
    }
    assert_eq!(actual, expected);
    let counted = runtime::budget::within(1 << 20, || shown(&compiled.statement, false));
    assert_eq!(counted.expect_err("no budget is left").code, values::SqlState::INSUFFICIENT_RESOURCES);
}

/// For each literal of a text, the type of its parameter; None for a pinned literal.
fn uses(text: &str) -> (usize, Vec<Option<Type>>) {
    let mut normalized = Normalized::default();
    assert!(normalized.read(text));
    let request = Request { literals: &normalized.literals, ..Request::plain(text) };
    let compiled = compile(&request).unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(compiled.statement.parameters.len(), compiled.declared + normalized.literals.len());
    let uses = compiled.uses.iter().enumerate().map(|(index, literal)| match literal {
        LiteralUse::Pinned => None,
        LiteralUse::Parameter { index: parameter, type_ } => {
            assert_eq!(*parameter as usize, compiled.declared + index);
            assert_eq!(compiled.statement.parameters[*parameter as usize], *type_);
            Some(*type_)
        }
    });
    (compiled.declared, uses.collect())
}

#[test]
fn literals_become_parameters_where_their_value_does_not_matter() {
    let int = Some(Type::INT4);
    let cases: &[(&str, usize, &[Option<Type>])] = &[
        ("SELECT abalance FROM pgbench_accounts WHERE aid = 42;", 0, &[int]),
        ("UPDATE pgbench_accounts SET abalance = abalance + -5 WHERE aid = 42;", 0, &[int, int]),
        ("select * from t where b = 'x'", 0, &[Some(Type::TEXT)]),
        ("select * from t where e > '2020-01-01'", 0, &[Some(Type::TIMESTAMPTZ)]),
        ("select * from t where d = 1.5", 0, &[Some(Type::NUMERIC)]),
        ("select * from u where id = 5000000000", 0, &[Some(Type::INT8)]),
        ("insert into h values (1, 2), (3, 4)", 0, &[int, int, int, int]),
        ("select a from t where a = $1 and c = 3", 1, &[int]),
        ("select a, 1 from t order by 1", 0, &[None, None]),
        ("select c + 1, count(*) from t where a < 9 group by c + 1", 0, &[None, int, None]),
        ("select 'x'::varchar(5), 7", 0, &[Some(Type::VARCHAR), None, int]),
        ("select a from t where a between symmetric 1 and 2", 0, &[None, None]),
        ("select -5::int8, 'a'\n'b'", 0, &[int, None, None]),
    ];
    for (text, declared, expected) in cases {
        let (actual, uses) = uses(text);
        let plain: Vec<Option<u32>> = uses.iter().map(|u| u.map(|type_| type_.oid)).collect();
        let wanted: Vec<Option<u32>> = expected.iter().map(|u| u.map(|type_| type_.oid)).collect();
        assert_eq!((actual, plain), (*declared, wanted), "{text}");
    }
}

#[test]
fn positions_count_from_the_clients_text() {
    let text = "select 'ä'; select nosuch from t";
    let request = Request { start: 12, ..Request::plain(text) };
    assert_eq!(compile(&request).expect_err("no such column").position, Some(20));
    let request = Request { start: 12, ..Request::plain("select 'ä'; selec 1") };
    assert_eq!(compile(&request).expect_err("a syntax error").position, Some(13));
}

#[test]
fn the_binder_infers_parameters() {
    let cases: &[(&str, &[Type])] = &[
        ("select a from t where a = $1 and b = $2", &[Type::INT4, Type::TEXT]),
        ("insert into t (a, b, e) values ($1, $2, $3)", &[Type::INT4, Type::TEXT, Type::TIMESTAMPTZ]),
        ("select $1", &[Type::TEXT]),
        ("select $1::int8 + $2", &[Type::INT8, Type::INT8]),
        ("select a from t limit $1 offset $2", &[Type::INT8, Type::INT8]),
        ("update t set b = $2 where a = $1", &[Type::INT4, Type::TEXT]),
        ("select a from t where a in ($1, $2)", &[Type::INT4, Type::INT4]),
        ("select coalesce($1, 5)", &[Type::INT4]),
    ];
    for (text, types) in cases {
        let compiled = compile(&Request::plain(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
        let actual: Vec<u32> = compiled.statement.parameters.iter().map(|type_| type_.oid).collect();
        let wanted: Vec<u32> = types.iter().map(|type_| type_.oid).collect();
        assert_eq!(actual, wanted, "{text}");
    }
}

/// The queries that psql's \\d commands and pgbench send.
#[test]
fn queries_that_clients_send_compile() {
    let mut failed = Vec::new();
    for text in include_str!("clients.sql").split(";\n").filter(|text| !text.trim().is_empty()) {
        if let Err(error) = compile(&Request::plain(text)) {
            failed.push(format!("{}: {} at {:?}\n{text}", error.code, error.message, error.position));
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n\n"));
}

#[test]
fn planning_counts_its_work_as_binding_does() {
    let subqueries: Vec<String> = (0..1000).map(|n| format!("(select {n})")).collect();
    let text = format!("select {}", subqueries.join(", "));
    let tree = crate::parse::parse(&text).expect("a tree");
    let (catalog, path) = (super::sample::catalog(), ["public".to_owned()]);
    let context = crate::request::Context {
        catalog: &catalog,
        search_path: &path,
        sizes: None,
        methods: Default::default(),
    };
    let request = Request::plain(&text);
    let mut binder = crate::bind::Binder::new(&context, &request, &[]);
    let bound = binder.bind(&tree.statements[0].node).expect("binds");
    let planned = runtime::budget::within(1 << 20, || crate::planner::plan_bound(&mut binder, bound));
    assert_eq!(planned.expect_err("no budget is left").code, values::SqlState::INSUFFICIENT_RESOURCES);
}

/// No code checks the memory between two passes over a plan.
#[test]
fn planning_many_subqueries_takes_memory_by_their_number() {
    let peak = |count| {
        let subqueries: Vec<String> = (0..count).map(|n| format!("(select null::int + {n})")).collect();
        let text = format!("select coalesce({})", subqueries.join(", "));
        allocation_counter::measure(|| drop(compile(&Request::plain(&text)).expect("compiles"))).bytes_max
    };
    // Plans nest as deep as their number of subqueries.
    let worker = std::thread::Builder::new().stack_size(16 << 20).spawn(move || (peak(1000), peak(4000)));
    let (few, many) = worker.expect("a thread").join().expect("no failure");
    assert!(many < 6 * few, "{few} and {many} bytes");
}

/// A pass that visits the whole plan for each of its nodes would show in the total of allocated
/// bytes.
#[test]
fn planning_many_subqueries_allocates_by_their_number() {
    let total = |before: &str, after: &str, count| {
        let subqueries: Vec<String> = (0..count).map(|n| format!("(select {n} - t.c) = 1")).collect();
        let text = format!("{before} where {}{after}", subqueries.join(" or "));
        allocation_counter::measure(|| drop(compile(&Request::plain(&text)).expect("compiles"))).bytes_total
    };
    let all = move || {
        for (before, after) in
            [("select 1 from t", ""), ("select 1 from t", " for update"), ("update t set c = 1", "")]
        {
            let (few, many) = (total(before, after, 500), total(before, after, 2000));
            assert!(many < 6 * few, "{before}{after}: {few} and {many} bytes");
        }
    };
    let worker = std::thread::Builder::new().stack_size(16 << 20).spawn(all);
    worker.expect("a thread").join().expect("no failure");
}

/// A fiber can evaluate each expression that the binder accepts. This stack is smaller than half of
/// a fiber's.
#[test]
fn deep_expressions_fit_a_fiber() {
    // Compilation runs on a worker's stack, which has the same size.
    let worker = std::thread::Builder::new().stack_size(16 << 20).spawn(try_deep_expressions);
    worker.expect("a thread").join().expect("no failure");
}

fn try_deep_expressions() {
    try_deep_expression(&format!("select $1::int4 {}", "+ 1 ".repeat(990)), 991);
    let (open, close) = ("case ".repeat(990), " when 1 then 2 when 2 then 1 end".repeat(990));
    try_deep_expression(&format!("select {open}$1::int4{close}"), 1);
    let (open, close) = ("case row(".repeat(490), ", 1) < row(2, 1) when true then 1 else 2 end".repeat(490));
    try_deep_expression(&format!("select {open}$1::int4{close}"), 1);
    let (open, close) = ("(".repeat(990), " between symmetric true and false)".repeat(990));
    try_deep_expression(&format!("select ({open}($1::int4 = 1){close})::int4"), 1);
    let deeper = compile(&Request::plain(&format!("select $1::int4 {}", "+ 1 ".repeat(1500))));
    assert_eq!(deeper.expect_err("too deep").code, values::SqlState::STATEMENT_TOO_COMPLEX);
    let chain = compile(&Request::plain(&format!("select 1 {}", "except select 1 ".repeat(200))));
    chain.expect("a chain nests no deeper than its parts");
    let nested = format!("{}select 1{}", "select 1 except (".repeat(200), ")".repeat(200));
    let nested = compile(&Request::plain(&nested));
    assert_eq!(nested.expect_err("too deep").code, values::SqlState::STATEMENT_TOO_COMPLEX);
}

/// Evaluates the only target of a query, whose parameter is 1.
fn try_deep_expression(text: &str, value: i32) {
    let compiled = compile(&Request::plain(text)).expect("deep");
    let crate::plan::Body::Query { root, .. } = &compiled.statement.body else { panic!("a query") };
    let crate::plan::Operator::Project { expressions, .. } = &root.operator else { panic!("a projection") };
    let expr = &expressions[0].0;
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(1 << 20);
        let done = small.spawn_scoped(scope, || {
            let (arena, session) = (bumpalo::Bump::new(), NoSession(values::types::Settings::default()));
            let params = [values::types::Datum::Int4(1)];
            let mut context = expressions::context::EvalContext::new(&[], &params, &arena, &session);
            matches!(expr.eval(&mut context), Ok(values::types::Datum::Int4(found)) if found == value)
        });
        assert!(done.expect("a thread").join().expect("no overflow"));
    });
}
