//! File names as text, for messages, manifests and logs. Names in an archive may have 65,535 bytes.
//!
//! Location of a file: a path on the command line, or a path below an open folder.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use telemetry::escape_controls;

use super::folder_handle::{self, FolderHandle, Links};

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

/// Path of a file. `folder` is the open folder that contains the file; `None` for a file that the command line names.
#[derive(Debug, Clone)]
pub struct FileLocation {
    /// Full path.
    pub path: PathBuf,
    pub(crate) folder: Option<Arc<FolderHandle>>,
}

impl FileLocation {
    /// Opens the file. Fails if it is not a regular file.
    pub(crate) fn open(&self) -> io::Result<File> {
        match &self.folder {
            Some(folder) => {
                let relative = self.path.strip_prefix(folder.path()).map_err(io::Error::other)?;
                folder.open_file(relative)
            }
            None => folder_handle::open_regular_file(&self.path, Links::Followed),
        }
    }

    /// Path for messages.
    pub(super) fn display_path(&self) -> String {
        escape_controls(&self.path.to_string_lossy())
    }
}

impl From<PathBuf> for FileLocation {
    fn from(path: PathBuf) -> Self {
        Self { path, folder: None }
    }
}

#[cfg(test)]
mod tests {
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
