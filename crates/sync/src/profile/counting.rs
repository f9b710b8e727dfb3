//! The profiler's memory: the switch, the sites and the threads' tables.
//!
//! All of it is static, because counting may happen inside the allocator. The tables of threads
//! that never count take no memory: the kernel gives them pages at the first write.

use std::cell::Cell;

use super::tally::Tally;
use super::{Counts, Hold, Kind, Row, Site, Waiting, marks};
use crate::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::core_local;
use crate::machine::OnceLock;
use crate::padded::CachePadded;
pub(super) use crate::processor::ticks;

/// Low bits of a [`Hold`] that have the site's number. The others have the time: 54 bits of ticks
/// last for 57 days at 3.6 GHz.
const SITE_BITS: u32 = 10;
/// The ticks that fit beside the site's number.
const TICKS: u64 = u64::MAX >> SITE_BITS;
/// Sites in the table. The first one stands for all that come when the table is full.
const SITES: usize = 1 << SITE_BITS;
/// Threads that can count at the same time.
const THREADS: usize = 1024;
/// Tries to read two clocks at the same moment.
const TRIES: usize = 16;

/// The words that all threads read and hardly any writes.
struct Switch {
    on: AtomicBool,
    /// Goes up with each reset; never 0.
    epoch: AtomicU64,
    /// The ticks of the last reset.
    since: AtomicU64,
}

static SWITCH: CachePadded<Switch> = CachePadded::new(Switch {
    on: AtomicBool::new(false),
    epoch: AtomicU64::new(1),
    since: AtomicU64::new(0),
});

/// The sites by hash. A place that is taken never changes; place 0 stays free.
struct Known([OnceLock<Site>; SITES]);

static KNOWN: Known = Known([const { OnceLock::new() }; SITES]);

/// The tallies of one thread, by site.
struct Table {
    /// Whether a thread has it.
    owned: AtomicBool,
    /// Whether a thread has ever had it. Threads take the first free one, so those that were used
    /// come first.
    used: AtomicBool,
    tallies: [Tally; SITES],
}

impl Table {
    const fn new() -> Table {
        let (owned, used) = (AtomicBool::new(false), AtomicBool::new(false));
        Table { owned, used, tallies: [const { Tally::new() }; SITES] }
    }
}

static TABLES: [Table; THREADS] = [const { Table::new() }; THREADS];

/// Events of threads that found no free table.
static LOST: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));

/// The clock of the runtime beside the processor's, at one moment.
struct Moment {
    nanos: u64,
    ticks: u64,
}

/// The clock, and the moment when the profiler was first enabled.
static ORIGIN: OnceLock<(fn() -> u64, Moment)> = OnceLock::new();

impl Moment {
    /// Reads both clocks. Takes the try in which the least time passed between the two.
    fn now(clock: fn() -> u64) -> Moment {
        let tries = (0..TRIES).map(|_| {
            let (before, nanos, after) = (ticks(), clock(), ticks());
            (after.saturating_sub(before), Moment { nanos, ticks: before })
        });
        tries.min_by_key(|(apart, _)| *apart).expect("there are several tries").1
    }
}

/// Whether the profiler counts now.
#[inline(always)]
pub(crate) fn is_on() -> bool {
    // Relaxed: a hold that begins a moment later counts.
    SWITCH.on.load(Ordering::Relaxed)
}

/// Begins to count. `clock` gives nanoseconds: [`rows`] converts by it.
pub fn enable(clock: fn() -> u64) {
    ORIGIN.get_or_init(|| (clock, Moment::now(clock)));
    // Release: a reader that sees a count can convert its ticks.
    SWITCH.on.store(true, Ordering::Release);
}

/// Counts no hold or wait that begins later. Counts stay.
pub fn disable() {
    // Relaxed: as in `is_on`.
    SWITCH.on.store(false, Ordering::Relaxed);
}

/// Forgets all counts, and the time so far of holds and waits that go on. Such a hold does not
/// count when it ends, and such a wait counts from now on.
pub fn reset() {
    // Relaxed: the epoch publishes it. The later one of two resets at once stays.
    SWITCH.since.fetch_max(ticks(), Ordering::Relaxed);
    // Release: a thread that counts for this epoch sees when it began. A thread that sees it a
    // moment later counts for the old epoch until then.
    SWITCH.epoch.fetch_add(1, Ordering::Release);
    LOST.store(0, Ordering::Relaxed); // Relaxed: a count
}

/// Tells the holder of the lock with this key that somebody waits. A waiter repeats it, because the
/// lock may change hands.
#[inline]
pub(crate) fn mark(key: usize) {
    marks::put(key);
}

