//! The user's choices, and how keys change them.

use std::cmp::Ordering;

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use crate::sample::{Lock, Session, Wanted};

/// The order of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SessionOrder {
    /// The longest statement first.
    #[default]
    Statement,
    /// The longest transaction first.
    Transaction,
    /// By wait event; those that wait for nothing last.
    Wait,
    /// By number.
    Pid,
}

/// The order of locks; the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LockOrder {
    #[default]
    Wait,
    Hold,
    Count,
}

/// The wish of a key beyond a change of the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// Look at the server now.
    Look,
    Quit,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct State {
    pub(crate) sessions: SessionOrder,
    pub(crate) locks: LockOrder,
    /// The chosen session, and its place when it was last there.
    pub(crate) chosen: Option<i32>,
    place: usize,
    /// The session whose details fill the screen.
    pub(crate) open: Option<i32>,
    /// First line of the details on the screen.
    pub(crate) scroll: u16,
    /// Whether hardware counters are read and shown.
    pub(crate) counters: bool,
}

impl State {
    /// Takes a key. `sessions` are those on the screen, in their order.
    pub(crate) fn press(&mut self, key: KeyEvent, sessions: &[&Session]) -> Effect {
        if key.kind == KeyEventKind::Release {
            return Effect::Nothing;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Effect::Quit } else { Effect::Nothing };
        }
        match key.code {
            KeyCode::Char('q') => return Effect::Quit,
            KeyCode::Up | KeyCode::Char('k') => self.step(-1, sessions),
            KeyCode::Down | KeyCode::Char('j') => self.step(1, sessions),
            KeyCode::PageUp => self.step(-10, sessions),
            KeyCode::PageDown => self.step(10, sessions),
            KeyCode::Esc | KeyCode::Backspace | KeyCode::Left => self.open = None,
            KeyCode::Enter | KeyCode::Right if self.open.is_none() => {
                let chosen = self.place_in(sessions).map(|place| sessions[place].pid);
                if chosen.is_some() {
                    (self.open, self.scroll) = (chosen, 0);
                    return Effect::Look;
                }
            }
            KeyCode::Char('c') if self.open.is_none() => {
                self.counters = !self.counters;
                if self.counters {
                    return Effect::Look;
                }
            }
            KeyCode::Char('s') => {
                self.sessions = match self.sessions {
                    SessionOrder::Statement => SessionOrder::Transaction,
                    SessionOrder::Transaction => SessionOrder::Wait,
                    SessionOrder::Wait => SessionOrder::Pid,
                    SessionOrder::Pid => SessionOrder::Statement,
                }
            }
            KeyCode::Char('l') => {
                self.locks = match self.locks {
                    LockOrder::Wait => LockOrder::Hold,
                    LockOrder::Hold => LockOrder::Count,
                    LockOrder::Count => LockOrder::Wait,
                }
            }
            _ => {}
        }
        Effect::Nothing
    }

    /// The parts of the next look that the user has asked for.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted { open: self.open, counters: self.counters }
    }

    /// The place of the chosen session. If it has ended, the session in its place is next.
    pub(crate) fn place_in(&self, sessions: &[&Session]) -> Option<usize> {
        let last = sessions.len().checked_sub(1)?;
        let found = sessions.iter().position(|session| Some(session.pid) == self.chosen);
        Some(found.unwrap_or(self.place.min(last)))
    }

    fn step(&mut self, by: i32, sessions: &[&Session]) {
        if self.open.is_some() {
            self.scroll = self.scroll.saturating_add_signed(by as i16);
        } else if let Some(place) = self.place_in(sessions) {
            let steps = by.unsigned_abs() as usize;
            let moved = if by < 0 { place.saturating_sub(steps) } else { place + steps };
            self.place = moved.min(sessions.len() - 1);
            self.chosen = Some(sessions[self.place].pid);
        }
    }

    /// Sessions in the chosen order.
    pub(crate) fn sorted<'s>(&self, sessions: &'s [Session]) -> Vec<&'s Session> {
        let mut sorted: Vec<&Session> = sessions.iter().collect();
        let longest = |a: Option<f64>, b: Option<f64>| {
            b.unwrap_or(-1.0).partial_cmp(&a.unwrap_or(-1.0)).unwrap_or(Ordering::Equal)
        };
        let is_idle = |session: &Session| session.state == "idle";
        sorted.sort_by(|a, b| {
            let order = match self.sessions {
                SessionOrder::Statement => longest(a.statement, b.statement),
                SessionOrder::Transaction => longest(a.transaction, b.transaction),
                // An idle session waits for its client. That says nothing.
                SessionOrder::Wait => {
                    (is_idle(a), a.wait.is_none(), &a.wait).cmp(&(is_idle(b), b.wait.is_none(), &b.wait))
                }
                SessionOrder::Pid => Ordering::Equal,
            };
            order.then(a.pid.cmp(&b.pid))
        });
        sorted
    }

    /// Locks in the chosen order.
    pub(crate) fn hottest<'l>(&self, locks: &'l [Lock]) -> Vec<&'l Lock> {
        let figure = |lock: &Lock| match self.locks {
            LockOrder::Wait => lock.wait,
            LockOrder::Hold => lock.hold,
            LockOrder::Count => lock.count,
        };
        let mut sorted: Vec<&Lock> = locks.iter().collect();
        sorted.sort_by(|a, b| figure(b).total_cmp(&figure(a)).then_with(|| a.name.cmp(&b.name)));
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(pid: i32, statement: Option<f64>, wait: Option<&str>) -> Session {
        Session { pid, statement, wait: wait.map(str::to_owned), ..Session::default() }
    }

    fn press(state: &mut State, code: KeyCode, sessions: &[Session]) -> Effect {
        let sorted = state.sorted(sessions);
        state.press(KeyEvent::from(code), &sorted)
    }

    #[test]
    fn a_choice_stays_with_its_session_and_passes_to_its_place_when_that_ends() {
        let mut state = State::default();
        let all = [session(1, Some(3.0), None), session(2, Some(2.0), None), session(3, Some(1.0), None)];
        press(&mut state, KeyCode::Down, &all);
        assert_eq!(state.chosen, Some(2));
        assert_eq!(state.place_in(&state.sorted(&all[1..])), Some(0));
        // Session 2 has ended: its place is that of session 3, and then the last one.
        let rest = [all[0].clone(), all[2].clone()];
        assert_eq!(state.place_in(&state.sorted(&rest)), Some(1));
        assert_eq!(state.place_in(&state.sorted(&all[..1])), Some(0));
        assert_eq!(state.place_in(&[]), None);
        assert_eq!(press(&mut state, KeyCode::Enter, &[]), Effect::Nothing);
        press(&mut state, KeyCode::PageUp, &all);
        assert_eq!(state.chosen, Some(1));
        press(&mut state, KeyCode::PageDown, &all);
        assert_eq!(state.chosen, Some(3));
    }

    #[test]
    fn a_session_opens_scrolls_and_closes() {
        let mut state = State::default();
        let all = [session(5, Some(3.0), None)];
        assert_eq!(press(&mut state, KeyCode::Enter, &all), Effect::Look);
        assert_eq!(state.open, Some(5));
        press(&mut state, KeyCode::Down, &all);
        press(&mut state, KeyCode::PageUp, &all);
        assert_eq!(state.scroll, 0);
        press(&mut state, KeyCode::Esc, &all);
        assert_eq!(state.open, None);
        assert_eq!(press(&mut state, KeyCode::Char('q'), &all), Effect::Quit);
        let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(state.press(interrupt, &[]), Effect::Quit);
    }

    #[test]
    fn a_key_asks_for_the_counters_and_takes_them_away() {
        let mut state = State::default();
        assert!(!state.wanted().counters);
        assert_eq!(press(&mut state, KeyCode::Char('c'), &[]), Effect::Look);
        assert!(state.wanted().counters);
        // The keys of an open session do not name it.
        state.open = Some(5);
        assert_eq!(press(&mut state, KeyCode::Char('c'), &[]), Effect::Nothing);
        assert_eq!(state.wanted(), Wanted { open: Some(5), counters: true });
        state.open = None;
        assert_eq!(press(&mut state, KeyCode::Char('c'), &[]), Effect::Nothing);
        assert!(!state.wanted().counters);
    }

    #[test]
    fn each_order_has_its_first_session() {
        let mut state = State::default();
        let mut all =
            [session(3, Some(1.0), None), session(2, Some(9.0), Some("Lock/tuple")), session(1, None, None)];
        all[2].transaction = Some(50.0);
        let mut first = || {
            let first = state.sorted(&all)[0].pid;
            press(&mut state, KeyCode::Char('s'), &all);
            first
        };
        assert_eq!([first(), first(), first(), first(), first()], [2, 1, 2, 1, 2]);
    }
}
