//! Riddles in prose, and names that the field has a better term for.
//!
//! A sentence names its subject: it does not begin with `Of`, `What` or `Whoever`. A question may.
//! A declared name is a term of the field, or one that [`docs/glossary.md`](../../../docs) defines.

use syn::visit::{self, Visit};

use crate::comments::{self, Paragraph};
use crate::markdown;
use crate::messages;
use crate::workspace::Workspace;
use crate::{Finding, at};

/// Words that no statement begins with.
const OPENINGS: &[&str] = &["Of", "What", "Who", "Whoever", "Whose"];
/// An opening that names a section of a contract.
const CONTRACT: &str = "What must hold";
/// Words and phrases that hide the subject, in lower case.
const PHRASES: &[&str] = &[
    "whoever",
    "what who",
    "is said to",
    "are said to",
    "is shown",
    "are shown",
    "is told",
    "are told",
    "told apart",
    "it is looked whether",
    "could have come out",
    "aloud",
    "upkeep",
    "settling",
    "awaited",
];
/// Parts of names and the field's term for each.
const NAMES: &[(&str, &str)] = &[
    ("upkeep", "maintenance"),
    ("settling", "maintenance"),
    ("awaited", "wait event"),
    ("lacking", "coordinated omission, missing"),
    ("board", "activity table"),
    ("seat", "activity slot"),
    ("patience", "retry loop, backoff"),
    ("patiently", "yielding"),
    ("stranger", "refused client"),
];
/// Whole names and the field's term for each.
const WHOLE_NAMES: &[(&str, &str)] = &[("given", "read-only settings"), ("doors", "interfaces")];

/// Finds riddles and names.
pub(crate) fn find(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in workspace.rust().filter(|source| !source.path.ends_with("tidy/src/words.rs")) {
        let lines = comments::prose(comments::of_rust(&source.text));
        riddles(&source.path, &comments::paragraphs(&lines), &mut found);
        riddles(&source.path, &messages::of(source), &mut found);
        Names { path: &source.path, found: &mut found }.visit_file(&source.syntax);
    }
    for script in &workspace.scripts {
        riddles(&script.path, &comments::paragraphs(&comments::of_script(&script.text)), &mut found);
    }
    for document in &workspace.documents {
        riddles(&document.path, &markdown::parts(&document.text).paragraphs, &mut found);
    }
    found
}

fn riddles(path: &str, paragraphs: &[Paragraph], found: &mut Vec<Finding>) {
    for paragraph in paragraphs {
        for sentence in sentences(&paragraph.text) {
            let opening = sentence.split(|sign: char| !sign.is_alphabetic()).next().unwrap_or_default();
            let is_question = sentence.trim_end().ends_with('?');
            if OPENINGS.contains(&opening) && !is_question && !sentence.starts_with(CONTRACT) {
                found.push(at(
                    path,
                    paragraph.number,
                    &format!("a sentence begins with `{opening}`: {sentence}"),
                ));
            }
            let lower = sentence.to_lowercase();
            for phrase in PHRASES.iter().filter(|phrase| holds(&lower, phrase)) {
                found.push(at(path, paragraph.number, &format!("`{phrase}`: {sentence}")));
            }
        }
    }
}

/// Splits a paragraph behind each full stop, question mark and exclamation mark.
pub(crate) fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let trimmed = rest.trim_start();
        let end = [". ", "? ", "! "].iter().filter_map(|mark| trimmed.find(mark)).min();
        let (sentence, after) = trimmed.split_at(end.map_or(trimmed.len(), |at| at + 1));
        rest = after;
        (!sentence.is_empty()).then_some(sentence)
    })
}

/// Whether a text holds a phrase between the bounds of words.
fn holds(text: &str, phrase: &str) -> bool {
    let is_letter = |sign: Option<char>| sign.is_some_and(char::is_alphanumeric);
    text.match_indices(phrase).any(|(at, _)| {
        !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + phrase.len()..].chars().next())
    })
}

/// Looks at declared names; uses of them need no second report.
struct Names<'a> {
    path: &'a str,
    found: &'a mut Vec<Finding>,
}

impl Names<'_> {
    fn look(&mut self, ident: &syn::Ident) {
        let name = ident.to_string();
        let parts = parts(&name);
        let by_part = NAMES.iter().find(|(banned, _)| parts.iter().any(|part| part == banned));
        let whole = || WHOLE_NAMES.iter().find(|(banned, _)| parts == [*banned]);
        if let Some((banned, term)) = by_part.or_else(whole) {
            let line = ident.span().start().line;
            self.found.push(at(self.path, line, &format!("`{name}`: say {term}, not {banned}")));
        }
    }
}

impl<'a> Visit<'a> for Names<'_> {
    fn visit_item(&mut self, item: &'a syn::Item) {
        match item {
            syn::Item::Mod(module) => self.look(&module.ident),
            syn::Item::Const(item) => self.look(&item.ident),
            syn::Item::Enum(item) => self.look(&item.ident),
            syn::Item::Fn(item) => self.look(&item.sig.ident),
            syn::Item::Static(item) => self.look(&item.ident),
            syn::Item::Struct(item) => self.look(&item.ident),
            syn::Item::Trait(item) => self.look(&item.ident),
            syn::Item::Type(item) => self.look(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.look(&function.sig.ident);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        self.look(&function.sig.ident);
        visit::visit_trait_item_fn(self, function);
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        if let Some(ident) = &field.ident {
            self.look(ident);
        }
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'a syn::Variant) {
        self.look(&variant.ident);
        visit::visit_variant(self, variant);
    }
}

/// The words of a name, in lower case: `RowBoard` and `ROW_BOARD` both give `row` and `board`.
fn parts(name: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut was_lower = false;
    let mut begins = true;
    for sign in name.chars() {
        if sign == '_' {
            begins = true;
            continue;
        }
        if begins || (sign.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        begins = false;
        was_lower = !sign.is_uppercase();
        parts.last_mut().expect("a part was begun").extend(sign.to_lowercase());
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        riddles("f", &[Paragraph { number: 1, text: text.to_owned() }], &mut found);
        found.into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn a_sentence_that_opens_with_a_riddle_is_found_anywhere() {
        assert_eq!(found("It holds. What came is kept. Of none there is none.").len(), 2);
        assert_eq!(found("It is said to wait.").len(), 1);
    }

    #[test]
    fn a_question_and_a_contract_may_open_so() {
        assert_eq!(
            found("What is a page? What must hold: all of it. Whether it holds."),
            Vec::<String>::new()
        );
    }

    #[test]
    fn names_fall_into_words() {
        assert_eq!(parts("RowBoard"), ["row", "board"]);
        assert_eq!(parts("ROW_BOARD"), ["row", "board"]);
        assert_eq!(parts("keyboard"), ["keyboard"]);
    }
}
