//! The type registry: OIDs, names, categories, lengths and array types, as in PostgreSQL's
//! `pg_type`.
//!
//! The table is fixed: user-defined types do not exist. Lookups by OID are a binary search in a
//! small sorted table.
//!
//! What must hold:
//!
//! 1. [`TYPES`] is sorted by OID.
//! 2. OIDs and names are PostgreSQL's: drivers know them, and stored definitions hold the OIDs.
//! 3. A type and its array type name each other. A vector names its element type, which names the
//!    array type instead.
//! 4. A numeric's modifier packs precision and scale as PostgreSQL does. The scale may be negative.
//! 5. The name that [`format_type_exactly`] gives means the same type when it is parsed.

use super::{Type, oid};

/// The kind of a type (`typtype`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeKind {
    /// A base type or an array of one.
    Base,
    /// A pseudo-type, which no column can have.
    Pseudo,
}

/// One row of the registry.
#[derive(Debug)]
pub struct TypeInfo {
    /// PostgreSQL's OID.
    pub oid: u32,
    /// Name in `pg_type`.
    pub name: &'static str,
    /// `typlen`: bytes of a fixed-width value, -1 variable, -2 C string.
    pub length: i16,
    /// `typcategory`.
    pub category: u8,
    /// `typispreferred`.
    pub preferred: bool,
    /// OID of the array type, 0 for none.
    pub array: u32,
    /// OID of the element type of an array (or vector) type, 0 for others.
    pub element: u32,
    /// Base or pseudo.
    pub kind: TypeKind,
}

const fn base(
    oid: u32,
    name: &'static str,
    length: i16,
    category: u8,
    preferred: bool,
    array: u32,
) -> TypeInfo {
    TypeInfo { oid, name, length, category, preferred, array, element: 0, kind: TypeKind::Base }
}

const fn array(oid: u32, name: &'static str, element: u32) -> TypeInfo {
    TypeInfo {
        oid,
        name,
        length: -1,
        category: b'A',
        preferred: false,
        array: 0,
        element,
        kind: TypeKind::Base,
    }
}

const fn pseudo(oid: u32, name: &'static str, length: i16, category: u8, array: u32) -> TypeInfo {
    TypeInfo { oid, name, length, category, preferred: false, array, element: 0, kind: TypeKind::Pseudo }
}

/// All types, sorted by OID; a test checks the order.
pub static TYPES: &[TypeInfo] = &[
    base(16, "bool", 1, b'B', true, 1000),
    base(17, "bytea", -1, b'U', false, 1001),
    base(18, "char", 1, b'Z', false, 1002),
    base(19, "name", 64, b'S', false, 1003),
    base(20, "int8", 8, b'N', false, 1016),
    base(21, "int2", 2, b'N', false, 1005),
    TypeInfo {
        oid: 22,
        name: "int2vector",
        length: -1,
        category: b'A',
        preferred: false,
        array: 1006,
        element: 21,
        kind: TypeKind::Base,
    },
    base(23, "int4", 4, b'N', false, 1007),
    base(24, "regproc", 4, b'N', false, 1008),
    base(25, "text", -1, b'S', true, 1009),
    base(26, "oid", 4, b'N', true, 1028),
    base(28, "xid", 4, b'U', false, 1011),
    base(29, "cid", 4, b'U', false, 1012),
    TypeInfo {
        oid: 30,
        name: "oidvector",
        length: -1,
        category: b'A',
        preferred: false,
        array: 1013,
        element: 26,
        kind: TypeKind::Base,
    },
    // json exists only as the result of json_build_object(): no column has the type.
    pseudo(114, "json", -1, b'U', 0),
    base(700, "float4", 4, b'N', false, 1021),
    base(701, "float8", 8, b'N', true, 1022),
    pseudo(705, "unknown", -2, b'X', 0),
    array(1000, "_bool", 16),
    array(1001, "_bytea", 17),
    array(1002, "_char", 18),
    array(1003, "_name", 19),
    array(1005, "_int2", 21),
    array(1006, "_int2vector", 22),
    array(1007, "_int4", 23),
    array(1008, "_regproc", 24),
    array(1009, "_text", 25),
    array(1011, "_xid", 28),
    array(1012, "_cid", 29),
    array(1013, "_oidvector", 30),
    array(1014, "_bpchar", 1042),
    array(1015, "_varchar", 1043),
    array(1016, "_int8", 20),
    array(1021, "_float4", 700),
    array(1022, "_float8", 701),
    array(1028, "_oid", 26),
    base(1042, "bpchar", -1, b'S', false, 1014),
    base(1043, "varchar", -1, b'S', false, 1015),
    base(1082, "date", 4, b'D', false, 1182),
    base(1083, "time", 8, b'D', false, 1183),
    base(1114, "timestamp", 8, b'D', false, 1115),
    array(1115, "_timestamp", 1114),
    array(1182, "_date", 1082),
    array(1183, "_time", 1083),
    base(1184, "timestamptz", 8, b'D', true, 1185),
    array(1185, "_timestamptz", 1184),
    base(1186, "interval", 16, b'T', true, 1187),
    array(1187, "_interval", 1186),
    array(1231, "_numeric", 1700),
    base(1700, "numeric", -1, b'N', false, 1231),
    base(2205, "regclass", 4, b'N', false, 2210),
    base(2206, "regtype", 4, b'N', false, 2211),
    array(2210, "_regclass", 2205),
    array(2211, "_regtype", 2206),
    pseudo(2249, "record", -1, b'P', 0),
    pseudo(2275, "cstring", -2, b'P', 0),
    pseudo(2276, "any", 4, b'P', 0),
    pseudo(2277, "anyarray", -1, b'P', 0),
    pseudo(2278, "void", 4, b'P', 0),
    pseudo(2283, "anyelement", 4, b'P', 0),
    pseudo(2776, "anynonarray", 4, b'P', 0),
    base(2950, "uuid", 16, b'U', false, 2951),
    array(2951, "_uuid", 2950),
    base(4089, "regnamespace", 4, b'N', false, 4090),
    array(4090, "_regnamespace", 4089),
    base(4096, "regrole", 4, b'N', false, 4097),
    array(4097, "_regrole", 4096),
    pseudo(5077, "anycompatible", 4, b'P', 0),
    pseudo(5078, "anycompatiblearray", -1, b'P', 0),
    pseudo(5079, "anycompatiblenonarray", 4, b'P', 0),
];

