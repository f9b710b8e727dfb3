//! Sizes of relations and databases, counted in pages by walks over inner nodes.
//!
//! What must hold:
//!
//! 1. A walk takes no lock, so a commit may free the trees under it. An error of a walk counts only
//!    if the newest definitions still have the same trees. Otherwise the walk begins again with
//!    theirs.
//! 2. DROP DATABASE frees trees without a change of that database's catalog. So an error in a
//!    closed database means that there is no such database.
//! 3. A relation that is gone has the size NULL. In a database's sum it counts 0.

use std::sync::Arc;

use txn::folder::PAGE_SIZE;
use txn::trees::Tree;

use super::environment::SessionEnvironment;
use crate::shared::definitions::Definitions;
use catalog::{Catalog, Relation, Table, TreeAddress};
use execution::{from_storage, tree};
use values::error::{SqlError, SqlState};
use values::types::Datum;

/// Which of a relation's trees count.
#[derive(Clone, Copy)]
struct Parts {
    own: bool,
    out_of_line: bool,
    indexes: bool,
}

impl SessionEnvironment {
    /// Runs the function of this name, if it is one of these.
    pub(super) fn size<'a>(
        &self,
        name: &str,
        arguments: &[Datum<'a>],
    ) -> Option<Result<Datum<'a>, SqlError>> {
        let parts = |own, out_of_line, indexes| Parts { own, out_of_line, indexes };
        let parts = match name {
            "pg_relation_size" => {
                let fork = arguments.get(1);
                parts(fork.is_none_or(|fork| matches!(fork, Datum::Text("main"))), false, false)
            }
            "pg_table_size" => parts(true, true, false),
            "pg_indexes_size" => parts(false, false, true),
            "pg_total_relation_size" => parts(true, true, true),
            "pg_database_size" => return Some(self.database_size(arguments.first().copied())),
            _ => return None,
        };
        let Some(Datum::Oid(oid)) = arguments.first() else { return Some(Ok(Datum::Null)) };
        let size = self.relation_size(*oid, parts);
        Some(size.map(|size| size.map_or(Datum::Null, Datum::Int8)))
    }

    /// The bytes of a relation, or `None` if there is no such relation now.
    fn relation_size(&self, oid: u32, parts: Parts) -> Result<Option<i64>, SqlError> {
        self.size_of(&self.definitions, &self.catalog, &|catalog| relation_trees(catalog, oid, parts))
    }

    fn database_size(&self, database: Option<Datum<'_>>) -> Result<Datum<'static>, SqlError> {
        let databases = self.shared.databases();
        let found = |entry: &Catalog| match database {
            Some(Datum::Text(name)) => entry.database.name == name,
            Some(Datum::Oid(oid)) => entry.database.oid == oid,
            _ => false,
        };
        match (databases.iter().find(|definitions| found(&definitions.catalog())), database) {
            (Some(definitions), _) => {
                let every = Parts { own: true, out_of_line: true, indexes: true };
                let catalog = definitions.catalog();
                let sizes = catalog.tables().map(|table| {
                    let now = |catalog: &Catalog| catalog.table(table.oid).map(|table| trees(table, every));
                    self.size_of(definitions, &catalog, &now).map(|size| size.unwrap_or(0))
                });
                sizes.sum::<Result<i64, SqlError>>().map(Datum::Int8)
            }
            (None, Some(Datum::Text(name))) => Err(SqlError::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("database \"{name}\" does not exist"),
            )),
            (None, _) => Ok(Datum::Null),
        }
    }

    /// The bytes of the trees that `found` finds in a catalog, or `None` if it finds none. No lock
    /// keeps the trees from being freed meanwhile. So a failed walk starts again if the newest
    /// definitions have other trees.
    fn size_of(
        &self,
        definitions: &Definitions,
        catalog: &Arc<Catalog>,
        found: &dyn Fn(&Catalog) -> Option<Vec<TreeAddress>>,
    ) -> Result<Option<i64>, SqlError> {
        let mut next = found(catalog);
        while let Some(trees) = next {
            match self.pages(&trees) {
                Ok(size) => return Ok(Some(size)),
                // DROP DATABASE frees trees without a change in that database's catalog.
                Err(_) if definitions.is_closed() => return Ok(None),
                Err(error) => {
                    next = found(&definitions.catalog());
                    if next.as_ref() == Some(&trees) {
                        return Err(error);
                    }
                }
            }
        }
        Ok(None)
    }

    /// The bytes of trees.
    fn pages(&self, trees: &[TreeAddress]) -> Result<i64, SqlError> {
        let mut pages = 0;
        for address in trees.iter().filter(|address| **address != TreeAddress::NONE) {
            let tree: Tree = tree(*address);
            pages +=
                txn::trees::pages(self.shared.engine.folder(), tree).map_err(|error| from_storage(&error))?;
        }
        Ok(i64::try_from(pages.saturating_mul(PAGE_SIZE as u64)).unwrap_or(i64::MAX))
    }
}

/// The trees of a relation, or `None` if there is no such relation.
fn relation_trees(catalog: &Catalog, oid: u32, parts: Parts) -> Option<Vec<TreeAddress>> {
    let (schema, name) = catalog.relation_name(oid)?;
    Some(match catalog.relation_in(schema, name)? {
        Relation::Table(table) => trees(&table, parts),
        Relation::Index(table, index) if parts.own => {
            let key = table.indexes.iter().find(|other| other.oid == index);
            vec![key.map_or(table.tree, |index| index.tree)]
        }
        Relation::Index(..) | Relation::Sequence(_) => Vec::new(),
    })
}

fn trees(table: &Table, parts: Parts) -> Vec<TreeAddress> {
    let own = parts.own.then_some(table.tree).into_iter();
    let out_of_line = parts.out_of_line.then_some(table.out_of_line).into_iter();
    let indexes = table.indexes.iter().filter(|_| parts.indexes).map(|index| index.tree);
    own.chain(out_of_line).chain(indexes).collect()
}
