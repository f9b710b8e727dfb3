//! Small tables for random queries: empty ones, NULLs, duplicates, skewed values, all kinds of
//! indexes.
//!
//! The tables exist three times with the same rows: without indexes, with indexes that no ANALYZE
//! has seen, and with both.

use crate::common::dice::Dice;

/// The class of a column's type. Values of one class compare with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    Int,
    Numeric,
    Text,
    /// Texts of some 100 bytes, which fill memory. Conditions do not read them.
    Long,
    Date,
    Bool,
}

/// A column: its name, the class of its type, and the type.
pub const COLUMNS: [(&str, Class, &str); 8] = [
    ("k", Class::Int, "int"),
    ("a", Class::Int, "int"),
    ("b", Class::Int, "bigint"),
    ("n", Class::Numeric, "numeric(8,2)"),
    ("s", Class::Text, "text"),
    ("d", Class::Date, "date"),
    ("f", Class::Bool, "boolean"),
    ("p", Class::Long, "text"),
];
/// The schemas that have the tables.
pub const SCHEMAS: [&str; 3] = ["bare", "fresh", "analyzed"];
/// How many tables there are, `t0` and so on.
pub const TABLES: usize = 6;
/// Rows of most tables, at most. Queries that join them without a condition still end soon.
const FEW: usize = 25;
/// Rows of the last table, more than one page has.
const MANY: usize = 300;

const INDEXES: [&str; 16] = [
    "(a)",
    "(b desc)",
    "(a, b)",
    "(s)",
    "(s, a)",
    "(n)",
    "(d)",
    "(d desc, a)",
    "(f, a)",
    "(b nulls first)",
    "(a desc nulls last, s)",
    "(s desc, d, b)",
    "(n, k)",
    "(a) include (b)",
    "(b, a) include (s, k)",
    "(p)",
];
const WORDS: [&str; 10] = ["", "a", "ab", "abc", "b", "ba", "bab", "c", "a%c", "a_c"];

/// A literal of a class, as its text.
pub fn value(class: Class, dice: &mut Dice) -> String {
    match class {
        // Half of the numbers are one.
        Class::Int => if dice.roll(2) == 0 { 1 } else { dice.roll(12) }.to_string(),
        Class::Numeric => format!("{}.{:02}", dice.roll(5), 25 * dice.roll(4)),
        Class::Text => WORDS[dice.roll(WORDS.len())].to_owned(),
        Class::Long => format!("{}{}", ["x", "yy", "zzz"][dice.roll(3)].repeat(40), dice.roll(9)),
        Class::Date => format!("2024-0{}-{:02}", 1 + dice.roll(3), 1 + dice.roll(4)),
        Class::Bool => ["true", "false"][dice.roll(2)].to_owned(),
    }
}

fn row(key: usize, keyed: bool, dice: &mut Dice) -> String {
    let values = COLUMNS.iter().map(|&(name, class, _)| match name {
        "k" if keyed => key.to_string(),
        _ if dice.roll(7) == 0 => "null".to_owned(),
        _ => format!("'{}'", value(class, dice)),
    });
    format!("({})", values.collect::<Vec<_>>().join(", "))
}

/// The statements that make the tables of a round.
pub fn statements(dice: &mut Dice) -> Vec<String> {
    let mut said = Vec::new();
    for schema in SCHEMAS {
        said.push(format!("drop schema if exists {schema} cascade"));
        said.push(format!("create schema {schema}"));
    }
    for table in 0..TABLES {
        let keyed = dice.roll(4) > 0;
        let count = match table {
            _ if table + 1 == TABLES => MANY,
            0 => [0, 1][dice.roll(2)],
            _ => [0, 2, 5, 9, 9, FEW, FEW][dice.roll(7)],
        };
        let mut rows: Vec<String> = Vec::new();
        for key in 0..count {
            let again = !keyed && key > 0 && dice.roll(5) == 0;
            let next = if again { rows[dice.roll(key)].clone() } else { row(key, keyed, dice) };
            rows.push(next);
        }
        let chosen: Vec<&str> = (0..dice.roll(5)).map(|_| INDEXES[dice.roll(INDEXES.len())]).collect();
        for schema in SCHEMAS {
            let columns: Vec<String> =
                COLUMNS.iter().map(|(name, _, type_)| format!("{name} {type_}")).collect();
            let key = if keyed && schema != "bare" { ", primary key (k)" } else { "" };
            said.push(format!("create table {schema}.t{table} ({}{key})", columns.join(", ")));
            if !rows.is_empty() {
                said.push(format!("insert into {schema}.t{table} values {}", rows.join(", ")));
            }
            if schema != "bare" {
                said.extend(chosen.iter().map(|index| format!("create index on {schema}.t{table} {index}")));
            }
            if schema == "analyzed" {
                said.push(format!("analyze {schema}.t{table}"));
            }
        }
    }
    said
}
