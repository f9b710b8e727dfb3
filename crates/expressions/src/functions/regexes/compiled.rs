//! Compiled expressions, and the cache of them on each core.
//!
//! Compiling costs as much as thousands of matches, so a core keeps the expressions it used. It
//! keeps at most [`CACHED`], and at most [`MOST_BYTES`] including the memory of their searches. The
//! newest expression always stays. That memory belongs to the core, not to the sessions.
//!
//! A pattern that takes long to compile is compiled beside the core. The memory is reserved before,
//! since nothing can stop the library meanwhile.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use regex_automata::meta;
use regex_automata::nfa::thompson::{self, NFA, WhichCaptures, pikevm};
use regex_automata::util::syntax;
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::{Class, Hir, HirKind};
use runtime::account::{self, Reservation};
use runtime::aside;
use runtime::hash::SeededMap;
use sync::core_local;

use super::translate::{invalid, translate};
use values::error::{SqlError, SqlState};
use values::memory;
use values::work;

type Result<T> = std::result::Result<T, SqlError>;

/// The most compiled expressions that a core keeps.
const CACHED: usize = 64;
/// The most bytes of these expressions; less where a core's part of the server's memory is less.
const MOST_BYTES: usize = 64 << 20;
/// An expression of more bytes is dropped beside the core: each state has memory of its own.
const LONG_TO_DROP: usize = 1 << 20;
/// The most bytes for compiling an automaton.
const SIZE: usize = 32 << 20;
/// The most bytes of the states that a search keeps in each direction. A class of all scripts
/// counted 255 times needs 9 MiB.
const SEARCH: usize = 12 << 20;
/// As [`SEARCH`], for an expression that compiles quickly.
const SHORT_SEARCH: usize = 2 << 20;
/// The largest weight of a pattern that is compiled on the core: characters, at about half a
/// microsecond each.
const SHORT_PATTERN: usize = 2048;
/// The time to compile a class, in characters.
const CLASS: usize = 30;
/// The time to compile a class with the letters of all scripts, in characters.
const WIDE_CLASS: usize = 1000;
/// The time to compile a letter of either case, in characters.
const FOLDED: usize = 8;

/// The bounds of a match and its groups; the match itself is the first.
pub(super) type Found = Vec<Option<(usize, usize)>>;

/// A measure of a pattern's states: its length times its counts.
pub(super) fn weight(pattern: &str) -> Result<usize> {
    weighed(pattern, pattern.len())
}

fn weighed(pattern: &str, length: usize) -> Result<usize> {
    let mut factor = 1_usize;
    for piece in work::pieces(pattern) {
        for count in piece?.split(['{', ',']).skip(1) {
            let digits = &count[..count.bytes().take_while(u8::is_ascii_digit).count()];
            factor = factor.saturating_mul(digits.parse().unwrap_or(1).max(1));
        }
    }
    Ok(length.saturating_mul(factor))
}

/// Whether a pattern may take more than about a millisecond to compile.
pub(super) fn is_heavy(pattern: &str, flags: &str) -> Result<bool> {
    let mut length = pattern.len();
    for pair in pattern.as_bytes().windows(2) {
        work::tick(1)?;
        length += match pair {
            [b'\\', b'w' | b'W'] | [b'[', b':'] => WIDE_CLASS,
            [b'\\' | b'[', _] => CLASS,
            _ => 0,
        };
    }
    if flags.contains('i') || pattern.starts_with("(?") || pattern.starts_with("***") {
        length *= FOLDED;
    }
    Ok(weighed(pattern, length)? > SHORT_PATTERN)
}

fn too_complex<E>(_: E) -> SqlError {
    invalid("regular expression is too complex")
}

/// A translated pattern in the library's form, with the memory that compiling an automaton of it
/// takes. The caller can begin anew: see [`work::beside`].
fn read(pattern: &str) -> Result<(Hir, Reservation)> {
    let read = syntax::parse(pattern).map_err(|problem| {
        let what = problem.to_string();
        invalid(what.lines().last().unwrap_or_default().trim_start_matches("error: "))
    })?;
    let reserved = account::reserve(bytes_to_compile(&read).min(4 * SIZE)).map_err(SqlError::stopped)?;
    Ok((read, reserved))
}

