//! Statements whose first rows are cheap and whose further rows each evaluate a long list. No row
//! holds the core, and a core notices at once that rows have become expensive.
//!
//! Each list is prepared first, so that what is timed is its execution alone. All of them run
//! within `make test`.

use super::{explode_on, is_small, judge, pace};
use crate::common::Server;

/// Parts of each list: fewer where half the server's memory would not do to parse them.
fn parts() -> usize {
    if is_small() { 20_000 } else { 60_000 }
}

/// Pieces, numbered from 0 and separated.
fn list(separator: &str, piece: impl Fn(usize) -> String) -> String {
    (0..parts()).map(piece).collect::<Vec<_>>().join(separator)
}

/// Names, and expressions over a row `g` that are dear from the row 5,000 on.
fn bombs() -> Vec<(&'static str, String)> {
    let after_cheap = |dear: String| format!("case when g < 5000 then null else {dear} end");
    // A tree without any list: each of its operators has two arguments.
    let mut sum = "g".to_owned();
    while sum.len() < 5 * parts() {
        sum = format!("({sum} - {sum})");
    }
    vec![
        ("NOT IN", format!("g < 5000 or g not in ({})", list(",", |i| format!("-g - {i}")))),
        ("IN", format!("g < 5000 or g in ({})", list(",", |i| format!("-g - {i}")))),
        ("OR", format!("g < 5000 or {}", list(" or ", |i| format!("g = -{i} - 1")))),
        ("AND", after_cheap(list(" and ", |i| format!("g <> -{i} - 1")))),
        ("CASE", {
            let branches = list(" ", |i| format!("when g = -{i} - 1 then {i}"));
            format!("case when g < 5000 then 0 {branches} end")
        }),
        ("COALESCE", after_cheap(format!("coalesce({})", list(",", |_| "nullif(g, g)".to_owned())))),
        ("GREATEST", after_cheap(format!("greatest({})", list(",", |i| format!("g + {i}"))))),
        ("ROW", {
            let fields = (0..1600).map(|i| format!("g - {i}")).collect::<Vec<_>>().join(",");
            after_cheap(format!("row({fields}) = row({fields})"))
        }),
        ("a sum", after_cheap(sum)),
    ]
}

#[test]
fn a_long_list_is_cancelled_and_its_core_serves_others() {
    let server = Server::start(&["--cores", "1"]);
    let mut beside = server.connect();
    // One of them, to see what it does.
    let only = std::env::var("ALLCORE_BOMB").unwrap_or_default();
    let mut outcomes = Vec::new();
    for (name, list) in bombs().into_iter().filter(|(name, _)| name.contains(&only)) {
        let mut client = server.connect();
        let prepare = format!("prepare bomb as select count({list}) from generate_series(1, 1000000000) g");
        client.batch_execute(&prepare).unwrap();
        outcomes.push(explode_on(client, &mut beside, (name, "execute bomb"), pace().1));
    }
    judge(outcomes);
}
