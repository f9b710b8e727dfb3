//! An arm's URL: `postgres://user:password@host:port/database`,
//! `postgres:///database?host=/socket/folder&port=5432`,
//! `mysql://user:password@host:port/database`, `mysql:///database?socket=/file`.
//!
//! PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE fill in the missing parts of a PostgreSQL URL,
//! as in libpq. After them come a socket in the usual folders, this machine's TCP port, and the
//! name of the user who runs the lab. The lab does not speak TLS.
//!
//! What must hold: the lab never shows a password, neither in a report's command nor in an error.
//! Unreadable text may be a password with a character that must be percent-encoded. So errors name
//! the part that is wrong, and quote none of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use percent_encoding::percent_decode_str;

use super::{Address, Dialect, Target};

/// Folders where distributions put PostgreSQL's socket.
const POSTGRES_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Paths where distributions put MySQL's socket.
const MYSQL_SOCKETS: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];

pub fn parse(arm: &str, url: &str) -> Result<Target, String> {
    parse_with(arm, url, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

fn parse_with(arm: &str, url: &str, environment: Environment<'_>) -> Result<Target, String> {
    let target = Parts::of(url).and_then(|parts| match parts.scheme.as_str() {
        "postgres" | "postgresql" => postgres(parts, environment),
        "mysql" | "mariadb" => mysql(parts, environment),
        other => Err(format!("{other}:// is no server the lab speaks to; take postgres:// or mysql://")),
    });
    let mut target = target.map_err(|error| format!("arm {arm}: {error}, in {}", shown(url)))?;
    arm.clone_into(&mut target.arm);
    Ok(target)
}

#[derive(Default)]
struct Parts {
    scheme: String,
    user: Option<String>,
    password: Option<String>,
    host: Option<String>,
    port: Option<String>,
    database: Option<String>,
    socket: Option<String>,
}

/// Advice about a character that ends a part of a URL.
const ENCODE: &str = "in a name or password, @ is written %40, / %2F, ? %3F, & %26";

impl Parts {
    fn of(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or("a URL begins with postgres:// or mysql://")?;
        // As in libpq, the user and password end at an @ that comes before any slash, and may hold
        // a question mark.
        let before = &rest[..rest.find('/').unwrap_or(rest.len())];
        let (who, rest) = before.rfind('@').map_or(("", rest), |at| (&rest[..at], &rest[at + 1..]));
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
        if database.contains('@') {
            return Err(format!("there is an @ after the first slash ({ENCODE})"));
        }
        let (user, password) =
            who.split_once(':').map_or((who, None), |(user, password)| (user, Some(password)));
        // An IPv6 address has its colons in brackets.
        let (host, port) = match place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((host, "")) => (host, None),
            Some((host, rest)) => {
                (host, Some(rest.strip_prefix(':').ok_or("after an address in brackets comes :PORT")?))
            }
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let filled = |part: &str| Some(part).filter(|part| !part.is_empty()).map(decode).transpose();
        let mut parts = Self {
            scheme: scheme.to_ascii_lowercase(),
            user: filled(user)?,
            password: password.map(decode).transpose()?,
            host: filled(host)?,
            port: port.map(decode).transpose()?,
            database: filled(database)?,
            socket: None,
        };
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) =
                option.split_once('=').ok_or_else(|| format!("a parameter has no value ({ENCODE})"))?;
            let value = Some(decode(value)?);
            match decode(name)?.as_str() {
                "host" => parts.host = value,
                "port" => parts.port = value,
                "user" => parts.user = value,
                "password" => parts.password = value,
                "dbname" => parts.database = value,
                "socket" => parts.socket = value,
                "sslmode" if matches!(value.as_deref(), Some("disable" | "allow" | "prefer")) => {}
                "sslmode" => return Err("this sslmode asks for TLS, which the lab doesn't speak".into()),
                _ => {
                    let known = "host, port, user, password, dbname, socket, sslmode";
                    return Err(format!("there is an unknown parameter; known are {known} ({ENCODE})"));
                }
            }
        }
        Ok(parts)
    }
}

fn decode(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| "a part is not UTF-8 once decoded".into())
}

