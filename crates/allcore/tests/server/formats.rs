//! A start refuses a data folder of another format, in each place that has a version of its own.
//! The message says what was found, what this version reads, and what to do.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use crate::common::{Server, allcore, free_port, text};

const PAGE: usize = 8192;
const CONTROL_COPY: usize = 4096;
/// The name of a table, by which its definition is found in the file `pages`.
const NAME: &str = "a_table_with_a_name_of_its_own";

/// CRC-32C of `bytes`, bit by bit as docs/formats.md needs it.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(
            crc ^ u32::from(*byte),
            |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 }
            },
        )
    })
}

/// A stopped server whose folder has nothing to recover.
fn stopped() -> Server {
    let mut server = Server::start(&["--buffers", "16MiB"]);
    server.psql(&format!("create table {NAME} (id int primary key); insert into {NAME} values (1)"));
    server.stop();
    server
}

/// The one line with which a start on the folder refuses.
fn refusal(data: &Path) -> String {
    let output = allcore()
        .args(["serve", "--buffers", "16MiB", "--listen", &format!("127.0.0.1:{}", free_port()), "--data"])
        .arg(data)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let all = text(&output);
    assert_eq!(output.status.code(), Some(1), "{all}");
    let faults: Vec<&str> = all.lines().filter(|line| line.starts_with("allcore: ")).collect();
    assert_eq!(faults.len(), 1, "one clear line, not: {all}");
    faults[0].to_owned()
}

/// Lets `change` alter a file of the folder.
fn alter(server: &Server, file: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let path = server.data().join(file);
    let mut bytes = fs::read(&path).unwrap();
    let before = bytes.clone();
    change(&mut bytes);
    assert!(bytes != before, "nothing changed in {file}");
    fs::write(&path, bytes).unwrap();
}

/// Sees that a start refuses the format `found` and names `read` as its own.
fn refused(server: &Server, found: &str, read: &str) {
    let message = refusal(&server.data());
    let versions = format!("has the format \"{found}\", this version reads \"{read}\": serve ");
    assert!(message.contains(&versions), "{message}");
    assert!(message.ends_with("with the version that wrote it"), "{message}");
}

/// As [`alter`] and [`refused`]. The refused start changes nothing, and the file is put back.
fn refused_unread(
    server: &Server,
    file: &str,
    (found, read): (&str, &str),
    change: impl FnOnce(&mut Vec<u8>),
) {
    let path = server.data().join(file);
    let whole = fs::read(&path).unwrap();
    alter(server, file, change);
    let altered = fs::read(&path).unwrap();
    refused(server, found, read);
    assert!(fs::read(&path).unwrap() == altered, "the refused start wrote to {file}");
    fs::write(&path, &whole).unwrap();
}

