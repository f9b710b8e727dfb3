//! Tests of binding errors: code, message and position are those of PostgreSQL 18 for the same
//! statements and tables.

use super::sample::compile;
use crate::request::Request;

/// (statement, SQLSTATE, message, position; 0 = none).
#[rustfmt::skip]
const ERRORS: &[(&str, &str, &str, u32)] = &[
    ("select * from nosuch", "42P01", "relation \"nosuch\" does not exist", 15),
    ("select nosuch from t", "42703", "column \"nosuch\" does not exist", 8),
    ("select t.nosuch from t", "42703", "column t.nosuch does not exist", 8),
    ("select x.a from t", "42P01", "missing FROM-clause entry for table \"x\"", 8),
    ("select t.a from t as z", "42P01", "invalid reference to FROM-clause entry for table \"t\"", 8),
    ("select a from t, t as t2", "42702", "column reference \"a\" is ambiguous", 8),
    ("select * from t, t", "42712", "table name \"t\" specified more than once", 0),
    ("select a from t join u using (a)", "42703", "column \"a\" specified in USING clause does not exist in right table", 0),
    ("select a + b from t", "42883", "operator does not exist: integer + text", 10),
    ("select nofunc(a) from t", "42883", "function nofunc(integer) does not exist", 8),
    ("select lower(1, 2) from t", "42883", "function lower(integer, integer) does not exist", 8),
    ("select a from t where a", "42804", "argument of WHERE must be type boolean, not type integer", 23),
    ("select a from t where b = 1", "42883", "operator does not exist: text = integer", 25),
    ("select a, count(*) from t", "42803", "column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate function", 8),
    ("select a, b from t group by b", "42803", "column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate function", 8),
    ("select b from t group by b having a > 1", "42803", "column \"t.a\" must appear in the GROUP BY clause or be used in an aggregate function", 35),
    ("select sum(count(*)) from t", "42803", "aggregate function calls cannot be nested", 12),
    ("select a from t where count(*) > 1", "42803", "aggregate functions are not allowed in WHERE", 23),
    ("select a from t order by 3", "42P10", "ORDER BY position 3 is not in select list", 26),
    ("select a from t order by nosuch", "42703", "column \"nosuch\" does not exist", 26),
    ("select a from t group by 2", "42P10", "GROUP BY position 2 is not in select list", 26),
    ("select distinct a from t order by b", "42P10", "for SELECT DISTINCT, ORDER BY expressions must appear in select list", 35),
    ("select * ", "42601", "SELECT * with no tables specified is not valid", 8),
    ("select 1 union select 1, 2", "42601", "each UNION query must have the same number of columns", 23),
    ("select 1 union select 'a'::text", "42804", "UNION types integer and text cannot be matched", 23),
    ("select a from t union select b from t", "42804", "UNION types integer and text cannot be matched", 30),
    ("select a from t union select a from t order by a + 1", "0A000", "invalid UNION/INTERSECT/EXCEPT ORDER BY clause", 48),
    ("insert into t values (1, 2, 3, 4, now(), true, 7)", "42601", "INSERT has more expressions than target columns", 48),
    ("insert into t (a, nosuch) values (1, 2)", "42703", "column \"nosuch\" of relation \"t\" does not exist", 19),
    ("insert into t (a, a) values (1, 2)", "42701", "column \"a\" specified more than once", 19),
    ("insert into t (a, b) values (1)", "42601", "INSERT has more target columns than expressions", 19),
    ("insert into t (a) values (1, 2)", "42601", "INSERT has more expressions than target columns", 30),
    ("insert into t (a) values ('x'::text)", "42804", "column \"a\" is of type integer but expression is of type text", 27),
    ("insert into t (a) values ('x')", "22P02", "invalid input syntax for type integer: \"x\"", 27),
    ("insert into t (f) values (1)", "42804", "column \"f\" is of type boolean but expression is of type integer", 27),
    ("insert into nosuch values (1)", "42P01", "relation \"nosuch\" does not exist", 13),
    ("insert into t (a) values (1), (1, 2)", "42601", "VALUES lists must all be the same length", 32),
    ("update t set nosuch = 1", "42703", "column \"nosuch\" of relation \"t\" does not exist", 14),
    ("update t set a = 'x'::text", "42804", "column \"a\" is of type integer but expression is of type text", 18),
    ("update t set a = 1, a = 2", "42601", "multiple assignments to same column \"a\"", 0),
    ("update nosuch set a = 1", "42P01", "relation \"nosuch\" does not exist", 8),
    ("update t set a = b", "42804", "column \"a\" is of type integer but expression is of type text", 18),
    ("delete from nosuch", "42P01", "relation \"nosuch\" does not exist", 13),
    ("delete from t where nosuch = 1", "42703", "column \"nosuch\" does not exist", 21),
    ("select $1 is null", "42P18", "could not determine data type of parameter $1", 0),
    ("select a from t where a = (select id, name from u)", "42601", "subquery must return only one column", 27),
    ("select a from t where a in (select id, name from u)", "42601", "subquery has too many columns", 25),
    ("select 'x'::int", "22P02", "invalid input syntax for type integer: \"x\"", 8),
    ("select '2020-13-01'::date", "22008", "date/time field value out of range: \"2020-13-01\"", 8),
    ("select 1::nosuch", "42704", "type \"nosuch\" does not exist", 11),
    ("select a::date from t", "42846", "cannot cast type integer to date", 9),
    ("select case when a then 1 end from t", "42804", "argument of CASE/WHEN must be type boolean, not type integer", 18),
    ("select case a when 'x'::text then 1 end from t", "42883", "operator does not exist: integer = text", 15),
    ("select coalesce(a, b) from t", "42804", "COALESCE types integer and text cannot be matched", 20),
    ("select not a from t", "42804", "argument of NOT must be type boolean, not type integer", 12),
    ("select a and f from t", "42804", "argument of AND must be type boolean, not type integer", 8),
    ("select t from t where t.b = u.name", "42P01", "missing FROM-clause entry for table \"u\"", 29),
    ("select a from t limit b", "42804", "argument of LIMIT must be type bigint, not type text", 23),
    ("select a from t limit 'x'", "22P02", "invalid input syntax for type bigint: \"x\"", 23),
    ("select (select a from u2) from t", "42P01", "relation \"u2\" does not exist", 23),
    ("select row(1,2) = row(1,2,3)", "42601", "unequal number of entries in row expressions", 17),
    ("select (1,2) in ((1,2),(3,4,5))", "42601", "unequal number of entries in row expressions", 14),
    ("select a[1] from t", "42804", "cannot subscript type integer because it does not support subscripting", 8),
    ("select array[1, 'x'::text]", "42804", "ARRAY types integer and text cannot be matched", 17),
    ("select array[]", "42P18", "cannot determine type of empty array", 8),
    ("select max(a) over w from t", "42704", "window \"w\" does not exist", 20),
    ("select rank() from t", "42809", "window function rank requires an OVER clause", 8),
    ("select * from t as z(q1,q2,q3,q4,q5,q6,q7)", "42P10", "table \"z\" has 6 columns available but 7 columns specified", 0),
    ("with w as (select 1), w as (select 2) select * from w", "42712", "WITH query name \"w\" specified more than once", 23),
    ("with w(a, b) as (select 1) select * from w", "42P10", "WITH query \"w\" has 1 columns available but 2 columns specified", 6),
    ("select b from t for update of u", "42P01", "relation \"u\" in FOR UPDATE clause not found in FROM clause", 31),
    ("select count(*) from t for update", "0A000", "FOR UPDATE is not allowed with aggregate functions", 0),
    ("select a from t group by a for update", "0A000", "FOR UPDATE is not allowed with GROUP BY clause", 0),
    ("select a from t union select a from t for update", "0A000", "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT", 0),
    ("(select a from t for update) union all select a from t", "0A000", "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT", 0),
    ("select varchar(0) 'x'", "22023", "length for type varchar must be at least 1", 8),
    ("select int4(5) '1'", "42601", "type modifier is not allowed for type \"int4\"", 8),
    ("values (1, 2), (3)", "42601", "VALUES lists must all be the same length", 17),
    ("select x.* from t", "42P01", "missing FROM-clause entry for table \"x\"", 8),
    ("select 1 + true", "42883", "operator does not exist: integer + boolean", 10),
    ("select - 'x'::text", "42883", "operator does not exist: - text", 8),
    ("select a || f from t", "42883", "operator does not exist: integer || boolean", 10),
    ("insert into t (a, b) select 1", "42601", "INSERT has more target columns than expressions", 19),
    ("insert into t (a) select 1, 2", "42601", "INSERT has more expressions than target columns", 29),
    ("select count(*) filter (where a) from t", "42804", "argument of FILTER must be type boolean, not type integer", 31),
    ("select lower(distinct b) from t", "42809", "DISTINCT specified, but lower is not an aggregate function", 8),
    ("select lower(b) over () from t", "42809", "OVER specified, but lower is not a window function nor an aggregate function", 8),
    ("select a from t where a > all (select name from u)", "42883", "operator does not exist: integer > character varying", 25),
    ("select a from t t1 join u on t1.a = t2.a", "42P01", "missing FROM-clause entry for table \"t2\"", 37),
    ("select public.nofn(1)", "42883", "function public.nofn(integer) does not exist", 8),
    ("select noschema.nofn(1)", "3F000", "schema \"noschema\" does not exist", 8),
    ("select * from noschema.tab", "42P01", "relation \"noschema.tab\" does not exist", 15),
    ("insert into h default values returning nosuch", "42703", "column \"nosuch\" does not exist", 40),
    ("insert into t (a) values (1) on conflict do update set b = 'x'", "42601", "ON CONFLICT DO UPDATE requires inference specification or constraint name", 30),
    ("insert into t (a) values (1) on conflict (a) do update set nosuch = 'x'", "42703", "column \"nosuch\" of relation \"t\" does not exist", 60),
    ("insert into t (a) values (default, 1)", "42601", "INSERT has more expressions than target columns", 36),
    ("select default", "42601", "DEFAULT is not allowed in this context", 8),
    ("select a from t where exists (select 1 from u where u.t_a = t.nosuch)", "42703", "column t.nosuch does not exist", 61),
    ("select sum(b) from t", "42883", "function sum(text) does not exist", 8),
    ("select avg(f) from t", "42883", "function avg(boolean) does not exist", 8),
    ("select abs('x'::text)", "42883", "function abs(text) does not exist", 8),
    ("select a from t where b like 5", "42883", "operator does not exist: text ~~ integer", 25),
    ("select a from t where c between 'x' and 5", "22P02", "invalid input syntax for type integer: \"x\"", 33),
    ("update t set (a, b) = (1, 2, 3)", "42601", "number of columns does not match number of values", 23),
    ("select a from (select 1) s", "42703", "column \"a\" does not exist", 8),
    ("select s.b from (select a from t) s", "42703", "column s.b does not exist", 8),
    ("select interval '1 parsec'", "22007", "invalid input syntax for type interval: \"1 parsec\"", 17),
    ("create table n (a text collate \"de_DE\")", "42704", "collation \"de_DE\" for encoding \"UTF8\" does not exist", 24),
    ("create index on t (b collate \"de_DE\")", "42704", "collation \"de_DE\" for encoding \"UTF8\" does not exist", 0),
    ("create table n (a int default (select 1))", "0A000", "cannot use subquery in DEFAULT expression", 31),
    ("create table n (a int check (a > (select 1)))", "0A000", "cannot use subquery in check constraint", 0),
    ("create table n (a int check (exists (select 1)))", "0A000", "cannot use subquery in check constraint", 0),
    ("create table n (a int not null null)", "42601", "conflicting NULL/NOT NULL declarations for column \"a\" of table \"n\"", 32),
    ("create table n (a serial null)", "42601", "conflicting NULL/NOT NULL declarations for column \"a\" of table \"n\"", 26),
    ("create table n (a int null primary key)", "42601", "conflicting NULL/NOT NULL declarations for column \"a\" of table \"n\"", 28),
    ("alter table t alter a type int using (select 1)", "0A000", "cannot use subquery in transform expression", 38),
    ("create database n template other", "0A000", "TEMPLATE other is not supported", 19),
    ("create database n encoding 'LATIN1'", "0A000", "ENCODING LATIN1 is not supported", 19),
    ("create database n lc_collate 'de_DE'", "0A000", "LC COLLATE de_DE is not supported", 19),
    ("create database n connection limit 5", "0A000", "CONNECTION LIMIT 5 is not supported", 19),
    ("create database n is_template true", "0A000", "IS TEMPLATE true is not supported", 19),
    ("create database n allow_connections false", "0A000", "ALLOW CONNECTIONS false is not supported", 19),
    ("create database n colour 3", "42601", "option \"colour\" not recognized", 19),
    ("drop database n with (force)", "0A000", "DROP DATABASE WITH (FORCE) is not supported", 23),
    ("select greatest(1, 'x'::text)", "42804", "GREATEST types integer and text cannot be matched", 20),
];

