//! The log takes no damage, recycled segment or bytes beyond a gap for a record. It goes on after a
//! segment that cannot be made.

use std::io::Write;
use std::process::Command;

use super::*;
use crate::format::segment_name;

/// Where records end, and the log's bytes, of a log of random records.
fn random_log(folder: &Folder, seed: u64, records: usize) -> Vec<u64> {
    let wal = Wal::create(folder.path(), small(1)).unwrap();
    act_as_core(0);
    let mut random = Random(seed);
    let mut ends = vec![FIRST.0];
    for _ in 0..records {
        let longest = if random.below(20) == 0 { 30_000 } else { 300 };
        let length = random.below(longest);
        let undo = random.bytes(length);
        ends.push(append_change(&wal, 1, Lsn::ZERO, &undo).0);
        if random.below(10) == 0 {
            wal.wait_durable(wal.position()).unwrap();
        }
    }
    wal.wait_durable(wal.position()).unwrap();
    ends
}

#[test]
fn any_damage_ends_the_log_at_the_record_before() {
    let folder = Folder::new("damage");
    let ends = random_log(&folder, 11, 1500);
    let last = *ends.last().unwrap();
    assert!(last > 1 << 20, "it covers more than a segment");
    let mut random = Random(12);
    for _ in 0..60 {
        let damaged = FIRST.0 + random.next() % (last - FIRST.0);
        let expected = *ends.iter().rev().find(|end| **end <= damaged).unwrap();
        let (segment, at) = (damaged >> 20, (damaged & ((1 << 20) - 1)) as usize);
        let path = folder.path().join(LOG_FOLDER).join(format!("{segment:016x}"));
        let good = std::fs::read(&path).unwrap();
        let mut bad = good.clone();
        match random.below(3) {
            0 => bad[at] ^= 1 << random.below(8),
            // A write that never reached the disk: zeros to the end.
            1 => bad[at..].fill(0),
            // Garbage from there on.
            _ => bad[at..].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1 + random.below(255) as u8)),
        }
        std::fs::write(&path, &bad).unwrap();
        let end = contents(&folder).1.0;
        // Zeros that were zeros before, as in padding, are no damage.
        assert!(
            end == expected || bad == good || end > expected && good[at] == 0,
            "damage at {damaged}: {end} for {expected}"
        );
        std::fs::write(&path, &good).unwrap();
    }
    assert_eq!(contents(&folder).1.0, last);
}

#[test]
fn recycled_segments_hold_no_records() {
    let folder = Folder::new("recycle");
    let wal = Wal::create(folder.path(), small(1)).unwrap();
    act_as_core(0);
    let mut control = ControlFile::open(folder.path()).unwrap().1;
    for round in 0..12 {
        // Every record has the same length, so that old ones lie where new ones could begin.
        for _ in 0..4000 {
            append_change(&wal, round, Lsn::ZERO, &[round as u8; 84]);
        }
        wal.wait_durable(wal.position()).unwrap();
        control.floor = wal.position();
        wal.control.write(&control).unwrap();
        wal.truncate(control.floor).unwrap();
        append_change(&wal, 99, Lsn::ZERO, b"after");
        wal.wait_durable(wal.position()).unwrap();
        let (found, end) = contents(&folder);
        assert_eq!(found, [(99, Kind::Change, b"after".to_vec())]);
        assert_eq!(end, wal.position());
    }
    let segments = segments::list(&folder.path().join(LOG_FOLDER)).unwrap();
    assert!(segments[0] == wal.position().0 >> 20 && segments.len() <= 6, "{segments:?}");
}

#[test]
fn records_beyond_a_gap_never_come_back() {
    let folder = Folder::new("gap");
    let salt = {
        let wal = Wal::create(folder.path(), small(1)).unwrap();
        act_as_core(0);
        for number in 0..9000u64 {
            let mut undo = [1; 84];
            undo[..8].copy_from_slice(&number.to_le_bytes());
            append_change(&wal, 1, Lsn::ZERO, &undo);
        }
        wal.wait_durable(wal.position()).unwrap();
        wal.salt
    };
    // A block of the first segment never reached the disk.
    let path = folder.path().join(LOG_FOLDER).join(format!("{:016x}", 0));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[40_960..45_056].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    let (before, end) = contents(&folder);
    assert!(end.0 <= 40_960);
    let (file, control) = ControlFile::open(folder.path()).unwrap();
    let wal = Wal::resume(folder.path(), file, &control, (end, None), small(1)).unwrap();
    assert_eq!(wal.salt, salt);
    // The new records have the old ones' length, so old ones would fit right behind them.
    for count in 1..=300 {
        append_change(&wal, 2, Lsn::ZERO, &[2; 84]);
        wal.wait_durable(wal.position()).unwrap();
        if count % 50 == 1 {
            let (found, end) = contents(&folder);
            assert_eq!((found.len(), end), (before.len() + count, wal.position()));
        }
    }
}

