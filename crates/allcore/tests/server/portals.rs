//! Portals of commands that give rows: they stop at the row limit of Execute and go on, as
//! PostgreSQL's do.

use crate::common::Server;
use crate::common::raw::{Said, startup};

/// A client of the extended protocol, and what it is answered.
struct Portals(Said);

impl Portals {
    fn open(server: &Server) -> Self {
        let mut said = Said::connect(server.port);
        said.send(&startup("postgres", "postgres"));
        said.until(b'Z');
        Self(said)
    }

    /// Binds a portal of this name to a statement.
    fn bind(&mut self, portal: &str, statement: &str) -> &mut Self {
        self.0.message(b'P', format!("\0{statement}\0\0\0").as_bytes());
        self.0.message(b'B', format!("{portal}\0\0\0\0\0\0\0\0").as_bytes());
        self
    }

    /// Executes a portal with row limits, one after the other.
    fn execute(&mut self, portal: &str, limits: &[u32]) -> &mut Self {
        for limit in limits {
            self.0.message(b'E', &[portal.as_bytes(), b"\0", &limit.to_be_bytes()].concat());
        }
        self
    }

    /// The answers up to ReadyForQuery: the first value of each row, tags, `s` where a portal
    /// stops, errors.
    fn sync(&mut self) -> String {
        self.0.message(b'S', b"");
        self.answers()
    }

    fn query(&mut self, sql: &str) -> String {
        self.0.query(sql);
        self.answers()
    }

    fn answers(&mut self) -> String {
        let mut answers = Vec::new();
        loop {
            let (kind, body) = self.0.next().unwrap();
            match kind {
                b'D' => {
                    let length = i32::from_be_bytes(body[2..6].try_into().unwrap()) as usize;
                    answers.push(String::from_utf8(body[6..6 + length].to_vec()).unwrap());
                }
                b'C' => answers.push(format!("[{}]", String::from_utf8_lossy(&body[..body.len() - 1]))),
                b's' => answers.push("stops".to_owned()),
                b'E' => answers.push(Said::code(&[(kind, body)]).unwrap()),
                b'Z' => return answers.join(" "),
                _ => {}
            }
        }
    }
}

#[test]
fn commands_stop_at_the_row_limit() {
    let server = Server::start(&[]);
    server.psql("create table t (i int primary key); insert into t select generate_series(1, 5)");
    let mut at = Portals::open(&server);
    let show = "show work_mem";
    assert_eq!(at.bind("", show).execute("", &[1, 1, 1]).sync(), "4MB stops [SHOW] [SHOW]");
    assert_eq!(at.bind("", show).execute("", &[2, 1]).sync(), "4MB [SHOW] [SHOW]");
    assert_eq!(at.bind("", show).execute("", &[0, 0]).sync(), "4MB [SHOW] [SHOW]");
    // The portal goes with its transaction.
    for statement in [show, "select i from t"] {
        assert!(at.bind("", statement).execute("", &[1]).sync().ends_with(" stops"));
        assert_eq!(at.execute("", &[1]).sync(), "34000");
    }
    let said = at.bind("", "explain select * from t a join t b on a.i = b.i").execute("", &[1, 1, 0]).sync();
    let parts: Vec<&str> = said.split(" stops ").collect();
    assert_eq!(parts.len(), 3, "{said}");
    assert!(!parts[0].contains("->") && parts[2].contains("->") && said.ends_with(" [EXPLAIN]"), "{said}");
    at.query("begin");
    assert_eq!(at.bind("p", show).execute("p", &[1]).sync(), "4MB stops");
    assert_eq!(at.execute("p", &[1, 1]).sync(), "[SHOW] [SHOW]");
    // An error comes before any row.
    at.query("prepare bad as select 6 / (i - 3) from t order by i");
    assert_eq!(at.bind("p", "execute bad").execute("p", &[1]).sync(), "42P03");
    at.query("rollback; begin");
    assert_eq!(at.bind("p", "execute bad").execute("p", &[1]).sync(), "22012");
    at.query("rollback");
}

