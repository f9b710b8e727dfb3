//! The check of a tree: it reads every page and tests every rule that nodes keep.
//!
//! The check verifies each node's kind, tree and level, and the order and prefix of its keys. Keys
//! lie between the fences, and the fences equal those in the parent. Slots and heap neither overlap
//! nor leave the page. The walk reaches every page once, and the space map has it in use. It does
//! not look into values. The tree must be quiet meanwhile: the check may report a concurrent change
//! as damage.

use runtime::hash::HashSet;

use super::Tree;
use super::descend::{Retry, Stop, look};
use crate::node::buffer::PageBuffer;
use crate::node::{COUNT, HEAP, KeyBuffer, LIVE, MAX_LEVEL, Node, PREFIX_INLINE, SLOT, SLOTS};
use crate::page::{self, PAGE_SIZE, PageKind};
use crate::{Error, PageNo, Store};

/// The most problems that a report lists; the check stops counting after that.
const PROBLEMS_MAX: usize = 100;

/// A rule that a page breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The page.
    pub page: PageNo,
    /// The rule that it breaks.
    pub what: String,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Pages reached.
    pub pages: u64,
    /// Leaves among them.
    pub leaves: u64,
    /// Entries in the leaves.
    pub entries: u64,
    /// Bytes in use in the leaves.
    pub(crate) leaf_bytes: u64,
    /// Levels above the leaves.
    pub height: u8,
    /// The problems found; empty for a sound tree.
    pub problems: Vec<Problem>,
}

/// A page to visit, with the properties that its parent promises.
struct Visit {
    page_no: PageNo,
    level: Option<u8>,
    lower: Vec<u8>,
    upper: Option<Vec<u8>>,
}

impl Tree {
    /// Checks the whole tree. Damage goes into the report. An error means that a page could not be
    /// read for a reason other than damage.
    pub fn check(&self, store: &Store) -> Result<Report, Error> {
        let mut check =
            Check { tree: *self, report: Report::default(), seen: HashSet::default(), visits: Vec::new() };
        check.visits.push(Visit { page_no: self.root, level: None, lower: Vec::new(), upper: None });
        while let Some(visit) = check.visits.pop() {
            if check.report.problems.len() >= PROBLEMS_MAX {
                break;
            }
            if !check.seen.insert(visit.page_no) {
                check.problem(visit.page_no, "reached twice");
                continue;
            }
            match store.space.is_used(visit.page_no) {
                Ok(true) => {}
                Ok(false) => check.problem(visit.page_no, "free in the space map"),
                Err(Error::Corrupt { what, .. }) => check.problem(visit.page_no, what),
                Err(error) => return Err(error),
            }
            match read(store, visit.page_no) {
                Ok(bytes) => check.page(&visit, &bytes),
                Err(Error::Corrupt { what, .. }) => check.problem(visit.page_no, what),
                Err(error) => return Err(error),
            }
            runtime::fiber::safe_point();
        }
        Ok(check.report)
    }
}

/// A private copy of a page.
pub(super) fn read(store: &Store, page_no: PageNo) -> Result<PageBuffer, Error> {
    let mut retry = Retry::new(&store.pool);
    let mut copy = PageBuffer::take();
    loop {
        let attempt = look(&store.pool, page_no, None).and_then(|step| {
            step.page.bytes().copy_all(&mut *copy);
            step.page.validate().map_err(Stop::from)
        });
        match attempt {
            Ok(()) => return Ok(copy),
            Err(stop) => retry.after(stop)?,
        }
    }
}

struct Check {
    tree: Tree,
    report: Report,
    seen: HashSet<PageNo>,
    visits: Vec<Visit>,
}

impl Check {
    fn problem(&mut self, page: PageNo, what: impl Into<String>) {
        self.report.problems.push(Problem { page, what: what.into() });
    }

    fn page(&mut self, visit: &Visit, bytes: &PageBuffer) {
        if let Err(what) = self.node(visit, &**bytes) {
            self.problem(visit.page_no, what);
        }
    }

