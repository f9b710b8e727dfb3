//! Damaged logs: a start refuses them, or has every acknowledged commit.

use super::*;
use crate::control;

const SEGMENT: u64 = 1 << 20;

/// The log file that holds `position`, and the place in it.
fn place(folder: &Folder, position: u64) -> (PathBuf, usize) {
    let name = format!("{:016x}", position / SEGMENT);
    (folder.path().join(LOG_FOLDER).join(name), (position % SEGMENT) as usize)
}

/// Changes the bytes from `position` on, within one segment.
fn damage(folder: &Folder, position: u64, change: impl FnOnce(&mut [u8])) {
    let (path, at) = place(folder, position);
    let mut bytes = std::fs::read(&path).unwrap();
    change(&mut bytes[at..]);
    std::fs::write(&path, bytes).unwrap();
}

/// The end of a damaged folder's log, or the damage with which the start refuses.
fn start(folder: &Folder) -> Result<Lsn, Box<LogDamage>> {
    match Recovery::analyse(folder.path(), Manner::default()) {
        Ok((recovery, _)) => Ok(recovery.end),
        Err(Error::Format(FormatProblem::LogDamaged(damage))) => Err(damage),
        Err(error) => panic!("{error:?}"),
    }
}

/// Removes the marks from the files `durable` and `control`.
fn forget_marks(folder: &Folder) {
    std::fs::remove_file(folder.path().join(log::durable::NAME)).unwrap();
    let control = std::fs::OpenOptions::new().write(true).open(folder.path().join(control::NAME)).unwrap();
    control.set_len(control::BYTES).unwrap();
}

/// A few transactions, the last of them acknowledged. Returns where the first record begins, and
/// the commits' LSNs.
fn few(model: &mut Model, random: &mut Random, transactions: usize) -> (Lsn, Vec<Lsn>) {
    model.wal.wait_durable(model.wal.position()).unwrap();
    let first = model.wal.position();
    let mut commits = Vec::new();
    for number in 0..transactions {
        let strip = number % STRIPS;
        (0..1 + number % 2).for_each(|_| model.change(strip, random));
        let live = model.live[strip].take().unwrap();
        model.wal.ensure_reserved(0).unwrap();
        let lsn = model.wal.append_commit(live.txn, live.last, |_| {});
        model.wal.wait_durable(lsn).unwrap();
        model.committed.push((lsn, live.changes));
        model.acknowledged = lsn;
        commits.push(lsn);
    }
    (first, commits)
}

/// Whichever byte is damaged, the start refuses or has all acknowledged commits. Without the marks
/// in files, the commits themselves prove all but the last.
#[test]
fn a_flipped_bit_never_loses_an_acknowledged_commit() {
    let mut model = Model::new();
    let mut random = Random(31);
    let (first, commits) = few(&mut model, &mut random, 4);
    let copy = model.folder.copy();
    let last = *commits.last().unwrap();
    assert_eq!(start(&copy), Ok(last));
    for without_file in [false, true] {
        if without_file {
            forget_marks(&copy);
        }
        let promised = if without_file { commits[commits.len() - 2] } else { last };
        let mut refused = 0;
        for position in first.0..last.0 {
            let bit = 1 << random.below(8);
            damage(&copy, position, |bytes| bytes[0] ^= bit);
            match start(&copy) {
                Ok(end) => assert!(end >= promised, "byte {position}: the log ends at {end}"),
                Err(found) => {
                    refused += 1;
                    let before = commits.iter().rev().find(|lsn| **lsn <= found.at).copied();
                    assert!(found.at.0 <= position && found.durable > found.at, "byte {position}: {found}");
                    assert_eq!(found.last_commit, before, "byte {position}");
                    let behind: Vec<Lsn> = commits.iter().filter(|lsn| lsn.0 > position).copied().collect();
                    // The damage may be in the first of them.
                    assert!(
                        found.first_lost == behind.first().copied()
                            || found.first_lost == behind.get(1).copied()
                    );
                }
            }
            damage(&copy, position, |bytes| bytes[0] ^= bit);
        }
        assert!(refused as u64 >= promised.0 - first.0 - 8, "{refused} refused");
        assert_eq!(start(&copy), Ok(last));
    }
}

