//! Connections that clients set up and end themselves.

use super::*;

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
        crate::tests::wait_until(|| fake.count("X") >= 2 + 20);
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