#[test]
fn fetch_and_execute_stop_at_the_row_limit() {
    let server = Server::start(&[]);
    server.psql("create table t (i int primary key); insert into t select generate_series(1, 5)");
    let mut at = Portals::open(&server);
    at.query("prepare q as select i from t order by i");
    at.query("begin; declare c cursor for select i from t order by i");
    assert_eq!(at.bind("f", "fetch 4 from c").execute("f", &[3]).sync(), "1 2 3 stops");
    assert_eq!(at.execute("f", &[3, 3]).sync(), "4 [FETCH 1] [FETCH 0]");
    assert_eq!(at.query("fetch 10 from c"), "5 [FETCH 1]");
    let said = at.bind("e", "execute q").execute("e", &[2, 2, 2, 2]).sync();
    assert_eq!(said, "1 2 stops 3 4 stops 5 [SELECT 1] [SELECT 0]");
    assert_eq!(at.bind("all", "execute q").execute("all", &[0, 0]).sync(), "1 2 3 4 5 [SELECT 5] [SELECT 0]");
    let said = at.bind("exact", "execute q").execute("exact", &[5, 5]).sync();
    assert_eq!(said, "1 2 3 4 5 stops [SELECT 0]");
    // A change runs to its end at once.
    at.query("prepare more as insert into t values (11), (12), (13) returning i");
    assert_eq!(at.bind("m", "execute more").execute("m", &[2]).sync(), "11 12 stops");
    assert_eq!(at.query("select count(*) from t"), "8 [SELECT 1]");
    assert_eq!(at.execute("m", &[2, 0]).sync(), "13 [INSERT 0 1] [INSERT 0 0]");
    at.query("prepare silent as update t set i = i + 100");
    assert_eq!(at.bind("s", "execute silent").execute("s", &[2]).sync(), "[UPDATE 8]");
    assert_eq!(at.execute("s", &[2]).sync(), "55000");
    // The rows of a portal stay when their source has gone.
    at.query("rollback; begin; declare c cursor for select i from t order by i");
    at.bind("f", "fetch 4 from c").execute("f", &[2]).sync();
    at.bind("e", "execute q").execute("e", &[2]).sync();
    at.query("close c; deallocate q");
    assert_eq!(at.execute("f", &[0]).execute("e", &[0]).sync(), "3 4 [FETCH 2] 3 4 5 [SELECT 3]");
    at.query("rollback");
}

#[test]
fn fetch_reads_from_a_portal_of_a_command() {
    let server = Server::start(&[]);
    let mut at = Portals::open(&server);
    at.query("begin");
    at.bind("p", "show work_mem").sync();
    assert_eq!(at.query("fetch all from p"), "4MB [FETCH 1]");
    assert_eq!(at.query("fetch all from p"), "[FETCH 0]");
    assert_eq!(at.execute("p", &[0]).sync(), "[SHOW]");
    at.query("rollback; begin");
    assert_eq!(at.bind("p", "show all").execute("p", &[1]).sync().split(' ').next_back(), Some("stops"));
    assert!(at.query("fetch 2 from p").ends_with(" [FETCH 2]"));
    at.bind("q", "show work_mem").sync();
    assert_eq!(at.query("move 1 from q"), "[MOVE 1]");
    assert_eq!(at.query("fetch backward 1 from q"), "55000");
    at.query("rollback; begin");
    at.bind("q", "savepoint x").sync();
    assert_eq!(at.query("fetch 1 from q"), "XX000");
    at.query("rollback");
}

