//! MySQL's protocol on canned bytes.

use mysql_common::scramble::{scramble_native, scramble_sha256};
use proptest::prelude::*;

use super::*;
use crate::arm::Dialect;
use crate::drive::wire::Code;

const NONCE: &[u8; 20] = b"abcdefghijklmnopqrst";
const KEY: &str = "-----BEGIN PUBLIC KEY-----
MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC+SM5VI/r1EON/WY3G6nPNRUTy
AsVxFL8K+Umbajwt71Gb/KBnJPZEHpAzT28PHJ+kjs9ng0Bb6sfpfH3Iq2otPamS
mesQ/AoBzhGbliR0iBBeAL4bfQ+cVypRd35a6GBCyS12zIIVhDBVCzmm78yJRCcO
tQYSXEgwu/HCWeJwUQIDAQAB
-----END PUBLIC KEY-----
";

fn wire(protocol: Protocol, address: Address) -> Mysql {
    wire_of(protocol, address, Prepare::AtConnect)
}

fn wire_of(protocol: Protocol, address: Address, prepare: Prepare) -> Mysql {
    let target = crate::tests::target_at(Dialect::Mysql, address);
    let select = Statement {
        pieces: ["SELECT ", ", ", ", ", ", ", ""].map(str::to_owned).into(),
        prepare,
        wanted: Wanted::NamedRows,
    };
    let begin =
        Statement { pieces: vec!["BEGIN".to_owned()], prepare: Prepare::Never, wanted: Wanted::Nothing };
    Mysql::new(&target, &[begin, select], protocol)
}

fn unix() -> Address {
    Address::Unix("/nowhere".into())
}

fn params() -> Params {
    let mut params = Params::default();
    params.int(-7);
    params.text("it's \\");
    params.null();
    params.verbatim("1.50");
    params
}

fn framed(number: u8, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    packet(&mut out, number, |out| out.extend_from_slice(body));
    out
}

fn greeting(plugin: &str) -> Vec<u8> {
    let mut body = b"\x0a8.4.0\0\x01\0\0\0".to_vec();
    body.extend_from_slice(&NONCE[..8]);
    body.extend_from_slice(b"\0\xff\xff\x2d\x02\0\xff\xdf\x15\0\0\0\0\0\0\0\0\0\0");
    body.extend_from_slice(&NONCE[8..]);
    body.push(0);
    body.extend_from_slice(plugin.as_bytes());
    body.push(0);
    framed(0, &body)
}

const OK: &[u8] = b"\0\0\0\x02\0\0\0";

fn session(wire: &Mysql) -> Session {
    let (mut state, mut out) = (wire.greet(&mut Vec::new()), Vec::new());
    assert!(wire.welcome(&mut state, &greeting("mysql_native_password"), &mut out).unwrap().is_none());
    let ready = wire.welcome(&mut state, &framed(2, OK), &mut out).unwrap();
    // The statement's number is 9; it has four parameters and one column.
    let description =
        [framed(1, b"\0\x09\0\0\0\x01\0\x04\0\0\0\0"), [framed(2, b"x"), framed(3, b"x")].concat()].concat();
    let more: Vec<u8> = (4..9).flat_map(|number| framed(number, b"x")).collect();
    ready
        .or_else(|| {
            assert!(wire.welcome(&mut state, &description, &mut out).unwrap().is_none());
            wire.welcome(&mut state, &more, &mut out).unwrap()
        })
        .expect("a session")
}

#[test]
fn native_passwords_are_scrambled_with_the_nonce() {
    let wire = wire(Protocol::Simple, unix());
    let (mut state, mut out) = (wire.greet(&mut Vec::new()), Vec::new());
    wire.welcome(&mut state, &greeting("mysql_native_password"), &mut out).unwrap();
    assert_eq!(out[3], 1);
    let scramble = scramble_native(NONCE, b"secret").unwrap();
    let wanted = [b"me\0\x14", &scramble[..], b"db\0mysql_native_password\0"].concat();
    assert!(out.ends_with(&wanted), "{out:?}");
    let refusal =
        wire.welcome(&mut state, &framed(2, b"\xff\x15\x04#28000Access denied"), &mut out).unwrap_err();
    let Refusal::Server(failure) = refusal else { panic!("{refusal:?}") };
    assert_eq!((failure.code, failure.message.as_str()), (Code::Number(1045), "Access denied"));
    assert!(failure.code.advice().is_some());
}

