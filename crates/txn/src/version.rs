//! The version header: the 16 bytes before each row's payload, little endian.
//!
//! ```text
//! 0      6            12                          16
//! | txid | undo pointer | command << 2 | keys << 1 | deleted | payload ...
//! ```
//!
//! - `txid`: the transaction that wrote this version (48 bits).
//! - Undo pointer: the undo record that holds the version before this one; 0 if there is none (48
//!   bits: page index << 13 | offset in page).
//! - Command: the writer's statement (30 bits). Its own later statements see the version, the
//!   statement itself does not.
//! - Keys: the writer changed the values of a unique key other than the one under which the row
//!   lies. Until the writer's transaction ends, such a version excludes FOR KEY SHARE, as a
//!   deletion does.
//! - Deleted: the row ends with this version. It keeps the payload of the one before, and the entry
//!   stays until no snapshot can see that.

/// Bytes of the header.
pub const HEADER: usize = 16;
/// The highest transaction number that fits.
pub(crate) const MAX_TXID: u64 = (1 << 48) - 1;
/// The highest command number that fits.
pub(crate) const MAX_COMMAND: u32 = (1 << 30) - 1;

/// The place of an undo record: page index and offset in the page. Offsets are never 0, because the
/// page's header is there. So the zero pointer names no record.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct UndoPointer(u64);

const OFFSET_BITS: u32 = 13;
const _: () = assert!(storage::page::PAGE_SIZE == 1 << OFFSET_BITS);
const _: () = assert!(31 + OFFSET_BITS <= 48); // any temporary page fits

impl UndoPointer {
    /// The pointer that names no record.
    pub const NONE: UndoPointer = UndoPointer(0);

    /// The record at `offset` of the temporary page `index`.
    #[inline]
    pub fn new(index: u32, offset: u16) -> UndoPointer {
        debug_assert!(offset != 0 && usize::from(offset) < storage::page::PAGE_SIZE);
        UndoPointer(u64::from(index) << OFFSET_BITS | u64::from(offset))
    }

    /// The pointer as a number.
    #[inline]
    pub fn raw(self) -> u64 {
        self.0
    }

    /// The pointer of a number; bits above a pointer's are dropped.
    #[inline]
    pub fn from_raw(raw: u64) -> UndoPointer {
        UndoPointer(raw & MAX_TXID)
    }

    /// Whether it names no record.
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Index of the temporary page.
    #[inline]
    pub fn index(self) -> u32 {
        (self.0 >> OFFSET_BITS) as u32 & (u32::MAX >> 1)
    }

    /// Offset in the page.
    #[inline]
    pub fn offset(self) -> usize {
        (self.0 & ((1 << OFFSET_BITS) - 1)) as usize
    }
}

/// A version header. A later change recognises by it the version that was read.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Stamp {
    /// The transaction that wrote the version.
    pub txid: u64,
    /// The version before it.
    pub undo: UndoPointer,
    /// The writer's command.
    pub command: u32,
    /// Whether the writer changed a unique key other than the one under which the row lies.
    pub keys: bool,
    /// Whether the row ends with this version.
    pub deleted: bool,
}

impl Stamp {
    /// Reads the header of a stored value; `None` if the value is shorter than a header.
    #[inline]
    pub fn decode(value: &[u8]) -> Option<Stamp> {
        let header: &[u8; HEADER] = value.first_chunk()?;
        let low = u64::from_le_bytes(*header.first_chunk()?);
        let high = u64::from_le_bytes(*header.last_chunk()?);
        let command = (high >> 32) as u32;
        Some(Stamp {
            txid: low & MAX_TXID,
            undo: UndoPointer(low >> 48 | (high & 0xffff_ffff) << 16),
            command: command >> 2,
            keys: command & 2 != 0,
            deleted: command & 1 != 0,
        })
    }

    /// The header's bytes.
    #[inline]
    pub fn encode(&self) -> [u8; HEADER] {
        debug_assert!(self.txid <= MAX_TXID && self.undo.0 <= MAX_TXID && self.command <= MAX_COMMAND);
        let low = self.txid | self.undo.0 << 48;
        let command = self.command << 2 | u32::from(self.keys) << 1 | u32::from(self.deleted);
        let high = self.undo.0 >> 16 | u64::from(command) << 32;
        (u128::from(low) | u128::from(high) << 64).to_le_bytes()
    }

    /// Whether the write excludes FOR KEY SHARE while its transaction runs.
    #[inline]
    pub(crate) fn holds_keys(&self) -> bool {
        self.keys || self.deleted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_at_its_limits() {
        let pointers = [UndoPointer::NONE, UndoPointer::new(0, 32), UndoPointer::new(u32::MAX >> 1, 8191)];
        for txid in [0, 1, 0x1234_5678_9abc, MAX_TXID] {
            for undo in pointers {
                for command in [0, 1, 77, MAX_COMMAND] {
                    for (keys, deleted) in [(false, false), (false, true), (true, false), (true, true)] {
                        let stamp = Stamp { txid, undo, command, keys, deleted };
                        assert_eq!(Stamp::decode(&stamp.encode()), Some(stamp));
                    }
                }
            }
        }
        assert_eq!(Stamp::decode(&[0; HEADER - 1]), None);
    }

    #[test]
    fn pointers_keep_page_and_offset() {
        let pointer = UndoPointer::new(u32::MAX >> 1, 8191);
        assert_eq!((pointer.index(), pointer.offset()), (u32::MAX >> 1, 8191));
        assert_eq!(UndoPointer::from_raw(pointer.raw()), pointer);
        assert!(UndoPointer::NONE.is_none() && !pointer.is_none());
    }
}
