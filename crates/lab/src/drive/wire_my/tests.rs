//! MySQL's protocol on canned bytes.

use mysql_common::scramble::{scramble_native, scramble_sha256};
use proptest::prelude::*;

use super::*;
use crate::arm::{Address, Dialect};
use crate::client::Prepare;
use crate::drive::wire::Code;
use crate::drive::wire::tests::{answered, asked, assert_read_however_cut, greeted, params};

const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";
const OK: &[u8] = b"\0\0\0\x02\0\0\0";
/// The wire of two statements: START TRANSACTION, which is always sent as text, and a SELECT of
/// four values.
fn wire(protocol: Protocol, prepare: Prepare) -> Mysql {
    let target = crate::tests::target_at(Dialect::Mysql, Address::Unix("/nowhere".into()));
    let select = Statement {
        pieces: ["SELECT ", ", ", ", ", ", ", ""].map(str::to_owned).into(),
        prepare,
        wanted: Wanted::NamedRows,
    };
    let begin = Statement { pieces: vec!["start transaction;".to_owned()], prepare, wanted: Wanted::Nothing };
    Mysql::new(&target, &[begin, select], protocol)
}

/// The same without preparing.
fn simple() -> Mysql {
    wire(Protocol::Simple, Prepare::AtConnect)
}

fn four_params() -> Params {
    let mut params = params();
    params.verbatim("1.50");
    params
}

fn framed(number: u8, body: &[u8]) -> Vec<u8> {
    let mut out = BytesMut::new();
    packet(&mut out, number, |out| out.extend_from_slice(body));
    out.to_vec()
}

fn all_framed(bodies: &[&[u8]]) -> Vec<u8> {
    bodies.iter().flat_map(|body| framed(1, body)).collect()
}

/// A client that a server has greeted with this plug-in, and its introduction.
fn introduced(wire: &Mysql, plugin: &str) -> (Greeting, Vec<u8>) {
    let mut state = wire.greet(&mut BytesMut::new());
    let middle = b"\0\xff\xff\x2d\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0";
    let nonce: [&[u8]; 4] = [&NONCE[..8], middle, &NONCE[8..], b"\0"];
    let body = [b"\x0a8.4.0\0\x01\0\0\0", &nonce.concat()[..], plugin.as_bytes(), b"\0"].concat();
    let (introduction, _) = greeted(wire, &mut state, &framed(0, &body)).unwrap();
    (state, introduction)
}

/// A statement's description: its number, four parameters and one column.
fn described(number: u8) -> Vec<u8> {
    let first = [0, number, 0, 0, 0, 1, 0, 4, 0, 0, 0, 0, 0];
    all_framed(&[&first[..], b"x", b"x", b"x", b"x", b"x", b"x", b"x"])
}

fn session(wire: &Mysql) -> Session {
    let (mut state, _) = introduced(wire, "mysql_native_password");
    let (_, ready) = greeted(wire, &mut state, &framed(2, OK)).unwrap();
    ready.or_else(|| greeted(wire, &mut state, &described(9)).unwrap().1).expect("a session")
}

#[test]
fn native_passwords_are_scrambled_with_the_nonce() {
    let wire = simple();
    let (mut state, introduction) = introduced(&wire, "mysql_native_password");
    assert_eq!(introduction[3], 1);
    let scramble = scramble_native(NONCE, b"secret").unwrap();
    let wanted = [b"me\0\x14", &scramble[..], b"db\0mysql_native_password\0"].concat();
    assert!(introduction.ends_with(&wanted), "{introduction:?}");
    let refusal = greeted(&wire, &mut state, &framed(2, b"\xff\x15\x04#28000Access denied"));
    let Err(Refusal::Server(failure)) = refusal else { panic!("no refusal") };
    assert_eq!((failure.code, failure.message.as_str()), (Code::Number(1045), "Access denied"));
    assert!(failure.code.advice().is_some());
}

