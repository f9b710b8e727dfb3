//! The running executable's own `serve`.

use std::path::Path;
use std::process::Command;

use super::Plan;
use crate::arm::Dialect;
use crate::arm::spec::Recipe;

pub(super) fn plan(recipe: &Recipe, folder: &Path, executable: &Path) -> Plan {
    let mut command = Command::new(executable);
    command.arg("serve").arg("--data").arg(folder.join("data"));
    command.arg("--socket-dir").arg(folder).args(["--listen", "none"]);
    for (name, value) in recipe.passed_on() {
        command.arg(format!("--{name}")).args(value);
    }
    let socket = folder.join(".s.PGSQL.5432");
    Plan { command, dialect: Dialect::Postgres, socket, user: "postgres", first: "postgres" }
}