/// Stores `value` at `at` in both copies of a control file, with a valid checksum.
fn put_in_control(bytes: &mut [u8], at: usize, value: u32) {
    for copy in bytes[..2 * CONTROL_COPY].chunks_exact_mut(CONTROL_COPY) {
        copy[at..at + 4].copy_from_slice(&value.to_le_bytes());
        let checksum = crc32c(&copy[12..]);
        copy[8..12].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// Gives the page a valid checksum.
fn seal(page: &mut [u8]) {
    let checksum = crc32c(&page[4..]);
    page[..4].copy_from_slice(&checksum.to_le_bytes());
}

/// Stores another version byte in the definition of the table [`NAME`].
fn put_in_definition(pages: &mut [u8], version: u8) {
    let number = |bytes: &[u8], at: usize| usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let mut found = 0;
    for page in pages.chunks_exact_mut(PAGE) {
        let (tree, kind, level) = (&page[16..20], page[20], page[21]);
        if tree != 1_u32.to_le_bytes() || kind != 4 || level != 0 {
            continue;
        }
        for slot in (0..number(page, 32)).map(|index| 64 + 8 * index) {
            let (entry, key) = (number(page, slot), number(page, slot + 2));
            let value = entry + key + 2;
            let length = number(page, entry + key);
            let is_there = page[value..value + length].windows(NAME.len()).any(|w| w == NAME.as_bytes());
            // Behind the version header lies the definition, whose first byte is its version.
            if is_there && page[value + 16] <= 9 {
                page[value + 16] = version;
                found += 1;
            }
        }
        seal(page);
    }
    assert_eq!(found, 1, "the stored definition is no longer found");
}

#[test]
fn a_start_refuses_each_other_format_and_names_both_versions() {
    let mut server = stopped();
    for version in [1, 2, 3, 9] {
        let found = format!("allcore {version}");
        refused_unread(&server, "ALLCORE", (&found, "allcore 4"), |text| {
            *text = format!("{found}\n").into_bytes();
        });
    }
    for version in [1, 2, 9] {
        let found = format!("control file {version}");
        refused_unread(&server, "control", (&found, "control file 3"), |bytes| {
            put_in_control(bytes, 12, version);
        });
    }
    refused_unread(&server, "control", ("pages of 4096 bytes", "pages of 8192 bytes"), |bytes| {
        put_in_control(bytes, 28, 4096);
    });
    refused_unread(&server, "pages", ("allcore pages 0", "allcore pages 1"), |bytes| {
        let page = &mut bytes[..PAGE];
        assert_eq!(&page[32..48], b"allcore pages 1\n");
        page[46] = b'0';
        seal(page);
    });
    // The catalog is read after recovery, whose checkpoint has written to the folder by then.
    for version in [4, 9] {
        alter(&server, "pages", |pages| put_in_definition(pages, version));
        refused(&server, &format!("definition {version}"), "definition 8");
    }
    // The bytes behind the table, zeros for no missing values and no statistics objects, are new in
    // versions 7 and 8. Readers of former versions ignore them.
    for version in [5, 6, 7] {
        alter(&server, "pages", |pages| put_in_definition(pages, version));
        server.launch();
        assert_eq!(server.psql(&format!("select * from {NAME}")), "1");
        server.stop();
    }
    // The next change of the definition writes it in this version.
    server.launch();
    server.psql(&format!("alter table {NAME} add column later text default 'before'"));
    server.stop();
    alter(&server, "pages", |pages| put_in_definition(pages, 9));
    refused(&server, "definition 9", "definition 8");
    alter(&server, "pages", |pages| put_in_definition(pages, 8));
    server.launch();
    assert_eq!(server.psql(&format!("select * from {NAME}")), "1|before");
}

#[test]
fn a_start_refuses_files_of_no_format() {
    let mut server = stopped();
    for (file, at) in [("control", 0), ("pages", 32)] {
        let path = server.data().join(file);
        let whole = fs::read(&path).unwrap();
        let mut altered = whole.clone();
        match file {
            "control" => {
                altered[..2 * CONTROL_COPY].chunks_exact_mut(CONTROL_COPY).for_each(|copy| copy[at] ^= 1)
            }
            _ => {
                altered[at] ^= 1;
                seal(&mut altered[..PAGE]);
            }
        }
        fs::write(&path, &altered).unwrap();
        let message = refusal(&server.data());
        let expected = format!("file {file} is damaged: restore the folder from a backup");
        assert!(message.ends_with(&expected), "{message}");
        fs::write(&path, &whole).unwrap();
    }
    server.launch();
    assert_eq!(server.psql(&format!("select * from {NAME}")), "1");
}

#[test]
fn a_start_reads_no_mark_from_a_file_durable_of_another_version() {
    let mut server = stopped();
    let path = server.data().join("durable");
    let mut bytes = fs::read(&path).unwrap();
    assert_eq!(&bytes[8..16], b"ALLDUR\x01\x00");
    bytes[14] = 0;
    fs::write(&path, &bytes).unwrap();
    server.launch();
    assert_eq!(server.psql(&format!("select * from {NAME}")), "1");
    server.stop();
    assert_eq!(&fs::read(&path).unwrap()[8..16], b"ALLDUR\x01\x00");
}
