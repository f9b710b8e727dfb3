//! psql scripts, over TCP, TLS and a Unix socket: what its backslash commands show, COPY both ways,
//! errors with their position, transactions.
//!
//! Scripts that read or write at length run over each way; the many short ones take the ways in
//! turn.

use crate::common::{Server, certificate, text};
use std::cell::Cell;
use std::path::PathBuf;
use std::process::Stdio;
use tempfile::TempDir;

/// A way from the client to the server.
#[derive(Clone, Copy, Debug)]
enum Way {
    Tcp,
    Tls,
    Socket,
}

const WAYS: [Way; 3] = [Way::Tcp, Way::Tls, Way::Socket];

/// A server that can be reached by every way.
struct Served {
    server: Server,
    certificate: PathBuf,
    turn: Cell<usize>,
    /// Holds the certificate.
    _folder: TempDir,
}

impl Served {
    fn start() -> Served {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = certificate(folder.path());
        let arguments = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
        Served { server: Server::start(&arguments), certificate, turn: Cell::new(0), _folder: folder }
    }

    /// The output of psql for a script, by the next way.
    fn shows(&self, script: &str) -> String {
        let turn = self.turn.replace(self.turn.get() + 1);
        self.shows_over(WAYS[turn % WAYS.len()], script)
    }

    fn shows_over(&self, way: Way, script: &str) -> String {
        let mut command = match way {
            Way::Socket => self.server.socket_client("psql"),
            Way::Tcp | Way::Tls => self.server.client("psql"),
        };
        match way {
            Way::Tls => command.env("PGSSLMODE", "verify-ca").env("PGSSLROOTCERT", &self.certificate),
            Way::Tcp | Way::Socket => command.env("PGSSLMODE", "disable"),
        };
        command.args(["-X", "-q", "-f", "-"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(child.stdin.as_mut().unwrap(), script.as_bytes()).unwrap();
        drop(child.stdin.take());
        text(&child.wait_with_output().unwrap())
    }
}

#[test]
fn each_way_is_the_one_that_is_meant() {
    let served = Served::start();
    for way in WAYS {
        let said = served.shows_over(way, "\\conninfo\nselect 6 * 7 as answer;\n");
        assert!(said.contains("    42\n"), "{way:?}: {said}");
        let (tls, socket) =
            (said.contains("SSL connection (protocol: TLSv1.3"), said.contains("via socket in"));
        assert_eq!((tls, socket), (matches!(way, Way::Tls), matches!(way, Way::Socket)), "{said}");
    }
}

#[test]
fn backslash_commands_describe_what_is_there() {
    let served = Served::start();
    let server = &served.server;
    server.psql(
        "create table customers (id serial primary key, name varchar(40) not null, since date default current_date);
         create unique index customers_name on customers (name);
         create table orders (id bigint primary key, customer int references customers (id), total numeric(10, 2));
         create index on orders (customer);",
    );
    let databases = served.shows("\\l\n");
    assert!(
        databases.contains("postgres") && databases.contains("template1") && !databases.contains("ERROR"),
        "{databases}"
    );
    let tables = served.shows("\\dt\n");
    assert!(
        tables.contains("public | customers | table | postgres") && tables.contains("(2 rows)"),
        "{tables}"
    );
    let all = served.shows("\\d\n");
    assert!(all.contains("customers_id_seq | sequence") && all.contains("(3 rows)"), "{all}");
    let one = served.shows("\\d customers\n");
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
    let two = served.shows("\\d orders\n");
    for line in
        ["total    | numeric(10,2) |", "\"orders_customer_idx\" btree (customer)", "Foreign-key constraints:"]
    {
        assert!(two.contains(line), "no line {line:?} in:\n{two}");
    }
    assert!(
        served
            .shows("\\set QUIET off\n\\d nothing\n")
            .contains("Did not find any relation named \"nothing\".")
    );
    for sized in ["\\d+\n", "\\dt+\n", "\\di+\n", "\\ds+\n", "\\l+\n"] {
        let said = served.shows(sized);
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
        let said = served.shows(&format!("select {holds} as holds;\n"));
        assert!(said.contains("t\n") && said.contains("holds"), "{holds}: {said}");
    }
    for quiet in ["\\di\n", "\\ds\n", "\\dn\n", "\\du\n", "\\d+ customers\n", "\\df\n", "\\dv\n"] {
        let said = served.shows(quiet);
        assert!(!said.contains("ERROR"), "{quiet}{said}");
    }
}

#[test]
fn copy_in_and_out() {
    let served = Served::start();
    let server = &served.server;
    // A psql before 18 sends the `\.` that ends CSV in a script, and that is a line of data.
    let csv = server.folder.path().join("t.csv");
    std::fs::write(&csv, "id,note,amount\n3,\"a \"\"quoted\"\" one\",0.1\n4,,\n").unwrap();
    for way in WAYS {
        let said = served.shows_over(
            way,
            &format!(
                "create table t (id int primary key, note text, amount numeric);
copy t from stdin;
1\tone\\ttab\t1.50
2\t\\N\t-3
\\.
\\copy t from '{}' with (format csv, header)
copy t to stdout;
copy (select id, note from t where id > 2 order by id) to stdout with (format csv, header, null 'none');
",
                csv.display()
            ),
        );
        let expected = "1\tone\\ttab\t1.50\n2\t\\N\t-3\n3\ta \"quoted\" one\t0.1\n4\t\\N\t\\N\n\
                    id,note\n3,\"a \"\"quoted\"\" one\"\n4,none\n";
        assert_eq!(said, expected);
        let said = served
            .shows_over(way, "copy t from stdin;\n5\tfive\t5\nsix\tsix\t6\n\\.\nselect count(*) from t;\n");
        assert!(said.contains("invalid input syntax for type integer: \"six\""), "{said}");
        assert!(said.contains("COPY t, line 2, column id: \"six\""), "{said}");
        assert!(said.contains("     4\n"), "a failed COPY leaves nothing: {said}");
        let folder = server.folder.path().display();
        let said = served.shows_over(way, &format!(
            "\\copy t to '{folder}/t.bin' binary\ncreate table u (id int primary key, note text, amount numeric);\n\\copy u from '{folder}/t.bin' binary\nselect count(*), sum(amount) from u;\n"
        ),
    );
        assert!(said.contains("4 | -1.40"), "{said}");
        server.psql("drop table t, u");
    }
}

#[test]
fn errors_show_code_and_position() {
    let served = Served::start();
    let server = &served.server;
    server.psql("create table t (id int primary key, v int not null)");
    let said = |sql: &str| served.shows(&format!("\\set VERBOSITY verbose\n{sql};\n"));
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
    let served = Served::start();
    for way in WAYS {
        let said = served.shows_over(
            way,
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
        served.server.psql("drop table t");
    }
}
