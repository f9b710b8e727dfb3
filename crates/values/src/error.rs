//! The errors a client sees: SQLSTATE, message and the optional fields of PostgreSQL's
//! ErrorResponse.
//!
//! `SqlError` is one pointer wide, so that `Result<Datum, SqlError>` stays as small as the datum.
//! Building an error allocates; errors are never on the hot path. Messages follow PostgreSQL's
//! wording to the letter where PostgreSQL has the same error.

use std::fmt;
use std::ops::{Deref, DerefMut};

/// Five characters that classify an error, from PostgreSQL's appendix A.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub [u8; 5]);

impl SqlState {
    /// The five characters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XX000")
    }

    /// Whether the error stopped the statement or a resource ran out. Such an error says nothing
    /// about the statement itself.
    pub fn is_stop(self) -> bool {
        matches!(&self.0[..2], b"53" | b"57") || self == SqlState::TRANSACTION_TIMEOUT
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

macro_rules! states {
    ($($name:ident = $code:literal;)*) => {
        impl SqlState {
            $(#[doc = concat!("SQLSTATE ", $code, ".")]
            pub const $name: SqlState = SqlState(state_bytes($code));)*
        }
    };
}

const fn state_bytes(code: &str) -> [u8; 5] {
    let b = code.as_bytes();
    assert!(b.len() == 5);
    [b[0], b[1], b[2], b[3], b[4]]
}

states! {
    SUCCESSFUL_COMPLETION = "00000";
    WARNING = "01000";
    NO_DATA = "02000";
    CONNECTION_EXCEPTION = "08000";
    CONNECTION_FAILURE = "08006";
    PROTOCOL_VIOLATION = "08P01";
    FEATURE_NOT_SUPPORTED = "0A000";
    CARDINALITY_VIOLATION = "21000";
    DATA_EXCEPTION = "22000";
    STRING_DATA_RIGHT_TRUNCATION = "22001";
    NUMERIC_VALUE_OUT_OF_RANGE = "22003";
    NULL_VALUE_NOT_ALLOWED = "22004";
    ERROR_IN_ASSIGNMENT = "22005";
    INVALID_DATETIME_FORMAT = "22007";
    DATETIME_FIELD_OVERFLOW = "22008";
    INVALID_TIME_ZONE_DISPLACEMENT_VALUE = "22009";
    INVALID_USE_OF_ESCAPE_CHARACTER = "2200C";
    SUBSTRING_ERROR = "22011";
    DIVISION_BY_ZERO = "22012";
    INVALID_PRECEDING_OR_FOLLOWING_SIZE = "22013";
    INVALID_ARGUMENT_FOR_NTILE = "22014";
    INTERVAL_FIELD_OVERFLOW = "22015";
    INVALID_ARGUMENT_FOR_NTH_VALUE = "22016";
    INVALID_ESCAPE_CHARACTER = "22019";
    INVALID_ARGUMENT_FOR_LOGARITHM = "2201E";
    INVALID_ARGUMENT_FOR_POWER_FUNCTION = "2201F";
    INVALID_ARGUMENT_FOR_WIDTH_BUCKET_FUNCTION = "2201G";
    INVALID_ROW_COUNT_IN_LIMIT_CLAUSE = "2201W";
    INVALID_ROW_COUNT_IN_RESULT_OFFSET_CLAUSE = "2201X";
    CHARACTER_NOT_IN_REPERTOIRE = "22021";
    INVALID_PARAMETER_VALUE = "22023";
    INVALID_ESCAPE_SEQUENCE = "22025";
    ARRAY_SUBSCRIPT_ERROR = "2202E";
    INVALID_TEXT_REPRESENTATION = "22P02";
    INVALID_BINARY_REPRESENTATION = "22P03";
    BAD_COPY_FILE_FORMAT = "22P04";
    UNTRANSLATABLE_CHARACTER = "22P05";
    NONSTANDARD_USE_OF_ESCAPE_CHARACTER = "22P06";
    INVALID_REGULAR_EXPRESSION = "2201B";
    SEQUENCE_GENERATOR_LIMIT_EXCEEDED = "2200H";
    INTEGRITY_CONSTRAINT_VIOLATION = "23000";
    RESTRICT_VIOLATION = "23001";
    NOT_NULL_VIOLATION = "23502";
    FOREIGN_KEY_VIOLATION = "23503";
    UNIQUE_VIOLATION = "23505";
    CHECK_VIOLATION = "23514";
    EXCLUSION_VIOLATION = "23P01";
    INVALID_CURSOR_STATE = "24000";
    INVALID_TRANSACTION_STATE = "25000";
    ACTIVE_SQL_TRANSACTION = "25001";
    READ_ONLY_SQL_TRANSACTION = "25006";
    NO_ACTIVE_SQL_TRANSACTION = "25P01";
    IN_FAILED_SQL_TRANSACTION = "25P02";
    IDLE_IN_TRANSACTION_SESSION_TIMEOUT = "25P03";
    TRANSACTION_TIMEOUT = "25P04";
    INVALID_SQL_STATEMENT_NAME = "26000";
    INVALID_AUTHORIZATION_SPECIFICATION = "28000";
    INVALID_PASSWORD = "28P01";
    DEPENDENT_OBJECTS_STILL_EXIST = "2BP01";
    INVALID_TRANSACTION_TERMINATION = "2D000";
    INVALID_CURSOR_NAME = "34000";
    INVALID_CATALOG_NAME = "3D000";
    INVALID_SCHEMA_NAME = "3F000";
    INVALID_SAVEPOINT_SPECIFICATION = "3B001";
    SERIALIZATION_FAILURE = "40001";
    TRANSACTION_RESOLUTION_UNKNOWN = "08007";
    STATEMENT_COMPLETION_UNKNOWN = "40003";
    DEADLOCK_DETECTED = "40P01";
    SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION = "42000";
    INSUFFICIENT_PRIVILEGE = "42501";
    SYNTAX_ERROR = "42601";
    INVALID_NAME = "42602";
    INVALID_COLUMN_DEFINITION = "42611";
    NAME_TOO_LONG = "42622";
    DUPLICATE_COLUMN = "42701";
    AMBIGUOUS_COLUMN = "42702";
    UNDEFINED_COLUMN = "42703";
    UNDEFINED_OBJECT = "42704";
    DUPLICATE_OBJECT = "42710";
    DUPLICATE_ALIAS = "42712";
    DUPLICATE_FUNCTION = "42723";
    AMBIGUOUS_FUNCTION = "42725";
    GROUPING_ERROR = "42803";
    DATATYPE_MISMATCH = "42804";
    WRONG_OBJECT_TYPE = "42809";
    INVALID_FOREIGN_KEY = "42830";
    CANNOT_COERCE = "42846";
    UNDEFINED_FUNCTION = "42883";
    GENERATED_ALWAYS = "428C9";
    RESERVED_NAME = "42939";
    UNDEFINED_TABLE = "42P01";
    UNDEFINED_PARAMETER = "42P02";
    DUPLICATE_CURSOR = "42P03";
    DUPLICATE_DATABASE = "42P04";
    DUPLICATE_PREPARED_STATEMENT = "42P05";
    DUPLICATE_SCHEMA = "42P06";
    DUPLICATE_TABLE = "42P07";
    AMBIGUOUS_PARAMETER = "42P08";
    AMBIGUOUS_ALIAS = "42P09";
    INVALID_COLUMN_REFERENCE = "42P10";
    INVALID_CURSOR_DEFINITION = "42P11";
    INVALID_FUNCTION_DEFINITION = "42P13";
    INVALID_PREPARED_STATEMENT_DEFINITION = "42P14";
    INVALID_TABLE_DEFINITION = "42P16";
    INVALID_OBJECT_DEFINITION = "42P17";
    INDETERMINATE_DATATYPE = "42P18";
    INVALID_RECURSION = "42P19";
    WINDOWING_ERROR = "42P20";
    COLLATION_MISMATCH = "42P21";
    INDETERMINATE_COLLATION = "42P22";
    WITH_CHECK_OPTION_VIOLATION = "44000";
    INSUFFICIENT_RESOURCES = "53000";
    DISK_FULL = "53100";
    OUT_OF_MEMORY = "53200";
    TOO_MANY_CONNECTIONS = "53300";
    CONFIGURATION_LIMIT_EXCEEDED = "53400";
    PROGRAM_LIMIT_EXCEEDED = "54000";
    STATEMENT_TOO_COMPLEX = "54001";
    TOO_MANY_COLUMNS = "54011";
    TOO_MANY_ARGUMENTS = "54023";
    OBJECT_NOT_IN_PREREQUISITE_STATE = "55000";
    OBJECT_IN_USE = "55006";
    CANT_CHANGE_RUNTIME_PARAM = "55P02";
    LOCK_NOT_AVAILABLE = "55P03";
    QUERY_CANCELED = "57014";
    ADMIN_SHUTDOWN = "57P01";
    CRASH_SHUTDOWN = "57P02";
    CANNOT_CONNECT_NOW = "57P03";
    DATABASE_DROPPED = "57P04";
    IDLE_SESSION_TIMEOUT = "57P05";
    SYSTEM_ERROR = "58000";
    IO_ERROR = "58030";
    UNDEFINED_FILE = "58P01";
    DUPLICATE_FILE = "58P02";
    CONFIG_FILE_ERROR = "F0000";
    RAISE_EXCEPTION = "P0001";
    INTERNAL_ERROR = "XX000";
    DATA_CORRUPTED = "XX001";
    INDEX_CORRUPTED = "XX002";
}

/// The fields of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorFields {
    /// SQLSTATE.
    pub code: SqlState,
    /// Primary message.
    pub message: String,
    /// Secondary message.
    pub detail: Option<String>,
    /// Advice on what to do next.
    pub hint: Option<String>,
    /// Position in the statement's text, in characters from 1.
    pub position: Option<u32>,
    /// The place of the error: line and column of a COPY.
    pub context: Option<String>,
    /// Schema of the object concerned.
    pub schema: Option<String>,
    /// Table concerned.
    pub table: Option<String>,
    /// Column concerned.
    pub column: Option<String>,
    /// Type concerned.
    pub data_type: Option<String>,
    /// Constraint concerned.
    pub constraint: Option<String>,
    /// The PostgreSQL routine that reports the error. Some drivers recognise an error by its
    /// routine.
    pub routine: Option<&'static str>,
}