/// The registry's row of the type with this OID.
pub fn info(oid: u32) -> Option<&'static TypeInfo> {
    TYPES.binary_search_by_key(&oid, |info| info.oid).ok().map(|index| &TYPES[index])
}

/// The type of this name in `pg_type`. The grammar translates SQL's own names ("integer").
pub fn by_name(name: &str) -> Option<&'static TypeInfo> {
    TYPES.iter().find(|info| info.name == name)
}

/// Name in `pg_type`, or "???".
pub fn name(oid: u32) -> &'static str {
    info(oid).map_or("???", |info| info.name)
}

/// `typcategory`; 'X' for an unknown type.
pub fn category(oid: u32) -> u8 {
    info(oid).map_or(b'X', |info| info.category)
}

/// Whether the type is the preferred one of its category.
pub fn is_preferred(oid: u32) -> bool {
    info(oid).is_some_and(|info| info.preferred)
}

/// Whether the type is a true array type, or a vector.
pub fn is_array(oid: u32) -> bool {
    element_of(oid).is_some()
}

/// OID of the element type of an array type.
pub fn element_of(oid: u32) -> Option<u32> {
    info(oid).map(|info| info.element).filter(|&element| element != 0)
}

/// OID of the array type over this element type.
pub fn array_of(oid: u32) -> Option<u32> {
    info(oid).map(|info| info.array).filter(|&array| array != 0 && info_exists(array))
}

fn info_exists(oid: u32) -> bool {
    info(oid).is_some()
}

/// As `format_type`, but a `char` without a length is `bpchar`, not `character`, which means length
/// 1. For names that are parsed again, and types known to have no modifier.
pub fn format_type_exactly(ty: Type) -> String {
    match (element_of(ty.oid).unwrap_or(ty.oid), ty.modifier) {
        (oid::BPCHAR, ..0) => format_type(ty).replace("character", "bpchar"),
        _ => format_type(ty),
    }
}

/// The type's SQL name with its modifier, as PostgreSQL's messages give it.
pub(crate) fn format_type(ty: Type) -> String {
    if let Some(element) = element_of(ty.oid)
        && ty.oid != oid::INT2VECTOR
        && ty.oid != oid::OIDVECTOR
    {
        return format_type(Type::with_modifier(element, ty.modifier)) + "[]";
    }
    let modifier = ty.modifier;
    match ty.oid {
        oid::BOOL => "boolean".into(),
        oid::CHAR => "\"char\"".into(),
        oid::INT2 => "smallint".into(),
        oid::INT4 => "integer".into(),
        oid::INT8 => "bigint".into(),
        oid::FLOAT4 => "real".into(),
        oid::FLOAT8 => "double precision".into(),
        oid::BPCHAR if modifier >= 4 => format!("character({})", modifier - 4),
        // `bpchar` without a length differs from `character`, which means character(1).
        oid::BPCHAR => "character".into(),
        oid::VARCHAR if modifier >= 4 => format!("character varying({})", modifier - 4),
        oid::VARCHAR => "character varying".into(),
        oid::NUMERIC if modifier >= 4 => {
            let (precision, scale) = numeric_modifier(modifier);
            format!("numeric({precision},{scale})")
        }
        oid::TIMESTAMP => format!("timestamp{} without time zone", precision_suffix(modifier)),
        oid::TIMESTAMPTZ => format!("timestamp{} with time zone", precision_suffix(modifier)),
        oid::TIME => format!("time{} without time zone", precision_suffix(modifier)),
        oid::ANY => "\"any\"".into(),
        other => name(other).into(),
    }
}

fn precision_suffix(modifier: i32) -> String {
    if modifier >= 0 { format!("({modifier})") } else { String::new() }
}

/// Precision and scale of a numeric's modifier.
pub fn numeric_modifier(modifier: i32) -> (i32, i32) {
    let packed = modifier - 4;
    // The scale is an 11-bit two's complement number.
    ((packed >> 16) & 0xffff, ((packed & 0x7ff) ^ 1024) - 1024)
}

/// The modifier of `numeric(precision, scale)`.
pub fn numeric_modifier_of(precision: i32, scale: i32) -> i32 {
    ((precision << 16) | (scale & 0x7ff)) + 4
}
