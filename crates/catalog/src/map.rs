//! A map whose copies share their entries: a trie over the keys' hashes, 16 ways a level.
//!
//! - Cloning the map copies one pointer.
//! - A change copies the nodes between the root and its key, at most 16, and only those that
//!   another copy still holds. So a transaction that changes thousands of definitions pays for each
//!   of them alone.
//!
//! Two published crates have such maps. `rpds` cannot look up (schema, name) without making an
//! owned key. `imbl` brings 8 crates and is slower. For a copy, an insertion and a removal among
//! 10,000 names it takes 1.5 us, this map 0.6 us (release, 2026-11-25).

use std::hash::{BuildHasher, Hash};
use std::slice;
use std::sync::Arc;

use runtime::hash::Quick;

/// Children of a branch, and the number of hash bits that choose one.
const WAYS: usize = 16;
const BITS: u32 = WAYS.trailing_zeros();

type Child<K, V> = Option<Arc<Node<K, V>>>;

#[derive(Clone, Debug)]
enum Node<K, V> {
    Branch([Child<K, V>; WAYS]),
    /// The entries that share one hash.
    Leaf(u64, Vec<(K, V)>),
}

/// The map.
#[derive(Clone, Debug)]
pub(super) struct Map<K, V> {
    root: Child<K, V>,
    hasher: Quick,
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Map<K, V> {
        Map { root: None, hasher: Quick::default() }
    }
}

fn way(hash: u64, level: u32) -> usize {
    (hash >> (level * BITS)) as usize % WAYS
}

impl<K: Clone + Eq + Hash, V: Clone> Map<K, V> {
    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.find(key, |other| other == key)
    }

    /// The value of the key that `is` accepts. `like` must have the same hash as that key.
    pub fn find(&self, like: impl Hash, is: impl Fn(&K) -> bool) -> Option<&V> {
        let hash = self.hasher.hash_one(like);
        let (mut node, mut level) = (self.root.as_deref()?, 0);
        loop {
            match node {
                Node::Branch(children) => node = children[way(hash, level)].as_deref()?,
                Node::Leaf(other, _) if *other != hash => return None,
                Node::Leaf(_, entries) => {
                    return entries.iter().find(|(key, _)| is(key)).map(|(_, value)| value);
                }
            }
            level += 1;
        }
    }

    /// Stores a value under a key; replaces the key's former value.
    pub fn insert(&mut self, key: K, value: V) {
        let hash = self.hasher.hash_one(&key);
        put(&mut self.root, 0, hash, (key, value));
    }

    /// Removes a key and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let value = self.get(key)?.clone();
        take(&mut self.root, 0, self.hasher.hash_one(key), key);
        Some(value)
    }

    /// The values, in no particular order.
    pub fn values(&self) -> Values<'_, K, V> {
        Values { branches: vec![slice::from_ref(&self.root).iter()], entries: [].iter() }
    }
}

fn put<K: Clone + Eq, V: Clone>(place: &mut Child<K, V>, level: u32, hash: u64, entry: (K, V)) {
    let Some(node) = place else {
        *place = Some(Arc::new(Node::Leaf(hash, vec![entry])));
        return;
    };
    match Arc::make_mut(node) {
        Node::Branch(children) => put(&mut children[way(hash, level)], level + 1, hash, entry),
        Node::Leaf(other, entries) if *other == hash => {
            entries.retain(|(key, _)| *key != entry.0);
            entries.push(entry);
        }
        Node::Leaf(other, _) => {
            let other = way(*other, level);
            let mut children = [const { None }; WAYS];
            children[other] = place.take();
            put(&mut children[way(hash, level)], level + 1, hash, entry);
            *place = Some(Arc::new(Node::Branch(children)));
        }
    }
}

/// Removes a key that is present, and the nodes that become empty.
fn take<K: Clone + Eq, V: Clone>(place: &mut Child<K, V>, level: u32, hash: u64, key: &K) {
    let Some(node) = place else { return };
    let is_empty = match Arc::make_mut(node) {
        Node::Branch(children) => {
            take(&mut children[way(hash, level)], level + 1, hash, key);
            children.iter().all(Option::is_none)
        }
        Node::Leaf(_, entries) => {
            entries.retain(|(other, _)| other != key);
            entries.is_empty()
        }
    };
    if is_empty {
        *place = None;
    }
}

/// Iterates over the values of a map.
pub(super) struct Values<'m, K, V> {
    branches: Vec<slice::Iter<'m, Child<K, V>>>,
    entries: slice::Iter<'m, (K, V)>,
}

impl<'m, K, V> Iterator for Values<'m, K, V> {
    type Item = &'m V;

    fn next(&mut self) -> Option<&'m V> {
        loop {
            if let Some((_, value)) = self.entries.next() {
                return Some(value);
            }
            match self.branches.last_mut()?.next().map(Option::as_deref) {
                None => drop(self.branches.pop()),
                Some(None) => {}
                Some(Some(Node::Branch(children))) => self.branches.push(children.iter()),
                Some(Some(Node::Leaf(_, entries))) => self.entries = entries.iter(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn sorted<K: Clone + Eq + Hash>(map: &Map<K, u32>) -> Vec<u32> {
        let mut values: Vec<u32> = map.values().copied().collect();
        values.sort_unstable();
        values
    }

    #[test]
    fn a_copy_keeps_its_entries_while_another_changes() {
        let mut map = Map::default();
        let mut model = BTreeMap::new();
        for key in 0..2000_u32 {
            map.insert(key, key * 3);
            model.insert(key, key * 3);
        }
        let (copy, before) = (map.clone(), model.clone());
        for key in (0..2000).step_by(3) {
            assert_eq!(map.remove(&key), model.remove(&key));
            map.insert(key + 1, 7);
            model.insert(key + 1, 7);
        }
        assert_eq!(map.remove(&0), None);
        for key in 0..2010 {
            assert_eq!(map.get(&key), model.get(&key));
            assert_eq!(copy.get(&key), before.get(&key));
        }
        let mut expected: Vec<u32> = model.into_values().collect();
        expected.sort_unstable();
        assert_eq!(sorted(&map), expected);
        assert_eq!(sorted(&copy), before.into_values().collect::<Vec<_>>());
    }

    #[test]
    fn an_emptied_map_has_no_nodes_left() {
        let mut map = Map::default();
        (0..500_u32).for_each(|key| map.insert(key, key));
        (0..500).for_each(|key| assert_eq!(map.remove(&key), Some(key)));
        assert!(map.root.is_none());
    }

    /// A key type whose values all have the same hash.
    #[derive(Clone, Debug, PartialEq, Eq)]
    struct Same(u32);

    impl Hash for Same {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            state.write_u32(0);
        }
    }

    #[test]
    fn the_map_separates_keys_of_one_hash() {
        let mut map = Map::default();
        (0..5).for_each(|key| map.insert(Same(key), key));
        map.insert(Same(2), 20);
        assert_eq!(map.remove(&Same(1)), Some(1));
        assert_eq!(map.get(&Same(1)), None);
        assert_eq!(sorted(&map), [0, 3, 4, 20]);
        assert_eq!(map.find(Same(9), |key| key.0 == 2), Some(&20));
    }
}
