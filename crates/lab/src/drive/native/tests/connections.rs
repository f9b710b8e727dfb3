//! Connections: their set-up before a round, thousands at once, and those that clients set up and
//! end themselves.

use super::*;

#[test]
fn set_up_errors_have_advice() {
    let closes = Fake::new(|_| Act::Close);
    let prepares = Fake::new(|asked| if asked.tag == b'P' { Act::Error(b"42P01") } else { Act::Row });
    let full = Fake::new(|asked| if asked.connection >= 5 { Act::Fatal(b"53300") } else { Act::Row });
    let at = |address| Target { address, ..full.target.clone() };
    for (target, clients, wanted) in [
        (closes.target.clone(), 2, &["closed the connection while it was set up"][..]),
        (
            prepares.target.clone(),
            1,
            &["preparing `SELECT v FROM lab_native WHERE k = $1`", "load the workload's tables first"],
        ),
        (full.target.clone(), 9, &["5 of 9 clients were connected", "max_connections"]),
        (at(Address::Unix("/nowhere/at/all".into())), 1, &["no server can be reached at /nowhere/at/all"]),
        // Nothing listens at port 1, and only root could.
        (at(Address::Tcp("localhost".to_owned(), 1)), 1, &["no server can be reached at localhost:1"]),
    ] {
        let error = run(&target, &point(), &load(clients, 1, 100)).unwrap_err();
        assert!(wanted.iter().all(|wanted| error.contains(wanted)), "{error}");
    }
    let error = raise_file_limit(1 << 40).unwrap_err();
    assert!(error.contains("ulimit -n"), "{error}");
}

#[test]
fn a_refusal_that_comes_before_the_server_reads_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let target = crate::tests::target_at(crate::arm::Dialect::Postgres, Address::Unix(path));
    let peer = connect::Peer::resolve(&target.address).unwrap();
    let wire = Postgres::new(&target, &[], Protocol::Simple);
    let mut attempt = connect::Attempt::begin(&wire, &peer).unwrap().unwrap();
    assert!(attempt.advance(&wire, &peer).unwrap().is_none());
    // A close with the client's greeting unread is a reset.
    let mut out = Vec::new();
    fake::error(&mut out, "FATAL", b"53300");
    let (mut stream, _) = listener.accept().unwrap();
    std::io::Write::write_all(&mut stream, &out).unwrap();
    drop(stream);
    let why = peer.told(attempt.advance(&wire, &peer).err().unwrap());
    assert!(why.contains("no luck"), "{why}");
}

#[test]
fn five_thousand_connections_are_held_at_once_and_each_is_used() {
    const CLIENTS: usize = 5_000;
    // Both ends belong to this process.
    if let Err(why) = raise_file_limit(2 * CLIENTS + 500) {
        return crate::tests::skip(&why);
    }
    for pipeline in [false, true] {
        let fewest = Arc::new(AtomicUsize::new(usize::MAX));
        let (begun, seen) = (AtomicUsize::new(0), fewest.clone());
        // Relaxed: readers need the numbers alone.
        let fake = Fake::new(move |asked| {
            match asked.tag {
                0 => _ = begun.fetch_add(1, Ordering::Relaxed),
                b'E' => _ = seen.fetch_min(begun.load(Ordering::Relaxed), Ordering::Relaxed),
                _ => (),
            }
            Act::Row
        });
        let workload = Steps { most: 3, row: (!pipeline).then_some(42), ..point() };
        let measured = run(&fake.target, &workload, &Load { pipeline, ..load(CLIENTS, 2, 60_000) }).unwrap();
        // A client stops once it has done its transactions: all have stopped.
        assert_eq!(measured.lost_clients, Some((CLIENTS, "enough".to_owned())));
        assert_eq!((measured.kinds[0].done, measured.errors.len()), (3 * CLIENTS as u64, 0));
        assert_eq!((fake.count("E"), fake.connections()), (3 * CLIENTS, CLIENTS));
        assert_eq!(fake.count("P"), 3 * CLIENTS, "each connection prepares what is not late");
        assert_eq!(fewest.load(Ordering::Relaxed), CLIENTS, "all connect before the first transaction");
    }
}

fn storm() -> Steps {
    Steps::new(&[Step::Connect, Step::Run(SELECT), Step::Leave, Step::Done(0)])
}

#[test]
fn each_transaction_has_a_connection_of_its_own_from_whose_beginning_its_latency_counts() {
    for protocol in [Protocol::Simple, Protocol::Extended, Protocol::Prepared] {
        let fake = Fake::new(|asked| match asked.tag {
            0 => Act::After(Duration::from_millis(10)),
            _ => Act::Row,
        });
        let workload = Steps { most: 10, ..storm() };
        let measured = run(&fake.target, &workload, &Load { protocol, ..load(2, 1, 20_000) }).unwrap();
        assert_eq!(measured.lost_clients, Some((2, "enough".to_owned())));
        let only = &measured.kinds[0];
        assert_eq!((only.done, only.failed, measured.errors.len()), (20, 0, 0));
        assert!(only.latency.min() >= 10_000_000, "{}", only.latency.min());
        // The round's own connections, one per transaction, and those of clients that had reached
        // their limit; all but the last sent a good-bye.
        assert_eq!(fake.connections(), 2 + 20);
        // The server may read the last ones a while later.
        wait_until(|| fake.count("X") >= 2 + 20);
        assert_eq!(fake.count("X"), 2 + 20);
    }
}

#[test]
fn a_full_server_fails_a_transaction_and_another_refusal_ends_the_client() {
    let full = Fake::new(|asked| match (asked.tag, asked.connection) {
        (0, 3 | 5) => Act::Fatal(b"53300"),
        _ => Act::Row,
    });
    let workload = Steps { most: 6, ..storm() };
    let measured = run(&full.target, &workload, &load(1, 1, 20_000)).unwrap();
    assert_eq!((measured.kinds[0].done, measured.kinds[0].failed), (6, 2));
    assert_eq!((measured.errors[0].code.as_str(), measured.errors[0].count), ("53300", 2));
    assert_eq!(full.connections(), 1 + 8);

    let strict = Fake::new(|asked| match (asked.tag, asked.connection) {
        (0, 4..) => Act::Fatal(b"28P01"),
        _ => Act::Row,
    });
    let measured = run(&strict.target, &storm(), &load(1, 1, 20_000)).unwrap();
    assert_eq!(measured.kinds[0].done, 3);
    let (lost, why) = measured.lost_clients.unwrap();
    assert!(lost == 1 && why.contains("28P01: no luck; give a user and password"), "{why}");
}

#[test]
fn a_machine_without_free_ports_gets_an_error_with_advice() {
    let peer = Peer::resolve(&Address::Tcp("127.0.0.1".to_owned(), 5432)).unwrap();
    let why = peer.told(peer.unreachable(rustix::io::Errno::ADDRNOTAVAIL));
    assert!(
        why.starts_with("this machine has no port left for another connection to 127.0.0.1:5432"),
        "{why}"
    );
    assert!(why.contains("Unix socket") && why.contains("ip_local_port_range"), "{why}");
}
