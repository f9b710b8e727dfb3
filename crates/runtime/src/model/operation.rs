//! Carrying an operation out: the virtual thread that calls sleeps while the disk works.

use super::disk::disk;
use super::events::{Event, digest};
use super::machine::here;
use super::table::{self, Open};
use crate::device::Operation;

/// Nanoseconds that the disk takes, at least and at most.
const READ: (u64, u64) = (10_000, 90_000);
const WRITE: (u64, u64) = (5_000, 60_000);
const SYNC: (u64, u64) = (40_000, 600_000);

/// Carries the operation out on this thread: a count, or a negated error number.
pub(crate) fn execute(operation: &Operation) -> i32 {
    match *operation {
        Operation::Read { fd, to, len, offset } => {
            take_time(READ);
            // SAFETY: the maker has borrowed the buffer exclusively until the operation's end.
            let to = unsafe { std::slice::from_raw_parts_mut(to, len as usize) };
            let result = on_file(fd, false, |file| disk().file(file).read(to, offset) as i32);
            let read = digest(&to[..usize::try_from(result).unwrap_or(0)]);
            here().note(Event::Read, &[fd as u64, offset, u64::from(len), result as u64, read]);
            result
        }
        Operation::Write { fd, from, len, offset, durable } => {
            take_time(if durable { SYNC } else { WRITE });
            // SAFETY: the maker has borrowed the buffer until the operation's end.
            let from = unsafe { std::slice::from_raw_parts(from, len as usize) };
            let result = on_file(fd, true, |file| {
                disk().file(file).write(from, offset);
                len as i32
            });
            let about = [fd as u64, offset, u64::from(durable), result as u64, digest(from)];
            here().note(Event::Write, &about);
            result
        }
        Operation::Sync { fd } => {
            take_time(SYNC);
            let result = on_file(fd, false, |_| 0);
            here().note(Event::Sync, &[fd as u64, result as u64]);
            result
        }
        Operation::Allocate { fd, offset, len } => {
            take_time(WRITE);
            let result = on_file(fd, true, |file| {
                let mut disk = disk();
                let contents = disk.file(file);
                contents.set_len(contents.len().max(offset + len));
                0
            });
            here().note(Event::Resize, &[fd as u64, offset, len, result as u64]);
            result
        }
    }
}

fn take_time((least, most): (u64, u64)) {
    here().sleep(here().generator().between(least, most));
}

/// Calls `body` with the number of the file that is open, for writing where it `writes`.
fn on_file(fd: super::Fd, writes: bool, body: impl FnOnce(usize) -> i32) -> i32 {
    match table::get(fd) {
        Some(Open::File { file, is_writable }) if is_writable || !writes => body(file),
        _ => -libc::EBADF,
    }
}
