//! Access paths: how a scan reaches one table's rows under the conditions on it.
//!
//! A path reads ranges of one tree ([`super::reach`]) or combines those of several
//! ([`super::combined`]).
//!
//! What must hold: the choice between paths changes cost alone. Conditions that do not bound stay
//! as filters.

use super::bounding::Clause;
use super::cost;
use super::part::{Otherwise, Share};
use super::price::Sets;
use super::reach::{Matched, Reach, Reached, key_range};
use super::search::Search;
use crate::plan::{AccessPath, KeyRange, KeyValue, TreePart};
use catalog::{IndexKey, Table};
use values::error::SqlError;

/// The trees that a path reads, with its ranges in each.
pub(super) enum Way<R> {
    /// One tree.
    Tree {
        /// The position of the index; `None` for the table's own tree.
        index: Option<usize>,
        ranges: Vec<R>,
        backward: bool,
    },
    /// Several trees. A row has to be in all of them, or in one.
    Combined { parts: Vec<(Option<usize>, Vec<R>)>, all: bool },
}

/// A possible access path, with estimates.
pub(super) struct Path<R> {
    pub(super) way: Way<R>,
    /// Whether it finds at most one row.
    pub(super) single: bool,
    /// Positions of conditions that the path meets by itself.
    pub(super) used: Vec<usize>,
    /// Estimated rows of the path.
    pub(super) rows: f64,
    /// Estimated cost of reading them, in the unit of [`cost`].
    pub(super) cost: f64,
    /// The part of the cost that comes before the first row.
    pub(super) ahead: f64,
    /// The number of leading keys of the wanted order by which the rows come.
    pub(super) sorted: usize,
    /// Whether the rows come in the wanted order.
    pub(super) ordered: bool,
}

/// The path that was chosen.
pub(super) type Access<'s> = Path<Reach<'s>>;
/// A path that may be the best.
pub(super) type Candidate<'c, 's> = Path<Reached<'c, 's>>;

