//! A statement's memory is bounded: rows beyond `work_mem` go to the data folder, and the server's
//! resident memory hardly grows.

use std::fs;

use crate::common::Server;
use postgres::fallible_iterator::FallibleIterator;

/// The most memory the server ever had resident, in MiB.
fn peak(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// 700,000 rows of about 100 bytes in no order. Their keys are below a prime, each once.
const ROWS: &str = "select (g::bigint * 7919) % 700001 as k, g as n, repeat('x', 80) as v \
                    from generate_series(1, 700000) g";

#[test]
fn rows_beyond_the_memory_are_sorted_in_a_few_megabytes() {
    let server = Server::start(&["--buffers", "32MiB"]);
    let mut client = server.connect();
    client.batch_execute("set work_mem = '4MB'; select count(*) from generate_series(1, 100000)").unwrap();
    let before = peak(&server);
    let mut last = -1;
    let mut count = 0;
    let mut transaction = client.transaction().unwrap();
    // A row limit: all rows are computed at the first Execute and kept, too.
    let portal = transaction.bind(&*format!("select k, n, v from ({ROWS}) s order by k"), &[]).unwrap();
    loop {
        let mut rows = transaction.query_portal_raw(&portal, 100_000).unwrap();
        let mut fetched = 0;
        while let Some(row) = rows.next().unwrap() {
            let key: i64 = row.get(0);
            assert!(key > last, "{key} after {last}");
            last = key;
            fetched += 1;
        }
        count += fetched;
        if fetched == 0 {
            break;
        }
    }
    transaction.commit().unwrap();
    assert_eq!((count, last), (700_000, 700_000));
    let temporary = fs::metadata(server.data().join("temp")).unwrap().len() >> 20;
    assert!(temporary > 70, "{temporary} MiB of temporary pages");
    let sorted = peak(&server);
    assert!(sorted < before + 20, "{before} MiB before, {sorted} MiB after the sort");
    // The other operators that keep rows.
    for (query, expected) in [
        (format!("select count(*) from (select k, count(*), max(v) from ({ROWS}) s group by k) t"), 700_000),
        (format!("select count(*) from (select distinct k, v from ({ROWS}) s) t"), 700_000),
        (format!("select count(*) from ({ROWS}) a join ({ROWS}) b on a.k = b.n"), 700_000),
        (format!("select count(distinct k) from ({ROWS}) s"), 700_000),
        (
            format!(
                "select max(r) from (select row_number() over (order by k), count(*) over () as r, v from ({ROWS}) s) t"
            ),
            700_000,
        ),
        (format!("select count(*) from ({ROWS} except select k, 0, v from ({ROWS}) s) t"), 700_000),
    ] {
        let found: i64 = client.query_one(&query, &[]).unwrap().get(0);
        assert_eq!(found, expected, "{query}");
        let now = peak(&server);
        assert!(now < before + 30, "{before} MiB before, {now} MiB after {query}");
    }
}
