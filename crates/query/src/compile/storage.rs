//! Storage requests of tables and indexes: storage parameters, table spaces, access methods,
//! compression, operator classes.
//!
//! None of them changes how Allcore stores data. What must hold: Allcore refuses every name and
//! value that PostgreSQL refuses.

use pg_query::NodeEnum;
use pg_query::protobuf::{
    AlterTableCmd, ColumnDef, Constraint, DefElem, IndexElem, Node, RangeVar, SortByDir, SortByNulls,
};

use super::command::{node_text, option_text, without_position};
use crate::bind::{Binder, inner};
use crate::parse::strings;
use crate::plan::AlterAction;
use catalog::system_columns;
use catalog::{Relation, Table};
use values::error::{SqlError, SqlState};
use values::types::{Type, oid};

/// The kind of value that a parameter accepts.
enum Value {
    Bool,
    Integer(i32, i32),
    Real(f64, f64),
    Cleanup,
}

/// The kind of object that has the parameters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holder {
    Table,
    OutOfLine,
    Index,
    Column,
}

/// The parameters of tables. `true`: the table's out-of-line values accept the parameter too.
const OF_TABLES: &[(&str, Value, bool)] = &[
    ("autovacuum_analyze_scale_factor", Value::Real(0.0, 100.0), false),
    ("autovacuum_analyze_threshold", Value::Integer(0, i32::MAX), false),
    ("autovacuum_enabled", Value::Bool, true),
    ("autovacuum_freeze_max_age", Value::Integer(100_000, 2_000_000_000), true),
    ("autovacuum_freeze_min_age", Value::Integer(0, 1_000_000_000), true),
    ("autovacuum_freeze_table_age", Value::Integer(0, 2_000_000_000), true),
    ("autovacuum_multixact_freeze_max_age", Value::Integer(10_000, 2_000_000_000), true),
    ("autovacuum_multixact_freeze_min_age", Value::Integer(0, 1_000_000_000), true),
    ("autovacuum_multixact_freeze_table_age", Value::Integer(0, 2_000_000_000), true),
    ("autovacuum_vacuum_cost_delay", Value::Real(0.0, 100.0), true),
    ("autovacuum_vacuum_cost_limit", Value::Integer(1, 10_000), true),
    ("autovacuum_vacuum_insert_scale_factor", Value::Real(0.0, 100.0), true),
    ("autovacuum_vacuum_insert_threshold", Value::Integer(-1, i32::MAX), true),
    ("autovacuum_vacuum_max_threshold", Value::Integer(-1, i32::MAX), true),
    ("autovacuum_vacuum_scale_factor", Value::Real(0.0, 100.0), true),
    ("autovacuum_vacuum_threshold", Value::Integer(0, i32::MAX), true),
    ("fillfactor", Value::Integer(10, 100), false),
    ("log_autovacuum_min_duration", Value::Integer(-1, i32::MAX), true),
    ("parallel_workers", Value::Integer(0, 1024), false),
    ("toast_tuple_target", Value::Integer(128, 8160), false),
    ("user_catalog_table", Value::Bool, false),
    ("vacuum_index_cleanup", Value::Cleanup, true),
    ("vacuum_max_eager_freeze_failure_rate", Value::Real(0.0, 1.0), true),
    ("vacuum_truncate", Value::Bool, true),
];

/// Parameters for which PostgreSQL takes the strongest lock, on any relation. RESET accepts a name
/// even if the relation has no such parameter.
const LOCKING: &[&str] = &[
    "autosummarize",
    "buffering",
    "check_option",
    "fastupdate",
    "gin_pending_list_limit",
    "pages_per_range",
    "security_barrier",
    "security_invoker",
    "user_catalog_table",
];

