//! The functions of expressions: their names, and how many arguments they take.

/// A function of an expression; operators are functions too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Modulo,
    Equal,
    NotEqual,
    LessOrEqual,
    Less,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    Not,
    Is,
    Abs,
    Double,
    Exp,
    Greatest,
    Int,
    Least,
    Ln,
    Pi,
    Pow,
    Random,
    RandomZipfian,
    Sqrt,
}

pub(super) const ARGUMENTS_MAX: usize = 16;

/// A function that a script names, and its fewest and most arguments.
pub(super) type Named = (&'static str, Function, usize, usize);

const FUNCTIONS: [Named; 14] = [
    ("mod", Function::Modulo, 2, 2),
    ("abs", Function::Abs, 1, 1),
    ("double", Function::Double, 1, 1),
    ("exp", Function::Exp, 1, 1),
    ("greatest", Function::Greatest, 1, usize::MAX),
    ("int", Function::Int, 1, 1),
    ("least", Function::Least, 1, usize::MAX),
    ("ln", Function::Ln, 1, 1),
    ("pi", Function::Pi, 0, 0),
    ("pow", Function::Pow, 2, 2),
    ("power", Function::Pow, 2, 2),
    ("random", Function::Random, 2, 2),
    ("random_zipfian", Function::RandomZipfian, 3, 3),
    ("sqrt", Function::Sqrt, 1, 1),
];

/// The function of this name, in upper or lower case.
pub(super) fn find(name: &str) -> Option<Named> {
    FUNCTIONS.into_iter().find(|(known, ..)| known.eq_ignore_ascii_case(name))
}