#[test]
fn a_write_that_overtook_another_one_is_an_unfinished_end() {
    let folder = Folder::new("overtaken");
    let wal = Wal::create(folder.path(), small(1)).unwrap();
    act_as_core(0);
    let commit = |txn| {
        let prev = append_change(&wal, txn, Lsn::ZERO, &[txn as u8; 100]);
        wal.ensure_reserved(0).unwrap();
        let lsn = wal.append_commit(txn, prev, |_| {});
        (lsn, wal.fill_block().expect("there is room"))
    };
    let (first, second_block) = commit(1);
    wal.wait_durable(first).unwrap();
    let (_, third_block) = commit(2);
    let (third, _) = commit(3);
    let killed = folder.copy();
    wal.wait_durable(third).unwrap();
    let block_of = |start: u64| start as usize..start as usize + BLOCK as usize;
    let segment = |folder: &Folder| folder.path().join(LOG_FOLDER).join(segment_name(0));
    let all = std::fs::read(segment(&folder)).unwrap();
    let judge = |folder: &Folder| {
        let control = ControlFile::open(folder.path()).unwrap().1;
        let mut reader = reader(folder);
        while reader.next_record().unwrap().is_some() {}
        super::super::damage::judge(folder.path(), &mut reader, &control, Some(first)).unwrap()
    };

    // The third block's write landed, the second block's did not, and nobody was answered.
    let mut bytes = std::fs::read(segment(&killed)).unwrap();
    bytes[block_of(third_block)].copy_from_slice(&all[block_of(third_block)]);
    std::fs::write(segment(&killed), &bytes).unwrap();
    let (found, end) = contents(&killed);
    assert!(found.iter().all(|record| record.0 == 1) && end.0 == second_block);
    assert_eq!(judge(&killed), None);

    // The same gap where the third commit was answered.
    let mut bytes = all.clone();
    bytes[block_of(second_block)].fill(0);
    std::fs::write(segment(&folder), &bytes).unwrap();
    let damage = judge(&folder).expect("an answered commit is lost");
    assert_eq!((damage.at.0, damage.commits), (second_block, 1));
}

/// A file system of 16 MiB in a folder, until this is dropped.
struct TinyDisk(Folder);

impl TinyDisk {
    /// None where this process may not mount a file system.
    fn new(name: &str) -> Option<TinyDisk> {
        let folder = Folder::new(name);
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(folder.path());
        mount.status().is_ok_and(|status| status.success()).then_some(TinyDisk(folder))
    }

    /// Writes a file until the disk is full; returns its path.
    fn fill(&self) -> PathBuf {
        let path = self.0.path().join("filler");
        let mut file = std::fs::File::create(&path).unwrap();
        while file.write_all(&[1; 4096]).is_ok() {}
        path
    }
}

impl Drop for TinyDisk {
    fn drop(&mut self) {
        // Files of the log are still open.
        drop(Command::new("umount").arg("--lazy").arg(self.0.path()).status());
    }
}

#[test]
fn a_full_disk_is_an_error_of_its_own_and_passes() {
    let Some(disk) = TinyDisk::new("full") else {
        // The harness keeps what a test prints, so this goes straight to the standard error.
        let _ = writeln!(std::io::stderr(), "skipped: no file system can be mounted here");
        return;
    };
    let wal = Wal::create(disk.0.path(), small(1)).unwrap();
    let filler = disk.fill();
    let is_expected = |error: &Error| matches!(error, Error::DiskFull(_));
    let remove = || std::fs::remove_file(&filler).unwrap();
    passes(&disk.0, &wal, is_expected, remove);
}

#[test]
fn a_folder_in_place_of_a_segment_is_an_error_and_passes() {
    let folder = Folder::new("obstacle");
    let wal = Wal::create(folder.path(), small(1)).unwrap();
    let obstacle = folder.path().join(LOG_FOLDER).join("unfinished");
    std::fs::create_dir(&obstacle).unwrap();
    let is_expected = |error: &Error| matches!(error, Error::Format(_));
    passes(&folder, &wal, is_expected, || std::fs::remove_dir(&obstacle).unwrap());
}

/// Appends until no segment can be made, which gives the expected error. After `remove` the log
/// goes on.
fn passes(folder: &Folder, wal: &Wal, is_expected: impl Fn(&Error) -> bool, remove: impl FnOnce()) {
    const MORE: usize = 3000;
    act_as_core(0);
    let mut appended = 0;
    let error = loop {
        match wal.ensure(1000) {
            Ok(()) => {}
            Err(error) => break error,
        }
        let mut change = wal.change();
        change.undo(&[3; 1000]);
        change.commit(TxnLink::NONE);
        appended += 1;
        assert!(appended < 10_000);
        if appended % 50 == 0 {
            wal.wait_durable(wal.position()).unwrap();
        }
    };
    assert!(is_expected(&error), "{error:?}");
    // Ends of transactions still have room.
    wal.ensure_reserved(0).unwrap();
    let lsn = wal.append_commit(4, Lsn::ZERO, |_| {});
    wal.wait_durable(lsn).unwrap();
    assert!(wal.ensure(1000).is_err() || wal.with_core(|_, state| state.credit) > 0);
    remove();
    for _ in 0..MORE {
        append_change(wal, 5, Lsn::ZERO, &[4; 1000]);
    }
    wal.wait_durable(wal.position()).unwrap();
    assert_eq!(contents(folder).0.len(), appended + 1 + MORE);
}
