//! The texts that a program shows: string literals of Rust outside tests.
//!
//! `syn` leaves macros unparsed, so the rule walks the tokens. A literal counts if it holds three
//! words. Documentation is no message: its comments are read elsewhere.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};

use crate::comments::Paragraph;
use crate::references::{attributes, is_for_tests};
use crate::workspace::Source;

/// The fewest words of a message.
const WORDS: usize = 3;

/// The messages of a source, with the lines they begin in.
pub(crate) fn of(source: &Source) -> Vec<Paragraph> {
    let mut messages = Messages::default();
    if !source.is_for_tests() {
        messages.visit_file(&source.syntax);
    }
    messages.0
}

#[derive(Default)]
struct Messages(Vec<Paragraph>);

impl<'a> Visit<'a> for Messages {
    fn visit_item(&mut self, item: &'a syn::Item) {
        match item {
            _ if is_for_tests(attributes(item)) => {}
            syn::Item::Mod(_) | syn::Item::Impl(_) | syn::Item::Trait(_) => visit::visit_item(self, item),
            item => self.collect(item.to_token_stream()),
        }
    }

    fn visit_impl_item(&mut self, item: &'a syn::ImplItem) {
        match item {
            syn::ImplItem::Fn(function) if is_for_tests(&function.attrs) => {}
            item => self.collect(item.to_token_stream()),
        }
    }

    fn visit_trait_item(&mut self, item: &'a syn::TraitItem) {
        self.collect(item.to_token_stream());
    }
}

impl Messages {
    fn collect(&mut self, tokens: TokenStream) {
        let mut is_attribute = false;
        for token in tokens {
            match &token {
                TokenTree::Group(group) => {
                    let is_documentation = is_attribute
                        && group.delimiter() == Delimiter::Bracket
                        && group.stream().to_string().starts_with("doc");
                    if !is_documentation {
                        self.collect(group.stream());
                    }
                }
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse2::<syn::LitStr>(token.to_token_stream())
                        && text.value().split_whitespace().count() >= WORDS
                    {
                        let number = literal.span().start().line;
                        self.0.push(Paragraph { number, text: text.value() });
                    }
                }
                _ => {}
            }
            is_attribute = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '#');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::sample;

    #[test]
    fn messages_are_found_in_macros_and_not_in_tests_or_documentation() {
        let text = "/// Some words of documentation.
            fn f() { warn!(\"the log is {}\", full(\"two words\")); }
            impl A { fn g() -> &'static str { \"the disk is full\" } #[cfg(test)] fn h() { \"a b c\"; } }
            #[cfg(test)] mod tests { fn f() { \"one two three\"; } }";
        let workspace = sample(&[("lib.rs", text)]);
        let found: Vec<_> = of(&workspace.sources[0]).into_iter().map(|message| message.text).collect();
        assert_eq!(found, ["the log is {}", "the disk is full"]);
    }
}
