//! PostgreSQL's protocol on canned bytes.

use proptest::prelude::*;

use super::*;
use crate::arm::{Address, Dialect};
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

fn params() -> Params {
    let mut params = Params::default();
    params.int(-7);
    params.text("it's \\");
    params.null();
    params
}

fn session(wire: &Postgres) -> Session {
    let mut out = Vec::new();
    let mut greeting = wire.greet(&mut out);
    let mut ready = wire.welcome(&mut greeting, b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", &mut out).unwrap();
    if ready.is_none() {
        ready = wire.welcome(&mut greeting, b"1\0\0\0\x04Z\0\0\0\x05I", &mut out).unwrap();
    }
    ready.expect("a session")
}

#[test]
fn values_are_quoted_in_a_query_and_counted_in_a_bind() {
    let mut out = Vec::new();
    let simple = wire(Protocol::Simple, None);
    assert!(simple.encode(&mut session(&simple), StatementId(0), &params(), true, &mut out));
    let mut query = Vec::new();
    message(&mut query, b'Q', |query| put_text(query, "SELECT -7, 'it''s \\', NULL;"));
    assert_eq!(out, query);

    out.clear();
    let prepared = wire(Protocol::Prepared, None);
    assert!(prepared.encode(&mut session(&prepared), StatementId(0), &params(), true, &mut out));
    let bind = b"\0s0\0\0\0\0\x03\0\0\0\x02-7\0\0\0\x06it's \\\xff\xff\xff\xff\0\0";
    let mut wanted = vec![b'B', 0, 0, 0, bind.len() as u8 + 4];
    wanted.extend_from_slice(bind);
    wanted.extend_from_slice(b"D\0\0\0\x06P\0E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04");
    assert_eq!(out, wanted);
}

/// Unset values, as for pgbench's variables that have no value: verbatim in a text, NULL where they
/// are bound.
#[test]
fn an_unset_variable_stays_verbatim_or_is_null() {
    let mut params = Params::default();
    (0..3).for_each(|_| params.unset(":x"));
    let (simple, prepared) = (wire(Protocol::Simple, None), wire(Protocol::Prepared, None));
    let mut out = Vec::new();
    simple.encode(&mut session(&simple), StatementId(0), &params, true, &mut out);
    assert!(out.ends_with(b"SELECT :x, :x, :x;\0"), "{out:?}");
    out.clear();
    prepared.encode(&mut session(&prepared), StatementId(0), &params, true, &mut out);
    let nulls = [&b"\0\x03"[..], &[0xff; 12], b"\0\0D"].concat();
    assert!(out.windows(nulls.len()).any(|window| window == nulls), "{out:?}");
}

#[test]
fn passwords_are_sent_in_the_requested_form() {
    let mut out = Vec::new();
    let with = wire(Protocol::Simple, Some("secret"));
    let mut greeting = with.greet(&mut out);
    out.clear();
    with.welcome(&mut greeting, b"R\0\0\0\x08\0\0\0\x03", &mut out).unwrap();
    assert_eq!(out, b"p\0\0\0\x0bsecret\0");
    out.clear();
    with.welcome(&mut greeting, b"R\0\0\0\x0c\0\0\0\x05abcd", &mut out).unwrap();
    let hash = postgres_protocol::authentication::md5_hash(b"me", b"secret", *b"abcd");
    assert_eq!(&out[5..out.len() - 1], hash.as_bytes());
    out.clear();
    with.welcome(&mut greeting, b"R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0", &mut out).unwrap();
    assert!(out.starts_with(b"p\0\0\0") && out[5..].starts_with(b"SCRAM-SHA-256\0"), "{out:?}");
    let refusal = with.welcome(&mut greeting, b"R\0\0\0\x0d\0\0\0\x0bhello", &mut out).unwrap_err();
    assert!(matches!(refusal, Refusal::Protocol(why) if why.contains("SCRAM is wrong")));

    let without = wire(Protocol::Simple, None);
    let mut greeting = without.greet(&mut out);
    let refusal = without.welcome(&mut greeting, b"R\0\0\0\x08\0\0\0\x03", &mut out).unwrap_err();
    assert!(matches!(refusal, Refusal::Protocol(why) if why.contains("postgres://user:password@")));
    let unknown = without.welcome(&mut greeting, b"R\0\0\0\x08\0\0\0\x07", &mut out).unwrap_err();
    assert!(matches!(unknown, Refusal::Protocol(why) if why.contains("kind 7")));
}

#[test]
fn an_answer_is_the_same_however_it_is_cut() {
    let wire = wire(Protocol::Prepared, None);
    let answer_bytes: &[u8] =
        b"2\0\0\0\x04T\0\0\0\x1b\0\x01nm\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0\
        D\0\0\0\x0c\0\x01\0\0\0\x0242D\0\0\0\x0a\0\x01\xff\xff\xff\xffC\0\0\0\x0dSELECT 2\0Z\0\0\0\x05T";
    for cut in 0..answer_bytes.len() {
        let (mut session, mut out) = (session(&wire), Vec::new());
        wire.encode(&mut session, StatementId(0), &params(), true, &mut out);
        let mut answer = Answer::default();
        let (used, progress) = wire.decode(&mut session, &answer_bytes[..cut], &mut answer, &mut out);
        assert_eq!(progress, Progress::More, "{cut}");
        let (rest, progress) = wire.decode(&mut session, &answer_bytes[used..], &mut answer, &mut out);
        assert_eq!((used + rest, progress), (answer_bytes.len(), Progress::Replied), "{cut}");
        let reply = &answer.reply;
        assert_eq!((reply.rows(), reply.int(0, 0), reply.text(1, 0)), (2, Some(42), None));
        assert_eq!(reply.column_name(0), Some("nm"));
        // A transaction is open, and must be rolled back after an error.
        assert!(wire.rollback(&mut session, &mut out));
    }
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
        let (mut session, mut out, mut answer) = (session(&wire), Vec::new(), Answer::default());
        wire.encode(&mut session, StatementId(0), &params(), true, &mut out);
        let mut bytes = Vec::new();
        for (tag, body) in &messages {
            message(&mut bytes, *tag, |out| out.extend_from_slice(body));
        }
        let (used, _) = wire.decode(&mut session, &bytes, &mut answer, &mut out);
        prop_assert!(used <= bytes.len());
        // The bodies alone are no messages at all.
        let bodies: Vec<u8> = messages.into_iter().flat_map(|(_, body)| body).collect();
        wire.decode(&mut session, &bodies, &mut answer, &mut out);
    }
}
