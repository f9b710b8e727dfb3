//! Safe points within one call: work whose length depends on its data.
//!
//! An executor looks for interrupts between rows. A function over a huge value is one call between
//! two rows, so it counts its own work here: [`tick`] after every piece. About every 16 KiB of work
//! it tests the running fiber's interrupt, and yields if the time slice is used up. What must hold:
//!
//! 1. A caller of [`tick`] or [`yield_after`] holds no latch and no borrow of the core's state,
//!    because another fiber of the core may run meanwhile.
//! 2. Where a fiber must not suspend (a latch is held, the worker's stack is in use) both only
//!    count.
//! 3. Work within a budget ([`crate::budget`]) never suspends.

use std::str::Utf8Error;

use crate::budget::{self, Stopped};
use crate::interrupt::{self, Reason};
use crate::{account, fiber};

/// Bytes of work between two looks; a few microseconds.
pub const STRIDE: usize = 16 * 1024;

/// Counts `bytes` of work that were done or are about to be; a safe point about every 16 KiB.
#[inline]
pub fn tick(bytes: usize) -> Result<(), Stopped> {
    if budget::count(bytes) >= STRIDE { look() } else { Ok(()) }
}

/// As [`tick`] for work that cannot fail (comparing, hashing): yields about every 32 KiB, and
/// leaves the interrupt to the next safe point.
#[inline]
pub fn yield_after(bytes: usize) {
    // Yields only after 2 strides and takes 1 off the count. The stride that stays counted makes
    // the next `tick` test the interrupt.
    if budget::count(bytes) >= 2 * STRIDE && budget::charge(STRIDE) && !budget::has_budget() {
        fiber::yield_at_slice_end();
    }
}

/// Whether work that cannot fail may build `bytes` more. If not, the running statement is asked to
/// end. The caller leaves its result unfinished, and nobody may use it before the next [`tick`].
pub fn affords(bytes: usize) -> bool {
    yield_after(bytes);
    if bytes < account::ASKED {
        return true;
    }
    let may = if budget::has_budget() { budget::left() > 0 } else { account::ask(bytes).is_ok() };
    if !may {
        // The next tick looks.
        budget::count(2 * STRIDE);
        if !budget::has_budget() {
            interrupt::raise_own(Reason::Memory);
        }
    }
    may
}

#[cold]
fn look() -> Result<(), Stopped> {
    if !budget::charge(0) {
        return Err(Stopped::Budget);
    }
    // A caller with a budget goes on without the result, so an interrupt is left to the next safe
    // point.
    if budget::has_budget() {
        return Ok(());
    }
    interrupt::check_call().map_err(Stopped::Interrupted)?;
    interrupt::check().map_err(Stopped::Interrupted)?;
    fiber::yield_at_slice_end();
    Ok(())
}

/// Bytes as text. Yields after each piece of a long one.
///
/// # Errors
/// As [`std::str::from_utf8`].
#[inline]
pub fn utf8(bytes: &[u8]) -> Result<&str, Utf8Error> {
    if bytes.len() <= 16 * STRIDE {
        return std::str::from_utf8(bytes);
    }
    let Ok(text) = long_utf8(bytes, |done| {
        yield_after(done);
        Ok::<(), std::convert::Infallible>(())
    });
    text
}

/// Appends a text, however long, and yields meanwhile.
pub fn append(text: &mut String, more: &str) {
    text.reserve(more.len());
    let mut rest = more;
    while rest.len() > STRIDE {
        let most = (STRIDE - 3..=STRIDE).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
        let (piece, others) = rest.split_at(most);
        text.push_str(piece);
        yield_after(most);
        rest = others;
    }
    text.push_str(rest);
}

/// As [`utf8`], with a safe point after each piece.
///
/// # Errors
/// Why the work ended early. Within, as [`std::str::from_utf8`].
#[inline]
pub fn checked_utf8(bytes: &[u8]) -> Result<Result<&str, Utf8Error>, Stopped> {
    if bytes.len() <= 16 * STRIDE { Ok(std::str::from_utf8(bytes)) } else { long_utf8(bytes, tick) }
}

