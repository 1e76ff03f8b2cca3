//! Temporary folder of an export, renamed when the export is complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::error::ExportError;

/// Folder of an incomplete export. Dropping this value removes the folder.
#[derive(Debug)]
pub(super) struct PartialFolder {
    path: PathBuf,
    target: PathBuf,
}

impl PartialFolder {
    /// Creates a folder next to `target`. Its name is the name of `target` with the suffix `.partial`. Fails if
    /// `target` exists and is not empty.
    pub(super) fn create(target: &Path) -> Result<Self, ExportError> {
        let failed = |path: &Path, source| ExportError::File { path: path.to_owned(), source };
        if !is_free(target).map_err(|source| failed(target, source))? {
            return Err(ExportError::Taken(target.to_owned()));
        }
        let mut name = target.file_name().ok_or_else(|| ExportError::NoName(target.to_owned()))?.to_owned();
        name.push(".partial");
        let path = target.with_file_name(name);
        fs::create_dir_all(parent(target)).map_err(|source| failed(&path, source))?;
        match fs::create_dir(&path) {
            Ok(()) => Ok(Self { path, target: target.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(ExportError::Unfinished(path)),
            Err(source) => Err(failed(&path, source)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the folder to the final name, which completes the export.
    pub(super) fn finish(self) -> Result<(), ExportError> {
        let Self { path, target } = &self;
        let renamed = fs::rename(path, target).and_then(|()| File::open(parent(target))?.sync_all());
        renamed.map_err(|source| ExportError::File { path: target.clone(), source })
    }
}

impl Drop for PartialFolder {
    /// Removes the folder if it was not renamed. A failed removal is ignored.
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn is_free(target: &Path) -> io::Result<bool> {
    match fs::read_dir(target) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
