//! Runs each workload of `allcore bench` from beginning to end, on Allcore and, if it is installed,
//! on PostgreSQL. The workload loads, no transaction fails, and its checks succeed afterwards.

use super::*;

/// A small PostgreSQL. It need not survive a power failure.
const POSTGRES: &str = "pg=serve-postgres:shared_buffers=32MB fsync=off";

/// Runs a load on an arm of its own, of which nothing may be missing or broken: what was stored.
/// `None`, said, where its server is not installed.
fn whole(arm: &str, load: &[&str]) -> Option<Value> {
    let folder = tempfile::tempdir().unwrap();
    let rest = [&["--arm", arm], &SHORT[..], load, &["--json", "run.json"]].concat();
    let output = bench(folder.path(), &rest).output().unwrap();
    if lacks_postgres(&output) {
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{load:?}\n{}", text(&output));
    let run = json(&folder.path().join("run.json"));
    for point in run["points"].as_array().unwrap() {
        for round in point["rounds"].as_array().unwrap() {
            let kinds = round["kinds"].as_array().unwrap();
            let count = |what: &str| kinds.iter().map(|kind| kind[what].as_u64().unwrap()).sum::<u64>();
            assert!(count("done") > 0 && count("failed") == 0, "{load:?}: {round}");
            assert!(round["lost_clients"].is_null(), "{load:?}: {round}");
        }
        assert!(point["checks"].as_array().unwrap().iter().all(|check| check["fault"].is_null()), "{point}");
    }
    Some(run)
}

/// The claims that the run checked at the last point.
fn claims(run: &Value) -> Vec<&str> {
    let last = run["points"].as_array().unwrap().last().unwrap();
    last["checks"].as_array().unwrap().iter().map(|check| check["claim"].as_str().unwrap()).collect()
}

fn tpcc_holds(arm: &str) {
    let load = ["-w", "tpcc", "--scale", "1", "--clients", "4", "--round", "3s", "--tries", "20"];
    let Some(run) = whole(arm, &load) else { return };
    let claims = claims(&run);
    assert_eq!(claims.len(), 12, "{claims:?}");
    for (number, claim) in (1..).zip(claims) {
        assert!(claim.starts_with(&format!("3.3.2.{number}:")), "{claim}");
    }
}

#[test]
fn tpcc_keeps_its_twelve_conditions_on_allcore() {
    tpcc_holds("a=serve:--buffers 128MiB");
}

#[test]
fn tpcc_keeps_its_twelve_conditions_on_postgres() {
    tpcc_holds(POSTGRES);
}

#[test]
fn sysbenchs_workloads_and_the_storm_run() {
    let tests = ["point_select", "read_only", "read_write", "write_only", "update_index", "update_non_index"];
    for test in tests {
        let name = format!("oltp_{test}");
        let run = whole(OWN, &["-w", &name, "--tables", "2", "--table-size", "1000", "--clients", "2"]);
        assert_eq!(run.unwrap()["points"][0]["workload"], name);
    }
    whole(OWN, &["-w", "connect", "--clients", "2"]);
}

#[test]
fn ycsbs_and_pgbenchs_workloads_run() {
    for (letter, kinds) in [
        ('a', &["read", "update"][..]),
        ('b', &["read", "update"]),
        ('c', &["read"]),
        ('d', &["read", "insert"]),
        ('e', &["scan", "insert"]),
        ('f', &["read", "read-modify-write"]),
    ] {
        let name = format!("ycsb-{letter}");
        let run = whole(OWN, &["-w", &name, "--table-size", "1000", "--clients", "2"]).unwrap();
        let round = run["points"][0]["rounds"][0]["kinds"].as_array().unwrap().iter();
        let seen: Vec<&str> = round.map(|kind| kind["name"].as_str().unwrap()).collect();
        assert_eq!(seen, kinds, "{name}");
    }
    let run = whole(OWN, &["-w", "simple-update", "--scale", "1", "--clients", "2"]).unwrap();
    assert!(!claims(&run).is_empty(), "{run}");
    // Twice as large as the server's buffers.
    let small = "a=serve:--buffers 16MiB";
    whole(small, &["-w", "select-only", "--scale", "2", "--clients", "2"]).unwrap();
}

#[test]
fn settings_that_vary_are_those_of_servers_that_run() {
    let folder = tempfile::tempdir().unwrap();
    // A server that has others fails each transaction.
    let asks = "SELECT 1 / (current_setting('shared_buffers') IN ('16MB', '24MB') \
                AND current_setting('huge_pages') IN ('off', 'try'))::int;\n";
    fs::write(folder.path().join("asks.sql"), asks).unwrap();
    let script = folder.path().join("asks.sql");
    let vary = ["--vary", "shared_buffers=16MB,24MB", "--vary", "huge_pages=off,try"];
    let load = ["-f", script.to_str().unwrap(), "--clients", "2"];
    let Some(run) = whole("pg=serve-postgres:fsync=off", &[&load[..], &vary].concat()) else { return };
    let arms = run["arms"].as_array().unwrap().iter();
    let set = |arm: &Value, name: &str| {
        let mut settings = arm["settings"].as_array().unwrap().iter();
        settings.find(|one| one[0] == name).unwrap()[1].as_str().unwrap().to_owned()
    };
    let seen: Vec<String> =
        arms.map(|arm| format!("{} {}", set(arm, "shared_buffers"), set(arm, "huge_pages"))).collect();
    assert_eq!(seen, ["16MB off", "16MB try", "24MB off", "24MB try"]);
    assert_eq!(run["points"].as_array().unwrap().len(), 4);
}
