//! Zip archives, opened once for all their entries: an archive of thousands has one table of contents.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use zip::ZipArchive;
use zip::result::ZipResult;

/// Bytes read at once.
const BUFFER: usize = 64 * 1024;

/// An archive's table of contents; a copy costs nothing, and reads for itself.
#[derive(Debug, Clone)]
pub struct Archive(ZipArchive<Positioned>);

impl PartialEq for Archive {
    fn eq(&self, other: &Self) -> bool {
        self.0.clone().into_inner().path == other.0.clone().into_inner().path
    }
}

impl Eq for Archive {}

impl Archive {
    /// Reads an archive's table of contents.
    pub(crate) fn open(path: &Path) -> ZipResult<Self> {
        let length = std::fs::metadata(path)?.len();
        let (path, file, buffer) = (Arc::from(path), None, Vec::new());
        let opened = ZipArchive::new(Positioned { path, length, file, at: 0, buffer, buffered_at: 0 })?;
        // A copy has opened nothing: a folder of thousands of archives has no file open while they wait.
        Ok(Self(opened.clone()))
    }

    /// Index and name of every entry.
    pub(crate) fn entries(&self) -> ZipResult<Vec<(usize, String)>> {
        let archive = &self.0;
        let names = (0..archive.len()).filter_map(|index| Some((index, archive.name_for_index(index)?)));
        names.map(|(index, name)| Ok((index, name?.into_owned()))).collect()
    }

    /// The archive, to read an entry of.
    pub(crate) fn reader(&self) -> ZipArchive<impl Read + Seek> {
        self.0.clone()
    }
}

/// A place in a file, which is opened when it is first read.
#[derive(Debug)]
struct Positioned {
    path: Arc<Path>,
    length: u64,
    file: Option<File>,
    at: u64,
    buffer: Vec<u8>,
    /// Where in the file the buffer begins.
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
