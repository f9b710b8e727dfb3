//! One session in full.

use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget, Wrap};

use super::{Area, View};

/// Fills what is free with the session that the user has opened.
pub(super) fn draw(view: &View<'_>, place: &mut Area<'_>) {
    let Some(pid) = view.state.open else { return };
    place.line(&Line::styled(format!(" session {pid}"), Style::new().add_modifier(Modifier::BOLD)));
    // The newest sample may be older than the choice.
    let Some(details) = view.sample.open.as_ref().filter(|details| details.pid == pid) else { return };
    if details.fields.is_empty() {
        return place.line(&Line::raw(" it has ended"));
    }
    let fields = details.fields.iter().map(|(name, value)| Line::raw(format!(" {name:14}{value}")));
    let text = details.query.lines().map(|line| Line::raw(format!(" {line}")));
    let lines: Vec<Line<'_>> = fields.chain([Line::default()]).chain(text).collect();
    let paragraph = Paragraph::new(lines).wrap(Wrap { trim: false });
    paragraph.scroll((view.state.scroll, 0)).render(place.left, place.buffer);
}
