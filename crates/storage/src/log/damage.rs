//! Damage in the log, told from an unfinished end.
//!
//! Both look alike where they begin: no record. They differ in what is known of the log behind ([`judge`]). A position before
//! which all was durable is told by the file `durable`, by the control file, and by each commit that can still be read behind
//! the gap. A gap before the highest of these is damage: commits that clients were told of are lost, and the start refuses. A
//! gap at or after it is the unfinished end of a crash.
//!
//! Records behind a gap are looked for at every place a record can begin, in all segments. A record counts when its checksum
//! fits and its position is not before the gap. It may lie in another segment file than it should: files that changed places
//! keep their records at the same offsets. What an older lap of a segment's file left has positions before the gap.
//!
//! An operator who starts all the same names the position ([`keep_copy`]): the segments from there on are kept in a
//! folder of their own.

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

/// Begins the name of the folder that keeps what was discarded; its position follows in 16 hexadecimal digits.
const KEPT: &str = "log-discarded-";

/// Whether the log's end at `reader.position()`, after the last commit at `last_commit`, is damage.
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
    // A store that was closed has appended nothing since: there is nothing to look for.
    let mut behind = if control.closed && end == control.log_end && known <= end {
        Behind::default()
    } else {
        look_behind(reader, control.segment_bytes, end.0)?
    };
    known = known.max(behind.mark);
    // A start that gave it up and was killed has moved what follows.
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
    /// The highest mark of a commit.
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

    /// Takes in what was found in another place; a record may be in both.
    fn join(&mut self, other: &Behind) {
        self.first_commit = self.first_commit.into_iter().chain(other.first_commit).min();
        self.commits = self.commits.max(other.commits);
        self.highest_txn = self.highest_txn.max(other.highest_txn);
    }
}

/// Reads everything from `end` on.
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
        // The first words of the next block as well, for a record that begins at this one's end.
        let length = (block_end - place + HEADER as u64).min(last - place) as usize;
        let Some(bytes) = reader.bytes(place, length)? else { break };
        let here = &bytes[..length.min((block_end - place) as usize)];
        if ZEROS.starts_with(here) {
            place = block_end;
            continue;
        }
        // A record has its own position at its ninth byte.
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

/// Keeps the segments from `end` on in a folder of their own, and gives its path. The one that holds `end` is copied, later
/// ones are moved. Interrupted and begun again it goes on, and nothing that was kept is overwritten.
pub(crate) fn keep_copy(folder: &Path, segment_bytes: u64, end: Lsn) -> Result<PathBuf, Error> {
    let kept = folder.join(kept_name(end));
    let log = folder.join(LOG_FOLDER);
    file::create_dir(&kept).during("making a folder for the discarded log")?;
    for number in segments::list(&log)?.into_iter().filter(|number| *number >= end.0 / segment_bytes) {
        let (from, to) = (log.join(segment_name(number)), kept.join(segment_name(number)));
        if file::exists(&to).during("looking for a discarded log segment")? {
            // Kept by a start that was killed; it made the other one anew.
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
