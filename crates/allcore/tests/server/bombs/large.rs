//! Statements over rows with large values. Neither reading or computing such a value, nor freeing
//! it, nor rolling its row back holds the core.
//!
//! A strict run makes texts of 100 MB, ten in a table, and of 10 MB in 1 GiB. The run within `make
//! test` makes short ones, for which each call still needs several pieces.

use super::texts::{Bomb, Sent, explode};
use super::{is_small, is_strict, judge, pace};
use crate::common::Server;

/// Names, and statements where SIZE stands for the length of a text, MANY for a large count.
const BOMBS: &[(&str, &str)] = &[
    ("max", "select length(max(t)) from large"),
    ("min of new texts", "select length(min(repeat('x', SIZE) || g)) from generate_series(1, 20) g"),
    ("max of equal texts", "select length(max(repeat('x', SIZE))) from generate_series(1, 20) g"),
    ("string_agg", "select length(string_agg(t, ',')) from large"),
    ("array_agg", "select cardinality(array_agg(t)) from large"),
    ("the text of an array_agg", "select length(array_agg(t)::text) from large where n <= 4"),
    ("unnest", "select count(x || 'y') from (select array_agg(t) a from large where n <= 4) s, unnest(a) x"),
    ("GROUP BY", "select count(*) from (select t from large group by t) s"),
    (
        "GROUP BY of equal keys",
        "set work_mem = '1GB'; select count(*) from (select repeat('x', SIZE) from large group by 1) s",
    ),
    ("DISTINCT", "select count(*) from (select distinct t from large) s"),
    ("a count of distinct texts", "select count(distinct t) from large"),
    ("DISTINCT in memory", "set work_mem = '2GB'; select count(*) from (select distinct t from large) s"),
    ("ORDER BY", "select n from large order by t, n desc"),
    ("ORDER BY in memory", "set work_mem = '2GB'; select n from large order by t, n desc"),
    ("ORDER BY with a limit", "select n from large order by t desc limit 2"),
    ("a hash join", "set work_mem = '2GB'; select count(*) from large a join large b using (t)"),
    ("a merge join", "set work_mem = '64kB'; select count(*) from large a join large b using (t)"),
    ("a nested loop", "select count(*) from large a join large b on a.t < b.t"),
    ("IN of a subquery", "select count(*) from large where t || 'x' in (select t || 'x' from large)"),
    ("UNION", "select count(*) from (select t from large union select t from large) s"),
    ("EXCEPT ALL", "select count(*) from (select t from large except all select t from large) s"),
    ("a window", "select count(l) from (select lag(t) over (partition by t order by t) l from large) s"),
    ("concatenation", "select count(t || 'x' || t) from large"),
    ("upper", "select count(upper(t)) from large"),
    ("equality", "select count(*) from large where t = t || '' and t || 'x' <> t || 'y'"),
    (
        "arrays compared",
        "select count(*) from (select array[t, t] a from large) s where a = a || '{}' and a <= a",
    ),
    ("rows compared", "select count(*) from large where (t, n) = (t || '', n) or (t, n) > (t || '', n)"),
    ("greatest", "select count(greatest(t, t || '', t)) from large"),
    ("rows sent", "select t from large"),
    ("bytea sent", "select t::bytea from large where n <= 2"),
    ("a cursor", "begin; declare c cursor for select t from large; fetch 5 from c; rollback"),
    ("CREATE TABLE AS", "begin; create table filled as select n, t from large; rollback"),
    ("INSERT", "begin; insert into other select n, t || 'x' from large; rollback"),
    ("UPDATE", "begin; update large set t = t || 'x'; rollback"),
    ("UPDATE alone", "update other set t = t || 'x'"),
    ("DELETE", "begin; delete from large; rollback"),
    ("a check", "begin; alter table large add check (length(t) > 1); rollback"),
    ("COPY out", "copy large to stdout"),
    ("the longest text", "select length(repeat('x', LONGEST)), md5(repeat('x', LONGEST))"),
    ("the longest text sent", "select repeat('x', LONGEST)"),
    ("the longest text compared", "select repeat('x', LONGEST) = repeat('x', LONGEST)"),
    (
        "many groups",
        "set work_mem = '2GB'; select count(*) from (select g, array_agg(g) from generate_series(1, MANY) g group by g) s",
    ),
    ("many keys", "set work_mem = '2GB'; select count(distinct g) from generate_series(1, MANY) g"),
    (
        "many rows of UNION",
        "with recursive r (n) as (select 1 union select n + 1 from r where n < MANY) select count(*) from r",
    ),
    ("many elements", "select count(*) from unnest(string_to_array(repeat('1,', MANY), ',')) x"),
    (
        "many elements compared",
        "select string_to_array(repeat('1,', MANY), ',') = string_to_array(repeat('1,', MANY), ',')",
    ),
    (
        "many elements sought",
        "select count(*) from generate_series(1, MANY) g where g = any (array(select generate_series(1, 100000)))",
    ),
    (
        "a new expression for each row",
        "select count(*) from generate_series(1, 20000) n where 'abab' ~ ('(a|b)*' || n)",
    ),
    (
        "new classes for each row",
        "select count(*) from generate_series(1, 20000) n where 'abab' ~ ('\\w{40}' || n)",
    ),
    (
        "new counts of classes for each row",
        "select count(*) from generate_series(1, 2000) n where 'abab' ~ ('^\\w{1,255}' || n)",
    ),
    ("counts of classes", "select sum(regexp_count(t, '[[:alpha:]]{1,255}')) from large"),
    ("a name of a relation", "select count(to_regclass(t)) from large"),
    ("a name of a type", "select count(to_regtype(t)) from large"),
    ("a name of a setting", "select count(current_setting(t, true)) from large"),
    ("many matches", "select count(*) from unnest(regexp_split_to_array(repeat('ab', MANY), 'a')) x"),
];

/// Bytes of each text in the table.
fn size() -> usize {
    match is_strict() {
        true if is_small() => 10_000_000,
        true => 100_000_000,
        false => 300_000,
    }
}

fn bombs() -> Vec<Bomb> {
    let size = size();
    let (longest, many) = if is_strict() { (1_073_000_000, 1_000_000) } else { (2_000_000, 10_000) };
    let filled = |text: &str| {
        let text = text.replace("SIZE", &size.to_string()).replace("LONGEST", &longest.to_string());
        text.replace("MANY", &many.to_string())
    };
    let sent = |text: &str| if text.starts_with("copy") { Sent::Copy } else { Sent::Simple };
    BOMBS.iter().map(|(name, text)| (*name, sent(text), filled(text))).collect()
}

#[test]
fn a_statement_over_large_values_is_cancelled_and_its_core_serves_others() {
    let server = Server::start(&["--cores", "1"]);
    let size = size();
    server.psql(&format!(
        "create table large (n int, t text); create table other (n int, t text);
         insert into large select g, repeat('x', {size}) || g from generate_series(1, 10) g;
         insert into other select n, t from large where n <= 3"
    ));
    let mut beside = server.connect();
    // One of them, to see what it does.
    let only = std::env::var("ALLCORE_BOMB").unwrap_or_default();
    let (step, selects) = pace();
    let chosen = bombs().into_iter().filter(|(name, ..)| name.contains(&only));
    judge(chosen.step_by(step).map(|bomb| explode(&server, &mut beside, bomb, selects)).collect());
    assert_eq!(server.psql("select count(*), sum(length(t)) from large"), format!("10|{}", 10 * size + 11));
}
