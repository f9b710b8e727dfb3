//! Sessions over real sockets: many at once, partial and large messages, backpressure, wake-ups,
//! shutdown.

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sync::atomic::{AtomicUsize, Ordering};

mod rehome;

use rehome::{
    a_session_moves_between_two_parts_of_a_message, half_of_the_sessions_that_wait_move,
    no_interrupt_is_lost_on_the_way,
};

use super::*;
use crate::interrupt::{self, Interrupt, Interrupted, Reason};
use crate::tests::start_with;
use crate::{FileIo, Runtime, fiber};

/// Answers messages of `[length u32][kind u8][body]` with the same bytes; the kind says what
/// happens before.
struct Echo {
    closed: Arc<AtomicUsize>,
    wakes: usize,
    /// It is ready again whenever it is served.
    restless: bool,
}

impl Serve for Echo {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        match interrupt::check() {
            Err(Interrupted(Reason::Terminate | Reason::Shutdown)) => {
                io.output().extend_from_slice(b"bye!");
                return Next::Close;
            }
            Err(Interrupted(_)) => self.wakes += 1,
            Ok(()) => {}
        }
        if self.restless {
            io.interrupt().wake_session();
        }
        while io.input().len() >= 5 {
            let len = u32::from_le_bytes(io.input()[..4].try_into().unwrap()) as usize + 4;
            if io.input().len() < len {
                if len < 1 << 20 {
                    break;
                }
                io.fill(len).unwrap();
            }
            match io.input()[4] {
                b'p' => fiber::sleep(Duration::from_millis(5)),
                b'y' => fiber::yield_now(),
                b's' => std::thread::sleep(Duration::from_millis(20)), // the core stands still
                b'x' => panic!("expected: a session panics"),
                b'q' => return Next::Close,
                b'r' => {
                    self.restless = true;
                    io.interrupt().wake_session();
                }
                b'w' => {
                    let raised = io.interrupt().clone();
                    crate::timer::after(Duration::from_millis(5), move || raised.raise(Reason::IdleTimeout));
                }
                b'h' => {
                    let core = crate::core() as u8;
                    io.output().push(core);
                }
                b'c' => {
                    let wakes = self.wakes as u8;
                    io.output().push(wakes);
                }
                b'l' => {
                    // A long wait that a shutdown must end.
                    while interrupt::park().is_ok() {}
                    return Next::Close;
                }
                b'g' => {
                    io.linger();
                    io.output().extend_from_slice(LAST_WORDS);
                    return Next::Close;
                }
                _ => {}
            }
            let (input, output) = io.both();
            output.extend_from_slice(&input[..len]);
            io.consume(len);
            if io.output().len() > 1 << 16 && io.flush().is_err() {
                return Next::Close;
            }
        }
        Next::Wait
    }

    fn may_leave_core(&self) -> bool {
        !self.restless
    }

    fn closed(&mut self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }
}

struct Server {
    runtime: Arc<Runtime>,
    listener: Listener,
    closed: Arc<AtomicUsize>,
}

fn serve(way: FileIo, cores: usize, address: Address) -> Server {
    let runtime = start_with(cores, way);
    let closed = Arc::new(AtomicUsize::new(0));
    let count = closed.clone();
    let accept = move |_: &Accepted| -> Box<dyn Serve> {
        Box::new(Echo { closed: count.clone(), wakes: 0, restless: false })
    };
    let listener = runtime.listen(address, Arc::new(accept)).unwrap();
    Server { runtime, listener, closed }
}

/// Each test with a system call for each send and receive, and with the ring where the kernel
/// grants one.
macro_rules! both_ways {
    ($($name:ident),* $(,)?) => {
        mod plain {
            $(#[test] fn $name() { super::$name(crate::FileIo::Threads); })*
        }
        mod ring {
            $(#[test] fn $name() {
                if !crate::tests::ring_refused() {
                    super::$name(crate::FileIo::IoUring);
                }
            })*
        }
    };
}

