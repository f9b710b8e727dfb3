//! pgbench's workloads: its builtin scripts, script files, and the tables that `pgbench -i` makes.
//!
//! On MySQL's dialect the tables are the same, without the features that MySQL lacks (fillfactor,
//! vacuum), and END is COMMIT.

use std::sync::Arc;

use crate::arm::control::{Control, Fault, Progress};
use crate::arm::{Dialect, Target};
use crate::client::{Client, Params, Prepare, Random, Statement, StatementId};
use crate::record::Check;
use crate::script::{Program, ScriptClient, Settings, Source};

use super::tables::{self, Table, Tables};
use super::{Before, Found, Original, Workload};

/// Rows of pgbench_accounts for each unit of scale.
const ACCOUNTS: u64 = 100_000;

/// Rows of pgbench_tellers for each unit of scale.
const TELLERS: u64 = 10;

/// From this scale on accounts need a bigint.
const BIGINT_SCALE: u32 = 20_000;

/// The highest scale of pgbench.
const SCALE_MAX: u32 = 21_474;

/// The builtin scripts by name, as `pgbench --show-script` prints them.
const BUILTINS: [(&str, &str); 3] = [
    ("tpcb-like", include_str!("pgbench/tpcb-like.sql")),
    ("simple-update", include_str!("pgbench/simple-update.sql")),
    ("select-only", include_str!("pgbench/select-only.sql")),
];

/// A builtin script; `None` if there is none of this name.
pub fn builtin(name: &str) -> Option<Source> {
    let (name, text) = BUILTINS.iter().find(|(builtin, _)| *builtin == name)?;
    Some(Source { name: (*name).into(), text: (*text).into(), weight: 1 })
}

/// The name of this script, if it is a builtin one.
fn builtin_name(source: &Source) -> Option<&'static str> {
    BUILTINS.iter().find(|(name, text)| source.name == *name && source.text == *text).map(|(name, _)| *name)
}

/// The scale of the existing tables; `None` if there are none.
pub fn loaded_scale(control: &mut Control) -> Result<Option<u64>, Fault> {
    // The branches do not tell the scale: they are incomplete after a load that was cut short.
    Ok(tables::rows(control, "pgbench_tellers")?.map(|tellers| tellers / TELLERS))
}

#[derive(Debug)]
pub struct PgBench {
    name: String,
    sources: Vec<Source>,
    settings: Settings,
    program: Arc<Program>,
    scale: u32,
    uses_tables: bool,
    /// The sums that the mix changes alike: all, or those of history and accounts, since
    /// simple-update leaves tellers and branches. None are known of a script that is not builtin.
    conserved: &'static [(&'static str, &'static str)],
}

/// Sums that the checks compare before and after.
static SUMS: [(&str, &str); 4] = [
    ("pgbench_history", "select sum(delta) from pgbench_history"),
    ("pgbench_accounts", "select sum(abalance) from pgbench_accounts"),
    ("pgbench_tellers", "select sum(tbalance) from pgbench_tellers"),
    ("pgbench_branches", "select sum(bbalance) from pgbench_branches"),
];

impl PgBench {
    /// The workload of these scripts, over tables of the settings' scale. The error is for the
    /// author of the scripts or the command line.
    pub fn new(sources: &[Source], settings: &Settings) -> Result<Self, String> {
        let scale = u32::try_from(settings.scale).ok().filter(|scale| (1..=SCALE_MAX).contains(scale));
        let scale =
            scale.ok_or_else(|| format!("scale {} is out of range: use 1 to {SCALE_MAX}", settings.scale))?;
        let program = Arc::new(Program::new(sources, settings)?);
        let all =
            |fits: fn(&str) -> bool| sources.iter().all(|source| builtin_name(source).is_some_and(fits));
        let conserved = match (all(|name| name != "simple-update"), all(|_| true)) {
            (true, _) => &SUMS[..],
            (_, true) => &SUMS[..2],
            _ => &[],
        };
        let uses_tables =
            sources.iter().any(|source| SUMS.iter().any(|(table, _)| source.text.contains(table)));
        let names: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
        Ok(Self {
            name: names.join("+"),
            sources: sources.to_vec(),
            settings: settings.clone(),
            program,
            scale,
            uses_tables,
            conserved,
        })
    }

    fn sums(&self, control: &mut Control) -> Result<Vec<String>, Fault> {
        let sum = |(_, sql): &(_, &str)| Ok(control.value(sql)?.unwrap_or_else(|| "0".into()));
        self.conserved.iter().map(sum).collect()
    }
}

impl Tables for PgBench {
    fn tables(&self, dialect: Dialect) -> Vec<Table> {
        let aid = if self.scale >= BIGINT_SCALE { "bigint" } else { "int" };
        let scale = u64::from(self.scale);
        let (filled, mtime) = match dialect {
            Dialect::Postgres => (" with (fillfactor=100)", "timestamp"),
            Dialect::Mysql => ("", "datetime"),
        };
        let key = |column: &str| match dialect {
            Dialect::Postgres => String::new(),
            // The rows lie in the primary key's order: the key must exist before them.
            Dialect::Mysql => format!(",primary key ({column})"),
        };
        let table = |name: &str, definition: String, rows: u64| Table {
            name: format!("pgbench_{name}"),
            create: format!("create table pgbench_{name}({definition}"),
            rows,
        };
        let history = format!("tid int,bid int,aid    {aid},delta int,mtime {mtime},filler char(22))");
        let tellers = format!("tid int not null,bid int,tbalance int,filler char(84){}){filled}", key("tid"));
        let accounts =
            format!("aid    {aid} not null,bid int,abalance int,filler char(84){}){filled}", key("aid"));
        let branches = format!("bid int not null,bbalance int,filler char(88){}){filled}", key("bid"));
        vec![
            table("history", history, 0),
            table("tellers", tellers, TELLERS * scale),
            table("accounts", accounts, ACCOUNTS * scale),
            table("branches", branches, scale),
        ]
    }

