//! Refused requests, written files, and the command as a report shows it.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::options::tests::{options, read};
use crate::report::samples;
use crate::tests::golden_cases;

/// A folder with scripts of these names and texts.
fn scripts(texts: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in texts {
        fs::write(folder.path().join(name), text).unwrap();
    }
    folder
}

/// The run that a command line asks for; `FOLDER` in it stands for the folder.
fn asked(words: &str, folder: &Path) -> Result<Asked, String> {
    let folder = folder.to_str().unwrap();
    Asked::of(&options(&words.replace("FOLDER", folder))).map_err(|error| error.replace(folder, "FOLDER"))
}

/// The load as a stored run knows it, a line for each name.
fn note(words: &str) -> Vec<String> {
    let options = options(words);
    let note = Asked::of(&options).unwrap_or_else(|error| panic!("{words}: {error}")).note(&options);
    note.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
}

#[test]
fn impossible_and_ineffective_requests_are_refused_before_anything_starts() {
    let folder =
        scripts(&[("asks.sql", "BEGIN;\nSELECT 1 AS one \\gset\nEND;"), ("scaled.sql", "SELECT :scale;")]);
    let refused = [
        "--driver pgbench --think 1s",
        "--driver native,pgbench --warmup 500ms",
        "--driver pgbench --warmup 0s",
        "--driver pgbench --round 2500ms",
        "--driver pgbench --ramp 1s",
        "--driver native,pgbench --rate 1..9",
        "--driver pgbench --rate 9 --arrivals even",
        "--driver native,native",
        "-w tpcc --driver pgbench",
        "--vary cores=1,1",
        "--arm a=serve-postgres --vary cores=1,2",
        "-w tpcc --tables 2",
        "-w ycsb-a --rand-type uniform",
        "-w oltp_read_only --scale 2",
        "-w select-only --table-size 2",
        "-w connect --scale 2",
        "-w connect -M extended",
        "-w oltp_write_only --tries 3",
        "-f FOLDER/scaled.sql -D scale=50",
        "-w select-only -D x=1",
        "--pipeline -M simple",
        "--pipeline --driver pgbench",
        "--pipeline --arm m=serve-mariadb",
        "--pipeline --arm m=mysql://me@host/db",
        "--pipeline -w tpcc",
        "--pipeline -w ycsb-f",
        "--pipeline -w connect",
        "--pipeline -w select-only",
        "--pipeline -w oltp_update_index",
        "--pipeline -f FOLDER/asks.sql",
    ];
    let said = |words| asked(words, folder.path()).map(|_| panic!("{words} is taken")).unwrap_err();
    golden_cases("run_refused", refused.map(|words| (words, vec![said(words)])));
}

#[test]
fn more_clients_than_open_files_are_refused_before_anything_starts() {
    let limit = rlimit::getrlimit(rlimit::Resource::NOFILE).unwrap().1;
    if limit >= 1_000_000 {
        return crate::tests::skip("this process may open a million files");
    }
    let said = asked("--clients 1..1000000", Path::new(".")).map(|_| ()).unwrap_err();
    assert!(said.contains("1000000 clients need 1000064 open files, the limit is "), "{said}");
}

#[test]
fn options_that_have_an_effect_are_taken() {
    let folder = scripts(&[
        ("scaled.sql", "SELECT :scale;"),
        ("two.sql", "\\set x 1\n\\if :x > 0\nSELECT :x;\n\\endif\nSELECT 2;"),
    ]);
    for words in [
        "--driver native,pgbench --rate 9",
        "--vary cores=1,2 --vary buffers=1GB,2GB",
        "-w tpcc --scale 3",
        "-w oltp_read_write --tables 1 --table-size 1000 --rand-type uniform",
        "-w ycsb-c --table-size 1000",
        "-w connect -M simple",
        "-f FOLDER/scaled.sql --scale 50 -D days=7",
        "-f FOLDER/two.sql --pipeline",
    ] {
        let taken = asked(words, folder.path());
        assert!(taken.is_ok(), "{words}: {:?}", taken.err());
    }
}

