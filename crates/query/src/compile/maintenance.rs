//! EXPLAIN, VACUUM, ANALYZE and REINDEX: their options, and the values and combinations that
//! PostgreSQL refuses.
//!
//! What must hold:
//!
//! 1. An option without an effect here is still checked as PostgreSQL checks it.
//! 2. Combinations are judged after all options are read.

use pg_query::NodeEnum;
use pg_query::protobuf::{DefElem, ExplainStmt, ReindexObjectType, ReindexStmt, VacuumStmt};

use super::command::{option_text, without_position};
use crate::bind::modify::relation;
use crate::bind::{Binder, inner};
use crate::parse::strings;
use crate::plan::{Command, Explain, ExplainOptions, Reindex};
use values::error::{SqlError, SqlState};

/// PostgreSQL's limit on the workers of VACUUM's PARALLEL.
const MOST_WORKERS: i32 = 1024;

/// The options of VACUUM. Options about the layout of PostgreSQL's files are checked and have no
/// effect.
#[derive(Default)]
struct VacuumOptions {
    analyze: bool,
    verbose: bool,
    full: bool,
    disable_page_skipping: bool,
    skips_out_of_line: bool,
    parallel: bool,
    limited: bool,
    only_statistics: bool,
    /// Whether there is an option that ONLY_DATABASE_STATS excludes.
    others: bool,
}

impl VacuumOptions {
    /// Raises 0A000 for options that exclude each other or a list of tables.
    fn refuse_combinations(&self, tables: bool) -> Result<(), SqlError> {
        let message = if self.full && self.parallel {
            "VACUUM FULL cannot be performed in parallel"
        } else if self.full && self.limited && !self.analyze {
            "BUFFER_USAGE_LIMIT cannot be specified for VACUUM FULL"
        } else if self.full && self.disable_page_skipping {
            "VACUUM option DISABLE_PAGE_SKIPPING cannot be used with FULL"
        } else if self.full && self.skips_out_of_line {
            "PROCESS_TOAST required with VACUUM FULL"
        } else if self.only_statistics && tables {
            "ONLY_DATABASE_STATS cannot be specified with a list of tables"
        } else if self.only_statistics
            && (self.others || self.analyze || self.full || self.disable_page_skipping)
        {
            "ONLY_DATABASE_STATS cannot be specified with other VACUUM options"
        } else {
            return Ok(());
        };
        Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message))
    }
}

