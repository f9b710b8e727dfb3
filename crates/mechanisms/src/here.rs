//! Whether a run shows a row: its ratios with the most threads, beside the direction of the report.
//!
//! What must hold: the words come from the run's own ratios. A row keeps the mark that it had
//! before the run, and its ratios are judged all the same.

use lab::{Interval, Verdict, figures};

/// The ratios of a row to its stock state, with the most threads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Here<'a> {
    pub threads: usize,
    /// The published fix's; absent without a figure.
    pub published: Option<&'a Interval>,
    /// The engine's own arm's; absent without a figure.
    pub own: Option<&'a Interval>,
    /// Whether the figure is a size, and less of it the direction of the report.
    pub is_size: bool,
    /// The row's mark: what its published gain needs, named before the run.
    pub needs: Option<&'a str>,
}

impl Here<'_> {
    /// The words of the row in the table of all rows.
    pub fn words(&self) -> String {
        let words = self.judged();
        self.needs.map_or(words.clone(), |needs| format!("{needs}; {words}"))
    }

    /// The sentences above the row's table: the ratios, the mark and the verdict.
    pub fn sentences(&self) -> String {
        let ratios = [("published", self.published), ("allcore", self.own)];
        let ratio = |(arm, ratio): (&str, Option<&Interval>)| {
            Some(format!("{arm} / stock {}", figures::ratio(ratio?)))
        };
        let ratios: Vec<String> = ratios.into_iter().filter_map(ratio).collect();
        let mut sentences = Vec::new();
        if !ratios.is_empty() {
            sentences.push(format!("With {} threads {}.", self.threads, ratios.join(", ")));
        }
        sentences.extend(self.needs.map(sentence));
        sentences.push(sentence(&self.judged()));
        sentences.join(" ")
    }

    fn judged(&self) -> String {
        let arms = [("published", self.published), ("own", self.own)];
        let judged = arms.map(|(name, ratio)| (name, ratio.map(|ratio| self.verdict(ratio))));
        let with = |verdict| -> Vec<String> {
            judged.iter().filter(|(_, of)| *of == Some(verdict)).map(|(name, _)| (*name).to_owned()).collect()
        };
        let (shown, against) = (with(Verdict::More), with(Verdict::Less));
        let mut words = Vec::new();
        if let [one] = &shown[..] {
            let is_alone = judged.iter().all(|(_, verdict)| verdict.is_some());
            words.push(match (is_alone, one.as_str()) {
                (true, "own") => "shown: the engine's own arm alone".to_owned(),
                (true, one) => format!("shown: {one} alone"),
                (false, one) => format!("shown: {one}"),
            });
        } else if !shown.is_empty() {
            words.push(format!("shown: {}", figures::list(&shown)));
        }
        if !against.is_empty() {
            words.push(format!("against the report's direction: {}", figures::list(&against)));
        }
        match judged {
            _ if !words.is_empty() => words.join("; "),
            [(_, None), (_, None)] => "not measured".to_owned(),
            _ if !with(Verdict::Unknown).is_empty() => "unproven: too few rounds".to_owned(),
            _ => "not shown here".to_owned(),
        }
    }

    /// The names of the arms that are against the report's direction.
    pub fn against(&self) -> Vec<&'static str> {
        let arms = [("published", self.published), ("allcore", self.own)];
        let is_against =
            |ratio: Option<&Interval>| ratio.is_some_and(|ratio| self.verdict(ratio) == Verdict::Less);
        arms.into_iter().filter(|(_, ratio)| is_against(*ratio)).map(|(name, _)| name).collect()
    }

    /// How an arm compares with the stock state: `More` is the direction of the report.
    fn verdict(&self, ratio: &Interval) -> Verdict {
        match ratio.verdict() {
            Verdict::More if self.is_size => Verdict::Less,
            Verdict::Less if self.is_size => Verdict::More,
            verdict => verdict,
        }
    }
}

/// Words as a sentence of their own.
fn sentence(words: &str) -> String {
    let mut characters = words.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    format!("{}{}.", first.map_or(String::new(), String::from), characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVEN: Option<&Interval> = Some(&Interval { value: 1.0, low: 0.9, high: 1.1 });
    const MORE: Option<&Interval> = Some(&Interval { value: 2.0, low: 1.8, high: 2.2 });
    const LESS: Option<&Interval> = Some(&Interval { value: 0.5, low: 0.45, high: 0.55 });
    const ONE_ROUND: Option<&Interval> = Some(&Interval { value: 2.0, low: f64::NAN, high: f64::NAN });

    fn here<'a>(published: Option<&'a Interval>, own: Option<&'a Interval>) -> Here<'a> {
        Here { threads: 64, published, own, is_size: false, needs: None }
    }

    #[test]
    fn the_words_follow_the_ratios_of_the_run() {
        for (published, own, expected) in [
            (MORE, MORE, "shown: published and own"),
            (EVEN, MORE, "shown: the engine's own arm alone"),
            (MORE, EVEN, "shown: published alone"),
            (EVEN, EVEN, "not shown here"),
            (LESS, EVEN, "against the report's direction: published"),
            (LESS, LESS, "against the report's direction: published and own"),
            (LESS, MORE, "shown: the engine's own arm alone; against the report's direction: published"),
            (MORE, LESS, "shown: published alone; against the report's direction: own"),
            (MORE, None, "shown: published"),
            (None, MORE, "shown: own"),
            (None, EVEN, "not shown here"),
            (ONE_ROUND, EVEN, "unproven: too few rounds"),
            (None, None, "not measured"),
        ] {
            assert_eq!(here(published, own).words(), expected);
        }
    }

    #[test]
    fn a_mark_set_beforehand_stays_beside_the_figures_of_the_run() {
        let spin =
            Here { needs: Some("needs many cores, 32 in the report (waiters poll)"), ..here(LESS, EVEN) };
        let expected =
            "needs many cores, 32 in the report (waiters poll); against the report's direction: published";
        assert_eq!(spin.words(), expected);
        let sentences = [
            "With 64 threads published / stock 0.50 (0.45 to 0.55), allcore / stock no difference.",
            "Needs many cores, 32 in the report (waiters poll).",
            "Against the report's direction: published.",
        ];
        assert_eq!(spin.sentences(), sentences.join(" "));
        assert_eq!(here(None, None).sentences(), "Not measured.");
    }

    #[test]
    fn fewer_bytes_are_the_direction_of_a_row_of_sizes() {
        let tables = Here { is_size: true, ..here(LESS, MORE) };
        assert_eq!(tables.words(), "shown: published alone; against the report's direction: own");
        assert_eq!(tables.against(), ["allcore"]);
        assert_eq!(here(LESS, MORE).against(), ["published"]);
        assert!(here(EVEN, ONE_ROUND).against().is_empty());
    }
}
