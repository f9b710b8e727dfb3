//! The control file: reads back, survives the loss of one copy, refuses everything else.

use super::*;
use crate::log::tests::Folder;

fn sample(redo: u64) -> Control {
    let mut control = Control::new(1 << 20, 77, Lsn(4096));
    control.redo = Lsn(redo);
    control.log_end = Lsn(redo + 48);
    control.pages = 12;
    control.info = b"named values".to_vec();
    control
}

#[test]
fn the_newest_copy_is_read_back() {
    let folder = Folder::new("control");
    let file = ControlFile::create(folder.path(), &sample(4096)).unwrap();
    for redo in (8192..20_000).step_by(512) {
        file.write(&sample(redo)).unwrap();
        assert_eq!(ControlFile::open(folder.path()).unwrap().1, sample(redo));
    }
}

#[test]
fn a_log_goes_on_where_it_was_opened() {
    let folder = Folder::new("control");
    ControlFile::create(folder.path(), &sample(4096)).unwrap();
    for redo in 5000..5010 {
        let (file, _) = ControlFile::open(folder.path()).unwrap();
        file.write(&sample(redo)).unwrap();
        assert_eq!(ControlFile::open(folder.path()).unwrap().1, sample(redo));
    }
}

#[test]
fn a_torn_write_leaves_the_copy_before() {
    let folder = Folder::new("control");
    let file = ControlFile::create(folder.path(), &sample(4096)).unwrap();
    file.write(&sample(5000)).unwrap();
    let before = std::fs::read(folder.path().join(NAME)).unwrap();
    file.write(&sample(6000)).unwrap();
    let after = std::fs::read(folder.path().join(NAME)).unwrap();
    for sectors in 0..=16 {
        // The write reached this many sectors of 512 bytes.
        let cut = sectors * 512;
        let torn: Vec<u8> = [&after[..cut], &before[cut..]].concat();
        std::fs::write(folder.path().join(NAME), torn).unwrap();
        let found = ControlFile::open(folder.path()).unwrap().1;
        assert!(found == sample(5000) || found == sample(6000), "after {sectors} sectors: {found:?}");
    }
}

#[test]
fn a_missing_short_damaged_or_foreign_file_is_refused() {
    let folder = Folder::new("control");
    let path = folder.path().join(NAME);
    let open = || ControlFile::open(folder.path()).map(|(_, control)| control);
    assert_eq!(open(), Err(Error::Format(FormatProblem::Missing(NAME.to_owned()))));
    ControlFile::create(folder.path(), &sample(4096)).unwrap();
    let good = std::fs::read(&path).unwrap();
    // Shorter than the copy that counts (sequence 2, the first in the file): nothing valid is left.
    std::fs::write(&path, &good[..4000]).unwrap();
    assert_eq!(open(), Err(Error::Format(FormatProblem::Damaged(NAME))));
    // A flipped byte in both copies, at each of these places.
    for at in [0, 9, 12, 20, 24, 40, 72, 4095] {
        let mut bad = good.clone();
        bad[at] ^= 0x40;
        bad[4096 + at] ^= 0x40;
        std::fs::write(&path, &bad).unwrap();
        assert_eq!(open(), Err(Error::Format(FormatProblem::Damaged(NAME))), "byte {at}");
    }
    // Another version, with a right checksum.
    let mut other = good;
    for copy in other.chunks_mut(COPY_BYTES) {
        copy[at::VERSION] = 9;
        let sum = crc32c::crc32c(&copy[at::VERSION..]);
        copy[at::CHECKSUM..at::VERSION].copy_from_slice(&sum.to_le_bytes());
    }
    std::fs::write(&path, &other).unwrap();
    assert!(matches!(open(), Err(Error::Format(FormatProblem::Version { .. }))));
}