impl Binder<'_> {
    pub(super) fn explain(&mut self, explain: &ExplainStmt) -> Result<Command, SqlError> {
        let (mut analyze, mut json, mut costs, mut settings) = (false, false, true, false);
        let (mut generic, mut wal, mut memory, mut serialize) = (false, false, false, false);
        let (mut timing, mut summary, mut buffers) = (None, None, None);
        for node in &explain.options {
            let NodeEnum::DefElem(option) = inner(node)? else { continue };
            match option.defname.as_str() {
                "analyze" => analyze = self.option_bool(option)?,
                "costs" => costs = self.option_bool(option)?,
                "format" => match option_text(option).as_str() {
                    "text" => json = false,
                    "json" => json = true,
                    format @ ("xml" | "yaml") => {
                        return Err(self.unsupported(&format!("EXPLAIN format {format}"), option.location));
                    }
                    _ => return Err(self.unrecognized(option)),
                },
                "generic_plan" => generic = self.option_bool(option)?,
                "wal" => wal = self.option_bool(option)?,
                "memory" => memory = self.option_bool(option)?,
                "settings" => settings = self.option_bool(option)?,
                "timing" => timing = Some(self.option_bool(option)?),
                "summary" => summary = Some(self.option_bool(option)?),
                "serialize" => match (option.arg.is_some(), option_text(option).as_str()) {
                    (true, "off" | "none") => serialize = false,
                    (false, _) | (true, "text" | "binary") => serialize = true,
                    _ => return Err(self.unrecognized(option)),
                },
                "buffers" => buffers = Some(self.option_bool(option)?),
                "verbose" => {
                    self.option_bool(option)?;
                }
                other => {
                    let message = format!("unrecognized EXPLAIN option \"{other}\"");
                    return Err(self.error(SqlState::SYNTAX_ERROR, message, option.location));
                }
            }
        }
        let timed = timing == Some(true);
        for (is_set, name) in [(wal, "WAL"), (timed, "TIMING"), (serialize, "SERIALIZE")] {
            if is_set && !analyze {
                let message = format!("EXPLAIN option {name} requires ANALYZE");
                return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        }
        if generic && analyze {
            let message = "EXPLAIN options ANALYZE and GENERIC_PLAN cannot be used together";
            return Err(SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message));
        }
        let unbuilt = [(wal, "WAL"), (serialize, "SERIALIZE"), (memory, "MEMORY"), (generic, "GENERIC_PLAN")];
        if let Some((_, name)) = unbuilt.into_iter().find(|(is_set, _)| *is_set) {
            return Err(self.unsupported(&format!("EXPLAIN option {name}"), 0));
        }
        let (timing, summary) = (timing.unwrap_or(analyze), summary.unwrap_or(analyze));
        let buffers = buffers.unwrap_or(analyze);
        let options = ExplainOptions { analyze, costs, buffers, timing, summary, settings, json };
        let begun = runtime::time::precise();
        let statement = self.compiled(explain.query.as_deref())?;
        let planning = runtime::time::precise() - begun;
        Ok(Command::Explain(Explain { statement, options, planning }))
    }

    /// The error for a wrong value of an option of EXPLAIN.
    fn unrecognized(&self, option: &DefElem) -> SqlError {
        let (name, value) = (&option.defname, option_text(option));
        let message = format!("unrecognized value for EXPLAIN option \"{name}\": \"{value}\"");
        self.error(SqlState::INVALID_PARAMETER_VALUE, message, option.location)
    }

    pub(super) fn vacuum(&self, vacuum: &VacuumStmt) -> Result<Command, SqlError> {
        let mut chosen = VacuumOptions { analyze: !vacuum.is_vacuumcmd, ..VacuumOptions::default() };
        for node in &vacuum.options {
            let NodeEnum::DefElem(option) = inner(node)? else { continue };
            self.vacuum_option(option, vacuum.is_vacuumcmd, &mut chosen)?;
        }
        let mut tables = Vec::with_capacity(vacuum.rels.len());
        for node in &vacuum.rels {
            let NodeEnum::VacuumRelation(target) = inner(node)? else { continue };
            let range = relation(target.relation.as_ref())?;
            if !target.va_cols.is_empty() && !chosen.analyze {
                let message = "ANALYZE option must be specified when a column list is provided";
                return Err(SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message));
            }
            let columns = strings(&target.va_cols).into_iter().map(str::to_owned).collect();
            tables.push((self.qualified(range).map_err(without_position)?, columns));
        }
        chosen.refuse_combinations(!tables.is_empty())?;
        let (analyze, verbose) = (chosen.analyze, chosen.verbose);
        Ok(Command::Vacuum { tables, vacuum: vacuum.is_vacuumcmd, analyze, verbose })
    }

    fn vacuum_option(
        &self,
        option: &DefElem,
        vacuum: bool,
        chosen: &mut VacuumOptions,
    ) -> Result<(), SqlError> {
        match option.defname.as_str() {
            "verbose" => chosen.verbose = self.option_bool(option)?,
            "skip_locked" => chosen.others |= self.option_bool(option)?,
            "buffer_usage_limit" => {
                buffer_usage_limit(option)?;
                chosen.limited = true;
            }
            "analyze" if vacuum => chosen.analyze = self.option_bool(option)?,
            "full" if vacuum => chosen.full = self.option_bool(option)?,
            "disable_page_skipping" if vacuum => chosen.disable_page_skipping = self.option_bool(option)?,
            "process_toast" if vacuum => chosen.skips_out_of_line = !self.option_bool(option)?,
            "only_database_stats" if vacuum => chosen.only_statistics = self.option_bool(option)?,
            "freeze" | "skip_database_stats" if vacuum => chosen.others |= self.option_bool(option)?,
            "process_main" | "truncate" if vacuum => {
                self.option_bool(option)?;
            }
            "index_cleanup" if vacuum => {
                if !option_text(option).eq_ignore_ascii_case("auto") {
                    self.option_bool(option)?;
                }
            }
            "parallel" if vacuum => chosen.parallel = self.workers(option)? > 0,
            other => {
                let command = if vacuum { "VACUUM" } else { "ANALYZE" };
                let message = format!("unrecognized {command} option \"{other}\"");
                return Err(self.error(SqlState::SYNTAX_ERROR, message, option.location));
            }
        }
        Ok(())
    }

    /// The value of VACUUM's PARALLEL, which has no effect.
    fn workers(&self, option: &DefElem) -> Result<i32, SqlError> {
        let refused = |message: String| self.error(SqlState::SYNTAX_ERROR, message, option.location);
        if option.arg.is_none() {
            return Err(refused(format!("parallel option requires a value between 0 and {MOST_WORKERS}")));
        }
        match option_text(option).parse() {
            Ok(workers) if (0..=MOST_WORKERS).contains(&workers) => Ok(workers),
            Ok(_) => {
                Err(refused(format!("parallel workers for vacuum must be between 0 and {MOST_WORKERS}")))
            }
            Err(_) => Err(SqlError::new(SqlState::SYNTAX_ERROR, "parallel requires an integer value")),
        }
    }

    pub(super) fn reindex(&self, reindex: &ReindexStmt) -> Result<Command, SqlError> {
        use ReindexObjectType as Kind;
        let mut concurrently = false;
        for node in &reindex.params {
            let NodeEnum::DefElem(option) = inner(node)? else { continue };
            match option.defname.as_str() {
                "tablespace" => super::storage::table_space(&option_text(option))?,
                "concurrently" => concurrently = self.option_bool(option)?,
                "verbose" => {
                    self.option_bool(option)?;
                }
                other => {
                    let message = format!("unrecognized REINDEX option \"{other}\"");
                    return Err(self.error(SqlState::SYNTAX_ERROR, message, option.location));
                }
            }
        }
        let name = || self.qualified(relation(reindex.relation.as_ref())?);
        let what = match Kind::try_from(reindex.kind) {
            Ok(Kind::ReindexObjectIndex) => Reindex::Index(name()?),
            Ok(Kind::ReindexObjectTable) => Reindex::Table(name()?),
            Ok(Kind::ReindexObjectSchema) => Reindex::Schema(reindex.name.clone()),
            Ok(Kind::ReindexObjectDatabase) => Reindex::Database(reindex.name.clone()),
            _ => return Err(self.unsupported("REINDEX SYSTEM", 0)),
        };
        Ok(Command::Reindex { what, concurrently })
    }
}

