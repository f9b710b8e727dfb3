//! The pool's regions of memory: how much of each is in use, and has memory behind it.

use runtime::fiber;
use runtime::memory::{Region, RegionKind};

use super::Pool;
use crate::frame::Frame;
use crate::page::PAGE_SIZE;

/// Frames that are looked at between two safe points: 64 MiB.
const FRAMES_PER_SAFE_POINT: usize = 8192;

/// A region of the store's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegionUse {
    /// Its name.
    pub name: &'static str,
    /// The kind of its pages.
    pub kind: RegionKind,
    /// Whether it stays in memory once it is touched. The page table's addresses are far more than
    /// any limit, so it is not locked.
    pub locked: bool,
    /// Bytes of addresses.
    pub reserved: usize,
    /// Bytes that may be used now: of frames in use, of pages in a file, or of the log so far.
    pub used: usize,
    /// Bytes of `used`, in whole pages, behind which memory stands. Where it is less than `used`,
    /// the next access to the rest takes a page fault.
    pub present: usize,
}

impl Pool {
    /// The regions, as they are now; `locked` says whether frames and headers are. It asks the
    /// kernel about each page in use, which takes some milliseconds a gigabyte; it has safe points.
    pub(crate) fn regions(&self, locked: bool) -> Vec<RegionUse> {
        let of = |name, region: &Region| {
            let (kind, reserved) = (region.kind(), region.len());
            RegionUse { name, kind, locked, reserved, used: 0, present: 0 }
        };
        let mut regions = vec![of("buffers", &self.region), of("frame headers", self.headers.region())];
        for range in self.growth.in_use() {
            for first in range.clone().step_by(FRAMES_PER_SAFE_POINT) {
                let end = range.end.min(first + FRAMES_PER_SAFE_POINT);
                let parts = [(&self.region, PAGE_SIZE), (self.headers.region(), size_of::<Frame>())];
                for (sum, (region, size)) in regions.iter_mut().zip(parts) {
                    sum.used += (end - first) * size;
                    sum.present += region.present(first * size..end * size);
                }
                fiber::safe_point();
            }
        }
        for (name, table, file) in [
            ("page table", &self.tables[0], &self.files[0]),
            ("temporary page table", &self.tables[1], &self.files[1]),
        ] {
            let (pages, entry) = (file.pages() as usize, size_of::<u32>());
            regions.push(RegionUse {
                name,
                kind: table.kind(),
                locked: false,
                reserved: table.len() * entry,
                used: pages * entry,
                present: table.present(pages),
            });
        }
        regions
    }
}