#[test]
fn every_workload_of_the_command_line_is_there() {
    for name in crate::options::NAMES.split(' ') {
        assert_eq!(named::named(&options(&format!("-w {name}"))).unwrap().name(), name);
    }
}

#[test]
fn drivers_are_compared_on_the_same_server() {
    let asked = Asked::of(&options("--driver native,pgbench --vary cores=1,2")).unwrap();
    let names = asked.servers.iter().flat_map(|server| &server.arms).map(|(name, _)| name.as_str());
    let each = |cores| ["native", "pgbench"].map(|driver| format!("a cores={cores} by {driver}"));
    assert!(names.eq([each(1), each(2)].concat()));
}

#[test]
fn a_pinned_client_has_as_many_threads_as_cpus() {
    let Ok(Split { client, .. }) = Split::of_this_machine() else {
        crate::tests::skip("this machine has but one core");
        return;
    };
    assert_eq!(Asked::of(&options("--pin")).unwrap().plan.load.threads, client.len());
    assert_eq!(Asked::of(&options("--pin -j 3")).unwrap().plan.load.threads, 3);
    let all = std::thread::available_parallelism().unwrap().get();
    assert_eq!(Asked::of(&options("")).unwrap().plan.load.threads, all);
}

#[test]
fn a_stored_run_has_all_that_a_comparison_needs() {
    let runs = [
        "-w tpcc --scale 1 --rounds 3..7 --width 5",
        "--rounds 4",
        "--scale 7",
        "-w tpcc",
        "-w oltp_read_only --tables 2",
        "-w ycsb-a",
        "-w connect",
        "-w simple-update -M extended --pipeline",
        "-w oltp_write_only --arm pg=serve-postgres --pipeline",
    ];
    golden_cases("run_notes", runs.map(|words| (words, note(&format!("{words} -j 2")))));
}

#[test]
fn a_comparison_reports_a_changed_script_or_weight() {
    let folder = scripts(&[]);
    let file = folder.path().join("a.sql").to_str().unwrap().to_owned();
    // A second text as long as the first.
    let [one, two] = ["SELECT 1;\n", "SELECT 2;\n"];
    let run = |text: &str, words: &str| {
        fs::write(&file, text).unwrap();
        let options = options(&words.replace("FILE", &file));
        let mut report = samples::two_arms();
        report.load = Asked::of(&options).unwrap().note(&options);
        report
    };
    let cases = [
        ("the same", run(one, "-f FILE"), run(one, "-f FILE")),
        // The checksum is the text's FNV-1a.
        ("another text", run(one, "-f FILE"), run(two, "-f FILE")),
        ("another weight", run(one, "-f FILE -f FILE"), run(one, "-f FILE -f FILE@3")),
        ("a builtin script, known by its name", run(one, "-w select-only"), run(two, "-w select-only")),
    ];
    golden_cases(
        "run_scripts",
        cases.map(|(case, from, to)| {
            let changes = report::compare::compare(&from, &to, &[]).changes;
            (case, changes.into_iter().map(|line| line.replace(&file, "FILE")).collect())
        }),
    );
}

#[test]
fn a_command_can_be_pasted_and_has_no_passwords() {
    let words: [(&[u8], &str); 10] = [
        (b"allcore", "allcore"),
        (b"--arm=a=postgres://u:secret@h:5/d", "--arm=a=postgres://u:***@h:5/d"),
        (b"a=postgres://u:p/w@h/d", "a=postgres://u:***@h/d"),
        (b"a=mysql://u@h/d?socket=/s", "a=mysql://u@h/d?socket=/s"),
        (b"a=postgres:///d?host=/s&port=5433", "a=postgres:///d?host=/s&port=5433"),
        (b"a=postgres://[::1]:5/d", "a=postgres://[::1]:5/d"),
        (b"b=serve:--cores 2", "b=serve:--cores 2"),
        (b"--rate", "--rate"),
        (b"it's", "it's"),
        (b"\xff.md", "\u{fffd}.md"),
    ];
    let given = words.iter().map(|(word, _)| std::ffi::OsString::from_vec(word.to_vec()));
    let shown = outputs::command(given).join(" ");
    assert_eq!(shlex::split(&shown).unwrap(), words.map(|(_, shown)| shown), "{shown}");
}

