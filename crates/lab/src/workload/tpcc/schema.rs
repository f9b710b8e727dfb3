//! Tables and indexes (1.3), the same on both dialects except for the type of a date and time.

use crate::arm::Dialect;

/// All tables; `{time}` stands for the type of a date and time.
const TABLES: &str = include_str!("tables.sql");

/// Indexes besides the primary keys: customers by name, a customer's last order (1.4 permits any).
const INDEXES: [&str; 2] = [
    "CREATE INDEX customer_name ON customer (c_w_id, c_d_id, c_last, c_first)",
    "CREATE INDEX orders_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)",
];

pub(super) const NAMES: [&str; 9] =
    ["warehouse", "district", "customer", "history", "new_order", "orders", "order_line", "item", "stock"];

pub(super) fn before(dialect: Dialect) -> impl Iterator<Item = String> {
    let time = match dialect {
        Dialect::Postgres => "timestamp",
        Dialect::Mysql => "datetime",
    };
    let drops = NAMES.iter().map(|name| format!("DROP TABLE IF EXISTS {name}"));
    drops.chain(TABLES.split("\n\n").map(move |table| table.replace("{time}", time)))
}

pub(super) fn after(dialect: Dialect) -> impl Iterator<Item = String> {
    let analyze = match dialect {
        Dialect::Postgres => "VACUUM ANALYZE",
        Dialect::Mysql => "ANALYZE TABLE",
    };
    let indexes = INDEXES.iter().map(|&index| index.to_owned());
    indexes.chain(NAMES.iter().map(move |name| format!("{analyze} {name}")))
}
