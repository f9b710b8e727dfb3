//! Changes to a catalog: the work of a DDL statement, kept in its transaction until the commit.
//!
//! A transaction with DDL owns an [`Overlay`]: the catalog it sees (its base plus its changes) and
//! the list of changes. What must hold:
//!
//! - Each change replaces one whole object.
//! - A commit applies the list to the newest shared catalog. Other transactions may have changed
//!   other objects there meanwhile.
//! - No two transactions change one object at the same time: DDL holds its table locks until the
//!   transaction ends.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Catalog, PUBLIC, Schema, Sequence, Table, TableStatistics};

/// One object put into or taken out of a catalog.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A table is new or has changed.
    PutTable(Arc<Table>),
    /// A table is gone.
    DropTable(u32),
    /// A sequence is new or has changed.
    PutSequence(Arc<Sequence>),
    /// A sequence is gone.
    DropSequence(u32),
    /// A schema is new or has changed.
    PutSchema(Arc<Schema>),
    /// A schema is gone.
    DropSchema(u32),
    /// A table was analysed.
    PutStatistics(u32, Arc<TableStatistics>),
    /// A table's statistics are gone.
    DropStatistics(u32),
}

/// The catalog as one transaction sees it, with its own changes.
#[derive(Clone, Debug)]
pub struct Overlay {
    catalog: Arc<Catalog>,
    changes: Vec<Change>,
}

impl Overlay {
    /// An overlay without changes.
    #[must_use]
    pub fn new(base: Arc<Catalog>) -> Overlay {
        Overlay { catalog: base, changes: Vec::new() }
    }

    /// The catalog with the changes so far. Its generation is [`crate::PRIVATE_GENERATION`], so no
    /// shared plan fits it.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The changes so far, in order.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Definitions whose counters nobody uses after the transaction ends. After a commit these are
    /// the ones it replaced or dropped; after a rollback, the ones it made.
    #[must_use]
    pub fn unused_counters(&self, base: &Catalog, committed: bool) -> Vec<Arc<Sequence>> {
        unused(&self.changes, base, if committed { &self.catalog } else { base })
    }

    /// The number of changes. A savepoint remembers it as its mark.
    #[must_use]
    pub fn mark(&self) -> usize {
        self.changes.len()
    }

    /// Makes a change visible to this transaction.
    pub fn apply(&mut self, change: Change) {
        let mut catalog = Catalog::clone(&self.catalog);
        catalog.apply(&change);
        catalog.make_private();
        self.catalog = Arc::new(catalog);
        self.changes.push(change);
    }

    /// Rolls back to a savepoint's mark. `base` is the catalog the overlay began with. Returns the
    /// definitions made since the mark whose counters nobody uses any more.
    pub fn roll_back_to(&mut self, mark: usize, base: &Arc<Catalog>) -> Vec<Arc<Sequence>> {
        let gone = self.changes.split_off(mark);
        let mut catalog = Catalog::clone(base);
        for change in &self.changes {
            catalog.apply(change);
        }
        catalog.make_private();
        self.catalog = Arc::new(catalog);
        let mut unused = unused(&gone, base, &self.catalog);
        // Counters that the rest of the transaction replaced stay in use until it ends.
        unused
            .retain(|sequence| base.sequence(sequence.oid).is_none_or(|old| old.counter != sequence.counter));
        unused
    }
}

/// Definitions that `changes` put or that they replaced in `base`, if no definition in `used` has
/// their counter.
fn unused(changes: &[Change], base: &Catalog, used: &Catalog) -> Vec<Arc<Sequence>> {
    let mut unused: Vec<Arc<Sequence>> = Vec::new();
    for change in changes {
        let (oid, made) = match change {
            Change::PutSequence(sequence) => (sequence.oid, Some(sequence)),
            Change::DropSequence(oid) => (*oid, None),
            _ => continue,
        };
        let used = used.sequence(oid).map(|sequence| sequence.counter);
        let known = made.into_iter().chain(base.sequence(oid));
        unused.extend(known.filter(|sequence| Some(sequence.counter) != used).cloned());
    }
    unused
}

/// An object as the system trees store it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum StoredObject {
    /// A table.
    Table(Table),
    /// A sequence.
    Sequence(Sequence),
    /// A schema.
    Schema(Schema),
    /// A table's statistics.
    Statistics(u32, TableStatistics),
    /// A schema that every database begins with was dropped.
    NoSchema(u32),
    /// A table's statistics of a version that had others. They count as none.
    NoStatistics(u32),
}

