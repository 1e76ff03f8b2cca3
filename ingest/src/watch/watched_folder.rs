//! Watched folder, with its subfolders `done` and `refused` for processed files.
//!
//! Invariant: all files are moved, and all reports are created, relative to open folder handles. Symbolic links are
//! never followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::arrived_files::{EntryState, MovedFile, MovedFiles};
use crate::source::file_access::FolderHandle;

/// Name of the lock file. The process that watches the folder locks this file.
const LOCK: &str = ".ingest-watch.lock";
const REPORT_ENDING: &str = ".reason.txt";
/// Maximum length of a file name on common file systems, in bytes.
const MAX_NAME_BYTES: usize = 255;
/// Maximum number that is appended to a file name to make it unique in the subfolder, as in `prices.csv.2`.
const MAX_NAME_NUMBER: usize = 99_999;
/// Maximum length of a file name in a subfolder, in bytes, before a number is appended. The limit leaves room for the
/// number and for the ending of the report.
const MAX_STORED_NAME_BYTES: usize = MAX_NAME_BYTES - REPORT_ENDING.len() - ".99999".len();
/// Maximum length of a file name ending, in bytes. A shortened file name has the ending of the original name, but a
/// longer ending is dropped.
const MAX_ENDING_BYTES: usize = 16;

/// Errors that prevent watching a folder.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error("cannot watch {}: {source}", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("cannot watch {}: another process watches it", folder.display())]
    Locked { folder: PathBuf },
    #[error("cannot watch {}: the folder was moved or deleted", folder.display())]
    Gone { folder: PathBuf },
    #[error("cannot parse the options of ingest load: {0}")]
    Options(#[from] clap::Error),
}

/// Subfolder for loaded files. [`REFUSED`] is the subfolder for refused files.
pub(super) const DONE: &str = "done";
pub(super) const REFUSED: &str = "refused";

#[derive(Debug)]
pub(super) struct WatchedFolder {
    pub folder: Arc<FolderHandle>,
    moved: MovedFiles,
    _lock: File,
}

impl WatchedFolder {
    /// Opens the folder, creates its subfolders, and takes the lock.
    pub(super) fn open(path: &Path) -> Result<Self, WatchError> {
        let unusable = |source| WatchError::Folder { folder: path.to_owned(), source };
        let folder = FolderHandle::open(path).map_err(unusable)?;
        for name in [DONE, REFUSED] {
            let unusable = |source| WatchError::Folder { folder: path.join(name), source };
            folder.create_folder(name).map_err(unusable)?;
        }
        let lock = folder.try_lock(LOCK).map_err(unusable)?;
        let lock = lock.ok_or_else(|| WatchError::Locked { folder: path.to_owned() })?;
        let moved = MovedFiles::open(&folder, &[DONE, REFUSED]).map_err(unusable)?;
        Ok(Self { folder: Arc::new(folder), moved, _lock: lock })
    }

    /// Moves a file to a subfolder, under an unused name. A report is written before the file is moved, so that no
    /// refused file lacks its report. `state` is the state of the file when it was loaded.
    pub(super) fn move_file(
        &mut self,
        name: &OsStr,
        subfolder: &str,
        report: Option<&str>,
        state: Option<EntryState>,
    ) -> io::Result<()> {
        let folder = &self.folder.create_folder(subfolder)?;
        let stored = shorten_name(name);
        if stored != name {
            tracing::warn!(file = ?name, stored_as = ?stored, "file name shortened");
        }
        let stored = find_unused_name(folder, &stored)?;
        let report_name = with_ending(&stored, REPORT_ENDING);
        if let Some(report) = report {
            let mut file = folder.create_file(&report_name)?;
            file.write_all(report.as_bytes()).inspect_err(|_| _ = folder.remove_file(&report_name))?;
        }
        if let Some(file) = state.and_then(|state| MovedFile::new(name, subfolder, &stored, state))
            && let Err(error) = self.moved.add(&self.folder, file)
        {
            tracing::warn!(file = ?name, %error, "cannot store that a file was moved: the next start of the watch does not check it for changes");
        }
        self.folder.move_entry(name, folder, &stored).inspect_err(|_| {
            if report.is_some() {
                // If this removal fails, a report without its file remains, which is harmless.
                let _ = folder.remove_file(&report_name);
            }
        })
    }

