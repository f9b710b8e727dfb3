//! Which process of this machine a server is: by the credentials of its socket, or by who listens on its port.

use std::fs;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::Address;

/// The server's parent process, `None` if it runs elsewhere or can't be seen from here (in another container).
pub(super) fn process(of: &Address) -> Option<u32> {
    match of {
        Address::Unix(socket) => {
            // These are the credentials of who listens, at the time it began to.
            let stream = UnixStream::connect(socket).ok()?;
            let credentials = rustix::net::sockopt::socket_peercred(&stream).ok()?;
            u32::try_from(credentials.pid.as_raw_nonzero().get()).ok()
        }
        Address::Tcp(host, port) => {
            let mut addresses = (host.as_str(), *port).to_socket_addrs().ok()?;
            let connect = |address| TcpStream::connect_timeout(&address, Duration::from_secs(3)).ok();
            let stream = addresses.find_map(connect)?;
            // A connection from an address to itself doesn't leave the machine.
            let here = stream.local_addr().ok()?.ip() == stream.peer_addr().ok()?.ip();
            here.then(|| listener(*port)).flatten()
        }
    }
}

/// The first process that listens on a TCP port.
fn listener(port: u16) -> Option<u32> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let sockets: Vec<String> = tables.iter().flat_map(|table| listening(table, port)).collect();
    let numbers =
        fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut processes: Vec<u32> = numbers.collect();
    processes.sort_unstable();
    processes.into_iter().find(|process| holds(*process, &sockets))
}

/// Names, as in /proc/PID/fd, of the sockets of a table that listen on a port.
fn listening(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let socket = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let local = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        (local == port && *fields.get(3)? == LISTEN)
            .then(|| Some(format!("socket:[{}]", fields.get(9)?)))
            .flatten()
    };
    table.lines().skip(1).filter_map(socket).collect()
}

fn holds(process: u32, sockets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{process}/fd")) else { return false };
    let held =
        |path: &Path| fs::read_link(path).is_ok_and(|name| sockets.iter().any(|one| Path::new(one) == name));
    descriptors.filter_map(Result::ok).any(|entry| held(&entry.path()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn servers_of_this_machine_are_found() {
        let own = Some(std::process::id());
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(process(&Address::Tcp("localhost".to_owned(), tcp.local_addr().unwrap().port())), own);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("socket");
        assert_eq!(process(&Address::Unix(file.clone())), None);
        let _unix = UnixListener::bind(&file).unwrap();
        assert_eq!(process(&Address::Unix(file)), own);
    }
}
