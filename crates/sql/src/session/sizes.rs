//! How large relations and databases are: pages counted by walks over inner nodes.

use storage::btree::Tree;
use storage::page::PAGE_SIZE;

use super::environment::SessionEnvironment;
use crate::catalog::{Catalog, Relation, Table, TreeAddress};
use crate::error::{SqlError, SqlState};
use crate::exec::{from_storage, tree};
use crate::types::Datum;

/// Which of a relation's trees count.
#[derive(Clone, Copy)]
struct Parts {
    own: bool,
    wide: bool,
    indexes: bool,
}

impl SessionEnvironment {
    /// Runs the function of this name, if it is one of these.
    pub(super) fn size<'a>(
        &self,
        name: &str,
        arguments: &[Datum<'a>],
    ) -> Option<Result<Datum<'a>, SqlError>> {
        let parts = |own, wide, indexes| Parts { own, wide, indexes };
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

    /// None for what is no relation (any more).
    fn relation_size(&self, oid: u32, parts: Parts) -> Result<Option<i64>, SqlError> {
        let Some((schema, name)) = self.catalog.relation_name(oid) else { return Ok(None) };
        let trees = match self.catalog.relation_in(schema, name) {
            Some(Relation::Table(table)) => trees(&table, parts),
            Some(Relation::Index(table, index)) if parts.own => {
                let key = table.indexes.iter().find(|other| other.oid == index);
                vec![key.map_or(table.tree, |index| index.tree)]
            }
            Some(_) => Vec::new(),
            None => return Ok(None),
        };
        match self.pages(&trees) {
            Ok(pages) => Ok(Some(pages)),
            // Nothing keeps a relation from being dropped meanwhile.
            Err(_) if self.definitions.catalog().relation_name(oid).is_none() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn database_size(&self, database: Option<Datum<'_>>) -> Result<Datum<'static>, SqlError> {
        let databases = self.shared.databases();
        let found = |entry: &Catalog| match database {
            Some(Datum::Text(name)) => entry.database.name == name,
            Some(Datum::Oid(oid)) => entry.database.oid == oid,
            _ => false,
        };
        let catalog =
            databases.iter().map(|definitions| definitions.catalog()).find(|catalog| found(catalog));
        match (catalog, database) {
            (Some(catalog), _) => {
                let every = Parts { own: true, wide: true, indexes: true };
                let trees: Vec<TreeAddress> =
                    catalog.tables().flat_map(|table| trees(table, every)).collect();
                self.pages(&trees).map(Datum::Int8)
            }
            (None, Some(Datum::Text(name))) => Err(SqlError::new(
                SqlState::INVALID_CATALOG_NAME,
                format!("database \"{name}\" does not exist"),
            )),
            (None, _) => Ok(Datum::Null),
        }
    }

    /// What trees take, in bytes.
    fn pages(&self, trees: &[TreeAddress]) -> Result<i64, SqlError> {
        let mut pages = 0;
        for address in trees.iter().filter(|address| **address != TreeAddress::NONE) {
            let tree: Tree = tree(*address);
            pages += tree.pages(self.shared.engine.store()).map_err(|error| from_storage(&error))?;
        }
        Ok(i64::try_from(pages.saturating_mul(PAGE_SIZE as u64)).unwrap_or(i64::MAX))
    }
}

fn trees(table: &Table, parts: Parts) -> Vec<TreeAddress> {
    let own = parts.own.then_some(table.tree).into_iter();
    let wide = parts.wide.then_some(table.wide).into_iter();
    let indexes = table.indexes.iter().filter(|_| parts.indexes).map(|index| index.tree);
    own.chain(wide).chain(indexes).collect()
}
