//! Events of the server's hardware and kernel for each transaction, as `perf stat` counts them.
//!
//! perf opens the kernel's counters for each thread of the server's processes. A counter passes to
//! the threads and processes that its thread starts, so sessions that begin meanwhile count, be
//! they threads or processes. The counters exist for this part of the round alone. At each context
//! switch they cost a server time, and some servers switch more than others.
//!
//! What must hold: an event that perf could not count is NaN with a reason, never zero.

use super::{UNCOUNTED, reason, seconds};
use crate::figures::list;
use crate::record::Counters;

/// The counted events by perf's names, in the order of the fields of [`Counters`].
pub(super) const EVENTS: [&str; 7] =
    ["cycles", "instructions", "cache-misses", "node-loads", "task-clock", "cpu-migrations", "page-faults"];

/// Counts a second.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::observe) struct Counted {
    pub(in crate::observe) a_second: Counters,
    /// The limits of these counts: a sentence each.
    pub(in crate::observe) limits: Vec<String>,
}

/// The report of `perf stat` on an event.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Reading {
    Number(f64),
    /// A number without the kernel's part.
    OfProgram(f64),
    /// It did not happen in the time, or the counter had no turn.
    Uncounted,
    Unsupported,
}

/// Counts a second, from the messages of `perf stat`. The error explains why there are none.
pub(super) fn read(said: &str) -> Result<Counted, String> {
    let reports = EVENTS.map(|event| said.lines().find_map(|line| report(line, event)));
    let is_count = |report: &Reading| matches!(report, Reading::Number(_) | Reading::OfProgram(_));
    let is_counted = reports.iter().flatten().any(is_count);
    let Some(elapsed) = seconds(said).filter(|_| is_counted) else {
        let is_over = reports.contains(&Some(Reading::Uncounted));
        return Err(if is_over { UNCOUNTED.into() } else { reason(said) });
    };
    let mut unsupported = Vec::new();
    let (mut uncounted, mut forbidden, mut of_program) = (Vec::new(), Vec::new(), false);
    let figures = std::array::from_fn::<f64, { EVENTS.len() }, _>(|at| {
        let event = EVENTS[at];
        match reports[at] {
            Some(Reading::Number(count)) => return count / elapsed,
            // A migration happens in the kernel: without it perf counts none.
            Some(Reading::OfProgram(_)) if event == "cpu-migrations" => forbidden.push(event),
            Some(Reading::OfProgram(count)) => {
                // The time on a processor is whole all the same.
                of_program |= event != "task-clock";
                return count / elapsed;
            }
            Some(Reading::Unsupported) => unsupported.push(event),
            Some(Reading::Uncounted) | None => uncounted.push(event),
        }
        f64::NAN
    });
    let lacks = |events: Vec<&str>, why: &str| {
        let events: Vec<String> = events.into_iter().map(str::to_owned).collect();
        (!events.is_empty()).then(|| format!("no {}: {why}", list(&events)))
    };
    let limits = [
        lacks(unsupported, "this machine has no such counter"),
        lacks(uncounted, "perf did not get to count them"),
        lacks(forbidden, FORBIDDEN),
        of_program.then(|| format!("counters of the server's own code alone: {FORBIDDEN}")),
    ];
    let [cycles, instructions, cache_misses, node_loads, milliseconds, migrations, page_faults] = figures;
    let cpu = milliseconds * 1000.0;
    let a_second = Counters { cycles, instructions, cache_misses, node_loads, cpu, migrations, page_faults };
    Ok(Counted { a_second, limits: limits.into_iter().flatten().collect() })
}

const FORBIDDEN: &str = "perf may not count in the kernel (kernel.perf_event_paranoid)";

