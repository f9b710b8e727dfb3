//! A client's remedies for errors, and canned bytes for the tests of each protocol.

use super::*;

/// A whole number, a text to be quoted, and NULL.
pub(in crate::drive) fn params() -> Params {
    let mut params = Params::default();
    params.int(-7);
    params.text("it's \\");
    params.null();
    params
}

/// Gives a client that connects these bytes; returns its answer, and the session if it is ready.
pub(in crate::drive) fn greeted<W: Wire>(
    wire: &W,
    state: &mut W::Greeting,
    bytes: &[u8],
) -> Result<(Vec<u8>, Option<W::Session>), Refusal> {
    let mut out = BytesMut::new();
    let (_, session) = wire.welcome(state, bytes, &mut out)?;
    Ok((out.to_vec(), session))
}

/// The bytes that run a statement.
pub(in crate::drive) fn asked<W: Wire>(
    wire: &W,
    session: &mut W::Session,
    statement: u16,
    params: &Params,
) -> Vec<u8> {
    let mut out = BytesMut::new();
    wire.encode(session, StatementId(statement), params, true, &mut out);
    out.to_vec()
}

/// Gives a session these bytes; returns what it sends at once, and how far its answer is.
pub(in crate::drive) fn answered<W: Wire>(
    wire: &W,
    session: &mut W::Session,
    bytes: &[u8],
) -> (Vec<u8>, Progress, Answer) {
    let (mut out, mut answer) = (BytesMut::new(), Answer::default());
    let (used, progress) = wire.decode(session, bytes, &mut answer, &mut out);
    assert!(used <= bytes.len());
    (out.to_vec(), progress, answer)
}

/// Gives sessions a whole answer in two pieces, cut at each place in turn. The rows are 42 and NULL
/// in a column of this name. `asking` makes a session that has sent the statement.
pub(in crate::drive) fn assert_read_however_cut<W: Wire>(
    wire: &W,
    asking: impl Fn() -> W::Session,
    bytes: &[u8],
    column: &str,
) {
    for cut in 0..bytes.len() {
        let (mut session, mut out, mut answer) = (asking(), BytesMut::new(), Answer::default());
        let (used, progress) = wire.decode(&mut session, &bytes[..cut], &mut answer, &mut out);
        assert_eq!(progress, Progress::More, "{cut}");
        let (rest, progress) = wire.decode(&mut session, &bytes[used..], &mut answer, &mut out);
        assert_eq!((used + rest, progress), (bytes.len(), Progress::Replied), "{cut}");
        let reply = &answer.reply;
        assert_eq!((reply.rows(), reply.int(0, 0), reply.text(1, 0)), (2, Some(42), None));
        assert_eq!(reply.column_name(0), Some(column));
    }
}

#[test]
fn a_deadlock_is_tried_again_a_duplicate_is_passed_over_a_missing_table_ends_it() {
    for (code, remedy) in [
        (Code::State(*b"40001"), Remedy::Again),
        (Code::State(*b"40P01"), Remedy::Again),
        (Code::State(*b"23505"), Remedy::Next),
        (Code::State(*b"42P01"), Remedy::Nothing),
        (Code::State(*b"57P01"), Remedy::Nothing),
        (Code::State(*b"57014"), Remedy::Next),
        (Code::Number(1213), Remedy::Again),
        (Code::Number(1205), Remedy::Again),
        (Code::Number(1062), Remedy::Next),
        (Code::Number(1146), Remedy::Nothing),
        (Code::Number(1461), Remedy::Nothing),
    ] {
        assert_eq!(code.remedy(), remedy, "{code}");
    }
    assert!(Code::Number(1461).advice().unwrap().contains("max_prepared_stmt_count = 1048576"));
}