    /// Moves the files back that have changed since they were moved to a subfolder, and removes their reports. `find`
    /// finds the changed files. If another file has the name, the file stays in the subfolder until that file was
    /// processed. Returns the number of files that were moved back.
    pub(super) fn move_changed_files_back(
        &mut self,
        find: impl Fn(&mut MovedFiles, &FolderHandle) -> Vec<MovedFile>,
    ) -> usize {
        let mut moved_back = 0;
        for file in find(&mut self.moved, &self.folder) {
            match self.move_back(&file) {
                Ok(()) => {
                    moved_back += 1;
                    tracing::warn!(
                        file = file.name,
                        was_in = file.subfolder,
                        bytes_before = file.state.size,
                        "a file changed after it was processed: it is loaded again"
                    );
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.moved.put_back(file),
                Err(error) => tracing::warn!(
                    file = file.name,
                    is_in = file.subfolder,
                    stored_as = file.stored,
                    %error,
                    "a file changed after it was processed, and cannot be moved back: load it with ingest load"
                ),
            }
        }
        moved_back
    }

    fn move_back(&self, file: &MovedFile) -> io::Result<()> {
        let subfolder = self.folder.open_folder(Path::new(&file.subfolder))?;
        subfolder.move_to_unused_name(OsStr::new(&file.stored), &self.folder, OsStr::new(&file.name))?;
        subfolder.remove_file(&with_ending(OsStr::new(&file.stored), REPORT_ENDING))
    }
}

/// First unused name in the sequence `name`, `name.2`, `name.3`. A name with a report is in use too.
fn find_unused_name(folder: &FolderHandle, name: &OsStr) -> io::Result<OsString> {
    let numbered = (2..=MAX_NAME_NUMBER).map(|number| with_ending(name, &format!(".{number}")));
    for name in std::iter::once(name.to_owned()).chain(numbered) {
        if !folder.has_entry(&name)? && !folder.has_entry(&with_ending(&name, REPORT_ENDING))? {
            return Ok(name);
        }
    }
    Err(io::Error::other("too many files have this name: remove old ones"))
}

fn with_ending(name: &OsStr, ending: &str) -> OsString {
    let mut name = name.to_owned();
    name.push(ending);
    name
}

/// Shortens a name that is longer than [`MAX_STORED_NAME_BYTES`]. The shortened name contains a hash of the original
/// name. It has the ending of the original name, unless the ending is longer than [`MAX_ENDING_BYTES`].
fn shorten_name(name: &OsStr) -> OsString {
    let bytes = name.as_bytes();
    if bytes.len() <= MAX_STORED_NAME_BYTES {
        return name.to_owned();
    }
    let ending = bytes.iter().rposition(|byte| *byte == b'.').map_or(&[][..], |at| &bytes[at..]);
    let ending = if ending.len() > MAX_ENDING_BYTES { &[][..] } else { ending };
    let hash = format!("~{}", &blake3::hash(bytes).to_hex()[..8]);
    let mut end = MAX_STORED_NAME_BYTES - ending.len() - hash.len();
    // The name is cut at a boundary of a UTF-8 character.
    while end > 0 && bytes[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    OsString::from_vec([&bytes[..end], hash.as_bytes(), ending].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_between_characters_and_stay_distinct() {
        assert_eq!(shorten_name(OsStr::new("prices.csv")), "prices.csv");
        let long = |last: &str| OsString::from(format!("{}{last}.csv.gz", "ö".repeat(123)));
        let (one, other) = (shorten_name(&long("a")), shorten_name(&long("b")));
        assert!(one != other && one.to_str().is_some_and(|name| name.ends_with(".gz")), "{one:?}");
        assert!(one.len() <= MAX_STORED_NAME_BYTES && one.len() > MAX_STORED_NAME_BYTES - 4, "{}", one.len());
        let endless = OsString::from(format!("a.{}", "x".repeat(250)));
        assert!(shorten_name(&endless).len() <= MAX_STORED_NAME_BYTES);
    }
}
