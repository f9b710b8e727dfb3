//! Plots as SVG, small enough to be read at the width of a phone without being shrunk: lines with bounds and fitted curves
//! over an axis of clients or seconds, and stacked bars.
//!
//! Each has a title and a description for those who don't see it. Colours are classes, so that the style sheet says what
//! they are on dark and light ground; arms differ in the shape of their marks as well.

use super::axis::Axis;
use super::markup::Markup;
use crate::figures;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 40.0;
/// Of a picture's caption and names.
const ROW: f64 = 18.0;
/// About what a character of a label takes.
const CHARACTER: f64 = 6.8;
/// Colours and marks there are; further arms begin again with the first.
pub(super) const STYLES: usize = 8;

/// A plot's frame.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    /// What it shows.
    pub title: String,
    /// The same in a sentence or two, with what is to be seen in it.
    pub description: String,
    /// Unique in the page.
    pub id: String,
    /// Below the horizontal axis.
    pub x_name: &'a str,
    /// Above the vertical axis.
    pub y_name: &'a str,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
}

/// One arm in a plot.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    /// Which colour and mark it has.
    pub style: usize,
    /// What it is called, in the tip of each mark.
    pub name: String,
    /// Runs of points that are joined.
    pub runs: Vec<Vec<Dot>>,
    /// Further values that are joined by a dashed line.
    pub curve: Vec<(f64, f64)>,
    /// Whether points have marks.
    pub marked: bool,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dot {
    /// On the horizontal axis.
    pub x: f64,
    /// On the vertical one.
    pub y: f64,
    /// Within which it lies.
    pub bounds: Option<(f64, f64)>,
}

