//! Hands the fuzzer's bytes to the reader `readers::node`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| readers::node(input));
