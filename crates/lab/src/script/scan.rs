//! Cuts a script into SQL commands and backslash commands, by the rules of psql's scanner, which
//! pgbench uses.
//!
//! A command ends at a semicolon outside of quotes, comments and parentheses, or where a backslash
//! begins a command of its own.

use super::variables::{begins_name, continues_name};

/// A script's text and the scanner's position.
pub(super) struct Scanner<'a> {
    text: &'a str,
    /// The next byte to read.
    pub at: usize,
}

/// The end of a piece of SQL.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// A semicolon.
    Semicolon,
    /// A backslash, at this offset; its command comes next.
    Backslash(usize),
    /// The script's end.
    End,
}

/// A word of a backslash command, and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    pub start: usize,
}

impl<'a> Scanner<'a> {
    /// At the text's beginning.
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next piece of SQL, if there is any, without leading blanks and comments; its offset; and
    /// its end.
    pub(super) fn sql(&mut self) -> (Option<(String, usize)>, Ended) {
        let start = self.skip_blanks();
        let mut piece = Piece {
            bytes: self.text.as_bytes(),
            at: start,
            kept: start,
            text: String::new(),
            parentheses: 0,
        };
        let ended = piece.read(self.text);
        let (end, after) = match ended {
            Ended::Semicolon => (piece.at, piece.at),
            Ended::Backslash(at) => (at, at + 1),
            Ended::End => (piece.at, piece.at),
        };
        self.at = after;
        let mut text = piece.text;
        text.push_str(&self.text[piece.kept..end]);
        text.truncate(text.trim_end().len());
        ((!text.is_empty()).then_some((text, start)), ended)
    }

    /// The next word of a backslash command; `None` at its end, which the scanner skips.
    pub(super) fn word(&mut self) -> Option<Word<'a>> {
        let bytes = self.text.as_bytes();
        self.at = self.next_word();
        match bytes.get(self.at) {
            None => return None,
            Some(b'\n') => {
                self.at += 1;
                return None;
            }
            Some(_) => {}
        }
        let start = self.at;
        while bytes.get(self.at).is_some_and(|byte| !byte.is_ascii_whitespace() && *byte != 0x0b)
            && self.continuation(self.at) == 0
        {
            self.at += 1;
        }
        Some(Word { text: &self.text[start..self.at], start })
    }

    /// The offset of a backslash command's next word, or of the command's end.
    pub(super) fn next_word(&self) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        loop {
            match bytes.get(at) {
                None | Some(b'\n') => return at,
                Some(byte) if byte.is_ascii_whitespace() || *byte == 0x0b => at += 1,
                Some(_) if self.continuation(at) > 0 => at += self.continuation(at),
                Some(_) => return at,
            }
        }
    }

    /// Length of the backslash and line end that continue a command in the next line.
    fn continuation(&self, at: usize) -> usize {
        match &self.text.as_bytes()[at..] {
            [b'\\', b'\n', ..] => 2,
            [b'\\', b'\r', b'\n', ..] => 3,
            _ => 0,
        }
    }

    /// Skips white space and comments up to the line's end; returns the offset of the next text.
    fn skip_blanks(&self) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        loop {
            match &bytes[at..] {
                [byte, ..] if byte.is_ascii_whitespace() || *byte == 0x0b => at += 1,
                [b'-', b'-', ..] => at = line_end(bytes, at),
                _ => return at,
            }
        }
    }
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |length| at + length)
}

/// A piece of SQL under way.
struct Piece<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The offset from which the piece is not yet in `text`.
    kept: usize,
    text: String,
    parentheses: usize,
}

