//! Statements that are no queries: transaction control, settings, prepared statements, definitions,
//! maintenance.
//!
//! The binder resolves names in definitions as far as it can. A command decides whether an object
//! exists only when it runs, under the locks it takes.

use catalog::ReferentialAction;
use std::sync::Arc;

use super::{OwnedSequence, QualifiedName, SequenceOptions, Statement, StatisticsCommand};
use catalog::Identity;
use expressions::expr::Expr;
use values::types::Type;

/// EXECUTE name (arguments).
#[derive(Debug, Clone)]
pub struct PreparedCall {
    /// The prepared statement's name.
    pub name: String,
    /// Constant expressions. Execution casts them to the parameters' types.
    pub arguments: Vec<Expr>,
    /// For each argument that is a literal, its position, for errors.
    pub places: Vec<Option<u32>>,
}

/// A statement that is no query.
#[derive(Debug)]
pub enum Command {
    /// BEGIN, START TRANSACTION.
    Begin {
        /// The modes that the statement asks for.
        modes: TransactionModes,
        /// The completion tag.
        tag: &'static str,
    },
    /// COMMIT, END.
    Commit {
        /// AND CHAIN: begin a new transaction with the same modes.
        chain: bool,
    },
    /// ROLLBACK, ABORT.
    Rollback {
        /// AND CHAIN: begin a new transaction with the same modes.
        chain: bool,
    },
    /// SAVEPOINT name.
    Savepoint(String),
    /// ROLLBACK TO name.
    RollbackTo(String),
    /// RELEASE name.
    Release(String),
    /// SET TRANSACTION ..., or SET SESSION CHARACTERISTICS with `session`.
    SetTransaction {
        /// The modes to set.
        modes: TransactionModes,
        /// Whether they apply to later transactions of the session, not to this one.
        session: bool,
    },
    /// SET name = value; None = DEFAULT.
    Set {
        /// The setting in lower case.
        name: String,
        /// Its new value as text. A list is joined by ", ".
        value: Option<String>,
        /// SET LOCAL.
        local: bool,
    },
    /// SHOW name; None = ALL.
    Show(Option<String>),
    /// RESET name; None = ALL.
    Reset(Option<String>),
    /// PREPARE name (types) AS statement-text.
    Prepare {
        /// Its name.
        name: String,
        /// The declared parameter types.
        types: Vec<Type>,
        /// The statement's own text.
        text: String,
        /// The number of characters before it in the client's text.
        before: u32,
        /// The client's text.
        source: Arc<str>,
    },
    /// EXECUTE.
    Execute(PreparedCall),
    /// DEALLOCATE name; None = ALL.
    Deallocate(Option<String>),
    /// DISCARD.
    Discard(Discard),
    /// DECLARE name CURSOR FOR query.
    DeclareCursor(DeclareCursor),
    /// FETCH or MOVE FROM name.
    Fetch {
        /// The cursor.
        name: String,
        /// Direction and number of rows.
        way: Way,
        /// MOVE: skip the rows, do not return them.
        skip: bool,
    },
    /// CLOSE name; None = ALL.
    CloseCursor(Option<String>),
    /// LOCK TABLE.
    LockTable {
        /// The tables' names.
        tables: Vec<QualifiedName>,
        /// The mode.
        mode: txn::TableLock,
        /// NOWAIT.
        nowait: bool,
    },
    /// COPY.
    Copy(Copy),
    /// EXPLAIN.
    Explain(Explain),
    /// VACUUM and ANALYZE: the tables, or all.
    Vacuum {
        /// The tables' names, each with the columns to analyse (none: all). Empty means all tables.
        tables: Vec<(QualifiedName, Vec<String>)>,
        /// Whether to purge dead versions.
        vacuum: bool,
        /// Whether to collect statistics.
        analyze: bool,
        /// Whether to report the work done.
        verbose: bool,
    },
    /// CHECKPOINT.
    Checkpoint,
    /// SET CONSTRAINTS ALL: no constraint is deferrable.
    SetConstraints,
    /// REINDEX.
    Reindex {
        /// The index to rebuild, or the table, schema or database whose indexes to rebuild.
        what: Reindex,
        /// CONCURRENTLY: refused in a transaction block.
        concurrently: bool,
    },
    /// A command without an effect here (UNLISTEN): its completion tag.
    NoEffect(String),
    /// ALTER DATABASE or ALTER SCHEMA .. OWNER TO. The one existing role owns everything.
    #[allow(missing_docs, reason = "an owner is a role's name; None for the session's own")]
    AlterOwner { database: bool, name: String, role: Option<String> },
    /// CREATE DATABASE.
    #[allow(missing_docs, reason = "as above")]
    CreateDatabase { name: String, owner: Option<String> },
    /// DROP DATABASE.
    DropDatabase {
        /// Its name.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// CREATE SCHEMA.
    CreateSchema {
        /// Its name.
        name: String,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// The role named by AUTHORIZATION, if it is a name and not a keyword.
        owner: Option<String>,
    },
    /// CREATE TABLE.
    CreateTable(CreateTable),
    /// CREATE TABLE name AS query, SELECT INTO.
    CreateTableAs {
        /// The table. Its columns are the names listed for the query's first columns.
        table: CreateTable,
        /// The query.
        query: Arc<Statement>,
        /// Whether to insert the rows; false after WITH NO DATA.
        with_data: bool,
        /// Whether the statement was SELECT INTO.
        select_into: bool,
    },
    /// CREATE TABLE name AS EXECUTE.
    CreateTableAsExecute {
        /// The table. Its columns are the names listed for the query's first columns.
        table: CreateTable,
        /// The prepared statement and its arguments.
        call: PreparedCall,
        /// Whether to insert the rows; false after WITH NO DATA.
        with_data: bool,
    },
    /// CREATE INDEX.
    CreateIndex(CreateIndex),
    /// CREATE SEQUENCE.
    CreateSequence {
        /// Its name.
        name: QualifiedName,
        /// IF NOT EXISTS.
        if_not_exists: bool,
        /// Its options.
        options: SequenceOptions,
    },
    /// ALTER SEQUENCE.
    AlterSequence {
        /// Its name.
        name: QualifiedName,
        /// IF EXISTS.
        if_exists: bool,
        /// The options that change.
        options: SequenceOptions,
    },
    /// CREATE STATISTICS, ALTER STATISTICS.
    Statistics(StatisticsCommand),
    /// CREATE VIEW.
    CreateView {
        /// Its name.
        name: QualifiedName,
        /// OR REPLACE.
        or_replace: bool,
        /// Its columns, as bound now.
        columns: Vec<ColumnDefinition>,
        /// The query's text.
        text: String,
    },
    /// DROP TABLE, INDEX, SEQUENCE, VIEW, SCHEMA, STATISTICS.
    Drop {
        /// The kind of object.
        kind: ObjectKind,
        /// The objects' names.
        names: Vec<QualifiedName>,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// CONCURRENTLY: refused in a transaction block.
        concurrently: bool,
    },
    /// ALTER TABLE, and ALTER INDEX, VIEW or SEQUENCE for actions they share.
    AlterTable {
        /// The table.
        name: QualifiedName,
        /// IF EXISTS.
        if_exists: bool,
        /// The actions, in order.
        actions: Vec<AlterAction>,
        /// The completion tag. ALTER TABLE also accepts indexes and sequences.
        tag: &'static str,
    },
    /// TRUNCATE.
    Truncate {
        /// The tables' names.
        tables: Vec<QualifiedName>,
        /// RESTART IDENTITY.
        restart_identity: bool,
        /// CASCADE.
        cascade: bool,
    },
}

impl Command {
    /// The query inside the command. It may have parameters.
    #[must_use]
    pub fn query(&self) -> Option<&Statement> {
        match self {
            Command::Explain(explain) => Some(&explain.statement),
            Command::CreateTableAs { query, .. } => Some(query),
            Command::DeclareCursor(cursor) => Some(&cursor.query),
            _ => None,
        }
    }
}

/// Modes of a transaction. None means the session's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransactionModes {
    /// ISOLATION LEVEL.
    pub isolation: Option<Isolation>,
    /// READ ONLY or READ WRITE.
    pub read_only: Option<bool>,
    /// DEFERRABLE or NOT DEFERRABLE.
    pub deferrable: Option<bool>,
}

