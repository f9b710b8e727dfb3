//! Rows `fault-path`, `preload`, `pinned-memory` and `shared-page-tables` (B14, DragonFly): shared
//! memory, its page faults and its page tables.
//!
//! - `fault-path`: a page is resident, and a thread or process reaches it for the first time. On
//!   FreeBSD 10 the fault takes the memory object's lock exclusively. The fix takes it shared,
//!   looks whether the page is there, and maps it.
//! - `preload`: nobody has touched the page. The first touch allocates and zeroes it. The fix
//!   populates the whole region when it is made.
//! - `pinned-memory`: FreeBSD tracks each process's mapping of each page, and lists grow with
//!   processes. The fix is memory that is physically backed and unpageable, of which the kernel
//!   tracks nothing. Linux tracks a mapping of each page by a count in the page. Huge pages of its
//!   pool are unpageable, and one count stands for 512 ordinary ones. Locked pages keep theirs.
//! - `shared-page-tables`: each process has page tables of its own for the same memory. The fix
//!   shares them: DragonFly's processes share tables, and threads share all.
//!
//! 1. An [`Object`] is memory that several address spaces can map, of ordinary or of huge pages.
//! 2. A [`Mapping`] makes it reachable. [`Mapping::touch`] reaches each page once.
//! 3. [`Mapping::forget`] drops the entries of the page table. The pages stay in the object.
//! 4. A [`Toucher`] does 2 and 3 in a process of its own, and there maps the object anew.
//! 5. [`Mapping::remove`] takes the pages out of the object, so that they are new once more.
//!
//! What must hold: each touch adds 1 to a word of the page, so the words add up to the touches.
//!
//! Cost: a fault is an exception, a walk of the page tables, the lines of the address space's lock
//! and of the page's counts. A huge page takes 1 fault for 512 ordinary ones. An entry is 8 bytes,
//! so each address space spends 1/512 of the memory it has reached on tables.

mod mapping;
mod toucher;

pub use mapping::{Mapping, Object, PageKind, STEP, WITH_ALL_PRESENT, WITH_NOTHING};
pub use toucher::{Toucher, table_bytes};

#[cfg(test)]
mod tests;
