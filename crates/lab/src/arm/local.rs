//! Finds the process of this machine that a server is, by its socket's credentials or by the
//! listener on its port.

use std::collections::HashSet;
use std::fs;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use procfs::net::TcpState;
use procfs::process::{FDTarget, Process, all_processes};

use super::Address;

/// Programs that listen in a server's place and forward its traffic, by their names in
/// /proc/PID/comm, which the kernel cuts. Their work is not the server's, and the server may be in
/// another container or on another machine.
const PROXIES: &str = "docker-proxy rootlessport rootlesskit slirp4netns gvproxy conmon kubectl ssh sshd sshd-session \
    socat systemd systemd-socket- pgbouncer pgpool odyssey haproxy envoy proxysql maxscale";

/// The server's parent process. `None` if it runs elsewhere or is invisible from here (in another
/// container). The error names the program that listens in its place.
pub(super) fn process(of: &Address) -> Result<Option<u32>, String> {
    let listening = match of {
        Address::Unix(socket) => peer(socket).into_iter().collect(),
        Address::Tcp(host, port) if is_here(host, *port) => listeners(*port),
        Address::Tcp(..) => Vec::new(),
    };
    first(&listening, PROXIES)
}

/// The first of these processes that is no proxy; the name of a proxy where all of them are
/// proxies.
fn first(processes: &[u32], proxies: &str) -> Result<Option<u32>, String> {
    let name = |process: u32| fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let mut proxy = None;
    for process in processes {
        let name = name(*process);
        if proxies.split(' ').all(|proxy| proxy != name.trim()) {
            return Ok(Some(*process));
        }
        proxy.get_or_insert_with(|| name.trim().to_owned());
    }
    proxy.map_or(Ok(None), |name| {
        Err(format!(
            "{name} listens in its server's place (process {}) and forwards the traffic",
            processes[0]
        ))
    })
}

/// The process that listens on a socket, from the credentials it had when it began to listen.
fn peer(socket: &Path) -> Option<u32> {
    let stream = UnixStream::connect(socket).ok()?;
    let credentials = rustix::net::sockopt::socket_peercred(&stream).ok()?;
    u32::try_from(credentials.pid.as_raw_nonzero().get()).ok()
}

/// Whether a connection to this address stays on the machine: then its two ends have the same
/// address.
fn is_here(host: &str, port: u16) -> bool {
    let connect = |address| TcpStream::connect_timeout(&address, Duration::from_secs(3)).ok();
    let stream = (host, port).to_socket_addrs().ok().and_then(|mut addresses| addresses.find_map(connect));
    let ends =
        stream.and_then(|stream| Some((stream.local_addr().ok()?.ip(), stream.peer_addr().ok()?.ip())));
    ends.is_some_and(|(own, other)| own == other)
}

/// The processes that listen on a TCP port, by rising process number: a parent comes before its
/// children.
fn listeners(port: u16) -> Vec<u32> {
    let tables = [procfs::net::tcp(), procfs::net::tcp6()].into_iter().flatten().flatten();
    let listening = tables.filter(|one| one.state == TcpState::Listen && one.local_address.port() == port);
    let sockets: HashSet<u64> = listening.map(|one| one.inode).collect();
    let is_one = |target| matches!(target, FDTarget::Socket(number) if sockets.contains(&number));
    let holds = |process: &Process| {
        process.fd().is_ok_and(|mut all| all.any(|fd| fd.is_ok_and(|fd| is_one(fd.target))))
    };
    let all = all_processes().into_iter().flatten().flatten();
    let mut processes: Vec<u32> = all.filter(holds).map(|process| process.pid as u32).collect();
    processes.sort_unstable();
    processes
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;
    use crate::tests::{Spawned, wait_until};

    #[test]
    fn servers_of_this_machine_are_found() {
        let own = Ok(Some(std::process::id()));
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(process(&Address::Tcp("localhost".to_owned(), tcp.local_addr().unwrap().port())), own);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("socket");
        assert_eq!(process(&Address::Unix(file.clone())), Ok(None));
        let _unix = UnixListener::bind(&file).unwrap();
        assert_eq!(process(&Address::Unix(file)), own);
    }

    #[test]
    fn a_proxy_is_no_server() {
        let own = std::process::id();
        let sleeper = Spawned::sleeping();
        // The process has its own name once it runs.
        let name = || fs::read_to_string(format!("/proc/{}/comm", sleeper.id())).unwrap();
        wait_until(|| name() == "sleep\n");
        let proxies = "cat sleep";
        assert_eq!(first(&[sleeper.id(), own], proxies), Ok(Some(own)));
        let error = first(&[sleeper.id()], proxies).unwrap_err();
        assert!(error.starts_with("sleep listens in its server's place"), "{error}");
        assert_eq!(first(&[], proxies), Ok(None));
    }
}
