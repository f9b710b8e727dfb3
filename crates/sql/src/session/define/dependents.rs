//! The objects that depend on those a command drops.
//!
//! This module finds, orders and describes them as PostgreSQL does: a refusal lists them in its
//! detail, CASCADE in a notice. An object that belongs to a dropped one goes without a notice:
//! defaults of its columns, its constraints, the sequences that it owns.
//!
//! What must hold: [`settle`] locks all of them before it decides. A session that refers to an
//! object holds a lock on it, so no new dependent appears meanwhile.

use std::cmp::Reverse;
use std::sync::Arc;

use runtime::hash::HashMap;
use txn::TableLock;

use super::super::Session;
use super::statistics;
use catalog::stored;
use catalog::{Catalog, Change, Table};
use execution::client::{Client, Notice};
use values::environment::Environment;
use values::error::{SqlError, SqlState};
use values::identifier::{qualified, quoted};

/// The most objects that a detail lists, as in PostgreSQL.
const REPORTED: usize = 100;

/// An object that can be dropped or depends on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Object {
    /// A schema's OID.
    Schema(u32),
    /// A table's OID.
    Table(u32),
    /// A table's OID and a column's position.
    Column(u32, u32),
    /// A column's default: the table's OID and the column's position.
    Default(u32, u32),
    /// A sequence's OID.
    Sequence(u32),
    /// The OIDs of an index's table and of the index.
    Index(u32, u32),
    /// The OIDs of a constraint's table and of the constraint.
    Constraint(u32, u32),
    /// The OIDs of the table of extended statistics and of these.
    Statistics(u32, u32),
}

impl Object {
    /// Newer objects come first where several depend on one, then by PostgreSQL's OID of their
    /// catalog. Defaults have no OID here: they count as new as their table.
    fn order(self) -> (Reverse<(u32, u32)>, u32) {
        match self {
            Object::Schema(oid) => (Reverse((oid, 0)), 2615),
            Object::Table(oid) | Object::Sequence(oid) | Object::Index(_, oid) => (Reverse((oid, 0)), 1259),
            Object::Column(oid, at) => (Reverse((oid, at + 1)), 1259),
            Object::Default(oid, at) => (Reverse((oid, at + 1)), 2604),
            Object::Constraint(_, oid) => (Reverse((oid, 0)), 2606),
            Object::Statistics(_, oid) => (Reverse((oid, 0)), 3381),
        }
    }
}

/// An object that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    object: Object,
    /// The object it depends on.
    on: Object,
    /// No notice mentions it, because the statement names it or it belongs to a named object.
    quiet: bool,
}

/// Finds and locks the dependents of `objects`. Then it refuses the drop or, with `cascade`, names
/// them to the client. With `cascade` it also removes the defaults and constraints of other
/// objects; the caller drops the rest.
///
/// # Errors
/// 2BP01 without `cascade` when something depends on them, and those of the waits.
pub(super) fn settle(
    session: &mut Session,
    objects: &[Object],
    cascade: bool,
    client: &mut dyn Client,
) -> Result<(), SqlError> {
    let mut found = find(&session.environment.catalog, objects);
    loop {
        for (relation, lock) in found.iter().filter_map(|found| lock_of(found, cascade)) {
            session.lock_definition(relation, lock)?;
        }
        // Before the lock, another transaction may have dropped one of them or made a new one.
        let now = find(&session.environment.catalog, objects);
        if now == found {
            break;
        }
        found = now;
    }
    let loud: Vec<Found> = found.into_iter().filter(|found| !found.quiet).collect();
    if loud.is_empty() {
        return Ok(());
    }
    if !cascade {
        return Err(refusal(session, objects, &loud));
    }
    tell(session, client, &loud);
    take_away(session, &loud)
}

