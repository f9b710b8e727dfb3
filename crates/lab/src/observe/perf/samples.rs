//! Reads perf's samples: the server's symbols and their shares.
//!
//! A sample belongs to the process that it was taken in. The server's processes are those known
//! when the sampling began and all their descendants since, which perf records beside its samples.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;

use super::reason;
use crate::record::{Profile, Share};

/// Number of symbols to keep.
const KEPT: usize = 25;

/// The profile of these processes and their descendants in a recording.
pub(super) fn read(perf: &Path, data: &Path, of: HashSet<i32>) -> Result<Profile, String> {
    let output = Command::new(perf)
        .args(["script", "--show-task-events", "-F", "pid,period,ip,sym,dso", "-i"])
        .arg(data)
        .env("LC_ALL", "C")
        .output()
        .map_err(|error| format!("perf does not start: {error}"))?;
    if !output.status.success() {
        return Err(reason(&String::from_utf8_lossy(&output.stderr)));
    }
    let profile = profile(&String::from_utf8_lossy(&output.stdout), of);
    if profile.samples == 0 {
        return Err("perf took no samples: the server did not run".into());
    }
    Ok(profile)
}

/// Sums samples by symbol, weighted by the time they stand for.
fn profile(script: &str, mut of: HashSet<i32>) -> Profile {
    let (mut samples, mut all, mut symbols) = (0, 0.0, Vec::<Share>::new());
    for line in script.lines() {
        if let Some((child, parent)) = fork(line) {
            if of.contains(&parent) {
                of.insert(child);
            }
            continue;
        }
        let Some((process, period, name)) = sample(line) else { continue };
        if !of.contains(&process) {
            continue;
        }
        samples += 1;
        all += period;
        match symbols.iter_mut().find(|one| one.name == name) {
            Some(known) => known.share += period,
            None => symbols.push(Share { name, share: period }),
        }
    }
    symbols.iter_mut().for_each(|one| one.share /= all);
    symbols.sort_by(|one, other| other.share.total_cmp(&one.share));
    symbols.truncate(KEPT);
    Profile { samples, shares: symbols }
}

/// A child and its parent from `... PERF_RECORD_FORK(child:thread):(parent:thread)`; perf writes
/// such lines for earlier processes as well.
fn fork(line: &str) -> Option<(i32, i32)> {
    let (child, parent) = line.split_once("PERF_RECORD_FORK(")?.1.split_once("):(")?;
    let process = |text: &str| text.split(':').next()?.parse().ok();
    Some((process(child)?, process(parent)?))
}

/// The process, weight and name of a line `process period address symbol (object)`. Symbols of the
/// kernel get a mark; a sample without a name takes that of its object.
fn sample(line: &str) -> Option<(i32, f64, String)> {
    let (process, rest) = line.trim().split_once(' ')?;
    let (period, rest) = rest.trim_start().split_once(' ')?;
    let (address, rest) = rest.trim_start().split_once(' ')?;
    let address = u64::from_str_radix(address, 16).ok()?;
    let named = rest.strip_suffix(')')?;
    let (symbol, object) = named.strip_suffix(" (deleted)").unwrap_or(named).rsplit_once(" (")?;
    let object = object.rsplit('/').next().unwrap_or(object);
    // Kernel addresses are in the upper half.
    let name = match (symbol.trim(), address >> 63 == 1) {
        ("[unknown]", _) => format!("unknown in {object}"),
        (symbol, true) => format!("{symbol} (kernel)"),
        (symbol, false) => symbol.to_string(),
    };
    Some((process.parse().ok()?, period.parse().ok()?, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::golden;

    const SCRIPT: &str = "    0 PERF_RECORD_FORK(20:20):(1:1)\n    0 PERF_RECORD_COMM: postgres:20/20\n\
         \x20   20    5025125      55ac83713196 s_lock (/usr/bin/postgres)\n\
         \x20   20    5025125  ffffffff81d37189 futex_wait ([kernel.kallsyms])\n\
         \x20   30    5025125      55ac83713196 not_the_servers (/usr/bin/other)\n\
         \x20 PERF_RECORD_FORK(21:21):(20:20)\n\
         \x20   21   10050250      7f05af35a010 [unknown] (/usr/lib/libc.so.6 (deleted))\n\
         \x20   21    5025125      55ac8371319a operator()(Flags, (anonymous namespace)::F) (/usr/sbin/mariadbd)\n\
         no line of it\n";

    #[test]
    fn samples_are_the_servers_and_its_childrens() {
        let read = profile(SCRIPT, HashSet::from([20]));
        assert_eq!(read.samples, 4);
        let shares = read.shares.iter().map(|one| format!("{} {}", one.share, one.name));
        golden("perf_symbols", &shares.collect::<Vec<_>>().join("\n"));
        assert_eq!(profile(SCRIPT, HashSet::from([99])).samples, 0);
    }

    #[test]
    fn a_profile_keeps_the_first_symbols_and_their_shares_of_all() {
        let script: String = (0..40).map(|at| format!(" 20 {} 1000 s{at} (x)\n", 100 + at)).collect();
        let read = profile(&script, HashSet::from([20]));
        assert_eq!((read.samples, read.shares.len()), (40, KEPT));
        assert_eq!(read.shares[0].name, "s39");
        let sum: f64 = read.shares.iter().map(|one| one.share).sum();
        assert!(sum > 0.6 && sum < 0.75, "{sum}");
    }
}
