//! The leaf of the last change: changes of neighbouring keys find it without a walk.
//!
//! What must hold: a hint names a frame and the state in which a change left it. As long as the
//! frame has this state, it holds the same leaf, which covers the same keys. Whatever takes keys
//! from a leaf, frees it or evicts it, latches its frame and raises the version. A hint that is out
//! of date costs one comparison.

use super::Tree;
use crate::frame::State;
use crate::node::Node;
use crate::{PageMut, Pool};

/// Where the last changes of a tree came to. A change looks there first once two changes in a row
/// had the same leaf. So keys in no order do not pay for the look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Near {
    tree: u32,
    frame: u32,
    state: Option<State>,
    /// Whether the last two changes had the same leaf.
    repeats: bool,
}

impl Near {
    /// Takes the latch of the leaf of the last change, if it is one of `tree` and covers the key.
    #[inline]
    #[track_caller]
    pub(super) fn latch<'p>(&mut self, pool: &'p Pool, tree: &Tree, key: &[u8]) -> Option<PageMut<'p>> {
        if !self.repeats || self.tree != tree.id {
            return None;
        }
        let page = pool.latch_again(self.frame, self.state?)?;
        match Node::of(page.bytes()).covers(key) {
            Some(true) => Some(page),
            Some(false) | None => {
                self.repeats = false;
                None
            }
        }
    }

    /// Gives the latch of a leaf back after a change, and keeps the leaf in mind.
    #[inline]
    pub(super) fn leave(&mut self, tree: &Tree, page: PageMut<'_>) {
        let frame = page.frame();
        let repeats = self.tree == tree.id && self.frame == frame;
        *self = Near { tree: tree.id, frame, state: Some(page.unlock()), repeats };
    }
}
