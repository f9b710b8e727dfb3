//! The report of a run: a table for each row on the terminal, and JSON.
//!
//! Throughput is the median of the rounds with its 95% interval. The ratio to the stock state is
//! the median over pairs of rounds of the same pass, so that a drifting machine cancels out. Least
//! and most are the operations of the slowest and the fastest thread, in percent of the mean.

use std::path::Path;
use std::time::Duration;

use lab::figures;
use lab::{Interval, estimate_positive, median, of_logs};
use serde::{Deserialize, Serialize};

use crate::here::Here;
use crate::locks::{self, Place};
use crate::round::Round;
use crate::rows::{Machine, Part, Row};

/// Version of the stored form; raise it when the form changes.
const VERSION: u32 = 5;
/// The columns of a row's table.
const HEADS: [&str; 10] = [
    "threads",
    "arm",
    "part",
    "ops/s",
    "±",
    "arm / stock",
    "least, most",
    "retries/op",
    "switches/op",
    "shoot-downs/op",
];
/// The column of the row's figure.
const FIGURE: usize = 3;

/// The measurements of a row.
#[derive(Debug)]
pub(crate) struct Measured {
    /// By arm and number of threads.
    pub rounds: Vec<Vec<Vec<Round>>>,
    /// By arm and number of threads: why it cannot be measured here.
    pub absent: Vec<Vec<Option<String>>>,
    /// By arm: where its threads waited longest for a lock, with the most threads.
    pub locks: Vec<Option<Place>>,
}

impl Measured {
    /// Nothing yet, for so many numbers of threads.
    pub fn of(row: &Row, threads: usize) -> Self {
        let arms = row.arms.len();
        Self {
            rounds: vec![vec![Vec::new(); threads]; arms],
            absent: vec![vec![None; threads]; arms],
            locks: vec![None; arms],
        }
    }
}

/// A run.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    version: u32,
    /// The machine's facts.
    pub machine: Vec<(String, String)>,
    /// Counted seconds of a round, as asked.
    pub seconds: f64,
    /// Rounds of a point, as asked.
    pub rounds: u32,
    pub rows: Vec<RowReport>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RowReport {
    pub id: String,
    pub report: String,
    about: String,
    operation: String,
    /// The mark of its published gain ([`Machine`]), in words; absent for other rows.
    pub needs: Option<String>,
    /// The file or folder of its variants.
    pub code: String,
    /// The unit of its figures: `ops/s`, or `bytes`.
    pub unit: String,
    /// The arms that could not be measured.
    absent: Vec<Absent>,
    /// The arms whose threads took locks that the profiler counts, with the most threads.
    locks: Vec<(String, Place)>,
    pub points: Vec<Point>,
}

/// An arm that could not be measured with some numbers of threads.
#[derive(Debug, Serialize, Deserialize)]
struct Absent {
    arm: String,
    threads: Vec<usize>,
    reason: String,
}

/// An arm with a number of threads.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Point {
    pub threads: usize,
    pub arm: String,
    pub part: Part,
    /// The figure, in the row's unit.
    pub figure: Interval,
    /// Ratio of the arm's figure to the stock state's; absent for that one.
    pub ratio: Option<Interval>,
    /// Operations of the slowest thread over the mean of all; absent without any.
    least: Option<f64>,
    /// Operations of the fastest thread over the mean of all; absent as above.
    most: Option<f64>,
    /// Failed atomic changes for each operation; absent where the arm does not count them.
    retries: Option<f64>,
    /// Context switches for each operation; absent where other processes do the work.
    switches: Option<f64>,
    /// TLB shoot-downs of the machine for each operation; absent where they are not counted.
    shootdowns: Option<f64>,
    measured: Vec<Round>,
}

impl Report {
    /// A report without rows.
    pub fn begin(time: Duration, rounds: u32) -> Self {
        let machine = lab::facts();
        Self { version: VERSION, machine, seconds: time.as_secs_f64(), rounds, rows: Vec::new() }
    }