#[test]
fn outputs_are_tried_out_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let to = |json: &str, html: &str| {
        let outputs = Outputs { markdown: None, html: Some(at(html)), plots: None };
        Files { json: Some(&at(json)), outputs: &outputs }.writable(&[at("read")])
    };
    fs::create_dir(at("sub")).unwrap();
    assert_eq!(to("a.json", "a.html"), Ok(()));
    assert!(!at("a.json").exists() && !at("a.html").exists());
    std::os::unix::fs::symlink(at("read"), at("link")).unwrap();
    fs::write(at("read"), "x").unwrap();
    for (json, html) in [("a", "a"), ("read", "a"), ("a", "link"), ("sub/../a", "a")] {
        let said = to(json, html).unwrap_err();
        assert!(said.contains(" is the same file: name another"), "{json} {html}: {said}");
    }
    assert!(to("no/a.json", "a.html").unwrap_err().contains("no/a.json can't be written"));
    assert!(to("sub", "a.html").unwrap_err().contains("can't be written"));
    let null = Path::new("/dev/null");
    let outputs = Outputs { markdown: Some(null.into()), html: Some(null.into()), plots: None };
    assert_eq!(Files { json: Some(null), outputs: &outputs }.writable(&[null]), Ok(()));
    if !rustix::process::geteuid().is_root() {
        fs::write(at("fixed.json"), "x").unwrap();
        fs::set_permissions(at("fixed.json"), fs::Permissions::from_mode(0o444)).unwrap();
        assert!(to("fixed.json", "a.html").unwrap_err().contains("can't be written"));
    }
}

#[test]
fn a_run_that_lacks_something_ends_by_the_worst_of_it() {
    let (whole, broken) = (samples::two_arms(), samples::one_point());
    let partial = Report { missing: ["an arm", "a wide one"].map(String::from).into(), ..whole.clone() };
    let wide = Report { missing: vec!["a wide one".into()], ..whole.clone() };
    for (report, wide, stopped, status) in [
        (&whole, 0, false, 0),
        (&partial, 1, false, 3),
        (&wide, 1, false, 4),
        (&broken, 0, false, 5),
        (&broken, 0, true, 130),
        (&samples::nothing(), 0, true, 130),
    ] {
        assert_eq!(ending(report, wide, stopped).unwrap().status(), status);
    }
    assert_eq!(ending(&samples::nothing(), 0, false).unwrap_err(), "nothing was measured");
}

/// Runs the command line; `FOLDER` in it stands for the folder.
fn ended(words: &str, folder: &Path) -> Result<Ending, Fault> {
    let options = read(&words.replace("FOLDER", folder.to_str().unwrap())).unwrap();
    bench(&options, Path::new("allcore"), &AtomicBool::new(false))
}

#[test]
fn a_comparison_ends_by_what_it_finds() {
    let mut other = samples::two_arms();
    other.points.iter_mut().for_each(|point| point.workload = "another".into());
    let mut partial = samples::two_arms();
    partial.points.pop();
    let folder = tempfile::tempdir().unwrap();
    for (name, report) in [
        ("partial", partial),
        ("fast", samples::two_arms()),
        ("slow", samples::faster(0.8)),
        ("other", other),
        ("broken", samples::one_point()),
    ] {
        fs::write(folder.path().join(name), report.to_json()).unwrap();
    }
    for (words, status) in [
        ("FOLDER/fast FOLDER/slow", 0),
        ("FOLDER/fast FOLDER/slow --fail-if 'tps < 0.7'", 0),
        ("FOLDER/fast FOLDER/slow --fail-if 'p99 > 1.1' --fail-if 'tps < 0.95'", 7),
        ("FOLDER/slow FOLDER/fast --fail-if=tps<0.95", 0),
        ("FOLDER/fast FOLDER/partial", 0),
        ("FOLDER/fast FOLDER/partial --fail-if=tps<0.95", 3),
        ("FOLDER/partial FOLDER/fast --fail-if=tps<0.95", 0),
        ("FOLDER/fast FOLDER/other --fail-if=tps<0.95", 6),
        ("FOLDER/broken FOLDER/broken", 5),
    ] {
        let ended = ended(&format!("compare {words}"), folder.path());
        assert_eq!(ended.unwrap().status(), status, "{words}");
    }
}

