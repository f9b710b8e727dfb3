//! The real sysbench over its pgsql driver: prepare, run, cleanup.

use crate::common::{Server, succeed};

#[test]
fn oltp_scripts_prepare_run_and_clean_up() {
    let server = Server::start(&[]);
    server.psql("create database sbtest");
    let sysbench = |script: &str, verb: &str| {
        let mut command = server.client("sysbench");
        command.arg(script).args(["--db-driver=pgsql", "--pgsql-host=127.0.0.1", "--pgsql-user=postgres"]);
        command.arg(format!("--pgsql-port={}", server.port));
        command.args(["--pgsql-db=sbtest", "--tables=2", "--table-size=2000", "--threads=4", "--time=60"]);
        command.args(["--events=200", verb]);
        succeed(&mut command, &server.log())
    };
    let scripts = [
        "oltp_point_select",
        "oltp_read_only",
        "oltp_read_write",
        "oltp_write_only",
        "oltp_insert",
        "oltp_delete",
        "oltp_update_index",
        "oltp_update_non_index",
    ];
    for script in scripts {
        sysbench(script, "prepare");
        assert_eq!(server.psql_in("sbtest", "select count(*), min(id), max(id) from sbtest2"), "2000|1|2000");
        let said = sysbench(script, "run");
        let events = said.lines().find_map(|line| line.trim().strip_prefix("total number of events:"));
        assert_eq!(events.map(str::trim), Some("200"), "{script}: {said}");
        assert!(!said.contains("FATAL"), "{script}: {said}");
        let by_index = "select (select count(*) from sbtest1 where k >= 0) = (select count(*) from sbtest1)";
        assert_eq!(server.psql_in("sbtest", by_index), "t", "{script}");
        sysbench(script, "cleanup");
    }
    assert_eq!(server.psql_in("sbtest", "select count(*) from pg_tables where schemaname = 'public'"), "0");
}
