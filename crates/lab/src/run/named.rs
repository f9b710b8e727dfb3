//! Workloads by their names on the command line.
//!
//! What must hold: an option that does not apply to a workload is refused, never ignored.

use crate::client::random::{FNV_BASIS, fnv1a};
use crate::load::Protocol;
use crate::options::{RunOptions, word};
use crate::script::{Settings, Source};
use crate::workload::connect::{self, Connect};
use crate::workload::pgbench::{self, PgBench};
use crate::workload::sysbench::{self, Sysbench};
use crate::workload::tpcc::Tpcc;
use crate::workload::ycsb::Ycsb;
use crate::workload::{Original, Workload};

/// The workload of the command line. Each arm gets its own, since a workload may count the keys it
/// has used.
///
/// # Errors
/// A line, or for a script its place and a line: the fault, and the possible values.
pub fn named(options: &RunOptions) -> Result<Box<dyn Workload>, String> {
    let (family, name) = (Family::of(options), options.workload.as_str());
    family.refuse_others(options)?;
    Ok(match family {
        Family::Pgbench => Box::new(pgbench(options)?),
        Family::Sysbench => {
            let (tables, table_size) = (options.tables(), options.table_size());
            let rand_type = options.rand_type.unwrap_or_default();
            Box::new(Sysbench::new(name, sysbench::Options { tables, table_size, rand_type }, options.seed)?)
        }
        Family::Ycsb(letter) => Box::new(Ycsb::new(letter, options.table_size().into(), options.seed)?),
        Family::Tpcc => Box::new(Tpcc::new(options.scale(), options.seed)),
        Family::Connect => Box::new(Connect::default()),
    })
}

/// The workload's size and its script files' contents as name and value: two runs must have these
/// in common to be compared.
pub fn about(options: &RunOptions, planned: &dyn Workload) -> Vec<(String, String)> {
    let mut about = Vec::new();
    let mut add = |name: &str, value: String| about.push((name.to_owned(), value));
    match Family::of(options) {
        Family::Pgbench => add("scale", options.scale().to_string()),
        Family::Tpcc => add("warehouses", options.scale().to_string()),
        Family::Sysbench => {
            add("tables", options.tables().to_string());
            add("rows of a table", options.table_size().to_string());
            add("rows drawn", word(options.rand_type.unwrap_or_default()));
        }
        Family::Ycsb(_) => add("records", options.table_size().to_string()),
        Family::Connect => {}
    }
    for define in &options.define {
        let (name, value) = define.split_once('=').unwrap_or((define, ""));
        add(&format!("-D {name}"), value.to_owned());
    }
    if !options.file.is_empty() {
        about.extend(scripts(planned));
    }
    about
}

/// Each script with its weight and a checksum of its text.
fn scripts(planned: &dyn Workload) -> Vec<(String, String)> {
    let Some(Original { scripts, .. }) = planned.original() else { return Vec::new() };
    let names = planned.kinds();
    let note = |(at, (text, weight)): (usize, (String, u32))| {
        let name = match names[..at].iter().filter(|name| **name == names[at]).count() {
            0 => format!("script {}", names[at]),
            before => format!("script {} ({})", names[at], before + 1),
        };
        let (lines, sum) = (text.lines().count(), fnv1a(FNV_BASIS, text.as_bytes()));
        (name, format!("weight {weight}, lines {lines}, bytes {}, checksum {sum:016x}", text.len()))
    };
    scripts.into_iter().enumerate().map(note).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    /// pgbench's scripts, and those of files.
    Pgbench,
    Sysbench,
    /// The workload of this letter.
    Ycsb(char),
    Tpcc,
    Connect,
}

impl Family {
    fn of(options: &RunOptions) -> Self {
        let name = options.workload.as_str();
        match name.strip_prefix("ycsb-").and_then(|letter| letter.chars().next()) {
            _ if !options.file.is_empty() => Self::Pgbench,
            Some(letter) => Self::Ycsb(letter),
            None if name == "tpcc" => Self::Tpcc,
            None if name == connect::NAME => Self::Connect,
            None if name.starts_with("oltp_") => Self::Sysbench,
            None => Self::Pgbench,
        }
    }

    /// The size options that its workloads take.
    fn takes(self) -> &'static [&'static str] {
        match self {
            Self::Pgbench | Self::Tpcc => &["--scale"],
            Self::Sysbench => &["--tables", "--table-size", "--rand-type"],
            Self::Ycsb(_) => &["--table-size"],
            Self::Connect => &[],
        }
    }

    fn refuse_others(self, options: &RunOptions) -> Result<(), String> {
        let name = if options.file.is_empty() { options.workload.as_str() } else { "a script" };
        let given = [
            ("--scale", options.scale.is_some()),
            ("--tables", options.tables.is_some()),
            ("--table-size", options.table_size.is_some()),
            ("--rand-type", options.rand_type.is_some()),
            // clap lets it pass beside -w, which conflicts with -f.
            ("-D", !options.define.is_empty() && options.file.is_empty()),
        ];
        let known = self.takes();
        if let Some((other, _)) = given.iter().find(|(option, given)| *given && !known.contains(option)) {
            let instead = match known {
                [] => "has nothing to be sized".to_owned(),
                known => format!("takes {}", known.join(", ")),
            };
            return Err(format!("{other} has no effect on {name}, which {instead}: leave it out"));
        }
        match self {
            Self::Sysbench if options.tries > 1 => Err(format!(
                "--tries has no effect on {name}, which begins another transaction after a deadlock or a \
                 serialization failure, without limit, as sysbench does: leave it out"
            )),
            Self::Connect if options.protocol() != Protocol::Simple => Err(format!(
                "--protocol has no effect on {name}, whose one statement is sent as text: leave it out"
            )),
            _ => Ok(()),
        }
    }
}

/// pgbench's builtin script, or the script files, on pgbench's tables.
fn pgbench(options: &RunOptions) -> Result<PgBench, String> {
    let scale = options.scale().into();
    let mut settings = Settings { defines: Vec::new(), scale, seed: options.seed };
    for define in &options.define {
        settings.define(define)?;
    }
    let sources = match (options.file.as_slice(), options.workload.as_str()) {
        ([], name) => vec![pgbench::builtin(name).ok_or_else(|| format!("there is no workload '{name}'"))?],
        (files, _) => files.iter().map(|file| Source::file(file)).collect::<Result<_, _>>()?,
    };
    PgBench::new(&sources, &settings)
}
