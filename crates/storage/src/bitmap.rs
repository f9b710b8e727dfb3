//! The free page numbers of a file, in memory: a bitmap that all cores share, and a short list for
//! each core.
//!
//! A core claims numbers in runs of [`RUN`]. So it takes the shared lock once in [`RUN`] claims,
//! and the pages that one core makes lie together on disk. A number that a core holds unused counts
//! as taken. Nothing of this is durable.
//!
//! [`PageNumbers::holding_back`] holds some numbers back. Ordinary claims find the file exhausted
//! while only those are free. [`PageNumbers::take_held_back`] gets them.

use sync::{CachePadded, PerCore, SpinLock, assert_apart};

/// Page numbers that a core takes from the bitmap at a time.
const RUN: usize = 32;
/// Other cores into whose stock a core looks before the file grows. Each look moves a cache line
/// there and back.
const NEIGHBOURS: usize = 4;
/// The most page numbers that a core keeps.
const KEPT_MAX: usize = 2 * RUN;

/// One bit for each page; a set bit means taken.
#[derive(Debug, Default)]
struct Bitmap {
    words: Vec<u64>,
    pages: u32,
    free: u32,
    /// The word at which the next search begins. A search skips full words until it comes round.
    hint: usize,
    /// Maps the number of pages in the file to the number of free pages to hold back.
    held_back: Option<fn(u32) -> u32>,
}

impl Bitmap {
    /// Free pages that ordinary claims do not get.
    fn held_back(&self) -> u32 {
        self.held_back.map_or(0, |held_back| held_back(self.pages))
    }

    /// Free pages that ordinary claims get.
    fn available(&self) -> u32 {
        self.free.saturating_sub(self.held_back())
    }

    fn is_taken(&self, page: u32) -> bool {
        self.words[page as usize / 64] >> (page % 64) & 1 != 0
    }

    /// Extends the bitmap to `pages` pages. A new page is free unless `taken` returns true for it.
    fn extend(&mut self, pages: u32, mut taken: impl FnMut(u32) -> bool) {
        // Bits beyond the last page are set, so that a search for zeros does not find them.
        self.words.resize((pages as usize).div_ceil(64), u64::MAX);
        for page in self.pages..pages {
            if !taken(page) {
                self.words[page as usize / 64] &= !(1 << (page % 64));
                self.free += 1;
            }
        }
        self.pages = self.pages.max(pages);
    }

    /// Takes the next `count` pages behind the hint, or fewer; `leave` pages stay free.
    fn take(&mut self, count: usize, leave: u32, to: &mut Vec<u32>) {
        let wanted = count.min(self.free.saturating_sub(leave) as usize);
        let mut taken = 0;
        while taken < wanted {
            let word = &mut self.words[self.hint];
            if *word == u64::MAX {
                self.hint = (self.hint + 1) % self.words.len();
                continue;
            }
            let bit = word.trailing_ones();
            *word |= 1 << bit;
            to.push(self.hint as u32 * 64 + bit);
            taken += 1;
        }
        self.free -= taken as u32;
    }

    fn put(&mut self, page: u32) {
        debug_assert!(self.is_taken(page), "page {page} is freed once");
        self.words[page as usize / 64] &= !(1 << (page % 64));
        self.free += 1;
    }
}

/// The free page numbers of a file.
#[derive(Debug)]
pub(crate) struct PageNumbers {
    /// Apart from `kept`, whose address every claim reads.
    shared: CachePadded<SpinLock<Bitmap>>,
    /// The lock is the core's own: fibers of one core never contend for it.
    kept: PerCore<SpinLock<Vec<u32>>>,
}

assert_apart!(PageNumbers: shared from kept);

impl PageNumbers {
    /// The numbers of a file without pages.
    pub(crate) fn new(cores: usize) -> PageNumbers {
        PageNumbers {
            shared: CachePadded::new(SpinLock::new(&"page numbers", Bitmap::default())),
            kept: PerCore::new(cores, |_| {
                SpinLock::new(&"kept page numbers", Vec::with_capacity(KEPT_MAX + 1))
            }),
        }
    }

    /// The numbers of a file without pages. `held_back` maps its later number of pages to the
    /// number held back.
    pub(crate) fn holding_back(cores: usize, held_back: fn(u32) -> u32) -> PageNumbers {
        let numbers = PageNumbers::new(cores);
        numbers.shared.lock().held_back = Some(held_back);
        numbers
    }

    /// Takes a page number; `None` when the file must grow.
    pub(crate) fn take(&self, core: usize) -> Option<u32> {
        {
            let mut kept = self.kept.get(core).lock();
            if kept.is_empty() {
                let mut shared = self.shared.lock();
                let leave = shared.held_back();
                shared.take(RUN, leave, &mut kept);
                // The core takes from the end, so the lowest number must be last.
                kept.reverse();
            }
            if let Some(page) = kept.pop() {
                return Some(page);
            }
        }
        // Before the file grows, the core takes a number that a neighbour keeps.
        self.take_kept(core, NEIGHBOURS)
    }

