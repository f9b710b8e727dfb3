//! Workloads by their names on the command line.

use super::pgbench::{self, PgBench};
use super::sysbench::{Oltp, Sysbench};
use super::tpcc::Tpcc;
use super::ycsb::{KeyChoice, Ycsb};
use super::{Workload, sysbench, ycsb};
use crate::options::RunOptions;
use crate::script::{Settings, Source};

/// The workload that was asked for. Each arm has one of its own: a workload may count what it has given out.
///
/// # Errors
/// A line, or for a script its place and a line: what is wrong, and what there is.
pub fn named(options: &RunOptions) -> Result<Box<dyn Workload>, String> {
    let name = options.workload.as_str();
    if let Some((_, oltp)) = Oltp::ALL.into_iter().find(|(known, _)| *known == name) {
        let sizes = sysbench::Options {
            tables: options.tables,
            table_size: options.table_size,
            ..sysbench::Options::default()
        };
        return Ok(Box::new(Sysbench::new(oltp, sizes, options.seed)?));
    }
    if let Some(letter) = name.strip_prefix("ycsb-").and_then(single) {
        let keys = options.keys.as_deref().map(KeyChoice::named).transpose()?;
        let records = u64::from(options.table_size);
        let sizes = ycsb::Options { records, keys, ..ycsb::Options::default() };
        return Ok(Box::new(Ycsb::new(letter, sizes, options.seed)?));
    }
    if name == "tpcc" {
        return Ok(Box::new(Tpcc::new(options.scale, options.seed)));
    }
    let mut settings = Settings { defines: Vec::new(), scale: i64::from(options.scale), seed: options.seed };
    for define in &options.define {
        settings.define(define)?;
    }
    let sources = match options.file.as_slice() {
        [] => vec![pgbench::builtin(name).map_err(|_| unknown(name))?],
        files => files.iter().map(|file| Source::file(file)).collect::<Result<_, _>>()?,
    };
    Ok(Box::new(PgBench::new(&sources, &settings, 100)?))
}

fn single(text: &str) -> Option<char> {
    let mut letters = text.chars();
    letters.next().filter(|_| letters.next().is_none())
}

fn unknown(name: &str) -> String {
    let known: Vec<&str> = Oltp::ALL.iter().map(|(name, _)| *name).collect();
    format!(
        "there is no workload '{name}': take tpcb-like, simple-update, select-only, {}, ycsb-a to ycsb-f, tpcc, or a \
         script by --file",
        known.join(", ")
    )
}
