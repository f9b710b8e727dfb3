//! Schemas dropped beside sessions that create in them: the later session waits, and no object is
//! left in a schema that is gone.

use crate::common::{Folder, close_sound, ended, fails, rows, run, waits};
use sql::database::Database;
use sql::embedded::EmbeddedSession;

fn session(database: &Database, core: usize) -> EmbeddedSession {
    database.session("postgres", core).expect("a session")
}

/// Statements that create an object in the schema s, and the object's name.
const CREATIONS: [(&str, &str); 6] = [
    ("CREATE TABLE s.t (id serial PRIMARY KEY)", "t"),
    ("CREATE TABLE s.t AS SELECT 1 AS n", "t"),
    ("SET search_path TO s; CREATE TABLE t (n int UNIQUE)", "t"),
    ("CREATE SEQUENCE s.q", "q"),
    ("ALTER TABLE public.moved SET SCHEMA s", "moved"),
    ("ALTER TABLE public.counter SET SCHEMA s", "counter"),
];

/// Objects whose schema does not exist.
const LOST: &str = "SELECT count(*) FROM pg_class WHERE relnamespace NOT IN (SELECT oid FROM pg_namespace)";

fn set_up(database: &Database) -> EmbeddedSession {
    let mut s = session(database, 0);
    run(&mut s, "DROP SCHEMA IF EXISTS s CASCADE; DROP TABLE IF EXISTS public.moved");
    run(&mut s, "DROP SEQUENCE IF EXISTS public.counter");
    run(
        &mut s,
        "CREATE SCHEMA s; CREATE TABLE public.moved (n int PRIMARY KEY); CREATE SEQUENCE public.counter",
    );
    s
}

#[test]
fn a_schema_is_dropped_after_what_is_being_put_into_it() {
    let folder = Folder::new("schemas-dropped");
    let database = folder.open();
    for (creation, name) in CREATIONS {
        for (end, drop, expected) in [
            ("COMMIT", "DROP SCHEMA s", "2BP01"),
            ("COMMIT", "DROP SCHEMA s CASCADE", "00000"),
            ("ROLLBACK", "DROP SCHEMA s", "00000"),
        ] {
            let mut s = set_up(&database);
            run(&mut s, &format!("BEGIN; {creation}"));
            let dropped = waits(&database, drop);
            run(&mut s, end);
            assert_eq!(ended(dropped), expected, "{creation}; {end}; {drop}");
            assert_eq!(rows(&mut s, LOST), ["0"], "{creation}; {end}; {drop}");
            let there = format!("SELECT count(*) FROM pg_class WHERE relname = '{name}'");
            let moved = end == "ROLLBACK" && creation.starts_with("ALTER");
            let kept = usize::from(expected == "2BP01" || moved);
            assert_eq!(rows(&mut s, &there), [kept.to_string()], "{creation}; {end}; {drop}");
        }
    }
    close_sound(&folder, database);
}

#[test]
fn nothing_is_put_into_a_schema_that_is_being_dropped() {
    let folder = Folder::new("schemas-gone");
    let database = folder.open();
    for (creation, _) in CREATIONS {
        // The search path may have no schema left to create in, which is the same error.
        for (end, expected) in [("COMMIT", "3F000"), ("ROLLBACK", "00000")] {
            let mut s = set_up(&database);
            run(&mut s, "BEGIN; DROP SCHEMA s");
            let created = waits(&database, creation);
            run(&mut s, end);
            assert_eq!(ended(created), expected, "DROP SCHEMA s; {end}; {creation}");
            assert_eq!(rows(&mut s, LOST), ["0"], "DROP SCHEMA s; {end}; {creation}");
        }
    }
    // A new schema of the same name is another one: the waiting statement creates there.
    let mut s = set_up(&database);
    run(&mut s, "BEGIN; DROP SCHEMA s; CREATE SCHEMA s");
    let created = waits(&database, "CREATE TABLE s.t (n int)");
    run(&mut s, "COMMIT");
    assert_eq!(ended(created), "00000");
    run(&mut s, "SELECT * FROM s.t; DROP SCHEMA s CASCADE");
    fails(&mut s, "SELECT * FROM s.t", "42P01");
    close_sound(&folder, database);
}

#[test]
fn an_object_moved_out_of_a_dropped_schema_stays() {
    let folder = Folder::new("schemas-moved");
    let database = folder.open();
    let mut s = set_up(&database);
    run(&mut s, "CREATE TABLE s.t (n int); CREATE SEQUENCE s.q; CREATE TABLE s.gone (n int)");
    run(&mut s, "BEGIN; ALTER TABLE s.t SET SCHEMA public; ALTER TABLE s.q SET SCHEMA public");
    let dropped = waits(&database, "DROP SCHEMA s CASCADE");
    run(&mut s, "COMMIT");
    assert_eq!(ended(dropped), "00000");
    assert_eq!(rows(&mut s, "SELECT count(*) FROM public.t"), ["0"]);
    assert_eq!(rows(&mut s, "SELECT nextval('public.q')"), ["1"]);
    fails(&mut s, "SELECT * FROM s.gone", "42P01");
    assert_eq!(rows(&mut s, LOST), ["0"]);
    close_sound(&folder, database);
}

