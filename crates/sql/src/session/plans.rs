//! The plans a core knows: compiled statements by text, shared by the core's sessions.
//!
//! Two ways in: a text whose literals are lifted out (simple protocol), and a text as it is with its declared parameter
//! types (extended protocol). Entries are found by hash and then compared whole. A plan is good while its database's
//! generation is; a stale one is replaced when it is met.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use sync::atomic::{AtomicU64, Ordering};

use crate::normalize::{Normalized, Template};
use crate::planner::Compiled;

/// What else than the text a plan depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// Tells folders of one process apart.
    pub instance: u64,
    /// The database.
    pub database: u32,
    /// The search path.
    pub path: u64,
}

/// A compiled statement with what it was compiled from.
pub(super) struct Planned {
    /// Tells it from any other plan of the process.
    pub number: u64,
    /// The text.
    pub text: Arc<str>,
    /// Declared parameter types.
    pub types: Arc<[u32]>,
    /// The plan; None for an empty text.
    pub compiled: Option<Compiled>,
}

impl Planned {
    /// A plan, under a number of its own.
    pub fn new(text: &str, types: &[u32], compiled: Option<Compiled>) -> Planned {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        // Relaxed: numbers differ, that is all. Taken where a plan is made, which costs far more.
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Planned { number, text: text.into(), types: types.into(), compiled }
    }

    /// The generation the plan was made against.
    pub fn generation(&self) -> Option<u64> {
        self.compiled.as_ref().map(|compiled| compiled.statement.generation)
    }
}

#[derive(Default)]
struct Cache {
    by_template: HashMap<(Scope, u64), (Template, Arc<Planned>)>,
    by_text: HashMap<(Scope, u64), Arc<Planned>>,
    normalized: Option<Normalized>,
}

/// Plans of each kind a core keeps; beyond that it begins anew, which costs less than remembering who was used when.
const KEPT: usize = 4096;

thread_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache::default());
}

/// A reusable reader of texts. It is given back with [`give_normalized`].
pub(super) fn take_normalized() -> Normalized {
    CACHE.with_borrow_mut(|cache| cache.normalized.take()).unwrap_or_default()
}

/// Keeps the reader for the next text.
pub(super) fn give_normalized(normalized: Normalized) {
    CACHE.with_borrow_mut(|cache| cache.normalized = Some(normalized));
}

/// The plan for a text like one seen before, apart from its literals.
pub(super) fn by_template(scope: Scope, text: &str, read: &Normalized) -> Option<Arc<Planned>> {
    CACHE.with_borrow(|cache| {
        let (template, planned) = cache.by_template.get(&(scope, read.hash))?;
        template.serves(text, &read.literals).then(|| Arc::clone(planned))
    })
}

/// Keeps a plan for texts like this one.
pub(super) fn keep_template(scope: Scope, text: &str, read: &Normalized, planned: &Arc<Planned>) {
    let Some(compiled) = &planned.compiled else { return };
    let template = Template::new(text, &read.literals, compiled.uses.clone());
    CACHE.with_borrow_mut(|cache| {
        if cache.by_template.len() >= KEPT {
            cache.by_template.clear();
        }
        cache.by_template.insert((scope, read.hash), (template, Arc::clone(planned)));
    });
}

fn text_hash(text: &str, types: &[u32]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (text, types).hash(&mut hasher);
    hasher.finish()
}

/// The plan for exactly this text and these types.
pub(super) fn by_text(scope: Scope, text: &str, types: &[u32]) -> Option<Arc<Planned>> {
    CACHE.with_borrow(|cache| {
        let planned = cache.by_text.get(&(scope, text_hash(text, types)))?;
        (*planned.text == *text && *planned.types == *types).then(|| Arc::clone(planned))
    })
}

/// Keeps a plan for its text and types.
pub(super) fn keep_text(scope: Scope, planned: &Arc<Planned>) {
    CACHE.with_borrow_mut(|cache| {
        if cache.by_text.len() >= KEPT {
            cache.by_text.clear();
        }
        cache.by_text.insert((scope, text_hash(&planned.text, &planned.types)), Arc::clone(planned));
    });
}