/// An error for the client.
#[derive(Clone, PartialEq, Eq)]
pub struct SqlError(Box<ErrorFields>);

/// The most bytes of a message. A quoted value of a gigabyte would otherwise be copied, logged and
/// sent at once.
const MESSAGE_LONGEST: usize = 64 << 10;

/// Cuts a part of a message at the limit and marks the cut with an ellipsis.
fn cut(mut text: String) -> String {
    if text.len() > MESSAGE_LONGEST {
        text.truncate(for_message(&text).len());
        text.shrink_to_fit();
        text.push_str("...");
    }
    text
}

/// The start of a text that a message can show. Texts longer than a message are not copied whole.
pub fn for_message(text: &str) -> &str {
    if text.len() <= MESSAGE_LONGEST {
        return text;
    }
    // A character has at most 4 bytes.
    let end = (0..=MESSAGE_LONGEST).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    &text[..end]
}

impl SqlError {
    /// An error with its code and message.
    #[cold]
    pub fn new(code: SqlState, message: impl Into<String>) -> SqlError {
        SqlError(Box::new(ErrorFields {
            code,
            message: cut(message.into()),
            detail: None,
            hint: None,
            position: None,
            context: None,
            schema: None,
            table: None,
            column: None,
            data_type: None,
            constraint: None,
            routine: None,
        }))
    }

