//! The texts of clients as the server's log may have them: without the passwords of roles.
//!
//! What must hold: no password that a statement gives a role reaches the log, not even where the
//! statement has a fault. So these rules look for words, and not for a statement that parses. They
//! cut a text
//!
//! 1. behind CREATE or ALTER with ROLE, USER or GROUP;
//! 2. behind PASSWORD with a constant or a quoted name;
//! 3. behind PASSWORD that follows ROLE, USER or GROUP, with only words and quotes between them.

use std::borrow::Cow;

use values::error::{SqlError, SqlState};

/// Stands for the part of a text that is not logged.
const CUT: &str = "<not logged>";

/// A statement's text as the log may have it.
pub(crate) fn statement(text: &str) -> Cow<'_, str> {
    match secret(text) {
        None => Cow::Borrowed(text),
        Some(at) => Cow::Owned(format!("{} {CUT}", &text[..at])),
    }
}

/// The message of an error as the log may have it. `shown` is the statement's text, perhaps cut at
/// `longest` bytes. A syntax error quotes the text, so the log has none of the quote if the text
/// may have a password.
pub(crate) fn message<'e>(error: &'e SqlError, shown: &str, longest: usize) -> Cow<'e, str> {
    // A cut between two characters may leave up to 3 bytes less.
    let may_go_on = shown.len() + 4 > longest && error.code == SqlState::SYNTAX_ERROR;
    match error.message.split_once('"') {
        Some((before, _)) if may_go_on || secret(shown).is_some() => Cow::Owned(format!("{before}{CUT}")),
        _ => Cow::Borrowed(&error.message),
    }
}

/// The number of bytes of a text before which no password begins; `None` if there is no password.
/// A mark of a comment may be a part of a string, so the text is read both ways.
fn secret(text: &str) -> Option<usize> {
    let found = [after_blank, after_marks].map(|after| first_secret(text, after));
    found.into_iter().flatten().min()
}

/// The same, where `after` finds the place behind the bytes between two words.
fn first_secret(text: &str, after: fn(&[u8], usize) -> usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut before) = (0, "");
    // Whether only words and quotes have come since ROLE, USER or GROUP.
    let mut role = false;
    while at < bytes.len() {
        at = after(bytes, at);
        let start = at;
        at += bytes[at..].iter().take_while(|byte| is_of_word(**byte)).count();
        if at == start {
            role &= matches!(bytes.get(at), Some(b'"' | b'\'' | b'$' | b'&' | b'\\'));
            before = "";
            at += 1;
            continue;
        }
        let word = &text[start..at];
        let is = |names: &[&str]| names.iter().any(|name| word.eq_ignore_ascii_case(name));
        if is(&["role", "user", "group"]) {
            if ["create", "alter"].iter().any(|name| before.eq_ignore_ascii_case(name)) {
                return Some(at);
            }
            role = true;
        } else if is(&["password"]) && (role || is_quoted(&bytes[after(bytes, at)..])) {
            return Some(at);
        }
        before = word;
    }
    None
}

/// Whether bytes above ASCII count too: they are parts of names.
fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// Whether a string or a quoted name begins here.
fn is_quoted(rest: &[u8]) -> bool {
    matches!(
        rest,
        [b'\'' | b'"' | b'$', ..]
            | [b'e' | b'E' | b'n' | b'N' | b'b' | b'B' | b'x' | b'X', b'\'', ..]
            | [b'u' | b'U', b'&', b'\'' | b'"', ..]
    )
}

/// The place behind the white space and the comments that begin at `at`.
fn after_blank(bytes: &[u8], mut at: usize) -> usize {
    loop {
        match &bytes[at..] {
            [byte, ..] if byte.is_ascii_whitespace() || *byte == 0x0b => at += 1,
            [b'-', b'-', rest @ ..] => {
                at += 2 + rest.iter().take_while(|byte| !matches!(byte, b'\n' | b'\r')).count();
            }
            [b'/', b'*', ..] => at = after_comment(bytes, at),
            _ => return at,
        }
    }
}

