//! `allcore bench mechanism` as a user meets it: the list, a run with its files, bad input, Ctrl-C.

use super::*;

/// Rounds as short as they can be.
const SHORT: [&str; 4] = ["--seconds", "0.02", "--rounds", "2"];

#[test]
fn the_list_of_mechanisms_names_each_row_and_measures_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let list = out(&ended(folder.path(), &["mechanism", "--list"], 0));
    let rows = "spin sleep-lock latch pin clock-hand snapshot needs-buffer clean-list free-queues \
                fault-path preload pinned-memory shared-page-tables no-remap-io semaphore run-queue socket \
                relation-size file-lock title client-random";
    for row in rows.split_whitespace() {
        assert!(list.lines().any(|line| line.starts_with(&format!("{row} "))), "{row}:\n{list}");
    }
}

#[test]
fn a_run_of_mechanisms_gives_a_table_and_json() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["mechanism", "spin", "pin", "--threads", "1,3", "--json", "run.json"];
    let output =
        bench(folder.path(), &[&words[..], &SHORT].concat()).env("ALLCORE_COMMIT", "1a2b3c").output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    let table = out(&output);
    for word in ["test-and-set", "mcs", "optimistic-add", "arm / stock"] {
        assert!(table.contains(word), "{word}:\n{table}");
    }
    let words = ["mechanism", "--from", "run.json", "--html", "run.html", "--markdown", "run.md"];
    assert_eq!(out(&ended(folder.path(), &words, 0)), table, "the stored run has the same table");
    let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(read("run.html").contains("<svg") && read("run.md").contains("\n## pin\n"));
    assert!(read("run.md").contains("\nCommit of the measured program: 1a2b3c.\n"), "{}", read("run.md"));
    let run = json(&folder.path().join("run.json"));
    let ids: Vec<_> = run["rows"].as_array().unwrap().iter().map(|row| row["id"].clone()).collect();
    assert_eq!(ids, ["spin", "pin"]);
    let points = run["rows"][0]["points"].as_array().unwrap();
    assert!(points.iter().all(|point| point["measured"].as_array().unwrap().len() == 2), "{points:?}");
}

#[test]
fn an_impossible_run_of_mechanisms_ends_with_2_and_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    for (words, expected) in [
        (&["mechanism", "spim"][..], "there is no row spim: name spin"),
        (&["mechanism", "--threads", "0"], "begin at 1, not at 0"),
        (&["mechanism", "--json", "none/run.json"], "name a file in a folder that is there"),
        (&["mechanism", "--rounds", "0"], "0 is not in 1..=1000"),
    ] {
        let said = err(&ended(folder.path(), words, 2));
        assert!(said.contains(expected), "{words:?}: {said}");
    }
}

#[test]
fn ctrl_c_ends_a_run_of_mechanisms_with_what_it_has_measured() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["mechanism", "spin", "pin", "--threads", "2", "--seconds", "0.02", "--rounds", "1000"];
    let mut run = bench(folder.path(), &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The first line says that the first row has begun.
    let mut said = BufReader::new(run.stderr.take().unwrap());
    said.read_line(&mut String::new()).unwrap();
    signal("INT", run.id());
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(!out(&output).contains("optimistic-add"), "the second row has not begun");
}