both_ways! {
    new_sessions_go_where_the_fewest_live,
    a_session_counts_in_each_round_that_serves_it,
    messages_whole_in_parts_in_rows_and_large,
    backpressure_holds_back_and_loses_nothing,
    a_thousand_sessions_at_once,
    a_session_is_let_in_by_the_service_worker_and_served_by_a_core,
    endings_of_every_kind,
    last_words_reach_a_client_that_still_sends,
    an_idle_session_is_woken_by_its_interrupt,
    unix_sockets_permissions_and_stale_files,
    shutdown_ends_idle_waiting_and_blocked_sessions,
    many_full_sockets_keep_their_order,
    a_reply_does_not_wait_for_another_session_of_its_round,
    a_session_that_is_always_ready_starves_nobody,
    replies_that_the_kernel_holds_are_counted,
    a_closed_session_stays_until_its_client_has_read,
    a_session_moves_between_two_parts_of_a_message,
    half_of_the_sessions_that_wait_move,
    no_interrupt_is_lost_on_the_way,
}

fn tcp() -> Address {
    Address::Tcp("127.0.0.1:0".to_socket_addrs().unwrap().next().unwrap())
}

impl Server {
    fn connect(&self) -> TcpStream {
        let Address::Tcp(at) = self.listener.address() else { panic!("not over TCP") };
        let client = TcpStream::connect(at).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        client
    }

