//! A set of keys for many lookups: the rows of the subquery in `= ANY (subquery)`.
//!
//! The keys lie in a hash table while `work_mem` has room for them. The others are sorted into a
//! list of rows. Memory holds every 64th key of the list, so a search reads at most 64 of them.
//!
//! What must hold: all keys are inserted before the first lookup ([`KeySet::finish`]).

use super::firsts::{Seen, Sight};
use super::{Arena, Executor};
use crate::spill::{Rows, RowsReader, Sorter};
use values::error::SqlError;
use values::work;

/// Keys of the list from one fence to the next.
const STRIDE: u64 = 64;

/// The set.
pub(super) struct KeySet<'b> {
    seen: Seen<'b>,
    sorter: Option<Sorter<'b>>,
    /// The keys for which there was no room in the table.
    sorted: Option<SortedKeys>,
}

struct SortedKeys {
    rows: Rows,
    reader: RowsReader,
    /// Every 64th key.
    fences: Vec<Box<[u8]>>,
}

impl<'b> KeySet<'b> {
    pub fn new(cx: &Executor<'_>) -> KeySet<'b> {
        KeySet { seen: Seen::new(cx.work_mem()), sorter: None, sorted: None }
    }

    /// Adds a key.
    pub fn insert<'s: 'b>(
        &mut self,
        cx: &Executor<'s>,
        key: &[u8],
        memory: &'b Arena<'_>,
    ) -> Result<(), SqlError> {
        if self.seen.see(key, memory)? == Sight::NoRoom {
            self.sorter.get_or_insert_with(|| cx.sorter()).push(key, |_| Ok(()))?;
        }
        Ok(())
    }

    /// All keys were added.
    pub fn finish(&mut self, cx: &mut Executor<'_>) -> Result<(), SqlError> {
        let Some(sorter) = self.sorter.take() else { return Ok(()) };
        let mut sorted = sorter.finish()?;
        let (mut rows, mut fences, mut last) = (Rows::numbered(cx.work_mem()), Vec::new(), Vec::new());
        while let Some((key, _)) = sorted.next()? {
            cx.check()?;
            if rows.count() > 0 && work::equal(key, &last)? {
                continue;
            }
            if rows.count().is_multiple_of(STRIDE) {
                fences.push(work::owned_bytes(key)?);
            }
            rows.push(cx.folder(), |to| work::put(key, to))?;
            last.clear();
            work::put(key, &mut last)?;
        }
        self.sorted = Some(SortedKeys { rows, reader: RowsReader::default(), fences });
        Ok(())
    }

    /// Whether the key is in the set.
    pub fn contains(&mut self, key: &[u8]) -> Result<bool, SqlError> {
        if self.seen.knows(key)? {
            return Ok(true);
        }
        let Some(SortedKeys { rows, reader, fences }) = &mut self.sorted else { return Ok(false) };
        // The number of fences at or below the key.
        let (mut fence, mut end) = (0, fences.len());
        while fence < end {
            let middle = (fence + end) / 2;
            if work::compare(&fences[middle], key)?.is_le() {
                fence = middle + 1;
            } else {
                end = middle;
            }
        }
        let Some(fence) = fence.checked_sub(1) else { return Ok(false) };
        let first = fence as u64 * STRIDE;
        for number in first..rows.count().min(first + STRIDE) {
            match work::compare(reader.row(rows, number)?, key)? {
                std::cmp::Ordering::Less => {}
                order => return Ok(order.is_eq()),
            }
        }
        Ok(false)
    }
}
