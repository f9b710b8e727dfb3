//! Transactions, options and tables are sysbench's.

use super::*;
use crate::workload::tests::{Driver, Scratch, assert_allocates_nothing, assert_works};

const SMALL: Options = Options { tables: 1, table_size: 10_000, rand_type: Distribution::Special };

fn workload(name: &str, change: impl FnOnce(&mut Options)) -> Sysbench {
    let mut options = SMALL;
    change(&mut options);
    Sysbench::new(name, options, 3).unwrap()
}

/// The statements of a transaction, without quoted digits and ids.
fn statements(workload: &Sysbench) -> Vec<String> {
    let (sent, _) = Driver::new(workload, 0, 1).transaction();
    let plain = |text: String| {
        text.split(|c: char| c.is_ascii_digit()).filter(|part| !part.is_empty()).collect::<String>()
    };
    sent.into_iter().map(plain).collect()
}

#[test]
fn transactions_are_those_of_the_scripts() {
    let none = |_: &mut Options| {};
    assert_eq!(statements(&workload("oltp_point_select", none)), ["SELECT c FROM sbtest WHERE id="]);
    assert_eq!(statements(&workload("oltp_update_index", none)), ["UPDATE sbtest SET k=k+ WHERE id="]);
    assert_eq!(
        statements(&workload("oltp_update_non_index", none)),
        ["UPDATE sbtest SET c='---------' WHERE id="]
    );
    let reads: Vec<_> = std::iter::repeat_n("SELECT c FROM sbtest WHERE id=", 10)
        .chain([
            "SELECT c FROM sbtest WHERE id BETWEEN  AND ",
            "SELECT SUM(k) FROM sbtest WHERE id BETWEEN  AND ",
            "SELECT c FROM sbtest WHERE id BETWEEN  AND  ORDER BY c",
            "SELECT DISTINCT c FROM sbtest WHERE id BETWEEN  AND  ORDER BY c",
        ])
        .collect();
    let writes = vec![
        "UPDATE sbtest SET k=k+ WHERE id=",
        "UPDATE sbtest SET c='---------' WHERE id=",
        "DELETE FROM sbtest WHERE id=",
        "INSERT INTO sbtest (id, k, c, pad) VALUES (, , '---------', '----')",
    ];
    assert_eq!(statements(&workload("oltp_read_only", none)), [&["BEGIN"][..], &reads, &["COMMIT"]].concat());
    assert_eq!(
        statements(&workload("oltp_write_only", none)),
        [&["BEGIN"][..], &writes, &["COMMIT"]].concat()
    );
    assert_eq!(
        statements(&workload("oltp_read_write", none)),
        [&["BEGIN"][..], &reads, &writes, &["COMMIT"]].concat()
    );
}

/// A server must keep all statements that a client prepares.
#[test]
fn a_script_prepares_only_the_statements_it_uses() {
    let count = |name: &str| {
        let workload = workload(name, |options| options.tables = 4);
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
    let many = workload("oltp_write_only", |options| options.tables = 7);
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

    let (sent, _) = Driver::new(&workload("oltp_read_only", |_| {}), 0, 1).transaction();
    let (from, to) = sent[11].rsplit_once(" BETWEEN ").unwrap().1.split_once(" AND ").unwrap();
    assert_eq!(to.parse::<i64>().unwrap() - from.parse::<i64>().unwrap(), 99);
}

#[test]
fn a_repeated_transaction_makes_the_same_choices() {
    let workload = workload("oltp_read_write", |_| {});
    let mut driver = Driver::new(&workload, 0, 1);
    let first = driver.transaction().0;
    // The transaction ends in the middle, between DELETE and INSERT.
    let begun: Vec<_> = (0..18).map(|_| driver.statement()).collect();
    assert_ne!(first[..18], begun);
    assert_eq!(driver.failed(true), 0);
    let again = driver.transaction().0;
    assert_eq!((again.len(), &again[..18]), (20, &begun[..]));
    let begun: Vec<_> = (0..5).map(|_| driver.statement()).collect();
    driver.failed(false);
    let other = driver.transaction().0;
    assert_eq!(other.len(), 20);
    assert_ne!(other[..5], begun);
}

#[test]
fn clients_allocate_nothing_and_options_are_checked() {
    for (name, ..) in SCRIPTS {
        let workload = workload(name, |options| options.tables = 3);
        assert_eq!(workload.name(), name);
        assert_allocates_nothing(&workload, &Default::default());
    }
    let with = |change: fn(&mut Options)| {
        let mut options = SMALL;
        change(&mut options);
        Sysbench::new("oltp_read_only", options, 1).map(drop).unwrap_err()
    };
    assert!(with(|options| options.tables = 0).starts_with("tables 0 is out of range"));
    assert!(with(|options| options.tables = 10_000).contains("use 1 to 7281"));
    assert!(with(|options| options.table_size = 0).starts_with("table_size 0"));
}

#[test]
fn tables_can_be_loaded_and_used() {
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        let Some(scratch) = Scratch::new(dialect, "sysbench") else { continue };
        let mut control = scratch.control();
        let two = |name: &str| {
            workload(name, |options| {
                options.tables = 2;
                options.table_size = 500;
            })
        };
        assert_eq!(two("oltp_read_only").found(&mut control), Ok(Found::Nothing));
        assert_works(&scratch, &two("oltp_read_write"), Some("delete from sbtest2 where id = 7"));
        let found = two("oltp_read_only").found(&mut control).unwrap();
        assert_eq!(found, Found::Other("sbtest2 has 499 rows instead of 500".into()));
        for (name, ..) in SCRIPTS {
            assert_works(&scratch, &two(name), None);
        }
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
