//! PostgreSQL's OIDs of the built-in types, by name.

macro_rules! oids {
    ($($name:ident = $oid:literal;)*) => {
        $(#[doc = concat!("OID of the type, ", stringify!($oid), ".")]
        pub const $name: u32 = $oid;)*
    };
}

oids! {
    BOOL = 16;
    BYTEA = 17;
    CHAR = 18;
    NAME = 19;
    INT8 = 20;
    INT2 = 21;
    INT2VECTOR = 22;
    INT4 = 23;
    REGPROC = 24;
    TEXT = 25;
    OID = 26;
    XID = 28;
    CID = 29;
    OIDVECTOR = 30;
    JSON = 114;
    FLOAT4 = 700;
    FLOAT8 = 701;
    UNKNOWN = 705;
    BPCHAR = 1042;
    VARCHAR = 1043;
    DATE = 1082;
    TIME = 1083;
    TIMESTAMP = 1114;
    TIMESTAMPTZ = 1184;
    INTERVAL = 1186;
    NUMERIC = 1700;
    REGCLASS = 2205;
    REGTYPE = 2206;
    RECORD = 2249;
    CSTRING = 2275;
    ANY = 2276;
    ANYARRAY = 2277;
    VOID = 2278;
    ANYELEMENT = 2283;
    ANYNONARRAY = 2776;
    UUID = 2950;
    REGNAMESPACE = 4089;
    REGROLE = 4096;
    ANYCOMPATIBLE = 5077;
    ANYCOMPATIBLEARRAY = 5078;
    ANYCOMPATIBLENONARRAY = 5079;
    BOOL_ARRAY = 1000;
    BYTEA_ARRAY = 1001;
    CHAR_ARRAY = 1002;
    NAME_ARRAY = 1003;
    INT2_ARRAY = 1005;
    INT4_ARRAY = 1007;
    TEXT_ARRAY = 1009;
    INT8_ARRAY = 1016;
    FLOAT4_ARRAY = 1021;
    FLOAT8_ARRAY = 1022;
    OID_ARRAY = 1028;
    NUMERIC_ARRAY = 1231;
}

/// The types whose values are OIDs of catalog objects and whose text is a name.
pub const REG_TYPES: [u32; 5] = [REGCLASS, REGTYPE, REGPROC, REGNAMESPACE, REGROLE];
