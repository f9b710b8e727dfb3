//! The prices of single sides and the orders of their rows, as the search for an order of joins
//! asks for them.
//!
//! What must hold: all prices are in the one unit of [`cost`].

use super::cost;
use super::graph::Set;
use crate::plan::SortKey;
use expressions::expr::Expr;

/// A loop that keeps the rows of its right side costs at most this fraction of one that does not.
const CLEAR: f64 = 0.7;

/// The estimated work for the first row and for all rows, and their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Price {
    pub(super) start: f64,
    pub(super) cost: f64,
    pub(super) rows: f64,
}

impl Price {
    /// The price of a side that is not there.
    pub(super) const NONE: Price = Price { start: 0.0, cost: 0.0, rows: 1.0 };
}

/// Prices of single sides.
pub(super) trait Prices {
    /// All rows of a side under its own conditions.
    fn alone(&mut self, side: usize) -> Price;
    /// The same in the wanted order, if a path gives that.
    fn in_order(&mut self, side: usize) -> Option<Price>;
    /// The rows of a side by some leading keys of the wanted order, if a path gives that, and these
    /// keys.
    fn presorted(&mut self, side: usize) -> Option<(Price, Sets)>;
    /// The rows of a side for one row of others, under these clauses.
    fn run(&mut self, side: usize, clauses: &[usize]) -> Price;
    /// The same in the wanted order, if a path gives that.
    fn run_in_order(&mut self, side: usize, clauses: &[usize]) -> Option<Price>;
    /// Estimated combinations of the values of others on which these rows depend. Infinite if they
    /// depend on more, or on nothing.
    fn outer_values(&self, side: usize, clauses: &[usize]) -> f64;
    /// The keys by which the rows of a set can merge with those of a side.
    fn merging(&mut self, left: Set, side: usize, sought: Sought) -> Option<Merging>;
    /// Whether an attached side's condition has a key for hashing.
    fn has_key(&self, side: usize) -> bool;
}

/// The leading keys of the wanted order by which rows come.
#[derive(Clone, Copy)]
pub(super) struct Sets {
    /// How many keys these are.
    pub(super) keys: usize,
    /// Estimated sets of rows that are equal in these.
    pub(super) count: f64,
}

/// The order of the left rows of a merge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sought {
    /// So many leading keys of the wanted order.
    Wanted(usize),
    /// One of the table's own.
    Own,
}

/// The keys of a merge join, and what its sides cost in their order.
#[derive(Clone, Debug)]
pub(super) struct Merging {
    /// The order of the left rows, and of the right ones.
    pub(super) left: Vec<SortKey>,
    pub(super) right: Vec<SortKey>,
    /// The values that are equal.
    pub(super) keys: Vec<(Expr, Expr)>,
    /// The numbers of the equalities: among the graph's conditions, or among an attached side's.
    pub(super) conditions: Vec<usize>,
    pub(super) left_price: Price,
    /// The price of the right side.
    pub(super) price: Price,
}

/// One run of a loop's right side.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub(super) price: Price,
    /// Estimated combinations of the outer values on which it depends. Infinite if its rows cannot
    /// be kept by them, and `None` before many left rows ask for it.
    pub(super) values: Option<f64>,
}

impl Run {
    /// The work for so many left rows if the rows of each run are kept, unless that is no clear
    /// gain. Nothing is known of few left rows, and the first ones hardly repeat values.
    pub(super) fn kept(&self, outer: f64, share: f64) -> Option<f64> {
        let (price, values) = (self.price, self.values?);
        if outer * share <= cost::GUESSED || values * 2.0 > outer * share {
            return None;
        }
        let look = cost::MEMO_LOOK + price.rows * cost::MEMO_ROW;
        let work = outer * look + values * (price.cost + cost::MEMO_KEEP + price.rows * cost::MEMO_ROW);
        (work < outer * price.cost * CLEAR).then_some(work)
    }
}
