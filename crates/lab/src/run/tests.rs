//! Refused requests, written files, and the command as a report shows it.

use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::{fs, io};

use super::*;
use crate::options::tests::options;
use crate::report::samples;

/// A script's file.
fn script(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    io::Write::write_all(&mut file, text.as_bytes()).unwrap();
    file
}

#[test]
fn impossible_and_ineffective_requests_are_refused_before_anything_starts() {
    let files = ["BEGIN;\nSELECT 1 AS one \\gset\nEND;", "SELECT :scale;"].map(script);
    let [asks, scaled] = files.each_ref().map(|file| file.path().to_str().unwrap());
    for (words, expected) in [
        ("--driver pgbench --think 1s", "--driver pgbench: pgbench can't think"),
        ("--driver native,pgbench --warmup 500ms", "--driver pgbench: pgbench knows whole seconds"),
        ("--driver native,pgbench --rate 1..9", "--driver pgbench: pgbench keeps one rate"),
        ("--driver native,native", "two arms are named a by native: give each arm, value and driver once"),
        ("-w tpcc --driver pgbench", "--driver pgbench: tpcc is no workload of pgbench"),
        ("--vary cores=1,1", "two arms are named a cores=1: give each arm"),
        ("--arm a=serve-postgres --vary cores=1,2", "two arms are named a cores=1:"),
        ("-w tpcc --tables 2", "--tables has no effect on tpcc, which takes --scale: "),
        ("-w ycsb-a --rand-type uniform", "--rand-type has no effect on ycsb-a, which takes"),
        ("-w oltp_read_only --scale 2", "--scale has no effect on oltp_read_only, which takes --tables"),
        ("-w select-only --table-size 2", "--table-size has no effect on select-only"),
        ("-w connect --scale 2", "--scale has no effect on connect, which has nothing to be sized"),
        ("-w connect -M extended", "--protocol has no effect on connect"),
        ("-w oltp_write_only --tries 3", "--tries has no effect on oltp_write_only"),
        (
            &format!("-f {scaled} -D scale=50"),
            "-D scale=50 would change :scale and not the tables: take --scale 50",
        ),
        (
            "--pipeline -M simple",
            "--pipeline: the simple protocol has no pipelines: take --protocol prepared",
        ),
        ("--pipeline --driver pgbench", "--pipeline: pgbench has no such option: take --driver native"),
        ("--pipeline --arm m=serve-mariadb", "--pipeline: arm m speaks MySQL's protocol"),
        ("--pipeline --arm m=mysql://me@host/db", "--pipeline: arm m speaks MySQL's protocol"),
        (
            "--pipeline -w tpcc",
            "--pipeline: a transaction of tpcc has statements that depend on earlier answers",
        ),
        (
            "--pipeline -w ycsb-f",
            "--pipeline: a transaction of ycsb-f is one statement, or a record read and then",
        ),
        (
            "--pipeline -w connect",
            "--pipeline: a transaction of connect is one statement on a connection of its own",
        ),
        (
            "--pipeline -w select-only",
            "--pipeline: a transaction of select-only is a single statement: leave",
        ),
        (
            "--pipeline -w oltp_update_index",
            "--pipeline: each statement of oltp_update_index is a transaction of its",
        ),
        (&format!("--pipeline -f {asks}"), &format!("--pipeline: {asks}:2: \\gset wants an answer")),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let error = Asked::of(&options(&words)).err().unwrap_or_else(|| panic!("{words:?} is taken"));
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn options_that_have_an_effect_are_taken() {
    let files = ["SELECT :scale;", "\\set x 1\n\\if :x > 0\nSELECT :x;\n\\endif\nSELECT 2;"].map(script);
    let [scaled, two] = files.each_ref().map(|file| file.path().to_str().unwrap());
    for words in [
        "--driver native,pgbench --rate 9",
        "--vary cores=1,2 --vary buffers=1GB,2GB",
        "-w tpcc --scale 3",
        "-w oltp_read_write --tables 1 --table-size 1000 --rand-type uniform",
        "-w ycsb-c --table-size 1000",
        "-w connect -M simple",
        &format!("-f {scaled} --scale 50 -D days=7"),
        &format!("-f {two} --pipeline"),
    ] {
        assert!(Asked::of(&options(&words.split(' ').collect::<Vec<_>>())).is_ok(), "{words}");
    }
}

#[test]
fn every_workload_of_the_command_line_is_there() {
    for name in crate::options::NAMES.split(' ') {
        assert_eq!(named::named(&options(&["-w", name])).unwrap().name(), name);
    }
}

#[test]
fn drivers_are_compared_on_the_same_server() {
    let asked = Asked::of(&options(&["--driver", "native,pgbench", "--vary", "cores=1,2"])).unwrap();
    let arms = |server: &asked::Server| server.arms.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(
        asked.servers.iter().map(arms).collect::<Vec<_>>(),
        [["a cores=1 by native", "a cores=1 by pgbench"], ["a cores=2 by native", "a cores=2 by pgbench"]]
    );
}

#[test]
fn a_pinned_client_has_as_many_threads_as_cpus() {
    let Ok(Split { client, .. }) = Split::of_this_machine() else {
        crate::tests::skip("this machine has but one core");
        return;
    };
    assert_eq!(Asked::of(&options(&["--pin"])).unwrap().plan.load.threads, client.len());
    assert_eq!(Asked::of(&options(&["--pin", "-j", "3"])).unwrap().plan.load.threads, 3);
    let all = std::thread::available_parallelism().unwrap().get();
    assert_eq!(Asked::of(&options(&[])).unwrap().plan.load.threads, all);
}

#[test]
fn a_stored_run_has_all_that_a_comparison_needs() {
    let said = |words: &str| {
        let options = options(&words.split(' ').collect::<Vec<_>>());
        let note = Asked::of(&options).unwrap_or_else(|error| panic!("{words}: {error}")).note(&options);
        note.into_iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("; ")
    };
    let small = said("-w tpcc --scale 1 -j 2 --rounds 3..7 --width 5");
    assert_eq!(
        small,
        "warehouses: 1; driver: native; threads: 2; pace: closed loop; round: 5s after 1s; \
         rounds: 3 to 7, until 5% wide; seed: 1"
    );
    for (words, expected) in [
        ("--rounds 4", "rounds: 4;"),
        ("--scale 7", "scale: 7;"),
        ("-w tpcc", "warehouses: 10;"),
        ("-w oltp_read_only --tables 2", "tables: 2; rows of a table: 100000; rows drawn: special;"),
        ("-w ycsb-a", "records: 100000;"),
        ("-w connect", "driver: native;"),
        ("-w simple-update -M extended --pipeline", "pipeline: all statements of a transaction;"),
        (
            "-w oltp_write_only --arm pg=serve-postgres --pipeline",
            "pipeline: all statements of a transaction;",
        ),
    ] {
        assert!(said(words).contains(expected), "{words}: {}", said(words));
    }
    assert!(!small.contains(record::PIPELINE));
}

#[test]
fn a_comparison_reports_a_changed_script_or_weight() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.sql").to_str().unwrap().to_owned();
    let run = |text: &str, more: &[&str]| {
        fs::write(&file, text).unwrap();
        let options = options(&[&["-f", &file], more].concat());
        let mut report = samples::two_arms();
        report.load = Asked::of(&options).unwrap().note(&options);
        report
    };
    let changes = |from: &Report, to: &Report| report::compare::compare(from, to, &[]).changes;
    let first = run("SELECT 1;\n", &[]);
    let told = format!("script {file}");
    let note = first.load.iter().find(|(name, _)| *name == told).map(|(_, value)| value.as_str());
    // FNV-1a of the text.
    assert_eq!(note, Some("weight 1, lines 1, bytes 10, checksum 98fe1dd7fddf6e33"));
    assert_eq!(changes(&first, &run("SELECT 1;\n", &[])), [""; 0]);
    // This text is as long as the first one.
    let changed = changes(&first, &run("SELECT 2;\n", &[]));
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert!(changed[0].starts_with(&format!("load: {told}: weight 1, ")), "{changed:?}");
    let heavy = format!("{file}@3");
    let changed = changes(&run("SELECT 1;\n", &["-f", &file]), &run("SELECT 1;\n", &["-f", &heavy]));
    assert_eq!(changed.len(), 1, "{changed:?}");
    assert!(changed[0].starts_with(&format!("load: {told} (2): weight 1, ")), "{changed:?}");
    assert!(changed[0].contains(" became weight 3, "), "{changed:?}");
    // A builtin script appears by its name.
    assert!(
        Asked::of(&options(&["-w", "select-only"]))
            .unwrap()
            .note(&options(&["-w", "select-only"]))
            .iter()
            .all(|(name, _)| !name.starts_with("script"))
    );
}

#[test]
fn a_command_can_be_pasted_and_has_no_passwords() {
    let words = [
        b"allcore".to_vec(),
        b"bench".to_vec(),
        b"--arm=a=postgres://u:secret@h/d".to_vec(),
        b"b=serve:--cores 2".to_vec(),
        b"it's".to_vec(),
        b"\xff.md".to_vec(),
    ];
    let shown = outputs::command(words.into_iter().map(std::ffi::OsString::from_vec)).join(" ");
    assert!(!shown.contains("secret"), "{shown}");
    let read = shlex::split(&shown).unwrap();
    assert_eq!(
        read,
        ["allcore", "bench", "--arm=a=postgres://u:***@h/d", "b=serve:--cores 2", "it's", "\u{fffd}.md"]
    );
}

#[test]
fn outputs_are_tried_out_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let to = |json: &str, html: &str| {
        let outputs = Outputs { markdown: None, html: Some(at(html)), plots: None };
        Files { json: Some(&at(json)), outputs: &outputs }.writable()
    };
    fs::create_dir(at("sub")).unwrap();
    assert_eq!(to("a.json", "a.html"), Ok(()));
    assert!(!at("a.json").exists() && !at("a.html").exists());
    assert!(to("no/a.json", "a.html").unwrap_err().contains("no/a.json can't be written"));
    assert!(to("sub", "a.html").unwrap_err().contains("can't be written"));
    let null = Path::new("/dev/null");
    let outputs = Outputs { markdown: Some(null.into()), html: Some(null.into()), plots: None };
    assert_eq!(Files { json: Some(null), outputs: &outputs }.writable(), Ok(()));
    if !rustix::process::geteuid().is_root() {
        fs::write(at("fixed.json"), "x").unwrap();
        fs::set_permissions(at("fixed.json"), fs::Permissions::from_mode(0o444)).unwrap();
        assert!(to("fixed.json", "a.html").unwrap_err().contains("can't be written"));
    }
}