/// The isolation levels of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// Read uncommitted, which runs as read committed, as in PostgreSQL.
    ReadUncommitted,
    /// Read committed, the default.
    ReadCommitted,
    /// Repeatable read, which is snapshot isolation.
    RepeatableRead,
    /// Serializable, which is not supported yet.
    Serializable,
}

/// The kinds of objects that DROP accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table.
    Table,
    /// An index.
    Index,
    /// A sequence.
    Sequence,
    /// A view.
    View,
    /// A schema.
    Schema,
    /// Extended statistics.
    Statistics,
}

/// COPY.
#[derive(Debug)]
pub struct Copy {
    /// The source or target.
    pub relation: CopyRelation,
    /// Whether it is COPY FROM, which inserts rows.
    pub from: bool,
    /// The format of the rows.
    pub format: CopyFormat,
}

/// The relation or query of COPY.
#[derive(Debug)]
pub enum CopyRelation {
    /// The query of COPY (query) TO or of COPY table TO.
    Query(Arc<Statement>),
    /// COPY table FROM: an INSERT whose input is [`super::Operator::OneRow`] and whose values read
    /// the listed registers. For each line the executor fills them with the fields, already
    /// converted to the columns' types, and runs the INSERT.
    Insert {
        /// The insert.
        statement: Arc<Statement>,
        /// The name of the table, for error contexts.
        table: String,
        /// The type, name and register of each field of a line.
        fields: Vec<(Type, String, super::Reg)>,
    },
}

