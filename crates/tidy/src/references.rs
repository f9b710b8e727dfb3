//! The paths and declarations of one module, as its text names them.
//!
//! Code for tests is left out: an item, field or statement under a `cfg` that names `test`.

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// A path in a module's text.
#[derive(Clone)]
pub(crate) struct Reference {
    /// The path's segments; the first may be `crate`, `self` or `super`.
    pub path: Vec<String>,
    /// The line it stands in, from 1.
    pub line: usize,
}

/// A name that a `use` brings into a module.
pub(crate) struct Binding {
    /// The name in this module.
    pub name: String,
    /// The path it stands for.
    pub path: Vec<String>,
}

/// A module's own text, without the modules inside it.
#[derive(Default)]
pub(crate) struct Text {
    pub references: Vec<Reference>,
    pub bindings: Vec<Binding>,
    /// The paths of `use path::*`.
    pub globs: Vec<Vec<String>>,
    /// The names of the items declared at the module's top.
    pub items: Vec<String>,
}

impl Text {
    /// Reads the items of a module.
    pub fn of(items: &[syn::Item]) -> Self {
        let mut text = Self::default();
        for item in items {
            if let (Some(name), false) = (item_name(item), is_for_tests(attributes(item))) {
                text.items.push(name);
            }
            text.visit_item(item);
        }
        text
    }

    fn refer(&mut self, path: Vec<String>, line: usize) {
        self.references.push(Reference { path, line });
    }

    /// Flattens a tree of uses.
    fn bring(&mut self, tree: &syn::UseTree, before: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.bring(&path.tree, before);
                before.pop();
            }
            syn::UseTree::Name(name) => self.bind(&name.ident, &name.ident, before),
            syn::UseTree::Rename(renamed) => self.bind(&renamed.ident, &renamed.rename, before),
            syn::UseTree::Glob(glob) => {
                self.refer(before.clone(), glob.star_token.spans[0].start().line);
                self.globs.push(before.clone());
            }
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.bring(tree, before)),
        }
    }

    fn bind(&mut self, name: &syn::Ident, renamed: &syn::Ident, before: &[String]) {
        let mut path = before.to_vec();
        let mut bound = renamed.to_string();
        if name != "self" {
            path.push(name.to_string());
        } else if renamed == "self" {
            bound = path.last().cloned().unwrap_or_default();
        }
        self.refer(path.clone(), name.span().start().line);
        self.bindings.push(Binding { name: bound, path });
    }

    /// Finds paths in the tokens of a macro, which `syn` leaves unparsed.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut line = 0;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        self.finish(&mut path, line);
                        line = ident.span().start().line;
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Group(group) => {
                    self.finish(&mut path, line);
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.finish(&mut path, line);
                    colons = 0;
                }
            }
        }
        self.finish(&mut path, line);
    }

    fn finish(&mut self, path: &mut Vec<String>, line: usize) {
        if path.len() > 1 {
            self.refer(path.clone(), line);
        }
        path.clear();
    }
}

impl<'a> Visit<'a> for Text {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if !is_for_tests(attributes(item)) && !matches!(item, syn::Item::Mod(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        if !is_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.bring(&item.tree, &mut Vec::new());
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none() {
            let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            let line = path.segments[0].ident.span().start().line;
            self.refer(segments, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        visit::visit_macro(self, called);
        self.tokens(called.tokens.clone());
    }
}

/// Whether a `cfg` among the attributes asks for a test build.
pub(crate) fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => names_test(list.tokens.clone()),
        _ => false,
    })
}

fn names_test(tokens: TokenStream) -> bool {
    let mut negated = false;
    for token in tokens {
        match token {
            TokenTree::Ident(ident) if ident == "test" => return true,
            TokenTree::Ident(ident) => negated = ident == "not",
            TokenTree::Group(group) if !negated && names_test(group.stream()) => return true,
            _ => negated = false,
        }
    }
    false
}

/// The attributes of an item.
pub(crate) fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    use syn::Item::*;
    match item {
        Const(item) => &item.attrs,
        Enum(item) => &item.attrs,
        ExternCrate(item) => &item.attrs,
        Fn(item) => &item.attrs,
        ForeignMod(item) => &item.attrs,
        Impl(item) => &item.attrs,
        Macro(item) => &item.attrs,
        Mod(item) => &item.attrs,
        Static(item) => &item.attrs,
        Struct(item) => &item.attrs,
        Trait(item) => &item.attrs,
        TraitAlias(item) => &item.attrs,
        Type(item) => &item.attrs,
        Union(item) => &item.attrs,
        Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name an item declares; modules and imports are kept elsewhere.
pub(crate) fn item_name(item: &syn::Item) -> Option<String> {
    use syn::Item::*;
    let name = match item {
        Const(item) => &item.ident,
        Enum(item) => &item.ident,
        Fn(item) => &item.sig.ident,
        Macro(item) => item.ident.as_ref()?,
        Static(item) => &item.ident,
        Struct(item) => &item.ident,
        Trait(item) => &item.ident,
        TraitAlias(item) => &item.ident,
        Type(item) => &item.ident,
        Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
