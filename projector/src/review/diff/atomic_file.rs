//! A file that bears its name only once it is whole.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::Context;

/// A file that is being written beside the place where it will be. What is not finished is removed.
#[derive(Debug)]
pub(super) struct AtomicFile {
    wanted: PathBuf,
    written: PathBuf,
}

impl AtomicFile {
    /// The file that will be at `wanted`.
    pub(super) fn new(wanted: &Path) -> anyhow::Result<Self> {
        let name = wanted.file_name().with_context(|| format!("{} names no file", wanted.display()))?;
        let written = wanted.with_file_name(format!(".{}.unfinished", name.to_string_lossy()));
        Ok(Self { wanted: wanted.to_owned(), written })
    }

    /// Creates it, empty.
    pub(super) fn create(&self) -> anyhow::Result<File> {
        File::create(&self.written).with_context(|| self.to_string())
    }

    /// Where it is until it is whole.
    #[cfg(feature = "parquet")]
    pub(super) fn path(&self) -> &Path {
        &self.written
    }

    /// Gives it its name.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        fs::rename(&self.written, &self.wanted).with_context(|| self.to_string())
    }
}

impl fmt::Display for AtomicFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "writing {}", self.wanted.display())
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        // Once it has its name there is nothing left here to remove.
        let _ = fs::remove_file(&self.written);
    }
}
