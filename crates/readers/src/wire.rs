//! Readers of a client's bytes: the login, and the messages behind it.

use server::decode::{Frame, Violation, frame};
use server::login::{First, Proof, Sasl, Step, first_packet, password_message, step};
use server::message;

/// Messages of a client after its login, back to back. Each goes to the function that the session
/// calls for its type.
pub fn wire(input: &[u8]) {
    let mut rest = input;
    while let Ok(Frame::Message { kind, total }) = frame(rest) {
        assert!(total <= rest.len(), "a message ends within its bytes");
        // A broken body ends its session; the fuzzer goes on behind it.
        if let Err(violation) = body(kind, &rest[5..total]) {
            let _ = violation.error();
        }
        rest = &rest[total..];
    }
}

fn body(kind: u8, bytes: &[u8]) -> Result<(), Violation> {
    // The content does not matter here: reading it must not panic.
    match kind {
        b'Q' => _ = message::query(bytes)?,
        b'P' => _ = message::parse(bytes)?,
        b'B' => {
            let mut bind = message::Bind::default();
            message::bind(bytes, &mut bind)?;
            let length: usize = bind.values.iter().flatten().map(|value| value.len()).sum();
            assert!(length <= bytes.len(), "parameters lie apart within their message");
        }
        b'D' => _ = message::describe(bytes)?,
        b'C' => _ = message::close(bytes)?,
        b'E' => _ = message::execute(bytes)?,
        b'f' => _ = message::copy_fail(bytes)?,
        // CopyData is its body; the others have none.
        _ => {}
    }
    Ok(())
}

/// A client's first bytes: requests for TLS, a cancel request or a start-up packet, then the
/// messages of a password exchange.
pub fn login(input: &[u8]) {
    let mut rest = input;
    loop {
        match first_packet(rest) {
            Ok((First::Tls | First::Gss, length)) => rest = &rest[length..],
            Ok((First::Session(request), length)) => {
                assert!(!request.user.is_empty() && !request.database.is_empty(), "a session has a user");
                return passwords(&request.user, &rest[length..]);
            }
            Ok((First::Partial | First::Cancel { .. }, _)) | Err(_) => return,
        }
    }
}

/// The password messages of a user whom the server does not know, on a connection under TLS.
fn passwords(user: &str, input: &[u8]) {
    let proof = Proof { user, secret: &[7; 32], end_point: Some(&[9; 32]) };
    let mut rest = input;
    let mut sasl = Sasl::Offered(None);
    let mut out = Vec::new();
    while let Ok(Some(total)) = password_message(rest) {
        match step(sasl, &proof, &rest[5..total], &mut out) {
            Ok(Step::Continue(next)) => sasl = next,
            Ok(Step::Proved) => panic!("an unknown user has no proof"),
            Err(_) => return,
        }
        rest = &rest[total..];
    }
}
