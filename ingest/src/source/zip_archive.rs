//! Zip archive, opened once for all entries: an archive with thousands of entries has one central directory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use zip::ZipArchive;
use zip::result::ZipResult;

/// Buffer size in bytes.
const BUFFER: usize = 64 * 1024;

/// Central directory of an archive. A clone is cheap and has its own reader.
#[derive(Debug, Clone)]
pub struct ZipDirectory(ZipArchive<Positioned>);

impl PartialEq for ZipDirectory {
    fn eq(&self, other: &Self) -> bool {
        self.0.clone().into_inner().path == other.0.clone().into_inner().path
    }
}

impl Eq for ZipDirectory {}

impl ZipDirectory {
    /// Reads the central directory of an archive.
    pub(crate) fn open(path: &Path) -> ZipResult<Self> {
        let length = std::fs::metadata(path)?.len();
        let (path, file, buffer) = (Arc::from(path), None, Vec::new());
        let opened = ZipArchive::new(Positioned { path, length, file, at: 0, buffer, buffered_at: 0 })?;
        // A clone has no open file. A folder with thousands of archives therefore keeps no file open.
        Ok(Self(opened.clone()))
    }

    pub(crate) fn entries(&self) -> ZipResult<Vec<(usize, String)>> {
        let archive = &self.0;
        let names = (0..archive.len()).filter_map(|index| Some((index, archive.name_for_index(index)?)));
        names.map(|(index, name)| Ok((index, name?.into_owned()))).collect()
    }

    /// Reader for an entry of the archive.
    pub(crate) fn reader(&self) -> ZipArchive<impl Read + Seek> {
        self.0.clone()
    }
}

/// Reader with a position in a file, which is opened at the first read.
#[derive(Debug)]
struct Positioned {
    path: Arc<Path>,
    length: u64,
    file: Option<File>,
    at: u64,
    buffer: Vec<u8>,
    /// File position of the buffer's start.
    buffered_at: u64,
}

impl Clone for Positioned {
    fn clone(&self) -> Self {
        let (path, file, buffer) = (self.path.clone(), None, Vec::new());
        Self { path, length: self.length, file, at: self.at, buffer, buffered_at: 0 }
    }
}

impl Read for Positioned {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let buffered = self.at.checked_sub(self.buffered_at).and_then(|skip| usize::try_from(skip).ok());
        let mut skip = buffered.filter(|skip| *skip < self.buffer.len());
        if skip.is_none() {
            self.buffer.resize(BUFFER, 0);
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(File::open(&self.path)?),
            };
            let read = file.read_at(&mut self.buffer, self.at)?;
            self.buffer.truncate(read);
            self.buffered_at = self.at;
            skip = Some(0);
        }
        let available = &self.buffer[skip.unwrap_or_default()..];
        let count = available.len().min(into.len());
        into[..count].copy_from_slice(&available[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Positioned {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(offset) => self.length.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.at.checked_add_signed(offset),
        };
        self.at = place.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
