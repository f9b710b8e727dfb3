//! Tests of names, overlays and the stored form.

use std::sync::Arc;

use super::*;
use crate::ReferentialAction;
use values::row::{RowView, encode, encode_value};
use values::types::{Datum, Type};

fn empty() -> Catalog {
    let database = DatabaseEntry { oid: 5, name: "postgres".into() };
    let role = Role { oid: BOOTSTRAP_ROLE, name: "postgres".into(), superuser: true, login: true };
    Catalog::new(database.clone(), Arc::from([database]), Arc::from([role]))
}

fn table(oid: u32, name: &str) -> Table {
    Table {
        oid,
        schema: PUBLIC,
        name: name.into(),
        tree: TreeAddress { id: oid, root: 7 },
        out_of_line: TreeAddress::NONE,
        columns: vec![Column {
            name: "a".into(),
            type_: Type::INT4,
            not_null: true,
            default: None,
            identity: Some(crate::Identity::ByDefault),
            dropped: false,
        }],
        primary_key: Some(PrimaryKey {
            oid: oid + 1,
            constraint: oid + 2,
            name: format!("{name}_pkey"),
            columns: vec![0],
            included: Vec::new(),
        }),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        missing: Default::default(),
        extended: Vec::new(),
        layout: Default::default(),
    }
}

#[test]
fn statistics_of_other_tables_keep_a_plan_and_definitions_do_not() {
    let put = |oid, name: &str| Change::PutTable(Arc::new(table(oid, name)));
    let analyzed = |oid| Change::PutStatistics(oid, Arc::default());
    let base = empty().with_changes(&[put(20_000, "one"), put(20_010, "two")]);
    let made = base.generation;
    let keeps = |catalog: &Catalog, tables: &[u32]| catalog.keeps_plan(made, tables.iter().copied());
    assert!(keeps(&base, &[20_000, 20_010]));
    let later = base.with_changes(&[analyzed(20_000)]).with_changes(&[Change::DropStatistics(20_020)]);
    assert!(keeps(&later, &[20_010]) && keeps(&later, &[]) && !keeps(&later, &[20_010, 20_000]));
    assert!(later.keeps_plan(made + 1, [20_000].into_iter()), "made with these statistics");
    for change in [put(20_000, "one"), put(20_030, "three"), Change::DropTable(20_020)] {
        assert!(!keeps(&later.with_changes(&[change]), &[20_010]));
    }
    let both = base.with_changes(&[analyzed(20_000), put(20_030, "three")]);
    assert!(!keeps(&both, &[20_010]));
    let shared = later.with_shared(Arc::clone(&later.databases), Arc::clone(&later.roles));
    assert!(!keeps(&shared, &[20_010]));
}

#[test]
fn a_lookup_by_name_follows_each_change() {
    let path = ["public".to_owned()];
    let base = empty().with_changes(&[Change::PutTable(Arc::new(table(20_000, "one")))]);
    assert!(matches!(base.relation(&path, None, "one"), Some(Relation::Table(_))));
    assert!(matches!(base.relation(&path, Some("public"), "one_pkey"), Some(Relation::Index(_, 20_001))));
    assert!(matches!(base.relation(&[], None, "pg_class"), Some(Relation::Table(_))));
    let renamed = base.with_changes(&[Change::PutTable(Arc::new(table(20_000, "two")))]);
    assert!(renamed.relation(&path, None, "one").is_none());
    assert!(renamed.relation(&path, None, "one_pkey").is_none());
    assert!(renamed.relation(&path, None, "two").is_some());
    assert_eq!(renamed.generation, base.generation + 1);
    assert_eq!(renamed.highest_oid(), 20_002);
}

#[test]
fn references_follow_foreign_keys() {
    let mut child = table(30_000, "child");
    child.foreign_keys.push(ForeignKey {
        oid: 30_005,
        name: "child_a_fkey".into(),
        columns: vec![0],
        parent: 20_000,
        parent_columns: vec![0],
        on_delete: ReferentialAction::Cascade,
        on_update: ReferentialAction::NoAction,
        valid: true,
    });
    let put = [Change::PutTable(Arc::new(table(20_000, "parent"))), Change::PutTable(Arc::new(child))];
    let catalog = empty().with_changes(&put);
    assert_eq!(catalog.references(20_000), [Reference { child: 30_000, key: 0 }]);
    assert!(catalog.with_changes(&[Change::DropTable(30_000)]).references(20_000).is_empty());
}

