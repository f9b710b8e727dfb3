//! The running executable's own `serve`, or that of the executable of the same name in another
//! folder.

use std::path::Path;
use std::process::Command;

use super::Plan;
use super::programs::program_in;
use crate::arm::Dialect;
use crate::arm::spec::Recipe;

pub(super) fn plan(recipe: &Recipe, folder: &Path, executable: &Path) -> Result<Plan, String> {
    let name = executable.file_name().unwrap_or(executable.as_os_str());
    let given = recipe.value("bin").map(|folder| program_in(folder, name)).transpose()?;
    let mut command = Command::new(given.as_deref().unwrap_or(executable));
    command.arg("serve").arg("--data").arg(folder.join("data"));
    command.arg("--socket-dir").arg(folder).args(["--listen", "none"]);
    for (name, value) in recipe.passed_on() {
        command.arg(format!("--{name}")).args(value);
    }
    let socket = folder.join(".s.PGSQL.5432");
    Ok(Plan { command, dialect: Dialect::Postgres, socket, user: "postgres", first: "postgres" })
}
