//! Row `semaphore` (B14): the semaphores of System V and of POSIX.
//!
//! [`SystemV`] is the stock state.
//!
//! 1. A wait and a post are a call of `semop` each.
//! 2. The kernel finds the set, takes its lock or the semaphore's, changes the count and wakes the
//!    first waiter in the order of arrival. FreeBSD 10 takes the mutex of the whole set each time.
//!
//! PostgreSQL keeps 16 semaphores in a set (`SEMAS_PER_SET`), and so do these.
//!
//! The kernel keeps a set when its process dies. A process that a signal ends leaves its sets
//! behind, and the next [`SystemV`] of the same user removes them. As in PostgreSQL, a further
//! semaphore marks a set: its count is [`MARK`], and the kernel has the process that set it.
//!
//! [`Posix`] is the published one, `sem_wait` and `sem_post` of the C library.
//!
//! 1. A wait takes 1 off the count by an atomic change if it is above 0, and sleeps on a futex
//!    otherwise.
//! 2. A post adds 1 and calls the kernel only if the word has waiters.
//!
//! What must hold: as `variants::semaphore` has it.
//!
//! Cost: 2 system calls for each pair of [`SystemV`], contended or not. Each call costs 1 line
//! transfer in the kernel, the semaphore's, and 1 more where the kernel takes the set's lock.
//! [`Posix`] costs 1 line transfer a call, and 2 system calls for each pair only if one thread
//! sleeps.

use std::cell::UnsafeCell;

use sync::CachePadded;
use variants::caller::Caller;
use variants::semaphore::Semaphores;

use crate::checked;

/// Semaphores of a set, as PostgreSQL makes them.
const SET: usize = 16;
/// The count of the semaphore that marks a set. PostgreSQL's mark is 537.
const MARK: libc::c_int = 23_117;
/// The kernel's sets: a line of headings, and a line a set.
const SETS: &str = "/proc/sysvipc/sem";

/// Sets of System V semaphores, removed when dropped.
#[derive(Debug)]
pub struct SystemV {
    sets: Vec<libc::c_int>,
}

impl SystemV {
    /// This number of semaphores, each with this count. Removes sets of dead processes first.
    ///
    /// # Errors
    /// A line: the kernel has no sets left. `kernel.sem` bounds them.
    pub fn new(semaphores: usize, count: u16) -> Result<Self, String> {
        remove_orphans();
        let mut made = Self { sets: Vec::new() };
        for _ in 0..semaphores.div_ceil(SET) {
            // SAFETY: takes no pointer.
            let set = unsafe { libc::semget(libc::IPC_PRIVATE, SET as libc::c_int + 1, 0o600) };
            if set < 0 {
                let error = std::io::Error::last_os_error();
                return Err(format!("no set of System V semaphores: {error}: see kernel.sem and ipcs -s"));
            }
            // A failure from here on removes it.
            made.sets.push(set);
            // The mark comes first: a process that dies after it leaves a set that is known.
            for one in (0..=SET).rev() {
                let count = if one == SET { MARK } else { count.into() };
                // SAFETY: SETVAL takes the value itself as fourth argument.
                let result = unsafe { libc::semctl(set, one as libc::c_int, libc::SETVAL, count) };
                checked("semctl SETVAL", result.into());
            }
        }
        Ok(made)
    }

    fn operate(&self, which: usize, change: i16) {
        let mut operation = libc::sembuf { sem_num: (which % SET) as u16, sem_op: change, sem_flg: 0 };
        loop {
            // SAFETY: the pointer is to one operation, and 1 is its number.
            let result = unsafe { libc::semop(self.sets[which / SET], &raw mut operation, 1) };
            if result == 0 {
                return;
            }
            let error = std::io::Error::last_os_error();
            assert_eq!(error.kind(), std::io::ErrorKind::Interrupted, "semop: {error}");
        }
    }
}

impl Semaphores for SystemV {
    #[inline]
    fn wait(&self, _: &mut Caller, which: usize) {
        self.operate(which, -1);
    }

    #[inline]
    fn post(&self, which: usize) {
        self.operate(which, 1);
    }
}

impl Drop for SystemV {
    fn drop(&mut self) {
        self.sets.iter().copied().for_each(remove);
    }
}

/// Removes a set. It may be gone already: any process of the user can remove it.
fn remove(set: libc::c_int) {
    // SAFETY: IPC_RMID takes no fourth argument, and no memory depends on a set.
    let _ = unsafe { libc::semctl(set, 0, libc::IPC_RMID) };
}

