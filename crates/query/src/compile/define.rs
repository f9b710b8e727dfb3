//! Definitions: CREATE and DROP. ALTER is in `alter`.
//!
//! Binding checks the parts that need no lock. The command checks the rest when it runs, under its
//! locks.

mod alter;
mod attributes;
mod kept;
mod statistics;

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{
    ColumnDef, ConstrType, Constraint, CreateStmt, CreateTableAsStmt, DropBehavior, DropStmt, IndexStmt,
    Node, ObjectType, OnCommitAction, SortByDir, SortByNulls, TypeName,
};

use alter::alter_tag;
use attributes::{Attributes, OneValue};

use super::storage;
use crate::bind::modify::relation;
use crate::bind::{Binder, inner};
use crate::parse::strings;
use crate::plan::{
    AlterAction, ColumnDefinition, Command, ConstraintDefinition, ConstraintKind, CreateIndex, CreateTable,
    IndexColumn, ObjectKind, OwnedSequence, QualifiedName, SequenceOptions,
};
use catalog::ReferentialAction;
use catalog::system_columns::SYSTEM_COLUMNS;
use catalog::{Column, Relation, Table, TreeAddress};
use values::error::{SqlError, SqlState};
use values::types::Type;

impl Binder<'_> {
    pub(crate) fn definition(&mut self, node: &NodeEnum) -> Result<Command, SqlError> {
        match node {
            NodeEnum::CreateStmt(create) => Ok(Command::CreateTable(self.create_table(create)?)),
            NodeEnum::CreateTableAsStmt(create) => self.create_table_as(create),
            NodeEnum::IndexStmt(index) => self.create_index(index),
            NodeEnum::AlterTableStmt(alter) => self.alter_table(alter),
            NodeEnum::CreateStatsStmt(create) => self.create_statistics(create),
            NodeEnum::AlterStatsStmt(alter) => self.alter_statistics(alter),
            NodeEnum::RenameStmt(rename) if is_statistics(rename.rename_type) => {
                self.rename_statistics(rename)
            }
            NodeEnum::AlterObjectSchemaStmt(alter) if is_statistics(alter.object_type) => {
                self.move_statistics(alter)
            }
            NodeEnum::AlterOwnerStmt(alter) if is_statistics(alter.object_type) => self.own_statistics(alter),
            NodeEnum::RenameStmt(rename) => self.rename(rename),
            NodeEnum::DropStmt(drop) => self.drop_objects(drop),
            NodeEnum::CreatedbStmt(create) => self.create_database(create),
            NodeEnum::DropdbStmt(drop) => self.drop_database(drop),
            NodeEnum::CreateSchemaStmt(create) => self.create_schema(create),
            NodeEnum::CreateSeqStmt(create) => {
                let range = relation(create.sequence.as_ref())?;
                if range.relpersistence == "t" {
                    return Err(self.unsupported("CREATE TEMPORARY SEQUENCE", range.location));
                }
                let name = self.qualified(range)?;
                let options = self.sequence_options(&create.options)?;
                Ok(Command::CreateSequence { name, if_not_exists: create.if_not_exists, options })
            }
            NodeEnum::AlterSeqStmt(alter) => {
                let name = self.qualified(relation(alter.sequence.as_ref())?)?;
                let options = self.sequence_options(&alter.options)?;
                Ok(Command::AlterSequence { name, if_exists: alter.missing_ok, options })
            }
            NodeEnum::AlterObjectSchemaStmt(alter)
                if [ObjectType::ObjectTable as i32, ObjectType::ObjectSequence as i32]
                    .contains(&alter.object_type) =>
            {
                let name = self.qualified(relation(alter.relation.as_ref())?)?;
                let actions = vec![AlterAction::SetSchema(alter.newschema.clone())];
                let tag = alter_tag(alter.object_type);
                Ok(Command::AlterTable { name, if_exists: alter.missing_ok, actions, tag })
            }
            NodeEnum::AlterOwnerStmt(alter) => self.alter_owner(alter),
            NodeEnum::AlterDatabaseSetStmt(_) | NodeEnum::AlterDatabaseStmt(_) => {
                Err(self.unsupported("ALTER DATABASE", 0))
            }
            _ => Err(self.unsupported("this statement", 0)),
        }
    }

    fn create_table(&mut self, create: &CreateStmt) -> Result<CreateTable, SqlError> {
        let range = relation(create.relation.as_ref())?;
        if range.relpersistence == "t" || range.schemaname == "pg_temp" {
            return Err(self.unsupported("CREATE TEMPORARY TABLE", range.location));
        }
        if !create.inh_relations.is_empty() || create.partspec.is_some() || create.partbound.is_some() {
            return Err(self.unsupported("inheritance or partitioning", range.location));
        }
        if create.of_typename.is_some() {
            return Err(self.unsupported("CREATE TABLE OF", range.location));
        }
        refuse_on_commit(create.oncommit)?;
        storage::of_table(&create.options)?;
        storage::table_space(&create.tablespacename)?;
        storage::table_method(&create.access_method)?;
        self.makes_sequences = create.table_elts.iter().any(makes_sequence);
        let mut columns: Vec<ColumnDefinition> = Vec::new();
        let mut constraints = Vec::new();
        let mut raw_constraints: Vec<&Constraint> = Vec::new();
        for element in &create.table_elts {
            match inner(element)? {
                NodeEnum::ColumnDef(column) => {
                    if columns.iter().any(|other| other.name == column.colname) {
                        return Err(SqlError::new(
                            SqlState::DUPLICATE_COLUMN,
                            format!("column \"{}\" specified more than once", column.colname),
                        ));
                    }
                    columns.push(self.column(column, &range.relname, &mut constraints)?);
                }
                NodeEnum::Constraint(constraint) => raw_constraints.push(constraint),
                _ => return Err(self.unsupported("this element of a table", range.location)),
            }
        }
        for constraint in raw_constraints {
            constraints.push(self.constraint(constraint, None)?);
        }
        not_null_names(create, &range.relname, &constraints)?;
        let mut table = CreateTable {
            name: self.qualified(range)?,
            if_not_exists: create.if_not_exists,
            columns,
            constraints,
        };
        self.check_constraints(&mut table)?;
        Ok(table)
    }

    /// Checks of constraints that are possible before the table exists.
    fn check_constraints(&mut self, table: &mut CreateTable) -> Result<(), SqlError> {
        let CreateTable { name, columns, constraints, .. } = table;
        let primaries = constraints
            .iter()
            .filter(|constraint| matches!(constraint.kind, ConstraintKind::PrimaryKey { .. }))
            .count();
        if primaries > 1 {
            return Err(SqlError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                format!("multiple primary keys for table \"{}\" are not allowed", name.name),
            ));
        }
        let draft = draft_table(&name.name, columns);
        let there = |key: &String| {
            if draft.column(key).is_some() || SYSTEM_COLUMNS.contains(&key.as_str()) {
                return Ok(());
            }
            let message = format!("column \"{key}\" named in key does not exist");
            Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
        };
        for constraint in constraints {
            match &mut constraint.kind {
                // The code that creates the key refuses a system column.
                ConstraintKind::PrimaryKey { columns, included }
                | ConstraintKind::Unique { columns, included, .. } => {
                    columns.iter().chain(included.iter()).try_for_each(there)?;
                }
                ConstraintKind::ForeignKey { columns, .. } => columns.iter().try_for_each(there)?,
                ConstraintKind::Check { text, columns } => *columns = self.check_columns(&draft, text)?,
            }
        }
        Ok(())
    }

    /// Binds a CHECK over a table; returns the columns it reads.
    fn check_columns(&mut self, table: &Arc<Table>, text: &str) -> Result<Vec<String>, SqlError> {
        let mut checked = Table::clone(table);
        checked.checks = vec![catalog::CheckConstraint {
            oid: 0,
            name: String::new(),
            text: text.to_owned(),
            valid: true,
        }];
        let first = self.register_block(checked.columns.len());
        let checked = Arc::new(checked);
        let mut read = Vec::new();
        for check in self.checks(&checked, first)? {
            check.expr.walk(&mut |part| {
                if let expressions::expr::Expr::Column { register, .. } = part
                    && let Some(column) = register.checked_sub(first)
                    && let Some(column) = checked.columns.get(column as usize)
                    && !read.contains(&column.name)
                {
                    read.push(column.name.clone());
                }
            });
        }
        Ok(read)
    }

    /// A column definition. Constraints that belong to the table go to `constraints`.
    fn column(
        &mut self,
        definition: &ColumnDef,
        table: &str,
        constraints: &mut Vec<ConstraintDefinition>,
    ) -> Result<ColumnDefinition, SqlError> {
        let type_name =
            definition.type_name.as_ref().ok_or_else(|| SqlError::internal("column without type"))?;
        if let Some(collate) = &definition.coll_clause {
            self.collation(&collate.collname, collate.location)?;
        }
        let serial = serial_type(type_name);
        let mut column = ColumnDefinition {
            name: definition.colname.clone(),
            type_: match serial {
                Some(type_) => type_,
                None => self.type_name(type_name)?,
            },
            not_null: serial.is_some() || definition.is_not_null,
            default: None,
            volatile_default: false,
            sequence: serial.map(|type_| OwnedSequence {
                name: None,
                options: SequenceOptions { type_: Some(type_), ..SequenceOptions::default() },
                identity: None,
            }),
        };
        if let Some(collate) = &definition.coll_clause {
            self.collatable(column.type_, collate.location)?;
        }
        storage::of_column(definition, column.type_)?;
        let mut may_be_null = serial.map(|_| false);
        let mut attributes = Attributes::default();
        let mut values = OneValue { column: &definition.colname, table, default: false, identity: false };
        for node in &definition.constraints {
            let NodeEnum::Constraint(constraint) = inner(node)? else { continue };
            let says = match ConstrType::try_from(constraint.contype) {
                Ok(ConstrType::ConstrNull) => Some(true),
                Ok(ConstrType::ConstrNotnull | ConstrType::ConstrPrimary | ConstrType::ConstrIdentity) => {
                    Some(false)
                }
                _ => None,
            };
            if says.is_some_and(|says| may_be_null.replace(says).is_some_and(|said| said != says)) {
                let message = format!(
                    "conflicting NULL/NOT NULL declarations for column \"{}\" of table \"{table}\"",
                    column.name
                );
                return Err(self.error(SqlState::SYNTAX_ERROR, message, constraint.location));
            }
            if let Ok(kind) = ConstrType::try_from(constraint.contype) {
                values.meet(self, kind, constraint.location)?;
                attributes.meet(self, kind, constraint.location)?;
            }
            constraints.extend(self.column_constraint(constraint, &mut column)?);
        }
        if serial.is_some() {
            values.meet(self, ConstrType::ConstrDefault, -1)?;
        }
        Ok(column)
    }

    /// Puts a clause of a column's definition into the column, or returns it as a constraint of the
    /// table.
    fn column_constraint(
        &mut self,
        constraint: &Constraint,
        column: &mut ColumnDefinition,
    ) -> Result<Option<ConstraintDefinition>, SqlError> {
        match ConstrType::try_from(constraint.contype) {
            Ok(ConstrType::ConstrNotnull) => column.not_null = true,
            Ok(ConstrType::ConstrDefault) => self.column_default(constraint, column)?,
            Ok(ConstrType::ConstrIdentity) => {
                let mut owned = self.identity(constraint)?;
                owned.options.type_ = owned.options.type_.or(Some(column.type_));
                column.not_null = true;
                column.sequence = Some(owned);
            }
            Ok(ConstrType::ConstrGenerated) => {
                return Err(self.unsupported("a generated column", constraint.location));
            }
            Ok(ConstrType::ConstrAttrDeferrable | ConstrType::ConstrAttrDeferred) => {
                return Err(self.unsupported("a deferrable constraint", constraint.location));
            }
            Ok(ConstrType::ConstrAttrNotEnforced) => {
                return Err(self.unsupported("a constraint that is not enforced", constraint.location));
            }
            Ok(
                ConstrType::ConstrNull
                | ConstrType::ConstrAttrNotDeferrable
                | ConstrType::ConstrAttrImmediate
                | ConstrType::ConstrAttrEnforced,
            ) => {}
            _ => return Ok(Some(self.constraint(constraint, Some(&column.name))?)),
        }
        Ok(None)
    }

    fn constraint(
        &mut self,
        constraint: &Constraint,
        column: Option<&str>,
    ) -> Result<ConstraintDefinition, SqlError> {
        let name = (!constraint.conname.is_empty()).then(|| constraint.conname.clone());
        let names = |nodes: &[Node]| -> Vec<String> {
            let named = strings(nodes).into_iter().map(str::to_owned);
            if nodes.is_empty() { column.iter().map(|c| (*c).to_owned()).collect() } else { named.collect() }
        };
        let included = || strings(&constraint.including).into_iter().map(str::to_owned).collect();
        if constraint.deferrable || constraint.initdeferred {
            return Err(self.unsupported("a deferrable constraint", constraint.location));
        }
        storage::of_constraint(self, constraint)?;
        let kind = match ConstrType::try_from(constraint.contype) {
            Ok(ConstrType::ConstrCheck | ConstrType::ConstrForeign) if !constraint.is_enforced => {
                return Err(self.unsupported("a constraint that is not enforced", constraint.location));
            }
            Ok(ConstrType::ConstrPrimary) if constraint.indexname.is_empty() => {
                ConstraintKind::PrimaryKey { columns: names(&constraint.keys), included: included() }
            }
            Ok(ConstrType::ConstrUnique) if constraint.indexname.is_empty() => ConstraintKind::Unique {
                columns: names(&constraint.keys),
                included: included(),
                nulls_not_distinct: constraint.nulls_not_distinct,
            },
            Ok(ConstrType::ConstrCheck) => {
                let expression = constraint
                    .raw_expr
                    .as_deref()
                    .ok_or_else(|| SqlError::internal("CHECK without expression"))?;
                ConstraintKind::Check { text: self.kept_text(expression)?, columns: Vec::new() }
            }
            Ok(ConstrType::ConstrForeign) => {
                let parent = relation(constraint.pktable.as_ref())?;
                if !matches!(constraint.fk_matchtype.as_str(), "" | "s") {
                    return Err(self.unsupported("MATCH FULL or PARTIAL", constraint.location));
                }
                if !constraint.fk_del_set_cols.is_empty() {
                    return Err(self.unsupported("SET NULL of single columns", constraint.location));
                }
                ConstraintKind::ForeignKey {
                    columns: names(&constraint.fk_attrs),
                    parent: self.qualified(parent)?,
                    parent_columns: strings(&constraint.pk_attrs).into_iter().map(str::to_owned).collect(),
                    on_delete: referential_action(&constraint.fk_del_action),
                    on_update: referential_action(&constraint.fk_upd_action),
                }
            }
            Ok(ConstrType::ConstrPrimary | ConstrType::ConstrUnique) => {
                return Err(self.unsupported("a constraint USING INDEX", constraint.location));
            }
            _ => return Err(self.unsupported("this constraint", constraint.location)),
        };
        Ok(ConstraintDefinition { name, checked: !constraint.skip_validation, kind })
    }

    fn create_table_as(&mut self, create: &CreateTableAsStmt) -> Result<Command, SqlError> {
        let into =
            create.into.as_deref().ok_or_else(|| SqlError::internal("CREATE TABLE AS without a table"))?;
        let range = relation(into.rel.as_ref())?;
        if create.objtype != ObjectType::ObjectTable as i32 {
            return Err(self.unsupported("a materialized view", range.location));
        }
        if range.relpersistence == "t" || range.schemaname == "pg_temp" {
            return Err(self.unsupported("CREATE TEMPORARY TABLE", range.location));
        }
        refuse_on_commit(into.on_commit)?;
        storage::of_table(&into.options)?;
        storage::table_space(&into.table_space_name)?;
        storage::table_method(&into.access_method)?;
        let names = strings(&into.col_names);
        let columns = names.iter().map(|name| ColumnDefinition {
            name: (*name).to_owned(),
            type_: Type::UNKNOWN,
            not_null: false,
            default: None,
            volatile_default: false,
            sequence: None,
        });
        let table = CreateTable {
            name: self.qualified(range)?,
            if_not_exists: create.if_not_exists,
            columns: columns.collect(),
            constraints: Vec::new(),
        };
        if let Some(NodeEnum::ExecuteStmt(execute)) =
            create.query.as_ref().and_then(|query| query.node.as_ref())
        {
            let call = self.prepared_call(execute)?;
            return Ok(Command::CreateTableAsExecute { table, call, with_data: !into.skip_data });
        }
        let query = self.compiled(create.query.as_deref())?;
        if names.len() > query.columns.len() {
            return Err(SqlError::new(SqlState::SYNTAX_ERROR, "too many column names were specified"));
        }
        let select_into = create.is_select_into;
        Ok(Command::CreateTableAs { table, query, with_data: !into.skip_data, select_into })
    }

    fn create_index(&mut self, index: &IndexStmt) -> Result<Command, SqlError> {
        let range = relation(index.relation.as_ref())?;
        let method = index.access_method.as_str();
        if !method.is_empty() && !storage::is_index_method(method) {
            return Err(storage::no_method(method));
        }
        if !matches!(method, "" | "btree") {
            return Err(self.unsupported(&format!("access method {}", index.access_method), range.location));
        }
        if index.where_clause.is_some() {
            return Err(self.unsupported("a partial index", range.location));
        }
        storage::of_index(&index.options)?;
        storage::table_space(&index.table_space)?;
        let indexed = match self.find_relation(range)? {
            Some(Relation::Table(table)) if !table.is_virtual() => {
                self.lock(table.oid, txn::TableLock::ShareRowExclusive);
                Some(table)
            }
            Some(Relation::Table(table)) => Some(table),
            _ => None,
        };
        let mut columns = Vec::with_capacity(index.index_params.len());
        for node in &index.index_params {
            let NodeEnum::IndexElem(element) = inner(node)? else { continue };
            if element.name.is_empty() {
                return Err(self.unsupported("an index on an expression", range.location));
            }
            let type_ =
                indexed.as_ref().and_then(|table| Some(table.columns[table.column(&element.name)?].type_));
            if let Some(type_) = type_
                && !element.collation.is_empty()
            {
                self.collatable(type_, -1)?;
            }
            self.collation(&element.collation, -1)?;
            storage::operator_class(element, type_)?;
            let descending = element.ordering == SortByDir::SortbyDesc as i32;
            let nulls_first = match SortByNulls::try_from(element.nulls_ordering) {
                Ok(SortByNulls::SortbyNullsFirst) => true,
                Ok(SortByNulls::SortbyNullsLast) => false,
                _ => descending,
            };
            columns.push(IndexColumn { name: element.name.clone(), descending, nulls_first });
        }
        let included = index.index_including_params.iter().map(storage::included_column);
        Ok(Command::CreateIndex(CreateIndex {
            name: (!index.idxname.is_empty()).then(|| index.idxname.clone()),
            table: self.qualified(range)?,
            unique: index.unique,
            nulls_not_distinct: index.nulls_not_distinct,
            if_not_exists: index.if_not_exists,
            concurrently: index.concurrent,
            columns,
            included: included.collect::<Result<_, _>>()?,
        }))
    }

    fn drop_objects(&self, drop: &DropStmt) -> Result<Command, SqlError> {
        let kind = match ObjectType::try_from(drop.remove_type) {
            Ok(ObjectType::ObjectTable) => ObjectKind::Table,
            Ok(ObjectType::ObjectIndex) => ObjectKind::Index,
            Ok(ObjectType::ObjectSequence) => ObjectKind::Sequence,
            Ok(ObjectType::ObjectView) => ObjectKind::View,
            Ok(ObjectType::ObjectSchema) => ObjectKind::Schema,
            Ok(ObjectType::ObjectStatisticExt) => ObjectKind::Statistics,
            _ => return Err(self.unsupported("dropping this", 0)),
        };
        let mut names = Vec::with_capacity(drop.objects.len());
        for node in &drop.objects {
            let parts = match inner(node)? {
                NodeEnum::List(list) => strings(&list.items),
                NodeEnum::String(name) => vec![name.sval.as_str()],
                _ => Vec::new(),
            };
            names.push(match *parts.as_slice() {
                _ if kind == ObjectKind::Statistics => self.statistics_name(&parts)?,
                [name] => QualifiedName { schema: None, name: name.to_owned() },
                [_, _, _, _, ..] => {
                    let message =
                        format!("improper relation name (too many dotted names): {}", parts.join("."));
                    return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
                }
                [.., schema, name] => {
                    QualifiedName { schema: Some(schema.to_owned()), name: name.to_owned() }
                }
                [] => return Err(SqlError::internal("DROP without a name")),
            });
        }
        let cascade = drop.behavior == DropBehavior::DropCascade as i32;
        let concurrently = drop.concurrent;
        Ok(Command::Drop { kind, names, if_exists: drop.missing_ok, cascade, concurrently })
    }
}