/// The lock that keeps an object unchanged. The lock on its parent keeps a foreign key.
fn lock_of(found: &Found, cascade: bool) -> Option<(u32, TableLock)> {
    let lock = if cascade { TableLock::AccessExclusive } else { TableLock::AccessShare };
    match found.object {
        Object::Sequence(sequence) if found.quiet => Some((sequence, TableLock::AccessExclusive)),
        _ if found.quiet => None,
        Object::Constraint(_, _) if !cascade && !matches!(found.on, Object::Sequence(_)) => None,
        Object::Table(relation)
        | Object::Sequence(relation)
        | Object::Default(relation, _)
        | Object::Constraint(relation, _) => Some((relation, lock)),
        // It lets readers and writers pass.
        Object::Statistics(relation, _) => Some((relation, lock.min(TableLock::ShareUpdateExclusive))),
        Object::Schema(_) | Object::Column(..) | Object::Index(..) => None,
    }
}

/// All objects that go with `objects`, they included, in the order in which PostgreSQL reports
/// them.
fn find(catalog: &Catalog, objects: &[Object]) -> Vec<Found> {
    let mut search =
        Search { catalog, readers: readers(catalog), found: Vec::new(), places: HashMap::default() };
    for &object in objects {
        search.visit(Found { object, on: object, quiet: true });
    }
    search.found.reverse();
    search.found
}

/// The defaults and checks that name a relation by a constant, by relation.
fn readers(catalog: &Catalog) -> HashMap<u32, Vec<Object>> {
    let mut readers: HashMap<u32, Vec<Object>> = HashMap::default();
    for table in catalog.tables() {
        let defaults = table.live_columns().filter(|(_, column)| column.identity.is_none());
        let defaults = defaults.filter_map(|(at, column)| {
            Some((column.default.as_ref()?, Object::Default(table.oid, at as u32)))
        });
        let checks = table.checks.iter().map(|check| (&check.text, Object::Constraint(table.oid, check.oid)));
        for (text, reader) in defaults.chain(checks) {
            for relation in stored::numbers(text) {
                readers.entry(relation).or_default().push(reader);
            }
        }
    }
    readers
}

struct Search<'c> {
    catalog: &'c Catalog,
    readers: HashMap<u32, Vec<Object>>,
    /// Each object behind those that depend on it.
    found: Vec<Found>,
    places: HashMap<Object, usize>,
}

