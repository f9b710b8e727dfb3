//! The plots of one workload.

use super::axis::Axis;
use super::markup::Markup;
use super::plot::{self, Bar, Dot, Frame, Line};
use crate::figures;
use crate::record::{Latency, Point, Report};
use crate::report::groups::Group;

/// Values that lines are drawn of: one of a point, if it has it.
type Of<'a> = &'a dyn Fn(&Group<'_>, &Point) -> Option<f64>;

/// One of a point's latencies, in milliseconds.
type Percentile = fn(&Latency) -> f64;

/// A plot of lines, and what stands above it.
struct Plot {
    caption: String,
    frame: Frame<'static>,
    lines: Vec<Line>,
}

/// Draws a workload's plots; ids begin with `id`.
pub(super) struct Charts<'a> {
    pub report: &'a Report,
    pub group: &'a Group<'a>,
    pub id: String,
}

impl Charts<'_> {
    /// All of them.
    pub fn draw(&self, page: &mut Markup) {
        self.legend(page);
        page.element("div", &[("class", &"plots two")], |page| {
            figure(page, &self.throughput());
            self.efficiency().iter().for_each(|plot| figure(page, plot));
        });
        page.leaf("h3", &[], "Latency");
        self.legend(page);
        page.element("div", &[("class", &"plots")], |page| {
            self.latency().iter().for_each(|plot| figure(page, plot));
        });
        if self.group.points().any(|point| point.cpu().is_some()) {
            page.leaf("h3", &[], "Where the machine's CPU time went");
            legend_of_parts(page);
            page.element("div", &[("class", &"plots")], |page| self.cpu(page));
        }
        self.costs(page);
        self.seconds(page);
    }

    /// The plots of throughput, efficiency and the 99th percentile as pictures of their own: what each shows, and its SVG.
    pub fn pictures(&self) -> Vec<(&'static str, String)> {
        let fewest = figures::clients(self.fewest());
        let all = [
            ("tps", "transactions a second".into(), Some(self.throughput())),
            ("efficiency", format!("efficiency, relative to {fewest}"), self.efficiency()),
            ("p99", "latency p99, ms".into(), self.latency().pop()),
        ];
        let drawn = all.into_iter().filter_map(|(name, what, plot)| Some((name, what, plot?)));
        drawn
            .filter(|(_, _, plot)| any(&plot.lines))
            // Narrower than a figure's caption in the page: what is too long for one line would be cut.
            .map(|(name, what, plot)| {
                (name, plot.frame.picture(&format!("{}: {what}", self.group.workload), &plot.lines))
            })
            .collect()
    }

    /// Of many arms, once for all plots below a heading; fewer are named at each plot.
    fn legend(&self, page: &mut Markup) {
        let lines = self.lines(&|_, _| None);
        if lines.len() > LEGENDS {
            legend_of_arms(page, &lines);
        }
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
        // All that was due is to be seen; a curve that shoots far beyond what was measured is not.
        let due = lines.iter().flat_map(|line| &line.curve).map(|(_, due)| *due);
        let due = due.filter(|_| self.group.is_open());
        let axes = (Axis::clients(&self.group.clients), up_to_bounds(&lines, due));
        self.plot("tps", &caption, ("clients", "tps"), axes, lines)
    }

    /// What each client does, relative to each arm's own point with the fewest clients; `None` in an open loop, where it is
    /// told what to do.
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

    /// Gives lines their arms' fitted curves, made of arm and clients and transactions a second by `scale`; whether any has
    /// one.
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

    /// Gives dots their points' bounds, made of arm, clients and transactions a second by `scale`.
    fn bounds(&self, lines: &mut [Line], scale: impl Fn(&str, f64, f64) -> f64) {
        for (line, arm) in lines.iter_mut().zip(&self.group.arms) {
            for (dot, point) in line.runs.iter_mut().flatten().zip(self.group.line(arm)) {
                let scaled = |tps: f64| scale(arm, dot.x, tps);
                dot.bounds = point.tps.bounds().map(|(low, high)| (scaled(low), scaled(high)));
            }
        }
    }

    /// A plot for each percentile, all with the same axis, so that arms are told apart and plots can be compared.
    fn latency(&self) -> Vec<Plot> {
        let all: [(&str, Percentile); 3] =
            [("p50", |all| all.p50), ("p95", |all| all.p95), ("p99", |all| all.p99)];
        let plots: Vec<_> =
            all.iter().map(|(name, of)| (name, self.lines(&|_, point| Some(of(&point.latency()))))).collect();
        let y = Axis::logarithmic(plots.iter().flat_map(|(_, lines)| values(lines)));
        let plot = |(name, lines): (&&str, Vec<Line>)| {
            let caption = format!("Latency {name} against clients, ms");
            let axes = (Axis::clients(&self.group.clients), y.clone());
            self.plot(name, &caption, ("clients", "ms"), axes, lines)
        };
        plots.into_iter().map(plot).collect()
    }

    fn costs(&self, page: &mut Markup) {
        let switches: Of<'_> = &|_, point| point.switches().map(|one| one.voluntary + one.involuntary);
        let calls: Of<'_> = &|_, point| point.calls();
        let all = [("switches", "Context switches", switches), ("calls", "System calls", calls)];
        let seen: Vec<_> = all
            .into_iter()
            .map(|(id, name, of)| (id, name, self.lines(of)))
            .filter(|one| any(&one.2))
            .collect();
        if seen.is_empty() {
            return;
        }
        page.leaf("h3", &[], "What a transaction asks of the kernel");
        self.legend(page);
        page.element("div", &[("class", &"plots two")], |page| {
            for (id, name, lines) in seen {
                let caption = format!("{name} of the server for each transaction");
                let axes = (Axis::clients(&self.group.clients), Axis::from_zero(values(&lines)));
                figure(page, &self.plot(id, &caption, ("clients", "each"), axes, lines));
            }
        });
    }

    fn cpu(&self, page: &mut Markup) {
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
                    "Stacked bars: shares of the machine's CPU time, from the bottom {}, at {} numbers of clients. {}",
                    PARTS.join(", "),
                    bars.len(),
                    self.below()
                ),
                id: format!("{}-cpu{at}", self.id),
                x_name: "clients",
                y_name: "share",
                x: Axis::unmarked(),
                y,
            };
            page.element("figure", &[], |page| {
                page.leaf("figcaption", &[], arm);
                plot::stacks(page, &frame, &PARTS, &bars);
            });
        }
    }

    /// Where any arm is best, and with most clients; the others to be opened.
    fn seconds(&self, page: &mut Markup) {
        let clients = &self.group.clients;
        let seen = |clients: &&usize| {
            self.group.points().any(|point| {
                point.clients == **clients && point.rounds.iter().any(|round| round.seconds.len() > 1)
            })
        };
        let mut rest: Vec<usize> = clients.iter().filter(seen).copied().collect();
        if rest.is_empty() {
            return;
        }
        let bests = self.group.arms.iter().filter_map(|arm| self.group.turn(arm));
        let bests: Vec<usize> = bests.map(|turn| turn.best.clients).collect();
        let most = rest.last().copied();
        let telling = |one: &usize| bests.contains(one) || Some(*one) == most;
        let shown: Vec<usize> = rest.iter().copied().filter(telling).collect();
        rest.retain(|one| !shown.contains(one));
        page.leaf("h3", &[], "Throughput over the seconds of all rounds");
        self.legend(page);
        page.element("div", &[("class", &"plots")], |page| {
            shown.iter().for_each(|clients| self.seconds_at(page, *clients));
        });
        if !rest.is_empty() {
            page.element("details", &[], |page| {
                page.leaf("summary", &[], "With other numbers of clients");
                page.element("div", &[("class", &"plots")], |page| {
                    rest.iter().for_each(|clients| self.seconds_at(page, *clients));
                });
            });
        }
    }

    fn seconds_at(&self, page: &mut Markup, clients: usize) {
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
        figure(page, &self.plot(&format!("s{clients}"), &caption, names, axes, lines));
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
            description: format!("{} {}", describe(&lines), self.below()),
            id: format!("{}-{id}", self.id),
            x_name,
            y_name,
            x,
            y,
        };
        Plot { caption: caption.into(), frame, lines }
    }

    fn below(&self) -> &'static str {
        "All numbers are in the tables below the plots."
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

