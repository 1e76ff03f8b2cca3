//! Handle of an open folder. The entries of the folder are opened relative to the handle, without following links.
//!
//! Invariant: if another user places a link below the folder, nothing is read or written through the link.
//!
//! Opening of regular files. A FIFO, a socket or a device is refused before it is read. Small text files, such as
//! manifests, have a maximum size.
//!
//! `ingest load -`: standard input as a feed file. A load reads every file twice: first to compute its hash, then to load
//! the rows. Standard input is therefore copied to a temporary file.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileTypeExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use market::event::Kind;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use telemetry::{Shutdown, escape_controls};
use tempfile::TempPath;
use tokio::sync::oneshot;

/// Open folder.
#[derive(Debug)]
pub(crate) struct FolderHandle {
    path: PathBuf,
    directory: OwnedFd,
}

/// Entry of a folder.
#[derive(Debug, Clone)]
pub(crate) struct FolderEntry {
    pub name: OsString,
    pub kind: FileType,
}

impl FolderHandle {
    /// Opens a folder from the command line. Links in its path are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let directory = rustix::fs::open(path, folder_flags(), Mode::empty())?;
        Ok(Self { path: path.to_owned(), directory })
    }

    /// Opens a folder. Fails if the last component of its path is a link.
    pub(crate) fn open_unlinked(path: &Path) -> io::Result<Self> {
        let directory = rustix::fs::open(path, folder_flags() | OFlags::NOFOLLOW, Mode::empty());
        Ok(Self { path: path.to_owned(), directory: directory.map_err(describe_folder)? })
    }

    /// Path of the folder, for messages and manifests.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// True if the path still leads to the open folder. False if the folder was moved or deleted.
    pub(crate) fn is_at_its_path(&self) -> bool {
        let (at_path, open) = (rustix::fs::stat(&self.path), rustix::fs::fstat(&self.directory));
        let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
        matches!((at_path, open), (Ok(at_path), Ok(open)) if identity(at_path) == identity(open))
    }

    /// Opens a folder below this folder.
    pub(crate) fn open_folder(&self, relative: &Path) -> io::Result<Self> {
        let directory = self.descend(relative)?;
        Ok(Self { path: self.path.join(relative), directory })
    }

    /// Opens a folder in this folder, and creates it if it does not exist.
    pub(crate) fn create_folder(&self, name: &str) -> io::Result<Self> {
        match rustix::fs::mkdirat(&self.directory, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => self.open_folder(Path::new(name)),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a regular file below this folder.
    pub(crate) fn open_file(&self, relative: &Path) -> io::Result<File> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let folder = self.descend(relative.parent().unwrap_or(Path::new("")))?;
        let file = rustix::fs::openat(folder, name, read_flags() | OFlags::NOFOLLOW, Mode::empty());
        require_regular(File::from(file.map_err(describe_link)?))
    }

    /// Locks the lock file `name` in this folder. The lock ends when the returned file is dropped or the process ends
    /// or is killed. Returns `None` if another process has the lock.
    pub(crate) fn try_lock(&self, name: &str) -> io::Result<Option<File>> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::from_raw_mode(0o666));
        let file = require_regular(File::from(file.map_err(describe_link)?))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Creates a file in this folder. Fails if the name exists.
    pub(crate) fn create_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.directory, name, flags, Mode::from_raw_mode(0o666))?.into())
    }

    /// Creates a file in this folder. An existing file of the same name is replaced.
    pub(crate) fn replace_file(&self, name: &OsStr) -> io::Result<File> {
        self.remove_file(name)?;
        self.create_file(name)
    }

    /// Removes an entry that is not a folder. A missing entry is not an error.
    pub(crate) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Moves an entry into another folder. A link is moved, not followed.
    pub(crate) fn move_entry(&self, name: &OsStr, target: &Self, new_name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.directory, name, &target.directory, new_name)?)
    }

    /// Moves an entry into another folder. Fails if the new name exists.
    pub(crate) fn move_to_unused_name(
        &self,
        name: &OsStr,
        target: &Self,
        new_name: &OsStr,
    ) -> io::Result<()> {
        let flags = RenameFlags::NOREPLACE;
        Ok(rustix::fs::renameat_with(&self.directory, name, &target.directory, new_name, flags)?)
    }

    /// File metadata of an entry. For a link, it is the metadata of the link itself.
    pub(crate) fn entry_state(&self, name: &OsStr) -> io::Result<Stat> {
        Ok(rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// True if an entry has this name.
    pub(crate) fn has_entry(&self, name: &OsStr) -> io::Result<bool> {
        match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Entries of a folder below this folder, in name order.
    pub(crate) fn entries(&self, relative: &Path) -> io::Result<Vec<FolderEntry>> {
        let folder = self.descend(relative)?;
        let mut entries = Vec::new();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => match rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(state) => FileType::from_raw_mode(state.st_mode),
                    // The entry was removed after it was listed, so it is left out.
                    Err(_) => continue,
                },
                kind => kind,
            };
            entries.push(FolderEntry { name: OsString::from_vec(name.as_bytes().to_vec()), kind });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Opens a folder below this folder, one path component after the other. Fails if a component is a link.
    fn descend(&self, relative: &Path) -> io::Result<OwnedFd> {
        let mut folder = open_part(self.directory.as_fd(), OsStr::new("."))?;
        for part in relative.components() {
            match part {
                Component::Normal(name) => folder = open_part(folder.as_fd(), name)?,
                Component::CurDir => {}
                _ => return Err(io::ErrorKind::InvalidInput.into()),
            }
        }
        Ok(folder)
    }
}

fn open_part(folder: BorrowedFd<'_>, name: &OsStr) -> io::Result<OwnedFd> {
    rustix::fs::openat(folder, name, folder_flags() | OFlags::NOFOLLOW, Mode::empty())
        .map_err(describe_folder)
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// Error for a folder that could not be opened because it is a link or a file.
fn describe_folder(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::NOTDIR => io::Error::other("is a link or a file: replace it with a folder"),
        error => error.into(),
    }
}

/// Maximum size of a column map, a connector manifest or a list of symbols, in bytes.
const MAX_TEXT: u64 = 16 * 1024 * 1024;

/// Treatment of a path whose last component is a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Followed,
    Refused,
}

