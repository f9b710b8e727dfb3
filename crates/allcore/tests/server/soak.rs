//! Ten minutes of mixed load in a pool a tenth of the data, sums checked: `make soak`.
//!
//! `ALLCORE_SOAK_SECONDS` sets the time; without it a few seconds run, enough for `make test` to
//! know it works.

use crate::common::Server;

#[test]
fn mixed_load_in_a_pool_a_tenth_of_the_data() {
    let seconds: u64 = std::env::var("ALLCORE_SOAK_SECONDS").map_or(6, |text| text.parse().unwrap());
    // Scale 10 is about 150 MiB of rows.
    let mut server = Server::start(&["--buffers", "16MiB"]);
    server.pgbench(&["-i", "-s", "10", "-q"]);
    server.psql("create index on pgbench_accounts (bid); create index on pgbench_history (aid)");
    let slice = (seconds / 3).max(2).to_string();
    for mode in ["prepared", "extended", "simple"] {
        let said = server.pgbench(&[
            "-n",
            "-M",
            mode,
            "-b",
            "tpcb-like@4",
            "-b",
            "simple-update@2",
            "-b",
            "select-only@4",
            "-c",
            "32",
            "-j",
            "2",
            "-T",
            &slice,
        ]);
        assert!(said.contains("number of failed transactions: 0"), "{said}");
        println!("{mode}: {}", said.lines().find(|line| line.starts_with("tps")).unwrap_or(""));
    }
    let agree = "select (select sum(abalance) from pgbench_accounts) = (select sum(delta) from pgbench_history),
                        (select sum(tbalance) from pgbench_tellers) = (select sum(bbalance) from pgbench_branches),
                        (select count(*) from pgbench_accounts where bid > 0)";
    assert_eq!(server.psql(agree), "t|t|1000000");
    server.stop();
    server.check();
}
