//! Telling damage in the log from an unfinished end.
//!
//! Both look alike where they begin: there is no record. They differ by what is known of the log
//! behind that place ([`judge`]). The file `durable`, the control file and each readable commit
//! behind the gap name positions before which the log was durable. A gap before the highest of them
//! is damage: acknowledged commits are lost, and the start refuses. A gap at or after it is the
//! unfinished end of a crash.
//!
//! The search looks for records behind a gap at every place where a record can begin, in all
//! segments. A record counts when its checksum fits and its position is not before the gap. It may
//! lie in another segment file than it should, because files that changed places keep their records
//! at the same offsets. An older lap of a segment's file leaves records with positions before the
//! gap.
//!
//! An operator who starts all the same names the position ([`keep_copy`]). The segments from there
//! on are kept in a folder of their own.

use std::path::{Path, PathBuf};

use runtime::file;

use super::reader::POSITION_BITS;
use super::record::{self, HEADER, Record};
use super::{BLOCK, Kind, LogReader, durable, segments};
use crate::Error;
use crate::control::Control;
use crate::error::{IoContext, LogDamage};
use crate::format::{LOG_FOLDER, segment_name};
use crate::page::Lsn;

/// The first part of the name of the folder that keeps discarded segments. The position follows in
/// 16 hexadecimal digits.
const KEPT: &str = "log-discarded-";

/// Decides whether the log's end at `reader.position()` is damage; `last_commit` is the end of the
/// last commit before it.
pub(crate) fn judge(
    folder: &Path,
    reader: &mut LogReader,
    control: &Control,
    last_commit: Option<Lsn>,
) -> Result<Option<LogDamage>, Error> {
    let end = reader.position();
    let own = durable::read(folder, durable::Place::Own, control.salt)?;
    let second = durable::read(folder, durable::Place::Control, control.salt)?;
    if own.is_none() && !control.closed {
        let then = match second {
            Some(_) => "only the control file tells whether the log has lost its last commits",
            None => "that the log lost its last commits would not be seen",
        };
        ::log::warn!("the file {} is missing or damaged: {then}", durable::NAME);
    }
    let mut known = own.max(second).unwrap_or(Lsn::ZERO).max(control.log_end);
    // A closed store has appended nothing since, so nothing lies behind the end.
    let mut behind = if control.closed && end == control.log_end && known <= end {
        Behind::default()
    } else {
        look_behind(reader, control.segment_bytes, end.0)?
    };
    known = known.max(behind.mark);
    // A start that discarded the log's end and was killed has moved the later segments there.
    let kept = folder.join(kept_name(end));
    if end < known && file::exists(&kept).during("looking for a discarded log")? {
        let mut moved = LogReader::new(&kept, control.segment_bytes, control.salt, end)?;
        behind.join(&look_behind(&mut moved, control.segment_bytes, end.0)?);
    }
    Ok((end < known).then_some(LogDamage {
        at: end,
        segment_bytes: control.segment_bytes,
        missing: reader.missing_between(end.0, known.0),
        durable: known,
        last_commit,
        first_lost: behind.first_commit,
        commits: behind.commits,
        highest_txn: behind.highest_txn,
        needed: end < control.redo,
    }))
}

/// The records found behind a gap.
#[derive(Default)]
struct Behind {
    /// The highest mark in a commit.
    mark: Lsn,
    first_commit: Option<Lsn>,
    commits: u64,
    highest_txn: u64,
}

impl Behind {
    fn add(&mut self, record: &Record<'_>) {
        self.highest_txn = self.highest_txn.max(record.link().txn);
        if record.kind() == Kind::Commit {
            self.commits += 1;
            self.first_commit = Some(self.first_commit.map_or(record.lsn(), |first| first.min(record.lsn())));
            let mark = record::u64_at(record.undo(), 0).map_or(Lsn::ZERO, Lsn);
            if mark <= record.position() {
                self.mark = self.mark.max(mark);
            }
        }
    }

    /// Adds the records found in another place; a record may be in both.
    fn join(&mut self, other: &Behind) {
        self.first_commit = self.first_commit.into_iter().chain(other.first_commit).min();
        self.commits = self.commits.max(other.commits);
        self.highest_txn = self.highest_txn.max(other.highest_txn);
    }
}

/// Reads the whole log from `end` on.
fn look_behind(reader: &mut LogReader, segment_bytes: u64, end: u64) -> Result<Behind, Error> {
    const ZEROS: [u8; BLOCK as usize] = [0; BLOCK as usize];
    let (salt, last) = (reader.salt(), reader.segments_end());
    let mut behind = Behind::default();
    let mut place = end;
    while place + HEADER as u64 <= last {
        runtime::fiber::safe_point();
        match reader.next_there(place) {
            Some(there) => place = there,
            None => break,
        }
        let block_end = (place & !(BLOCK - 1)) + BLOCK;
        // Reads the first words of the next block as well, for a record that begins at this one's
        // end.
        let length = (block_end - place + HEADER as u64).min(last - place) as usize;
        let Some(bytes) = reader.bytes(place, length)? else { break };
        let here = &bytes[..length.min((block_end - place) as usize)];
        if ZEROS.starts_with(here) {
            place = block_end;
            continue;
        }
        // A record holds its own position at bytes 8 to 15.
        let found = (0..here.len()).step_by(record::ALIGNMENT).find_map(|at| {
            let position = record::u64_at(bytes, at + 8)?;
            let fits = position >= end
                && position >> POSITION_BITS == 0
                && position.wrapping_sub(place + at as u64).is_multiple_of(segment_bytes);
            let length = if fits { record::claimed_length(&bytes[at..], position)? } else { return None };
            Some((place + at as u64, position, length))
        });
        let Some((start, position, length)) = found else {
            place = block_end;
            continue;
        };
        let bytes = reader.bytes(start, length)?;
        match bytes.and_then(|bytes| Record::parse(bytes, position, salt)) {
            Some(record) => {
                behind.add(&record);
                place = start + length as u64;
            }
            None => place = start + record::ALIGNMENT as u64,
        }
    }
    Ok(behind)
}

fn kept_name(end: Lsn) -> String {
    format!("{KEPT}{:016x}", end.0)
}

/// Keeps the segments from `end` on in a folder of their own and returns its path. Copies the
/// segment that holds `end` and moves the later ones. Begun again after an interruption, it goes on
/// and overwrites nothing that was kept.
pub(crate) fn keep_copy(folder: &Path, segment_bytes: u64, end: Lsn) -> Result<PathBuf, Error> {
    let kept = folder.join(kept_name(end));
    let log = folder.join(LOG_FOLDER);
    file::create_dir(&kept).during("making a folder for the discarded log")?;
    for number in segments::list(&log)?.into_iter().filter(|number| *number >= end.0 / segment_bytes) {
        let (from, to) = (log.join(segment_name(number)), kept.join(segment_name(number)));
        if file::exists(&to).during("looking for a discarded log segment")? {
            // A start that was killed has kept this segment and made the other one anew.
            continue;
        }
        if number > end.0 / segment_bytes {
            file::rename(&from, &to).during("moving a discarded log segment")?;
        } else {
            let unfinished = kept.join("unfinished");
            file::copy(&from, &unfinished).during("copying a discarded log segment")?;
            file::rename(&unfinished, &to).during("naming a discarded log segment")?;
        }
    }
    for changed in [&kept, &log, &folder.to_owned()] {
        file::sync_dir(changed).during("syncing the folder of the discarded log")?;
    }
    Ok(kept)
}
