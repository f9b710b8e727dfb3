//! The terminal, and the loop that joins keys, samples and frames.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{self, Clear, ClearType, EnterAlternateScreen};
use ratatui::layout::{Rect, Size};
use ratatui::{DefaultTerminal, TerminalOptions, Viewport};

use crate::connect::Connection;
use crate::draw::{self, View};
use crate::figures::{self, Figures};
use crate::numbers;
use crate::options::Options;
use crate::sample::Sample;
use crate::source::{Answer, Source};
use crate::state::{Effect, State};

/// The longest time for which an answer or a signal may wait for the screen.
const TICK: Duration = Duration::from_millis(50);
/// The largest part of a terminal that is drawn, its upper left. The cells of this frame and of the
/// one before take some 40 MB then. A terminal can say that it has 4,294,836,225 cells.
const LARGEST: Size = Size::new(1000, 500);
/// The size of a terminal that does not know its own, as a serial line.
const USUAL: Size = Size::new(80, 24);
/// A look that takes longer is trouble.
const SLOW: Duration = Duration::from_secs(3);

/// Shows the server until the user quits or `end` is set.
pub(crate) fn run(connection: Connection, options: &Options, end: &AtomicBool) -> Result<(), String> {
    let mut screen = Screen {
        place: format!("{}  {}", connection.place, crate::clean::line(&options.user)),
        interval: options.interval,
        source: Source::start(connection)?,
        sample: Sample::default(),
        figures: None,
        trouble: None,
        state: State::default(),
    };
    let mut terminal = Terminal::open()?;
    screen.show(&mut terminal, end)
}

/// Puts the terminal back when dropped. A panic's message comes before the drop, so the library's
/// panic hook puts it back earlier.
struct Terminal {
    inner: DefaultTerminal,
    /// The terminal's size at the last frame. Another one may have moved what the terminal shows.
    size: Size,
}

impl Terminal {
    fn open() -> Result<Self, String> {
        let open = || {
            let size = terminal::size()?.into();
            let inner = ratatui::try_init_with_options(options(size))?;
            execute!(io::stdout(), EnterAlternateScreen)?;
            io::Result::Ok(Self { inner, size })
        };
        open().map_err(|error| {
            let _ = ratatui::try_restore();
            format!("cannot use the terminal: {error}; --once needs none")
        })
    }

    /// Draws a frame in the terminal's present size.
    fn draw(&mut self, frame: impl FnOnce(&mut ratatui::Frame<'_>)) -> io::Result<()> {
        let size = self.inner.size()?;
        if size != self.size {
            // The library would clear a part of the terminal cell by cell.
            self.inner = ratatui::Terminal::with_options(CrosstermBackend::new(io::stdout()), options(size))?;
            self.size = size;
            execute!(io::stdout(), Clear(ClearType::All))?;
        }
        self.inner.draw(frame).map(drop)
    }
}

fn options(size: Size) -> TerminalOptions {
    TerminalOptions { viewport: Viewport::Fixed(drawn(size)) }
}

/// The part of a terminal of this size that is drawn.
fn drawn(size: Size) -> Rect {
    let side = |cells: u16, usual: u16, most: u16| if cells == 0 { usual } else { cells.min(most) };
    let width = side(size.width, USUAL.width, LARGEST.width);
    Rect::new(0, 0, width, side(size.height, USUAL.height, LARGEST.height))
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.inner.show_cursor();
            let _ = ratatui::try_restore();
        }
    }
}

struct Screen {
    place: String,
    interval: Duration,
    source: Source,
    /// The newest sample.
    sample: Sample,
    figures: Option<Figures>,
    trouble: Option<String>,
    state: State,
}

impl Screen {
    fn show(&mut self, terminal: &mut Terminal, end: &AtomicBool) -> Result<(), String> {
        let fault = |error: io::Error| format!("cannot use the terminal: {error}");
        let mut due = Instant::now();
        let mut is_old = true;
        // Relaxed: the flag publishes nothing else.
        while !end.load(Ordering::Relaxed) {
            if let Some(answer) = self.source.answer()? {
                self.take(answer);
                is_old = true;
            }
            if Instant::now() >= due && self.source.asked.is_none() {
                self.source.ask(self.state.wanted());
                due = Instant::now() + self.interval;
            }
            let waits = self.source.asked.map(|asked| asked.elapsed()).filter(|waits| *waits >= SLOW);
            if let Some(waits) = waits {
                let since = numbers::time(waits.as_secs() as f64);
                let late = Some(format!("no answer for {since}"));
                is_old |= late != self.trouble;
                self.trouble = late;
            }
            if is_old {
                terminal.draw(|frame| self.draw(frame)).map_err(fault)?;
                is_old = false;
            }
            if event::poll(TICK).map_err(fault)? {
                // Any other event, such as another size, needs a new frame and nothing else.
                if let Event::Key(key) = event::read().map_err(fault)? {
                    let sessions = self.state.sorted(&self.sample.sessions);
                    match self.state.press(key, &sessions) {
                        Effect::Quit => return Ok(()),
                        Effect::Look => due = Instant::now(),
                        Effect::Nothing => {}
                    }
                }
                is_old = true;
            }
        }
        Ok(())
    }

    fn take(&mut self, answer: Answer) {
        match answer {
            Ok(sample) => {
                // A look because of a key comes early. Rates of so short a time would jump.
                let is_early = sample.at.saturating_sub(self.sample.at) * 2 < self.interval;
                if !is_early || sample.connection != self.sample.connection {
                    self.figures = figures::between(&self.sample, &sample);
                }
                self.sample = sample;
                self.trouble = None;
            }
            Err(why) => self.trouble = Some(format!("{why}; trying again")),
        }
    }

    fn draw(&self, frame: &mut ratatui::Frame<'_>) {
        let view = View {
            place: &self.place,
            interval: self.interval,
            sample: &self.sample,
            figures: self.figures.as_ref(),
            trouble: self.trouble.as_deref(),
            state: &self.state,
            is_live: true,
        };
        draw::draw(&view, frame.area(), frame.buffer_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_of_any_size_has_a_part_that_is_drawn() {
        for (cells, shown) in [
            ((0, 0), (80, 24)),
            ((0, 7), (80, 7)),
            ((1, 1), (1, 1)),
            ((1000, 500), (1000, 500)),
            ((30_000, 30_000), (1000, 500)),
            ((u16::MAX, 1), (1000, 1)),
        ] {
            assert_eq!(drawn(cells.into()), Rect::new(0, 0, shown.0, shown.1), "{cells:?}");
        }
    }
}
