//! ALTER TABLE and the renaming of objects.
//!
//! Binding the actions locks the table, with the weakest lock that covers all of them.

use std::sync::Arc;

use pg_query::NodeEnum;
use pg_query::protobuf::{
    AlterTableCmd, AlterTableStmt, AlterTableType as Kind, ColumnDef, ConstrType, Constraint, DropBehavior,
    Node, ObjectType, RangeVar, RenameStmt,
};
use txn::TableLock;

use super::{draft_column, makes_sequence};
use crate::bind::modify::relation;
use crate::bind::{Binder, inner};
use crate::compile::command::without_position;
use crate::compile::owner::named_role;
use crate::compile::storage::parameters_let_write;
use crate::plan::{AlterAction, ColumnDefinition, Command, ConstraintDefinition, ConstraintKind};
use catalog::system_columns;
use catalog::{Relation, Table};
use values::error::{SqlError, SqlState};
use values::types::Type;

impl Binder<'_> {
    pub(super) fn alter_table(&mut self, alter: &AlterTableStmt) -> Result<Command, SqlError> {
        let range = relation(alter.relation.as_ref())?;
        let kind = match ObjectType::try_from(alter.objtype) {
            Ok(ObjectType::ObjectForeignTable) => "ALTER FOREIGN TABLE",
            Ok(ObjectType::ObjectView) => "ALTER VIEW",
            Ok(ObjectType::ObjectMatview) => "ALTER MATERIALIZED VIEW",
            Ok(ObjectType::ObjectType) => "ALTER TYPE",
            _ => "",
        };
        if !kind.is_empty() {
            return Err(self.unsupported(kind, 0));
        }
        let name = self.qualified(range)?;
        if let Some(Relation::Table(table)) = self.find_relation(range)?
            && !table.is_virtual()
        {
            self.lock(table.oid, lock_of(alter));
        }
        self.makes_sequences = alter.cmds.iter().any(|node| match &node.node {
            Some(NodeEnum::AlterTableCmd(command)) => {
                command.subtype == Kind::AtAddIdentity as i32
                    || command.def.as_deref().is_some_and(makes_sequence)
            }
            _ => false,
        });
        let mut actions = Vec::with_capacity(alter.cmds.len());
        for node in &alter.cmds {
            let NodeEnum::AlterTableCmd(command) = inner(node)? else { continue };
            self.alter_action(command, range, &mut actions)?;
        }
        let tag = alter_tag(alter.objtype);
        Ok(Command::AlterTable { name, if_exists: alter.missing_ok, actions, tag })
    }

    fn alter_action(
        &mut self,
        command: &AlterTableCmd,
        range: &RangeVar,
        actions: &mut Vec<AlterAction>,
    ) -> Result<(), SqlError> {
        let cascade = command.behavior == DropBehavior::DropCascade as i32;
        let (name, if_exists) = (command.name.clone(), command.missing_ok);
        let definition = command.def.as_deref().map(inner).transpose()?;
        actions.push(match (Kind::try_from(command.subtype), definition) {
            (Ok(Kind::AtAddColumn), Some(NodeEnum::ColumnDef(column))) => {
                self.add_column(column, range, if_exists)?
            }
            (Ok(Kind::AtDropColumn), _) => AlterAction::DropColumn { name, if_exists, cascade },
            (Ok(Kind::AtAddConstraint), Some(NodeEnum::Constraint(constraint))) => {
                AlterAction::AddConstraint(self.new_constraint(constraint, range)?)
            }
            (Ok(Kind::AtValidateConstraint), _) => AlterAction::Validate(name),
            (Ok(Kind::AtDropConstraint), _) => AlterAction::DropConstraint { name, if_exists, cascade },
            (Ok(Kind::AtColumnDefault), _) => {
                let default = match command.def.as_deref() {
                    Some(expression) => self.new_default(expression, range, &name)?,
                    None => None,
                };
                AlterAction::SetDefault { column: name, default }
            }
            (Ok(Kind::AtSetNotNull), _) => AlterAction::SetNotNull { column: name, not_null: true },
            (Ok(Kind::AtDropNotNull), _) => AlterAction::SetNotNull { column: name, not_null: false },
            (Ok(Kind::AtAddIdentity), Some(NodeEnum::Constraint(constraint))) => {
                AlterAction::AddIdentity { column: name, owned: self.identity(constraint)? }
            }
            (Ok(Kind::AtSetIdentity), Some(NodeEnum::List(list))) => {
                let (identity, options) = self.identity_options(&list.items)?;
                AlterAction::SetIdentity { column: name, identity, options }
            }
            (Ok(Kind::AtDropIdentity), _) => AlterAction::DropIdentity { column: name, if_exists },
            (Ok(Kind::AtAlterColumnType), Some(NodeEnum::ColumnDef(column))) => {
                let (type_, using) = self.new_type(column)?;
                AlterAction::SetType { column: name, type_, using }
            }
            (Ok(Kind::AtChangeOwner), _) => {
                AlterAction::Owner(command.newowner.as_ref().and_then(named_role))
            }
            (
                Ok(
                    Kind::AtSetStatistics
                    | Kind::AtSetStorage
                    | Kind::AtSetRelOptions
                    | Kind::AtResetRelOptions
                    | Kind::AtSetOptions
                    | Kind::AtResetOptions
                    | Kind::AtClusterOn
                    | Kind::AtDropCluster
                    | Kind::AtSetLogged
                    | Kind::AtSetUnLogged
                    | Kind::AtReplicaIdentity
                    | Kind::AtSetCompression
                    | Kind::AtSetTableSpace,
                ),
                _,
            ) => {
                self.check_storage(command, range, actions)?;
                AlterAction::NoEffect { lets_write: lets_write(command) }
            }
            _ => return Err(self.unsupported("this form of ALTER TABLE", range.location)),
        });
        Ok(())
    }

    fn add_column(
        &mut self,
        column: &ColumnDef,
        range: &RangeVar,
        if_not_exists: bool,
    ) -> Result<AlterAction, SqlError> {
        let mut constraints = Vec::new();
        let column = self.column(column, &range.relname, &mut constraints).map_err(of_kept_text)?;
        if let Some(Relation::Table(table)) = self.find_relation(range)?
            && table.column(&column.name).is_none()
        {
            self.bind_checks_of_column(&table, &column, &mut constraints)?;
        }
        Ok(AlterAction::AddColumn { column, constraints, if_not_exists })
    }

    fn new_constraint(
        &mut self,
        constraint: &Constraint,
        range: &RangeVar,
    ) -> Result<ConstraintDefinition, SqlError> {
        let mut constraint = self.constraint(constraint, None).map_err(of_kept_text)?;
        if let ConstraintKind::Check { text, columns } = &mut constraint.kind
            && let Some(Relation::Table(table)) = self.find_relation(range)?
        {
            *columns = self.check_columns(&table, text)?;
        }
        Ok(constraint)
    }

    /// The text of a new default. None where the relation is missing or no table, which the command
    /// itself reports.
    fn new_default(
        &mut self,
        expression: &Node,
        range: &RangeVar,
        name: &str,
    ) -> Result<Option<String>, SqlError> {
        if !matches!(self.find_relation(range)?, Some(Relation::Table(_))) {
            return Ok(None);
        }
        let table = self.stored_table(range).map_err(without_position)?;
        if let Some(refused) = system_columns::unchangeable("alter", name) {
            return Err(refused);
        }
        let position = self.named_column(&table, name, -1)?;
        let type_ = table.columns[position].type_;
        let default = self.default_expression(expression, name, type_).map_err(without_position)?;
        Ok(Some(default.0))
    }

    /// A column's new type, and the expression that converts its values.
    fn new_type(&mut self, column: &ColumnDef) -> Result<(Type, Option<String>), SqlError> {
        let type_name = column.type_name.as_ref().ok_or_else(|| SqlError::internal("column without type"))?;
        if let Some(collate) = &column.coll_clause {
            self.collation(&collate.collname, collate.location)?;
        }
        let using = column.raw_default.as_deref();
        if let Some(at) = using.and_then(subquery_in) {
            let message = "cannot use subquery in transform expression";
            return Err(self.error(SqlState::FEATURE_NOT_SUPPORTED, message, at));
        }
        let using = using.map(crate::parse::expression_text).transpose()?;
        let type_ = self.type_name(type_name)?;
        if let Some(collate) = &column.coll_clause {
            self.collatable(type_, collate.location)?;
        }
        Ok((type_, using))
    }

    /// Finds the columns that CHECKs read which stand beside a new column.
    fn bind_checks_of_column(
        &mut self,
        table: &Table,
        column: &ColumnDefinition,
        constraints: &mut [ConstraintDefinition],
    ) -> Result<(), SqlError> {
        let mut wider = table.clone();
        wider.columns.push(draft_column(&column.name, column.type_, column.not_null));
        let wider = Arc::new(wider);
        for constraint in constraints {
            if let ConstraintKind::Check { text, columns } = &mut constraint.kind {
                *columns = self.check_columns(&wider, text)?;
            }
        }
        Ok(())
    }

    pub(super) fn rename(&self, rename: &RenameStmt) -> Result<Command, SqlError> {
        let range = relation(rename.relation.as_ref());
        if rename.relation_type == ObjectType::ObjectForeignTable as i32 {
            return Err(self.unsupported("ALTER FOREIGN TABLE", 0));
        }
        let (from, to) = (rename.subname.clone(), rename.newname.clone());
        let action = match ObjectType::try_from(rename.rename_type) {
            Ok(ObjectType::ObjectTable | ObjectType::ObjectIndex | ObjectType::ObjectSequence) => {
                AlterAction::Rename(to)
            }
            Ok(ObjectType::ObjectColumn) => AlterAction::RenameColumn { from, to },
            Ok(ObjectType::ObjectTabconstraint) => AlterAction::RenameConstraint { from, to },
            _ => return Err(self.unsupported("renaming this", -1)),
        };
        let name = self.qualified(range?)?;
        let tag = alter_tag(rename.rename_type);
        Ok(Command::AlterTable { name, if_exists: rename.missing_ok, actions: vec![action], tag })
    }
}