impl Holder {
    fn parameter(self, name: &str) -> Option<&'static Value> {
        match (self, name) {
            (Holder::Index, "fillfactor") => Some(&Value::Integer(10, 100)),
            (Holder::Index, "deduplicate_items") => Some(&Value::Bool),
            (Holder::Column, "n_distinct" | "n_distinct_inherited") => Some(&Value::Real(-1.0, f64::MAX)),
            (Holder::Index | Holder::Column, _) => None,
            _ => {
                let found = OF_TABLES.iter().find(|(known, _, _)| *known == name)?;
                (self == Holder::Table || found.2).then_some(&found.1)
            }
        }
    }
}

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// Whether others may write a relation during SET (...) or RESET (...).
pub(super) fn parameters_let_write(definition: Option<&Node>) -> bool {
    let Some(NodeEnum::List(list)) = definition.and_then(|node| node.node.as_ref()) else { return true };
    !list.items.iter().any(|node| match &node.node {
        Some(NodeEnum::DefElem(option)) => LOCKING.contains(&option.defname.as_str()),
        _ => false,
    })
}

/// WITH (...) of a table.
///
/// # Errors
/// 22023 for an unknown parameter or wrong value, 0A000 for WITH (oids).
pub(super) fn of_table(options: &[Node]) -> Result<(), SqlError> {
    for node in options {
        let NodeEnum::DefElem(option) = inner(node)? else { continue };
        let off = || matches!(option_text(option).as_str(), "false" | "off" | "0" | "no");
        if is_oids(option) && (option.arg.is_none() || !off()) {
            let message = "tables declared WITH OIDS are not supported";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
    }
    check(options, Holder::Table, true)
}

/// WITH (...) of an index, or of a constraint that creates one.
///
/// # Errors
/// 22023 for an unknown parameter or wrong value.
pub(super) fn of_index(options: &[Node]) -> Result<(), SqlError> {
    check(options, Holder::Index, false)
}

fn is_oids(option: &DefElem) -> bool {
    option.defname == "oids" && option.defnamespace.is_empty()
}

fn check(options: &[Node], holder: Holder, oids: bool) -> Result<(), SqlError> {
    let mut seen = Vec::with_capacity(options.len());
    for node in options {
        let NodeEnum::DefElem(option) = inner(node)? else { continue };
        if oids && is_oids(option) {
            continue;
        }
        let holder = match (option.defnamespace.as_str(), holder) {
            ("", holder) => holder,
            ("toast", Holder::Table) => Holder::OutOfLine,
            (other, _) => return Err(invalid(format!("unrecognized parameter namespace \"{other}\""))),
        };
        let name = &option.defname;
        let Some(value) = holder.parameter(name) else {
            return Err(invalid(format!("unrecognized parameter \"{name}\"")));
        };
        if seen.contains(&(&option.defnamespace, name)) {
            return Err(invalid(format!("parameter \"{name}\" specified more than once")));
        }
        seen.push((&option.defnamespace, name));
        let text = if option.arg.is_some() { option_text(option) } else { "true".to_owned() };
        value.check(name, &text)?;
    }
    Ok(())
}

impl Value {
    fn check(&self, name: &str, text: &str) -> Result<(), SqlError> {
        let not = |kind: &str| invalid(format!("invalid value for {kind} option \"{name}\": {text}"));
        let bounds = |least: String, greatest: String| {
            invalid(format!("value {text} out of bounds for option \"{name}\""))
                .with_detail(format!("Valid values are between \"{least}\" and \"{greatest}\"."))
        };
        match self {
            Value::Bool => values::text::parse_bool(text).map(|_| ()).map_err(|_| not("boolean")),
            Value::Integer(least, greatest) => {
                let number = integer(text).ok_or_else(|| not("integer"))?;
                let within = (*least..=*greatest).contains(&number);
                within.then_some(()).ok_or_else(|| bounds(least.to_string(), greatest.to_string()))
            }
            Value::Real(least, greatest) => {
                let number: f64 = text.trim().parse().map_err(|_| not("floating point"))?;
                let within = (*least..=*greatest).contains(&number);
                within.then_some(()).ok_or_else(|| bounds(format!("{least:.6}"), format!("{greatest:.6}")))
            }
            Value::Cleanup => match values::text::parse_bool(text) {
                Ok(_) => Ok(()),
                Err(_) if text.eq_ignore_ascii_case("auto") => Ok(()),
                Err(_) => Err(not("enum").with_detail("Valid values are \"on\", \"off\", and \"auto\".")),
            },
        }
    }
}

/// A whole number in the syntax of settings: decimal, hexadecimal, or a fraction to be rounded.
fn integer(text: &str) -> Option<i32> {
    let text = text.trim();
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return i32::from_str_radix(digits, 16).ok();
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first)) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    let rounded = number.round_ties_even();
    (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&rounded).then_some(rounded as i32)
}

