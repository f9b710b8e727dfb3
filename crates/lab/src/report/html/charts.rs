//! The plots of one workload.

use serde_json::{Value, json};

use super::axis::Axis;
use super::plot::{self, Bar, Dot, Frame, Line};
use crate::figures;
use crate::record::{Latency, Point, Report};
use crate::report::groups::Group;

/// The value of a line at a point, if it has one.
type Of<'a> = &'a dyn Fn(&Group<'_>, &Point) -> Option<f64>;

/// One of a point's latencies, in milliseconds.
type Percentile = fn(&Latency) -> f64;

/// A plot of lines, and its caption.
struct Plot {
    caption: String,
    frame: Frame,
    lines: Vec<Line>,
}

/// Draws a workload's plots; their ids begin with `id`.
pub(super) struct Charts<'a> {
    pub report: &'a Report,
    pub group: &'a Group<'a>,
    pub id: String,
}

impl Charts<'_> {
    /// The report's first plot: throughput against clients, or against a rising rate.
    pub fn lead(&self) -> Value {
        self.section(&self.group.title(), "plots two", self.leading())
    }

    /// All other plots.
    pub fn sections(&self) -> Vec<Value> {
        let efficiency = self.efficiency().map(|plot| self.section("Efficiency", "plots two", [plot]));
        let latency = self.section("Latency", "plots", self.latencies());
        let rest = [self.cpu(), self.costs(), self.seconds()];
        efficiency.into_iter().chain([latency]).chain(rest.into_iter().flatten()).collect()
    }

    fn leading(&self) -> Vec<Plot> {
        match self.group.rises() {
            true => self.group.clients.iter().map(|clients| self.done(*clients)).collect(),
            false => vec![self.throughput()],
        }
    }

    /// Percentiles of latency against clients; for a rising rate, against the rate, for each number
    /// of clients.
    fn latencies(&self) -> Vec<Plot> {
        match self.group.rises() {
            true => self.group.clients.iter().flat_map(|clients| self.latency_by_rate(*clients)).collect(),
            false => self.latency(),
        }
    }

    /// Plots under a heading, in a layout. Many arms share one legend; with few, each plot has its
    /// own.
    fn section(&self, heading: &str, class: &str, plots: impl IntoIterator<Item = Plot>) -> Value {
        let lines = self.lines(&|_, _| None);
        let legend = if lines.len() > LEGENDS { keys(&lines) } else { Vec::new() };
        let figures: Vec<Value> = plots.into_iter().map(figure).collect();
        json!({ "heading": heading, "class": class, "legend": legend, "figures": figures })
    }

    /// The plots of throughput, efficiency and the 99th percentile as separate pictures: a
    /// description of each, and its SVG.
    pub fn pictures(&self) -> Vec<(&'static str, String)> {
        let fewest = figures::clients(self.fewest());
        let all = [
            ("tps", "transactions a second".into(), self.leading().pop()),
            ("efficiency", format!("efficiency, relative to {fewest}"), self.efficiency()),
            ("p99", "latency p99, ms".into(), self.latencies().pop()),
        ];
        let drawn = all.into_iter().filter_map(|(name, what, plot)| Some((name, what, plot?)));
        drawn
            .filter(|(_, _, plot)| any(&plot.lines))
            // A picture is narrower than a caption in the page, and would cut a text that exceeds
            // one line.
            .map(|(name, what, plot)| {
                (name, plot.frame.picture(&format!("{}: {what}", self.group.workload), &plot.lines))
            })
            .collect()
    }

    fn throughput(&self) -> Plot {
        let mut lines = self.lines(&|_, point| Some(point.tps.value));
        let more = match self.group.is_open() {
            true => {
                for (line, arm) in lines.iter_mut().zip(&self.group.arms) {
                    let due = |point: &&Point| Some((point.clients as f64, point.offered()?.mean()));
                    line.curve = self.group.line(arm).iter().filter_map(due).collect();
                }
                "; dashed: those due"
            }
            false if self.curves(&mut lines, |_, _, tps| tps) => "; dashed: the fitted curve",
            false => "",
        };
        self.bounds(&mut lines, |_, _, tps| tps);
        let caption = format!("Transactions a second against clients{more}");
        // The plot shows all arrivals, but cuts a fitted curve that shoots far beyond the measured
        // values.
        let due = lines.iter().flat_map(|line| &line.curve).map(|(_, due)| *due);
        let due = due.filter(|_| self.group.is_open());
        let axes = (Axis::clients(&self.group.clients), up_to_bounds(&lines, due));
        self.plot("tps", &caption, ("clients", "tps"), axes, lines)
    }

    /// Throughput per client, relative to each arm's own point with the fewest clients; `None` in
    /// an open loop.
    fn efficiency(&self) -> Option<Plot> {
        if self.group.is_open() {
            return None;
        }
        let fewest = self.fewest();
        let one = |arm: &str| {
            let point = self.group.line(arm).into_iter().find(|point| point.tps.value.is_finite())?;
            Some((point.clients, point.tps.value / point.clients as f64))
        };
        let scaled =
            |arm: &str, clients: f64, tps: f64| one(arm).map_or(f64::NAN, |(_, each)| tps / clients / each);
        let mut lines =
            self.lines(&|_, point| Some(scaled(&point.arm, point.clients as f64, point.tps.value)));
        let curves = self.curves(&mut lines, scaled);
        self.bounds(&mut lines, scaled);
        let mut caption = format!("Efficiency: tps of each client, relative to {}", figures::clients(fewest));
        for (line, arm) in lines.iter_mut().zip(&self.group.arms) {
            if let Some((clients, _)) = one(arm).filter(|(clients, _)| *clients != fewest) {
                let to = format!("{arm} to {}", figures::clients(clients));
                caption.push_str(&format!("; {to}, its fewest"));
                line.name = format!("{arm}, relative to {}", figures::clients(clients));
            }
        }
        caption.push_str(if curves { "; dashed: the fitted curve" } else { "" });
        let axes = (Axis::clients(&self.group.clients), up_to_bounds(&lines, std::iter::empty()));
        Some(self.plot("efficiency", &caption, ("clients", "efficiency"), axes, lines))
    }

    fn fewest(&self) -> usize {
        self.group.clients.first().copied().unwrap_or(1)
    }

    /// Gives lines their arms' fitted curves; `scale` maps an arm, clients and transactions a
    /// second to a value. Returns whether any arm has a fit.
    fn curves(&self, lines: &mut [Line], scale: impl Fn(&str, f64, f64) -> f64) -> bool {
        let x = Axis::clients(&self.group.clients);
        for (line, arm) in lines.iter_mut().zip(&self.group.arms) {
            if let Some(fit) = self.group.fit(arm) {
                let at = |clients: f64| (clients, scale(arm, clients, fit.tps(clients)));
                line.curve = x.samples(60).map(at).collect();
            }
        }
        lines.iter().any(|line| !line.curve.is_empty())
    }

    /// Gives dots their points' bounds; `scale` maps an arm, clients and transactions a second to a
    /// value.
    fn bounds(&self, lines: &mut [Line], scale: impl Fn(&str, f64, f64) -> f64) {
        for (line, arm) in lines.iter_mut().zip(&self.group.arms) {
            for (dot, point) in line.runs.iter_mut().flatten().zip(self.group.line(arm)) {
                let scaled = |tps: f64| scale(arm, dot.x, tps);
                dot.bounds = point.tps.bounds().map(|(low, high)| (scaled(low), scaled(high)));
            }
        }
    }

    /// A plot for each percentile, all with the same axis, so that a reader can distinguish the
    /// arms and compare the plots.
    fn latency(&self) -> Vec<Plot> {
        let plots: Vec<_> = PERCENTILES
            .iter()
            .map(|(name, of)| (name, self.lines(&|_, point| Some(of(&point.latency())))))
            .collect();
        let y = Axis::logarithmic(plots.iter().flat_map(|(_, lines)| values(lines)));
        let plot = |(name, lines): (&&str, Vec<Line>)| {
            let caption = format!("Latency {name} against clients, ms");
            let axes = (Axis::clients(&self.group.clients), y.clone());
            self.plot(name, &caption, ("clients", "ms"), axes, lines)
        };
        plots.into_iter().map(plot).collect()
    }

    /// The same at one number of clients against a rising rate.
    fn latency_by_rate(&self, clients: usize) -> Vec<Plot> {
        let plot = |(name, of): &(&str, Percentile)| {
            let lines = self.over_rate(clients, |point| {
                point.latency_by_rate().iter().map(|(rate, latency)| (*rate, of(latency))).collect()
            });
            let caption = format!("{}: latency {name} against the rate, ms", figures::clients(clients));
            let axes = (rates(&lines), Axis::logarithmic(values(&lines)));
            self.plot(&format!("{name}-{clients}"), &caption, (DUE, "ms"), axes, lines)
        };
        PERCENTILES.iter().map(plot).collect()
    }

    /// Throughput against a rising rate, at one number of clients.
    fn done(&self, clients: usize) -> Plot {
        let mut lines = self.over_rate(clients, Point::done_by_rate);
        for line in &mut lines {
            line.curve = line.runs.iter().flatten().map(|dot| (dot.x, dot.x)).collect();
        }
        let caption = format!("{}: transactions done a second; dashed: those due", figures::clients(clients));
        let due = lines.iter().flat_map(|line| &line.curve).map(|(_, due)| *due);
        let axes = (rates(&lines), Axis::from_zero(values(&lines).chain(due)));
        self.plot(&format!("done-{clients}"), &caption, (DUE, "tps"), axes, lines)
    }

    /// A line for each arm: its point's values over a rising rate, at this many clients.
    fn over_rate(&self, clients: usize, of: impl Fn(&Point) -> Vec<(f64, f64)>) -> Vec<Line> {
        let line = |(at, arm): (usize, &&str)| {
            let values = self.group.point(arm, clients).map(&of).unwrap_or_default();
            let dots = values.into_iter().map(|(x, y)| Dot { x, y, bounds: None }).collect();
            Line { runs: vec![dots], ..self.line(at, arm) }
        };
        self.group.arms.iter().enumerate().map(line).collect()
    }

    fn costs(&self) -> Option<Value> {
        let switches: Of<'_> = &|_, point| point.switches().map(|one| one.voluntary + one.involuntary);
        let calls: Of<'_> = &|_, point| point.calls();
        let all = [("switches", "Context switches", switches), ("calls", "System calls", calls)];
        let seen = all.into_iter().map(|(id, name, of)| (id, name, self.lines(of))).filter(|one| any(&one.2));
        let plots: Vec<Plot> = seen
            .map(|(id, name, lines)| {
                let caption = format!("{name} of the server for each transaction");
                let axes = (Axis::clients(&self.group.clients), Axis::from_zero(values(&lines)));
                self.plot(id, &caption, ("clients", "each"), axes, lines)
            })
            .collect();
        let heading = "Kernel work of a transaction";
        (!plots.is_empty()).then(|| self.section(heading, "plots two", plots))
    }

    fn cpu(&self) -> Option<Value> {
        let mut figures = Vec::new();
        for (at, arm) in self.group.arms.iter().enumerate() {
            let bar = |point: &Point| -> Option<Bar> {
                let cpu = point.cpu()?;
                let parts = vec![cpu.server_user, cpu.server_kernel, cpu.client, cpu.other, cpu.idle];
                Some((point.clients.to_string(), parts))
            };
            let bars: Vec<Bar> = self.group.line(arm).into_iter().filter_map(bar).collect();
            if bars.is_empty() {
                continue;
            }
            let mut y = Axis::from_zero([1.0].into_iter());
            y.ticks = y.ticks.into_iter().map(|(value, _)| (value, figures::percent(value))).collect();
            let frame = Frame {
                title: format!("CPU time, {arm}"),
                description: format!(
                    "Stacked bars: shares of the machine's CPU time, from the bottom {}, at {} numbers of clients. \
                     {BELOW}",
                    PARTS.join(", "),
                    bars.len()
                ),
                id: format!("{}-cpu{at}", self.id),
                x_name: "clients",
                y_name: "share",
                x: Axis::unmarked(),
                y,
            };
            figures.push(json!({ "caption": arm, "plot": frame.stacks(&PARTS, &bars) }));
        }
        let heading = "Where the machine's CPU time went";
        (!figures.is_empty())
            .then(|| json!({ "heading": heading, "class": "plots", "parts": PARTS, "figures": figures }))
    }

    /// Throughput over time, where any arm is best and with the most clients; the reader can open
    /// the others.
    fn seconds(&self) -> Option<Value> {
        let seen = |clients: &&usize| {
            let mut here = self.group.points().filter(|point| point.clients == **clients);
            here.any(|point| point.rounds.iter().any(|round| round.seconds.len() > 1))
        };
        let all: Vec<usize> = self.group.clients.iter().filter(seen).copied().collect();
        let most = *all.last()?;
        let bests = self.group.arms.iter().filter_map(|arm| self.group.turn(arm));
        let bests: Vec<usize> = bests.map(|turn| turn.best.clients).collect();
        let (shown, rest): (Vec<usize>, Vec<usize>) =
            all.into_iter().partition(|one| bests.contains(one) || *one == most);
        let heading = "Throughput over the seconds of all rounds";
        let mut section =
            self.section(heading, "plots", shown.into_iter().map(|clients| self.seconds_at(clients)));
        section["folded"] = rest.into_iter().map(|clients| figure(self.seconds_at(clients))).collect();
        Some(section)
    }

    fn seconds_at(&self, clients: usize) -> Plot {
        let mut longest = 0;
        let line = |(at, arm): (usize, &&str)| {
            let mut line = self.line(at, arm);
            line.marked = false;
            let mut second = 0;
            for round in self.group.point(arm, clients).map_or(&[][..], |point| &point.rounds) {
                let dot = |(at, done): (usize, &u64)| Dot {
                    x: (second + at) as f64,
                    y: *done as f64,
                    bounds: None,
                };
                line.runs.push(round.seconds.iter().enumerate().map(dot).collect());
                second += round.seconds.len();
            }
            longest = longest.max(second);
            line
        };
        let lines: Vec<_> = self.group.arms.iter().enumerate().map(line).collect();
        let axes = (Axis::seconds(longest), Axis::from_zero(values(&lines)));
        let caption = format!("{}: transactions in each second", figures::clients(clients));
        let names = ("seconds counted, rounds apart", "tps");
        self.plot(&format!("s{clients}"), &caption, names, axes, lines)
    }

    fn plot(
        &self,
        id: &str,
        caption: &str,
        (x_name, y_name): (&'static str, &'static str),
        (x, y): (Axis, Axis),
        lines: Vec<Line>,
    ) -> Plot {
        let frame = Frame {
            title: format!("{caption}: {}", self.group.title()),
            description: format!("{} {BELOW}", describe(&lines)),
            id: format!("{}-{id}", self.id),
            x_name,
            y_name,
            x,
            y,
        };
        Plot { caption: caption.into(), frame, lines }
    }

    fn line(&self, at: usize, arm: &str) -> Line {
        let number = self.report.arm_number(arm);
        let style = if number < self.report.arms.len() { number } else { number + at };
        Line { style, name: arm.to_string(), runs: Vec::new(), curve: Vec::new(), marked: true }
    }

    fn lines(&self, of: Of<'_>) -> Vec<Line> {
        let line = |(at, arm): (usize, &&str)| {
            let mut line = self.line(at, arm);
            let dot = |point: &&Point| Dot {
                x: point.clients as f64,
                y: of(self.group, point).unwrap_or(f64::NAN),
                bounds: None,
            };
            line.runs.push(self.group.line(arm).iter().map(dot).collect());
            line
        };
        self.group.arms.iter().enumerate().map(line).collect()
    }
}

