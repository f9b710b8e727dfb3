//! Values kept on cache lines of their own, alone or one for each core.
//!
//! What must hold: a field that one core writes often shares no pair of cache lines with a field
//! that other cores read. Otherwise each write takes from them what they read next.
//! [`assert_apart!`](crate::assert_apart) checks this when a struct is compiled.

use std::ops::{Deref, DerefMut};

/// A value alone on its cache lines: 128 bytes, since the adjacent-line prefetcher pulls pairs of
/// 64.
#[derive(Debug, Default, Clone, Copy)]
#[repr(align(128))]
pub struct CachePadded<T>(T);

impl<T> CachePadded<T> {
    /// Wraps a value.
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Gives the value back.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for CachePadded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for CachePadded<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// Fails to compile where the first field shares a pair of cache lines with one of the others.
/// Cores write the first one often and read the others. The first field is a [`CachePadded`].
#[macro_export]
macro_rules! assert_apart {
    ($type:ty: $written:ident from $($read:ident),+) => {
        const _: () = {
            const PAIR: usize = align_of::<$crate::CachePadded<u8>>();
            const WRITTEN: usize = std::mem::offset_of!($type, $written);
            // The offsets tell lines only where the struct begins at one.
            assert!(align_of::<$type>() >= PAIR && WRITTEN % PAIR == 0);
            $(assert!(std::mem::offset_of!($type, $read) / PAIR != WRITTEN / PAIR);)+
        };
    };
}

/// One `T` for each core, each on cache lines of its own.
#[derive(Debug)]
pub struct PerCore<T> {
    each: Box<[CachePadded<T>]>,
}

impl<T> PerCore<T> {
    /// Makes `cores` values; `make` is given the core.
    pub fn new(cores: usize, mut make: impl FnMut(usize) -> T) -> Self {
        assert!(cores > 0, "a machine has at least one core");
        Self { each: (0..cores).map(|core| CachePadded::new(make(core))).collect() }
    }

    /// The value of one core. Panics where there is no such core.
    #[inline]
    pub fn get(&self, core: usize) -> &T {
        &self.each[core]
    }

    /// All cores' values, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &T> {
        self.each.iter().map(|value| &value.0)
    }

    /// Number of cores.
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.each.len()
    }
}