/// TABLESPACE of a table, an index or a database's object; "" without one.
///
/// # Errors
/// 42704 for an unknown table space, 22023 for the one of relations that databases share.
pub(super) fn table_space(name: &str) -> Result<(), SqlError> {
    match name {
        "" | "pg_default" => Ok(()),
        "pg_global" => {
            let message = "only shared relations can be placed in pg_global tablespace";
            Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message))
        }
        _ => Err(SqlError::new(SqlState::UNDEFINED_OBJECT, format!("tablespace \"{name}\" does not exist"))),
    }
}

/// USING of a table; "" without one.
///
/// # Errors
/// 42704 for an unknown access method, 55000 for an index's.
pub(super) fn table_method(name: &str) -> Result<(), SqlError> {
    match name {
        "" | "heap" => Ok(()),
        _ if is_index_method(name) => Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("access method \"{name}\" is not of type TABLE"),
        )),
        _ => Err(no_method(name)),
    }
}

/// Whether PostgreSQL has an access method for indexes of this name.
pub(super) fn is_index_method(name: &str) -> bool {
    matches!(name, "btree" | "hash" | "gist" | "gin" | "spgist" | "brin")
}

/// The error 42704 for an unknown access method.
pub(super) fn no_method(name: &str) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, format!("access method \"{name}\" does not exist"))
}

/// Checks INDEX TABLESPACE and WITH (...) of a constraint that creates an index, and that the
/// constraint is enforced.
///
/// # Errors
/// As for an index; 0A000 for unsupported attributes of such a constraint.
pub(super) fn of_constraint(binder: &Binder<'_>, constraint: &Constraint) -> Result<(), SqlError> {
    of_index(&constraint.options)?;
    table_space(&constraint.indexspace)?;
    if constraint.without_overlaps || constraint.fk_with_period || constraint.pk_with_period {
        return Err(binder.unsupported("WITHOUT OVERLAPS and PERIOD", constraint.location));
    }
    Ok(())
}

/// The name of a column in CREATE INDEX's INCLUDE.
///
/// # Errors
/// As PostgreSQL: 42P17 for an attribute that only a key may have, 0A000 for an expression.
pub(super) fn included_column(node: &Node) -> Result<String, SqlError> {
    let NodeEnum::IndexElem(element) = inner(node)? else {
        return Err(SqlError::internal("INCLUDE of no column"));
    };
    let refused = if !element.collation.is_empty() {
        "a collation"
    } else if !element.opclass.is_empty() {
        "an operator class"
    } else if element.ordering != SortByDir::SortbyDefault as i32 {
        "ASC/DESC options"
    } else if element.nulls_ordering != SortByNulls::SortbyNullsDefault as i32 {
        "NULLS FIRST/LAST options"
    } else if element.name.is_empty() {
        let message = "expressions are not supported in included columns";
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    } else {
        return Ok(element.name.clone());
    };
    let message = format!("including column does not support {refused}");
    Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message))
}

/// STORAGE and COMPRESSION in a column's definition.
///
/// # Errors
/// As [`column_storage`] and [`compression`].
pub(super) fn of_column(column: &ColumnDef, type_: Type) -> Result<(), SqlError> {
    if !column.storage_name.is_empty() {
        column_storage(&column.storage_name, type_)?;
    }
    if !column.compression.is_empty() {
        compression(&column.compression, type_)?;
    }
    Ok(())
}

/// Whether PostgreSQL may store a type's values out of line.
fn may_be_long(type_: Type) -> bool {
    values::types::info(type_.oid).is_some_and(|info| info.length < 0)
}

/// STORAGE: 22023 for an unknown word, 0A000 for one that the type does not allow.
fn column_storage(name: &str, type_: Type) -> Result<(), SqlError> {
    let lower = name.to_ascii_lowercase();
    if !["plain", "external", "extended", "main", "default"].contains(&lower.as_str()) {
        return Err(invalid(format!("invalid storage type \"{name}\"")));
    }
    if may_be_long(type_) || matches!(lower.as_str(), "plain" | "default") {
        return Ok(());
    }
    let message = format!("column data type {} can only have storage PLAIN", Type::new(type_.oid));
    Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
}