/// COPY's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyFormat {
    /// The kind of format.
    pub kind: CopyKind,
    /// The byte between fields.
    pub delimiter: u8,
    /// The text that stands for NULL.
    pub null: String,
    /// Whether the first line has the columns' names.
    pub header: bool,
    /// CSV: the byte around quoted fields.
    pub quote: u8,
    /// CSV: the byte before a quote inside quotes.
    pub escape: u8,
    /// CSV: whether COPY TO always quotes a field, by position. `FORCE_QUOTE *` means all.
    pub force_quote: Vec<bool>,
}

/// COPY's formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyKind {
    /// Tab-separated with backslash escapes.
    Text,
    /// Comma-separated.
    Csv,
    /// PostgreSQL's binary format.
    Binary,
}

/// EXPLAIN.
#[derive(Debug)]
pub struct Explain {
    /// The explained statement.
    pub statement: Arc<Statement>,
    /// Its options.
    pub options: ExplainOptions,
    /// The time of its planning, in nanoseconds.
    pub planning: u64,
}

/// The options of EXPLAIN.
#[derive(Debug, Clone, Copy)]
pub struct ExplainOptions {
    /// Whether to run the statement and show what each node did.
    pub analyze: bool,
    /// Whether to show estimates.
    pub costs: bool,
    /// Whether to show the pages of each node.
    pub buffers: bool,
    /// Whether to measure the time of each node.
    pub timing: bool,
    /// Whether to show the time of planning and of the execution.
    pub summary: bool,
    /// Whether to show settings that affect planning.
    pub settings: bool,
    /// FORMAT JSON, not TEXT.
    pub json: bool,
}

/// CREATE TABLE.
#[derive(Debug, Clone)]
pub struct CreateTable {
    /// Its name.
    pub name: QualifiedName,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// Its columns; empty for CREATE TABLE AS without a list.
    pub columns: Vec<ColumnDefinition>,
    /// Its constraints, including column constraints other than NOT NULL.
    pub constraints: Vec<ConstraintDefinition>,
}

/// A column's definition.
#[derive(Debug, Clone)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_: Type,
    /// NOT NULL.
    pub not_null: bool,
    /// DEFAULT as SQL text that the binder has checked.
    pub default: Option<String>,
    /// Whether DEFAULT calls a volatile function, so that each row has a value of its own.
    pub volatile_default: bool,
    /// The sequence that SERIAL or GENERATED AS IDENTITY creates, named table_column_seq.
    pub sequence: Option<OwnedSequence>,
}

/// A table constraint's definition.
#[derive(Debug, Clone)]
pub struct ConstraintDefinition {
    /// CONSTRAINT name; None = PostgreSQL's default name.
    pub name: Option<String>,
    /// Whether existing rows must meet it; false after NOT VALID.
    pub checked: bool,
    /// The condition.
    pub kind: ConstraintKind,
}

/// The condition of a constraint.
#[derive(Debug, Clone)]
pub enum ConstraintKind {
    /// PRIMARY KEY (columns).
    PrimaryKey {
        /// The columns.
        columns: Vec<String>,
        /// INCLUDE (columns).
        included: Vec<String>,
    },
    /// UNIQUE (columns).
    Unique {
        /// The columns.
        columns: Vec<String>,
        /// INCLUDE (columns).
        included: Vec<String>,
        /// NULLS NOT DISTINCT.
        nulls_not_distinct: bool,
    },
    /// CHECK (expression).
    Check {
        /// The expression's text.
        text: String,
        /// The columns it reads, for the default name (for a single one: table_column_check).
        columns: Vec<String>,
    },
    /// FOREIGN KEY (columns) REFERENCES parent (columns).
    ForeignKey {
        /// The referencing columns.
        columns: Vec<String>,
        /// The referenced table.
        parent: QualifiedName,
        /// The referenced columns. Empty means the parent's primary key.
        parent_columns: Vec<String>,
        /// ON DELETE.
        on_delete: ReferentialAction,
        /// ON UPDATE.
        on_update: ReferentialAction,
    },
}

/// The state that DISCARD drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discard {
    /// All state of the session.
    All,
    /// The values of currval() and lastval().
    Sequences,
    /// Cached plans. There is nothing to do, since stale plans are planned again.
    Plans,
    /// Temporary tables. There are none.
    Temporary,
}

