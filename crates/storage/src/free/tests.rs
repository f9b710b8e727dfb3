//! Tests of the free frames.

use runtime::topology::{Topology, Workers};

use super::*;

/// The workers of a machine, and the node of each.
fn workers(machine: &Topology) -> (Workers, Vec<usize>) {
    let pinned = machine.processors();
    let workers = Workers::new(machine, pinned, pinned.len(), pinned.len() + 2);
    let nodes = (0..pinned.len() + 2).map(|worker| workers.node_of(worker)).collect();
    (workers, nodes)
}

#[test]
fn searches_reach_every_list_and_each_looks_at_few() {
    for (sockets, of_socket, cores) in [(1, 1, 1), (1, 1, 16), (1, 2, 24), (1, 4, 10), (2, 3, 32)] {
        let (workers, nodes) = workers(&Topology::synthetic_sockets(sockets, of_socket, cores, 2));
        let headers: Vec<Frame> = (0..nodes.len()).map(|_| Frame::new()).collect();
        let free = FreeFrames::new(headers.len(), &nodes, |from, to| workers.distance(from, to));
        let lists = nodes.len();
        let mut longest = 1;
        for (core, other) in [(0, lists - 1), (lists - 1, 0), (lists / 2, 1), (1, lists / 2)] {
            if core == other {
                continue;
            }
            free.put(&headers, other, 7 % lists as u32);
            let mut searches = 1;
            while free.steal(&headers, core).is_none() {
                searches += 1;
            }
            let distance = |to: usize| workers.distance(nodes[core], nodes[to]);
            let alike = (0..lists).filter(|&one| one != core && distance(one) == distance(other));
            let most = alike.count().div_ceil(if nodes[core] == nodes[other] { NEAR } else { FAR });
            assert!(searches <= most, "{searches} searches, at most {most} are due: {core} to {other}");
            longest = longest.max(searches);
        }
        // One search that looked at every list would find each frame.
        assert!(longest > 1 || lists <= NEAR + FAR + 1, "{lists} lists, one search each");
    }
}

#[test]
fn a_search_takes_from_nearer_nodes_first() {
    let (workers, nodes) = workers(&Topology::synthetic_sockets(2, 2, 1, 1));
    assert_eq!(nodes[..4], [0, 1, 2, 3]);
    let headers: Vec<Frame> = (0..100).map(|_| Frame::new()).collect();
    let free = FreeFrames::new(headers.len(), &nodes, |from, to| workers.distance(from, to));
    for (frame, core) in [(1, 0), (2, 1), (4, 3)] {
        free.put(&headers, core, frame);
    }
    // Core 2 shares its socket with core 3. Cores 4 and 5 are workers without a node.
    assert_eq!(free.take(&headers, 2), Some(4));
    // A search looks at two lists, and the next one goes on behind them.
    let mut rest: Vec<u32> = (0..4).filter_map(|_| free.take(&headers, 2)).collect();
    rest.sort_unstable();
    assert_eq!(rest, [1, 2]);
}

/// A pool that is too small: each core has a thread that uses frames, and a page writer.
struct Starved {
    headers: Vec<Frame>,
    free: FreeFrames,
    /// Frames that hold a page.
    used: SpinLock<Vec<u32>>,
    /// Whether a thread has the frame.
    is_taken: Vec<AtomicBool>,
    /// Whether two threads had one frame. A panic would leave the other threads waiting.
    is_shared: AtomicBool,
    /// Threads that still use frames.
    running: AtomicUsize,
}

impl Starved {
    /// One frame a core is free, and one lies in its reserve.
    fn new(cores: usize) -> Starved {
        let starved = Starved {
            headers: (0..2 * cores).map(|_| Frame::new()).collect(),
            free: FreeFrames::new(2 * cores, &vec![0; cores], |_, _| 10),
            used: SpinLock::new(&"test", Vec::new()),
            is_taken: (0..2 * cores).map(|_| AtomicBool::new(false)).collect(),
            is_shared: AtomicBool::new(false),
            running: AtomicUsize::new(cores),
        };
        for core in 0..cores {
            starved.free.put(&starved.headers, core, core as u32);
            starved.free.put_reserved(&starved.headers, core, (cores + core) as u32);
        }
        starved
    }

    fn is_over(&self) -> bool {
        self.running.load(Ordering::Acquire) == 0 // Acquire: sees the threads' frames
    }

    /// Has the frame for itself for a while.
    fn hold(&self, frame: u32) {
        let is_taken = &self.is_taken[frame as usize];
        // Relaxed, all: the lists alone order the threads.
        if is_taken.swap(true, Ordering::Relaxed) {
            self.is_shared.store(true, Ordering::Relaxed);
        }
        std::thread::yield_now();
        is_taken.store(false, Ordering::Relaxed);
    }

