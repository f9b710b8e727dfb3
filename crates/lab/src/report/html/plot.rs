//! Plots, small enough for the width of a phone without shrinking. They show lines with bounds and
//! fitted curves over an axis of clients, rates or seconds, and stacked bars. This module computes
//! the positions; templates write them as SVG.
//!
//! Each plot has a title and a description for readers who can't see it. Colours are classes, so
//! that the style sheet sets them for dark and light backgrounds. Arms also differ in the shape of
//! their marks.

use serde_json::{Value, json};

use super::axis::Axis;
use crate::figures;
use crate::report::templates::render;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 40.0;
/// Height of a line of text in a picture's caption and legend.
const ROW: f64 = 18.0;
/// Approximate width of a character of a label.
const CHARACTER: f64 = 6.8;
/// Number of colours and marks; further arms begin again with the first.
pub(super) const STYLES: usize = 8;

/// A plot's frame.
#[derive(Debug)]
pub(super) struct Frame {
    /// The title.
    pub title: String,
    /// A description in a sentence or two, with the main values.
    pub description: String,
    /// Unique in the page.
    pub id: String,
    /// The label below the horizontal axis.
    pub x_name: &'static str,
    /// The label above the vertical axis.
    pub y_name: &'static str,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
}

/// One arm in a plot.
#[derive(Debug, Clone, Default)]
pub(super) struct Line {
    /// The number of its colour and mark.
    pub style: usize,
    /// The name, in the tooltip of each mark.
    pub name: String,
    /// Runs of joined points.
    pub runs: Vec<Vec<Dot>>,
    /// Further values, joined by a dashed line.
    pub curve: Vec<(f64, f64)>,
    /// Whether points have marks.
    pub marked: bool,
}

/// A point of a line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dot {
    /// Its value on the horizontal axis.
    pub x: f64,
    /// Its value on the vertical axis.
    pub y: f64,
    /// Its confidence interval.
    pub bounds: Option<(f64, f64)>,
}

impl Frame {
    fn across(&self, value: f64) -> Option<f64> {
        self.x.place(value).map(|at| LEFT + at * (WIDTH - LEFT - RIGHT))
    }

    fn down(&self, value: f64) -> Option<f64> {
        self.y.place(value).map(height)
    }

    /// The plot with the positions of its parts, in the template's form.
    fn plot(&self, x_ticks: &[(f64, &str)], lines: Vec<Value>, bars: Vec<Value>) -> Value {
        let y_tick = |(value, label): &(f64, String)| {
            let at = round(self.down(*value)?);
            Some(json!({ "at": at, "beside": round(at + 4.0), "label": label }))
        };
        json!({
            "title": self.title,
            "description": self.description,
            "id": self.id,
            "x_name": self.x_name,
            "y_name": self.y_name,
            "width": WIDTH,
            "height": HEIGHT,
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "bottom": HEIGHT - BOTTOM,
            "x_ticks": x_labels(x_ticks),
            "y_ticks": self.y.ticks.iter().filter_map(y_tick).collect::<Vec<_>>(),
            "lines": lines,
            "bars": bars,
        })
    }

    /// Lines over the axes.
    pub fn lines(&self, lines: &[Line]) -> Value {
        let ticks = self.x.ticks.iter();
        let ticks: Vec<(f64, &str)> =
            ticks.filter_map(|(value, label)| Some((self.across(*value)?, label.as_str()))).collect();
        self.plot(&ticks, lines.iter().map(|line| self.line(line)).collect(), Vec::new())
    }

    /// The plot as a separate file, with its style, a background, a caption, and a legend above it.
    pub fn picture(&self, caption: &str, lines: &[Line]) -> String {
        let places = places(lines);
        let rows = places.last().map_or(0.0, |(_, row)| row + 1.0);
        let top = -(ROW * (rows + 1.0) + 10.0);
        let name = |(line, (x, row)): (&Line, &(f64, f64))| {
            json!({
                "style": line.style % STYLES,
                "mark": mark(line.style),
                "name": line.name,
                "x": round(x + 12.0),
                "y": round(top + ROW * (row + 2.0) - 4.0),
            })
        };
        let names: Vec<_> = lines.iter().zip(&places).map(name).collect();
        render(
            "picture.svg",
            json!({ "caption": caption, "names": names, "top": top, "plot": self.lines(lines) }),
        )
    }

