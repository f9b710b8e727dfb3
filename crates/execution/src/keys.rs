//! Keys of trees: of rows, of index entries, and the bounds of scans.
//!
//! A table's tree is ordered by its primary key, or by a hidden row number (8 bytes, big endian)
//! where there is none. A secondary index's entry is
//!
//! - not unique: key = index columns, then the row's key; payload = the length of the row's key (2
//!   bytes);
//! - unique: key = index columns (and the row's key, when one of them is NULL and NULLs are
//!   distinct); payload = the row's key.

use std::ops::Bound;

use txn::trees::{self, Tree};

use super::{Arena, Executor, File};
use catalog::{Index, Table, TreeAddress};
use expressions::expr::Expr;
use expressions::prefix::Rest;
use query::plan::{KeyBound, KeyRange, KeyValue};
use values::error::SqlError;
use values::key::{self, KeyOrder, encode_prefix, step_over};
use values::types::Datum;
use values::work;

/// How a column takes part in a key.
#[derive(Clone, Copy)]
pub struct Part {
    /// Its position in the table.
    pub column: u32,
    /// How the index orders it.
    pub order: KeyOrder,
}

/// The tree at an address.
pub fn tree(address: TreeAddress) -> Tree {
    trees::at(address.id, address.root)
}

/// A table's own tree.
pub fn table_tree(table: &Table) -> Tree {
    tree(table.tree)
}

/// The columns of a table's primary key.
pub(crate) fn primary_parts(table: &Table) -> impl Iterator<Item = Part> + Clone + '_ {
    let columns = table.primary_key.as_ref().map_or(&[][..], |key| &key.columns);
    columns.iter().map(|column| Part { column: *column, order: KeyOrder::default() })
}

/// The columns of an index.
pub(crate) fn index_parts(index: &Index) -> impl Iterator<Item = Part> + Clone + '_ {
    index.columns.iter().map(|key| Part {
        column: key.column,
        order: KeyOrder { descending: key.descending, nulls_first: key.nulls_first },
    })
}

/// The columns of an entry of an index: its own, and those of the row's key where they follow.
pub(crate) fn entry_parts<'t>(table: &'t Table, index: &'t Index) -> impl Iterator<Item = Part> + Clone + 't {
    index_parts(index).chain(primary_parts(table).filter(|_| !index.unique))
}

/// Appends a part's value.
pub(crate) fn encode_part(part: Part, value: Datum<'_>, key: &mut Vec<u8>) -> Result<(), SqlError> {
    key::encode(value, part.order, key)
}

/// The primary key of a complete row; the table must have one.
pub(crate) fn row_key(table: &Table, row: &[Datum<'_>], key: &mut Vec<u8>) -> Result<(), SqlError> {
    key.clear();
    primary_parts(table).try_for_each(|part| encode_part(part, row[part.column as usize], key))
}

/// The index entry of a complete row whose own key is `primary`.
pub fn index_entry(
    index: &Index,
    row: &[Datum<'_>],
    primary: &[u8],
    key: &mut Vec<u8>,
    payload: &mut Vec<u8>,
) -> Result<(), SqlError> {
    key.clear();
    payload.clear();
    let mut null = false;
    for part in index_parts(index) {
        let value = row[part.column as usize];
        null |= value.is_null();
        encode_part(part, value, key)?;
    }
    if index.unique {
        if null && !index.nulls_not_distinct {
            key.extend_from_slice(primary);
        }
        payload.extend_from_slice(primary);
    } else {
        key.extend_from_slice(primary);
        // The longest key of a tree has 1000 bytes.
        payload.extend_from_slice(&(primary.len() as u16).to_le_bytes());
    }
    Ok(())
}

/// The row's key in an index entry.
pub(crate) fn primary_key_of_entry<'e>(
    index: &Index,
    key: &'e [u8],
    payload: &'e [u8],
) -> Result<&'e [u8], SqlError> {
    if index.unique {
        return Ok(payload);
    }
    let length = payload.first_chunk().map(|bytes| usize::from(u16::from_le_bytes(*bytes)));
    let start = length.and_then(|length| key.len().checked_sub(length));
    start.map(|start| &key[start..]).ok_or_else(|| damaged_entry(index))
}

/// The error for an entry whose bytes are none of its columns.
#[cold]
pub(crate) fn damaged_entry(index: &Index) -> SqlError {
    SqlError::new(values::SqlState::INDEX_CORRUPTED, format!("index \"{}\" has a damaged entry", index.name))
}

/// The two ends of a scan, in buffers that are used again.
pub(crate) struct Bounds {
    low: Vec<u8>,
    high: Vec<u8>,
    open: bool,
}

impl Bounds {
    /// Bounds in these buffers.
    pub(crate) fn from_buffers(low: Vec<u8>, high: Vec<u8>) -> Bounds {
        Bounds { low, high, open: false }
    }

    /// The buffers.
    pub(crate) fn into_buffers(self) -> (Vec<u8>, Vec<u8>) {
        (self.low, self.high)
    }

    /// The lower end: the whole key after [`Bounds::exact`].
    pub fn low(&self) -> &[u8] {
        &self.low
    }

    /// Both ends; without the upper one if the range is open.
    pub(crate) fn ends(&self) -> (&[u8], Option<&[u8]>) {
        (&self.low, (!self.open).then_some(&self.high))
    }