impl Search<'_> {
    fn visit(&mut self, found: Found) {
        if let Some(place) = self.places.get(&found.object) {
            self.found[*place].quiet |= found.quiet;
            return;
        }
        let mut dependents = self.dependents(found.object);
        let owner = match found.object {
            Object::Sequence(sequence) => self.catalog.sequence(sequence).and_then(|sequence| sequence.owner),
            _ => None,
        };
        // Readers of a table's own sequence within that table are newer than the table: ALTER TABLE
        // added them.
        let is_own = |object: &Object| match (object, owner) {
            (Object::Default(table, at), Some((own, owning))) => *table == own && *at != owning,
            _ => false,
        };
        dependents.sort_by_key(|(object, _)| (!is_own(object), object.order()));
        for (object, quiet) in dependents {
            self.visit(Found { object, on: found.object, quiet });
        }
        self.places.insert(found.object, self.found.len());
        self.found.push(found);
    }

    /// The direct dependents of an object, and whether each belongs to it.
    fn dependents(&self, object: Object) -> Vec<(Object, bool)> {
        let mut dependents = Vec::new();
        let catalog = self.catalog;
        match object {
            Object::Schema(schema) => {
                let tables = catalog.tables().filter(|table| table.schema == schema);
                dependents.extend(tables.map(|table| (Object::Table(table.oid), false)));
                let sequences = catalog.sequences().filter(|sequence| sequence.schema == schema);
                dependents.extend(sequences.map(|sequence| (Object::Sequence(sequence.oid), false)));
                for table in catalog.tables() {
                    let objects = table.extended.iter().filter(|object| object.schema == schema);
                    dependents
                        .extend(objects.map(|object| (Object::Statistics(table.oid, object.oid), false)));
                }
            }
            Object::Table(oid) => {
                let Some(table) = catalog.table(oid) else { return dependents };
                self.parts(table, None, &mut dependents);
                self.keys(table, |_, _| true, &mut dependents);
                self.reading(oid, &mut dependents);
            }
            Object::Column(oid, at) => {
                let Some(table) = catalog.table(oid) else { return dependents };
                self.parts(table, Some(at), &mut dependents);
                self.keys(table, |_, columns| columns.contains(&at), &mut dependents);
            }
            Object::Index(oid, index) => {
                let Some(table) = catalog.table(oid) else { return dependents };
                self.keys(table, |table, columns| table.unique_key(columns) == Some(index), &mut dependents);
                self.reading(index, &mut dependents);
            }
            Object::Sequence(sequence) => self.reading(sequence, &mut dependents),
            Object::Constraint(oid, constraint) => {
                let Some(table) = catalog.table(oid) else { return dependents };
                let primary = table.primary_key.iter().map(|key| (key.constraint, key.oid));
                let unique = table.indexes.iter().map(|index| (index.constraint, index.oid));
                let own = primary.chain(unique).filter(|(of, _)| *of == constraint);
                dependents.extend(own.map(|(_, index)| (Object::Index(oid, index), true)));
            }
            Object::Default(..) | Object::Statistics(..) => {}
        }
        dependents
    }

    /// Adds the parts of a table, or of one of its columns.
    fn parts(&self, table: &Table, column: Option<u32>, dependents: &mut Vec<(Object, bool)>) {
        let of = |columns: &[u32]| column.is_none_or(|column| columns.contains(&column));
        let oid = table.oid;
        let mut own = |object| dependents.push((object, true));
        for (at, _) in
            table.live_columns().filter(|(at, column)| column.default.is_some() && of(&[*at as u32]))
        {
            own(Object::Default(oid, at as u32));
        }
        let owned = self.catalog.owned_sequences(oid);
        for sequence in owned.filter(|owned| owned.owner.is_some_and(|(_, at)| of(&[at]))) {
            own(Object::Sequence(sequence.oid));
        }
        for key in table.primary_key.iter().filter(|key| of(&key.columns) || of(&key.included)) {
            own(Object::Constraint(oid, key.constraint));
        }
        for index in &table.indexes {
            let keys: Vec<u32> = index.columns.iter().map(|key| key.column).collect();
            match index.constraint {
                _ if !of(&keys) && !of(&index.included) => {}
                0 => own(Object::Index(oid, index.oid)),
                constraint => own(Object::Constraint(oid, constraint)),
            }
        }
        for key in table.foreign_keys.iter().filter(|key| of(&key.columns)) {
            own(Object::Constraint(oid, key.oid));
        }
        for object in table.extended.iter().filter(|object| of(&object.columns)) {
            own(Object::Statistics(oid, object.oid));
        }
        // Nobody knows here which columns a check reads. The caller asks only for the relations
        // that it reads.
        for check in table.checks.iter().filter(|_| column.is_none()) {
            own(Object::Constraint(oid, check.oid));
        }
    }

    /// The foreign keys whose referenced columns satisfy `need`: they depend on the dropped part of
    /// the table.
    fn keys(
        &self,
        table: &Table,
        need: impl Fn(&Table, &[u32]) -> bool,
        dependents: &mut Vec<(Object, bool)>,
    ) {
        for reference in self.catalog.references(table.oid) {
            let Some(child) = self.catalog.table(reference.child) else { continue };
            let key = &child.foreign_keys[reference.key];
            if need(table, &key.parent_columns) {
                dependents.push((Object::Constraint(child.oid, key.oid), false));
            }
        }
    }

    fn reading(&self, relation: u32, dependents: &mut Vec<(Object, bool)>) {
        let readers = self.readers.get(&relation).into_iter().flatten();
        dependents.extend(readers.map(|reader| (*reader, false)));
    }
}

