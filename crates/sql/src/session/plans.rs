//! The plans a core knows: compiled statements by text, shared by the core's sessions.
//!
//! A plan is found by a text whose literals are lifted out (simple protocol), or by a text and its
//! declared parameter types (extended protocol). A statement whose best plan depends on its values
//! has further plans. Each is found by the first one and by what it wants of the values. A lookup
//! finds an entry by hash and then compares it whole.
//!
//! What must hold: a plan is valid only for catalogs that it fits
//! ([`query::plan::Statement::fits`]). A session that meets a stale plan replaces it.
//!
//! A core keeps at most [`KEPT`] plans of each kind, of [`MOST_BYTES`] together. At the bound it
//! drops all of them. It keeps a large plan only when its statement comes a second time. So a large
//! statement that runs once leaves nothing behind.

use std::cell::RefCell;
use std::sync::Arc;

use runtime::hash::SeededMap;
use runtime::{account, aside, work};
use sync::atomic::{AtomicU64, Ordering};
use sync::core_local;

use query::compile::Compiled;
use query::normalize::{Normalized, Template};
use query::plan::{Classes, Truths};
use values::memory;

/// The scope of a plan: what it depends on besides the text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Scope {
    /// Tells folders of one process apart.
    pub instance: u64,
    /// The database.
    pub database: u32,
    /// The search path.
    pub path: u64,
}

/// The runs of a statement for which a plan was made.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Runs {
    /// Those with these truths of its premises.
    Truths(Truths),
    /// Those with values of these classes.
    Classes(Classes),
    /// All.
    Any,
}

impl Runs {
    /// The most plans of a statement for some of its runs. All further runs share one.
    fn most(self) -> u64 {
        match self {
            Runs::Truths(_) => 32,
            Runs::Classes(_) | Runs::Any => 8,
        }
    }
}

/// A compiled statement with what it was compiled from.
pub(super) struct Planned {
    /// Tells it from any other plan of the process.
    pub number: u64,
    /// The text.
    pub text: Arc<str>,
    /// Declared parameter types.
    pub types: Arc<[u32]>,
    /// The search path under which it was made, as in its [`Scope`].
    pub path: u64,
    /// The plan; None for an empty text.
    pub compiled: Option<Compiled>,
    /// The truths of the premises that it was made for; None if they may be any.
    pub truths: Option<Truths>,
    /// Bytes of memory it takes: what making it left allocated.
    pub bytes: usize,
    /// The plans for some runs that were made of it. Any core counts.
    variants: AtomicU64,
}

impl Planned {
    /// A plan with a new number. `bytes` is the memory that making it left allocated.
    pub fn new(
        (text, types): (Arc<str>, &[u32]),
        path: u64,
        truths: Option<Truths>,
        compiled: Option<Compiled>,
        bytes: usize,
    ) -> Planned {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        // Relaxed: numbers differ, that is all. Taken where a plan is made, which costs far more.
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        // Twice its text: here and as a template.
        let bytes = bytes + size_of::<Planned>() + 2 * text.len();
        let variants = AtomicU64::new(0);
        Planned { number, text, types: types.into(), path, compiled, truths, bytes, variants }
    }

    /// Whether one more plan may be made for these runs. Counts it.
    pub fn takes_variant(&self, runs: Runs) -> bool {
        // Relaxed: a bound on work. No memory comes with it.
        self.variants.fetch_add(1, Ordering::Relaxed) < runs.most()
    }
}

impl Drop for Planned {
    fn drop(&mut self) {
        if self.bytes > LONG_TO_DROP {
            aside::discard(self.bytes, self.compiled.take());
        }
    }
}

/// A plan of more bytes is dropped beside the core: each node has memory of its own.
const LONG_TO_DROP: usize = 1 << 20;

/// Plans by text, of both kinds, and those of the same statements for some runs.
#[derive(Default)]
struct Plans {
    by_template: SeededMap<(Scope, u64), (Template, Arc<Planned>)>,
    by_text: SeededMap<(Scope, u64), Arc<Planned>>,
    /// By the statement's plan, and the runs.
    by_value: SeededMap<(u64, Runs), Arc<Planned>>,
}

impl Plans {
    /// Drops the plans, and yields between them: some thousand take tens of milliseconds.
    fn discard(self) {
        for (_, planned) in self.by_template.into_values() {
            let_go(planned);
        }
        self.by_text.into_values().for_each(let_go);
        self.by_value.into_values().for_each(let_go);
    }
}

fn let_go(planned: Arc<Planned>) {
    let bytes = planned.bytes;
    drop(planned);
    work::yield_after(bytes);
}

struct Cache {
    plans: Plans,
    normalized: Option<Normalized>,
    /// Bytes of the plans in both maps.
    bytes: usize,
    /// Hashes of the large statements that came last.
    large: [u64; 64],
    next_large: usize,
}

