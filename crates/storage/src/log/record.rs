//! The log record: its bytes, how they are built and how they are read back.
//!
//! Little endian. A header of 40 bytes, the body, zero padding to a multiple of 8, and the length
//! again as the last 4 bytes. So the record that ends at an LSN can be found from there:
//!
//! | at | field | |
//! |---|---|---|
//! | 0 | length u32 | of the whole record, a multiple of 8 |
//! | 4 | checksum u32 | CRC-32C, begun with the data folder's salt, over bytes 40..length, 0..4, 8..40 |
//! | 8 | position u64 | where the record begins: bytes of an older lap are no record here |
//! | 16 | kind u8 | [`Kind`] |
//! | 17 | pages u8 | number of parts |
//! | 18 | flags u16 | [`COMPENSATION`] |
//! | 20 | undo length u32 | |
//! | 24 | transaction u64 | 0: none |
//! | 32 | previous u64 | LSN of the transaction's previous record, 0: none |
//!
//! Body: the parts, then the undo bytes. In a compensation record these are the LSN (u64) at which
//! undo goes on. A part: page number u32, op u8, flags u8, length u16, then the op's payload or the
//! page's image. An image is where its hole begins (u16), the bytes before the hole and those after
//! it.
//!
//! The checksum takes the body first, because that part can be computed before the position is
//! known. The time between reserving and filling delays every waiting commit.

use std::ops::Range;

use crate::page::{Lsn, PAGE_SIZE, PageNo};

use super::TxnLink;

/// Bytes of a record's header.
pub(crate) const HEADER: usize = 40;
/// Bytes of the length at a record's end.
pub(crate) const TRAILER: usize = 4;
/// Bytes before a part's payload.
pub(crate) const PART_HEADER: usize = 8;
/// Bytes of an image's payload before those of the page.
const IMAGE_HEADER: usize = 2;
/// The shortest record.
pub(crate) const SHORTEST: usize = (HEADER + TRAILER).next_multiple_of(ALIGNMENT);
/// Records begin and end at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;
/// The most pages that one change may cover.
pub(crate) const MAX_PAGES: usize = 16;
/// The most bytes of ops and undo information in one record, beside page images.
pub(crate) const MAX_PAYLOAD: usize = 64 << 10;
/// The longest record: every page as an image, and the payload.
pub(crate) const LONGEST: usize =
    (HEADER + MAX_PAGES * (PART_HEADER + IMAGE_HEADER + PAGE_SIZE) + MAX_PAYLOAD + TRAILER)
        .next_multiple_of(ALIGNMENT);
/// Flag of a record: it redoes an undo and names the LSN at which undo goes on.
pub(crate) const COMPENSATION: u16 = 1;
/// Flag of a part: the payload is the whole page.
const PART_IMAGE: u8 = 1;
/// Flag of a part: redo begins with a zeroed page.
const PART_NEW: u8 = 2;

const _: () = assert!(IMAGE_HEADER + PAGE_SIZE <= u16::MAX as usize, "a part's length is a u16");
const _: () = assert!(MAX_PAGES <= u8::MAX as usize, "the number of parts is a u8");

/// The kind of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Pages were changed.
    Change = 1,
    /// A transaction committed.
    Commit = 2,
    /// A transaction was rolled back completely.
    Abort = 3,
    /// All pages of a checkpoint are written.
    Checkpoint = 4,
    /// Space without meaning: it was reserved for a change that follows with images, or it is the
    /// rest of a block.
    Void = 5,
}

impl Kind {
    fn from_u8(number: u8) -> Option<Kind> {
        [Kind::Change, Kind::Commit, Kind::Abort, Kind::Checkpoint, Kind::Void]
            .into_iter()
            .find(|kind| *kind as u8 == number)
    }
}

/// How redo takes a part's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PartForm {
    /// The payload of an op on the page as it is.
    Op,
    /// The payload of an op on a zeroed page.
    New,
    /// The page's bytes after the change.
    Image,
}

/// Starts a record in `buffer`, which is emptied.
pub(crate) fn begin(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.extend_from_slice(&[0; HEADER]);
}

