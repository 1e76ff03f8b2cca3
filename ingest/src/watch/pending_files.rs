//! Pending files: files in a watched folder that are not yet loaded, or not yet moved.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use crate::source::folder_handle::FolderHandle;

/// If a processed file could not be moved out of the folder, it is processed again after this time.
const RETRY: Duration = Duration::from_secs(60);

/// State of a folder entry: inode, mode, size, modification time and number of links. A file counts as unchanged while
/// its state is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryState {
    inode: u64,
    mode: u32,
    size: i64,
    modified: (i64, u64),
    /// Number of hard links of the file. A file with several links may belong to another user than the sender. The
    /// report about such a file is therefore withheld.
    pub links: u64,
}

impl EntryState {
    #[expect(clippy::useless_conversion, reason = "the types of the fields differ between systems")]
    pub(super) fn read(folder: &FolderHandle, name: &OsStr) -> io::Result<Self> {
        let stat = folder.entry_state(name)?;
        Ok(Self {
            inode: stat.st_ino.into(),
            mode: stat.st_mode.into(),
            size: stat.st_size.into(),
            modified: (stat.st_mtime.into(), stat.st_mtime_nsec.into()),
            links: stat.st_nlink.into(),
        })
    }

    pub(super) fn is_regular_file(&self) -> bool {
        FileType::from_raw_mode(self.mode).is_file()
    }

    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.inode == other.inode
    }

    /// True if the file was not written to between the two states. Other changes, such as a new mode or a new hard
    /// link, do not count.
    pub(super) fn has_same_content(&self, other: &Self) -> bool {
        self.size == other.size && self.modified == other.modified
    }

    /// Size in bytes.
    pub(super) fn size(&self) -> i64 {
        self.size
    }
}

#[derive(Debug, Clone, Copy)]
struct PendingFile {
    state: EntryState,
    /// Time since which the file counts as unchanged. It is the time of the first poll that found `state`, or of a
    /// later [`PendingFiles::restart`].
    since: Instant,
    /// Set if the file was processed but could not be moved out of the folder. It is the earliest time at which the
    /// file is processed again.
    retry_at: Option<Instant>,
}

/// Files in the folder that are not yet loaded, or not yet moved, by name.
#[derive(Debug, Default)]
pub(super) struct PendingFiles {
    files: HashMap<OsString, PendingFile>,
}

impl PendingFiles {
    /// Polls the folder. Returns the files that have been unchanged for `settle`, in name order. A file that could not
    /// be moved is returned only after its retry time.
    pub(super) fn poll(&mut self, folder: &FolderHandle, settle: Duration) -> io::Result<Vec<OsString>> {
        let (mut files, now) = (HashMap::new(), Instant::now());
        for entry in folder.entries(Path::new(""))? {
            let hidden = entry.name.as_bytes().starts_with(b".");
            if hidden || entry.kind == FileType::Directory {
                continue;
            }
            // A file may disappear between listing and reading.
            let Ok(state) = EntryState::read(folder, &entry.name) else { continue };
            let known = self.files.get(&entry.name).copied().filter(|known| known.state == state);
            files.insert(entry.name, known.unwrap_or(PendingFile { state, since: now, retry_at: None }));
        }
        self.files = files;
        let due = |file: &PendingFile| {
            now.duration_since(file.since) >= settle && file.retry_at.is_none_or(|at| at <= now)
        };
        let mut settled: Vec<OsString> =
            self.files.iter().filter(|(_, file)| due(file)).map(|(name, _)| name.clone()).collect();
        settled.sort();
        Ok(settled)
    }

    /// State of a file at the last poll; `None` if the file was not in the folder.
    pub(super) fn state(&self, name: &OsStr) -> Option<EntryState> {
        self.files.get(name).map(|file| file.state)
    }

    pub(super) fn forget(&mut self, name: &OsStr) {
        self.files.remove(name);
    }

    /// Restarts the settle time of a file.
    pub(super) fn restart(&mut self, name: &OsStr) {
        if let Some(file) = self.files.get_mut(name) {
            file.since = Instant::now();
        }
    }

    /// Postpones the next attempt to process a file that could not be moved.
    pub(super) fn postpone(&mut self, name: &OsStr) {
        if let Some(file) = self.files.get_mut(name) {
            file.retry_at = Some(Instant::now() + RETRY);
        }
    }

    /// Number of files that could not be moved. `None` if other files remain to be processed.
    pub(super) fn only_postponed(&self) -> Option<usize> {
        self.files.values().all(|file| file.retry_at.is_some()).then_some(self.files.len())
    }
}
