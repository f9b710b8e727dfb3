//! Shapes of plans.

use super::Request;
use super::sample::compile;
use crate::exec::explain::explain;

fn shape(text: &str) -> String {
    match compile(&Request::plain(text)) {
        Ok(compiled) => explain(&compiled.statement, None, false).join("\n"),
        Err(error) => format!("ERROR {}: {} at {:?}", error.code, error.message, error.position),
    }
}

#[test]
fn print_shapes() {
    for text in [
        "SELECT abalance FROM pgbench_accounts WHERE aid = 42",
        "UPDATE pgbench_accounts SET abalance = abalance + -5 WHERE aid = 42",
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (1, 2, 3, 4, CURRENT_TIMESTAMP)",
        "select * from t where a = 5000000000",
        "select * from t where a = $1::bigint",
        "select * from u where id = 5 and name = 'x'",
        "select * from u where name = 'x'",
        "select * from u where t_a = 7 order by id",
        "select * from u order by id desc limit 10",
        "select * from u order by t_a limit 10",
        "select * from u order by name desc nulls first limit 10",
        "select * from t where a between 10 and 20 order by a desc",
        "select * from t where a > 10 and a <= $1",
        "select * from t where a in (1, 2, 3)",
        "select * from t where a = any($1)",
        "select * from t join u on u.t_a = t.a where t.a = 5",
        "select * from t join u on u.t_a = t.a where u.id = 5",
        "select * from t join u on u.t_a = t.a",
        "select * from t left join u on u.t_a = t.a where t.b = 'x'",
        "select * from t left join h on h.x = t.a",
        "select * from h full join t on h.x = t.a",
        "select * from t where a in (select x from h)",
        "select * from t where a = (select max(x) from h)",
        "select * from t where exists (select 1 from u where u.t_a = t.a)",
        "select count(*) from t",
        "select c, count(*) from t group by c having count(*) > 1 order by 2 desc limit 5",
        "select distinct c from t order by c",
        "select * from (select a, b from t) s where s.a = 5",
        "select * from (select a + 1 as x, b from t) s where s.x = 5",
        "select a from t union all select x from h order by 1",
        "with w as (select * from t where a < 5) select * from w join h on h.x = w.a",
        "with recursive w(n) as (select 1 union all select n + 1 from w where n < 5) select * from w",
        "select * from t for update",
        "select * from t where a = 1 for update skip locked limit 1",
        "delete from t using u where u.t_a = t.a and u.id = 4",
        "update t set b = u.name from u where u.t_a = t.a and u.id = 4 returning t.*",
        "insert into h select a, c from t where a < 5",
        "insert into t (a, b) values (1, 'x') on conflict (a) do update set b = excluded.b returning a",
        "select generate_series(1, 3)",
        "select * from generate_series(1, 3) g(x) join t on t.a = g.x",
        "select t.a, (select max(id) from u where u.t_a = t.a) from t where c = 3",
        "select row_number() over (partition by c order by a) from t",
        "values (1, 'a'), (2, 'b')",
        "select relname from pg_class where relname = 't'",
    ] {
        println!("{text}\n{}\n", shape(text));
    }
}

/// The queries psql's \\d commands and pgbench send.
#[test]
fn clients_queries_compile() {
    let mut failed = Vec::new();
    for text in include_str!("clients.sql").split(";\n").filter(|text| !text.trim().is_empty()) {
        if let Err(error) = compile(&Request::plain(text)) {
            failed.push(format!("{}: {} at {:?}\n{text}", error.code, error.message, error.position));
        }
    }
    assert!(failed.is_empty(), "{} failed:\n{}", failed.len(), failed.join("\n\n"));
}
