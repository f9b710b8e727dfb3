//! Files through both ways, from fibers and from plain threads.

use std::path::PathBuf;
use std::sync::Arc;

use super::*;
use crate::{Options, Runtime};

/// A folder of one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("allcore-runtime-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(file_io: FileIo) -> Option<Arc<Runtime>> {
    if file_io == FileIo::IoUring && crate::tests::ring_refused() {
        return None;
    }
    let options = Options { cores: Some(2), pin: false, file_io, ..Options::default() };
    Some(Runtime::start(options).unwrap())
}

fn whole_life(folder: &Path, direct: bool) {
    let path = folder.join(if direct { "direct" } else { "plain" });
    let options = OpenOptions { create: true, direct, ..OpenOptions::default() };
    let file = File::open(&path, options).unwrap();
    assert!(file.is_empty().unwrap());
    file.allocate(0, 1 << 20).unwrap();
    assert_eq!(file.len().unwrap(), 1 << 20);
    let mut block = AlignedBuf::new(8192);
    block.iter_mut().enumerate().for_each(|(i, byte)| *byte = i as u8);
    file.write_at(&block, 8192).unwrap();
    file.write_at_durable(&block, 1 << 20).unwrap();
    let pieces: Vec<(u64, &[u8])> = (0..100).map(|i| (65536 + i * 8192, &block[..])).collect();
    file.write_many(&pieces).unwrap();
    file.sync_data().unwrap();
    let mut read = AlignedBuf::new(8192);
    for offset in [8192, 65536, 65536 + 99 * 8192, 1 << 20] {
        read.fill(0);
        file.read_at(&mut read, offset).unwrap();
        assert!(read[..] == block[..]);
    }
    let end = file.len().unwrap();
    assert_eq!(end, (1 << 20) + 8192);
    assert_eq!(file.read_some_at(&mut read, end - 4096).unwrap(), 4096);
    assert_eq!(file.read_at(&mut read, end).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    file.set_len(8192).unwrap();
    assert_eq!(file.len().unwrap(), 8192);
    let read_only = File::open(&path, OpenOptions { read_only: true, ..OpenOptions::default() }).unwrap();
    assert!(read_only.write_at(&block, 0).is_err());
    let other = folder.join("renamed");
    rename(&path, &other).unwrap();
    sync_dir(folder).unwrap();
    assert_eq!(list(folder).unwrap(), std::slice::from_ref(&other));
    assert!(exists(&other).unwrap() && !exists(&path).unwrap());
    remove(&other).unwrap();
    let missing = File::open(&path, OpenOptions::default()).unwrap_err();
    assert_eq!(missing.kind(), io::ErrorKind::NotFound);
}

#[test]
fn every_operation_on_each_way() {
    let folder = Folder::new("life");
    for direct in [false, true] {
        whole_life(&folder.0, direct);
        for file_io in [FileIo::Threads, FileIo::IoUring, FileIo::Auto] {
            let Some(runtime) = start(file_io) else { continue };
            if file_io != FileIo::Auto {
                assert_eq!(runtime.facts().file_io, file_io);
            }
            runtime.call(1, || whole_life(&folder.0, direct));
            runtime.shutdown();
        }
    }
}

#[test]
fn many_fibers_at_once() {
    let folder = Folder::new("many");
    for file_io in [FileIo::Threads, FileIo::IoUring] {
        let Some(runtime) = start(file_io) else { continue };
        let options = OpenOptions { create: true, ..OpenOptions::default() };
        let file = Arc::new(File::open(&folder.0.join("shared"), options).unwrap());
        let (done, ends) = std::sync::mpsc::channel();
        for fiber in 0..400u64 {
            let (file, done) = (file.clone(), done.clone());
            runtime.spawn(fiber as usize % 2, move || {
                let bytes = [fiber as u8; 512];
                file.write_at(&bytes, fiber * 512).unwrap();
                let mut back = [0; 512];
                file.read_at(&mut back, fiber * 512).unwrap();
                done.send(back == bytes).unwrap();
            });
        }
        drop(done);
        assert_eq!(ends.iter().filter(|&good| good).count(), 400);
        runtime.shutdown();
    }
}

#[test]
fn a_lock_excludes_a_second_one() {
    let folder = Folder::new("lock");
    let path = folder.0.join("lock");
    let lock = lock_exclusive(&path).unwrap();
    assert_eq!(lock_exclusive(&path).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(lock);
    lock_exclusive(&path).unwrap();
}

#[test]
fn what_is_made_belongs_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new("private");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let inner = folder.0.join("a/b");
    create_dir(&inner).unwrap();
    create_dir(&inner).unwrap();
    let options = OpenOptions { create: true, ..OpenOptions::default() };
    File::open(&inner.join("file"), options).unwrap();
    drop(lock_exclusive(&inner.join("lock")).unwrap());
    assert_eq!(mode(&inner), 0o700);
    assert_eq!([mode(&inner.join("file")), mode(&inner.join("lock"))], [0o600; 2]);
    std::fs::write(folder.0.join("in the way"), "").unwrap();
    assert!(create_dir(&folder.0.join("in the way")).is_err());
}

#[test]
fn what_is_no_regular_file_is_refused_by_name() {
    let folder = Folder::new("kinds");
    let path = |name: &str| folder.0.join(name);
    std::fs::create_dir(path("folder")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(path("fifo")).status().unwrap();
    assert!(made.success());
    std::os::unix::fs::symlink("/dev/zero", path("device")).unwrap();
    std::os::unix::fs::symlink(path("loop"), path("loop")).unwrap();
    std::fs::write(path("file"), "text").unwrap();
    std::os::unix::fs::symlink(path("file"), path("link")).unwrap();
    let options = OpenOptions { create: true, ..OpenOptions::default() };
    for (name, said) in [
        ("folder", "folder is a folder, not a regular file"),
        ("socket", "socket is a socket, not a regular file"),
        ("fifo", "fifo is a FIFO, not a regular file"),
        ("device", "device is a device, not a regular file"),
        ("loop", "loop: Too many levels of symbolic links"),
    ] {
        let path = path(name);
        let faults = [
            File::open(&path, OpenOptions { read_only: true, ..OpenOptions::default() }).err(),
            File::open(&path, options).err(),
            File::open(&path, OpenOptions { truncate: true, direct: true, ..options }).err(),
            open_to_read(&path).err(),
            lock_exclusive(&path).err(),
            lock_existing(&path).err(),
            copy(&path, &folder.0.join("copy")).err(),
            copy(&folder.0.join("file"), &path).err(),
            MappedWord::open(&path, 0).err(),
        ];
        for (at, fault) in faults.into_iter().enumerate() {
            let fault = fault.unwrap();
            assert!(fault.get_ref().is_some_and(|inner| inner.is::<Unusable>()), "{name} {at}: {fault}");
            assert!(fault.to_string().contains(said), "{name} {at}: {fault}");
        }
        if name != "folder" {
            assert!(sync_dir(&path).is_err(), "{name}");
        }
    }
    for name in ["file", "link"] {
        assert_eq!(io::read_to_string(open_to_read(&path(name)).unwrap()).unwrap(), "text");
        // Operations on it may wait again.
        let file = File::open(&path(name), options).unwrap();
        // SAFETY: a plain call on an open descriptor.
        let flags = unsafe { libc::fcntl(file.file.fd(), libc::F_GETFL) };
        assert_eq!(flags & libc::O_NONBLOCK, 0);
    }
    assert!(File::open(&path("made"), options).is_ok());
    replace(&path("made"), b"anew").unwrap();
    assert_eq!(std::fs::read_to_string(path("made")).unwrap(), "anew");
}
