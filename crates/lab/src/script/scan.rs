//! Cuts a script into SQL commands and backslash commands, by the rules of psql's scanner, which
//! pgbench uses.
//!
//! A command ends at a semicolon outside of quotes, comments and parentheses, or where a backslash
//! begins a command of its own.

use super::variables::{begins_name, continues_name};

pub(super) struct Scanner<'a> {
    text: &'a str,
    /// The next byte to read.
    pub at: usize,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// An SQL command without leading blanks and comments, and its offset.
    Sql(String, usize),
    /// A backslash, at this offset; the words of its command come next.
    Backslash(usize),
    End,
}

/// A word of a backslash command, and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    pub start: usize,
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn part(&mut self) -> Part {
        self.skip_blanks();
        let (start, mut sql, mut parentheses) = (self.at, String::new(), 0_usize);
        while !self.rest().is_empty() {
            // An escaped colon begins no variable.
            if self.rest().starts_with("\\:") {
                sql.push(':');
                self.at += 2;
                continue;
            }
            if self.rest().starts_with('\\') {
                break;
            }
            let token = &self.rest()[..token(self.rest())];
            sql.push_str(token);
            self.at += token.len();
            match token {
                "(" => parentheses += 1,
                ")" => parentheses = parentheses.saturating_sub(1),
                ";" if parentheses == 0 => break,
                _ => {}
            }
        }
        sql.truncate(sql.trim_end().len());
        if !sql.is_empty() {
            return Part::Sql(sql, start);
        }
        if self.rest().is_empty() {
            return Part::End;
        }
        self.at += 1;
        Part::Backslash(start)
    }

    /// Skips white space, and comments up to a line's end.
    fn skip_blanks(&mut self) {
        loop {
            match self.rest().as_bytes() {
                [byte, ..] if byte.is_ascii_whitespace() || *byte == 0x0b => self.at += 1,
                [b'-', b'-', ..] => self.at += token(self.rest()),
                _ => return,
            }
        }
    }

    /// The next word of a backslash command; `None` at its end, which the scanner skips.
    pub(super) fn word(&mut self) -> Option<Word<'a>> {
        self.at += blanks(self.rest());
        let rest = self.rest();
        let end = rest.char_indices().find(|(at, c)| *c == '\n' || blanks(&rest[*at..]) > 0);
        let length = end.map_or(rest.len(), |(at, _)| at);
        let word = Word { text: &rest[..length], start: self.at };
        // A line's end, or the script's, is no word.
        self.at += length.max(usize::from(!rest.is_empty()));
        (length > 0).then_some(word)
    }

    /// All words up to the command's end.
    pub(super) fn words(&mut self) -> Vec<Word<'a>> {
        std::iter::from_fn(|| self.word()).collect()
    }
}

/// Length of the blanks that begin a text, up to its line's end. A backslash before that end
/// continues a command in the next line.
pub(super) fn blanks(text: &str) -> usize {
    let mut length = 0;
    loop {
        length += match &text.as_bytes()[length..] {
            [b' ' | b'\t' | b'\r' | 0x0b | 0x0c, ..] => 1,
            [b'\\', b'\n', ..] => 2,
            [b'\\', b'\r', b'\n', ..] => 3,
            _ => return length,
        }
    }
}

/// Length of the token that begins an SQL text: a quoted text, a comment, a word, or one byte. A
/// quoted text or comment without an end takes all the rest.
fn token(sql: &str) -> usize {
    let until = |from: usize, end: &str| sql[from..].find(end).map_or(sql.len(), |at| from + at + end.len());
    match sql.as_bytes() {
        // A doubled quote ends a text and opens another at once.
        [b'\'', ..] => until(1, "'"),
        [b'"', ..] => until(1, "\""),
        [b'-', b'-', ..] => until(2, "\n"),
        [b'/', b'*', ..] => comment(sql.as_bytes()),
        [b'e' | b'E', b'\'', ..] => escaped(sql.as_bytes()),
        [b'$', rest @ ..] => {
            // Between two `$tag$`s; a lone dollar is no quote.
            let tag = rest.iter().take_while(|byte| continues_name(**byte)).count();
            let quotes = rest.get(tag) == Some(&b'$') && !rest[0].is_ascii_digit();
            if quotes { until(tag + 2, &sql[..tag + 2]) } else { 1 }
        }
        [first, ..] if begins_name(*first) => {
            sql.bytes().take_while(|byte| continues_name(*byte) || *byte == b'$').count()
        }
        _ => 1,
    }
}

/// Length of a comment, with nested ones.
fn comment(sql: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    loop {
        match &sql[at..] {
            [] => return at,
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
}

/// Length of a text in quotes behind an E, in which a backslash escapes the next character.
fn escaped(sql: &[u8]) -> usize {
    let mut at = 2;
    loop {
        match &sql[at..] {
            [] | [b'\\'] => return sql.len(),
            [b'\\', ..] => at += 2,
            [b'\'', ..] => return at + 1,
            _ => at += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<String> {
        let mut scanner = Scanner::new(text);
        let mut found = Vec::new();
        loop {
            match scanner.part() {
                Part::Sql(sql, _) => found.push(sql),
                Part::Backslash(_) => {
                    let words: Vec<_> = scanner.words().into_iter().map(|word| word.text).collect();
                    found.push(format!("\\{}", words.join("|")));
                }
                Part::End => return found,
            }
        }
    }

    #[test]
    fn semicolons_end_commands_only_outside_of_everything() {
        let cases: [(&str, &[&str]); 15] = [
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
            ("\\set é ü\n\\endif", &["\\set|é|ü", "\\endif"]),
            ("  -- nothing\n", &[]),
            ("SELECT 'open; and more", &["SELECT 'open; and more"]),
            ("SELECT ')'; SELECT (';", &["SELECT ')';", "SELECT (';"]),
        ];
        for (text, expected) in cases {
            assert_eq!(parts(text), expected, "{text}");
        }
    }
}
