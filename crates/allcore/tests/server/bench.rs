//! `allcore bench` as a user meets it: the table, every report, compared runs, Ctrl-C, messages
//! about bad input. [`workloads`] has each workload, [`mechanisms`] the published mechanisms. The
//! lab starts Allcore's servers, and PostgreSQL's if its programs are installed.

mod mechanisms;
mod workloads;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Server, allcore, has, skip, text};
use serde_json::Value;

/// A server of the lab's own, small.
const OWN: &str = "a=serve:--buffers 32MiB";

/// Rounds as short as they can be: one in which a busy machine lets no transaction through fails
/// its run.
const SHORT: [&str; 6] = ["--round", "1s", "--warmup", "50ms", "--rounds", "1"];

/// Quick to load.
const SMALL: [&str; 6] = ["-w", "oltp_point_select", "--tables", "1", "--table-size", "1000"];

fn bench(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = allcore();
    command.arg("bench").args(arguments).current_dir(folder).stdin(Stdio::null());
    // The environment of the machine's own user must not reach the test.
    command.env_remove("PGHOST").env_remove("PGPORT").env_remove("PGUSER").env_remove("PGDATABASE");
    command
}

/// Runs to the end; what it gave, which must have this exit status.
fn ended(folder: &Path, arguments: &[&str], status: i32) -> Output {
    let output = bench(folder, arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(status), "{arguments:?}\n{}", text(&output));
    output
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Whether a run lacks its arm `pg` because PostgreSQL is not installed here; says so.
fn lacks_postgres(output: &Output) -> bool {
    let said = err(output);
    let mut lines = said.lines().filter(|line| line.starts_with("arm pg"));
    let absent = lines.find(|line| line.contains("is not installed") || line.contains("no user"));
    absent.inspect(|line| skip(line)).is_some()
}

/// The process that serves a lab's folder, as a child of this bench.
fn server_of(bench: u32) -> Option<u32> {
    let children = format!("/proc/{bench}/task");
    let tasks = fs::read_dir(children).ok()?.filter_map(Result::ok);
    let pids = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    pids.flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>())
        .find(|pid| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.windows(7).any(|part| part == b"\0serve\0"))
        })
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args(["-s", name, &process.to_string()]).status().unwrap().success());
}

