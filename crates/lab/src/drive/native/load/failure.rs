//! Handles a server's errors. The client rolls the transaction back, and tries it again, begins
//! another or gives it up; or the client can't go on. In a pipeline the error comes when all
//! statements are answered, and names its statement.
//!
//! What must hold: the driver counts an error once, however many statements the server skipped
//! because of it.

use super::{After, Doing, Thread};
use crate::client::StatementId;
use crate::drive::wire::{Failure, Remedy, Wire};
use crate::workload::Workload;

impl<W: Wire> Thread<'_, W> {
    /// An answer with an error has come.
    pub(super) fn failed(&mut self, place: usize, now: u64) {
        let slot = &mut self.slots[place];
        let Failure { code, behind, .. } = slot.answer.failure;
        let statement = slot.sent.get(behind).or(slot.sent.last()).copied();
        slot.sent.clear();
        let tolerated = self.round.tolerated.contains(&code.to_string().as_str());
        let (round, wire) = (self.round, self.wire);
        let about = || statement.map_or_else(String::new, |one| about(round.workload, one, wire.text(one)));
        self.tally.error(&slot.answer.failure, tolerated, now, about);
        let after = match code.remedy() {
            _ if matches!(slot.doing, Doing::RollingBack(_)) => return self.lose_by_failure(place, None),
            _ if tolerated => After::Anew,
            Remedy::Nothing => return self.lose_by_failure(place, statement),
            Remedy::Again if slot.tries < self.round.load.tries.max(1) => After::Again,
            Remedy::Again | Remedy::Next => After::Next,
        };
        self.out.clear();
        if self.wire.rollback(&mut slot.session, &mut self.out) {
            slot.doing = Doing::RollingBack(after);
            self.send(place);
        } else {
            self.rolled_back(place, after, now);
        }
    }

    pub(super) fn rolled_back(&mut self, place: usize, after: After, now: u64) {
        let slot = &mut self.slots[place];
        slot.answer.reply.clear();
        let kind = slot.client.failed(after == After::Again);
        self.tally.failed(kind, after != After::Next, now);
        slot.tries += u32::from(after == After::Again);
        if after != After::Next || self.pause(place, now) {
            self.advance(place, now);
        }
    }

    /// Loses a client to a server's error, in this statement, where it is known.
    pub(super) fn lose_by_failure(&mut self, place: usize, statement: Option<StatementId>) {
        let failure = std::mem::take(&mut self.slots[place].answer.failure);
        let (wire, workload) = (self.wire, self.round.workload);
        self.lose(place, || {
            let advice = failure.code.advice().map(|advice| format!("; {advice}")).unwrap_or_default();
            match statement {
                Some(one) => {
                    let text = in_a_line(wire.text(one));
                    format!("{}: {failure} (running `{text}`){advice}", workload.place(one))
                }
                None => format!("{failure}{advice}"),
            }
        });
    }
}

/// Names an error's statement: its number and its first words.
fn about(workload: &dyn Workload, statement: StatementId, text: &str) -> String {
    const MOST: usize = 50;
    let words: String = in_a_line(text).chars().take(MOST).collect();
    let more = if words.len() < text.len() { "..." } else { "" };
    format!("{}, `{}{more}`", workload.place(statement), words.trim_end())
}

/// A statement's text in one line. Each character keeps its position, because the server counts
/// them.
fn in_a_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}