fn is_statistics(object: i32) -> bool {
    object == ObjectType::ObjectStatisticExt as i32
}

/// Raises 42P16 for ON COMMIT, since the table is not temporary.
fn refuse_on_commit(action: i32) -> Result<(), SqlError> {
    match OnCommitAction::try_from(action) {
        Ok(OnCommitAction::OncommitNoop | OnCommitAction::Undefined) | Err(_) => Ok(()),
        Ok(_) => {
            let message = "ON COMMIT can only be used on temporary tables";
            Err(SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message))
        }
    }
}

/// Refuses a NOT NULL constraint's name that the statement uses twice, and two names for one
/// column. The names are not stored.
fn not_null_names(
    create: &CreateStmt,
    table: &str,
    constraints: &[ConstraintDefinition],
) -> Result<(), SqlError> {
    let mut taken: Vec<&str> =
        constraints.iter().filter_map(|constraint| constraint.name.as_deref()).collect();
    for element in &create.table_elts {
        let NodeEnum::ColumnDef(column) = inner(element)? else { continue };
        let mut own: Option<&str> = None;
        for node in &column.constraints {
            let NodeEnum::Constraint(constraint) = inner(node)? else { continue };
            let name = constraint.conname.as_str();
            if constraint.contype != ConstrType::ConstrNotnull as i32 || name.is_empty() || own == Some(name)
            {
                continue;
            }
            if let Some(other) = own {
                let message = format!("conflicting not-null constraint names \"{other}\" and \"{name}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
            if taken.contains(&name) {
                let message = format!("constraint \"{name}\" for relation \"{table}\" already exists");
                return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
            }
            own = Some(name);
            taken.push(name);
        }
    }
    Ok(())
}

fn serial_type(name: &TypeName) -> Option<Type> {
    match *strings(&name.names).as_slice() {
        _ if !name.array_bounds.is_empty() => None,
        ["serial" | "serial4"] => Some(Type::INT4),
        ["bigserial" | "serial8"] => Some(Type::INT8),
        ["smallserial" | "serial2"] => Some(Type::INT2),
        _ => None,
    }
}

/// Whether a column's definition creates a sequence.
fn makes_sequence(definition: &Node) -> bool {
    let Some(NodeEnum::ColumnDef(column)) = &definition.node else { return false };
    column.type_name.as_ref().is_some_and(|name| serial_type(name).is_some())
        || column.constraints.iter().any(|constraint| {
            matches!(&constraint.node, Some(NodeEnum::Constraint(constraint))
                if constraint.contype == ConstrType::ConstrIdentity as i32)
        })
}

fn referential_action(code: &str) -> ReferentialAction {
    match code {
        "r" => ReferentialAction::Restrict,
        "c" => ReferentialAction::Cascade,
        "n" => ReferentialAction::SetNull,
        "d" => ReferentialAction::SetDefault,
        _ => ReferentialAction::NoAction,
    }
}

fn draft_column(name: &str, type_: Type, not_null: bool) -> Column {
    Column { name: name.to_owned(), type_, not_null, default: None, identity: None, dropped: false }
}

/// The table as defined so far, for binding its own expressions.
fn draft_table(name: &str, columns: &[ColumnDefinition]) -> Arc<Table> {
    Arc::new(Table {
        oid: 0,
        schema: catalog::PUBLIC,
        name: name.to_owned(),
        tree: TreeAddress::NONE,
        out_of_line: TreeAddress::NONE,
        columns: columns
            .iter()
            .map(|column| draft_column(&column.name, column.type_, column.not_null))
            .collect(),
        primary_key: None,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        missing: Default::default(),
        extended: Vec::new(),
        layout: catalog::Layout::default(),
    })
}
