//! Randomness: a fast generator per thread, and the operating system's.

use std::cell::Cell;
use std::io;

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// A fast random number, not for secrets: splitmix64, seeded per thread from the operating system.
pub fn u64() -> u64 {
    STATE.with(|state| {
        let mut at = state.get();
        if at == 0 {
            let mut seed = [0; 8];
            fill(&mut seed).expect("the operating system gives randomness");
            at = u64::from_le_bytes(seed) | 1;
        }
        at = at.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(at);
        let mut mixed = at;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    })
}

/// Fills with the operating system's randomness: for secrets.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: `rest` is writable for its length.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        if got < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
            continue;
        }
        filled += got as usize;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_and_bytes_are_filled() {
        assert_ne!(u64(), u64());
        let mut bytes = [0; 64];
        fill(&mut bytes).unwrap();
        assert_ne!(bytes, [0; 64]);
    }
}
