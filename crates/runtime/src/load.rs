//! The load of cores decides where a new session goes, and which core gives sessions to another.
//!
//! Both are functions of plain figures, so tests run them on machines of any shape. What must hold:
//!
//! 1. A session goes to the node with the least load by core, then to the core with the least load
//!    of that node. Idle sessions decide between cores whose load is about the same.
//! 2. A core gives sessions away only after [`LOOKS`] looks in a row at which it was much busier
//!    than another one. The other core is not as busy afterwards. So a session does not wander.
//! 3. A core of the same node takes precedence. Another node's core must be idle by comparison,
//!    because a session's memory stays on the node where it was touched first.

/// Load of one session that always runs.
pub(crate) const WHOLE: u64 = 1000;
/// Loads that differ by less count as the same for a new session. Half a core, so that a core's own
/// work, and clients that have just connected, do not outweigh the number of sessions.
const STEP: u64 = WHOLE / 2;
/// A core that sleeps more than a quarter of its time keeps no session waiting for long.
const BUSY: u64 = WHOLE * 3 / 4;
/// Looks in a row at which a core must be much busier than another.
pub(crate) const LOOKS: u32 = 4;

/// The load of a core between two looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Load {
    /// Share of its time in which it did not sleep, of [`WHOLE`].
    pub(crate) busy: u64,
    /// The same, times the sessions and fibers that waited for a turn if those are more than one.
    /// Above [`WHOLE`], sessions wait for each other.
    pub(crate) demand: u64,
}

impl Load {
    /// The load of a core with so many sessions and fibers in a turn, in parts of [`WHOLE`]. Where
    /// the core is not busy they came at the same time, as commits do, and did not wait for long.
    pub(crate) fn of(busy: u64, in_turn: u64) -> Load {
        let demand = if busy < BUSY { busy } else { busy * in_turn.max(WHOLE) / WHOLE };
        Load { busy, demand }
    }
}

/// The load to expect of a core, which had `demand` with `before` sessions at the last look. Since
/// then so many came, and so many are there now. Each one that came is a whole core's. Sessions
/// that left take their share of the load along: former ones first, then those that came. So where
/// connections are short, a core that loses its sessions is not shunned until the next look.
pub(crate) fn expected(demand: u64, before: usize, came: usize, present: usize) -> u64 {
    let left = (before + came).saturating_sub(present);
    let former = left.min(before);
    let stayed = (before - former) as u64;
    // Without sessions it is the core's own work, which stays.
    let demand = (demand * stayed).checked_div(before as u64).unwrap_or(demand);
    demand + came.saturating_sub(left - former) as u64 * WHOLE
}

/// A core that may get a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) node: usize,
    /// Whether a statement holds it.
    pub(crate) is_held: bool,
    pub(crate) demand: u64,
    pub(crate) sessions: usize,
}

/// The core for a new session, by its place in the list.
pub(crate) fn choose(cores: &[Candidate]) -> Option<usize> {
    let nodes = cores.iter().map(|core| core.node + 1).max()?;
    let of_node = |node: usize| {
        let of = |is_held| cores.iter().filter(move |core| core.node == node && core.is_held == is_held);
        let is_held = of(false).next().is_none();
        let count = of(is_held).count() as u64;
        let sum =
            |figure: fn(&Candidate) -> u64| (of(is_held).map(figure).sum::<u64>() * WHOLE).checked_div(count);
        Some(((is_held, sum(|core| core.demand / STEP)?, sum(|core| core.sessions as u64)?), node))
    };
    let (_, node) = (0..nodes).filter_map(of_node).min()?;
    let of_node = cores.iter().enumerate().filter(|(_, core)| core.node == node);
    let key = |core: &Candidate| (core.is_held, core.demand / STEP, core.sessions);
    of_node.min_by_key(|(_, core)| key(core)).map(|(at, _)| at)
}

