//! Commands and files that documents name in code exist: targets of `make`, scripts, subcommands.

use std::collections::BTreeSet;

use crate::markdown;
use crate::workspace::Workspace;
use crate::{Finding, at};

/// The enum of the command's verbs.
const VERBS: (&str, &str) = ("crates/allcore/src/main.rs", "Verb");

/// Finds commands and files that do not exist.
pub(crate) fn find(workspace: &Workspace) -> Vec<Finding> {
    let known = Known::read(workspace);
    let mut found = Vec::new();
    for document in &workspace.documents {
        for (line, code) in markdown::parts(&document.text).code {
            for fault in known.faults(&code) {
                found.push(at(&document.path, line, &fault));
            }
        }
    }
    found
}

/// The commands and files that documents may name.
struct Known {
    targets: BTreeSet<String>,
    verbs: BTreeSet<String>,
    /// Every source and script, without the folders `crates` and `src`.
    files: BTreeSet<String>,
}

impl Known {
    fn read(workspace: &Workspace) -> Self {
        let makefile = workspace.text("Makefile");
        let target = |line: &str| {
            let (name, _) = line.split_once(':')?;
            name.chars().all(|sign| sign.is_ascii_lowercase() || sign == '-').then(|| name.to_owned())
        };
        let targets = makefile.lines().filter_map(target).filter(|name| !name.is_empty()).collect();
        let scripts = workspace.scripts.iter().map(|script| &script.path);
        let files = workspace
            .sources
            .iter()
            .map(|source| &source.path)
            .chain(scripts)
            .map(|path| short(path))
            .collect();
        Self { targets, verbs: verbs(workspace), files }
    }

    /// The faults in a line of code of a document.
    fn faults(&self, code: &str) -> Vec<String> {
        // A span with an escape quotes bytes, not a command.
        if code.contains('\\') {
            return Vec::new();
        }
        let words: Vec<&str> = code.split_whitespace().collect();
        let mut faults = Vec::new();
        for pair in words.windows(2) {
            let word = pair[1].trim_end_matches([',', ';', ')', '`']);
            let is_name =
                !word.is_empty() && word.chars().all(|sign| sign.is_ascii_lowercase() || sign == '-');
            if !is_name || word.starts_with('-') {
                continue;
            }
            let program = pair[0].rsplit('/').next().unwrap_or_default();
            if program == "make" && words[0] == pair[0] && !self.targets.contains(word) {
                faults.push(format!("the Makefile has no target {word}"));
            }
            if program == "allcore" && is_call(&words, pair[0]) && !self.verbs.contains(word) {
                faults.push(format!("allcore has no subcommand {word}"));
            }
        }
        for word in words {
            if !self.exists(word) {
                faults.push(format!("there is no file {word}"));
            }
        }
        faults
    }

    /// Whether a word names no source or script, or one that is there.
    fn exists(&self, word: &str) -> bool {
        let extension = word.rsplit_once('.').map_or("", |(_, extension)| extension);
        let is_path = word.contains('/')
            && word.chars().all(|sign| sign.is_ascii_alphanumeric() || "/._-".contains(sign));
        if !is_path || !["rs", "py", "sh"].contains(&extension) || word.starts_with(['/', '.']) {
            return true;
        }
        let word = short(word);
        self.files.iter().any(|file| {
            file.strip_suffix(&word).is_some_and(|before| before.is_empty() || before.ends_with('/'))
        })
    }
}

/// Whether a program is called: it stands first, or behind settings of the environment.
fn is_call(words: &[&str], program: &str) -> bool {
    words
        .iter()
        .find(|word| !word.contains('=') && **word != "$" && **word != "sudo")
        .is_some_and(|first| *first == program)
}

/// A path without the folders that documents leave out.
fn short(path: &str) -> String {
    path.split('/').filter(|part| !matches!(*part, "crates" | "src")).collect::<Vec<_>>().join("/")
}

/// The subcommands, from the variants of their enum.
fn verbs(workspace: &Workspace) -> BTreeSet<String> {
    let source = workspace.source(VERBS.0).expect("the command's source");
    let items = source.syntax.items.iter();
    let found = items.filter_map(|item| match item {
        syn::Item::Enum(found) if found.ident == VERBS.1 => Some(found),
        _ => None,
    });
    found.flat_map(|verbs| &verbs.variants).map(|variant| variant.ident.to_string().to_lowercase()).collect()
}