    fn row(&self, table: usize, number: u64, _: &mut Random, row: &mut Params) {
        let number = number as i64;
        row.int(number + 1);
        match table {
            // Accounts have an empty filler, which the type pads; the others have none.
            2 => {
                row.int(number / ACCOUNTS as i64 + 1);
                row.int(0);
                row.text("");
            }
            1 => {
                row.int(number / TELLERS as i64 + 1);
                row.int(0);
                row.null();
            }
            _ => {
                row.int(0);
                row.null();
            }
        }
    }

    fn after_load(&self, dialect: Dialect) -> Vec<String> {
        let names = ["pgbench_branches", "pgbench_tellers", "pgbench_accounts", "pgbench_history"];
        match dialect {
            Dialect::Postgres => {
                let vacuum = names.map(|name| format!("vacuum analyze {name}"));
                let keys =
                    [("pgbench_branches", "bid"), ("pgbench_tellers", "tid"), ("pgbench_accounts", "aid")];
                let keys =
                    keys.map(|(name, column)| format!("alter table {name} add primary key ({column})"));
                vacuum.into_iter().chain(keys).collect()
            }
            Dialect::Mysql => names.map(|name| format!("analyze table {name}")).into(),
        }
    }
}

impl Workload for PgBench {
    fn name(&self) -> &str {
        &self.name
    }

    fn kinds(&self) -> &[String] {
        self.program.kinds()
    }

    fn load(&self, to: &Target, threads: usize, progress: &Progress) -> Result<(), Fault> {
        if self.uses_tables { tables::load(self, to, self.settings.seed, threads, progress) } else { Ok(()) }
    }

    fn found(&self, control: &mut Control) -> Result<Found, Fault> {
        if !self.uses_tables {
            return Ok(Found::Loaded);
        }
        match (tables::found(self, control)?, loaded_scale(control)?) {
            (Found::Other(_), Some(scale)) if scale != u64::from(self.scale) => {
                Ok(Found::Other(format!("pgbench's tables of scale {scale} instead of {}", self.scale)))
            }
            (found, _) => Ok(found),
        }
    }

    fn prepare(&self, control: &mut Control) -> Result<Before, Fault> {
        if self.uses_tables {
            if control.dialect() == Dialect::Postgres {
                control.execute("vacuum pgbench_branches")?;
                control.execute("vacuum pgbench_tellers")?;
            }
            control.execute("truncate table pgbench_history")?;
        }
        self.sums(control).map(Before)
    }

    fn check(&self, control: &mut Control, before: &Before) -> Result<Vec<Check>, Fault> {
        let after = self.sums(control)?;
        let number = |text: &String| text.parse::<i128>().unwrap_or(0);
        let changes: Vec<i128> =
            after.iter().zip(&before.0).map(|(after, before)| number(after) - number(before)).collect();
        let Some((history, balances)) = changes.split_first() else { return Ok(Vec::new()) };
        let check = |(change, (table, _)): (&i128, &(&str, &str))| Check {
            claim: format!("balances of {table} changed by the sum in pgbench_history"),
            fault: (change != history).then(|| format!("by {change} instead of {history}")),
        };
        Ok(balances.iter().zip(&SUMS[1..]).map(check).collect())
    }

    fn original(&self) -> Option<Original> {
        let script = |source: &Source| (source.text.clone(), source.weight);
        Some(Original {
            scripts: self.sources.iter().map(script).collect(),
            scale: self.scale.into(),
            variables: self.settings.defines.clone(),
            reconnect: false,
        })
    }

    fn pipelines(&self) -> Result<(), String> {
        self.program.pipelines()
    }

    fn place(&self, statement: StatementId) -> String {
        let (script, line) = self.program.place(statement);
        let source = &self.sources[script];
        builtin_name(source).map_or_else(|| format!("{}:{line}", source.name), str::to_owned)
    }

    fn statements(&self, dialect: Dialect) -> Vec<Statement> {
        let mut statements = self.program.statements().to_vec();
        if dialect == Dialect::Mysql {
            for statement in &mut statements {
                match statement.pieces.as_slice() {
                    // MySQL prepares no BEGIN, and its END ends no transaction.
                    [only] if only.eq_ignore_ascii_case("begin;") => statement.prepare = Prepare::Never,
                    [only] if only.eq_ignore_ascii_case("end;") => statement.pieces = vec!["COMMIT;".into()],
                    _ => {}
                }
            }
        }
        statements
    }

    fn client(&self, index: usize, _: usize) -> Box<dyn Client> {
        Box::new(ScriptClient::new(Arc::clone(&self.program), index))
    }
}

#[cfg(test)]
mod tests;
