//! Transactions, options and tables are sysbench's.

use super::*;
use crate::tests::golden_cases;
use crate::workload::tests::{Driver, Scratch, assert_works};

const SMALL: Options = Options { tables: 1, table_size: 10_000, rand_type: Distribution::Special };

fn workload(name: &str, options: Options) -> Sysbench {
    Sysbench::new(name, options, 3).unwrap()
}

/// The statements of a transaction, without their digits.
fn statements(name: &str) -> Vec<String> {
    let (sent, _) = Driver::new(&workload(name, SMALL), 0, 1).transaction();
    let plain = |text: String| text.replace(|one: char| one.is_ascii_digit(), "").trim_end().to_owned();
    sent.into_iter().map(plain).collect()
}

#[test]
fn transactions_are_those_of_the_scripts() {
    golden_cases("sysbench_transactions", SCRIPTS.map(|(name, _)| (name, statements(name))));
}

/// A server must keep all statements that a client prepares.
#[test]
fn a_script_prepares_only_the_statements_it_uses() {
    let count = |name: &str| {
        let workload = workload(name, Options { tables: 4, ..SMALL });
        let statements = workload.statements(Dialect::Mysql);
        // The workload uses each of them.
        let mut driver = Driver::new(&workload, 0, 1);
        let mut left = statements.clone();
        for _ in 0..300 {
            if let Step::Run(id) = driver.next() {
                left.retain(|statement| *statement != statements[usize::from(id.0)]);
            }
        }
        assert_eq!(left, [], "{name}");
        statements.len()
    };
    let all: Vec<usize> = SCRIPTS.iter().map(|(name, ..)| count(name)).collect();
    assert_eq!(all, [4, 2 + 4 * 5, 2 + 4 * 9, 2 + 4 * 4, 4, 4]);
}

#[test]
fn a_row_comes_back_where_it_was_deleted_and_ranges_are_of_100_rows() {
    let many = workload("oltp_write_only", Options { tables: 7, ..SMALL });
    let mut driver = Driver::new(&many, 0, 1);
    let mut tables = std::collections::BTreeSet::new();
    for _ in 0..150 {
        let (sent, _) = driver.transaction();
        let (delete, insert) = (&sent[3], &sent[4]);
        let (table, id) = delete.strip_prefix("DELETE FROM ").unwrap().split_once(" WHERE id=").unwrap();
        let expected = format!("INSERT INTO {table} (id, k, c, pad) VALUES ({id}, ");
        assert!(insert.starts_with(&expected), "{delete}, {insert}");
        tables.insert(table.to_owned());
    }
    assert_eq!(tables.len(), 7, "{tables:?}");

    let (sent, _) = Driver::new(&workload("oltp_read_only", SMALL), 0, 1).transaction();
    let (from, to) = sent[11].rsplit_once(" BETWEEN ").unwrap().1.split_once(" AND ").unwrap();
    assert_eq!(to.parse::<i64>().unwrap() - from.parse::<i64>().unwrap(), 99);
}

#[test]
fn options_are_checked() {
    let refused = |options| Sysbench::new("oltp_read_only", options, 1).map(drop).unwrap_err();
    assert!(refused(Options { tables: 0, ..SMALL }).starts_with("tables 0 is out of range"));
    assert!(refused(Options { tables: 10_000, ..SMALL }).contains("use 1 to 7281"));
    assert!(refused(Options { table_size: 0, ..SMALL }).starts_with("table_size 0"));
}

#[test]
fn tables_can_be_loaded_and_used() {
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        let Some(scratch) = Scratch::new(dialect, "sysbench") else { continue };
        let mut control = scratch.control();
        let two = |name: &str| workload(name, Options { tables: 2, table_size: 500, ..SMALL });
        assert_eq!(two("oltp_read_only").found(&mut control), Ok(Found::Nothing));
        assert_works(&scratch, &two("oltp_read_write"), Some("delete from sbtest2 where id = 7"));
        let found = two("oltp_read_only").found(&mut control).unwrap();
        assert_eq!(found, Found::Other("sbtest2 has 499 rows instead of 500".into()));
        assert_works(&scratch, &two("oltp_point_select"), None);
        let shape = control
            .query("select count(distinct c), min(id), max(id), min(k) > 0, max(k) <= 500 from sbtest1")
            .unwrap();
        let yes = if dialect == Dialect::Postgres { "t" } else { "1" };
        assert_eq!(shape[0], ["500", "1", "500", yes, yes].map(|value| Some(value.to_owned())));
        // The table's next generated id is a new one.
        control.execute("insert into sbtest1 (k, c, pad) values (1, '', '')").unwrap();
        assert_eq!(control.value("select max(id) from sbtest1"), Ok(Some("501".into())));
    }
}
