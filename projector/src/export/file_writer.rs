//! Writer of one Parquet file: rows are buffered and written as row groups with zstd compression.
//!
//! Temporary folder of an export, renamed when the export is complete.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use anyhow::{Context, bail};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use serde::Serialize;

use super::column::ParquetColumn;

/// Number of rows after which a row group is written.
const ROW_GROUP_ROWS: usize = 200_000;

/// Exported file.
#[derive(Debug, Clone, Serialize)]
pub struct ExportedFile {
    /// Path relative to the export's folder.
    pub path: PathBuf,
    /// Number of rows.
    pub rows: u64,
    /// Size of the file, in bytes.
    pub bytes: u64,
}

#[derive(Debug)]
pub(crate) struct ParquetFileWriter {
    writer: SerializedFileWriter<File>,
    columns: Vec<ParquetColumn>,
    folder: PathBuf,
    path: PathBuf,
    rows: u64,
}

impl ParquetFileWriter {
    /// Creates a file and its writer. `path` is relative to `folder`.
    fn create(folder: &Path, path: PathBuf, columns: Vec<ParquetColumn>) -> anyhow::Result<Self> {
        let whole = folder.join(&path);
        let file = || -> std::io::Result<File> {
            whole.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            File::create_new(&whole)
        };
        let file = file().with_context(|| cannot_write(&whole))?;
        Self::open(file, folder, path, columns)
    }

    /// Creates the writer of an empty file. `path` is relative to `folder`.
    pub(crate) fn open(
        file: File,
        folder: &Path,
        path: PathBuf,
        columns: Vec<ParquetColumn>,
    ) -> anyhow::Result<Self> {
        let writer = open_writer(file, &columns).with_context(|| cannot_write(&folder.join(&path)))?;
        Ok(Self { writer, columns, folder: folder.to_owned(), path, rows: 0 })
    }

    /// Returns the buffered columns. For each row, the caller appends one value to every column.
    pub(crate) fn columns(&mut self) -> &mut [ParquetColumn] {
        &mut self.columns
    }

    /// Writes a row group if enough rows are buffered.
    pub(crate) fn flush_full_group(&mut self) -> anyhow::Result<()> {
        if self.columns.first().is_some_and(|column| column.rows() >= ROW_GROUP_ROWS) {
            self.flush_group()
        } else {
            Ok(())
        }
    }

    fn flush_group(&mut self) -> anyhow::Result<()> {
        let rows = self.columns.first().map_or(0, ParquetColumn::rows);
        if rows == 0 {
            return Ok(());
        }
        let written = write_row_group(&mut self.writer, &mut self.columns);
        written.with_context(|| cannot_write(&self.folder.join(&self.path)))?;
        self.rows += rows as u64;
        Ok(())
    }

    /// Writes the remaining rows and the footer.
    pub(crate) fn finish(mut self) -> anyhow::Result<ExportedFile> {
        self.flush_group()?;
        let whole = self.folder.join(&self.path);
        self.writer.finish().with_context(|| cannot_write(&whole))?;
        let file = self.writer.inner();
        let length = file.sync_all().and_then(|()| file.metadata()).map(|metadata| metadata.len());
        let bytes = length.with_context(|| cannot_write(&whole))?;
        Ok(ExportedFile { path: self.path, rows: self.rows, bytes })
    }
}

/// Files of one table: one file per year, or a single file. The rows must arrive sorted by year.
pub(super) struct TableFiles<'a> {
    table: &'static str,
    folder: &'a Path,
    /// File that is being written, with its year.
    open: Option<(Option<i32>, ParquetFileWriter)>,
    finished: Vec<ExportedFile>,
}

impl<'a> TableFiles<'a> {
    pub(super) fn new(table: &'static str, folder: &'a Path) -> Self {
        Self { table, folder, open: None, finished: Vec::new() }
    }

    /// Returns the writer of the file for a year. If the open file has another year, finishes that file first.
    pub(super) fn writer(
        &mut self,
        year: Option<i32>,
        columns: impl FnOnce() -> anyhow::Result<Vec<ParquetColumn>>,
    ) -> anyhow::Result<&mut ParquetFileWriter> {
        if let Some((_, previous)) = self.open.take_if(|(open, _)| *open != year) {
            self.finished.push(previous.finish()?);
        }
        let (_, writer) = match &mut self.open {
            Some(open) => open,
            none => {
                let mut path = PathBuf::from(self.table);
                path.extend(year.map(|year| format!("year={year}")));
                path.push("part-0.parquet");
                none.insert((year, ParquetFileWriter::create(self.folder, path, columns()?)?))
            }
        };
        Ok(writer)
    }

    /// `true` if no file was created.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_none()
    }

    pub(super) fn finish(mut self) -> anyhow::Result<Vec<ExportedFile>> {
        let last = self.open.map(|(_, last)| last.finish());
        self.finished.extend(last.transpose()?);
        Ok(self.finished)
    }
}

fn open_writer(file: File, columns: &[ParquetColumn]) -> Result<SerializedFileWriter<File>, ParquetError> {
    let declared: String =
        columns.iter().map(|column| column.kind.parquet_declaration(&column.name)).collect();
    let schema = parse_message_type(&format!("message row {{ {declared} }}"))?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(None)
        .build();
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
}

fn write_row_group(
    writer: &mut SerializedFileWriter<File>,
    columns: &mut [ParquetColumn],
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for column in columns {
        let mut writer = group
            .next_column()?
            .ok_or_else(|| ParquetError::General(format!("the file has no column {}", column.name)))?;
        column.write(writer.untyped())?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// Folder of an incomplete export. Dropping this value removes the folder.
#[derive(Debug)]
pub(super) struct PartialFolder {
    path: PathBuf,
    target: PathBuf,
}

impl PartialFolder {
    /// Creates a folder next to `target`. Its name is the name of `target` with the suffix `.partial`. Fails if
    /// `target` exists and is not empty.
    pub(super) fn create(target: &Path) -> anyhow::Result<Self> {
        let shown = target.display();
        if !is_free(target).with_context(|| cannot_write(target))? {
            bail!("cannot create {shown}: the folder is not empty; name a new folder, or remove this one");
        }
        let name = target.file_name();
        let mut name =
            name.with_context(|| format!("cannot create {shown}: the path has no folder name"))?.to_owned();
        name.push(".partial");
        let path = target.with_file_name(name);
        fs::create_dir_all(parent(target)).with_context(|| cannot_write(&path))?;
        match fs::create_dir(&path) {
            Ok(()) => Ok(Self { path, target: target.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => bail!(
                "cannot create {}: an unfinished or running export uses it; remove it, then try again",
                path.display()
            ),
            Err(error) => Err(error).with_context(|| cannot_write(&path)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the folder to the final name, which completes the export.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        let Self { path, target } = &self;
        let renamed = fs::rename(path, target).and_then(|()| File::open(parent(target))?.sync_all());
        renamed.with_context(|| cannot_write(target))
    }
}

impl Drop for PartialFolder {
    /// Removes the folder if it was not renamed. A failed removal is ignored.
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
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