    /// Waits until `count` sessions were told of their end and `left` live. A session is counted
    /// out after its end.
    fn wait_closed(&self, count: usize, left: usize) {
        let now = || (self.closed.load(Ordering::Relaxed), self.runtime.session_count());
        for _ in 0..60_000 {
            if now() == (count, left) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("{:?} sessions closed and left, not {:?}", now(), (count, left));
    }
}

fn message(kind: u8, body: usize) -> Vec<u8> {
    let mut bytes = (body as u32 + 1).to_le_bytes().to_vec();
    bytes.push(kind);
    bytes.extend((0..body).map(|i| (i * 31) as u8));
    bytes
}

fn exchange(client: &mut (impl Read + Write), sent: &[u8]) {
    client.write_all(sent).unwrap();
    expect(client, sent);
}

fn expect(client: &mut impl Read, wanted: &[u8]) {
    let mut got = vec![0; wanted.len()];
    client.read_exact(&mut got).unwrap();
    assert!(got == wanted);
}

/// The core that a client's session is on.
fn core_of(client: &mut TcpStream) -> u8 {
    let asked = message(b'h', 3);
    client.write_all(&asked).unwrap();
    let mut core = [0];
    client.read_exact(&mut core).unwrap();
    expect(client, &asked);
    core[0]
}

fn a_session_counts_in_each_round_that_serves_it(way: FileIo) {
    let server = serve(way, 1, tcp());
    let mut client = server.connect();
    let mut counts = || {
        (0..50).for_each(|_| exchange(&mut client, &message(b'.', 3)));
        let core = server.runtime.workers_in_use().swap_remove(0);
        [core.served, core.events, core.sleeps]
    };
    let (before, after) = (counts(), counts());
    assert!(after[0] >= before[0] + 50 && after[1] >= before[1] + 50, "{before:?} {after:?}");
    assert!(after[2] > before[2], "{before:?} {after:?}");
}

/// Cores get new sessions by how many live ones they have, also after most of them have gone from
/// one core.
fn new_sessions_go_where_the_fewest_live(way: FileIo) {
    let server = serve(way, 3, tcp());
    let count = |clients: &[(u8, TcpStream)]| {
        [0, 1, 2].map(|core| clients.iter().filter(|(home, _)| *home == core).count())
    };
    let join = |clients: &mut Vec<(u8, TcpStream)>, more: usize| {
        for _ in 0..more {
            let mut client = server.connect();
            clients.push((core_of(&mut client), client));
        }
    };
    let mut clients = Vec::new();
    join(&mut clients, 60);
    assert_eq!(count(&clients), [20, 20, 20]);
    for round in 1..=20 {
        let emptied = round % 3;
        clients.retain(|(core, _)| *core != emptied as u8);
        server.wait_closed(20 * round, 40);
        join(&mut clients, 20);
        assert_eq!(count(&clients), [20, 20, 20], "round {round}");
    }
    server.runtime.shutdown();
}

fn messages_whole_in_parts_in_rows_and_large(way: FileIo) {
    let server = serve(way, 2, tcp());
    let mut client = server.connect();
    client.set_nodelay(true).unwrap();
    exchange(&mut client, &message(b'e', 10));
    let parts = message(b'e', 300);
    for part in parts.chunks(7) {
        client.write_all(part).unwrap();
        std::thread::sleep(Duration::from_micros(200));
    }
    expect(&mut client, &parts);
    let row: Vec<u8> = (0..500).flat_map(|i| message(if i % 50 == 0 { b'y' } else { b'e' }, i)).collect();
    exchange(&mut client, &row);
    for size in [20_000, 65_531, 70_000, 900_000] {
        exchange(&mut client, &message(b'e', size));
    }
    let mut other = client.try_clone().unwrap();
    let large = message(b'e', 5 << 20);
    std::thread::scope(|scope| {
        scope.spawn(|| other.write_all(&large).unwrap());
        expect(&mut client, &large);
    });
    exchange(&mut client, &message(b'e', 1));
    drop((client, other));
    server.wait_closed(1, 0);
}

fn backpressure_holds_back_and_loses_nothing(way: FileIo) {
    let server = serve(way, 1, tcp());
    let mut client = server.connect();
    let mut writer = client.try_clone().unwrap();
    let one = message(b'e', 30_000);
    std::thread::scope(|scope| {
        // The replies are not read for a while: the session fills the socket, parks, and is held
        // back.
        scope.spawn(|| (0..600).for_each(|_| writer.write_all(&one).unwrap()));
        std::thread::sleep(Duration::from_millis(200));
        let mut other = server.connect();
        exchange(&mut other, &message(b'e', 5)); // the core serves others meanwhile
        (0..600).for_each(|_| expect(&mut client, &one));
    });
}

/// Sessions come to their turn with bytes received before it, while replies are left over, with
/// more than one receive takes, and with nothing.
fn many_full_sockets_keep_their_order(way: FileIo) {
    let server = serve(way, 2, tcp());
    std::thread::scope(|scope| {
        for number in 0..150_usize {
            let mut client = server.connect();
            let mut writer = client.try_clone().unwrap();
            let sizes =
                (0..400_usize).map(move |turn| (turn * 7919 + number * 104_729) % 9000 / (1 + turn % 4));
            let kind = |size: usize| if size.is_multiple_of(97) { b'y' } else { b'e' };
            let messages = sizes.map(move |size| message(kind(size), size));
            let sent = messages.clone();
            scope.spawn(move || sent.for_each(|message| writer.write_all(&message).unwrap()));
            scope.spawn(move || {
                std::thread::sleep(Duration::from_millis(number as u64 % 5 * 40));
                messages.for_each(|message| expect(&mut client, &message));
            });
        }
    });
    server.wait_closed(150, 0);
}

fn a_thousand_sessions_at_once(way: FileIo) {
    let server = serve(way, 2, tcp());
    let mut clients: Vec<_> = (0..1000).map(|_| server.connect()).collect();
    for round in 0..5 {
        for (i, client) in clients.iter_mut().enumerate() {
            client.write_all(&message(if i % 10 == round { b'p' } else { b'e' }, i)).unwrap();
        }
        for (i, client) in clients.iter_mut().enumerate() {
            expect(client, &message(if i % 10 == round { b'p' } else { b'e' }, i));
        }
    }
    let counts: Vec<_> =
        server.runtime.shared.sessions.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    // The reserve worker and the service worker keep none.
    assert_eq!(counts, [500, 500, 0, 0]);
    drop(clients);
    server.wait_closed(1000, 0);
}

/// Answers each byte with the number of the worker that serves it. After the byte `e` it enters a
/// core, after `r` the reserve worker.
struct Entering;

impl Serve for Entering {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        while let Some(&byte) = io.input().first() {
            io.consume(1);
            let worker = crate::core() as u8;
            io.output().push(worker);
            match byte {
                b'e' => return Next::Enter,
                b'r' => return Next::EnterReserve,
                _ => {}
            }
        }
        Next::Wait
    }

