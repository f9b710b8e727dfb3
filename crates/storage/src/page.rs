//! The page: 8192 bytes with a 32-byte header, and the numbers that name pages and log positions.
//!
//! Header, little endian: checksum u32 | page number u32 | lsn u64 | tree u32 | kind u8 | level u8
//! | flags u16 | 8 spare.
//!
//! The checksum (CRC-32C) covers bytes 4..8192. It is right only in the bytes written to disk: a
//! page in memory carries the checksum that it was read with. A page that was never written is all
//! zeros and has no valid checksum. So the checksum alone finds both a page that was claimed but
//! never written and a page that was damaged.

use std::fmt;

/// Bytes of a page.
pub const PAGE_SIZE: usize = 8192;
/// Bytes of a page's header; the body follows.
pub const HEADER_SIZE: usize = 32;
/// Bytes of a page that its kind may use.
pub(crate) const BODY_SIZE: usize = PAGE_SIZE - HEADER_SIZE;

/// Offsets of the header's fields.
pub mod offset {
    /// Checksum, u32.
    pub(crate) const CHECKSUM: usize = 0;
    /// The page's own number, u32.
    pub(crate) const PAGE_NO: usize = 4;
    /// LSN of the last change, u64.
    pub(crate) const LSN: usize = 8;
    /// Tree of the page, u32.
    pub const TREE: usize = 16;
    /// Page kind, u8.
    pub const KIND: usize = 20;
    /// Level above the leaves, u8.
    pub(crate) const LEVEL: usize = 21;
    /// Flags that the kind defines, u16.
    pub const FLAGS: usize = 22;
    /// Unused bytes, zero.
    pub const SPARE: usize = 24;
}
const _: () = assert!(offset::SPARE + 8 == HEADER_SIZE);

/// Number of a page. Bit 31 set: a temporary page, kept in the file `temp`, never logged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNo(pub u32);

impl PageNo {
    /// The bit that marks temporary pages.
    pub(crate) const TEMPORARY: u32 = 1 << 31;
    /// The number of no page.
    pub const NONE: PageNo = PageNo(u32::MAX);

    /// The temporary page at `index` of the file `temp`.
    pub const fn temporary(index: u32) -> PageNo {
        PageNo(index | Self::TEMPORARY)
    }

    /// Whether this page lives in the file `temp`.
    pub(crate) const fn is_temporary(self) -> bool {
        self.0 & Self::TEMPORARY != 0
    }

    /// Place in its file, in pages.
    pub const fn index(self) -> u32 {
        self.0 & !Self::TEMPORARY
    }

    /// Place in its file, in bytes.
    pub const fn offset(self) -> u64 {
        self.index() as u64 * PAGE_SIZE as u64
    }
}

impl fmt::Debug for PageNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for PageNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            PageNo::NONE => f.write_str("none"),
            page if page.is_temporary() => write!(f, "temporary {}", page.index()),
            page => write!(f, "{}", page.0),
        }
    }
}

/// A byte position in the endless log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before every record. A page that was never logged has this LSN.
    pub const ZERO: Lsn = Lsn(0);
    /// After every record.
    pub const MAX: Lsn = Lsn(u64::MAX);
}

impl fmt::Debug for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:X}/{:X}", self.0 >> 32, self.0 & 0xffff_ffff)
    }
}

/// The use of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PageKind {
    /// Nothing: zeroed, never used.
    Free = 0,
    /// The store's own page 0.
    Meta = 1,
    /// One bit for each page of its group.
    SpaceMap = 2,
    /// Inner node of a tree.
    Inner = 3,
    /// Leaf of a tree.
    Leaf = 4,
    /// Old row versions.
    Undo = 5,
    /// Part of a spool: rows of a statement beyond its memory.
    Spool = 6,
}

impl PageKind {
    /// The kind with this number; `None` when no kind has it.
    pub(crate) const fn from_u8(number: u8) -> Option<PageKind> {
        Some(match number {
            0 => PageKind::Free,
            1 => PageKind::Meta,
            2 => PageKind::SpaceMap,
            3 => PageKind::Inner,
            4 => PageKind::Leaf,
            5 => PageKind::Undo,
            6 => PageKind::Spool,
            _ => return None,
        })
    }
}

fn u32_at(page: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]])
}

/// The page number in a page's header.
pub fn page_no(page: &[u8]) -> PageNo {
    PageNo(u32_at(page, offset::PAGE_NO))
}

/// LSN of the page's last logged change (the end of its record).
pub fn lsn(page: &[u8]) -> Lsn {
    Lsn(u64::from(u32_at(page, offset::LSN)) | u64::from(u32_at(page, offset::LSN + 4)) << 32)
}

/// Sets the LSN of the page's last logged change.
pub fn set_lsn(page: &mut [u8], lsn: Lsn) {
    page[offset::LSN..offset::LSN + 8].copy_from_slice(&lsn.0.to_le_bytes());
}