    /// Adds a row. Points without rounds are left out.
    pub fn add(&mut self, row: &'static Row, threads: &[usize], measured: &Measured) {
        // Few of the engine's types count failed changes. One that never had any counts none.
        let counts = |arm: usize| {
            let rounds = || measured.rounds[arm].iter().flatten();
            row.arms[arm].part != Part::Allcore || rounds().any(|round| round.retries > Some(0))
        };
        let mut points = Vec::new();
        for (place, &threads) in threads.iter().enumerate() {
            let stock = &measured.rounds[0][place];
            for (at, (arm, rounds)) in row.arms.iter().zip(&measured.rounds).enumerate() {
                let rounds = &rounds[place];
                if rounds.is_empty() {
                    continue;
                }
                let each = |of: fn(&Round) -> Option<u64>| {
                    let each = |round: &Round| Some(of(round)? as f64 / round.operations as f64);
                    rounds.iter().map(each).collect::<Option<Vec<_>>>().map(|each| median(&each))
                };
                points.push(Point {
                    threads,
                    arm: arm.name.to_owned(),
                    part: arm.part,
                    figure: estimate_positive(&rounds.iter().map(Round::figure).collect::<Vec<_>>()),
                    ratio: (arm.part != Part::Stock).then(|| ratio(stock, rounds)),
                    least: share(rounds, threads, |round| round.least),
                    most: share(rounds, threads, |round| round.most),
                    retries: counts(at).then(|| each(|round| round.retries)).flatten(),
                    switches: each(|round| round.switches),
                    shootdowns: each(|round| round.shootdowns),
                    measured: rounds.clone(),
                });
            }
        }
        let absent = row.arms.iter().zip(&measured.absent);
        let absent = absent.flat_map(|(arm, reasons)| Absent::of(arm.name, threads, reasons)).collect();
        let locks = row.arms.iter().zip(&measured.locks);
        let locks = locks.filter_map(|(arm, place)| Some((arm.name.to_owned(), place.clone()?))).collect();
        let is_size = |point: &Point| point.measured.iter().any(|round| round.bytes.is_some());
        let unit = if points.iter().any(is_size) { "bytes" } else { "ops/s" };
        self.rows.push(RowReport {
            id: row.id.to_owned(),
            report: row.report.to_owned(),
            about: row.about.to_owned(),
            operation: row.operation.to_owned(),
            needs: row.needs.map(Machine::words),
            code: row.code.to_owned(),
            unit: unit.to_owned(),
            absent,
            locks,
            points,
        });
    }

    /// A stored run.
    ///
    /// # Errors
    /// A line: the file cannot be read, or is of another version.
    pub fn stored(path: &Path) -> Result<Self, String> {
        let fault = |fault: String| format!("--from {}: {fault}", path.display());
        let text = lab::files::text(path).map_err(|error| fault(error.to_string()))?;
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| fault(format!("no stored run: {error}")))?;
        if value["version"] != VERSION {
            return Err(fault(format!("no run of version {VERSION}: measure again with --json")));
        }
        serde_json::from_value(value).map_err(|error| fault(format!("no stored run: {error}")))
    }

    /// The stored form.
    pub fn json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a report has text keys only");
        text.push('\n');
        text
    }

    /// A table for each row, at most `width` columns wide.
    pub fn table(&self, width: usize) -> String {
        let table = |row: &RowReport| {
            let title = format!("{}: {}", row.id, row.text().join(" "));
            lab::sheet(&title, &row.heads(), row.points.iter().map(Point::cells).collect(), width)
        };
        self.rows.iter().map(table).collect()
    }
}

impl RowReport {
    /// The sentences above its table.
    pub fn text(&self) -> Vec<String> {
        let Self { report, about, operation, absent, locks, points, .. } = self;
        let some = |arm: &str| points.iter().any(|point| point.arm == arm);
        let mut text = vec![
            format!("{report}. {about}."),
            format!("One operation: {operation}."),
            self.here().sentences(),
        ];
        text.extend(self.against());
        text.extend(self.idle());
        text.extend(absent.iter().map(|absent| absent.line(some(&absent.arm))));
        let most = self.most_threads();
        let place = |(arm, place): &(String, Place)| {
            let (seconds, round) = (figures::number(place.seconds), locks::ROUND.as_secs_f64());
            format!(
                "Locks of {arm} with {most} threads: {}, {}. The threads waited {seconds} s together, in a \
                 round of at most {round} s.",
                place.name,
                place.counts()
            )
        };
        text.extend(locks.iter().map(place));
        text
    }

    /// The highest number of threads.
    pub fn most_threads(&self) -> usize {
        self.points.iter().map(|point| point.threads).max().unwrap_or_default()
    }

