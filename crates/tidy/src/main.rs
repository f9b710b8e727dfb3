//! The command: prints the graph of modules and the findings, checks the rules, shrinks the lists.

#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;
use tidy::{RULES, Workspace, circles, list};

/// Checks the sources of the workspace.
#[derive(Parser)]
enum Command {
    /// Print a crate's graph of modules and its circles, or the circles of all crates.
    Circles {
        /// The crate.
        name: Option<String>,
    },
    /// Print every finding of a rule, those that its list tolerates included.
    Findings {
        /// The rule; its list is `crates/tidy/lists/RULE.txt`.
        rule: String,
        /// Only findings under this path or module.
        #[arg(default_value = "")]
        within: String,
    },
    /// Check every rule, as `cargo test -p tidy` does.
    Check,
    /// Write the lists of tolerated findings anew where they shrank.
    Shrink {
        /// Accept lists that grow, as when a rule becomes stricter; the commit says why.
        #[arg(long)]
        grow: bool,
    },
}

fn main() -> ExitCode {
    let command = Command::parse();
    let workspace = Workspace::read();
    let mut failed = false;
    match command {
        Command::Circles { name } => print!("{}", circles::describe(&workspace, name.as_deref())),
        Command::Findings { rule, within } => {
            let Some(rule) = RULES.iter().find(|known| known.name == rule) else {
                let names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
                eprintln!("there is no rule {rule}; the rules are {}", names.join(", "));
                return ExitCode::FAILURE;
            };
            for finding in (rule.find)(&workspace).iter().filter(|finding| finding.key.starts_with(&within)) {
                println!("{}", finding.message);
            }
        }
        Command::Check => {
            for error in RULES.iter().filter_map(|rule| list::check(&workspace, rule).err()) {
                eprint!("{error}");
                failed = true;
            }
        }
        Command::Shrink { grow } => {
            for rule in RULES {
                match list::shrink(&workspace, rule, grow) {
                    Ok(said) => println!("{said}"),
                    Err(error) => {
                        eprintln!("{error}");
                        failed = true;
                    }
                }
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
