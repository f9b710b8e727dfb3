//! MariaDB: its installation script, then the server with its settings on the command line.

use std::path::Path;

use super::programs::Programs;
use super::{CONNECTIONS, Plan};
use crate::arm::Dialect;
use crate::arm::guard::Guard;
use crate::arm::spec::Recipe;

/// Folders where distributions install MariaDB.
const PLACES: [&str; 3] = ["/usr/sbin", "/usr/libexec", "/usr/local/mysql/bin"];

/// Limit of prepared statements over all sessions: MariaDB's maximum. Its default of 16,382 is
/// fewer than 1,000 clients of oltp_read_write prepare.
const STATEMENTS: &str = "1048576";

pub(super) fn plan(recipe: &Recipe, folder: &Path, guard: &mut Guard) -> Result<Plan, String> {
    let programs = Programs::find(recipe.value("bin"), "mariadbd", "mysql", &PLACES)?;
    programs.give(folder)?;
    let data = format!("--datadir={}", folder.join("data").display());
    let mut install = programs.command("mariadb-install-db")?;
    install.args(["--no-defaults", &data, "--auth-root-authentication-method=normal", "--skip-test-db"]);
    programs.run(&mut install, guard)?;
    let socket = folder.join("socket");
    let mut command = programs.command("mariadbd")?;
    command.args(["--no-defaults", &data, "--skip-networking"]);
    command.arg(format!("--socket={}", socket.display()));
    command.arg(format!("--pid-file={}", folder.join("pid").display()));
    command.arg(format!("--max-connections={CONNECTIONS}"));
    command.arg(format!("--max-prepared-stmt-count={STATEMENTS}"));
    for (name, value) in recipe.passed_on() {
        match value {
            Some(value) => command.arg(format!("--{name}={value}")),
            None => command.arg(format!("--{name}")),
        };
    }
    Ok(Plan { command, dialect: Dialect::Mysql, socket, user: "root", first: "mysql" })
}
