//! One line of the log, as text or as a JSON object, with the fields that came with it.
//!
//! What must hold:
//!
//! 1. A JSON line is one object, whatever its texts hold.
//! 2. In a text line a field with unusual characters is quoted and escaped, so it cannot begin
//!    another line. The message is written as it is: its author removes control characters.
//! 3. The message and each field are cut at [`LONGEST`] bytes, between two characters.
//! 4. Making a line asks nothing of the session or the core. It may be made on any thread.

use log::kv::{Error, Key, Value, VisitSource};
use log::{Level, Record};
use std::fmt::Write;

/// Bytes of the longest message; a longer one is cut.
pub const LONGEST: usize = 16 * 1024;

/// The line of a record; `wall` is in microseconds since 1970.
pub fn of(record: &Record<'_>, wall: i64, json: bool) -> String {
    let message = record.args().to_string();
    let mut line = begin(record.level(), cut(&message), wall, json);
    let mut fields = Fields { line: &mut line, json, any: false };
    // This visitor never fails.
    let _ = record.key_values().visit(&mut fields);
    let any = fields.any;
    line.push_str(match (json, any) {
        (true, _) => "}\n",
        (false, true) => ")\n",
        (false, false) => "\n",
    });
    line
}

/// The line with the number of dropped lines.
pub fn dropped(count: u64, wall: i64, json: bool) -> String {
    let message = format!("{count} lines of the log are lost: they came faster than they were read");
    let mut line = begin(Level::Warn, &message, wall, json);
    line.push_str(if json { "}\n" } else { "\n" });
    line
}

fn begin(level: Level, message: &str, wall: i64, json: bool) -> String {
    let wall = u64::try_from(wall).unwrap_or(0);
    let time = utc(wall / 1_000_000);
    let level = level.as_str().to_lowercase();
    if !json {
        return format!("{time} {level}: {message}");
    }
    // The zone comes last, so the milliseconds go before it.
    let (seconds, milliseconds) = (time.trim_end_matches('Z'), wall / 1000 % 1000);
    let mut line = format!("{{\"time\":\"{seconds}.{milliseconds:03}Z\",\"level\":\"{level}\",\"message\":");
    quote(&mut line, message);
    line
}

/// The beginning of a message that is too long.
fn cut(message: &str) -> &str {
    let end = (0..=LONGEST.min(message.len())).rev().find(|&end| message.is_char_boundary(end));
    &message[..end.unwrap_or(0)]
}

/// Writes a JSON string; escapes every character that would end it or that JSON does not allow in
/// it.
fn quote(line: &mut String, text: &str) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => line.extend(['\\', c]),
            c if c < ' ' || c == '\u{7f}' => drop(write!(line, "\\u{:04x}", u32::from(c))),
            c => line.push(c),
        }
    }
    line.push('"');
}

/// Writes a record's fields after its message.
struct Fields<'a> {
    line: &'a mut String,
    json: bool,
    any: bool,
}

impl<'kvs> VisitSource<'kvs> for Fields<'_> {
    fn visit_pair(&mut self, key: Key<'kvs>, value: Value<'kvs>) -> Result<(), Error> {
        let number = value.to_u64();
        let text = value.to_string();
        let text = cut(&text);
        if self.json {
            self.line.push(',');
            quote(self.line, key.as_str());
            self.line.push(':');
            match number {
                Some(number) => drop(write!(self.line, "{number}")),
                None => quote(self.line, text),
            }
            return Ok(());
        }
        self.line.push_str(if self.any { ", " } else { " (" });
        self.any = true;
        let plain =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '[' | ']' | '-' | '_' | ' ');
        let _ = match text.chars().all(plain) && !text.is_empty() {
            true => write!(self.line, "{} {text}", key.as_str()),
            false => write!(self.line, "{} {text:?}", key.as_str()),
        };
        Ok(())
    }
}

/// Seconds since 1970 as `YYYY-MM-DDTHH:MM:SSZ`.
fn utc(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Civil date from a day count, by eras of 400 years that start in March (Hinnant,
    // "chrono-compatible low-level date algorithms").
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_as_utc() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(seconds), text);
        }
    }

    /// A record's line with one text field and one number.
    fn line(message: &str, user: &str, json: bool) -> String {
        let fields = [("user", Value::from(user)), ("session", Value::from(7u32))];
        let arguments = format_args!("{message}");
        let record = Record::builder().args(arguments).level(Level::Warn).key_values(&fields).build();
        of(&record, 1_500_000, json)
    }

    #[test]
    fn a_json_line_is_an_object_whatever_is_in_it() {
        for text in ["plain", "a \"quoted\" \\ one", "\n\r\t\0\u{1b}[2J\u{7f}", "\u{2028}é\u{1f600}", "{}\"}"]
        {
            let line = line(text, text, true);
            assert_eq!(line.matches('\n').count(), 1, "{line:?}");
            let object: serde_json::Value = serde_json::from_str(&line).unwrap();
            assert_eq!(object["message"], text);
            assert_eq!(object["user"], text);
            assert_eq!(object["session"], 7);
            assert_eq!(
                (&object["time"], &object["level"]),
                (&"1970-01-01T00:00:01.500Z".into(), &"warn".into())
            );
        }
        let long = "ä".repeat(LONGEST);
        let object: serde_json::Value = serde_json::from_str(&line(&long, &long, true)).unwrap();
        assert_eq!(object["message"].as_str().unwrap().len(), LONGEST);
        serde_json::from_str::<serde_json::Value>(&dropped(3, 0, true)).unwrap();
    }

    #[test]
    fn fields_of_a_text_line_stand_in_brackets() {
        assert_eq!(line("hello", "ada", false), "1970-01-01T00:00:01Z warn: hello (user ada, session 7)\n");
        let forged = line("hello", "ada\n1970 warn: forged", false);
        assert_eq!(forged.matches('\n').count(), 1, "{forged}");
        assert!(dropped(3, 0, false).contains("3 lines"));
    }
}
