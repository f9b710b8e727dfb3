//! The stored form: JSON with a version; a program of another version refuses it.

use super::{Report, VERSION};

impl Report {
    /// The stored form.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).expect("a report has text keys only");
        text.push('\n');
        text
    }

    /// Reads the output of [`Report::to_json`]. The error is a line for the user who named the
    /// file: the fault and the remedy.
    pub fn from_json(text: &str) -> Result<Self, String> {
        /// The part that all versions share.
        #[derive(serde::Deserialize)]
        struct Versioned {
            version: u32,
        }
        let none = |error| format!("this is no stored run of allcore bench: {error}");
        let Versioned { version } = serde_json::from_str(text).map_err(none)?;
        if version != VERSION {
            return Err(format!(
                "this run was stored in version {version}, and this program reads version {VERSION}: \
                 use the one that wrote it, or measure again"
            ));
        }
        serde_json::from_str(text).map_err(|error| format!("this stored run is damaged: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::samples;

    #[test]
    fn other_versions_and_damaged_runs_are_refused_by_a_plain_line() {
        let text = samples::two_arms().to_json();
        assert!(text.contains("\"unstarted\": 0,"), "a count that is known is a plain number");
        let other = text.replacen(&format!("\"version\": {VERSION}"), "\"version\": 4711", 1);
        let refused = Report::from_json(&other).unwrap_err();
        assert!(refused.contains("version 4711") && refused.contains("measure again"), "{refused}");
        let cut = Report::from_json(&text[..text.len() / 2]).unwrap_err();
        assert!(cut.starts_with("this is no stored run"), "{cut}");
        let hollow = Report::from_json(&format!("{{\"version\": {VERSION}}}")).unwrap_err();
        assert!(hollow.starts_with("this stored run is damaged: missing field"), "{hollow}");
        assert!(!hollow.contains('\n') && !refused.contains('\n') && !cut.contains('\n'));
    }
}
