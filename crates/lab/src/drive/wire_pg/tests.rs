//! PostgreSQL's protocol on canned bytes.

use proptest::prelude::*;

use super::*;
use crate::arm::{Address, Dialect};
use crate::client::Prepare;
use crate::drive::wire::tests::{answered, asked, assert_read_however_cut, greeted, params};
use crate::drive::wire::{Code, Failure};

fn wire(protocol: Protocol, password: Option<&str>) -> Postgres {
    let target = crate::tests::target_at(Dialect::Postgres, Address::Unix("/nowhere".into()));
    let target = Target { password: password.map(str::to_owned), ..target };
    let select = Statement {
        pieces: ["SELECT ", ", ", ", ", ";"].map(str::to_owned).into(),
        prepare: Prepare::AtConnect,
        wanted: Wanted::NamedRows,
    };
    Postgres::new(&target, &[select], protocol)
}

/// A message with its length.
pub(in crate::drive) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[tag][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
}

fn session(wire: &Postgres) -> Session {
    let mut state = wire.greet(&mut BytesMut::new());
    let mut hears = |bytes: &[u8]| greeted(wire, &mut state, bytes).unwrap().1;
    let ready = hears(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I");
    ready.or_else(|| hears(b"1\0\0\0\x04Z\0\0\0\x05I")).expect("a session")
}

#[test]
fn values_are_quoted_in_a_query_and_counted_in_a_bind() {
    let simple = wire(Protocol::Simple, None);
    let text = b"SELECT -7, 'it''s \\', NULL;\0";
    assert_eq!(asked(&simple, &mut session(&simple), 0, &params()), message(b'Q', text));
    let prepared = wire(Protocol::Prepared, None);
    let bound = b"\0s0\0\0\0\0\x03\0\0\0\x02-7\0\0\0\x06it's \\\xff\xff\xff\xff\0\0";
    let rest = b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
    assert_eq!(
        asked(&prepared, &mut session(&prepared), 0, &params()),
        [&message(b'B', bound)[..], rest].concat()
    );
}

#[test]
fn passwords_are_sent_in_the_requested_form() {
    let hash = postgres_protocol::authentication::md5_hash(b"me", b"secret", *b"abcd");
    let md5 = message(b'p', &[hash.as_bytes(), b"\0"].concat());
    let with = wire(Protocol::Simple, Some("secret"));
    let mut greeting = with.greet(&mut BytesMut::new());
    for (request, answer) in [
        (&b"\0\0\0\x03"[..], &message(b'p', b"secret\0")[..]),
        (b"\0\0\0\x05abcd", &md5),
        (b"\0\0\0\x0aSCRAM-SHA-256\0\0", b"p\0\0\0\x36SCRAM-SHA-256\0"),
    ] {
        let (sent, _) = greeted(&with, &mut greeting, &message(b'R', request)).unwrap();
        assert!(sent.starts_with(answer), "{sent:?}");
    }
    let refusal = greeted(&with, &mut greeting, &message(b'R', b"\0\0\0\x0bhello"));
    assert!(matches!(refusal, Err(Refusal::Other(why)) if why.contains("SCRAM is wrong")));
    for (password, request, wanted) in [
        (Some("secret"), &b"\0\0\0\x0bhello"[..], "SCRAM goes on without"),
        (None, b"\0\0\0\x03", "postgres://user:password@"),
        (None, b"\0\0\0\x07", "kind 7"),
    ] {
        let wire = wire(Protocol::Simple, password);
        let refusal = greeted(&wire, &mut wire.greet(&mut BytesMut::new()), &message(b'R', request));
        assert!(matches!(refusal, Err(Refusal::Other(why)) if why.contains(wanted)), "{wanted}");
    }
}

#[test]
fn an_answer_is_the_same_however_it_is_cut() {
    let wire = wire(Protocol::Prepared, None);
    let bytes: &[u8] = b"2\0\0\0\x04T\0\0\0\x1b\0\x01nm\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0\
        D\0\0\0\x0c\0\x01\0\0\0\x0242D\0\0\0\x0a\0\x01\xff\xff\xff\xffC\0\0\0\x0dSELECT 2\0Z\0\0\0\x05T";
    let asking = || {
        let mut session = session(&wire);
        asked(&wire, &mut session, 0, &params());
        session
    };
    assert_read_however_cut(&wire, asking, bytes, "nm");
    // A transaction is open, and must be rolled back after an error.
    let mut session = asking();
    answered(&wire, &mut session, bytes);
    assert!(wire.rollback(&mut session, &mut BytesMut::new()));
}

#[test]
fn errors_have_their_code_and_say_whether_they_end_the_connection() {
    let mut failure = Failure::default();
    assert!(!answer::error(b"SFEHLER\0VERROR\0C23505\0Mdouble\0\0", &mut failure));
    assert_eq!((failure.code, failure.message.as_str()), (Code::State(*b"23505"), "double"));
    assert!(answer::error(b"SFATAL\0C57P01\0Mbye \xff\0\0", &mut failure));
    assert_eq!((failure.code, failure.message.as_str()), (Code::State(*b"57P01"), "bye "));
    assert!(!answer::error(b"SERROR\0C42703\0Mno such column\0P8\0\0", &mut failure));
    assert_eq!(failure.to_string(), "42703: no such column at character 8");
    assert!(!answer::error(b"SERR", &mut failure));
}

proptest! {
    #[test]
    fn any_bytes_are_taken_without_a_panic(
        messages in prop::collection::vec((prop::sample::select(b"DTCZE2NGHx".to_vec()), prop::collection::vec(any::<u8>(), 0..40)), 0..8)
    ) {
        let wire = wire(Protocol::Prepared, None);
        let mut session = session(&wire);
        asked(&wire, &mut session, 0, &params());
        let bytes: Vec<u8> = messages.iter().flat_map(|(tag, body)| message(*tag, body)).collect();
        answered(&wire, &mut session, &bytes);
        // The bodies alone are no messages at all.
        let bodies: Vec<u8> = messages.into_iter().flat_map(|(_, body)| body).collect();
        answered(&wire, &mut session, &bodies);
    }
}
