//! Generates the reader of the raw parser's tree and compiles the part in C.
//!
//! The crate `pg_query` compiles the parser, but its interface for Rust hides the parser's headers.
//! So this script asks cargo where the crate's sources are. There it reads libpg_query's
//! description of its nodes. Both sides of the format are made from it: the functions in C that
//! write a node's fields, and those in Rust that read them.

use std::collections::HashMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Nodes that the raw parser never makes.
const NEVER: [&str; 2] = ["IntList", "OidList"];
/// Fields that the library never writes: the tree has no values for them.
const UNWRITTEN: [&str; 2] = ["xpr", "plan"];
/// Names of fields that are keywords of Rust.
const KEYWORDS: [&str; 3] = ["type", "override", "abstract"];

fn main() -> Result<()> {
    for file in ["build.rs", "Cargo.toml", "src/raw_parse.c"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let library = library()?;
    let tags = tags(&fs::read_to_string(library.join("src/include/pg_query_outfuncs_conds.c"))?)?;
    let functions = fs::read_to_string(library.join("src/include/pg_query_outfuncs_defs.c"))?;
    let description = fs::read_to_string(library.join("protobuf/pg_query.proto"))?;
    fs::write(out.join("tags.h"), header(&tags)?)?;
    fs::write(out.join("tree.rs"), dispatch(&tags)? + &readers(&functions, &messages(&description))?)?;
    cc::Build::new()
        .file("src/raw_parse.c")
        .include(&out)
        .include(&library)
        .include(library.join("src"))
        .include(library.join("src/postgres/include"))
        .include(library.join("src/include"))
        // As the library itself is compiled.
        .flag("-fno-strict-aliasing")
        .flag("-fwrapv")
        .warnings(false)
        .try_compile("raw_parse")?;
    Ok(())
}

/// The folder `libpg_query` among the sources of the crate `pg_query`.
fn library() -> Result<PathBuf> {
    let output = Command::new(env::var("CARGO")?)
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform"])
        .arg(env::var("TARGET")?)
        .output()?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata: no packages")?;
    let package = packages.iter().find(|package| package["name"] == "pg_query");
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let folder = manifest.and_then(|manifest| Path::new(manifest).parent());
    Ok(folder.ok_or("cargo metadata: no package pg_query")?.join("libpg_query"))
}

/// A kind of node.
struct Tag {
    /// Its name in the functions' names.
    function: String,
    /// Its variant of `NodeEnum`.
    variant: String,
}

/// The kinds of nodes, from the cases of the library's switch over them.
fn tags(cases: &str) -> Result<Vec<Tag>> {
    let mut tags = Vec::new();
    for line in cases.lines() {
        let Some((_, arguments)) = call(line, "OUT_NODE") else { continue };
        let [_, function, _, _, _, field] = arguments[..] else {
            return Err(format!("unexpected case: {line}").into());
        };
        let variant = camel_case(field.trim_end_matches('_'));
        tags.push(Tag { function: function.to_owned(), variant });
    }
    Ok(tags)
}

/// The numbers of the tags for C, from 1.
fn header(tags: &[Tag]) -> Result<String> {
    let mut text = String::new();
    for (number, tag) in (1..).zip(tags) {
        writeln!(text, "#define TAG_{} {number}", tag.function)?;
    }
    Ok(text)
}

/// The function that reads a node of any kind into its place.
fn dispatch(tags: &[Tag]) -> Result<String> {
    let mut text =
        "pub(super) fn fill_with(bytes: &mut Bytes<'_>, tag: u16, place: &mut Option<NodeEnum>) {\n"
            .to_owned();
    text += "    match tag {\n";
    for (number, tag) in (1_u16..).zip(tags).filter(|(_, tag)| !NEVER.contains(&&*tag.function)) {
        let (variant, reader) = (&tag.variant, snake_case(&tag.function));
        writeln!(text, "        {number} => *place = Some(NodeEnum::{variant}({reader}(bytes).into())),")?;
    }
    text += "        _ => bytes.fail(),\n    }\n}\n";
    Ok(text)
}

/// The fields of each message, which are the fields of its type in Rust. Enumerations count as
/// messages.
fn messages(description: &str) -> HashMap<&str, Vec<&str>> {
    let mut messages = HashMap::new();
    let mut name = "";
    for line in description.lines() {
        if let Some(message) = line.strip_prefix("message ").or(line.strip_prefix("enum ")) {
            name = message.trim_end_matches('{').trim();
        } else if let Some((field, _)) = line.strip_prefix("  ").and_then(|line| line.split_once(" = ")) {
            let fields: &mut Vec<_> = messages.entry(name).or_default();
            fields.extend(field.rsplit(' ').next());
        }
    }
    messages
}

/// The functions that read the fields of each node, from the functions that write them.
fn readers(functions: &str, messages: &HashMap<&str, Vec<&str>>) -> Result<String> {
    let mut text = String::new();
    let mut unread = None;
    for line in functions.lines() {
        if let Some((name, rest)) = line.strip_prefix("_out").and_then(|line| line.split_once("(OUT_TYPE(")) {
            let message = rest.split_once(',').ok_or("a function without a type")?.0;
            unread = Some(messages.get(message).cloned().unwrap_or_default());
            let (reader, type_) = (snake_case(name), type_name(message));
            writeln!(text, "#[inline(never)]")?;
            let bytes = if messages.contains_key(message) { "bytes" } else { "_" };
            writeln!(text, "pub(super) fn {reader}({bytes}: &mut Bytes<'_>) -> protobuf::{type_} {{")?;
            writeln!(text, "    protobuf::{type_} {{")?;
        } else if line == "}" {
            for field in unread.take().ok_or("a function without a head")? {
                if !UNWRITTEN.contains(&field) {
                    return Err(format!("the library does not write {field}").into());
                }
                writeln!(text, "        {field}: None,")?;
            }
            text += "    }\n}\n";
        } else if let (Some(fields), true) = (&mut unread, line.contains("WRITE_")) {
            let (field, read) = field(line)?;
            fields.retain(|other| *other != field);
            let raw = if KEYWORDS.contains(&field) { "r#" } else { "" };
            writeln!(text, "        {raw}{field}: {read},")?;
        }
    }
    Ok(text)
}

/// The name of a field, and the expression that reads it.
fn field(line: &str) -> Result<(&str, String)> {
    let (kind, arguments) = call(line, "WRITE_").ok_or_else(|| format!("unexpected line: {line}"))?;
    let (field, read) = match (kind, &arguments[..]) {
        ("INT_FIELD", [_, field, ..]) => (field, "bytes.int()".to_owned()),
        ("UINT_FIELD", [_, field, ..]) => (field, "bytes.unsigned()".to_owned()),
        ("UINT64_FIELD", [_, field, ..]) => (field, "bytes.long_unsigned()".to_owned()),
        ("LONG_FIELD", [_, field, ..]) => (field, "bytes.long()".to_owned()),
        ("FLOAT_FIELD", [_, field, ..]) => (field, "bytes.float()".to_owned()),
        ("BOOL_FIELD", [_, field, ..]) => (field, "bytes.flag()".to_owned()),
        ("CHAR_FIELD", [_, field, ..]) => (field, "bytes.character()".to_owned()),
        ("STRING_FIELD", [_, field, ..]) => (field, "bytes.text()".to_owned()),
        ("ENUM_FIELD", [_, _, field, ..]) => (field, "bytes.int()".to_owned()),
        ("LIST_FIELD", [_, field, ..]) => (field, "nodes(bytes)".to_owned()),
        ("BITMAPSET_FIELD", [_, field, ..]) => (field, "bytes.set()".to_owned()),
        ("NODE_PTR_FIELD", [_, field, ..]) => (field, "node(bytes)".to_owned()),
        ("SPECIFIC_NODE_FIELD" | "SPECIFIC_NODE_PTR_FIELD", [_, type_, _, field, ..]) => {
            let reader = snake_case(type_);
            (field, format!("bytes.flag().then(|| {reader}(bytes).into())"))
        }
        _ => return Err(format!("unexpected field: {line}").into()),
    };
    Ok((field, read))
}

/// The rest of a macro's name and its arguments, if the line calls a macro whose name begins so.
fn call<'l>(line: &'l str, start: &str) -> Option<(&'l str, Vec<&'l str>)> {
    let (name, arguments) = line.trim().strip_prefix(start)?.split_once('(')?;
    let arguments = arguments.strip_suffix(");")?;
    Some((name, arguments.split(", ").collect()))
}

/// The words of a name: `CTESearchClause` has the words CTE, Search and Clause.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let next = letters.get(at + 1);
        let after_small = before.is_some_and(|before| before.is_lowercase() || before.is_ascii_digit());
        let before_small =
            before.is_some_and(char::is_uppercase) && next.is_some_and(|next| next.is_lowercase());
        if letter == '_' || (letter.is_uppercase() && (after_small || before_small)) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter != '_') {
            word.push(letter);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The name of a message's type in Rust, as prost writes it.
fn type_name(message: &str) -> String {
    let capital = |word: &String| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + &rest.to_lowercase()
    };
    words(message).iter().map(capital).collect()
}

/// The name of a variant for a field's name.
fn camel_case(field: &str) -> String {
    type_name(field)
}

/// The name of a function.
fn snake_case(name: &str) -> String {
    format!("read_{}", words(name).join("_").to_lowercase())
}
