//! Search for feed files in the paths from the command line.
//!
//! Folders are read recursively in name order, without following links. Every entry of a zip archive is a separate
//! file. The fixed order makes loads repeatable.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::FileType;
use telemetry::escape_controls;

use crate::source::file_access::{FileLocation, FolderEntry, FolderHandle};
use crate::source::file_access::{StandardInput, is_standard_input};
use crate::source::zip_archive::ZipDirectory;

/// Maximum number of files and names that a message, a manifest or a report lists. Further ones are counted.
pub(crate) const MAX_LISTED: usize = 50;
/// Maximum length of a label, in bytes.
const MAX_LABEL_BYTES: usize = 300;
/// Length of the beginning of a shortened label, in bytes. The other bytes are a hash and the end of the label, which has
/// the name and ending of the file.
const BEGINNING_BYTES: usize = 100;

/// Shortens a label that is longer than [`MAX_LABEL_BYTES`]: `feeds.zip/aaa…~1f3870be~…/prices.csv`. The hash of the
/// label keeps shortened labels distinct.
pub(crate) fn shorten_label(label: String) -> String {
    if label.len() <= MAX_LABEL_BYTES {
        return label;
    }
    let hash = format!("…~{}~…", &blake3::hash(label.as_bytes()).to_hex()[..8]);
    let begin = label.floor_char_boundary(BEGINNING_BYTES);
    let end = label.ceil_char_boundary(label.len() - (MAX_LABEL_BYTES - BEGINNING_BYTES - hash.len()));
    format!("{}{hash}{}", &label[..begin], &label[end..])
}

/// Joins the first [`MAX_LISTED`] names, and counts the other ones: `a.csv, b.csv, … and 3 more`. `unlisted` is the
/// number of names that are already left out of `names`.
pub(crate) fn join_names(names: &[String], unlisted: u64) -> String {
    let text = names.iter().take(MAX_LISTED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MAX_LISTED) as u64 + unlisted {
        0 => text,
        more => format!("{text}, … and {more} more"),
    }
}

/// Container of a feed file. Compression such as gzip is detected later, from the bytes of the file.
#[derive(Debug, Clone)]
pub enum Packing {
    Plain,
    /// Entry of a zip archive, with the index of the entry in the archive.
    Zip(ZipDirectory, usize),
}

/// Data format of a file (not its character encoding). The name of the file gives a first guess. The format is then
/// detected from the bytes of the file. The guess is used only if the bytes are ambiguous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Csv,
    Ndjson,
    Json,
}

/// Feed file to load.
#[derive(Debug, Clone)]
pub struct FeedFile {
    /// Location of the file on disk, or of the archive that contains the file.
    pub location: FileLocation,
    /// Name of the file in messages and in the log, such as `2024/prices.csv` or `feeds.zip/prices.csv`.
    pub label: String,
    pub packing: Packing,
    pub encoding: Encoding,
}

impl FeedFile {
    /// Full path for messages. For an archive entry, the path of the archive comes first.
    pub fn display_path(&self) -> String {
        let path = self.location.display_path();
        let archive = self.location.path.file_name();
        let archive = archive.map(|name| format!("{}/", escape_controls(&name.to_string_lossy())));
        let inner = archive.and_then(|archive| Some(self.label.split_once(&archive)?.1));
        match (&self.packing, inner) {
            (Packing::Zip(..), Some(inner)) => format!("{path}/{inner}"),
            // The path of standard input does not end with the label. The last arm then returns the label.
            _ if path.ends_with(&self.label) => path,
            _ => self.label.clone(),
        }
    }

    /// File name without folder and endings, for example `prices-2024` for `2024/prices-2024.csv.gz`.
    pub fn stem(&self) -> &str {
        stem_of(&self.label)
    }
}

/// [`FeedFile::stem`] of the file with this label.
pub(crate) fn stem_of(label: &str) -> &str {
    let name = label.rsplit(['/', '\\']).next().unwrap_or(label);
    let plain = strip_packing(name);
    plain.rsplit_once('.').map_or(plain, |(stem, _)| stem)
}

