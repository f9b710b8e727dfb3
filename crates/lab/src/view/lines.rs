//! Plain lines: one for each finished round, one for each note.

use std::io::Write;
use std::time::Duration;

use crate::figures;
use crate::record::{Point, Round};
use crate::sweep::{Progress, Stage};

/// Writes lines to `out`.
#[derive(Debug)]
pub(super) struct Lines<W> {
    out: W,
    stage: Option<Stage>,
}

impl<W: Write> Lines<W> {
    pub(super) fn new(out: W) -> Self {
        Self { out, stage: None }
    }

    fn line(&mut self, line: &str) {
        // Nobody looking is no reason to end a run.
        let _ = writeln!(self.out, "{}", figures::plain(line));
    }
}

impl<W: Write + Send> Progress for Lines<W> {
    fn begin(&mut self, stage: &Stage) {
        self.stage = Some(stage.clone());
    }

    fn tick(&mut self, _: u64, _: Duration, _: Duration) {}

    fn end(&mut self, round: &Round, _: &Point) {
        let Some(stage) = self.stage.take() else { return };
        let all = stage.rounds_done + 1 + stage.rounds_ahead;
        let latency = &round.latency;
        self.line(&format!(
            "[{}/{all}] {}, {}, {}, {}: {} tps, p50 {} p99 {} ms{}",
            stage.rounds_done + 1,
            stage.workload,
            stage.protocol.name(),
            figures::clients(stage.clients),
            stage.arm,
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

/// What went wrong in a round, with a comma before it; empty if nothing did.
pub(super) fn failures(round: &Round) -> String {
    let failed: u64 = round.kinds.iter().fold(0, |sum, kind| sum.saturating_add(kind.failed));
    let mut text = String::new();
    if failed > 0 {
        text.push_str(&format!(", {failed} failed"));
    }
    if let Some((clients, why)) = &round.lost_clients {
        text.push_str(&format!(", {clients} clients lost: {why}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;
    use crate::view::state::tests::stage;

    #[test]
    fn each_round_and_each_note_is_one_line() {
        let report = samples::two_arms();
        let mut lines = Lines::new(Vec::new());
        lines.begin(&stage(&report.points[0], 4));
        lines.tick(1_000, Duration::from_secs(8), Duration::from_secs(1));
        lines.end(&report.points[0].rounds[1], &report.points[0]);
        let last = report.points.last().unwrap();
        lines.begin(&stage(last, 5));
        lines.end(&last.rounds[0], last);
        lines.note("arm pg18: the server\nwent away");
        let text = String::from_utf8(lines.out).unwrap();
        assert_eq!(
            text,
            "[5/10] select-only, prepared, 1 client, allcore: 16,126 tps, p50 0.056 p99 0.192 ms\n\
             [6/10] select-only, prepared, 256 clients, pg18: 23,572 tps, p50 9.77 p99 33.7 ms, 1 failed\n\
             arm pg18: the server went away\n"
        );
    }
}
