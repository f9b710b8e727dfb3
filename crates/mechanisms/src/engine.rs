//! The variants on the engine's own path: what stored runs of the lab say of each row.
//!
//! The first arm of such a run is the engine with its own mechanisms. Each other arm has the name
//! of its variant, `pin stock` for `--variant pin=stock`. An arm's ratio is to the first one, by
//! rounds of the same pass. The arm [`AGAIN`] is the first one a second time. Its ratios show the
//! differences that chance makes.

use std::path::Path;

use lab::{Interval, Part, Point, Report, Verdict, figures};

use crate::rows::ROWS;

/// The arm with the engine's own mechanisms a second time.
const AGAIN: &str = "engine again";
/// The sentence on that arm.
const CHANCE: &str = "The arm \"engine again\" is the engine's own a second time: its cells show what chance \
                      alone makes. A variant has an effect where it differs by more.";
/// The sentence where a run is without it.
const NO_CHANCE: &str = "A run without the arm \"engine again\", the engine's own a second time, does not show \
                         what chance alone makes.";

/// The stock hand, which moves by one frame.
pub(crate) const ONE_BY_ONE: &str = "clock-hand stock";
/// An arm with a number behind this claims as many frames at a time. The published hand claims one
/// on one NUMA node, so its name does not say how many.
const BATCH: &str = "clock-hand batch ";

/// The runs of `scripts/measure.sh` whose data are larger than the buffers.
const EVICTING: [&str; 3] = ["eviction", "small", "small-writes"];
/// The rows that work where pages leave the buffers, and the sentence on them in other runs.
const OF_MISSES: [&str; 3] = ["clock-hand", "free-queues", "file-lock"];
const HARDLY_RUNS: &str = "All pages fit the buffers in this run, so this mechanism hardly runs. A difference is \
                           chance, or the cost of the hook.";
/// The sentence on `preload`.
const TOUCHED_BEFORE: &str = "The first use of memory touches it. The load before the rounds uses nearly all \
                              memory that they need, so this mechanism hardly runs in them. A difference is \
                              chance, or the cost of the hook.";
/// The sentence on `file-lock`.
const HARSHER: &str = "Stock is harsher here than in the report. It holds the lock until the device answers, \
                       where the report's kernel held it for a copy from memory.";

/// A stored run of the lab over some variants.
#[derive(Debug)]
pub(crate) struct Run {
    /// The name of its file, without `.json`.
    name: String,
    report: Report,
}

impl Run {
    /// Reads a run.
    ///
    /// # Errors
    /// A line: the file is no stored run of one workload on the engine and its variants.
    pub fn stored(path: &Path) -> Result<Self, String> {
        let report = lab::stored(path).map_err(|fault| format!("--engine {fault}"))?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let run = Self { name, report };
        let fault = |fault: &str| Err(format!("--engine {}: {fault}", path.display()));
        let kinds = |point: &Point| (point.workload.clone(), point.protocol);
        if run.report.points.iter().any(|point| kinds(point) != kinds(&run.report.points[0])) {
            return fault("it has several workloads: give each a run of its own");
        }
        if ROWS.iter().any(|row| is_of(run.own(), row.id)) {
            return fault("its first arm is a variant, and not the engine itself");
        }
        if run.variants().next().is_none() {
            return Err(format!(
                "--engine {}: no arm behind the first is named as a variant, such as 'pin stock': \
                 measure with scripts/measure.sh variants",
                path.display()
            ));
        }
        Ok(run)
    }

    /// The arms that are variants, in the order of the rows.
    fn variants(&self) -> impl Iterator<Item = &str> {
        let of_row = |id: &'static str| self.names().filter(move |name| is_of(name, id));
        ROWS.iter().flat_map(move |row| of_row(row.id))
    }

    /// The name of its file, without `.json`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The facts of its machine.
    pub fn machine(&self) -> &[(String, String)] {
        &self.report.machine.facts
    }

    /// The engine's own arm a second time, if the run has one.
    fn again(&self) -> Option<&str> {
        self.names().find(|name| *name == AGAIN)
    }

