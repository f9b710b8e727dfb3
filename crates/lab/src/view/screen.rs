//! The live view: drawn on the terminal's other screen, so that what stood there before is there again afterwards.

use std::io::{self, Stderr, Write, stderr};
use std::panic;
use std::sync::Once;
use std::time::Duration;

use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen};
use ratatui::layout::{Constraint, Layout};
use ratatui::prelude::{CrosstermBackend, Line, Rect, Stylize, Terminal};
use ratatui::widgets::{Gauge, Paragraph, RenderDirection, Row, Sparkline, Table};
use ratatui::{Frame, style::Style};
use sync::atomic::{AtomicBool, Ordering};

use super::state::{State, clock};
use crate::figures;
use crate::record::{Point, Round};
use crate::sweep::{Progress, Stage};

/// Whether the other screen is shown, so that it is left once, whoever notices first.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// The live view.
#[derive(Debug)]
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stderr>>,
    state: State,
    /// All notes, to be left on the terminal's own screen.
    notes: Vec<String>,
}

impl Screen {
    /// Goes to the terminal's other screen.
    pub(super) fn new() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        // A panic's text belongs on the terminal's own screen.
        HOOK.call_once(|| {
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                restore();
                usual(panic);
            }));
        });
        let terminal = Terminal::new(CrosstermBackend::new(stderr()))?;
        // SeqCst: once for a run.
        SHOWN.store(true, Ordering::SeqCst);
        let entered = execute!(stderr(), EnterAlternateScreen, Hide);
        let screen = Self { terminal, state: State::default(), notes: Vec::new() };
        entered.map(|()| screen)
    }

    fn draw(&mut self) {
        // SeqCst: as above. After a panic elsewhere nothing more is drawn.
        if SHOWN.load(Ordering::SeqCst) {
            let _ = self.terminal.draw(|frame| draw(frame, &self.state));
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
        for note in &self.notes {
            let _ = writeln!(stderr(), "{note}");
        }
    }
}

/// Back to the terminal's own screen, if that isn't shown.
pub(crate) fn restore() {
    // SeqCst: as above.
    if SHOWN.swap(false, Ordering::SeqCst) {
        let _ = execute!(stderr(), Show, LeaveAlternateScreen);
    }
}

impl Progress for Screen {
    fn begin(&mut self, stage: &Stage) {
        self.state.begin(stage);
        self.draw();
    }

    fn tick(&mut self, done: u64, spent: Duration, since: Duration) {
        self.state.tick(done, spent, since);
        self.draw();
    }

    fn end(&mut self, round: &Round, point: &Point) {
        self.state.end(round, point);
        self.draw();
    }

    fn note(&mut self, line: &str) {
        self.notes.push(figures::plain(line));
        self.state.note(line);
        self.draw();
    }
}

/// All of it. Where there is little room, the points go first.
fn draw(frame: &mut Frame<'_>, state: &State) {
    let notes = state.notes.len() as u16;
    let parts = [
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Length(4),
        Constraint::Length(2),
        Constraint::Length(notes),
        Constraint::Min(0),
    ];
    let [head, bar, spark, latency, note, points] = Layout::vertical(parts).areas(frame.area());
    let Some(stage) = &state.stage else {
        frame.render_widget(Paragraph::new("allcore bench: getting ready"), head);
        return;
    };
    let what = format!("{}, {}", figures::plain(&stage.workload), stage.protocol.name());
    let where_ = format!("  {} at {}", figures::plain(&stage.arm), figures::clients(stage.clients));
    let tps = format!("  {} tps", state.tps.map_or(figures::NONE.into(), figures::number));
    let line = Line::from_iter([what.into(), where_.bold(), tps.bold()]);
    let since = format!("pass {}, since {}", stage.pass + 1, clock(state.since));
    frame.render_widget(Paragraph::new(vec![line, since.dim().into()]), head);
    rounds(frame, state, stage, bar);
    // The newest sample stands at the right.
    let data: Vec<u64> = state.samples.iter().rev().copied().collect();
    frame.render_widget(Sparkline::default().data(data).direction(RenderDirection::RightToLeft), spark);
    let now = state.latency.map(|mean| format!("latency now: mean {} ms", figures::number(mean)));
    let before = state.last_latency.as_ref().map(|last| {
        let [p50, p95, p99] = [last.p50, last.p95, last.p99].map(figures::number);
        format!("the round before: p50 {p50}  p95 {p95}  p99 {p99} ms")
    });
    let text: Vec<String> = now.into_iter().chain(before).collect();
    frame.render_widget(Paragraph::new(text.join("; ")), latency);
    let lines: Vec<Line<'_>> = state.notes.iter().map(|line| line.as_str().yellow().into()).collect();
    frame.render_widget(Paragraph::new(lines), note);
    table(frame, state, points);
}

