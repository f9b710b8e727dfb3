//! An external merge sort of entries: a key, compared as bytes, and a payload.
//!
//! Entries are gathered in memory. Beyond the bound they are sorted and written to temporary pages
//! as a run. Once as many runs of equal age exist as can be read at once, they are merged. The last
//! merge happens while the entries are drained.
//!
//! What must hold: entries of equal keys keep the order they came in. A run holds a stretch of the
//! input, a merge joins neighbouring runs only, and the earlier run goes first.

use std::cmp::Ordering;

use txn::Folder;
use txn::spool::{self, PAGE_SIZE, Spool, SpoolReader};

use super::{failed, pause, short};
use values::error::SqlError;
use values::work::{self, Pace};

/// An entry in memory: a prefix of the key, and where the rest is. The prefix begins behind the
/// bytes that all keys share and decides most comparisons. The sort fills it.
#[derive(Clone, Copy)]
struct Entry {
    prefix: u64,
    at: usize,
    key: u32,
    payload: u32,
}

impl Entry {
    #[inline]
    fn key<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        &bytes[self.at..self.at + self.key as usize]
    }

    fn payload<'b>(&self, bytes: &'b [u8]) -> &'b [u8] {
        let at = self.at + self.key as usize;
        &bytes[at..at + self.payload as usize]
    }
}

/// The first eight bytes as a number that orders as they do. Missing bytes count as zeros.
fn prefix(key: &[u8]) -> u64 {
    match key.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => key.iter().enumerate().fold(0, |word, (at, byte)| word | u64::from(*byte) << (56 - 8 * at)),
    }
}

/// Fewest runs read at once.
const FAN_IN_MIN: usize = 8;
/// Most runs read at once.
const FAN_IN_MAX: usize = 128;
/// Fewest runs read at once where entries are so long that their first ones fill the memory.
const FAN_IN_LONG: usize = 4;
/// An entry is long from this many bytes on. Comparing some thousand shorter entries takes a few
/// milliseconds at most.
const LONG: usize = 16 << 10;
/// Entries sorted between two safe points: a few milliseconds' work, and more than most statements
/// sort.
const STRETCH: usize = 1 << 16;
/// A limited sorter gathers at least this many entries before it drops those beyond the limit.
const LIMIT_MIN: usize = 64;
/// Bytes of an entry's lengths in a run.
const HEADER: usize = 8;

/// A run in temporary pages, and how many times its entries were written.
struct Run {
    spool: Spool,
    level: u32,
}

/// Takes entries in any order.
pub struct Sorter<'a> {
    folder: &'a Folder,
    /// Bytes it may use.
    memory: usize,
    /// Entries that will be asked for.
    limit: usize,
    /// The key an entry must be below to be among the first `limit`, once that is known.
    bar: Option<Vec<u8>>,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    /// Leading bytes that the keys of all entries in memory have in common.
    common: usize,
    /// Bytes of the longest entry so far: each run that is read holds one in memory.
    longest: usize,
    runs: Vec<Run>,
    pace: Pace,
}