    /// The names of all arms but the first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.report.arms.iter().skip(1).map(|arm| arm.name.as_str())
    }

    /// The engine's own arm.
    pub fn own(&self) -> &str {
        self.report.arms.first().map_or("", |arm| &arm.name)
    }

    fn point(&self, arm: &str, clients: usize) -> Option<&Point> {
        self.report.points.iter().find(|point| point.arm == arm && point.clients == clients)
    }

    /// The numbers of clients, ascending.
    pub fn clients(&self) -> Vec<usize> {
        let mut clients: Vec<usize> = self.report.points.iter().map(|point| point.clients).collect();
        clients.sort_unstable();
        clients.dedup();
        clients
    }

    /// The throughput of an arm over that of another one, if the run has both.
    pub fn ratio(&self, arm: &str, over: &str, clients: usize) -> Option<Interval> {
        Some(lab::ratio(self.point(over, clients)?, self.point(arm, clients)?))
    }

    /// The load, and when it was measured.
    fn about(&self) -> String {
        let load: Vec<String> =
            self.report.load.iter().map(|(name, value)| format!("{name} {value}")).collect();
        let workload = self.report.points.first().map_or("", |point| &point.workload);
        let began = self.report.began.split('T').next().unwrap_or_default();
        format!("{}: {workload}; {}; measured {began}.", self.name, load.join(", "))
    }

    /// A row on the engine, if the run has an arm of it.
    fn part(&self, row: &str) -> Option<Part<'_>> {
        let arms: Vec<&str> = self.names().filter(|name| is_of(name, row)).collect();
        if arms.is_empty() {
            return None;
        }
        let arms: Vec<&str> = std::iter::once(self.own()).chain(self.again()).chain(arms).collect();
        let cells = |point: &Point| {
            vec![
                point.clients.to_string(),
                point.arm.clone(),
                figures::number(point.tps.value),
                figures::spread(&point.tps),
                point.ratio.as_ref().map_or(String::new(), figures::ratio),
            ]
        };
        let clients = self.clients();
        let rows = clients.iter().flat_map(|clients| arms.iter().map(|arm| self.point(arm, *clients)));
        let line = |arm: &&str| -> Vec<(usize, Interval)> {
            clients.iter().filter_map(|count| Some((*count, self.point(arm, *count)?.tps))).collect()
        };
        Some(Part {
            title: format!("{row} on the engine: {}", self.name),
            text: caveats(row, &self.name),
            heads: ["clients", "arm", "transactions/s", "±", "arm / allcore"].map(str::to_owned).to_vec(),
            rows: rows.flatten().map(cells).collect(),
            axes: ("clients", "transactions a second"),
            lines: arms.iter().map(|arm| (*arm, line(arm))).collect(),
        })
    }
}

/// The frames that an arm of the hand claims at a time, if its name says so.
pub(crate) fn batch(arm: &str) -> Option<usize> {
    arm.strip_prefix(BATCH)?.parse().ok()
}

/// The name of the arm that claims so many frames at a time.
pub(crate) fn batch_of(frames: usize) -> String {
    format!("{BATCH}{frames}")
}

/// The sentences above a row's table in the run of this name.
fn caveats(row: &str, run: &str) -> Vec<String> {
    let hardly_runs = OF_MISSES.contains(&row) && !EVICTING.contains(&run);
    let caveats =
        [(row == "file-lock", HARSHER), (hardly_runs, HARDLY_RUNS), (row == "preload", TOUCHED_BEFORE)];
    caveats.into_iter().filter(|(holds, _)| *holds).map(|(_, caveat)| caveat.to_owned()).collect()
}

/// The hands that move by batches over the one that moves one by one: each cell's name, and ratio.
fn hands(runs: &[Run]) -> Vec<(String, Interval)> {
    let cell = |run: &Run, arm: &str, clients: usize| {
        let ratio = run.ratio(arm, ONE_BY_ONE, clients)?;
        Some((format!("{arm} in {} with {clients} clients", run.name), ratio))
    };
    let is_batch = |arm: &str| batch(arm) > Some(1);
    let mut cells = Vec::new();
    for run in runs {
        for arm in run.names().filter(|arm| is_batch(arm)) {
            cells.extend(run.clients().into_iter().filter_map(|clients| cell(run, arm, clients)));
        }
    }
    cells
}

/// A sentence on such cells: those in which batches are slower. `None` without cells.
fn judged(cells: &[(String, Interval)]) -> Option<String> {
    let of = |verdict| cells.iter().filter(move |(_, ratio)| ratio.verdict() == verdict);
    let slower = of(Verdict::Less).map(|(name, ratio)| format!("{name}, {}", figures::ratio(ratio)));
    let slower = slower.collect::<Vec<_>>().join("; ");
    (!cells.is_empty()).then(|| {
        format!(
            "Hands that move by batches, each over the hand that moves one by one ({ONE_BY_ONE}), in {} cells \
             of arm and clients. Slower beyond its interval: {}. Too few rounds to say: {}.",
            cells.len(),
            if slower.is_empty() { "none" } else { &slower },
            of(Verdict::Unknown).count()
        )
    })
}