/// A plot with its caption; a caption alone where there are no numbers.
fn figure(plot: Plot) -> Value {
    let Plot { caption, frame, lines } = plot;
    let legend = if lines.len() <= LEGENDS { keys(&lines) } else { Vec::new() };
    json!({ "caption": caption, "legend": legend, "plot": any(&lines).then(|| frame.lines(&lines)) })
}

/// Each arm's name and style.
fn keys(lines: &[Line]) -> Vec<Value> {
    let key = |line: &Line| {
        let mark = line.marked.then(|| plot::mark(line.style));
        json!({ "style": line.style % plot::STYLES, "mark": mark, "name": line.name })
    };
    lines.iter().map(key).collect()
}

/// Percentiles that the plots show.
const PERCENTILES: [(&str, Percentile); 3] =
    [("p50", |all| all.p50), ("p95", |all| all.p95), ("p99", |all| all.p99)];

/// The axis of a rate.
const DUE: &str = "transactions due a second";

/// An axis from 0 to the greatest rate.
fn rates(lines: &[Line]) -> Axis {
    Axis::from_zero(lines.iter().flat_map(|line| line.runs.iter().flatten()).map(|dot| dot.x))
}

/// Refers to the numbers of a plot.
const BELOW: &str = "All numbers are in the tables below the plots.";

