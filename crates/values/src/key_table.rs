//! A hash table of byte strings that grows without holding the core.
//!
//! A table of a million entries takes a tenth of a second to move its entries to a larger one. So
//! beyond 32,768 entries there are 256 tables, each for one value of eight bits of the hash, and
//! an entry keeps its hash. Keys of any length are hashed and compared in pieces, with a safe point
//! behind each.

use std::hash::{BuildHasher, Hasher};
use std::ops::Deref;

use hashbrown::HashTable;
use runtime::hash::Quick;

use crate::error::SqlError;
use crate::work;

type Result<T> = std::result::Result<T, SqlError>;

/// Entries in one table.
const SPLIT: usize = 1 << 15;
/// The number of tables beyond [`SPLIT`] entries. The hash bits that choose a table are not the
/// ones that choose a place within it.
const PARTS: usize = 256;
const PART_SHIFT: u32 = 40;

struct Entry<K, V> {
    hash: u64,
    key: K,
    value: V,
}

/// The table. Its calls fail when the statement is interrupted.
pub struct KeyTable<K, V> {
    state: Quick,
    /// No table, one, or [`PARTS`] of them.
    parts: Vec<HashTable<Entry<K, V>>>,
    len: usize,
}

impl<K, V> Default for KeyTable<K, V> {
    fn default() -> Self {
        KeyTable { state: Quick::default(), parts: Vec::new(), len: 0 }
    }
}

impl<K: Deref<Target = [u8]>, V> KeyTable<K, V> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the table has no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its approximate bytes, without those that its keys point to. Counts empty places too: a
    /// table that has just doubled is half empty.
    pub fn bytes(&self) -> usize {
        (self.len + self.len / 2) * size_of::<Entry<K, V>>()
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The interrupt of a statement that was stopped, as in all calls below.
    pub fn get(&self, key: &[u8]) -> Result<Option<&V>> {
        let hash = self.hash(key)?;
        let Some(part) = self.parts.get(self.part(hash)) else { return Ok(None) };
        let mut stopped = Ok(());
        let found = part.find(hash, |entry| is(entry, hash, key, &mut stopped));
        stopped.map(|()| found.map(|entry| &entry.value))
    }

    /// The value of a key, to change it.
    pub fn get_mut(&mut self, key: &[u8]) -> Result<Option<&mut V>> {
        let hash = self.hash(key)?;
        let part = self.part(hash);
        let Some(part) = self.parts.get_mut(part) else { return Ok(None) };
        let mut stopped = Ok(());
        let found = part.find_mut(hash, |entry| is(entry, hash, key, &mut stopped));
        stopped.map(|()| found.map(|entry| &mut entry.value))
    }

    /// Adds a key that is not there.
    pub fn insert(&mut self, key: K, value: V) -> Result<()> {
        let hash = self.hash(&key)?;
        self.add(hash, key, value);
        Ok(())
    }

    /// Adds a key, which `make` makes, unless the table has it. Returns whether it was added.
    pub fn insert_new(&mut self, key: &[u8], value: V, make: impl FnOnce() -> Result<K>) -> Result<bool> {
        let hash = self.hash(key)?;
        if let Some(part) = self.parts.get(self.part(hash)) {
            let mut stopped = Ok(());
            let found = part.find(hash, |entry| is(entry, hash, key, &mut stopped)).is_some();
            stopped?;
            if found {
                return Ok(false);
            }
        }
        self.add(hash, make()?, value);
        Ok(true)
    }

    /// Takes all entries out.
    pub fn drain(&mut self) -> impl Iterator<Item = (K, V)> + use<K, V> {
        self.len = 0;
        std::mem::take(&mut self.parts).into_iter().flatten().map(|entry| (entry.key, entry.value))
    }

    #[inline]
    fn hash(&self, key: &[u8]) -> Result<u64> {
        let mut hasher = self.state.build_hasher();
        for piece in work::byte_pieces(key, 1) {
            hasher.write(piece?);
        }
        Ok(hasher.finish())
    }

    fn part(&self, hash: u64) -> usize {
        (hash >> PART_SHIFT) as usize & self.parts.len().saturating_sub(1)
    }

    fn add(&mut self, hash: u64, key: K, value: V) {
        if self.parts.is_empty() {
            self.parts.push(HashTable::new());
        } else if self.len == SPLIT {
            self.split();
        }
        let part = self.part(hash);
        self.parts[part].insert_unique(hash, Entry { hash, key, value }, |entry| entry.hash);
        self.len += 1;
    }

    #[cold]
    fn split(&mut self) {
        let whole = std::mem::take(&mut self.parts);
        self.parts.resize_with(PARTS, HashTable::new);
        for entry in whole.into_iter().flatten() {
            let part = self.part(entry.hash);
            self.parts[part].insert_unique(entry.hash, entry, |entry| entry.hash);
        }
    }
}

/// Whether an entry has the key. If an interrupt ends the statement, `stopped` holds the error and
/// the answer means nothing.
#[inline]
fn is<K: Deref<Target = [u8]>, V>(
    entry: &Entry<K, V>,
    hash: u64,
    key: &[u8],
    stopped: &mut Result<()>,
) -> bool {
    entry.hash == hash
        && work::equal(&entry.key, key).unwrap_or_else(|error| {
            *stopped = Err(error);
            true
        })
}

#[cfg(test)]
mod tests {
    use runtime::work::STRIDE;

    use super::*;

    #[test]
    fn a_table_finds_its_keys_before_and_after_it_is_split() {
        let mut table: KeyTable<Box<[u8]>, usize> = KeyTable::default();
        let key = |number: usize| number.to_be_bytes();
        let get = |table: &KeyTable<Box<[u8]>, usize>, key: &[u8]| table.get(key).unwrap().copied();
        assert!(table.is_empty() && get(&table, &key(0)).is_none());
        assert!(table.get_mut(&key(0)).unwrap().is_none());
        for number in 0..2 * SPLIT {
            assert!(table.insert_new(&key(number), number, || Ok(Box::from(key(number)))).unwrap());
            assert!(!table.insert_new(&key(number / 2), 0, || unreachable!()).unwrap());
        }
        *table.get_mut(&key(7)).unwrap().unwrap() = 70;
        table.insert(Box::from(vec![1; 3 * STRIDE]), 80).unwrap();
        assert_eq!(table.len(), 2 * SPLIT + 1);
        assert_eq!((get(&table, &vec![1; 3 * STRIDE]), get(&table, &vec![2; 3 * STRIDE])), (Some(80), None));
        assert_eq!((get(&table, &key(7)), get(&table, &key(2 * SPLIT))), (Some(70), None));
        assert!((8..2 * SPLIT).all(|number| get(&table, &key(number)) == Some(number)));
        let mut all: Vec<usize> = table.drain().map(|(_, value)| value).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!((all.len(), table.len(), get(&table, &key(1))), (2 * SPLIT - 1, 0, None));
    }

    #[test]
    fn a_long_key_is_hashed_and_compared_within_a_budget() {
        let mut table: KeyTable<Box<[u8]>, ()> = KeyTable::default();
        let key = vec![1; 1 << 20];
        table.insert(key.clone().into(), ()).unwrap();
        let ended = |call: &mut dyn FnMut() -> bool| runtime::budget::within(1 << 18, call);
        assert!(ended(&mut || table.get(&key).is_err()));
        assert!(ended(&mut || table.get_mut(&key).is_err()));
        assert!(ended(&mut || table.insert_new(&key, (), || unreachable!()).is_err()));
        assert!(table.get(&key).unwrap().is_some());
    }
}