    /// As a range of keys.
    pub(crate) fn as_range(&self) -> txn::Range<'_> {
        txn::Range {
            lower: Bound::Included(&self.low),
            upper: if self.open { Bound::Unbounded } else { Bound::Excluded(&self.high) },
        }
    }

    /// Fills `low` with a whole key; false when a part is NULL.
    pub fn exact<'s, 'x>(
        &mut self,
        cx: &mut Executor<'s>,
        parts: impl Iterator<Item = Part>,
        values: &'s [Expr],
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<bool, SqlError> {
        self.low.clear();
        for (part, expr) in parts.zip(values) {
            let value = cx.eval(expr, file, arena)?;
            if value.is_null() {
                return Ok(false);
            }
            encode_part(part, value, &mut self.low)?;
        }
        Ok(true)
    }

    /// Computes the ends of a contiguous range; false when it is empty.
    pub fn range<'s, 'x>(
        &mut self,
        cx: &mut Executor<'s>,
        mut parts: impl Iterator<Item = Part>,
        range: &'s KeyRange,
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<bool, SqlError> {
        self.low.clear();
        for value in &range.equal {
            let Some(part) = parts.next() else { break };
            let KeyValue::One(expr) = value else {
                encode_part(part, Datum::Null, &mut self.low)?;
                continue;
            };
            let value = cx.eval(expr, file, arena)?;
            if value.is_null() {
                return Ok(false);
            }
            encode_part(part, value, &mut self.low)?;
        }
        self.interval(cx, parts.next(), range, file, arena)
    }

    /// Computes the ends of the part of a range behind one prefix; false when it is empty.
    pub fn behind<'s, 'x>(
        &mut self,
        cx: &mut Executor<'s>,
        prefix: &[u8],
        (part, range): (Option<Part>, &'s KeyRange),
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<bool, SqlError> {
        self.low.clear();
        work::put(prefix, &mut self.low)?;
        self.interval(cx, part, range, file, arena)
    }

    /// Computes the interval behind the prefix in `low`. `part`: the next column.
    fn interval<'s, 'x>(
        &mut self,
        cx: &mut Executor<'s>,
        part: Option<Part>,
        range: &'s KeyRange,
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<bool, SqlError> {
        self.high.clear();
        self.high.extend_from_slice(&self.low);
        let bounded = !(range.low.is_empty() && range.high.is_empty());
        let Some(part) = part.filter(|_| bounded) else {
            // All keys with this prefix.
            self.open = !step_over(&mut self.high);
            return Ok(true);
        };
        // A descending column reverses the interval.
        let (first, last) = match part.order.descending {
            false => (&range.low, &range.high),
            true => (&range.high, &range.low),
        };
        match self.end(cx, part, first, true, file, arena)? {
            End::Empty => return Ok(false),
            End::Set | End::Open => {}
        }
        match self.end(cx, part, last, false, file, arena)? {
            End::Empty => return Ok(false),
            End::Set => self.open = false,
            End::Open => self.open = true,
        }
        Ok(self.open || self.low < self.high)
    }

    /// One end of the interval on `part`, `low` and `high` holding the prefix of equal columns. The
    /// tightest of several bounds counts.
    fn end<'s, 'x>(
        &mut self,
        cx: &mut Executor<'s>,
        part: Part,
        bounds: &'s [KeyBound],
        lower: bool,
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<End, SqlError> {
        let key = if lower { &mut self.low } else { &mut self.high };
        let Some((first, others)) = bounds.split_first() else {
            // Up to the NULLs, which no comparison finds: they lie at one end of the column.
            if lower && part.order.nulls_first {
                encode_part(part, Datum::Null, key)?;
                return Ok(if step_over(key) { End::Set } else { End::Empty });
            }
            if !lower && !part.order.nulls_first {
                encode_part(part, Datum::Null, key)?;
                return Ok(End::Set);
            }
            return Ok(if lower || step_over(key) { End::Set } else { End::Open });
        };
        if others.is_empty() {
            return one_end(cx, part, first, lower, file, arena, key);
        }
        let prefix = key.clone();
        let mut end = one_end(cx, part, first, lower, file, arena, key)?;
        for bound in others {
            let mut other = prefix.clone();
            let next = one_end(cx, part, bound, lower, file, arena, &mut other)?;
            let tighter = match (&end, &next) {
                (End::Empty, _) => false,
                (_, End::Empty) | (End::Open, End::Set) => true,
                (_, End::Open) => false,
                (End::Set, End::Set) => (other > *key) == lower,
            };
            if tighter {
                *key = other;
                end = next;
            }
        }
        Ok(end)
    }
}

/// One end of an interval by one bound. `key` holds the prefix.
fn one_end<'s, 'x>(
    cx: &mut Executor<'s>,
    part: Part,
    bound: &'s KeyBound,
    lower: bool,
    file: &File<'x>,
    arena: &'x Arena<'s>,
    key: &mut Vec<u8>,
) -> Result<End, SqlError> {
    let inclusive = match bound {
        KeyBound::Value { value, inclusive } => {
            let value = cx.eval(value, file, arena)?;
            if value.is_null() {
                return Ok(End::Empty);
            }
            encode_part(part, value, key)?;
            *inclusive
        }
        KeyBound::Pattern { pattern, matching } => {
            let pattern = match cx.eval(pattern, file, arena)? {
                Datum::Text(pattern) => pattern,
                Datum::Null => return Ok(End::Empty),
                _ => return Err(SqlError::internal("a pattern that is no text")),
            };
            let prefix = matching.prefix(pattern);
            match prefix.rest {
                Rest::Nothing => encode_part(part, Datum::Text(&prefix.text), key)?,
                _ => encode_prefix(&prefix.text, part.order, key)?,
            }
            true
        }
        KeyBound::NotNull => {
            encode_prefix("", part.order, key)?;
            true
        }
    };
    // Scans include the lower end and exclude the upper one. Where the condition says otherwise,
    // the end steps over the value's keys.
    if inclusive == lower || step_over(key) {
        Ok(End::Set)
    } else if lower {
        Ok(End::Empty)
    } else {
        Ok(End::Open)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Set,
    Open,
    Empty,
}