/// Whether the lock with this key was waited for; takes the mark.
#[cold]
pub(super) fn take_mark(key: usize) -> bool {
    marks::take(key)
}

/// Counts an acquisition, which ended the wait if there was one, and begins the hold.
#[cold]
pub(super) fn begin(key: usize, site: &Site, waiting: Option<Waiting>) -> Hold {
    // A mark that is still there was meant for the last hold.
    marks::take(key);
    let now = ticks();
    let number = with_tally(site, |number, tally| {
        tally.count();
        if let Some(Waiting(begun)) = waiting {
            tally.wait(now.saturating_sub(begun.max(since())));
        }
        number
    });
    // A hold that begins at 0 would seem to be none.
    number.map_or(Hold::NONE, |number| Hold((now & TICKS).max(1) << SITE_BITS | number as u64))
}

/// Counts the end of a hold.
#[cold]
pub(super) fn end(Hold(hold): Hold, contended: bool) {
    let now = ticks();
    let age = now.wrapping_sub(hold >> SITE_BITS) & TICKS;
    // The clock where it began may have been ahead of this one.
    let held = if age > TICKS / 2 { 0 } else { age };
    with_numbered(hold as usize % SITES, |tally| {
        if now.saturating_sub(held) >= since() {
            tally.hold(held, contended);
        }
    });
}

/// The ticks of the reset that began the epoch of this thread's tally, or a later one.
fn since() -> u64 {
    // Relaxed: the look at the epoch, which came before, acquired it.
    SWITCH.since.load(Ordering::Relaxed)
}

/// Counts a wait that is over.
#[cold]
pub(super) fn count_wait(site: &Site, Waiting(begun): Waiting) {
    let now = ticks();
    with_tally(site, |_, tally| {
        tally.count();
        tally.wait(now.saturating_sub(begun.max(since())));
    });
}

/// Counts an event.
#[cold]
pub(super) fn count_event(site: &Site) {
    with_tally(site, |_, tally| tally.count());
}

/// The counts since the last reset, a row for each class, place and kind.
pub fn rows() -> Vec<Row> {
    let Some((clock, origin)) = ORIGIN.get() else { return Vec::new() };
    let now = Moment::now(*clock);
    let (nanos, ticks) = (now.nanos.saturating_sub(origin.nanos), now.ticks.saturating_sub(origin.ticks));
    let rate = if ticks == 0 { 1.0 } else { nanos as f64 / ticks as f64 };
    // Relaxed: the epoch of some moment of this call.
    let epoch = SWITCH.epoch.load(Ordering::Relaxed);
    let mut rows: Vec<Row> = Vec::new();
    for (number, known) in KNOWN.0.iter().enumerate() {
        if known.get().is_none() && number != 0 {
            continue;
        }
        let mut sum = Counts::default();
        // Acquire: pairs with the claim of a table.
        let used = TABLES.iter().take_while(|table| table.used.load(Ordering::Acquire));
        used.filter_map(|table| table.tallies[number].read(epoch)).for_each(|counts| sum.add(counts));
        if sum == Counts::default() {
            continue;
        }
        let row = Row::of(known.get(), sum.in_nanos(rate));
        // One place in the source may have several addresses.
        let same =
            |other: &&mut Row| (other.class, &other.site, other.kind) == (row.class, &row.site, row.kind);
        match rows.iter_mut().find(same) {
            Some(other) => other.counts.add(row.counts.as_array()),
            None => rows.push(row),
        }
    }
    let lost = LOST.load(Ordering::Relaxed); // Relaxed: a count
    if lost != 0 {
        rows.push(Row::summary("threads without counts", Counts { count: lost, ..Counts::default() }));
    }
    rows
}

impl Row {
    fn of(site: Option<&Site>, counts: Counts) -> Row {
        match site {
            Some(site) => {
                let at = format!("{}:{}", site.at.file().trim_start_matches("crates/"), site.at.line());
                Row { class: site.class, site: at, kind: site.kind, counts }
            }
            None => Row::summary("other places", counts),
        }
    }

    /// A row that stands for no place.
    fn summary(class: &'static str, counts: Counts) -> Row {
        Row { class, site: String::new(), kind: Kind::Acquire, counts }
    }
}

impl Counts {
    fn as_array(self) -> [u64; 7] {
        [
            self.count,
            self.hold_total,
            self.hold_max,
            self.wait_total,
            self.wait_max,
            self.contended_hold,
            self.contended_wait,
        ]
    }