impl<'s> Search<'s> {
    /// The cheapest path for the wanted share of the rows, sorting included.
    pub(super) fn best(&self) -> Access<'s> {
        let has_goal = !self.order.is_empty() || self.share != Share::All;
        let rows = if has_goal { (self.rows * self.kept(self.conditions)).max(1.0) } else { 0.0 };
        let total = |path: &Candidate<'_, '_>| match has_goal {
            false => path.cost,
            // It ends with the last row that is asked for.
            true if path.ordered => path.ahead + (path.cost - path.ahead) * self.share.of(rows),
            true => {
                let rows = rows.min(path.rows);
                let work = path.cost + self.otherwise.work(rows, self.share, self.methods);
                work.min(self.of_sorted(path, rows).unwrap_or(f64::INFINITY))
            }
        };
        self.cheapest(|path| Some(total(path))).unwrap_or_else(|| Access::whole(self.rows))
    }

    /// The work of a path whose rows come by some leading keys of the wanted order, and of sorting
    /// them among equal ones.
    fn of_sorted(&self, path: &Candidate<'_, '_>, rows: f64) -> Option<f64> {
        if path.sorted == 0 || self.otherwise != Otherwise::Sort {
            return None;
        }
        let sets = self.sets(path.sorted).min(rows);
        // The last set is read whole.
        let read = (self.share.of(rows) + 1.0 / sets).min(1.0);
        let sort = cost::of_method(self.methods.sort, cost::sort(rows * read, rows / sets));
        Some(path.ahead + (path.cost - path.ahead) * read + sort)
    }

    /// The cheapest path whose rows come by some leading keys of the wanted order, and these keys.
    /// Rows that are joined with them come so, too.
    pub(super) fn best_presorted(&self) -> Option<(Access<'s>, Sets)> {
        let first = self.order.first().and_then(|key| self.own_column(&key.expr));
        if first.is_none() || self.otherwise != Otherwise::Sort || !self.methods.incremental_sort {
            return None;
        }
        let path = self.cheapest(|path| (path.sorted > 0 && !path.single).then_some(path.cost))?;
        let sets = Sets { keys: path.sorted, count: self.sets(path.sorted) };
        Some((path, sets))
    }

    /// How many sets of rows are equal in so many leading keys of the wanted order.
    fn sets(&self, sorted: usize) -> f64 {
        let columns = self.order[..sorted].iter().filter_map(|key| self.own_column(&key.expr));
        columns.map(|column| self.distinct(column)).product::<f64>().max(1.0)
    }

    /// The cheapest path in the wanted order, which then holds for joined rows, too. One row is in
    /// any order, but the rows joined with it are so only if they have no other column of it.
    pub(super) fn best_in_order(&self) -> Option<Access<'s>> {
        if !self.order.iter().all(|key| self.own_column(&key.expr).is_some()) {
            return None;
        }
        self.cheapest(|path| path.ordered.then_some(path.cost))
    }

    /// The path with the least price. Paths without a price are none.
    fn cheapest(&self, price: impl Fn(&Candidate<'_, '_>) -> Option<f64>) -> Option<Access<'s>> {
        let clauses = self.clauses();
        let mut paths = vec![self.table_path(&clauses)];
        if !self.methods.index_scan {
            paths.push(self.table_path(&[]));
        }
        let indexes = (0..self.table.indexes.len()).map(|index| self.index_path(index, &clauses));
        let bounded = paths.len();
        paths.extend(indexes);
        let useful = |path: &Candidate<'_, '_>| path.is_useful(!self.order.is_empty());
        let is_choice = !self.alone || paths[bounded..].iter().any(useful);
        let least = paths.iter().map(|path| path.cost).fold(f64::INFINITY, f64::min);
        let gathered: Vec<_> = paths[bounded..].iter().filter_map(|path| self.gathered(path)).collect();
        paths.extend(gathered);
        paths.extend(self.combined(&clauses, least));
        if is_choice {
            self.note_choices(&clauses);
        }
        let priced = paths.into_iter().filter_map(|path| Some((price(&path)?, path)));
        let best = priced.min_by(|(one, _), (other, _)| one.total_cmp(other));
        best.map(|(_, path)| path.owned())
    }

    /// The path through the table's own tree.
    fn table_path<'c>(&self, clauses: &'c [Clause<'s>]) -> Candidate<'c, 's> {
        let keys: Vec<IndexKey> = self.table.row_keys().collect();
        let matched = self.matched(&keys, clauses, 1.0);
        let single = matched.is_point(&keys);
        self.candidate(None, &keys, matched, single, |points, rows| points * cost::DESCENT + rows)
    }

    fn index_path<'c>(&self, number: usize, clauses: &'c [Clause<'s>]) -> Candidate<'c, 's> {
        let keys = self.table.entry_keys(number);
        let row = if self.covering(number).is_some() { cost::ENTRY } else { cost::INDEX_ROW };
        let matched = self.matched(&keys, clauses, row);
        let single = self.table.indexes[number].unique && matched.is_point(&keys);
        let row = if single { cost::DESCENT + 1.0 } else { row };
        self.candidate(Some(number), &keys, matched, single, |points, rows| {
            points * cost::DESCENT + rows * row
        })
    }

    fn candidate<'c>(
        &self,
        index: Option<usize>,
        keys: &[IndexKey],
        matched: Matched<'c, 's>,
        single: bool,
        price: impl FnOnce(f64, f64) -> f64,
    ) -> Candidate<'c, 's> {
        let rows = if single { 1.0 } else { (self.rows * matched.fraction()).max(1.0) };
        let (sorted, backward) = match single {
            true => (self.order.len(), false),
            false => self.order_of(keys, matched.fixed()),
        };
        let ordered = sorted == self.order.len();
        let bounds = matched.ranges.iter().any(Reached::is_bounded);
        let is_on = match index.is_some() || bounds {
            true => self.methods.index_scan,
            false => self.methods.table_scan,
        };
        let ahead = matched.skips();
        let cost = cost::of_method(is_on, ahead + price(matched.points(), rows));
        let Matched { ranges, used } = matched;
        let way = Way::Tree { index, ranges, backward };
        Candidate { way, single, used, rows, cost, ahead, sorted, ordered }
    }

    /// The number of leading keys of the wanted order that a key has after this number of fixed
    /// columns, and whether backward. Fixed columns alone order nothing.
    pub(super) fn order_of(&self, keys: &[IndexKey], fixed: usize) -> (usize, bool) {
        // A column of both the index and the row's key comes twice.
        let mut passed: Vec<u32> = keys[..fixed].iter().map(|key| key.column).collect();
        let mut rest = keys[fixed..].iter();
        let mut backward: Option<bool> = None;
        let mut sorted = 0;
        for wanted in self.order {
            let Some(column) = self.own_column(&wanted.expr) else { break };
            if passed.contains(&column) {
                sorted += 1;
                continue;
            }
            let next = rest.find(|key| !passed.contains(&key.column));
            let Some(key) = next.filter(|key| key.column == column) else { break };
            passed.push(column);
            let flipped = key.descending != wanted.descending;
            let nulls_fit = self.table.columns[column as usize].not_null
                || self.conditions.iter().any(|condition| self.without_null(condition) == Some(column))
                || (key.nulls_first != flipped) == wanted.nulls_first;
            if !nulls_fit || backward.is_some_and(|backward| backward != flipped) {
                break;
            }
            backward = Some(flipped);
            sorted += 1;
        }
        let is_whole = sorted == self.order.len();
        let orders = is_whole || backward.is_some() && self.methods.incremental_sort;
        (if orders { sorted } else { 0 }, backward.unwrap_or(false))
    }
}