/// CREATE INDEX.
#[derive(Debug, Clone)]
pub struct CreateIndex {
    /// Its name; None = PostgreSQL's default name. An index is in its table's schema.
    pub name: Option<String>,
    /// The table.
    pub table: QualifiedName,
    /// UNIQUE.
    pub unique: bool,
    /// NULLS NOT DISTINCT.
    pub nulls_not_distinct: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// CONCURRENTLY: refused in a transaction block.
    pub concurrently: bool,
    /// Its columns.
    pub columns: Vec<IndexColumn>,
    /// INCLUDE (columns).
    pub included: Vec<String>,
}

/// A column of an index.
#[derive(Debug, Clone)]
pub struct IndexColumn {
    /// The column.
    pub name: String,
    /// DESC.
    pub descending: bool,
    /// NULLS FIRST, or the default for the direction.
    pub nulls_first: bool,
}

/// One action of ALTER TABLE.
#[derive(Debug, Clone)]
pub enum AlterAction {
    /// ADD COLUMN.
    AddColumn {
        /// The column.
        column: ColumnDefinition,
        /// The constraints listed with the column. They become the table's constraints.
        constraints: Vec<ConstraintDefinition>,
        /// IF NOT EXISTS.
        if_not_exists: bool,
    },
    /// DROP COLUMN.
    DropColumn {
        /// Its name.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
    },
    /// ADD constraint. ADD PRIMARY KEY rebuilds the table's tree.
    AddConstraint(ConstraintDefinition),
    /// DROP CONSTRAINT.
    DropConstraint {
        /// Its name.
        name: String,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
    },
    /// ALTER COLUMN SET/DROP DEFAULT.
    SetDefault {
        /// The column.
        column: String,
        /// The default's text. None means DROP DEFAULT.
        default: Option<String>,
    },
    /// ALTER COLUMN SET/DROP NOT NULL.
    SetNotNull {
        /// The column.
        column: String,
        /// SET NOT NULL; false means DROP NOT NULL.
        not_null: bool,
    },
    /// ALTER COLUMN ADD GENERATED AS IDENTITY.
    AddIdentity {
        /// The column.
        column: String,
        /// Its sequence.
        owned: OwnedSequence,
    },
    /// ALTER COLUMN SET GENERATED and options of its sequence.
    SetIdentity {
        /// The column.
        column: String,
        /// SET GENERATED ALWAYS or BY DEFAULT.
        identity: Option<Identity>,
        /// The sequence options that change.
        options: SequenceOptions,
    },
    /// ALTER COLUMN DROP IDENTITY.
    DropIdentity {
        /// The column.
        column: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// ALTER COLUMN TYPE, which rewrites every row.
    SetType {
        /// The column.
        column: String,
        /// The new type.
        type_: Type,
        /// USING's text. None means an assignment cast of the column.
        using: Option<String>,
    },
    /// RENAME TO.
    Rename(String),
    /// RENAME COLUMN.
    RenameColumn {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
    },
    /// RENAME CONSTRAINT.
    RenameConstraint {
        /// The old name.
        from: String,
        /// The new name.
        to: String,
    },
    /// VALIDATE CONSTRAINT, by name.
    Validate(String),
    /// SET SCHEMA.
    SetSchema(String),
    /// OWNER TO this role; None means the session's own. The one existing role owns everything.
    Owner(Option<String>),
    /// An accepted action without an effect here (storage parameters and the like), and whether
    /// others may write the table meanwhile.
    #[allow(missing_docs, reason = "the variant says it")]
    NoEffect { lets_write: bool },
}

/// The indexes that REINDEX rebuilds.
#[derive(Debug, Clone)]
pub enum Reindex {
    /// One index.
    Index(QualifiedName),
    /// All indexes of a table.
    Table(QualifiedName),
    /// All indexes of a schema's tables.
    Schema(String),
    /// All indexes of this database. The name may be empty.
    Database(String),
}

/// DECLARE CURSOR.
#[derive(Debug)]
pub struct DeclareCursor {
    /// Its name.
    pub name: String,
    /// The text of the DECLARE statement.
    pub text: String,
    /// The query.
    pub query: Arc<Statement>,
    /// WITH HOLD.
    pub hold: bool,
    /// Whether FETCH may go backward. True for SCROLL; without SCROLL and NO SCROLL, if PostgreSQL
    /// runs the plan backward.
    pub scroll: bool,
}

/// The movement of FETCH and MOVE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// This number of rows forward. None means ALL.
    Forward(Option<u64>),
    /// This number of rows backward. None means ALL.
    Backward(Option<u64>),
    /// To the row with this number. Negative numbers count from the end.
    Absolute(i64),
    /// To the row at this distance, but not beyond the ends.
    Relative(i64),
}