/// Removes the sets that dead processes of this user have left.
fn remove_orphans() {
    // A system without the list keeps the sets; `ipcs -s` and `ipcrm -s` are its user's means.
    let sets = std::fs::read_to_string(SETS).unwrap_or_default();
    // SAFETY: a plain system call, which cannot fail.
    let user = unsafe { libc::geteuid() };
    sets.lines().filter_map(|line| set(line, user)).filter(|set| is_orphan(*set)).for_each(remove);
}

/// The set of a line of [`SETS`] if the user has made it and it may be one of these. The columns
/// are key, number, mode, semaphores, owner, its group, maker, its group and two times.
fn set(line: &str, user: libc::uid_t) -> Option<libc::c_int> {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, set, _, semaphores, _, _, maker, ..] = columns[..] else { return None };
    let fits = semaphores.parse() == Ok(SET + 1) && maker.parse() == Ok(user);
    set.parse().ok().filter(|_| fits)
}

/// Whether a set has the mark of a process that is dead. A process with the same number, born
/// later, keeps the set.
fn is_orphan(set: libc::c_int) -> bool {
    let mark = SET as libc::c_int;
    // SAFETY: GETVAL and GETPID take no fourth argument.
    let (count, maker) =
        unsafe { (libc::semctl(set, mark, libc::GETVAL), libc::semctl(set, mark, libc::GETPID)) };
    // The number of a process in another container is 0.
    // SAFETY: signal 0 is none: the call tells whether the process is there.
    count == MARK && maker > 0 && unsafe { libc::kill(maker, 0) } != 0 && {
        std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
    }
}

/// POSIX semaphores, each on a line of its own.
#[derive(Debug)]
pub struct Posix(Box<[CachePadded<One>]>);

struct One(UnsafeCell<libc::sem_t>);

// SAFETY: a `sem_t` is for many threads at once, through a shared pointer.
unsafe impl Sync for One {}
// SAFETY: it names no thread. It must not move while in use; the box keeps it where it is.
unsafe impl Send for One {}

impl std::fmt::Debug for One {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("sem_t").finish_non_exhaustive()
    }
}

