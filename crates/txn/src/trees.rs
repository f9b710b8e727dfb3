//! Trees beside transactions: limits of entries, and work that no snapshot takes part in.
//!
//! Rows and index entries are read and written through a [`crate::TxnSession`]. The layers above
//! also name trees, make and free whole ones, and measure them. They take the items here for that
//! and need no other interface to storage. Some items come from storage unchanged, because a
//! wrapper would repeat them. They are [`Tree`], a handle, the two limits that the layout of rows
//! must respect, and what samples find: a leaf [`Drawn`] and a [`Size`].

use storage::btree::Cursor;
use storage::{Error, PageNo, space};

use crate::folder::Folder;

pub use storage::btree::{Drawn, MAX_ENTRY, MAX_KEY, Size, Tree};

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
pub fn claim_root(folder: &Folder) -> Result<u32, Error> {
    folder.0.space().claim().map(|page| page.0)
}

/// Gives a claimed root page back, in which no tree was made.
pub fn unclaim_root(folder: &Folder, root: u32) {
    folder.0.space().unclaim(PageNo(root));
}

/// Makes an empty tree in a claimed root page. After an error the claim is over.
pub fn create(folder: &Folder, id: u32, root: u32) -> Result<(), Error> {
    Tree::create_at(&folder.0, id, PageNo(root)).map(drop)
}

/// The pages of a dropped tree by levels, the leaves first.
pub struct Levels(Vec<Vec<PageNo>>);

/// Collects the pages of a tree that nobody uses any more. With `begun`, a part of them may have
/// been freed before, and be in use elsewhere; these are left out.
pub fn levels(folder: &Folder, tree: Tree, begun: bool) -> Result<Levels, Error> {
    tree.collect_levels(&folder.0, begun).map(Levels)
}

impl Levels {
    /// Frees the pages, and calls `freed` after each level. A crash between two leaves a tree that
    /// [`levels`] takes with `begun`.
    pub fn free(self, folder: &Folder, freed: impl Fn()) -> Result<(), Error> {
        for level in self.0 {
            folder.0.space().free(&level)?;
            freed();
        }
        Ok(())
    }
}

/// The number of a tree's pages. Reads the inner nodes.
pub fn pages(folder: &Folder, tree: Tree) -> Result<u64, Error> {
    tree.pages(&folder.0)
}

/// The number of a tree's entries, dead ones included, estimated from leaves spread over the tree.
pub fn estimated_entries(folder: &Folder, tree: Tree) -> Result<u64, Error> {
    tree.statistics(&folder.0).map(|statistics| statistics.entries)
}

/// Draws a leaf of a tree at random; see [`Tree::draw`].
///
/// # Errors
/// A page is damaged or cannot be read.
pub fn draw(folder: &Folder, tree: Tree, random: &mut dyn FnMut() -> u64) -> Result<Drawn, Error> {
    tree.draw(&folder.0, random)
}

/// An estimate of a tree's size; see [`Tree::size`].
///
/// # Errors
/// A page is damaged or cannot be read.
pub fn size(folder: &Folder, tree: Tree) -> Result<Size, Error> {
    tree.size(&folder.0)
}

/// An estimate of the part of a tree's entries in some leaves; see [`Tree::part_within`].
///
/// # Errors
/// A page is damaged or cannot be read.
pub fn part_within(folder: &Folder, tree: Tree, is_within: impl Fn(&Drawn) -> bool) -> Result<f64, Error> {
    tree.part_within(&folder.0, is_within)
}

/// An estimate of a tree's size from pages in the pool. `None` where some are not there.
#[must_use]
pub fn resident_size(folder: &Folder, tree: Tree) -> Option<Size> {
    tree.resident_size(&folder.0)
}

/// The result of a check of a tree.
pub struct Checked {
    /// Pages reached.
    pub pages: u64,
    /// The problems found, each with its page; empty for a sound tree.
    pub problems: Vec<(u32, String)>,
}

/// Checks a whole tree. Damage goes into the result. An error means that a page could not be read
/// for a reason other than damage.
pub fn check(folder: &Folder, tree: Tree) -> Result<Checked, Error> {
    let report = tree.check(&folder.0)?;
    let problems = report.problems.into_iter().map(|problem| (problem.page.0, problem.what));
    Ok(Checked { pages: report.pages, problems: problems.collect() })
}

/// The first eight bytes of a tree's highest key, dead entries included; `None` where the tree is
/// empty or the key is shorter.
pub fn last_prefix(folder: &Folder, tree: Tree) -> Result<Option<[u8; 8]>, Error> {
    let mut cursor = Cursor::new(tree);
    cursor.seek_end(&folder.0)?;
    Ok(cursor.prev(&folder.0)?.and_then(|(key, _)| key.first_chunk().copied()))
}
