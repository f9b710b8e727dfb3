//! Long work over one value, in pieces with a safe point after each: see [`runtime::work`].
//!
//! A value of some hundred bytes costs a comparison of its length here.
//!
//! What must hold:
//!
//! 1. Callers hold no borrow of state that belongs to the core, since other statements may run at
//!    each safe point.
//! 2. A text is cut between characters, so each piece is a text.
//! 3. An interrupt ends the work with an error. Its partial result is never used.
//! 4. A result is that of the plain function of the standard library, whatever the value's length.

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hasher};

use bumpalo::Bump;
use bumpalo::collections::{String as BumpString, Vec as BumpVec};
use runtime::budget;
use runtime::hash::Quick;
use runtime::work::{self, STRIDE};
use runtime::{account, fiber, interrupt};

use crate::error::SqlError;

type Result<T> = std::result::Result<T, SqlError>;

/// A search for a longer needle uses rolling hashes, with safe points even while it compares the
/// needle.
const SHORT_NEEDLE: usize = 4096;
/// The work budget for folding one expression: about a millisecond. Nothing else runs on the core
/// meanwhile.
pub const FOLDING_BUDGET: usize = 1 << 20;

/// The work budget for compiling a statement on its core: about four milliseconds. Nothing else
/// runs on the core meanwhile.
const COMPILING_BUDGET: usize = 4 << 20;

/// Runs deeply recursive work without safe points: parsing, binding, planning.
///
/// `here` runs first, on the worker's stack. When it uses up the budget, or would have to wait for
/// memory, the work begins anew with the call that `make` gives: see [`beside`].
pub fn here_or_beside<R, E, F>(
    here: impl FnOnce() -> std::result::Result<R, E>,
    make: impl Fn() -> Result<F>,
) -> std::result::Result<R, E>
where
    R: Send + 'static,
    E: From<SqlError> + Send + 'static,
    F: FnOnce() -> std::result::Result<R, E> + Send + 'static,
{
    match budget::whole_within(COMPILING_BUDGET, || fiber::on_worker_stack(here)) {
        Some(done) => done,
        None => beside(|| make().map(|call| move || fiber::on_worker_stack(call))),
    }
}

/// Runs the call that `make` gives on a thread beside the cores while the fiber waits. The call
/// owns what it reads.
///
/// A call reserves its memory. When the memory is short, the fiber waits for it and another call
/// begins anew. Nothing else may reserve memory beside the cores.
pub fn beside<R, E, F>(make: impl Fn() -> Result<F>) -> std::result::Result<R, E>
where
    R: Send + 'static,
    E: From<SqlError> + Send + 'static,
    F: FnOnce() -> std::result::Result<R, E> + Send + 'static,
{
    let measured = || {
        let (call, bytes) = account::measure(&make);
        call.map(|call| (bytes, call))
    };
    runtime::aside::run_reserving(measured)?.map_err(SqlError::stopped)?
}

/// Places safe points in a loop over rows: at some of its steps other fibers run, and an interrupt
/// ends the statement.
pub struct Pace {
    left: u32,
    between: u32,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::new()
    }
}

impl Pace {
    /// The pace of a loop's start.
    pub const fn new() -> Pace {
        Pace { left: fiber::FIRST_STEPS, between: fiber::FIRST_STEPS }
    }

    /// Counts a row.
    #[inline]
    pub fn step(&mut self) -> Result<()> {
        self.left -= 1;
        if self.left == 0 { self.pause() } else { Ok(()) }
    }

    #[cold]
    fn pause(&mut self) -> Result<()> {
        self.between = fiber::safe_point_after(self.between);
        self.left = self.between;
        interrupt::check().map_err(SqlError::interrupted)
    }
}

/// Builds hashers for keys of any length, which yield between the pieces of a long key.
#[derive(Clone, Default)]
pub struct PacedState(Quick);

/// The hasher of [`PacedState`].
pub struct PacedHasher(<Quick as BuildHasher>::Hasher);

impl BuildHasher for PacedState {
    type Hasher = PacedHasher;

    #[inline]
    fn build_hasher(&self) -> PacedHasher {
        PacedHasher(self.0.build_hasher())
    }
}

impl Hasher for PacedHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        if bytes.len() <= STRIDE {
            return self.0.write(bytes);
        }
        for piece in bytes.chunks(STRIDE) {
            self.0.write(piece);
            work::yield_after(piece.len());
        }
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.0.write_usize(number);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0.finish()
    }
}

/// Counts `bytes` of work, with a safe point about every 16 KiB.
#[inline]
pub fn tick(bytes: usize) -> Result<()> {
    work::tick(bytes).map_err(SqlError::stopped)
}