    /// Takes a number that a core keeps, for when the file cannot grow or must not.
    pub(crate) fn take_of_any(&self, core: usize) -> Option<u32> {
        self.take_kept(core, self.kept.len())
    }

    /// Takes a number that one of the next `others` cores keeps, one lock at a time.
    fn take_kept(&self, core: usize, others: usize) -> Option<u32> {
        let cores = self.kept.len();
        (1..=others.min(cores)).find_map(|step| self.kept.get((core + step) % cores).lock().pop())
    }

    /// As [`PageNumbers::take`], and takes what any core keeps. Takes pages that are held back if
    /// there is no other.
    pub(crate) fn take_held_back(&self, core: usize) -> Option<u32> {
        self.take(core).or_else(|| self.take_of_any(core)).or_else(|| {
            let mut one = Vec::with_capacity(1);
            self.shared.lock().take(1, 0, &mut one);
            one.pop()
        })
    }

    /// Returns a page number.
    pub(crate) fn put(&self, core: usize, page: u32) {
        let mut kept = self.kept.get(core).lock();
        kept.push(page);
        if kept.len() > KEPT_MAX {
            let mut shared = self.shared.lock();
            kept.drain(..RUN).for_each(|page| shared.put(page));
        }
    }

    /// Extends the file to `pages` pages. A new page is free unless `taken` returns true for it.
    pub(crate) fn extend(&self, pages: u32, taken: impl FnMut(u32) -> bool) {
        self.shared.lock().extend(pages, taken);
    }

    /// The number of pages in the file, taken or not.
    pub(crate) fn pages(&self) -> u32 {
        self.shared.lock().pages
    }

    /// Whether a core that keeps no number will find none.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.shared.lock().available() == 0
    }

    /// The number of free pages, those that the cores keep included.
    pub(crate) fn free(&self) -> u32 {
        let kept: usize = self.kept.iter().map(|kept| kept.lock().len()).sum();
        self.shared.lock().free + kept as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_given_out_once() {
        let numbers = PageNumbers::new(3);
        assert_eq!(numbers.take(0), None);
        numbers.extend(1000, |page| page % 10 == 0);
        assert_eq!((numbers.pages(), numbers.free()), (1000, 900));
        let mut seen: Vec<u32> = (0..900).map(|turn| numbers.take(turn % 3).unwrap()).collect();
        assert!((0..3).all(|core| numbers.take(core).is_none()));
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 900);
        assert!(seen.iter().all(|page| page % 10 != 0));
        numbers.extend(1003, |_| false);
        assert_eq!(numbers.free(), 3);
        seen.iter().for_each(|&page| numbers.put(1, page));
        assert_eq!(numbers.free(), 903);
        assert!((0..903 - KEPT_MAX).all(|_| numbers.take(0).is_some()));
    }

    #[test]
    fn only_take_held_back_gets_pages_held_back() {
        let numbers = PageNumbers::holding_back(2, |pages| pages / 10);
        numbers.extend(1000, |_| false);
        let ordinary = (0..).take_while(|turn| numbers.take(turn % 2).is_some()).count();
        assert_eq!((ordinary, numbers.free(), numbers.is_exhausted()), (900, 100, true));
        assert!((0..100).all(|_| numbers.take_held_back(0).is_some()));
        assert_eq!((numbers.take_held_back(0), numbers.free()), (None, 0));
        // Returned and new pages first fill up the pages held back.
        numbers.extend(1100, |_| false);
        assert_eq!((numbers.is_exhausted(), numbers.free()), (true, 100));
        numbers.extend(1300, |_| false);
        assert!(!numbers.is_exhausted() && numbers.take(1).is_some());
    }

    #[test]
    fn a_distant_core_keeps_its_numbers_until_the_file_cannot_grow() {
        let numbers = PageNumbers::new(2 * NEIGHBOURS);
        numbers.extend(RUN as u32, |_| false);
        assert!(numbers.take(0).is_some());
        assert_eq!((numbers.take(1), numbers.free()), (None, RUN as u32 - 1));
        assert!(numbers.take(2 * NEIGHBOURS - 1).is_some(), "core 0 is its neighbour");
        assert_eq!((0..RUN).map_while(|_| numbers.take_of_any(0)).count(), RUN - 2);
    }

    #[test]
    fn pages_held_back_are_taken_after_those_of_a_distant_core() {
        let numbers = PageNumbers::holding_back(2 * NEIGHBOURS, |_| 10);
        numbers.extend(RUN as u32 + 10, |_| false);
        assert!(numbers.take(0).is_some());
        assert!((1..RUN).all(|_| numbers.take_held_back(1).is_some()));
        assert_eq!((numbers.take(0), numbers.free()), (None, 10));
        assert!((0..10).all(|_| numbers.take_held_back(1).is_some()));
        assert_eq!(numbers.take_held_back(1), None);
    }

    #[test]
    fn one_core_gets_numbers_in_order() {
        let numbers = PageNumbers::new(1);
        numbers.extend(200, |_| false);
        assert!((0..200).all(|page| numbers.take(0) == Some(page)));
    }
}
