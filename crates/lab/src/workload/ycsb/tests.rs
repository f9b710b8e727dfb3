//! Mixes, keys and the table are YCSB's.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::tests::golden_cases;
use crate::workload::tests::{Driver, Scratch, assert_works};

fn workload(letter: char) -> Ycsb {
    Ycsb::new(letter, 200, 3).unwrap()
}

fn key(number: u64) -> String {
    format!("'user{}'", hash(number))
}

#[test]
fn mixes_are_those_of_the_workload_files() {
    let mixes = ['a', 'b', 'c', 'd', 'e', 'F'].map(|letter| {
        let workload = workload(letter);
        let mut driver = Driver::new(&workload, 0, 1);
        let mut seen = BTreeMap::<String, u32>::new();
        for _ in 0..20_000 {
            let (sent, kind) = driver.transaction();
            if let [read, write] = sent.as_slice() {
                assert_eq!(read.rsplit_once("= ").unwrap().1, write.rsplit_once("= ").unwrap().1);
            }
            let verbs: Vec<_> = sent.iter().map(|text| text.split(' ').next().unwrap()).collect();
            let kind = format!("{}: {}", workload.kinds()[usize::from(kind)], verbs.join(" "));
            *seen.entry(kind).or_default() += 1;
        }
        let shares = seen.iter().map(|(kind, seen)| format!("{kind}, {:.0}%", f64::from(*seen) / 200.0));
        (letter, shares.collect())
    });
    golden_cases("ycsb_mixes", mixes);
    assert!(Ycsb::new('g', 1000, 1).unwrap_err().contains("use a to f"));
    assert!(Ycsb::new('a', 0, 1).is_err());
}

#[test]
fn keys_exist_when_they_are_read() {
    let workload = workload('d');
    let mut present: BTreeSet<String> = (0..200).map(key).collect();
    let mut drivers = [0, 1, 2].map(|index| Driver::new(&workload, index, 3));
    let mut recent = 0;
    for _ in 0..2000 {
        for driver in &mut drivers {
            let (sent, _) = driver.transaction();
            if let Some(values) = sent[0].strip_prefix("INSERT INTO usertable (") {
                let (_, values) = values.split_once("VALUES(").unwrap();
                let (inserted, fields) = values.split_once(',').unwrap();
                assert!(present.insert(inserted.to_owned()), "{inserted} twice");
                assert_eq!(fields.split(',').filter(|field| field.len() >= 102).count(), 10);
            } else {
                let read = sent[0].rsplit_once("= ").unwrap().1;
                assert!(present.contains(read), "{read}");
                recent += usize::from(!(0..200).any(|number| key(number) == read));
            }
        }
    }
    // About 300 of the 500 keys at the end are inserted ones, and clients read the latest most.
    assert!(recent > 2000, "{recent}");
}

#[test]
fn arms_and_their_rounds_insert_different_keys() {
    let arms = [workload('d'), workload('d')];
    let mut inserted = BTreeSet::new();
    for (round, arm) in [0, 1, 1, 0].into_iter().enumerate() {
        for mut driver in [0, 1].map(|index| Driver::new(&arms[arm], index, 2)) {
            let sent = (0..400).map(|_| driver.transaction().0.swap_remove(0));
            for insert in sent.filter(|sent| sent.starts_with("INSERT")) {
                let (_, values) = insert.split_once("VALUES(").unwrap();
                let key = values.split(',').next().unwrap().to_owned();
                assert!(inserted.insert(key.clone()), "round {round}: {key} again");
            }
        }
    }
    assert!(inserted.len() > 80, "{}", inserted.len());
}

#[test]
fn an_insert_that_is_given_up_has_used_its_key() {
    let workload = workload('d');
    let mut driver = Driver::new(&workload, 0, 1);
    let mut keys = BTreeSet::new();
    for round in 0..500 {
        if driver.next() == Step::Run(INSERT) {
            assert!(keys.insert(driver.param(0)), "round {round}");
        }
        driver.failed(false);
    }
    assert!(keys.len() > 5);
}

#[test]
fn the_table_can_be_loaded_and_used() {
    for dialect in [Dialect::Postgres, Dialect::Mysql] {
        let Some(scratch) = Scratch::new(dialect, "ycsb") else { continue };
        let mut control = scratch.control();
        assert_eq!(workload('a').found(&mut control), Ok(Found::Nothing));
        for letter in 'a'..='f' {
            let spoil =
                (letter == 'c').then_some("delete from usertable where ycsb_key = 'user6284781860667377211'");
            assert_works(&scratch, &workload(letter), spoil);
        }
        let lengths = "select count(*), min(length(field0)), max(length(field9)) from usertable";
        assert_eq!(
            control.query(lengths).unwrap()[0],
            ["200", "100", "100"].map(|value| Some(value.to_owned()))
        );
    }
}