/// Adds a part; the pieces of `payload` follow one another.
pub(crate) fn add_part(buffer: &mut Vec<u8>, page: PageNo, op: u8, form: PartForm, payload: &[&[u8]]) {
    let length: usize = payload.iter().map(|piece| piece.len()).sum();
    assert!(length <= IMAGE_HEADER + PAGE_SIZE, "the payload of one page's op is at most a page");
    let flags = match form {
        PartForm::Op => 0,
        PartForm::New => PART_NEW,
        PartForm::Image => PART_IMAGE,
    };
    let [p0, p1, p2, p3] = page.0.to_le_bytes();
    let [l0, l1] = (length as u16).to_le_bytes();
    buffer.extend_from_slice(&[p0, p1, p2, p3, op, flags, l0, l1]);
    payload.iter().for_each(|piece| buffer.extend_from_slice(piece));
}

/// Adds a part that is the whole page, without its `hole`.
pub(crate) fn add_image(buffer: &mut Vec<u8>, page: PageNo, op: u8, bytes: &[u8], hole: Range<usize>) {
    let start = (hole.start as u16).to_le_bytes();
    add_part(buffer, page, op, PartForm::Image, &[&start, &bytes[..hole.start], &bytes[hole.end..]]);
}

/// The fields of a header beside the record's place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub kind: Kind,
    pub pages: u8,
    pub undo_length: u32,
    pub link: TxnLink,
}

/// A record that lacks only its position.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// Checksum of the body, begun with the salt.
    body: u32,
}

/// Ends the record: padding, trailer, header. The body is in `buffer` after the header's room.
pub(crate) fn seal(buffer: &mut Vec<u8>, head: Head, salt: u32) -> Sealed {
    let length = (buffer.len() + TRAILER).next_multiple_of(ALIGNMENT);
    // Recovery would take a longer record for the end of the log.
    assert!(length <= LONGEST, "a record of {length} bytes");
    buffer.resize(length - TRAILER, 0);
    buffer.extend_from_slice(&(length as u32).to_le_bytes());
    let flags = if head.link.compensation.is_some() { COMPENSATION } else { 0 };
    buffer[0..4].copy_from_slice(&(length as u32).to_le_bytes());
    buffer[16] = head.kind as u8;
    buffer[17] = head.pages;
    buffer[18..20].copy_from_slice(&flags.to_le_bytes());
    buffer[20..24].copy_from_slice(&head.undo_length.to_le_bytes());
    buffer[24..32].copy_from_slice(&head.link.txn.to_le_bytes());
    buffer[32..40].copy_from_slice(&head.link.prev.0.to_le_bytes());
    Sealed { body: crc32c::crc32c_append(salt, &buffer[HEADER..]) }
}

/// Puts a sealed record at its position. `kind` replaces the sealed one.
pub(crate) fn place(buffer: &mut [u8], sealed: &Sealed, position: u64, kind: Kind) {
    buffer[8..16].copy_from_slice(&position.to_le_bytes());
    buffer[16] = kind as u8;
    let checksum = checksum_of_header(sealed.body, buffer);
    buffer[4..8].copy_from_slice(&checksum.to_le_bytes());
}

fn checksum_of_header(body: u32, record: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(body, &record[0..4]), &record[8..HEADER])
}

/// The length that a header claims, if a record at `position` may have it.
pub(crate) fn claimed_length(header: &[u8], position: u64) -> Option<usize> {
    let length = u32_at(header, 0)? as usize;
    let fits = (SHORTEST..=LONGEST).contains(&length) && length.is_multiple_of(ALIGNMENT);
    (fits && u64_at(header, 8)? == position).then_some(length)
}

/// The facts about a record that was checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    length: usize,
    head: Head,
    position: u64,
}

/// A record, checked.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    bytes: &'a [u8],
    head: Head,
    position: u64,
}

