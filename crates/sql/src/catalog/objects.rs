//! Definitions of the objects a database holds. Plain data: immutable once in a catalog, serialisable for the system
//! trees, numbered by OIDs that are never used again.

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::database::Counter;
use crate::plan::{Identity, ReferentialAction};
use values::types::Type;

/// Where a tree lives in the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeAddress {
    /// The tree's number, unique in the store.
    pub id: u32,
    /// Its root page, which never moves.
    pub root: u32,
}

impl TreeAddress {
    /// No tree: system relations are computed.
    pub const NONE: TreeAddress = TreeAddress { id: 0, root: 0 };
}

/// A schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: String,
}

/// A table with everything that hangs on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its OID.
    pub oid: u32,
    /// The schema's OID.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// The tree of its rows, ordered by primary key, or by a hidden row number where there is none.
    pub tree: TreeAddress,
    /// The tree of the values its rows hold out of line, or none when no row can be long enough to need it.
    pub wide: TreeAddress,
    /// Its columns in the order of their attribute numbers; dropped ones stay as holes.
    pub columns: Vec<Column>,
    /// Its primary key.
    pub primary_key: Option<PrimaryKey>,
    /// Its secondary indexes (those of UNIQUE constraints too).
    pub indexes: Vec<Index>,
    /// CHECK constraints.
    pub checks: Vec<CheckConstraint>,
    /// Foreign keys to other tables.
    pub foreign_keys: Vec<ForeignKey>,
    /// How its rows are laid out, computed when first needed: [`Table::shape`].
    #[serde(skip)]
    pub layout: Layout,
}

/// A value derived from the columns: not part of the definition, so a copy (which may be changed) begins without it.
#[derive(Debug, Default)]
pub struct Layout(std::sync::OnceLock<values::row::RowShape>);

impl Clone for Layout {
    fn clone(&self) -> Layout {
        Layout::default()
    }
}

impl PartialEq for Layout {
    fn eq(&self, _: &Layout) -> bool {
        true
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(with = "TypeDefinition")]
    pub type_: Type,
    /// NOT NULL, by its own declaration or as part of the primary key.
    pub not_null: bool,
    /// DEFAULT as SQL text. Relations go by their OID, `nextval('20001'::regclass)`: they may be renamed.
    pub default: Option<String>,
    /// GENERATED ... AS IDENTITY.
    #[serde(with = "IdentityOption")]
    pub identity: Option<Identity>,
    /// A hole left by DROP COLUMN: always NULL, never named.
    pub dropped: bool,
}

/// A primary key: the order of the table's own tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrimaryKey {
    /// OID of the index PostgreSQL's catalogs show for it.
    pub oid: u32,
    /// OID of the constraint.
    pub constraint: u32,
    /// Its name, of the index and of the constraint.
    pub name: String,
    /// Positions of the columns.
    pub columns: Vec<u32>,
    /// INCLUDE: positions of columns that its index names beside its keys. The tree's rows hold them anyway.
    pub included: Vec<u32>,
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// Its tree.
    pub tree: TreeAddress,
    /// UNIQUE.
    pub unique: bool,
    /// NULLS NOT DISTINCT.
    pub nulls_not_distinct: bool,
    /// OID of the UNIQUE constraint it stands for, or 0.
    pub constraint: u32,
    /// Its columns.
    pub columns: Vec<IndexKey>,
    /// INCLUDE: positions of columns that it names beside its keys. Its tree does not hold them, scans read them from the
    /// table's.
    pub included: Vec<u32>,
}

/// A column of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexKey {
    /// The column's position in the table.
    pub column: u32,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
}

/// A CHECK constraint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckConstraint {
    /// OID of the constraint.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The condition as SQL text, with relations by their OIDs.
    pub text: String,
    /// Whether all rows meet it: not those from before it was added NOT VALID.
    pub valid: bool,
}

/// A foreign key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// OID of the constraint.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// Positions of the referencing columns.
    pub columns: Vec<u32>,
    /// OID of the referenced table.
    pub parent: u32,
    /// Positions of the referenced columns there.
    pub parent_columns: Vec<u32>,
    /// ON DELETE.
    #[serde(with = "ActionDefinition")]
    pub on_delete: ReferentialAction,
    /// ON UPDATE.
    #[serde(with = "ActionDefinition")]
    pub on_update: ReferentialAction,
    /// Whether all rows meet it: not those from before it was added NOT VALID.
    pub valid: bool,
}

