//! Build script: collects the text of each domain rule for the pages `/methods`.
//!
//! `schema/market/RULES.md` lists the files of each rule. The text of a rule is in the documentation at the head of these
//! files: each section that names the rule in its heading or first paragraph, and from other sections the paragraphs that
//! name it, with the heading.

use std::path::Path;
use std::{env, fs, io};

#[expect(clippy::disallowed_methods, reason = "Cargo tells a build script its output folder in no other way")]
fn main() -> io::Result<()> {
    let market = Path::new("../schema/market");
    let mut rules = String::from("[\n");
    for row in read(&market.join("RULES.md"))?.lines().filter(|line| line.starts_with("| R")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, id, title, files, _] = cells[..] else { return Err(io::Error::other(row)) };
        let mut text = String::new();
        for file in files.split(", ") {
            text.push_str(&text_of(id, &read(&market.join(file.trim_matches('`')))?));
        }
        if text.is_empty() {
            return Err(io::Error::other(format!("no file has a text of {id}")));
        }
        rules.push_str(&format!("Rule {{ id: {id:?}, title: {title:?}, text: {text:?} }},\n"));
    }
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("OUT_DIR is not set"))?;
    fs::write(Path::new(&out).join("rules.rs"), rules + "]")
}

fn read(path: &Path) -> io::Result<String> {
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(path).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))
}

/// Text of a rule in the documentation at the head of a file, as Markdown.
fn text_of(id: &str, source: &str) -> String {
    let lines = source.lines().map_while(|line| line.strip_prefix("//!"));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    let mut text = String::new();
    for (place, section) in lines.join("\n").split("\n# ").enumerate() {
        let (title, body) = match section.split_once("\n\n") {
            Some((title, body)) if place > 0 => (Some(title), body),
            _ => (None, section),
        };
        let is_about = names(section.split("\n\n").next().unwrap_or_default(), id);
        let paragraphs: Vec<&str> = body.split("\n\n").filter(|text| is_about || names(text, id)).collect();
        if !paragraphs.is_empty() {
            text.extend(title.map(|title| format!("## {title}\n\n")));
            text.push_str(&(paragraphs.join("\n\n") + "\n\n"));
        }
    }
    text
}

/// True if a text names the rule, for example R4 but not R41.
fn names(text: &str, id: &str) -> bool {
    text.match_indices(id).any(|(at, _)| !text[at + id.len()..].starts_with(|c: char| c.is_ascii_digit()))
}
