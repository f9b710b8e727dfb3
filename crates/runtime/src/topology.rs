//! The processors of the machine by NUMA node, core and hardware thread.
//!
//! A [`Topology`] holds the processors that this process may use, in the order in which workers are
//! pinned. It comes from the kernel's lists, or is synthetic: tests run what depends on it on
//! machines of any shape. What must hold:
//!
//! 1. Nodes are numbered from 0 without gaps, in the kernel's order. A machine whose kernel shows
//!    no nodes has one.
//! 2. Workers that are neighbours by number are neighbours on the machine: processors lie in order
//!    of node, core and hardware thread.

use crate::memory::Policy;
use crate::os::{process, processor};

/// A processor that this process may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// The kernel's number of it.
    pub number: usize,
    /// Its NUMA node.
    pub node: usize,
    /// Its core: the lowest number among the processors of that core.
    pub core: usize,
    /// Its place among the hardware threads of its core: 0 for the first one.
    pub thread: usize,
}

/// The processors that this process may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    processors: Vec<Processor>,
    nodes: usize,
    /// The kernel's numbers of the nodes; empty where it shows none.
    kernels: Vec<usize>,
    /// By node, the kernel's number of it if it gives memory too; empty where the kernel shows no
    /// nodes.
    memory: Vec<Option<usize>>,
    /// The policy of memory that nobody spreads.
    policy: Policy,
    /// By node and other node, as the firmware tells: 10 is a node's distance to itself.
    distances: Vec<Vec<usize>>,
}

/// The distance of a node to itself, and to another where the kernel tells none.
const DISTANCES: [usize; 2] = [10, 20];

impl Topology {
    /// The topology of this machine, as far as this process may use it.
    pub fn of_machine() -> Topology {
        let siblings = |number| processor::siblings(number).and_then(|list| numbers(&list));
        let memory = processor::memory_nodes().and_then(|list| numbers(&list));
        let nodes = kernels_nodes();
        let machine = Topology::new(processor::processors(), &nodes, memory.as_deref(), siblings);
        let numbers: Vec<usize> = nodes.iter().map(|(number, _)| *number).collect();
        let machine = machine.with_distances(&numbers, |node| kernels_distances(node).unwrap_or_default());
        if processor::has_memory_policy() { machine.with_memory_policy() } else { machine }
    }

    /// The same machine for a process that an operator has given a memory policy. That stays.
    fn with_memory_policy(self) -> Topology {
        Topology { memory: Vec::new(), policy: Policy::Operator, ..self }
    }

    /// A machine of this shape whose processors are all usable. It numbers processors as Linux does
    /// on x86: the first hardware threads of all cores come first.
    pub fn synthetic(nodes: usize, cores: usize, threads: usize) -> Topology {
        let all = nodes * cores;
        let of_core = |core: usize| (0..threads).map(move |thread| thread * all + core);
        let of_node =
            |node: usize| -> Vec<usize> { (node * cores..(node + 1) * cores).flat_map(of_core).collect() };
        let lists: Vec<(usize, Vec<usize>)> = (0..nodes).map(|node| (node, of_node(node))).collect();
        let usable: Vec<usize> = (0..all * threads).collect();
        Topology::new(&usable, &lists, None, |number| Some(of_core(number % all).collect()))
    }

    /// As [`Topology::synthetic`], with this many sockets of so many nodes. Nodes of a socket are
    /// nearer to each other than those of others.
    pub fn synthetic_sockets(sockets: usize, nodes: usize, cores: usize, threads: usize) -> Topology {
        let all: Vec<usize> = (0..sockets * nodes).collect();
        let distance = |from: usize, to: usize| match (from == to, from / nodes == to / nodes) {
            (true, _) => DISTANCES[0],
            (_, true) => 12,
            (_, false) => 32,
        };
        Topology::synthetic(sockets * nodes, cores, threads)
            .with_distances(&all, |from| all.iter().map(|&to| distance(from, to)).collect())
    }

    /// The machine with these distances: from a node of the kernel's `numbers` to each of them.
    fn with_distances(mut self, numbers: &[usize], of: impl Fn(usize) -> Vec<usize>) -> Topology {
        for (at, from) in self.kernels.iter().enumerate() {
            let known = of(*from);
            for (other, to) in self.kernels.iter().enumerate() {
                let place = numbers.iter().position(|number| number == to);
                if let Some(&distance) = place.and_then(|place| known.get(place)) {
                    self.distances[at][other] = distance;
                }
            }
        }
        self
    }