impl<'s> Candidate<'_, 's> {
    /// Whether the path may be better than the table's own for some values.
    fn is_useful(&self, sorts: bool) -> bool {
        let Way::Tree { ranges, .. } = &self.way else { return true };
        let fraction: f64 = ranges.iter().map(|range| range.fraction).sum();
        sorts && self.ordered || fraction < 1.0
    }

    fn owned(self) -> Access<'s> {
        let owned = |ranges: &[Reached<'_, 's>]| ranges.iter().map(Reached::owned).collect();
        let way = match &self.way {
            Way::Tree { index, ranges, backward } => {
                Way::Tree { index: *index, ranges: owned(ranges), backward: *backward }
            }
            Way::Combined { parts, all } => {
                let parts = parts.iter().map(|(index, ranges)| (*index, owned(ranges)));
                Way::Combined { parts: parts.collect(), all: *all }
            }
        };
        let Path { single, used, rows, cost, ahead, sorted, ordered, .. } = self;
        Path { way, single, used, rows, cost, ahead, sorted, ordered }
    }
}

impl Access<'_> {
    /// All rows of a table.
    fn whole(rows: f64) -> Self {
        let ranges = vec![Reach::ALL];
        Access {
            way: Way::Tree { index: None, ranges, backward: false },
            single: false,
            used: Vec::new(),
            rows,
            cost: rows,
            ahead: 0.0,
            sorted: 0,
            ordered: false,
        }
    }

    /// The position of the index whose entries it reads in their order, if they may be several.
    pub(super) fn scanned_index(&self) -> Option<usize> {
        match self.way {
            Way::Tree { index, .. } if !self.single => index,
            _ => None,
        }
    }

    /// The path for the executor.
    pub(super) fn path(&self, table: &Table) -> Result<AccessPath, SqlError> {
        let ranges_of = |ranges: &[Reach<'_>]| -> Result<Vec<KeyRange>, SqlError> {
            ranges.iter().map(|range| key_range(range, table)).collect()
        };
        let (index, ranges, backward) = match &self.way {
            Way::Tree { index, ranges, backward } => (*index, ranges_of(ranges)?, *backward),
            Way::Combined { parts, all } => {
                let parts = parts
                    .iter()
                    .map(|(index, ranges)| Ok(TreePart { index: *index, ranges: ranges_of(ranges)? }));
                let parts = parts.collect::<Result<_, SqlError>>()?;
                return Ok(AccessPath::Combined { parts, all: *all });
            }
        };
        if self.single
            && let [KeyRange { equal, .. }] = ranges.as_slice()
        {
            let values = equal.iter().filter_map(|value| match value {
                KeyValue::One(value) => Some(value.clone()),
                _ => None,
            });
            let key = values.collect();
            return Ok(match index {
                None => AccessPath::Point { key },
                Some(index) => AccessPath::UniquePoint { index, key },
            });
        }
        Ok(match index {
            None => AccessPath::Table { ranges, backward },
            Some(index) => AccessPath::Index { index, ranges, backward },
        })
    }
}
