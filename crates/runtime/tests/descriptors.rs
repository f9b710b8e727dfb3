//! Accepting while the process has no descriptors left. A process of its own, because the limit is
//! the process's.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use runtime::net::{Accepted, Address, Next, Serve, SessionIo};
use runtime::{FileIo, Options, Runtime};

struct Echo;

impl Serve for Echo {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        let (input, output) = io.both();
        output.extend_from_slice(input);
        let len = input.len();
        io.consume(len);
        Next::Wait
    }

    fn closed(&mut self) {}
}

fn set_limit(soft: u64) -> u64 {
    // SAFETY: plain system calls on a local struct, for which all zero is a value.
    unsafe {
        let mut limits: libc::rlimit = std::mem::zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &mut limits);
        let old = limits.rlim_cur;
        limits.rlim_cur = soft;
        assert_eq!(libc::setrlimit(libc::RLIMIT_NOFILE, &limits), 0);
        old
    }
}

fn exchange(client: &mut TcpStream) {
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    client.write_all(b"hello").unwrap();
    let mut back = [0; 5];
    client.read_exact(&mut back).unwrap();
    assert_eq!(&back, b"hello");
}

#[test]
fn running_out_of_descriptors_is_survived() {
    let options = Options { cores: Some(1), pin: false, file_io: FileIo::Threads, ..Options::default() };
    let runtime = Runtime::start(options).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let accept = |_: &Accepted| Box::new(Echo) as Box<dyn Serve>;
    let listener = runtime.listen(Address::Tcp(any), Arc::new(accept)).unwrap();
    let Address::Tcp(at) = *listener.address() else { panic!("not over TCP") };
    let mut early = TcpStream::connect(at).unwrap();
    exchange(&mut early);
    // The client's socket takes the last descriptor: connecting succeeds (the kernel queues it),
    // accepting can't.
    let next_free = std::fs::File::open("/dev/null").unwrap();
    let next = std::os::fd::AsRawFd::as_raw_fd(&next_free) as u64;
    drop(next_free);
    let old = set_limit(next + 1);
    let mut late = TcpStream::connect(at).unwrap();
    late.write_all(b"early").unwrap();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(runtime.session_count(), 1);
    exchange(&mut early);
    set_limit(old);
    late.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    late.read_exact(&mut [0; 5]).unwrap();
    exchange(&mut late);
    drop(listener);
    runtime.shutdown();
}