    /// `nodes` has the kernel's number of each node and its processors. `memory` has the nodes from
    /// which this process may take memory, or `None` for all. `siblings` returns the processors of
    /// a processor's core, or `None` where the kernel does not show them.
    fn new(
        usable: &[usize],
        nodes: &[(usize, Vec<usize>)],
        memory: Option<&[usize]>,
        siblings: impl Fn(usize) -> Option<Vec<usize>>,
    ) -> Topology {
        // A node without usable processors is none of ours.
        let ours = |node: &&(usize, Vec<usize>)| node.1.iter().any(|number| usable.contains(number));
        let (kernels, nodes): (Vec<usize>, Vec<&Vec<usize>>) =
            nodes.iter().filter(ours).map(|(number, processors)| (*number, processors)).unzip();
        let gives = |node: &usize| memory.is_none_or(|memory| memory.contains(node));
        let memory = kernels.iter().map(|node| Some(*node).filter(gives)).collect();
        let place = |&number: &usize| {
            let siblings = siblings(number).unwrap_or_default();
            let core = siblings.iter().copied().min().unwrap_or(number);
            // Siblings that this process may not use do not count.
            let before = |other: &&usize| **other < number && usable.contains(other);
            let thread = siblings.iter().filter(before).count();
            let node = nodes.iter().position(|node| node.contains(&number)).unwrap_or(0);
            Processor { number, node, core, thread }
        };
        let mut processors: Vec<Processor> = usable.iter().map(place).collect();
        processors.sort_unstable_by_key(|one| (one.node, one.core, one.thread));
        let nodes = nodes.len().max(1);
        let distances = |from: usize| (0..nodes).map(|to| DISTANCES[usize::from(from != to)]).collect();
        let distances = (0..nodes).map(distances).collect();
        Topology { processors, nodes, kernels, memory, policy: Policy::None, distances }
    }

    /// The processors, in order of node, core and hardware thread.
    pub fn processors(&self) -> &[Processor] {
        &self.processors
    }

    /// Number of NUMA nodes with usable processors, at least one.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Confines the calling thread to the processors of a node; best effort.
    pub fn confine_thread(&self, node: usize) {
        let of_node = self.processors.iter().filter(|one| one.node == node).map(|one| one.number);
        processor::confine(&of_node.collect::<Vec<_>>());
    }

    /// The processors for so many workers, in order; `None` where the machine has too few. Every
    /// core gets a worker before one gets a second worker.
    pub fn choose(&self, workers: usize) -> Option<Vec<Processor>> {
        let mut chosen = self.processors.clone();
        chosen.sort_by_key(|one| one.thread);
        chosen.truncate(workers);
        chosen.sort_unstable_by_key(|one| (one.node, one.core, one.thread));
        (chosen.len() == workers).then_some(chosen)
    }
}

/// The NUMA nodes by the kernel's numbers, with their processors; none where it shows no nodes.
fn kernels_nodes() -> Vec<(usize, Vec<usize>)> {
    let nodes = processor::nodes().into_iter();
    nodes.filter_map(|(number, list)| Some((number, numbers(&list)?))).collect()
}

/// The distances of a node to all nodes of the machine, in the kernel's order.
fn kernels_distances(node: usize) -> Option<Vec<usize>> {
    let text = process::text(format!("/sys/devices/system/node/node{node}/distance")).ok()?;
    text.split_whitespace().map(|distance| distance.parse().ok()).collect()
}

/// Confines this process to a NUMA node, by the kernel's number. Threads run on its processors
/// only, and new memory comes from it as long as it has some.
///
/// Counts for this thread and those it starts from now on. So call it before a runtime starts.
///
/// # Errors
/// Says that there is no such node, that the process may not use its processors, or that the kernel
/// refuses.
pub fn confine_to_node(node: usize) -> Result<(), String> {
    let nodes = kernels_nodes();
    let processors = usable_of(node, &nodes, &processor::allowed())?;
    processor::confine(&processors);
    if processor::allowed() != processors {
        return Err(format!("the kernel lets no thread be bound to the processors of NUMA node {node}"));
    }
    // All memory is on the one node. A container may forbid the call.
    if nodes.len() <= 1 {
        return Ok(());
    }
    processor::prefer_node(node).map_err(|error| {
        format!(
            "the kernel gives no memory by NUMA node: {error}; it needs CAP_SYS_NICE in a container, and the \
             node in cpuset.mems"
        )
    })
}

