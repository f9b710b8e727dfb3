//! The system columns, which PostgreSQL gives each table, and the errors of statements that define
//! or change one.

use values::error::{SqlError, SqlState};

/// Their names.
pub const SYSTEM_COLUMNS: [&str; 6] = ["tableoid", "ctid", "xmin", "cmin", "xmax", "cmax"];

/// 0A000 for a statement that changes a system column. `verb` as in "cannot drop".
pub fn unchangeable(verb: &str, name: &str) -> Option<SqlError> {
    let message = || format!("cannot {verb} system column \"{name}\"");
    SYSTEM_COLUMNS.contains(&name).then(|| SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message()))
}

/// The error of an index or unique key over a system column.
pub fn in_index(name: &str) -> Option<SqlError> {
    let no_class = |type_: &str| {
        let message = format!("data type {type_} has no default operator class for access method \"btree\"");
        let hint = "You must specify an operator class for the index or define a default operator class for the data type.";
        Some(SqlError::new(SqlState::UNDEFINED_OBJECT, message).with_hint(hint))
    };
    match name {
        "xmin" | "xmax" => no_class("xid"),
        "cmin" | "cmax" => no_class("cid"),
        "tableoid" | "ctid" => {
            let message = "index creation on system columns is not supported";
            Some(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
        _ => None,
    }
}

/// The error of a foreign key from or to a system column.
pub fn in_foreign_key(name: &str) -> Option<SqlError> {
    let message = "system columns cannot be used in foreign keys";
    SYSTEM_COLUMNS.contains(&name).then(|| SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}