/// A sequence's definition. A restart gives it another counter, so that it commits and
/// rolls back with its transaction, although what a counter gives out never comes back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    /// Its OID.
    pub oid: u32,
    /// The schema's OID.
    pub schema: u32,
    /// Its name.
    pub name: String,
    /// smallint, integer or bigint.
    #[serde(with = "TypeDefinition")]
    pub type_: Type,
    /// The number of its counter: its own OID at first.
    pub counter: u32,
    /// What the counter gives first.
    pub first: i64,
    /// START WITH
    pub start: i64,
    /// INCREMENT BY
    pub increment: i64,
    /// MINVALUE
    pub minimum: i64,
    /// MAXVALUE
    pub maximum: i64,
    /// CACHE
    pub cache: i64,
    /// CYCLE
    pub cycle: bool,
    /// The column it belongs to: (table's OID, column's position).
    pub owner: Option<(u32, u32)>,
    /// The counter itself, once it is in use.
    #[serde(skip)]
    pub place: CounterPlace,
}

/// Where a sequence's counter is kept. All definitions that have its number share it, so a statement that still sees an
/// old one counts on with what others have left, and the counter goes with the last catalog that knows it.
#[derive(Clone, Default)]
pub struct CounterPlace(Arc<OnceLock<Counter>>);

impl CounterPlace {
    /// The counter, when it has been in use.
    pub(crate) fn counter(&self) -> Option<&Counter> {
        self.0.get()
    }

    /// Puts a counter there, unless another one was first; gives the one that is there.
    pub(crate) fn put(&self, counter: Counter) -> &Counter {
        self.0.get_or_init(|| counter)
    }
}

impl fmt::Debug for CounterPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CounterPlace")
    }
}

impl PartialEq for CounterPlace {
    fn eq(&self, _: &CounterPlace) -> bool {
        true
    }
}

/// A role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Role {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// May do everything.
    pub superuser: bool,
    /// May log in.
    pub login: bool,
}

/// A database of the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseEntry {
    /// Its OID.
    pub oid: u32,
    /// Its name.
    pub name: String,
}

/// OID of the role that exists from the start.
pub const BOOTSTRAP_ROLE: u32 = 10;
/// OID of schema pg_catalog.
pub const PG_CATALOG: u32 = 11;
/// OID of schema public.
pub const PUBLIC: u32 = 2200;
/// OID of schema information_schema.
pub const INFORMATION_SCHEMA: u32 = 13_000;
/// The first OID given to users' objects.
pub const FIRST_USER_OID: u32 = 16_384;

impl Table {
    /// How its rows are laid out.
    #[inline]
    pub fn shape(&self) -> &values::row::RowShape {
        self.layout.0.get_or_init(|| {
            let types: Vec<Type> = self.columns.iter().map(|column| column.type_).collect();
            values::row::RowShape::new(&types)
        })
    }

    /// Whether its rows or an index are in a tree that it had not `then`.
    pub fn has_trees_beyond(&self, then: &Table) -> bool {
        self.tree != then.tree
            || self.indexes.iter().any(|index| then.indexes.iter().all(|other| other.tree != index.tree))
    }

