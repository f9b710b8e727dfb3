//! CREATE, ALTER and DROP STATISTICS: names, and the parts that need no catalog.

use pg_query::NodeEnum;
use pg_query::protobuf::{
    AlterObjectSchemaStmt, AlterOwnerStmt, AlterStatsStmt, CreateStatsStmt, Node, RangeVar, RenameStmt,
    StatsElem,
};

use crate::bind::{Binder, inner};
use crate::compile::owner::named_role;
use crate::parse::strings;
use crate::plan::{Command, CreateStatistics, QualifiedName, StatisticsAction, StatisticsCommand};
use values::error::{SqlError, SqlState};

impl Binder<'_> {
    pub(super) fn create_statistics(&self, create: &CreateStatsStmt) -> Result<Command, SqlError> {
        let [node] = create.relations.as_slice() else {
            let message = "only a single relation is allowed in CREATE STATISTICS";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        };
        let NodeEnum::RangeVar(range) = inner(node)? else {
            let message = "CREATE STATISTICS only supports relation names in the FROM clause";
            return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
        };
        let mut columns = Vec::with_capacity(create.exprs.len());
        for node in &create.exprs {
            let NodeEnum::StatsElem(element) = inner(node)? else { continue };
            columns.push(self.statistics_column(element, range)?);
        }
        let name = strings(&create.defnames);
        Ok(Command::Statistics(StatisticsCommand::Create(CreateStatistics {
            name: (!name.is_empty()).then(|| self.statistics_name(&name)).transpose()?,
            if_not_exists: create.if_not_exists,
            kinds: strings(&create.stat_types).into_iter().map(str::to_owned).collect(),
            columns,
            table: self.qualified(range)?,
        })))
    }

    /// The column that an element names, also in parentheses.
    fn statistics_column(&self, element: &StatsElem, range: &RangeVar) -> Result<String, SqlError> {
        let Some(expression) = element.expr.as_deref() else { return Ok(element.name.clone()) };
        let NodeEnum::ColumnRef(column) = inner(expression)? else {
            return Err(self.unsupported("statistics on an expression", range.location));
        };
        let alias = range.alias.as_ref().map_or(&range.relname, |alias| &alias.aliasname);
        match strings(&column.fields).as_slice() {
            [name] if column.fields.len() == 1 => Ok((*name).to_owned()),
            [table, name] if column.fields.len() == 2 && table == alias => Ok((*name).to_owned()),
            _ => Err(self.unsupported("statistics on an expression", column.location)),
        }
    }

    /// The name of an object of CREATE STATISTICS, from its parts.
    pub(super) fn statistics_name(&self, parts: &[&str]) -> Result<QualifiedName, SqlError> {
        let of = |schema: Option<&str>, name: &str| QualifiedName {
            schema: schema.map(str::to_owned),
            name: name.to_owned(),
        };
        match *parts {
            [name] => Ok(of(None, name)),
            [schema, name] => Ok(of(Some(schema), name)),
            [database, schema, name] if database == self.catalog().database.name => {
                Ok(of(Some(schema), name))
            }
            [_, _, _] => {
                let message = format!("cross-database references are not implemented: {}", parts.join("."));
                Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
            _ => {
                let message = format!("improper qualified name (too many dotted names): {}", parts.join("."));
                Err(SqlError::new(SqlState::SYNTAX_ERROR, message))
            }
        }
    }

    fn altered(
        &self,
        parts: &[&str],
        if_exists: bool,
        action: StatisticsAction,
    ) -> Result<Command, SqlError> {
        let name = self.statistics_name(parts)?;
        Ok(Command::Statistics(StatisticsCommand::Alter { name, if_exists, action }))
    }

    pub(super) fn alter_statistics(&self, alter: &AlterStatsStmt) -> Result<Command, SqlError> {
        let target = match alter.stxstattarget.as_deref().map(inner).transpose()? {
            Some(NodeEnum::Integer(number)) => Some(number.ival),
            _ => None,
        };
        self.altered(&strings(&alter.defnames), alter.missing_ok, StatisticsAction::Target(target))
    }

    pub(super) fn rename_statistics(&self, rename: &RenameStmt) -> Result<Command, SqlError> {
        let action = StatisticsAction::Rename(rename.newname.clone());
        self.altered(&parts_of(rename.object.as_deref())?, rename.missing_ok, action)
    }

    pub(super) fn own_statistics(&self, alter: &AlterOwnerStmt) -> Result<Command, SqlError> {
        let action = StatisticsAction::Owner(alter.newowner.as_ref().and_then(named_role));
        self.altered(&parts_of(alter.object.as_deref())?, false, action)
    }

    pub(super) fn move_statistics(&self, alter: &AlterObjectSchemaStmt) -> Result<Command, SqlError> {
        let action = StatisticsAction::SetSchema(alter.newschema.clone());
        self.altered(&parts_of(alter.object.as_deref())?, alter.missing_ok, action)
    }
}

/// The parts of the name of a statement's object.
fn parts_of(object: Option<&Node>) -> Result<Vec<&str>, SqlError> {
    Ok(match object.map(inner).transpose()? {
        Some(NodeEnum::List(list)) => strings(&list.items),
        _ => Vec::new(),
    })
}