    fn is_entering(&self) -> bool {
        true
    }

    fn closed(&mut self) {}
}

fn a_session_is_let_in_by_the_service_worker_and_served_by_a_core(way: FileIo) {
    let runtime = start_with(2, way);
    let accept = |_: &Accepted| Box::new(Entering) as Box<dyn Serve>;
    let listener = runtime.listen(tcp(), Arc::new(accept)).unwrap();
    // Cores that are held for as long as the clients come in.
    let (begun, held) = std::sync::mpsc::channel();
    let free: Vec<_> = (0..2)
        .map(|core| {
            let (free, wait) = std::sync::mpsc::channel::<()>();
            let begun = begun.clone();
            runtime.spawn(core, move || {
                begun.send(()).unwrap();
                let _ = wait.recv();
            });
            held.recv().unwrap();
            free
        })
        .collect();
    let Address::Tcp(at) = *listener.address() else { panic!("not over TCP") };
    let mut clients: Vec<_> = (0..6).map(|_| TcpStream::connect(at).unwrap()).collect();
    for client in &mut clients {
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        client.write_all(b"a").unwrap();
        expect(client, &[3]);
        // Bytes that come with the last one are for the core.
        client.write_all(b"exy").unwrap();
        expect(client, &[3]);
    }
    drop(free);
    for (index, client) in clients.iter_mut().enumerate() {
        let core = index as u8 % 2;
        expect(client, &[core, core]);
        client.write_all(b"eaz").unwrap();
        expect(client, &[core, core, core]);
    }
    let mut reserve = TcpStream::connect(at).unwrap();
    reserve.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    reserve.write_all(b"arb").unwrap();
    // The service worker is the last one.
    expect(&mut reserve, &[3, 3, 2]);
    drop((clients, reserve));
    drop(listener);
    runtime.shutdown();
}

fn endings_of_every_kind(way: FileIo) {
    let server = serve(way, 1, tcp());
    let end_of = |kind: u8| {
        let mut client = server.connect();
        exchange(&mut client, &message(b'e', 1));
        client.write_all(&message(kind, 1)).unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"");
    };
    end_of(b'x');
    end_of(b'q');
    // A half-closed client still gets its reply.
    let mut client = server.connect();
    client.write_all(&message(b'p', 9)).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    expect(&mut client, &message(b'p', 9));
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    server.wait_closed(3, 0);
}

fn a_reply_does_not_wait_for_another_session_of_its_round(way: FileIo) {
    let server = serve(way, 1, tcp());
    let mut clients: Vec<_> = (0..6).map(|_| server.connect()).collect();
    clients.iter_mut().for_each(|client| exchange(client, &message(b'e', 1)));
    // While the core stands still, the others become readable; those in the middle park for good.
    clients[0].write_all(&message(b's', 1)).unwrap();
    std::thread::sleep(Duration::from_millis(5));
    for (client, kind) in clients[1..].iter_mut().zip(*b"elele") {
        client.write_all(&message(kind, 7)).unwrap();
    }
    expect(&mut clients[0], &message(b's', 1));
    for replied in [1, 3, 5] {
        expect(&mut clients[replied], &message(b'e', 7));
    }
}

/// As with a client that sends faster than it is served: others are served, fibers go on, mail and
/// timers come.
fn a_session_that_is_always_ready_starves_nobody(way: FileIo) {
    let server = serve(way, 1, tcp());
    let (mut first, mut other) = (server.connect(), server.connect());
    exchange(&mut other, &message(b'e', 1));
    exchange(&mut first, &message(b'r', 1));
    exchange(&mut other, &message(b'e', 1));
    exchange(&mut other, &message(b'p', 1));
    exchange(&mut server.connect(), &message(b'e', 1));
    assert_eq!(server.runtime.call(0, || 1), 1);
    exchange(&mut first, &message(b'e', 5));
}

