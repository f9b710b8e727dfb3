//! One word of the page table: absent, in a frame, or being loaded into one.

/// Where a page is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry(pub u32);

impl Entry {
    pub const ABSENT: Entry = Entry(0);
    pub const LOADING: u32 = 1 << 31;

    pub fn resident(frame: u32) -> Entry {
        Entry(frame + 1)
    }

    pub fn loading(frame: u32) -> Entry {
        Entry(frame | Self::LOADING)
    }

    #[inline]
    pub fn frame(self) -> Option<u32> {
        if self.0 & Self::LOADING == 0 { self.0.checked_sub(1) } else { None }
    }

    pub fn is_loading(self) -> bool {
        self.0 & Self::LOADING != 0
    }
}