    /// Adds the counts of another thread or place.
    fn add(&mut self, counts: [u64; 7]) {
        let [count, hold_total, hold_max, wait_total, wait_max, contended_hold, contended_wait] = counts;
        self.count = self.count.wrapping_add(count);
        self.hold_total = self.hold_total.wrapping_add(hold_total);
        self.hold_max = self.hold_max.max(hold_max);
        self.wait_total = self.wait_total.wrapping_add(wait_total);
        self.wait_max = self.wait_max.max(wait_max);
        self.contended_hold = self.contended_hold.wrapping_add(contended_hold);
        self.contended_wait = self.contended_wait.wrapping_add(contended_wait);
    }

    fn in_nanos(mut self, rate: f64) -> Counts {
        for time in [&mut self.hold_total, &mut self.hold_max, &mut self.wait_total, &mut self.wait_max] {
            *time = (*time as f64 * rate) as u64;
        }
        self
    }
}

impl Known {
    /// The number of a site, which it keeps for ever; 0 if there is no room for it.
    fn number_of(&self, site: &Site) -> usize {
        // A class may lie at several addresses, as a place may: `rows` adds them up.
        let same = |known: &Site| {
            std::ptr::eq(known.at, site.at)
                && std::ptr::eq(known.class, site.class)
                && known.kind == site.kind
        };
        let class = std::ptr::from_ref(site.class).addr().rotate_left(17);
        let address = (std::ptr::from_ref(site.at).addr() ^ class) as u64;
        let mixed = (address ^ (site.kind as u64) << 56).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let first = (mixed >> (u64::BITS - SITE_BITS)) as usize;
        let places = (0..SITES).map(|step| (first + step) % SITES);
        let mut found = places.filter(|place| *place != 0).filter(|place| {
            let known = &self.0[*place];
            same(known.get().unwrap_or_else(|| known.get_or_init(|| *site)))
        });
        found.next().unwrap_or(0)
    }
}

/// Calls `body` with the site's number and this thread's tally of it; `None` where the thread has
/// no table.
fn with_tally<R>(site: &Site, body: impl FnOnce(usize, &Tally) -> R) -> Option<R> {
    let number = KNOWN.number_of(site);
    with_numbered(number, |tally| body(number, tally))
}

/// Calls `body` with this thread's tally of a site.
fn with_numbered<R>(number: usize, body: impl FnOnce(&Tally) -> R) -> Option<R> {
    let Some(table) = OWN.try_with(Own::table).ok().flatten() else {
        LOST.fetch_add(1, Ordering::Relaxed); // Relaxed: a count
        return None;
    };
    let tally = &table.tallies[number];
    // Acquire: pairs with `reset`.
    tally.enter(SWITCH.epoch.load(Ordering::Acquire));
    Some(body(tally))
}

core_local! {
    static OWN: Own = const { Own(Cell::new(Claim::Unasked)) };
}

/// The table of a thread.
struct Own(Cell<Claim>);

#[derive(Clone, Copy)]
enum Claim {
    /// The thread has counted nothing so far.
    Unasked,
    Has(&'static Table),
    /// All tables were owned when the thread asked.
    Refused,
}

impl Own {
    fn table(&self) -> Option<&'static Table> {
        match self.0.get() {
            Claim::Has(table) => Some(table),
            Claim::Refused => None,
            Claim::Unasked => self.ask(),
        }
    }

    #[cold]
    fn ask(&self) -> Option<&'static Table> {
        // Acquire: the counts of the last owner are seen. Relaxed on failure: nothing is read.
        let take =
            |owned: &AtomicBool| owned.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        let table = TABLES.iter().find(|table| take(&table.owned).is_ok());
        self.0.set(table.map_or(Claim::Refused, Claim::Has));
        table.inspect(|table| {
            // Release: pairs with the readers of `used`.
            table.used.store(true, Ordering::Release);
        })
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        if let Claim::Has(table) = self.0.get() {
            // Release: the next owner sees the counts.
            table.owned.store(false, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_of_sites_keeps_its_numbers_and_gives_0_to_the_next_ones() {
        static SOME: Known = Known([const { OnceLock::new() }; SITES]);
        let site = |class: &'static str| Site::here(Box::leak(Box::new(class)), Kind::Acquire);
        let sites: Vec<Site> = (0..SITES + 10).map(|_| site("class")).collect();
        let numbers: Vec<usize> = sites.iter().map(|site| SOME.number_of(site)).collect();
        let mut taken = numbers[..SITES - 1].to_vec();
        taken.sort_unstable();
        assert!(taken.iter().copied().eq(1..SITES), "each of the first ones has a number of its own");
        assert!(numbers[SITES - 1..].iter().all(|number| *number == 0));
        assert!(sites.iter().map(|site| SOME.number_of(site)).eq(numbers));
    }
}