/// Waits until standard error, which goes to this file, says so.
fn wait_for(file: &Path, word: &str, bench: &mut Child) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !fs::read_to_string(file).unwrap_or_default().contains(word) {
        assert!(
            bench.try_wait().unwrap().is_none(),
            "ended without '{word}': {}",
            fs::read_to_string(file).unwrap()
        );
        assert!(Instant::now() < deadline, "'{word}' never came: {}", fs::read_to_string(file).unwrap());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Started with its outputs in files of this folder.
fn started(folder: &Path, arguments: &[&str]) -> Child {
    let file = |name| fs::File::create(folder.join(name)).unwrap();
    bench(folder, arguments).stdout(file("out")).stderr(file("err")).spawn().unwrap()
}

/// A page's faults, as a browser sees them: what it complains of, and whether plots have their
/// marks.
fn look(folder: &Path, page: &Path, points: usize) {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let Some(browser) = names.into_iter().find(|name| has(name)) else {
        skip("there is no chromium here to look at the page");
        return;
    };
    let output = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"])
        .args(["--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    assert!(output.status.success() && !err(&output).contains("CONSOLE"), "{}", err(&output));
    let page = out(&output);
    for plot in ["Transactions a second against clients", "Efficiency", "Latency p99 against clients"] {
        let label = format!("aria-label=\"{plot}");
        let start = page.find(&label).unwrap_or_else(|| panic!("no plot of {plot}: {page}"));
        let end = start + page[start..].find("</svg>").unwrap();
        let marks = page[start..end].matches("class=\"mark\"").count();
        assert_eq!(marks, points, "marks in the plot of {plot}");
    }
}

#[test]
fn a_run_gives_a_table_and_every_report_which_can_be_had_again_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::create_dir(at("plots")).unwrap();
    let reports = "--json run.json --markdown run.md --html run.html --plots plots --rounds 2";
    let reports: Vec<&str> = reports.split(' ').collect();
    let arms =
        ["--arm", OWN, "--arm", "b=serve:--buffers 32MiB --cores 1", "--clients", "1,2,4", "--width", "0.1"];
    // Two short rounds have wide intervals, which the exit status says.
    let output = ended(folder.path(), &[&arms[..], &SMALL, &SHORT, &reports[..]].concat(), 4);
    let table = out(&output);
    for word in [
        "Verdict:",
        "oltp_point_select, prepared",
        "Transactions a second",
        "b / a",
        "Findings:",
        "Latency, ms",
    ] {
        assert!(table.contains(word), "{word}: {table}");
    }
    let progress = err(&output);
    assert_eq!(progress.lines().filter(|line| line.starts_with('[')).count(), 12, "{progress}");
    assert!(!progress.contains('\u{1b}'), "plain lines where there is no terminal: {progress}");

    let run = json(&at("run.json"));
    let points = run["points"].as_array().unwrap();
    let places: Vec<(&str, u64)> =
        points.iter().map(|one| (one["arm"].as_str().unwrap(), one["clients"].as_u64().unwrap())).collect();
    assert_eq!(places, [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 4), ("b", 4)]);
    let mut seen = 0;
    for point in points {
        assert!(point["tps"]["value"].as_f64().unwrap() > 0.0);
        assert_eq!(point["rounds"].as_array().unwrap().len(), 2);
        for round in point["rounds"].as_array().unwrap() {
            let latency = |name: &str| round["latency"][name].as_f64().unwrap();
            assert!(
                latency("p50") > 0.0 && latency("p50") <= latency("p99") && latency("p99") <= latency("max")
            );
            assert!(round["kinds"][0]["done"].as_u64().unwrap() > 0);
            // A busy machine may keep the lab from looking at a round; then there is no split.
            let cpu = &round["observed"]["cpu"];
            if cpu.is_object() {
                let parts = ["client", "server_user", "server_kernel", "other", "idle"];
                let sum: f64 = parts.iter().map(|part| cpu[part].as_f64().unwrap()).sum();
                assert!((sum - 1.0).abs() < 1e-6, "{cpu}");
                seen += 1;
            }
        }
    }
    assert!(seen > 0, "no round was looked at");
    let missing = run["missing"].as_array().unwrap();
    let wide = |line: &Value| line.as_str().unwrap().contains("has intervals wider than the 0.1% asked for");
    assert!(missing.len() == 2 && missing.iter().all(wide), "{missing:?}");
    assert!(run["arms"][0]["server"].as_str().unwrap().contains("Allcore"), "{}", run["arms"][0]);
    assert_eq!(run["arms"][1]["settings"][1], serde_json::json!(["cores", "1"]));
    assert!(
        run["machine"]["facts"].as_array().unwrap().len() > 3 && run["load"].as_array().unwrap().len() > 3
    );

    let markdown = fs::read_to_string(at("run.md")).unwrap();
    assert!(markdown.starts_with("# Run of ") && markdown.contains("| clients |"), "{markdown}");
    let page = fs::read_to_string(at("run.html")).unwrap();
    for outside in ["src=", "http://", "https://", "@import", "url(", "<script"] {
        assert!(!page.contains(outside), "the page needs {outside}");
    }
    look(folder.path(), &at("run.html"), 6);
    let mut plots: Vec<String> = fs::read_dir(at("plots"))
        .unwrap()
        .map(|one| one.unwrap().file_name().into_string().unwrap())
        .collect();
    plots.sort();
    let expected = ["efficiency", "p99", "tps"].map(|what| format!("oltp_point_select-prepared-{what}.svg"));
    assert_eq!(plots, expected);

    let again = ended(folder.path(), &["report", "run.json", "--html", "again.html"], 0);
    assert_eq!(out(&again), table, "the stored run holds all that the table has");
    assert_eq!(fs::read_to_string(at("again.html")).unwrap(), page);
    let same = ["compare", "run.json", "run.json", "--fail-if", "tps < 0.95"];
    let compared = out(&ended(folder.path(), &same, 0));
    assert!(compared.contains("no difference") && compared.contains("oltp_point_select"), "{compared}");
}

#[test]
fn ctrl_c_before_the_first_arm_is_ready_says_that_nothing_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let mut stopped = started(folder.path(), &["--arm", OWN, "-w", "tpcb-like", "--scale", "1000"]);
    wait_for(&folder.path().join("err"), "a: loading tpcb-like", &mut stopped);
    signal("INT", stopped.id());
    let status = stopped.wait().unwrap();
    let said = fs::read_to_string(folder.path().join("err")).unwrap();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("stopped before anything was measured"), "{said}");
}

