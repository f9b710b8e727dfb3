//! Memory that this process may use: the machine's, or the least limit of its control groups.

use std::io;
use std::path::{Path, PathBuf};

use crate::os::process;

/// Limits of a group: version 2 writes `max` where there is none, version 1 a huge number.
const UNIFIED: [&str; 2] = ["memory.max", "memory.high"];
const LEGACY: [&str; 1] = ["memory.limit_in_bytes"];

/// Bytes of memory this process can have: the machine's, or what its control group or a group above
/// it allows.
///
/// # Errors
/// When the machine does not tell its memory.
pub fn available_bytes() -> io::Result<u64> {
    let information = process::text("/proc/meminfo")?;
    let total = information
        .lines()
        .find_map(|line| {
            line.strip_prefix("MemTotal:")?.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
        })
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/meminfo has no line MemTotal"))?;
    // Without these files there are no groups.
    let groups = process::text("/proc/self/cgroup").unwrap_or_default();
    let mounts = process::text("/proc/self/mountinfo").unwrap_or_default();
    let limit = limit(&groups, &mounts, &|path| process::text(path).ok());
    Ok(limit.unwrap_or(u64::MAX).min(total << 10))
}

/// The least limit of the process's groups, from its own up to the highest that can be seen.
fn limit(groups: &str, mounts: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut least = None;
    for mount in mounts.lines().filter_map(Mount::parse) {
        let Some(path) = groups.lines().find_map(|line| mount.group(line)) else { continue };
        // A group outside of what is mounted (a container without a namespace of its own): the
        // mount's root is what the container sees of itself.
        let inside = path.strip_prefix(&mount.root).unwrap_or(Path::new(""));
        let names: &[&str] = if mount.unified { &UNIFIED } else { &LEGACY };
        for folder in
            mount.point.join(inside).ancestors().take_while(|folder| folder.starts_with(&mount.point))
        {
            for name in names {
                let found = read(&folder.join(name)).and_then(|text| text.trim().parse::<u64>().ok());
                least = least.into_iter().chain(found).min();
            }
        }
    }
    least
}

/// A mounted tree of groups.
struct Mount {
    /// The group that is the mount's root.
    root: PathBuf,
    point: PathBuf,
    unified: bool,
}

impl Mount {
    /// A line of mountinfo, where it is one of a tree of groups that bound memory.
    fn parse(line: &str) -> Option<Mount> {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let unified = match after.next()? {
            "cgroup2" => true,
            "cgroup" if after.nth(1)?.split(',').any(|option| option == "memory") => false,
            _ => return None,
        };
        let mut before = before.split(' ').skip(3);
        let mut path = || before.next().map(|path| PathBuf::from(path.replace("\\040", " ")));
        Some(Mount { root: path()?, point: path()?, unified })
    }

    /// The process's group in this tree, where a line of its groups tells it, without the leading
    /// slash.
    fn group<'a>(&self, line: &'a str) -> Option<&'a Path> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let own = match self.unified {
            true => controllers.is_empty(),
            false => controllers.split(',').any(|controller| controller == "memory"),
        };
        own.then(|| Path::new(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const OLD: &str = "25 18 0:22 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                       33 25 0:29 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
                       34 25 0:30 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n";

    fn found(groups: &str, mounts: &str, files: &[(&str, &str)]) -> Option<u64> {
        let read = |path: &Path| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        };
        limit(groups, mounts, &read)
    }

    #[test]
    fn the_least_limit_of_any_level_holds_in_version_2() {
        let files = [
            ("/sys/fs/cgroup/a/memory.max", "2147483648\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/b/memory.high", "3000000000\n"),
        ];
        assert_eq!(found("0::/a/b\n", NEW, &files), Some(2_147_483_648));
        assert_eq!(found("0::/c\n", NEW, &files), None);
        // In a namespace of its own the process is at the root.
        assert_eq!(found("0::/\n", NEW, &[("/sys/fs/cgroup/memory.max", "5\n")]), Some(5));
    }

    #[test]
    fn the_least_limit_of_any_level_holds_in_version_1() {
        let groups = "5:cpu,cpuacct:/x\n4:memory:/docker/12\n0::/\n";
        let files = [
            ("/sys/fs/cgroup/memory/docker/12/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "1073741824\n"),
            ("/sys/fs/cgroup/cpu/x/memory.limit_in_bytes", "7\n"),
        ];
        assert_eq!(found(groups, OLD, &files), Some(1 << 30));
        // A container that sees its own group as the mount's root.
        let inner = OLD.replace("0:29 / ", "0:29 /docker/12 ");
        let files = [("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1024\n")];
        assert_eq!(found(groups, &inner, &files), Some(1024));
        let other = OLD.replace("0:29 / ", "0:29 /other ");
        assert_eq!(found(groups, &other, &files), Some(1024));
    }

    #[test]
    fn without_groups_there_is_no_limit() {
        assert_eq!(found("", "", &[]), None);
        assert_eq!(found("0::/\n", "", &[("/memory.max", "1")]), None);
    }
}
