//! The catalog: immutable snapshots of a database's schemas, tables, indexes, constraints and
//! sequences.
//!
//! Every session reads a shared `Arc<Catalog>`. A commit with DDL publishes a new one with the next
//! generation. Each plan remembers the generation it was made for. What must hold:
//!
//! 1. A published catalog never changes. Equal generations of one database mean equal catalogs. A
//!    transaction's own uncommitted view has the generation [`PRIVATE_GENERATION`], which no cached
//!    plan has.
//! 2. The maps by name and by relation agree with the objects in the maps by OID. They hold names,
//!    a table's indexes and statistics objects, its foreign keys by the table they reference, and a
//!    sequence's owner.
//! 3. System relations (`pg_catalog`, `information_schema`) are the same for all databases and are
//!    not stored.

#![cfg_attr(not(test), deny(clippy::disallowed_types, clippy::disallowed_methods))]
#![forbid(unsafe_code)]

mod change;
pub mod counter;
mod extended;
mod map;
mod objects;
pub mod pg_catalog;
mod sampled;
mod size;
mod statistics;
pub mod stored;
pub mod system_columns;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use change::{Change, DecodeError, Overlay, StoredObject};
pub use extended::*;
use map::Map;
pub use objects::*;
pub use sampled::SampledValue;
pub use statistics::{ColumnStatistics, CommonValue, TableStatistics};
use values::identifier;

/// The OID of the database that clients connect to when they create others. It cannot be dropped.
pub const TEMPLATE_DATABASE: u32 = 1;

/// The generation of a transaction's own view.
pub(crate) const PRIVATE_GENERATION: u64 = u64::MAX;

/// A foreign key, as its referenced table lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// OID of the referencing table.
    pub child: u32,
    /// The position of the key among the referencing table's foreign keys.
    pub key: usize,
}

/// The relation that a name in a schema stands for.
#[derive(Clone, Debug)]
pub enum Relation {
    /// A table, or a system relation.
    Table(Arc<Table>),
    /// A sequence.
    Sequence(Arc<Sequence>),
    /// An index: its table and the index's OID.
    Index(Arc<Table>, u32),
}

impl Relation {
    /// The relation's OID.
    #[must_use]
    pub fn oid(&self) -> u32 {
        match self {
            Relation::Table(table) => table.oid,
            Relation::Sequence(sequence) => sequence.oid,
            Relation::Index(_, index) => *index,
        }
    }
}

/// A database's definitions at one moment.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// The number of catalogs that this database has published.
    pub generation: u64,
    /// The generation of the last change of anything but statistics.
    defined: u64,
    /// The database.
    pub database: DatabaseEntry,
    /// All databases of the folder.
    pub databases: Arc<[DatabaseEntry]>,
    /// All roles of the folder.
    pub roles: Arc<[Role]>,
    schemas: Map<u32, Arc<Schema>>,
    schema_names: Map<String, u32>,
    tables: Map<u32, Arc<Table>>,
    sequences: Map<u32, Arc<Sequence>>,
    statistics: Map<u32, Arc<TableStatistics>>,
    /// The generation of the last change of a table's statistics.
    analyzed: Map<u32, u64>,
    /// Every relation name. Tables, sequences and indexes of a schema share one name space.
    names: Map<(u32, String), Name>,
    /// The table of each index.
    indexed: Map<u32, u32>,
    /// The names of statistics objects, which share a name space of their own: the table and the
    /// object.
    extended_names: Map<(u32, String), (u32, u32)>,
    references: Map<u32, Vec<Reference>>,
    /// The sequences that belong to columns of a table.
    owned: Map<u32, Vec<u32>>,
    /// Approximate memory that the definitions take: see `size.rs`.
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Table(u32),
    Sequence(u32),
    Index { table: u32, index: u32 },
}