/// COMPRESSION: 22023 for an unknown method, 0A000 if the type or the server does not support it.
fn compression(name: &str, type_: Type) -> Result<(), SqlError> {
    if name == "default" {
        return Ok(());
    }
    if !may_be_long(type_) {
        let message = format!("column data type {} does not support compression", Type::new(type_.oid));
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
    }
    match name {
        "pglz" => Ok(()),
        "lz4" => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("compression method {name} not supported"),
        )
        .with_detail(format!("This functionality requires the server to be built with {name} support."))),
        _ => Err(invalid(format!("invalid compression method \"{name}\""))),
    }
}

/// A B-tree operator class for a column of the type.
///
/// # Errors
/// 42704 for an unknown class, 42804 for a class of other types, 22023 for options, which no class
/// has.
pub(super) fn operator_class(element: &IndexElem, type_: Option<Type>) -> Result<(), SqlError> {
    let Some(name) = strings(&element.opclass).pop() else { return Ok(()) };
    let of: &[u32] = match name {
        "array_ops" => &[],
        "bool_ops" => &[oid::BOOL],
        "bytea_ops" => &[oid::BYTEA],
        "char_ops" => &[oid::CHAR],
        "bpchar_ops" | "bpchar_pattern_ops" => &[oid::BPCHAR],
        "date_ops" => &[oid::DATE],
        "float4_ops" => &[oid::FLOAT4],
        "float8_ops" => &[oid::FLOAT8],
        "int2_ops" => &[oid::INT2],
        "int4_ops" => &[oid::INT4],
        "int8_ops" => &[oid::INT8],
        "interval_ops" => &[oid::INTERVAL],
        "name_ops" => &[oid::NAME],
        "numeric_ops" => &[oid::NUMERIC],
        "oid_ops" => &[oid::OID, oid::REGCLASS, oid::REGTYPE, oid::REGPROC, oid::REGROLE, oid::REGNAMESPACE],
        "text_ops" | "varchar_ops" | "text_pattern_ops" | "varchar_pattern_ops" => &[oid::TEXT, oid::VARCHAR],
        "time_ops" => &[oid::TIME],
        "timestamp_ops" => &[oid::TIMESTAMP],
        "timestamptz_ops" => &[oid::TIMESTAMPTZ],
        "uuid_ops" => &[oid::UUID],
        _ => {
            let message = format!("operator class \"{name}\" does not exist for access method \"btree\"");
            return Err(SqlError::new(SqlState::UNDEFINED_OBJECT, message));
        }
    };
    if let Some(type_) = type_ {
        let array = name == "array_ops" && values::types::registry::is_array(type_.oid);
        if !array && !of.contains(&type_.oid) {
            let message =
                format!("operator class \"{name}\" does not accept data type {}", Type::new(type_.oid));
            return Err(SqlError::new(SqlState::DATATYPE_MISMATCH, message));
        }
    }
    if element.opclassopts.is_empty() {
        return Ok(());
    }
    Err(invalid(format!("operator class {name} has no options")))
}

