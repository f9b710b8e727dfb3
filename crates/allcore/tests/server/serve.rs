//! The command itself: its start, its refusals with their messages, its end.

use crate::common::{Server, allcore, free_port, succeed, text};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs `allcore serve` with arguments that it must refuse. Returns its single line.
pub fn refusal(arguments: &[&str], data: &Path) -> String {
    let port = format!("127.0.0.1:{}", free_port());
    let mut command = allcore();
    command.arg("serve").arg("--data").arg(data).args(arguments);
    if !arguments.contains(&"--buffers") {
        command.args(["--buffers", "16MiB"]);
    }
    if !arguments.contains(&"--listen") {
        command.args(["--listen", &port]);
    }
    refused(command)
}

fn refused(mut command: Command) -> String {
    let mut child =
        command.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("{command:?} was to refuse to start, but runs");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success(), "{command:?}: {}", text(&output));
    assert_eq!(output.status.code(), Some(1), "{command:?}: {}", text(&output));
    let said = text(&output);
    let faults: Vec<&str> = said.lines().filter(|line| line.starts_with("allcore: ")).collect();
    assert_eq!(faults.len(), 1, "one clear line, not: {said}");
    assert!(!said.contains("panicked"), "{said}");
    faults[0].to_owned()
}

#[test]
fn facts_at_start_and_clean_stop() {
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::start(&[]);
        server.psql("create table kept (id int primary key); insert into kept values (1)");
        let log = server.log();
        for fact in ["cores", "NUMA", "file i/o", "buffers", "recovery"] {
            assert!(log.to_lowercase().contains(&fact.to_lowercase()), "no word of {fact} in:\n{log}");
        }
        let told = Command::new("kill").args([signal, &server.pid().to_string()]).status().unwrap();
        assert!(told.success());
        assert!(server.wait_end(Duration::from_secs(60)), "no end after {signal}:\n{}", server.log());
        server.check();
        server.launch();
        assert_eq!(server.psql("select id from kept"), "1");
    }
}

/// A last checkpoint (the first is the new folder's) that takes its time, cut short by a second
/// signal: what was acknowledged is there.
#[test]
fn a_second_signal_stops_at_once() {
    let mut server = Server::start_with(&[], &[("ALLCORE_STOP", "checkpoint.begin=park@2")]);
    server.psql("create table kept (id int primary key); insert into kept values (1)");
    let pid = server.pid().to_string();
    let signal = |name: &str| assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    signal("-TERM");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !server.log().contains("stopping on SIGTERM") {
        assert!(Instant::now() < deadline, "{}", server.log());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(!server.wait_end(Duration::from_millis(500)), "it was to wait:\n{}", server.log());
    signal("-INT");
    let status = server.end_status(Duration::from_secs(60)).expect("a second signal ends it");
    assert_eq!(status.code(), Some(1), "{}", server.log());
    assert!(!server.log().contains("info: stopped"), "{}", server.log());
    server.environment("ALLCORE_STOP", None);
    server.launch();
    assert_eq!(server.psql("select id from kept"), "1");
}

#[test]
fn settings_come_from_the_command_line_the_environment_and_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("allcore.toml");
    fs::write(
        &config,
        "# a comment\nmax-connections = 7\nbuffers = \"32MiB\"\nfile_io = \"io_uring\"\ncores = 1\n",
    )
    .unwrap();
    let server = Server::start_with(
        &["--config", config.to_str().unwrap(), "--buffers", "16MiB"],
        &[("ALLCORE_FILE_IO", "threads"), ("ALLCORE_BUFFERS", "64MiB")],
    );
    let log = server.log();
    for fact in ["1 cores", "file I/O by threads", "buffers: 16 MiB", "at most 7", "listening on 127.0.0.1:"]
    {
        assert!(log.contains(fact), "no word of {fact} in:\n{log}");
    }
}

/// A password for a folder that is none yet would keep it from becoming one.
#[test]
fn passwords_need_a_data_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    let mut command = allcore();
    command.args(["passwd", "--data"]).arg(&data).args(["postgres", "--stdin"]);
    let said = refused(command);
    assert!(said.contains("is no data folder"), "{said}");
    let said = refusal(&["--auth", "scram"], &data);
    assert!(said.contains("nobody has one: set it with 'allcore passwd"), "{said}");
    succeed(allcore().arg("check").arg("--data").arg(&data), "");
}

