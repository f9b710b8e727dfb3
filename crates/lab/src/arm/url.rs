//! An arm's URL: `postgres://user:password@host:port/database`,
//! `postgres:///database?host=/socket/folder&port=5432`,
//! `mysql://user:password@host:port/database`, `mysql:///database?socket=/file`.
//!
//! Without a host it is this machine, without a user the one who runs the lab, and PostgreSQL's
//! database has the user's name, as in libpq. The lab does not speak TLS.
//!
//! What must hold: the lab never shows a password, neither in a report's command nor in an error.
//! Unreadable text may be a password with a character that must be percent-encoded. So errors name
//! the part that is wrong, and quote none of it.

use std::path::Path;

use percent_encoding::percent_decode_str;
use url::{Host, Url};

use super::{Address, Dialect, Target};

/// Advice about a character that ends a part of a URL.
const ENCODE: &str = "in a name or password, @ is written %40, / %2F, ? %3F, # %23";

pub fn parse(arm: &str, text: &str) -> Result<Target, String> {
    let fail = |why: String| format!("arm {arm}: {why}");
    // The crate wants a host behind a user, where libpq has this machine's.
    let url = Url::parse(&text.replacen("@/", "@localhost/", 1));
    let url = url.map_err(|error| fail(format!("its URL is wrong: {error} ({ENCODE})")))?;
    if url.path().contains('@') || url.fragment().is_some() {
        return Err(fail(format!("its URL has an @ after the first slash, or a # ({ENCODE})")));
    }
    let dialect = match url.scheme() {
        "postgres" | "postgresql" => Dialect::Postgres,
        "mysql" | "mariadb" => Dialect::Mysql,
        other => {
            return Err(fail(format!(
                "{other}:// is no server the lab speaks to; take postgres:// or mysql://"
            )));
        }
    };
    let address = address(&url, dialect).map_err(fail)?;
    let part = |part: &str| match percent_decode_str(part).decode_utf8() {
        Ok(part) => Ok(Some(part.into_owned()).filter(|part| !part.is_empty())),
        Err(_) => Err(fail("a part of its URL is not UTF-8 once decoded".into())),
    };
    let user = part(url.username())?.or_else(|| std::env::var("USER").ok());
    let user = user.ok_or_else(|| fail("its URL names no user".into()))?;
    let password = url.password().map(part).transpose()?.flatten();
    let database = match part(url.path().trim_start_matches('/'))? {
        Some(database) => database,
        None if dialect == Dialect::Postgres => user.clone(),
        None => return Err(fail("its URL names no database: mysql://.../DATABASE".into())),
    };
    Ok(Target { arm: arm.to_owned(), dialect, address, user, password, database, processes: Vec::new() })
}

/// Where the server listens: a socket that the URL's parameters name, or its host.
fn address(url: &Url, dialect: Dialect) -> Result<Address, String> {
    let (mut port, mut folder) = (url.port(), None);
    for (name, value) in url.query_pairs() {
        match (dialect, &*name) {
            (Dialect::Postgres, "host") if value.starts_with('/') => folder = Some(value),
            (Dialect::Postgres, "port") => port = Some(value.parse().map_err(|_| "the port is no number")?),
            (Dialect::Mysql, "socket") => return Ok(Address::Unix(value.into_owned().into())),
            _ => {
                let known = match dialect {
                    Dialect::Postgres => "host=/FOLDER and port=NUMBER",
                    Dialect::Mysql => "socket=/FILE",
                };
                return Err(format!(
                    "its URL has a parameter that the lab does not know; it knows {known} ({ENCODE})"
                ));
            }
        }
    }
    let usual = match dialect {
        Dialect::Postgres => 5432,
        Dialect::Mysql => 3306,
    };
    let port = port.unwrap_or(usual);
    Ok(match (folder, url.host()) {
        (Some(folder), _) => Address::Unix(Path::new(&*folder).join(format!(".s.PGSQL.{port}"))),
        (None, Some(Host::Ipv6(host))) => Address::Tcp(host.to_string(), port),
        (None, Some(host)) => Address::Tcp(host.to_string(), port),
        (None, None) => Address::Tcp("localhost".to_owned(), port),
    })
}

/// Removes the password from a text with a URL in it, such as a word of a command line. In doubt it
/// removes too much rather than too little.
pub fn shown(text: &str) -> String {
    let Some((before, rest)) = text.split_once("://") else { return text.to_owned() };
    let Some((who, place)) = rest.rsplit_once('@') else { return text.to_owned() };
    let user = who.split_once(':').map_or(who.to_owned(), |(user, _)| format!("{user}:***"));
    format!("{before}://{user}@{place}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::golden_cases;

    #[test]
    fn urls_give_the_address_and_the_user() {
        let urls = [
            "postgres://u%40x:p%3aw@db.example:5433/bench",
            "postgresql://u@/bench?host=/run/pg&port=6000",
            "postgres://post@/?host=/run/pg",
            "postgres://u@[::1]:7/x",
            "postgres://u:se@cr+et@h",
            "mysql://root@/sbtest?socket=/tmp/my%20sock",
            "mariadb://root@h/sbtest",
        ];
        golden_cases("url_targets", urls.map(|url| (url, vec![format!("{:?}", parse("a", url).unwrap())])));
        let own = parse("a", "mysql:///d").map(|target| (target.user, target.address));
        let expected = std::env::var("USER").map(|user| (user, Address::Tcp("localhost".to_owned(), 3306)));
        assert_eq!(own, expected.map_err(|_| "arm a: its URL names no user".to_owned()));
    }

    #[test]
    fn an_error_about_a_url_hides_its_password() {
        for (url, expected) in [
            ("bench", "relative URL without a base"),
            ("oracle://x/y", "oracle:// is no server"),
            ("postgres://x:99999/y", "invalid port number"),
            ("postgres://u:12/secret@x:7/y", "an @ after the first slash"),
            ("postgres://u:12#secret@x:7/y", "an @ after the first slash, or a #"),
            ("postgres://u:secret/y", "invalid port number"),
            ("postgres://u:secret%ff@x/y", "not UTF-8"),
            ("postgres://u@x/y?sslmode=require", "a parameter that the lab does not know"),
            ("postgres://u@x/y?password=sec&ret=x", "a parameter that the lab does not know"),
            ("postgres://u@x/y?port=secret", "the port is no number"),
            ("mysql://u@x", "names no database"),
            ("mysql://u@x/y?host=/secret", "it knows socket=/FILE"),
        ] {
            let error = parse("a", url).unwrap_err();
            assert!(error.contains(expected) && error.starts_with("arm a: "), "{error}");
            assert!(!["secret", "sec", "ret="].iter().any(|part| error.contains(part)), "{error}");
        }
    }
}