#[test]
fn a_refused_request_ends_with_2_and_a_file_that_cannot_be_read_with_1() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run"), samples::two_arms().to_json()).unwrap();
    for (words, status) in [
        ("--arm x", 2),
        ("--arm a=serve --clients 0", 2),
        ("--arm a=serve --width nan", 2),
        ("--arm a=serve --round 0s", 2),
        ("--arm a=serve --json FOLDER/no/run", 2),
        ("report FOLDER/run FOLDER/run", 2),
        ("report FOLDER/run --html FOLDER/no/page", 2),
        ("report FOLDER/none", 1),
        ("compare FOLDER/none FOLDER/run", 1),
    ] {
        assert_eq!(ended(words, folder.path()).unwrap_err().status, status, "{words}");
    }
}

#[test]
fn the_statuses_of_the_help_are_those_of_the_documentation() {
    let page = include_str!("../../../../docs/lab.md");
    for line in crate::options::STATUSES.lines().skip(1) {
        let (status, meaning) = line.trim().split_once(' ').unwrap();
        let row = format!("| {status} | {} |", meaning.trim());
        assert!(page.replace('`', "").contains(&row), "{row}");
    }
}

#[test]
fn a_stored_run_is_shown_with_new_findings() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("run.json"), samples::open_loop().to_json()).unwrap();
    let ending = ended("report FOLDER/run.json --markdown FOLDER/run.md", folder.path());
    assert_eq!(ending, Ok(Ending::Whole));
    let text = fs::read_to_string(folder.path().join("run.md")).unwrap();
    assert!(text.contains("the rate of 5,000 a second is held with 8 and 64 clients."), "{text}");
    assert!(!text.contains("54321"), "what was stored with it: {text}");
}

#[test]
fn runs_of_the_same_name_have_sections_and_plots_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b", "plots"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    for name in ["a/run.json", "b/run.json"] {
        fs::write(folder.path().join(name), samples::two_arms().to_json()).unwrap();
    }
    let words = "report FOLDER/a/run.json FOLDER/b/run.json --markdown FOLDER/page --plots FOLDER/plots";
    assert_eq!(ended(words, folder.path()), Ok(Ending::Whole));
    let page = fs::read_to_string(folder.path().join("page")).unwrap();
    assert!(page.contains("\n## run\n") && page.contains("\n## run-2\n"), "{page}");
    assert_eq!(fs::read_dir(folder.path().join("plots")).unwrap().count(), 6);
}

#[test]
fn files_are_replaced_whole() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("real.json"), "before").unwrap();
    fs::set_permissions(at("real.json"), fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(at("real.json"), at("run.json")).unwrap();
    let opened = fs::File::open(at("real.json")).unwrap();
    let outputs = Outputs { markdown: Some(at("run.md")), html: None, plots: None };
    let json = at("run.json");
    let files = Files { json: Some(&json), outputs: &outputs };

    assert_eq!(files.store(&samples::two_arms()), Ok(Some(json.as_path())));
    // A reader that had the file open still reads the old text: the lab replaced the file.
    assert_eq!(std::io::read_to_string(opened).unwrap(), "before");
    assert!(fs::symlink_metadata(at("run.json")).unwrap().is_symlink());
    assert_eq!(outputs::stored(&at("real.json")).unwrap().points.len(), 18);
    assert_eq!(fs::metadata(at("real.json")).unwrap().permissions().mode() & 0o777, 0o600);
    let names = fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
    let null = Files { json: Some(Path::new("/dev/null")), outputs: &outputs };
    assert_eq!(null.store(&samples::two_arms()), Ok(None));
}
