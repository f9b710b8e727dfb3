//! PostgreSQL: initdb, then the server with its settings on the command line.

use std::path::Path;

use super::programs::Programs;
use super::{CONNECTIONS, Plan};
use crate::arm::Dialect;
use crate::arm::guard::Guard;
use crate::arm::spec::Recipe;

/// Folders where distributions install PostgreSQL; within each the newest version comes first.
const PLACES: [&str; 3] = ["/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin"];

pub(super) fn plan(recipe: &Recipe, folder: &Path, guard: &mut Guard) -> Result<Plan, String> {
    let programs = Programs::find(recipe.value("bin"), "postgres", "postgres", &PLACES)?;
    programs.give(folder)?;
    let data = folder.join("data");
    let mut initdb = programs.command("initdb")?;
    initdb.arg("-D").arg(&data).args([
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
    ]);
    programs.run(&mut initdb, guard)?;
    let mut command = programs.command("postgres")?;
    command.arg("-D").arg(&data);
    let mut set = |name: &str, value: &str| {
        command.arg("-c").arg(format!("{name}={value}"));
    };
    set("listen_addresses", "");
    set("unix_socket_directories", &folder.display().to_string());
    set("port", "5432");
    set("max_connections", CONNECTIONS);
    for (name, value) in recipe.passed_on() {
        set(name, value.unwrap_or_default());
    }
    let socket = folder.join(".s.PGSQL.5432");
    Ok(Plan { command, dialect: Dialect::Postgres, socket, user: "postgres", first: "postgres" })
}
