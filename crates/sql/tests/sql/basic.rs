//! The essentials end to end: tables, keys, transactions, constraints, joins.

use crate::common::{Folder, fails, rows, run};
use sql::embedded::EmbeddedSession;
use values::types::Value;

#[test]
fn inserted_rows_are_selected() {
    let folder = Folder::new("rows");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    assert_eq!(rows(&mut s, "SELECT 1 + 1"), ["2"]);
    assert_eq!(run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, name text, n int)").tags, ["CREATE TABLE"]);
    assert_eq!(
        run(&mut s, "INSERT INTO t VALUES (1, 'one', 10), (2, 'two', 20), (3, NULL, 30)").tags,
        ["INSERT 0 3"]
    );
    assert_eq!(rows(&mut s, "SELECT * FROM t"), ["1|one|10", "2|two|20", "3|-|30"]);
    assert_eq!(rows(&mut s, "SELECT name FROM t WHERE id = 2"), ["two"]);
    assert_eq!(run(&mut s, "UPDATE t SET n = n + 1 WHERE id >= 2").tags, ["UPDATE 2"]);
    assert_eq!(rows(&mut s, "SELECT id, n FROM t ORDER BY n DESC LIMIT 2"), ["3|31", "2|21"]);
    assert_eq!(run(&mut s, "DELETE FROM t WHERE id = 1").tags, ["DELETE 1"]);
    assert_eq!(rows(&mut s, "SELECT count(*), sum(n), max(name) FROM t"), ["2|52|two"]);
    assert_eq!(rows(&mut s, "UPDATE t SET id = 9 WHERE id = 2 RETURNING id, name"), ["9|two"]);
    let answer = s.execute("SELECT name FROM t WHERE id = $1", &[Value::Int4(9)]).expect("executes");
    assert_eq!(crate::common::lines(&answer), ["two"]);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_violated_constraint_refuses_its_statement() {
    let folder = Folder::new("constraints");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE p (id int PRIMARY KEY, u text UNIQUE, n int NOT NULL CHECK (n > 0))");
    run(
        &mut s,
        "CREATE TABLE c (id serial PRIMARY KEY, p int REFERENCES p ON DELETE CASCADE, q int REFERENCES p)",
    );
    run(&mut s, "INSERT INTO p VALUES (1, 'a', 1), (2, 'b', 2), (3, NULL, 3), (4, NULL, 4)");
    let error = fails(&mut s, "INSERT INTO p VALUES (1, 'z', 1)", "23505");
    assert_eq!(error.message, "duplicate key value violates unique constraint \"p_pkey\"");
    assert_eq!(error.detail.as_deref(), Some("Key (id)=(1) already exists."));
    assert_eq!(error.constraint.as_deref(), Some("p_pkey"));
    let error = fails(&mut s, "INSERT INTO p VALUES (9, 'a', 1)", "23505");
    assert_eq!(error.detail.as_deref(), Some("Key (u)=(a) already exists."));
    let error = fails(&mut s, "INSERT INTO p (id) VALUES (9)", "23502");
    assert_eq!(error.detail.as_deref(), Some("Failing row contains (9, null, null)."));
    let error = fails(&mut s, "UPDATE p SET n = -1 WHERE id = 1", "23514");
    assert_eq!(error.message, "new row for relation \"p\" violates check constraint \"p_n_check\"");
    run(&mut s, "INSERT INTO c (p, q) VALUES (1, 2), (2, NULL)");
    assert_eq!(rows(&mut s, "SELECT * FROM c ORDER BY id"), ["1|1|2", "2|2|-"]);
    let error = fails(&mut s, "INSERT INTO c (p) VALUES (77)", "23503");
    assert_eq!(error.detail.as_deref(), Some("Key (p)=(77) is not present in table \"p\"."));
    let error = fails(&mut s, "DELETE FROM p WHERE id = 2", "23503");
    assert_eq!(
        error.message,
        "update or delete on table \"p\" violates foreign key constraint \"c_q_fkey\" on table \"c\""
    );
    run(&mut s, "DELETE FROM p WHERE id = 1");
    assert_eq!(rows(&mut s, "SELECT * FROM c ORDER BY id"), ["2|2|-"]);
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_savepoint_takes_back_only_what_came_after_it() {
    let folder = Folder::new("transactions");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    let mut other = database.session("postgres", 1).expect("a session");
    run(&mut s, "CREATE TABLE t (id int PRIMARY KEY, v int)");
    run(&mut s, "BEGIN; INSERT INTO t VALUES (1, 1)");
    assert_eq!(s.status(), b'T');
    assert!(rows(&mut other, "SELECT * FROM t").is_empty());
    run(&mut s, "SAVEPOINT a; INSERT INTO t VALUES (2, 2)");
    fails(&mut s, "INSERT INTO t VALUES (1, 1)", "23505");
    assert_eq!(s.status(), b'E');
    fails(&mut s, "SELECT 1", "25P02");
    run(&mut s, "ROLLBACK TO a");
    assert_eq!(s.status(), b'T');
    run(&mut s, "INSERT INTO t VALUES (3, 3); COMMIT");
    assert_eq!(rows(&mut other, "SELECT * FROM t"), ["1|1", "3|3"]);
    // A rollback takes DDL back.
    run(&mut s, "BEGIN; CREATE TABLE gone (a int); INSERT INTO gone VALUES (1); CREATE INDEX ON t (v)");
    assert_eq!(rows(&mut s, "SELECT * FROM gone"), ["1"]);
    run(&mut s, "ROLLBACK");
    fails(&mut s, "SELECT * FROM gone", "42P01");
    run(&mut s, "BEGIN; DROP TABLE t; ROLLBACK");
    assert_eq!(rows(&mut s, "SELECT count(*) FROM t"), ["2"]);
    let answer = run(&mut s, "COMMIT");
    assert_eq!(answer.notices[0].code.as_str(), "25P01");
    drop((s, other));
    database.shutdown().expect("closes");
}

#[test]
fn every_object_is_there_after_a_restart() {
    let folder = Folder::new("restart");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (id serial PRIMARY KEY, v text); CREATE INDEX t_v ON t (v)");
    run(&mut s, "CREATE TABLE h (a int)");
    run(&mut s, "INSERT INTO t (v) SELECT 'v' || g FROM generate_series(1, 500) g");
    run(&mut s, "INSERT INTO h VALUES (1), (2)");
    run(&mut s, "CREATE DATABASE second");
    // These options ask for properties that every database has.
    run(
        &mut s,
        "CREATE DATABASE third OWNER postgres TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' TABLESPACE DEFAULT \
         CONNECTION LIMIT -1 IS_TEMPLATE false ALLOW_CONNECTIONS true STRATEGY wal_log",
    );
    run(&mut s, "DROP DATABASE third");
    fails(&mut s, "DROP DATABASE template1", "42809");
    assert_eq!(rows(&mut s, "SELECT datname FROM pg_database WHERE datistemplate"), ["template1"]);
    drop(s);
    database.shutdown().expect("closes");
    drop(database);
    let database = folder.open();
    let mut s = database.session("postgres", 1).expect("a session");
    assert_eq!(rows(&mut s, "SELECT count(*), min(id), max(id) FROM t"), ["500|1|500"]);
    assert_eq!(rows(&mut s, "SELECT id FROM t WHERE v = 'v77'"), ["77"]);
    run(&mut s, "INSERT INTO h VALUES (3); INSERT INTO t (v) VALUES ('new')");
    assert_eq!(rows(&mut s, "SELECT a FROM h ORDER BY a"), ["1", "2", "3"]);
    let mut second = database.session("second", 0).expect("a session");
    fails(&mut second, "SELECT * FROM t", "42P01");
    drop((s, second));
    database.shutdown().expect("closes");
}

#[test]
fn joins_and_set_operations_return_the_expected_rows() {
    let folder = Folder::new("joins");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE a (x int, y text); CREATE TABLE b (x int PRIMARY KEY, z text)");
    run(&mut s, "INSERT INTO a VALUES (1, 'a1'), (2, 'a2'), (2, 'a3'), (NULL, 'a4')");
    run(&mut s, "INSERT INTO b VALUES (2, 'b2'), (3, 'b3')");
    assert_eq!(rows(&mut s, "SELECT y, z FROM a JOIN b USING (x) ORDER BY y"), ["a2|b2", "a3|b2"]);
    assert_eq!(
        rows(&mut s, "SELECT y, z FROM a LEFT JOIN b ON a.x = b.x ORDER BY y"),
        ["a1|-", "a2|b2", "a3|b2", "a4|-"]
    );
    assert_eq!(
        rows(&mut s, "SELECT y, z FROM a RIGHT JOIN b ON a.x = b.x ORDER BY y, z"),
        ["a2|b2", "a3|b2", "-|b3"]
    );
    assert_eq!(rows(&mut s, "SELECT count(*) FROM a FULL JOIN b ON a.x = b.x"), ["5"]);
    assert_eq!(rows(&mut s, "SELECT y FROM a WHERE x IN (SELECT x FROM b) ORDER BY y"), ["a2", "a3"]);
    assert_eq!(
        rows(&mut s, "SELECT y FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.x = a.x) ORDER BY y"),
        ["a1", "a4"]
    );
    assert_eq!(
        rows(&mut s, "SELECT y, (SELECT z FROM b WHERE b.x = a.x) FROM a ORDER BY y LIMIT 2"),
        ["a1|-", "a2|b2"]
    );
    assert_eq!(rows(&mut s, "SELECT x FROM a UNION SELECT x FROM b ORDER BY 1"), ["1", "2", "3", "-"]);
    assert_eq!(rows(&mut s, "SELECT x FROM a INTERSECT SELECT x FROM b"), ["2"]);
    assert_eq!(rows(&mut s, "SELECT x FROM a EXCEPT SELECT x FROM b ORDER BY 1"), ["1", "-"]);
    assert_eq!(
        rows(
            &mut s,
            "SELECT x, count(*), string_agg(y, ',' ORDER BY y DESC) FROM a GROUP BY x HAVING count(*) > 1"
        ),
        ["2|2|a3,a2"]
    );
    assert_eq!(rows(&mut s, "SELECT DISTINCT x FROM a ORDER BY x DESC NULLS LAST"), ["2", "1", "-"]);
    assert_eq!(
        rows(
            &mut s,
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT sum(i) FROM n"
        ),
        ["10"]
    );
    assert_eq!(
        rows(&mut s, "SELECT y, row_number() OVER (PARTITION BY x ORDER BY y) FROM a WHERE x = 2 ORDER BY y"),
        ["a2|1", "a3|2"]
    );
    drop(s);
    database.shutdown().expect("closes");
}

/// The table that the tests of lists search, with 43 rows of many types.
fn fill_lists(s: &mut EmbeddedSession) {
    run(
        s,
        "CREATE TABLE l (i int, b bigint, s smallint, n numeric, f float8, t text, c char(9), d date, ts timestamp)",
    );
    run(
        s,
        "INSERT INTO l SELECT g, g, g, g / 2.0, g / 2.0, 't' || g, 'c' || g, date '2020-01-01' + g, timestamp '2020-01-01' + g * interval '1 day'
         FROM generate_series(1, 40) g",
    );
    run(s, "INSERT INTO l (n, f, t) VALUES ('NaN', 'NaN', ''), (0.000, '-0', ' '), (NULL, NULL, NULL)");
}

#[test]
fn a_hashed_list_finds_what_a_search_finds() {
    let folder = Folder::new("lists");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    fill_lists(&mut s);
    let many = |item: &dyn Fn(u32) -> String| (5..20).map(item).collect::<Vec<_>>().join(", ");
    let lists = [
        ("i", many(&|n| n.to_string()), "2"),
        ("i", many(&|n| format!("{n}::bigint")), "3000000000"),
        ("b", many(&|n| n.to_string()), "2"),
        ("s", many(&|n| n.to_string()), "100000"),
        ("i + s", many(&|n| n.to_string()), "2"),
        ("i", many(&|n| format!("{n}.0")), "2.5"),
        ("i", many(&|n| format!("i + {n} - 7")), "2"),
        ("n", many(&|n| format!("{n}.00")), "'NaN'"),
        ("n", many(&|n| format!("{n}.500")), "0"),
        ("f", many(&|n| format!("{n}.5")), "'NaN'"),
        ("f", many(&|n| n.to_string()), "0"),
        ("t", many(&|n| format!("'t{n}'")), "''"),
        ("t", many(&|n| format!("'t{n} '")), "' '"),
        ("c", many(&|n| format!("'c{n}'")), "'c2   '"),
        ("c::text", many(&|n| format!("'c{n}'")), "'c2   '"),
        ("d", many(&|n| format!("'2020-01-{n}'")), "'infinity'"),
        ("ts", many(&|n| format!("'2020-01-{n}'")), "'infinity'"),
        ("d", many(&|n| format!("timestamp '2020-01-{n}'")), "'infinity'"),
    ];
    for (value, list, last) in &lists {
        for tail in [(*last).to_owned(), format!("{last}, NULL")] {
            for operator in ["IN", "NOT IN"] {
                let condition = format!("{value} {operator} ({list}, {tail})");
                let query = |condition: &str| {
                    format!("SELECT count(*), min(i), max(i), max(t) FROM l WHERE {condition}")
                };
                // Within another condition, the list is searched item by item.
                let searched = rows(&mut s, &query(&format!("({condition}) IS TRUE")));
                assert_eq!(rows(&mut s, &query(&condition)), searched, "{condition}");
                assert_eq!(
                    rows(&mut s, &query(&format!("{condition} AND i > 3"))),
                    rows(&mut s, &query(&format!("({condition}) IS TRUE AND i > 3"))),
                    "{condition}"
                );
            }
        }
    }
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn a_list_of_parameters_or_outer_columns_is_hashed_for_each_value() {
    let folder = Folder::new("list-parameters");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    fill_lists(&mut s);
    // Other values of the parameters make another hash table.
    let parameters = (1..=10).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ");
    for (operator, first, expected) in
        [("IN", 1, "10"), ("IN", 36, "5"), ("IN", 90, "0"), ("NOT IN", 36, "35"), ("NOT IN", 90, "40")]
    {
        let values: Vec<Value> = (first..first + 10).map(Value::Int4).collect();
        let query = format!("SELECT count(*) FROM l WHERE i {operator} ({parameters})");
        assert_eq!(
            crate::common::lines(&s.execute(&query, &values).expect("executes")),
            [expected],
            "{first}"
        );
    }
    // A list that reads an outer row differs for each of those rows.
    assert_eq!(
        rows(
            &mut s,
            "SELECT (SELECT count(*) FROM l WHERE i IN (o, o+1, o+2, o+3, o+4, o+5, o+6, o+7, o+8, o+9))
             FROM generate_series(0, 40, 20) o"
        ),
        ["9", "10", "1"]
    );
    drop(s);
    database.shutdown().expect("closes");
}

#[test]
fn constants_have_the_value_of_the_session_that_runs_them() {
    let folder = Folder::new("session-constants");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    // An expression, settings, and its text with the settings and without them.
    for (expression, settings, set, plain) in [
        (
            "extract(epoch FROM timestamp '2020-06-01' AT TIME ZONE 'IST')::text",
            "TimeZone = 'Asia/Kolkata'",
            "1590949800.000000",
            "1590962400.000000",
        ),
        (
            "(timestamptz '2020-06-01 00:00:00+00' AT TIME ZONE 'IST')::text",
            "TimeZone = 'Asia/Kolkata'",
            "2020-06-01 05:30:00",
            "2020-06-01 02:00:00",
        ),
        (
            "('{0.30000000000000004}'::float8[]::text[])[1]",
            "extra_float_digits = 0",
            "0.3",
            "0.30000000000000004",
        ),
        ("('{\"\\\\x615c\"}'::bytea[]::text[])[1]", "bytea_output = escape", "a\\\\", "\\x615c"),
        (
            "('{1 day 2 hours}'::interval[]::text[])[1]",
            "IntervalStyle = iso_8601",
            "P1DT2H",
            "1 day 02:00:00",
        ),
    ] {
        run(&mut s, &format!("CREATE TABLE d (n int, x text DEFAULT {expression})"));
        let name = settings.split(' ').next().unwrap_or_default();
        let query = format!("SELECT {expression}");
        for (change, expected) in [(format!("SET {settings}"), set), (format!("RESET {name}"), plain)] {
            run(&mut s, &change);
            assert_eq!(rows(&mut s, &query), [expected], "{query}");
            assert_eq!(crate::common::lines(&s.execute(&query, &[]).expect("executes")), [expected]);
            run(&mut s, "DELETE FROM d; INSERT INTO d DEFAULT VALUES");
            s.execute("INSERT INTO d VALUES ($1)", &[Value::Int4(1)]).expect("inserts");
            assert_eq!(rows(&mut s, "SELECT DISTINCT x FROM d"), [expected], "default {expression}");
        }
        run(&mut s, "DROP TABLE d");
    }
}
