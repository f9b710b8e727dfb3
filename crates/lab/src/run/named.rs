//! Workloads by their names on the command line.
//!
//! What must hold: an option that does not apply to a workload is refused, never ignored.

use crate::client::random::sysbench::Distribution;
use crate::client::random::{FNV_BASIS, fnv1a};
use crate::load::Protocol;
use crate::options::RunOptions;
use crate::script::{Settings, Source};
use crate::workload::connect::{self, Connect};
use crate::workload::pgbench::{self, PgBench};
use crate::workload::sysbench::Sysbench;
use crate::workload::tpcc::Tpcc;
use crate::workload::ycsb::Ycsb;
use crate::workload::{Original, Workload, sysbench};

/// The workload of the command line. Each arm gets its own, since a workload may count the keys it
/// has used.
///
/// # Errors
/// A line, or for a script its place and a line: the fault, and the possible values.
pub fn named(options: &RunOptions) -> Result<Box<dyn Workload>, String> {
    let name = options.workload.as_str();
    let workload: Box<dyn Workload> = if !options.file.is_empty() {
        Box::new(pgbench(options)?)
    } else if sysbench::names().any(|known| known == name) {
        let sizes = sysbench::Options {
            tables: options.tables(),
            table_size: options.table_size(),
            rand_type: options.rand_type.as_deref().map_or(Ok(Distribution::Special), Distribution::named)?,
        };
        Box::new(Sysbench::new(name, sizes, options.seed)?)
    } else if let Some(letter) = name.strip_prefix("ycsb-").and_then(single) {
        Box::new(Ycsb::new(letter, options.table_size().into(), options.seed)?)
    } else if name == "tpcc" {
        Box::new(Tpcc::new(options.scale(), options.seed))
    } else if name == connect::NAME {
        Box::new(Connect::default())
    } else {
        Box::new(pgbench(options)?)
    };
    Family::of(options).refuse_others(options)?;
    Ok(workload)
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
            add("rows drawn", options.rand_type.clone().unwrap_or_else(|| "special".into()));
        }
        Family::Ycsb => add("records", options.table_size().to_string()),
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
    Ycsb,
    Tpcc,
    Connect,
}

impl Family {
    fn of(options: &RunOptions) -> Self {
        match options.workload.as_str() {
            _ if !options.file.is_empty() => Self::Pgbench,
            "tpcc" => Self::Tpcc,
            connect::NAME => Self::Connect,
            name if name.starts_with("oltp_") => Self::Sysbench,
            name if name.starts_with("ycsb-") => Self::Ycsb,
            _ => Self::Pgbench,
        }
    }

    /// The size options that its workloads take.
    fn takes(self) -> &'static [&'static str] {
        match self {
            Self::Pgbench | Self::Tpcc => &["--scale"],
            Self::Sysbench => &["--tables", "--table-size", "--rand-type"],
            Self::Ycsb => &["--table-size"],
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
        ([], name) => vec![pgbench::builtin(name).ok_or_else(|| unknown(name))?],
        (files, _) => files.iter().map(|file| Source::file(file)).collect::<Result<_, _>>()?,
    };
    PgBench::new(&sources, &settings)
}

fn single(text: &str) -> Option<char> {
    let mut letters = text.chars();
    letters.next().filter(|_| letters.next().is_none())
}

fn unknown(name: &str) -> String {
    let known: Vec<&str> = sysbench::names().collect();
    format!(
        "there is no workload '{name}': take tpcb-like, simple-update, select-only, {}, ycsb-a to ycsb-f, tpcc, \
         connect, or a script by --file",
        known.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::tests::options;

    #[test]
    fn the_error_names_only_existing_workloads() {
        let error = named(&options(&["-w", "nothing"])).err().unwrap();
        let (_, known) = error.split_once(": take ").unwrap();
        let names = known.replace("ycsb-a to ycsb-f", "ycsb-a, ycsb-b, ycsb-c, ycsb-d, ycsb-e, ycsb-f");
        let names: Vec<&str> = names.split(", ").filter(|name| !name.contains("--file")).collect();
        assert_eq!(names.len(), 17, "{names:?}");
        for name in names {
            assert_eq!(named(&options(&["-w", name])).unwrap().name(), name);
        }
    }

    #[test]
    fn options_of_other_workloads_are_refused() {
        for (words, expected) in [
            (&["-w", "tpcc", "--tables", "2"][..], "--tables has no effect on tpcc, which takes --scale: "),
            (&["-w", "ycsb-a", "--rand-type", "uniform"], "--rand-type has no effect on ycsb-a, which takes"),
            (&["--rand-type", "uniform"], "--rand-type has no effect on tpcb-like"),
            (
                &["-w", "oltp_read_only", "--scale", "2"],
                "--scale has no effect on oltp_read_only, which takes --tables",
            ),
            (&["-w", "ycsb-a", "--tables", "2"], "--tables has no effect on ycsb-a"),
            (&["-w", "select-only", "--table-size", "2"], "--table-size has no effect on select-only"),
            (
                &["-w", "connect", "--scale", "2"],
                "--scale has no effect on connect, which has nothing to be sized",
            ),
            (&["-w", "connect", "-M", "extended"], "--protocol has no effect on connect"),
            (&["-w", "oltp_write_only", "--tries", "3"], "--tries has no effect on oltp_write_only"),
            (
                &["-w", "oltp_read_only", "--rand-type", "pareto"],
                "there is no distribution 'pareto': use uniform",
            ),
            (&["-w", "tpcb"], "there is no workload 'tpcb'"),
            (&["-w", "select-only@2"], "there is no workload 'select-only@2'"),
        ] {
            let error = named(&options(words)).err().unwrap_or_else(|| panic!("{words:?} is taken"));
            assert!(error.starts_with(expected), "{error}");
        }
        for words in [
            &["-w", "tpcc", "--scale", "3"][..],
            &["-w", "oltp_read_write", "--tables", "1", "--table-size", "1000"],
            &["-w", "ycsb-c", "--table-size", "1000"],
            &["-w", "oltp_read_only", "--rand-type", "uniform"],
            &["-w", "connect"],
            &["-w", "connect", "-M", "simple"],
        ] {
            assert!(named(&options(words)).is_ok(), "{words:?}");
        }
    }

    #[test]
    fn a_run_reports_the_size_of_its_data() {
        let said = |words: &[&str]| {
            let options = options(words);
            let about = super::about(&options, &*named(&options).unwrap_or_else(|error| panic!("{error}")));
            about.into_iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
        };
        assert_eq!(said(&["--scale", "7"]), "scale 7");
        assert_eq!(said(&["-w", "tpcc"]), "warehouses 10");
        assert_eq!(
            said(&["-w", "oltp_read_only", "--tables", "2"]),
            "tables 2, rows of a table 100000, rows drawn special"
        );
        assert_eq!(said(&["-w", "ycsb-a"]), "records 100000");
        assert_eq!(said(&["-w", "connect"]), "");
    }
}
