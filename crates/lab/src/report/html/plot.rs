//! Plots, small enough for the width of a phone without shrinking. They show lines with bounds and
//! fitted curves over an axis of clients, rates or seconds. This module computes the positions;
//! templates write them as SVG.
//!
//! Each plot has a label for readers who can't see it. Colours are classes, so that the style sheet
//! sets them for dark and light backgrounds. Arms also differ in the shape of their marks.

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
/// The marks of the arms' points, around the origin; further arms begin again with the first.
const MARKS: [&str; 8] = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M-3.6 -3.6H3.6V3.6H-3.6z",
    "M0 -4.8L4.5 3.4H-4.5z",
    "M0 -5L5 0L0 5L-5 0z",
    "M0 4.8L4.5 -3.4H-4.5z",
    "M-1.5 -4.5H1.5V-1.5H4.5V1.5H1.5V4.5H-1.5V1.5H-4.5V-1.5H-1.5z",
    "M-4.8 -2.5H4.8V2.5H-4.8z",
    "M-2.5 -4.8H2.5V4.8H-2.5z",
];

#[derive(Debug)]
pub(super) struct Plot {
    pub caption: String,
    /// The label below the horizontal axis, and the one above the vertical axis.
    pub names: (&'static str, &'static str),
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
}

/// One arm in a plot.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The arm's number, which gives it its colour and mark.
    pub arm: usize,
    /// Its name, in the legend and the tooltip of each mark.
    pub name: String,
    /// Runs of joined points.
    pub runs: Vec<Vec<Dot>>,
    /// Further values, joined by a dashed line.
    pub curve: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Dot {
    pub x: f64,
    pub y: f64,
    pub bounds: Option<(f64, f64)>,
}

impl Plot {
    /// Whether it has any number.
    pub fn is_seen(&self) -> bool {
        self.lines.iter().flat_map(Line::dots).any(|dot| dot.y.is_finite())
    }

    /// Each arm's name, colour and mark.
    pub fn legend(&self) -> Vec<Value> {
        self.lines
            .iter()
            .map(|line| json!({ "style": line.style(), "mark": line.mark(), "name": line.name }))
            .collect()
    }

    /// The plot as a figure of the page, with the positions of its parts; without any number, a
    /// caption alone.
    pub fn figure(&self) -> Value {
        json!({ "caption": self.caption, "plot": self.is_seen().then(|| self.drawing()) })
    }

    /// The plot as a separate file, with its style, a background, a caption, and a legend above it.
    pub fn picture(&self, caption: &str) -> String {
        let top = -(ROW * (self.lines.len() as f64 + 1.0) + 10.0);
        let values = json!({
            "caption": caption,
            "legend": self.legend(),
            "row": ROW,
            "top": top,
            "plot": self.drawing(),
        });
        render("picture.svg", values)
    }

    fn drawing(&self) -> Value {
        let y_tick = |(value, label): &(f64, String)| {
            let at = round(height(self.y.place(*value)?));
            Some(json!({ "at": at, "beside": round(at + 4.0), "label": label }))
        };
        json!({
            "label": format!("{}. All numbers are in the tables below the plots.", self.caption),
            "x_name": self.names.0,
            "y_name": self.names.1,
            "width": WIDTH,
            "height": HEIGHT,
            "left": LEFT,
            "right": WIDTH - RIGHT,
            "bottom": HEIGHT - BOTTOM,
            "x_ticks": self.x_ticks(),
            "y_ticks": self.y.ticks.iter().filter_map(y_tick).collect::<Vec<_>>(),
            "lines": self.lines.iter().map(|line| self.line(line)).collect::<Vec<_>>(),
        })
    }

    /// Ticks of the horizontal axis; labels that would touch are left out, but for the last.
    fn x_ticks(&self) -> Vec<Value> {
        let mut taken = WIDTH + RIGHT;
        let tick = |(value, label): &(f64, String)| {
            let x = across(self.x.place(*value)?);
            let half = label.chars().count() as f64 * CHARACTER / 2.0 + 3.0;
            let fits = x + half <= taken;
            if fits {
                taken = x - half;
            }
            Some(json!({ "at": round(x), "label": if fits { label } else { "" } }))
        };
        self.x.ticks.iter().rev().filter_map(tick).collect()
    }

    fn line(&self, line: &Line) -> Value {
        let at = |x: f64, y: f64| Some((across(self.x.place(x)?), height(self.y.place(y)?)));
        // Parts of a line between values that have no place.
        let joined = |values: &[(f64, f64)]| {
            let places: Vec<_> = values.iter().map(|(x, y)| at(*x, *y)).collect();
            let parts = places.split(Option::is_none).filter(|part| part.len() > 1);
            parts.map(|part| path(part.iter().copied().flatten())).collect::<Vec<_>>()
        };
        let (mut bounds, mut arrows, mut dots) = (Vec::new(), Vec::new(), Vec::new());
        for dot in line.dots() {
            let Some(x) = self.x.place(dot.x).map(|x| round(across(x))) else { continue };
            if let Some((low, high)) = dot.bounds
                && let (Some(low), Some(high)) = (self.y.position(low), self.y.position(high))
            {
                let [bottom, top] = [low, high].map(|end| round(height(end.clamp(0.0, 1.0))));
                bounds.push(format!("M{x} {bottom}V{top}"));
                // An arrow's head, beyond the scale's end.
                let head = |end: f64, away: f64| format!("M{x} {}l-4 {away}h8z", round(end - away));
                arrows.extend((high > 1.001).then(|| head(top, 6.0)));
                arrows.extend((low < -0.001).then(|| head(bottom, -6.0)));
            }
            if let Some(y) = self.y.place(dot.y) {
                let tip = format!("{}: {} at {}", line.name, figures::number(dot.y), figures::number(dot.x));
                dots.push(json!({ "x": x, "y": round(height(y)), "tip": tip }));
            }
        }
        // Joined seconds of many rounds have no marks, which would hide them.
        let is_marked = line.runs.len() == 1 || line.runs.iter().all(|run| run.len() == 1);
        let runs = line.runs.iter().map(|run| run.iter().map(|dot| (dot.x, dot.y)).collect::<Vec<_>>());
        json!({
            "style": line.style(),
            "mark": line.mark(),
            "curve": joined(&line.curve),
            "bounds": bounds,
            "arrows": arrows,
            "joined": runs.flat_map(|run| joined(&run)).collect::<Vec<_>>(),
            "dots": if is_marked { dots } else { Vec::new() },
        })
    }
}

impl Line {
    pub fn dots(&self) -> impl Iterator<Item = &Dot> {
        self.runs.iter().flatten()
    }

    fn style(&self) -> usize {
        self.arm % MARKS.len()
    }

    fn mark(&self) -> &'static str {
        MARKS[self.style()]
    }
}

fn across(share: f64) -> f64 {
    LEFT + share * (WIDTH - LEFT - RIGHT)
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
