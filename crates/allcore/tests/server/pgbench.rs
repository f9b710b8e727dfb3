//! The real pgbench, unmodified: every builtin script in every query mode and every way of loading.
//! It runs over TCP, TLS and a Unix socket, with both kinds of file I/O.

use crate::common::{Server, certificate, io_uring_refused, skip, succeed};

fn check_sums(server: &Server) {
    let sums = "select (select sum(abalance) from pgbench_accounts) = (select sum(tbalance) from pgbench_tellers)
                   and (select sum(tbalance) from pgbench_tellers) = (select sum(bbalance) from pgbench_branches)
                   and (select sum(bbalance) from pgbench_branches) = (select coalesce(sum(delta), 0) from pgbench_history)";
    assert_eq!(server.psql(sums), "t");
}

fn every_script_in_every_mode(server: &Server) {
    server.pgbench(&["-i", "-s", "1", "-q"]);
    for mode in ["simple", "extended", "prepared"] {
        for script in ["select-only", "tpcb-like"] {
            let said = server.pgbench(&["-n", "-b", script, "-M", mode, "-c", "8", "-j", "2", "-t", "40"]);
            assert!(said.contains("number of transactions actually processed: 320/320"), "{said}");
            assert!(said.contains("number of failed transactions: 0"), "{said}");
        }
    }
    check_sums(server);
    // simple-update leaves tellers and branches alone: the sums no longer agree, but accounts and
    // history do.
    for mode in ["simple", "extended", "prepared"] {
        server.pgbench(&["-n", "-b", "simple-update", "-M", mode, "-c", "8", "-j", "2", "-t", "40"]);
    }
    let agree =
        "select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history)";
    assert_eq!(server.psql(agree), "t");
}

#[test]
fn all_scripts_and_modes_with_io_uring() {
    if let Some(refused) = io_uring_refused() {
        return skip(&format!("the kernel refuses io_uring here: {refused}"));
    }
    let server = Server::start(&["--file-io", "io_uring"]);
    assert!(server.log().contains("file I/O by io_uring"), "{}", server.log());
    every_script_in_every_mode(&server);
}

#[test]
fn all_scripts_and_modes_with_io_threads() {
    let server = Server::start(&["--file-io", "threads"]);
    assert!(server.log().contains("file I/O by threads"), "{}", server.log());
    every_script_in_every_mode(&server);
}

#[test]
fn every_way_of_loading() {
    let server = Server::start(&[]);
    let counts = "select (select count(*) from pgbench_accounts), (select count(*) from pgbench_tellers), \
                  (select count(*) from pgbench_branches)";
    for way in [
        &["-I", "dtgvp"][..],
        &["-I", "dtGvp"],
        &["--foreign-keys"],
        &["-I", "dtgvpf", "-q"],
        &["--fillfactor=90"],
    ] {
        let mut arguments = vec!["-i", "-s", "2"];
        arguments.extend(way);
        server.pgbench(&arguments);
        assert_eq!(server.psql(counts), "200000|20|2", "{way:?}");
        server.pgbench(&["-n", "-c", "4", "-t", "20"]);
        check_sums(&server);
    }
    // With foreign keys an orphan is refused.
    server.pgbench(&["-i", "-s", "1", "--foreign-keys"]);
    let fault = server.psql_error("insert into pgbench_history (tid, bid, aid, delta) values (99, 1, 1, 1)");
    assert!(fault.contains("violates foreign key constraint"), "{fault}");
}

#[test]
fn pgbench_can_pipeline_and_reconnect() {
    let server = Server::start(&[]);
    server.pgbench(&["-i", "-s", "1", "-q"]);
    let script = server.folder.path().join("pipeline.sql");
    std::fs::write(
        &script,
        "\\set aid random(1, 100000)\n\\startpipeline\nselect abalance from pgbench_accounts where aid = :aid;\n\
         update pgbench_accounts set abalance = abalance + 1 where aid = :aid;\n\
         select abalance from pgbench_accounts where aid = :aid;\n\\endpipeline\n",
    )
    .unwrap();
    for mode in ["extended", "prepared"] {
        server.pgbench(&["-n", "-f", script.to_str().unwrap(), "-M", mode, "-c", "4", "-t", "50"]);
    }
    assert_eq!(server.psql("select sum(abalance) from pgbench_accounts"), "400");
    server.pgbench(&["-n", "-b", "select-only", "-C", "-c", "4", "-t", "25"]);
}

#[test]
fn over_a_unix_socket() {
    let server = Server::start(&[]);
    for arguments in [&["-i", "-s", "1", "-q"][..], &["-n", "-c", "8", "-t", "50", "-M", "prepared"]] {
        succeed(
            server.socket_client("pgbench").arg("-p").arg(server.port.to_string()).args(arguments),
            &server.log(),
        );
    }
    check_sums(&server);
}

#[test]
fn pgbench_runs_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(folder.path());
    let (certificate, key) = (certificate.to_str().unwrap(), key.to_str().unwrap());
    let server = Server::start(&["--tls-cert", certificate, "--tls-key", key]);
    for arguments in [&["-i", "-s", "1", "-q"][..], &["-n", "-c", "8", "-t", "50", "-M", "prepared"]] {
        let mut command = server.client("pgbench");
        command.env("PGSSLMODE", "verify-ca").env("PGSSLROOTCERT", certificate).args(arguments);
        succeed(&mut command, &server.log());
    }
    check_sums(&server);
    let mut command = server.client("psql");
    command.env("PGSSLMODE", "require").args(["-X", "-c", "\\conninfo"]);
    let said = succeed(&mut command, &server.log());
    assert!(said.contains("SSL connection (protocol: TLSv1.3"), "{said}");
}

#[test]
fn pgbench_runs_with_a_thousand_clients() {
    let server = Server::start(&["--max-connections", "1100"]);
    server.pgbench(&["-i", "-s", "1", "-q"]);
    let said =
        server.pgbench(&["-n", "-b", "select-only", "-M", "prepared", "-c", "1000", "-j", "2", "-t", "10"]);
    assert!(said.contains("number of transactions actually processed: 10000/10000"), "{said}");
    let said = server.pgbench(&["-n", "-M", "prepared", "-c", "500", "-j", "2", "-t", "4"]);
    assert!(said.contains("number of transactions actually processed: 2000/2000"), "{said}");
    check_sums(&server);
}
