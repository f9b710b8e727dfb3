//! Statements that are no queries: transaction control, settings, prepared statements, definitions,
//! maintenance.
//!
//! Names in definitions are resolved by the binder as far as they can be (the schema is always
//! given); whether an object exists is decided when the command runs, under the locks it takes.

use catalog::ReferentialAction;
use std::sync::Arc;

use super::{OwnedSequence, QualifiedName, SequenceOptions, Statement};
use catalog::Identity;
use expressions::expr::Expr;
use values::types::Type;

/// EXECUTE name (arguments).
#[derive(Debug, Clone)]
pub struct PreparedCall {
    /// The prepared statement's name.
    pub name: String,
    /// Constant expressions, cast to the parameters' types when run.
    pub arguments: Vec<Expr>,
    /// Where those of them are that are literals, for errors.
    pub places: Vec<Option<u32>>,
}

/// A statement that is no query.
#[derive(Debug)]
pub enum Command {
    /// BEGIN, START TRANSACTION.
    Begin {
        /// As the statement asks for them.
        modes: TransactionModes,
        /// How it is answered.
        tag: &'static str,
    },
    /// COMMIT, END; `chain` = AND CHAIN.
    Commit {
        /// Start a new transaction with the same modes.
        chain: bool,
    },
    /// ROLLBACK, ABORT.
    Rollback {
        /// Start a new transaction with the same modes.
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
        /// The setting to change.
        modes: TransactionModes,
        /// For later transactions of the session instead of this one.
        session: bool,
    },
    /// SET name = value; None = DEFAULT.
    Set {
        /// The setting, lower case.
        name: String,
        /// Its new value as text (a list joined by ", ").
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
        /// Characters before it in the client's text.
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
        /// Where to go.
        way: Way,
        /// MOVE: the rows are skipped.
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
        /// The tables' names, with the columns that ANALYZE is to see (none: all); empty = all
        /// tables.
        tables: Vec<(QualifiedName, Vec<String>)>,
        /// Purge dead versions.
        vacuum: bool,
        /// Gather statistics.
        analyze: bool,
        /// Tell what was done.
        verbose: bool,
    },
    /// CHECKPOINT.
    Checkpoint,
    /// SET CONSTRAINTS ALL: no constraint is deferrable.
    SetConstraints,
    /// REINDEX.
    Reindex {
        /// The index, or the indexes of a table, schema or database, that it builds anew.
        what: Reindex,
        /// CONCURRENTLY: not in a transaction block.
        concurrently: bool,
    },
    /// Accepted and without effect here (UNLISTEN): its completion tag.
    NoEffect(String),
    /// ALTER DATABASE, or else SCHEMA, .. OWNER TO: everything belongs to the one role there is.
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
        /// AUTHORIZATION, when it is no other than a named role.
        owner: Option<String>,
    },
    /// CREATE TABLE.
    CreateTable(CreateTable),
    /// CREATE TABLE name AS query, SELECT INTO.
    CreateTableAs {
        /// The table; its columns are the names given for the query's first ones.
        table: CreateTable,
        /// The query.
        query: Arc<Statement>,
        /// False: WITH NO DATA.
        with_data: bool,
        /// It was written as SELECT INTO.
        select_into: bool,
    },
    /// CREATE TABLE name AS EXECUTE.
    CreateTableAsExecute {
        /// The table; its columns are the names given for the query's first ones.
        table: CreateTable,
        /// The prepared statement and its arguments.
        call: PreparedCall,
        /// False: WITH NO DATA.
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
        /// Its numbers.
        options: SequenceOptions,
    },
    /// ALTER SEQUENCE.
    AlterSequence {
        /// Its name.
        name: QualifiedName,
        /// IF EXISTS.
        if_exists: bool,
        /// The change.
        options: SequenceOptions,
    },
    /// CREATE VIEW.
    CreateView {
        /// Its name.
        name: QualifiedName,
        /// OR REPLACE.
        or_replace: bool,
        /// Its columns as bound now.
        columns: Vec<ColumnDefinition>,
        /// The query's text.
        text: String,
    },
    /// DROP TABLE, INDEX, SEQUENCE, VIEW, SCHEMA.
    Drop {
        /// The kind of object.
        kind: ObjectKind,
        /// Which ones.
        names: Vec<QualifiedName>,
        /// IF EXISTS.
        if_exists: bool,
        /// CASCADE.
        cascade: bool,
        /// CONCURRENTLY: not in a transaction block.
        concurrently: bool,
    },
    /// ALTER TABLE (also INDEX, VIEW, SEQUENCE where the action fits).
    AlterTable {
        /// The table.
        name: QualifiedName,
        /// IF EXISTS.
        if_exists: bool,
        /// The actions, in order.
        actions: Vec<AlterAction>,
        /// The completion tag: ALTER TABLE also alters indexes and sequences.
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
    /// The query that it is about, which may have parameters.
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

/// Modes of a transaction; None = as the session's defaults say.
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
    /// Runs as read committed, as in PostgreSQL.
    ReadUncommitted,
    /// The default.
    ReadCommitted,
    /// Snapshot isolation.
    RepeatableRead,
    /// Not built yet.
    Serializable,
}

/// Kinds of objects DROP knows.
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
}

/// COPY.
#[derive(Debug)]
pub struct Copy {
    /// From or to what.
    pub relation: CopyRelation,
    /// COPY FROM: into the table.
    pub from: bool,
    /// How rows are written.
    pub format: CopyFormat,
}