/// The place behind the white space and the marks of comments that begin at `at`. Words of comments
/// count as words.
fn after_marks(bytes: &[u8], at: usize) -> usize {
    let is_mark = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, 0x0b | b'-' | b'/' | b'*');
    at + bytes[at..].iter().take_while(|byte| is_mark(**byte)).count()
}

/// The place behind a comment, which may have comments in it.
fn after_comment(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        match bytes[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_of_a_role_is_left_in_a_text() {
        for text in [
            "alter role bob password 'secret'",
            "ALTER USER bob WITH LOGIN ENCRYPTED PASSWORD E'secret'",
            "create user \"a \"\"b\" password 'secret' valid until 'infinity'",
            "create role x pasword 'secret'",
            "alter role x password secret",
            "alter role x password 'secret",
            "alter group x password $$secret$$",
            "alter role x password U&'secret'",
            "altr role x login password secret",
            "alter rle x password 'secret'",
            "alter rle x password \"secret\"",
            "alter rle x password /* a /* b */ ' */ $q$secret$q$",
            "select 1; alter role x password 'secret'; select 2",
            "prepare p as alter role x password 'secret'",
            "do 'alter role x password ''secret'''",
            "alter/**/role x password'secret'",
            "alter -- a comment\n role x password\t--\r'secret'",
            "alter role \"é☃\" password 'secret'",
            "create user mapping for x server s options (user 'x', password 'secret')",
            "password 'secret'",
            "rolle \"role\" password secret",
            "ALTER ROLE x PASSWORD null; -- secret",
            "select 1 /* alter role x password 'secret' */",
            "select '/*'; alter role x password 'secret'",
            "select '--'; alter/* x */role x password/* y */'secret'",
            "select $$/*$$; alter /* x, y */ role x password /* , */ 'secret' -- */",
            "alter /* x, y */ role x pasword 'secret'",
        ] {
            let logged = statement(text);
            assert!(!logged.contains("secret"), "{text}: {logged}");
            assert!(logged.ends_with(" <not logged>"), "{text}: {logged}");
            let begin = logged.strip_suffix(" <not logged>").unwrap();
            assert!(text.starts_with(begin), "{text}: {logged}");
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in [
            "",
            "select 1 /* open",
            "select 'é' -- end",
            "select password from users where name = 'x'",
            "update users set password = 'x' where user_id = 1",
            "insert into users (role, password) values ('user', 'x')",
            "create table users (id int, user_name text, password text not null)",
            "select role from t where x = 1 order by password",
            "alter table password add user_name text",
            "set role bob; select 1",
            "alter/",
            "*/ - /",
        ] {
            assert_eq!(statement(text), text);
        }
    }

    #[test]
    fn every_beginning_of_a_text_hides_the_password() {
        let text = "/* é */ alter -- x\nrole \"ü\" encrypted password /**/ 'secret' createdb";
        for cut in (0..text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            assert!(!statement(&text[..cut]).contains("se"), "{cut}");
            assert!(!statement(&text[cut..]).contains("secret") || cut > text.find("password").unwrap());
        }
    }

    #[test]
    fn a_message_quotes_no_password() {
        let error = |message: &str| SqlError::new(SqlState::SYNTAX_ERROR, message);
        let near = error("syntax error at or near \"secret\"");
        let hidden = "syntax error at or near <not logged>";
        assert_eq!(message(&near, "alter role x password secret", 1024), hidden);
        assert_eq!(message(&near, "select secret", 1024), near.message);
        // The password may lie behind the part of the text that is known.
        let long = format!("select '{}'", "x".repeat(1012));
        assert_eq!(message(&near, &long, 1024), hidden);
        let other = SqlError::new(SqlState::UNDEFINED_TABLE, "relation \"x\" does not exist");
        assert_eq!(message(&other, &long, 1024), other.message);
        let plain = SqlError::unsupported("ALTER ROLE");
        assert_eq!(message(&plain, "alter role x password 'secret'", 1024), plain.message);
    }
}
