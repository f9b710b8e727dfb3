//! Edits of the expressions that the catalog keeps as text, so that they stay valid when names in
//! them change.
//!
//! A stored text is one that [`super::expression_text`] wrote. The parse tree of the text shows
//! which parts to replace. What must hold: all other parts stay the same, byte by byte.

use std::ops::Range;

use pg_query::protobuf::a_const::Val;
use pg_query::protobuf::{AConst, ColumnRef, Node};
use pg_query::{NodeEnum, NodeRef};

use super::strings;
use values::error::SqlError;
use values::identifier::quoted;

const SELECT: &str = "SELECT ";

/// A part of a text and its replacement.
type Edit = (Range<usize>, String);

/// The text with its columns by their bare names, with one column renamed if `renamed` is set. So
/// it stays valid under any name of the table.
///
/// # Errors
/// If the text cannot be parsed.
pub fn bare_columns(text: &str, renamed: Option<(&str, &str)>) -> Result<String, SqlError> {
    let bare = |text: &str, renamed: Option<(&str, &str)>| {
        edited(text, &mut |node: NodeRef<'_>, text: &str| {
            let NodeRef::ColumnRef(column) = node else { return None };
            let name = last_name(column)?;
            let name = renamed.filter(|(from, _)| *from == name).map_or(name, |(_, to)| to);
            let start = usize::try_from(column.location).ok()?;
            Some((start..end_of_name(text, start)?, quoted(name)))
        })
    };
    values::work::here_or_beside(
        || bare(text, renamed),
        || {
            let renamed = renamed.map(|(from, to)| (from.to_owned(), to.to_owned()));
            let text = text.to_owned();
            Ok(move || bare(&text, renamed.as_ref().map(|(from, to)| (from.as_str(), to.as_str()))))
        },
    )
}

/// Functions whose first argument names a relation, if it is a plain constant.
const OF_RELATIONS: [&str; 8] = [
    "nextval",
    "currval",
    "setval",
    "regclass",
    "pg_relation_size",
    "pg_table_size",
    "pg_indexes_size",
    "pg_total_relation_size",
];

/// The constants of an expression that name relations, with their places in the statement.
pub(crate) fn relation_constants(expression: &Node) -> Vec<(String, i32)> {
    let mut constants = Vec::new();
    if let Some(node) = expression.node.as_ref() {
        walk(node, &mut |node| {
            constants.extend(relation_constant(node).map(|(name, at, _)| (name.to_owned(), at)));
        });
    }
    constants
}

/// The text with each relation that a constant names replaced by its OID, as `found` returns it. So
/// it stays valid under any name of the relations and any search path.
///
/// # Errors
/// If the text cannot be parsed.
pub fn numbered_relations(text: &str, found: &dyn Fn(&str) -> Option<u32>) -> Result<String, SqlError> {
    edited(text, &mut |node, text| {
        let (name, location, cast) = relation_constant(node)?;
        let oid = found(name)?;
        let start = usize::try_from(location).ok()?;
        Some((start..end_of_literal(text, start)?, format!("'{oid}'{cast}")))
    })
}

/// A constant that names a relation: its contents, its location and the cast it needs.
fn relation_constant(node: NodeRef<'_>) -> Option<(&str, i32, &'static str)> {
    let (constant, cast) = match node {
        NodeRef::FuncCall(call) => {
            let function = strings(&call.funcname).last().copied()?;
            match call.args.first()?.node.as_ref()? {
                NodeEnum::AConst(constant) if OF_RELATIONS.contains(&function) => (constant, "::regclass"),
                _ => return None,
            }
        }
        NodeRef::TypeCast(cast) => {
            let type_ = cast.type_name.as_ref().filter(|type_| type_.array_bounds.is_empty())?;
            let Some(NodeEnum::AConst(constant)) = &cast.arg.as_deref()?.node else { return None };
            match *strings(&type_.names).as_slice() {
                ["regclass"] => (constant, ""),
                ["pg_catalog", "regclass"] => (constant, "::regclass"),
                _ => return None,
            }
        }
        _ => return None,
    };
    let AConst { val: Some(Val::Sval(name)), location, .. } = constant else { return None };
    Some((&name.sval, *location, cast))
}