#[test]
fn a_held_cursor_goes_with_the_rollback_of_its_pipeline() {
    let server = Server::start(&[]);
    let mut client = Portals::open(&server);
    assert_eq!(client.query("create table t (i int)"), "[CREATE TABLE]");
    client.bind("", "insert into t values (42)").execute("", &[0]);
    client.bind("", "declare h cursor with hold for select * from t").execute("", &[0]);
    client.bind("", "select 1 / (i - 42) from t").execute("", &[0]);
    assert_eq!(client.sync(), "[INSERT 0 1] [DECLARE CURSOR] 22012");
    assert_eq!(client.query("fetch all from h"), "34000");
    assert_eq!(client.query("select * from t"), "[SELECT 0]");
    // One of an earlier transaction stays.
    assert_eq!(client.query("declare k cursor with hold for select 7"), "[DECLARE CURSOR]");
    client.bind("", "select 1 / 0").execute("", &[0]);
    assert_eq!(client.sync(), "22012");
    assert_eq!(client.query("fetch all from k"), "7 [FETCH 1]");
}

#[test]
fn what_is_bound_and_not_executed_goes_at_sync() {
    let server = Server::start(&[]);
    let mut client = Portals::open(&server);
    for statement in ["show work_mem", "explain select 1", "commit", "select 1", "discard plans"] {
        assert_eq!(client.bind("p", statement).sync(), "");
        assert_eq!(client.execute("p", &[0]).sync(), "34000", "{statement}");
        assert_eq!(client.bind("", statement).sync(), "");
        assert_eq!(client.execute("", &[0]).sync(), "34000", "{statement}");
    }
    client.query("begin");
    assert_eq!(client.bind("p", "show work_mem").sync(), "");
    assert_eq!(client.execute("p", &[0]).sync(), "4MB [SHOW]");
    assert_eq!(client.query("rollback"), "[ROLLBACK]");
}

#[test]
fn a_portal_is_refused_where_postgresql_refuses_it() {
    let server = Server::start(&[]);
    server.psql("create table t (i int primary key); insert into t select generate_series(1, 5)");
    let mut at = Portals::open(&server);
    // The portal that runs the statement.
    for (statement, code) in [("fetch 1 from p", "55000"), ("move 1 from p", "55000"), ("close p", "24000")] {
        at.query("begin");
        assert_eq!(at.bind("p", statement).execute("p", &[0]).sync(), code, "{statement}");
        assert_eq!(at.execute("p", &[0]).sync(), "25P02", "{statement}");
        at.query("rollback");
    }
    at.query("begin");
    assert_eq!(at.bind("p", "close all").execute("p", &[0]).sync(), "[CLOSE CURSOR ALL]");
    assert_eq!(at.execute("p", &[0]).sync(), "55000");
    at.query("rollback");
    // Portals that have run.
    for statement in
        ["delete from t where i = 1", "copy t to stdout", "savepoint s", "create table u (i int)"]
    {
        for fetch in ["fetch 1 from p", "move 1 from p", "move all from p", "fetch backward 1 from p"] {
            at.query("begin");
            at.bind("p", statement).execute("p", &[0]).sync();
            assert_eq!(at.query(fetch), "55000", "{statement}: {fetch}");
            at.query("rollback");
            at.query("begin");
            at.bind("p", statement).sync();
            assert_eq!(at.query(fetch), "XX000", "{statement}: {fetch}");
            at.query("rollback");
        }
    }
    for statement in ["delete from t where i = 1 returning i", "select 1", "show work_mem"] {
        at.query("begin");
        at.bind("p", statement).execute("p", &[0]).sync();
        assert_eq!(at.query("fetch 1 from p"), "[FETCH 0]", "{statement}");
        assert_eq!(at.query("fetch backward 1 from p"), "55000", "{statement}");
        at.query("rollback");
    }
    // A failed block knows the portals there were.
    at.query("begin; declare k cursor for select 1");
    at.query("select 1 / 0");
    assert_eq!(at.execute("k", &[0]).sync(), "25P02");
    assert_eq!(at.execute("nosuch", &[0]).sync(), "34000");
    at.query("rollback; begin");
    assert_eq!(at.execute("k", &[0]).sync(), "34000");
    at.query("rollback");
}
