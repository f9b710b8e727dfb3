//! SQL types ([`Type`], [`registry`]) and their values ([`Datum`], [`Value`]), with their text form
//! and PostgreSQL's binary format.

use std::fmt;

pub mod array;
mod array_text;
pub mod binary;
pub mod bytes;
pub mod compare;
pub mod datetime;
pub mod datum;
pub mod float;
pub mod interval;
pub mod length;
pub mod numeric;
pub mod oid;
mod oid_text;
pub mod records;
pub mod registry;
pub mod settings;
pub mod tagged;
pub mod text;

pub use array::{ArrayBuilder, ArrayRef};
pub use compare::compare;
pub use datum::{Datum, RecordRef, Value, WidePointer};
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
    /// `typmod`: length or precision and scale, in PostgreSQL's encoding; -1 for none.
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

    /// The type's row in the registry.
    pub fn info(self) -> Option<&'static TypeInfo> {
        registry::info(self.oid)
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_string())
    }
}

impl fmt::Display for Type {
    /// As `format_type` shows it.
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
