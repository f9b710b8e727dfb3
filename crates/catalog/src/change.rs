//! Changes to a catalog: what a DDL statement does, kept in its transaction until the commit.
//!
//! A transaction with DDL owns an [`Overlay`]: the catalog it sees (its base plus its changes) and
//! the list of changes. Each object is changed whole. At commit the list is applied to the newest
//! shared catalog, whose other objects may have changed meanwhile; the table locks DDL holds to its
//! end keep two transactions from changing one object.

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

    /// The catalog with the changes so far. Its generation is marked as private, so no shared plan
    /// fits it.
    #[must_use]
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    /// The changes so far, in order.
    #[must_use]
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// The changes that take these back: the objects as they were in `base`.
    #[must_use]
    pub fn before(&self, base: &Catalog) -> Vec<Change> {
        let one = |change: &Change| match change {
            Change::PutTable(table) => table_of(base, table.oid),
            Change::DropTable(oid) => table_of(base, *oid),
            Change::PutSequence(sequence) => sequence_of(base, sequence.oid),
            Change::DropSequence(oid) => sequence_of(base, *oid),
            Change::PutSchema(schema) => schema_of(base, schema.oid),
            Change::DropSchema(oid) => schema_of(base, *oid),
            Change::PutStatistics(oid, _) | Change::DropStatistics(oid) => statistics_of(base, *oid),
        };
        self.changes.iter().rev().map(one).collect()
    }

    /// Definitions whose counters nobody uses any more when the transaction has ended: those it
    /// replaced or dropped when it committed, else those it made.
    #[must_use]
    pub fn unused_counters(&self, base: &Catalog, committed: bool) -> Vec<Arc<Sequence>> {
        unused(&self.changes, base, if committed { &self.catalog } else { base })
    }

    /// How many changes there are: a savepoint remembers it.
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

    /// Back to a savepoint's mark, over the base the overlay began with. Gives the definitions made
    /// since whose counters nobody uses any more.
    pub fn roll_back_to(&mut self, mark: usize, base: &Arc<Catalog>) -> Vec<Arc<Sequence>> {
        let gone = self.changes.split_off(mark);
        let mut catalog = Catalog::clone(base);
        for change in &self.changes {
            catalog.apply(change);
        }
        catalog.make_private();
        self.catalog = Arc::new(catalog);
        let mut unused = unused(&gone, base, &self.catalog);
        // Objects that the rest of the transaction replaced are in use until it ends.
        unused
            .retain(|sequence| base.sequence(sequence.oid).is_none_or(|old| old.counter != sequence.counter));
        unused
    }
}

/// The definitions that changes put over those of `base`, and those, with counters that are not in
/// use in a catalog.
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

fn table_of(base: &Catalog, oid: u32) -> Change {
    base.table(oid).map_or(Change::DropTable(oid), |table| Change::PutTable(Arc::clone(table)))
}

fn sequence_of(base: &Catalog, oid: u32) -> Change {
    base.sequence(oid).map_or(Change::DropSequence(oid), |old| Change::PutSequence(Arc::clone(old)))
}

fn schema_of(base: &Catalog, oid: u32) -> Change {
    base.schema_by_oid(oid).map_or(Change::DropSchema(oid), |old| Change::PutSchema(Arc::clone(old)))
}

fn statistics_of(base: &Catalog, oid: u32) -> Change {
    base.statistics(oid)
        .map_or(Change::DropStatistics(oid), |old| Change::PutStatistics(oid, Arc::clone(old)))
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
    /// A schema that every database begins with has been dropped.
    NoSchema(u32),
}

/// Stored bytes that are no definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Written by a newer version.
    Version(u8),
    /// Damaged.
    Malformed,
}

/// The version of the stored form, its first byte.
const STORED_VERSION: u8 = 5;

impl StoredObject {
    /// The stored form: a version byte, then the object.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![STORED_VERSION];
        // Writing plain data to memory has nothing that could fail.
        bytes.extend(postcard::to_allocvec(self).unwrap_or_default());
        bytes
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When the bytes are of another version or damaged.
    pub fn decode(bytes: &[u8]) -> Result<StoredObject, DecodeError> {
        match bytes.split_first() {
            Some((&STORED_VERSION, rest)) => postcard::from_bytes(rest).map_err(|_| DecodeError::Malformed),
            Some((&version, _)) => Err(DecodeError::Version(version)),
            None => Err(DecodeError::Malformed),
        }
    }

    /// The key of an object in the system tree: its kind and OID, so that statistics lie apart from
    /// the table.
    #[must_use]
    pub fn key(&self) -> [u8; 5] {
        let (kind, oid) = match self {
            StoredObject::Schema(schema) => (1, schema.oid),
            StoredObject::Table(table) => (2, table.oid),
            StoredObject::Sequence(sequence) => (3, sequence.oid),
            StoredObject::Statistics(oid, _) => (4, *oid),
            StoredObject::NoSchema(oid) => (1, *oid),
        };
        Change::stored_key(kind, oid)
    }

    /// The change that puts it into a catalog.
    #[must_use]
    pub fn into_change(self) -> Change {
        match self {
            StoredObject::Table(table) => Change::PutTable(Arc::new(table)),
            StoredObject::Sequence(sequence) => Change::PutSequence(Arc::new(sequence)),
            StoredObject::Schema(schema) => Change::PutSchema(Arc::new(schema)),
            StoredObject::Statistics(oid, statistics) => Change::PutStatistics(oid, Arc::new(statistics)),
            StoredObject::NoSchema(oid) => Change::DropSchema(oid),
        }
    }
}

impl Change {
    fn stored_key(kind: u8, oid: u32) -> [u8; 5] {
        let [a, b, c, d] = oid.to_be_bytes();
        [kind, a, b, c, d]
    }

    /// The change of the system tree: a key, and the object to put there; `None` removes it.
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
            // The catalog of a database begins with it, without a stored object that could be
            // removed.
            Change::DropSchema(PUBLIC) => put(StoredObject::NoSchema(PUBLIC)),
            Change::DropSchema(oid) => (Change::stored_key(1, *oid), None),
            Change::DropTable(oid) => (Change::stored_key(2, *oid), None),
            Change::DropSequence(oid) => (Change::stored_key(3, *oid), None),
            Change::DropStatistics(oid) => (Change::stored_key(4, *oid), None),
        }
    }
}
