//! Resolution of Rust paths: finds the source file that a path such as `crate::a::Thing` leads to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Path as a list of names from the crate's root, for example `a`, `b` and `C` for `a::b::C`.
type Names = Vec<String>;

const TESTS: &str = "#[cfg(test)]\nmod tests {";

/// Modules of a crate, by their paths. The path of the root module is empty.
#[derive(Debug, Default)]
pub(super) struct Modules(BTreeMap<Names, Module>);

#[derive(Debug)]
struct Module {
    file: String,
    /// Paths that occur in the module's code, each converted to a path from the crate's root. Paths into other crates
    /// are not included.
    used: Vec<Names>,
    /// Re-exports of this module: each re-exported name with the path of the original item.
    exported: BTreeMap<String, Names>,
}

impl Modules {
    /// Reads all source files in a folder except `main.rs`, which belongs to another crate.
    pub(super) fn read(folder: &Path) -> Self {
        let mut files = Vec::new();
        collect(folder, folder, &mut files);
        Self::of(files.into_iter().filter(|(path, _)| path != "main.rs"))
    }

    /// Parses source files. The elements of `files` are pairs of a path below the crate's `src` and the text of the
    /// file.
    pub(super) fn of(files: impl Iterator<Item = (String, String)>) -> Self {
        Self(files.map(|(path, text)| (place(&path), Module::parse(path, &text))).collect())
    }

    /// Maps each file to the other files of the crate that it uses.
    pub(super) fn uses(&self) -> BTreeMap<String, Vec<String>> {
        let files_used = |module: &Module| {
            let files: BTreeSet<&str> = module
                .used
                .iter()
                .filter_map(|path| self.file(path))
                .filter(|file| *file != module.file)
                .collect();
            files.into_iter().map(str::to_owned).collect()
        };
        self.0.values().map(|module| (module.file.clone(), files_used(module))).collect()
    }

    /// Finds the file that defines the item with this path. Follows re-exports.
    fn file(&self, path: &[String]) -> Option<&str> {
        let length = (0..=path.len()).rev().find(|length| self.0.contains_key(&path[..*length]))?;
        let module = &self.0[&path[..length]];
        match path.get(length).map(|name| module.exported.get(name)) {
            Some(Some(meant)) if meant != path => self.file(meant),
            _ => Some(&module.file),
        }
    }
}

impl Module {
    fn parse(file: String, text: &str) -> Self {
        let text = without_comments(text);
        let (code, tests) = text.split_once(TESTS).unwrap_or((&text, ""));
        let place = place(&file);
        let mut module = Self { file, used: Vec::new(), exported: BTreeMap::new() };
        module.read_code(code, &place);
        module.read_code(tests, &[place, vec!["tests".to_owned()]].concat());
        module
    }

    /// Adds the paths that occur in `code` to `used`, and the re-exports in `code` to `exported`. `place` is the path
    /// of the module that contains `code`.
    fn read_code(&mut self, code: &str, place: &[String]) {
        let children: Vec<&str> =
            code.split("mod ").skip(1).filter_map(|rest| Some(rest.split_once(';')?.0.trim())).collect();
        for (start, word) in words(code) {
            let Some(root) = root_of(word, place, &children) else { continue };
            let after = start + word.len();
            let standing_alone = !code[..start].ends_with("::") && code[after..].starts_with("::");
            if !standing_alone {
                continue;
            }
            let mut paths = Vec::new();
            expand(&code[after..], root, &mut paths);
            let statement = code[..start].rsplit([';', '}']).next().unwrap_or_default().trim();
            if statement.contains("pub") && statement.ends_with("use") {
                self.exported
                    .extend(paths.iter().filter_map(|path| Some((path.last()?.clone(), path.clone()))));
            }
            self.used.extend(paths);
        }
    }
}

/// Path of the module that the first word of a path refers to. `None` if the word is not `crate`, `super` or a child
/// module.
fn root_of(word: &str, place: &[String], children: &[&str]) -> Option<Names> {
    match word {
        "crate" => Some(vec![]),
        "super" => place.split_last().map(|(_, parent)| parent.to_vec()),
        child if children.contains(&child) => Some(place.iter().cloned().chain([child.to_owned()]).collect()),
        _ => None,
    }
}

/// Parses an import after its first word, and adds the imported paths to `paths`, each with the prefix `path`. For
/// example, `::a::{b, c::D}` adds `a::b` and `a::c::D` if `path` is empty. Returns the text after the import.
fn expand<'t>(text: &'t str, mut path: Names, paths: &mut Vec<Names>) -> &'t str {
    let mut rest = text;
    while let Some(after) = rest.strip_prefix("::") {
        if let Some(mut items) = after.strip_prefix('{') {
            loop {
                items = items.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
                if let Some(after) = items.strip_prefix('}') {
                    return after;
                }
                let Some(name) = word_at(items) else { return items };
                let mut below = path.clone();
                if name != "self" {
                    below.push(name.to_owned());
                }
                items = expand(&items[name.len()..], below, paths);
            }
        }
        let Some(name) = word_at(after) else { break };
        rest = &after[name.len()..];
        match name {
            "super" => drop(path.pop()),
            name => path.push(name.to_owned()),
        }
    }
    paths.push(path);
    rest
}

fn word_at(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

/// Words of a text, as pairs of byte offset and word.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_edge = |c: char| !c.is_alphanumeric() && c != '_';
    text.split(is_edge)
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr().addr() - text.as_ptr().addr(), word))
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
}

/// Module path of a source file. For `a/b.rs` and `a/b/mod.rs` it is `a::b`, and for `lib.rs` it is empty.
fn place(file: &str) -> Names {
    let stem = file.trim_end_matches(".rs");
    stem.split('/').filter(|name| !matches!(*name, "mod" | "lib")).map(str::to_owned).collect()
}

fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
            files.push((name, std::fs::read_to_string(&path).expect("a readable source")));
        }
    }
}
