//! Definitions of sequences. [`crate::shared`] has their counters.
//!
//! A definition names its counter by an OID of the counter's own. `nextval` changes the counter
//! outside of transactions, while the definition changes with its transaction.
//!
//! What must hold:
//!
//! 1. A change of the numbers gives the definition a new counter. So a rollback returns to the old
//!    counter, which goes on where it stood.
//! 2. A definition fits itself: `minimum <= start <= maximum`, `minimum < maximum`, an increment
//!    other than 0, a cache of at least 1. [`apply`] checks all of them after each change.
//! 3. A sequence lies in the schema of the table that owns it. The owner of an identity column's
//!    sequence stays.
//! 4. A sequence is locked against `nextval` and other changes before its definition is read.
//! 5. No rollback takes a counter back by itself: the transaction's end removes the counters that
//!    no definition uses.

use std::sync::Arc;

use txn::{TableLock, Wait};

use super::super::Session;
use super::names::not_in_the_catalog;
use super::{exists, skipping};
use catalog::counter::CounterPlace;
use catalog::{Catalog, Change, Relation, Sequence, Table};
use execution::client::Client;
use execution::from_txn;
use query::plan::{OwnedSequence, QualifiedName, SequenceOptions};
use values::error::{SqlError, SqlState};
use values::types::{Type, oid};

/// CREATE SEQUENCE.
pub(super) fn create(
    session: &mut Session,
    (name, if_not_exists): (&QualifiedName, bool),
    options: &SequenceOptions,
    client: &mut dyn Client,
) -> Result<&'static str, SqlError> {
    let schema = session.lock_schema(name.schema.as_deref())?;
    if session.environment.catalog.relation_in(schema, &name.name).is_some() {
        let message = format!("relation \"{}\" already exists", name.name);
        if !if_not_exists {
            return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
        }
        exists(session, client, SqlState::DUPLICATE_TABLE, &message);
        return Ok("CREATE SEQUENCE");
    }
    if schema == catalog::PG_CATALOG {
        return Err(not_in_the_catalog(&name.name));
    }
    let oid = session.shared.new_oid();
    let mut sequence = defined(session, oid, (schema, name.name.clone()), options)?;
    own_by(session, &mut sequence, options)?;
    session.define(Change::PutSequence(Arc::new(sequence)))?;
    Ok("CREATE SEQUENCE")
}

/// The sequence of a SERIAL or identity column of a table that is being defined, with this OID.
pub(super) fn own(
    session: &mut Session,
    table: &mut Table,
    column: usize,
    (oid, owned): (u32, &OwnedSequence),
) -> Result<(), SqlError> {
    let name = match &owned.name {
        Some(name) => own_name(session, table, name)?,
        None => {
            let columns = std::slice::from_ref(&table.columns[column].name);
            session.relation_name(table, columns, ("seq", false))?
        }
    };
    let mut options = owned.options.clone();
    options.type_ = options.type_.or(Some(Type::new(table.columns[column].type_.oid)));
    options.owned_by = None;
    let mut sequence = defined(session, oid, (table.schema, name), &options)?;
    sequence.owner = Some((table.oid, column as u32));
    table.columns[column].default = Some(format!("nextval('{}'::regclass)", sequence.oid));
    table.columns[column].not_null = true;
    session.define(Change::PutSequence(Arc::new(sequence)))
}

