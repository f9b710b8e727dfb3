//! SQL types and their values: the type ([`Type`], [`registry`]), the value ([`Datum`], [`Value`]),
//! and the calculations of each type.
//!
//! The text forms are in [`crate::text`] and the binary ones in [`crate::binary`], both above this
//! module.

use std::fmt;

pub mod array;
pub mod compare;
pub mod datetime;
pub mod datum;
pub mod elements;
pub mod interval;
pub mod modifier;
pub mod numeric;
pub mod oid;
pub mod records;
pub mod registry;
pub mod settings;
pub mod tagged;

pub use array::ArrayRef;
pub use compare::compare;
pub use datum::{Datum, OutOfLinePointer, RecordRef, Value};
pub use elements::ArrayBuilder;
pub use interval::Interval;
pub use numeric::NumericRef;
pub use records::compare_records;
pub use registry::{
    TypeInfo, TypeKind, array_of, by_name, category, element_of, info, is_array, is_preferred, name,
};
pub use settings::Settings;

/// A type with its modifier, as a column or an expression has it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Type {
    /// PostgreSQL's OID of the type.
    pub oid: u32,
    /// `typmod`: length, or precision and scale, in PostgreSQL's encoding; -1 for none.
    pub modifier: i32,
}

impl Type {
    /// A type without modifier.
    pub const fn new(oid: u32) -> Type {
        Type { oid, modifier: -1 }
    }

    /// A type with a modifier.
    pub const fn with_modifier(oid: u32, modifier: i32) -> Type {
        Type { oid, modifier }
    }

    /// The type's row of the registry; None for an unknown OID.
    pub fn info(self) -> Option<&'static TypeInfo> {
        registry::info(self.oid)
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Its name alone does not tell all modifiers apart.
        match self.modifier {
            -1 => write!(f, "{self}"),
            modifier => write!(f, "{self}#{modifier}"),
        }
    }
}

impl fmt::Display for Type {
    /// The type as `format_type` shows it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&registry::format_type(*self))
    }
}

macro_rules! plain_types {
    ($($constant:ident)*) => {
        impl Type {
            $(#[doc = concat!("The type of OID `oid::", stringify!($constant), "`, without modifier.")]
            pub const $constant: Type = Type::new(oid::$constant);)*
        }
    };
}

plain_types! {
    BOOL BYTEA CHAR NAME INT8 INT2 INT4 TEXT OID FLOAT4 FLOAT8 UNKNOWN BPCHAR VARCHAR DATE TIME TIMESTAMP TIMESTAMPTZ
    INTERVAL NUMERIC UUID RECORD VOID REGCLASS REGTYPE TEXT_ARRAY INT4_ARRAY
}
