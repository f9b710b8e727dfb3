//! A report as a page with plots, and as the Markdown of `docs/mechanisms.md`.

use lab::figures;
use lab::{Page, Part};

use crate::engine::{self, Run};
use crate::questions;
use crate::report::{Point, Report, RowReport};
use crate::rows;

/// The heads of the table of all rows.
const HEADS: [&str; 9] = [
    "row",
    "report",
    "replaced",
    "by",
    "threads",
    "published / stock",
    "allcore / stock",
    "in the code",
    "here",
];
/// The lines below the heading.
const ABOUT: [&str; 5] = [
    "Published fixes for scaling collapse beside the states that they replaced (stock) and beside the \
     engine's own (allcore). docs/lab.md has the method.",
    "The table of all rows compares at the highest number of threads. A ratio is the median over rounds of \
     the same pass, with its 95% interval. Above 1 the arm does more, or needs more bytes. An interval \
     that includes 1 is no difference.",
    "The column here compares the ratios of this run with the reports. Its word own is the engine's own arm. \
     A mark such as \"needs many cores\" was set before this run. It says what the published gain \
     needs, and how much of it the report's machine had.",
    "Two cores show a row through oversubscription or through the work it saves. No row shows what a cache \
     line costs between NUMA nodes where there is one node.",
    "The reports' lock profile, hardware counters and sweeps over clients replaced nothing, so they have no row. \
     Allcore has them as views of its server and as allcore bench.",
];

/// The page of a report: the rows, and behind each row what the runs on the engine say of it.
pub(crate) fn page<'a>(report: &'a Report, engine: &'a [Run]) -> Page<'a> {
    let program = program(&report.machine, engine);
    let rounds = format!("Rounds for each point: {}, of {} s each.", report.rounds, report.seconds);
    let of_row = |row: &'a RowReport| std::iter::once(part(row)).chain(engine::parts(engine, &row.id));
    Page {
        title: "Mechanisms",
        about: ABOUT.iter().map(|line| (*line).to_owned()).chain([program, rounds]).collect(),
        summary: (HEADS.to_vec(), report.rows.iter().map(summary).collect()),
        parts: engine::summary(engine)
            .into_iter()
            .chain(questions::part(engine))
            .chain(report.rows.iter().flat_map(of_row))
            .collect(),
        machine: &report.machine,
    }
}

/// The commit of the measured program: one for all, or that of the rows and of each run.
fn program(rows: &[(String, String)], engine: &[Run]) -> String {
    let commit = |machine: &[(String, String)]| {
        let named = machine.iter().find(|(name, _)| name == lab::COMMIT).map(|(_, commit)| commit.clone());
        named.unwrap_or_else(|| "not named".to_owned())
    };
    let all: Vec<(&str, String)> = std::iter::once(("rows", commit(rows)))
        .chain(engine.iter().map(|run| (run.name(), commit(run.machine()))))
        .collect();
    let of = match all.iter().all(|(_, commit)| *commit == all[0].1) {
        true => all[0].1.clone(),
        false => all.iter().map(|(name, commit)| format!("{name}: {commit}")).collect::<Vec<_>>().join("; "),
    };
    format!("Commit of the measured program: {of}.")
}

/// A row's line in the table of all rows.
fn summary(row: &RowReport) -> Vec<String> {
    let name = |part| row.arm(part).map_or(String::new(), |point| point.arm.clone());
    let ratio = |part| {
        let ratio = row.arm(part).and_then(|point| point.ratio.as_ref());
        ratio.map_or(String::new(), figures::ratio)
    };
    vec![
        row.id.clone(),
        row.report.clone(),
        name(rows::Part::Stock),
        name(rows::Part::Published),
        row.most_threads().to_string(),
        ratio(rows::Part::Published),
        ratio(rows::Part::Allcore),
        row.code.clone(),
        row.here().words(),
    ]
}

fn part(row: &RowReport) -> Part<'_> {
    let mut names: Vec<&str> = Vec::new();
    for point in &row.points {
        if !names.contains(&point.arm.as_str()) {
            names.push(&point.arm);
        }
    }
    let line = |name: &str| {
        let points = row.points.iter().filter(|point| point.arm == name);
        points.map(|point| (point.threads, point.figure)).collect()
    };
    Part {
        title: row.id.clone(),
        text: row.text(),
        heads: row.heads().map(str::to_owned).to_vec(),
        rows: row.points.iter().map(Point::cells).collect(),
        axes: ("threads", if row.unit == "bytes" { "bytes" } else { "operations a second" }),
        lines: names.iter().map(|name| (*name, line(name))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::stored;
    use crate::report::tests::sample;

    #[test]
    fn a_page_and_markdown_have_each_row_with_its_arms_and_its_code() {
        let report = sample();
        let page = page(&report, &[]);
        let (html, markdown) = (page.html(), page.markdown(Some("plots")));
        for word in ["test-and-set", "P15, B14", "Not measured: ticket: no such lock here."] {
            assert!(html.contains(word), "{word}: {html}");
        }
        assert!(html.contains("<svg") && !html.contains("<script"), "{html}");
        assert!(markdown.contains("| spin | P15, B14 | test-and-set |"), "{markdown}");
        assert!(markdown.contains("| crates/variants/src/spin |"), "{markdown}");
        assert!(markdown.contains("\n## spin\n\n"), "{markdown}");
        assert!(markdown.contains("\n![operations a second](plots/spin.svg)\n"), "{markdown}");
        assert!(page.pictures().all(|(name, text)| name == "spin.svg" && text.contains("<svg")));
        assert_eq!(page.pictures().count(), 1);
        assert!(!page.markdown(None).contains("!["), "a page without plots names none");
        assert!(!markdown.contains("\n\n\n"), "{markdown}");
        let mark = "| needs many cores, 32 in the report (waiters need cores of their own to poll on); not measured |";
        assert!(markdown.contains(mark), "{markdown}");
    }

    #[test]
    fn the_page_names_the_commit_once_or_for_each_run() {
        let facts = |commit: &str| vec![(lab::COMMIT.to_owned(), commit.to_owned())];
        let folder = tempfile::tempdir().unwrap();
        let run = |commit| {
            let path = stored(folder.path(), &["allcore", "pin stock"], &facts(commit));
            [Run::stored(&path).unwrap()]
        };
        let same = program(&facts("a1"), &run("a1"));
        assert_eq!(same, "Commit of the measured program: a1.");
        let other = program(&facts("a1"), &run("b2, with changes that are not committed"));
        let expected = "rows: a1; select-only: b2, with changes that are not committed.";
        assert_eq!(other, format!("Commit of the measured program: {expected}"));
        assert_eq!(program(&[], &[]), "Commit of the measured program: not named.");
    }
}
