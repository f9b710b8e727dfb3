//! Keeps the machine's CPUs from sleeping. One that sleeps takes time to wake, on a virtual machine also that of the CPU that
//! wakes it, so that a server pays for a driver that has nothing to do.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

/// Takes the longest that a CPU may take to wake, in microseconds, and holds it until it is closed (Linux,
/// Documentation/power/pm_qos_interface.rst).
const LATENCY: &str = "/dev/cpu_dma_latency";

/// While it lives, CPUs without work wait in a loop.
#[derive(Debug)]
pub struct Awake {
    _file: File,
}

impl Awake {
    /// Has all CPUs stay awake.
    ///
    /// # Errors
    /// The kernel doesn't let this process, or doesn't know it.
    pub fn keep() -> Result<Self, String> {
        Self::through(Path::new(LATENCY))
    }

    fn through(path: &Path) -> Result<Self, String> {
        let held = OpenOptions::new().write(true).open(path).and_then(|mut file| {
            file.write_all(&0_i32.to_ne_bytes())?;
            Ok(Self { _file: file })
        });
        held.map_err(|error| {
            format!(
                "CPUs can't be kept awake through {}: {error}; run as root, or leave it out",
                path.display()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_to_wake_is_asked_for_or_the_reason_given() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let awake = Awake::through(file.path()).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), [0; 4]);
        drop(awake);
        let refused = Awake::through(Path::new("/nowhere/latency")).unwrap_err();
        assert!(
            refused.starts_with("CPUs can't be kept awake through /nowhere/latency: No such file"),
            "{refused}"
        );
    }
}