    /// The first arm of a part, with the most threads.
    pub fn arm(&self, part: Part) -> Option<&Point> {
        self.arm_with(self.most_threads(), part)
    }

    /// The first arm of a part, with so many threads.
    fn arm_with(&self, threads: usize, part: Part) -> Option<&Point> {
        self.points.iter().find(|point| point.threads == threads && point.part == part)
    }

    /// Its ratios with the most threads, to judge them.
    pub fn here(&self) -> Here<'_> {
        self.here_with(self.most_threads())
    }

    /// Its ratios with so many threads.
    fn here_with(&self, threads: usize) -> Here<'_> {
        let ratio = |part| self.arm_with(threads, part).and_then(|point| point.ratio.as_ref());
        Here {
            threads,
            published: ratio(Part::Published),
            own: ratio(Part::Allcore),
            is_size: self.unit == "bytes",
            needs: self.needs.as_deref(),
        }
    }

    /// The sentence on the arms that are against the report's direction with fewer threads than the
    /// most. `None` if none is.
    fn against(&self) -> Option<String> {
        let most = self.most_threads();
        let mut threads: Vec<usize> = self.points.iter().map(|point| point.threads).collect();
        threads.retain(|threads| *threads != most);
        threads.dedup();
        let against = threads
            .into_iter()
            .flat_map(|threads| self.here_with(threads).against().into_iter().map(move |arm| (arm, threads)));
        let by_arm = by_arm(against)?;
        Some(format!("With fewer threads, against the report's direction: {by_arm}."))
    }

    /// The sentence on the arms of which a thread did nothing in the median round. `None` if none
    /// has one.
    fn idle(&self) -> Option<String> {
        let idle = self.points.iter().filter(|point| point.least == Some(0.0));
        let by_arm = by_arm(idle.map(|point| (point.arm.as_str(), point.threads)))?;
        Some(format!("The slowest thread did nothing in most rounds: {by_arm}."))
    }

    /// The heads of its table.
    pub fn heads(&self) -> [&str; HEADS.len()] {
        let mut heads = HEADS;
        heads[FIGURE] = &self.unit;
        heads
    }
}

impl Absent {
    /// The absences of an arm, one for each reason, from a reason or none for each number of
    /// threads.
    fn of(arm: &str, threads: &[usize], reasons: &[Option<String>]) -> Vec<Self> {
        let mut absent: Vec<Self> = Vec::new();
        for (threads, reason) in threads.iter().zip(reasons) {
            let Some(reason) = reason else { continue };
            match absent.iter_mut().find(|absent| absent.reason == *reason) {
                Some(absent) => absent.threads.push(*threads),
                None => {
                    let (arm, reason) = (arm.to_owned(), reason.clone());
                    absent.push(Self { arm, threads: vec![*threads], reason });
                }
            }
        }
        absent
    }

    /// The sentence. Threads are named where the arm has figures for others.
    fn line(&self, has_figures: bool) -> String {
        let Self { arm, threads, reason } = self;
        let numbers: Vec<String> = threads.iter().map(usize::to_string).collect();
        let with = format!(" with {} threads", figures::list(&numbers));
        format!("Not measured: {arm}{}: {reason}.", if has_figures { &with } else { "" })
    }
}

impl Point {
    /// Its line in the row's table.
    pub fn cells(&self) -> Vec<String> {
        let percent = |share: Option<f64>| share.map(figures::percent);
        let share = percent(self.least).zip(percent(self.most));
        let share = share.map(|(least, most)| format!("{least}, {most}"));
        let maybe = |value: Option<f64>| value.map_or("-".to_owned(), figures::number);
        vec![
            self.threads.to_string(),
            self.arm.clone(),
            self.part.word().to_owned(),
            figures::number(self.figure.value),
            figures::spread(&self.figure),
            self.ratio.as_ref().map_or(String::new(), figures::ratio),
            share.unwrap_or_default(),
            maybe(self.retries),
            maybe(self.switches),
            // Few rows count them, and a column without a cell is left out.
            self.shootdowns.map_or(String::new(), figures::number),
        ]
    }
}