/// Removes the position of an error about a relation that a DEFAULT or CHECK names.
fn of_kept_text(error: SqlError) -> SqlError {
    if error.code == SqlState::UNDEFINED_TABLE { without_position(error) } else { error }
}

/// The lock on the table while its actions are bound: the weakest that covers all of them.
fn lock_of(alter: &AlterTableStmt) -> TableLock {
    let needed = |node: &Node| match &node.node {
        Some(NodeEnum::AlterTableCmd(command)) => match Kind::try_from(command.subtype) {
            Ok(Kind::AtValidateConstraint) => TableLock::ShareUpdateExclusive,
            _ if lets_write(command) => TableLock::ShareUpdateExclusive,
            Ok(Kind::AtAddConstraint) => match command.def.as_ref().and_then(|node| node.node.as_ref()) {
                Some(NodeEnum::Constraint(constraint))
                    if constraint.contype == ConstrType::ConstrForeign as i32 =>
                {
                    TableLock::ShareRowExclusive
                }
                _ => TableLock::AccessExclusive,
            },
            _ => TableLock::AccessExclusive,
        },
        _ => TableLock::AccessExclusive,
    };
    alter.cmds.iter().map(needed).max().unwrap_or(TableLock::AccessExclusive)
}

/// The completion tag of ALTER for a kind of object. The statement's keyword decides, not the
/// object found.
pub(super) fn alter_tag(object: i32) -> &'static str {
    match ObjectType::try_from(object) {
        Ok(ObjectType::ObjectIndex) => "ALTER INDEX",
        Ok(ObjectType::ObjectSequence) => "ALTER SEQUENCE",
        _ => "ALTER TABLE",
    }
}

/// The location of an expression's first subquery.
fn subquery_in(expression: &Node) -> Option<i32> {
    expression.node.as_ref()?.nodes().into_iter().find_map(|(node, ..)| match node {
        pg_query::NodeRef::SubLink(link) => Some(link.location),
        _ => None,
    })
}

/// Whether an action that is checked and has no effect lets others write the table meanwhile.
fn lets_write(command: &AlterTableCmd) -> bool {
    match Kind::try_from(command.subtype) {
        Ok(Kind::AtSetRelOptions | Kind::AtResetRelOptions) => parameters_let_write(command.def.as_deref()),
        Ok(
            Kind::AtSetStatistics
            | Kind::AtSetOptions
            | Kind::AtResetOptions
            | Kind::AtClusterOn
            | Kind::AtDropCluster,
        ) => true,
        _ => false,
    }
}
