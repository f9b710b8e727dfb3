//! Row `title` (B14): the statement that a session runs, shown to an administrator.
//!
//! PostgreSQL sets its process's title twice a statement. On FreeBSD each title is a system call.
//! [`NameCall`] is the stock state: `prctl(PR_SET_NAME)`, the call by which Linux takes a thread's
//! name. [`CommFile`] writes the name to `/proc`, the same by way of a file. The published fix is
//! [`Off`]: `update_process_title = off`.
//!
//! 1. The session sets the title when a statement begins.
//! 2. It sets the title again when the statement has ended.
//!
//! What must hold: others see the title that the session has set last, or none.
//!
//! Cost: 1 system call a title, for [`CommFile`] with the file's lock and a copy of the text; none
//! for [`Off`]. Nobody else writes the thread's structure, so a title costs no line transfer while
//! nobody looks. Each look by another core takes its line, and the next title takes it back: 2.

use std::fs::File;
use std::io::Write;

use crate::checked;

/// Bytes of a title that the kernel shows, without the zero behind them.
pub const LENGTH: usize = 15;

/// The title of one thread, which is the only one to use it.
pub trait Title: Sized {
    /// The title of the calling thread.
    ///
    /// # Errors
    /// A line: the kernel refuses what it takes.
    fn new() -> Result<Self, String>;
    /// Shows a text of at most [`LENGTH`] bytes.
    fn set(&self, text: &str);
    /// The text that others see. `None` if they see none.
    fn shown(&self) -> Option<String>;
}

/// The thread's name, set by a system call.
#[derive(Debug)]
pub struct NameCall;

impl Title for NameCall {
    fn new() -> Result<Self, String> {
        Ok(Self)
    }

    #[inline]
    fn set(&self, text: &str) {
        let mut name = [0u8; LENGTH + 1];
        let length = text.len().min(LENGTH);
        name[..length].copy_from_slice(&text.as_bytes()[..length]);
        // SAFETY: the pointer is to 16 bytes that end with a zero.
        let result = unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        checked("prctl PR_SET_NAME", result.into());
    }

    fn shown(&self) -> Option<String> {
        Some(thread_name())
    }
}

/// The thread's name, written to its file in `/proc`.
#[derive(Debug)]
pub struct CommFile(File);

impl Title for CommFile {
    fn new() -> Result<Self, String> {
        let path = "/proc/thread-self/comm";
        let opened = File::options().write(true).open(path);
        opened
            .map(Self)
            .map_err(|error| format!("{path}: {error}: see ulimit -n, or name fewer by --threads"))
    }

    #[inline]
    fn set(&self, text: &str) {
        let written = (&self.0).write(text.as_bytes());
        assert_eq!(written.expect("a thread may write its own name"), text.len(), "a title is short");
    }

    fn shown(&self) -> Option<String> {
        Some(thread_name())
    }
}

/// No title.
#[derive(Debug)]
pub struct Off;

impl Title for Off {
    fn new() -> Result<Self, String> {
        Ok(Self)
    }

    #[inline]
    fn set(&self, text: &str) {
        std::hint::black_box(text);
    }

    fn shown(&self) -> Option<String> {
        None
    }
}

/// The name of this thread, as the kernel has it.
fn thread_name() -> String {
    let name = std::fs::read_to_string("/proc/thread-self/comm").expect("/proc is mounted");
    name.trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_threads::at_once;

    fn shows_the_last<T: Title>() {
        at_once(|me| {
            let title = T::new().unwrap();
            for round in 0..50 {
                title.set("SELECT");
                title.set(&format!("idle {} {round}", me.number()));
                assert_eq!(title.shown().unwrap(), format!("idle {} {round}", me.number()));
            }
        });
    }

    #[test]
    fn each_of_more_threads_than_cores_shows_its_last_title() {
        crate::raise_file_limit();
        shows_the_last::<NameCall>();
        shows_the_last::<CommFile>();
    }

    #[test]
    fn a_title_is_cut_at_15_bytes_and_none_is_shown_when_off() {
        std::thread::spawn(|| {
            NameCall.set("SELECT everything there is");
            assert_eq!(NameCall.shown().unwrap(), "SELECT everythi");
            assert_eq!(Off.shown(), None);
        })
        .join()
        .unwrap();
    }
}
