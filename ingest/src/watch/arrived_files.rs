//! Files of a watched folder: pending files, which are not yet loaded or not yet moved, and moved files in `done` or
//! `refused`, to which their senders may still write.
//!
//! A sender that paused for longer than `--settle` keeps writing to its file after the file was moved. The watch
//! therefore compares the state of each moved file with its state at the move, for [`CHECKED_FOR`]. The list of moved
//! files is stored in the watched folder, for the next start of the watch.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::time::{Duration, Instant};

use chrono::Utc;
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use crate::source::file_access::FolderHandle;

/// If a processed file could not be moved out of the folder, it is processed again after this time.
const RETRY: Duration = Duration::from_secs(60);

/// State of a folder entry: inode, mode, size, modification time and number of links. A file counts as unchanged while
/// its state is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryState {
    inode: u64,
    mode: u32,
    /// Size in bytes.
    pub(super) size: i64,
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

    /// True if the file was not written to between the two states. Other changes, such as a new mode or a new hard
    /// link, do not count.
    pub(super) fn has_same_content(&self, other: &Self) -> bool {
        self.size == other.size && self.modified == other.modified
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

/// Name of the file with the list of moved files.
const LIST: &str = ".ingest-watch.moved";
/// Name of the file that replaces [`LIST`].
const NEW_LIST: &str = ".ingest-watch.moved.new";
/// Time for which a moved file is checked, in seconds: one day.
const CHECKED_FOR: i64 = 24 * 60 * 60;
/// Maximum number of moved files that are checked. Beyond it, the files that were moved first are no longer checked.
const MAX_FILES: usize = 10_000;
/// Maximum number of files that one poll checks. The next poll continues after them.
const FILES_PER_POLL: usize = 500;
/// Maximum size of the list that is read, in bytes. Other users may write into the watched folder.
const MAX_LIST_BYTES: u64 = 16 * 1024 * 1024;

/// File that was moved to a subfolder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MovedFile {
    /// Name of the subfolder.
    pub subfolder: String,
    /// Name in the subfolder.
    pub stored: String,
    /// Name under which the file arrived.
    pub name: String,
    /// State of the file when it was moved.
    pub state: EntryState,
    /// Time of the move, in seconds since 1970.
    pub moved_at: i64,
}

impl MovedFile {
    /// Describes a file that is about to be moved. `None` if the file need not be checked: it is not a regular file, or
    /// a name is not UTF-8. A file with such a name is refused in any case.
    pub(super) fn new(name: &OsStr, subfolder: &str, stored: &OsStr, state: EntryState) -> Option<Self> {
        let (name, stored) = (name.to_str()?.to_owned(), stored.to_str()?.to_owned());
        let subfolder = subfolder.to_owned();
        FileType::from_raw_mode(state.mode).is_file().then(|| Self {
            subfolder,
            stored,
            name,
            state,
            moved_at: Utc::now().timestamp(),
        })
    }

    /// True if the entry can come from this program: the names have no folder, and the subfolder is one of
    /// `subfolders`.
    fn is_valid(&self, subfolders: &[&str]) -> bool {
        let is_name = |name: &str| {
            let mut parts = Path::new(name).components();
            matches!((parts.next(), parts.next()), (Some(Component::Normal(part)), None) if part == name)
        };
        is_name(&self.stored) && is_name(&self.name) && subfolders.contains(&self.subfolder.as_str())
    }
}

/// List of moved files, in memory and on disk.
#[derive(Debug)]
pub(super) struct MovedFiles {
    files: VecDeque<MovedFile>,
    list: File,
    /// Number of lines in the list on disk, which has a line for every moved file since it was last rewritten.
    lines: usize,
}

impl MovedFiles {
    /// Reads the list of an earlier watch of this folder, without the files that are no longer checked.
    pub(super) fn open(folder: &FolderHandle, subfolders: &[&str]) -> io::Result<Self> {
        let mut text = String::new();
        match folder.open_file(Path::new(LIST)) {
            Ok(file) => _ = file.take(MAX_LIST_BYTES).read_to_string(&mut text)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        let mut files = VecDeque::new();
        let mut places = HashSet::new();
        // The last line about a place is the valid one. A kill may have cut the last line of the list.
        for line in text.lines().rev() {
            let Ok(file) = serde_json::from_str::<MovedFile>(line) else { continue };
            if file.is_valid(subfolders) && places.insert((file.subfolder.clone(), file.stored.clone())) {
                files.push_front(file);
            }
        }
        drop_excess(&mut files);
        let list = write_list(folder, &files)?;
        Ok(Self { lines: files.len(), files, list })
    }

    /// Adds a file to the list, before it is moved.
    pub(super) fn add(&mut self, folder: &FolderHandle, file: MovedFile) -> io::Result<()> {
        self.files.push_back(file.clone());
        drop_excess(&mut self.files);
        if self.lines >= 2 * MAX_FILES {
            self.list = write_list(folder, &self.files)?;
            self.lines = self.files.len();
            return Ok(());
        }
        self.lines += 1;
        self.list.write_all(&encode_line(&file))
    }

    /// Checks some of the files, in turn. Removes the files that have changed since they were moved, and returns them.
    pub(super) fn find_changed(&mut self, folder: &FolderHandle) -> Vec<MovedFile> {
        let mut changed = Vec::new();
        for _ in 0..self.files.len().min(FILES_PER_POLL) {
            let Some(file) = self.files.pop_front() else { break };
            let state = folder
                .open_folder(Path::new(&file.subfolder))
                .and_then(|subfolder| EntryState::read(&subfolder, OsStr::new(&file.stored)));
            // A file that was deleted, replaced or moved away is no longer the sender's.
            let Ok(state) = state else { continue };
            if state.inode != file.state.inode
                || Utc::now().timestamp() > file.moved_at.saturating_add(CHECKED_FOR)
            {
                continue;
            }
            match state.has_same_content(&file.state) {
                true => self.files.push_back(file),
                false => changed.push(file),
            }
        }
        changed
    }

    /// Puts a changed file back on the list, to be checked again.
    pub(super) fn put_back(&mut self, file: MovedFile) {
        self.files.push_back(file);
    }

    /// Checks all files, as [`Self::find_changed`] does.
    pub(super) fn find_all_changed(&mut self, folder: &FolderHandle) -> Vec<MovedFile> {
        let polls = self.files.len().div_ceil(FILES_PER_POLL);
        (0..polls).flat_map(|_| self.find_changed(folder)).collect()
    }
}

/// Removes the files that were moved first, down to [`MAX_FILES`].
fn drop_excess(files: &mut VecDeque<MovedFile>) {
    files.drain(..files.len().saturating_sub(MAX_FILES));
}

fn encode_line(file: &MovedFile) -> Vec<u8> {
    let mut line = serde_json::to_vec(file).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Replaces the list on disk. Returns the new file, for further lines.
fn write_list(folder: &FolderHandle, files: &VecDeque<MovedFile>) -> io::Result<File> {
    let mut list = folder.replace_file(OsStr::new(NEW_LIST))?;
    list.write_all(&files.iter().flat_map(encode_line).collect::<Vec<u8>>())?;
    folder.move_entry(OsStr::new(NEW_LIST), folder, OsStr::new(LIST))?;
    Ok(list)
}
