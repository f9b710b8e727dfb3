//! The order in which a SELECT wants the rows of its FROM, for ORDER BY, GROUP BY, DISTINCT and
//! windows.
//!
//! Rows in the order of the groups need no hash table, and with a LIMIT the first groups are
//! enough. DISTINCT gives the first row of each key in the order of its input.
//!
//! What must hold:
//!
//! 1. An order is wanted only if no node between FROM and its user changes it.
//! 2. Groups come in the order of their keys. So they meet an ORDER BY by the keys that begins the
//!    wanted order, or that has all keys before others.

use super::Planner;
use super::part::{Otherwise, Share, Wanted};
use super::top::{Top, copy_key};
use crate::bound::{Distinct, FromItem, Select, Source};
use crate::plan::{Reg, SortKey};
use catalog::{IndexKey, Table};
use expressions::expr::Expr;

/// Columns of one table of FROM: the registers of all its columns, the table, and the positions.
type Asked<'q> = (&'q [Option<Reg>], &'q Table, Vec<u32>);

/// The user of the order of FROM's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    Nobody,
    OrderBy,
    Distinct,
    /// A window with a run condition.
    Window,
    /// GROUP BY, and whether the groups then come as ORDER BY wants them.
    Groups {
        sorts: bool,
    },
}

/// The order that FROM's rows should have.
pub(super) struct Order {
    pub(super) user: User,
    pub(super) keys: Vec<SortKey>,
    pub(super) share: Share,
    /// Estimated groups, if there is a grouping over columns.
    pub(super) groups: Option<f64>,
}

impl Order {
    /// No order.
    pub(super) fn none() -> Order {
        Order { user: User::Nobody, keys: Vec::new(), share: Share::All, groups: None }
    }

    pub(super) fn wanted(&self) -> Wanted<'_> {
        let otherwise = match self.user {
            User::Groups { .. } => Otherwise::Hash,
            User::Window => Otherwise::Window,
            _ => Otherwise::Sort,
        };
        Wanted { order: &self.keys, share: self.share, otherwise, ordered: false }
    }
}

impl Planner<'_, '_> {
    /// The order that a SELECT wants.
    pub(super) fn order_for(&self, select: &Select, top: &Top) -> Order {
        let none = Order::none();
        let is_one =
            select.from.is_none() && !select.grouped && select.windows.is_empty() && select.sets.is_empty();
        let Some(from) = &select.from else {
            let keys = top.order.iter().map(copy_key).collect();
            return if is_one { Order { user: User::OrderBy, keys, ..none } } else { none };
        };
        let is_plain = select.windows.is_empty() && select.sets.is_empty() && top.locks.is_empty();
        let keys = || top.order.iter().map(copy_key).collect();
        match &select.distinct {
            _ if select.grouped => self.order_for_groups(select, from, top).unwrap_or(none),
            _ if !select.windows.is_empty() => self.order_for_window(select).unwrap_or(none),
            Distinct::No if select.sets.is_empty() => {
                Order { user: User::OrderBy, keys: keys(), share: self.share(top), groups: None }
            }
            Distinct::All(columns) | Distinct::On(columns) if is_plain && !top.order.is_empty() => {
                let values = self.values(from, columns.iter()).unwrap_or(f64::INFINITY);
                let share = fraction(self.share(top), values);
                Order { user: User::Distinct, keys: keys(), share, groups: None }
            }
            _ => none,
        }
    }

    /// Makes a grouping of DISTINCT over columns of tables, for the methods of GROUP BY. One with
    /// an order takes that of its rows, and one with a limit gives rows before it has read all.
    pub(super) fn group_distinct(&mut self, select: &mut Select, top: &Top) {
        let (Distinct::All(columns), Some(from)) = (&select.distinct, &select.from) else { return };
        let is_plain = !select.grouped
            && !columns.is_empty()
            && select.windows.is_empty()
            && select.sets.is_empty()
            && select.targets.is_empty()
            && top.order.is_empty()
            && top.limit.is_none()
            && top.offset.is_none();
        if !is_plain || !columns.iter().all(|column| self.table_of_column(from, column).is_some()) {
            return;
        }
        for column in columns {
            let group = self.binder.register();
            select.groups.push((column.clone(), group));
            let value = Expr::column(group, column.type_());
            select.targets.extend(super::classes::column_of(column).map(|register| (value, register)));
        }
        (select.grouped, select.distinct) = (true, Distinct::No);
    }

