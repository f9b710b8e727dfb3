//! Names of tests: each is a sentence with a subject, such as
//! `a_reader_never_sees_a_half_written_row`.
//!
//! The rule counts words. It also reads the tests inside macros such as `proptest!`, which `syn`
//! leaves unparsed.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use quote::ToTokens;

use crate::workspace::Workspace;
use crate::{Finding, at};

/// The fewest words of a test's name.
const WORDS: usize = 4;

/// Finds tests whose name has too few words for a sentence.
pub(crate) fn find(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in &workspace.sources {
        let mut tests = Vec::new();
        collect(source.syntax.to_token_stream(), &mut tests);
        for name in tests {
            let text = name.to_string();
            if text.split('_').filter(|word| !word.is_empty()).count() < WORDS {
                let message = format!("`{text}`: a test's name is a sentence of at least {WORDS} words");
                found.push(at(&source.path, name.span().start().line, &message));
            }
        }
    }
    found
}

/// The names of the functions with the attribute `test`, at any depth.
fn collect(tokens: TokenStream, found: &mut Vec<Ident>) {
    let mut is_test = false;
    let mut is_function = false;
    let mut last = None;
    for token in tokens {
        match &token {
            TokenTree::Group(group) => {
                let is_attribute = group.delimiter() == Delimiter::Bracket && last == Some('#');
                match is_attribute {
                    true => is_test |= group.stream().to_string() == "test",
                    false => collect(group.stream(), found),
                }
            }
            TokenTree::Ident(ident) if is_function => {
                if is_test {
                    found.push(ident.clone());
                }
                (is_test, is_function) = (false, false);
            }
            TokenTree::Ident(ident) => is_function = ident == "fn",
            // A macro's parameter, such as `$name`, is no name.
            TokenTree::Punct(_) if is_function => (is_test, is_function) = (false, false),
            _ => {}
        }
        last = match token {
            TokenTree::Punct(punct) => Some(punct.as_char()),
            _ => None,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::sample;

    #[test]
    fn a_short_name_of_a_test_is_found_in_a_macro_too() {
        let found = find(&sample(&[(
            "lib.rs",
            "fn short() {} #[test] fn rows_read_back() {} macro_rules! m { () => { #[test] fn $name() {} } } proptest! { #[test] #[ignore] fn too_short(a in 0..1) {} }
             mod tests { #[test] fn a_row_reads_back() {} }",
        )]));
        let messages: Vec<_> = found.iter().map(|finding| finding.message.split('`').nth(1)).collect();
        assert_eq!(messages, [Some("rows_read_back"), Some("too_short")]);
    }
}
