//! Zip archive. Its entries, often thousands, share one central directory in memory.
//!
//! Invariant: the limits of unpacked bytes and of time apply to all entries together. Entries do not overlap.
//!
//! Limits against zip bombs: compression ratios of files and archives, and unpacking time of archives.

use std::fs::File;
use std::io;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use zip::ZipArchive;
use zip::result::{ZipError, ZipResult};

use super::file_access::FileLocation;

/// Central directory of an archive. Clones share the directory, and each clone has its own reader.
#[derive(Debug, Clone)]
pub struct ZipDirectory {
    archive: ZipArchive<ReopeningReader>,
    pub(crate) budget: Arc<ArchiveBudget>,
}

impl ZipDirectory {
    /// Reads the central directory of an archive. Fails if entries overlap.
    pub(crate) fn open(location: &FileLocation) -> ZipResult<Self> {
        let length = location.open()?.metadata()?.len();
        let location = Arc::new(location.clone());
        let opened = ZipArchive::new(ReopeningReader { location, length, file: None, at: 0 })?;
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
}

/// Reader with its own position in a file. The file is opened at the first read.
#[derive(Debug)]
struct ReopeningReader {
    location: Arc<FileLocation>,
    length: u64,
    file: Option<File>,
    at: u64,
}

impl Clone for ReopeningReader {
    fn clone(&self) -> Self {
        Self { location: self.location.clone(), length: self.length, file: None, at: self.at }
    }
}

impl Read for ReopeningReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(self.location.open()?),
        };
        let count = file.read_at(into, self.at)?;
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

/// Maximum ratio of unpacked to packed bytes. A higher ratio indicates a zip bomb and is refused. Feeds have ratios of
/// 3 to 40. Deflate can reach 1,032, and zstd far more.
pub(super) const MAX_RATIO: u64 = 250;
/// Unpacked size below which every ratio is accepted, in bytes.
const MIN_CHECKED_BYTES: u64 = 64 * 1024 * 1024;
/// Constant part of the maximum time to unpack an archive. The maximum is this time plus one second per
/// [`BYTES_PER_SECOND`] bytes of the packed archive.
const UNPACK_TIME: Duration = Duration::from_secs(60);
const BYTES_PER_SECOND: u64 = 1024 * 1024;

/// True if the ratio of unpacked to packed bytes indicates a zip bomb.
pub(super) fn exceeds_ratio(unpacked: u64, packed: u64) -> bool {
    unpacked > MIN_CHECKED_BYTES && unpacked / packed.max(1) > MAX_RATIO
}

/// Unpacked bytes and unpacking time of an archive, summed over all its entries and compared with the limits. The bytes
/// of an entry count once, even if the entry is read several times.
#[derive(Debug)]
pub(crate) struct ArchiveBudget {
    /// Size of the archive, in bytes.
    packed: u64,
    /// Farthest position that was read in each entry, in unpacked bytes.
    entries: Vec<AtomicU64>,
    unpacked: AtomicU64,
    nanos: AtomicU64,
}

impl ArchiveBudget {
    /// Budget of an archive. `packed` is its size in bytes, `entries` the number of its entries.
    pub(super) fn new(packed: u64, entries: usize) -> Self {
        let entries = (0..entries).map(|_| AtomicU64::new(0)).collect();
        Self { packed, entries, unpacked: AtomicU64::new(0), nanos: AtomicU64::new(0) }
    }

    /// Adds one read to the totals of the archive. The read ended at `position` in the entry `entry`, and took the time
    /// `time`. Fails if a limit of the archive is exceeded.
    pub(crate) fn charge(&self, entry: usize, position: u64, time: Duration) -> io::Result<()> {
        let before = self.entries.get(entry).map_or(0, |read| read.fetch_max(position, Ordering::Relaxed));
        let more = position.saturating_sub(before);
        let unpacked = self.unpacked.fetch_add(more, Ordering::Relaxed) + more;
        let refuse = |reason: String| Err(io::Error::new(io::ErrorKind::InvalidData, reason));
        if exceeds_ratio(unpacked, self.packed) {
            return refuse(
                "the entries of its archive inflate too far together: this looks like a zip bomb; unpack it yourself if it is not"
                    .to_owned(),
            );
        }
        // `u64::MAX` nanoseconds are 584 years, which exceeds every limit.
        let spent = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let spent =
            Duration::from_nanos(self.nanos.fetch_add(spent, Ordering::Relaxed).saturating_add(spent));
        let limit = UNPACK_TIME + Duration::from_secs(self.packed / BYTES_PER_SECOND);
        if spent > limit {
            return refuse(format!(
                "its archive takes more than {} s to unpack: unpack it yourself",
                limit.as_secs()
            ));
        }
        Ok(())
    }
}