/// The peak of memory while compiling, in bytes, as measured for classes and literals.
fn bytes_to_compile(read: &Hir) -> usize {
    const STEP: usize = 512;
    const PLAIN_CLASS: usize = 4096;
    const RANGE: usize = 256;
    match read.kind() {
        HirKind::Empty | HirKind::Look(_) => STEP,
        HirKind::Literal(literal) => STEP * literal.0.len(),
        HirKind::Class(Class::Unicode(class)) => PLAIN_CLASS + RANGE * class.ranges().len(),
        HirKind::Class(Class::Bytes(class)) => PLAIN_CLASS + RANGE * class.ranges().len(),
        HirKind::Repetition(repeated) => {
            let times = repeated.max.unwrap_or(repeated.min).max(1);
            bytes_to_compile(&repeated.sub).saturating_mul(times as usize)
        }
        HirKind::Capture(group) => STEP + bytes_to_compile(&group.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().fold(0, |sum, part| sum.saturating_add(bytes_to_compile(part)))
        }
    }
}

/// The automaton of a translated pattern, without groups. A `backward` one reads texts from their
/// end.
pub(super) fn automaton(pattern: &str, backward: bool) -> Result<NFA> {
    let (read, _reserved) = read(pattern)?;
    // A backward automaton can have no group, not even that of the whole match, which finding an
    // end needs.
    let captures = if backward { WhichCaptures::None } else { WhichCaptures::Implicit };
    let config =
        thompson::Config::new().reverse(backward).which_captures(captures).nfa_size_limit(Some(SIZE));
    thompson::Compiler::new().configure(config).build_from_hir(&read).map_err(too_complex)
}

/// The library's expression, with the memory of its searches.
struct Searched {
    regex: meta::Regex,
    cache: RefCell<Option<meta::Cache>>,
}

impl Searched {
    fn new(pattern: &str, is_heavy: bool) -> Result<Searched> {
        let (read, _reserved) = read(pattern)?;
        let kept = if is_heavy { SEARCH } else { SHORT_SEARCH };
        let config = meta::Config::new().nfa_size_limit(Some(SIZE)).hybrid_cache_capacity(kept);
        let regex = meta::Regex::builder().configure(config).build_from_hir(&read).map_err(too_complex)?;
        Ok(Searched::of(regex))
    }

    fn of(regex: meta::Regex) -> Searched {
        Searched { regex, cache: RefCell::new(None) }
    }

    fn run<R>(&self, search: impl FnOnce(&meta::Regex, &mut meta::Cache) -> R) -> R {
        let mut cache = self.cache.borrow_mut();
        search(&self.regex, cache.get_or_insert_with(|| self.regex.create_cache()))
    }

    fn captures(&self, text: &str, from: usize) -> Option<Found> {
        let mut found = self.regex.create_captures();
        self.run(|regex, cache| {
            regex.search_captures_with(cache, &Input::new(text).range(from..), &mut found);
        });
        let group = |number| found.get_group(number).map(|group| (group.start, group.end));
        found.is_match().then(|| (0..found.group_len()).map(group).collect())
    }

    fn bytes(&self) -> usize {
        self.regex.memory_usage() + self.cache.borrow().as_ref().map_or(0, meta::Cache::memory_usage)
    }
}

/// The engine that finds ends, with the memory of its searches.
struct Ends {
    engine: pikevm::PikeVM,
    cache: RefCell<Option<pikevm::Cache>>,
}

impl Ends {
    fn of(engine: pikevm::PikeVM) -> Ends {
        Ends { engine, cache: RefCell::new(None) }
    }

    fn new(pattern: &str) -> Result<Ends> {
        let engine = pikevm::PikeVM::builder()
            .configure(pikevm::PikeVM::config().match_kind(MatchKind::All))
            .build_from_nfa(automaton(pattern, false)?)
            .map_err(too_complex)?;
        Ok(Ends::of(engine))
    }

    fn bytes(&self) -> usize {
        let cache = self.cache.borrow().as_ref().map_or(0, pikevm::Cache::memory_usage);
        self.engine.get_nfa().memory_usage() + cache
    }
}

/// A compiled pattern.
pub(in crate::functions) struct Compiled {
    searched: Searched,
    translated: Arc<str>,
    shortest: bool,
    is_heavy: bool,
    /// The engine that finds ends, made at its first use.
    ends: OnceCell<Ends>,
    /// The pattern with a condition to end at the text's end.
    whole: OnceCell<Searched>,
    /// Bytes that count for the core; None when the core does not keep the expression.
    counted: Cell<Option<usize>>,
}

