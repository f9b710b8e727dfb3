//! The texts of clients as the server's log may have them: without the passwords of roles.
//!
//! What must hold: the log has no password of a valid CREATE or ALTER of a ROLE, USER or GROUP. A
//! statement with a fault does not parse, so these rules look for words. They read no strings and
//! no comments: a mark of a comment may be a part of a string. They cut a text behind the first of
//!
//! 1. ROLE, USER or GROUP directly behind CREATE or ALTER. Where the text has a comment's mark,
//!    anything may lie between.
//! 2. PASSWORD or IDENTIFIED, with CREATE or ALTER anywhere before it.
//! 3. PASSWORD or IDENTIFIED, if this statement or one before it begins with none of [`ROWS`]. A
//!    semicolon ends a statement, in a string too.
//! 4. PASSWORD or IDENTIFIED directly before a constant or a quoted name.
//!
//! So the log has no password of a statement with a fault either, if one of these rules finds it.
//! Words of strings and comments cut a text too.

use std::borrow::Cow;

use values::error::{SqlError, SqlState};

/// Stands for the part of a text that is not logged.
const CUT: &str = "<not logged>";
/// Statements that read or change rows begin with these. PASSWORD may name a column there.
const ROWS: [&str; 5] = ["select", "insert", "update", "delete", "with"];

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
fn secret(text: &str) -> Option<usize> {
    let has_comment = text.contains("--") || text.contains("/*");
    let mut other = !is_of_rows(text);
    // Whether CREATE or ALTER has come, and whether it has come directly before.
    let (mut changes, mut directly) = (false, false);
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        let word = first_word(&text[at..]);
        if word.is_empty() {
            at += next.len_utf8();
            directly &= !next.is_ascii_graphic();
            other |= next == ';' && !is_of_rows(&text[at..]);
            continue;
        }
        at += word.len();
        let is_change = is_one(word, &["create", "alter"]);
        let cuts = if is_one(word, &["role", "user", "group"]) {
            directly || (changes && has_comment)
        } else {
            is_one(word, &["password", "identified"]) && (changes || other || is_quoted(&text[at..]))
        };
        if cuts {
            return Some(at);
        }
        changes |= is_change;
        directly = is_change;
    }
    None
}

/// The word that a text begins with; empty if it begins with none. No word has a character above
/// ASCII: a space that is none for SQL is there between two words.
fn first_word(text: &str) -> &str {
    let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    &text[..text.bytes().take_while(is_of_word).count()]
}

fn is_one(word: &str, names: &[&str]) -> bool {
    names.iter().any(|name| word.eq_ignore_ascii_case(name))
}

/// Whether a statement is empty or begins with one of [`ROWS`]. One that begins with a comment does
/// not.
fn is_of_rows(statement: &str) -> bool {
    let is_blank = |next: char| (next.is_ascii() && !next.is_ascii_graphic()) || next == '(';
    let begin = statement.trim_start_matches(is_blank);
    begin.is_empty() || begin.starts_with(';') || is_one(first_word(begin), &ROWS)
}

/// Whether a string or a quoted name begins here, perhaps with letters before its quote.
fn is_quoted(rest: &str) -> bool {
    let begin = rest.trim_start();
    begin[first_word(begin).len()..].trim_start_matches('&').starts_with(['\'', '"', '$'])
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
            "alter rle bob password = 'secret'",
            "create login x with password = 'secret'",
            "set password for x = 'secret'",
            "grant all on t to x identified by 'secret'",
            "select 1; (select 2);; set password for x = 'secret'",
            "/* select */ set password for x = 'secret'",
            "-- select\nset password for x = 'secret'",
            "set x = ';select'; set password for x = 'secret'",
            "set x = ';select' password = 'secret'",
            "select 1 alter rle x password = 'secret'",
            "select 1 altr role x password U&'secret'",
            "alter\u{a0}role\u{a0}x pasword\u{a0}'secret'",
            "altr role x\u{a0}password\u{a0}secret",
            "ALTER ROLE x PASSWORD null; -- secret",
            "select 1 /* alter role x password 'secret' */",
            "select '/*'; alter role x password 'secret'",
            "select '--'; alter/* x */role x password/* y */'secret'",
            "select $$/*$$; alter /* x, y */ role x password /* , */ 'secret' -- */",
            "alter /* x, y */ role x pasword 'secret'",
            "select '--'; alter /* x, y */ role bob /* a, b */ password /* , */ 'secret'",
            "select '--'; alter /* x, y */ role b pasword 'secret'",
            "select '/etc/*';\nselect 1;\nalter -- x, y\nrole b\n-- a, b\npassword -- ,\n'secret'",
            "select '/etc/*';\nselect 1;\nalter -- x, y\nrole b pasword 'secret'",
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
            "(select password from users); ; with x as (select 1) select password from x;\u{b}",
            "select password, role -- end\nfrom users /* where role = 'x' */",
            "create table users (id int, user_name text, role int, user_group text)",
            "create view v as select user, count(*) from t group by user",
            "select role from t where x = 1 order by password",
            "alter table passwords add user_name text",
            "set role bob; select 1",
            "alter/",
            "*/ - /",
        ] {
            assert_eq!(statement(text), text);
        }
    }

    #[test]
    fn a_text_keeps_the_words_before_its_cut() {
        for (text, logged) in [
            ("create table t (a int, password text)", "create table t (a int, password <not logged>"),
            ("alter role x password 's'; select 1", "alter role <not logged>"),
            ("select 1; set password = 's'", "select 1; set password <not logged>"),
            ("create view v as select user -- x", "create view v as select user <not logged>"),
        ] {
            assert_eq!(statement(text), logged);
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