/// Removes the password from a text with a URL in it, such as a word of a command line. In doubt it
/// removes too much rather than too little.
pub fn shown(text: &str) -> String {
    let (before, rest) = text.find("://").map_or(("", text), |at| text.split_at(at + 3));
    let rest = match rest.rsplit_once('@') {
        Some((who, rest)) => match who.split_once(':') {
            Some((user, _)) => format!("{user}:***@{rest}"),
            None => format!("{who}@{rest}"),
        },
        None => {
            let (place, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
            match place.split_once(':') {
                // Text that is no port may be a password without its host.
                Some((host, port))
                    if !place.starts_with('[') && port.contains(|one: char| !one.is_ascii_digit()) =>
                {
                    format!("{host}:***{path}")
                }
                _ => rest.to_owned(),
            }
        }
    };
    // Text after an & may belong to a password: a query that has one is dropped whole.
    match rest.split_once('?') {
        Some((place, query)) if !decode(query).is_ok_and(|query| !query.contains("password")) => {
            format!("{before}{place}?***")
        }
        _ => format!("{before}{rest}"),
    }
}

fn postgres(parts: Parts, environment: Environment<'_>) -> Result<Target, String> {
    let port = port(parts.port.or_else(|| environment("PGPORT")), 5432)?;
    let socket = |folder: &str| Path::new(folder).join(format!(".s.PGSQL.{port}"));
    let address = match parts.host.or_else(|| environment("PGHOST")) {
        Some(host) if host.starts_with('/') => Address::Unix(socket(&host)),
        Some(host) => Address::Tcp(host, port),
        None => usual_socket(POSTGRES_FOLDERS.map(socket), port),
    };
    let user = parts.user.or_else(|| environment("PGUSER")).or_else(|| own_name(environment));
    let user = user.ok_or("it names no user")?;
    let database = parts.database.or_else(|| environment("PGDATABASE")).unwrap_or_else(|| user.clone());
    let password = parts.password.or_else(|| environment("PGPASSWORD"));
    let (arm, dialect, processes) = (String::new(), Dialect::Postgres, Vec::new());
    Ok(Target { arm, dialect, address, user, password, database, processes })
}

fn mysql(parts: Parts, environment: Environment<'_>) -> Result<Target, String> {
    let port = port(parts.port, 3306)?;
    let address = match (parts.socket, parts.host) {
        (Some(file), _) => Address::Unix(file.into()),
        (None, Some(host)) => Address::Tcp(host, port),
        (None, None) => usual_socket(MYSQL_SOCKETS.map(PathBuf::from), port),
    };
    let user = parts.user.or_else(|| own_name(environment)).ok_or("it names no user")?;
    let database = parts.database.ok_or("it names no database: mysql://.../DATABASE")?;
    let (arm, dialect, processes) = (String::new(), Dialect::Mysql, Vec::new());
    Ok(Target { arm, dialect, address, user, password: parts.password, database, processes })
}

fn port(given: Option<String>, usual: u16) -> Result<u16, String> {
    let none = || format!("the port is no number ({ENCODE})");
    given.map_or(Ok(usual), |port| port.parse().map_err(|_| none()))
}

/// The first socket that exists, else this machine's port.
fn usual_socket<const N: usize>(sockets: [PathBuf; N], port: u16) -> Address {
    let found = sockets.into_iter().find(|socket| socket.exists());
    found.map_or_else(|| Address::Tcp("localhost".to_owned(), port), Address::Unix)
}

fn own_name(environment: Environment<'_>) -> Option<String> {
    environment("USER").or_else(|| environment("LOGNAME")).or_else(|| {
        // As libpq does: services and containers often lack these variables.
        let output = Command::new("id").arg("-un").output().ok()?;
        let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        Some(name).filter(|name| !name.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(url: &str) -> Result<Target, String> {
        let environment = |name: &str| match name {
            "USER" => Some("me".to_owned()),
            "PGPORT" => Some("5499".to_owned()),
            _ => None,
        };
        parse_with("a", url, &environment)
    }

    #[test]
    fn urls_give_the_address_and_the_user() {
        let full = parsed("postgres://u%40x:p%3aw@db.example:5433/bench").unwrap();
        assert_eq!((full.arm.as_str(), full.dialect), ("a", Dialect::Postgres));
        assert_eq!(full.address, Address::Tcp("db.example".to_owned(), 5433));
        assert_eq!((full.user.as_str(), full.password.as_deref()), ("u@x", Some("p:w")));
        assert_eq!(full.database, "bench");

        let socket = parsed("postgresql:///bench?host=/run/pg&port=6000").unwrap();
        assert_eq!(socket.address, Address::Unix("/run/pg/.s.PGSQL.6000".into()));
        assert_eq!((socket.user.as_str(), socket.password), ("me", None));
        // The URL has no host before the slash. The port comes from the environment, and the
        // database has the user's name.
        let user = parsed("postgres://post@/?host=/run/pg").unwrap();
        assert_eq!(user.address, Address::Unix("/run/pg/.s.PGSQL.5499".into()));
        assert_eq!(user.database, "post");
        assert_eq!(parsed("postgres://[::1]:7/x").unwrap().address, Address::Tcp("::1".to_owned(), 7));

        let file = parsed("mysql://root@/sbtest?socket=/tmp/my%20sock").unwrap();
        assert_eq!((file.dialect, file.address), (Dialect::Mysql, Address::Unix("/tmp/my sock".into())));
        assert_eq!(parsed("mysql://root@h/sbtest").unwrap().address, Address::Tcp("h".to_owned(), 3306));
    }

    #[test]
    fn a_password_may_hold_what_libpq_lets_it_hold() {
        let odd = parsed("postgres://u:se?cr@et@h/db").unwrap();
        assert_eq!(odd.password.as_deref(), Some("se?cr@et"));
        assert_eq!((odd.address, odd.database.as_str()), (Address::Tcp("h".to_owned(), 5499), "db"));
        let parameter = parsed("postgres://h/db?user=me@there&password=a%26b").unwrap();
        assert_eq!((parameter.user.as_str(), parameter.password.as_deref()), ("me@there", Some("a&b")));
    }

    #[test]
    fn the_labs_user_is_known_without_an_environment() {
        let nobody = parse_with("a", "postgres://h/db", &|_| None).unwrap();
        let output = Command::new("id").arg("-un").output().unwrap();
        assert_eq!(nobody.user, String::from_utf8(output.stdout).unwrap().trim());
    }

    #[test]
    fn an_error_about_a_url_hides_its_password() {
        let cases = [
            ("bench", "a URL begins with"),
            ("u:secret@x/y", "a URL begins with"),
            ("oracle://x/y", "oracle:// is no server"),
            ("postgres://x:99999/y", "the port is no number"),
            ("postgres://u:12/secret@x:7/y", "an @ after the first slash"),
            ("postgres://u:secret/y", "the port is no number"),
            ("postgres://u:sec/ret@x", "an @ after the first slash"),
            ("postgres://u:secret%ff@x/y", "not UTF-8"),
            ("postgres://[::1]x:5/y", "in brackets comes :PORT"),
            ("postgres://x/y?sslmode=require", "doesn't speak, in postgres://x/y?sslmode=require"),
            ("postgres://x/y?hots=z", "unknown parameter"),
            ("postgres://x/y?password=secret&x", "a parameter has no value"),
            ("postgres://x/y?password=sec&ret=x", "unknown parameter"),
            ("postgres://x/y?pass%77ord=sec&ret=x&port=1", "unknown parameter"),
            ("mysql://x", "it names no database"),
            ("mysql://u:secret@x/y?socket", "a parameter has no value"),
            ("mysql://x/y?password=secret&hots=z", "unknown parameter"),
        ];
        for (url, expected) in cases {
            let error = parsed(url).unwrap_err();
            assert!(error.contains(expected) && error.starts_with("arm a: "), "{error}");
            assert!(!["secret", "sec", "ret="].iter().any(|part| error.contains(part)), "{error}");
        }
    }

    #[test]
    fn words_of_a_command_are_shown_without_passwords() {
        for (word, expected) in [
            ("--arm=a=postgres://u:p@h:5/d", "--arm=a=postgres://u:***@h:5/d"),
            ("a=postgres://u:p?w@x@h/d?host=/s", "a=postgres://u:***@h/d?host=/s"),
            ("a=postgres://u:p/w@h/d", "a=postgres://u:***@h/d"),
            ("a=postgres:///d?host=/s&password=x&y&z=1&port=6", "a=postgres:///d?***"),
            ("a=mysql://u@h/d?pass%77ord=x", "a=mysql://u@h/d?***"),
            ("a=postgres:///d?host=/s&port=5433", "a=postgres:///d?host=/s&port=5433"),
            ("a=postgres://h:5/d", "a=postgres://h:5/d"),
            ("a=postgres://[::1]:5/d", "a=postgres://[::1]:5/d"),
            ("a=postgres://u:p/d", "a=postgres://u:***/d"),
        ] {
            assert_eq!(shown(word), expected);
        }
    }
}