/// COPY's other end.
#[derive(Debug)]
pub enum CopyRelation {
    /// COPY (query) TO, and COPY table TO, which the binder turns into its query.
    Query(Arc<Statement>),
    /// COPY table FROM: an INSERT whose input is [`super::Plan::OneRow`] and whose values read the
    /// registers listed: the executor fills them with each line's fields, already of the columns'
    /// types, and runs the INSERT.
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
    /// Which of the three.
    pub kind: CopyKind,
    /// Between fields.
    pub delimiter: u8,
    /// The text of NULL.
    pub null: String,
    /// The first line holds the columns' names.
    pub header: bool,
    /// CSV: around fields.
    pub quote: u8,
    /// CSV: before a quote within quotes.
    pub escape: u8,
    /// CSV: fields always quoted on the way out (by position), `FORCE_QUOTE *` = all.
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
    /// The statement explained.
    pub statement: Arc<Statement>,
    /// Run it and show actual numbers.
    pub analyze: bool,
    /// FORMAT JSON instead of TEXT.
    pub json: bool,
    /// COSTS.
    pub costs: bool,
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
    /// Its constraints (column constraints too, apart from NOT NULL).
    pub constraints: Vec<ConstraintDefinition>,
}

/// A column as defined.
#[derive(Debug, Clone)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its type.
    pub type_: Type,
    /// NOT NULL.
    pub not_null: bool,
    /// DEFAULT, as SQL text checked by the binder.
    pub default: Option<String>,
    /// SERIAL or GENERATED AS IDENTITY: a sequence of its own, named table_column_seq.
    pub sequence: Option<OwnedSequence>,
}

/// A table constraint as defined.
#[derive(Debug, Clone)]
pub struct ConstraintDefinition {
    /// CONSTRAINT name; None = PostgreSQL's default name.
    pub name: Option<String>,
    /// Whether rows that are there must meet it, too: not with NOT VALID.
    pub checked: bool,
    /// Its condition.
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
        /// The columns it reads, for the default name (a single one: table_column_check).
        columns: Vec<String>,
    },
    /// FOREIGN KEY (columns) REFERENCES parent (columns).
    ForeignKey {
        /// The referencing columns.
        columns: Vec<String>,
        /// The referenced table.
        parent: QualifiedName,
        /// The referenced columns; empty = its primary key.
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
    /// Everything of the session.
    All,
    /// The values of currval() and lastval().
    Sequences,
    /// Cached plans: nothing to do, since plans are made anew when they are stale.
    Plans,
    /// Temporary tables: there are none.
    Temporary,
}

/// CREATE INDEX.
#[derive(Debug, Clone)]
pub struct CreateIndex {
    /// Its name; None = PostgreSQL's default name. An index lives in its table's schema.
    pub name: Option<String>,
    /// The table.
    pub table: QualifiedName,
    /// UNIQUE.
    pub unique: bool,
    /// NULLS NOT DISTINCT.
    pub nulls_not_distinct: bool,
    /// IF NOT EXISTS.
    pub if_not_exists: bool,
    /// CONCURRENTLY: not in a transaction block.
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
    /// NULLS FIRST (as resolved from the default for the direction).
    pub nulls_first: bool,
}

/// One action of ALTER TABLE.
#[derive(Debug, Clone)]
pub enum AlterAction {
    /// ADD COLUMN.
    AddColumn {
        /// The column.
        column: ColumnDefinition,
        /// The constraints that stand beside the column: the table's, added with it.
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
        /// The default's text; None = DROP DEFAULT.
        default: Option<String>,
    },
    /// ALTER COLUMN SET/DROP NOT NULL.
    SetNotNull {
        /// The column.
        column: String,
        /// SET or DROP.
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
        /// The changes of the sequence.
        options: SequenceOptions,
    },
    /// ALTER COLUMN DROP IDENTITY.
    DropIdentity {
        /// The column.
        column: String,
        /// IF EXISTS.
        if_exists: bool,
    },
    /// ALTER COLUMN TYPE: every row is rewritten.
    SetType {
        /// The column.
        column: String,
        /// The new type.
        type_: Type,
        /// USING's text; None = an assignment cast of the column.
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
    /// OWNER TO this role, or to the session's own: everything belongs to the one there is.
    Owner(Option<String>),
    /// Accepted and without effect here (storage parameters, ...); whether others may write the
    /// table meanwhile.
    #[allow(missing_docs, reason = "the variant says it")]
    NoEffect { lets_write: bool },
}

/// The objects that REINDEX builds anew.
#[derive(Debug, Clone)]
pub enum Reindex {
    /// One index.
    Index(QualifiedName),
    /// All indexes of a table.
    Table(QualifiedName),
    /// All indexes of a schema's tables.
    Schema(String),
    /// All indexes of this database, whose name may be left out.
    Database(String),
}

/// DECLARE CURSOR.
#[derive(Debug)]
pub struct DeclareCursor {
    /// Its name.
    pub name: String,
    /// The text that declares it.
    pub text: String,
    /// The query.
    pub query: Arc<Statement>,
    /// WITH HOLD.
    pub hold: bool,
    /// FETCH may go backward: SCROLL, or neither SCROLL nor NO SCROLL and a plan that PostgreSQL
    /// runs backward.
    pub scroll: bool,
}

/// Where FETCH and MOVE go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// So many rows forward; None = ALL.
    Forward(Option<u64>),
    /// So many rows backward; None = ALL.
    Backward(Option<u64>),
    /// To the row of this number; negative numbers count from the end.
    Absolute(i64),
    /// To the row this far away; not beyond the ends.
    Relative(i64),
}