/// The report of an event if it is on this line: `1,234.5 msec task-clock:u  # ...`.
fn report(line: &str, event: &str) -> Option<Reading> {
    let line = line.trim_start();
    let state = |text| Some((line.strip_prefix(text)?, None));
    let number = || {
        let (number, rest) = line.split_once(char::is_whitespace)?;
        Some((rest, Some(number.replace(',', "").parse::<f64>().ok()?)))
    };
    let is_supported = !line.starts_with("<not supported>");
    let (rest, number) = state("<not supported>").or_else(|| state("<not counted>")).or_else(number)?;
    let mut words = rest.split_whitespace().skip_while(|word| *word == "msec");
    let (name, modifier) = words.next().map(|name| name.split_once(':').unwrap_or((name, "")))?;
    let report = match number {
        _ if !is_supported => Reading::Unsupported,
        None => Reading::Uncounted,
        Some(count) if modifier.contains('u') => Reading::OfProgram(count),
        Some(count) => Reading::Number(count),
    };
    (name == event).then_some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Numbers;

    const SAID: &str = "\n Performance counter stats for process id '1,2':\n\n\
         2,000,000      cycles                    #    2.000 GHz            (49.97%)\n\
         3,000,000      instructions              #    1.50  insn per cycle\n\
         <not supported>      cache-misses\n     1,000      node-loads\n\
         500.00 msec task-clock                   #    1.000 CPUs utilized\n\
         6      cpu-migrations                    #   12.000 /sec\n         8      page-faults\n\n       \
         0.500000000 seconds time elapsed\n\n";

    fn figures(said: &str) -> (Vec<f64>, Vec<String>) {
        let Counted { a_second: of, limits } = read(said).unwrap();
        // NaN is equal to nothing.
        let known = |number: f64| if number.is_nan() { -1.0 } else { number };
        let counters = Counters::each(|number| known(number(&of)));
        let Counters { cycles, instructions, cache_misses, node_loads, cpu, migrations, page_faults } =
            counters;
        (vec![cycles, instructions, cache_misses, node_loads, cpu, migrations, page_faults], limits)
    }

    #[test]
    fn counts_use_the_time_that_perf_reports_and_refused_ones_are_none() {
        let (counts, limits) = figures(SAID);
        assert_eq!(counts, [4e6, 6e6, -1.0, 2_000.0, 1e6, 12.0, 16.0]);
        assert_eq!(limits, ["no cache-misses: this machine has no such counter"]);
        let machine = ["2,000,000      cycles", "3,000,000      instructions", "1,000      node-loads"]
            .iter()
            .fold(SAID.to_owned(), |said, line| {
                said.replace(line, &format!("<not supported> {}", line.rsplit(' ').next().unwrap()))
            });
        let (counts, limits) = figures(&machine);
        assert_eq!(counts, [-1.0, -1.0, -1.0, -1.0, 1e6, 12.0, 16.0]);
        assert_eq!(
            limits,
            ["no cycles, instructions, cache-misses and node-loads: this machine has no such counter"]
        );
    }

    #[test]
    fn counts_without_the_kernel_are_told_and_a_migration_is_never_zero_there() {
        let user = ["cycles", "instructions", "task-clock", "cpu-migrations", "page-faults"].iter().fold(
            SAID.replace("        6  ", "        0  "),
            |said, event| {
                said.replace(&format!("{event} "), &format!("{event}:u "))
                    .replace(&format!("{event}\n"), &format!("{event}:u\n"))
            },
        );
        let (counts, limits) = figures(&user);
        assert_eq!(counts, [4e6, 6e6, -1.0, 2_000.0, 1e6, -1.0, 16.0]);
        assert_eq!(
            limits[1..],
            [
                format!("no cpu-migrations: {FORBIDDEN}"),
                format!("counters of the server's own code alone: {FORBIDDEN}")
            ]
        );
    }

    #[test]
    fn perf_without_a_count_gives_the_reason() {
        let ended = "<not supported> cycles\n<not counted> msec task-clock\n 0.1 seconds time elapsed\n";
        assert_eq!(read(ended), Err(UNCOUNTED.into()));
        let none = "<not supported> cycles\n<not supported> page-faults\n 0.1 seconds time elapsed\n";
        assert_eq!(read(none), Err("perf: <not supported> cycles".into()));
        let refused = "Error:\nAccess to performance monitoring and observability operations is limited.\n";
        assert!(read(refused).unwrap_err().contains("is limited"));
        assert!(read("").is_err());
    }
}
