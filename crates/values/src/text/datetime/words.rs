//! The words of dates and times.

/// The meaning of a word, in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// 1 to 12.
    Month(i64),
    /// A day of the week, which has no effect.
    Weekday,
    /// A whole date or time by name.
    Special(Special),
    /// Midnight UTC.
    Allballs,
    /// BC or AD.
    Era { before: bool },
    /// AM or PM.
    Half { afternoon: bool },
    /// An hour ahead of the zone's standard time.
    Summer,
    /// A Julian day number follows.
    Julian,
    /// A clock follows.
    Clock,
    /// A word without effect.
    Filler,
    /// The name of a unit, which no date contains.
    Unit,
}

/// A named date or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Now,
    Today,
    Tomorrow,
    Yesterday,
    Epoch,
    Infinity,
    NegInfinity,
}

/// The meaning of a word of dates and times; None for another word. Abbreviations of zones are no
/// such words.
pub(super) fn word(text: &str) -> Option<Word> {
    Some(match text {
        "jan" | "january" => Word::Month(1),
        "feb" | "february" => Word::Month(2),
        "mar" | "march" => Word::Month(3),
        "apr" | "april" => Word::Month(4),
        "may" => Word::Month(5),
        "jun" | "june" => Word::Month(6),
        "jul" | "july" => Word::Month(7),
        "aug" | "august" => Word::Month(8),
        "sep" | "sept" | "september" => Word::Month(9),
        "oct" | "october" => Word::Month(10),
        "nov" | "november" => Word::Month(11),
        "dec" | "december" => Word::Month(12),
        "sun" | "sunday" | "mon" | "monday" | "tue" | "tues" | "tuesday" | "wed" | "weds" | "wednesday"
        | "thu" | "thur" | "thurs" | "thursday" | "fri" | "friday" | "sat" | "saturday" => Word::Weekday,
        "now" => Word::Special(Special::Now),
        "today" => Word::Special(Special::Today),
        "tomorrow" => Word::Special(Special::Tomorrow),
        "yesterday" => Word::Special(Special::Yesterday),
        "epoch" => Word::Special(Special::Epoch),
        "infinity" | "+infinity" => Word::Special(Special::Infinity),
        "-infinity" => Word::Special(Special::NegInfinity),
        "allballs" => Word::Allballs,
        "bc" => Word::Era { before: true },
        "ad" => Word::Era { before: false },
        "am" => Word::Half { afternoon: false },
        "pm" => Word::Half { afternoon: true },
        "dst" => Word::Summer,
        "j" | "jd" | "julian" => Word::Julian,
        "t" => Word::Clock,
        "at" | "on" => Word::Filler,
        "d" | "h" | "m" | "mm" | "s" | "y" | "dow" | "doy" | "isodow" | "isoyear" => Word::Unit,
        _ => return None,
    })
}

/// Whether a word ends where digits follow it.
pub(in crate::text) fn is_word(text: &str) -> bool {
    word(text).is_some()
}