/// Why stored bytes are not a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Another version of the program wrote them, in the stored form of this number.
    Version(u8),
    /// They are damaged.
    Malformed,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DecodeError::Version(found) => write!(
                f,
                "has the format \"definition {found}\", this version reads \"definition {STORED_VERSION}\": \
                 serve the data folder with the version that wrote it"
            ),
            DecodeError::Malformed => f.write_str("is damaged: restore the folder from a backup"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// The version of the stored form. It is the first byte.
const STORED_VERSION: u8 = 8;
/// The version before. Its tables and their statistics end before the extended ones.
const WITHOUT_EXTENDED: u8 = 7;
/// The version before that. Its tables end before their missing values, too.
const WITHOUT_MISSING_VALUES: u8 = 6;
/// The version before that. Its statistics differ too.
const OTHER_STATISTICS: u8 = 5;
/// The number of [`StoredObject::Statistics`] in the stored form.
const STATISTICS: u32 = 3;

impl StoredObject {
    /// The stored form: a version byte, then the object.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![STORED_VERSION];
        // Writing plain data to memory cannot fail.
        bytes.extend(postcard::to_allocvec(self).unwrap_or_default());
        bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// The bytes have another version or are damaged.
    pub fn decode(bytes: &[u8]) -> Result<StoredObject, DecodeError> {
        let Some((version, rest)) = bytes.split_first() else { return Err(DecodeError::Malformed) };
        let read = match *version {
            STORED_VERSION => postcard::from_bytes(rest),
            // Each 0 after the last byte stands for an empty list at the end. Bytes that are left
            // over do not count.
            WITHOUT_EXTENDED => postcard::from_bytes(&[rest, &[0]].concat()),
            WITHOUT_MISSING_VALUES => postcard::from_bytes(&[rest, &[0, 0]].concat()),
            OTHER_STATISTICS => match postcard::take_from_bytes::<(u32, u32)>(rest) {
                Ok(((STATISTICS, oid), _)) => Ok(StoredObject::NoStatistics(oid)),
                _ => postcard::from_bytes(&[rest, &[0, 0]].concat()),
            },
            version => return Err(DecodeError::Version(version)),
        };
        read.map_err(|_| DecodeError::Malformed)
    }

    /// The object's key in the system tree: its kind and OID. The kind keeps a table's statistics
    /// apart from the table.
    #[must_use]
    pub fn key(&self) -> [u8; 5] {
        let (kind, oid) = match self {
            StoredObject::Schema(schema) => (1, schema.oid),
            StoredObject::Table(table) => (2, table.oid),
            StoredObject::Sequence(sequence) => (3, sequence.oid),
            StoredObject::Statistics(oid, _) | StoredObject::NoStatistics(oid) => (4, *oid),
            StoredObject::NoSchema(oid) => (1, *oid),
        };
        Change::stored_key(kind, oid)
    }

    /// The change that puts the object into a catalog.
    #[must_use]
    pub fn into_change(self) -> Change {
        match self {
            StoredObject::Table(table) => Change::PutTable(Arc::new(table)),
            StoredObject::Sequence(sequence) => Change::PutSequence(Arc::new(sequence)),
            StoredObject::Schema(schema) => Change::PutSchema(Arc::new(schema)),
            StoredObject::Statistics(oid, statistics) => Change::PutStatistics(oid, Arc::new(statistics)),
            StoredObject::NoSchema(oid) => Change::DropSchema(oid),
            StoredObject::NoStatistics(oid) => Change::DropStatistics(oid),
        }
    }
}

impl Change {
    fn stored_key(kind: u8, oid: u32) -> [u8; 5] {
        let [a, b, c, d] = oid.to_be_bytes();
        [kind, a, b, c, d]
    }

    /// The write that the change makes in the system tree: the key, and the object to store there.
    /// None removes the key.
    #[must_use]
    pub fn stored(&self) -> ([u8; 5], Option<StoredObject>) {
        let put = |object: StoredObject| (object.key(), Some(object));
        match self {
            Change::PutTable(table) => put(StoredObject::Table(Table::clone(table))),
            Change::PutSequence(sequence) => put(StoredObject::Sequence(Sequence::clone(sequence))),
            Change::PutSchema(schema) => put(StoredObject::Schema(Schema::clone(schema))),
            Change::PutStatistics(oid, statistics) => {
                put(StoredObject::Statistics(*oid, TableStatistics::clone(statistics)))
            }
            // Every database's catalog begins with schema public. No stored object stands for it
            // that could be removed, so this one records that it is gone.
            Change::DropSchema(PUBLIC) => put(StoredObject::NoSchema(PUBLIC)),
            Change::DropSchema(oid) => (Change::stored_key(1, *oid), None),
            Change::DropTable(oid) => (Change::stored_key(2, *oid), None),
            Change::DropSequence(oid) => (Change::stored_key(3, *oid), None),
            Change::DropStatistics(oid) => (Change::stored_key(4, *oid), None),
        }
    }
}
