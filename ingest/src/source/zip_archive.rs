//! Zip archive. Its entries, often thousands, share one central directory in memory.
//!
//! Invariant: the limits of unpacked bytes and of time apply to all entries together. Entries do not overlap.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use zip::ZipArchive;
use zip::result::{ZipError, ZipResult};

use super::file_label::FileLocation;
use super::inflation_limit::ArchiveBudget;

/// Size of the read buffer, in bytes.
const BUFFER: usize = 64 * 1024;
/// Central directory of an archive. Clones share the directory, and each clone has its own reader.
#[derive(Debug, Clone)]
pub struct ZipDirectory {
    archive: ZipArchive<ReopeningReader>,
    budget: Arc<ArchiveBudget>,
}

impl ZipDirectory {
    /// Reads the central directory of an archive. Fails if entries overlap.
    pub(crate) fn open(location: &FileLocation) -> ZipResult<Self> {
        let length = location.open()?.metadata()?.len();
        let (location, file, buffer) = (Arc::new(location.clone()), None, Vec::new());
        let opened =
            ZipArchive::new(ReopeningReader { location, length, file, at: 0, buffer, buffered_at: 0 })?;
        // `opened` has an open file, but a clone opens the file only at its first read. Store a clone, so that
        // thousands of archives keep no file open.
        let archive = opened.clone();
        let mut checked = opened;
        if checked.has_overlapping_entries()? {
            return Err(ZipError::InvalidArchive("its entries overlap, as in a zip bomb".into()));
        }
        let budget = Arc::new(ArchiveBudget::new(length, archive.len()));
        Ok(Self { archive, budget })
    }

    pub(crate) fn entries(&self) -> ZipResult<Vec<(usize, String)>> {
        let archive = &self.archive;
        let names = (0..archive.len()).filter_map(|index| Some((index, archive.name_for_index(index)?)));
        names.map(|(index, name)| Ok((index, name?.into_owned()))).collect()
    }

    /// Reader for entries of the archive. Each call returns a reader with its own file position.
    pub(crate) fn reader(&self) -> ZipArchive<impl Read + Seek> {
        self.archive.clone()
    }

    pub(crate) fn budget(&self) -> &ArchiveBudget {
        &self.budget
    }
}

/// Reader with its own position in a file. The file is opened at the first read.
#[derive(Debug)]
struct ReopeningReader {
    location: Arc<FileLocation>,
    length: u64,
    file: Option<File>,
    at: u64,
    buffer: Vec<u8>,
    /// Offset of the first byte of the buffer within the file.
    buffered_at: u64,
}

impl Clone for ReopeningReader {
    fn clone(&self) -> Self {
        let (location, file, buffer) = (self.location.clone(), None, Vec::new());
        Self { location, length: self.length, file, at: self.at, buffer, buffered_at: 0 }
    }
}

impl ReopeningReader {
    /// Fills the buffer from the reader's position. Always returns 0, the index of this position in the buffer.
    fn fill_buffer(&mut self) -> io::Result<usize> {
        self.buffer.resize(BUFFER, 0);
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.location.open()?),
        };
        let read = file.read_at(&mut self.buffer, self.at)?;
        self.buffer.truncate(read);
        self.buffered_at = self.at;
        Ok(0)
    }
}

impl Read for ReopeningReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let offset = self.at.checked_sub(self.buffered_at).and_then(|offset| usize::try_from(offset).ok());
        let start = match offset.filter(|offset| *offset < self.buffer.len()) {
            Some(start) => start,
            None => self.fill_buffer()?,
        };
        let count = (&self.buffer[start..]).read(into)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for ReopeningReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.length.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
