//! COPY's data as clients send it: in pieces that end anywhere.

use crate::common::Server;
use postgres::{Client, Error, error::SqlState};
use std::io::Write;

/// Copies into t, so many bytes a message.
fn copy(client: &mut Client, format: &str, data: &str, piece: usize) -> Result<u64, Error> {
    let mut writer = client.copy_in(&format!("copy t from stdin (format {format})"))?;
    for part in data.as_bytes().chunks(piece) {
        // A server that has refused the data already says so at the end.
        let _ = writer.write_all(part).and_then(|()| writer.flush());
    }
    writer.finish()
}

/// Lines end as the first one did, wherever the client cuts its data; such bytes elsewhere are
/// refused unless they are quoted. PostgreSQL gave the same answers.
#[test]
fn lines_end_as_the_first_one_did() {
    let server = Server::start(&[]);
    let mut client = server.connect();
    client.batch_execute("create table t (a text, b text)").unwrap();
    let (literal_return, literal_feed) = ("literal carriage return", "literal newline");
    let (bare_return, bare_feed) = ("unquoted carriage return", "unquoted newline");
    for (format, data, expected) in [
        ("text", "a\t1\nb\t2\n", "a|1/b|2"),
        ("text", "a\t1\r\nb\t2\r\n", "a|1/b|2"),
        ("text", "a\t1\r\nb\t2", "a|1/b|2"),
        ("text", "a\t1\rb\t2\r", "a|1/b|2"),
        ("text", "a\t1\rb\t2", "a|1/b|2"),
        ("text", "a\t1\r", "a|1"),
        ("text", "a\\\r\t1\nb\\\n\t2\n", "a<r>|1/b<n>|2"),
        ("text", "a\t1\\\r\nb\t2\n", "a|1<r>/b|2"),
        ("text", "a\t1\r\n\\.\r\n", "a|1"),
        ("text", "a\t1\r\\.\r", "a|1"),
        ("text", "a\t1\nb\r\t2\n", literal_return),
        ("text", "a\t1\nb\t2\r\n", literal_return),
        ("text", "a\t1\nb\t2\r", literal_return),
        ("text", "a\t1\r\nb\r\t2\r\n", literal_return),
        ("text", "a\t1\r\nb\t2\r", literal_return),
        ("text", "a\t1\r\nb\t2\n", literal_feed),
        ("text", "a\t1\r\nb\t2\\\r\n", literal_feed),
        ("text", "a\t1\rb\t2\n", literal_feed),
        ("csv", "a,1\r\nb,2\r\n", "a|1/b|2"),
        ("csv", "a,1\rb,2\r", "a|1/b|2"),
        ("csv", "\"a\r\nx\",1\nb,2\n", "a<r><n>x|1/b|2"),
        ("csv", "\"a\rx\",1\r\n\"b\nx\",2\r\n", "a<r>x|1/b<n>x|2"),
        ("csv", "a,1\\\r\nb,2\r\n", "a|1\\/b|2"),
        ("csv", "a,1\nb\rx,2\n", bare_return),
        ("csv", "a,1\r\nb\rx,2\r\n", bare_return),
        ("csv", "a,1\r\nb,2\n", bare_feed),
        ("csv", "a,1\rb,2\n", bare_feed),
    ] {
        for piece in [1, 3, data.len()] {
            client.batch_execute("truncate t").unwrap();
            let said = match copy(&mut client, format, data, piece) {
                Ok(_) => {
                    let shown = "replace(replace(a || '|' || b, chr(13), '<r>'), chr(10), '<n>')";
                    let query = format!("select string_agg({shown}, '/') from t");
                    client.query_one(&query, &[]).unwrap().get(0)
                }
                Err(error) => {
                    let error = error.as_db_error().expect("the server's answer");
                    assert_eq!(error.code(), &SqlState::BAD_COPY_FILE_FORMAT, "{format} {data:?}: {error}");
                    error.message().replace(" found in data", "")
                }
            };
            assert_eq!(said, expected, "{format} {data:?} in pieces of {piece}");
        }
    }
}
