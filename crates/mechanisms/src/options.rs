//! The command line of `allcore bench mechanism`.

use std::path::PathBuf;

use clap::Args;

/// The options of `allcore bench mechanism`.
#[derive(Debug, Args)]
pub struct Mechanism {
    /// The rows to measure (all); --list names them
    #[arg(value_name = "ROW")]
    pub(crate) rows: Vec<String>,
    /// Numbers of threads: a range in doubling steps, a list, or both mixed. [default: powers of 4
    /// to 64 or past the processors, the processors, twice as many]. Threads past the processors
    /// belong to it: there a holder loses its own, and stock variants collapse
    #[arg(long, value_name = "LIST")]
    pub(crate) threads: Option<String>,
    /// Seconds of a round that count; a tenth more is warm-up
    #[arg(long, value_name = "NUMBER", default_value_t = 0.5)]
    pub(crate) seconds: f64,
    /// Rounds of each arm with each number of threads
    #[arg(long, value_name = "NUMBER", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Store the run as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the run as a page with tables and plots
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the run as Markdown: docs/mechanisms.md
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write the plots as SVG files into this folder, and show them in the Markdown
    #[arg(long, value_name = "FOLDER", requires = "markdown")]
    pub(crate) plots: Option<PathBuf>,
    /// A stored run of allcore bench over the engine's variants, for the pages; may be given
    /// several times
    #[arg(long, value_name = "FILE")]
    pub(crate) engine: Vec<PathBuf>,
    /// Make the outputs of a run that --json stored, and measure nothing
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rows", "threads", "seconds", "rounds", "list"])]
    pub(crate) from: Option<PathBuf>,
    /// Say in a line each what the rows are, and measure nothing
    #[arg(long)]
    pub(crate) list: bool,
}
