//! One frame as plain text, for scripts.

use std::io::{self, Write};
use std::thread;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::clean;
use crate::connect::Connection;
use crate::draw::{self, View};
use crate::figures;
use crate::options::Options;
use crate::source::Source;
use crate::state::State;

/// Columns of the text. Longer lines are cut.
const WIDTH: u16 = 200;
/// Rows for the figures; each session has one more.
const HEIGHT: u16 = 64;

/// Looks at the server twice, an interval apart, and prints the frame.
pub(crate) fn run(connection: Connection, options: &Options) -> Result<(), String> {
    let place = format!("{}  {}", connection.place, clean::line(&options.user));
    let mut source = Source::start(connection)?;
    let before = source.look()?;
    thread::sleep(options.interval);
    let after = source.look()?;
    let figures = figures::between(&before, &after);
    let view = View {
        place: &place,
        interval: options.interval,
        sample: &after,
        figures: figures.as_ref(),
        trouble: None,
        state: &State::default(),
        is_live: false,
    };
    match io::stdout().write_all(text(&view, WIDTH).as_bytes()) {
        // A reader that has seen enough, such as head.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| format!("cannot write to standard output: {error}")),
    }
}

/// A frame of all sessions, without blanks at the ends of lines and empty lines at the end.
pub(crate) fn text(view: &View<'_>, width: u16) -> String {
    let sessions = u16::try_from(view.sample.sessions.len()).unwrap_or(u16::MAX);
    let area = Rect::new(0, 0, width, HEIGHT.saturating_add(sessions));
    let mut buffer = Buffer::empty(area);
    draw::draw(view, area, &mut buffer);
    let lines: Vec<String> = buffer.content.chunks(usize::from(width)).map(line).collect();
    format!("{}\n", lines.join("\n").trim_end())
}

/// The symbols of a row. A wide symbol hides the cells behind it.
fn line(cells: &[ratatui::buffer::Cell]) -> String {
    let mut text = String::new();
    let mut hidden = 0;
    for cell in cells {
        if hidden == 0 {
            text.push_str(cell.symbol());
            hidden = ratatui::text::Span::raw(cell.symbol()).width().max(1);
        }
        hidden -= 1;
    }
    text.trim_end().to_owned()
}
