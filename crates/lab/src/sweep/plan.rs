//! The points of a sweep as a table of rows (numbers of clients) and arms: the next rounds, and
//! their cost.

use std::time::Duration;

use super::{Contender, Plan, summarise};
use crate::record::{Interval, Observed, Point, Round};

pub(super) struct Cells {
    /// By row, then by arm.
    rows: Vec<Vec<Cell>>,
    /// By row: good rounds, and their total time with all their overhead.
    spent: Vec<(u32, Duration)>,
    /// Rounds so far, including failed ones.
    run: usize,
}

/// A point, and whether its arm failed there.
pub(super) struct Cell {
    pub(super) point: Point,
    pub(super) failed: bool,
}

impl Cell {
    /// Whether its interval is narrow enough; a failed arm needs no more rounds.
    pub(super) fn is_done(&self, plan: &Plan) -> bool {
        self.failed || width(&self.point.judged()).is_some_and(|width| width <= plan.width)
    }

    /// The number of rounds it still needs: an interval narrows with the root of the rounds.
    fn ahead(&self, plan: &Plan) -> usize {
        let has = self.point.rounds.len() as u32;
        if self.failed || has >= plan.most_rounds {
            return 0;
        }
        let needed = match width(&self.point.judged()) {
            _ if has < plan.least_rounds => plan.least_rounds,
            Some(width) if width <= plan.width => return 0,
            Some(width) => (f64::from(has) * (width / plan.width).powi(2)).ceil() as u32,
            None => has + 1,
        };
        (needed.clamp(has + 1, plan.most_rounds) - has) as usize
    }
}

/// The width of an interval, as a part of its value.
pub(super) fn width(interval: &Interval) -> Option<f64> {
    interval.bounds().map(|(low, high)| (high - low) / interval.value)
}

impl Cells {
    pub(super) fn new(contenders: &[Contender<'_>], plan: &Plan) -> Self {
        let cell = |count: usize, contender: &Contender<'_>| Cell {
            point: Point {
                arm: contender.target.arm.clone(),
                workload: contender.workload.name().into(),
                protocol: plan.load.protocol,
                clients: count,
                tps: Interval::alone(f64::NAN),
                ratio: None,
                rounds: Vec::new(),
                checks: Vec::new(),
            },
            failed: false,
        };
        let row = |&count: &usize| contenders.iter().map(|contender| cell(count, contender)).collect();
        let rows: Vec<Vec<Cell>> = plan.clients.iter().map(row).collect();
        Self { spent: vec![(0, Duration::ZERO); rows.len()], rows, run: 0 }
    }

    pub(super) fn point(&self, row: usize, arm: usize) -> &Point {
        &self.rows[row][arm].point
    }

    pub(super) fn clients(&self, row: usize) -> usize {
        self.rows[row].first().map_or(0, |cell| cell.point.clients)
    }

    /// The rows to measure in this pass.
    pub(super) fn due(&self, plan: &Plan, pass: u32) -> Vec<usize> {
        let wanted = |row: &usize| {
            let cells = &self.rows[*row];
            let runs = cells.iter().any(|cell| !cell.failed);
            runs && (pass < plan.least_rounds.max(1) || !cells.iter().all(|cell| cell.is_done(plan)))
        };
        (0..self.rows.len()).filter(wanted).collect()
    }

    /// The arms that still run at a row, in this pass's order.
    pub(super) fn order(&self, row: usize, pass: u32) -> Vec<usize> {
        let mut arms: Vec<usize> =
            (0..self.rows[row].len()).filter(|&arm| !self.rows[row][arm].failed).collect();
        if pass % 2 == 1 {
            arms.reverse();
        }
        arms
    }

    pub(super) fn any_round(&self) -> bool {
        self.run > 0
    }

    /// Counts a round.
    pub(super) fn run(&mut self) {
        self.run += 1;
    }

    /// Adds the time of a good round at a row, with all its overhead.
    pub(super) fn spent(&mut self, row: usize, time: Duration) {
        let spent = &mut self.spent[row];
        *spent = (spent.0 + 1, spent.1 + time);
    }