#[cfg(test)]
impl FeedFile {
    /// Feed file for tests, with a name but without content on disk.
    pub(crate) fn from_name(label: &str) -> Self {
        let encoding = encoding_of(strip_packing(label)).unwrap_or(Encoding::Csv);
        let location = PathBuf::new().into();
        Self { location, label: label.to_owned(), packing: Packing::Plain, encoding }
    }
}

/// Feed files that were found in the paths.
#[derive(Debug, Default)]
pub(crate) struct FoundFiles {
    pub files: Vec<FeedFile>,
    /// Skipped files of folders and archives. A file is skipped if it is hidden, or if its name has no known ending.
    pub skipped: Vec<String>,
    /// Files that cannot be read, each with the reason.
    pub refused: Vec<(String, String)>,
}

/// Finds the feed files in all paths, in order. A path may be `-` for standard input. If `folder` is given, each path
/// must be the path of this open folder, or a path below it.
pub(crate) fn find_feed_files(
    paths: &[PathBuf],
    folder: Option<&Arc<FolderHandle>>,
    standard_input: Option<&StandardInput>,
) -> FoundFiles {
    let mut found = FoundFiles::default();
    for path in paths {
        if let Some(input) = standard_input.filter(|_| is_standard_input(path)) {
            add(input.path.to_path_buf().into(), input.label.clone(), true, &mut found);
            continue;
        }
        let location = FileLocation { path: path.clone(), folder: folder.cloned() };
        if path.to_str().is_none() {
            found.refused.push((location.display_path(), NOT_UTF8.to_owned()));
            continue;
        }
        let is_folder = folder.map_or_else(|| path.is_dir(), |folder| folder.path() == path);
        if is_folder {
            let opened =
                folder.map_or_else(|| FolderHandle::open(path).map(Arc::new), |folder| Ok(folder.clone()));
            match opened {
                Ok(folder) => walk(&folder, Path::new(""), "", &mut found),
                Err(error) => found.refuse_folder(path, &error),
            }
            continue;
        }
        let label = path.file_name().map_or_else(|| location.display_path(), name_of);
        add(location, label, true, &mut found);
    }
    found
}

/// Reason for refusing a file whose name is not UTF-8. Such a name cannot be stored in a manifest.
const NOT_UTF8: &str = "has a name that is not UTF-8: rename it";

impl FoundFiles {
    /// Adds a file to the feed files, refused files or skipped files, by the ending of its name. A file with an unknown
    /// ending gets the encoding `default`, or is skipped.
    fn add_file(
        &mut self,
        location: FileLocation,
        label: String,
        packing: Packing,
        path: String,
        default: Option<Encoding>,
    ) {
        if let Some(reason) = unsupported_packing(strip_packing(&label)) {
            return self.refused.push((path, reason));
        }
        match encoding_of(strip_packing(&label)).or(default) {
            Some(encoding) => {
                self.files.push(FeedFile { location, label: shorten_label(label), packing, encoding })
            }
            None => self.skip(label),
        }
    }

    fn skip(&mut self, label: String) {
        self.skipped.push(shorten_label(label));
    }

    fn refuse_folder(&mut self, path: &Path, error: &io::Error) {
        let path = escape_controls(&path.to_string_lossy());
        self.refused.push((path, format!("folder cannot be read: {error}")));
    }
}

fn name_of(name: &std::ffi::OsStr) -> String {
    escape_controls(&name.to_string_lossy())
}

fn walk(folder: &Arc<FolderHandle>, relative: &Path, prefix: &str, found: &mut FoundFiles) {
    let entries = match folder.entries(relative) {
        Ok(entries) => entries,
        Err(error) => return found.refuse_folder(&folder.path().join(relative), &error),
    };
    for FolderEntry { name, kind } in entries {
        let (label, relative) = (format!("{prefix}{}", name_of(&name)), relative.join(&name));
        let location = FileLocation { path: folder.path().join(&relative), folder: Some(folder.clone()) };
        match kind {
            FileType::Directory if is_hidden(&label) => found.skip(format!("{label}/")),
            _ if is_hidden(&label) => found.skip(label),
            _ if name.to_str().is_none() => {
                found.refused.push((location.display_path(), NOT_UTF8.to_owned()))
            }
            FileType::Directory => walk(folder, &relative, &format!("{label}/"), found),
            _ => add(location, label, false, found),
        }
    }
}

