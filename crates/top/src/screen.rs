//! The terminal, and the loop that joins keys, samples and frames.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event};

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
    screen.show(&mut terminal.0, end)
}

/// Puts the terminal back when dropped. A panic's message comes before the drop, so the library's
/// panic hook puts it back earlier.
struct Terminal(DefaultTerminal);

impl Terminal {
    fn open() -> Result<Self, String> {
        ratatui::try_init().map(Self).map_err(|error| {
            let _ = ratatui::try_restore();
            format!("cannot use the terminal: {error}; --once needs none")
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = self.0.show_cursor();
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
    fn show(&mut self, terminal: &mut DefaultTerminal, end: &AtomicBool) -> Result<(), String> {
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