/// Checks VACUUM's BUFFER_USAGE_LIMIT, which has no effect: 22023 unless it is 0, or 128 kB to 16
/// GB.
fn buffer_usage_limit(option: &DefElem) -> Result<(), SqlError> {
    if option.arg.is_none() {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, "buffer_usage_limit requires a parameter"));
    }
    let text = option_text(option);
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = match text[digits..].trim() {
        "" | "kB" => Some(1),
        "B" => Some(0),
        "MB" => Some(1 << 10),
        "GB" => Some(1 << 20),
        "TB" => Some(1 << 30),
        _ => None,
    };
    let number: Option<u64> = text[..digits].parse().ok();
    let kib = match (number, unit) {
        (Some(bytes), Some(0)) => Some(bytes.div_ceil(1024)),
        (Some(number), Some(unit)) => number.checked_mul(unit),
        _ => None,
    };
    if kib.is_some_and(|kib| kib == 0 || (128..=16_777_216).contains(&kib)) {
        return Ok(());
    }
    let message = "BUFFER_USAGE_LIMIT option must be 0 or between 128 kB and 16777216 kB";
    let error = SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    let beyond = kib.is_some_and(|kib| i32::try_from(kib).is_err());
    Err(if beyond { error.with_hint("Value exceeds integer range.") } else { error })
}