/// A row's own step covers this many parts of the row.
const FEW_PARTS: usize = 8;
/// The work of one more part, in bytes: an evaluation takes about ten nanoseconds.
const PART: usize = 32;
/// The work of one more key, in bytes: a search in a tree takes about a microsecond.
const KEY: usize = 2048;

/// Counts one of an expression's `count` parts. A long list may take milliseconds a row; a short
/// one costs a comparison here.
#[inline]
pub fn tick_part(count: usize) -> Result<()> {
    if count > FEW_PARTS { tick(PART) } else { Ok(()) }
}

/// Counts all `count` expressions that a loop is about to evaluate for a row. Each expression
/// counts its own parts.
#[inline]
pub fn tick_parts(count: usize) -> Result<()> {
    if count > FEW_PARTS { tick(count.saturating_mul(PART)) } else { Ok(()) }
}

/// Counts one of a row's `count` keys, each of which is looked up or written in a tree of its own.
#[inline]
pub fn tick_key(count: usize) -> Result<()> {
    if count > FEW_PARTS { tick(KEY) } else { Ok(()) }
}

/// The last character boundary at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// The text in pieces, with a safe point before each but the first.
pub fn pieces(text: &str) -> impl Iterator<Item = Result<&str>> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let whole = rest.take()?;
        let ticked = if whole.len() == text.len() { Ok(()) } else { tick(STRIDE) };
        if whole.len() <= STRIDE {
            return Some(ticked.map(|()| whole));
        }
        let (piece, others) = whole.split_at(boundary(whole, STRIDE));
        rest = Some(others);
        Some(ticked.map(|()| piece))
    })
}

/// The bytes in pieces, with a safe point before each but the first. The length of each piece but
/// the last is a multiple of `unit`.
pub fn byte_pieces(bytes: &[u8], unit: usize) -> impl Iterator<Item = Result<&[u8]>> {
    bytes.chunks(STRIDE / unit * unit).enumerate().map(|(index, piece)| {
        if index > 0 {
            tick(STRIDE)?;
        }
        Ok(piece)
    })
}

/// Appends a text.
#[inline]
pub fn push(out: &mut String, text: &str) -> Result<()> {
    if text.len() <= STRIDE {
        out.push_str(text);
        return Ok(());
    }
    out.reserve(text.len());
    pieces(text).try_for_each(|piece| piece.map(|piece| out.push_str(piece)))
}

/// Appends bytes of any number.
#[inline]
pub fn put(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if bytes.len() <= STRIDE {
        out.extend_from_slice(bytes);
        return Ok(());
    }
    put_long(bytes, out)
}

#[cold]
fn put_long(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    out.reserve(bytes.len());
    byte_pieces(bytes, 1).try_for_each(|piece| piece.map(|piece| out.extend_from_slice(piece)))
}

/// The text with each character replaced by `map` of it.
pub fn map_characters(text: &str, mut map: impl FnMut(char) -> char) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        out.extend(piece?.chars().map(&mut map));
    }
    Ok(out)
}

/// The text without the blanks at its end. Yields, but leaves an interrupt to the next safe point.
#[inline]
pub(crate) fn without_blanks(text: &str) -> &str {
    if text.len() <= STRIDE {
        return text.trim_end_matches(' ');
    }
    let mut end = text.len();
    for piece in text.as_bytes().rchunks(STRIDE) {
        if let Some(last) = piece.iter().rposition(|byte| *byte != b' ') {
            return &text[..end - piece.len() + last + 1];
        }
        end -= piece.len();
        work::yield_after(piece.len());
    }
    ""
}

/// Number of characters in a text.
pub fn count_characters(text: &str) -> Result<usize> {
    if text.len() <= STRIDE {
        return Ok(text.chars().count());
    }
    pieces(text).try_fold(0, |count, piece| Ok(count + piece?.chars().count()))
}

/// The byte offset of the character with this number, counted from 0; the text's length when the
/// text has no more characters.
pub fn byte_of_character(text: &str, character: usize) -> Result<usize> {
    let (mut start, mut left) = (0, character);
    for piece in pieces(text) {
        let piece = piece?;
        // A character has at least one byte.
        let count = if piece.len() <= left { piece.chars().count() } else { usize::MAX };
        if count > left {
            return Ok(match piece.char_indices().nth(left) {
                Some((at, _)) => start + at,
                None => {
                    left -= piece.chars().count();
                    start += piece.len();
                    continue;
                }
            });
        }
        left -= count;
        start += piece.len();
    }
    Ok(text.len())
}