#[test]
fn a_server_that_cannot_be_guarded_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bench(folder.path(), &["--arm", OWN]);
    let output = command.env("PATH", "/nosuch").env("TMPDIR", folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output));
    assert!(err(&output).contains("arm a: can't start sh: "), "{}", err(&output));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["--arm", OWN, "--clients", "1,2", "--rounds", "50", "--json", "run.json"];
    let mut stopped = started(folder.path(), &[&SMALL[..], &SHORT, &run].concat());
    wait_for(&folder.path().join("err"), "[1/", &mut stopped);
    let server = server_of(stopped.id()).expect("the server that the lab has started");
    let line = fs::read_to_string(format!("/proc/{server}/cmdline")).unwrap();
    let data = line.split('\0').find(|word| word.contains("allcore-bench-")).unwrap().to_owned();
    assert!(Path::new(&data).exists());
    signal("INT", stopped.id());
    let status = stopped.wait().unwrap();
    let said = fs::read_to_string(folder.path().join("err")).unwrap();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("stopped: what was measured until now"), "{said}");
    let kept = json(&folder.path().join("run.json"));
    assert!(!kept["points"][0]["rounds"].as_array().unwrap().is_empty(), "{said}");
    assert!(kept["missing"].to_string().contains(", because the run was stopped"), "{}", kept["missing"]);
    let table = fs::read_to_string(folder.path().join("out")).unwrap();
    assert!(table.contains("Transactions a second") && table.contains("Missing:"), "{table}");
    assert!(!Path::new(&data).exists(), "the server's folder is gone");
}

#[test]
fn nobody_reading_costs_a_run_nothing() {
    let folder = tempfile::tempdir().unwrap();
    // A name that is not UTF-8 is no reason to lose a run either.
    let odd = std::ffi::OsStr::from_bytes(b"\xff.md");
    let run = ["--arm", OWN, "--clients", "1,2", "--rounds", "50", "--json", "run.json"];
    let mut command = bench(folder.path(), &[&SMALL[..], &SHORT, &run].concat());
    command.arg("--markdown").arg(odd).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = command.spawn().unwrap();
    let lines = BufReader::new(running.stderr.take().unwrap()).lines().map_while(Result::ok);
    let read = lines.take_while(|line| !line.starts_with("[1/")).collect::<Vec<_>>().join("\n");
    assert!(read.contains("a: loading oltp_point_select\na: loaded 1000 rows in "), "{read}");
    // As Ctrl-C does in `allcore bench ... 2>&1 | tee log`: the reader has ended before the run.
    drop(running.stdout.take());
    signal("INT", running.id());
    assert_eq!(running.wait().unwrap().code(), Some(130));
    let kept = json(&folder.path().join("run.json"));
    assert!(!kept["points"][0]["rounds"].as_array().unwrap().is_empty(), "{kept}");
    let command = kept["command"].as_array().unwrap();
    assert_eq!(command.last().unwrap(), "'\u{fffd}.md'", "{command:?}");
    assert!(command.contains(&Value::from(format!("'{OWN}'"))), "{command:?}");
    assert!(fs::read_to_string(folder.path().join(odd)).unwrap().starts_with("# Run of "));
}