/// A name that a change gives to an object. Relations and statistics objects have names within a
/// schema, whose OID comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenName<'c> {
    /// A schema's.
    Schema(&'c str),
    /// A relation's.
    Relation(u32, &'c str),
    /// A statistics object's.
    Statistics(u32, &'c str),
}

/// The table that a change puts into a catalog, if it has statistics objects, and these.
fn statistics_of(change: &Change) -> Option<(u32, &[StatisticsObject])> {
    match change {
        Change::PutTable(table) if !table.extended.is_empty() => Some((table.oid, &table.extended)),
        _ => None,
    }
}

/// The names of the relations that a change puts into a catalog, with their schema.
fn relation_names(change: &Change) -> Vec<(u32, &str, Name)> {
    match change {
        Change::PutTable(table) => {
            let indexes = table
                .index_names()
                .map(|(name, index)| (table.schema, name, Name::Index { table: table.oid, index }));
            std::iter::once((table.schema, &table.name[..], Name::Table(table.oid))).chain(indexes).collect()
        }
        Change::PutSequence(sequence) => {
            vec![(sequence.schema, &sequence.name, Name::Sequence(sequence.oid))]
        }
        _ => Vec::new(),
    }
}

impl Catalog {
    /// The catalog of a new database: schemas public, pg_catalog and information_schema, no tables.
    #[must_use]
    pub fn new(database: DatabaseEntry, databases: Arc<[DatabaseEntry]>, roles: Arc<[Role]>) -> Catalog {
        let mut catalog = Catalog {
            generation: 1,
            defined: 1,
            database,
            databases,
            roles,
            schemas: Map::default(),
            schema_names: Map::default(),
            tables: Map::default(),
            sequences: Map::default(),
            statistics: Map::default(),
            analyzed: Map::default(),
            names: Map::default(),
            indexed: Map::default(),
            extended_names: Map::default(),
            references: Map::default(),
            owned: Map::default(),
            bytes: 0,
        };
        for (oid, name) in
            [(PG_CATALOG, "pg_catalog"), (INFORMATION_SCHEMA, "information_schema"), (PUBLIC, "public")]
        {
            catalog.apply(&Change::PutSchema(Arc::new(Schema { oid, name: name.to_owned() })));
        }
        catalog
    }

    /// The catalog after a transaction's changes, with the next generation.
    #[must_use]
    pub fn with_changes(&self, changes: &[Change]) -> Catalog {
        let mut next = self.clone();
        for change in changes {
            next.apply(change);
        }
        next.begin_generation(changes);
        next
    }

    /// The generation after that of the catalog from which this one was made by these changes.
    fn begin_generation(&mut self, changes: &[Change]) {
        self.generation += 1;
        for change in changes {
            match change {
                Change::PutStatistics(table, _) | Change::DropStatistics(table) => {
                    self.analyzed.insert(*table, self.generation);
                }
                Change::DropTable(table) => {
                    self.analyzed.remove(table);
                    self.defined = self.generation;
                }
                _ => self.defined = self.generation,
            }
        }
    }

    /// Whether a plan that was made for an earlier generation is as good for this one. Then nothing
    /// but statistics of other tables than these has changed since.
    #[must_use]
    pub fn keeps_plan(&self, generation: u64, mut tables: impl Iterator<Item = u32>) -> bool {
        generation >= self.defined
            && tables.all(|table| self.analyzed.get(&table).is_none_or(|changed| *changed <= generation))
    }

    /// Applies changes as [`Catalog::with_changes`] does, unless one takes the name of another
    /// object. Calls `between` before each change.
    ///
    /// # Errors
    /// The kind of the object that has the name, and the name.
    pub fn with_named(
        &self,
        changes: &[Change],
        between: impl Fn(),
    ) -> Result<Catalog, (&'static str, String)> {
        let mut next = self.clone();
        for change in changes {
            between();
            match next.taken(change) {
                Some(taken) => return Err(taken),
                None => next.apply(change),
            }
        }
        next.begin_generation(changes);
        Ok(next)
    }

    /// The name that a change would take from another object: that object's kind, then the name.
    #[must_use]
    pub fn taken(&self, change: &Change) -> Option<(&'static str, String)> {
        if let Change::PutSchema(schema) = change
            && self.schema(&schema.name).is_some_and(|other| other.oid != schema.oid)
        {
            return Some(("schema", schema.name.clone()));
        }
        // A table's own indexes may exchange their names.
        let same = |other, own| match (other, own) {
            (Name::Index { table, .. }, Name::Index { table: other, .. }) => table == other,
            (one, other) => one == other,
        };
        let relation = relation_names(change).into_iter().find_map(|(schema, name, own)| {
            let there = self.name(schema, name)?;
            (!same(there, own)).then(|| ("relation", name.to_owned()))
        });
        relation.or_else(|| {
            let (table, objects) = statistics_of(change)?;
            let taken = objects.iter().find(|object| {
                let there = self.statistics_in(object.schema, &object.name);
                there.is_some_and(|(other, _)| other.oid != table)
            });
            taken.map(|object| ("statistics object", object.name.clone()))
        })
    }

    /// The names that the change gives to objects which do not have them in this catalog.
    #[must_use]
    pub fn new_names<'c>(&self, change: &'c Change) -> Vec<GivenName<'c>> {
        if let Change::PutSchema(schema) = change {
            let known = self.schema_by_oid(schema.oid).is_some_and(|old| old.name == schema.name);
            return if known { Vec::new() } else { vec![GivenName::Schema(&schema.name)] };
        }
        let names = relation_names(change).into_iter();
        let new = names.filter(|(schema, name, own)| self.name(*schema, name) != Some(*own));
        let mut given: Vec<GivenName<'_>> =
            new.map(|(schema, name, _)| GivenName::Relation(schema, name)).collect();
        let (_, objects) = statistics_of(change).unwrap_or_default();
        let own = |object: &&StatisticsObject| {
            let there = self.statistics_in(object.schema, &object.name);
            there.is_none_or(|(_, other)| other.oid != object.oid)
        };
        given.extend(
            objects.iter().filter(own).map(|object| GivenName::Statistics(object.schema, &object.name)),
        );
        given
    }

    /// The same catalog with another list of databases or roles, with the next generation.
    #[must_use]
    pub fn with_shared(&self, databases: Arc<[DatabaseEntry]>, roles: Arc<[Role]>) -> Catalog {
        let generation = self.generation + 1;
        Catalog { generation, defined: generation, databases, roles, ..self.clone() }
    }

    fn make_private(&mut self) {
        self.generation = PRIVATE_GENERATION;
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::PutTable(table) => {
                self.forget_table(table.oid);
                self.names.insert((table.schema, table.name.clone()), Name::Table(table.oid));
                for (name, index) in table.index_names() {
                    let name = (table.schema, name.to_owned());
                    self.names.insert(name, Name::Index { table: table.oid, index });
                    self.indexed.insert(index, table.oid);
                }
                for object in &table.extended {
                    self.extended_names.insert((object.schema, object.name.clone()), (table.oid, object.oid));
                }
                for (key, foreign) in table.foreign_keys.iter().enumerate() {
                    add(&mut self.references, foreign.parent, Reference { child: table.oid, key });
                }
                self.bytes += table.bytes();
                self.tables.insert(table.oid, Arc::clone(table));
                for foreign in &table.foreign_keys {
                    self.sort_references(foreign.parent);
                }
            }
            Change::DropTable(oid) => self.forget_table(*oid),
            Change::PutSequence(sequence) => {
                self.forget_sequence(sequence.oid);
                self.names.insert((sequence.schema, sequence.name.clone()), Name::Sequence(sequence.oid));
                if let Some((table, _)) = sequence.owner {
                    add(&mut self.owned, table, sequence.oid);
                }
                self.bytes += sequence.bytes();
                self.sequences.insert(sequence.oid, Arc::clone(sequence));
            }
            Change::DropSequence(oid) => self.forget_sequence(*oid),
            Change::PutSchema(schema) => {
                self.forget_schema(schema.oid);
                self.schema_names.insert(schema.name.clone(), schema.oid);
                self.bytes += schema.bytes();
                self.schemas.insert(schema.oid, Arc::clone(schema));
            }
            Change::DropSchema(oid) => self.forget_schema(*oid),
            Change::PutStatistics(oid, statistics) => {
                self.forget_statistics(*oid);
                self.bytes += statistics.bytes();
                self.statistics.insert(*oid, Arc::clone(statistics));
            }
            Change::DropStatistics(oid) => self.forget_statistics(*oid),
        }
    }

    /// Orders the foreign keys to a table by age, the order in which PostgreSQL runs their
    /// triggers.
    fn sort_references(&mut self, parent: u32) {
        let Some(mut list) = self.references.remove(&parent) else { return };
        let tables = &self.tables;
        list.sort_by_key(|reference| {
            tables.get(&reference.child).map(|child| child.foreign_keys[reference.key].oid)
        });
        self.references.insert(parent, list);
    }

    fn forget_schema(&mut self, oid: u32) {
        let Some(old) = self.schemas.remove(&oid) else { return };
        self.bytes -= old.bytes();
        if self.schema_names.get(&old.name) == Some(&oid) {
            self.schema_names.remove(&old.name);
        }
    }

    fn forget_table(&mut self, oid: u32) {
        let Some(old) = self.tables.remove(&oid) else { return };
        self.bytes -= old.bytes();
        self.names.remove(&(old.schema, old.name.clone()));
        for (name, index) in old.index_names() {
            self.names.remove(&(old.schema, name.to_owned()));
            self.indexed.remove(&index);
        }
        for object in &old.extended {
            self.extended_names.remove(&(object.schema, object.name.clone()));
        }
        for foreign in &old.foreign_keys {
            retain(&mut self.references, foreign.parent, |reference| reference.child != oid);
        }
    }

    fn forget_statistics(&mut self, oid: u32) {
        let old = self.statistics.remove(&oid);
        self.bytes -= old.map_or(0, |old| old.bytes());
    }

    fn forget_sequence(&mut self, oid: u32) {
        let Some(old) = self.sequences.remove(&oid) else { return };
        self.bytes -= old.bytes();
        self.names.remove(&(old.schema, old.name.clone()));
        if let Some((table, _)) = old.owner {
            retain(&mut self.owned, table, |sequence| *sequence != oid);
        }
    }

    fn name(&self, schema: u32, name: &str) -> Option<Name> {
        self.names.find((schema, name), |(other, key)| *other == schema && key == name).copied()
    }

    /// Approximate memory that the definitions take, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Bytes that a change adds to the size of the definitions; 0 if it makes them smaller.
    #[must_use]
    pub fn growth(&self, change: &Change) -> usize {
        let (new, old) = match change {
            Change::PutTable(table) => (table.bytes(), self.table(table.oid).map(|old| old.bytes())),
            Change::PutSequence(sequence) => {
                (sequence.bytes(), self.sequence(sequence.oid).map(|old| old.bytes()))
            }
            Change::PutSchema(schema) => {
                (schema.bytes(), self.schema_by_oid(schema.oid).map(|old| old.bytes()))
            }
            Change::PutStatistics(oid, statistics) => {
                (statistics.bytes(), self.statistics(*oid).map(|old| old.bytes()))
            }
            _ => return 0,
        };
        new.saturating_sub(old.unwrap_or(0))
    }

    /// The schema of this name.
    #[must_use]
    pub fn schema(&self, name: &str) -> Option<&Arc<Schema>> {
        self.schemas.get(self.schema_names.find(name, |other| other == name)?)
    }

    /// The schema of this OID.
    #[must_use]
    pub fn schema_by_oid(&self, oid: u32) -> Option<&Arc<Schema>> {
        self.schemas.get(&oid)
    }

    /// The name of a schema, or "???".
    #[must_use]
    pub fn schema_name(&self, oid: u32) -> &str {
        self.schema_by_oid(oid).map_or("???", |schema| &schema.name)
    }

    /// All schemas, in no particular order.
    pub fn schemas(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.schemas.values()
    }

    /// A table or system relation by OID.
    #[must_use]
    pub fn table(&self, oid: u32) -> Option<&Arc<Table>> {
        self.tables.get(&oid).or_else(|| pg_catalog::table_by_oid(oid))
    }

    /// The stored tables, in no particular order.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<Table>> {
        self.tables.values()
    }

    /// A sequence by OID.
    #[must_use]
    pub fn sequence(&self, oid: u32) -> Option<&Arc<Sequence>> {
        self.sequences.get(&oid)
    }

    /// All sequences, in no particular order.
    pub fn sequences(&self) -> impl Iterator<Item = &Arc<Sequence>> {
        self.sequences.values()
    }

    /// The sequences that belong to columns of a table.
    pub fn owned_sequences(&self, table: u32) -> impl Iterator<Item = &Arc<Sequence>> {
        self.owned.get(&table).into_iter().flatten().filter_map(|oid| self.sequences.get(oid))
    }

    /// The statistics that ANALYZE found for a table.
    #[must_use]
    pub fn statistics(&self, oid: u32) -> Option<&Arc<TableStatistics>> {
        self.statistics.get(&oid)
    }

    /// The foreign keys that reference a table.
    #[must_use]
    pub fn references(&self, oid: u32) -> &[Reference] {
        self.references.get(&oid).map_or(&[], Vec::as_slice)
    }

    /// The statistics object of this name in a schema, with its table.
    #[must_use]
    pub fn statistics_in(&self, schema: u32, name: &str) -> Option<(&Arc<Table>, &StatisticsObject)> {
        let is_it = |(other, key): &(u32, String)| *other == schema && key == name;
        let (table, oid) = self.extended_names.find((schema, name), is_it)?;
        let table = self.tables.get(table)?;
        table.extended.iter().find(|object| object.oid == *oid).map(|object| (table, object))
    }

    /// The statistics object that a name stands for. Without a schema the search path decides.
    #[must_use]
    pub fn statistics_object(
        &self,
        path: &[String],
        schema: Option<&str>,
        name: &str,
    ) -> Option<(&Arc<Table>, &StatisticsObject)> {
        if let Some(schema) = schema {
            return self.statistics_in(self.schema(schema)?.oid, name);
        }
        path.iter().find_map(|schema| self.statistics_in(self.schema(schema)?.oid, name))
    }

    /// The relation that a name in a schema stands for.
    #[must_use]
    pub fn relation_in(&self, schema: u32, name: &str) -> Option<Relation> {
        if schema == PG_CATALOG || schema == INFORMATION_SCHEMA {
            return pg_catalog::table_by_name(schema, name).map(|table| Relation::Table(Arc::clone(table)));
        }
        match self.name(schema, name)? {
            Name::Table(oid) => self.tables.get(&oid).map(|table| Relation::Table(Arc::clone(table))),
            Name::Sequence(oid) => self.sequences.get(&oid).map(|s| Relation::Sequence(Arc::clone(s))),
            Name::Index { table, index } => {
                self.tables.get(&table).map(|table| Relation::Index(Arc::clone(table), index))
            }
        }
    }

    /// The relation that a name stands for. Without a schema the search path decides; pg_catalog
    /// comes first unless the path names it.
    #[must_use]
    pub fn relation(&self, path: &[String], schema: Option<&str>, name: &str) -> Option<Relation> {
        if let Some(schema) = schema {
            return self.relation_in(self.schema(schema)?.oid, name);
        }
        let implied = (!path.iter().any(|schema| schema == "pg_catalog")).then_some(PG_CATALOG);
        let named = path.iter().filter_map(|schema| self.schema(schema).map(|schema| schema.oid));
        implied.into_iter().chain(named).find_map(|schema| self.relation_in(schema, name))
    }

    /// The relation that a name in parts stands for. The schema may precede the last part, and the
    /// database may precede the schema.
    #[must_use]
    pub fn relation_of(&self, path: &[String], names: &[String]) -> Option<Relation> {
        match names {
            [name] => self.relation(path, None, name),
            [schema, name] => self.relation(path, Some(schema), name),
            [database, schema, name] if *database == self.database.name => {
                self.relation(path, Some(schema), name)
            }
            _ => None,
        }
    }

    /// The relation that a constant names; None for a constant that is an OID itself.
    #[must_use]
    pub fn named_by_constant(&self, path: &[String], text: &str) -> Option<Relation> {
        if stored::is_number(text) {
            return None;
        }
        self.relation_of(path, &identifier::split(text, '.')?)
    }

    /// The schema in which new objects are created: the first of the path that exists.
    #[must_use]
    pub fn creation_schema(&self, path: &[String]) -> Option<&Arc<Schema>> {
        path.iter().find_map(|schema| self.schema(schema))
    }

    /// The name of a relation as pg_class shows it: (schema's OID, name).
    #[must_use]
    pub fn relation_name(&self, oid: u32) -> Option<(u32, &str)> {
        if let Some(table) = self.table(oid) {
            return Some((table.schema, &table.name));
        }
        if let Some(sequence) = self.sequences.get(&oid) {
            return Some((sequence.schema, &sequence.name));
        }
        let table = self.tables.get(self.indexed.get(&oid)?)?;
        table.index_names().find(|(_, index)| *index == oid).map(|(name, _)| (table.schema, name))
    }

    /// The highest OID of any object. After a restart the counter of OIDs goes on from here.
    #[must_use]
    pub fn highest_oid(&self) -> u32 {
        let tables = self.tables.values().flat_map(|table| {
            let indexes = table.indexes.iter().flat_map(|index| [index.oid, index.constraint]);
            let primary = table.primary_key.iter().flat_map(|key| [key.oid, key.constraint]);
            let constraints = table.checks.iter().map(|check| check.oid);
            let foreign = table.foreign_keys.iter().map(|key| key.oid);
            let extended = table.extended.iter().map(|object| object.oid);
            let keys = indexes.chain(primary).chain(constraints).chain(foreign);
            [table.oid].into_iter().chain(keys).chain(extended)
        });
        let schemas = self.schemas.values().map(|schema| schema.oid);
        let sequences = self.sequences.values().flat_map(|sequence| [sequence.oid, sequence.counter]);
        tables.chain(sequences).chain(schemas).max().unwrap_or(0).max(FIRST_USER_OID - 1)
    }
}

/// Adds a value to a key's list.
fn add<T: Clone>(lists: &mut Map<u32, Vec<T>>, key: u32, value: T) {
    let mut list = lists.remove(&key).unwrap_or_default();
    list.push(value);
    lists.insert(key, list);
}

/// Keeps the values of a key's list that `keep` accepts.
fn retain<T: Clone>(lists: &mut Map<u32, Vec<T>>, key: u32, keep: impl Fn(&T) -> bool) {
    let Some(mut list) = lists.remove(&key) else { return };
    list.retain(keep);
    if !list.is_empty() {
        lists.insert(key, list);
    }
}
