//! Roles: the users that sessions log in as, and the roles that they take.

use crate::common::Server;
use postgres::{Client, Config, NoTls};

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
