//! A server, a check and a password command refuse a path that holds no regular file. The message
//! names the path and the kind of file.

use crate::common::{Server, allcore, succeed, text};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The output of a command that must fail, and may not wait for anything.
fn refused(command: &mut std::process::Command) -> String {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{command:?} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    let said = text(&output);
    // The lab has a status of its own for a wrong command line.
    assert!(matches!(output.status.code(), Some(1 | 2)), "{command:?}: {said}");
    said
}

/// Puts a file of this kind at a path.
fn put(kind: &str, path: &Path) {
    match kind {
        "FIFO" => succeed(std::process::Command::new("mkfifo").args(["-m", "600"]).arg(path), ""),
        "socket" => {
            drop(std::os::unix::net::UnixListener::bind(path).unwrap());
            fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
            String::new()
        }
        "folder" => succeed(std::process::Command::new("mkdir").args(["-m", "700"]).arg(path), ""),
        "device" => {
            // Without the right to make one: a link to one that exists, open to everybody.
            let mut make = std::process::Command::new("mknod");
            match make.args(["-m", "600"]).arg(path).args(["c", "1", "5"]).output() {
                Ok(output) if output.status.success() => String::new(),
                _ => succeed(std::process::Command::new("ln").args(["-s", "/dev/zero"]).arg(path), ""),
            }
        }
        _ => succeed(std::process::Command::new("ln").arg("-s").args([path, path]), ""),
    };
}

#[test]
fn a_path_without_a_regular_file_is_refused_by_name() {
    let mut server = Server::start(&[]);
    let data = server.data();
    let typed = data.parent().unwrap().join("typed");
    fs::write(&typed, "secret\n").unwrap();
    let password = |data: &Path| {
        let mut command = allcore();
        command.args(["passwd", "postgres", "--data"]).arg(data).stdin(fs::File::open(&typed).unwrap());
        command
    };
    succeed(&mut password(&data), "");
    server.stop();
    let mut segments: Vec<_> =
        fs::read_dir(data.join("log")).unwrap().map(|one| one.unwrap().path()).collect();
    segments.sort();
    let segment = format!("log/{}", segments[0].file_name().unwrap().to_str().unwrap());
    let check = |data: &Path| {
        let mut command = allcore();
        command.args(["check", "--data"]).arg(data);
        command
    };
    let serve = |data: &Path| {
        let mut command = allcore();
        command.args(["serve", "--listen", "127.0.0.1:0", "--buffers", "16MiB", "--auth", "scram", "--data"]);
        command.arg(data);
        command
    };
    let kinds = ["FIFO", "socket", "folder", "device", "link to itself"];
    for name in
        ["ALLCORE", "lock", "control", "durable", "pages", &segment, "temp", "login-secret", "passwords"]
    {
        let (path, kept) = (data.join(name), data.join("kept"));
        let is_kept = fs::rename(&path, &kept).is_ok();
        for kind in kinds {
            put(kind, &path);
            let mut commands = Vec::new();
            if !matches!(name, "temp" | "login-secret" | "passwords") {
                commands.push(check(&data));
            }
            if kind == "FIFO" {
                commands.push(serve(&data));
            }
            if name == "passwords" {
                commands.push(password(&data));
            }
            for mut command in commands {
                let said = refused(&mut command);
                let why = match kind {
                    "link to itself" => "Too many levels of symbolic links".to_owned(),
                    // The refusal of a device open to others names that.
                    "device" if path.is_symlink() && said.contains("open to others") => {
                        "run 'chmod 600".to_owned()
                    }
                    kind => format!("is a {kind}, not a regular file"),
                };
                assert!(said.contains(&format!("/{name}")) && said.contains(&why), "{name}, {kind}: {said}");
            }
            if kind == "folder" { fs::remove_dir(&path) } else { fs::remove_file(&path) }.unwrap();
        }
        if is_kept {
            fs::rename(&kept, &path).unwrap();
        }
    }
    server.check();
}

#[test]
fn settings_and_certificates_that_are_no_regular_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (certificate, key) = crate::common::certificate(folder.path());
    let config = path("allcore.toml");
    fs::write(&config, "").unwrap();
    let options = [("--config", &config), ("--tls-cert", &certificate), ("--tls-key", &key)];
    let mut server = Server::start(&[]);
    let data = server.data();
    server.stop();
    for (name, file) in options {
        let kept = path("kept");
        fs::rename(file, &kept).unwrap();
        for kind in ["FIFO", "socket", "folder", "device", "link to itself", "nothing", "wrong text"] {
            match kind {
                "nothing" => {}
                "wrong text" => {
                    fs::write(file, "no such thing\n").unwrap();
                    fs::set_permissions(file, Permissions::from_mode(0o600)).unwrap();
                }
                kind => put(kind, file),
            }
            let mut command = allcore();
            command.args(["serve", "--listen", "127.0.0.1:0", "--buffers", "16MiB", "--data"]).arg(&data);
            for (name, file) in options {
                command.arg(name).arg(file);
            }
            let said = refused(&mut command);
            let why = match kind {
                "link to itself" => "Too many levels of symbolic links".to_owned(),
                "nothing" => "No such file".to_owned(),
                "wrong text" => String::new(),
                kind => format!("is a {kind}, not a regular file"),
            };
            let line = said.lines().last().unwrap();
            assert!(line.contains(file.to_str().unwrap()) && line.contains(&why), "{name}, {kind}: {said}");
            drop(fs::remove_file(file).or_else(|_| fs::remove_dir(file)));
        }
        fs::rename(&kept, file).unwrap();
    }
}

#[test]
fn the_lab_and_a_prompt_read_an_endless_file_to_a_bound_only() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    put("FIFO", &fifo);
    for path in [folder.path(), &fifo, Path::new("/dev/zero")] {
        for options in [&["mechanism", "--from"][..], &["mechanism", "--engine"], &["report"]] {
            let said = refused(allcore().arg("bench").args(options).arg(path));
            let expected = format!("{}: not a regular file: name one", path.display());
            assert!(said.contains(&expected), "{options:?}: {said}");
        }
    }
    // The password is read before the folder is looked at closely.
    let data = folder.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("ALLCORE"), "").unwrap();
    let endless = fs::File::open("/dev/zero").unwrap();
    let said = refused(allcore().args(["passwd", "postgres", "--data"]).arg(&data).stdin(endless));
    assert!(said.contains("the first line has 65536 bytes or more: it is no password"), "{said}");
}
