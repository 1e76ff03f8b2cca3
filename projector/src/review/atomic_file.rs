//! File that is written under a temporary name and renamed when it is complete.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// File that has a temporary name until it is complete. Dropping this value removes the temporary file.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    wanted: PathBuf,
    written: PathBuf,
}

impl AtomicFile {
    /// Prepares the temporary file for the path `wanted`, without creating it.
    pub(crate) fn new(wanted: &Path) -> anyhow::Result<Self> {
        let name = wanted
            .file_name()
            .with_context(|| format!("cannot create {}: the path has no file name", wanted.display()))?;
        let written = wanted.with_file_name(format!(".{}.unfinished", name.to_string_lossy()));
        Ok(Self { wanted: wanted.to_owned(), written })
    }

    /// Creates the temporary file.
    pub(crate) fn create(&self) -> anyhow::Result<File> {
        // Remove the temporary file of an interrupted command. `create_new` fails if the path is a link.
        let _ = fs::remove_file(&self.written);
        File::create_new(&self.written).with_context(|| self.to_string())
    }

    /// Path of the temporary file.
    #[cfg(feature = "parquet")]
    pub(crate) fn path(&self) -> &Path {
        &self.written
    }

    /// Renames the file to its final name.
    pub(crate) fn finish(self) -> anyhow::Result<()> {
        fs::rename(&self.written, &self.wanted).with_context(|| self.to_string())
    }
}

impl fmt::Display for AtomicFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot write {}", self.wanted.display())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // After the rename, no file has the temporary name.
        let _ = fs::remove_file(&self.written);
    }
}
