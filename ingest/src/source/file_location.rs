//! Location of a file: a path on the command line, or a path below an open folder.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use telemetry::escape_controls;

use super::folder_handle::FolderHandle;
use super::regular_file::{self, Links};

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
            None => regular_file::open_regular_file(&self.path, Links::Followed),
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
