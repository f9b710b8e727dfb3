//! Items that are public but that nothing outside their crate names.
//!
//! The check compares names, not types. A public item passes if its name occurs in another crate,
//! in a macro, or in another public signature. Its own crate's tests, benches and examples count
//! too.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::visit::{self, Visit};

use crate::references::{attributes, is_for_tests};
use crate::workspace::{Member, Workspace};
use crate::{Finding, at};

type Names = BTreeSet<String>;

/// The names that decide about a crate's items.
#[derive(Default)]
struct Around {
    /// Named where a use of the crate's items counts.
    used: Names,
    /// Types that are not public; so nothing of them is.
    hidden: Names,
}

/// Finds public items that nothing uses.
pub(crate) fn find(workspace: &Workspace) -> Vec<Finding> {
    let mut around: BTreeMap<&str, Around> = BTreeMap::new();
    for member in &workspace.members {
        around.insert(&member.name, Around::default());
    }
    // The compiler finds unused items of a program.
    let is_program = |member: &&Member| workspace.source(&format!("{}/src/lib.rs", member.folder)).is_none();
    let programs: Vec<&str> =
        workspace.members.iter().filter(is_program).map(|member| member.name.as_str()).collect();
    let mut items = Vec::new();
    for source in &workspace.sources {
        let named = names(source.syntax.to_token_stream());
        let (own, in_library) = workspace.owner(source);
        let in_library = in_library && !programs.contains(&own);
        for (member, around) in &mut around {
            if *member != own || !in_library {
                around.used.extend(named.iter().cloned());
            }
        }
        if in_library && !source.is_for_tests() {
            let mut public = Public::default();
            public.visit_file(&source.syntax);
            let around = around.get_mut(own).expect("a member");
            around.used.append(&mut public.signatures);
            around.hidden.append(&mut public.hidden);
            items.extend(public.items.into_iter().map(|item| (own, source, item)));
        }
    }
    let unused = items.into_iter().filter(|(own, _, item)| {
        let Around { used, hidden } = &around[own];
        !used.contains(&item.name) && !item.owner.as_ref().is_some_and(|owner| hidden.contains(owner))
    });
    unused
        .map(|(own, source, item)| {
            let message = format!("`{}` is public, but nothing outside {own} names it", item.name);
            at(&source.path, item.line, &message)
        })
        .collect()
}

/// Every identifier among tokens.
fn names(tokens: TokenStream) -> Names {
    fn collect(tokens: TokenStream, found: &mut Names) {
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => drop(found.insert(ident.to_string())),
                TokenTree::Group(group) => collect(group.stream(), found),
                _ => {}
            }
        }
    }
    let mut found = Names::new();
    collect(tokens, &mut found);
    found
}

/// An item that says `pub`.
struct Item {
    name: String,
    line: usize,
    /// The type whose method or field it is.
    owner: Option<String>,
}

#[derive(Default)]
struct Public {
    items: Vec<Item>,
    /// The types without `pub`.
    hidden: Names,
    /// The names in public signatures.
    signatures: Names,
    /// The type whose methods or fields are visited.
    owner: Option<String>,
}

impl Public {
    fn add(&mut self, visibility: &syn::Visibility, ident: &syn::Ident, signature: impl ToTokens) {
        if matches!(visibility, syn::Visibility::Public(_)) {
            let (name, line) = (ident.to_string(), ident.span().start().line);
            self.items.push(Item { name, line, owner: self.owner.clone() });
            let mut named = names(signature.to_token_stream());
            named.remove(&ident.to_string());
            self.signatures.append(&mut named);
        }
    }

    fn add_type(&mut self, visibility: &syn::Visibility, ident: &syn::Ident, signature: impl ToTokens) {
        self.add(visibility, ident, signature);
        self.owner = Some(ident.to_string());
        if !matches!(visibility, syn::Visibility::Public(_)) {
            self.hidden.insert(ident.to_string());
        }
    }
}

impl<'a> Visit<'a> for Public {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if is_for_tests(attributes(item)) {
            return;
        }
        match item {
            syn::Item::Fn(item) => self.add(&item.vis, &item.sig.ident, &item.sig),
            syn::Item::Struct(item) => self.add_type(&item.vis, &item.ident, &item.generics),
            syn::Item::Enum(item) => self.add_type(&item.vis, &item.ident, &item.variants),
            syn::Item::Trait(item) => self.add(&item.vis, &item.ident, item),
            syn::Item::Type(item) => self.add(&item.vis, &item.ident, item),
            syn::Item::Const(item) => self.add(&item.vis, &item.ident, &item.ty),
            syn::Item::Static(item) => self.add(&item.vis, &item.ident, &item.ty),
            syn::Item::Macro(item) if item.ident.is_some() => {
                self.signatures.append(&mut names(item.mac.tokens.clone()));
            }
            // A trait's methods are as public as the trait, and its types may have to be.
            syn::Item::Impl(item) if item.trait_.is_some() => {
                let types = item.items.iter().filter(|item| matches!(item, syn::ImplItem::Type(_)));
                types.for_each(|item| self.signatures.append(&mut names(item.to_token_stream())));
                return;
            }
            syn::Item::Impl(item) => self.owner = type_name(&item.self_ty),
            _ => {}
        }
        visit::visit_item(self, item);
        self.owner = None;
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            self.add(&function.vis, &function.sig.ident, &function.sig);
        }
    }

    fn visit_impl_item_const(&mut self, constant: &'a syn::ImplItemConst) {
        self.add(&constant.vis, &constant.ident, &constant.ty);
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        if let Some(ident) = &field.ident {
            self.add(&field.vis, ident, &field.ty);
        }
    }

    fn visit_block(&mut self, _: &'a syn::Block) {}
}

/// The last name of a type's path.
fn type_name(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        _ => None,
    }
}
