//! How a session takes over a reload of the server's settings.

use std::sync::Arc;

use super::known::{KNOWN, Kind, position, spelled};
use super::{SettingsTable, Source, characteristics};
use crate::shared::read_only::ReadOnlySettings;

impl SettingsTable {
    /// Takes over the server's present settings. A value from the client's startup packet or a SET
    /// stays; RESET after a SET gives the new one. The caller has checked the values.
    pub fn reload(&mut self, settings: &[(String, String)], read_only: Arc<ReadOnlySettings>) {
        self.read_only = read_only;
        let mut wanted: Vec<String> = KNOWN.iter().map(|known| known.default_for(&self.user)).collect();
        for (name, value) in settings {
            if let Some(at) = position(name) {
                wanted[at].clone_from(value);
            }
        }
        for (at, value) in wanted.into_iter().enumerate() {
            let known = &KNOWN[at];
            if matches!(known.kind, Kind::Fixed | Kind::ReadOnly(_))
                || characteristics::SETTINGS.contains(&known.name)
                || self.texts.initial_sources[at] != Source::Server
            {
                continue;
            }
            if self.texts.sources[at] == Source::Session {
                self.texts_mut().initial[at] = spelled(known, &value).unwrap_or(value);
            } else if let Ok(proper) = self.apply(at, &value) {
                self.texts_mut().initial[at].clone_from(&proper);
                self.put(at, proper);
            }
        }
    }
}
