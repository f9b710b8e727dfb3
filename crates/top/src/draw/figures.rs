//! The lines of figures above the list of sessions.

use std::collections::BTreeMap;

use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::{LOW, View, cut};
use crate::numbers;
use crate::sample::Counts;
use crate::state::LockOrder;

/// Cells of a core's bar, and of a core with its name, its percentage and a gap.
const BAR: usize = 20;
const CORE: usize = BAR + 18;
/// Cells of a core's hardware counters, with a gap.
const COUNTERS: usize = 30;
/// Cells before the figures of a line.
const NAME: usize = 14;

/// Lines of figures for a terminal of this size, the important ones first.
pub(super) fn lines<'a>(view: &View<'a>, area: Rect) -> Vec<Line<'a>> {
    let mut lines = vec![throughput(view), sessions(view), cores(view)];
    lines.extend(counters(view));
    lines.extend([buffers(view), log(view)]);
    if area.height > LOW {
        let spare = area.height - LOW;
        lines.insert(2, waits(view));
        let bars = bars(view, usize::from(area.width), usize::from(spare / 4).clamp(1, 8));
        lines.splice(4..4, bars);
        lines.extend(locks(view, usize::from(spare / 3).clamp(1, 10)));
    }
    lines
}

pub(super) fn throughput<'a>(view: &View<'_>) -> Line<'a> {
    let round_trip = numbers::time(view.sample.round_trip.as_secs_f64());
    let text = match view.figures {
        None => format!("measuring for {}", numbers::time(view.interval.as_secs_f64())),
        Some(figures) => format!(
            "{}/s: {} commits, {} rollbacks",
            numbers::count(figures.commits + figures.rollbacks),
            numbers::count(figures.commits),
            numbers::count(figures.rollbacks)
        ),
    };
    named("transactions", format!("{text}; round trip {round_trip}"))
}

fn sessions<'a>(view: &View<'_>) -> Line<'a> {
    let mut states: BTreeMap<&str, u64> = BTreeMap::new();
    for group in &view.sample.groups {
        *states.entry(&group.state).or_default() += group.sessions;
    }
    let all: u64 = states.values().sum();
    let longest = view.sample.sessions.iter().filter_map(|session| session.transaction).fold(0.0, f64::max);
    let mut text = format!("{}: {}", numbers::count(all as f64), tally(states));
    if longest > 0.0 {
        text.push_str(&format!("; oldest transaction {}", numbers::time(longest)));
    }
    named("sessions", text)
}

/// Wait events of the sessions that are not idle.
fn waits<'a>(view: &View<'_>) -> Line<'a> {
    let mut waits: BTreeMap<&str, u64> = BTreeMap::new();
    for group in view.sample.groups.iter().filter(|group| group.state != "idle") {
        *waits.entry(group.wait.as_deref().unwrap_or("running")).or_default() += group.sessions;
    }
    named("waits", tally(waits))
}

/// `3 active, 1 idle`: the largest first.
fn tally(counts: BTreeMap<&str, u64>) -> String {
    let mut counts: Vec<(&str, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let texts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{} {name}", numbers::count(*count as f64))).collect();
    texts.join(", ")
}

fn cores<'a>(view: &View<'_>) -> Line<'a> {
    let all = view.sample.cores.len();
    let known: Vec<(f64, f64)> =
        view.figures.map(|figures| figures.cores.iter().flatten().copied().collect()).unwrap_or_default();
    let text = match known.len() {
        0 if view.figures.is_some() => format!("{all}; the system does not tell their times"),
        0 => all.to_string(),
        cores => {
            let share = |of: fn(&(f64, f64)) -> f64| known.iter().map(of).sum::<f64>() / cores as f64;
            let (user, system) = (share(|times| times.0), share(|times| times.1));
            format!(
                "{all}: busy {} (kernel {}), idle {}",
                numbers::percent(user + system),
                numbers::percent(system),
                numbers::percent((1.0 - user - system).max(0.0))
            )
        }
    };
    named("cores", text)
}

/// Hardware counters of all cores together, while the user asks for them.
fn counters<'a>(view: &View<'_>) -> Option<Line<'a>> {
    let known = view.sample.counters.as_ref().filter(|_| view.state.counters)?;
    let mut text = match view.figures.and_then(|figures| figures.counters.as_ref()) {
        None => "measuring".to_owned(),
        Some(rates) => counted(&Counts::sum(rates)),
    };
    let is_missing = |core: &Counts| [core.cycles, core.instructions, core.cache_misses].contains(&None);
    if let Some(refused) = known.refused.as_ref().filter(|_| known.cores.iter().any(is_missing)) {
        text.push_str(&format!("; {refused}"));
    }
    Some(named("counters", text))
}

/// Instructions per cycle and cache misses by second; `-` where they are not counted.
fn counted(rates: &Counts) -> String {
    let or_dash = |figure: Option<String>| figure.unwrap_or_else(|| "-".to_owned());
    let per_cycle = or_dash(rates.instructions_per_cycle().map(|figure| format!("{figure:.2}")));
    let misses = or_dash(rates.cache_misses.map(numbers::count));
    format!("ipc {per_cycle}, misses/s {misses}")
}

