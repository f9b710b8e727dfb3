//! Functions over 70 lines of code and files over 700 lines. A finding weighs its lines.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use crate::Finding;
use crate::workspace::{Source, Workspace};

/// The most lines of a function, from `fn` to its closing brace, without comments and empty lines.
const FUNCTION: usize = 70;
/// The most lines of a file.
const FILE: usize = 700;

/// Finds functions that are too long.
pub(crate) fn functions(workspace: &Workspace) -> Vec<Finding> {
    let mut found = Vec::new();
    for source in &workspace.sources {
        let mut functions = Functions { source, found: &mut found };
        functions.visit_file(&source.syntax);
    }
    found
}

/// Finds files that are too long.
pub(crate) fn files(workspace: &Workspace) -> Vec<Finding> {
    let texts = workspace.sources.iter().map(|source| (&source.path, &source.text));
    let texts = texts.chain(workspace.scripts.iter().map(|script| (&script.path, &script.text)));
    let sized = texts.map(|(path, text)| (path, text.lines().count())).filter(|(_, lines)| *lines > FILE);
    sized
        .map(|(path, lines)| Finding {
            key: path.clone(),
            weight: lines,
            message: format!("{path}: {lines} lines, {FILE} are the limit"),
        })
        .collect()
}

struct Functions<'a> {
    source: &'a Source,
    found: &'a mut Vec<Finding>,
}

impl Functions<'_> {
    fn measure(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.span().start().line;
        let last = block.span().end().line;
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines = self.source.text.lines().take(last).skip(first - 1).filter(is_code).count();
        if lines > FUNCTION {
            let (name, path) = (&signature.ident, &self.source.path);
            let message = format!("{path}:{first}: {name} has {lines} lines, {FUNCTION} are the limit");
            self.found.push(Finding { key: format!("{path} {name}"), weight: lines, message });
        }
    }
}

impl<'a> Visit<'a> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.measure(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'a syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.measure(&function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