/// Replaces parts of a text, each found by `edit` at a node of its tree.
fn edited(text: &str, edit: &mut dyn FnMut(NodeRef<'_>, &str) -> Option<Edit>) -> Result<String, SqlError> {
    let mut text = format!("{SELECT}{text}");
    let parsed = super::parse(&text)?;
    let mut edits = Vec::new();
    for statement in &parsed.statements {
        walk(&statement.node, &mut |node| edits.extend(edit(node, &text)));
    }
    edits.sort_by_key(|(range, _)| range.start);
    for (range, new) in edits.into_iter().rev() {
        text.replace_range(range, &new);
    }
    Ok(text.split_off(SELECT.len()))
}

/// Visits every node of an expression: the parser library's walk, and the nodes it does not enter.
fn walk(node: &NodeEnum, visit: &mut dyn FnMut(NodeRef<'_>)) {
    for (node, ..) in node.nodes() {
        visit(node);
        let mut enter = |inner: Option<&Node>| {
            if let Some(inner) = inner.and_then(|inner| inner.node.as_ref()) {
                walk(inner, visit);
            }
        };
        match node {
            NodeRef::AArrayExpr(array) => array.elements.iter().for_each(|element| enter(Some(element))),
            NodeRef::AIndirection(part) => {
                enter(part.arg.as_deref());
                part.indirection.iter().for_each(|index| enter(Some(index)));
            }
            NodeRef::AIndices(indices) => {
                enter(indices.lidx.as_deref());
                enter(indices.uidx.as_deref());
            }
            NodeRef::CollateClause(collate) => enter(collate.arg.as_deref()),
            _ => {}
        }
    }
}

fn last_name(column: &ColumnRef) -> Option<&str> {
    match column.fields.last()?.node.as_ref()? {
        NodeEnum::String(name) => Some(&name.sval),
        _ => None,
    }
}

/// The end of the dotted name that begins at `start`.
fn end_of_name(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = start;
    loop {
        if *bytes.get(at)? == b'"' {
            at = end_of_quotes(bytes, at, b'"')?;
        } else {
            let part = bytes[at..].iter();
            at += part.take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'$' | 128..)).count();
        }
        if bytes.get(at) != Some(&b'.') {
            return Some(at);
        }
        at += 1;
    }
}

/// The end of the plain literal that begins at `start`.
fn end_of_literal(text: &str, start: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    (bytes.get(start) == Some(&b'\'')).then(|| end_of_quotes(bytes, start, b'\''))?
}

/// The offset after the quote that closes the one at `start`. Two quotes stand for one inside.
fn end_of_quotes(bytes: &[u8], start: usize, quote: u8) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += bytes.get(at..)?.iter().position(|b| *b == quote)? + 1;
        if bytes.get(at) != Some(&quote) {
            return Some(at);
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_lose_their_table_and_take_new_names() {
        let text =
            "t.a > 0 AND (s.t.\"B c\" = ANY (ARRAY[t.b, a]) OR b COLLATE \"C\" LIKE 't.a''t.b%') AND tb";
        let bare = "a > 0 AND (\"B c\" = ANY (ARRAY[b, a]) OR b COLLATE \"C\" LIKE 't.a''t.b%') AND tb";
        assert_eq!(bare_columns(text, None).unwrap(), bare);
        let renamed = "a > 0 AND (\"B c\" = ANY (ARRAY[\"order\", a]) OR \"order\" COLLATE \"C\" LIKE 't.a''t.b%') AND tb";
        assert_eq!(bare_columns(text, Some(("b", "order"))).unwrap(), renamed);
        assert_eq!(bare_columns("v[a] > length(a)", Some(("a", "z"))).unwrap(), "v[z] > length(z)");
        assert_eq!(bare_columns("'é' <> tä.ä", Some(("ä", "B"))).unwrap(), "'é' <> \"B\"");
    }

    #[test]
    fn relations_go_by_number_and_come_back_by_name() {
        let found = |name: &str| (name == "it's" || name == "q").then_some(7);
        let stored = |text: &str| numbered_relations(text, &found).unwrap();
        assert_eq!(stored("nextval('q')"), "nextval('7'::regclass)");
        assert_eq!(stored("nextval('it''s'::regclass) + 1"), "nextval('7'::regclass) + 1");
        assert_eq!(stored("setval('q', nextval('q'))"), "setval('7'::regclass, nextval('7'::regclass))");
        assert_eq!(stored("a <> 'q'::regclass OR b"), "a <> '7'::regclass OR b");
        assert_eq!(
            stored("nextval('q'::pg_catalog.regclass)"),
            "nextval('7'::regclass::pg_catalog.regclass)"
        );
        for text in ["nextval('other')", "upper('q')", "nextval('q'::text::regclass)", "'nextval(''q'')'"] {
            assert_eq!(stored(text), text);
        }
    }
}
