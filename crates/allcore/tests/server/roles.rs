//! Roles: the users that sessions log in as, the roles that they take, and passwords in statements.

use crate::common::Server;
use postgres::{Client, Config, NoTls};
use std::time::{Duration, Instant};

const SECRET: &str = "s3cr3t";

/// A session of a user of this name.
pub fn session_of(server: &Server, user: &str) -> Client {
    let mut config = Config::new();
    config.host("127.0.0.1").port(server.port).user(user).dbname("postgres");
    config.connect(NoTls).unwrap()
}

/// The names that a session acts under.
fn names(client: &mut Client) -> String {
    let query =
        "select concat_ws(' ', current_user, session_user, current_setting('role'), current_schema())";
    client.query_one(query, &[]).unwrap().get(0)
}

#[test]
fn a_session_takes_the_roles_that_there_are() {
    let server = Server::start(&[]);
    server.psql("create schema postgres; create schema bob");
    let mut bob = session_of(&server, "bob");
    assert_eq!(names(&mut bob), "bob bob none bob");
    let steps = [
        ("set role postgres", "postgres bob postgres postgres"),
        ("reset all", "postgres bob postgres postgres"),
        ("reset role", "bob bob none bob"),
        ("set role bob", "bob bob bob bob"),
        ("set session authorization postgres", "postgres postgres none postgres"),
        ("set role bob", "bob postgres bob bob"),
        ("reset session authorization", "bob bob none bob"),
        ("begin; set role postgres; rollback", "bob bob none bob"),
        ("begin; set local role postgres; commit", "bob bob none bob"),
        ("begin; set local session authorization postgres", "postgres postgres none postgres"),
        ("commit", "bob bob none bob"),
        ("set role postgres; begin; set local session authorization bob", "bob bob none bob"),
        ("commit", "postgres bob postgres postgres"),
        ("select set_config('role', 'none', false)", "bob bob none bob"),
        ("set session authorization postgres", "postgres postgres none postgres"),
        ("discard all", "bob bob none bob"),
        ("set session authorization postgres; set session authorization default", "bob bob none bob"),
        ("set search_path = public, \"$user\"; set role postgres", "postgres bob postgres public"),
    ];
    for (statement, expected) in steps {
        bob.batch_execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        assert_eq!(names(&mut bob), expected, "{statement}");
    }
    for statement in ["set role alice", "set session authorization alice", "set role \"Postgres\""] {
        let error = bob.batch_execute(statement).unwrap_err();
        assert_eq!(error.code().unwrap().code(), "22023", "{statement}");
    }

    // Others see the user that logged in.
    bob.batch_execute("set session authorization postgres").unwrap();
    assert_eq!(
        server.psql("select string_agg(usename, ',' order by usename) from pg_stat_activity"),
        "bob,postgres"
    );
}

#[test]
fn the_log_has_no_password_of_a_role() {
    let server = Server::start(&[]);
    let mut client = session_of(&server, "bob");
    client.batch_execute("set log_min_duration_statement = 0").unwrap();
    let failing = [
        "alter role bob password 's3cr3t'",
        "create role carol login password 's3cr3t'",
        "create user \"c \"\"d\" with encrypted password E's3cr3t'",
        "alter user bob password s3cr3t",
        "alter role bob password 's3cr3t",
        "alter role bob password \"s3cr3t\"",
        "alter role bob pasword 's3cr3t'",
        "alter role bob s3cr3t",
        "altr role bob password 's3cr3t'",
        "altr role bob password s3cr3t",
        "select 1; alter role bob password 's3cr3t'; select 2",
        "prepare p as alter role bob password 's3cr3t'",
        "do $$ begin alter role bob password 's3cr3t'; end $$",
        "select 1/0 /* alter role bob password 's3cr3t' */",
    ];
    for statement in failing {
        client.batch_execute(statement).unwrap_err();
        // One of them fails only as it runs.
        drop(client.prepare(statement));
        // The password lies behind the part of the text that the activity table keeps.
        client.batch_execute(&format!("/* {} */ {statement}", "x".repeat(1100))).unwrap_err();
    }
    for running in ["select 1 /* alter role bob password 's3cr3t' */", "select 'password ''s3cr3t'''"] {
        client.batch_execute(running).unwrap();
        client.query(running, &[]).unwrap();
    }
    // As in PostgreSQL, `pg_stat_activity` shows the statement.
    let seen = "select query from pg_stat_activity where usename = 'bob'";
    assert!(server.psql(seen).contains(SECRET));

    client.batch_execute("select * from the_last_one").unwrap_err();
    let deadline = Instant::now() + Duration::from_secs(60);
    while !server.log().contains("the_last_one") {
        assert!(Instant::now() < deadline, "{}", server.log());
        std::thread::sleep(Duration::from_millis(20));
    }
    let log = server.log();
    let lines: Vec<_> = log.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(lines.is_empty(), "{lines:#?}");
    assert!(log.contains("alter role <not logged>"), "{log}");
    assert!(log.contains("syntax error at or near <not logged>"), "{log}");
    assert!(log.matches("<not logged>").count() > 2 * failing.len(), "{log}");
}