#[test]
fn one_clear_line_for_what_cannot_be_served() {
    let folder = tempfile::tempdir().unwrap();
    let foreign = folder.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("holiday.jpg"), "x").unwrap();
    let said = refusal(&[], &foreign);
    assert!(said.contains("no data folder"), "{said}");

    let said = refusal(&[], Path::new("/dev/null/data"));
    assert!(said.contains("/dev/null/data"), "{said}");

    let said = refusal(&["--buffers", "900TiB"], &folder.path().join("large"));
    assert!(said.contains("memory"), "{said}");
    let said = refusal(&["--buffers", "1MiB"], &folder.path().join("small"));
    assert!(said.contains("too little") && said.contains("at least"), "{said}");
    let said = refusal(&["--max-retained-log", "0"], &folder.path().join("retained"));
    assert!(said.contains("--max-retained-log") && said.contains("at least 1MiB"), "{said}");
    let said = refusal(&["--cores", "9999"], &folder.path().join("cores"));
    assert!(said.contains("--cores 9999 is too many"), "{said}");
    let said = refusal(&["--node", "9999"], &folder.path().join("node"));
    assert!(said.contains("--node 9999: this machine has no NUMA node 9999; it has: 0"), "{said}");

    let said = refusal(&["--listen", "127.0.0.1:99999"], &folder.path().join("port"));
    assert!(said.contains("99999"), "{said}");

    let said = refusal(&["--config", "/nowhere.toml"], &folder.path().join("config"));
    assert!(said.contains("/nowhere.toml"), "{said}");

    let said =
        refusal(&["--tls-cert", "/nowhere.crt", "--tls-key", "/nowhere.key"], &folder.path().join("tls"));
    assert!(said.contains("/nowhere.crt"), "{said}");
}

#[test]
fn a_live_server_s_folder_and_port_are_taken() {
    let server = Server::start(&[]);
    let said = refusal(&[], &server.data());
    assert!(said.contains("in use"), "{said}");
    let other = tempfile::tempdir().unwrap();
    let said = refusal(&["--listen", &format!("127.0.0.1:{}", server.port)], &other.path().join("data"));
    assert!(said.contains(&server.port.to_string()) && said.contains("in use"), "{said}");
    assert_eq!(server.psql("select 1"), "1");
}

#[test]
fn too_few_file_descriptors_are_noticed_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("bash");
    let line = format!(
        "ulimit -n 40; exec {} serve --data {}/data --listen 127.0.0.1:{} --buffers 16MiB",
        env!("CARGO_BIN_EXE_allcore"),
        folder.path().display(),
        free_port()
    );
    command.args(["-c", &line]);
    let said = refused(command);
    assert!(said.contains("file descriptors") && said.contains("ulimit -n"), "{said}");
}

/// Fewer than the default of connections: as many as descriptors allow, the next one is refused
/// like any too many.
#[test]
fn descriptors_bound_the_connections() {
    let folder = tempfile::tempdir().unwrap();
    let (log, port) = (folder.path().join("log"), free_port());
    let mut command = Command::new("bash");
    let line = format!(
        "ulimit -n 300; exec {} serve --data {}/data --listen 127.0.0.1:{port} --buffers 16MiB --cores 2 2>{}",
        env!("CARGO_BIN_EXE_allcore"),
        folder.path().display(),
        log.display()
    );
    let mut child = command.args(["-c", &line]).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let said = || fs::read_to_string(&log).unwrap_or_default();
    while !said().contains("ready for connections, at most 172") && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let settings = format!("host=127.0.0.1 port={port} user=postgres connect_timeout=20");
    let connect = || postgres::Client::connect(&settings, postgres::NoTls);
    let held: Vec<_> = (0..172).map(|_| connect()).collect();
    let refused = connect().err().and_then(|fault| fault.code().cloned());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(said().contains("only 300 file descriptors are allowed"), "{}", said());
    assert_eq!(held.iter().filter(|client| client.is_err()).count(), 0, "{}", said());
    assert_eq!(refused, Some(postgres::error::SqlState::TOO_MANY_CONNECTIONS));
}

#[test]
fn a_folder_without_permission_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, std::os::unix::fs::PermissionsExt::from_mode(0o000)).unwrap();
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let somebody = || {
        if fs::read_dir(&data).is_err() {
            return allcore();
        }
        // Root may do everything: ask as somebody else, with a copy of the command that somebody
        // else may run. A process of its own writes the copy: a child of another test could inherit
        // a file open for writing ("text file busy").
        let copy = folder.path().join("allcore");
        succeed(Command::new("install").args(["-m", "755", env!("CARGO_BIN_EXE_allcore")]).arg(&copy), "");
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy);
        command
    };
    let mut command = somebody();
    command.arg("serve").arg("--data").arg(&data).args([
        "--listen",
        &format!("127.0.0.1:{}", free_port()),
        "--buffers",
        "16MiB",
    ]);
    let said = refused(command);
    assert!(said.to_lowercase().contains("permission denied"), "{said}");
    let mut command = somebody();
    command.arg("check").arg("--data").arg(&data);
    let said = refused(command);
    assert!(said.to_lowercase().contains("permission denied"), "{said}");
}

