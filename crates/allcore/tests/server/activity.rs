//! The views of other sessions and of the server: pg_stat_activity and pg_locks while sessions run,
//! wait and idle, and the read-only settings.

use crate::common::{Server, pid};
use crate::roles::session_of;
use std::time::{Duration, Instant};

/// Waits until a query's only value is as expected.
fn becomes(client: &mut postgres::Client, query: &str, expected: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let seen: Option<String> = client.query_one(query, &[]).unwrap().get(0);
        if seen.as_deref() == Some(expected) {
            return;
        }
        assert!(Instant::now() < deadline, "{query}\nis {seen:?}, not {expected}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A session's columns of pg_stat_activity, as text.
fn about(pid: i32) -> String {
    format!(
        "select concat_ws('|', state, coalesce(wait_event_type, '-'), coalesce(wait_event, '-'), query)
         from pg_stat_activity where pid = {pid}"
    )
}

#[test]
fn statements_and_waits_are_seen() {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key, v int); insert into t values (1, 10), (2, 20)");
    let (mut watcher, mut holder) = (server.connect(), server.connect());
    let (mut second, mut third) = (server.connect(), server.connect());
    let (own, held, waits, queues) = (pid(&mut watcher), pid(&mut holder), pid(&mut second), pid(&mut third));
    becomes(&mut watcher, &about(own), &format!("active|-|-|{}", about(own)));

    let change = "begin; update t set v = v + 1 where id = 1";
    holder.batch_execute(change).unwrap();
    becomes(&mut watcher, &about(held), &format!("idle in transaction|Client|ClientRead|{change}"));
    let second = std::thread::spawn(move || {
        second.execute("update t set v = v + 10 where id = $1", &[&1]).unwrap();
        second
    });
    let waiting = "active|Lock|transactionid|update t set v = v + 10 where id = $1";
    becomes(&mut watcher, &about(waits), waiting);
    let third = std::thread::spawn(move || {
        third.batch_execute("update t set v = v + 100 where id = 1").unwrap();
        third
    });
    becomes(&mut watcher, &about(queues), "active|Lock|tuple|update t set v = v + 100 where id = 1");

    let locks = format!(
        "select string_agg(concat_ws(' ', case pid when {held} then 'holder' when {waits} then 'second' else 'third' end,
             locktype, relation::regclass, mode, granted), ', '
             order by pid <> {held}, pid <> {waits}, locktype, mode, granted)
         from pg_locks where pid in ({held}, {waits}, {queues}) and coalesce(relation, 't'::regclass) = 't'::regclass"
    );
    let seen: String = watcher.query_one(&locks, &[]).unwrap().get(0);
    let expected = "holder relation t RowExclusiveLock t, holder transactionid ExclusiveLock t, \
        second relation t RowExclusiveLock t, second transactionid ExclusiveLock t, \
        second transactionid ShareLock f, second tuple t ExclusiveLock t, \
        third relation t RowExclusiveLock t, third transactionid ExclusiveLock t, \
        third tuple t ExclusiveLock f";
    assert_eq!(seen, expected);
    let blocked = "select (select count(*) from pg_locks w join pg_locks h using (transactionid)
        where not w.granted and h.granted)::text";
    becomes(&mut watcher, blocked, "1");

    holder.batch_execute("commit").unwrap();
    let (_second, _third) = (second.join().unwrap(), third.join().unwrap());
    becomes(&mut watcher, &about(waits), "idle|Client|ClientRead|update t set v = v + 10 where id = $1");
    becomes(&mut watcher, "select count(*)::text from pg_locks where not granted", "0");
}

#[test]
fn a_table_lock_that_is_waited_for_is_seen() {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key)");
    let (mut watcher, mut holder, mut waiter) = (server.connect(), server.connect(), server.connect());
    let waits = pid(&mut waiter);
    holder.batch_execute("begin; lock table t in share mode").unwrap();
    let waiter = std::thread::spawn(move || waiter.batch_execute("insert into t values (1)").unwrap());
    becomes(&mut watcher, &about(waits), "active|Lock|relation|insert into t values (1)");
    let locks = "select string_agg(concat_ws(' ', mode, granted), ', ' order by mode)
        from pg_locks where locktype = 'relation' and relation = 't'::regclass and database is not null";
    becomes(&mut watcher, locks, "RowExclusiveLock f, ShareLock t");
    holder.batch_execute("rollback").unwrap();
    waiter.join().unwrap();
}