#[test]
fn a_terminal_that_goes_away_ends_a_run_and_a_pause_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["--arm", OWN, "--clients", "1", "--rounds", "50", "--width", "0.01"];
    let words = [&SMALL[..], &SHORT, &run, &["--json", "run.json"]].concat();
    let mut hung_up = started(folder.path(), &words);
    wait_for(&folder.path().join("err"), "[1/", &mut hung_up);
    // Ctrl-Z is not heeded: rounds go on.
    signal("TSTP", hung_up.id());
    wait_for(&folder.path().join("err"), "[3/", &mut hung_up);
    // Children of a program under nohup ignore this signal, too.
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    if u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1 {
        skip("hang-ups are ignored here, as nohup has it");
        signal("INT", hung_up.id());
    } else {
        // The kernel says it, and the shell again.
        signal("HUP", hung_up.id());
        signal("HUP", hung_up.id());
    }
    let status = hung_up.wait().unwrap();
    assert_eq!(status.code(), Some(130), "{}", fs::read_to_string(folder.path().join("err")).unwrap());
    assert!(json(&folder.path().join("run.json"))["points"][0]["rounds"].as_array().unwrap().len() >= 3);
}

#[test]
fn what_nohup_starts_goes_on_without_its_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_allcore");
    let rest = [&SMALL[..], &SHORT, &["--clients", "1", "--rounds", "4"]].concat().join(" ");
    let line = format!("trap '' HUP; exec '{program}' bench --arm '{OWN}' {rest} --width 0.01 2> err");
    let mut deaf = Command::new("sh");
    deaf.args(["-c", &line]).current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null());
    let mut deaf = deaf.spawn().unwrap();
    wait_for(&folder.path().join("err"), "[1/", &mut deaf);
    signal("HUP", deaf.id());
    deaf.wait().unwrap();
    let said = fs::read_to_string(folder.path().join("err")).unwrap();
    assert!(said.contains("[4/4]"), "{said}");
}

#[test]
fn a_run_is_stored_before_what_must_hold_is_checked() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(&[]);
    let arm = format!("a=postgres://postgres:of-no-use@127.0.0.1:{}/postgres", server.port);
    // An empty run must not take the place of this one.
    fs::write(folder.path().join("run.json"), "an earlier run").unwrap();
    let run = ["--arm", &arm, "-w", "select-only", "--scale", "1", "--clients", "1", "--json", "run.json"];
    let mut running =
        started(folder.path(), &[&SHORT[..], &run, &["--rounds", "3", "--round", "3s"]].concat());
    let said = folder.path().join("err");
    wait_for(&said, "[1/", &mut running);
    // The history is what the check reads and the load does not.
    let mut lock = server.connect();
    lock.batch_execute("BEGIN; LOCK TABLE pgbench_history IN ACCESS EXCLUSIVE MODE").unwrap();
    wait_for(&said, "a: checking the data", &mut running);
    let stored = json(&folder.path().join("run.json"));
    assert_eq!(stored["points"][0]["rounds"].as_array().unwrap().len(), 3);
    assert!(stored["missing"].to_string().contains("was not checked: the run ended before"), "{stored}");
    assert!(!stored.to_string().contains("of-no-use"), "a password is stored: {}", stored["command"]);
    // Ended at once in the middle of the check: what was stored stays. Both signals are there
    // before it can act on either.
    for name in ["STOP", "INT", "TERM", "CONT"] {
        signal(name, running.id());
    }
    assert_eq!(running.wait().unwrap().code(), Some(130));
    assert!(fs::read_to_string(&said).unwrap().contains("ended at once"));
    assert_eq!(json(&folder.path().join("run.json")), stored);
}