/// The name that the statement gives to a column's sequence. Fails if it is taken, or not in the
/// table's schema.
fn own_name(session: &Session, table: &Table, name: &QualifiedName) -> Result<String, SqlError> {
    let catalog = &session.environment.catalog;
    if name.schema.as_deref().is_some_and(|schema| schema != catalog.schema_name(table.schema)) {
        let message = "sequence must be in same schema as table it is linked to";
        return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    if catalog.relation_in(table.schema, &name.name).is_some() {
        let message = format!("relation \"{}\" already exists", name.name);
        return Err(SqlError::new(SqlState::DUPLICATE_TABLE, message));
    }
    Ok(name.name.clone())
}

/// A new sequence by its options.
fn defined(
    session: &Session,
    oid: u32,
    (schema, name): (u32, String),
    options: &SequenceOptions,
) -> Result<Sequence, SqlError> {
    let type_ = options.type_.unwrap_or(Type::INT8);
    session.environment.txn.lock_table(oid, TableLock::AccessExclusive, Wait::Block).map_err(from_txn)?;
    let mut sequence = Sequence {
        oid,
        counter: oid,
        first: 1,
        schema,
        name,
        type_,
        start: 1,
        increment: 1,
        minimum: 1,
        maximum: 1,
        cache: 1,
        cycle: false,
        owner: None,
        place: CounterPlace::default(),
    };
    apply(&mut sequence, options, true)?;
    sequence.first = sequence.start;
    Ok(sequence)
}

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// The numbers a type holds.
fn bounds(type_: Type) -> Result<(i64, i64), SqlError> {
    match type_.oid {
        oid::INT2 => Ok((i64::from(i16::MIN), i64::from(i16::MAX))),
        oid::INT4 => Ok((i64::from(i32::MIN), i64::from(i32::MAX))),
        oid::INT8 => Ok((i64::MIN, i64::MAX)),
        _ => Err(invalid("sequence type must be smallint, integer, or bigint")),
    }
}

/// Puts options into a definition, with PostgreSQL's defaults and checks.
fn apply(sequence: &mut Sequence, options: &SequenceOptions, new: bool) -> Result<(), SqlError> {
    if let Some(increment) = options.increment {
        if increment == 0 {
            return Err(invalid("INCREMENT must not be zero"));
        }
        sequence.increment = increment;
    }
    if let Some(type_) = options.type_.filter(|_| !new) {
        // A bound of the old type becomes that of the new type.
        let (old_low, old_high) = bounds(sequence.type_)?;
        let (low, high) = bounds(type_)?;
        sequence.type_ = Type::new(type_.oid);
        sequence.maximum = if sequence.maximum == old_high { high } else { sequence.maximum };
        sequence.minimum = if sequence.minimum == old_low { low } else { sequence.minimum };
    }
    let (low, high) = bounds(sequence.type_)?;
    let ascending = sequence.increment > 0;
    match options.minimum {
        Some(Some(minimum)) => sequence.minimum = minimum,
        Some(None) => sequence.minimum = if ascending { 1 } else { low },
        None if new => sequence.minimum = if ascending { 1 } else { low },
        None => {}
    }
    match options.maximum {
        Some(Some(maximum)) => sequence.maximum = maximum,
        Some(None) => sequence.maximum = if ascending { high } else { -1 },
        None if new => sequence.maximum = if ascending { high } else { -1 },
        None => {}
    }
    let out_of_range = |what: &str, value: i64| {
        invalid(format!("{what} ({value}) is out of range for sequence data type {}", sequence.type_))
    };
    if !(low..=high).contains(&sequence.maximum) {
        return Err(out_of_range("MAXVALUE", sequence.maximum));
    }
    if !(low..=high).contains(&sequence.minimum) {
        return Err(out_of_range("MINVALUE", sequence.minimum));
    }
    if sequence.minimum >= sequence.maximum {
        return Err(invalid(format!(
            "MINVALUE ({}) must be less than MAXVALUE ({})",
            sequence.minimum, sequence.maximum
        )));
    }
    match options.start {
        Some(start) => sequence.start = start,
        None if new => sequence.start = if ascending { sequence.minimum } else { sequence.maximum },
        None => {}
    }
    if sequence.start < sequence.minimum {
        let message =
            format!("START value ({}) cannot be less than MINVALUE ({})", sequence.start, sequence.minimum);
        return Err(invalid(message));
    }
    if sequence.start > sequence.maximum {
        let message = format!(
            "START value ({}) cannot be greater than MAXVALUE ({})",
            sequence.start, sequence.maximum
        );
        return Err(invalid(message));
    }
    if let Some(cache) = options.cache {
        if cache < 1 {
            return Err(invalid(format!("CACHE ({cache}) must be greater than zero")));
        }
        sequence.cache = cache;
    }
    sequence.cycle = options.cycle.unwrap_or(sequence.cycle);
    Ok(())
}

/// OWNED BY: the column's table is locked until the transaction ends.
fn own_by(session: &mut Session, sequence: &mut Sequence, options: &SequenceOptions) -> Result<(), SqlError> {
    let Some(owner) = &options.owned_by else { return Ok(()) };
    let Some((name, column)) = owner else {
        sequence.owner = None;
        return Ok(());
    };
    let wrong = |kind: &str| {
        let message = format!("sequence cannot be owned by relation \"{}\"", name.name);
        SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
            .with_detail(format!("This operation is not supported for {kind}."))
    };
    let lock = TableLock::AccessShare;
    let table = session.lock_found(lock, Wait::Block, |session| match session.find_relation(name) {
        None => Ok(None),
        Some(Relation::Table(table)) => Ok(Some((table.oid, table))),
        Some(Relation::Index(..)) => Err(wrong("indexes")),
        Some(Relation::Sequence(_)) => Err(wrong("sequences")),
    })?;
    let table = table.ok_or_else(|| session.missing(name))?;
    if table.schema != sequence.schema {
        let message = "sequence must be in same schema as table it is linked to";
        return Err(SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message));
    }
    let at = table.column(column).ok_or_else(|| {
        let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
        SqlError::new(SqlState::UNDEFINED_COLUMN, message)
    })?;
    sequence.owner = Some((table.oid, at as u32));
    Ok(())
}

/// ALTER SEQUENCE.
pub(super) fn alter(
    session: &mut Session,
    (name, if_exists): (&QualifiedName, bool),
    options: &SequenceOptions,
    client: &mut dyn Client,
) -> Result<&'static str, SqlError> {
    let locked = locked_named(session, name, TableLock::ShareRowExclusive);
    let Some(sequence) = locked.map_err(|error| not_opened(session, name, error))? else {
        if if_exists {
            skipping(session, client, format!("relation \"{}\" does not exist, skipping", name.name));
            return Ok("ALTER SEQUENCE");
        }
        return Err(session.missing(name));
    };
    change(session, sequence, options)?;
    Ok("ALTER SEQUENCE")
}