const LAST_WORDS: &[u8] = b"the server ends this";

fn last_words_reach_a_client_that_still_sends(way: FileIo) {
    let server = serve(way, 1, tcp());
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    let mut sent = message(b'g', 10);
    // More than is received at once: the rest is there, unread, when the connection is closed.
    sent.resize(256 * 1024, b'x');
    for client in &mut clients {
        client.write_all(&sent).unwrap();
    }
    for mut client in clients {
        let mut said = Vec::new();
        client.read_to_end(&mut said).unwrap();
        assert_eq!(said, LAST_WORDS);
    }
    server.wait_closed(4, 0);
    // A client that does not close is not waited for.
    let mut silent = server.connect();
    silent.write_all(&message(b'g', 10)).unwrap();
    expect(&mut silent, LAST_WORDS);
    server.wait_closed(5, 0);
    drop(silent);
    server.runtime.shutdown();
}

fn an_idle_session_is_woken_by_its_interrupt(way: FileIo) {
    let server = serve(way, 1, tcp());
    let mut client = server.connect();
    exchange(&mut client, &message(b'w', 1));
    std::thread::sleep(Duration::from_millis(50));
    client.write_all(&message(b'c', 0)).unwrap();
    expect(&mut client, &[1]);
    expect(&mut client, &message(b'c', 0));
}

fn unix_sockets_permissions_and_stale_files(way: FileIo) {
    let path: PathBuf = std::env::temp_dir().join(format!("allcore-net-{}-{way:?}", std::process::id()));
    let address = || Address::Unix { path: path.clone(), mode: 0o600 };
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap()); // leaves a stale socket
    let server = serve(way, 1, address());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut client = UnixStream::connect(&path).unwrap();
    exchange(&mut client, &message(b'e', 77));
    let taken = server.runtime.listen(address(), Arc::new(|_: &Accepted| unreachable!()));
    assert_eq!(taken.unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    exchange(&mut client, &message(b'e', 78));
    drop(server);
    assert!(!path.exists());
}

fn shutdown_ends_idle_waiting_and_blocked_sessions(way: FileIo) {
    let server = serve(way, 2, tcp());
    let mut idle: Vec<_> = (0..50).map(|_| server.connect()).collect();
    idle.iter_mut().for_each(|client| exchange(client, &message(b'e', 3)));
    let mut waiting: Vec<_> = (0..10).map(|_| server.connect()).collect();
    waiting.iter_mut().for_each(|client| client.write_all(&message(b'l', 3)).unwrap());
    // A client that sends and never reads.
    let mut blocked = server.connect();
    blocked.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
    let one = message(b'e', 60_000);
    while blocked.write_all(&one).is_ok() {}
    let began = crate::time::precise();
    server.runtime.shutdown();
    assert!(crate::time::precise() - began < 2_000_000_000);
    assert_eq!(server.runtime.session_count(), 0);
    assert_eq!(server.closed.load(Ordering::Relaxed), 61);
    for mut client in idle {
        let mut last = Vec::new();
        client.read_to_end(&mut last).unwrap();
        assert_eq!(last, b"bye!");
    }
}

/// Bytes of a reply that no socket takes at once.
const LONG: usize = 16 << 20;

/// Bytes of a reply that any socket takes at once.
const SHORT: usize = 20 << 10;

/// Answers each byte with a long reply, and `!` with a short one before it closes.
struct Pours(Arc<OnceLock<Arc<Interrupt>>>);

impl Serve for Pours {
    fn serve(&mut self, io: &mut SessionIo<'_>) -> Next {
        self.0.get_or_init(|| io.interrupt().clone());
        let (count, closes) = (io.input().len(), io.input().contains(&b'!'));
        io.consume(count);
        io.output().resize(if closes { SHORT } else { count * LONG }, 7);
        if closes { Next::Close } else { Next::Wait }
    }

    fn closed(&mut self) {}
}