impl<'a> Record<'a> {
    /// The record in `bytes`, if they are one that was written at `position` with `salt`.
    pub(crate) fn parse(bytes: &'a [u8], position: u64, salt: u32) -> Option<Record<'a>> {
        let length = claimed_length(bytes, position)?;
        let bytes = bytes.get(..length)?;
        let body = crc32c::crc32c_append(salt, &bytes[HEADER..]);
        if checksum_of_header(body, bytes) != u32_at(bytes, 4)?
            || u32_at(bytes, length - TRAILER)? as usize != length
        {
            return None;
        }
        let flags = u16::from_le_bytes([bytes[18], bytes[19]]);
        let link = TxnLink { txn: u64_at(bytes, 24)?, prev: Lsn(u64_at(bytes, 32)?), compensation: None };
        let head =
            Head { kind: Kind::from_u8(bytes[16])?, pages: bytes[17], undo_length: u32_at(bytes, 20)?, link };
        let mut record = Record { bytes, head, position };
        // The log writes well-formed records only. The check stands all the same, so that the parts
        // can be walked.
        let undo = record.undo_range()?;
        if flags & COMPENSATION != 0 {
            record.head.link.compensation = Some(Lsn(u64_at(&bytes[undo], 0)?));
        }
        Some(record)
    }

    /// The same record, checked before, from a new borrow of its bytes.
    pub(crate) fn again(bytes: &'a [u8], checked: Checked) -> Record<'a> {
        Record { bytes: &bytes[..checked.length], head: checked.head, position: checked.position }
    }

    /// The facts that [`Record::again`] needs.
    pub(crate) fn checked(&self) -> Checked {
        Checked { length: self.bytes.len(), head: self.head, position: self.position }
    }

    /// The record's kind.
    pub fn kind(&self) -> Kind {
        self.head.kind
    }

    /// Its transaction, that transaction's previous record, and where undo goes on.
    pub fn link(&self) -> TxnLink {
        self.head.link
    }

    /// Its LSN: the position just after it.
    pub fn lsn(&self) -> Lsn {
        Lsn(self.position + self.bytes.len() as u64)
    }

    /// The position at which it begins.
    pub fn position(&self) -> Lsn {
        Lsn(self.position)
    }

    /// The pages it changed, in the order they were added.
    pub fn parts(&self) -> impl Iterator<Item = Part<'a>> + use<'a> {
        let mut rest = &self.bytes[HEADER..];
        (0..self.head.pages).map_while(move |_| {
            let (part, after) = split_part(rest)?;
            rest = after;
            Some(part)
        })
    }

    /// The logical undo information; empty when there is none.
    pub fn undo(&self) -> &'a [u8] {
        match (self.head.link.compensation, self.undo_range()) {
            (None, Some(range)) => &self.bytes[range],
            _ => &[],
        }
    }

    /// The range of the undo bytes, if they and the parts lie within the record.
    fn undo_range(&self) -> Option<Range<usize>> {
        let mut rest = &self.bytes[HEADER..];
        for _ in 0..self.head.pages {
            rest = split_part(rest)?.1;
        }
        let start = self.bytes.len() - rest.len();
        let end = start + self.head.undo_length as usize;
        (end + TRAILER <= self.bytes.len()).then_some(start..end)
    }
}

/// The part of a record about one page.
#[derive(Clone, Copy, Debug)]
pub struct Part<'a> {
    /// The page.
    pub page: PageNo,
    /// The operation on the page.
    pub op: u8,
    /// The op's payload, or the image as it is logged.
    pub payload: &'a [u8],
    pub(crate) form: PartForm,
}

impl Part<'_> {
    /// Whether redo needs nothing of the page's earlier content.
    pub(crate) fn replaces_page(&self) -> bool {
        self.form != PartForm::Op
    }

    /// Whether the payload is the whole page.
    pub fn is_image(&self) -> bool {
        self.form == PartForm::Image
    }

    /// Puts an image into `page`; false when the payload is no image.
    pub fn restore(&self, page: &mut [u8]) -> bool {
        let Some((start, bytes)) = self.image() else { return false };
        let Some(after) = page.len().checked_sub(bytes.len() - start) else { return false };
        if start > after {
            return false;
        }
        page[..start].copy_from_slice(&bytes[..start]);
        page[start..after].fill(0);
        page[after..].copy_from_slice(&bytes[start..]);
        true
    }

    /// The offset of an image's hole, and the image's bytes without the hole.
    fn image(&self) -> Option<(usize, &[u8])> {
        let (start, bytes) = self.payload.split_first_chunk::<IMAGE_HEADER>()?;
        let start = usize::from(u16::from_le_bytes(*start));
        (self.is_image() && start <= bytes.len() && bytes.len() <= PAGE_SIZE).then_some((start, bytes))
    }
}

fn split_part(bytes: &[u8]) -> Option<(Part<'_>, &[u8])> {
    let (head, rest) = bytes.split_at_checked(PART_HEADER)?;
    let form = match head[5] {
        0 => PartForm::Op,
        PART_NEW => PartForm::New,
        PART_IMAGE => PartForm::Image,
        _ => return None,
    };
    let (payload, rest) = rest.split_at_checked(u16::from_le_bytes([head[6], head[7]]) as usize)?;
    let part = Part { page: PageNo(u32_at(head, 0)?), op: head[4], payload, form };
    if part.is_image() {
        part.image()?;
    }
    Some((part, rest))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|four| u32::from_le_bytes(four.try_into().expect("four bytes")))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8).map(|eight| u64::from_le_bytes(eight.try_into().expect("eight bytes")))
}