/// Several segments of acknowledged transactions with a checkpoint before them.
fn long(random: &mut Random) -> (Model, Vec<Lsn>) {
    let mut model = Model::new();
    let (_, mut commits) = few(&mut model, random, 3);
    checkpoint::run(&model.wal, &Writing(&model.pages, &model.wal)).unwrap();
    while model.wal.position().0 < 3 * SEGMENT + SEGMENT / 2 {
        (0..60).for_each(|_| model.change(0, random));
        commits.extend(few(&mut model, random, 1).1);
    }
    (model, commits)
}

#[test]
fn damaged_files_are_refused_and_unfinished_ends_are_not() {
    let mut random = Random(32);
    let (model, commits) = long(&mut random);
    let end = model.wal.position();
    let good = model.folder.copy();
    assert_eq!(start(&good), Ok(end));
    let broken = |what: &str, with_file: bool, break_it: &dyn Fn(&Folder)| {
        let copy = good.copy();
        if !with_file {
            forget_marks(&copy);
        }
        break_it(&copy);
        let found = start(&copy).expect_err(what);
        assert!(found.at < end && found.durable <= end, "{what}: {found}");
        found
    };
    for with_file in [true, false] {
        for position in [SEGMENT / 2, 2 * SEGMENT, 2 * SEGMENT + 40_960] {
            let zeroed = broken("zeroed", with_file, &|copy| {
                damage(copy, position, |bytes| bytes[..4096].fill(0));
            });
            assert!(zeroed.first_lost.is_some_and(|lost| commits.contains(&lost)), "{zeroed}");
            assert!(zeroed.commits > 0 && zeroed.last_commit.is_some_and(|last| commits.contains(&last)));
        }
        broken("rubbish", with_file, &|copy| {
            let rubbish = Random(33).bytes(100_000);
            damage(copy, SEGMENT + 5, |bytes| bytes[..rubbish.len()].copy_from_slice(&rubbish));
        });
        broken("swapped segments", with_file, &|copy| {
            let (one, two) = (place(copy, SEGMENT).0, place(copy, 2 * SEGMENT).0);
            let between = copy.path().join("between");
            std::fs::rename(&one, &between).unwrap();
            std::fs::rename(&two, &one).unwrap();
            std::fs::rename(&between, &two).unwrap();
        });
        broken("cut short", with_file, &|copy| {
            let file = std::fs::OpenOptions::new().write(true).open(place(copy, 2 * SEGMENT).0).unwrap();
            file.set_len(SEGMENT / 3).unwrap();
        });
    }
    // Nothing readable follows, so only the marks in files prove the loss.
    broken("last segments lost", true, &|copy| {
        for entry in std::fs::read_dir(copy.path().join(LOG_FOLDER)).unwrap().flatten() {
            if entry.path() >= place(copy, 2 * SEGMENT).0 {
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    });
    broken("an end of zeros", true, &|copy| damage(copy, end.0 - 500, |bytes| bytes.fill(0)));
    // Bytes behind the last acknowledged commit may be anything.
    for length in [SEGMENT / 2 + SEGMENT / 4, (end.0 + 7) % SEGMENT, end.0 % SEGMENT] {
        let copy = good.copy();
        std::fs::OpenOptions::new().write(true).open(place(&copy, end.0).0).unwrap().set_len(length).unwrap();
        assert_eq!(start(&copy), Ok(end), "cut to {length}");
        // The log goes on in the file that was cut.
        let (recovery, control_file) = Recovery::analyse(copy.path(), Manner::default()).unwrap();
        let wal = recovery.resume(control_file, small(1)).unwrap();
        wal.ensure_reserved(0).unwrap();
        let lsn = wal.append_commit(7, Lsn::ZERO, |_| {});
        wal.wait_durable(lsn).unwrap();
        drop(wal);
        assert_eq!(start(&copy), Ok(lsn));
    }
    let copy = good.copy();
    damage(&copy, end.0, |bytes| bytes[..9000].copy_from_slice(&Random(34).bytes(9000)));
    assert_eq!(start(&copy), Ok(end));
}

/// A burst is written in whole blocks, so the durable part can end within a record. The loss of the
/// rest is no damage.
#[test]
fn a_mark_is_the_end_of_a_record() {
    let mut model = Model::new();
    let mut random = Random(35);
    few(&mut model, &mut random, 2);
    for round in 0..20 {
        let first = model.wal.position();
        while model.wal.position().0 < first.0 + 300_000 + round * 1000 {
            model.change(random.below(STRIPS), &mut random);
        }
        model.wal.wait_durable(Lsn(first.0 + 1)).unwrap();
        let durable = model.wal.durable();
        assert!(durable < model.wal.position(), "a burst is written in parts");
        let copy = model.folder.copy();
        damage(&copy, durable.0, |bytes| bytes.fill(0));
        let end = start(&copy).unwrap_or_else(|found| panic!("round {round}: {found}"));
        assert!(end <= durable);
        model.wal.wait_durable(model.wal.position()).unwrap();
        assert_eq!(start(&model.folder.copy()), Ok(model.wal.position()));
    }
}

/// The last commits are gone and nothing readable follows. One of the two files that keep the mark
/// may be an older copy.
#[test]
fn an_older_copy_of_one_mark_hides_no_loss() {
    let mut model = Model::new();
    let mut random = Random(38);
    let (_, early) = few(&mut model, &mut random, 2);
    let old = model.folder.copy();
    let (first, commits) = few(&mut model, &mut random, 4);
    let new = model.folder.copy();
    for name in [log::durable::NAME, control::NAME] {
        let copy = new.copy();
        std::fs::copy(old.path().join(name), copy.path().join(name)).unwrap();
        assert_eq!(start(&copy), Ok(*commits.last().unwrap()), "{name}");
        damage(&copy, first.0, |bytes| bytes.fill(0));
        let found = start(&copy).expect_err(name);
        assert_eq!((found.at, found.last_commit), (first, early.last().copied()), "{name}: {found}");
    }
}

#[test]
fn a_missing_segment_is_damage_where_it_held_records_and_nothing_elsewhere() {
    let mut random = Random(39);
    let (model, _) = long(&mut random);
    let end = model.wal.position();
    let good = model.folder.copy();
    let last = end.0 / SEGMENT;
    // Segments that were made ahead, one behind the other.
    for ahead in [last + 1, last + 2, last + 3] {
        std::fs::write(place(&good, ahead * SEGMENT).0, vec![0; SEGMENT as usize]).unwrap();
    }
    for gone in [&[last + 1][..], &[last + 2], &[last + 1, last + 2], &[last + 3]] {
        let copy = good.copy();
        gone.iter().for_each(|number| std::fs::remove_file(place(&copy, number * SEGMENT).0).unwrap());
        let (recovery, file) = Recovery::analyse(copy.path(), Manner::default()).unwrap();
        assert_eq!(recovery.end, end, "{gone:?}");
        let wal = recovery.resume(file, small(1)).unwrap();
        wal.ensure_reserved(0).unwrap();
        let lsn = wal.append_commit(7, Lsn::ZERO, |_| {});
        wal.wait_durable(lsn).unwrap();
        drop(wal);
        assert_eq!(start(&copy), Ok(lsn), "{gone:?}");
    }
    for with_marks in [true, false] {
        let copy = good.copy();
        if !with_marks {
            forget_marks(&copy);
        }
        std::fs::remove_file(place(&copy, 2 * SEGMENT).0).unwrap();
        let found = start(&copy).unwrap_err();
        assert!(found.missing == Some(2) && found.commits > 0, "{found}");
        assert!(found.to_string().contains("log/0000000000000002 is missing"), "{found}");
    }
    // A file whose name is no segment's stays as it is.
    let copy = good.copy();
    for name in ["+000000000000002", "ffffffffffffffff", "000000000000000A", "2", "notes"] {
        std::fs::write(copy.path().join(LOG_FOLDER).join(name), b"stray").unwrap();
    }
    assert_eq!(start(&copy), Ok(end));
}

#[test]
fn a_damaged_mark_says_nothing() {
    let mut model = Model::new();
    let mut random = Random(36);
    let (_, commits) = few(&mut model, &mut random, 4);
    let copy = model.folder.copy();
    std::fs::copy(copy.path().join(log::durable::NAME), copy.path().join("aside")).unwrap();
    forget_marks(&copy);
    let path = copy.path().join(log::durable::NAME);
    std::fs::rename(copy.path().join("aside"), &path).unwrap();
    let good = std::fs::read(&path).unwrap();
    for at in 0..20 {
        for bit in 0..8 {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            std::fs::write(&path, bad).unwrap();
            assert_eq!(start(&copy), Ok(*commits.last().unwrap()), "byte {at}, bit {bit}");
        }
    }
    std::fs::write(&path, []).unwrap();
    assert_eq!(start(&copy), Ok(*commits.last().unwrap()));
}

#[test]
fn the_end_is_discarded_only_from_where_the_damage_is() {
    let mut random = Random(37);
    let (model, _) = long(&mut random);
    let copy = model.folder.copy();
    let discard = |folder: &Folder, at| {
        let manner = Manner { discard_log_after: Some(at), ..Manner::default() };
        Recovery::analyse(folder.path(), manner)
    };
    let whole = discard(&copy, Lsn(2 * SEGMENT)).map(|_| ()).unwrap_err();
    assert!(matches!(whole, Error::Format(FormatProblem::Discard { damage: None, .. })), "{whole:?}");
    damage(&copy, 2 * SEGMENT + 5000, |bytes| bytes[..100].fill(0xee));
    let found = start(&copy).unwrap_err();
    let other = discard(&copy, Lsn(found.at.0 + 8)).map(|_| ()).unwrap_err();
    assert!(matches!(other, Error::Format(FormatProblem::Discard { damage: Some(_), .. })), "{other:?}");
    let before = std::fs::read(place(&copy, 2 * SEGMENT).0).unwrap();
    let later = std::fs::read(place(&copy, 3 * SEGMENT).0).unwrap();
    let (recovery, file) = discard(&copy, found.at).unwrap();
    assert_eq!(recovery.end, found.at);
    let wal = recovery.resume(file, small(1)).unwrap();
    let kept = copy.path().join(format!("log-discarded-{:016x}", found.at.0));
    assert!(std::fs::read(kept.join(format!("{:016x}", 2))).unwrap() == before);
    assert!(std::fs::read(kept.join(format!("{:016x}", 3))).unwrap() == later);
    drop(wal);
    // The process was killed before it had read all pages. The next start refuses again, with
    // segments moved by then.
    assert_eq!(start(&copy), Err(found.clone()));
    for _ in 0..2 {
        let (again, file) = discard(&copy, found.at).unwrap();
        assert_eq!((again.end, again.highest_txn()), (found.at, recovery.highest_txn()));
        let wal = again.resume(file, small(1)).unwrap();
        drop(wal);
        for (number, bytes) in [(2, &before), (3, &later)] {
            assert!(std::fs::read(kept.join(format!("{number:016x}"))).unwrap() == *bytes, "{number}");
        }
    }
    let (again, file) = discard(&copy, found.at).unwrap();
    again.resume(file, small(1)).unwrap().settle_end().unwrap();
    // From now on this is the log's end, without a further option.
    assert_eq!(start(&copy), Ok(found.at));
    // Records that the pages need cannot be discarded.
    let early = model.folder.copy();
    let redo = Recovery::analyse(early.path(), Manner::default()).unwrap().0.control().redo;
    assert!(redo > log::FIRST);
    let (file, mut control) = ControlFile::open(early.path()).unwrap();
    control.floor = log::FIRST;
    file.write(&control).unwrap();
    damage(&early, log::FIRST.0 + 60, |bytes| bytes[0] ^= 1);
    let found = start(&early).unwrap_err();
    assert!(found.needed && found.to_string().contains("from a backup"), "{found}");
    assert!(discard(&early, found.at).is_err());
}