fn figure(page: &mut Markup, plot: &Plot) {
    let lines = &plot.lines;
    page.element("figure", &[], |page| {
        page.leaf("figcaption", &[], &plot.caption);
        if lines.len() <= LEGENDS {
            legend_of_arms(page, lines);
        }
        match any(lines) {
            true => plot.frame.lines(page, lines),
            false => page.leaf("p", &[("class", &"faint")], "No numbers."),
        }
    });
}

/// Up to so many arms are named at each plot.
const LEGENDS: usize = 3;

/// From the bottom.
const PARTS: [&str; 5] = ["server, own code", "server, kernel", "client", "other", "idle"];

fn values(lines: &[Line]) -> impl Iterator<Item = f64> {
    lines
        .iter()
        .flat_map(|line| line.runs.iter().flatten())
        .map(|dot| dot.y)
        .filter(|value| value.is_finite())
}

/// From 0 to the highest value or bound, or of the others. Bounds far above all values, as of few rounds in noise, would press these to the
/// ground: they leave the plot.
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

fn legend_of_arms(page: &mut Markup, lines: &[Line]) {
    page.element("ul", &[("class", &"legend")], |page| {
        for line in lines {
            page.element("li", &[], |page| {
                let class = format!("line a{}", line.style % plot::STYLES);
                let view: [(&str, &dyn std::fmt::Display); 3] =
                    [("class", &class), ("viewBox", &"-12 -6 24 12"), ("aria-hidden", &"true")];
                page.element("svg", &view, |svg| {
                    svg.empty("path", &[("d", &"M-12 0H12")]);
                    if line.marked {
                        svg.empty("path", &[("class", &"mark"), ("d", &plot::mark(line.style))]);
                    }
                });
                page.leaf("span", &[], &line.name);
            });
        }
    });
}

fn legend_of_parts(page: &mut Markup) {
    page.element("ul", &[("class", &"legend")], |page| {
        for (at, part) in PARTS.iter().enumerate() {
            page.element("li", &[], |page| {
                page.element("svg", &[("viewBox", &"0 0 24 12"), ("aria-hidden", &"true")], |svg| {
                    let class = format!("cpu{at}");
                    svg.empty("rect", &[("class", &class), ("width", &"24"), ("height", &"12")]);
                });
                page.leaf("span", &[], part);
            });
        }
    });
}