#[test]
fn the_public_schema_can_be_dropped_and_made_again() {
    let folder = Folder::new("schemas-public");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (id serial PRIMARY KEY)");
    fails(&mut s, "DROP SCHEMA public", "2BP01");
    run(&mut s, "BEGIN; DROP SCHEMA public CASCADE; ROLLBACK; INSERT INTO t DEFAULT VALUES");
    run(&mut s, "DROP SCHEMA public CASCADE");
    fails(&mut s, "CREATE TABLE t (id int)", "3F000");
    fails(&mut s, "DROP SCHEMA public", "3F000");
    drop(s);
    database.shutdown().expect("closes");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    fails(&mut s, "CREATE TABLE t (id int)", "3F000");
    run(&mut s, "CREATE SCHEMA public; CREATE TABLE t (id serial PRIMARY KEY); INSERT INTO t DEFAULT VALUES");
    fails(&mut s, "CREATE SCHEMA public", "42P06");
    run(
        &mut s,
        "BEGIN; DROP SCHEMA public CASCADE; SAVEPOINT a; CREATE SCHEMA public; ROLLBACK TO a; ROLLBACK",
    );
    run(&mut s, "BEGIN; CREATE SCHEMA q; DROP SCHEMA q; COMMIT");
    for name in ["pg_catalog", "information_schema"] {
        fails(&mut s, &format!("DROP SCHEMA {name} CASCADE"), "2BP01");
    }
    drop(s);
    database.shutdown().expect("closes");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    assert_eq!(rows(&mut s, "SELECT * FROM public.t"), ["1"]);
    assert_eq!(
        rows(&mut s, "SELECT count(*), max(oid) > 16383 FROM pg_namespace WHERE nspname = 'public'"),
        ["1|t"]
    );
    drop(s);
    database.shutdown().expect("closes");
}

/// Names of the system's schemas lead to its own relations only, so an object of a user would be
/// lost there.
#[test]
fn the_systems_schemas_take_no_objects() {
    let folder = Folder::new("system-schemas");
    let database = folder.open();
    let mut s = database.session("postgres", 0).expect("a session");
    run(&mut s, "CREATE TABLE t (a int PRIMARY KEY, b serial); CREATE SEQUENCE q; INSERT INTO t VALUES (1)");
    for schema in ["pg_catalog", "information_schema"] {
        fails(&mut s, &format!("ALTER TABLE t SET SCHEMA {schema}"), "0A000");
        fails(&mut s, &format!("ALTER SEQUENCE q SET SCHEMA {schema}"), "0A000");
    }
    fails(&mut s, "CREATE TABLE information_schema.x (a int)", "0A000");
    fails(&mut s, "CREATE TABLE information_schema.x AS SELECT 1", "0A000");
    fails(&mut s, "CREATE SEQUENCE information_schema.x", "0A000");
    fails(&mut s, "CREATE TABLE pg_catalog.x (a int)", "42501");
    fails(&mut s, "CREATE SEQUENCE pg_catalog.x", "42501");
    run(&mut s, "SET search_path = information_schema, public");
    fails(&mut s, "CREATE TABLE x (a int)", "0A000");
    assert_eq!(rows(&mut s, "SELECT a FROM t"), ["1"]);
    drop(s);
    database.shutdown().expect("closes");
}

/// The errors are PostgreSQL 18's. It would drop a view of the system.
#[test]
fn a_drop_of_another_kind_names_the_right_one() {
    let folder = Folder::new("drop-kinds");
    let database = folder.open();
    let mut s = session(&database, 0);
    run(&mut s, "CREATE TABLE t (a int PRIMARY KEY); CREATE SEQUENCE q");
    for (statement, code, message, hint) in [
        ("DROP VIEW t", "42809", "\"t\" is not a view", "Use DROP TABLE to remove a table."),
        ("DROP VIEW q", "42809", "\"q\" is not a view", "Use DROP SEQUENCE to remove a sequence."),
        ("DROP VIEW pg_class", "42809", "\"pg_class\" is not a view", "Use DROP TABLE to remove a table."),
        ("DROP TABLE pg_roles", "42809", "\"pg_roles\" is not a table", "Use DROP VIEW to remove a view."),
        ("DROP INDEX pg_roles", "42809", "\"pg_roles\" is not an index", "Use DROP VIEW to remove a view."),
        (
            "DROP SEQUENCE pg_roles",
            "42809",
            "\"pg_roles\" is not a sequence",
            "Use DROP VIEW to remove a view.",
        ),
        ("DROP VIEW pg_roles", "42501", "permission denied: \"pg_roles\" is a system catalog", ""),
        (
            "DROP VIEW IF EXISTS information_schema.tables",
            "42501",
            "permission denied: \"tables\" is a system catalog",
            "",
        ),
        ("DROP TABLE pg_class", "42501", "permission denied: \"pg_class\" is a system catalog", ""),
        ("DROP VIEW nothing", "42P01", "view \"nothing\" does not exist", ""),
    ] {
        let error = fails(&mut s, statement, code);
        assert_eq!((&*error.message, error.hint.as_deref().unwrap_or("")), (message, hint), "{statement}");
    }
    drop(s);
    database.shutdown().expect("closes");
}