/// The tree of a page.
pub fn tree(page: &[u8]) -> u32 {
    u32_at(page, offset::TREE)
}

/// The page's kind; `None` when no kind has its byte.
pub fn kind(page: &[u8]) -> Option<PageKind> {
    PageKind::from_u8(page[offset::KIND])
}

/// The page's level above the leaves.
pub fn level(page: &[u8]) -> u8 {
    page[offset::LEVEL]
}

/// The flags of the page's kind.
pub fn flags(page: &[u8]) -> u16 {
    u16::from_le_bytes([page[offset::FLAGS], page[offset::FLAGS + 1]])
}

/// Sets the flags of the page's kind.
#[cfg(test)]
fn set_flags(page: &mut [u8], flags: u16) {
    page[offset::FLAGS..offset::FLAGS + 2].copy_from_slice(&flags.to_le_bytes());
}

/// Makes `page` an empty page: header set, LSN zero (so that its first log record carries an
/// image), body zeroed.
pub fn format(page: &mut [u8], page_no: PageNo, kind: PageKind, tree: u32, level: u8) {
    page.fill(0);
    page[offset::PAGE_NO..offset::PAGE_NO + 4].copy_from_slice(&page_no.0.to_le_bytes());
    page[offset::TREE..offset::TREE + 4].copy_from_slice(&tree.to_le_bytes());
    page[offset::KIND] = kind as u8;
    page[offset::LEVEL] = level;
}

/// CRC-32C of everything after the checksum field.
pub fn checksum(page: &[u8]) -> u32 {
    crc32c::crc32c(&page[offset::PAGE_NO..PAGE_SIZE])
}

/// Stores the checksum: the last step before a page is written.
pub fn seal(page: &mut [u8]) {
    let sum = checksum(page);
    page[offset::CHECKSUM..offset::CHECKSUM + 4].copy_from_slice(&sum.to_le_bytes());
}

/// The damage of a page that was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// All zeros: never written.
    NeverWritten,
    /// The checksum does not fit the content.
    Checksum,
    /// A sound page with another number than the one asked for.
    WrongPage(PageNo),
    /// Its last change lies behind the log's end: the log has lost its end.
    Newer,
}

impl Damage {
    /// The text for the error message.
    pub const fn what(self) -> &'static str {
        match self {
            Damage::NeverWritten => "never written",
            Damage::Checksum => "checksum mismatch",
            Damage::WrongPage(_) => "another page's content",
            Damage::Newer => "newer than the end of the log",
        }
    }
}

/// Checks that bytes read from a file are the page `expected`, undamaged.
pub fn verify(page: &[u8], expected: PageNo) -> Result<(), Damage> {
    if u32_at(page, offset::CHECKSUM) != checksum(page) {
        let zeros = page.iter().all(|&byte| byte == 0);
        return Err(if zeros { Damage::NeverWritten } else { Damage::Checksum });
    }
    match page_no(page) {
        found if found == expected => Ok(()),
        found => Err(Damage::WrongPage(found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut page = vec![0; PAGE_SIZE];
        format(&mut page, PageNo(77), PageKind::Leaf, 5, 0);
        set_lsn(&mut page, Lsn(0x1234_5678_9abc));
        set_flags(&mut page, 9);
        seal(&mut page);
        page
    }

    #[test]
    fn a_header_reads_back_as_written() {
        let page = sample();
        assert_eq!(page_no(&page), PageNo(77));
        assert_eq!(lsn(&page), Lsn(0x1234_5678_9abc));
        assert_eq!((tree(&page), kind(&page), level(&page), flags(&page)), (5, Some(PageKind::Leaf), 0, 9));
        assert_eq!(verify(&page, PageNo(77)), Ok(()));
    }

    #[test]
    fn every_damaged_byte_is_found() {
        let good = sample();
        for at in (0..PAGE_SIZE).step_by(37).chain(0..HEADER_SIZE) {
            let mut page = good.clone();
            page[at] ^= 0x10;
            assert_eq!(verify(&page, PageNo(77)), Err(Damage::Checksum), "byte {at}");
        }
    }

    #[test]
    fn a_check_distinguishes_zeros_from_another_page() {
        assert_eq!(verify(&[0; PAGE_SIZE], PageNo(0)), Err(Damage::NeverWritten));
        assert_eq!(verify(&sample(), PageNo(78)), Err(Damage::WrongPage(PageNo(77))));
    }

    #[test]
    fn temporary_pages_have_their_own_file() {
        let page = PageNo::temporary(3);
        assert!(page.is_temporary());
        assert_eq!((page.index(), page.offset()), (3, 3 * 8192));
        assert!(!PageNo(3).is_temporary());
    }
}
