//! Allcore inside a program: opens a folder, runs the statements of the command line, prints their
//! rows.
//!
//! `cargo run -p sql --example embedded -- data "CREATE TABLE t (a int)" "SELECT * FROM t"`

use sql::database::{Database, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let database = Database::open(folder.as_ref(), Options { pin: false, ..Options::default() })?;
    let mut session = database.session("postgres", 0)?;
    for statement in arguments {
        match session.run(&statement) {
            Ok(answer) => {
                for row in &answer.texts {
                    let shown: Vec<&str> =
                        row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
                    println!("{}", shown.join("\t"));
                }
                println!("{}", answer.tags.join(", "));
            }
            Err(error) => println!("{}: {error}", error.code),
        }
    }
    drop(session);
    database.shutdown()?;
    Ok(())
}
