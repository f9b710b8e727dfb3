//! More functions over the catalog, which clients' queries call. Most show objects that do not
//! exist here; `catalog::pg_catalog::function` answers them.

use super::arguments::{give_text, int};
use super::catalog::asked;
use crate::function::{Function, func};
use values::types::oid;

const TEXT: u32 = oid::TEXT;
const OID: u32 = oid::OID;
const NAME: u32 = oid::NAME;
const CLASS: u32 = oid::REGCLASS;
const BOOL: u32 = oid::BOOL;

/// A number of bytes in the largest unit that leaves at least 10 of it, rounded with halves up.
fn size_pretty(bytes: i64) -> String {
    let mut size = i128::from(bytes);
    if size.abs() < 10 * 1024 {
        return format!("{size} bytes");
    }
    let rounded = |half: i128| (half + half.signum()) / 2;
    // The number is kept doubled, so that its last bit decides the rounding.
    size /= 512;
    for unit in ["kB", "MB", "GB", "TB"] {
        if size.abs() < 20 * 1024 - 1 {
            return format!("{} {unit}", rounded(size));
        }
        size /= 1024;
    }
    format!("{} PB", rounded(size))
}

pub(super) static FUNCTIONS: &[Function] = &[
    func("pg_size_pretty", &[oid::INT8], TEXT, |cx, a| give_text(&size_pretty(int(a[0])?), cx.arena)),
    asked!("pg_get_partkeydef", &[OID], TEXT),
    asked!("pg_get_viewdef", &[OID], TEXT),
    asked!("pg_get_viewdef", &[OID, BOOL], TEXT),
    asked!("pg_get_viewdef", &[OID, oid::INT4], TEXT),
    asked!("pg_get_viewdef", &[TEXT], TEXT),
    asked!("pg_get_viewdef", &[TEXT, BOOL], TEXT),
    asked!("pg_get_triggerdef", &[OID], TEXT),
    asked!("pg_get_triggerdef", &[OID, BOOL], TEXT),
    asked!("pg_get_ruledef", &[OID], TEXT),
    asked!("pg_get_ruledef", &[OID, BOOL], TEXT),
    asked!("pg_get_functiondef", &[OID], TEXT),
    asked!("pg_get_function_result", &[OID], TEXT),
    asked!("pg_get_function_arguments", &[OID], TEXT),
    asked!("pg_get_function_identity_arguments", &[OID], TEXT),
    asked!("pg_get_statisticsobjdef", &[OID], TEXT),
    asked!("pg_get_statisticsobjdef_columns", &[OID], TEXT),
    asked!("pg_get_statisticsobjdef_expressions", &[OID], oid::TEXT_ARRAY),
    asked!("pg_statistics_obj_is_visible", &[OID], BOOL),
    asked!("pg_tablespace_location", &[OID], TEXT),
    asked!("pg_relation_is_publishable", &[CLASS], BOOL),
    asked!("pg_relation_is_updatable", &[CLASS, BOOL], oid::INT4),
    asked!("pg_operator_is_visible", &[OID], BOOL),
    asked!("pg_collation_is_visible", &[OID], BOOL),
    asked!("pg_opclass_is_visible", &[OID], BOOL),
    asked!("has_table_privilege", &[TEXT, TEXT], BOOL),
    asked!("has_table_privilege", &[NAME, TEXT, TEXT], BOOL),
    asked!("has_table_privilege", &[OID, TEXT, TEXT], BOOL),
    asked!("has_table_privilege", &[OID, TEXT], BOOL),
    asked!("has_table_privilege", &[NAME, OID, TEXT], BOOL),
    asked!("has_table_privilege", &[OID, OID, TEXT], BOOL),
    asked!("has_any_column_privilege", &[TEXT, TEXT], BOOL),
    asked!("has_any_column_privilege", &[NAME, TEXT, TEXT], BOOL),
    asked!("has_any_column_privilege", &[OID, TEXT, TEXT], BOOL),
    asked!("has_any_column_privilege", &[OID, TEXT], BOOL),
    asked!("has_any_column_privilege", &[NAME, OID, TEXT], BOOL),
    asked!("has_any_column_privilege", &[OID, OID, TEXT], BOOL),
    asked!("has_sequence_privilege", &[TEXT, TEXT], BOOL),
    asked!("has_sequence_privilege", &[NAME, TEXT, TEXT], BOOL),
    asked!("has_sequence_privilege", &[OID, TEXT, TEXT], BOOL),
    asked!("has_sequence_privilege", &[OID, TEXT], BOOL),
    asked!("has_sequence_privilege", &[NAME, OID, TEXT], BOOL),
    asked!("has_sequence_privilege", &[OID, OID, TEXT], BOOL),
    asked!("has_database_privilege", &[TEXT, TEXT], BOOL),
    asked!("has_database_privilege", &[NAME, TEXT, TEXT], BOOL),
    asked!("has_database_privilege", &[OID, TEXT, TEXT], BOOL),
    asked!("has_database_privilege", &[OID, TEXT], BOOL),
    asked!("has_database_privilege", &[NAME, OID, TEXT], BOOL),
    asked!("has_database_privilege", &[OID, OID, TEXT], BOOL),
    asked!("has_schema_privilege", &[TEXT, TEXT], BOOL),
    asked!("has_schema_privilege", &[NAME, TEXT, TEXT], BOOL),
    asked!("has_schema_privilege", &[OID, TEXT, TEXT], BOOL),
    asked!("has_schema_privilege", &[OID, TEXT], BOOL),
    asked!("has_schema_privilege", &[NAME, OID, TEXT], BOOL),
    asked!("has_schema_privilege", &[OID, OID, TEXT], BOOL),
    asked!("has_tablespace_privilege", &[TEXT, TEXT], BOOL),
    asked!("has_tablespace_privilege", &[NAME, TEXT, TEXT], BOOL),
    asked!("has_tablespace_privilege", &[OID, TEXT, TEXT], BOOL),
    asked!("has_tablespace_privilege", &[OID, TEXT], BOOL),
    asked!("has_tablespace_privilege", &[NAME, OID, TEXT], BOOL),
    asked!("has_tablespace_privilege", &[OID, OID, TEXT], BOOL),
    asked!("has_type_privilege", &[TEXT, TEXT], BOOL),
    asked!("has_type_privilege", &[NAME, TEXT, TEXT], BOOL),
    asked!("has_type_privilege", &[OID, TEXT, TEXT], BOOL),
    asked!("has_type_privilege", &[OID, TEXT], BOOL),
    asked!("has_type_privilege", &[NAME, OID, TEXT], BOOL),
    asked!("has_type_privilege", &[OID, OID, TEXT], BOOL),
    asked!("has_function_privilege", &[OID, TEXT], BOOL),
    asked!("has_function_privilege", &[NAME, OID, TEXT], BOOL),
    asked!("has_function_privilege", &[OID, OID, TEXT], BOOL),
    asked!("has_column_privilege", &[TEXT, TEXT, TEXT], BOOL),
    asked!("has_column_privilege", &[TEXT, oid::INT2, TEXT], BOOL),
    asked!("has_column_privilege", &[OID, TEXT, TEXT], BOOL),
    asked!("has_column_privilege", &[OID, oid::INT2, TEXT], BOOL),
    asked!("has_column_privilege", &[NAME, TEXT, TEXT, TEXT], BOOL),
    asked!("has_column_privilege", &[NAME, TEXT, oid::INT2, TEXT], BOOL),
    asked!("has_column_privilege", &[NAME, OID, TEXT, TEXT], BOOL),
    asked!("has_column_privilege", &[NAME, OID, oid::INT2, TEXT], BOOL),
    asked!("has_column_privilege", &[OID, TEXT, TEXT, TEXT], BOOL),
    asked!("has_column_privilege", &[OID, TEXT, oid::INT2, TEXT], BOOL),
    asked!("has_column_privilege", &[OID, OID, TEXT, TEXT], BOOL),
    asked!("has_column_privilege", &[OID, OID, oid::INT2, TEXT], BOOL),
    asked!("pg_has_role", &[NAME, TEXT], BOOL),
    asked!("pg_has_role", &[OID, TEXT], BOOL),
    asked!("pg_has_role", &[NAME, NAME, TEXT], BOOL),
    asked!("pg_has_role", &[NAME, OID, TEXT], BOOL),
    asked!("pg_has_role", &[OID, NAME, TEXT], BOOL),
    asked!("pg_has_role", &[OID, OID, TEXT], BOOL),
];