    /// The cost of a round at a row: the mean of the earlier ones there. Without any, it is the
    /// planned time, or the cost of the row where rounds took longest: more clients take longer to
    /// connect and to disconnect.
    pub(super) fn cost(&self, row: usize, plan: &Plan) -> Duration {
        let mean = |&(rounds, time): &(u32, Duration)| (rounds > 0).then(|| time / rounds);
        let planned = plan.load.ramp + plan.load.warmup + plan.load.measured;
        let longest = || self.spent.iter().filter_map(mean).max().map_or(planned, |most| most.max(planned));
        mean(&self.spent[row]).unwrap_or_else(longest)
    }

    /// Whether the next rounds at a row have the costly observations, for all arms. The first ones
    /// have them. Once more do the next ones, if an arm's round was over before they gave a result.
    pub(super) fn deep(&self, row: usize) -> bool {
        let lacks = |observed: &Observed| {
            observed.symbols.is_empty() || observed.calls.is_none() || observed.counters.is_none()
        };
        let mut running = self.rows[row].iter().filter(|cell| !cell.failed).map(|cell| &cell.point.rounds);
        let most = running.clone().map(Vec::len).max().unwrap_or(0);
        most == 0 || most == 1 && running.any(|rounds| rounds.iter().all(|round| lacks(&round.observed)))
    }

    /// Rounds so far, and rounds after the one that begins now.
    pub(super) fn rounds(&self, plan: &Plan) -> (usize, usize) {
        let ahead = self.rows.iter().map(|cells| {
            let running = || cells.iter().filter(|cell| !cell.failed);
            let has = |cell: &Cell| cell.point.rounds.len();
            // All arms go on while one of them needs it, up to that one's number of rounds.
            let needing = running().filter(|cell| cell.ahead(plan) > 0);
            let most = needing.map(|cell| has(cell) + cell.ahead(plan)).max().unwrap_or(0);
            running().map(|cell| most.saturating_sub(has(cell))).sum::<usize>()
        });
        (self.run, ahead.sum::<usize>().saturating_sub(1))
    }

    /// Leaves the arm out at this row from now on; returns its number of rounds there.
    pub(super) fn fail(&mut self, row: usize, arm: usize) -> usize {
        self.rows[row][arm].failed = true;
        self.rows[row][arm].point.rounds.len()
    }

    /// Leaves the arm out everywhere from now on. Returns the clients of its unfinished points, and
    /// its number of rounds at each.
    pub(super) fn lose(&mut self, arm: usize, plan: &Plan) -> Vec<(usize, usize)> {
        let mut lost = Vec::new();
        for cells in &mut self.rows {
            let cell = &mut cells[arm];
            if !cell.failed && cell.ahead(plan) > 0 {
                lost.push((cell.point.clients, cell.point.rounds.len()));
            }
            cell.failed = true;
        }
        lost
    }

    pub(super) fn add(&mut self, row: usize, arm: usize, round: Round) {
        self.rows[row][arm].point.rounds.push(round);
        let (first, others) = self.rows[row].split_first_mut().expect("the row has this arm");
        if arm == 0 {
            summarise(&mut first.point, None);
        }
        for (index, other) in others.iter_mut().enumerate() {
            // The first arm's round changes the others' ratios.
            if (arm == 0 || arm == index + 1) && !other.point.rounds.is_empty() {
                summarise(&mut other.point, Some(&first.point));
            }
        }
    }

    /// The cells of each arm.
    pub(super) fn arms(&self) -> impl Iterator<Item = Vec<&Cell>> {
        let count = self.rows.first().map_or(0, Vec::len);
        (0..count).map(|arm| self.rows.iter().map(|row| &row[arm]).collect())
    }

    pub(super) fn into_points(self) -> Vec<Point> {
        let points = self.rows.into_iter().flatten().map(|cell| cell.point);
        points.filter(|point| !point.rounds.is_empty()).collect()
    }
}
