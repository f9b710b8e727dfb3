//! Rows `file-lock` and `no-remap-io` (B14): reads of a page of a file that is in memory.
//!
//! What must hold: a read gives the page that was asked for, whole.

mod locked;
mod mapped;

pub use locked::{ExclusiveReads, SharedReads};
pub use mapped::{BufferedReads, MappedReads};

use variants::caller::Caller;

/// Bytes of a page.
pub const PAGE: usize = 8192;

/// Reads of a file's pages.
pub trait Reads: Sync {
    /// Fills `to` with a page.
    fn read(&self, me: &mut Caller, page: u64, to: &mut [u8]);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::test_threads::{at_once, threads};

    /// A file whose pages are filled with their numbers.
    fn file(pages: u8) -> std::fs::File {
        let file = crate::test_file();
        for page in 0..pages {
            file.write_all_at(&[page; PAGE], u64::from(page) * PAGE as u64).unwrap();
        }
        file
    }

    fn gives_the_page(reads: &impl Reads) {
        at_once(|me| {
            let mut bytes = vec![0; PAGE];
            for round in 0..40 {
                let page = (me.number() as u64 * 3 + round) % 16;
                reads.read(me, page, &mut bytes);
                assert!(bytes.iter().all(|byte| u64::from(*byte) == page));
            }
        });
    }

    #[test]
    fn each_of_more_threads_than_cores_reads_the_page_it_asked_for() {
        gives_the_page(&ExclusiveReads::new(file(16), threads()));
        gives_the_page(&SharedReads::new(file(16), threads()));
        gives_the_page(&MappedReads::new(file(16)));
        gives_the_page(&BufferedReads::new(file(16)));
    }

    #[test]
    #[should_panic(expected = "a page of the file")]
    fn a_page_behind_the_end_ends_the_program() {
        BufferedReads::new(file(1)).read(&mut Caller::new(0), 1, &mut [0; PAGE]);
    }
}
