//! The builtin scripts and tables are pgbench's, and the checks find faults.

use std::process::Command;

use super::*;
use crate::tests::golden;
use crate::workload::tests::{Driver, Scratch, assert_works, builtins};

#[test]
fn builtins_are_named_as_pgbench_names_them() {
    assert_eq!(builtin("select-only").unwrap().name, "select-only");
    assert_eq!(builtin("select"), None);
    for (name, text) in BUILTINS {
        let Ok(output) = Command::new("pgbench").arg(format!("--show-script={name}")).output() else {
            crate::tests::skip("pgbench is not installed");
            return;
        };
        let shown = String::from_utf8(output.stderr).unwrap();
        let (_, shown) = shown.split_once('\n').unwrap();
        assert_eq!(shown.trim(), text.trim(), "{name}");
    }
}

#[test]
fn a_transaction_is_tpcb_s() {
    let workload = builtins(&["tpcb-like"], 3);
    let (sent, kind) = Driver::new(&workload, 0, 1).transaction();
    golden("pgbench_transaction", &sent.join("\n"));
    assert_eq!(kind, 0);
    let mysql = workload.statements(Dialect::Mysql);
    assert_eq!(
        (mysql[6].pieces[0].as_str(), mysql[0].prepare, mysql[6].prepare),
        ("COMMIT;", Prepare::Never, Prepare::AtConnect)
    );
    assert_eq!(workload.kinds(), ["tpcb-like"]);
    let own = Source { name: "tpcb-like".into(), text: "SELECT :x;".into(), weight: 2 };
    let settings = Settings { defines: vec![("x".into(), "1".into())], scale: 4, seed: 1 };
    let mixed = PgBench::new(&[builtin("select-only").unwrap(), own], &settings).unwrap();
    let scripts = vec![(BUILTINS[2].1.to_owned(), 1), ("SELECT :x;".to_owned(), 2)];
    let original = Original { scripts, scale: 4, variables: settings.defines.clone(), reconnect: false };
    assert_eq!(mixed.original(), Some(original));
    let none = Settings { scale: 0, ..settings };
    assert!(PgBench::new(&[builtin("tpcb-like").unwrap()], &none).is_err());
}

#[test]
fn tables_are_those_of_pgbench() {
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        let Some(scratch) = Scratch::new(dialect, "pgbench") else { continue };
        let tpcb = builtins(&["tpcb-like"], 1);
        let mut control = scratch.control();
        assert_eq!(tpcb.found(&mut control), Ok(Found::Nothing));
        let spoil = "update pgbench_tellers set tbalance = tbalance + 1 where tid = 5";
        assert_works(&scratch, &tpcb, Some(spoil));
        let larger = builtins(&["tpcb-like"], 2).found(&mut control).unwrap();
        assert_eq!(larger, Found::Other("pgbench's tables of scale 1 instead of 2".into()));
        assert_eq!(loaded_scale(&mut control), Ok(Some(1)));
        control.execute("delete from pgbench_branches").unwrap();
        let cut = tpcb.found(&mut control).unwrap();
        assert_eq!(cut, Found::Other("pgbench_branches has 0 rows instead of 1".into()));
        tpcb.load(&scratch.target, 1, &Progress::new(0)).unwrap();
        assert_works(&scratch, &builtins(&["simple-update", "select-only"], 1), None);
        if dialect == Dialect::Postgres {
            assert_eq!(shape(&mut control), pgbench_shape(&scratch));
        }
    }
}

/// Columns, keys, options and contents of the tables.
fn shape(control: &mut Control) -> Vec<crate::arm::control::Row> {
    let mut all = control
        .query(
            "select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, c.reloptions, \
             (select pg_get_constraintdef(k.oid) from pg_constraint k where k.conrelid = c.oid and k.contype = 'p') \
             from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 \
             where c.relname like 'pgbench\\_%' and c.relkind = 'r' order by 1, a.attnum",
        )
        .unwrap();
    for table in ["accounts", "tellers", "branches"] {
        let balance = &table[..1];
        let sql = format!(
            "select count(*), sum(t.{balance}id), count(t.filler), sum(hashtext(t.filler || '.')) from pgbench_{table} t"
        );
        let sql = if table == "branches" {
            sql
        } else {
            sql.replace(" from", ", sum(t.bid * t.{b}id::numeric) from").replace("{b}", balance)
        };
        all.extend(control.query(&sql).unwrap());
    }
    all
}

/// The same for the tables of `pgbench -i`, which replace the lab's.
fn pgbench_shape(scratch: &Scratch) -> Vec<crate::arm::control::Row> {
    match crate::tests::pgbench(&scratch.target).args(["-q", "-i"]).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(_) => crate::tests::skip("pgbench is not installed"),
    }
    shape(&mut scratch.control())
}
