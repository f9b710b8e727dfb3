//! Atomics whose every access the scheduler sees.
//!
//! The [ledger](super::ledger) hears of each before it happens.
//!
//! The operation is `std`'s, as if it were sequentially consistent: virtual threads run one at a
//! time.

pub use std::sync::atomic::Ordering;

use super::ledger::{read, write};

/// Orders nothing more: virtual threads run one at a time.
#[inline]
pub fn fence(_: Ordering) {
    super::access();
}

macro_rules! common {
    ($name:ident, $value:ty, [$($generic:ident)?]) => {
        impl$(<$generic>)? $name$(<$generic>)? {
            /// Holds this value.
            #[inline]
            pub const fn new(value: $value) -> Self {
                Self(std::sync::atomic::$name::new(value))
            }

            /// The value.
            #[inline]
            #[track_caller]
            pub fn load(&self, ordering: Ordering) -> $value {
                read(&self.0);
                self.0.load(ordering)
            }

            /// Sets the value.
            #[inline]
            #[track_caller]
            pub fn store(&self, value: $value, ordering: Ordering) {
                write(&self.0);
                self.0.store(value, ordering);
            }

            /// Sets the value; the one before.
            #[inline]
            #[track_caller]
            pub fn swap(&self, value: $value, ordering: Ordering) -> $value {
                write(&self.0);
                self.0.swap(value, ordering)
            }

            /// Sets the value to `new` if it is `current`.
            ///
            /// # Errors
            /// The present value, if it is not `current`.
            #[inline]
            #[track_caller]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                write(&self.0);
                self.0.compare_exchange(current, new, success, failure)
            }

            /// As [`Self::compare_exchange`].
            ///
            /// # Errors
            /// The value, where it is another.
            #[inline]
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// Sets the value to what `change` makes of it.
            ///
            /// # Errors
            /// The value, where `change` makes none.
            #[inline]
            #[track_caller]
            pub fn fetch_update(
                &self,
                success: Ordering,
                failure: Ordering,
                change: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                write(&self.0);
                self.0.fetch_update(success, failure, change)
            }

            /// The value, for the only owner.
            #[inline]
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            /// The value, of which this was the only owner.
            #[inline]
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }
        }

        impl$(<$generic>)? std::fmt::Debug for $name$(<$generic>)? {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(out)
            }
        }

        impl$(<$generic>)? Default for $name$(<$generic>)? {
            fn default() -> Self {
                Self(Default::default())
            }
        }
    };
}

macro_rules! operations {
    ($name:ident, $value:ty, $($operation:ident)+) => {
        impl $name {
            $(
                /// Changes the value; the one before.
                #[inline]
                #[track_caller]
                pub fn $operation(&self, by: $value, ordering: Ordering) -> $value {
                    write(&self.0);
                    self.0.$operation(by, ordering)
                }
            )+
        }
    };
}

macro_rules! integers {
    ($($name:ident $value:ty;)+) => {
        $(
            #[doc = concat!("An atomic `", stringify!($value), "`.")]
            #[repr(transparent)]
            pub struct $name(std::sync::atomic::$name);
            common!($name, $value, []);
            operations!($name, $value,
                fetch_add fetch_sub fetch_and fetch_or fetch_xor fetch_max fetch_min);

            impl $name {
                /// The atomic at this address.
                ///
                /// # Safety
                /// As `std`'s: valid, aligned, and touched as an atomic only, as long as 'a.
                pub const unsafe fn from_ptr<'a>(at: *mut $value) -> &'a Self {
                    // SAFETY: by contract; the type is transparent.
                    unsafe { &*at.cast() }
                }
            }

            impl From<$value> for $name {
                fn from(value: $value) -> Self {
                    Self::new(value)
                }
            }
        )+
    };
}

integers! {
    AtomicI64 i64;
    AtomicU8 u8;
    AtomicU32 u32;
    AtomicU64 u64;
    AtomicUsize usize;
}

/// An atomic `bool`.
#[repr(transparent)]
pub struct AtomicBool(std::sync::atomic::AtomicBool);
common!(AtomicBool, bool, []);
operations!(AtomicBool, bool, fetch_and fetch_or fetch_xor);

/// An atomic pointer.
#[repr(transparent)]
pub struct AtomicPtr<T>(std::sync::atomic::AtomicPtr<T>);
common!(AtomicPtr, *mut T, [T]);