#[test]
fn passwords_are_asked_for_with_scram() {
    let mut server = Server::start(&[]);
    server.stop();
    let mut command = allcore();
    command.args(["passwd", "--data"]).arg(server.data()).args(["postgres", "--stdin"]);
    let mut child = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), b"sec ret\n").unwrap();
    assert!(child.wait().unwrap().success());
    server.environment("ALLCORE_AUTH", Some("scram"));
    server.environment("PGPASSWORD", None);
    server.launch_unready();
    let login = |user: &str, password: &str| {
        let mut command = server.client("psql");
        command.env("PGPASSWORD", password).env("PGUSER", user).args([
            "-X",
            "-A",
            "-t",
            "-w",
            "-c",
            "select current_user",
        ]);
        text(&command.output().unwrap())
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    let not_yet = |said: &str| said.contains("refused") || said.contains("is starting up");
    while not_yet(&login("postgres", "sec ret")) {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(login("postgres", "sec ret").trim(), "postgres");
    for (user, password) in [("postgres", "secret"), ("postgres", ""), ("nobody", "sec ret")] {
        let said = login(user, password);
        assert!(
            said.contains("password authentication failed") || said.contains("no password supplied"),
            "{said}"
        );
    }
}

#[test]
fn help_names_every_setting() {
    let output = allcore().args(["serve", "--help"]).output().unwrap();
    let said = text(&output);
    assert!(output.status.success());
    for setting in [
        "--data",
        "--listen",
        "--socket-dir",
        "--cores",
        "--node",
        "--buffers",
        "--auth",
        "--file-io",
        "--config",
        "--tls-cert",
        "--tls-key",
        "--max-connections",
        "--superuser-reserved-connections",
        "--max-logins",
        "--authentication-timeout",
        "--i-know",
        "--tls",
        "--max-retained-log",
        "--log-format",
        "--log-level",
        "--set",
    ] {
        assert!(said.contains(setting), "{setting} is not in the help");
    }
}

#[test]
fn wrong_values_of_options_are_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let data = data.to_str().unwrap();
    for (option, value, advice) in [
        ("--node", "abc", "'abc' is no number of a NUMA node: give the kernel's number, such as 0"),
        ("--node", "-1", "is no number of a NUMA node"),
        ("--superuser-reserved-connections", "x", "'x' is no whole number: give one, such as 3"),
        ("--metrics", "off", "--metrics off names no address: "),
        ("--metrics", "9187", "give HOST:PORT, such as 127.0.0.1:5432, or 'none'"),
        ("--listen", "abc", "--listen abc names no address: "),
    ] {
        let output =
            allcore().args(["serve", "--data", data, &format!("{option}={value}")]).output().unwrap();
        let said = text(&output);
        assert!(!output.status.success() && said.contains(advice), "{option} {value}: {said}");
    }
}

#[test]
fn a_server_has_no_metrics_on_none_and_tells_of_a_smaller_batch() {
    let server = Server::start(&["--metrics", "none", "--clock-sweep-batch", "100000", "--cores", "2"]);
    let log = server.log();
    assert!(!log.contains("metrics at"), "{log}");
    let told = "the clock sweep claims 1024 frames at a time, not 100000: all claims together are at most half \
        of the 8192 frames";
    assert!(log.contains(told), "{log}");
}

#[cfg(not(variants))]
#[test]
fn the_shipped_executable_names_the_one_that_has_variants() {
    let output = allcore().args(["serve", "--data", "/nowhere", "--variant", "pin=stock"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output).contains("'make variants' builds"), "{}", text(&output));
    let help = allcore().args(["serve", "--help"]).output().unwrap();
    assert!(!text(&help).contains("--variant"), "{}", text(&help));
}

#[test]
fn a_server_of_one_node_has_its_processors_and_prefers_its_memory() {
    let server = Server::start(&["--node", "0"]);
    assert!(server.log().contains("runs on NUMA node 0"), "{}", server.log());
    let of_process = |file: &str| fs::read_to_string(format!("/proc/{}/{file}", server.pid()));
    let of_system = |file: &str| fs::read_to_string(format!("/sys/devices/system/{file}"));
    let allowed = |status: String| {
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.unwrap().trim().to_owned()
    };
    // A container may show no nodes. The test itself may be confined.
    if let (Ok(node), Ok(all)) = (of_system("node/node0/cpulist"), of_system("cpu/online"))
        && allowed(fs::read_to_string("/proc/self/status").unwrap()) == all.trim()
    {
        assert_eq!(allowed(of_process("status").unwrap()), node.trim());
    }
    // With one node all memory is on it. A kernel without NUMA has no such files.
    if let (Ok(maps), Ok(_)) = (of_process("numa_maps"), of_system("node/node1/cpulist")) {
        assert!(maps.contains("prefer:0"), "{maps}");
    }
    // The view says the same. On one node the server asks for no policy; the test may have one.
    let maps = of_process("numa_maps").unwrap_or_default();
    let is_default = maps.lines().all(|line| line.split(' ').nth(1) == Some("default"));
    let policies = server.psql("select string_agg(distinct policy, ' ') from allcore_memory");
    assert_eq!(policies, if is_default { "none" } else { "operator" }, "{maps}");
}
