//! Moved files: files in `done` or `refused` that their senders may still write to.
//!
//! A sender that paused for longer than `--settle` keeps writing to its file after the file was moved. The watch
//! therefore compares the state of each moved file with its state at the move, for [`CHECKED_FOR`]. The list of moved
//! files is stored in the watched folder, for the next start of the watch.

use std::collections::{HashSet, VecDeque};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::pending_files::EntryState;
use crate::source::folder_handle::FolderHandle;

/// Name of the file with the list of moved files.
const LIST: &str = ".ingest-watch.moved";
/// Name of the file that replaces [`LIST`].
const NEW_LIST: &str = ".ingest-watch.moved.new";
/// Time for which a moved file is checked, in seconds: one day.
const CHECKED_FOR: u64 = 24 * 60 * 60;
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
    pub moved_at: u64,
}

impl MovedFile {
    /// Describes a file that is about to be moved. `None` if the file need not be checked: it is not a regular file, or
    /// a name is not UTF-8. A file with such a name is refused in any case.
    pub(super) fn new(name: &OsStr, subfolder: &str, stored: &OsStr, state: EntryState) -> Option<Self> {
        let (name, stored) = (name.to_str()?.to_owned(), stored.to_str()?.to_owned());
        let subfolder = subfolder.to_owned();
        state.is_regular_file().then(|| Self { subfolder, stored, name, state, moved_at: now() })
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
            if !state.is_same_file(&file.state) || now() > file.moved_at + CHECKED_FOR {
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

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