/// An expression for another thread. It shares the automata, but not the memory of searches.
#[derive(Clone)]
pub(super) struct Sent {
    regex: meta::Regex,
    translated: Arc<str>,
    shortest: bool,
    ends: Option<pikevm::PikeVM>,
    whole: Option<meta::Regex>,
}

impl Sent {
    pub fn received(self) -> Compiled {
        let (ends, whole) = (OnceCell::new(), OnceCell::new());
        self.ends.into_iter().for_each(|engine| drop(ends.set(Ends::of(engine))));
        self.whole.into_iter().for_each(|regex| drop(whole.set(Searched::of(regex))));
        Compiled {
            searched: Searched::of(self.regex),
            translated: self.translated,
            shortest: self.shortest,
            is_heavy: false,
            ends,
            whole,
            counted: Cell::new(None),
        }
    }
}

/// Makes a part of an expression: beside the core where that takes long or must wait for memory.
fn made<T, F>(is_heavy: bool, make: F) -> Result<T>
where
    T: Send + 'static,
    F: Fn() -> Result<T> + Clone + Send + 'static,
{
    let beside = || Ok(make.clone());
    if is_heavy { work::beside(beside) } else { work::here_or_beside(&make, beside) }
}

impl Compiled {
    /// Compiles a pattern on this thread.
    pub fn new(pattern: &str, flags: &str, is_heavy: bool) -> Result<Compiled> {
        let translated = translate(pattern, flags)?;
        Ok(Compiled {
            searched: Searched::new(&translated.pattern, is_heavy)?,
            translated: translated.pattern.into(),
            shortest: translated.shortest,
            is_heavy,
            ends: OnceCell::new(),
            whole: OnceCell::new(),
            counted: Cell::new(None),
        })
    }

    /// The expression in a form for another thread.
    pub(super) fn to_send(&self) -> Sent {
        Sent {
            regex: self.searched.regex.clone(),
            translated: Arc::clone(&self.translated),
            shortest: self.shortest,
            ends: self.ends.get().map(|ends| ends.engine.clone()),
            whole: self.whole.get().map(|whole| whole.regex.clone()),
        }
    }

    /// Makes the engine that finds ends.
    pub fn prepare_ends(&self) -> Result<()> {
        self.ends().map(|_| ())
    }

    fn ends(&self) -> Result<&Ends> {
        if let Some(made) = self.ends.get() {
            return Ok(made);
        }
        let translated = Arc::clone(&self.translated);
        let made = made(self.is_heavy, move || Ends::new(&translated))?;
        Ok(self.ends.get_or_init(|| made))
    }

    fn whole(&self) -> Result<&Searched> {
        if let Some(made) = self.whole.get() {
            return Ok(made);
        }
        let (pattern, is_heavy) = (format!("(?:{})\\z", self.translated), self.is_heavy);
        let made = made(is_heavy, move || Searched::new(&pattern, is_heavy))?;
        Ok(self.whole.get_or_init(|| made))
    }

    pub fn is_match(&self, text: &str) -> bool {
        let input = Input::new(text).earliest(true);
        self.searched.run(|regex, cache| regex.search_half_with(cache, &input)).is_some()
    }

    /// The end of the match that begins at `start`.
    fn end(&self, text: &str, start: usize) -> Result<usize> {
        let Ends { engine, cache } = self.ends()?;
        let input = Input::new(text).range(start..).anchored(Anchored::Yes).earliest(self.shortest);
        let mut cache = cache.borrow_mut();
        let found = engine.find(cache.get_or_insert_with(|| engine.create_cache()), input);
        found.map(|found| found.end()).ok_or_else(|| SqlError::internal("a match has no end"))
    }

    /// The first match at or after a position, without its groups.
    pub fn find(&self, text: &str, from: usize) -> Result<Option<(usize, usize)>> {
        let input = Input::new(text).range(from..);
        match self.searched.run(|regex, cache| regex.search_with(cache, &input)) {
            None => Ok(None),
            Some(found) => Ok(Some((found.start(), self.end(text, found.start())?))),
        }
    }

    /// The first match at or after a position, with its groups.
    pub fn captures(&self, text: &str, from: usize) -> Result<Option<Found>> {
        let Some(mut groups) = self.searched.captures(text, from) else { return Ok(None) };
        let (start, end) = groups[0].unwrap_or((from, from));
        let wanted = self.end(text, start)?;
        if wanted != end {
            if let Some(found) = self.whole()?.captures(&text[..wanted], start) {
                groups = found;
            }
            groups[0] = Some((start, wanted));
        }
        Ok(Some(groups))
    }

