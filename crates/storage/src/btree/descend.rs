//! The way from the root to a node: optimistic and latch-free. It begins again when anything on the
//! way changed.
//!
//! What must hold:
//! - The walk reads a child's version before it validates the parent. So the child was the right
//!   one at that moment, and any later split, merge or eviction of it changes the version that was
//!   read.
//! - The walk follows or reports nothing before the page it came from is validated.
//! - Levels fall by one with each step, so a damaged tree cannot lead in circles.

use sync::atomic::spin_loop;

use super::Tree;
use crate::frame::State;
use crate::node::Node;
use crate::page::{PageKind, offset};
use crate::pool::yield_for_latch;
use crate::{Error, Miss, PageMut, PageNo, PageRef, Pinned, Pool, Restart};

/// Misses after which the walk pins missing pages, so that a small pool cannot evict one page of
/// the way for the next.
const MISSES_BEFORE_PINS: u32 = 6;
/// The most pins of a walk, more than any tree is high: with so many, the way has changed
/// meanwhile.
const PINS_MAX: usize = 2 * crate::node::MAX_LEVEL as usize;
/// Conflicts after which a reader takes the leaf's latch for its read.
const CONFLICTS_BEFORE_LATCH: u32 = 32;
/// Walks to one leaf in one turn among those who lost its latch.
const WALKS_IN_TURN: u32 = 8;
/// Conflicts between two yields: the fiber in the way may share this core.
const CONFLICTS_PER_YIELD: u32 = 8;

/// Bytes of a leaf to prefetch: its header and the slots of some 60 entries, a leaf of rows of 120
/// bytes.
const LEAF_PREFETCH: usize = 576;

/// Why a walk ended early.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stop {
    /// Something changed on the way.
    Restart,
    /// Another thread has latched or changed the leaf in this frame before this one could latch it.
    Overtaken(u32),
    /// The page cannot be read now, for this reason.
    Missing(PageNo, Miss),
    /// The page was read whole and is no node of this tree.
    Corrupt(PageNo, &'static str),
}

impl From<Restart> for Stop {
    fn from(_: Restart) -> Stop {
        Stop::Restart
    }
}

impl Stop {
    /// The error for bytes that are no node: a restart if the page has changed, damage if it has
    /// not.
    #[cold]
    fn damaged(page_no: PageNo, (pool, frame, seen): (&Pool, u32, State), what: &'static str) -> Stop {
        if pool.validate(frame, seen) { Stop::Corrupt(page_no, what) } else { Stop::Restart }
    }
}

/// Which node of a level a walk looks for.
#[derive(Clone, Copy)]
pub(super) enum Aim<'k> {
    /// The node that covers the key.
    At(&'k [u8]),
    /// The node that covers the keys just below the key.
    Below(&'k [u8]),
    /// The last node.
    End,
}

/// A node on the way: a view on its page, and the page's number.
#[cfg_attr(not(variants), derive(Clone, Copy))]
pub(super) struct Step<'p> {
    pub page_no: PageNo,
    pub page: PageRef<'p>,
}

impl<'p> Step<'p> {
    /// The node's bytes, hostile until validated.
    #[inline]
    pub fn node(&self) -> Node<'p> {
        Node::new(self.page.bytes())
    }

    /// The error for an unreadable node, with the reason.
    #[inline(always)] // a call by reference would keep the step in memory
    pub fn damaged(&self, what: &'static str) -> Stop {
        Stop::damaged(self.page_no, (self.page.pool, self.page.frame, self.page.seen), what)
    }
}

/// Where a walk ended: the node, its parent, and the node's position there (none for the root).
#[cfg_attr(not(variants), derive(Clone, Copy))]
pub(super) struct Place<'p> {
    pub step: Step<'p>,
    pub parent: Option<(Step<'p>, usize)>,
}

/// A view on a page. When the page is missing, the miss counts only if `from`, which named the
/// page, is still valid.
#[inline(always)] // each read of a row looks at two or three pages
pub(super) fn look<'p>(pool: &'p Pool, page_no: PageNo, from: Option<&Step<'_>>) -> Result<Step<'p>, Stop> {
    match pool.get(page_no) {
        Ok(page) => Ok(Step { page_no, page }),
        Err(miss) => {
            if let Some(from) = from {
                from.page.validate()?;
            }
            Err(Stop::Missing(page_no, miss))
        }
    }
}

/// The level of a node of `tree`; `None` when the page is no such node.
#[inline]
fn level_of(step: &Step<'_>, tree: u32) -> Option<u8> {
    let word = step.page.bytes().u64_at(offset::TREE)?;
    let (kind, level) = ((word >> 32) as u8, (word >> 40) as u8);
    let expected = if level == 0 { PageKind::Leaf } else { PageKind::Inner };
    (word as u32 == tree && kind == expected as u8 && level <= crate::node::MAX_LEVEL).then_some(level)
}
const _: () = assert!(offset::KIND == offset::TREE + 4 && offset::LEVEL == offset::TREE + 5);

/// Walks to the node of `level` that `aim` names; `None` when the tree is not that high.
#[inline]
pub(super) fn descend<'p>(
    pool: &'p Pool,
    tree: &Tree,
    aim: Aim<'_>,
    level: u8,
) -> Result<Option<Place<'p>>, Stop> {
    descend_by(pool, tree, level, |node| match aim {
        Aim::At(key) => node.child_position(key),
        Aim::Below(key) => node.child_position_below(key),
        Aim::End => node.count(),
    })
}

