//! Trees beside transactions: limits of entries, and work that no snapshot takes part in.
//!
//! Rows and index entries are read and written through a [`crate::TxnSession`]. The floors above
//! also name trees, make and free whole ones, and measure them. They take the items here for that
//! and need no other interface to storage. Three items come from storage unchanged, because a
//! wrapper would repeat them. They are [`Tree`], a handle, and the two limits that the layout of
//! rows must respect.

use storage::btree::Cursor;
use storage::{Error, PageNo, Store, space};

pub use storage::btree::{MAX_ENTRY, MAX_KEY, Tree};

/// The tree of this number whose root is page `root`.
#[inline]
pub fn at(id: u32, root: u32) -> Tree {
    Tree::new(id, PageNo(root))
}

/// The folder's first tree, which [`crate::folder::make`] makes.
#[inline]
pub fn first(id: u32) -> Tree {
    Tree::new(id, space::SYSTEM_ROOT)
}

/// Claims a page for the root of a new tree, and returns its number. The caller notes it down
/// before [`create`] puts the page in use, so that a crash loses no page. May park.
pub fn claim_root(store: &Store) -> Result<u32, Error> {
    store.space().claim().map(|page| page.0)
}

/// Gives a claimed root page back, in which no tree was made.
pub fn unclaim_root(store: &Store, root: u32) {
    store.space().unclaim(PageNo(root));
}

/// Makes an empty tree in a claimed root page. After an error the claim is over.
pub fn create(store: &Store, id: u32, root: u32) -> Result<(), Error> {
    Tree::create_at(store, id, PageNo(root)).map(drop)
}

/// The first eight bytes of a tree's highest key, dead entries included; `None` where the tree is
/// empty or the key is shorter.
pub fn last_prefix(store: &Store, tree: Tree) -> Result<Option<[u8; 8]>, Error> {
    let mut cursor = Cursor::new(tree);
    cursor.seek_end(store)?;
    Ok(cursor.prev(store)?.and_then(|(key, _)| key.first_chunk().copied()))
}
