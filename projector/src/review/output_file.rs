//! Output files of a command. A file is written under a temporary name and renamed when it is complete.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use telemetry::report::Report;

/// Maximum number of rows per table and per topic on a page, unless `--limit` is larger.
pub(crate) const HTML_ROWS: usize = 500;

/// File with a temporary name until it is complete. If this value is dropped before [`AtomicFile::finish`], the
/// temporary file is removed.
#[derive(Debug)]
pub(crate) struct AtomicFile {
    wanted: PathBuf,
    written: PathBuf,
}

impl AtomicFile {
    /// Creates the temporary file. `wanted` is the path that the complete file gets.
    pub(crate) fn create(wanted: &Path) -> anyhow::Result<(File, Self)> {
        let name = wanted
            .file_name()
            .with_context(|| format!("cannot create {}: the path has no file name", wanted.display()))?;
        let written = wanted.with_file_name(format!(".{}.unfinished", name.to_string_lossy()));
        let file = Self { wanted: wanted.to_owned(), written };
        // Remove the temporary file that an interrupted command left. If a link is created at the path after this,
        // `create_new` fails instead of following the link.
        let _ = fs::remove_file(&file.written);
        Ok((File::create_new(&file.written).with_context(|| file.to_string())?, file))
    }

    #[cfg(feature = "parquet")]
    pub(crate) fn path(&self) -> &Path {
        &self.written
    }

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

/// HTML file for a report. It is created before the report is computed, so that a file error is reported early.
#[derive(Debug)]
pub(crate) struct PageFile {
    created: File,
    file: AtomicFile,
}

impl PageFile {
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let (created, file) = AtomicFile::create(path)?;
        Ok(Self { created, file })
    }

    pub(crate) fn write(self, report: &Report) -> anyhow::Result<()> {
        let Self { mut created, file } = self;
        let mut page = String::new();
        report.write_page(&mut page)?;
        created.write_all(page.as_bytes()).with_context(|| file.to_string())?;
        file.finish()
    }
}