#[test]
fn sha2_passwords_go_whole_over_a_unix_socket_and_encrypted_over_tcp() {
    let switch = [b"\xfecaching_sha2_password\0", &NONCE[..], b"\0"].concat();
    for (address, local) in [(unix(), true), (Address::Tcp("h".to_owned(), 1), false)] {
        let wire = wire(Protocol::Simple, address);
        let (mut state, mut out) = (wire.greet(&mut Vec::new()), Vec::new());
        wire.welcome(&mut state, &greeting("some_other_way"), &mut out).unwrap();
        out.clear();
        wire.welcome(&mut state, &framed(2, &switch), &mut out).unwrap();
        assert_eq!(out, framed(3, &scramble_sha256(NONCE, b"secret").unwrap()));
        out.clear();
        wire.welcome(&mut state, &framed(4, b"\x01\x04"), &mut out).unwrap();
        if local {
            assert_eq!(out, framed(5, b"secret\0"));
        } else {
            assert_eq!(out, framed(5, b"\x02"));
            out.clear();
            wire.welcome(&mut state, &framed(6, &[b"\x01", KEY.as_bytes()].concat()), &mut out).unwrap();
            // The answer is as long as the key, whatever the password's length.
            assert_eq!((out.len(), out[3]), (4 + 128, 7));
        }
        assert!(wire.welcome(&mut state, &framed(8, OK), &mut out).unwrap().is_some());
    }
    // A server that remembers the password reports that, and then success.
    let wire = wire(Protocol::Simple, unix());
    let (mut state, mut out) = (wire.greet(&mut Vec::new()), Vec::new());
    wire.welcome(&mut state, &greeting("caching_sha2_password"), &mut out).unwrap();
    let both = [framed(2, b"\x01\x03"), framed(3, OK)].concat();
    assert!(wire.welcome(&mut state, &both, &mut out).unwrap().is_some());
}

