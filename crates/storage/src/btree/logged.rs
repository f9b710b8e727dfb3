//! A latched page as the log sees it. The log leaves out of a page image the bytes of a node that
//! mean nothing.

use std::ops::Range;

use crate::PageMut;
use crate::log::LoggedPage;
use crate::node::Node;
use crate::page::{self, Lsn, PageKind, PageNo};

impl LoggedPage for PageMut<'_> {
    fn page_no(&self) -> PageNo {
        PageMut::page_no(self)
    }

    fn page_lsn(&self) -> Lsn {
        self.lsn()
    }

    fn image(&self) -> &[u8] {
        self.bytes()
    }

    fn hole(&self) -> Range<usize> {
        hole(self.bytes())
    }

    fn set_page_lsn(&mut self, lsn: Lsn) {
        self.set_lsn(lsn);
    }
}

/// The unused bytes of a node between its slots and its heap. Other pages and damaged nodes have
/// none.
fn hole(page: &[u8]) -> Range<usize> {
    let is_node = [PageKind::Leaf as u8, PageKind::Inner as u8].contains(&page[page::offset::KIND]);
    let hole = if is_node { Node::of(page).hole() } else { None };
    hole.unwrap_or(0..0)
}