/// Walks to a node of `level`; `None` when the tree is not that high. In each node on the way
/// `choose` names the position of the child. `choose` may see bytes that are not validated.
#[inline(always)] // a walk to a key is on every statement's path
pub(super) fn descend_by<'p>(
    pool: &'p Pool,
    tree: &Tree,
    level: u8,
    mut choose: impl FnMut(Node<'p>) -> Option<usize>,
) -> Result<Option<Place<'p>>, Stop> {
    let mut step = look(pool, tree.root, None)?;
    let mut parent = None;
    let mut now = level_of(&step, tree.id).ok_or_else(|| step.damaged("not the root of its tree"))?;
    if now < level {
        step.page.validate()?;
        return Ok(None);
    }
    while now > level {
        let node = step.node();
        let child = choose(node).and_then(|position| Some((position, node.child(position)?)));
        let (position, child) = child.ok_or_else(|| step.damaged("unreadable inner node"))?;
        if now == 1 {
            // A leaf is rarely in the CPU's cache. The prefetch brings its frame's word, header and
            // slots in one wait, not in one each.
            pool.prefetch(child, LEAF_PREFETCH);
        }
        let next = look(pool, child, Some(&step))?;
        let below = level_of(&next, tree.id);
        step.page.validate()?;
        if below != Some(now - 1) {
            return Err(next.damaged("not the child its parent names"));
        }
        now -= 1;
        parent = Some((step, position));
        step = next;
    }
    Ok(Some(Place { step, parent }))
}

#[inline]
#[track_caller]
fn latch_leaf<'p>(pool: &'p Pool, tree: &Tree, aim: Aim<'_>) -> Result<PageMut<'p>, Stop> {
    let place = descend(pool, tree, aim, 0)?.ok_or(Stop::Restart)?;
    let page = place.step.page;
    page.lock().map_err(|Restart| Stop::Overtaken(page.frame))
}

/// The level of the root.
pub(super) fn root_level(pool: &Pool, tree: &Tree) -> Result<u8, Stop> {
    let step = look(pool, tree.root, None)?;
    let level = level_of(&step, tree.id).ok_or_else(|| step.damaged("not the root of its tree"))?;
    step.page.validate()?;
    Ok(level)
}

/// Repeats a walk, each time in a way more likely to succeed.
pub(super) struct Retry<'p> {
    pool: &'p Pool,
    conflicts: u32,
    misses: u32,
    pins: Vec<Pinned<'p>>,
    /// The frame whose latch the last walk lost to another thread.
    lost: Option<u32>,
}

impl<'p> Retry<'p> {
    /// The state before the first walk.
    #[inline]
    pub fn new(pool: &'p Pool) -> Retry<'p> {
        Retry { pool, conflicts: 0, misses: 0, pins: Vec::new(), lost: None }
    }

    /// Whether so many conflicts have occurred that a reader should latch.
    #[inline]
    pub fn latch_now(&self) -> bool {
        self.conflicts >= CONFLICTS_BEFORE_LATCH
    }

    /// Walks to the leaf that `aim` names and takes its latch. If the last walk lost the latch to
    /// another thread, this one waits for its turn among the losers. They walk one after the other,
    /// so each of them contends with newcomers alone.
    #[inline]
    #[track_caller]
    pub fn latch_leaf(&mut self, tree: &Tree, aim: Aim<'_>) -> Result<PageMut<'p>, Stop> {
        match self.lost.take() {
            None => latch_leaf(self.pool, tree, aim),
            Some(frame) => self.latch_leaf_in_turn(frame, tree, aim),
        }
    }

    #[cold]
    #[track_caller]
    fn latch_leaf_in_turn(&self, frame: u32, tree: &Tree, aim: Aim<'_>) -> Result<PageMut<'p>, Stop> {
        self.pool.in_turn_of(frame, || {
            // A newcomer may overtake the first one, which keeps its place for a few more walks.
            for _ in 1..WALKS_IN_TURN {
                match latch_leaf(self.pool, tree, aim) {
                    Err(Stop::Overtaken(again)) if again == frame => spin_loop(),
                    latched_or_stopped => return latched_or_stopped,
                }
            }
            latch_leaf(self.pool, tree, aim)
        })
    }

    /// Waits for the cause that stopped the walk. The caller holds no latch. Fails when another try
    /// cannot help.
    #[cold]
    pub fn after(&mut self, stop: Stop) -> Result<(), Error> {
        match stop {
            Stop::Restart => self.conflict(),
            Stop::Overtaken(frame) => {
                self.lost = Some(frame);
                self.conflict()
            }
            Stop::Missing(_, Miss::Busy) => {
                self.conflicts += CONFLICTS_PER_YIELD - 1;
                self.conflict()
            }
            Stop::Missing(page_no, miss) => {
                self.misses += 1;
                if self.misses <= MISSES_BEFORE_PINS {
                    return self.pool.resolve(page_no, miss);
                }
                if self.pins.len() >= PINS_MAX {
                    self.pins.clear();
                }
                let pin = self.pool.pin(page_no)?;
                self.pins.push(pin);
                Ok(())
            }
            Stop::Corrupt(page, what) => Err(Error::Corrupt { page, what }),
        }
    }

    fn conflict(&mut self) -> Result<(), Error> {
        self.conflicts = self.conflicts.saturating_add(1);
        if !self.conflicts.is_multiple_of(CONFLICTS_PER_YIELD) {
            for _ in 0..self.conflicts % CONFLICTS_PER_YIELD {
                spin_loop();
            }
            return Ok(());
        }
        yield_for_latch();
        Ok(())
    }
}