#[test]
fn sleep_a_copy_and_times_are_seen() {
    let server = Server::start(&[]);
    server.psql("create table t (id int primary key)");
    let (mut watcher, mut other) = (server.connect(), server.connect());
    let number = pid(&mut other);
    other.batch_execute("set application_name = 'the other'").unwrap();
    let named = format!("select application_name from pg_stat_activity where pid = {number}");
    becomes(&mut watcher, &named, "the other");
    other.batch_execute("begin; set local application_name = 'within'").unwrap();
    becomes(&mut watcher, &named, "within");
    other.batch_execute("rollback").unwrap();
    becomes(&mut watcher, &named, "the other");

    let cancel = other.cancel_token();
    let sleeper = std::thread::spawn(move || {
        assert!(other.batch_execute("select pg_sleep(600)").is_err());
        other
    });
    becomes(&mut watcher, &about(number), "active|Timeout|PgSleep|select pg_sleep(600)");
    let times = format!(
        "select (backend_start <= xact_start and xact_start = query_start and query_start <= state_change
             and state_change <= clock_timestamp() and query_start > clock_timestamp() - interval '10 min')::text
         from pg_stat_activity where pid = {number}"
    );
    becomes(&mut watcher, &times, "true");
    cancel.cancel_query(postgres::NoTls).unwrap();
    let mut other = sleeper.join().unwrap();
    let ended = format!(
        "select (xact_start is null and state_change >= query_start and state = 'idle')::text
         from pg_stat_activity where pid = {number}"
    );
    becomes(&mut watcher, &ended, "true");

    let mut copy = other.copy_in("copy t from stdin").unwrap();
    becomes(&mut watcher, &about(number), "active|Client|ClientRead|copy t from stdin");
    std::io::Write::write_all(&mut copy, b"1\n").unwrap();
    assert_eq!(copy.finish().unwrap(), 1);
}

#[test]
fn a_long_statement_is_shown_as_far_as_there_is_room() {
    let server = Server::start(&[]);
    let (mut watcher, mut other) = (server.connect(), server.connect());
    let number = pid(&mut other);
    other.batch_execute(&format!("select '{}é'", "x".repeat(1015))).unwrap();
    let query = format!("select query from pg_stat_activity where pid = {number}");
    becomes(&mut watcher, &query, &format!("select '{}", "x".repeat(1015)));
    other.batch_execute(&format!("select '{}é'", "x".repeat(1014))).unwrap();
    becomes(&mut watcher, &query, &format!("select '{}é", "x".repeat(1014)));
}

#[test]
fn settings_tell_what_the_server_is() {
    let server = Server::start(&["--buffers", "96MiB", "--max-connections", "77"]);
    let folder = server.data().parent().unwrap().display().to_string();
    // The value as SHOW gives it, and as pg_settings gives it in the setting's unit where that
    // differs.
    let expected = [
        ("shared_buffers", "96MB".to_owned(), Some("12288")),
        ("max_connections", "77".to_owned(), None),
        ("port", server.port.to_string(), None),
        ("listen_addresses", "127.0.0.1".to_owned(), None),
        ("unix_socket_directories", folder.clone(), None),
        ("data_directory", format!("{folder}/data"), None),
        ("ssl", "off".to_owned(), None),
        ("max_wal_size", "1GB".to_owned(), Some("1024")),
    ];
    for (name, value, in_unit) in expected {
        assert_eq!(server.psql(&format!("show {name}")), value, "{name}");
        assert_eq!(server.psql(&format!("select current_setting('{name}')")), value, "{name}");
        let setting = server.psql(&format!("select setting from pg_settings where name = '{name}'"));
        assert_eq!(setting, in_unit.unwrap_or(&value), "{name}");
    }
    // A setting without a counterpart has no value.
    let mut client = server.connect();
    for name in ["wal_level", "effective_cache_size", "update_process_title", "io_method"] {
        let refused = client.batch_execute(&format!("show {name}")).unwrap_err();
        assert_eq!(refused.code(), Some(&postgres::error::SqlState::UNDEFINED_OBJECT), "{name}");
        assert_eq!(server.psql(&format!("select count(*) from pg_settings where name = '{name}'")), "0");
    }
}

#[test]
fn each_session_has_the_user_that_it_logged_in_as() {
    let server = Server::start(&[]);
    let long = "é".repeat(40);
    let names = ["alice", "Bob \"the\" builder", "Ünïcode ☃", "null", long.as_str()];
    let mut sessions: Vec<_> = names.map(|name| session_of(&server, name)).into_iter().collect();
    let pids: Vec<i32> = sessions.iter_mut().map(pid).collect();
    let mut admin = server.connect();
    let own = pid(&mut admin);

    // The viewer does not matter: each sees the same users.
    let query = "select a.pid, a.usename::text, a.usesysid, r.rolname::text, b.usename = a.usename
        from pg_stat_activity a left join pg_roles r on r.oid = a.usesysid join pg_stat_activity b using (pid)";
    for viewer in sessions.iter_mut().chain([&mut admin]) {
        let rows = viewer.query(query, &[]).unwrap();
        assert_eq!(rows.len(), 6);
        for row in rows {
            let (number, user): (i32, String) = (row.get(0), row.get(1));
            let role: (Option<u32>, Option<&str>) = (row.get(2), row.get(3));
            let at = pids.iter().position(|pid| *pid == number);
            // A name is cut at 63 bytes, between characters.
            let name = at.map_or("postgres", |at| names[at].get(..62).unwrap_or(names[at]));
            assert_eq!(user, name);
            // Only roles of `pg_roles` have a number.
            assert_eq!(role, if number == own { (Some(10), Some("postgres")) } else { (None, None) });
            assert!(row.get::<_, bool>(4));
        }
    }

    // A later session in the same slot has its own user.
    drop(sessions);
    let gone = "select count(*)::text from pg_stat_activity";
    becomes(&mut admin, gone, "1");
    let mut next = session_of(&server, "next");
    let users = "select string_agg(usename::text, ',' order by usename) from pg_stat_activity";
    becomes(&mut next, users, "next,postgres");
}
