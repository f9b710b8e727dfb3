//! The channel binding `tls-server-end-point` (RFC 5929, section 4): the hash of the server's
//! certificate. The hash function is that of the certificate's own signature, or SHA-256 in place
//! of MD5 and SHA-1.
//!
//! What must hold:
//!
//! 1. The hash covers the certificate's bytes as the client gets them.
//! 2. A signature whose hash is not certain gives none. The server then offers no binding, and
//!    clients that insist on one refuse it. A wrong hash would make every bound login fail.
//! 3. No bytes make the reader of the certificate panic.

use sha2::{Digest, Sha256, Sha384, Sha512};

const SEQUENCE: u8 = 0x30;
const OBJECT: u8 = 0x06;

/// All bytes but the last of PKCS #1's object identifiers.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
/// All bytes but the last of ECDSA's object identifiers with SHA-1.
const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
/// All bytes but the last of ECDSA's object identifiers with SHA-2.
const ECDSA_SHA2: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];

/// The hash that a client computes of the certificate (DER) it was shown. `None` if its signature
/// has no hash function of its own (Ed25519) or keeps it elsewhere (RSASSA-PSS): clients cannot
/// bind to such a certificate.
pub fn hash(certificate: &[u8]) -> Option<Vec<u8>> {
    let (last, family) = signature(certificate)?.split_last()?;
    match (family, last) {
        (RSA, 4 | 5 | 11) | (ECDSA_SHA1, 1) | (ECDSA_SHA2, 2) => Some(Sha256::digest(certificate).to_vec()),
        (RSA, 12) | (ECDSA_SHA2, 3) => Some(Sha384::digest(certificate).to_vec()),
        (RSA, 13) | (ECDSA_SHA2, 4) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// The object identifier of a certificate's signature. A certificate is a sequence: the signed
/// part, the signature's algorithm (which begins with its identifier), and the signature.
fn signature(certificate: &[u8]) -> Option<&[u8]> {
    let (whole, _) = element(certificate, SEQUENCE)?;
    let (_, rest) = element(whole, SEQUENCE)?;
    let (algorithm, _) = element(rest, SEQUENCE)?;
    element(algorithm, OBJECT).map(|(object, _)| object)
}

/// The content of the DER element at the start of `bytes`, and the bytes after it.
fn element(bytes: &[u8], kind: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, mut rest) = rest.split_first()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        // The low bits give the number of length bytes that follow.
        let (digits, after) =
            rest.split_at_checked(usize::from(first & 0x7f)).filter(|(d, _)| d.len() <= 4)?;
        length = digits.iter().fold(0, |length, digit| length << 8 | usize::from(*digit));
        rest = after;
    }
    (found == kind).then(|| rest.split_at_checked(length)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate with nothing but a signature's identifier.
    fn certificate(object: &[u8]) -> Vec<u8> {
        let wrap = |kind: u8, content: &[u8]| {
            let mut bytes = vec![kind, 0x81, content.len() as u8];
            bytes.extend_from_slice(content);
            bytes
        };
        let parts = [wrap(SEQUENCE, b"signed"), wrap(SEQUENCE, &wrap(OBJECT, object)), wrap(3, b"signature")];
        wrap(SEQUENCE, &parts.concat())
    }

    #[test]
    fn the_hash_is_that_of_the_signature() {
        let lengths = |family: &[u8], last: u8| {
            let bytes = certificate(&[family, &[last]].concat());
            for cut in 0..bytes.len() {
                let _ = hash(&bytes[..cut]);
            }
            hash(&bytes).map(|hash| hash.len())
        };
        for (family, last, length) in [
            (RSA, 5, Some(32)),
            (RSA, 11, Some(32)),
            (RSA, 12, Some(48)),
            (RSA, 13, Some(64)),
            (RSA, 10, None),
            (ECDSA_SHA1, 1, Some(32)),
            (ECDSA_SHA2, 2, Some(32)),
            (ECDSA_SHA2, 3, Some(48)),
            (ECDSA_SHA2, 4, Some(64)),
            (&[0x2b, 0x65], 0x70, None),
        ] {
            assert_eq!(lengths(family, last), length, "{family:x?} {last}");
        }
        let bytes = certificate(&[RSA, &[11]].concat());
        assert_eq!(hash(&bytes).unwrap(), Sha256::digest(&bytes).to_vec());
    }
}
