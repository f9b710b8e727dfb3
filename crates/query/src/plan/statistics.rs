//! CREATE STATISTICS and ALTER STATISTICS.

use super::QualifiedName;

/// A command over extended statistics. DROP STATISTICS is a [`super::Command::Drop`].
#[derive(Debug, Clone)]
pub enum StatisticsCommand {
    /// CREATE STATISTICS.
    Create(CreateStatistics),
    /// ALTER STATISTICS.
    Alter {
        /// The object.
        name: QualifiedName,
        /// IF EXISTS.
        if_exists: bool,
        /// The change.
        action: StatisticsAction,
    },
}

/// CREATE STATISTICS.
#[derive(Debug, Clone)]
pub struct CreateStatistics {
    /// Its name; None = PostgreSQL's default name, in the table's schema.
    pub name: Option<QualifiedName>,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// The kinds as written. None of them stands for all.
    pub kinds: Vec<String>,
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The table.
    pub table: QualifiedName,
}

/// The action of an ALTER STATISTICS.
#[derive(Debug, Clone)]
pub enum StatisticsAction {
    /// RENAME TO.
    Rename(String),
    /// OWNER TO. None: the session's own role.
    Owner(Option<String>),
    /// SET SCHEMA.
    SetSchema(String),
    /// SET STATISTICS. None is the default.
    Target(Option<i32>),
}