fn rounds(frame: &mut Frame<'_>, state: &State, stage: &Stage, area: Rect) {
    let all = stage.rounds_done + 1 + stage.rounds_ahead;
    let left = state.left().map_or(String::new(), |left| format!(", {} left", clock(left)));
    let label = format!("round {} of {all}{left}", stage.rounds_done + 1);
    let gauge = Gauge::default().ratio(state.progress()).label(label);
    frame.render_widget(gauge.use_unicode(true), area);
}

/// The newest points, as many as there is room for.
fn table(frame: &mut Frame<'_>, state: &State, area: Rect) {
    let room = usize::from(area.height).saturating_sub(1);
    let rows = state.points.iter().rev().take(room).map(|row| {
        let cells = [
            row.arm.clone(),
            row.workload.clone(),
            row.clients.to_string(),
            row.tps.clone(),
            row.spread.clone(),
            row.p99.clone(),
            row.rounds.to_string(),
        ];
        Row::new(cells)
    });
    let widths = [
        Constraint::Fill(2),
        Constraint::Fill(2),
        Constraint::Length(7),
        Constraint::Length(9),
        Constraint::Length(7),
        Constraint::Length(8),
        Constraint::Length(6),
    ];
    let heads = ["arm", "workload", "clients", "tps", "±", "p99, ms", "rounds"];
    let table = Table::new(rows, widths).header(Row::new(heads).style(Style::new().dim()));
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use ratatui::backend::TestBackend;

    use super::*;
    use crate::report::samples;
    use crate::view::state::tests::stage;

    fn drawn(state: &State, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, state)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn the_view_shows_the_round_its_throughput_and_the_points() {
        let report = samples::two_arms();
        let mut state = State::default();
        assert!(drawn(&state, 80, 20).contains("getting ready"));
        for (at, point) in report.points.iter().enumerate().take(6) {
            state.begin(&stage(point, at));
            for tick in 1..=40u32 {
                let done = (point.tps.value * f64::from(tick) / 4.0 * (1.0 + f64::from(tick) / 50.0)) as u64;
                let spent = point.latency().mean * 1e-3 * done as f64;
                state.tick(
                    done,
                    Duration::from_secs_f64(spent),
                    Duration::from_millis(250 * u64::from(tick)),
                );
            }
            state.end(&point.rounds[0], point);
        }
        state.note("the machine drifts: the fixed loop takes 4% longer than at the beginning");
        // Of the next round two seconds.
        let next = &report.points[6];
        state.begin(&stage(next, 6));
        for tick in 1..=8u32 {
            let done = (next.tps.value * f64::from(tick) / 4.0) as u64;
            let spent = Duration::from_secs_f64(0.001 * done as f64);
            state.tick(done, spent, Duration::from_millis(250 * u64::from(tick)));
        }
        insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
            insta::assert_snapshot!("view", drawn(&state, 80, 20));
        });
    }

    #[test]
    fn no_size_is_too_small() {
        let report = samples::six_arms();
        let mut state = State::default();
        state.begin(&stage(&report.points[4], 0));
        state.tick(u64::MAX, Duration::MAX, Duration::from_nanos(1));
        state.end(&report.points[4].rounds[0], &report.points[4]);
        for (width, height) in [(1, 1), (3, 2), (20, 5), (300, 100)] {
            drawn(&state, width, height);
        }
    }

    /// Not a test of its own: what the next one runs on a terminal.
    #[test]
    #[ignore = "run on a terminal by the_terminal_is_as_it_was_after_the_end_and_after_a_panic"]
    fn on_a_terminal() {
        let report = samples::two_arms();
        let mut screen = Screen::new().unwrap();
        screen.begin(&stage(&report.points[0], 0));
        screen.note("a note that stays");
        if std::env::var_os("LAB_VIEW_PANICS").is_some() {
            panic!("in the middle");
        }
    }

    #[test]
    fn the_terminal_is_as_it_was_after_the_end_and_after_a_panic() {
        let test = "view::screen::tests::on_a_terminal";
        let program = std::env::current_exe().unwrap();
        let line = format!("'{}' --exact {test} --ignored --nocapture", program.display());
        for panics in [false, true] {
            let mut command = Command::new("script");
            command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color").stdin(Stdio::null());
            if panics {
                command.env("LAB_VIEW_PANICS", "1");
            }
            let Ok(output) = command.output() else {
                crate::tests::skip("there is no script(1) here, which gives a program a terminal");
                return;
            };
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(output.status.success(), !panics, "{text}");
            let entered = text.find("\u{1b}[?1049h").expect("the other screen is entered");
            let left = text.rfind("\u{1b}[?1049l").expect("the other screen is left");
            assert!(entered < left && text.matches("\u{1b}[?1049l").count() == 1, "{text}");
            assert!(
                text.rfind("\u{1b}[?25h") > text.rfind("\u{1b}[?25l"),
                "the cursor is shown again: {text}"
            );
            assert!(text[left..].contains("a note that stays"), "{text}");
            assert!(!panics || text[left..].contains("in the middle"), "the panic is to be read: {text}");
        }
    }
}