/// The objects as a detail lists them, each followed by `more`.
fn listed(session: &Session, loud: &[Found], line: impl Fn(&Session, &Found) -> String) -> String {
    let mut lines: Vec<String> = loud.iter().take(REPORTED).map(|found| line(session, found)).collect();
    match loud.len().saturating_sub(REPORTED) {
        0 => {}
        1 => lines.push("and 1 other object (see server log for list)".to_owned()),
        left => lines.push(format!("and {left} other objects (see server log for list)")),
    }
    lines.join("\n")
}

fn refusal(session: &Session, objects: &[Object], loud: &[Found]) -> SqlError {
    let message = match objects {
        [object] => {
            format!("cannot drop {} because other objects depend on it", described(session, *object))
        }
        _ => "cannot drop desired object(s) because other objects depend on them".to_owned(),
    };
    let detail = listed(session, loud, |session, found| {
        format!("{} depends on {}", described(session, found.object), described(session, found.on))
    });
    SqlError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_detail(detail)
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

fn tell(session: &Session, client: &mut dyn Client, loud: &[Found]) {
    let line =
        |session: &Session, found: &Found| format!("drop cascades to {}", described(session, found.object));
    let list = listed(session, loud, line);
    let notice = match loud.len() {
        1 => Notice::told(list),
        count => {
            Notice { detail: Some(list), ..Notice::told(format!("drop cascades to {count} other objects")) }
        }
    };
    session.tell(client, &notice);
}

/// An object as PostgreSQL's messages name it.
fn described(session: &Session, object: Object) -> String {
    let environment = &session.environment;
    let catalog = &environment.catalog;
    let relation = |oid| environment.class_name(oid).unwrap_or_default();
    let column = |table, at: u32| {
        let name = catalog.table(table).and_then(|table| table.columns.get(at as usize));
        format!("column {} of table {}", name.map_or("", |column| &column.name), relation(table))
    };
    match object {
        Object::Schema(oid) => format!("schema {}", catalog.schema_name(oid)),
        Object::Table(oid) => format!("table {}", relation(oid)),
        Object::Sequence(oid) => format!("sequence {}", relation(oid)),
        Object::Index(_, oid) => format!("index {}", relation(oid)),
        Object::Column(table, at) => column(table, at),
        Object::Default(table, at) => format!("default value for {}", column(table, at)),
        Object::Constraint(table, oid) => {
            let name = catalog.table(table).and_then(|table| table.constraint_name(oid));
            format!("constraint {} on table {}", name.unwrap_or_default(), relation(table))
        }
        Object::Statistics(table, oid) => {
            let object = catalog.table(table).and_then(|table| table.statistics_object(oid));
            let Some(object) = object else { return String::new() };
            let found = catalog.statistics_object(&environment.table.search_path, None, &object.name);
            let name = match found.is_some_and(|(_, found)| found.oid == oid) {
                true => quoted(&object.name),
                false => qualified(catalog.schema_name(object.schema), &object.name),
            };
            format!("statistics object {name}")
        }
    }
}

/// Removes defaults, checks, foreign keys and extended statistics from locked tables that stay.
fn take_away(session: &mut Session, loud: &[Found]) -> Result<(), SqlError> {
    let mut changed: Vec<Table> = Vec::new();
    for found in loud {
        if let Object::Statistics(table, object) = found.object {
            statistics::forget_data(session, table, |found| found.object == object)?;
        }
        let (Object::Default(oid, _) | Object::Constraint(oid, _) | Object::Statistics(oid, _)) =
            found.object
        else {
            continue;
        };
        let place = match changed.iter().position(|table| table.oid == oid) {
            Some(place) => place,
            None => {
                changed.push(session.definition(oid)?);
                changed.len() - 1
            }
        };
        let table = &mut changed[place];
        match found.object {
            Object::Default(_, at) => table.columns[at as usize].default = None,
            Object::Constraint(_, constraint) => {
                table.checks.retain(|check| check.oid != constraint);
                table.foreign_keys.retain(|key| key.oid != constraint);
            }
            Object::Statistics(_, object) => table.extended.retain(|other| other.oid != object),
            _ => {}
        }
    }
    changed.into_iter().try_for_each(|table| session.define(Change::PutTable(Arc::new(table))))
}