/// A name that two runs have: their parts and plots would have the same, too.
pub(crate) fn repeated(runs: &[Run]) -> Option<&str> {
    let is_repeated = |(at, run): &(usize, &Run)| runs[..*at].iter().any(|other| other.name == run.name);
    runs.iter().enumerate().find(is_repeated).map(|(_, run)| run.name.as_str())
}

/// Whether an arm is a variant of this row.
fn is_of(arm: &str, row: &str) -> bool {
    arm.split_once(' ').is_some_and(|(of, _)| of == row)
}

/// The ratios of all variants in all runs.
pub(crate) fn summary(runs: &[Run]) -> Option<Part<'_>> {
    let mut clients: Vec<usize> = runs.iter().flat_map(Run::clients).collect();
    clients.sort_unstable();
    clients.dedup();
    let row = |run: &Run, arm: &str| {
        let ratio = |clients: &usize| {
            let ratio = run.point(arm, *clients).and_then(|point| point.ratio.as_ref());
            ratio.map_or(String::new(), figures::ratio)
        };
        let names = [arm.to_owned(), run.name.clone()];
        names.into_iter().chain(clients.iter().map(ratio)).collect::<Vec<_>>()
    };
    let rows = |run| Run::again(run).into_iter().chain(run.variants()).map(move |arm| row(run, arm));
    let explained = "Each variant runs in place of the engine's own mechanism, or beside it. A cell is its \
                     throughput over that of the engine's own, by clients. Some 5 cells of 100 differ by \
                     chance alone.";
    let again = if runs.iter().all(|run| run.again().is_some()) { CHANCE } else { NO_CHANCE };
    let about = runs.iter().map(Run::about);
    (!runs.is_empty()).then(|| Part {
        title: "All variants on the engine".to_owned(),
        text: [explained, again]
            .map(str::to_owned)
            .into_iter()
            .chain(judged(&hands(runs)))
            .chain(about)
            .collect(),
        heads: ["arm", "run"]
            .into_iter()
            .map(str::to_owned)
            .chain(clients.iter().map(usize::to_string))
            .collect(),
        rows: runs.iter().flat_map(rows).collect(),
        axes: ("", ""),
        lines: Vec::new(),
    })
}

