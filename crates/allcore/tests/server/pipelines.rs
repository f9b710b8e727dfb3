//! Portals and pipelines of the extended protocol: the answers to each Execute, and the statements
//! that a pipeline takes. The expected answers are PostgreSQL's.

use crate::common::Server;
use crate::common::messages::{Raw, message, summary};

/// Parse, Bind and Execute of a statement in a portal.
fn execute(raw: &mut Raw, portal: &str, sql: &str, limit: u32) {
    raw.send(&message(b'P', format!("\0{sql}\0\0\0").as_bytes()));
    raw.send(&message(b'B', format!("{portal}\0\0\0\0\0\0\0\0").as_bytes()));
    go_on(raw, portal, limit);
}

fn go_on(raw: &mut Raw, portal: &str, limit: u32) {
    raw.send(&message(b'E', &[portal.as_bytes(), b"\0", &limit.to_be_bytes()].concat()));
}

fn round(raw: &mut Raw) -> Vec<String> {
    raw.send(&message(b'S', b""));
    summary(&raw.until(b'Z'))
}

/// A statement that changes rows ends at its first Execute; its rows come in portions.
#[test]
fn returned_rows_come_in_portions() {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key, v int)");
    let mut raw = Raw::log_in(&server);
    execute(&mut raw, "", "insert into t select n, 0 from generate_series(1, 5) n returning id", 2);
    raw.send(&message(b'H', b""));
    go_on(&mut raw, "", 2);
    go_on(&mut raw, "", 2);
    assert_eq!(
        round(&mut raw),
        ["1", "2", "D 1", "D 2", "s", "D 3", "D 4", "s", "D 5", "C INSERT 0 1", "Z I"]
    );
    execute(&mut raw, "", "update t set v = v + 1 where id < 3 returning id", 2);
    go_on(&mut raw, "", 0);
    assert_eq!(round(&mut raw), ["1", "2", "D 1", "D 2", "s", "C UPDATE 0", "Z I"]);
    // All is changed although nobody asked for the rest.
    execute(&mut raw, "", "delete from t where id > 3 returning id", 1);
    assert_eq!(round(&mut raw), ["1", "2", "D 4", "s", "Z I"]);
    execute(&mut raw, "", "update t set v = v + 1", 1);
    assert_eq!(round(&mut raw), ["1", "2", "C UPDATE 3", "Z I"]);
    assert_eq!(server.psql("select string_agg(id || ':' || v, ' ' order by id) from t"), "1:2 2:2 3:1");
}

/// Portals that have run to their end are run again. One that returns rows has no more of them. Any
/// other is refused, and so is one that the transaction's end has closed.
#[test]
fn portals_that_have_run_give_nothing_more() {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key)");
    let mut raw = Raw::log_in(&server);
    let mut twice = |texts: &[&str]| {
        texts.iter().for_each(|text| execute(&mut raw, "", text, 0));
        go_on(&mut raw, "", 0);
        let mut told = round(&mut raw);
        told.retain(|message| message != "1" && message != "2" && !message.starts_with("D "));
        told
    };
    for (text, first, again) in [
        ("select 1", "C SELECT 1", "C SELECT 0"),
        ("show work_mem", "C SHOW", "C SHOW"),
        ("explain (costs off) select 1", "C EXPLAIN", "C EXPLAIN"),
        ("insert into t values (1) returning id", "C INSERT 0 1", "C INSERT 0 0"),
        ("insert into t values (2)", "C INSERT 0 1", "E C55000"),
        ("update t set id = id", "C UPDATE 1", "E C55000"),
        ("set work_mem = '1MB'", "C SET", "E C55000"),
        ("create table u (id int)", "C CREATE TABLE", "E C55000"),
        ("begin", "C BEGIN", "E C55000"),
    ] {
        let ended = if text == "begin" { "Z E" } else { "Z I" };
        assert_eq!(twice(&[text]), [first, again, ended], "{text}");
    }
    assert_eq!(twice(&["rollback"]), ["C ROLLBACK", "E C34000", "Z I"]);
    // The refusal has rolled everything back.
    assert_eq!(server.psql("select string_agg(id::text, ' ') from t"), "1");
    assert_eq!(twice(&["prepare p as select 1", "execute p"])[1..], ["C SELECT 1", "C SELECT 0", "Z I"]);
    assert_eq!(twice(&["begin", "commit"])[1..], ["C COMMIT", "E C34000", "Z I"]);
    assert_eq!(
        twice(&["begin", "declare c cursor for select generate_series(1, 5)", "fetch 2 from c"])[2..],
        ["C FETCH 2", "C FETCH 0", "Z T"]
    );
    assert_eq!(twice(&["move 1 in c"]), ["C MOVE 1", "E C55000", "Z E"]);
}

