//! An arm's URL: `postgres://user:password@host:port/database`, `postgres:///database?host=/socket/folder&port=5432`,
//! `mysql://user:password@host:port/database`, `mysql:///database?socket=/file`.
//!
//! What a PostgreSQL URL leaves open is taken from PGHOST, PGPORT, PGUSER, PGPASSWORD and PGDATABASE as libpq does; then
//! come a socket in the usual folders, this machine's TCP port, and the name of who runs the lab. TLS is not spoken.

use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;

use super::{Address, Dialect, Target};

/// Where distributions put PostgreSQL's socket.
const POSTGRES_FOLDERS: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// Where distributions put MySQL's socket.
const MYSQL_SOCKETS: [&str; 3] = ["/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock", "/tmp/mysql.sock"];

/// The target that a URL names, as arm `arm`.
pub fn parse(arm: &str, url: &str) -> Result<Target, String> {
    parse_with(arm, url, &|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// An environment.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

fn parse_with(arm: &str, url: &str, environment: Environment<'_>) -> Result<Target, String> {
    let parts =
        Parts::of(url).map_err(|error| format!("arm {arm}: {error}, in {}", without_password(url)))?;
    let target = match parts.scheme.as_str() {
        "postgres" | "postgresql" => postgres(parts, environment),
        "mysql" | "mariadb" => mysql(parts, environment),
        other => Err(format!("{other}:// is no server the lab speaks to; take postgres:// or mysql://")),
    };
    let mut target = target.map_err(|error| format!("arm {arm}: {error}"))?;
    arm.clone_into(&mut target.arm);
    Ok(target)
}

/// A URL's parts, decoded.
#[derive(Default)]
struct Parts {
    scheme: String,
    user: Option<String>,
    password: Option<String>,
    host: Option<String>,
    port: Option<String>,
    database: Option<String>,
    options: Vec<(String, String)>,
}

impl Parts {
    fn of(url: &str) -> Result<Self, String> {
        let (scheme, rest) = url.split_once("://").ok_or("a URL begins with postgres:// or mysql://")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (who, place) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) =
            who.split_once(':').map_or((who, None), |(user, password)| (user, Some(password)));
        // An IPv6 address has its colons in brackets.
        let (host, port) = match place.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((host, rest)) => (host, rest.strip_prefix(':')),
            None => place.split_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let mut options = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').ok_or_else(|| format!("{option} has no value"))?;
            options.push((decode(name)?, decode(value)?));
        }
        let filled = |part: &str| Some(part).filter(|part| !part.is_empty()).map(decode).transpose();
        Ok(Self {
            scheme: scheme.to_ascii_lowercase(),
            user: filled(user)?,
            password: password.map(decode).transpose()?,
            host: filled(host)?,
            port: port.map(decode).transpose()?,
            database: filled(database)?,
            options,
        })
    }
}

fn decode(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    decoded.map(std::borrow::Cow::into_owned).map_err(|_| format!("{text} is not UTF-8 once decoded"))
}

/// The URL as it may be shown.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.rsplit_once('@').and_then(|(who, rest)| Some((who.split_once(':')?.0, rest))) {
        Some((user, rest)) => format!("{scheme}://{user}:***@{rest}"),
        None => url.to_owned(),
    }
}

fn postgres(mut parts: Parts, environment: Environment<'_>) -> Result<Target, String> {
    for (name, value) in std::mem::take(&mut parts.options) {
        match name.as_str() {
            "host" => parts.host = Some(value),
            "port" => parts.port = Some(value),
            "user" => parts.user = Some(value),
            "password" => parts.password = Some(value),
            "dbname" => parts.database = Some(value),
            "sslmode" if matches!(value.as_str(), "disable" | "allow" | "prefer") => {}
            "sslmode" => return Err(format!("sslmode={value}: the lab speaks no TLS")),
            _ => {
                return Err(format!(
                    "unknown parameter {name}; there are host, port, user, password, dbname, sslmode"
                ));
            }
        }
    }
    let port = port(parts.port.or_else(|| environment("PGPORT")), 5432)?;
    let socket = |folder: &Path| folder.join(format!(".s.PGSQL.{port}"));
    let address = match parts.host.or_else(|| environment("PGHOST")) {
        Some(host) if host.starts_with('/') => Address::Unix(socket(Path::new(&host))),
        Some(host) => Address::Tcp(host, port),
        None => usual_socket(POSTGRES_FOLDERS.iter().map(|folder| socket(Path::new(folder))), port),
    };
    let user = parts
        .user
        .or_else(|| environment("PGUSER"))
        .or_else(|| own_name(environment))
        .ok_or("name a user")?;
    let database = parts.database.or_else(|| environment("PGDATABASE")).unwrap_or_else(|| user.clone());
    let password = parts.password.or_else(|| environment("PGPASSWORD"));
    Ok(target(Dialect::Postgres, address, user, password, database))
}