/// A bar for each core, several on a line: `#` in the program, `k` in the kernel. Where the bars
/// need more lines, each core is one digit: the tenths of its time that it was busy.
fn bars<'a>(view: &View<'_>, width: usize, most: usize) -> Vec<Line<'a>> {
    let Some(figures) = view.figures else { return Vec::new() };
    let times = |at: usize| figures.cores.get(at).copied().flatten();
    let cores = &view.sample.cores;
    let rates = figures.counters.as_ref().filter(|_| view.state.counters);
    let cell = CORE + rates.map_or(0, |_| COUNTERS);
    let a_line = (width.saturating_sub(1) / cell).max(1);
    if cores.len().div_ceil(a_line) <= most {
        let texts: Vec<String> = cores
            .iter()
            .enumerate()
            .map(|(at, core)| {
                let (user, system) = times(at).unwrap_or_default();
                let cells = |share: f64| (share * BAR as f64).round() as usize;
                let bar = "#".repeat(cells(user)) + &"k".repeat(cells(user + system) - cells(user));
                let busy = times(at).map_or_else(|| "?".to_owned(), |_| numbers::percent(user + system));
                let times = cut(&format!("{} [{bar:BAR$}] {busy:>4}", cut(&core.name, 8)), CORE);
                let counted = rates.and_then(|rates| rates.get(at)).map(counted).unwrap_or_default();
                cut(&format!("{times}{counted}"), cell)
            })
            .collect();
        return texts.chunks(a_line).map(|line| Line::raw(format!(" {}", line.concat()))).collect();
    }
    let digits: Vec<String> = (0..cores.len())
        .map(|at| match times(at) {
            Some((user, system)) => format!("{:.0}", ((user + system) * 10.0).floor().min(9.0)),
            None => "?".to_owned(),
        })
        .collect();
    let a_line = width.saturating_sub(NAME + 1).max(1);
    digits.chunks(a_line).take(most).map(|line| named("busy tenths", line.concat())).collect()
}

fn buffers<'a>(view: &View<'_>) -> Line<'a> {
    let Some(buffers) = &view.sample.buffers else { return named("buffers", "unknown".to_owned()) };
    let count = |number: u64| numbers::count(number as f64);
    let mut text = format!("{} of {} frames in use", count(buffers.in_use), count(buffers.frames));
    if let Some(figures) = view.figures {
        text.push_str(&format!(
            "; {} reads/s, {} evictions/s, {} writes/s",
            numbers::count(figures.reads),
            numbers::count(figures.evictions),
            numbers::count(figures.page_writes)
        ));
    }
    text.push_str(&format!("; {} passes; {}", count(buffers.passes), buffers.pages));
    named("buffers", text)
}

fn log<'a>(view: &View<'_>) -> Line<'a> {
    let Some(log) = &view.sample.log else { return named("log", "unknown".to_owned()) };
    let mut text = String::new();
    if let Some(figures) = view.figures {
        text.push_str(&format!(
            "{}/s in {} writes/s",
            numbers::bytes(figures.log_bytes),
            numbers::count(figures.log_writes)
        ));
        if let Some(served) = figures.served {
            text.push_str(&format!(" for {} sessions each", numbers::count(served)));
        }
        text.push_str("; ");
    }
    text.push_str(&format!("in flight: {} (sessions: {})", log.in_flight, log.sessions_in_flight));
    text.push_str(&format!("; durable to {:X}/{:X}", log.durable >> 32, log.durable & 0xffff_ffff));
    named("log", text)
}

/// The hottest locks, with a heading.
fn locks<'a>(view: &View<'_>, most: usize) -> Vec<Line<'a>> {
    let mark = |order, name: &str| {
        if view.state.locks == order { format!("{name}*") } else { name.to_owned() }
    };
    if view.sample.locks.is_empty() {
        let how = "not profiled; to start: select allcore_lock_profile_enable()";
        return vec![named("locks", how.to_owned())];
    }
    let heading = columns([
        "lock",
        "place",
        "kind",
        &mark(LockOrder::Wait, "waited/s"),
        &mark(LockOrder::Hold, "held/s"),
        &mark(LockOrder::Count, "count/s"),
        "had to wait",
    ]);
    let mut lines = vec![Line::styled(heading, Style::new().add_modifier(Modifier::UNDERLINED))];
    let locks = view.figures.map(|figures| view.state.hottest(&figures.locks)).unwrap_or_default();
    lines.extend(locks.into_iter().take(most).map(|lock| {
        let [class, site, kind] = &lock.name;
        let waited =
            if lock.count > 0.0 { numbers::percent(lock.contended / lock.count) } else { String::new() };
        Line::raw(columns([
            class,
            site,
            kind,
            &numbers::time(lock.wait),
            &numbers::time(lock.hold),
            &numbers::count(lock.count),
            &waited,
        ]))
    }));
    lines
}

fn columns(texts: [&str; 7]) -> String {
    const WIDTHS: [usize; 7] = [16, 32, 9, 10, 10, 10, 11];
    texts.iter().zip(WIDTHS).map(|(text, width)| format!(" {}", cut(text, width))).collect()
}

fn named<'a>(name: &str, text: String) -> Line<'a> {
    let name = Span::styled(format!(" {name:NAME$}"), Style::new().add_modifier(Modifier::BOLD));
    Line::from(vec![name, Span::raw(text)])
}