fn queue_socket(way: FileIo, name: &str) -> Address {
    let name = format!("allcore-queue-{name}-{}-{way:?}", std::process::id());
    Address::Unix { path: std::env::temp_dir().join(name), mode: 0o600 }
}

fn pour(runtime: &Arc<Runtime>, address: Address, pours: &Arc<OnceLock<Arc<Interrupt>>>) -> Listener {
    let made = pours.clone();
    let accept = move |_: &Accepted| -> Box<dyn Serve> { Box::new(Pours(made.clone())) };
    runtime.listen(address, Arc::new(accept)).unwrap()
}

/// The tests' allocator counts nothing, so all that is held is what the kernel holds.
fn replies_that_the_kernel_holds_are_counted(way: FileIo) {
    /// Bytes that were held before the client read anything, and after it had read a reply.
    fn check(mut client: impl Read + Write, pours: &OnceLock<Arc<Interrupt>>) -> (i64, i64) {
        let held = || pours.get().map_or(0, |interrupt| interrupt.held_with_unread());
        let until = |is_so: &dyn Fn(i64) -> bool| {
            for _ in 0..60_000 {
                if is_so(held()) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            panic!("{} bytes are held", held());
        };
        let mut reply = vec![0; LONG];
        let mut first = 0;
        for _ in 0..3 {
            client.write_all(b"?").unwrap();
            until(&|held| held >= 16 << 10);
            first = if first == 0 { held() } else { first };
            client.read_exact(&mut reply).unwrap();
            until(&|held| held == 0);
        }
        client.write_all(b"?").unwrap();
        until(&|held| held >= 16 << 10);
        let last = held();
        // They count for the process, not for the session.
        assert_eq!(pours.get().unwrap().held_in_all(), 0);
        drop(client);
        until(&|held| held == 0);
        (first, last)
    }
    let runtime = start_with(1, way);
    for address in [queue_socket(way, "counted"), tcp()] {
        let pours = Arc::new(OnceLock::new());
        let listener = pour(&runtime, address, &pours);
        match listener.address() {
            Address::Tcp(at) => drop(check(TcpStream::connect(at).unwrap(), &pours)),
            Address::Unix { path, .. } => {
                let (first, last) = check(UnixStream::connect(path).unwrap(), &pours);
                assert!(first <= 100 << 10, "{first} bytes before the client has read");
                assert!(last > 2 * first, "{first} and then {last} bytes");
            }
        }
    }
}

fn a_closed_session_stays_until_its_client_has_read(way: FileIo) {
    fn check(runtime: &Runtime, connect: impl Fn() -> Box<dyn ReadWrite>) {
        let until = |count: usize| {
            for _ in 0..60_000 {
                if runtime.session_count() == count {
                    return;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            panic!("{} sessions, not {count}", runtime.session_count());
        };
        let (mut reads, mut goes) = (connect(), connect());
        reads.write_all(b"!").unwrap();
        goes.write_all(b"!").unwrap();
        // Longer than a closed session waits for a client that has read everything.
        std::thread::sleep(super::round::FAREWELL + Duration::from_millis(300));
        assert_eq!(runtime.session_count(), 2);
        let mut reply = Vec::new();
        reads.read_to_end(&mut reply).unwrap();
        assert_eq!(reply.len(), SHORT);
        until(1);
        drop(goes);
        until(0);
    }
    let runtime = start_with(1, way);
    let listener = pour(&runtime, queue_socket(way, "closed"), &Arc::default());
    let Address::Unix { path, .. } = listener.address() else { panic!("not over a Unix socket") };
    check(&runtime, || Box::new(UnixStream::connect(path).unwrap()));
    let listener = pour(&runtime, tcp(), &Arc::default());
    let Address::Tcp(at) = listener.address() else { panic!("not over TCP") };
    let mut client = TcpStream::connect(at).unwrap();
    client.write_all(b"!").unwrap();
    let mut reply = Vec::new();
    client.read_to_end(&mut reply).unwrap();
    assert_eq!(reply.len(), SHORT);
}

trait ReadWrite: Read + Write {}

impl<S: Read + Write> ReadWrite for S {}