#[cold]
fn long_utf8<E>(
    bytes: &[u8],
    mut safe_point: impl FnMut(usize) -> Result<(), E>,
) -> Result<Result<&str, Utf8Error>, E> {
    let mut rest = bytes;
    while !rest.is_empty() {
        // A piece ends before a byte that begins a character; of invalid bytes it may end anywhere.
        let most = rest.len().min(STRIDE);
        let goes_on = |at: &usize| rest.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
        let end = (most.saturating_sub(3)..=most).rev().find(|at| !goes_on(at)).unwrap_or(most);
        let (piece, others) = rest.split_at(end);
        if std::str::from_utf8(piece).is_err() {
            // Checks the whole text again: the error then has the position from the beginning of
            // the text, not of the piece.
            return Ok(std::str::from_utf8(bytes));
        }
        safe_point(end)?;
        rest = others;
    }
    // SAFETY: the bytes are pieces one behind the other, each of which is valid UTF-8, and so is
    // what they make together. Nobody changed them meanwhile: they are borrowed.
    Ok(Ok(unsafe { std::str::from_utf8_unchecked(bytes) }))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::budget::{whole_within, within};
    use crate::interrupt::{Interrupt, Interrupted, Reason};
    use crate::tests::start_with;
    use crate::{FileIo, fiber};

    #[test]
    fn work_past_its_budget_ends_and_the_next_has_no_budget() {
        let ended = within(1 << 20, || (0..).find(|_| tick(1000).is_err()));
        assert!((1000..1100).contains(&ended.unwrap()), "{ended:?}");
        assert!((0..10_000).all(|_| tick(1000).is_ok()));
    }

    #[test]
    fn work_within_a_budget_counts_against_the_one_around_it() {
        let whole = whole_within(1 << 20, || {
            (0..100).for_each(|_| within(1 << 18, || assert_eq!(tick(1 << 13), Ok(()))))
        });
        assert_eq!(whole, Some(()));
        let spent = whole_within(1 << 20, || {
            (0..5).for_each(|_| within(1 << 18, || while tick(1 << 12).is_ok() {}));
            tick(1 << 14)
        });
        assert_eq!(spent, None);
        assert!((0..10_000).all(|_| tick(1000).is_ok()));
    }

    #[test]
    fn what_a_budget_cannot_afford_ends_it_at_the_next_tick() {
        within(1 << 20, || {
            assert!(affords(1 << 19) && affords(100));
            assert!(!affords(1 << 22));
            assert_eq!(tick(1), Err(Stopped::Budget));
        });
    }

    #[test]
    fn endless_work_yields_to_another_fiber_and_obeys_its_interrupt() {
        let runtime = start_with(1, FileIo::Threads);
        let interrupt = Interrupt::new();
        let raised = Arc::clone(&interrupt);
        let other_ran = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&other_ran);
        let stopped = runtime.call(0, move || {
            fiber::obey(Some(interrupt));
            fiber::spawn_local(move || {
                // Release: pairs with the load below.
                other.store(true, Ordering::Release);
                raised.raise(Reason::Cancel);
            });
            loop {
                if let Err(stopped) = tick(100) {
                    return stopped;
                }
            }
        });
        assert_eq!(stopped, Stopped::Interrupted(Interrupted(Reason::Cancel)));
        // Acquire: pairs with the store above.
        assert!(other_ran.load(Ordering::Acquire));
        runtime.shutdown();
    }

    #[test]
    fn long_bytes_are_text_where_short_ones_are() {
        let mut bytes = "a\u{e9}\u{20ac}\u{1f600}".repeat(100_000).into_bytes();
        for at in 0..12 {
            assert_eq!(utf8(&bytes[at..]), std::str::from_utf8(&bytes[at..]));
            assert_eq!(utf8(&bytes[..bytes.len() - at]), std::str::from_utf8(&bytes[..bytes.len() - at]));
        }
        for at in [0, 16_383, 16_384, 16_385, 500_000, 999_999] {
            for wrong in [0x80, 0xff, b'a'] {
                let right = std::mem::replace(&mut bytes[at], wrong);
                assert_eq!(utf8(&bytes), std::str::from_utf8(&bytes), "{wrong} at {at}");
                bytes[at] = right;
            }
        }
    }

    #[test]
    fn work_that_mostly_yields_obeys_its_interrupt_too() {
        let runtime = start_with(1, FileIo::Threads);
        let interrupt = Interrupt::new();
        interrupt.raise(Reason::Cancel);
        let stopped = runtime.call(0, move || {
            fiber::obey(Some(interrupt));
            (0..1000).find_map(|_| {
                (0..2000).for_each(|_| yield_after(1000));
                tick(1).err()
            })
        });
        assert_eq!(stopped, Some(Stopped::Interrupted(Interrupted(Reason::Cancel))));
        runtime.shutdown();
    }

    #[test]
    fn work_within_a_budget_never_lets_another_fiber_run() {
        let runtime = start_with(1, FileIo::Threads);
        let other_ran = Arc::new(AtomicBool::new(false));
        let other = Arc::clone(&other_ran);
        let ran_within = runtime.call(0, move || {
            let seen = Arc::clone(&other);
            // Relaxed, here and below: the fibers share a core, and the flag stands for nothing
            // else.
            fiber::spawn_local(move || other.store(true, Ordering::Relaxed));
            within(usize::MAX - 1, || (0..200_000).for_each(|_| yield_after(STRIDE)));
            let ran_within = seen.load(Ordering::Relaxed);
            // The same work without a budget lets the other fiber run.
            while !seen.load(Ordering::Relaxed) {
                yield_after(STRIDE);
            }
            ran_within
        });
        assert!(!ran_within);
        runtime.shutdown();
    }

    #[test]
    fn work_on_the_workers_stack_is_interrupted_and_never_suspends() {
        let runtime = start_with(1, FileIo::Threads);
        runtime.call(0, || {
            fiber::on_worker_stack(|| (0..20_000).for_each(|_| tick(1000).unwrap()));
        });
        runtime.shutdown();
    }

    #[test]
    fn a_long_text_is_appended_whole() {
        // A character of three bytes lies across each stride, at each place.
        for before in 0..4 {
            let long = "a".repeat(before) + &"\u{20ac}".repeat(STRIDE);
            let mut text = "x".to_owned();
            append(&mut text, &long);
            assert_eq!(text[1..], long);
        }
        let mut text = String::new();
        append(&mut text, "");
        assert_eq!(text, "");
    }
}