/// Opens a regular file by its path.
pub(crate) fn open_regular_file(path: &Path, links: Links) -> io::Result<File> {
    let mut flags = read_flags();
    if links == Links::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    require_regular(File::from(rustix::fs::open(path, flags, Mode::empty()).map_err(describe_link)?))
}

/// Reads a small text file. Fails if it is larger than [`MAX_TEXT`] bytes or not a regular file.
pub(crate) fn read_small_text(path: &Path, links: Links) -> io::Result<String> {
    let (file, mut text) = (open_regular_file(path, links)?, String::new());
    if file.take(MAX_TEXT + 1).read_to_string(&mut text)? as u64 > MAX_TEXT {
        return Err(io::Error::other(format!("has more than {MAX_TEXT} bytes")));
    }
    Ok(text)
}

/// Flags for opening a file to read. With these flags, opening a FIFO or a device does not block.
pub(super) fn read_flags() -> OFlags {
    OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC
}

/// Fails if the open file is not a regular file.
pub(super) fn require_regular(file: File) -> io::Result<File> {
    let kind = file.metadata()?.file_type();
    if kind.is_file() { Ok(file) } else { Err(io::Error::other(describe_kind(kind))) }
}

/// Error for a file that could not be opened, for example because it is a link.
pub(super) fn describe_link(error: rustix::io::Errno) -> io::Error {
    match error {
        rustix::io::Errno::LOOP => io::Error::other(LINK),
        error => error.into(),
    }
}

/// Reason for refusing a link.
pub(crate) const LINK: &str = "is a link, which is not followed: name the file that it leads to, or copy it";

fn describe_kind(kind: fs::FileType) -> &'static str {
    if kind.is_dir() {
        "is a folder, not a file"
    } else if kind.is_fifo() {
        "is a FIFO, not a regular file: read a pipe with `ingest load -`"
    } else if kind.is_socket() {
        "is a socket, not a regular file"
    } else {
        "is a device, not a regular file"
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
            None => open_regular_file(&self.path, Links::Followed),
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

const STANDARD_INPUT: &str = "-";

/// True if a path of the command line is standard input.
pub(crate) fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == STANDARD_INPUT
}

/// Copy of standard input in a temporary file. `label` is the file name that messages and the log show for the copy.
/// The copy is deleted on drop.
#[derive(Debug)]
pub(crate) struct StandardInput {
    pub path: TempPath,
    pub label: String,
}

impl StandardInput {
    /// Copies standard input up to its end. The label of the copy is `name`. If `name` is `None`, the label is made
    /// from `kind` and the detected encoding, for example `price.csv`. Returns `None` after a shutdown.
    pub(crate) async fn copy_to_file(
        name: Option<&str>,
        kind: Option<Kind>,
        shutdown: &Shutdown,
    ) -> io::Result<Option<Self>> {
        let (sender, receiver) = oneshot::channel();
        // The copy runs on its own thread. If it were a task of the runtime, the shutdown would wait for input.
        std::thread::spawn(move || sender.send(copy(io::stdin().lock())));
        let Some(copied) = shutdown.or_stop(receiver).await else { return Ok(None) };
        let copied = copied.map_err(io::Error::other).and_then(|copied| copied);
        let not_stored =
            |error: io::Error| io::Error::new(error.kind(), format!("cannot store standard input: {error}"));
        let path = copied.map_err(not_stored)?;
        let mut input = Self { path, label: String::new() };
        input.label = match name {
            Some(name) => name.to_owned(),
            None => input.label_of(kind)?,
        };
        Ok(Some(input))
    }

    /// File name from the kind and the detected encoding, for example `price.csv`.
    fn label_of(&self, kind: Option<Kind>) -> io::Result<String> {
        let mut head = Vec::new();
        File::open(&self.path)?.take(4096).read_to_end(&mut head)?;
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
        let ending = match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{') => "ndjson",
            Some(b'[') => "json",
            _ => "csv",
        };
        Ok(format!("{}.{ending}", kind.map_or("standard-input", Kind::as_str)))
    }
}

fn copy(mut input: impl Read) -> io::Result<TempPath> {
    let mut file = tempfile::Builder::new().prefix("ingest-").suffix(".input").tempfile()?;
    io::copy(&mut input, &mut file)?;
    Ok(file.into_temp_path())
}
