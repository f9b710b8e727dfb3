//! CREATE, ALTER and DROP STATISTICS.
//!
//! What must hold:
//!
//! 1. An object belongs to the definition of its table, which is replaced whole. So each change
//!    holds SHARE UPDATE EXCLUSIVE on the table, which lets readers and writers pass.
//! 2. ANALYZE holds the same lock. So no data of a dropped object comes back.
//! 3. Data goes with its object, and with the type of a column of it.

use std::sync::Arc;

use txn::{TableLock, Wait};

use super::super::Session;
use super::columns::no_column;
use super::{exists, owner, skipping};
use catalog::system_columns::SYSTEM_COLUMNS;
use catalog::{
    Change, ExtendedStatistics, MOST_COLUMNS, PG_CATALOG, Relation, StatisticsKinds, StatisticsObject, Table,
    TableStatistics, pg_catalog,
};
use execution::client::{Client, Notice};
use query::plan::{CreateStatistics, QualifiedName, StatisticsAction, StatisticsCommand};
use values::error::{SqlError, SqlState};

/// The lock on the table.
const LOCK: TableLock = TableLock::ShareUpdateExclusive;
/// The largest target of SET STATISTICS, as in PostgreSQL.
const MOST: i32 = 10_000;

/// Runs CREATE or ALTER STATISTICS. Returns its tag.
pub(super) fn run(
    session: &mut Session,
    command: &StatisticsCommand,
    client: &mut dyn Client,
) -> Result<&'static str, SqlError> {
    match command {
        StatisticsCommand::Create(create) => {
            make(session, create, client)?;
            Ok("CREATE STATISTICS")
        }
        StatisticsCommand::Alter { name, if_exists, action } => {
            alter(session, (name, *if_exists), action, client)?;
            Ok("ALTER STATISTICS")
        }
    }
}

fn make(session: &mut Session, create: &CreateStatistics, client: &mut dyn Client) -> Result<(), SqlError> {
    let table = locked_table(session, &create.table)?;
    let own = session.environment.catalog.schema_name(table.schema).to_owned();
    let schema = match &create.name {
        Some(name) => name.schema.as_deref(),
        None => Some(&own[..]),
    };
    let schema = session.lock_schema(schema)?;
    refuse_in_catalog(schema)?;
    let mut table = session.definition(table.oid)?;
    let name = match &create.name {
        Some(name) => name.name.clone(),
        None => session.statistics_name(&table, &create.columns)?,
    };
    if session.environment.catalog.statistics_in(schema, &name).is_some() {
        let message = format!("statistics object \"{name}\" already exists");
        if !create.if_not_exists {
            return Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message));
        }
        exists(session, client, SqlState::DUPLICATE_OBJECT, &message);
        return Ok(());
    }
    let (columns, kinds) = (columns(&table, &create.columns)?, kinds(&create.kinds)?);
    let columns = several(columns)?;
    let oid = session.shared.new_oid();
    table.extended.push(StatisticsObject { oid, schema, name, columns, kinds, target: None });
    session.define(Change::PutTable(Arc::new(table)))
}

/// Locks the table of CREATE STATISTICS.
fn locked_table(session: &mut Session, name: &QualifiedName) -> Result<Arc<Table>, SqlError> {
    let not_for = |kind: &str| {
        let message = format!("cannot define statistics for relation \"{}\"", name.name);
        SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
            .with_detail(format!("This operation is not supported for {kind}."))
    };
    let refused = |session: &Session| match session.find_relation(name) {
        Some(Relation::Index(..)) => Some(not_for("indexes")),
        Some(Relation::Sequence(_)) => Some(not_for("sequences")),
        Some(Relation::Table(table)) if pg_catalog::is_view(table.oid) => Some(not_for("views")),
        _ => None,
    };
    session.refresh_catalog();
    if let Some(error) = refused(session) {
        return Err(error);
    }
    match session.locked_table(name, LOCK)? {
        Some(table) => Ok(table),
        None => Err(session.missing(name)),
    }
}

fn refuse_in_catalog(schema: u32) -> Result<(), SqlError> {
    match schema {
        PG_CATALOG => Err(SqlError::unsupported("an object of users in schema \"pg_catalog\"")),
        _ => Ok(()),
    }
}

/// The positions of named columns.
fn columns(table: &Table, names: &[String]) -> Result<Vec<u32>, SqlError> {
    if names.len() > MOST_COLUMNS {
        let message = format!("cannot have more than {MOST_COLUMNS} columns in statistics");
        return Err(SqlError::new(SqlState::TOO_MANY_COLUMNS, message));
    }
    let position = |name: &String| match table.column(name) {
        Some(at) => Ok(at as u32),
        None if SYSTEM_COLUMNS.contains(&&name[..]) => {
            let message = "statistics creation on system columns is not supported";
            Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
        }
        None => Err(no_column(name)),
    };
    names.iter().map(position).collect()
}

/// The columns in their order, or an error if they are fewer than two or one comes twice.
fn several(mut columns: Vec<u32>) -> Result<Vec<u32>, SqlError> {
    if columns.len() < 2 {
        let message = "extended statistics require at least 2 columns";
        return Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message));
    }
    columns.sort_unstable();
    if columns.windows(2).any(|pair| pair[0] == pair[1]) {
        let message = "duplicate column name in statistics definition";
        return Err(SqlError::new(SqlState::DUPLICATE_COLUMN, message));
    }
    Ok(columns)
}

