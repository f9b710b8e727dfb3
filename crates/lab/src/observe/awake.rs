//! Keeps the machine's CPUs from sleeping. A sleeping CPU takes time to wake, and on a virtual
//! machine costs the waking CPU time, too. So a server would pay for a driver that has nothing to
//! do.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

/// Takes the longest permitted wake-up time of a CPU, in microseconds, and holds it until the file
/// is closed (Linux, Documentation/power/pm_qos_interface.rst).
const LATENCY: &str = "/dev/cpu_dma_latency";

/// The driver that decides how idle CPUs wait; without one nothing heeds that time.
const DRIVER: &str = "/sys/devices/system/cpu/cpuidle/current_driver";

/// While it lives, idle CPUs wait in a loop.
#[derive(Debug)]
pub struct Awake {
    _file: File,
}

impl Awake {
    /// Keeps all CPUs awake.
    ///
    /// # Errors
    /// The kernel forbids it to this process, or it would have no effect.
    pub fn keep() -> Result<Self, String> {
        Self::through(Path::new(LATENCY), Path::new(DRIVER))
    }

    fn through(path: &Path, driver: &Path) -> Result<Self, String> {
        if !std::fs::read_to_string(driver).is_ok_and(|driver| driver.trim() != "none") {
            return Err(
                "this kernel has no cpuidle driver, so CPUs can't be kept awake; boot it with idle=poll, or leave \
                 the option out"
                    .into(),
            );
        }
        let held = OpenOptions::new().write(true).open(path).and_then(|mut file| {
            file.write_all(&0_i32.to_ne_bytes())?;
            Ok(Self { _file: file })
        });
        held.map_err(|error| {
            format!(
                "CPUs can't be kept awake through {}: {error}; run as root, or leave the option out",
                path.display()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_kept_awake_or_the_reason_is_reported() {
        let (file, driver) =
            (tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap());
        let awake = |path: &Path| Awake::through(path, driver.path());
        std::fs::write(&driver, "none\n").unwrap();
        assert!(awake(file.path()).unwrap_err().contains("no cpuidle driver"));
        std::fs::write(&driver, "acpi_idle\n").unwrap();
        drop(awake(file.path()).unwrap());
        assert_eq!(std::fs::read(file.path()).unwrap(), [0; 4]);
        let refused = awake(Path::new("/nowhere/latency")).unwrap_err();
        assert!(
            refused.starts_with("CPUs can't be kept awake through /nowhere/latency: No such file"),
            "{refused}"
        );
    }
}