/// The order of two byte strings.
#[inline]
pub fn compare(left: &[u8], right: &[u8]) -> Result<Ordering> {
    if left.len() <= STRIDE || right.len() <= STRIDE {
        Ok(left.cmp(right))
    } else {
        compare_long(left, right)
    }
}

#[cold]
fn compare_long(left: &[u8], right: &[u8]) -> Result<Ordering> {
    for (left, right) in left.chunks(STRIDE).zip(right.chunks(STRIDE)) {
        let order = left.cmp(right);
        if order.is_ne() {
            return Ok(order);
        }
        tick(STRIDE)?;
    }
    Ok(left.len().cmp(&right.len()))
}

/// Texts of more bytes are read beside the core where their reader has no safe point.
pub(crate) const LONG_INPUT: usize = 64 << 10;

/// Calls `read` with an owned copy of the text, beside the core.
#[cold]
pub fn aside<R: Send + 'static>(
    text: &str,
    read: impl FnOnce(&str) -> Result<R> + Send + 'static,
) -> Result<R> {
    let text = owned_text(text)?;
    runtime::aside::run_given(text.len(), move || read(&text)).map_err(SqlError::stopped)?
}

/// An owned copy of bytes.
pub fn owned_bytes(bytes: &[u8]) -> Result<Box<[u8]>> {
    if bytes.len() <= STRIDE {
        return Ok(bytes.into());
    }
    let mut out = Vec::new();
    put(bytes, &mut out)?;
    Ok(out.into())
}

/// An owned copy of a text.
pub fn owned_text(text: &str) -> Result<Box<str>> {
    if text.len() <= STRIDE {
        return Ok(text.into());
    }
    let mut out = String::new();
    push(&mut out, text)?;
    Ok(out.into())
}

/// A text copied into the arena.
#[inline]
pub fn text_in<'a>(text: &str, arena: &'a Bump) -> Result<&'a str> {
    if text.len() <= STRIDE { Ok(arena.alloc_str(text)) } else { texts_in(&[text], arena) }
}

/// Bytes copied into the arena.
#[inline]
pub fn bytes_in<'a>(bytes: &[u8], arena: &'a Bump) -> Result<&'a [u8]> {
    if bytes.len() <= STRIDE { Ok(arena.alloc_slice_copy(bytes)) } else { parts_in(&[bytes], arena) }
}

/// Byte strings joined in the arena.
pub fn parts_in<'a>(parts: &[&[u8]], arena: &'a Bump) -> Result<&'a [u8]> {
    let mut out = BumpVec::with_capacity_in(parts.iter().map(|part| part.len()).sum(), arena);
    for part in parts {
        for piece in byte_pieces(part, 1) {
            out.extend_from_slice_copy(piece?);
        }
    }
    Ok(out.into_bump_slice())
}

/// Texts joined in the arena.
pub fn texts_in<'a>(texts: &[&str], arena: &'a Bump) -> Result<&'a str> {
    let mut out = BumpString::with_capacity_in(texts.iter().map(|text| text.len()).sum(), arena);
    for text in texts {
        for piece in pieces(text) {
            out.push_str(piece?);
        }
    }
    Ok(out.into_bump_str())
}

