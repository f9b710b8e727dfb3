//! What the tests of several modules need: servers to test against, named by the environment.

use crate::arm::{Dialect, Target};

/// The server of this dialect that the environment names (LAB_TEST_POSTGRES or LAB_TEST_MYSQL, an arm's URL); `None`,
/// with a word on why the test is skipped, where it names none.
pub fn target(dialect: Dialect) -> Option<Target> {
    let variable = match dialect {
        Dialect::Postgres => "LAB_TEST_POSTGRES",
        Dialect::Mysql => "LAB_TEST_MYSQL",
    };
    let Ok(url) = std::env::var(variable) else {
        eprintln!("skipped: {variable} names no server (an arm's URL)");
        return None;
    };
    Some(crate::arm::url::parse("test", &url).unwrap_or_else(|error| panic!("{variable}: {error}")))
}
