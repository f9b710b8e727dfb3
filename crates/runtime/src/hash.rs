//! Hash maps of the engine. The standard library's draw a seed from the system for each thread.
//! These do not, so that a run of the model machine repeats itself.
//!
//! Take [`HashMap`] for keys that the engine makes: page numbers, transactions, slots. Its hash has
//! the same seed always. Take [`SeededMap`] for keys that a client chooses: addresses, names,
//! texts, values. An attacker who knew the seed could choose keys that collide, and a lookup among
//! n such keys takes n steps. Its seed is drawn once a process, at the first map, from
//! [`crate::random`].
//!
//! Both hash with SipHash-1-3. Make a map by `default()`.
//!
//! Take [`Quick`] for the tables of one statement, whose every row is hashed: keys of joins, groups
//! and sorts. Take it too for what each statement looks up in its own session. It hashes with
//! foldhash, which takes a quarter of SipHash's time for short keys. Each table draws a seed of its
//! own, so a client cannot compute collisions from outside; foldhash does not promise more.

#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // the interface to hash maps

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher};

use foldhash::SharedSeed;
use foldhash::fast::{FoldHasher, SeedableRandomState};

use sync::LazyLock;

use crate::random;

/// A map whose keys the engine makes.
pub type HashMap<K, V> = std::collections::HashMap<K, V, BuildHasherDefault<DefaultHasher>>;
/// A set whose members the engine makes.
pub type HashSet<T> = std::collections::HashSet<T, BuildHasherDefault<DefaultHasher>>;
/// A map whose keys a client chooses.
pub type SeededMap<K, V> = std::collections::HashMap<K, V, Seeded>;

/// A set whose members a client chooses.
pub type SeededSet<T> = std::collections::HashSet<T, Seeded>;

/// A map of one statement's rows, or of one session's names.
pub type QuickMap<K, V> = std::collections::HashMap<K, V, Quick>;
/// A set of one statement's rows.
pub type QuickSet<T> = std::collections::HashSet<T, Quick>;

/// Makes hashers that nobody outside the process can predict.
#[derive(Debug, Clone, Copy)]
pub struct Seeded {
    /// A hasher that has taken the process's 128 secret bits. SipHash's state depends on all of
    /// them, so collisions cannot be computed without them.
    begun: &'static DefaultHasher,
}

impl Default for Seeded {
    fn default() -> Seeded {
        static BEGUN: LazyLock<DefaultHasher> = LazyLock::new(|| {
            let mut seed = [0; 16];
            random::fill(&mut seed).expect("the machine gives randomness");
            let mut hasher = DefaultHasher::new();
            hasher.write(&seed);
            hasher
        });
        Seeded { begun: &BEGUN }
    }
}

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    #[inline]
    fn build_hasher(&self) -> DefaultHasher {
        self.begun.clone()
    }
}

/// Makes the fast hashers of one table. Two tables hash the same key differently; a table's clone
/// hashes as the table does.
#[derive(Debug, Clone)]
pub struct Quick(SeedableRandomState);

impl Default for Quick {
    fn default() -> Quick {
        static SHARED: LazyLock<SharedSeed> = LazyLock::new(|| SharedSeed::from_u64(random::u64()));
        Quick(SeedableRandomState::with_seed(random::u64(), &SHARED))
    }
}

impl BuildHasher for Quick {
    type Hasher = FoldHasher<'static>;

    #[inline]
    fn build_hasher(&self) -> FoldHasher<'static> {
        self.0.build_hasher()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_have_equal_hashes_and_the_seed_changes_them() {
        let (one, other) = (Seeded::default(), Seeded::default());
        assert_eq!(one.hash_one("key"), other.hash_one("key"));
        let unseeded = BuildHasherDefault::<DefaultHasher>::default();
        assert_ne!(one.hash_one("key"), unseeded.hash_one("key"));
    }

    #[test]
    fn each_quick_table_has_a_seed_of_its_own_and_its_clone_shares_it() {
        let (one, other) = (Quick::default(), Quick::default());
        assert_eq!(one.hash_one("key"), one.clone().hash_one("key"));
        assert_ne!(one.hash_one("key"), other.hash_one("key"));
    }
}
