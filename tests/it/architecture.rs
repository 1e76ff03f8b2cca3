//! Rules for the source code. They forbid import cycles, large folders, and I/O in the domain crate.
//!
//! A file uses another file if its code contains a path to an item in that file. Only paths that begin with `crate`,
//! `super` or a child module count. A path through a re-export leads to the file that defines the item.

mod paths;
mod strong_components;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use paths::Modules;
use strong_components::circles;

const CRATES: [&str; 8] = [
    "schema/market",
    "schema/codec",
    "schema/log",
    "schema/store",
    "schema/telemetry",
    "ingest",
    "projector",
    "api",
];
/// Maximum number of entries in a source folder. A file and a folder of the same name, such as `a.rs` and `a`, are one
/// entry.
const MAX_ENTRIES: usize = 20;
/// Folders that may have more entries, because they have one file per endpoint or per data vendor.
const ONE_FILE_EACH: [&str; 2] = ["routes", "vendors"];

fn sources(krate: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate).join("src")
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    for krate in CRATES {
        let found = circles(&Modules::read(&sources(krate)).uses());
        assert!(found.is_empty(), "{krate}: {found:?}");
    }
}

#[test]
fn no_folders_use_each_other_in_a_circle() {
    for krate in CRATES {
        let found = circles(&folder_uses(&Modules::read(&sources(krate)).uses()));
        assert!(found.is_empty(), "{krate}: {found:?}");
    }
}

#[test]
fn a_source_folder_has_at_most_twenty_entries() {
    for krate in CRATES {
        let mut folders = vec![sources(krate)];
        while let Some(folder) = folders.pop() {
            let mut entries = BTreeSet::new();
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                entries.insert(path.file_stem().unwrap().to_owned());
                if path.is_dir() {
                    folders.push(path);
                }
            }
            let is_exempt = ONE_FILE_EACH.iter().any(|name| folder.ends_with(name));
            assert!(is_exempt || entries.len() <= MAX_ENTRIES, "{}: {}", folder.display(), entries.len());
        }
    }
}

/// Files below a folder whose names end with `.rs`.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|ending| ending == "rs") => files.push(path),
                false => {}
            }
        }
    }
    files
}

/// A file without a declaration is not compiled, so its tests do not run.
#[test]
fn every_file_is_declared_as_a_module() {
    let tests = ["it", "harness"].map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join(name));
    for folder in CRATES.map(sources).into_iter().chain(tests) {
        let files = rust_files(&folder);
        let texts: Vec<String> = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
        for path in &files {
            let name = match path.file_stem().unwrap().to_str().unwrap() {
                "mod" => path.parent().unwrap().file_name().unwrap().to_str().unwrap(),
                "lib" | "main" => continue,
                name => name,
            };
            let is_program = path.parent().unwrap().ends_with("bin");
            let declaration = format!("mod {name};");
            let is_declared = is_program || texts.iter().any(|text| text.contains(&declaration));
            assert!(is_declared, "{}: no file has `{declaration}`", path.display());
        }
    }
}

/// Conditions of the assertions in a text, without blanks.
fn assertions(text: &str) -> impl Iterator<Item = String> {
    let text: String = text.split_whitespace().collect();
    let starts: Vec<usize> =
        ["assert!(", "ensure!("].iter().flat_map(|name| text.match_indices(name)).map(|(at, _)| at).collect();
    starts.into_iter().map(move |at| text[at..].split(";").next().unwrap_or_default().to_owned())
}

/// True if an assertion says that something took less than some seconds.
fn limits_the_clock(assertion: &str) -> bool {
    let after_elapsed = assertion.split("elapsed()").skip(1);
    let mut compared = after_elapsed.map(|rest| rest.trim_start_matches(".as_secs()").starts_with('<'));
    compared.any(|is_upper_limit| is_upper_limit) || assertion.contains("<Duration::from_")
}

/// On a busy machine, anything may take a minute. Tests compare orders, counts and ratios, and wait at least a minute
/// for an event.
#[test]
fn no_test_expects_a_fast_machine() {
    assert!(
        assertions("ensure!(\n took < Duration::from_secs(1), \"{took}\");")
            .any(|text| limits_the_clock(&text))
    );
    assert!(assertions("assert!(begun.elapsed().as_secs() < 6);").any(|text| limits_the_clock(&text)));
    for path in rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("it")) {
        let text = fs::read_to_string(&path).unwrap();
        if path.ends_with("architecture.rs") {
            continue;
        }
        let limited: Vec<String> = assertions(&text).filter(|text| limits_the_clock(text)).collect();
        assert!(limited.is_empty(), "{}: {limited:#?}", path.display());
        for guard in text.split("eventually(").skip(1) {
            let guard = guard.trim_start().trim_start_matches("std::time::");
            let seconds = guard.strip_prefix("Duration::from_secs(").and_then(|rest| rest.split(')').next());
            let is_long =
                seconds.is_none_or(|seconds| seconds.parse::<u64>().is_ok_and(|seconds| seconds >= 60));
            assert!(is_long, "{}: eventually({guard:.40}", path.display());
        }
    }
}

