//! Hands the fuzzer's bytes to the reader `readers::undo`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| readers::undo(input));
