//! Row `no-remap-io`: threads read pages of a file through mappings made for one read, and without.
//!
//! The engine reads past the kernel's cache into memory of its own. So its arm waits for the disk
//! where the others copy memory. Compare its shoot-downs, not its speed.

use calls::reads::{BufferedReads, MappedReads};

use super::file_lock::{Own, filled, pages};
use super::relation_size::file;
use super::{Arm, Part, Row, UNCOUNTED};

/// The row.
pub(super) const ROW: Row = Row {
    id: "no-remap-io",
    report: "B14",
    about: "reads of a file: mapped and unmapped each, with an interrupt of other CPUs, against copied. \
            The engine's direct reads are of the disk, and the others of memory. So its speed is not comparable, \
            and its shoot-downs are",
    operation: "read 8 KiB at random of a file in memory; direct reads are of the disk",
    needs: None,
    code: "crates/calls/src/reads",
    arms: &[
        Arm {
            name: "mmap, munmap",
            part: Part::Stock,
            start: |_| pages(MappedReads::new(filled(file()?)?), UNCOUNTED),
        },
        Arm {
            name: "pread",
            part: Part::Published,
            start: |_| pages(BufferedReads::new(filled(file()?)?), UNCOUNTED),
        },
        Arm { name: "direct", part: Part::Allcore, start: |_| pages(Own::new(true)?, UNCOUNTED) },
    ],
};