/// Maps each top-level folder of a crate to the other folders that it uses. `files` maps each file to the files that it
/// uses. The file `a.rs` counts as part of the folder `a`.
fn folder_uses(files: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, Vec<String>> {
    let folder = |file: &str| file.split('/').next().map_or("", |top| top.trim_end_matches(".rs")).to_owned();
    let mut folders: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, uses) in files.iter().filter(|(file, _)| *file != "lib.rs") {
        let from = folder(file);
        let to = uses.iter().map(|used| folder(used)).filter(|to| *to != from && to != "lib");
        folders.entry(from.clone()).or_default().extend(to);
    }
    folders
}

#[test]
fn a_circle_of_folders_is_seen_where_files_have_none() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod high; mod low;"),
        ("a/high.rs", "use crate::b::Word;"),
        ("a/low.rs", "struct Thing;"),
        ("b.rs", "use crate::a::low::Thing;"),
    ];
    let uses = uses_of(&files);
    assert!(circles(&uses).is_empty());
    assert_eq!(circles(&folder_uses(&uses)), [["a", "b"]]);
}

#[test]
fn the_domain_depends_on_nothing_that_does_io() {
    let tree = Command::new(env!("CARGO"))
        .args([
            "tree",
            "--offline",
            "--package",
            "market",
            "--edges",
            "normal",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8(tree.stdout).unwrap();
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"rust_decimal"), "{tree}");
    for io in ["async-nats", "axum", "hyper", "mio", "reqwest", "socket2", "store", "tokio", "tokio-postgres"]
    {
        assert!(!names.contains(&io), "market depends on {io}");
    }
}

/// The report of skipped tests must run last. Cargo tests the packages in alphabetical order, and documentation tests
/// after all others.
#[test]
fn the_report_of_skipped_tests_closes_a_run() {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--offline", "--no-deps", "--format-version=1"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |item: &serde_json::Value| item["name"].as_str().unwrap().to_owned();
    assert_eq!(packages.iter().map(name).max().unwrap(), "tests-skipped");
    let targets = packages.iter().flat_map(|package| package["targets"].as_array().unwrap());
    let documented: Vec<String> = targets.filter(|target| target["doctest"] == true).map(name).collect();
    assert!(documented.is_empty(), "libraries with documentation tests: {documented:?}");
}

/// Maps each file of a small program to the other files that it uses. The elements of `files` are pairs of path and
/// text.
fn uses_of(files: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
    Modules::of(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))).uses()
}

#[test]
fn a_circle_is_seen_through_re_exports_and_nested_imports() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a/mod.rs", "mod inner; pub(crate) use inner::{Thing, Other};"),
        ("a/inner.rs", "use crate::{b::{self, Word}}; // crate::lonely"),
        ("b.rs", "fn f() { crate::a::Other::new() }"),
        ("lonely.rs", "#[cfg(test)]\nmod tests { use crate::a::Thing; }"),
    ];
    let uses = uses_of(&files);
    assert_eq!(uses["a/inner.rs"], ["b.rs"]);
    assert_eq!(uses["b.rs"], ["a/inner.rs"]);
    assert_eq!(uses["a/mod.rs"], ["a/inner.rs"]);
    assert_eq!(uses["lonely.rs"], ["a/inner.rs"]);
    assert_eq!(circles(&uses), [["a/inner.rs", "b.rs"]]);
}

#[test]
fn a_test_module_counts_and_its_parent_is_its_own_file() {
    let uses = uses_of(&[
        (
            "a.rs",
            "pub struct A;\n#[cfg(test)]\nmod tests {\n    use super::*;\n    use super::super::b::check;\n}",
        ),
        ("b.rs", "use crate::a::A; pub fn check() {}"),
        ("b/tests.rs", "use super::check; use crate::a::A;"),
    ]);
    assert_eq!(circles(&uses), [["a.rs", "b.rs"]]);
}

#[test]
fn a_child_may_not_lead_back_to_its_parent() {
    let uses =
        uses_of(&[("a.rs", "mod b; use b::B; pub struct A;"), ("a/b.rs", "use super::A; pub struct B;")]);
    assert_eq!(circles(&uses), [["a.rs", "a/b.rs"]]);
}