impl Frame<'_> {
    fn across(&self, value: f64) -> Option<f64> {
        self.x.place(value).map(|at| LEFT + at * (WIDTH - LEFT - RIGHT))
    }

    fn down(&self, value: f64) -> Option<f64> {
        self.y.place(value).map(height)
    }

    /// The frame with what `inside` draws in it.
    fn svg(&self, page: &mut Markup, inside: impl FnOnce(&mut Markup)) {
        let (title, description) = (format!("{}-t", self.id), format!("{}-d", self.id));
        let labelled = format!("{title} {description}");
        let view = format!("0 0 {WIDTH} {HEIGHT}");
        let attributes: [(&str, &dyn std::fmt::Display); 3] =
            [("viewBox", &view), ("role", &"img"), ("aria-labelledby", &labelled)];
        page.element("svg", &attributes, |svg| {
            svg.leaf("title", &[("id", &title)], &self.title);
            svg.leaf("desc", &[("id", &description)], &self.description);
            self.grid(svg);
            inside(svg);
        });
    }

    fn grid(&self, svg: &mut Markup) {
        let right = WIDTH - RIGHT;
        for (value, label) in &self.y.ticks {
            let Some(y) = self.down(*value) else { continue };
            let y = round(y);
            svg.empty("line", &[("class", &"grid"), ("x1", &LEFT), ("x2", &right), ("y1", &y), ("y2", &y)]);
            text(svg, "end", LEFT - 6.0, y + 4.0, label);
        }
        let bottom = HEIGHT - BOTTOM;
        svg.empty(
            "line",
            &[("class", &"axis"), ("x1", &LEFT), ("x2", &right), ("y1", &bottom), ("y2", &bottom)],
        );
        let ticks: Vec<_> = self
            .x
            .ticks
            .iter()
            .filter_map(|(value, label)| Some((self.across(*value)?, label.as_str())))
            .collect();
        x_labels(svg, &ticks);
        text(svg, "start", 4.0, 14.0, self.y_name);
        text(svg, "middle", (LEFT + right) / 2.0, HEIGHT - 6.0, self.x_name);
    }

    /// Lines over the axes.
    pub fn lines(&self, page: &mut Markup, lines: &[Line]) {
        self.svg(page, |svg| self.drawn(svg, lines));
    }

    fn drawn(&self, svg: &mut Markup, lines: &[Line]) {
        for line in lines {
            let class = format!("line a{}", line.style % STYLES);
            svg.element("g", &[("class", &class)], |svg| self.line(svg, line));
        }
    }

    /// The plot as a file of its own: with its style, a ground, a caption, and the lines' names above it.
    pub fn picture(&self, caption: &str, lines: &[Line]) -> String {
        let names = names(lines);
        let rows = names.last().map_or(0.0, |(_, row, _)| row + 1.0);
        let top = -(ROW * (rows + 1.0) + 10.0);
        let view = format!("0 {top} {WIDTH} {}", HEIGHT - top);
        let mut page = Markup::default();
        let attributes: [(&str, &dyn std::fmt::Display); 5] = [
            ("xmlns", &"http://www.w3.org/2000/svg"),
            ("viewBox", &view),
            ("width", &WIDTH),
            ("role", &"img"),
            ("font-family", &"sans-serif"),
        ];
        page.element("svg", &attributes, |svg| {
            svg.leaf("title", &[], &self.title);
            svg.leaf("desc", &[], &self.description);
            svg.element("style", &[], |svg| svg.verbatim(include_str!("style.css")));
            let ground: [(&str, &dyn std::fmt::Display); 4] =
                [("class", &"ground"), ("y", &top), ("width", &WIDTH), ("height", &(HEIGHT - top))];
            svg.empty("rect", &ground);
            svg.leaf("text", &[("class", &"caption"), ("x", &4), ("y", &(top + ROW))], caption);
            for (x, row, line) in names {
                let class = format!("line a{}", line.style % STYLES);
                let place = format!("translate({} {})", x + 12.0, top + ROW * (row + 2.0) - 4.0);
                svg.element("g", &[("class", &class), ("transform", &place)], |svg| {
                    svg.empty("path", &[("d", &"M-12 0H12")]);
                    svg.empty("path", &[("class", &"mark"), ("d", &mark(line.style))]);
                    text(svg, "start", 18.0, 4.0, &line.name);
                });
            }
            self.grid(svg);
            self.drawn(svg, lines);
        });
        page.into_text()
    }

    fn line(&self, svg: &mut Markup, line: &Line) {
        let at = |x: f64, y: f64| Some((self.across(x)?, self.down(y)?));
        for part in line.curve.split(|(x, y)| at(*x, *y).is_none()).filter(|part| part.len() > 1) {
            let path = path(part.iter().filter_map(|(x, y)| at(*x, *y)));
            svg.empty("path", &[("class", &"curve"), ("d", &path)]);
        }
        for run in &line.runs {
            for dot in run {
                let (Some(x), Some((low, high))) = (self.across(dot.x), dot.bounds) else { continue };
                let (Some(low), Some(high)) = (self.y.place_within(low), self.y.place_within(high)) else {
                    continue;
                };
                let (x, low, high) = (round(x), round(height(low)), round(height(high)));
                svg.empty("path", &[("class", &"bounds"), ("d", &format!("M{x} {low}V{high}"))]);
            }
            for part in run.split(|dot| at(dot.x, dot.y).is_none()).filter(|part| part.len() > 1) {
                let path = path(part.iter().filter_map(|dot| at(dot.x, dot.y)));
                svg.empty("path", &[("d", &path)]);
            }
            for dot in run.iter().filter(|_| line.marked || run.len() == 1) {
                let Some((x, y)) = at(dot.x, dot.y) else { continue };
                let place = format!("translate({} {})", round(x), round(y));
                svg.element(
                    "path",
                    &[("class", &"mark"), ("transform", &place), ("d", &mark(line.style))],
                    |svg| {
                        let figures = (figures::number(dot.x), figures::number(dot.y));
                        svg.leaf("title", &[], format!("{}: {} at {}", line.name, figures.1, figures.0));
                    },
                );
            }
        }
    }
}