/// The processors of a node that the process may use. A kernel that shows no nodes has node 0.
fn usable_of(node: usize, nodes: &[(usize, Vec<usize>)], usable: &[usize]) -> Result<Vec<usize>, String> {
    let found = match nodes.iter().find(|(number, _)| *number == node) {
        Some((_, processors)) => processors.as_slice(),
        None if nodes.is_empty() && node == 0 => usable,
        None => {
            let numbers: Vec<_> = nodes.iter().map(|(number, _)| number.to_string()).collect();
            let numbers = if numbers.is_empty() { "0".to_owned() } else { numbers.join(", ") };
            return Err(format!("this machine has no NUMA node {node}; it has: {numbers}"));
        }
    };
    let found: Vec<usize> = usable.iter().copied().filter(|number| found.contains(number)).collect();
    if found.is_empty() {
        return Err(format!("this process may use no processor of NUMA node {node}"));
    }
    Ok(found)
}

/// Memory of a NUMA node in bytes, by the kernel's number; `None` where the kernel does not say.
pub fn node_bytes(node: usize) -> Option<u64> {
    let text = process::text(format!("/sys/devices/system/node/node{node}/meminfo")).ok()?;
    let (_, rest) = text.split_once("MemTotal:")?;
    let kibibytes: u64 = rest.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes << 10)
}

/// The workers of a runtime, and the NUMA nodes on which they run.
#[derive(Debug, Clone)]
pub struct Workers {
    nodes_of: Box<[usize]>,
    cores: usize,
    is_pinned: bool,
    /// The processors of each node.
    processors: Box<[Box<[usize]>]>,
    /// The nodes for memory that all cores use.
    shared_memory: Box<[usize]>,
    memory_policy: Policy,
    distances: Box<[Vec<usize>]>,
}

impl Workers {
    /// `workers` workers, of which the first `cores` are cores. These are pinned to the processors
    /// in `pinned`, or to none. A worker that is not pinned runs anywhere and counts for node 0.
    pub fn new(machine: &Topology, pinned: &[Processor], cores: usize, workers: usize) -> Workers {
        let node_of = |worker: usize| pinned.get(worker).map_or(0, |one| one.node);
        let of_node = |node: usize| {
            machine.processors().iter().filter(|one| one.node == node).map(|one| one.number).collect()
        };
        let processors = (0..machine.nodes()).map(of_node).collect();
        let nodes_of = (0..workers).map(node_of).collect();
        let runs = |node: usize| {
            pinned.is_empty() || pinned.iter().take(cores).any(|processor| processor.node == node)
        };
        let giving = (0..).zip(&machine.memory).filter(|(node, _)| runs(*node));
        let shared_memory: Box<[usize]> = giving.filter_map(|(_, number)| *number).collect();
        let shared_memory = if shared_memory.len() > 1 { shared_memory } else { Box::default() };
        Workers {
            nodes_of,
            cores,
            is_pinned: !pinned.is_empty(),
            processors,
            shared_memory,
            memory_policy: machine.policy,
            distances: machine.distances.clone().into(),
        }
    }

    /// The nodes over which memory that all cores use is spread, by the kernel's numbers: those on
    /// which cores run. None where that is one node, or the process has a memory policy already.
    pub fn shared_memory(&self) -> &[usize] {
        &self.shared_memory
    }

    /// The policy of memory that is not spread over [`Workers::shared_memory`].
    pub fn memory_policy(&self) -> Policy {
        self.memory_policy
    }

    /// Whether the cores are pinned. Else the nodes of workers say nothing about where they run.
    pub fn is_pinned(&self) -> bool {
        self.is_pinned
    }

    /// The node of a worker.
    pub fn node_of(&self, worker: usize) -> usize {
        self.nodes_of[worker]
    }

    /// How far memory of the second node is from cores of the first: 10 within a node.
    pub fn distance(&self, from: usize, to: usize) -> usize {
        self.distances[from][to]
    }

    /// The node of each core.
    pub(crate) fn nodes_of_cores(&self) -> &[usize] {
        &self.nodes_of[..self.cores]
    }

    /// Number of workers that are cores.
    pub fn cores(&self) -> usize {
        self.cores
    }

    /// Number of nodes on which workers may run, at least one.
    pub fn nodes(&self) -> usize {
        self.processors.len()
    }

    /// Number of nodes on which cores run: all where cores are not pinned.
    pub fn nodes_with_cores(&self) -> usize {
        let has_core = |node: &usize| !self.is_pinned || self.nodes_of_cores().contains(node);
        (0..self.nodes()).filter(has_core).count()
    }

