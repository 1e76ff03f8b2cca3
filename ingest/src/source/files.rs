//! Resolution of command-line paths to feed files.
//!
//! Folders are read recursively in name order; every entry of a zip archive is a file of its own. The order is part
//! of what makes a load repeatable.

use std::fs::File;
use std::path::{Path, PathBuf};

use crate::source::standard_input::{self, StandardInput};
use crate::source::zip_archive::Archive;

/// Where a file's bytes are; whether they are compressed, and how, they say themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Packing {
    Alone,
    /// Entry of a zip archive, by its index.
    Zip(Archive, usize),
}

/// How records stand in a file; the name's word, where the bytes leave it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Csv,
    Ndjson,
    Json,
}

/// One file to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedFile {
    /// Where its bytes are.
    pub path: PathBuf,
    /// Its name for people and provenance, relative to the path given.
    pub label: String,
    pub packing: Packing,
    pub encoding: Encoding,
}

impl FeedFile {
    /// Where it is, for a person who is to look at it: with its folder, and inside an archive behind the archive's.
    pub fn place(&self) -> String {
        let path = self.path.display().to_string();
        let archive = self.path.file_name().map(|name| format!("{}/", name.to_string_lossy()));
        let inner = archive.and_then(|archive| Some(self.label.split_once(&archive)?.1));
        match (&self.packing, inner) {
            (Packing::Zip(..), Some(inner)) => format!("{path}/{inner}"),
            // What was read from standard input lies nowhere.
            _ if path.ends_with(&self.label) => path,
            _ => self.label.clone(),
        }
    }

    /// The name up to its encoding: `prices-2024.csv.gz` is `prices-2024`.
    pub fn stem(&self) -> &str {
        let name = self.label.rsplit(['/', '\\']).next().unwrap_or(&self.label);
        let plain = strip_packing(name);
        plain.rsplit_once('.').map_or(plain, |(stem, _)| stem)
    }
}

#[cfg(test)]
impl FeedFile {
    /// A file of this name that is nowhere.
    pub(crate) fn named(label: &str) -> Self {
        let encoding = encoding_of(strip_packing(label)).unwrap_or(Encoding::Csv);
        Self { path: PathBuf::new(), label: label.to_owned(), packing: Packing::Alone, encoding }
    }
}

/// What the paths came to.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub files: Vec<FeedFile>,
    /// Files of folders that are no feed by their name; they are skipped, and said to be.
    pub skipped: Vec<String>,
    /// Files that cannot be read, with the reason.
    pub refused: Vec<(String, String)>,
}

/// Finds the files of all paths, in order; one of them may be standard input.
pub(crate) fn find(paths: &[PathBuf], standard_input: Option<&StandardInput>) -> Found {
    let mut found = Found::default();
    for path in paths {
        if let Some(input) = standard_input.filter(|_| standard_input::is_named_by(path)) {
            add(&input.path, input.label.clone(), true, &mut found);
            continue;
        }
        let label = path
            .file_name()
            .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
        if path.is_dir() {
            walk(path, "", &mut found);
        } else {
            add(path, label, true, &mut found);
        }
    }
    found
}

fn walk(folder: &Path, prefix: &str, found: &mut Found) {
    let entries = std::fs::read_dir(folder).and_then(|entries| entries.collect::<Result<Vec<_>, _>>());
    let mut entries = match entries {
        Ok(entries) => entries,
        Err(error) => {
            return found
                .refused
                .push((folder.display().to_string(), format!("folder cannot be read: {error}")));
        }
    };
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let label = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() && is_hidden(&label) {
            found.skipped.push(format!("{label}/"));
        } else if entry.path().is_dir() {
            walk(&entry.path(), &format!("{label}/"), found);
        } else {
            add(&entry.path(), label, false, found);
        }
    }
}

fn add(path: &Path, label: String, named: bool, found: &mut Found) {
    if let Err(error) = File::open(path) {
        return found.refused.push((path.display().to_string(), format!("cannot be opened: {error}")));
    }
    if !named && is_hidden(&label) {
        return found.skipped.push(label);
    }
    if label.to_ascii_lowercase().ends_with(".zip") {
        return add_archive(path, &label, found);
    }
    if let Some(reason) = dressed(strip_packing(&label)) {
        return found.refused.push((path.display().to_string(), reason));
    }
    // A file that was named is looked into, whatever it is called.
    let encoding = encoding_of(strip_packing(&label)).or(named.then_some(Encoding::Csv));
    match encoding {
        Some(encoding) => {
            let packing = Packing::Alone;
            found.files.push(FeedFile { path: path.to_owned(), label, packing, encoding });
        }
        None => found.skipped.push(label),
    }
}

