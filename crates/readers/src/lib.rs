//! Readers of bytes that the engine did not write, each as a function of a byte string.
//!
//! A fuzzer calls them with bytes it makes up (`make hunt`); `tests/corpora.rs` calls them with the
//! files under `fuzz/corpus`. What must hold: no input panics, and what a reader accepts fits the
//! assertions here.

#![forbid(unsafe_code)]

mod node;
mod wire;

pub use node::{node, undo};
pub use wire::{login, wire};

use execution::copy::cut_line;
use query::normalize::{Literal, LiteralUse, Normalized, Template};
use query::plan::{CopyFormat, CopyKind};
use storage::log::{LogReader, Lsn};
use storage::page::{self, PAGE_SIZE, PageNo};

/// A reader of hostile bytes.
pub type Reader = fn(&[u8]);

/// The readers by name; the name is also that of the corpus.
pub const READERS: &[(&str, Reader)] = &[
    ("copy", copy),
    ("log", log),
    ("login", login),
    ("node", node),
    ("page", page),
    ("statement", statement),
    ("undo", undo),
    ("wire", wire),
];

/// The most fields of a line that COPY takes apart here.
const FIELDS: usize = 8;

/// Lines of COPY FROM. The first byte chooses text or CSV, the second the delimiter; NULL is the
/// format's own.
pub fn copy(input: &[u8]) {
    let [kind, delimiter, lines @ ..] = input else { return };
    let is_csv = kind % 2 == 1;
    let format = CopyFormat {
        kind: if is_csv { CopyKind::Csv } else { CopyKind::Text },
        delimiter: *delimiter,
        null: if is_csv { String::new() } else { "\\N".to_owned() },
        header: false,
        quote: b'"',
        escape: b'"',
        force_quote: Vec::new(),
    };
    for line in lines.split(|byte| *byte == b'\n') {
        // A line with an open quote is refused; the fuzzer goes on behind it.
        let Ok(fields) = cut_line(line, &format, FIELDS) else { continue };
        assert!(fields.len() <= FIELDS + 1, "a line is left behind its last field");
        let bytes: usize = fields.iter().flatten().map(Vec::len).sum();
        assert!(bytes <= line.len(), "no field is longer than its text");
    }
}

/// The text of a statement: its literals, its template, its parse.
pub fn statement(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let mut read = Normalized::default();
    if read.read(text) {
        let mut before = 0;
        for literal in read.literals.iter() {
            let (start, end) = (literal.start as usize, literal.end as usize);
            assert!(before <= start && start <= end && text.get(start..end).is_some(), "literals in order");
            before = end;
            let _ = literal.value(text);
        }
        let literals: &[Literal] = &read.literals;
        let uses = literals.iter().map(|_| LiteralUse::Pinned).collect();
        assert!(Template::new(text, literals, uses).serves(text, literals), "a text is its own template");
    }
    if let Ok(tree) = query::parse::parse(text) {
        for parsed in &tree.statements {
            assert!(text.get(parsed.range.clone()).is_some(), "a statement is part of its text");
        }
    }
}

/// A page: as it came, and sealed, so that the fuzzer gets past the checksum.
pub fn page(input: &[u8]) {
    let mut bytes = vec![0; PAGE_SIZE];
    let length = input.len().min(PAGE_SIZE);
    bytes[..length].copy_from_slice(&input[..length]);
    let number = page::page_no(&bytes);
    let _ = page::verify(&bytes, number);
    page::seal(&mut bytes);
    assert_eq!(page::verify(&bytes, number), Ok(()), "a sealed page is whole");
    assert!(page::verify(&bytes, PageNo(number.0 ^ 1)).is_err(), "a page is no other page");
    let _ = (page::kind(&bytes), page::level(&bytes), page::flags(&bytes), page::tree(&bytes));
}

/// The salt of the logs made here.
const SALT: u32 = 7;
/// Where the first record of a log begins.
const FIRST: usize = 4096;
/// The bytes of a segment.
const SEGMENT: usize = 1 << 20;
/// The least length of a record: its header and its trailer.
const LEAST: usize = 48;

/// A log of one segment: the bytes as they came, and as the body of a record with its checksum.
pub fn log(input: &[u8]) {
    read_log(input);
    read_log(&sealed(input));
}

/// The bytes as one record: length, position and checksum fit (docs/formats.md, Record).
fn sealed(input: &[u8]) -> Vec<u8> {
    let mut record = input[..input.len().min(SEGMENT / 2)].to_vec();
    record.resize(record.len().max(LEAST).next_multiple_of(8), 0);
    let length = u32::try_from(record.len()).expect("half a segment at most").to_le_bytes();
    record[..4].copy_from_slice(&length);
    record[8..16].copy_from_slice(&(FIRST as u64).to_le_bytes());
    let end = record.len() - 4;
    record[end..].copy_from_slice(&length);
    let sum = [&record[40..], &record[..4], &record[8..40]]
        .iter()
        .fold(SALT, |sum, bytes| crc32c::crc32c_append(sum, bytes));
    record[4..8].copy_from_slice(&sum.to_le_bytes());
    record
}

/// Reads a log forward to its end, then its last record backward.
fn read_log(records: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut segment = vec![0; SEGMENT];
    let length = records.len().min(SEGMENT - FIRST);
    segment[FIRST..FIRST + length].copy_from_slice(&records[..length]);
    std::fs::write(folder.path().join(format!("{:016x}", 0)), segment).expect("a segment");
    let first = Lsn(FIRST as u64);
    let mut reader = LogReader::new(folder.path(), SEGMENT as u64, SALT, first).expect("a log");
    let mut image = vec![0; PAGE_SIZE];
    while let Ok(Some(record)) = reader.next_record() {
        for part in record.parts().filter(|part| part.is_image()) {
            part.restore(&mut image);
        }
        record.undo();
    }
    let end = reader.position();
    assert!(end.0 <= SEGMENT as u64, "the log ends in its segment");
    let back = reader.record_ending_at(end).expect("a segment that can be read");
    assert_eq!(back.is_some(), end > first, "the last record is found from its end too");
}
