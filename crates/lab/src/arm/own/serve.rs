//! The running executable's own `serve`, or that of the executable of the same name in another folder.

use std::path::Path;
use std::process::Command;

use super::Plan;
use crate::arm::Dialect;
use crate::arm::spec::Recipe;

pub(super) fn plan(recipe: &Recipe, folder: &Path, executable: &Path) -> Result<Plan, String> {
    let mut command = match recipe.value("bin") {
        None => Command::new(executable),
        Some(programs) => {
            let name = executable.file_name().unwrap_or(executable.as_os_str());
            let given = Path::new(programs).join(name);
            if !given.is_file() {
                return Err(format!("there is no {} in {programs}", name.display()));
            }
            Command::new(given)
        }
    };
    command.arg("serve").arg("--data").arg(folder.join("data"));
    command.arg("--socket-dir").arg(folder).args(["--listen", "none"]);
    for (name, value) in recipe.passed_on() {
        command.arg(format!("--{name}")).args(value);
    }
    let socket = folder.join(".s.PGSQL.5432");
    Ok(Plan { command, dialect: Dialect::Postgres, socket, user: "postgres", first: "postgres" })
}