/// Arms with their numbers of threads: `mcs with 4 and 16; SpinLock with 64`. `None` without any.
fn by_arm<'a>(points: impl Iterator<Item = (&'a str, usize)>) -> Option<String> {
    let mut arms: Vec<(&str, Vec<String>)> = Vec::new();
    for (arm, threads) in points {
        match arms.iter_mut().find(|(name, _)| *name == arm) {
            Some((_, numbers)) => numbers.push(threads.to_string()),
            None => arms.push((arm, vec![threads.to_string()])),
        }
    }
    let words = arms.iter().map(|(arm, numbers)| format!("{arm} with {}", figures::list(numbers)));
    (!arms.is_empty()).then(|| words.collect::<Vec<_>>().join("; "))
}

/// The ratio of an arm's rounds to the stock state's rounds of the same passes.
fn ratio(stock: &[Round], rounds: &[Round]) -> Interval {
    let pairs = rounds.iter().filter_map(|round| {
        let other = stock.iter().find(|other| other.pass == round.pass)?;
        Some((round.figure() / other.figure()).ln())
    });
    of_logs(&pairs.collect::<Vec<f64>>())
}

/// A thread's operations over the mean of all threads: the median of the rounds.
fn share(rounds: &[Round], threads: usize, of: fn(&Round) -> u64) -> Option<f64> {
    let share = |round: &Round| of(round) as f64 * threads as f64 / round.operations as f64;
    let share = median(&rounds.iter().map(share).collect::<Vec<_>>());
    share.is_finite().then_some(share)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;
    use crate::rows::ROWS;

    fn rounds(rates: &[u64]) -> Vec<Round> {
        let round = |(pass, &operations): (usize, &u64)| Round {
            pass: pass as u32,
            seconds: 1.0,
            operations,
            least: operations / 4,
            most: operations / 2,
            retries: Some(operations * 2),
            switches: Some(operations / 10),
            shootdowns: Some(operations / 2),
            bytes: None,
        };
        rates.iter().enumerate().map(round).collect()
    }

    /// A report of the first row with two threads, its arms after the second without rounds.
    pub(crate) fn sample() -> Report {
        let mut measured = Measured::of(&ROWS[0], 1);
        measured.rounds[0][0] = rounds(&[1000, 2000, 1500, 1000, 2000]);
        measured.rounds[1][0] = rounds(&[3000, 6000, 4500, 3000, 6000]);
        measured.absent[2][0] = Some("no such lock here".into());
        let name = "\"passes\" at a.rs:7 (acquire)".to_owned();
        measured.locks[1] =
            Some(Place { name, waits_alone: false, count: 900, contended: 30, seconds: 0.25 });
        let mut report = Report::begin(Duration::from_secs(1), 5);
        report.add(&ROWS[0], &[2], &measured);
        report
    }

    #[test]
    fn ratios_compare_rounds_of_the_same_pass() {
        let report = sample();
        let [stock, other] = &report.rows[0].points[..] else { panic!("two arms have rounds") };
        assert!(stock.ratio.is_none() && stock.figure.value == 1500.0);
        let ratio = other.ratio.expect("a ratio to the stock state");
        assert!((ratio.value - 3.0).abs() < 1e-9 && (ratio.high - ratio.low).abs() < 1e-9);
        assert_eq!((other.least, other.most, other.retries), (Some(0.5), Some(1.0), Some(2.0)));
        assert_eq!((other.shootdowns, other.switches), (Some(0.5), Some(0.1)));
    }

    #[test]
    fn a_row_is_judged_by_its_published_arm_and_the_engines_with_the_most_threads() {
        let row = ROWS.iter().find(|row| row.id == "sleep-lock").unwrap();
        let mut measured = Measured::of(row, 2);
        for (arm, rates) in [[1000, 1000], [4000, 500], [500, 3000]].into_iter().enumerate() {
            measured.rounds[arm] = rates.map(|rate| rounds(&[rate; 5])).to_vec();
        }
        let mut report = Report::begin(Duration::from_secs(1), 5);
        report.add(row, &[1, 64], &measured);
        let here = report.rows[0].here();
        assert_eq!((here.threads, here.is_size), (64, false));
        let words = "; shown: the engine's own arm alone; against the report's direction: published";
        assert!(
            here.words().starts_with("needs many cores, 8 in the report (") && here.words().ends_with(words)
        );
    }

    #[test]
    fn a_row_names_the_fewer_threads_with_which_an_arm_is_against_the_report() {
        let row = ROWS.iter().find(|row| row.id == "sleep-lock").unwrap();
        let mut measured = Measured::of(row, 4);
        for (arm, rates) in [[1000; 4], [500, 4000, 500, 500], [500, 1000, 1000, 500]].into_iter().enumerate()
        {
            measured.rounds[arm] = rates.map(|rate| rounds(&[rate; 5])).to_vec();
        }
        let mut report = Report::begin(Duration::from_secs(1), 5);
        report.add(row, &[1, 2, 4, 64], &measured);
        let expected =
            "With fewer threads, against the report's direction: published with 1 and 4; allcore with 1.";
        assert!(report.rows[0].text().contains(&expected.to_owned()), "{:?}", report.rows[0].text());
        assert_eq!(sample().rows[0].against(), None);
    }

    #[test]
    fn a_row_names_the_arms_whose_slowest_thread_did_nothing() {
        let mut measured = Measured::of(&ROWS[0], 2);
        let idle =
            |rounds: &mut Vec<Round>, count| rounds[..count].iter_mut().for_each(|round| round.least = 0);
        for (arm, count) in [(0, 2), (1, 3)] {
            measured.rounds[arm] = vec![rounds(&[1000; 5]); 2];
            measured.rounds[arm].iter_mut().for_each(|rounds| idle(rounds, count));
        }
        let mut report = Report::begin(Duration::from_secs(1), 5);
        report.add(&ROWS[0], &[1, 64], &measured);
        let expected = "The slowest thread did nothing in most rounds: test-first with 1 and 64.";
        assert_eq!(report.rows[0].idle(), Some(expected.to_owned()));
        assert_eq!(sample().rows[0].idle(), None);
    }

    #[test]
    fn an_arm_is_absent_with_the_threads_that_it_was_refused() {
        let reason = |reason: &str| Some(reason.to_owned());
        let reasons = [None, reason("no memory"), reason("no files"), reason("no memory")];
        let absent = Absent::of("mcs", &[1, 4, 16, 64], &reasons);
        let lines: Vec<String> = absent.iter().map(|absent| absent.line(true)).collect();
        let expected = ["mcs with 4 and 64 threads: no memory", "mcs with 16 threads: no files"];
        assert_eq!(lines, expected.map(|line| format!("Not measured: {line}.")));
        assert_eq!(absent[1].line(false), "Not measured: mcs: no files.");
    }

    #[test]
    fn a_count_that_an_arm_does_not_have_is_no_zero() {
        let mut measured = Measured::of(&ROWS[0], 1);
        measured.rounds[0][0] = rounds(&[1000]);
        let mut uncounted = rounds(&[1000]);
        (uncounted[0].retries, uncounted[0].switches) = (None, None);
        measured.rounds[1][0] = uncounted;
        let mut report = Report::begin(Duration::from_secs(1), 1);
        report.add(&ROWS[0], &[2], &measured);
        let cells = |point: usize| report.rows[0].points[point].cells()[7..9].join(" ");
        assert_eq!((cells(0).as_str(), cells(1).as_str()), ("2.00 0.100", "- -"));
    }

    #[test]
    fn a_stored_run_gives_the_same_outputs_and_another_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, report) = (folder.path().join("run.json"), sample());
        fs::write(&path, report.json()).unwrap();
        let stored = Report::stored(&path).unwrap();
        assert_eq!((stored.table(120), stored.json()), (report.table(120), report.json()));
        fs::write(&path, report.json().replace("\"version\": 5", "\"version\": 4")).unwrap();
        let fault = Report::stored(&path).unwrap_err();
        assert!(fault.contains("no run of version 5: measure again with --json"), "{fault}");
    }

    #[test]
    fn the_table_and_json_have_what_was_measured() {
        let report = sample();
        let table = report.table(120);
        assert!(table.contains("test-and-set") && !table.contains("mcs"), "{table}");
        assert!(table.contains("Not measured: ticket: no such lock here."), "{table}");
        let locks = "\"passes\" at a.rs:7 (acquire), 30 of 900 waited. The threads waited 0.250 s together";
        assert!(table.contains(&format!("Locks of test-first with 2 threads: {locks}")), "{table}");
        assert!(table.contains("50%, 100%") && table.contains("3.00"), "{table}");
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["rows"][0]["points"][1]["measured"].as_array().unwrap().len(), 5);
        assert_eq!(json["rows"][0]["points"][1]["part"], "step");
    }
}