fn add(location: FileLocation, label: String, named: bool, found: &mut FoundFiles) {
    if let Err(error) = location.open() {
        return found.refused.push((location.display_path(), format!("cannot be opened: {error}")));
    }
    if label.to_ascii_lowercase().ends_with(".zip") {
        return add_archive(&location, &label, found);
    }
    // A file that the command line names is read even if the ending of its name is unknown.
    let (path, default) = (location.display_path(), named.then_some(Encoding::Csv));
    found.add_file(location, label, Packing::Plain, path, default);
}

fn add_archive(location: &FileLocation, label: &str, found: &mut FoundFiles) {
    let opened = ZipDirectory::open(location).and_then(|archive| Ok((archive.entries()?, archive)));
    let (mut names, archive) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let reason = format!("is not a readable zip archive: {error}");
            return found.refused.push((location.display_path(), reason));
        }
    };
    names.sort_by(|a, b| a.1.cmp(&b.1));
    for (index, name) in names.into_iter().filter(|(_, name)| !name.ends_with('/')) {
        let name = escape_controls(&name);
        let label = format!("{label}/{name}");
        if is_hidden(&name) {
            found.skip(label);
            continue;
        }
        let path = shorten_label(format!("{}/{name}", location.display_path()));
        found.add_file(location.clone(), label, Packing::Zip(archive.clone(), index), path, None);
    }
}

/// True for hidden files, such as `.DS_Store`, and for the `__MACOSX` entries in archives from macOS.
fn is_hidden(name: &str) -> bool {
    name.split('/').any(|part| part.starts_with('.') || part == "__MACOSX")
}

/// Reason for refusing a file by the ending of its name, such as `.rar` or `.xlsx`; `None` for other files.
fn unsupported_packing(name: &str) -> Option<String> {
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
        // A Parquet file is converted to CSV text.
        "csv" | "tsv" | "parquet" => Some(Encoding::Csv),
        "txt" => (!is_prose(stem)).then_some(Encoding::Csv),
        "ndjson" | "jsonl" => Some(Encoding::Ndjson),
        "json" => Some(Encoding::Json),
        _ => None,
    }
}

/// True for the names of text files without data, such as `README`.
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
            assert!(unsupported_packing(strip_packing(name)).is_some(), "{name}");
        }
        assert!(unsupported_packing("README.md").is_none() && unsupported_packing("chart.png").is_none());
        assert!(is_hidden("__MACOSX/._prices.csv") && is_hidden(".DS_Store") && !is_hidden("a/prices.csv"));
    }

    #[test]
    fn a_stem_is_the_name_without_folder_and_endings() {
        assert_eq!(FeedFile::from_name("2024/dividends-2024.csv.gz").stem(), "dividends-2024");
        assert_eq!(FeedFile::from_name("BRK.B.csv").stem(), "BRK.B");
    }
}

#[cfg(test)]
mod label_tests {
    use super::*;

    #[test]
    fn a_long_label_keeps_its_archive_and_its_file_name() {
        let label = |name: &str| format!("feeds.zip/{}/{name}", "ö".repeat(30_000));
        let [one, other] = ["prices.csv", "prices-2.csv"].map(|name| shorten_label(label(name)));
        assert!(one.starts_with("feeds.zip/ö") && one.ends_with("/prices.csv"), "{one}");
        assert!(one != other && one.len() <= MAX_LABEL_BYTES && one.len() > MAX_LABEL_BYTES - 4);
        assert_eq!(shorten_label("2024/prices.csv".to_owned()), "2024/prices.csv");
    }

    #[test]
    fn fifty_names_are_listed_and_all_are_counted() {
        let names: Vec<String> = (1..=53).map(|number| format!("{number}.csv")).collect();
        assert!(join_names(&names, 2).ends_with(", 50.csv, … and 5 more"));
        assert_eq!(join_names(&names[..2], 0), "1.csv, 2.csv");
    }
}