/// A command keeps the parameters that Parse declared, used or not; a query in it may use them.
#[test]
fn commands_of_a_pipeline_have_parameters() {
    let server = Server::start(&[]);
    let mut raw = Raw::log_in(&server);
    let mut bound = |text: &str, types: &[u32], values: &[&str]| {
        let mut parse = format!("\0{text}\0").into_bytes();
        parse.extend((types.len() as u16).to_be_bytes());
        types.iter().for_each(|oid| parse.extend(oid.to_be_bytes()));
        raw.send(&message(b'P', &parse));
        raw.send(&message(b'D', b"S\0"));
        let mut bind = b"\0\0\0\0".to_vec();
        bind.extend((values.len() as u16).to_be_bytes());
        for value in values {
            bind.extend((value.len() as u32).to_be_bytes());
            bind.extend(value.as_bytes());
        }
        bind.extend(b"\0\0");
        raw.send(&message(b'B', &bind));
        go_on(&mut raw, "", 0);
        round(&mut raw)
    };
    assert_eq!(bound("begin", &[23, 25], &["1", "x"]), ["1", "t", "n", "2", "C BEGIN", "Z T"]);
    assert_eq!(bound("commit", &[23], &["1", "2"])[3..], ["E C08P01", "Z E"]);
    assert_eq!(bound("rollback", &[23], &["1"]), ["1", "t", "n", "2", "C ROLLBACK", "Z I"]);
    assert_eq!(bound("begin", &[23, 0], &["1", "x"]), ["E C42P18", "Z I"]);
    assert_eq!(
        bound("explain (costs off) select $1::int", &[], &["1"])[4..],
        ["D Result", "C EXPLAIN", "Z I"]
    );
    assert_eq!(
        bound("create table made as select $1::int as a, $2 as b", &[0, 25], &["7", "z"])[4..],
        ["C SELECT 1", "Z I"]
    );
    assert_eq!(server.psql("select a || b from made"), "7z");
    assert_eq!(bound("begin", &[], &[])[4..], ["C BEGIN", "Z T"]);
    assert_eq!(bound("declare c cursor for select $1::int", &[], &["7"])[4..], ["C DECLARE CURSOR", "Z T"]);
    assert_eq!(bound("fetch all from c", &[], &[])[4..], ["D 7", "C FETCH 1", "Z T"]);
}

/// A portal of the extended protocol is a cursor: FETCH gives its rows, executed before or not.
#[test]
fn portals_are_fetched_from() {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key); insert into t select generate_series(1, 6)");
    let mut raw = Raw::log_in(&server);
    raw.query("begin");
    execute(&mut raw, "fresh", "select id from t order by id", 1);
    assert_eq!(round(&mut raw), ["1", "2", "D 1", "s", "Z T"]);
    assert_eq!(summary(&raw.query("fetch 2 from fresh")), ["T", "D 2", "D 3", "C FETCH 2", "Z T"]);
    go_on(&mut raw, "fresh", 2);
    assert_eq!(round(&mut raw), ["D 4", "D 5", "s", "Z T"]);
    assert_eq!(summary(&raw.query("fetch all from fresh")), ["T", "D 6", "C FETCH 1", "Z T"]);
    raw.send(&message(b'P', b"\0select id from t where id > $1 order by id\0\0\0"));
    raw.send(&message(b'B', b"bound\0\0\0\0\0\x01\0\0\0\x014\0\0"));
    assert_eq!(round(&mut raw), ["1", "2", "Z T"]);
    assert_eq!(summary(&raw.query("move 1 in bound")), ["C MOVE 1", "Z T"]);
    assert_eq!(summary(&raw.query("fetch 5 from bound")), ["T", "D 6", "C FETCH 1", "Z T"]);
    raw.send(&message(b'P', b"\0delete from t where id = 1\0\0\0"));
    raw.send(&message(b'B', b"changes\0\0\0\0\0\0\0\0"));
    assert_eq!(round(&mut raw), ["1", "2", "Z T"]);
    assert_eq!(summary(&raw.query("fetch 1 from changes")), ["E CXX000", "Z E"]);
    raw.query("rollback");
    assert_eq!(summary(&raw.query("fetch 1 from fresh")), ["E C34000", "Z I"]);
}

