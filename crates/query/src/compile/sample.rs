//! A catalog for tests: the tables of the recorded errors, and pgbench's.

use std::sync::Arc;

use super::{Compiled, Context, Request, compile_here};

use catalog::{
    BOOTSTRAP_ROLE, Catalog, Change, CheckConstraint, Column, DatabaseEntry, ForeignKey, Index, IndexKey,
    Layout, PUBLIC, PrimaryKey, ReferentialAction, Role, Table, TableStatistics, TreeAddress,
};
use values::error::SqlError;
use values::types::{Type, oid, registry};

fn table(oid: u32, name: &str, columns: &[(&str, Type)], key: &[u32]) -> Table {
    let columns = columns.iter().map(|(name, type_)| Column {
        name: (*name).to_owned(),
        type_: *type_,
        not_null: false,
        default: None,
        identity: None,
        dropped: false,
    });
    let mut table = Table {
        oid,
        schema: PUBLIC,
        name: name.to_owned(),
        tree: TreeAddress { id: oid, root: 1 },
        out_of_line: TreeAddress::NONE,
        columns: columns.collect(),
        primary_key: None,
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        missing: Default::default(),
        extended: Vec::new(),
        layout: Layout::default(),
    };
    if !key.is_empty() {
        key.iter().for_each(|&column| table.columns[column as usize].not_null = true);
        table.primary_key = Some(PrimaryKey {
            oid: oid + 1,
            constraint: oid + 2,
            name: format!("{name}_pkey"),
            columns: key.to_vec(),
            included: Vec::new(),
        });
    }
    table
}

fn index(oid: u32, name: &str, column: u32, unique: bool) -> Index {
    Index {
        oid,
        name: name.to_owned(),
        tree: TreeAddress { id: oid, root: 1 },
        unique,
        nulls_not_distinct: false,
        constraint: if unique { oid + 1 } else { 0 },
        columns: vec![IndexKey { column, descending: false, nulls_first: false }],
        included: Vec::new(),
    }
}

/// The catalog.
pub(crate) fn catalog() -> Arc<Catalog> {
    let database = DatabaseEntry { oid: 5, name: "postgres".into() };
    let role = Role { oid: BOOTSTRAP_ROLE, name: "postgres".into(), superuser: true, login: true };
    let base = Catalog::new(database.clone(), Arc::from([database]), Arc::from([role]));
    let char_of = |length: i32| Type::with_modifier(oid::BPCHAR, length + 4);
    let (int, text) = (Type::INT4, Type::TEXT);
    let numeric = Type::with_modifier(oid::NUMERIC, registry::numeric_modifier_of(10, 2));
    let mut t = table(
        20_000,
        "t",
        &[("a", int), ("b", text), ("c", int), ("d", numeric), ("e", Type::TIMESTAMPTZ), ("f", Type::BOOL)],
        &[0],
    );
    t.columns[2].not_null = true;
    t.columns[2].default = Some("7".into());
    t.columns[4].default = Some("now()".into());
    let name = Type::with_modifier(oid::VARCHAR, 24);
    let mut u = table(
        20_010,
        "u",
        &[("id", Type::INT8), ("t_a", int), ("name", name), ("tags", Type::TEXT_ARRAY)],
        &[0],
    );
    u.indexes = vec![index(20_013, "u_name_key", 2, true), index(20_015, "u_t_a", 1, false)];
    u.foreign_keys = vec![ForeignKey {
        oid: 20_017,
        name: "u_t_a_fkey".into(),
        columns: vec![1],
        parent: 20_000,
        parent_columns: vec![0],
        on_delete: ReferentialAction::NoAction,
        on_update: ReferentialAction::NoAction,
        valid: true,
    }];
    let mut h = table(20_020, "h", &[("x", int), ("y", int)], &[]);
    h.checks =
        vec![CheckConstraint { oid: 20_021, name: "h_y_check".into(), text: "y > 0".into(), valid: true }];
    let accounts = [("aid", int), ("bid", int), ("abalance", int), ("filler", char_of(84))];
    let branches = [("bid", int), ("bbalance", int), ("filler", char_of(88))];
    let tellers = [("tid", int), ("bid", int), ("tbalance", int), ("filler", char_of(84))];
    let history = [
        ("tid", int),
        ("bid", int),
        ("aid", int),
        ("delta", int),
        ("mtime", Type::TIMESTAMP),
        ("filler", char_of(22)),
    ];
    let tables = [
        t,
        u,
        h,
        table(20_030, "pgbench_accounts", &accounts, &[0]),
        table(20_040, "pgbench_branches", &branches, &[0]),
        table(20_050, "pgbench_tellers", &tellers, &[0]),
        table(20_060, "pgbench_history", &history, &[]),
    ];
    let sized = |table: &Table| {
        let statistics = TableStatistics { rows: rows(table.oid), ..TableStatistics::default() };
        Change::PutStatistics(table.oid, Arc::new(statistics))
    };
    let sizes: Vec<Change> = tables.iter().map(sized).collect();
    let tables = tables.into_iter().map(|table| Change::PutTable(Arc::new(table)));
    let changes: Vec<Change> = tables.chain(sizes).collect();
    Arc::new(base.with_changes(&changes))
}

fn rows(table: u32) -> f64 {
    match table {
        20_030 => 100_000.0,
        20_000 => 10_000.0,
        20_010 => 50_000.0,
        20_040 => 1.0,
        20_050 => 10.0,
        _ => 1000.0,
    }
}

/// Compiles a request against the sample.
pub(crate) fn compile(request: &Request<'_>) -> Result<Compiled, SqlError> {
    let catalog = catalog();
    let path = ["public".to_owned()];
    let context = Context { catalog: &catalog, search_path: &path, sizes: None, methods: Default::default() };
    Ok(compile_here(&context, request)?.expect("a statement"))
}
