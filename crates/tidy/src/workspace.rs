//! The workspace as the rules see it: members, parsed sources, documents.
//!
//! Paths are relative to the workspace's root and use `/`. Files come in the order of their paths.

use std::fs;
use std::path::{Path, PathBuf};

/// Every file the rules read.
pub struct Workspace {
    /// The folder that holds the workspace's `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// The crates under `crates/`, by name.
    pub(crate) members: Vec<Member>,
    /// The Rust sources of all members, tests included.
    pub(crate) sources: Vec<Source>,
    /// The fuzzer's targets, which belong to a workspace of their own.
    pub(crate) targets: Vec<Source>,
    /// The scripts under `scripts/` in Python and shell, the Makefile, TOML files, `.ci/run`.
    pub(crate) scripts: Vec<Script>,
    /// The Markdown documents.
    pub(crate) documents: Vec<Script>,
}

/// A crate of the workspace.
pub(crate) struct Member {
    /// The package's name.
    pub(crate) name: String,
    /// Its folder, relative to the root.
    pub(crate) folder: String,
    /// Its `Cargo.toml`.
    pub(crate) manifest: toml::Table,
}

/// A parsed Rust file.
pub(crate) struct Source {
    /// The path, relative to the root.
    pub(crate) path: String,
    /// The whole text.
    pub(crate) text: String,
    /// The text, parsed.
    pub(crate) syntax: syn::File,
}

/// A file the rules read as text.
pub(crate) struct Script {
    /// The path, relative to the root.
    pub(crate) path: String,
    /// The whole text.
    pub(crate) text: String,
}

impl Source {
    /// Whether the whole file is code for tests.
    pub(crate) fn is_for_tests(&self) -> bool {
        self.path.ends_with("tests.rs")
            || ["/tests/", "/benches/", "/examples/"].iter().any(|folder| self.path.contains(folder))
    }
}

impl Workspace {
    /// Reads the workspace this crate belongs to.
    ///
    /// # Panics
    /// Panics with the file's name when a file cannot be read or parsed.
    pub fn read() -> Self {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/tidy").to_path_buf();
        let mut members = Vec::new();
        let mut sources = Vec::new();
        for folder in entries(&root.join("crates")) {
            let manifest = folder.join("Cargo.toml");
            if !manifest.exists() {
                continue;
            }
            let manifest: toml::Table = text(&manifest).parse().expect("a manifest is TOML");
            let name = manifest["package"]["name"].as_str().expect("a package has a name").to_owned();
            members.push(Member { name, folder: relative(&root, &folder), manifest });
            let mut files = Vec::new();
            walk(&folder, "rs", &mut files);
            sources.extend(files.iter().map(|file| source(&root, file)));
        }
        sources.sort_by(|one: &Source, other| one.path.cmp(&other.path));
        let mut targets = Vec::new();
        walk(&root.join("fuzz"), "rs", &mut targets);
        let targets = targets.iter().map(|file| source(&root, file)).collect();
        let mut scripts: Vec<Script> =
            ["py", "sh"].iter().flat_map(|extension| read(&root, "scripts", extension)).collect();
        scripts.extend(["Makefile", ".ci/run"].map(|name| script(&root, &root.join(name))));
        scripts.extend(["crates", "fuzz"].iter().flat_map(|folder| read(&root, folder, "toml")));
        let top = entries(&root).into_iter();
        scripts.extend(top.filter(|path| has_extension(path, "toml")).map(|path| script(&root, &path)));
        let mut documents = read(&root, "docs", "md");
        let top = entries(&root).into_iter().filter(|path| has_extension(path, "md"));
        documents.extend(top.map(|path| script(&root, &path)));
        Self { root, members, sources, targets, scripts, documents }
    }

    /// Every Rust file: those of the members, and the fuzzer's targets.
    pub(crate) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().chain(&self.targets)
    }

    /// The crate a source belongs to, and whether it lies under that crate's `src`.
    pub(crate) fn owner(&self, source: &Source) -> (&str, bool) {
        let owner = |member: &&Member| {
            source.path.strip_prefix(&member.folder).is_some_and(|rest| rest.starts_with('/'))
        };
        let member = self.members.iter().find(owner).expect("a source belongs to a crate");
        (&member.name, source.path[member.folder.len()..].starts_with("/src/"))
    }

    /// The source at a path, if the workspace has it.
    pub(crate) fn source(&self, path: &str) -> Option<&Source> {
        let found = self.sources.binary_search_by(|source| source.path.as_str().cmp(path));
        found.ok().map(|at| &self.sources[at])
    }

    /// The text of a file that must exist, such as a document.
    pub(crate) fn text(&self, path: &str) -> String {
        text(&self.root.join(path))
    }
}

/// The files of a folder of the root, with an extension.
fn read(root: &Path, folder: &str, extension: &str) -> Vec<Script> {
    let mut files = Vec::new();
    walk(&root.join(folder), extension, &mut files);
    files.iter().map(|file| script(root, file)).collect()
}

fn script(root: &Path, file: &Path) -> Script {
    Script { path: relative(root, file), text: text(file) }
}

fn source(root: &Path, file: &Path) -> Source {
    let text = text(file);
    let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    Source { path: relative(root, file), text, syntax }
}

fn relative(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).expect("a file of the workspace").to_str().expect("a name in UTF-8").to_owned()
}

fn text(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// A folder's entries, sorted.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<_> = read.map(|entry| entry.expect("an entry of a folder").path()).collect();
    found.sort();
    found
}

/// Collects a folder's files with an extension, without build folders and hidden ones.
fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        let name = path.file_name().expect("an entry has a name").to_string_lossy();
        if path.is_dir() && name != "target" && !name.starts_with('.') {
            walk(&path, extension, found);
        } else if has_extension(&path, extension) {
            found.push(path);
        }
    }
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}

/// A workspace of one crate, `sample`, from files below its `src`.
#[cfg(test)]
pub(crate) fn sample(files: &[(&str, &str)]) -> Workspace {
    let parse = |(name, text): &(&str, &str)| Source {
        path: format!("crates/sample/src/{name}"),
        text: (*text).to_owned(),
        syntax: syn::parse_file(text).expect("a sample parses"),
    };
    let mut sources: Vec<_> = files.iter().map(parse).collect();
    sources.sort_by(|one: &Source, other| one.path.cmp(&other.path));
    let member = Member {
        name: "sample".to_owned(),
        folder: "crates/sample".to_owned(),
        manifest: toml::Table::new(),
    };
    Workspace {
        root: PathBuf::new(),
        members: vec![member],
        sources,
        targets: Vec::new(),
        scripts: Vec::new(),
        documents: Vec::new(),
    }
}
