//! Memory that this process may use: the machine's, or the least limit of its control groups. Those
//! bound explicit huge pages apart.

use std::io;
use std::path::{Path, PathBuf};

use crate::os::process;

/// A controller of groups, and the files with its limits in the two versions. Version 2 writes
/// `max` where there is none, version 1 a huge number.
struct Controller<'a> {
    name: &'static str,
    unified: &'a [&'a str],
    legacy: &'a [&'a str],
    /// The files with what a group uses of its limit, which does not count as allowed.
    used: Option<[&'a str; 2]>,
}

const MEMORY: Controller<'static> = Controller {
    name: "memory",
    unified: &["memory.max", "memory.high"],
    legacy: &["memory.limit_in_bytes"],
    used: None,
};

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
    Ok(own_limit(&MEMORY).unwrap_or(u64::MAX).min(total << 10))
}

/// Bytes of explicit huge pages of this size that the groups still allow; `None` if they do not
/// bound them.
pub(crate) fn huge_page_limit(page_bytes: usize) -> Option<u64> {
    let size = match page_bytes >> 20 {
        mebibytes @ ..1024 => format!("{mebibytes}MB"),
        mebibytes => format!("{}GB", mebibytes >> 10),
    };
    own_limit(&Controller {
        name: "hugetlb",
        unified: &[&format!("hugetlb.{size}.max")],
        legacy: &[&format!("hugetlb.{size}.limit_in_bytes")],
        used: Some([&format!("hugetlb.{size}.current"), &format!("hugetlb.{size}.usage_in_bytes")]),
    })
}

fn own_limit(controller: &Controller<'_>) -> Option<u64> {
    // Without these files there are no groups.
    let groups = process::text("/proc/self/cgroup").unwrap_or_default();
    let mounts = process::text("/proc/self/mountinfo").unwrap_or_default();
    limit(controller, &groups, &mounts, &|path| process::text(path).ok())
}

/// The least limit of the process's groups, from its own up to the highest that can be seen.
fn limit(
    controller: &Controller<'_>,
    groups: &str,
    mounts: &str,
    read: &dyn Fn(&Path) -> Option<String>,
) -> Option<u64> {
    let mut least = None;
    for mount in mounts.lines().filter_map(|line| Mount::parse(line, controller.name)) {
        let Some(path) = groups.lines().find_map(|line| mount.group(line, controller.name)) else { continue };
        // A group outside of what is mounted (a container without a namespace of its own): the
        // mount's root is what the container sees of itself.
        let inside = path.strip_prefix(&mount.root).unwrap_or(Path::new(""));
        let names = if mount.unified { controller.unified } else { controller.legacy };
        let used = controller.used.map(|[unified, legacy]| if mount.unified { unified } else { legacy });
        for folder in
            mount.point.join(inside).ancestors().take_while(|folder| folder.starts_with(&mount.point))
        {
            let number =
                |name: &str| read(&folder.join(name)).and_then(|text| text.trim().parse::<u64>().ok());
            let used = used.and_then(number).unwrap_or(0);
            for name in names {
                let found = number(name).map(|limit| limit.saturating_sub(used));
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
    /// A line of mountinfo, where it is one of a tree of groups with this controller.
    fn parse(line: &str, controller: &str) -> Option<Mount> {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let unified = match after.next()? {
            "cgroup2" => true,
            "cgroup" if after.nth(1)?.split(',').any(|option| option == controller) => false,
            _ => return None,
        };
        let mut before = before.split(' ').skip(3);
        let mut path = || before.next().map(|path| PathBuf::from(path.replace("\\040", " ")));
        Some(Mount { root: path()?, point: path()?, unified })
    }

    /// The process's group in this tree, where a line of its groups tells it, without the leading
    /// slash.
    fn group<'a>(&self, line: &'a str, controller: &str) -> Option<&'a Path> {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        let own = match self.unified {
            true => controllers.is_empty(),
            false => controllers.split(',').any(|one| one == controller),
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
        found_by(&MEMORY, groups, mounts, files)
    }

    fn found_by(
        controller: &Controller<'_>,
        groups: &str,
        mounts: &str,
        files: &[(&str, &str)],
    ) -> Option<u64> {
        let read = |path: &Path| {
            files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned())
        };
        limit(controller, groups, mounts, &read)
    }

    #[test]
    fn explicit_huge_pages_have_a_limit_of_their_own() {
        let huge = Controller {
            name: "hugetlb",
            unified: &["hugetlb.2MB.max"],
            legacy: &["hugetlb.2MB.limit_in_bytes"],
            used: Some(["hugetlb.2MB.current", "hugetlb.2MB.usage_in_bytes"]),
        };
        let files = [("/sys/fs/cgroup/a/memory.max", "5\n"), ("/sys/fs/cgroup/a/hugetlb.2MB.max", "0\n")];
        assert_eq!(found_by(&huge, "0::/a\n", NEW, &files), Some(0));
        let old = OLD.replace("memory", "hugetlb");
        let files = [
            ("/sys/fs/cgroup/hugetlb/x/hugetlb.2MB.limit_in_bytes", "4194304\n"),
            ("/sys/fs/cgroup/hugetlb/x/hugetlb.2MB.usage_in_bytes", "1048576\n"),
        ];
        assert_eq!(found_by(&huge, "4:memory:/y\n3:hugetlb:/x\n", &old, &files), Some(3 << 20));
        assert_eq!(found_by(&huge, "4:memory:/y\n", &old, &files), None);
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