impl Binder<'_> {
    /// An action of ALTER TABLE about storage only. It is checked and changes nothing.
    ///
    /// # Errors
    /// PostgreSQL's error for an unknown name or value. 0A000 for two parameters that users would
    /// rely on: clustering by an index, and a replica identity.
    pub(super) fn check_storage(
        &self,
        command: &AlterTableCmd,
        range: &RangeVar,
        before: &[AlterAction],
    ) -> Result<(), SqlError> {
        use pg_query::protobuf::AlterTableType as Kind;
        let Ok(kind) = Kind::try_from(command.subtype) else { return Ok(()) };
        let found = self.find_relation(range)?;
        let definition = command.def.as_deref();
        let name = &command.name;
        let added = |action: &AlterAction| matches!(action, AlterAction::AddColumn { column, .. } if column.name == *name);
        match (kind, &found) {
            // The command itself reports the missing object.
            (_, None) => Ok(()),
            (Kind::AtClusterOn, _) => Err(self.unsupported("ALTER TABLE CLUSTER ON", range.location)),
            (Kind::AtReplicaIdentity, _) => match definition.map(inner).transpose()? {
                Some(NodeEnum::ReplicaIdentityStmt(identity)) if identity.identity_type == "d" => Ok(()),
                _ => Err(self.unsupported("REPLICA IDENTITY", range.location)),
            },
            (Kind::AtSetTableSpace, _) => table_space(name),
            (Kind::AtSetRelOptions | Kind::AtResetRelOptions, Some(relation)) => {
                let holder = match relation {
                    Relation::Table(_) => Holder::Table,
                    Relation::Index(..) => Holder::Index,
                    Relation::Sequence(sequence) => {
                        let action = if kind == Kind::AtSetRelOptions { "SET" } else { "RESET" };
                        return Err(not_for(action, &sequence.name, "sequences"));
                    }
                };
                options(definition, holder, kind == Kind::AtSetRelOptions)
            }
            (
                Kind::AtSetStatistics
                | Kind::AtSetStorage
                | Kind::AtSetCompression
                | Kind::AtSetOptions
                | Kind::AtResetOptions,
                Some(Relation::Table(table)),
            ) if !before.iter().any(added) => self.check_column_storage(kind, command, table),
            (Kind::AtSetOptions, Some(Relation::Index(..) | Relation::Sequence(_))) => {
                Err(not_for("ALTER COLUMN ... SET", &range.relname, kind_of(&found)))
            }
            (Kind::AtResetOptions, Some(Relation::Index(..) | Relation::Sequence(_))) => {
                Err(not_for("ALTER COLUMN ... RESET", &range.relname, kind_of(&found)))
            }
            (Kind::AtSetStatistics, Some(Relation::Index(..))) => {
                Err(self.unsupported("ALTER INDEX ALTER COLUMN SET STATISTICS", range.location))
            }
            _ => Ok(()),
        }
    }

    fn check_column_storage(
        &self,
        kind: pg_query::protobuf::AlterTableType,
        command: &AlterTableCmd,
        table: &Table,
    ) -> Result<(), SqlError> {
        use pg_query::protobuf::AlterTableType as Kind;
        let definition = command.def.as_deref();
        let word = definition.map(node_text).unwrap_or_default();
        if kind == Kind::AtSetStatistics
            && let Ok(target) = word.parse::<i64>()
            && target < -1
        {
            return Err(invalid(format!("statistics target {target} is too low")));
        }
        if kind == Kind::AtSetStatistics && command.name.is_empty() {
            return Err(self.unsupported("statistics of a column by number", -1));
        }
        if let Some(refused) = system_columns::unchangeable("alter", &command.name) {
            return Err(refused);
        }
        let at = self.named_column(table, &command.name, -1).map_err(without_position)?;
        let type_ = table.columns[at].type_;
        match kind {
            Kind::AtSetStorage => column_storage(&word, type_),
            Kind::AtSetCompression => compression(&word, type_),
            Kind::AtSetOptions | Kind::AtResetOptions => {
                options(definition, Holder::Column, kind == Kind::AtSetOptions)
            }
            _ => Ok(()),
        }
    }
}

fn kind_of(relation: &Option<Relation>) -> &'static str {
    match relation {
        Some(Relation::Index(..)) => "indexes",
        Some(Relation::Sequence(_)) => "sequences",
        _ => "tables",
    }
}

fn not_for(action: &str, name: &str, kind: &str) -> SqlError {
    let message = format!("ALTER action {action} cannot be performed on relation \"{name}\"");
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
        .with_detail(format!("This operation is not supported for {kind}."))
}

/// The parameters of SET (...) or RESET (...).
fn options(definition: Option<&Node>, holder: Holder, set: bool) -> Result<(), SqlError> {
    let Some(NodeEnum::List(list)) = definition.map(inner).transpose()? else { return Ok(()) };
    if set {
        return check(&list.items, holder, false);
    }
    for node in &list.items {
        if let NodeEnum::DefElem(option) = inner(node)?
            && option.arg.is_some()
        {
            let message = "RESET must not include values for parameters";
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
        }
    }
    Ok(())
}
