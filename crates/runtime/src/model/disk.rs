//! A disk in memory: files by path, their contents in blocks. A block of zeros takes no memory.

use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of a block.
const BLOCK: usize = 4096;

thread_local! {
    static DISK: &'static RefCell<Disk> = Box::leak(Box::default());
}

/// The simulation's disk.
pub(super) fn disk() -> RefMut<'static, Disk> {
    DISK.with(|disk| disk.borrow_mut())
}

/// A file's contents.
#[derive(Debug, Default)]
pub(super) struct Contents {
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
    len: u64,
    /// An open file has its exclusive lock.
    pub(super) is_locked: bool,
}

/// The machine's files.
#[derive(Debug, Default)]
pub(super) struct Disk {
    files: Vec<Contents>,
    names: BTreeMap<PathBuf, usize>,
    folders: BTreeSet<PathBuf>,
}

impl Contents {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Fills `to` from `offset` as far as the file goes; how many bytes that is.
    pub(super) fn read(&self, to: &mut [u8], offset: u64) -> usize {
        let count = (self.len.saturating_sub(offset)).min(to.len() as u64) as usize;
        for (index, byte) in pieces(offset, count) {
            match self.blocks.get(&index) {
                Some(block) => to[byte.target].copy_from_slice(&block[byte.source]),
                None => to[byte.target].fill(0),
            }
        }
        count
    }

    /// Writes all of `from` at `offset`.
    pub(super) fn write(&mut self, from: &[u8], offset: u64) {
        for (index, byte) in pieces(offset, from.len()) {
            let piece = &from[byte.target];
            if piece.iter().all(|byte| *byte == 0) && !self.blocks.contains_key(&index) {
                continue;
            }
            let block = self.blocks.entry(index).or_insert_with(|| Box::new([0; BLOCK]));
            block[byte.source].copy_from_slice(piece);
        }
        self.len = self.len.max(offset + from.len() as u64);
    }

    /// Cuts or extends with zeros.
    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let whole = len.div_ceil(BLOCK as u64);
            self.blocks.split_off(&whole);
            let rest = (len % BLOCK as u64) as usize;
            if rest > 0
                && let Some(block) = self.blocks.get_mut(&(whole - 1))
            {
                block[rest..].fill(0);
            }
        }
        self.len = len;
    }
}

/// A piece of a block, and of the buffer that it is copied to or from.
struct Piece {
    source: std::ops::Range<usize>,
    target: std::ops::Range<usize>,
}

/// The blocks that `len` bytes from `offset` on lie in.
fn pieces(offset: u64, len: usize) -> impl Iterator<Item = (u64, Piece)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let within = (at % BLOCK as u64) as usize;
        let count = (BLOCK - within).min(len - done);
        let piece = Piece { source: within..within + count, target: done..done + count };
        done += count;
        Some((at / BLOCK as u64, piece))
    })
}

impl Disk {
    /// A file's contents.
    pub(super) fn file(&mut self, number: usize) -> &mut Contents {
        &mut self.files[number]
    }

    /// The file at a path.
    pub(super) fn find(&self, path: &Path) -> io::Result<usize> {
        if self.folders.contains(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.names.get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// A new file without a name.
    pub(super) fn make(&mut self) -> usize {
        self.files.push(Contents::default());
        self.files.len() - 1
    }

    /// Gives a file a name; its folder must be there.
    pub(super) fn name(&mut self, path: &Path, file: usize) -> io::Result<()> {
        if path.parent().is_some_and(|folder| !self.is_folder(folder)) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.names.insert(path.to_owned(), file);
        Ok(())
    }

    /// Takes a file's name away; its open descriptors keep the file.
    pub(super) fn unname(&mut self, path: &Path) -> io::Result<usize> {
        self.names.remove(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn is_folder(&self, path: &Path) -> bool {
        path.as_os_str().is_empty() || path == Path::new("/") || self.folders.contains(path)
    }

    /// Makes a folder and those that lead to it.
    pub(super) fn make_folder(&mut self, path: &Path) {
        let ancestors = path.ancestors().filter(|path| !path.as_os_str().is_empty());
        self.folders.extend(ancestors.map(Path::to_owned));
    }

    /// Whether a file or folder is at the path.
    pub(super) fn exists(&self, path: &Path) -> bool {
        self.names.contains_key(path) || self.is_folder(path)
    }

    /// The paths within a folder.
    pub(super) fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        if !self.is_folder(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let within = |path: &&PathBuf| path.parent() == Some(folder);
        let folders = self.folders.iter().filter(within);
        Ok(self.names.keys().filter(within).chain(folders).cloned().collect())
    }
}