/// Sessions are to move from one core to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// How many of those that wait for the core, of [`WHOLE`]: at most half.
    pub(crate) share: u64,
}

/// Decides which cores give sessions away.
#[derive(Debug)]
pub(crate) struct Balancer {
    nodes: Box<[usize]>,
    /// Looks in a row at which each core was much busier than another one.
    waited: Box<[u32]>,
}

impl Balancer {
    /// For cores on these nodes.
    pub(crate) fn new(nodes: &[usize]) -> Balancer {
        Balancer { nodes: nodes.into(), waited: nodes.iter().map(|_| 0).collect() }
    }

    /// The transfers that are due at this look, at most one to each core.
    pub(crate) fn look(&mut self, loads: &[Load]) -> Vec<Transfer> {
        let mut busiest: Vec<usize> = (0..loads.len()).collect();
        busiest.sort_by_key(|&core| std::cmp::Reverse(loads[core].demand));
        let mut due: Vec<Transfer> = Vec::new();
        for from in busiest {
            let is_taken = |to: usize| to == from || due.iter().any(|other| other.to == to);
            let Some(to) = self.target(loads, from, is_taken) else {
                self.waited[from] = 0;
                continue;
            };
            self.waited[from] += 1;
            if self.waited[from] >= LOOKS {
                self.waited[from] = 0;
                let (own, other) = (loads[from].demand, loads[to].demand);
                due.push(Transfer { from, to, share: (own - other) * WHOLE / (2 * own) });
            }
        }
        due
    }

    /// The core that gets sessions of `from`, if one is so much less busy.
    fn target(&self, loads: &[Load], from: usize, is_taken: impl Fn(usize) -> bool) -> Option<usize> {
        let least = |is_near: bool| {
            let is_near = |core: &usize| (self.nodes[*core] == self.nodes[from]) == is_near;
            (0..loads.len())
                .filter(is_near)
                .filter(|&core| !is_taken(core))
                .min_by_key(|&core| loads[core].demand)
        };
        let near = least(true).filter(|&to| is_uneven(loads[from], loads[to]));
        near.or_else(|| least(false).filter(|&to| is_uneven_far(loads[from], loads[to])))
    }
}

/// Whether a core of the same node is so much busier than another that a session gains by a move.
/// Three sessions that always run and one are; three and two are not, since they would be as uneven
/// after the move. Among many sessions a quarter of the load is the least: loads are not steady.
fn is_uneven(from: Load, to: Load) -> bool {
    let least = (2 * WHOLE - WHOLE / 4).max(from.demand / 4);
    is_idle(from, to, 2) || from.busy >= BUSY && from.demand >= to.demand + least
}

/// The same for a core of another node, where a session finds its memory far away.
fn is_uneven_far(from: Load, to: Load) -> bool {
    is_idle(from, to, 4) || from.busy >= BUSY && from.demand >= 4 * (to.demand + WHOLE)
}