    fn line(&self, line: &Line) -> Value {
        let at = |x: f64, y: f64| Some((self.across(x)?, self.down(y)?));
        let parts = line.curve.split(|(x, y)| at(*x, *y).is_none()).filter(|part| part.len() > 1);
        let curve: Vec<String> =
            parts.map(|part| path(part.iter().filter_map(|(x, y)| at(*x, *y)))).collect();
        let (mut bounds, mut arrows, mut joined, mut dots) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for run in &line.runs {
            for dot in run {
                let (Some(x), Some((low, high))) = (self.across(dot.x), dot.bounds) else { continue };
                let (Some(bottom), Some(top)) = (self.y.place_within(low), self.y.place_within(high)) else {
                    continue;
                };
                let (x, bottom, top) = (round(x), round(height(bottom)), round(height(top)));
                bounds.push(format!("M{x} {bottom}V{top}"));
                // An arrow's head, beyond the scale's end.
                let head = |end: f64, away: f64| format!("M{x} {}l-4 {away}h8z", round(end - away));
                arrows.extend(self.y.place(high).is_none().then(|| head(top, 6.0)));
                arrows.extend(self.y.place(low).is_none().then(|| head(bottom, -6.0)));
            }
            let parts = run.split(|dot| at(dot.x, dot.y).is_none()).filter(|part| part.len() > 1);
            joined.extend(parts.map(|part| path(part.iter().filter_map(|dot| at(dot.x, dot.y)))));
            for dot in run.iter().filter(|_| line.marked || run.len() == 1) {
                let Some((x, y)) = at(dot.x, dot.y) else { continue };
                let tip = format!("{}: {} at {}", line.name, figures::number(dot.y), figures::number(dot.x));
                dots.push(json!({ "x": round(x), "y": round(y), "tip": tip }));
            }
        }
        json!({
            "style": line.style % STYLES,
            "mark": mark(line.style),
            "curve": curve,
            "bounds": bounds,
            "arrows": arrows,
            "joined": joined,
            "dots": dots,
        })
    }

    /// Bars whose parts sum to 1.
    pub fn stacks(&self, parts: &[&str], bars: &[Bar]) -> Value {
        let room = (WIDTH - LEFT - RIGHT) / bars.len().max(1) as f64;
        let width = round((room * 0.72).min(48.0));
        let (mut labels, mut drawn) = (Vec::new(), Vec::new());
        for (at, (label, shares)) in bars.iter().enumerate() {
            let middle = LEFT + room * (at as f64 + 0.5);
            labels.push((middle, label.as_str()));
            let mut sum = 0.0;
            for (part, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
                let (Some(top), Some(bottom)) = (self.y.place_within(sum + share), self.y.place_within(sum))
                else {
                    continue;
                };
                sum += share;
                let name = parts.get(part).copied().unwrap_or_default();
                drawn.push(json!({
                    "part": part,
                    "x": round(middle - width / 2.0),
                    "y": round(height(top)),
                    "width": width,
                    "height": round(height(bottom) - height(top)),
                    "tip": format!("{label}: {name} {}", figures::percent(*share)),
                }));
            }
        }
        self.plot(&labels, Vec::new(), drawn)
    }
}

/// A bar of a stack plot: its label, and its parts from the bottom, as shares of 1.
pub(super) type Bar = (String, Vec<f64>);

/// Positions of a picture's legend: distance from the left, and the row below the caption.
fn places(lines: &[Line]) -> Vec<(f64, f64)> {
    let (mut x, mut row) = (4.0, 0.0);
    let mut places = Vec::new();
    for line in lines {
        let width = 36.0 + line.name.chars().count() as f64 * CHARACTER;
        if x > 4.0 && x + width > WIDTH {
            (x, row) = (4.0, row + 1.0);
        }
        places.push((x, row));
        x += width;
    }
    places
}

/// The mark of an arm's points, around the origin.
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

/// Labels below the horizontal axis, without those that would touch; the last one always stays.
fn x_labels(ticks: &[(f64, &str)]) -> Vec<Value> {
    let half = |label: &str| label.chars().count() as f64 * CHARACTER / 2.0 + 3.0;
    let mut taken = WIDTH + RIGHT;
    let tick = |(x, label): &(f64, &str)| {
        let fits = x + half(label) <= taken;
        if fits {
            taken = x - half(label);
        }
        json!({ "at": round(*x), "label": if fits { label } else { "" } })
    };
    ticks.iter().rev().map(tick).collect()
}

fn height(share: f64) -> f64 {
    HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
}

fn path(of: impl Iterator<Item = (f64, f64)>) -> String {
    let steps = of.map(|(x, y)| format!("{} {}", round(x), round(y))).collect::<Vec<_>>();
    format!("M{}", steps.join("L"))
}

/// Rounds to a tenth of a pixel, which the eye can't see.
fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}
