//! Tests of names, overlays and the stored form.

use std::sync::Arc;

use super::*;
use crate::ReferentialAction;
use values::types::Type;

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
        layout: Default::default(),
    }
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
    let object = StoredObject::Table(table(20_000, "one"));
    let bytes = object.encode();
    assert_eq!(StoredObject::decode(&bytes).as_ref(), Ok(&object));
    // The version before had the same form, but for statistics, which count as none.
    let former = [&[5], &bytes[1..]].concat();
    assert_eq!(StoredObject::decode(&former), Ok(object));
    let statistics = StoredObject::Statistics(20_000, TableStatistics { rows: 7.0, ..Default::default() });
    let bytes = statistics.encode();
    let former = [&[5], &bytes[1..]].concat();
    assert_eq!(StoredObject::decode(&former), Ok(StoredObject::NoStatistics(20_000)));
    assert_eq!(StoredObject::decode(&bytes), Ok(statistics));
    let bytes = StoredObject::Table(table(20_000, "one")).encode();
    assert_eq!(StoredObject::decode(&[9, 1, 2]), Err(DecodeError::Version(9)));
    assert_eq!(StoredObject::decode(&bytes[..bytes.len() - 1]), Err(DecodeError::Malformed));
    assert_eq!(StoredObject::decode(&[]), Err(DecodeError::Malformed));
}
