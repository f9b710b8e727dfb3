//! Leaves drawn at random, for samples and for estimates of a tree's size.
//!
//! A walk takes each child with equal chance. So it reaches a leaf with a chance of one over the
//! product of the fan-outs on its way, the leaf's weight. The mean of the weights is the number of
//! leaves, and so for the other levels (Knuth, "Estimating the efficiency of backtrack programs",
//! 1975).
//!
//! Leaves that are kept with a chance in proportion to their weights are equally likely, whatever
//! the fill of the nodes. Source: Olken and Rotem, "Random sampling from B+ trees", 1989.
//!
//! What must hold: a walk reports nothing that it has not validated.

use super::Tree;
use super::descend::{Retry, Stop, descend_by};
use crate::node::Node;
use crate::{Error, Pool, Store};

/// Walks of an estimate.
const WALKS: u64 = 8;

/// A leaf that a walk has reached.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// Its keys are not less than this one.
    pub lower: Vec<u8>,
    /// Its keys are less than this one; `None` for the last leaf.
    pub upper: Option<Vec<u8>>,
    /// Its entries, dead ones included.
    pub entries: usize,
    /// The product of the fan-outs on the way to it.
    pub weight: f64,
    /// The estimate of the tree's pages by this walk alone.
    pub pages: f64,
}

/// An estimate of a tree's size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    /// Pages of all levels.
    pub pages: f64,
    /// Entries, dead ones included.
    pub entries: f64,
}

impl Tree {
    /// Draws a leaf. `random` gives any 64 bits with equal chance.
    ///
    /// # Errors
    /// A page is damaged or cannot be read.
    pub fn draw(&self, store: &Store, random: &mut dyn FnMut() -> u64) -> Result<Drawn, Error> {
        retried(store, || self.walk(&store.pool, random))
    }

    /// An estimate of the tree's size from [`WALKS`] walks.
    ///
    /// # Errors
    /// A page is damaged or cannot be read.
    pub fn size(&self, store: &Store) -> Result<Size, Error> {
        mean(|number| self.walk_of(store, number))
    }

    /// An estimate of the part of the entries that lie in leaves for which `is_within` is true, 0
    /// to 1, from the same walks.
    ///
    /// # Errors
    /// A page is damaged or cannot be read.
    pub fn part_within(&self, store: &Store, is_within: impl Fn(&Drawn) -> bool) -> Result<f64, Error> {
        let (mut within, mut all) = (0.0, 0.0);
        for number in 0..WALKS {
            let drawn = self.walk_of(store, number)?;
            let entries = drawn.weight * drawn.entries as f64;
            all += entries;
            if is_within(&drawn) {
                within += entries;
            }
        }
        Ok(if all > 0.0 { within / all } else { 0.0 })
    }

    /// A walk of an estimate.
    fn walk_of(&self, store: &Store, number: u64) -> Result<Drawn, Error> {
        retried(store, || self.walk(&store.pool, &mut turns(number)))
    }

    /// As [`Tree::size`], by the same walks. It reads no page from disk and does not park: `None`
    /// when the pages on a way are not in the pool, or change.
    #[must_use]
    pub fn resident_size(&self, store: &Store) -> Option<Size> {
        mean(|number| self.walk(&store.pool, &mut turns(number))).ok()
    }

    fn walk(&self, pool: &Pool, random: &mut dyn FnMut() -> u64) -> Result<Drawn, Stop> {
        let (mut weight, mut pages) = (1.0_f64, 1.0_f64);
        let place = descend_by(pool, self, 0, |node: Node<'_>| {
            let children = node.count()? + 1;
            weight *= children as f64;
            pages += weight;
            Some(((u128::from(random()) * children as u128) >> 64) as usize)
        })?;
        let step = place.ok_or(Stop::Restart)?.step;
        let node = step.node();
        let key = |range| {
            let mut key = Vec::new();
            node.append_to(range, &mut key).then_some(key)
        };
        let read = || {
            let lower = key(node.lower()?)?;
            let upper = match node.upper()? {
                Some(range) => Some(key(range)?),
                None => None,
            };
            Some(Drawn { lower, upper, entries: node.count()?, weight, pages })
        };
        let drawn = read().ok_or_else(|| step.damaged("unreadable leaf"))?;
        step.page.validate()?;
        Ok(drawn)
    }
}

/// A walk, begun again until its pages are in the pool and do not change.
fn retried(store: &Store, mut walk: impl FnMut() -> Result<Drawn, Stop>) -> Result<Drawn, Error> {
    let mut retry = Retry::new(&store.pool);
    loop {
        match walk() {
            Ok(drawn) => return Ok(drawn),
            Err(stop) => retry.after(stop)?,
        }
    }
}

/// The turns of an estimate's walk, the same each time: a statement gets the same plan while its
/// tables stay.
fn turns(number: u64) -> impl FnMut() -> u64 {
    let mut state = number;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let word = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb)
    }
}

/// The mean of a tree's walks, which have numbers.
fn mean<E>(walk: impl Fn(u64) -> Result<Drawn, E>) -> Result<Size, E> {
    let mut size = Size::default();
    for number in 0..WALKS {
        let drawn = walk(number)?;
        size.pages += drawn.pages / WALKS as f64;
        size.entries += drawn.weight * drawn.entries as f64 / WALKS as f64;
        if drawn.weight <= 1.0 {
            return Ok(Size { pages: drawn.pages, entries: drawn.entries as f64 });
        }
    }
    Ok(size)
}