    /// The processors of a node that this process may use.
    pub fn processors_of(&self, node: usize) -> &[usize] {
        &self.processors[node]
    }
}

/// The numbers in a list as the kernel writes it: `0-3,8,10-11`. `None` where it is no such list.
fn numbers(list: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in list.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        all.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_the_kernel_is_read() {
        assert_eq!(numbers("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(numbers("\n"), Some(vec![]));
        assert_eq!(numbers("0-x"), None);
    }

    #[test]
    fn processors_lie_in_order_of_node_core_and_thread() {
        for (nodes, cores, threads) in [(1, 1, 1), (1, 16, 2), (2, 24, 2), (4, 8, 8), (6, 32, 2)] {
            let machine = Topology::synthetic(nodes, cores, threads);
            assert_eq!(machine.nodes(), nodes);
            assert_eq!(machine.processors().len(), nodes * cores * threads);
            for (at, one) in machine.processors().iter().enumerate() {
                assert_eq!(one.node, at / (cores * threads));
                assert_eq!(one.core, at / threads);
                assert_eq!(one.thread, at % threads);
                assert_eq!(one.number, one.thread * nodes * cores + one.core);
            }
        }
    }

    #[test]
    fn nodes_have_the_distances_that_the_kernel_tells() {
        let distances = |machine: &Topology| {
            let pinned = machine.processors();
            let workers = Workers::new(machine, pinned, pinned.len(), pinned.len());
            let of = |from| (0..machine.nodes()).map(|to| workers.distance(from, to)).collect::<Vec<_>>();
            (0..machine.nodes()).map(of).collect::<Vec<_>>()
        };
        assert_eq!(distances(&Topology::synthetic(2, 1, 1)), [[10, 20], [20, 10]]);
        let machine = Topology::synthetic_sockets(2, 2, 1, 1);
        assert_eq!(distances(&machine)[0], [10, 12, 32, 32]);
        assert_eq!(distances(&machine)[3], [32, 32, 12, 10]);
        // The kernel's nodes are 0, 2 and 3. The process may use those of 2 and 3, and node 3 is
        // without a word of distances.
        let nodes = [(0, vec![0]), (2, vec![1]), (3, vec![2])];
        let told = |node: usize| if node == 2 { vec![21, 10, 11] } else { Vec::new() };
        let machine = Topology::new(&[1, 2], &nodes, None, |_| None).with_distances(&[0, 2, 3], told);
        assert_eq!(distances(&machine), [[10, 11], [20, 10]]);
    }

    #[test]
    fn nodes_without_a_core_do_not_count() {
        let machine = Topology::synthetic(2, 8, 2);
        let on = |pinned: &[Processor], cores: usize| {
            Workers::new(&machine, pinned, cores, cores + 2).nodes_with_cores()
        };
        assert_eq!(on(&machine.choose(8).unwrap(), 8), 1);
        assert_eq!(on(&machine.choose(9).unwrap(), 9), 2);
        assert_eq!(on(&[], 8), 2, "they run anywhere");
    }

    #[test]
    fn every_core_has_a_worker_before_one_has_two() {
        let machine = Topology::synthetic(2, 4, 2);
        let chosen = |workers| -> Vec<usize> {
            machine.choose(workers).unwrap().iter().map(|one| one.number).collect()
        };
        assert_eq!(chosen(3), [0, 1, 2]);
        assert_eq!(chosen(8), [0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!(chosen(10), [0, 8, 1, 9, 2, 3, 4, 5, 6, 7]);
        assert_eq!(machine.choose(17), None);
    }

    #[test]
    fn a_process_has_the_nodes_and_threads_it_may_use() {
        let nodes = [(0, vec![0, 1, 4, 5]), (2, vec![2, 3, 6, 7])];
        let siblings = |number: usize| Some(vec![number % 4, number % 4 + 4]);
        let confined = Topology::new(&[6, 3, 7], &nodes, None, siblings);
        assert_eq!(confined.nodes(), 1);
        let places: Vec<_> =
            confined.processors().iter().map(|one| (one.number, one.node, one.thread)).collect();
        assert_eq!(places, [(6, 0, 0), (3, 0, 0), (7, 0, 1)]);
        // A kernel that shows nothing: one node, and each processor is a core.
        let blind = Topology::new(&[2, 5], &[], None, |_| None);
        assert_eq!(blind.nodes(), 1);
        assert!(blind.processors().iter().all(|one| (one.node, one.core, one.thread) == (0, one.number, 0)));
    }

    #[test]
    fn memory_that_all_cores_use_is_spread_over_several_nodes() {
        let on = |machine: &Topology, pinned: &[Processor], cores: usize| {
            Workers::new(machine, pinned, cores, cores + 2).shared_memory().to_vec()
        };
        let shared = |machine: &Topology| on(machine, machine.processors(), machine.processors().len());
        for (nodes, expected) in [(1, vec![]), (2, vec![0, 1]), (4, vec![0, 1, 2, 3]), (6, (0..6).collect())]
        {
            assert_eq!(shared(&Topology::synthetic(nodes, 8, 2)), expected, "{nodes} nodes");
        }
        // Cores of one node alone, and cores that run anywhere.
        let machine = Topology::synthetic(2, 24, 2);
        assert_eq!(on(&machine, &machine.choose(16).unwrap(), 16), []);
        assert_eq!(on(&machine, &machine.choose(48).unwrap(), 48), [0, 1]);
        assert_eq!(on(&machine, &[], 16), [0, 1]);
        let nodes = [(0, vec![0, 1]), (2, vec![2, 3]), (3, vec![4, 5])];
        let of = |usable: &[usize], memory: Option<&[usize]>| {
            shared(&Topology::new(usable, &nodes, memory, |_| None))
        };
        assert_eq!(of(&[0, 1, 2, 3, 4, 5], None), [0, 2, 3]);
        // Memory of node 3 is not allowed; then one node is left; then the processors are of one.
        assert_eq!(of(&[0, 1, 2, 3, 4, 5], Some(&[0, 1, 2])), [0, 2]);
        assert_eq!(of(&[0, 1, 2, 3, 4, 5], Some(&[2])), []);
        assert_eq!(of(&[2, 3], Some(&[0, 1, 2, 3])), []);
        assert_eq!(shared(&Topology::new(&[2, 5], &[], None, |_| None)), []);
    }

    #[test]
    fn memory_of_a_process_with_a_policy_is_not_spread() {
        let of = |machine: &Topology| {
            let workers = Workers::new(machine, machine.processors(), 4, 5);
            (workers.shared_memory().to_vec(), workers.memory_policy())
        };
        let machine = Topology::synthetic(2, 2, 1);
        assert_eq!(of(&machine), (vec![0, 1], Policy::None));
        assert_eq!(of(&machine.with_memory_policy()), (vec![], Policy::Operator));
        // Not the same as a process that may take memory of no node that it runs on.
        let nodes = [(0, vec![0, 1]), (1, vec![2, 3])];
        let remote = Topology::new(&[0, 1, 2, 3], &nodes, Some(&[2]), |_| None);
        assert_eq!(of(&remote), (vec![], Policy::None));
    }

    #[test]
    #[cfg(not(model))] // it has no nodes
    fn a_policy_of_the_process_is_found() {
        // It counts for one thread alone.
        let found = std::thread::spawn(|| processor::prefer_node(0).map(|()| Topology::of_machine()));
        match found.join().unwrap() {
            Ok(machine) => assert_eq!((machine.policy, machine.memory), (Policy::Operator, vec![])),
            Err(error) => println!("skipped: the kernel gives no memory by node: {error}"),
        }
    }

    #[test]
    fn a_node_gives_its_usable_processors_or_says_why_not() {
        let nodes = [(0, vec![0, 1, 4, 5]), (2, vec![2, 3, 6, 7])];
        assert_eq!(usable_of(2, &nodes, &[0, 3, 7]), Ok(vec![3, 7]));
        assert_eq!(usable_of(0, &[], &[3, 7]), Ok(vec![3, 7]));
        let refused = |node, nodes: &[(usize, Vec<usize>)], usable: &[usize]| {
            usable_of(node, nodes, usable).unwrap_err()
        };
        assert_eq!(refused(1, &nodes, &[0]), "this machine has no NUMA node 1; it has: 0, 2");
        assert_eq!(refused(1, &[], &[0]), "this machine has no NUMA node 1; it has: 0");
        assert_eq!(refused(2, &nodes, &[0, 1]), "this process may use no processor of NUMA node 2");
    }

    #[test]
    fn this_machine_has_all_processors_of_the_process() {
        let machine = Topology::of_machine();
        let mut found: Vec<usize> = machine.processors().iter().map(|one| one.number).collect();
        found.sort_unstable();
        assert_eq!(found, processor::processors());
    }
}