#[derive(Debug, clap::Parser)]
struct All {
    #[command(flatten)]
    bench: Bench,
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

#[test]
fn a_comparison_ends_by_what_it_finds() {
    let folder = tempfile::tempdir().unwrap();
    let mut slow = samples::two_arms();
    for tps in slow.points.iter_mut().map(|point| &mut point.tps) {
        let one = *tps;
        *tps = crate::record::Interval::each(|of| 0.8 * of(&one));
    }
    let mut other = slow.clone();
    other.points.iter_mut().for_each(|point| point.workload = "another".into());
    let stored = |name: &str, report: &Report| {
        let path = folder.path().join(name);
        fs::write(&path, report.to_json()).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let [fast, slow, other, broken] = [
        ("fast", &samples::two_arms()),
        ("slow", &slow),
        ("other", &other),
        ("broken", &samples::one_point()),
    ]
    .map(|(name, report)| stored(name, report));
    for (first, second, limits, status) in [
        (&fast, &slow, &[][..], 0),
        (&fast, &slow, &["--fail-if", "tps < 0.7"], 0),
        (&fast, &slow, &["--fail-if", "p99 > 1.1", "--fail-if", "tps < 0.95"], 7),
        (&slow, &fast, &["--fail-if=tps<0.95"], 0),
        (&fast, &other, &["--fail-if=tps<0.95"], 6),
        (&broken, &broken, &[], 5),
    ] {
        let words = [&["bench", "compare", first.as_str(), second.as_str()], limits].concat();
        let all = <All as clap::Parser>::parse_from(&words);
        let ended = bench(&all.bench, Path::new("allcore"), &AtomicBool::new(false));
        assert_eq!(ended.unwrap().status(), status, "{words:?}");
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
    let (run, page) = (folder.path().join("run.json"), folder.path().join("run.md"));
    fs::write(&run, samples::open_loop().to_json()).unwrap();
    let words = ["bench", "report", run.to_str().unwrap(), "--markdown", page.to_str().unwrap()];
    let all = <All as clap::Parser>::parse_from(words);
    let ending = bench(&all.bench, Path::new("allcore"), &AtomicBool::new(false));
    assert_eq!(ending, Ok(Ending::Whole));
    let text = fs::read_to_string(&page).unwrap();
    assert!(text.contains("the rate of 5,000 a second is held with 8 and 64 clients."), "{text}");
    assert!(!text.contains("54321"), "what was stored with it: {text}");
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