    fn order_for_groups(&self, select: &Select, from: &FromItem, top: &Top) -> Option<Order> {
        let links: Vec<Reg> = select.sublinks.iter().map(|link| link.output).collect();
        let is_column = |(expr, _): &(Expr, Reg)| matches!(expr, Expr::Column { register, .. } if !links.contains(register));
        if select.groups.is_empty() || !select.grouped_sets.is_empty() || !select.groups.iter().all(is_column)
        {
            return None;
        }
        let groups = self.values(from, select.groups.iter().map(|(expr, _)| expr));
        let (mut keys, mut rest): (Vec<SortKey>, Vec<Expr>) =
            (Vec::new(), select.groups.iter().map(|(expr, _)| expr.clone()).collect());
        let of_group = |key: &SortKey| match &key.expr {
            Expr::Column { register, .. } => {
                select.groups.iter().find(|(_, group)| group == register).map(|(expr, _)| expr)
            }
            _ => None,
        };
        let mut sorts = true;
        for key in &top.order {
            let Some(Expr::Column { register, type_ }) = of_group(key) else {
                // After all groups' keys, no two rows are left to order.
                sorts = rest.is_empty();
                break;
            };
            let is_it =
                |expr: &mut Expr| matches!(expr, Expr::Column { register: other, .. } if other == register);
            if rest.extract_if(.., is_it).count() > 0 {
                let expr = Expr::Column { register: *register, type_: *type_ };
                keys.push(SortKey { expr, descending: key.descending, nulls_first: key.nulls_first });
            }
        }
        let is_whole =
            select.windows.is_empty() && select.sets.is_empty() && matches!(select.distinct, Distinct::No);
        let share = match sorts && is_whole && top.locks.is_empty() {
            true if select.having.is_empty() => fraction(self.share(top), groups.unwrap_or(f64::INFINITY)),
            true if top.limit.is_some() => Share::Some,
            _ => Share::All,
        };
        self.complete(from, &mut keys, rest);
        Some(Order { user: User::Groups { sorts: sorts && is_whole }, keys, share, groups })
    }

    /// Adds the other keys of an order, as they come in a key of their table if it has one.
    fn complete(&self, from: &FromItem, keys: &mut Vec<SortKey>, rest: Vec<Expr>) {
        let fitting =
            rest.first().and_then(|first| self.table_of_column(from, first)).and_then(|(columns, table)| {
                let column = |expr: &Expr| match expr {
                    Expr::Column { register, .. } => {
                        columns.iter().position(|column| *column == Some(*register))
                    }
                    _ => None,
                };
                let own = std::iter::once(table.row_keys().collect());
                let mut candidates = own.chain((0..table.indexes.len()).map(|index| table.entry_keys(index)));
                candidates.find_map(|index: Vec<IndexKey>| keys_in(&index, keys, &rest, column))
            });
        let as_written =
            || rest.iter().map(|expr| SortKey { expr: expr.clone(), descending: false, nulls_first: false });
        keys.extend(fitting.unwrap_or_else(|| as_written().collect()));
    }

    /// The table of FROM whose column an expression is, and the registers of its columns.
    fn table_of_column<'q>(&self, from: &'q FromItem, expr: &Expr) -> Option<(&[Option<Reg>], &'q Table)> {
        let register = super::classes::column_of(expr)?;
        match from {
            FromItem::Join { left, right, .. } => {
                self.table_of_column(left, expr).or_else(|| self.table_of_column(right, expr))
            }
            FromItem::Source(source, Source::Table(table)) => {
                let columns = &self.binder.sources[*source].columns;
                columns.contains(&Some(register)).then_some((columns.as_slice(), &**table))
            }
            FromItem::Source(..) => None,
        }
    }

    /// Estimated combinations of values of columns of FROM.
    pub(super) fn values<'e>(&self, from: &FromItem, columns: impl Iterator<Item = &'e Expr>) -> Option<f64> {
        // The columns of each table.
        let mut together: Vec<Asked<'_>> = Vec::new();
        for expr in columns {
            let (columns, table) = self.table_of_column(from, expr)?;
            let register = super::classes::column_of(expr)?;
            let column = columns.iter().position(|column| *column == Some(register))? as u32;
            match together.iter_mut().find(|(other, ..)| std::ptr::eq(*other, columns)) {
                Some((.., list)) if list.contains(&column) => {}
                Some((.., list)) => list.push(column),
                None => together.push((columns, table, vec![column])),
            }
        }
        let mut product = 1.0;
        for (_, table, columns) in together {
            product *= self.asking(table, |search| search.distinct_together(&columns))?;
        }
        Some(product)
    }
}

/// The fraction of the rows that has the wanted share of so many groups.
fn fraction(share: Share, groups: f64) -> Share {
    match share {
        Share::Rows(first) if groups.is_finite() => Share::Fraction((first / groups.max(1.0)).min(1.0)),
        Share::Rows(_) => Share::Some,
        share => share,
    }
}

/// The other keys of an order in the order of an index, if the index begins with all of them.
fn keys_in(
    index: &[IndexKey],
    keys: &[SortKey],
    rest: &[Expr],
    column: impl Fn(&Expr) -> Option<usize>,
) -> Option<Vec<SortKey>> {
    // A column of both the index and the row's key comes twice.
    let mut seen = Vec::new();
    let mut own = index.iter().filter(|key| {
        let is_new = !seen.contains(&key.column);
        seen.push(key.column);
        is_new
    });
    for wanted in keys {
        if column(&wanted.expr) != Some(own.next()?.column as usize) {
            return None;
        }
    }
    let (mut open, mut found): (Vec<&Expr>, Vec<SortKey>) = (rest.iter().collect(), Vec::new());
    while !open.is_empty() {
        let key = own.next()?;
        let at = open.iter().position(|expr| column(expr) == Some(key.column as usize))?;
        let expr = open.remove(at).clone();
        found.push(SortKey { expr, descending: key.descending, nulls_first: key.nulls_first });
    }
    Some(found)
}
