//! CREATE and DROP DATABASE: options without an effect here, and unsupported ones.

use pg_query::NodeEnum;
use pg_query::protobuf::{CreatedbStmt, DefElem, DropdbStmt};

use super::command::option_text;
use crate::bind::{Binder, inner};
use crate::plan::Command;
use values::error::{SqlError, SqlState};

impl Binder<'_> {
    pub(crate) fn create_database(&self, create: &CreatedbStmt) -> Result<Command, SqlError> {
        self.refuse_repeated(&create.options)?;
        let mut owner = None;
        for option in &create.options {
            let NodeEnum::DefElem(option) = inner(option)? else { continue };
            self.database_option(option)?;
            if option.defname == "owner" && option.arg.is_some() {
                owner = Some(option_text(option));
            }
        }
        Ok(Command::CreateDatabase { name: create.dbname.clone(), owner })
    }

    /// Checks an option of CREATE DATABASE. Every database begins empty, has encoding UTF-8,
    /// compares text by bytes, and is open to all.
    fn database_option(&self, option: &DefElem) -> Result<(), SqlError> {
        let (name, value) = (option.defname.as_str(), option_text(option).to_lowercase());
        let same = match name {
            // An option without a value means DEFAULT.
            _ if option.arg.is_none() => true,
            "owner" | "strategy" => true,
            "template" => matches!(value.as_str(), "template0" | "template1"),
            "encoding" => matches!(value.as_str(), "utf8" | "utf-8" | "unicode" | "6" | "-1"),
            "locale" | "lc_collate" | "lc_ctype" => {
                matches!(value.as_str(), "c" | "posix" | "c.utf8" | "c.utf-8")
            }
            "locale_provider" => value == "libc",
            "tablespace" => value == "pg_default",
            "connection_limit" => value == "-1",
            "is_template" => !self.option_bool(option)?,
            "allow_connections" => self.option_bool(option)?,
            "icu_locale" | "icu_rules" | "builtin_locale" | "collation_version" | "oid" => false,
            _ => {
                return Err(self.error(
                    SqlState::SYNTAX_ERROR,
                    format!("option \"{name}\" not recognized"),
                    option.location,
                ));
            }
        };
        if same {
            return Ok(());
        }
        let what = format!("{} {}", name.to_uppercase().replace('_', " "), option_text(option));
        Err(self.unsupported(&what, option.location))
    }

    pub(crate) fn drop_database(&self, drop: &DropdbStmt) -> Result<Command, SqlError> {
        for option in &drop.options {
            let NodeEnum::DefElem(option) = inner(option)? else { continue };
            // FORCE is the only option in the grammar.
            return Err(self.unsupported("DROP DATABASE WITH (FORCE)", option.location));
        }
        Ok(Command::DropDatabase { name: drop.dbname.clone(), if_exists: drop.missing_ok })
    }
}