/// After the first Execute, a pipeline is an implicit transaction block. It refuses statements that
/// must stand alone, and statements that need a block work. A statement before it that must stand
/// alone is committed when it has run.
#[test]
fn a_pipeline_is_a_transaction_block_behind_its_first_statement() {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key)");
    let mut raw = Raw::log_in(&server);
    let mut pipeline = |texts: &[&str]| {
        texts.iter().for_each(|text| execute(&mut raw, "", text, 0));
        let mut told = round(&mut raw);
        told.retain(|message| message != "1" && message != "2");
        told
    };
    for command in [
        "vacuum t",
        "create database other",
        "drop database other",
        "create index concurrently on t (id)",
        "reindex table concurrently t",
        "discard all",
    ] {
        assert_eq!(pipeline(&["insert into t values (1)", command]), ["C INSERT 0 1", "E C25001", "Z I"]);
        assert_eq!(pipeline(&["show work_mem", command])[1..], ["C SHOW", "E C25001", "Z I"]);
    }
    assert_eq!(pipeline(&["select 1", "savepoint a"]), ["D 1", "C SELECT 1", "E C25P01", "Z I"]);
    assert_eq!(pipeline(&["select 1", "lock table t"]), ["D 1", "C SELECT 1", "C LOCK TABLE", "Z I"]);
    assert_eq!(pipeline(&["lock table t", "select 1"]), ["E C25P01", "Z I"]);
    assert_eq!(
        pipeline(&["select 1", "declare c cursor for select 2", "fetch 1 from c"]),
        ["D 1", "C SELECT 1", "C DECLARE CURSOR", "D 2", "C FETCH 1", "Z I"]
    );
    // The end of a block ends the pipeline's transaction, too.
    assert_eq!(pipeline(&["begin", "commit", "vacuum t"]), ["C BEGIN", "C COMMIT", "C VACUUM", "Z I"]);
    assert_eq!(
        pipeline(&["create database other", "create index concurrently i on t (id)", "select 1 / 0"]),
        ["C CREATE DATABASE", "C CREATE INDEX", "E C22012", "Z I"]
    );
    assert_eq!(server.psql("select count(*) from pg_database where datname = 'other'"), "1");
    assert_eq!(server.psql("select count(*) from pg_class where relname = 'i'"), "1");
    assert_eq!(server.psql("select count(*) from t"), "0");
}

/// Clients follow some settings; they get the former value when a change is rolled back.
#[test]
fn a_client_learns_of_settings_taken_back() {
    let server = Server::start(&[]);
    let mut raw = Raw::log_in(&server);
    raw.query("begin");
    assert_eq!(summary(&raw.query("set datestyle = sql, dmy")), ["C SET", "S DateStyle SQL, DMY", "Z T"]);
    assert_eq!(summary(&raw.query("savepoint one")), ["C SAVEPOINT", "Z T"]);
    assert_eq!(
        summary(&raw.query("set timezone = 'Europe/Rome'")),
        ["C SET", "S TimeZone Europe/Rome", "Z T"]
    );
    assert_eq!(summary(&raw.query("rollback to one")), ["C ROLLBACK", "S TimeZone UTC", "Z T"]);
    // Set and taken back in one go: nothing to tell.
    assert_eq!(
        summary(&raw.query("set application_name = 'a'; rollback to one")),
        ["C SET", "C ROLLBACK", "Z T"]
    );
    assert_eq!(summary(&raw.query("selec")), ["E C42601", "Z E"]);
    assert_eq!(summary(&raw.query("rollback")), ["C ROLLBACK", "S DateStyle ISO, MDY", "Z I"]);
    raw.query("begin; set datestyle = german");
    assert_eq!(summary(&raw.query("selec")), ["E C42601", "S DateStyle ISO, MDY", "Z E"]);
    raw.query("rollback");
    // One that fails after it in the same round takes it back too.
    execute(&mut raw, "", "set application_name = 'b'", 0);
    raw.send(&message(b'P', b"\0selec\0\0\0"));
    assert_eq!(round(&mut raw), ["1", "2", "C SET", "E C42601", "Z I"]);
    assert_eq!(summary(&raw.query("show application_name"))[1], "D ");
}