fn add_archive(path: &Path, label: &str, found: &mut Found) {
    let opened = Archive::open(path).and_then(|archive| Ok((archive.entries()?, archive)));
    let (mut names, archive) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let reason = format!("is not a readable zip archive: {error}");
            return found.refused.push((path.display().to_string(), reason));
        }
    };
    names.sort_by(|a, b| a.1.cmp(&b.1));
    for (index, name) in names.into_iter().filter(|(_, name)| !name.ends_with('/')) {
        let label = format!("{label}/{name}");
        if let Some(reason) = dressed(strip_packing(&name)).filter(|_| !is_hidden(&name)) {
            found.refused.push((format!("{}/{name}", path.display()), reason));
            continue;
        }
        match encoding_of(strip_packing(&name)).filter(|_| !is_hidden(&name)) {
            Some(encoding) => {
                found.files.push(FeedFile {
                    path: path.to_owned(),
                    label,
                    packing: Packing::Zip(archive.clone(), index),
                    encoding,
                });
            }
            None => found.skipped.push(label),
        }
    }
}

/// True if a file is a system's own: `.DS_Store`, or what a Macintosh puts beside every file of an archive.
fn is_hidden(name: &str) -> bool {
    name.split('/').any(|part| part.starts_with('.') || part == "__MACOSX")
}

/// Why a file that may well hold data is not read, and what to do about it, by its name.
fn dressed(name: &str) -> Option<String> {
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "zip" => "is an archive inside an archive: unpack it first".to_owned(),
        "7z" | "rar" | "tar" | "tgz" | "bz2" | "xz" | "lz4" => {
            format!(
                "is packed as .{ending}, which is not read: unpack it first (.gz, .zst and .zip are read)"
            )
        }
        "xls" | "xlsx" | "xlsm" | "ods" => "is a workbook: save its sheet as CSV".to_owned(),
        "feather" | "arrow" | "h5" | "hdf5" | "pkl" | "pickle" | "rds" | "sqlite" => {
            format!("is a .{ending} file, which is not read: write it as CSV")
        }
        _ => return None,
    })
}

fn strip_packing(name: &str) -> &str {
    let cut = |ending: &str| {
        let at = name.len().checked_sub(ending.len())?;
        name.get(at..).filter(|end| end.eq_ignore_ascii_case(ending)).and(name.get(..at))
    };
    cut(".gz").or_else(|| cut(".zst")).unwrap_or(name)
}

fn encoding_of(name: &str) -> Option<Encoding> {
    let (stem, ending) = name.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        // Whether this build reads Parquet is said of its bytes.
        "csv" | "tsv" | "parquet" => Some(Encoding::Csv),
        "txt" => (!is_prose(stem)).then_some(Encoding::Csv),
        "ndjson" | "jsonl" => Some(Encoding::Ndjson),
        "json" => Some(Encoding::Json),
        _ => None,
    }
}

/// True if a text file is one that people read.
fn is_prose(stem: &str) -> bool {
    const PROSE: [&str; 6] = ["readme", "license", "licence", "notice", "changelog", "requirements"];
    let name = stem.rsplit('/').next().unwrap_or(stem).to_ascii_lowercase();
    PROSE.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_the_encoding() {
        assert_eq!(strip_packing("prices.csv.GZ"), "prices.csv");
        assert_eq!(strip_packing("a.ndjson.zst"), "a.ndjson");
        assert_eq!(encoding_of("a.JSONL"), Some(Encoding::Ndjson));
        assert_eq!(encoding_of("d/aapl.us.txt"), Some(Encoding::Csv));
        assert_eq!(encoding_of("d/README.txt"), None);
        assert_eq!(encoding_of("AAPL.adjustments"), None);
    }

    #[test]
    fn data_in_another_dress_is_told_from_what_is_no_data() {
        for name in ["d/prices.xlsx", "p.csv.bz2", "a.tar", "inner.zip", "x.feather"] {
            assert!(dressed(strip_packing(name)).is_some(), "{name}");
        }
        assert!(dressed("README.md").is_none() && dressed("chart.png").is_none());
        assert!(is_hidden("__MACOSX/._prices.csv") && is_hidden(".DS_Store") && !is_hidden("a/prices.csv"));
    }

    #[test]
    fn a_stem_is_the_name_without_folder_and_endings() {
        assert_eq!(FeedFile::named("2024/dividends-2024.csv.gz").stem(), "dividends-2024");
        assert_eq!(FeedFile::named("BRK.B.csv").stem(), "BRK.B");
    }
}
