//! The position of a wrong Unicode escape, which the parser's message leaves out.

/// A wrong escape.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The offset of its first byte.
    pub at: usize,
    /// Whether it is in an `E'...'` string rather than `U&'...'` or `U&"..."`.
    pub extended: bool,
}

/// The first wrong escape of a text.
pub(super) fn fault(text: &str) -> Option<Fault> {
    let mut tokens = Vec::new();
    crate::normalize::for_each_token(text, |start, end| tokens.push((start, end)));
    tokens.iter().enumerate().find_map(|(number, &(start, end))| {
        let token = &text.as_bytes()[start..end];
        let [first, rest @ ..] = token else { return None };
        match (first.to_ascii_lowercase(), rest) {
            (b'e', [b'\'', content @ ..]) => {
                extended(content).map(|at| Fault { at: start + 2 + at, extended: true })
            }
            (b'u', [b'&', b'\'' | b'"', content @ ..]) => {
                let following = tokens.get(number + 1..).unwrap_or_default();
                let escape = escape_character(text, following);
                plain(content, escape).map(|at| Fault { at: start + 3 + at, extended: false })
            }
            _ => None,
        }
    })
}

/// The character that UESCAPE after a string names; a backslash by default.
fn escape_character(text: &str, following: &[(usize, usize)]) -> u8 {
    match following {
        [(a, b), (c, d), ..] if text[*a..*b].eq_ignore_ascii_case("uescape") => {
            text.as_bytes()[*c..*d].get(1).copied().unwrap_or(b'\\')
        }
        _ => b'\\',
    }
}

/// Whether this number of hex digits follows. In the long form the number must be a character's.
fn is_escape(content: &[u8], from: usize, digits: usize) -> bool {
    let Some(digits) = content.get(from..from + digits) else { return false };
    let number = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, 16).ok());
    digits.iter().all(u8::is_ascii_hexdigit) && number.is_some_and(|number| number <= 0x0010_ffff)
}

fn extended(content: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < content.len() {
        if content[at] != b'\\' {
            at += 1;
            continue;
        }
        let digits = match content.get(at + 1) {
            Some(b'u') => 4,
            Some(b'U') => 8,
            _ => 0,
        };
        if digits > 0 && !is_escape(content, at + 2, digits) {
            return Some(at);
        }
        at += 2;
    }
    None
}

fn plain(content: &[u8], escape: u8) -> Option<usize> {
    let mut at = 0;
    while at < content.len() {
        if content[at] != escape {
            at += 1;
        } else if content.get(at + 1) == Some(&escape) {
            at += 2;
        } else if is_escape(content, at + 1, 4) {
            at += 5;
        } else if content.get(at + 1) == Some(&b'+') && is_escape(content, at + 2, 6) {
            at += 8;
        } else {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_escape_is_found_where_it_begins() {
        let fault = |text| fault(text).map(|fault| (fault.at, fault.extended));
        assert_eq!(fault(r"select U&'good \0061 \\ \+000061', U&'wrong: \061'"), Some((45, false)));
        assert_eq!(fault(r"select E'good \u0061 \n', e'wrong: \u061'"), Some((35, true)));
        assert_eq!(fault(r"select U&'wrong: !061' uescape '!'"), Some((17, false)));
        assert_eq!(fault(r"select U&'wrong: \+2FFFFF'"), Some((17, false)));
        assert_eq!(fault(r"select U&'\0061', E'\U00000061', '\u'"), None);
    }
}
