//! The variants on the engine's own path, in an executable built with `--cfg variants`.
//!
//! `allcore serve --variant ROW=ARM,...` names them. [`choose`] sets them once, before the engine
//! starts; its hooks ask [`arm`] and count their runs ([`crate::runs`]). Without that cfg the
//! engine does not import this crate.
//!
//! What must hold: a row that nobody named runs the engine's own mechanism.

use std::fmt;
use std::str::FromStr;

use sync::OnceLock;

/// A mechanism of the engine that a variant can replace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Row {
    /// The clock sweep's hand.
    ClockHand,
    /// A pin for each view on a page.
    Pin,
    /// A shared latch for each view on a page.
    Latch,
    /// A copy of the list of running transactions for each snapshot.
    Snapshot,
    /// Lists of free frames.
    FreeQueues,
    /// The planner's question for a relation's size.
    RelationSize,
    /// The title of the process.
    Title,
    /// Calls for sockets.
    Socket,
    /// Reads of files.
    FileLock,
    /// The moment at which memory of the buffers is touched.
    Preload,
    /// Pages behind the buffers, and whether they can be swapped out.
    PinnedMemory,
}

/// A state of a mechanism, named as by `allcore bench mechanism`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Arm {
    /// The state that stopped scaling.
    Stock,
    /// Between the two.
    Step,
    /// The published fix.
    Published,
    /// The engine's own.
    #[default]
    Allcore,
}

use Arm::{Allcore, Published, Step, Stock};

/// Each row with its name and its arms.
pub(crate) const ROWS: [(Row, &str, &[Arm]); 11] = [
    (Row::ClockHand, "clock-hand", &[Stock, Published, Allcore]),
    (Row::Pin, "pin", &[Stock, Step, Published, Allcore]),
    (Row::Latch, "latch", &[Stock, Step, Published, Allcore]),
    (Row::Snapshot, "snapshot", &[Stock, Allcore]),
    (Row::FreeQueues, "free-queues", &[Stock, Allcore]),
    (Row::RelationSize, "relation-size", &[Stock, Published, Allcore]),
    (Row::Title, "title", &[Stock, Allcore]),
    (Row::Socket, "socket", &[Stock, Allcore]),
    (Row::FileLock, "file-lock", &[Stock, Allcore]),
    (Row::Preload, "preload", &[Stock, Allcore]),
    (Row::PinnedMemory, "pinned-memory", &[Stock, Allcore]),
];

impl Arm {
    /// Its word.
    fn word(self) -> &'static str {
        match self {
            Stock => "stock",
            Step => "step",
            Published => "published",
            Allcore => "allcore",
        }
    }
}

/// An arm for each row.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Choice {
    arms: [Arm; ROWS.len()],
}

impl Choice {
    /// The arm of a row.
    pub fn arm(&self, row: Row) -> Arm {
        self.arms[row as usize]
    }

    /// The rows that do not run the engine's own mechanism, with their names.
    pub(crate) fn replaced(&self) -> impl Iterator<Item = (Row, &'static str)> {
        ROWS.iter().map(|(row, name, _)| (*row, *name)).filter(|(row, _)| self.arm(*row) != Allcore)
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut choice = Self::default();
        for word in text.split(',') {
            let (row, arm) = word.split_once('=').unwrap_or((word, ""));
            let found = ROWS.iter().find(|(_, name, _)| *name == row);
            let (row, _, arms) = found.ok_or_else(|| unknown(word))?;
            let arm = arms.iter().find(|known| known.word() == arm).ok_or_else(|| unknown(word))?;
            choice.arms[*row as usize] = *arm;
        }
        Ok(choice)
    }
}

/// The error for a word that names no arm of a row, with all that there is.
fn unknown(word: &str) -> String {
    let rows = ROWS.iter().map(|(_, name, arms)| {
        let arms: Vec<&str> = arms.iter().map(|arm| arm.word()).collect();
        format!("{name}={}", arms.join("|"))
    });
    format!("'{word}' is no variant; there are {}", rows.collect::<Vec<_>>().join(", "))
}

impl fmt::Display for Choice {
    /// The rows that do not run the engine's own mechanism.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> =
            self.replaced().map(|(row, name)| format!("{name}={}", self.arm(row).word())).collect();
        f.write_str(if words.is_empty() { "none" } else { "" })?;
        f.write_str(&words.join(","))
    }
}

static CHOSEN: OnceLock<Choice> = OnceLock::new();

/// Sets the variants of this process. Called once, before an engine is made.
///
/// # Panics
/// When they are set already.
pub fn choose(choice: Choice) {
    CHOSEN.set(choice).expect("the variants are chosen once");
}

/// The arm of a row in this process.
pub fn arm(row: Row) -> Arm {
    CHOSEN.get().map_or(Allcore, |choice| choice.arm(row))
}

/// Whether this process runs the stock state of a row.
pub fn is_stock(row: Row) -> bool {
    arm(row) == Arm::Stock
}

/// The variants of this process.
pub fn chosen() -> Choice {
    CHOSEN.get().cloned().unwrap_or_default()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_choice_names_arms_of_rows_and_the_rest_is_the_engines_own() {
        let choice: Choice = "pin=step,clock-hand=stock".parse().unwrap();
        assert_eq!((choice.arm(Row::Pin), choice.arm(Row::ClockHand)), (Step, Stock));
        assert_eq!(choice.arm(Row::Latch), Allcore);
        assert_eq!(choice.to_string(), "clock-hand=stock,pin=step");
        assert_eq!("pin=allcore".parse::<Choice>().unwrap().to_string(), "none");
    }

    #[test]
    fn a_word_that_is_no_variant_is_refused_with_all_that_there_is() {
        for word in ["", "pin", "pin=", "pin=stocks", "snapshot=step", "pins=stock"] {
            let fault = format!("latch=stock,{word}").parse::<Choice>().unwrap_err();
            assert!(fault.starts_with(&format!("'{word}' is no variant; there are clock-hand=")), "{fault}");
        }
    }

    #[test]
    fn the_rows_stand_in_their_own_order() {
        for (place, (row, ..)) in ROWS.iter().enumerate() {
            assert_eq!(*row as usize, place);
        }
    }
}
