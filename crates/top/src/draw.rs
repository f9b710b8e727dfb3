//! Samples, figures and state make a frame.
//!
//! A frame fits any size. Lines of figures come first, the sessions take the rest, and the keys
//! have the last line. A low terminal has fewer lines of figures. Cores and locks one by one, and
//! waits, need more than [`LOW`] rows.

mod details;
mod figures;

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use crate::figures::Figures;
use crate::numbers;
use crate::sample::{Sample, Session};
use crate::state::{SessionOrder, State};

/// Rows of a terminal that has no room for lines beyond the totals.
const LOW: u16 = 16;
/// Rows that the list of sessions has at least, with its heading, unless the terminal is lower.
const LIST: u16 = 3;
const KEYS: &str = " q quit  up/down choose  enter open  s sort sessions  l sort locks  c counters";
const KEYS_OPEN: &str = " q quit  esc back  up/down scroll";

/// All that a frame shows.
#[derive(Debug)]
pub(crate) struct View<'a> {
    /// The server and the user.
    pub(crate) place: &'a str,
    pub(crate) interval: Duration,
    pub(crate) sample: &'a Sample,
    /// None before the second sample.
    pub(crate) figures: Option<&'a Figures>,
    /// The reason for which there is no newer sample.
    pub(crate) trouble: Option<&'a str>,
    pub(crate) state: &'a State,
    /// Whether a user is there to press keys and to choose.
    pub(crate) is_live: bool,
}

/// Draws a frame into an area of a buffer.
pub(crate) fn draw(view: &View<'_>, area: Rect, buffer: &mut Buffer) {
    let mut place = Area { left: area, buffer };
    place.line(&heading(view).style(Style::new().add_modifier(Modifier::REVERSED)));
    if let Some(trouble) = view.trouble {
        place.line(&Line::styled(format!(" {trouble}"), Style::new().add_modifier(Modifier::BOLD)));
    }
    if view.is_live && place.left.height > 1 {
        let keys = if view.state.open.is_some() { KEYS_OPEN } else { KEYS };
        place.last(&Line::styled(keys, Style::new().add_modifier(Modifier::DIM)));
    }
    if view.state.open.is_some() {
        place.line(&figures::throughput(view));
        return details::draw(view, &mut place);
    }
    let height = place.left.height;
    let room = height.saturating_sub(if height > 2 * LIST { LIST } else { 0 });
    for line in figures::lines(view, area).into_iter().take(usize::from(room)) {
        place.line(&line);
    }
    list(view, &mut place);
}

fn heading<'a>(view: &View<'_>) -> Line<'a> {
    Line::raw(format!(" allcore top  {}  every {}", view.place, numbers::time(view.interval.as_secs_f64())))
}

/// The sessions, with a window around the chosen one.
fn list(view: &View<'_>, place: &mut Area<'_>) {
    let Some(rows) = place.left.height.checked_sub(1).map(usize::from) else { return };
    let mark = |order, name: &str| {
        if view.state.sessions == order { format!("{name}*") } else { name.to_owned() }
    };
    let heading = row([
        &mark(SessionOrder::Pid, "pid"),
        "user",
        "database",
        "state",
        &mark(SessionOrder::Wait, "wait event"),
        &mark(SessionOrder::Statement, "statement"),
        &mark(SessionOrder::Transaction, "transaction"),
        "text",
    ]);
    place.line(&Line::styled(heading, Style::new().add_modifier(Modifier::UNDERLINED)));
    let sessions = view.state.sorted(&view.sample.sessions);
    let chosen = view.state.place_in(&sessions).filter(|_| view.is_live);
    let first = chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(rows));
    for (at, session) in sessions.iter().enumerate().skip(first).take(rows) {
        let style = match Some(at) == chosen {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        place.line(&Line::from(Span::raw(listed(session))).style(style));
    }
}

fn listed(session: &Session) -> String {
    let age = |age: Option<f64>| age.map(numbers::time).unwrap_or_default();
    row([
        &session.pid.to_string(),
        &session.user,
        &session.database,
        &session.state,
        session.wait.as_deref().unwrap_or_default(),
        &age(session.statement),
        &age(session.transaction),
        &session.query,
    ])
}

/// The columns of the list. A name that is too long is cut, so that the others stay in place.
fn row(columns: [&str; 8]) -> String {
    const WIDTHS: [usize; 7] = [8, 10, 10, 12, 20, 10, 12];
    let mut text = String::new();
    for (column, width) in columns.iter().zip(WIDTHS) {
        text.push(' ');
        text.push_str(&cut(column, width));
    }
    text.push(' ');
    text.push_str(columns[7]);
    text
}

/// A text of exactly so many cells of the terminal.
fn cut(text: &str, width: usize) -> String {
    let mut shown = String::new();
    let mut cells = 0;
    for sign in text.chars() {
        let next = Span::raw(sign.to_string()).width();
        if cells + next > width {
            break;
        }
        shown.push(sign);
        cells += next;
    }
    shown.extend(std::iter::repeat_n(' ', width - cells));
    shown
}

/// The rows of the frame that are still free.
struct Area<'b> {
    left: Rect,
    buffer: &'b mut Buffer,
}

impl Area<'_> {
    /// Draws on the first free row, in its whole width. Does nothing where no row is free.
    fn line(&mut self, line: &Line<'_>) {
        if let Some(row) = self.left.rows().next() {
            self.put(row, line);
            self.left.y += 1;
            self.left.height -= 1;
        }
    }

    /// Draws on the last free row.
    fn last(&mut self, line: &Line<'_>) {
        if let Some(row) = self.left.rows().next_back() {
            self.put(row, line);
            self.left.height -= 1;
        }
    }

    fn put(&mut self, row: Rect, line: &Line<'_>) {
        self.buffer.set_style(row, line.style);
        self.buffer.set_line(row.x, row.y, line, row.width);
    }
}