#[test]
fn a_key_that_is_none_and_numbers_that_begin_anew_are_no_panic() {
    let cut = KEY.replace("AsVxFL8K", "");
    let lies = "-----BEGIN PUBLIC KEY-----\nMIGf\n-----END PUBLIC KEY-----\n";
    let wire = wire(Protocol::Simple, Address::Tcp("h".to_owned(), 1));
    for key in ["-----BEGIN PUBLIC KEY-----", lies, &cut[..200], KEY] {
        let (mut state, mut out) = (wire.greet(&mut Vec::new()), Vec::new());
        wire.welcome(&mut state, &greeting("caching_sha2_password"), &mut out).unwrap();
        wire.welcome(&mut state, &framed(255, b"\x01\x04"), &mut out).unwrap();
        assert!(out.ends_with(&framed(0, b"\x02")));
        let told = wire.welcome(&mut state, &framed(255, &[b"\x01", key.as_bytes()].concat()), &mut out);
        match told {
            Ok(ready) => assert!(ready.is_none() && key == KEY, "{key}"),
            Err(Refusal::Protocol(why)) => {
                assert!(key != KEY && why.contains("public key is malformed"), "{key}: {why}");
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    // Too long for a key of 1,024 bits.
    let mut long = wire;
    long.password = "x".repeat(200);
    let (mut state, mut out) = (long.greet(&mut Vec::new()), Vec::new());
    long.welcome(&mut state, &greeting("caching_sha2_password"), &mut out).unwrap();
    long.welcome(&mut state, &framed(2, b"\x01\x04"), &mut out).unwrap();
    let told = long.welcome(&mut state, &framed(4, &[b"\x01", KEY.as_bytes()].concat()), &mut out);
    assert!(matches!(told, Err(Refusal::Protocol(why)) if why.contains("too short for the password")));
}

#[test]
fn values_are_quoted_in_a_query_and_typed_in_an_execution() {
    let simple = wire(Protocol::Simple, unix());
    let mut out = Vec::new();
    simple.encode(&mut session(&simple), StatementId(1), &params(), true, &mut out);
    assert_eq!(out, framed(0, b"\x03SELECT -7, 'it\\'s \\\\', NULL, 1.50"));

    let prepared = wire(Protocol::Prepared, unix());
    out.clear();
    let mut session = session(&prepared);
    prepared.encode(&mut session, StatementId(1), &params(), true, &mut out);
    let head = b"\x17\x09\0\0\0\0\x01\0\0\0\x04\x01\x08\0\xfd\0\x06\0\xf6\0";
    let values = [&(-7i64).to_le_bytes()[..], b"\x06it's \\\x041.50"].concat();
    assert_eq!(out, framed(0, &[&head[..], &values].concat()));
    out.clear();
    prepared.encode(&mut session, StatementId(0), &Params::default(), true, &mut out);
    assert_eq!(out, framed(0, b"\x03BEGIN"));
}

#[test]
fn booleans_are_the_numbers_that_they_are_in_a_text() {
    let prepared = wire(Protocol::Prepared, unix());
    let (mut session, mut params, mut out) = (session(&prepared), Params::default(), Vec::new());
    params.verbatim("true");
    params.verbatim("false");
    params.text("true");
    params.verbatim("Infinity");
    prepared.encode(&mut session, StatementId(1), &params, true, &mut out);
    let head = b"\x17\x09\0\0\0\0\x01\0\0\0\0\x01\x08\0\x08\0\xfd\0\xfd\0";
    let values = [&1i64.to_le_bytes()[..], &0i64.to_le_bytes(), b"\x04true\x08Infinity"].concat();
    assert_eq!(out, framed(0, &[&head[..], &values].concat()));
}

/// A statement's description: its number, four parameters and one column.
fn described(number: u8) -> Vec<u8> {
    let first = [0, number, 0, 0, 0, 1, 0, 4, 0, 0, 0, 0, 0];
    [framed(1, &first), (2..9).flat_map(|number| framed(number, b"x")).collect()].concat()
}

const UNSUPPORTED: &[u8] =
    b"\xff\x0f\x05#HY000This command is not supported in the prepared statement protocol yet";

#[test]
fn a_statement_is_prepared_at_first_use_and_sent_as_text_where_that_fails() {
    let late = wire_of(Protocol::Prepared, unix(), Prepare::AtFirstUse);
    let (mut session, mut out, mut answer) = (session(&late), Vec::new(), Answer::default());
    late.encode(&mut session, StatementId(1), &params(), true, &mut out);
    assert_eq!(out, framed(0, b"\x16SELECT ?, ?, ?, ?"));
    out.clear();
    let (_, progress) = late.decode(&mut session, &described(7), &mut answer, &mut out);
    assert_eq!((progress, &out[4..9]), (Progress::More, &b"\x17\x07\0\0\0"[..]));
    // It stays prepared: nothing follows, and the next time it runs at once.
    let executed = std::mem::take(&mut out);
    assert_eq!(executed.len(), 4 + usize::from(executed[0]));
    assert_eq!(late.decode(&mut session, &framed(1, OK), &mut answer, &mut out).1, Progress::Replied);
    late.encode(&mut session, StatementId(1), &params(), true, &mut out);
    assert_eq!(out, executed);

    let text = framed(0, b"\x03SELECT -7, 'it\\'s \\\\', NULL, 1.50");
    for protocol in [Protocol::Prepared, Protocol::Extended] {
        let late = wire_of(protocol, unix(), Prepare::AtFirstUse);
        let mut session = self::session(&late);
        out.clear();
        late.encode(&mut session, StatementId(1), &params(), true, &mut out);
        out.clear();
        let (_, progress) = late.decode(&mut session, &framed(1, UNSUPPORTED), &mut answer, &mut out);
        assert_eq!((progress, &out), (Progress::More, &text));
        assert_eq!(late.decode(&mut session, &framed(1, OK), &mut answer, &mut out).1, Progress::Replied);
        // The driver does not ask again.
        out.clear();
        late.encode(&mut session, StatementId(1), &params(), true, &mut out);
        assert_eq!(out, text);
    }
    // Preparing at the beginning gives the same.
    let early = wire(Protocol::Prepared, unix());
    let mut state = early.greet(&mut Vec::new());
    early.welcome(&mut state, &greeting("mysql_native_password"), &mut out).unwrap();
    assert!(early.welcome(&mut state, &framed(2, OK), &mut out).unwrap().is_none());
    let mut session = early.welcome(&mut state, &framed(1, UNSUPPORTED), &mut out).unwrap().unwrap();
    out.clear();
    early.encode(&mut session, StatementId(1), &params(), true, &mut out);
    assert_eq!(out, text);
}

#[test]
fn the_status_tells_whether_a_transaction_is_open() {
    let wire = wire(Protocol::Simple, unix());
    let (mut session, mut out, mut answer) = (session(&wire), Vec::new(), Answer::default());
    for (status, open) in [(2, false), (3, true), (2, false)] {
        wire.encode(&mut session, StatementId(0), &Params::default(), true, &mut out);
        let ok = framed(1, &[0, 0, 0, status, 0, 0, 0]);
        assert_eq!(wire.decode(&mut session, &ok, &mut answer, &mut out).1, Progress::Replied);
        assert_eq!(wire.in_transaction(&session), open);
    }
}

/// A column named n of this type.
fn column(kind: u8) -> Vec<u8> {
    let mut body = b"\x03def\x01s\x01t\x01t\x01n\x01n\x0c\x3f\0\x0b\0\0\0".to_vec();
    body.extend_from_slice(&[kind, 0x20, 0, 0, 0, 0]);
    body
}

#[test]
fn rows_in_text_and_in_binary_are_the_same_however_they_are_cut() {
    let end = b"\xfe\0\0\x02\0";
    for (protocol, rows) in [
        (Protocol::Simple, [&b"\x0242"[..], b"\xfb"]),
        (Protocol::Prepared, [&b"\0\0\x2a\0\0\0"[..], b"\0\x04"]),
    ] {
        let wire = wire(protocol, unix());
        let packets: [&[u8]; 6] = [b"\x01", &column(3), end, rows[0], rows[1], end];
        let bytes: Vec<u8> =
            packets.iter().enumerate().flat_map(|(number, body)| framed(number as u8 + 1, body)).collect();
        for cut in 0..bytes.len() {
            let (mut session, mut out, mut answer) = (session(&wire), Vec::new(), Answer::default());
            wire.encode(&mut session, StatementId(1), &params(), true, &mut out);
            let (used, progress) = wire.decode(&mut session, &bytes[..cut], &mut answer, &mut out);
            assert_eq!(progress, Progress::More, "{cut}");
            let (rest, progress) = wire.decode(&mut session, &bytes[used..], &mut answer, &mut out);
            assert_eq!((used + rest, progress), (bytes.len(), Progress::Replied), "{cut}");
            let reply = &answer.reply;
            assert_eq!((reply.rows(), reply.int(0, 0), reply.text(1, 0)), (2, Some(42), None));
            assert_eq!(reply.column_name(0), Some("n"));
        }
    }
}

#[test]
fn an_extended_statement_is_prepared_executed_and_closed_each_time() {
    let wire = wire(Protocol::Extended, unix());
    let (mut session, mut out, mut answer) = (session(&wire), Vec::new(), Answer::default());
    wire.encode(&mut session, StatementId(1), &params(), true, &mut out);
    assert_eq!(out, framed(0, b"\x16SELECT ?, ?, ?, ?"));
    out.clear();
    let description: Vec<u8> = [&b"\0\x05\0\0\0\0\0\x01\0\0\0\0"[..], b"x", b"\xfe\0\0\x02\0"]
        .iter()
        .flat_map(|body| framed(1, body))
        .collect();
    let (used, progress) = wire.decode(&mut session, &description, &mut answer, &mut out);
    assert_eq!((used, progress), (description.len(), Progress::More));
    assert_eq!(out[4..9], *b"\x17\x05\0\0\0");
    assert!(out.ends_with(&framed(0, b"\x19\x05\0\0\0")));
    let (_, progress) =
        wire.decode(&mut session, &framed(1, b"\xff\xbd\x04#40001deadlock"), &mut answer, &mut out);
    assert_eq!((progress, answer.failure.code), (Progress::Failed, Code::Number(1213)));
    // The driver asked nothing: the server reports that it ends.
    let (_, progress) =
        wire.decode(&mut session, &framed(0, b"\xff\x1d\x04#08S01bye"), &mut answer, &mut out);
    assert_eq!(progress, Progress::Ended);
}

proptest! {
    #[test]
    fn any_bytes_are_taken_without_a_panic(
        binary in any::<bool>(),
        kind in any::<u8>(),
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..8)
    ) {
        let wire = wire(if binary { Protocol::Prepared } else { Protocol::Extended }, unix());
        let (mut session, mut out, mut answer) = (session(&wire), Vec::new(), Answer::default());
        wire.encode(&mut session, StatementId(1), &params(), true, &mut out);
        let mut bytes: Vec<u8> = [&b"\x01"[..], &column(kind), b"\xfe\0\0\x02\0"].iter().flat_map(|body| framed(1, body)).collect();
        if !binary {
            bytes.clear();
        }
        bytes.extend(bodies.iter().flat_map(|body| framed(1, body)));
        let (used, _) = wire.decode(&mut session, &bytes, &mut answer, &mut out);
        prop_assert!(used <= bytes.len());
        wire.decode(&mut session, &bodies.concat(), &mut answer, &mut out);
    }
}