    fn bytes(&self) -> usize {
        let whole = self.whole.get().map_or(0, Searched::bytes);
        self.searched.bytes() + self.ends.get().map_or(0, Ends::bytes) + whole
    }
}

/// The expressions that a core keeps, by pattern and flags.
#[derive(Default)]
struct Kept {
    by_pattern: SeededMap<(String, String), Rc<Compiled>>,
    bytes: usize,
}

core_local! {
    static KEPT: RefCell<Kept> = RefCell::default();
}

impl Kept {
    /// Updates the bytes of an expression, if the core keeps it.
    fn recount(&mut self, compiled: &Compiled) {
        let Some(before) = compiled.counted.get() else { return };
        let now = compiled.bytes();
        if before != now {
            compiled.counted.set(Some(now));
            self.bytes = self.bytes - before + now;
            // The memory belongs to the core from now on, not to the session.
            account::settle(account::held() + before as i64 - now as i64);
        }
    }

    /// Removes and returns an expression other than `newest` while the core keeps too many or too
    /// many bytes.
    fn surplus(&mut self, newest: &Rc<Compiled>) -> Option<Rc<Compiled>> {
        if self.by_pattern.len() <= CACHED && self.bytes <= memory::for_core(MOST_BYTES) {
            return None;
        }
        let other = self.by_pattern.iter().find(|(_, kept)| !Rc::ptr_eq(kept, newest));
        let key = other.map(|(key, _)| key.clone())?;
        let gone = self.by_pattern.remove(&key)?;
        self.forget(&gone);
        Some(gone)
    }

    /// Counts an expression for the running session again.
    fn forget(&mut self, compiled: &Compiled) {
        let counted = compiled.counted.take().unwrap_or(0);
        self.bytes -= counted;
        account::settle(account::held() + counted as i64);
    }
}

/// The compiled expression of PostgreSQL's pattern and flags.
fn compile(pattern: &str, flags: &str) -> Result<Rc<Compiled>> {
    let key = (pattern.to_owned(), flags.to_owned());
    if let Some(found) = KEPT.with_borrow(|kept| kept.by_pattern.get(&key).cloned()) {
        return Ok(found);
    }
    let is_heavy = is_heavy(pattern, flags)?;
    let make = || {
        let (pattern, flags) = key.clone();
        made(is_heavy, move || Compiled::new(&pattern, &flags, is_heavy))
    };
    let compiled = match make() {
        // The expressions that the core keeps may hold the memory.
        Err(refused) if refused.code == SqlState::OUT_OF_MEMORY && let_all_go() => make()?,
        made => made?,
    };
    let compiled = Rc::new(compiled);
    let replaced = KEPT.with_borrow_mut(|kept| {
        let replaced = kept.by_pattern.insert(key, Rc::clone(&compiled));
        replaced.iter().for_each(|replaced| kept.forget(replaced));
        compiled.counted.set(Some(0));
        kept.recount(&compiled);
        replaced
    });
    replaced.into_iter().for_each(let_go);
    Ok(compiled)
}

/// Runs `body` with the compiled expression of PostgreSQL's pattern and flags.
pub(super) fn with<R>(pattern: &str, flags: &str, body: impl FnOnce(&Compiled) -> Result<R>) -> Result<R> {
    if runtime::try_core().is_none() {
        return body(&Compiled::new(pattern, flags, false)?);
    }
    let compiled = compile(pattern, flags)?;
    let done = body(&compiled);
    KEPT.with_borrow_mut(|kept| kept.recount(&compiled));
    while let Some(gone) = KEPT.with_borrow_mut(|kept| kept.surplus(&compiled)) {
        let_go(gone);
    }
    let_go(compiled);
    done
}

/// Drops all expressions that the core keeps; false when it keeps none.
fn let_all_go() -> bool {
    let gone = KEPT.with_borrow_mut(|kept| {
        let gone: Vec<_> = kept.by_pattern.drain().map(|(_, compiled)| compiled).collect();
        gone.iter().for_each(|compiled| kept.forget(compiled));
        gone
    });
    let any = !gone.is_empty();
    gone.into_iter().for_each(let_go);
    any
}

/// Drops an expression that nobody else uses; beside the core where that takes long.
fn let_go(compiled: Rc<Compiled>) {
    if let Some(compiled) = Rc::into_inner(compiled) {
        let bytes = compiled.bytes();
        if bytes > LONG_TO_DROP {
            aside::discard(bytes, compiled);
        }
    }
}
