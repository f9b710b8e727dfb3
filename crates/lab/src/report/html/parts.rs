//! Tables and plots of another program's measurements, as a page or as Markdown.

use serde_json::{Value, json};

use super::axis::Axis;
use super::plot::{Dot, Line, Plot};
use crate::record::Interval;
use crate::report::sheets::Sheet;
use crate::report::templates::render;

/// A page of parts.
#[derive(Debug)]
pub struct Page<'a> {
    /// Its heading.
    pub title: &'a str,
    /// Lines below it.
    pub about: Vec<String>,
    /// A table of all parts: its heads and its rows.
    pub summary: (Vec<&'a str>, Vec<Vec<String>>),
    /// The parts.
    pub parts: Vec<Part<'a>>,
    /// The machine's facts.
    pub machine: &'a [(String, String)],
}

/// A line of a plot: its name, and values by number of threads or clients.
pub type Curve<'a> = (&'a str, Vec<(usize, Interval)>);

/// A part: a table with its text and its plot.
#[derive(Debug)]
pub struct Part<'a> {
    /// Its heading.
    pub title: String,
    /// Sentences below it.
    pub text: Vec<String>,
    /// The table's heads.
    pub heads: Vec<String>,
    /// For each row of the table, a cell for each head.
    pub rows: Vec<Vec<String>>,
    /// The labels of the plot's axes.
    pub axes: (&'static str, &'static str),
    /// The plot's lines; without any there is no plot.
    pub lines: Vec<Curve<'a>>,
}

impl Page<'_> {
    /// A self-contained page with plots.
    pub fn html(&self) -> String {
        render("sheets.html", self.values(None))
    }

    /// Markdown with the tables that code hosts render. With the plots' folder, as the page names
    /// it, each part shows its [picture](Page::pictures). The label of its axis is the
    /// picture's text, which keeps the line short.
    pub fn markdown(&self, plots: Option<&str>) -> String {
        render("sheets.md", self.values(plots))
    }

    /// The plots as separate files: a name that ends in `.svg`, and the text.
    pub fn pictures(&self) -> impl Iterator<Item = (String, String)> {
        let drawn = self.parts.iter().filter(|part| part.is_drawn());
        drawn.map(|part| (part.file(), part.plot().picture(&format!("{}: {}", part.title, part.axes.1))))
    }

    fn values(&self, plots: Option<&str>) -> Value {
        let (heads, rows) = &self.summary;
        json!({
            "title": self.title,
            "about": self.about,
            "summary": Sheet::new("All rows", heads, rows.clone()),
            "parts": self.parts.iter().map(|part| part.values(plots)).collect::<Vec<_>>(),
            "machine": self.machine,
        })
    }
}

impl Part<'_> {
    fn values(&self, plots: Option<&str>) -> Value {
        let heads: Vec<&str> = self.heads.iter().map(String::as_str).collect();
        let drawn = self.is_drawn().then(|| self.plot());
        json!({
            "id": self.id(),
            "title": self.title,
            "text": self.text,
            "sheet": Sheet::new(&self.title, &heads, self.rows.clone()),
            "plots": drawn.as_ref().map(|plot| json!({
                "class": "plots",
                "legend": plot.legend(),
                "figures": [plot.figure()],
            })),
            "axis": self.axes.1,
            "picture": drawn.and(plots).map(|folder| format!("{folder}/{}", self.file())),
        })
    }

    /// Whether it has a plot with any number.
    fn is_drawn(&self) -> bool {
        !self.lines.is_empty() && self.plot().is_seen()
    }

    /// The heading as one word.
    fn id(&self) -> String {
        let letter = |one: char| if one.is_alphanumeric() { one } else { '-' };
        self.title.chars().map(letter).collect::<String>().replace("--", "-")
    }

    /// The name of its picture.
    fn file(&self) -> String {
        format!("{}.svg", self.id())
    }

    fn plot(&self) -> Plot {
        let dot =
            |(x, of): &(usize, Interval)| Dot { x: *x as f64, y: of.value, bounds: Some((of.low, of.high)) };
        let line = |(arm, (name, values)): (usize, &Curve<'_>)| Line {
            arm,
            name: (*name).to_owned(),
            runs: vec![values.iter().map(dot).collect()],
            curve: Vec::new(),
        };
        let mut threads: Vec<usize> =
            self.lines.iter().flat_map(|(_, values)| values.iter().map(|(threads, _)| *threads)).collect();
        threads.sort_unstable();
        threads.dedup();
        let values = self.lines.iter().flat_map(|(_, values)| values.iter().map(|(_, of)| of.value));
        Plot {
            caption: self.title.clone(),
            names: self.axes,
            x: Axis::clients(&threads),
            y: Axis::logarithmic(values),
            lines: self.lines.iter().enumerate().map(line).collect(),
        }
    }
}