/// A bar of a stack plot: what stands below it, and its parts from the bottom, as shares of 1.
pub(super) type Bar = (String, Vec<f64>);

/// Bars of parts that add up to 1.
pub(super) fn stacks(page: &mut Markup, frame: &Frame<'_>, parts: &[&str], bars: &[Bar]) {
    frame.svg(page, |svg| {
        let room = (WIDTH - LEFT - RIGHT) / bars.len().max(1) as f64;
        let width = round((room * 0.72).min(48.0));
        let mut labels = Vec::new();
        for (at, (label, shares)) in bars.iter().enumerate() {
            let middle = LEFT + room * (at as f64 + 0.5);
            labels.push((middle, label.as_str()));
            let mut sum = 0.0;
            for (part, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                let (Some(top), Some(bottom)) =
                    (frame.y.place_within(sum + share), frame.y.place_within(sum))
                else {
                    continue;
                };
                sum += share;
                let (x, y, deep) =
                    (round(middle - width / 2.0), round(height(top)), round(height(bottom) - height(top)));
                let class = format!("cpu{part}");
                let place: [(&str, &dyn std::fmt::Display); 5] =
                    [("class", &class), ("x", &x), ("y", &y), ("width", &width), ("height", &deep)];
                svg.element("rect", &place, |svg| {
                    let name = parts.get(part).copied().unwrap_or_default();
                    svg.leaf("title", &[], format!("{label}: {name} {}", figures::percent(*share)));
                });
            }
        }
        x_labels(svg, &labels);
    });
}

/// Where a picture names its lines: from the left, in which row below the caption.
fn names(lines: &[Line]) -> Vec<(f64, f64, &Line)> {
    let (mut x, mut row) = (4.0, 0.0);
    let mut names = Vec::new();
    for line in lines {
        let width = 36.0 + line.name.chars().count() as f64 * CHARACTER;
        if x > 4.0 && x + width > WIDTH {
            (x, row) = (4.0, row + 1.0);
        }
        names.push((x, row, line));
        x += width;
    }
    names
}

/// What an arm's points look like, around the origin.
pub(super) fn mark(style: usize) -> &'static str {
    const MARKS: [&str; STYLES] = [
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        "M-3.6 -3.6H3.6V3.6H-3.6z",
        "M0 -4.8L4.5 3.4H-4.5z",
        "M0 -5L5 0L0 5L-5 0z",
        "M0 4.8L4.5 -3.4H-4.5z",
        "M-1.5 -4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5z",
        "M-4.8 -2.5H4.8V2.5H-4.8z",
        "M-2.5 -4.8H2.5V4.8H-2.5z",
    ];
    MARKS[style % STYLES]
}

/// Labels below the horizontal axis, left out where they would touch; the last one always stands.
fn x_labels(svg: &mut Markup, ticks: &[(f64, &str)]) {
    let half = |label: &str| label.chars().count() as f64 * CHARACTER / 2.0 + 3.0;
    let mut taken = WIDTH + RIGHT;
    for (x, label) in ticks.iter().rev() {
        svg.empty("path", &[("class", &"axis"), ("d", &format!("M{} {}v4", round(*x), HEIGHT - BOTTOM))]);
        if x + half(label) <= taken {
            text(svg, "middle", *x, HEIGHT - BOTTOM + 17.0, label);
            taken = x - half(label);
        }
    }
}

fn text(svg: &mut Markup, anchor: &str, x: f64, y: f64, label: &str) {
    svg.leaf("text", &[("text-anchor", &anchor), ("x", &round(x)), ("y", &round(y))], label);
}

fn height(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
}

fn path(of: impl Iterator<Item = (f64, f64)>) -> String {
    let mut path = String::new();
    for (x, y) in of {
        let step = if path.is_empty() { 'M' } else { 'L' };
        path.push_str(&format!("{step}{} {}", round(x), round(y)));
    }
    path
}

/// To a tenth, which no eye tells apart.
fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
