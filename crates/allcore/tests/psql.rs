//! psql scripts: what its backslash commands show, COPY both ways, errors with their position, cancelling.
#![allow(missing_docs)]

mod common;

use common::{Server, text};
use std::process::Stdio;

fn shows(server: &Server, script: &str) -> String {
    let mut command = server.client("psql");
    command.args(["-X", "-q", "-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), script.as_bytes()).unwrap();
    drop(child.stdin.take());
    text(&child.wait_with_output().unwrap())
}

#[test]
fn backslash_commands_describe_what_is_there() {
    let server = Server::start(&[]);
    server.psql(
        "create table customers (id serial primary key, name varchar(40) not null, since date default current_date);
         create unique index customers_name on customers (name);
         create table orders (id bigint primary key, customer int references customers (id), total numeric(10, 2));
         create index on orders (customer);",
    );
    let databases = shows(&server, "\\l\n");
    assert!(
        databases.contains("postgres") && databases.contains("template1") && !databases.contains("ERROR"),
        "{databases}"
    );
    let tables = shows(&server, "\\dt\n");
    assert!(
        tables.contains("public | customers | table | postgres") && tables.contains("(2 rows)"),
        "{tables}"
    );
    let all = shows(&server, "\\d\n");
    assert!(all.contains("customers_id_seq | sequence") && all.contains("(3 rows)"), "{all}");
    let one = shows(&server, "\\d customers\n");
    for line in [
        "id     | integer               |           | not null | nextval('customers_id_seq'::regclass)",
        "name   | character varying(40) |           | not null |",
        "since  | date                  |           |          | CURRENT_DATE",
        "\"customers_pkey\" PRIMARY KEY, btree (id)",
        "\"customers_name\" UNIQUE, btree (name)",
        "TABLE \"orders\" CONSTRAINT \"orders_customer_fkey\" FOREIGN KEY (customer) REFERENCES customers(id)",
    ] {
        assert!(one.contains(line), "no line {line:?} in:\n{one}");
    }
    let two = shows(&server, "\\d orders\n");
    for line in
        ["total    | numeric(10,2) |", "\"orders_customer_idx\" btree (customer)", "Foreign-key constraints:"]
    {
        assert!(two.contains(line), "no line {line:?} in:\n{two}");
    }
    assert!(
        shows(&server, "\\set QUIET off\n\\d nothing\n")
            .contains("Did not find any relation named \"nothing\".")
    );
    for sized in ["\\d+\n", "\\dt+\n", "\\di+\n", "\\ds+\n", "\\l+\n"] {
        let said = shows(&server, sized);
        assert!(said.contains("bytes |") || said.contains("kB |"), "{sized}{said}");
    }
    server.psql("insert into orders select n, null, n from generate_series(1, 20000) n");
    for holds in [
        "pg_relation_size('orders') > 400000",
        "pg_indexes_size('orders') > 200000",
        "pg_relation_size('orders', 'fsm') = 0",
        "pg_total_relation_size('orders') = pg_table_size('orders') + pg_indexes_size('orders')",
        "pg_relation_size('orders_customer_idx') = pg_indexes_size('orders')",
        "pg_relation_size(1::oid) is null",
        "pg_database_size('postgres') > pg_total_relation_size('orders')",
    ] {
        let said = shows(&server, &format!("select {holds} as holds;\n"));
        assert!(said.contains("t\n") && said.contains("holds"), "{holds}: {said}");
    }
    for quiet in ["\\di\n", "\\ds\n", "\\dn\n", "\\du\n", "\\d+ customers\n", "\\df\n", "\\dv\n"] {
        let said = shows(&server, quiet);
        assert!(!said.contains("ERROR"), "{quiet}{said}");
    }
}

#[test]
fn copy_in_and_out() {
    let server = Server::start(&[]);
    let said = shows(
        &server,
        "create table t (id int primary key, note text, amount numeric);
copy t from stdin;
1\tone\\ttab\t1.50
2\t\\N\t-3
\\.
copy t from stdin with (format csv, header);
id,note,amount
3,\"a \"\"quoted\"\" one\",0.1
4,,
\\.
copy t to stdout;
copy (select id, note from t where id > 2 order by id) to stdout with (format csv, header, null 'none');
",
    );
    let expected = "1\tone\\ttab\t1.50\n2\t\\N\t-3\n3\ta \"quoted\" one\t0.1\n4\t\\N\t\\N\n\
                    id,note\n3,\"a \"\"quoted\"\" one\"\n4,none\n";
    assert_eq!(said, expected);
    let said = shows(&server, "copy t from stdin;\n5\tfive\t5\nsix\tsix\t6\n\\.\nselect count(*) from t;\n");
    assert!(said.contains("invalid input syntax for type integer: \"six\""), "{said}");
    assert!(said.contains("COPY t, line 2, column id: \"six\""), "{said}");
    assert!(said.contains("     4\n"), "a failed COPY leaves nothing: {said}");
    let folder = server.folder.path().display();
    let said = shows(
        &server,
        &format!(
            "\\copy t to '{folder}/t.bin' binary\ncreate table u (id int primary key, note text, amount numeric);\n\\copy u from '{folder}/t.bin' binary\nselect count(*), sum(amount) from u;\n"
        ),
    );
    assert!(said.contains("4 | -1.40"), "{said}");
}

#[test]
fn errors_show_code_and_position() {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key, v int not null)");
    let said = |sql: &str| shows(&server, &format!("\\set VERBOSITY verbose\n{sql};\n"));
    for (sql, code, pointed) in [
        ("select * form t", "42601", "form"),
        ("select nothing from t", "42703", "nothing"),
        ("select * from nowhere", "42P01", "nowhere"),
        ("select id + 'x' from t", "22P02", "'x'"),
        ("insert into t values (1)", "23502", ""),
        ("select 1/0", "22012", ""),
        ("create table t (id int)", "42P07", ""),
        ("create materialized view m as select 1", "0A000", "m as"),
        ("select v from t group by rollup (v)", "0A000", ""),
    ] {
        let answer = said(sql);
        assert!(answer.contains(&format!("ERROR:  {code}")), "{sql}: {answer}");
        if !pointed.is_empty() {
            let marked = answer.lines().skip_while(|line| !line.starts_with("LINE 1:")).nth(1);
            let column = marked.map(|line| line.find('^').unwrap_or(0));
            let expected = format!("LINE 1: {sql}").find(&format!(" {pointed}")).map(|at| at + 1);
            assert_eq!(column, expected, "{sql}: {answer}");
        }
    }
    assert!(said("insert into t values (1, 1), (1, 2)").contains("23505"));
    assert_eq!(server.psql("select count(*) from t"), "0");
}

#[test]
fn transactions_from_a_script() {
    let server = Server::start(&[]);
    let said = shows(
        &server,
        "create table t (id int primary key);
begin;
insert into t values (1);
savepoint a;
insert into t values (1);
rollback to a;
insert into t values (2);
release a;
commit;
begin;
create table gone (id int);
insert into gone values (1);
drop table t;
rollback;
select string_agg(id::text, ',' order by id) from t;
select * from gone;
",
    );
    assert!(said.contains("duplicate key value violates unique constraint \"t_pkey\""), "{said}");
    assert!(said.contains("DETAIL:  Key (id)=(1) already exists."), "{said}");
    assert!(said.contains(" 1,2\n"), "{said}");
    assert!(said.contains("relation \"gone\" does not exist"), "{said}");
}
