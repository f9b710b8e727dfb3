//! Tests: the system relations are well-formed, and definitions print as PostgreSQL prints them.

use std::sync::Arc;

use super::super::{
    BOOTSTRAP_ROLE, CheckConstraint, Column, DatabaseEntry, ForeignKey, Index, IndexKey, PUBLIC, PrimaryKey,
    Role,
};
use super::*;
use crate::Change;
use crate::ReferentialAction;

struct Nothing;
impl System for Nothing {}

fn column(name: &str, type_: Type) -> Column {
    Column { name: name.into(), type_, not_null: false, default: None, identity: None, dropped: false }
}

fn catalog() -> Catalog {
    let database = DatabaseEntry { oid: 5, name: "postgres".into() };
    let role = Role { oid: BOOTSTRAP_ROLE, name: "postgres".into(), superuser: true, login: true };
    let table = Table {
        oid: 20_000,
        schema: PUBLIC,
        name: "Mixed".into(),
        tree: TreeAddress { id: 9, root: 1 },
        out_of_line: TreeAddress::NONE,
        columns: vec![column("a", Type::INT4), column("order", Type::TEXT), column("c", Type::INT4)],
        primary_key: Some(PrimaryKey {
            oid: 20_001,
            constraint: 20_002,
            name: "Mixed_pkey".into(),
            columns: vec![0],
            included: Vec::new(),
        }),
        indexes: vec![Index {
            oid: 20_003,
            name: "mixed_order".into(),
            tree: TreeAddress { id: 10, root: 2 },
            unique: true,
            nulls_not_distinct: false,
            constraint: 0,
            columns: vec![
                IndexKey { column: 1, descending: true, nulls_first: true },
                IndexKey { column: 2, descending: false, nulls_first: true },
            ],
            included: Vec::new(),
        }],
        checks: vec![CheckConstraint {
            oid: 20_004,
            name: "positive".into(),
            text: "a > 0".into(),
            valid: true,
        }],
        foreign_keys: vec![ForeignKey {
            oid: 20_005,
            name: "self".into(),
            columns: vec![2],
            parent: 20_000,
            parent_columns: vec![0],
            on_delete: ReferentialAction::Cascade,
            on_update: ReferentialAction::NoAction,
            valid: true,
        }],
        missing: Default::default(),
        extended: Vec::new(),
        layout: crate::Layout::default(),
    };
    let base = Catalog::new(database.clone(), Arc::from([database]), Arc::from([role]));
    base.with_changes(&[Change::PutTable(Arc::new(table))])
}

#[test]
fn every_relation_has_rows_of_its_width_and_known_types() {
    let catalog = catalog();
    for (table, _) in all() {
        for column in &table.columns {
            assert!(column.type_.info().is_some(), "{}.{}", table.name, column.name);
        }
        for row in rows(&catalog, &Nothing, table.oid).unwrap() {
            assert_eq!(row.len(), table.columns.len(), "{}", table.name);
        }
    }
}

#[test]
fn relations_hold_what_the_catalog_holds() {
    let catalog = catalog();
    let count = |name: &str| {
        let table = table_by_name(PG_CATALOG, name).expect("a system relation");
        rows(&catalog, &Nothing, table.oid).unwrap().len()
    };
    assert_eq!(count("pg_class"), all().count() + 3);
    assert_eq!(count("pg_index"), 2);
    assert_eq!(count("pg_constraint"), 3);
    assert_eq!(count("pg_database"), 1);
    assert_eq!(count("pg_namespace"), 3);
    assert_eq!(count("pg_policy"), 0);
}

#[test]
fn definitions_print_as_sql() {
    let catalog = catalog();
    let table = Arc::clone(catalog.table(20_000).expect("the table"));
    let index = |oid| text::index(&catalog, &table, oid, false).expect("an index");
    assert_eq!(index(20_001), "CREATE UNIQUE INDEX \"Mixed_pkey\" ON public.\"Mixed\" USING btree (a)");
    assert_eq!(
        index(20_003),
        "CREATE UNIQUE INDEX mixed_order ON public.\"Mixed\" USING btree (\"order\" DESC, c NULLS FIRST)"
    );
    let constraint = |oid| text::constraint(&catalog, &table, oid, false, &|_| true).expect("a constraint");
    assert_eq!(constraint(20_002), "PRIMARY KEY (a)");
    assert_eq!(constraint(20_004), "CHECK ((a > 0))");
    let pretty = text::constraint(&catalog, &table, 20_004, true, &|_| true);
    assert_eq!(pretty.expect("a constraint"), "CHECK (a > 0)");
    assert_eq!(constraint(20_005), "FOREIGN KEY (c) REFERENCES \"Mixed\"(a) ON DELETE CASCADE");
    let elsewhere = text::constraint(&catalog, &table, 20_005, false, &|_| false).expect("a constraint");
    assert_eq!(elsewhere, "FOREIGN KEY (c) REFERENCES public.\"Mixed\"(a) ON DELETE CASCADE");
}
