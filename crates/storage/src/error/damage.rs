//! The message about damage in the log with which a start refuses.

use std::fmt;

use crate::format::{LOG_FOLDER, segment_name};
use crate::page::Lsn;

/// The place and the extent of damage in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogDamage {
    /// Where the first unreadable record begins. The log before it is good.
    pub at: Lsn,
    /// Bytes of a segment file, which give the place of `at`.
    pub segment_bytes: u64,
    /// Number of a segment file that is missing between `at` and `durable`.
    pub missing: Option<u64>,
    /// The log was durable at least up to here.
    pub durable: Lsn,
    /// End of the last commit before the damage, if the part of the log that was read has one.
    pub(crate) last_commit: Option<Lsn>,
    /// End of the first readable commit behind the damage.
    pub(crate) first_lost: Option<Lsn>,
    /// Number of readable commits behind the damage.
    pub commits: u64,
    /// The highest transaction number among the records behind the damage.
    pub highest_txn: u64,
    /// The pages on disk need the damaged part of the log.
    pub needed: bool,
}

impl fmt::Display for LogDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (segment, offset) = (self.at.0 / self.segment_bytes, self.at.0 % self.segment_bytes);
        write!(
            f,
            "the log is damaged at {} (byte {offset} of {LOG_FOLDER}/{}",
            self.at,
            segment_name(segment)
        )?;
        if let Some(missing) = self.missing {
            write!(f, ", {LOG_FOLDER}/{} is missing", segment_name(missing))?;
        }
        write!(f, ") and was durable up to {}", self.durable)?;
        match self.last_commit {
            Some(last) => write!(f, "; the last good commit ends at {last}")?,
            None => f.write_str("; no commit before it is in the log that is kept")?,
        }
        match self.first_lost {
            Some(first) => write!(
                f,
                ", the first lost one that can be read at {first}, {} can be read in all",
                self.commits
            )?,
            None => f.write_str(", and no commit behind it can be read")?,
        }
        match self.needed {
            true => f.write_str("; the pages need what is damaged: restore the folder from a backup"),
            false => write!(
                f,
                "; restore the folder from a backup, or copy it and start with --discard-log-after {} to give up what follows",
                self.at
            ),
        }
    }
}