    fn take(&self, core: usize) -> u32 {
        loop {
            let failures = self.free.failures(core);
            if let Some(frame) = self.free.take(&self.headers, core) {
                return frame;
            }
            if self.free.wait(core, failures).is_err() {
                assert_ne!(self.free.failures(core), failures, "nobody gave up");
            }
        }
    }

    fn use_frames(&self, core: usize, count: usize) {
        for round in 0..count {
            let frame = self.take(core);
            self.hold(frame);
            match round % 2 {
                0 => self.used.lock().push(frame),
                // A long list, from which other cores take several frames at once.
                _ => self.free.put(&self.headers, 0, frame),
            }
            if round % 8 == 0 {
                let frame = self.free.take_reserved(&self.headers, core).expect("only this core takes it");
                self.hold(frame);
                self.free.put_reserved(&self.headers, core, frame);
            }
        }
        // AcqRel: the last one ends the page writers after all others.
        if self.running.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.free.shut();
        }
    }

    /// The page writer: frees frames. That of the first core gives up now and then. The others do
    /// not, so nothing but a frame wakes the threads there.
    fn write_pages(&self, core: usize) {
        let mut rounds = 0;
        while !self.is_over() {
            self.free.sleep(core, || self.is_over());
            while self.free.lack(core) > 0 && !self.is_over() {
                rounds += 1;
                let used = self.used.lock().pop();
                if let Some(frame) = used {
                    self.hold(frame);
                    self.free.put(&self.headers, core, frame);
                } else if core == 0 && rounds % 64 == 0 {
                    self.free.fail(core, Error::NoFrames);
                } else if !self.free.restock(&self.headers, core) {
                    std::thread::yield_now();
                }
            }
        }
    }
}

#[test]
fn threads_past_the_cores_share_few_frames_and_lose_none() {
    let cores = sync::stress::threads() / 2;
    let starved = Starved::new(cores);
    std::thread::scope(|scope| {
        for core in 0..cores {
            let starved = &starved;
            scope.spawn(move || starved.use_frames(core, (8000 / cores).max(20)));
            scope.spawn(move || starved.write_pages(core));
        }
    });
    // Relaxed: the threads have ended.
    assert!(!starved.is_shared.load(Ordering::Relaxed), "two threads have one frame");
    let (free, headers) = (&starved.free, &starved.headers);
    let mut frames = starved.used.lock().clone();
    for core in 0..cores {
        frames.extend(std::iter::from_fn(|| free.take_own(headers, core)));
        frames.extend(std::iter::from_fn(|| free.take_reserved(headers, core)));
    }
    frames.sort_unstable();
    assert_eq!(frames, (0..2 * cores as u32).collect::<Vec<_>>());
}

#[cfg(variants)]
#[test]
fn a_frame_in_the_one_list_wakes_a_fiber_that_waits_on_any_core() {
    let headers: Vec<Frame> = (0..10).map(|_| Frame::new()).collect();
    let mut free = FreeFrames::new(headers.len(), &[0, 0, 1], |_, _| 20);
    free.is_one = true;
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            free.wait(2, 0).expect("nobody fails the waiters");
            free.take(&headers, 2)
        });
        while !free.of(1).waiters.has_waiters() {
            std::thread::yield_now();
        }
        free.put(&headers, 0, 7);
        assert_eq!(waiter.join().unwrap(), Some(7));
    });
    free.put(&headers, 1, 8);
    assert_eq!([0, 1, 2].map(|core| free.len(core)), [1; 3]);
}

#[test]
fn a_search_takes_from_its_own_node_first_and_stays_where_it_found_frames() {
    let (workers, nodes) = workers(&Topology::synthetic(2, 2, 2));
    let headers: Vec<Frame> = (0..100).map(|_| Frame::new()).collect();
    let free = FreeFrames::new(headers.len(), &nodes, |from, to| workers.distance(from, to));
    let (own, far) = (3, 4);
    assert_eq!((nodes[0], nodes[own], nodes[far]), (0, 0, 1));
    (0..20).for_each(|frame| free.put(&headers, own, frame));
    (20..40).for_each(|frame| free.put(&headers, far, frame));
    let mut taken = Vec::new();
    while let Some(frame) = free.take(&headers, 0) {
        taken.push(frame);
    }
    assert!(taken[..20].iter().all(|&frame| frame < 20), "{taken:?}");
    assert!(taken[20..].iter().all(|&frame| frame >= 20), "{taken:?}");
    assert_eq!(taken.len(), 40);
    let ring = &free.cores.get(0).rings[0];
    assert_ne!(
        free.by_distance[0][ring.place(ring.at.load(Ordering::Relaxed))],
        0,
        "no core searches its own list"
    );
}
