//! MySQL's packets and the lengths in them.

/// Writes a packet with its length and number. No statement of a workload fills one.
pub(super) fn packet(out: &mut Vec<u8>, number: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, number]);
    body(out);
    let length = out.len() - start - 4;
    assert!(length < PACKET_FULL, "a statement of 16 MiB or more");
    out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
}

/// The next packet continues a packet of this length.
pub(super) const PACKET_FULL: usize = 0xff_ffff;

/// The next whole packet in `bytes`: its number and its body. `None` when it is incomplete.
pub(super) fn frame(bytes: &[u8]) -> Result<Option<(u8, &[u8])>, &'static str> {
    let Some(head) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
    if length == PACKET_FULL {
        return Err("the server answered with a row of 16 MiB or more, which this driver does not read");
    }
    Ok(bytes.get(4..4 + length).map(|body| (head[3], body)))
}

/// Writes a length in as many bytes as it needs.
pub(super) fn put_length(out: &mut Vec<u8>, length: u64) {
    let bytes = length.to_le_bytes();
    match length {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Takes a length off the front.
pub(super) fn take_length(rest: &mut &[u8]) -> Option<u64> {
    let width = match take(rest, 1)?[0] {
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        0xfb | 0xff => return None,
        small => return Some(u64::from(small)),
    };
    let mut bytes = [0; 8];
    bytes[..width].copy_from_slice(take(rest, width)?);
    Some(u64::from_le_bytes(bytes))
}

/// Takes this many bytes off the front.
pub(super) fn take<'a>(rest: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, after) = rest.split_at_checked(count)?;
    *rest = after;
    Some(taken)
}

/// Takes off a length and that many bytes.
pub(super) fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = take_length(rest)?;
    take(rest, usize::try_from(length).ok()?)
}

/// Takes off the bytes before a zero, and the zero.
pub(super) fn take_zero_ended<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = rest.iter().position(|&byte| byte == 0)?;
    let text = take(rest, end);
    take(rest, 1);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_fills_a_packet_is_refused() {
        assert!(frame(&[0xff, 0xff, 0xff, 1]).unwrap_err().contains("16 MiB"));
    }

    #[test]
    fn lengths_of_every_width_come_back() {
        for length in [0, 0xfa, 0xfb, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000] {
            let mut out = Vec::new();
            put_length(&mut out, length);
            let mut rest = out.as_slice();
            assert_eq!((take_length(&mut rest), rest.len()), (Some(length), 0), "{length}");
            assert_eq!(take_length(&mut &out[..out.len() - 1]), None, "{length}, cut");
        }
    }
}