    fn node(&mut self, visit: &Visit, bytes: &[u8]) -> Result<(), String> {
        let node = Node::of(bytes);
        let level = page::level(bytes);
        let expected = if level == 0 { PageKind::Leaf } else { PageKind::Inner };
        if page::page_no(bytes) != visit.page_no {
            return Err(format!("holds page {}", page::page_no(bytes)));
        }
        if page::tree(bytes) != self.tree.id {
            return Err(format!("belongs to tree {}", page::tree(bytes)));
        }
        if level > MAX_LEVEL
            || visit.level.is_some_and(|wanted| wanted != level)
            || page::kind(bytes) != Some(expected)
        {
            return Err(format!(
                "level {level}, kind {:?}, under level {:?}",
                page::kind(bytes),
                visit.level
            ));
        }
        self.report.pages += 1;
        self.report.height = self.report.height.max(level);
        let space = space(bytes).ok_or("heap or slots out of place")?;
        fences(visit, bytes).ok_or("fences are not those of its parent")?;
        let keys = keys(bytes).ok_or("keys out of order or beyond the fences")?;
        if level == 0 {
            self.report.leaves += 1;
            self.report.entries += keys.len() as u64;
            self.report.leaf_bytes += space as u64;
            return Ok(());
        }
        for position in 0..=keys.len() {
            let page_no = node.child(position).ok_or("unreadable child")?;
            let lower =
                position.checked_sub(1).map_or_else(|| visit.lower.clone(), |index| keys[index].clone());
            let upper = keys.get(position).cloned().or_else(|| visit.upper.clone());
            self.visits.push(Visit { page_no, level: Some(level - 1), lower, upper });
        }
        Ok(())
    }
}

/// Bytes in use, if slots and heap entries lie in bounds and the node's count of heap bytes is
/// right.
pub(crate) fn space(bytes: &[u8]) -> Option<usize> {
    let node = Node::of(bytes);
    let u16_at = |at: usize| Some(usize::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)));
    let (count, heap, live) = (u16_at(COUNT)?, u16_at(HEAP)?, u16_at(LIVE)?);
    let fences = node.upper()?.map_or(0, |range| range.len()) + node.lower()?.len();
    let prefix = node.prefix()?;
    let long_prefix = if prefix.len() > PREFIX_INLINE { prefix.len() } else { 0 };
    let heap_end = PAGE_SIZE - fences - long_prefix;
    if heap < SLOTS + count * SLOT || (long_prefix > 0 && prefix.start != heap_end) {
        return None;
    }
    let mut ranges = Vec::with_capacity(count);
    for index in 0..count {
        ranges.push(node.suffix(index)?.start..node.payload(index)?.end);
    }
    ranges.sort_unstable_by_key(|range| range.start);
    let inside = ranges.iter().all(|range| range.start >= heap && range.end <= heap_end);
    let apart = ranges.windows(2).all(|pair| pair[0].end <= pair[1].start);
    let counted = ranges.iter().map(ExactSizeIterator::len).sum::<usize>() + PAGE_SIZE - heap_end == live;
    (inside && apart && counted).then_some(count * SLOT + live)
}

fn fences(visit: &Visit, bytes: &[u8]) -> Option<()> {
    let node = Node::of(bytes);
    let lower = bytes.get(node.lower()?)?;
    let upper = match node.upper()? {
        Some(range) => Some(bytes.get(range)?),
        None => None,
    };
    (lower == visit.lower.as_slice() && upper == visit.upper.as_deref()).then_some(())
}

/// All keys, if they ascend and lie between the fences, and a search finds each in its place.
fn keys(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let node = Node::of(bytes);
    let count = node.count()?;
    let mut keys: Vec<Vec<u8>> = Vec::with_capacity(count);
    for index in 0..count {
        let key: KeyBuffer = node.key(index)?;
        let found = node.search(key.as_slice())?;
        let ascends = keys.last().is_none_or(|last| last.as_slice() < key.as_slice());
        if !ascends || !node.covers(key.as_slice())? || !found.exact || found.index != index {
            return None;
        }
        keys.push(key.as_slice().to_vec());
    }
    Some(keys)
}
