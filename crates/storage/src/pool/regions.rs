//! The pool's regions of memory: how much of each is in use, and has memory behind it.

use runtime::fiber;
use runtime::memory::{self, AtomicArray, Policy, Region, RegionKind};
use runtime::topology::Workers;
use sync::atomic::AtomicU32;

use super::Pool;
use super::headers::Headers;
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
    /// The NUMA nodes that its pages come from.
    pub policy: Policy,
    /// Bytes of addresses.
    pub reserved: usize,
    /// Bytes that may be used now: of frames in use, of pages in a file, or of the log so far.
    pub used: usize,
    /// Bytes of `used`, in whole pages, behind which memory stands. Where it is less than `used`,
    /// the next access to the rest takes a page fault.
    pub present: usize,
}

/// The memory policies of the pool's regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Policies {
    frames: Policy,
    headers: Policy,
    tables: [Policy; 2],
}

impl Policies {
    /// Spreads headers and page tables over the nodes, since any core asks for any page. Frames are
    /// on the node whose helper touches them.
    pub(super) fn spread(workers: &Workers, headers: &Headers, tables: &[AtomicArray<AtomicU32>; 2]) -> Self {
        let [pages, temporary] = tables;
        let what = "frame headers and page tables";
        let spread =
            memory::interleave(workers.shared_memory(), what, [&**headers.region(), pages, temporary]);
        let [headers, pages, temporary] = spread.map(|is_spread| policy(workers, is_spread));
        Policies { frames: workers.memory_policy(), headers, tables: [pages, temporary] }
    }
}

/// The policy of a region, by whether [`memory::interleave`] has spread it.
pub(crate) fn policy(workers: &Workers, is_spread: bool) -> Policy {
    if is_spread { Policy::Interleaved } else { workers.memory_policy() }
}

impl Pool {
    /// The regions, as they are now; `locked` says whether frames and headers are. It asks the
    /// kernel about each page in use, which takes some milliseconds a gigabyte; it has safe points.
    pub(crate) fn regions(&self, locked: bool) -> Vec<RegionUse> {
        let of = |name, region: &Region, policy| {
            let (kind, reserved) = (region.kind(), region.len());
            // The kernel swaps no explicit huge page out.
            let locked = locked || kind.is_explicit();
            RegionUse { name, kind, locked, policy, reserved, used: 0, present: 0 }
        };
        let mut regions = vec![
            of("buffers", &self.region, self.policies.frames),
            of("frame headers", self.headers.region(), self.policies.headers),
        ];
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
        for (at, name) in ["page table", "temporary page table"].into_iter().enumerate() {
            let (table, file, policy) = (&self.tables[at], &self.files[at], self.policies.tables[at]);
            let (pages, entry) = (file.pages() as usize, size_of::<u32>());
            regions.push(RegionUse {
                name,
                kind: table.kind(),
                locked: false,
                policy,
                reserved: table.len() * entry,
                used: pages * entry,
                present: table.present(pages),
            });
        }
        regions
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use runtime::memory::HugePages;
    use runtime::topology::Topology;

    use super::*;

    #[test]
    fn headers_and_page_tables_are_spread_over_several_nodes_and_frames_are_not() {
        const FRAMES: usize = 4096;
        let region = || Region::frames(FRAMES * size_of::<Frame>(), HugePages::Off).unwrap();
        let headers = Headers::new(Arc::new(region()), FRAMES);
        let tables = [FRAMES; 2].map(|pages| AtomicArray::reserve(pages).unwrap());
        let of = |nodes| {
            let machine = Topology::synthetic(nodes, 2, 1);
            let pinned = machine.choose(2 * nodes).unwrap();
            Policies::spread(&Workers::new(&machine, &pinned, 2 * nodes, 2 * nodes), &headers, &tables)
        };
        let with = |shared| Policies { frames: Policy::None, headers: shared, tables: [shared; 2] };
        assert_eq!(of(1), with(Policy::None));
        // The kernel takes those nodes that it has. It may refuse them all.
        let [is_granted] = memory::interleave(&[0, 1], "regions", [&region()]);
        assert_eq!(of(2), with(if is_granted { Policy::Interleaved } else { Policy::None }));
    }
}