impl Posix {
    /// This number of semaphores, each with this count.
    pub fn new(semaphores: usize, count: u16) -> Self {
        // SAFETY: a `sem_t` is bytes; zeroes are valid until `sem_init` sets it up below.
        let zero = |_| CachePadded::new(One(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        let made = Self((0..semaphores).map(zero).collect());
        for one in &made.0 {
            // Shared between processes, as PostgreSQL's are.
            // SAFETY: the semaphore lies in the box, where it stays, and nobody else has it yet.
            let result = unsafe { libc::sem_init(one.0.get(), 1, count.into()) };
            checked("sem_init", result.into());
        }
        made
    }
}

impl Semaphores for Posix {
    #[inline]
    fn wait(&self, _: &mut Caller, which: usize) {
        // SAFETY: `new` has set it up, and it stays until the drop.
        while unsafe { libc::sem_wait(self.0[which].0.get()) } != 0 {
            let error = std::io::Error::last_os_error();
            assert_eq!(error.kind(), std::io::ErrorKind::Interrupted, "sem_wait: {error}");
        }
    }

    #[inline]
    fn post(&self, which: usize) {
        // SAFETY: as above.
        let result = unsafe { libc::sem_post(self.0[which].0.get()) };
        checked("sem_post", result.into());
    }
}

impl Drop for Posix {
    fn drop(&mut self) {
        for one in &self.0 {
            // SAFETY: the only reference is this one, so nobody waits on it.
            let _ = unsafe { libc::sem_destroy(one.0.get()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::test_threads::{at_once, on, rounds, threads};

    fn excludes(semaphores: &impl Semaphores) {
        let sums = [AtomicU64::new(0), AtomicU64::new(0)];
        at_once(|me| {
            let which = me.number() % 2;
            for _ in 0..rounds() {
                semaphores.wait(me, which * SET);
                // Relaxed: ordered by the semaphore.
                sums[which].store(sums[which].load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                semaphores.post(which * SET);
            }
        });
        assert_eq!(sums.map(AtomicU64::into_inner), [threads() as u64 / 2 * rounds(); 2]);
    }

    #[test]
    fn each_semaphore_of_one_excludes_more_threads_than_cores() {
        excludes(&SystemV::new(SET + 1, 1).unwrap());
        excludes(&Posix::new(SET + 1, 1));
    }

    /// Threads share semaphores in a random order. Each wait ends, because as many posts come.
    fn all_waits_end(semaphores: &impl Semaphores, count: u16, order: &[usize], pairs: usize) {
        // Half of the threads post, the others wait, all in the same order.
        on(2 * pairs, |me| {
            for &which in order {
                if me.number().is_multiple_of(2) {
                    semaphores.post(which);
                } else {
                    semaphores.wait(me, which);
                }
            }
        });
        // As many waits end at once as the semaphore had at first, and after a post one more.
        let me = &mut Caller::new(0);
        for which in 0..3 {
            semaphores.post(which);
            (0..=count).for_each(|_| semaphores.wait(me, which));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn as_many_waits_as_posts_end(
            count in 0u16..3, order in prop::collection::vec(0usize..3, 0..100), pairs in 1usize..4,
        ) {
            all_waits_end(&SystemV::new(3, count).unwrap(), count, &order, pairs);
            all_waits_end(&Posix::new(3, count), count, &order, pairs);
        }
    }

    #[test]
    fn a_semaphore_counts_posts_before_waits() {
        let semaphores: [&dyn Semaphores; 2] = [&SystemV::new(2, 0).unwrap(), &Posix::new(2, 0)];
        for semaphores in semaphores {
            (0..3).for_each(|_| semaphores.post(1));
            (0..3).for_each(|_| semaphores.wait(&mut Caller::new(0), 1));
        }
    }

    fn is_there(set: libc::c_int) -> bool {
        // SAFETY: GETVAL takes no pointer.
        unsafe { libc::semctl(set, 0, libc::GETVAL) >= 0 }
    }

    #[test]
    fn a_dropped_set_is_removed() {
        let made = SystemV::new(1, 1).unwrap();
        let set = made.sets[0];
        drop(made);
        assert!(!is_there(set));
    }

    /// The role of the child below.
    const CHILD: &str = "ALLCORE_TEST_LEAVES_A_SET";

    fn is_child() -> bool {
        std::env::var_os(CHILD).is_some()
    }

    /// Ends the child by a signal; it leaves these two sets.
    fn leave(sets: [libc::c_int; 2]) -> ! {
        println!("sets {} {} ", sets[0], sets[1]);
        // SAFETY: a plain system call on this process.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        unreachable!("the signal ends the process")
    }

    /// The sets that a child leaves, which runs this test of the module.
    fn left_by_child(test: &str) -> Vec<libc::c_int> {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "--nocapture", &format!("semaphore::tests::{test}")]).env(CHILD, "1");
        let output = child.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let (_, named) = said.split_once("sets ").unwrap();
        named.split(' ').take(2).map(|number| number.parse().unwrap()).collect()
    }

    #[test]
    fn the_sets_of_a_killed_process_are_removed_by_the_next() {
        let made = SystemV::new(SET + 1, 1).unwrap();
        if is_child() {
            leave([made.sets[0], made.sets[1]]);
        }
        let left = left_by_child("the_sets_of_a_killed_process_are_removed_by_the_next");
        drop(SystemV::new(1, 1).unwrap());
        assert!(!left.iter().copied().any(is_there), "{left:?}");
        assert!(made.sets.iter().copied().all(is_there), "the sets of a living process");
    }

    #[test]
    fn a_set_of_another_user_or_of_another_size_is_left_alone() {
        let of = |line| set(line, 1000);
        assert_eq!(
            of("         0         98305   600         17  1000  1000  1000  1000          0  1"),
            Some(98305)
        );
        assert_eq!(
            of("         0         98305   600         17  1000  1000  1001  1000          0  1"),
            None
        );
        assert_eq!(
            of("         0         98305   600         16  1000  1000  1000  1000          0  1"),
            None
        );
        assert_eq!(
            of("       key      semid perms      nsems   uid   gid  cuid  cgid      otime      ctime"),
            None
        );
    }

    #[test]
    fn a_set_without_the_mark_is_left_alone() {
        if is_child() {
            // The kernel has this process as the one that set the count. Only the count differs.
            leave([MARK - 1, MARK + 1].map(|count| {
                let mark = SET as libc::c_int;
                // SAFETY: takes no pointer.
                let set = unsafe { libc::semget(libc::IPC_PRIVATE, mark + 1, 0o600) };
                // SAFETY: SETVAL takes the value itself as fourth argument.
                let result = unsafe { libc::semctl(set, mark, libc::SETVAL, count) };
                checked("semctl SETVAL", result.into());
                set
            }));
        }
        let left = left_by_child("a_set_without_the_mark_is_left_alone");
        drop(SystemV::new(1, 1).unwrap());
        let stay = left.iter().copied().all(is_there);
        left.into_iter().for_each(remove);
        assert!(stay);
    }
}