/// The error that PostgreSQL gives, because it opens the relation as a sequence before it looks at
/// the kind.
fn not_opened(session: &Session, name: &QualifiedName, error: SqlError) -> SqlError {
    let kind = match session.find_relation(name) {
        Some(Relation::Table(_)) => "tables",
        Some(Relation::Index(..)) => "indexes",
        _ => return error,
    };
    SqlError::new(error.code, format!("cannot open relation \"{}\"", name.name))
        .with_detail(format!("This operation is not supported for {kind}."))
}

/// Gives a locked sequence new options.
pub(super) fn change(
    session: &mut Session,
    mut sequence: Sequence,
    options: &SequenceOptions,
) -> Result<(), SqlError> {
    if options.owned_by.is_some()
        && let Some((table, column)) = sequence.owner
        && let Some(table) = session.environment.catalog.table(table)
        && table.columns.get(column as usize).is_some_and(|column| column.identity.is_some())
    {
        let message = "cannot change ownership of identity sequence";
        let detail = format!("Sequence \"{}\" is linked to table \"{}\".", sequence.name, table.name);
        return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message).with_detail(detail));
    }
    apply(&mut sequence, options, false)?;
    if options.changes_numbers() {
        let value = match options.restart {
            Some(restart) => {
                let value = restart.unwrap_or(sequence.start);
                restart_at(session, &mut sequence, value);
                value
            }
            None => session.shared.renew_counter(&mut sequence)?,
        };
        let out_of = |how: &str, bound: i64| {
            Err(invalid(format!("RESTART value ({value}) cannot be {how} ({bound})")))
        };
        if value < sequence.minimum {
            return out_of("less than MINVALUE", sequence.minimum);
        }
        if value > sequence.maximum {
            return out_of("greater than MAXVALUE", sequence.maximum);
        }
    }
    own_by(session, &mut sequence, options)?;
    session.define(Change::PutSequence(Arc::new(sequence)))
}

/// Gives a sequence that is being changed a new counter that begins at a value.
fn restart_at(session: &Session, sequence: &mut Sequence, value: i64) {
    sequence.counter = session.shared.new_oid();
    sequence.first = value;
    sequence.place = CounterPlace::default();
}

/// Locks a sequence against other sessions' nextval and changes. Returns its newest definition, or
/// `None` if it is gone.
pub(super) fn locked(session: &mut Session, oid: u32) -> Result<Option<Sequence>, SqlError> {
    session.lock_definition(oid, TableLock::ShareRowExclusive)?;
    Ok(session.environment.catalog.sequence(oid).map(|sequence| Sequence::clone(sequence)))
}

/// Locks a sequence by name. Returns its newest definition, or `None` if the name stands for
/// nothing.
pub(super) fn locked_named(
    session: &mut Session,
    name: &QualifiedName,
    lock: TableLock,
) -> Result<Option<Sequence>, SqlError> {
    let found = session.lock_found(lock, Wait::Block, |session| match session.find_relation(name) {
        None => Ok(None),
        Some(Relation::Sequence(found)) => Ok(Some((found.oid, found))),
        Some(_) => {
            let message = format!("\"{}\" is not a sequence", name.name);
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
    })?;
    session.environment.txn.statement_start().map_err(from_txn)?;
    Ok(found.map(|found| Sequence::clone(&found)))
}

/// Starts a sequence again.
pub(super) fn restart(session: &mut Session, sequence: &Sequence) -> Result<(), SqlError> {
    let Some(mut sequence) = locked(session, sequence.oid)? else { return Ok(()) };
    let start = sequence.start;
    restart_at(session, &mut sequence, start);
    session.define(Change::PutSequence(Arc::new(sequence)))
}

/// Gives an identity column's sequence the column's new type.
pub(super) fn retype(session: &mut Session, sequence: &Sequence, type_: Type) -> Result<(), SqlError> {
    let Some(sequence) = locked(session, sequence.oid)? else { return Ok(()) };
    bounds(type_).map_err(|error| {
        SqlError::new(error.code, "identity column type must be smallint, integer, or bigint")
    })?;
    change(session, sequence, &SequenceOptions { type_: Some(type_), ..SequenceOptions::default() })
}

/// Drops a sequence, unless another session has. The commit removes its counter.
pub(super) fn forget(session: &mut Session, oid: u32) -> Result<(), SqlError> {
    session.lock_definition(oid, TableLock::AccessExclusive)?;
    match session.environment.catalog.sequence(oid) {
        Some(_) => session.define(Change::DropSequence(oid)),
        None => Ok(()),
    }
}

/// The sequences a column owns.
pub(super) fn owned_by(catalog: &Catalog, table: u32, column: u32) -> Vec<Arc<Sequence>> {
    catalog.owned_sequences(table).filter(|owned| owned.owner == Some((table, column))).cloned().collect()
}