    /// All its trees.
    pub fn trees(&self) -> impl Iterator<Item = TreeAddress> + '_ {
        let own = [self.tree, self.wide].into_iter().filter(|tree| *tree != TreeAddress::NONE);
        self.indexes.iter().map(|index| index.tree).chain(own)
    }

    /// Whether a row may be too long for a tree's entry, so that some of its values must go out of line. Dropped columns
    /// count: rows may hold their values still.
    #[must_use]
    pub fn may_be_wide(&self) -> bool {
        // Key columns stand in the row and in its key.
        const SURELY_FITS: usize = storage::btree::MAX_ENTRY - storage::btree::MAX_KEY - 400;
        let lengths = self.columns.iter().map(|column| values::types::length::most_bytes(column.type_));
        let total = lengths.sum::<Option<usize>>();
        total.is_none_or(|total| total + 4 * self.columns.len() > SURELY_FITS)
    }

    /// The OID of the unique key that a foreign key to these columns, in any order, is bound to: the primary key, or the
    /// oldest of the others.
    #[must_use]
    pub fn unique_key(&self, columns: &[u32]) -> Option<u32> {
        let fits =
            |key: &[u32]| key.len() == columns.len() && columns.iter().all(|column| key.contains(column));
        if let Some(key) = self.primary_key.as_ref().filter(|key| fits(&key.columns)) {
            return Some(key.oid);
        }
        let unique = self.indexes.iter().filter(|index| index.unique);
        let unique = unique.filter(|index| {
            let key: Vec<u32> = index.columns.iter().map(|key| key.column).collect();
            fits(&key)
        });
        unique.map(|index| index.oid).min()
    }

    /// Whether the primary key or a unique index has the column.
    #[must_use]
    pub fn is_unique(&self, column: u32) -> bool {
        self.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column))
            || self
                .indexes
                .iter()
                .any(|index| index.unique && index.columns.iter().any(|key| key.column == column))
    }

    /// Whether a key of the table, or one of its references, reads the column.
    #[must_use]
    pub fn is_keyed(&self, column: usize) -> bool {
        let column = column as u32;
        self.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column))
            || self.indexes.iter().any(|index| index.columns.iter().any(|key| key.column == column))
            || self.foreign_keys.iter().any(|key| key.columns.contains(&column))
    }

    /// The position of a column that is there.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| !column.dropped && column.name == name)
    }

    /// The columns that are there, with their positions.
    pub fn live_columns(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| !column.dropped)
    }

    /// Whether its rows are computed from the catalog instead of stored.
    #[must_use]
    pub fn is_virtual(&self) -> bool {
        self.tree == TreeAddress::NONE
    }

    /// The names its indexes and constraints use.
    pub fn index_names(&self) -> impl Iterator<Item = (&str, u32)> {
        let primary = self.primary_key.iter().map(|key| (key.name.as_str(), key.oid));
        primary.chain(self.indexes.iter().map(|index| (index.name.as_str(), index.oid)))
    }

    /// Whether one of its constraints has this name.
    #[must_use]
    pub fn has_constraint(&self, name: &str) -> bool {
        self.constraint_names().any(|other| other == name)
    }

    /// The name of the constraint with this OID.
    #[must_use]
    pub fn constraint_name(&self, oid: u32) -> Option<&str> {
        self.constraints().find(|(other, _)| *other == oid).map(|(_, name)| name)
    }

    /// The OID of the constraint with this name.
    #[must_use]
    pub fn constraint_oid(&self, name: &str) -> Option<u32> {
        self.constraints().find(|(_, other)| *other == name).map(|(oid, _)| oid)
    }

    /// Its constraints, by OID and name.
    fn constraints(&self) -> impl Iterator<Item = (u32, &str)> {
        let unique = self.indexes.iter().filter(|index| index.constraint != 0);
        let unique = unique.map(|index| (index.constraint, &index.name));
        let checks = self.checks.iter().map(|check| (check.oid, &check.name));
        let foreign_keys = self.foreign_keys.iter().map(|key| (key.oid, &key.name));
        let primary_key = self.primary_key.iter().map(|key| (key.constraint, &key.name));
        let all = primary_key.chain(unique).chain(checks).chain(foreign_keys);
        all.map(|(oid, name)| (oid, name.as_str()))
    }

    /// The names of its constraints.
    pub fn constraint_names(&self) -> impl Iterator<Item = &str> {
        self.constraints().map(|(_, name)| name)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Type")]
struct TypeDefinition {
    oid: u32,
    modifier: i32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "ReferentialAction")]
enum ActionDefinition {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
    SetDefault,
}

/// `Option<Identity>` as one small number.
struct IdentityOption;

impl IdentityOption {
    fn serialize<S: serde::Serializer>(value: &Option<Identity>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(match value {
            None => 0,
            Some(Identity::Always) => 1,
            Some(Identity::ByDefault) => 2,
        })
    }

    fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Identity>, D::Error> {
        match u8::deserialize(deserializer)? {
            0 => Ok(None),
            1 => Ok(Some(Identity::Always)),
            2 => Ok(Some(Identity::ByDefault)),
            _ => Err(serde::de::Error::custom("identity is 0, 1 or 2")),
        }
    }
}