impl Piece<'_> {
    fn read(&mut self, text: &str) -> Ended {
        while let Some(&byte) = self.bytes.get(self.at) {
            match byte {
                b'\'' => self.quoted(b'\'', false),
                b'"' => self.quoted(b'"', false),
                b'-' if self.bytes.get(self.at + 1) == Some(&b'-') => self.at = line_end(self.bytes, self.at),
                b'/' if self.bytes.get(self.at + 1) == Some(&b'*') => self.comment(),
                b'$' => self.dollar(),
                b'(' => {
                    self.parentheses += 1;
                    self.at += 1;
                }
                b')' => {
                    self.parentheses = self.parentheses.saturating_sub(1);
                    self.at += 1;
                }
                b'\\' => match self.bytes.get(self.at + 1) {
                    Some(b':') => {
                        self.text.push_str(&text[self.kept..self.at]);
                        self.kept = self.at + 1;
                        self.at += 2;
                    }
                    _ => return Ended::Backslash(self.at),
                },
                b';' => {
                    self.at += 1;
                    if self.parentheses == 0 {
                        return Ended::Semicolon;
                    }
                }
                _ if begins_name(byte) => self.word(),
                _ => self.at += 1,
            }
        }
        Ended::End
    }

    /// Skips a quoted text; without a closing quote, all the rest.
    fn quoted(&mut self, quote: u8, escapes: bool) {
        self.at += 1;
        while let Some(&byte) = self.bytes.get(self.at) {
            self.at += 1;
            if byte == b'\\' && escapes {
                self.at += 1;
            } else if byte == quote {
                // A doubled quote opens a text again at once.
                return;
            }
        }
        self.at = self.bytes.len();
    }

    /// Skips a comment, with nested ones.
    fn comment(&mut self) {
        let mut depth = 0;
        while self.at < self.bytes.len() {
            match &self.bytes[self.at..] {
                [b'/', b'*', ..] => {
                    depth += 1;
                    self.at += 2;
                }
                [b'*', b'/', ..] => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return;
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    /// Skips a text between `$tag$`s, or a lone dollar.
    fn dollar(&mut self) {
        let rest = &self.bytes[self.at + 1..];
        let tag = rest.iter().take_while(|byte| continues_name(**byte)).count();
        let is_tag = rest.get(tag) == Some(&b'$') && (tag == 0 || begins_name(rest[0]));
        if !is_tag {
            self.at += 1;
            return;
        }
        let delimiter = &self.bytes[self.at..self.at + tag + 2];
        let inside = self.at + delimiter.len();
        let length = self.bytes[inside..].windows(delimiter.len()).position(|window| window == delimiter);
        self.at = length.map_or(self.bytes.len(), |length| inside + length + delimiter.len());
    }

    /// Skips a word, and a quoted text with escapes that it begins.
    fn word(&mut self) {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|byte| continues_name(*byte) || *byte == b'$') {
            self.at += 1;
        }
        if self.bytes[start..self.at].eq_ignore_ascii_case(b"e") && self.bytes.get(self.at) == Some(&b'\'') {
            self.quoted(b'\'', true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str) -> Vec<String> {
        let mut scanner = Scanner::new(text);
        let mut found = Vec::new();
        loop {
            let (sql, ended) = scanner.sql();
            found.extend(sql.map(|(text, _)| text));
            match ended {
                Ended::Semicolon => {}
                Ended::Backslash(_) => {
                    let words: Vec<_> = std::iter::from_fn(|| scanner.word()).map(|word| word.text).collect();
                    found.push(format!("\\{}", words.join("|")));
                }
                Ended::End => return found,
            }
        }
    }

    #[test]
    fn semicolons_end_commands_only_outside_of_everything() {
        let cases: [(&str, &[&str]); 14] = [
            ("SELECT 1;SELECT\n 2 ; ", &["SELECT 1;", "SELECT\n 2 ;"]),
            ("SELECT ';', \";\", 'it''s;' ; x", &["SELECT ';', \";\", 'it''s;' ;", "x"]),
            ("SELECT E'\\';' ; SELECT '\\' ; y", &["SELECT E'\\';' ;", "SELECT '\\' ;", "y"]),
            ("SELECT $$;$$, $a_1$ ; $$ ; $a_1$, $1 ; z", &["SELECT $$;$$, $a_1$ ; $$ ; $a_1$, $1 ;", "z"]),
            ("-- no; \n /* a; /* b; */ c; */ SELECT 1 -- d;\n;", &["/* a; /* b; */ c; */ SELECT 1 -- d;\n;"]),
            ("CREATE RULE r AS (SELECT 1; SELECT 2); s", &["CREATE RULE r AS (SELECT 1; SELECT 2);", "s"]),
            ("SELECT a\\:\\:b;", &["SELECT a::b;"]),
            (
                "BEGIN; SELECT CASE WHEN a THEN b END; END;",
                &["BEGIN;", "SELECT CASE WHEN a THEN b END;", "END;"],
            ),
            ("SELECT 1 \\gset p_\nSELECT a$b$ ; c", &["SELECT 1", "\\gset|p_", "SELECT a$b$ ;", "c"]),
            ("\\set a \\\n 1\\\n  2\nSELECT 1", &["\\set|a|1|2", "SELECT 1"]),
            ("\\sleep 10 ms\r\n\\endif", &["\\sleep|10|ms", "\\endif"]),
            ("  -- nothing\n", &[]),
            ("SELECT 'open; and more", &["SELECT 'open; and more"]),
            ("SELECT ')'; SELECT (';", &["SELECT ')';", "SELECT (';"]),
        ];
        for (text, expected) in cases {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }
}
