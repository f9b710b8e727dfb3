//! The progress of a run on standard error; standard output belongs to the report.
//!
//! Each finished round and each note is a line. On a terminal, a bar below them shows the round
//! under way.
//!
//! What must hold: a failed write changes nothing about a run. The view reads no keys, so that
//! Ctrl-C reaches the sweep.

use std::fmt;
use std::io::{Write, stderr};
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::figures;
use crate::record::{Point, Round};
use crate::sweep::{Progress, Stage};

/// The view that suits standard error: a bar on a terminal, lines elsewhere.
pub fn progress() -> Box<dyn Progress> {
    let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    let bar = ProgressBar::no_length();
    bar.set_draw_target(match dumb {
        true => ProgressDrawTarget::hidden(),
        false => ProgressDrawTarget::stderr(),
    });
    Box::new(View::new(stderr(), bar))
}

/// Writes a line beside the run, such as its present step.
pub fn say(line: &str) {
    // Behind a pipe, Ctrl-C ends the reader as well.
    let _ = writeln!(stderr(), "{}", figures::plain(line));
}

/// The bar, and the lines above it, which go to `out` where the bar is hidden.
struct View<W> {
    out: W,
    bar: ProgressBar,
    stage: Option<Stage>,
    /// The last tick: transactions done, and how long ago the round began.
    last: (u64, Duration),
}

impl<W: Write> View<W> {
    fn new(out: W, bar: ProgressBar) -> Self {
        let style = ProgressStyle::with_template("[{pos}/{len}] [{bar:20}] {left}{wide_msg}");
        let style = style.expect("a valid template").with_key("left", time_left);
        bar.set_style(style.progress_chars("=> "));
        Self { out, bar, stage: None, last: Default::default() }
    }

    fn line(&mut self, line: &str) {
        let line = figures::plain(line);
        if self.bar.is_hidden() {
            let _ = writeln!(self.out, "{line}");
        } else {
            self.bar.println(line);
        }
    }
}

impl<W: Write + Send> Progress for View<W> {
    fn begin(&mut self, stage: &Stage) {
        self.bar.set_length(rounds(stage));
        self.bar.set_position(stage.rounds_done as u64);
        self.bar.set_message(figures::plain(&point(stage)));
        (self.stage, self.last) = (Some(stage.clone()), Default::default());
    }

    fn tick(&mut self, done: u64, since: Duration) {
        let before = std::mem::replace(&mut self.last, (done, since));
        let (done, passed) = (done.saturating_sub(before.0) as f64, since.saturating_sub(before.1));
        let Some(stage) = self.stage.as_ref().filter(|_| !passed.is_zero()) else { return };
        let tps = figures::number(done / passed.as_secs_f64());
        // A narrow terminal cuts the end off.
        self.bar.set_message(figures::plain(&format!("{tps} tps: {}", point(stage))));
    }

    fn end(&mut self, round: &Round, _: &Point) {
        let Some(stage) = self.stage.take() else { return };
        let latency = &round.latency;
        self.line(&format!(
            "[{}/{}] {}: {} tps, p50 {} p99 {} ms{}",
            stage.rounds_done + 1,
            rounds(&stage),
            point(&stage),
            figures::number(round.tps),
            figures::number(latency.p50),
            figures::number(latency.p99),
            failures(round),
        ));
    }

    fn note(&mut self, line: &str) {
        self.line(line);
    }
}

impl<W> Drop for View<W> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The time that the rounds ahead take. Nothing is known of it before the first round is done.
fn time_left(bar: &ProgressState, out: &mut dyn fmt::Write) {
    if bar.pos() > 0 {
        // The bar is drawn again in a moment.
        let _ = write!(out, "{:#} left, ", HumanDuration(bar.eta()));
    }
}

/// Rounds of the run: those done and those planned.
fn rounds(stage: &Stage) -> u64 {
    (stage.rounds_done + 1 + stage.rounds_ahead) as u64
}

/// The point that a round belongs to.
fn point(stage: &Stage) -> String {
    let Stage { workload, protocol, arm, clients, .. } = stage;
    format!("{workload}, {}, {}, {arm}", protocol.name(), figures::clients(*clients))
}

/// The failures of a round, with a comma before them; empty if it had none.
fn failures(round: &Round) -> String {
    let failed: u64 = round.kinds.iter().fold(0, |sum, kind| sum.saturating_add(kind.failed));
    let mut text = String::new();
    if failed > 0 {
        text.push_str(&format!(", {failed} failed"));
    }
    if let Some((clients, why)) = &round.lost_clients {
        text.push_str(&format!(", {} lost: {why}", figures::clients(*clients)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;
    use crate::tests::golden;

    /// A stage of a run of ten rounds.
    fn stage(point: &Point, done: usize) -> Stage {
        Stage {
            arm: point.arm.clone(),
            workload: point.workload.clone(),
            protocol: point.protocol,
            clients: point.clients,
            rounds_done: done,
            rounds_ahead: 9 - done,
        }
    }

    #[test]
    fn each_round_and_each_note_is_one_line() {
        let report = samples::two_arms();
        let mut view = View::new(Vec::new(), ProgressBar::hidden());
        view.begin(&stage(&report.points[0], 4));
        view.tick(1_000, Duration::from_secs(1));
        view.end(&report.points[0].rounds[1], &report.points[0]);
        let last = report.points.last().unwrap();
        view.begin(&stage(last, 5));
        view.end(&last.rounds[0], last);
        view.note("arm pg18: the server\nwent away\u{1b}[2J");
        let text = String::from_utf8(std::mem::take(&mut view.out)).unwrap();
        golden("view_lines", &text);
    }

    #[test]
    fn the_bar_shows_the_throughput_between_two_ticks() {
        let report = samples::two_arms();
        let mut view = View::new(Vec::new(), ProgressBar::hidden());
        view.begin(&stage(&report.points[0], 4));
        assert_eq!((view.bar.position(), view.bar.length()), (4, Some(10)));
        assert_eq!(view.bar.message(), "select-only, prepared, 1 client, allcore");
        view.tick(500, Duration::from_millis(500));
        view.tick(2_500, Duration::from_secs(1));
        assert_eq!(view.bar.message(), "4,000 tps: select-only, prepared, 1 client, allcore");
    }
}