/// A query or table with more columns than a row may have is refused. A message could not count
/// them either.
#[test]
fn a_query_or_table_has_a_limit_of_columns() {
    let list = |count: usize| vec!["1"; count].join(",");
    for text in [
        format!("select {}", list(1664)),
        format!("values ({})", list(1664)),
        format!("select row({}) is null", list(1664)),
    ] {
        assert!(compile(&Request::plain(&text)).is_ok(), "{:.40}", text);
    }
    let ten = "s.*, s.*, s.*, s.*, s.*, s.*, s.*, s.*, s.*, s.*";
    for (text, message, position) in [
        (format!("select {}", list(1665)), "target lists can have at most 1664 entries", None),
        (format!("values ({})", list(1665)), "target lists can have at most 1664 entries", None),
        (
            format!("select {ten} from (select {}) s", list(167)),
            "target lists can have at most 1664 entries",
            None,
        ),
        (
            format!("insert into t (a) values (1) returning {}", list(1665)),
            "target lists can have at most 1664 entries",
            None,
        ),
        (format!("select row({})", list(1665)), "ROW expressions can have at most 1664 entries", Some(8)),
    ] {
        let error = compile(&Request::plain(&text)).expect_err("too many columns");
        let actual = (error.code.as_str(), error.message.as_str(), error.position);
        assert_eq!(actual, ("54011", message, position), "{:.40}", text);
    }
}

#[test]
fn the_binder_raises_postgresqls_errors() {
    let mut wrong = Vec::new();
    for (text, code, message, position) in ERRORS {
        match compile(&Request::plain(text)) {
            Ok(_) => wrong.push(format!("{text}\n    no error, expected {code}: {message}")),
            Err(error) => {
                let actual = (error.code.as_str(), error.message.as_str(), error.position.unwrap_or(0));
                if actual != (*code, *message, *position) {
                    wrong.push(format!("{text}\n    {actual:?}\n    {:?}", (code, message, position)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), ERRORS.len(), wrong.join("\n"));
}
