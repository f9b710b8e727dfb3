//! The modules of a crate and what each name in them stands for.
//!
//! The tree starts at a crate root and follows `mod` declarations. A path is resolved as the
//! compiler does it: by the module's items, its child modules, its imports, then its glob imports.
//! Names that the resolution does not find belong to other crates or to a function's own scope.

use std::collections::BTreeMap;

use crate::references::{Reference, Text, is_for_tests};
use crate::workspace::Workspace;

/// The number of a module in its crate; the root is 0.
pub(crate) type Id = usize;

/// A module of a crate.
pub(crate) struct Module {
    /// The names from the root to this module; empty for the root.
    pub path: Vec<String>,
    /// The module that declares it; the root's is itself.
    pub parent: Id,
    /// The modules it declares.
    pub children: BTreeMap<String, Id>,
    /// The file its text stands in.
    pub file: String,
    text: Text,
}

/// A crate's modules, without those for tests.
pub(crate) struct Modules {
    modules: Vec<Module>,
}

/// A path from one module to another.
pub(crate) struct Use {
    pub from: Id,
    pub to: Id,
    pub line: usize,
}

/// How deep imports may lead through other imports; a circle of globs ends here.
const DEPTH: usize = 16;

impl Modules {
    /// Reads the modules from a crate root such as `crates/sync/src/lib.rs`.
    ///
    /// # Panics
    /// Panics when a `mod` declaration has no file.
    pub fn read(workspace: &Workspace, root: &str) -> Self {
        let mut read = Self { modules: Vec::new() };
        let source = workspace.source(root).expect("a crate has its root");
        let folder = root.rsplit_once('/').expect("a root lies in a folder").0;
        read.add(workspace, 0, Vec::new(), root, folder, &source.syntax.items);
        read
    }

    pub fn iter(&self) -> impl Iterator<Item = (Id, &Module)> {
        self.modules.iter().enumerate()
    }

    pub fn get(&self, id: Id) -> &Module {
        &self.modules[id]
    }

    fn add(
        &mut self,
        workspace: &Workspace,
        parent: Id,
        path: Vec<String>,
        file: &str,
        folder: &str,
        items: &[syn::Item],
    ) -> Id {
        let id = self.modules.len();
        let text = Text::of(items);
        self.modules.push(Module {
            path: path.clone(),
            parent,
            children: BTreeMap::new(),
            file: file.to_owned(),
            text,
        });
        for item in items {
            let syn::Item::Mod(declared) = item else { continue };
            if is_for_tests(&declared.attrs) {
                continue;
            }
            let name = declared.ident.to_string();
            let mut inner = path.clone();
            inner.push(name.clone());
            let child = if let Some((_, items)) = &declared.content {
                self.add(workspace, id, inner, file, &format!("{folder}/{name}"), items)
            } else {
                let (file, folder) = place(workspace, declared, file, folder, &name);
                let source = workspace.source(&file).unwrap_or_else(|| panic!("{file} is not there"));
                self.add(workspace, id, inner, &file, &folder, &source.syntax.items)
            };
            self.modules[id].children.insert(name, child);
        }
        id
    }

    /// Every path in the crate that leads to another of its modules.
    pub fn uses(&self) -> Vec<Use> {
        let mut found = Vec::new();
        for (from, module) in self.iter() {
            for Reference { path, line } in &module.text.references {
                for to in self.targets(from, path) {
                    if to != from {
                        found.push(Use { from, to, line: *line });
                    }
                }
            }
        }
        found
    }

    /// The modules a path leads to: the last one it spells out, and the one that defines its end.
    fn targets(&self, from: Id, path: &[String]) -> Vec<Id> {
        let mut found = Vec::new();
        let spelled = self.walk(from, path, 0, true);
        found.extend(spelled);
        let defined = self.walk(from, path, 0, false);
        if defined != spelled {
            found.extend(defined);
        }
        found
    }

    /// The module a path ends in. `shallow` stops before an import of the module reached so far.
    fn walk(&self, from: Id, path: &[String], depth: usize, shallow: bool) -> Option<Id> {
        let mut at = from;
        let mut rest = path;
        let mut anchored = false;
        while let [first, after @ ..] = rest {
            match first.as_str() {
                "crate" => at = 0,
                "self" => {}
                "super" => at = self.modules[at].parent,
                _ => break,
            }
            anchored = true;
            rest = after;
        }
        while let [name, after @ ..] = rest {
            if shallow && anchored && !self.modules[at].children.contains_key(name) {
                return Some(at);
            }
            match self.step(at, name, depth) {
                Some(Step::Into(module)) => at = module,
                Some(Step::Item(module)) => return Some(module),
                None => return anchored.then_some(at),
            }
            anchored = true;
            rest = after;
        }
        Some(at)
    }

    fn step(&self, at: Id, name: &str, depth: usize) -> Option<Step> {
        let module = &self.modules[at];
        if let Some(&child) = module.children.get(name) {
            return Some(Step::Into(child));
        }
        if module.text.items.iter().any(|item| item == name) {
            return Some(Step::Item(at));
        }
        if depth == DEPTH {
            return None;
        }
        // `use log::info as log` must not be looked up through itself.
        for binding in module.text.bindings.iter().filter(|binding| binding.name == name) {
            if binding.path.first().is_some_and(|first| first == name) && !module.children.contains_key(name)
            {
                continue;
            }
            if let Some(found) = self.end(at, &binding.path, depth + 1) {
                return Some(found);
            }
        }
        for glob in &module.text.globs {
            let Some(source) = self.walk(at, glob, depth + 1, false) else { continue };
            if source != at
                && let Some(found) = self.step(source, name, depth + 1)
            {
                return Some(found);
            }
        }
        None
    }

    /// Where an import's path leads.
    fn end(&self, at: Id, path: &[String], depth: usize) -> Option<Step> {
        let (last, before) = path.split_last()?;
        if before.is_empty() || matches!(last.as_str(), "crate" | "self" | "super") {
            return match last.as_str() {
                "crate" | "self" | "super" => self.walk(at, path, depth, false).map(Step::Into),
                name => self.step(at, name, depth),
            };
        }
        let module = self.walk(at, before, depth, false)?;
        Some(self.step(module, last, depth).unwrap_or(Step::Item(module)))
    }
}

/// Where one segment of a path leads.
enum Step {
    Into(Id),
    /// To an item of this module.
    Item(Id),
}

/// The file of a declared module, and the folder of the modules inside it.
fn place(
    workspace: &Workspace,
    declared: &syn::ItemMod,
    file: &str,
    folder: &str,
    name: &str,
) -> (String, String) {
    for attribute in &declared.attrs {
        if let syn::Meta::NameValue(pair) = &attribute.meta
            && pair.path.is_ident("path")
            && let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(path), .. }) = &pair.value
        {
            let beside = file.rsplit_once('/').expect("a file lies in a folder").0;
            let file = format!("{beside}/{}", path.value());
            let folder = file.rsplit_once('/').expect("a file lies in a folder").0.to_owned();
            return (file, folder);
        }
    }
    let inner = format!("{folder}/{name}");
    let flat = format!("{inner}.rs");
    if workspace.source(&flat).is_some() { (flat, inner) } else { (format!("{inner}/mod.rs"), inner) }
}