/// On a terminal, what these signals leave on the screen and as status.
fn signalled(kill: &str) -> Option<(Option<i32>, String)> {
    if !has("script") {
        skip("there is no script(1) here, which gives a program a terminal");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_allcore");
    let rest = [&SMALL[..], &SHORT, &["--clients", "1,2", "--round", "60s"]].concat().join(" ");
    // The terminal's output goes to a file. The shell's own id is the lab's, so that signals reach
    // the lab alone. A shell's background ignores INT and QUIT, and programs inherit that.
    let command = format!("env --default-signal=INT,QUIT '{program}' bench --arm '{OWN}' {rest}");
    let line = format!("ulimit -c 0; echo $$ > pid; exec {command}");
    let mut script = Command::new("script");
    script.args(["-qefc", &line, "screen"]).current_dir(folder.path()).env("TERM", "xterm-256color");
    let mut terminal = script.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let screen = folder.path().join("screen");
    wait_for(&screen, "1 client", &mut terminal);
    let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
    let server = server_of(pid.trim().parse().unwrap()).expect("the server that the lab has started");
    let kill = kill.replace("PID", pid.trim()).replace("SERVER", &server.to_string());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    let status = terminal.wait().unwrap();
    let shown = String::from_utf8_lossy(&fs::read(&screen).unwrap()).into_owned();
    assert!(!shown.contains("\u{1b}[?"), "the terminal's modes are left alone: {shown}");
    Some((status.code(), shown))
}

#[test]
fn a_second_ctrl_c_leaves_the_terminal_alone() {
    // The end that the first signal begins lasts until the server has ended. So the second signal
    // comes before it is over.
    let kill = "kill -s STOP SERVER; kill -s INT PID; kill -s TERM PID; kill -s CONT SERVER";
    let Some((status, shown)) = signalled(kill) else { return };
    assert_eq!(status, Some(130), "{shown}");
    assert!(shown.contains("ended at once"), "{shown}");
}

#[test]
fn a_quit_leaves_the_terminal_alone() {
    const SIGQUIT: i32 = 3;
    let Some((status, shown)) = signalled("kill -s QUIT PID") else { return };
    assert_eq!(status, Some(128 + SIGQUIT), "{shown}");
}

#[test]
fn what_is_wrong_is_said_in_a_line_and_other_arms_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    script("syntax.sql", "select 1;\n\\set a random(1, 10\nselect :a;\n");
    script("table.sql", "select * from nowhere;\n");
    script("fails.sql", "select 1 / 0;\n");

    let unknown = ended(folder.path(), &["--arm", "a=serve", "-w", "nosuch"], 2);
    assert!(err(&unknown).contains("invalid value 'nosuch' for '--workload <NAME>'"), "{}", err(&unknown));
    let refused: [(&[&str], &str); 9] = [
        (&["--arm", "a=http://x", "-w", "tpcc"], "http:// is no server the lab speaks to"),
        (&["--arm", "a=serve", "--arm", "a=serve"], "two arms are named a"),
        (&["--arm", "a=serve", "--clients", "8..2"], "8 is more than 2"),
        (&["--arm", "a=serve", "--json", "no/where.json"], "no/where.json can't be written"),
        (&["--arm", "a=serve", "-w", "tpcc", "--driver", "pgbench"], "tpcc is no workload of pgbench"),
        (&["--arm", "a=serve", "-f", "none.sql"], "can't read the script none.sql"),
        (&["--arm", "a=serve", "-f", "syntax.sql"], "syntax.sql:2:20: syntax error"),
        (&["--arm", "a=serve:--socket-dir /x"], "arm a: socket-dir is set by the lab"),
        (&["--arm", "a=serve", "-w", "connect", "--scale", "5"], "--scale has no effect on connect"),
    ];
    for (arguments, expected) in refused {
        let output = ended(folder.path(), arguments, 2);
        assert!(err(&output).contains(expected), "{expected}: {}", err(&output));
        assert!(out(&output).is_empty(), "{}", out(&output));
    }
    let unread = ended(folder.path(), &["report", "table.sql"], 1);
    assert!(err(&unread).contains("this is no stored run"), "{}", err(&unread));

    // Arms that can't be reached, for three reasons, beside one that can.
    let mut server = Server::start(&[]);
    server.stop();
    let mut passwd = allcore();
    passwd.args(["passwd", "--data"]).arg(server.data()).args(["postgres", "--stdin"]).stdin(Stdio::piped());
    let mut passwd = passwd.spawn().unwrap();
    std::io::Write::write_all(passwd.stdin.as_mut().unwrap(), b"right\n").unwrap();
    assert!(passwd.wait().unwrap().success());
    server.password = Some("right".to_owned());
    server.environment("ALLCORE_AUTH", Some("scram"));
    server.launch();
    let credentials = format!("wrong=postgres://postgres:no@127.0.0.1:{}/postgres", server.port);
    let arms = ["--arm", "down=postgres://u@127.0.0.1:1/x", "--arm", &credentials, "--arm", OWN];
    let arms =
        [&arms[..], &["--arm", "bad=serve:--nosuch 1", "--clients", "2", "--json", "run.json"]].concat();
    let output = ended(folder.path(), &[&arms[..], &SMALL, &SHORT].concat(), 3);
    let said = err(&output);
    for line in [
        "arm down: can't reach the server at 127.0.0.1:1: Connection refused",
        "arm wrong: user postgres, database postgres at 127.0.0.1:",
        "arm bad: the server ended at its start: error: unexpected argument '--nosuch'",
    ] {
        assert!(said.lines().any(|one| one.starts_with(line)), "{line}: {said}");
    }
    assert!(said.contains("check user and password"), "{said}");
    let run = json(&folder.path().join("run.json"));
    assert_eq!(
        (run["points"].as_array().unwrap().len(), run["missing"].as_array().unwrap().len()),
        (1, 3),
        "{run}"
    );

    // A script that can't work is tried once at each point, and said once at the end.
    for (file, expected) in [("table.sql", "42P01"), ("fails.sql", "22012: division by zero")] {
        let arguments =
            [&["--arm", OWN, "-f", file, "--scale", "1", "--clients", "1,2"], &SHORT[..]].concat();
        let output = ended(folder.path(), &arguments, 1);
        assert!(
            out(&output).contains("a at 1 and 2 clients: ") && out(&output).contains(expected),
            "{}",
            out(&output)
        );
        assert!(err(&output).ends_with("allcore bench: nothing was measured\n"), "{}", err(&output));
    }
}

