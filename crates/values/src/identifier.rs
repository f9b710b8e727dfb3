//! Identifiers as SQL text. Only this module quotes identifiers and reads lists of them and
//! qualified names.
//!
//! What must hold:
//!
//! 1. The parser reads a quoted identifier as the same name. Stored defaults, checks and the
//!    statements that commands make of names rest on it.
//! 2. A name is cut at 63 bytes, between characters, wherever it comes from. Otherwise a long name
//!    would not find the object that was made under it.

use crate::error::SqlError;
use crate::work;

/// The most bytes of a name, which is the length of the type `name`.
const NAME_BYTES: usize = 63;

/// The longest start of a text that fits a name: at most 63 bytes, cut between characters.
pub fn truncate_name(text: &str) -> &str {
    let mut end = text.len().min(NAME_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// An identifier, in quotes when the parser would read it otherwise without them.
pub fn quoted(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// As [`quoted`], with safe points, for a text of any length.
pub fn quoted_text(text: &str) -> Result<String, SqlError> {
    if text.len() <= runtime::work::STRIDE {
        return Ok(quoted(text));
    }
    let mut out = String::new();
    if is_plain_start(text) && !work::any(text.as_bytes(), |byte| !is_plain_byte(byte))? {
        work::push(&mut out, text)?;
        return Ok(out);
    }
    out.push('"');
    for piece in work::pieces(text) {
        out.push_str(&piece?.replace('"', "\"\""));
    }
    out.push('"');
    Ok(out)
}

/// An identifier with its schema's name before it.
pub fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", quoted(schema), quoted(name))
}

fn is_plain(name: &str) -> bool {
    is_plain_start(name) && name.bytes().all(is_plain_byte) && !KEYWORDS.split(' ').any(|word| word == name)
}

fn is_plain_start(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
}

fn is_plain_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}

/// Splits a list of names, or a qualified name where the separator is a point.
///
/// Each name is unquoted, or folded to lower case where it had no quotes, and cut to the length of
/// a name. Returns None for a malformed list and no names for an empty text.
pub fn split(text: &str, separator: char) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    if rest.is_empty() {
        return Some(names);
    }
    loop {
        let (name, behind) = match rest.strip_prefix('"') {
            Some(inner) => within_quotes(inner)?,
            None => {
                let end = rest.find(|c| c == separator || is_space(c)).unwrap_or(rest.len());
                let (name, behind) = rest.split_at(end);
                if name.is_empty() {
                    return None;
                }
                (name.to_ascii_lowercase(), behind)
            }
        };
        names.push(truncate_name(&name).to_owned());
        let behind = behind.trim_start_matches(is_space);
        if behind.is_empty() {
            return Some(names);
        }
        rest = behind.strip_prefix(separator)?.trim_start_matches(is_space);
    }
}

/// Whether PostgreSQL's scanner takes a character for white space.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

/// The name up to the closing quote, and the text after the quote.
fn within_quotes(text: &str) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut rest = text;
    loop {
        let (part, behind) = rest.split_once('"')?;
        name.push_str(part);
        match behind.strip_prefix('"') {
            Some(more) => {
                name.push('"');
                rest = more;
            }
            None => return Some((name, behind)),
        }
    }
}

/// The grammar's keywords that a plain name may not be. A name equal to one needs quotes.
const KEYWORDS: &str = "\
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both \
    case cast char character check coalesce collate collation column concurrently constraint create cross \
    current_catalog current_date current_role current_schema current_time current_timestamp current_user dec \
    decimal default deferrable desc distinct do else end except exists extract false fetch float for foreign \
    freeze from full grant greatest group grouping having ilike in initially inner inout int integer \
    intersect interval into is isnull join json json_array json_arrayagg json_exists json_object \
    json_objectagg json_query json_scalar json_serialize json_table json_value lateral leading least left \
    like limit localtime localtimestamp merge_action national natural nchar none normalize not notnull null \
    nullif numeric offset on only or order out outer overlaps overlay placing position precision primary \
    real references returning right row select session_user setof similar smallint some substring symmetric \
    system_user table tablesample then time timestamp to trailing treat trim true union unique user using \
    values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement xmlexists \
    xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_quoted_where_the_parser_would_read_another_one() {
        for (name, text) in [
            ("a_1", "a_1"),
            ("", "\"\""),
            ("1a", "\"1a\""),
            ("Upper", "\"Upper\""),
            ("select", "\"select\""),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("\u{e9}", "\"\u{e9}\""),
            ("$user", "\"$user\""),
        ] {
            assert_eq!(quoted(name), text);
            assert_eq!(split(text, ',').as_deref(), Some(&[name.to_owned()][..]));
        }
        let long = "a\"".repeat(20_000);
        assert_eq!(quoted_text(&long).unwrap(), quoted(&long));
        let plain = "a".repeat(20_000);
        assert_eq!(quoted_text(&plain).unwrap(), plain);
    }

    #[test]
    fn a_list_is_split_outside_of_quotes() {
        let names = |text| split(text, ',').map(|names| names.join("|"));
        assert_eq!(names(" A , \"B,c\",$user ").as_deref(), Some("a|B,c|$user"));
        assert_eq!(names("").as_deref(), Some(""));
        for malformed in ["a,", ",a", "a b", "\"a", "\"a\"b", "a,,b", ","] {
            assert_eq!(names(malformed), None, "{malformed}");
        }
        let long = "\u{e9}".repeat(60);
        assert_eq!(split(&long, '.').unwrap()[0].len(), 62);
        assert_eq!(split("S . \"T\".u", '.').unwrap(), ["s", "T", "u"]);
    }
}
