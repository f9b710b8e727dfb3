//! The functions of expressions: their names, how many arguments they take, and those that are more than a line to compute.

use crate::client::random::{FNV_BASIS, fnv1a};

/// What an expression calls; operators are functions too.
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
    Debug,
    Double,
    Exp,
    Greatest,
    HashFnv1a,
    HashMurmur2,
    Int,
    Least,
    Ln,
    Permute,
    Pi,
    Pow,
    Random,
    RandomExponential,
    RandomGaussian,
    RandomZipfian,
    Sqrt,
}

/// A function that a script names.
pub(super) struct Named {
    pub name: &'static str,
    pub function: Function,
    /// Fewest and most arguments.
    pub arguments: (usize, usize),
    /// Whether `:default_seed` stands in for a missing last one.
    pub seeded: bool,
}

/// Most arguments of a call.
pub(super) const ARGUMENTS_MAX: usize = 16;

const fn named(name: &'static str, function: Function, arguments: usize) -> Named {
    Named { name, function, arguments: (arguments, arguments), seeded: false }
}

const fn seeded(name: &'static str, function: Function, arguments: usize) -> Named {
    Named { name, function, arguments: (arguments, arguments + 1), seeded: true }
}

const fn any(name: &'static str, function: Function) -> Named {
    Named { name, function, arguments: (1, usize::MAX), seeded: false }
}

/// All of them.
static FUNCTIONS: [Named; 21] = [
    named("mod", Function::Modulo, 2),
    named("abs", Function::Abs, 1),
    named("debug", Function::Debug, 1),
    named("double", Function::Double, 1),
    named("exp", Function::Exp, 1),
    any("greatest", Function::Greatest),
    seeded("hash", Function::HashMurmur2, 1),
    seeded("hash_fnv1a", Function::HashFnv1a, 1),
    seeded("hash_murmur2", Function::HashMurmur2, 1),
    named("int", Function::Int, 1),
    any("least", Function::Least),
    named("ln", Function::Ln, 1),
    seeded("permute", Function::Permute, 2),
    named("pi", Function::Pi, 0),
    named("pow", Function::Pow, 2),
    named("power", Function::Pow, 2),
    named("random", Function::Random, 2),
    named("random_exponential", Function::RandomExponential, 3),
    named("random_gaussian", Function::RandomGaussian, 3),
    named("random_zipfian", Function::RandomZipfian, 3),
    named("sqrt", Function::Sqrt, 1),
];

/// The function of this name, in any case.
pub(super) fn find(name: &str) -> Option<&'static Named> {
    FUNCTIONS.iter().find(|function| function.name.eq_ignore_ascii_case(name))
}

/// 64-bit FNV-1a over the number's bytes, lowest first, begun with the seed.
pub(super) fn hash_fnv1a(value: i64, seed: i64) -> i64 {
    fnv1a(FNV_BASIS ^ seed as u64, &value.to_le_bytes()) as i64
}

/// MurmurHash2 (its 64-bit form) of the number's 8 bytes.
pub(super) fn hash_murmur2(value: i64, seed: i64) -> i64 {
    const MULTIPLIER: u64 = 0xc6a4_a793_5bd1_e995;
    let mixed = |value: u64| value ^ (value >> 47);
    let key = mixed((value as u64).wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    let hash = (seed as u64 ^ MULTIPLIER.wrapping_mul(8) ^ key).wrapping_mul(MULTIPLIER);
    mixed(mixed(hash).wrapping_mul(MULTIPLIER)) as i64
}

/// Where `value` (modulo `size`) goes in the permutation of 0 to `size - 1` that the seed picks: six rounds, each a
/// bijection of the lower and of the upper power of two's worth of values (multiply by an odd number, exclusive or,
/// rotate by one) and a shift of all.
pub(super) fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let size = size as u64;
    let bits = 63 - size.leading_zeros();
    let mask = (1u64 << bits) - 1;
    let mut random = Xoroshiro::new(seed as u64);
    let scramble = |value: u64, random: &mut Xoroshiro, inside: bool| {
        let factor = (random.next() & mask) | 1;
        let change = random.next() & mask;
        if !inside {
            return value;
        }
        let mixed = (value.wrapping_mul(factor) ^ change) & mask;
        ((mixed << 1) & mask) | (mixed >> (bits - 1))
    };
    let mut place = value as u64 % size;
    for _ in 0..6 {
        place = scramble(place, &mut random, place <= mask);
        let from_top = size - 1 - place;
        place = size - 1 - scramble(from_top, &mut random, from_top <= mask);
        place = (place + random.upto(size - 1)) % size;
    }
    place as i64
}

/// xoroshiro128** seeded by splitmix64, PostgreSQL's own generator: `permute` is defined by it.
struct Xoroshiro(u64, u64);

impl Xoroshiro {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut split = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ (mixed >> 31)
        };
        // Both zero, its one bad state, comes from no seed.
        Self(split(), split())
    }

    fn next(&mut self) -> u64 {
        let Self(first, second) = *self;
        let mixed = second ^ first;
        *self = Self(first.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37));
        first.wrapping_mul(5).rotate_left(7).wrapping_mul(9)
    }

    /// From 0 to `most`, which is at least 1: the highest bits that can hold it, until they do.
    fn upto(&mut self, most: u64) -> u64 {
        loop {
            let value = self.next() >> most.leading_zeros();
            if value <= most {
                return value;
            }
        }
    }
}