fn kinds(names: &[String]) -> Result<StatisticsKinds, SqlError> {
    if names.is_empty() {
        return Ok(StatisticsKinds::ALL);
    }
    let mut kinds = StatisticsKinds::default();
    for name in names {
        match &name[..] {
            "ndistinct" => kinds.distinct = true,
            "dependencies" => kinds.dependencies = true,
            "mcv" => kinds.common = true,
            _ => {
                let message = format!("unrecognized statistics kind \"{name}\"");
                return Err(SqlError::new(SqlState::SYNTAX_ERROR, message));
            }
        }
    }
    Ok(kinds)
}

/// Finds an object by name and locks its table. Returns the OIDs of the table and the object.
pub(super) fn locked(session: &mut Session, name: &QualifiedName) -> Result<Option<(u32, u32)>, SqlError> {
    let found = session.lock_found(LOCK, Wait::Block, |session| {
        let path = &session.environment.table.search_path;
        let found = session.environment.catalog.statistics_object(path, name.schema.as_deref(), &name.name);
        Ok(found.map(|(table, object)| (table.oid, (table.oid, object.oid))))
    })?;
    session.environment.txn.statement_start().map_err(execution::from_txn)?;
    Ok(found)
}

fn alter(
    session: &mut Session,
    (name, if_exists): (&QualifiedName, bool),
    action: &StatisticsAction,
    client: &mut dyn Client,
) -> Result<(), SqlError> {
    let target = match action {
        StatisticsAction::Target(target) => checked(session, *target, client)?,
        StatisticsAction::Owner(role) => {
            owner::check(session, role.as_deref())?;
            None
        }
        _ => None,
    };
    let Some((table, oid)) = locked(session, name)? else {
        let message = format!("statistics object \"{}\" does not exist", name.shown());
        if if_exists {
            skipping(session, client, format!("{message}, skipping"));
            return Ok(());
        }
        let schema = name.schema.as_deref();
        let is_missing = |schema: &&str| session.environment.catalog.schema(schema).is_none();
        return Err(match schema.filter(is_missing) {
            Some(_) => session.missing(name),
            None => SqlError::new(SqlState::UNDEFINED_OBJECT, message),
        });
    };
    let mut table = session.definition(table)?;
    let Some(at) = table.extended.iter().position(|object| object.oid == oid) else { return Ok(()) };
    match action {
        StatisticsAction::Owner(_) => return Ok(()),
        StatisticsAction::Target(_) => table.extended[at].target = target,
        StatisticsAction::Rename(to) => {
            refuse_taken(session, table.extended[at].schema, to)?;
            table.extended[at].name.clone_from(to);
        }
        StatisticsAction::SetSchema(to) => {
            let schema = session.lock_schema(Some(to))?;
            refuse_in_catalog(schema)?;
            let object = &mut table.extended[at];
            if object.schema != schema {
                refuse_taken(session, schema, &object.name)?;
            }
            object.schema = schema;
        }
    }
    session.define(Change::PutTable(Arc::new(table)))
}

/// The target of SET STATISTICS, in its bounds. -1 and DEFAULT are none.
fn checked(session: &Session, target: Option<i32>, client: &mut dyn Client) -> Result<Option<u16>, SqlError> {
    let Some(target) = target.filter(|target| *target != -1) else { return Ok(None) };
    if target < 0 {
        let message = format!("statistics target {target} is too low");
        return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    if target > MOST {
        let message = format!("lowering statistics target to {MOST}");
        session.tell(client, &Notice::warning(SqlState::INVALID_PARAMETER_VALUE, message));
    }
    Ok(Some(target.min(MOST) as u16))
}

/// 42710 if a schema has an object of this name.
fn refuse_taken(session: &Session, schema: u32, name: &str) -> Result<(), SqlError> {
    let catalog = &session.environment.catalog;
    if catalog.statistics_in(schema, name).is_none() {
        return Ok(());
    }
    let schema = catalog.schema_name(schema);
    let message = format!("statistics object \"{name}\" already exists in schema \"{schema}\"");
    Err(SqlError::new(SqlState::DUPLICATE_OBJECT, message))
}

/// Drops an object of a locked table, with its data.
pub(super) fn forget(session: &mut Session, table: u32, object: u32) -> Result<(), SqlError> {
    let mut table = session.definition(table)?;
    table.extended.retain(|other| other.oid != object);
    forget_data(session, table.oid, |found| found.object == object)?;
    session.define(Change::PutTable(Arc::new(table)))
}

/// Drops the values that statistics list for a column of a locked table that gets another type.
/// Their keys are those of the old type.
pub(super) fn forget_values(session: &mut Session, table: u32, column: u32) -> Result<(), SqlError> {
    let Some(found) = session.environment.catalog.statistics(table) else { return Ok(()) };
    let mut kept = TableStatistics::clone(found);
    if let Some(own) = kept.columns.get_mut(column as usize) {
        own.common.clear();
        own.histogram.clear();
    }
    kept.extended.retain(|found| !found.columns.contains(&column));
    session.define(Change::PutStatistics(table, Arc::new(kept)))
}

/// Drops the data of those objects of a locked table that `goes` accepts.
pub(super) fn forget_data(
    session: &mut Session,
    table: u32,
    goes: impl Fn(&ExtendedStatistics) -> bool,
) -> Result<(), SqlError> {
    let found = session.environment.catalog.statistics(table);
    let Some(found) = found.filter(|found| found.extended.iter().any(&goes)) else { return Ok(()) };
    let mut kept = TableStatistics::clone(found);
    kept.extended.retain(|found| !goes(found));
    session.define(Change::PutStatistics(table, Arc::new(kept)))
}
