//! The system relations: their definitions, the same for all databases, and their rows, computed from a catalog.

use std::sync::Arc;

use super::Table;

/// The system relation of this OID.
#[must_use]
pub fn table_by_oid(_oid: u32) -> Option<&'static Arc<Table>> {
    todo!()
}

/// The system relation of this name in `pg_catalog` or `information_schema` (by the schema's OID).
#[must_use]
pub fn table_by_name(_schema: u32, _name: &str) -> Option<&'static Arc<Table>> {
    todo!()
}
