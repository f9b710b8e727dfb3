//! Names of relations inside stored texts of expressions.
//!
//! A text holds `'OID'::regclass` in place of a name. The `query` crate writes such texts with its
//! parser; this module reads them without one.

use values::identifier::split;

/// Whether a constant that names a relation is an OID. `-` counts as 0.
pub fn is_number(name: &str) -> bool {
    name == "-" || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

/// The error message for a constant that names a relation which does not exist.
pub fn missing(name: &str) -> String {
    let names = split(name, '.').map(|names| names.join("."));
    format!("relation \"{}\" does not exist", names.as_deref().unwrap_or(name))
}

/// The OIDs of the relations that a stored text reads.
pub fn numbers(text: &str) -> impl Iterator<Item = u32> + '_ {
    text.match_indices(OF_RELATION).filter_map(|(end, _)| {
        let before = text[..end].trim_end_matches(|c: char| c.is_ascii_digit());
        before.ends_with('\'').then(|| text[before.len()..end].parse().ok())?
    })
}

/// The text that follows a relation's OID in a stored text.
const OF_RELATION: &str = "'::regclass";

/// The text with each `'OID'::regclass` replaced by the name that `named` returns.
pub(crate) fn named_relations(text: &str, named: &dyn Fn(u32) -> Option<String>) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(end) = rest.find(OF_RELATION) {
        let before = rest[..end].trim_end_matches(|c: char| c.is_ascii_digit());
        let number = before.ends_with('\'').then(|| rest[before.len()..end].parse().ok()).flatten();
        match number.and_then(named) {
            Some(name) => {
                shown.push_str(before);
                shown.push_str(&name.replace('\'', "''"));
            }
            None => shown.push_str(&rest[..end]),
        }
        shown.push_str(OF_RELATION);
        rest = &rest[end + OF_RELATION.len()..];
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_show_the_names_of_their_relations() {
        let named = |oid| (oid == 7).then(|| "s.\"it's\"".to_owned());
        assert_eq!(
            named_relations("nextval('7'::regclass) + 1", &named),
            "nextval('s.\"it''s\"'::regclass) + 1"
        );
        assert_eq!(named_relations("nextval('8'::regclass)", &named), "nextval('8'::regclass)");
        assert_eq!(named_relations("upper('7') || 'val('''", &named), "upper('7') || 'val('''");
        let read = numbers("nextval('7'::regclass) + f('x8'::regclass, '9'::regclass)");
        assert_eq!(read.collect::<Vec<_>>(), [7, 9]);
    }
}