/// Whether one core is busy and another one that many times less.
fn is_idle(from: Load, to: Load, times: u64) -> bool {
    from.busy >= BUSY && to.busy * times <= from.busy && to.demand < from.demand
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Topology;

    const IDLE: Load = Load { busy: 0, demand: 0 };

    fn load(busy: u64, demand: u64) -> Load {
        Load { busy, demand }
    }

    /// The nodes of a machine's cores.
    fn nodes(nodes: usize, cores: usize) -> Vec<usize> {
        Topology::synthetic(nodes, cores, 1).processors().iter().map(|one| one.node).collect()
    }

    fn candidates(nodes: &[usize]) -> Vec<Candidate> {
        nodes.iter().map(|&node| Candidate { node, is_held: false, demand: 0, sessions: 0 }).collect()
    }

    #[test]
    fn without_load_sessions_are_dealt_out_evenly() {
        for shape in [(1, 1), (1, 2), (2, 4), (4, 8), (6, 3)] {
            let mut cores = candidates(&nodes(shape.0, shape.1));
            for placed in 0..cores.len() * 3 {
                let chosen = choose(&cores).unwrap();
                assert_eq!(cores[chosen].sessions, placed / cores.len(), "{shape:?}: {cores:?}");
                cores[chosen].sessions += 1;
            }
        }
        assert_eq!(choose(&[]), None);
    }

    #[test]
    fn the_node_with_the_least_load_by_core_comes_first() {
        let mut cores = candidates(&nodes(2, 4));
        // Node 0 has the core with the least load, and more load in all.
        for (core, demand) in [0, 4000, 4000, 4000, 1000, 1000, 1000, 1000].into_iter().enumerate() {
            cores[core].demand = demand;
        }
        cores[4].sessions = 1;
        assert_eq!(choose(&cores), Some(5));
        // A node of fewer cores counts by core.
        cores.truncate(5);
        cores[4].demand = 3500;
        assert_eq!(choose(&cores), Some(0));
        cores[4].demand = 2900;
        assert_eq!(choose(&cores), Some(4));
    }

    #[test]
    fn a_thousand_idle_sessions_weigh_less_than_three_that_run() {
        let mut cores = candidates(&nodes(1, 2));
        (cores[0].sessions, cores[1].sessions, cores[1].demand) = (1000, 3, 3000);
        assert_eq!(choose(&cores), Some(0));
        // A little load is none: the number of sessions decides.
        cores[1].demand = STEP - 1;
        assert_eq!(choose(&cores), Some(1));
    }

    #[test]
    fn sessions_that_have_gone_are_no_load() {
        // One that came and went, as the first connection of pgbench.
        assert_eq!(expected(0, 0, 1, 0), 0);
        assert_eq!(expected(0, 0, 3, 2), 2 * WHOLE);
        // Half of the sessions took half of the load along.
        assert_eq!(expected(8000, 8, 0, 4), 4000);
        assert_eq!(expected(8000, 8, 2, 6), 6000);
        // A pool of idle sessions that connects again: each new one counts.
        assert_eq!(expected(0, 1000, 5, 5), 5 * WHOLE);
        // A core's own work, and a moment at which a session is counted twice.
        assert_eq!(expected(700, 0, 0, 0), 700);
        assert_eq!(expected(700, 1, 0, 2), 700);
    }

    /// Connections of one statement each, always 64 at a time, which all begin on one core.
    #[test]
    fn short_connections_settle_evenly() {
        let mut present = [0_usize, 64];
        for _ in 0..4 {
            let (before, mut came) = (present, [0; 2]);
            for ended in 0..200 {
                // Each core ends as many as it has, by turns.
                let from = usize::from(ended % 64 >= present[0]);
                present[if present[from] == 0 { 1 - from } else { from }] -= 1;
                let load = |core: usize| {
                    expected(before[core] as u64 * WHOLE, before[core], came[core], present[core])
                };
                let to = usize::from(load(1) < load(0));
                (present[to], came[to]) = (present[to] + 1, came[to] + 1);
            }
            assert_eq!(present, [32, 32]);
        }
    }

    #[test]
    fn a_held_core_gets_a_session_last() {
        let mut cores = candidates(&nodes(2, 2));
        (cores[0].is_held, cores[1].is_held, cores[2].demand, cores[3].demand) = (true, true, 9000, 8000);
        assert_eq!(choose(&cores), Some(3));
        (cores[1].is_held, cores[1].demand) = (false, 8500);
        assert_eq!(choose(&cores), Some(1), "of node 0 only this core counts");
        cores.iter_mut().for_each(|core| core.is_held = true);
        assert_eq!(choose(&cores), Some(0));
    }

    #[test]
    fn a_core_gives_sessions_away_only_after_a_while() {
        let mut balancer = Balancer::new(&nodes(1, 2));
        let uneven = [load(1000, 4000), IDLE];
        for _ in 0..2 {
            (1..LOOKS).for_each(|_| assert_eq!(balancer.look(&uneven), []));
            assert_eq!(balancer.look(&uneven), [Transfer { from: 0, to: 1, share: 500 }]);
        }
        // One even look in between, and the time begins anew.
        assert_eq!(balancer.look(&uneven), []);
        assert_eq!(balancer.look(&[load(1000, 2000), load(1000, 2000)]), []);
        (1..LOOKS).for_each(|_| assert_eq!(balancer.look(&uneven), []));
        assert_eq!(balancer.look(&uneven).len(), 1);
    }

    #[test]
    fn only_a_move_that_leaves_the_cores_more_even_is_worth_it() {
        for (from, to, is_worth) in [
            (load(1000, 1000), IDLE, true),
            (load(740, 740), IDLE, false),
            (load(1000, 1000), load(500, 500), true),
            (load(1000, 1000), load(600, 600), false),
            (load(1000, 2000), load(1000, 1000), false),
            (load(1000, 3000), load(1000, 1000), true),
            (load(1000, 4000), load(1000, 2000), true),
            (load(1000, 20_000), load(1000, 16_000), false),
            (load(1000, 4000), load(1000, 1000), true),
            (load(1000, 20_000), load(1000, 2000), true),
            (load(1000, 5000), load(1000, 4000), false),
        ] {
            assert_eq!(is_uneven(from, to), is_worth, "{from:?} {to:?}");
            assert!(!is_uneven(to, from) || to.demand > from.demand);
        }
    }

    #[test]
    fn the_own_node_takes_precedence_and_another_one_must_be_idle() {
        for shape in [2, 4, 6] {
            let mut loads = vec![load(400, 400); shape * 2];
            loads[0] = load(1000, 3000);
            let mut balancer = Balancer::new(&nodes(shape, 2));
            let mut last = |loads: &[Load]| {
                (1..LOOKS).for_each(|_| assert_eq!(balancer.look(loads), []));
                balancer.look(loads)
            };
            assert_eq!(last(&loads)[0].to, 1);
            loads[1] = load(1000, 2500);
            assert_eq!(last(&loads), [], "another node's cores are not idle enough");
            loads[3] = load(100, 100);
            assert_eq!(last(&loads)[0].to, 3);
            assert_eq!(last(&loads).len(), 1, "one core gets sessions of one other");
        }
    }

    #[test]
    fn sessions_that_come_together_at_a_core_that_sleeps_are_no_load() {
        assert_eq!(Load::of(300, 20 * WHOLE), load(300, 300));
        assert_eq!(Load::of(1000, 20 * WHOLE), load(1000, 20_000));
        assert_eq!(Load::of(1000, 0), load(1000, 1000));
    }

    /// Cores with sessions that always run settle, and stay as they are.
    #[test]
    fn sessions_do_not_wander() {
        for (cores, sessions) in [(2, 2), (2, 3), (2, 7), (4, 9), (16, 100)] {
            let mut running = vec![0; cores];
            running[0] = sessions;
            let mut balancer = Balancer::new(&nodes(1, cores));
            let mut moves = Vec::new();
            for look in 0..400 {
                let loads: Vec<_> =
                    running.iter().map(|&run: &u64| load(run.min(1) * 1000, run * 1000)).collect();
                for Transfer { from, to, share } in balancer.look(&loads) {
                    let moved = running[from] * share / WHOLE;
                    (running[from], running[to]) = (running[from] - moved, running[to] + moved);
                    moves.extend((moved > 0).then_some(look));
                }
            }
            assert!(running.iter().all(|&run| run > 0 || sessions < cores as u64), "{running:?}");
            assert!(moves.last().is_some_and(|&last| last < 200), "{cores} {sessions}: {moves:?}");
            let most = running.iter().max().unwrap();
            assert!(*most <= 2 * (running.iter().min().unwrap() + 1) + 1, "{running:?}");
        }
    }
}
