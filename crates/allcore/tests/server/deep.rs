//! Statements whose operators call each other deeper than a stack allows. They end with an answer
//! or 54001, and never end the server.

use crate::common::Server;

/// Many pieces made from their numbers, joined.
fn repeat(count: usize, between: &str, piece: impl Fn(usize) -> String) -> String {
    (0..count).map(piece).collect::<Vec<_>>().join(between)
}

/// Statements of a shape that grows with `count`.
fn shapes(count: usize) -> Vec<String> {
    let values = repeat(count, ", ", |at| format!("((select {at}))"));
    let each = |piece: &str| repeat(count, ", ", |_| piece.to_owned());
    let exists = "exists (select 1 from one where x = 1)";
    let nested = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(count.min(90)), close.repeat(count.min(90)))
    };
    vec![
        format!("insert into two values {values}"),
        format!("values {values}"),
        format!("select {}", each("(select x + 1 from one limit 1)")),
        format!("select coalesce({})", each("(select null::int from one)")),
        format!("select array[{}]", each("(select 1)")),
        format!("select 1 from one where x in ({})", each("(select x from one)")),
        format!("select 1 from one where {}", repeat(count, " or ", |_| format!("not {exists}"))),
        format!("select 1 from one where {}", repeat(count, " and ", |_| exists.to_owned())),
        format!("select 1 from one where {}", nested("exists (select 1 from one where ", "x = 1", ")")),
        repeat(count, " union all ", |_| "select 1".to_owned()),
        repeat(count, " union ", |_| "select 1".to_owned()),
        format!("select 1 from {}", repeat(count.min(150), ", ", |at| format!("(select 1) a{at}"))),
        format!(
            "select 1 from one {}",
            repeat(count.min(150), " ", |at| format!("left join one a{at} on true"))
        ),
        format!(
            "select 1 from one a0 {}",
            repeat(count.min(90), " ", |at| {
                format!("cross join lateral (select a{at}.x from one limit 1) a{}", at + 1)
            })
        ),
    ]
}

#[test]
fn a_union_of_a_thousand_branches_gives_all_its_rows() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.batch_execute("create table two (x numeric)").unwrap();
    for (between, rows, sum) in [(" union all ", 1000, 499_500), (" union ", 100, 4950)] {
        let many = repeat(1000, between, |at| match between.contains("all") {
            true => format!("select {at}"),
            // Numbers of two types, each several times.
            false => format!("select {}{}", at % 100, if at % 2 == 0 { "" } else { ".0" }),
        });
        let found = client.query_one(&format!("select count(*), sum(x)::bigint from ({many}) s (x)"), &[]);
        let found = found.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((found.get::<_, i64>(0), found.get::<_, i64>(1)), (rows, sum));
        assert_eq!(client.execute(&format!("insert into two {many}"), &[]).unwrap(), rows as u64);
        let read = format!("with w (x) as ({many}) select count(*) from two where x in (select x from w)");
        assert_eq!(client.query_one(&read, &[]).unwrap().get::<_, i64>(0), rows);
        client.batch_execute("truncate two").unwrap();
    }
}

#[test]
fn deep_statements_end_with_an_answer_or_an_error() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.batch_execute("create table one (x int primary key); insert into one values (1)").unwrap();
    client.batch_execute("create table two (x int)").unwrap();
    for statement in shapes(70) {
        client.simple_query(&statement).unwrap_or_else(|error| panic!("{error}: {statement:.100}"));
    }
    for count in [250, 1600] {
        for statement in shapes(count) {
            if let Err(error) = client.simple_query(&statement) {
                let code = error.code().map(|code| code.code().to_owned());
                assert_eq!(code.as_deref(), Some("54001"), "{error}: {statement:.100}\n{}", server.log());
            }
        }
    }
    assert_eq!(client.query("select 1", &[]).expect("the server goes on").len(), 1);
}

#[test]
fn the_sinks_of_ten_thousand_subqueries_end_with_an_answer_or_an_error() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.batch_execute("create table one (x int primary key); insert into one values (1)").unwrap();
    let many = |piece: &str| repeat(10_000, " and ", |_| piece.to_owned());
    for statement in [
        format!("select count(*) from one having {}", many("(select true)")),
        format!("select x from one where {}", many("x not in (select 2 from one)")),
        format!("select x from one order by {}", repeat(10_000, ", ", |at| format!("(select x + {at})"))),
    ] {
        if let Err(error) = client.simple_query(&statement) {
            let code = error.code().map(|code| code.code().to_owned());
            assert_eq!(code.as_deref(), Some("54001"), "{error}: {statement:.100}\n{}", server.log());
        }
    }
    assert_eq!(client.query("select 1", &[]).expect("the server goes on").len(), 1);
}