#[test]
fn statistics_objects_have_names_of_their_own() {
    let path = ["public".to_owned()];
    let object = |name: &str| StatisticsObject {
        oid: 20_007,
        schema: PUBLIC,
        name: name.into(),
        columns: vec![0, 1],
        kinds: StatisticsKinds::ALL,
        target: Some(7),
    };
    let mut one = table(20_000, "one");
    one.extended.push(object("one"));
    let put = Change::PutTable(Arc::new(one.clone()));
    assert_eq!(empty().new_names(&put).last(), Some(&GivenName::Statistics(PUBLIC, "one")));
    let base = empty().with_changes(std::slice::from_ref(&put));
    assert!(base.new_names(&put).is_empty() && base.taken(&put).is_none());
    assert_eq!(base.highest_oid(), 20_007);
    let found = |catalog: &Catalog, name: &str| {
        catalog.statistics_object(&path, None, name).map(|(table, object)| (table.oid, object.oid))
    };
    assert_eq!(found(&base, "one"), Some((20_000, 20_007)));
    let mut other = table(30_000, "other");
    other.extended.push(StatisticsObject { oid: 30_007, ..object("one") });
    let taken = base.taken(&Change::PutTable(Arc::new(other)));
    assert_eq!(taken, Some(("statistics object", "one".to_owned())));
    one.extended[0].name = "two".into();
    let renamed = base.with_changes(&[Change::PutTable(Arc::new(one))]);
    assert_eq!((found(&renamed, "one"), found(&renamed, "two")), (None, Some((20_000, 20_007))));
    assert_eq!(found(&renamed.with_changes(&[Change::DropTable(20_000)]), "two"), None);
}

#[test]
fn overlays_roll_back_to_marks() {
    let base = Arc::new(empty());
    let mut overlay = Overlay::new(Arc::clone(&base));
    overlay.apply(Change::PutTable(Arc::new(table(20_000, "one"))));
    let mark = overlay.mark();
    overlay.apply(Change::DropTable(20_000));
    assert!(overlay.catalog().table(20_000).is_none());
    overlay.roll_back_to(mark, &base);
    assert!(overlay.catalog().table(20_000).is_some());
    assert_eq!(overlay.catalog().generation, PRIVATE_GENERATION);
    assert!(base.table(20_000).is_none());
}

#[test]
fn stored_objects_round_trip() {
    let object = StoredObject::Table(table_with_missing_values());
    let bytes = object.encode();
    assert_eq!(StoredObject::decode(&bytes), Ok(object));
    let statistics = StoredObject::Statistics(20_000, TableStatistics { rows: 7.0, ..Default::default() });
    assert_eq!(StoredObject::decode(&statistics.encode()), Ok(statistics));
    assert_eq!(StoredObject::decode(&[9, 1, 2]), Err(DecodeError::Version(9)));
    assert_eq!(StoredObject::decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Malformed));
    assert_eq!(StoredObject::decode(&[]), Err(DecodeError::Malformed));
}

fn table_with_missing_values() -> Table {
    let mut table = table(20_000, "one");
    for (name, value) in [("b", Some(Datum::Text("old"))), ("c", None), ("d", Some(Datum::Text("")))] {
        let at = table.columns.len() as u32;
        let column = Column { name: name.into(), type_: Type::TEXT, ..table.columns[0].clone() };
        table.columns.push(column);
        let bytes = value.map(|value| encode_value(value, Type::TEXT).unwrap());
        table.missing.extend(bytes.map(|bytes| (at, bytes)));
    }
    table
}

#[test]
fn definitions_of_former_versions_are_read() {
    let object = StoredObject::Table(table(20_000, "one"));
    let bytes = object.encode();
    // The last fields of a table, its missing values and its statistics objects, are new in
    // versions 7 and 8. A 0 says none.
    assert_eq!(bytes[bytes.len() - 2..], [0, 0]);
    for (version, lacking) in [(5, 2), (6, 2), (7, 1)] {
        let former = &bytes[1..bytes.len() - lacking];
        assert_eq!(StoredObject::decode(&[&[version], former].concat()).as_ref(), Ok(&object));
        let damaged = [&[version], &former[..former.len() - 1]].concat();
        assert_eq!(StoredObject::decode(&damaged), Err(DecodeError::Malformed));
    }
    let statistics = StoredObject::Statistics(20_000, TableStatistics { rows: 7.0, ..Default::default() });
    let bytes = statistics.encode();
    // Statistics of version 5 count as none.
    let of_5 = [&[5], &bytes[1..]].concat();
    assert_eq!(StoredObject::decode(&of_5), Ok(StoredObject::NoStatistics(20_000)));
    for version in [6, 7] {
        let former = [&[version], &bytes[1..bytes.len() - 1]].concat();
        assert_eq!(StoredObject::decode(&former).as_ref(), Ok(&statistics));
    }
}

#[test]
fn rows_from_before_a_column_read_its_missing_value() {
    let table = table_with_missing_values();
    let mut row = Vec::new();
    assert!(encode(&[Datum::Int4(1)], table.shape(), 100, &mut row).unwrap());
    let view = RowView::new(&row, table.shape());
    let found: Vec<_> = (0..4).map(|column| view.get(column).unwrap()).collect();
    assert!(matches!(found[..], [Datum::Int4(1), Datum::Text("old"), Datum::Null, Datum::Text("")]));
    // A copy may be changed, so it computes its layout anew.
    let mut changed = table.clone();
    changed.missing.remove(&1);
    assert!(RowView::new(&row, changed.shape()).get(1).unwrap().is_null());
}
