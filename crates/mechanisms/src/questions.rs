//! The questions that G26 left open, answered by the runs on the engine.
//!
//! Each question is a comparison of two arms. Its answer counts the cells (run and clients) in
//! which the first one does more, less, or the same within the interval.

use lab::{Interval, Part, Verdict, figures};

use crate::engine::{ONE_BY_ONE, Run, batch, batch_of};

/// The engine in ordinary pages.
const ORDINARY: &str = "pinned-memory stock";
/// A session counts as one of hundreds from so many clients on.
const HUNDREDS: usize = 200;

/// A comparison: the question, and each cell's ratio with its name.
struct Answer {
    question: String,
    cells: Vec<(String, Interval)>,
}

impl Answer {
    /// The cells of all runs in which `arm` and `over` give a ratio.
    fn of(
        question: String,
        runs: &[Run],
        wanted: impl Fn(usize) -> bool,
        (arm, over): (impl Fn(&Run) -> String, impl Fn(&Run) -> String),
    ) -> Answer {
        let mut cells = Vec::new();
        for run in runs {
            for clients in run.clients().into_iter().filter(|clients| wanted(*clients)) {
                let ratio = run.ratio(&arm(run), &over(run), clients);
                cells.extend(ratio.map(|ratio| (format!("{}, {clients}", run.name()), ratio)));
            }
        }
        Answer { question, cells }
    }

    fn row(&self) -> Vec<String> {
        let of = |verdict| self.cells.iter().filter(move |(_, ratio)| ratio.verdict() == verdict);
        let count = |verdict| of(verdict).count().to_string();
        let named = |(name, ratio): &(String, Interval)| format!("{name}: {}", figures::ratio(ratio));
        let different: Vec<String> = of(Verdict::More).chain(of(Verdict::Less)).map(named).collect();
        vec![
            self.question.clone(),
            self.cells.len().to_string(),
            count(Verdict::More),
            count(Verdict::Less),
            count(Verdict::Unknown),
            different.join("; "),
        ]
    }
}

/// The batch sizes of all runs, ascending.
fn sizes(runs: &[Run]) -> Vec<usize> {
    let names = runs.iter().flat_map(Run::names);
    let mut sizes: Vec<usize> = names.filter_map(batch).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The questions with their answers. `None` if no run has batches of the hand.
pub(crate) fn part(runs: &[Run]) -> Option<Part<'_>> {
    let sizes = sizes(runs);
    let largest = *sizes.last()?;
    let batch = |size: usize| move |_: &Run| batch_of(size);
    let named = |name: &'static str| move |_: &Run| name.to_owned();
    let mut answers: Vec<Answer> = sizes
        .iter()
        .map(|&size| {
            let question = format!("hundreds of sessions: a batch of {size} over frames one by one");
            let arms = (batch(size), named(ONE_BY_ONE));
            Answer::of(question, runs, |clients| clients >= HUNDREDS, arms)
        })
        .collect();
    answers.push(Answer::of(
        format!("contiguous victims: a batch of {largest} over one of 1"),
        runs,
        |_| true,
        (batch(largest), batch(1)),
    ));
    answers.push(Answer::of(
        "the engine's own pages, huge where the kernel has them, over ordinary ones".to_owned(),
        runs,
        |_| true,
        (|run: &Run| run.own().to_owned(), named(ORDINARY)),
    ));
    Some(Part {
        title: "Questions that G26 left open".to_owned(),
        text: vec![
            "A cell is a run with a number of clients. It counts as more or less where its ratio's interval \
             does not include 1. Some 5 cells of 100 do so by chance alone."
                .to_owned(),
        ],
        heads: ["question", "cells", "more", "less", "too few rounds", "cells with a difference"]
            .map(str::to_owned)
            .to_vec(),
        rows: answers.iter().map(Answer::row).collect(),
        axes: ("", ""),
        lines: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::tests::stored;

    #[test]
    fn the_questions_of_a_run_are_counted_by_cells() {
        let folder = tempfile::tempdir().unwrap();
        let arms = ["allcore", ONE_BY_ONE, "clock-hand batch 1", "clock-hand batch 64", ORDINARY];
        let runs = [Run::stored(&stored(folder.path(), &arms, &[])).unwrap()];
        assert_eq!(sizes(&runs), [1, 64]);
        let part = part(&runs).unwrap();
        let questions: Vec<&str> = part.rows.iter().map(|row| row[0].as_str()).collect();
        assert_eq!(
            questions,
            [
                "hundreds of sessions: a batch of 1 over frames one by one",
                "hundreds of sessions: a batch of 64 over frames one by one",
                "contiguous victims: a batch of 64 over one of 1",
                "the engine's own pages, huge where the kernel has them, over ordinary ones",
            ]
        );
        // The run has 1 and 64 clients.
        assert_eq!(part.rows.iter().map(|row| row[1].as_str()).collect::<Vec<_>>(), ["0", "0", "2", "2"]);
        assert!(part.rows.iter().all(|row| row.len() == part.heads.len()));
    }

    #[test]
    fn runs_without_batches_have_no_questions() {
        let folder = tempfile::tempdir().unwrap();
        let runs = [Run::stored(&stored(folder.path(), &["allcore", "pin stock"], &[])).unwrap()];
        assert!(part(&runs).is_none());
    }
}