/// Whether `bytes` holds the byte `sought`.
#[inline]
pub fn contains(bytes: &[u8], sought: u8) -> Result<bool> {
    if bytes.len() <= STRIDE {
        return Ok(bytes.contains(&sought));
    }
    for piece in byte_pieces(bytes, 1) {
        if piece?.contains(&sought) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether `test` accepts any of the bytes.
pub fn any(bytes: &[u8], test: impl Fn(u8) -> bool) -> Result<bool> {
    Ok(position(bytes, test)?.is_some())
}

/// The index of the first byte that `test` accepts.
pub fn position(bytes: &[u8], test: impl Fn(u8) -> bool) -> Result<Option<usize>> {
    let mut before = 0;
    for piece in byte_pieces(bytes, 1) {
        let piece = piece?;
        if let Some(at) = piece.iter().position(|byte| test(*byte)) {
            return Ok(Some(before + at));
        }
        before += piece.len();
    }
    Ok(None)
}

/// The byte offset at which `needle` first occurs in the text.
pub fn find(text: &str, needle: &str) -> Result<Option<usize>> {
    if text.len() <= STRIDE {
        return Ok(text.find(needle));
    }
    let mut found = None;
    each_match(text, needle, |at| {
        found = Some(at);
        Ok(false)
    })?;
    Ok(found)
}

/// Calls `each` with every offset at which `needle` occurs in the text, from the left and without
/// overlaps, until it returns false. An empty needle occurs at 0 only. The time is linear in both
/// lengths.
pub fn each_match(text: &str, needle: &str, mut each: impl FnMut(usize) -> Result<bool>) -> Result<()> {
    if needle.len() > SHORT_NEEDLE {
        return each_long_match(text.as_bytes(), needle.as_bytes(), each);
    }
    if needle.is_empty() {
        return each(0).map(drop);
    }
    let mut start = 0;
    loop {
        let end = boundary(text, start + STRIDE + needle.len() + 3);
        let mut next = boundary(text, (end + 1).saturating_sub(needle.len()));
        for (at, _) in text[start..end].match_indices(needle) {
            if !each(start + at)? {
                return Ok(());
            }
            next = next.max(start + at + needle.len());
        }
        if end == text.len() {
            return Ok(());
        }
        start = next;
        tick(STRIDE)?;
    }
}

/// As [`each_match`], by rolling hashes modulo a prime with a random base. Equal hashes of unequal
/// texts are as rare as chance, and a match is compared byte by byte.
fn each_long_match(text: &[u8], needle: &[u8], mut each: impl FnMut(usize) -> Result<bool>) -> Result<()> {
    let base = runtime::random::u64() % (PRIME - 512) + 256;
    let wanted = rolled(needle, base)?;
    let mut leading = 1;
    for piece in byte_pieces(&needle[1..], 1) {
        piece?.iter().for_each(|_| leading = modular_product(leading, base));
    }
    let mut start = 0;
    'restart: while start + needle.len() <= text.len() {
        // Hashing and comparing a needle of 4 to 16 KiB reads a single piece, which counts no work
        // itself.
        tick(4 * needle.len())?;
        let mut hash = rolled(&text[start..start + needle.len()], base)?;
        loop {
            if hash == wanted && equal(&text[start..start + needle.len()], needle)? {
                if !each(start)? {
                    return Ok(());
                }
                start += needle.len();
                continue 'restart;
            }
            let Some(&next) = text.get(start + needle.len()) else { return Ok(()) };
            let without = hash + PRIME - modular_product(u64::from(text[start]), leading);
            hash = (modular_product(without % PRIME, base) + u64::from(next)) % PRIME;
            start += 1;
            tick(4)?;
        }
    }
    Ok(())
}

/// A Mersenne prime: products of residues fit 128 bits.
const PRIME: u64 = (1 << 61) - 1;

fn modular_product(left: u64, right: u64) -> u64 {
    (u128::from(left) * u128::from(right) % u128::from(PRIME)) as u64
}

/// The hash of bytes: the value at `base` of the polynomial with the bytes as coefficients.
fn rolled(bytes: &[u8], base: u64) -> Result<u64> {
    let mut hash = 0;
    for piece in byte_pieces(bytes, 1) {
        for &byte in piece? {
            hash = (modular_product(hash, base) + u64::from(byte)) % PRIME;
        }
    }
    Ok(hash)
}

/// Number of bytes that two byte strings have in common at their start.
#[inline]
pub fn common_prefix(left: &[u8], right: &[u8]) -> Result<usize> {
    let mut common = 0;
    for (left, right) in byte_pieces(left, 1).zip(right.chunks(STRIDE)) {
        let left = left?;
        // Comparing whole pieces is faster than comparing bytes.
        let least = left.len().min(right.len());
        if left[..least] != right[..least] {
            return Ok(common + left.iter().zip(right).take_while(|(a, b)| a == b).count());
        }
        common += least;
    }
    Ok(common)
}

/// Whether the text begins with `start`.
pub fn starts_with(text: &str, start: &str) -> Result<bool> {
    match text.as_bytes().get(..start.len()) {
        Some(head) => equal(head, start.as_bytes()),
        None => Ok(false),
    }
}

/// Whether two byte strings are equal.
#[inline]
pub fn equal(left: &[u8], right: &[u8]) -> Result<bool> {
    if left.len() != right.len() || left.len() <= STRIDE {
        Ok(left == right)
    } else {
        equal_long(left, right)
    }
}

/// Whether the last key, if there is one, equals `key`.
pub fn is(last: Option<&[u8]>, key: &[u8]) -> Result<bool> {
    last.map_or(Ok(false), |last| equal(last, key))
}

#[cold]
fn equal_long(left: &[u8], right: &[u8]) -> Result<bool> {
    for (left, right) in byte_pieces(left, 1).zip(right.chunks(STRIDE)) {
        if left? != right {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
