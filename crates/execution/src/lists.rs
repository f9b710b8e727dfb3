//! IN and NOT IN lists whose items read no row. A condition over many rows looks its value up in a
//! hash table.
//!
//! The second test of a list in an execution hashes it, so a statement over one row does not pay
//! for the table.
//!
//! What must hold: a list belongs to the plan, which outlives the executor, so its address names
//! it.

use std::mem::{Discriminant, discriminant};

use hashbrown::HashTable;
use runtime::hash::QuickSet;

use super::{Arena, Executor, File};
use expressions::expr::{Expr, Quantified, QuantifiedOver};
use expressions::function::{Comparison, Fast, Volatility};
use values::error::SqlError;
use values::key::{self, KeyOrder};
use values::key_table::KeyTable;
use values::memory;
use values::types::{Datum, NumericRef};
use values::work::tick_part;

/// Shorter lists are searched item by item.
const LEAST: usize = 9;
/// The approximate bytes of an integer in a hash table.
const INTEGER: usize = 20;

/// The lists that an execution has tested, by the address of their test. Most executions test none
/// and have no table.
#[derive(Default)]
pub(super) struct Lists(Option<Box<Table>>);

type Table = HashTable<(*const Quantified, List)>;

impl Lists {
    fn get(&self, test: *const Quantified) -> Option<&List> {
        self.0.as_ref()?.find(hash(test), |(other, _)| *other == test).map(|(_, list)| list)
    }

    fn put(&mut self, test: *const Quantified, list: List) {
        let lists = self.0.get_or_insert_default();
        match lists.find_mut(hash(test), |(other, _)| *other == test) {
            Some(known) => known.1 = list,
            None => drop(lists.insert_unique(hash(test), (test, list), |(test, _)| hash(*test))),
        }
    }
}

/// Multiplies the address, because the table looks at the high bits first and addresses differ in
/// the low ones.
fn hash(test: *const Quantified) -> u64 {
    (test.addr() as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32)
}

enum List {
    TestedOnce,
    Hashed {
        items: Items,
        null: bool,
    },
    /// The list cannot be hashed, because of its operator or an item: it is searched item by item.
    Searched,
}

/// The items of a list that are not NULL.
enum Items {
    /// Integers of any width.
    Integers(QuickSet<i64>),
    /// Values of one kind, by their keys.
    Keys(Discriminant<Datum<'static>>, KeyTable<Box<[u8]>, ()>),
}

impl<'s> Executor<'s> {
    /// Whether an IN or NOT IN condition holds for a row, if its list is hashed. False stands for
    /// NULL as well.
    #[inline]
    pub(super) fn test_list<'x>(
        &mut self,
        condition: &'s Expr,
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<Option<bool>, SqlError> {
        match condition {
            Expr::Quantified(quantified) => match &quantified.right {
                QuantifiedOver::List(list) if list.len() >= LEAST => {
                    self.test_long_list(quantified, list, file, arena)
                }
                _ => Ok(None),
            },
            _ => Ok(None),
        }
    }

    fn test_long_list<'x>(
        &mut self,
        quantified: &'s Quantified,
        list: &'s [Expr],
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<Option<bool>, SqlError> {
        let address = std::ptr::from_ref(quantified);
        match self.lists.get(address) {
            None => {
                self.lists.put(address, List::TestedOnce);
                return Ok(None);
            }
            Some(List::TestedOnce) => {
                let list = self.hash_list(quantified, list, file, arena)?;
                self.lists.put(address, list);
            }
            Some(List::Searched) => return Ok(None),
            Some(List::Hashed { .. }) => {}
        }
        let value = self.eval(&quantified.left, file, arena)?;
        let Some(List::Hashed { items, null }) = self.lists.get(address) else { return Ok(None) };
        if value.is_null() {
            return Ok(Some(false));
        }
        let Some(found) = items.contain(value)? else { return Ok(None) };
        Ok(Some(if quantified.all { !found && !null } else { found }))
    }

    fn hash_list<'x>(
        &mut self,
        quantified: &Quantified,
        list: &'s [Expr],
        file: &File<'x>,
        arena: &'x Arena<'s>,
    ) -> Result<List, SqlError> {
        let operator = if quantified.all { Comparison::NotEqual } else { Comparison::Equal };
        let hashable = matches!(quantified.function.fast, Some(Fast::Compare(own)) if own == operator);
        if !hashable || quantified.left.volatility() == Volatility::Volatile {
            return Ok(List::Searched);
        }
        let (mut items, mut null) = (None, false);
        for item in list {
            tick_part(list.len())?;
            if !item.is_row_free() || item.volatility() != Volatility::Immutable {
                return Ok(List::Searched);
            }
            let value = self.eval(item, file, arena)?;
            if value.is_null() {
                null = true;
                continue;
            }
            let items = match &mut items {
                Some(items) => items,
                None => match Items::of_kind(value, list.len())? {
                    Some(new) => items.insert(new),
                    None => return Ok(List::Searched),
                },
            };
            if !items.add(value)? {
                return Ok(List::Searched);
            }
        }
        Ok(match items {
            Some(items) => List::Hashed { items, null },
            None => List::Searched,
        })
    }
}

impl Items {
    /// No items yet, with room for `count` of this value's kind; None where a kind is not hashed.
    fn of_kind(value: Datum<'_>, count: usize) -> Result<Option<Items>, SqlError> {
        if value.as_i64().is_some() {
            memory::ask(count.saturating_mul(INTEGER))?;
            return Ok(Some(Items::Integers(QuickSet::with_capacity_and_hasher(count, Default::default()))));
        }
        Ok(kind(value).map(|kind| Items::Keys(kind, KeyTable::default())))
    }

    /// Adds an item; false where it is of another kind.
    fn add(&mut self, value: Datum<'_>) -> Result<bool, SqlError> {
        match self {
            Items::Integers(integers) => Ok(value.as_i64().map(|value| integers.insert(value)).is_some()),
            Items::Keys(own, keys) => {
                if kind(value) != Some(*own) {
                    return Ok(false);
                }
                let key = key_of(value)?;
                keys.insert_new(&key, (), || Ok(key.as_slice().into()))?;
                Ok(true)
            }
        }
    }

    /// Whether a value is one of the items; None where it is of another kind.
    fn contain(&self, value: Datum<'_>) -> Result<Option<bool>, SqlError> {
        match self {
            Items::Integers(integers) => Ok(value.as_i64().map(|value| integers.contains(&value))),
            Items::Keys(own, _) if kind(value) != Some(*own) => Ok(None),
            Items::Keys(_, keys) => Ok(Some(keys.get(&key_of(value)?)?.is_some())),
        }
    }
}

/// The kind of a value whose key's bytes are equal where the type's `=` is true.
fn kind(value: Datum<'_>) -> Option<Discriminant<Datum<'static>>> {
    Some(discriminant(&match value {
        Datum::Text(_) => Datum::Text(""),
        Datum::Padded(_) => Datum::Padded(""),
        Datum::Numeric(_) => Datum::Numeric(NumericRef(&[])),
        Datum::Float8(_) => Datum::Float8(0.0),
        Datum::Date(_) => Datum::Date(0),
        Datum::Timestamp(_) => Datum::Timestamp(0),
        Datum::Timestamptz(_) => Datum::Timestamptz(0),
        _ => return None,
    }))
}

fn key_of(value: Datum<'_>) -> Result<Vec<u8>, SqlError> {
    let mut key = Vec::new();
    key::encode(value, KeyOrder::default(), &mut key)?;
    Ok(key)
}