fn mysql(mut parts: Parts, environment: Environment<'_>) -> Result<Target, String> {
    let mut file = None;
    for (name, value) in std::mem::take(&mut parts.options) {
        match name.as_str() {
            "socket" => file = Some(PathBuf::from(value)),
            "user" => parts.user = Some(value),
            "password" => parts.password = Some(value),
            _ => return Err(format!("unknown parameter {name}; there are socket, user, password")),
        }
    }
    let port = port(parts.port, 3306)?;
    let address = match (file, parts.host) {
        (Some(file), _) => Address::Unix(file),
        (None, Some(host)) => Address::Tcp(host, port),
        (None, None) => usual_socket(MYSQL_SOCKETS.iter().map(PathBuf::from), port),
    };
    let user = parts.user.or_else(|| own_name(environment)).ok_or("name a user")?;
    let database = parts.database.ok_or("name a database: mysql://.../DATABASE")?;
    Ok(target(Dialect::Mysql, address, user, parts.password, database))
}

fn target(
    dialect: Dialect,
    address: Address,
    user: String,
    password: Option<String>,
    database: String,
) -> Target {
    Target { arm: String::new(), dialect, address, user, password, database, processes: Vec::new() }
}

fn port(given: Option<String>, usual: u16) -> Result<u16, String> {
    given.map_or(Ok(usual), |port| port.parse().map_err(|_| format!("{port} is no port")))
}

/// The first socket that is there, else this machine's port.
fn usual_socket(mut sockets: impl Iterator<Item = PathBuf>, port: u16) -> Address {
    sockets
        .find(|socket| socket.exists())
        .map_or_else(|| Address::Tcp("localhost".to_owned(), port), Address::Unix)
}

fn own_name(environment: Environment<'_>) -> Option<String> {
    environment("USER").or_else(|| environment("LOGNAME"))
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
    fn urls_say_where_and_who() {
        let full = parsed("postgres://u%40x:p%3aw@db.example:5433/bench").unwrap();
        assert_eq!((full.arm.as_str(), full.dialect), ("a", Dialect::Postgres));
        assert_eq!(full.address, Address::Tcp("db.example".to_owned(), 5433));
        assert_eq!((full.user.as_str(), full.password.as_deref()), ("u@x", Some("p:w")));
        assert_eq!(full.database, "bench");

        let socket = parsed("postgresql:///bench?host=/run/pg&port=6000").unwrap();
        assert_eq!(socket.address, Address::Unix("/run/pg/.s.PGSQL.6000".into()));
        assert_eq!((socket.user.as_str(), socket.password), ("me", None));
        // Without a host before the slash, with the port of the environment, and the database named as the user.
        let user = parsed("postgres://post@/?host=/run/pg").unwrap();
        assert_eq!(user.address, Address::Unix("/run/pg/.s.PGSQL.5499".into()));
        assert_eq!(user.database, "post");
        assert_eq!(parsed("postgres://[::1]:7/x").unwrap().address, Address::Tcp("::1".to_owned(), 7));

        let file = parsed("mysql://root@/sbtest?socket=/tmp/my%20sock").unwrap();
        assert_eq!((file.dialect, file.address), (Dialect::Mysql, Address::Unix("/tmp/my sock".into())));
        assert_eq!(parsed("mysql://root@h/sbtest").unwrap().address, Address::Tcp("h".to_owned(), 3306));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said_without_its_password() {
        let cases = [
            ("bench", "a URL begins with"),
            ("oracle://x/y", "oracle:// is no server"),
            ("postgres://x:99999/y", "99999 is no port"),
            ("postgres://x/y?sslmode=require", "no TLS"),
            ("postgres://x/y?hots=z", "unknown parameter hots"),
            ("mysql://x", "name a database"),
            ("mysql://u:secret@x/y?socket", "socket has no value"),
        ];
        for (url, expected) in cases {
            let error = parsed(url).unwrap_err();
            assert!(
                error.contains(expected) && error.starts_with("arm a: ") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