/// Each plot names its arms up to this many.
const LEGENDS: usize = 3;

/// The parts of a bar, from the bottom.
const PARTS: [&str; 5] = ["server, own code", "server, kernel", "client", "other", "idle"];

fn values(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines
        .iter()
        .flat_map(|line| line.runs.iter().flatten())
        .map(|dot| dot.y)
        .filter(|value| value.is_finite())
}

/// An axis from 0 to the highest value or bound, or to the highest of the others. Bounds far above
/// all values, as of few noisy rounds, would press the values to the ground: they leave the plot.
fn up_to_bounds(lines: &[Line], others: impl Iterator<Item = f64>) -> Axis {
    let most = 1.5 * values(lines).fold(0.0, f64::max);
    let dots = lines.iter().flat_map(|line| line.runs.iter().flatten());
    let of = |dot: &Dot| [dot.y].into_iter().chain(dot.bounds.map(|(_, high)| high.min(most)));
    Axis::from_zero(dots.flat_map(of).chain(others))
}

fn any(lines: &[Line]) -> bool {
    values(lines).next().is_some()
}

/// Each line's first, highest and last value, in words.
fn describe(lines: &[Line]) -> String {
    let one = |line: &Line| {
        let dots: Vec<_> = line.runs.iter().flatten().filter(|dot| dot.y.is_finite()).collect();
        let text = |dot: &Dot| format!("{} at {}", figures::number(dot.y), figures::number(dot.x));
        let (first, last) = (dots.first()?, dots.last()?);
        let highest = dots.iter().max_by(|a, b| a.y.total_cmp(&b.y))?;
        Some(format!("{}: from {} to {}, highest {}.", line.name, text(first), text(last), text(highest)))
    };
    lines.iter().filter_map(one).collect::<Vec<_>>().join(" ")
}