#[test]
fn a_server_that_dies_in_the_middle_is_left_out_and_the_other_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let other = Server::start(&[]);
    let url = format!("b=postgres://postgres@127.0.0.1:{}/postgres", other.port);
    let rounds = ["--clients", "1,2", "--rounds", "5", "--json", "run.json"];
    let arguments = [&["--arm", OWN, "--arm", &url], &SMALL[..], &SHORT, &rounds].concat();
    let mut running = started(folder.path(), &arguments);
    wait_for(&folder.path().join("err"), "[2/", &mut running);
    signal("KILL", server_of(running.id()).expect("the server that the lab has started"));
    let status = running.wait().unwrap();
    let said = fs::read_to_string(folder.path().join("err")).unwrap();
    assert_eq!(status.code(), Some(3), "{said}");
    let died = "a: its server has ended (signal: 9 (SIGKILL)); its last message: ";
    assert_eq!(said.lines().filter(|line| line.starts_with(died)).count(), 1, "{said}");
    let run = json(&folder.path().join("run.json"));
    let rounds = |arm: &str| -> Vec<usize> {
        let points = run["points"].as_array().unwrap().iter().filter(|point| point["arm"] == arm);
        points.map(|point| point["rounds"].as_array().unwrap().len()).collect()
    };
    assert_eq!(rounds("b"), [5, 5], "{said}");
    assert!(rounds("a").iter().all(|count| *count < 5) && !rounds("a").is_empty(), "{said}");
}

#[test]
fn postgres_is_started_beside_allcore_where_it_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let arms = ["--arm", OWN, "--arm", "pg=serve-postgres:shared_buffers=32MB", "--clients", "2"];
    let output = bench(folder.path(), &[&arms[..], &SMALL, &SHORT].concat()).output().unwrap();
    if lacks_postgres(&output) {
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(out(&output).contains("| pg"), "{}", out(&output));
}
