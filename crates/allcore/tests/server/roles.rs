//! Roles: the users that sessions log in as.

use crate::common::Server;
use postgres::{Client, Config, NoTls};

/// A session of a user of this name.
pub fn session_of(server: &Server, user: &str) -> Client {
    let mut config = Config::new();
    config.host("127.0.0.1").port(server.port).user(user).dbname("postgres");
    config.connect(NoTls).unwrap()
}