impl<'a> Sorter<'a> {
    /// A sorter that uses about `memory` bytes before it uses temporary pages.
    pub fn new(folder: &'a Folder, memory: usize) -> Sorter<'a> {
        Sorter {
            folder,
            memory,
            limit: usize::MAX,
            bar: None,
            bytes: Vec::with_capacity(1024),
            entries: Vec::with_capacity(16),
            common: 0,
            longest: 0,
            runs: Vec::new(),
            pace: Pace::new(),
        }
    }

    /// As [`Sorter::new`], when only the first `limit` entries, at least one, will be asked for.
    pub fn limited(folder: &'a Folder, memory: usize, limit: usize) -> Sorter<'a> {
        Sorter { limit, ..Sorter::new(folder, memory) }
    }

    /// Adds an entry. `write` appends the payload to the vector it receives. It is not called for
    /// an entry beyond the limit.
    #[inline]
    pub fn push(
        &mut self,
        key: &[u8],
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        if let Some(bar) = &self.bar
            && work::compare(key, bar)?.is_ge()
        {
            return Ok(());
        }
        match self.entries.first() {
            None => self.common = key.len(),
            Some(other) => {
                let other = &other.key(&self.bytes)[..self.common];
                self.common = work::common_prefix(key, other)?;
            }
        }
        let at = self.bytes.len();
        work::put(key, &mut self.bytes)?;
        write(&mut self.bytes)?;
        let payload = short(self.bytes.len() - at - key.len())?;
        self.entries.push(Entry { prefix: 0, at, key: short(key.len())?, payload });
        self.longest = self.longest.max(self.bytes.len() - at);
        if self.entries.len() / 2 >= self.limit.max(LIMIT_MIN) {
            self.cut()?;
        }
        if self.bytes.len() + self.entries.len() * size_of::<Entry>() > self.memory {
            self.spill()?;
        }
        Ok(())
    }

    /// Whether entries went to temporary pages.
    #[cfg(test)]
    pub fn is_spilled(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Sorts the entries in memory, stretch by stretch, then merges the stretches. Safe points lie
    /// in between, because sorting a large memory takes seconds.
    fn sort(&mut self) -> Result<(), SqlError> {
        let (bytes, common) = (self.bytes.as_slice(), self.common);
        let compare = |a: &Entry, b: &Entry| {
            if a.prefix != b.prefix {
                return Ok(a.prefix.cmp(&b.prefix));
            }
            // Earlier rows lie first.
            Ok(work::compare(&a.key(bytes)[common..], &b.key(bytes)[common..])?.then(a.at.cmp(&b.at)))
        };
        // Long keys are compared only in the merge, where an interrupt can end the comparison.
        let mut sorted = if self.longest > LONG { 1 } else { STRETCH };
        for stretch in self.entries.chunks_mut(STRETCH) {
            for entry in &mut *stretch {
                entry.prefix = prefix(&entry.key(bytes)[common..]);
            }
            if sorted > 1 {
                stretch.sort_unstable_by(|a, b| compare(a, b).unwrap_or(Ordering::Equal));
            }
            if stretch.len() == STRETCH {
                pause()?;
            }
        }
        let mut left = Vec::new();
        while sorted < self.entries.len() {
            for pair in self.entries.chunks_mut(2 * sorted) {
                merge(pair, sorted, &mut left, compare)?;
            }
            sorted *= 2;
        }
        if self.entries.len() >= self.limit {
            self.entries.truncate(self.limit);
            if let Some(last) = self.entries.last() {
                let mut bar = Vec::new();
                work::put(last.key(bytes), &mut bar)?;
                self.bar = Some(bar);
            }
        }
        Ok(())
    }

    /// Drops what is beyond the limit, and its bytes.
    fn cut(&mut self) -> Result<(), SqlError> {
        self.sort()?;
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for entry in &mut self.entries {
            let at = bytes.len();
            let length = entry.key as usize + entry.payload as usize;
            work::put(&self.bytes[entry.at..][..length], &mut bytes)?;
            entry.at = at;
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Writes the entries in memory as a run, then merges runs while too many have one age.
    fn spill(&mut self) -> Result<(), SqlError> {
        self.sort()?;
        let mut spool = Spool::new(0);
        for entry in &self.entries {
            self.pace.step()?;
            append(self.folder, &mut spool, entry.key(&self.bytes), entry.payload(&self.bytes))?;
        }
        spool::seal(&mut spool, self.folder).map_err(failed)?;
        self.bytes.clear();
        self.entries.clear();
        self.runs.push(Run { spool, level: 0 });
        let fan_in = self.fan_in();
        while self.runs.len() >= fan_in
            && self.runs[self.runs.len() - fan_in].level == self.runs[self.runs.len() - 1].level
        {
            self.merge_last(fan_in)?;
        }
        Ok(())
    }

    fn fan_in(&self) -> usize {
        let by_pages = (self.memory / PAGE_SIZE).clamp(FAN_IN_MIN, FAN_IN_MAX);
        by_pages.min((self.memory / self.longest.max(1)).max(FAN_IN_LONG))
    }

    /// Makes one run of the last `count`.
    fn merge_last(&mut self, count: usize) -> Result<(), SqlError> {
        // The gathered rows are in the runs, so their memory goes to the pages being read.
        self.bytes = Vec::new();
        self.entries = Vec::new();
        let runs = self.runs.split_off(self.runs.len() - count);
        let level = runs.iter().map(|run| run.level).max().unwrap_or(0) + 1;
        let mut merge = Merge::new(runs)?;
        let mut spool = Spool::new(0);
        let mut left = self.limit;
        while left > 0
            && let Some((key, payload)) = merge.next()?
        {
            self.pace.step()?;
            append(self.folder, &mut spool, key, payload)?;
            left -= 1;
        }
        spool::seal(&mut spool, self.folder).map_err(failed)?;
        self.runs.push(Run { spool, level });
        Ok(())
    }

    /// Ends the gathering: the entries can be drained.
    pub fn finish(mut self) -> Result<Sorted, SqlError> {
        if self.runs.is_empty() {
            self.sort()?;
            return Ok(Sorted(Source::Memory { bytes: self.bytes, entries: self.entries, next: 0 }));
        }
        if !self.entries.is_empty() {
            self.spill()?;
        }
        let fan_in = self.fan_in();
        while self.runs.len() > fan_in {
            self.merge_last(fan_in.min(self.runs.len() - fan_in + 1))?;
        }
        Ok(Sorted(Source::Merged { merge: Merge::new(self.runs)?, left: self.limit }))
    }
}

/// Makes one sorted stretch of two neighbours, the first of them `middle` entries long.
fn merge(
    entries: &mut [Entry],
    middle: usize,
    left: &mut Vec<Entry>,
    compare: impl Fn(&Entry, &Entry) -> Result<Ordering, SqlError>,
) -> Result<(), SqlError> {
    if middle >= entries.len() || compare(&entries[middle - 1], &entries[middle])? == Ordering::Less {
        return Ok(());
    }
    left.clear();
    left.extend_from_slice(&entries[..middle]);
    // Merged rows never overtake the rest of the second stretch.
    let (mut a, mut b) = (0, middle);
    while a < left.len() && b < entries.len() {
        let to = a + b - middle;
        if to.is_multiple_of(STRETCH) {
            pause()?;
        }
        if compare(&entries[b], &left[a])? == Ordering::Less {
            entries[to] = entries[b];
            b += 1;
        } else {
            entries[to] = left[a];
            a += 1;
        }
    }
    entries[a + b - middle..b].copy_from_slice(&left[a..]);
    Ok(())
}

/// Writes an entry to a run.
fn append(folder: &Folder, spool: &mut Spool, key: &[u8], payload: &[u8]) -> Result<(), SqlError> {
    let mut written = Ok(());
    let write = |to: &mut Vec<u8>| {
        to.extend_from_slice(&(key.len() as u32).to_le_bytes());
        to.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        written = work::put(key, to).and_then(|()| work::put(payload, to));
    };
    spool::append(spool, folder, write).map_err(failed)?;
    written
}

/// An entry as it is drained.
pub type KeyAndPayload<'a> = (&'a [u8], &'a [u8]);

/// Entries in the order of their keys.
pub struct Sorted(Source);

/// Where sorted entries come from.
enum Source {
    /// Keys and payloads in memory, where each is, and the next to be given.
    Memory { bytes: Vec<u8>, entries: Vec<Entry>, next: usize },
    /// Runs, and how many entries are wanted.
    Merged { merge: Merge, left: usize },
}

impl Sorted {
    /// The next entry's key and payload. Parks when it comes from a page that is not resident.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "an entry borrows from the sorter, as Iterator cannot")]
    pub fn next(&mut self) -> Result<Option<KeyAndPayload<'_>>, SqlError> {
        match &mut self.0 {
            Source::Memory { bytes, entries, next } => {
                let Some(entry) = entries.get(*next) else { return Ok(None) };
                *next += 1;
                Ok(Some((entry.key(bytes), entry.payload(bytes))))
            }
            Source::Merged { left: 0, .. } => Ok(None),
            Source::Merged { merge, left } => {
                *left -= 1;
                merge.next()
            }
        }
    }
}

/// A run being read.
struct RunReader {
    spool: Spool,
    reader: SpoolReader,
    /// The entry it stands at.
    entry: Vec<u8>,
    key: usize,
    prefix: u64,
}

impl RunReader {
    /// Goes to the next entry; false at the end. Pages that were read are given back.
    fn advance(&mut self) -> Result<bool, SqlError> {
        self.spool.release_before(self.reader.at());
        if self.reader.at() == self.spool.len() {
            return Ok(false);
        }
        let lengths = self.reader.read(&self.spool, HEADER).map_err(failed)?;
        let length = |at: usize| lengths[at..].first_chunk().map_or(0, |b| u32::from_le_bytes(*b) as usize);
        let (key, payload) = (length(0), length(4));
        self.entry.clear();
        work::put(self.reader.read(&self.spool, key + payload).map_err(failed)?, &mut self.entry)?;
        self.key = key;
        self.prefix = prefix(&self.entry[..key]);
        Ok(true)
    }
}

/// Runs read at once: a heap with the least entry's run on top.
struct Merge {
    runs: Vec<RunReader>,
    heap: Vec<usize>,
    /// The top's entry was returned, so the next call moves past it.
    returned: bool,
}

impl Merge {
    fn new(runs: Vec<Run>) -> Result<Merge, SqlError> {
        let mut merge = Merge { runs: Vec::with_capacity(runs.len()), heap: Vec::new(), returned: false };
        for run in runs {
            let reader = SpoolReader::default();
            let mut source = RunReader { spool: run.spool, reader, entry: Vec::new(), key: 0, prefix: 0 };
            if source.advance()? {
                merge.heap.push(merge.runs.len());
            }
            merge.runs.push(source);
        }
        for at in (0..merge.heap.len() / 2).rev() {
            merge.sift(at)?;
        }
        Ok(merge)
    }

    /// Whether one run's entry goes before another's: the earlier run's when the keys are equal.
    fn before(&self, one: usize, other: usize) -> Result<bool, SqlError> {
        let (a, b) = (&self.runs[one], &self.runs[other]);
        let mut order = a.prefix.cmp(&b.prefix);
        if order.is_eq() {
            order = work::compare(&a.entry[..a.key], &b.entry[..b.key])?;
        }
        Ok(order.then(one.cmp(&other)) == Ordering::Less)
    }

    /// Moves the run at a place of the heap down to where it belongs.
    fn sift(&mut self, mut at: usize) -> Result<(), SqlError> {
        loop {
            let mut least = 2 * at + 1;
            if least >= self.heap.len() {
                return Ok(());
            }
            if least + 1 < self.heap.len() && self.before(self.heap[least + 1], self.heap[least])? {
                least += 1;
            }
            if !self.before(self.heap[least], self.heap[at])? {
                return Ok(());
            }
            self.heap.swap(at, least);
            at = least;
        }
    }

    fn next(&mut self) -> Result<Option<KeyAndPayload<'_>>, SqlError> {
        if std::mem::take(&mut self.returned)
            && let Some(&top) = self.heap.first()
        {
            if !self.runs[top].advance()? {
                self.heap.swap_remove(0);
            }
            self.sift(0)?;
        }
        let Some(&top) = self.heap.first() else { return Ok(None) };
        self.returned = true;
        let source = &self.runs[top];
        Ok(Some(source.entry.split_at(source.key)))
    }
}

#[cfg(test)]
mod tests;