#[test]
fn sha2_passwords_are_scrambled_and_need_a_server_that_remembers_them() {
    let wire = simple();
    let switch = [b"\xfecaching_sha2_password\0", &NONCE[..], b"\0"].concat();
    for (remembers, answer) in [(true, b"\x01\x03"), (false, b"\x01\x04")] {
        let (mut state, _) = introduced(&wire, "some_other_way");
        let (hash, _) = greeted(&wire, &mut state, &framed(2, &switch)).unwrap();
        assert_eq!(hash, framed(3, &scramble_sha256(NONCE, b"secret").unwrap()));
        match greeted(&wire, &mut state, &all_framed(&[answer, OK])) {
            Ok((_, ready)) => assert!(remembers && ready.is_some()),
            Err(Refusal::Other(why)) => assert!(!remembers && why.contains("no longer remembers"), "{why}"),
            Err(other) => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_password_is_never_sent_by_a_method_that_shows_it() {
    let wire = simple();
    let (mut state, introduction) = introduced(&wire, "mysql_clear_password");
    assert!(!introduction.windows(6).any(|six| six == b"secret"), "{introduction:?}");
    let refusal = greeted(&wire, &mut state, &framed(2, b"\xfemysql_clear_password\0"));
    assert!(matches!(refusal, Err(Refusal::Other(why)) if why.contains("by mysql_clear_password;")));
}

#[test]
fn values_are_quoted_in_a_query_and_typed_in_an_execution() {
    let simple = simple();
    assert_eq!(
        asked(&simple, &mut session(&simple), 1, &four_params()),
        framed(0, b"\x03SELECT -7, 'it\\'s \\\\', NULL, 1.50")
    );
    let prepared = wire(Protocol::Prepared, Prepare::AtConnect);
    let mut session = session(&prepared);
    // Booleans are the numbers that they are in a text.
    let mut booleans = Params::default();
    booleans.verbatim("true");
    booleans.verbatim("false");
    booleans.text("true");
    booleans.verbatim("Infinity");
    let [seven, one, zero] = [-7i64, 1, 0].map(i64::to_le_bytes);
    for (params, types, values) in [
        (four_params(), b"\x04\x01\x08\0\xfd\0\x06\0\xf6\0", [&seven[..], b"\x06it's \\\x041.50"]),
        (booleans, b"\0\x01\x08\0\x08\0\xfd\0\xfd\0", [&one, &[&zero[..], b"\x04true\x08Infinity"].concat()]),
    ] {
        let wanted = [&b"\x17\x09\0\0\0\0\x01\0\0\0"[..], types, &values.concat()].concat();
        assert_eq!(asked(&prepared, &mut session, 1, &params), framed(0, &wanted));
    }
    assert_eq!(asked(&prepared, &mut session, 0, &Params::default()), framed(0, b"\x03start transaction;"));
}

#[test]
fn the_status_tells_whether_a_transaction_is_open() {
    let wire = simple();
    let mut session = session(&wire);
    for (status, open) in [(2, false), (3, true), (2, false)] {
        asked(&wire, &mut session, 0, &Params::default());
        let ok = framed(1, &[0, 0, 0, status, 0, 0, 0]);
        assert_eq!(answered(&wire, &mut session, &ok).1, Progress::Replied);
        assert_eq!(wire.in_transaction(&session), open);
    }
}

/// A column named n of this type.
fn column(kind: u8, flags: u8) -> Vec<u8> {
    let mut body = b"\x03def\x01s\x01t\x01t\x01n\x01n\x0c\x3f\0\x0b\0\0\0".to_vec();
    body.extend_from_slice(&[kind, flags, 0, 0, 0, 0]);
    body
}

const END: &[u8] = b"\xfe\0\0\x02\0";

#[test]
fn rows_in_text_and_in_binary_are_the_same_however_they_are_cut() {
    for (protocol, rows) in [
        (Protocol::Simple, [&b"\x0242"[..], b"\xfb"]),
        (Protocol::Prepared, [&b"\0\0\x2a\0\0\0"[..], b"\0\x04"]),
    ] {
        let wire = wire(protocol, Prepare::AtConnect);
        let bytes = all_framed(&[b"\x01", &column(3, 0), END, rows[0], rows[1], END]);
        let asking = || {
            let mut session = session(&wire);
            asked(&wire, &mut session, 1, &four_params());
            session
        };
        assert_read_however_cut(&wire, asking, &bytes, "n");
    }
    assert!(Mysql::length(&[0xff, 0xff, 0xff, 1]).unwrap_err().contains("16 MiB"));
}

#[test]
fn binary_values_become_the_text_the_server_would_have_sent() {
    let wire = wire(Protocol::Prepared, Prepare::AtConnect);
    for (kind, flags, bytes, wanted) in [
        (1, 0, &[0xff][..], Some("-1")),
        (1, 0x20, &[0xff], Some("255")),
        (3, 0, &(-5i32).to_le_bytes(), Some("-5")),
        (8, 0x20, &[0xff; 8], Some("18446744073709551615")),
        (5, 0, &2.5f64.to_le_bytes(), Some("2.5")),
        (0xf6, 0, b"\x0512.50", Some("12.50")),
        (0x0a, 0, &[4, 0xe9, 7, 12, 31], Some("2025-12-31")),
        (0x0c, 0, &[7, 0xe9, 7, 1, 2, 3, 4, 5], Some("2025-01-02 03:04:05")),
        (0x0c, 0, &[11, 0xe9, 7, 1, 2, 3, 4, 5, 6, 0, 0, 0], Some("2025-01-02 03:04:05.000006")),
        (0x0b, 0, &[8, 1, 1, 0, 0, 0, 2, 3, 4], Some("-026:03:04")),
        (0x0c, 0, &[12, 0xe9], None),
        (8, 0, &[1, 2], None),
    ] {
        let mut session = session(&wire);
        asked(&wire, &mut session, 1, &four_params());
        let row = [b"\0\0", bytes].concat();
        let (_, progress, answer) =
            answered(&wire, &mut session, &all_framed(&[b"\x01", &column(kind, flags), END, &row, END]));
        assert_eq!(progress == Progress::Replied, wanted.is_some(), "{kind} {bytes:?}");
        assert_eq!(answer.reply.text(0, 0), wanted, "{kind} {bytes:?}");
    }
}

#[test]
fn an_extended_statement_is_prepared_executed_and_closed_each_time() {
    let wire = wire(Protocol::Extended, Prepare::AtConnect);
    let mut session = session(&wire);
    assert_eq!(asked(&wire, &mut session, 1, &four_params()), framed(0, b"\x16SELECT ?, ?, ?, ?"));
    let (sent, progress, _) = answered(&wire, &mut session, &described(5));
    assert_eq!((progress, &sent[4..9]), (Progress::More, &b"\x17\x05\0\0\0"[..]));
    assert!(sent.ends_with(&framed(0, b"\x19\x05\0\0\0")));
    let (_, progress, answer) = answered(&wire, &mut session, &framed(1, b"\xff\xbd\x04#40001deadlock"));
    assert_eq!((progress, answer.failure.code), (Progress::Failed, Code::Number(1213)));
    // The driver asked nothing: the server reports that it ends.
    assert_eq!(answered(&wire, &mut session, &framed(0, b"\xff\x1d\x04#08S01bye")).1, Progress::Ended);
}

proptest! {
    #[test]
    fn any_bytes_are_taken_without_a_panic(
        binary in any::<bool>(),
        kind in any::<u8>(),
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)
    ) {
        let wire = wire(if binary { Protocol::Prepared } else { Protocol::Extended }, Prepare::AtConnect);
        let mut session = session(&wire);
        asked(&wire, &mut session, 1, &four_params());
        let mut bytes = if binary { all_framed(&[b"\x01", &column(kind, 0x20), END]) } else { Vec::new() };
        bytes.extend(bodies.iter().flat_map(|body| framed(1, body)));
        answered(&wire, &mut session, &bytes);
        answered(&wire, &mut session, &bodies.concat());
        greeted(&wire, &mut wire.greet(&mut BytesMut::new()), &bytes).ok();
    }
}