    /// 0A000: the statement needs something that is not implemented.
    #[cold]
    pub fn unsupported(what: impl fmt::Display) -> SqlError {
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported"))
    }

    /// XX000: a bug in this program, reported instead of a panic.
    #[cold]
    pub fn internal(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::INTERNAL_ERROR, message)
    }

    /// Adds the detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> SqlError {
        self.0.detail = Some(cut(detail.into()));
        self
    }

    /// Adds the hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> SqlError {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the place of the error.
    #[must_use]
    pub fn with_context(mut self, context: impl Into<String>) -> SqlError {
        self.0.context = Some(cut(context.into()));
        self
    }

    /// Sets the position (1-based, characters) unless one is set already.
    #[must_use]
    pub fn at(mut self, position: Option<u32>) -> SqlError {
        self.0.position = self.0.position.or(position);
        self
    }

    /// Names the table concerned.
    #[must_use]
    pub fn with_table(mut self, schema: &str, table: &str) -> SqlError {
        self.0.schema = Some(schema.to_owned());
        self.0.table = Some(table.to_owned());
        self
    }

    /// Names the column concerned.
    #[must_use]
    pub fn with_column(mut self, column: &str) -> SqlError {
        self.0.column = Some(column.to_owned());
        self
    }

    /// Names PostgreSQL's routine.
    #[must_use]
    pub fn with_routine(mut self, routine: &'static str) -> SqlError {
        self.0.routine = Some(routine);
        self
    }

    /// Names the constraint concerned.
    #[must_use]
    pub fn with_constraint(mut self, constraint: &str) -> SqlError {
        self.0.constraint = Some(constraint.to_owned());
        self
    }
}

impl Deref for SqlError {
    type Target = ErrorFields;
    fn deref(&self) -> &ErrorFields {
        &self.0
    }
}

impl DerefMut for SqlError {
    fn deref_mut(&mut self) -> &mut ErrorFields {
        &mut self.0
    }
}

impl fmt::Debug for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SqlError {}
