//! Row `client-random` (H11): the random numbers of a load driver's threads.
//!
//! [`Process`] is the stock state: the C library's `random()`. [`Thread48`] is the published one:
//! `erand48()` over 48 bits that the thread keeps.
//!
//! 1. `random()` takes the library's lock, steps a generator of 31 words and gives the lock back.
//! 2. `erand48()` steps a linear congruence over the caller's 48 bits, without a lock.
//!
//! What must hold: each draw is uniform from 0 to 1. Threads of [`Thread48`] have seeds of their
//! own, so that they do not draw the same numbers.
//!
//! Cost in line transfers: `random()` 3, the lock and the generator's words; with n threads they
//! queue for the lock. `erand48()` none.

/// The random numbers of one thread.
pub trait Draws {
    /// A number from 0 to 1, 1 excluded.
    fn unit(&mut self) -> f64;
}

/// The generator that all threads of the process share.
#[derive(Debug)]
pub struct Process;

impl Draws for Process {
    #[inline]
    fn unit(&mut self) -> f64 {
        // SAFETY: takes no pointer, and the library locks its generator.
        let drawn = unsafe { random() };
        drawn as f64 / f64::from(1u32 << 31)
    }
}

/// A generator of 48 bits for one thread.
#[derive(Debug)]
pub struct Thread48([libc::c_ushort; 3]);

impl Thread48 {
    /// The generator of a thread.
    pub fn new(thread: usize) -> Self {
        // As `srand48` begins, with the thread's number for a seed.
        Self([0x330e, thread as u16, (thread >> 16) as u16])
    }
}

impl Draws for Thread48 {
    #[inline]
    fn unit(&mut self) -> f64 {
        // SAFETY: the pointer is to 3 words that this thread alone has.
        unsafe { erand48(self.0.as_mut_ptr()) }
    }
}

// The library's functions that the crate `libc` lacks on Linux.
unsafe extern "C" {
    fn random() -> libc::c_long;
    fn erand48(state: *mut libc::c_ushort) -> libc::c_double;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_threads::at_once;

    fn draws(generator: &mut impl Draws) -> Vec<f64> {
        (0..1000).map(|_| generator.unit()).collect()
    }

    #[test]
    fn draws_of_more_threads_than_cores_are_uniform_and_differ() {
        for drawn in [at_once(|_| draws(&mut Process)), at_once(|me| draws(&mut Thread48::new(me.number())))]
        {
            let all: Vec<f64> = drawn.iter().flatten().copied().collect();
            assert!(all.iter().all(|unit| (0.0..1.0).contains(unit)));
            // 16,000 draws: 6 standard deviations of their mean are 0.014.
            let mean = all.iter().sum::<f64>() / all.len() as f64;
            assert!((mean - 0.5).abs() < 0.014, "{mean}");
            assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]), "threads draw apart");
        }
    }

    /// The first draws of `srand48(0)`, by the definition of the congruence.
    #[test]
    fn the_published_generator_is_drand48() {
        let mut state = 0x330eu64;
        let mut generator = Thread48::new(0);
        for _ in 0..100 {
            state = (state.wrapping_mul(0x5_deec_e66d) + 0xb) & ((1 << 48) - 1);
            assert_eq!(generator.unit(), state as f64 / (1u64 << 48) as f64);
        }
    }
}
