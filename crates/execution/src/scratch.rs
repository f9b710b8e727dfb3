//! Arenas and buffers that statements reuse. The stock belongs to a core, not to a session. So a
//! thousand sessions work in the same few kilobytes, which stay in the core's cache.
//!
//! What must hold: the code that takes one owns it, across parks too, until it gives it back.
//! Dropping it instead only costs an allocation later. The stock is never borrowed across a park.

use std::cell::RefCell;

use bumpalo::Bump;
use sync::core_local;

/// The most arenas that a core keeps, and the most bytes of each. The arena of a big statement is
/// freed.
const ARENAS: usize = 16;
const ARENA_BYTES: usize = 64 << 10;
/// The most buffers that a core keeps, and the most bytes of each.
const BUFFERS: usize = 32;
const BUFFER_BYTES: usize = 8 << 10;

struct Stock {
    arenas: Vec<Bump>,
    buffers: Vec<Vec<u8>>,
}

core_local! {
    static STOCK: RefCell<Stock> = const { RefCell::new(Stock { arenas: Vec::new(), buffers: Vec::new() }) };
}

/// An empty arena.
#[inline]
pub fn take_arena() -> Bump {
    STOCK.with_borrow_mut(|stock| stock.arenas.pop()).unwrap_or_default()
}

/// Gives an arena back.
#[inline]
pub fn give_arena(mut arena: Bump) {
    if arena.allocated_bytes() > ARENA_BYTES {
        return;
    }
    arena.reset();
    STOCK.with_borrow_mut(|stock| {
        if stock.arenas.len() < ARENAS {
            stock.arenas.push(arena);
        }
    });
}

/// An empty buffer.
#[inline]
pub(crate) fn take_bytes() -> Vec<u8> {
    STOCK.with_borrow_mut(|stock| stock.buffers.pop()).unwrap_or_default()
}

/// Gives a buffer back.
#[inline]
pub(crate) fn give_bytes(mut bytes: Vec<u8>) {
    if bytes.capacity() > BUFFER_BYTES {
        return;
    }
    bytes.clear();
    STOCK.with_borrow_mut(|stock| {
        if stock.buffers.len() < BUFFERS {
            stock.buffers.push(bytes);
        }
    });
}