/// A row in each run that has it.
pub(crate) fn parts<'a>(runs: &'a [Run], row: &'a str) -> impl Iterator<Item = Part<'a>> {
    runs.iter().filter_map(move |run| run.part(row))
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn point(arm: &str, clients: usize, tps: f64, ratio: Option<f64>) -> Value {
        let interval = |value: f64| json!({ "value": value, "low": value * 0.9, "high": value * 1.1 });
        json!({
            "arm": arm, "workload": "select-only", "protocol": "Prepared", "clients": clients,
            "tps": interval(tps), "ratio": ratio.map(interval), "rounds": [], "checks": [],
        })
    }

    /// A stored run of these arms with 1 and 64 clients, on a machine with these facts. Each arm
    /// after the first has half the throughput of the first.
    pub(crate) fn stored(folder: &Path, arms: &[&str], facts: &[(String, String)]) -> std::path::PathBuf {
        let arm = |name: &&str| json!({ "name": name, "dialect": "Postgres", "server": "", "settings": [] });
        let points = arms.iter().enumerate().flat_map(|(at, arm)| {
            let (tps, ratio) = if at == 0 { (1000.0, None) } else { (500.0, Some(0.5)) };
            [1, 64].map(|clients| point(arm, clients, tps, ratio))
        });
        let report = json!({
            "version": 1, "began": "2026-11-27T07:00:00Z", "command": [], "machine": { "facts": facts, "noise": [] },
            "load": [["scale", "20"]], "arms": arms.iter().map(arm).collect::<Vec<_>>(),
            "points": points.collect::<Vec<_>>(), "fits": [], "findings": [], "missing": [],
        });
        let path = folder.join("select-only.json");
        std::fs::write(&path, report.to_string()).unwrap();
        path
    }

    #[test]
    fn a_row_has_its_own_arms_beside_the_engines_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let arms = ["allcore", "pin step", "pin stock", "latch stock"];
        let runs = [Run::stored(&stored(folder.path(), &arms, &[])).unwrap()];
        let pin: Vec<Part<'_>> = parts(&runs, "pin").collect();
        let [pin] = &pin[..] else { panic!("one run has the row: {pin:?}") };
        assert_eq!(pin.title, "pin on the engine: select-only");
        let names: Vec<&str> = pin.lines.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["allcore", "pin step", "pin stock"]);
        assert!(pin.lines.iter().all(|(_, points)| points.len() == 2));
        assert_eq!(pin.rows.len(), 6);
        assert!(pin.rows[1][4].starts_with("0.50"), "{:?}", pin.rows);
        assert_eq!(parts(&runs, "spin").count(), 0);
        let all = summary(&runs).unwrap();
        assert_eq!(all.heads, ["arm", "run", "1", "64"]);
        assert_eq!(
            all.rows.iter().map(|row| &row[0]).collect::<Vec<_>>(),
            ["latch stock", "pin step", "pin stock"]
        );
        assert!(all.text[1].starts_with("A run without the arm \"engine again\""), "{:?}", all.text);
        assert!(all.text[2].starts_with("select-only: select-only; scale 20; measured 2026-11-27."));
        assert!(summary(&[]).is_none());
    }

    #[test]
    fn the_engines_second_arm_comes_first_in_each_table() {
        let folder = tempfile::tempdir().unwrap();
        let arms = ["allcore", "pin stock", AGAIN];
        let runs = [Run::stored(&stored(folder.path(), &arms, &[])).unwrap()];
        let all = summary(&runs).unwrap();
        assert_eq!(all.rows.iter().map(|row| &row[0]).collect::<Vec<_>>(), [AGAIN, "pin stock"]);
        assert!(all.text[1].contains("show what chance alone makes"), "{:?}", all.text);
        let names: Vec<&str> = runs[0].part("pin").unwrap().lines.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["allcore", AGAIN, "pin stock"]);
        assert!(runs[0].part("latch").is_none());
    }

    #[test]
    fn a_sentence_names_the_cells_in_which_batches_are_slower() {
        let folder = tempfile::tempdir().unwrap();
        let arms = [
            "allcore",
            "clock-hand stock",
            "clock-hand published",
            "clock-hand batch 1",
            "clock-hand batch 64",
        ];
        let runs = [Run::stored(&stored(folder.path(), &arms, &[])).unwrap()];
        let cells: Vec<String> = hands(&runs).into_iter().map(|(name, _)| name).collect();
        let expected =
            [1, 64].map(|clients| format!("clock-hand batch 64 in select-only with {clients} clients"));
        assert_eq!(cells, expected);
        assert!(
            summary(&runs).unwrap().text[2]
                .ends_with("Slower beyond its interval: none. Too few rounds to say: 2.")
        );
        let cell = |name: &str, low, high| (name.to_owned(), Interval { value: 0.9, low, high });
        let sentence = judged(&[cell("a", 0.85, 0.95), cell("b", 0.85, 1.05), cell("c", 0.8, 0.99)]).unwrap();
        assert!(
            sentence.contains(
                "in 3 cells of arm and clients. Slower beyond its interval: a, 0.90 (0.85 to 0.95); c, 0.90"
            ),
            "{sentence}"
        );
        assert_eq!(judged(&[]), None);
    }

    #[test]
    fn a_row_that_hardly_runs_says_so_in_the_runs_where_that_holds() {
        let folder = tempfile::tempdir().unwrap();
        let arms = ["allcore", "file-lock stock", "free-queues stock", "pin stock", "preload stock"];
        let mut runs = [Run::stored(&stored(folder.path(), &arms, &[])).unwrap()];
        let texts = |run: &Run| {
            ["file-lock", "free-queues", "pin", "preload"].map(|row| run.part(row).unwrap().text.join(" "))
        };
        let lock = format!("{HARSHER} {HARDLY_RUNS}");
        assert_eq!(texts(&runs[0]), [lock.as_str(), HARDLY_RUNS, "", TOUCHED_BEFORE]);
        runs[0].name = "eviction".into();
        assert_eq!(texts(&runs[0]), [HARSHER, "", "", TOUCHED_BEFORE]);
    }

    #[test]
    fn a_file_without_variants_is_refused_by_a_plain_line() {
        let folder = tempfile::tempdir().unwrap();
        let fault = Run::stored(&stored(folder.path(), &["allcore", "pinned", "pg 18"], &[])).unwrap_err();
        assert!(fault.contains("no arm behind the first is named as a variant"), "{fault}");
        let fault = Run::stored(&stored(folder.path(), &["pin stock", "pin step"], &[])).unwrap_err();
        assert!(fault.contains("its first arm is a variant"), "{fault}");
        let fault = Run::stored(&folder.path().join("none.json")).unwrap_err();
        assert!(fault.starts_with("--engine ") && fault.contains("none.json"), "{fault}");
    }
}