impl Cache {
    /// Whether to keep a plan. Makes room for it; the caller discards the plans that had to go.
    fn admits(&mut self, hash: u64, bytes: usize, discarded: &mut Plans) -> bool {
        let most = memory::for_core(MOST_BYTES);
        if bytes > most / LARGEST_SHARE || bytes > LARGE && !self.was_seen(hash) {
            return false;
        }
        if self.bytes + bytes > most
            || self.plans.by_template.len() >= KEPT
            || self.plans.by_text.len() >= KEPT
            || self.plans.by_value.len() >= KEPT
        {
            *discarded = std::mem::take(&mut self.plans);
            self.bytes = 0;
        }
        self.bytes += bytes;
        // From now on the core's account holds these bytes, not the session's.
        account::settle(account::held() - bytes as i64);
        true
    }

    /// Whether a large statement came before. Remembers it for the next time.
    fn was_seen(&mut self, hash: u64) -> bool {
        let seen = self.large.contains(&hash);
        if !seen {
            self.large[self.next_large] = hash;
            self.next_large = (self.next_large + 1) % self.large.len();
        }
        seen
    }

    fn replaced(&mut self, plan: Option<&Planned>) {
        self.bytes -= plan.map_or(0, |plan| plan.bytes);
    }
}

/// The most plans of each kind that a core keeps. At the bound it drops them all, which costs less
/// than an order of use.
const KEPT: usize = 4096;
/// Bytes of plans a core keeps at most.
const MOST_BYTES: usize = 64 << 20;
/// The share of them that one plan may take.
const LARGEST_SHARE: usize = 8;
/// A plan of more bytes is not kept the first time.
const LARGE: usize = 64 << 10;

core_local! {
    static CACHE: RefCell<Cache> = RefCell::new(Cache {
        plans: Plans { by_template: SeededMap::default(), by_text: SeededMap::default(), by_value: SeededMap::default() },
        normalized: None,
        bytes: 0,
        large: [0; 64],
        next_large: 0,
    });
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
        let (template, planned) = cache.plans.by_template.get(&(scope, read.hash))?;
        template.serves(text, &read.literals).then(|| Arc::clone(planned))
    })
}

/// Keeps a plan for texts like this one.
pub(super) fn keep_template(scope: Scope, text: &str, read: &Normalized, planned: &Arc<Planned>) {
    let Some(compiled) = planned.compiled.as_ref().filter(|_| !is_too_large(planned.bytes)) else { return };
    let template = Template::new(text, &read.literals, compiled.uses.clone());
    let mut discarded = Plans::default();
    CACHE.with_borrow_mut(|cache| {
        if cache.admits(read.hash, planned.bytes, &mut discarded) {
            let plan = (template, Arc::clone(planned));
            let before = cache.plans.by_template.insert((scope, read.hash), plan);
            cache.replaced(before.as_ref().map(|(_, plan)| &**plan));
        }
    });
    // Other fibers run meanwhile, so the cache must not be borrowed.
    discarded.discard();
}

/// Whether a plan of so many bytes is never kept, however much memory is free. Hashing its long
/// text would take too long.
fn is_too_large(bytes: usize) -> bool {
    bytes > MOST_BYTES / LARGEST_SHARE
}

fn text_hash(text: &str, types: &[u32]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (text, types).hash(&mut hasher);
    hasher.finish()
}

/// The plan for exactly this text and these types.
pub(super) fn by_text(scope: Scope, text: &str, types: &[u32]) -> Option<Arc<Planned>> {
    if is_too_large(text.len()) {
        return None;
    }
    CACHE.with_borrow(|cache| {
        let planned = cache.plans.by_text.get(&(scope, text_hash(text, types)))?;
        (*planned.text == *text && *planned.types == *types).then(|| Arc::clone(planned))
    })
}

/// Keeps a plan for its text and types.
pub(super) fn keep_text(scope: Scope, planned: &Arc<Planned>) {
    if is_too_large(planned.bytes) {
        return;
    }
    let mut discarded = Plans::default();
    CACHE.with_borrow_mut(|cache| {
        let hash = text_hash(&planned.text, &planned.types);
        if cache.admits(hash, planned.bytes, &mut discarded) {
            let before = cache.plans.by_text.insert((scope, hash), Arc::clone(planned));
            cache.replaced(before.as_deref());
        }
    });
    // Other fibers run meanwhile, so the cache must not be borrowed.
    discarded.discard();
}

/// The plan of a statement for some runs.
pub(super) fn by_value(number: u64, runs: Runs) -> Option<Arc<Planned>> {
    CACHE.with_borrow(|cache| cache.plans.by_value.get(&(number, runs)).cloned())
}

/// Keeps a plan of a statement for some runs.
pub(super) fn keep_value(number: u64, runs: Runs, planned: &Arc<Planned>) {
    if is_too_large(planned.bytes) {
        return;
    }
    let mut discarded = Plans::default();
    CACHE.with_borrow_mut(|cache| {
        // Made for one run of the statement, it is the second plan at least.
        if cache.admits(number, planned.bytes, &mut discarded) {
            let before = cache.plans.by_value.insert((number, runs), Arc::clone(planned));
            cache.replaced(before.as_deref());
        }
    });
    // Other fibers run meanwhile, so the cache must not be borrowed.
    discarded.discard();
}
