//! A feed file's bytes, unpacked and counted.
//!
//! Invariant: nothing is inflated whole; a file that inflates beyond all measure (a zip bomb) ends in an error after
//! a bounded amount of work.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::source::{FeedFile, Packing};

/// Real feeds inflate 3 to 40 times; deflate can reach 1,032 and zstd far more.
const MAX_RATIO: u64 = 250;
/// Files that inflate to less than this are harmless whatever their ratio.
const HARMLESS: u64 = 64 * 1024 * 1024;
const BUFFER: usize = 256 * 1024;

/// Opens a file and gives its unpacked bytes to `body`.
pub(crate) fn read<T>(file: &FeedFile, body: impl FnOnce(&mut dyn Read) -> io::Result<T>) -> io::Result<T> {
    let packed = Arc::new(AtomicU64::new(0));
    let opened = Counted { inner: File::open(&file.path)?, count: packed.clone() };
    match file.packing {
        Packing::Plain => body(&mut { opened }),
        Packing::Gzip => {
            let inner = flate2::read::MultiGzDecoder::new(BufReader::with_capacity(BUFFER, opened));
            body(&mut Bounded { inner, packed, unpacked: 0 })
        }
        Packing::Zstd => {
            let mut inner = zstd::Decoder::new(opened)?;
            inner.window_log_max(27)?;
            body(&mut Bounded { inner, packed, unpacked: 0 })
        }
        Packing::Zip(index) => {
            let mut archive =
                zip::ZipArchive::new(BufReader::with_capacity(BUFFER, File::open(&file.path)?))?;
            let inner = archive.by_index(index)?;
            packed.store(inner.compressed_size(), Ordering::Relaxed);
            body(&mut Bounded { inner, packed, unpacked: 0 })
        }
    }
}

/// Counts the packed bytes taken.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.count.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Refuses to go on once the inflated bytes are out of proportion.
struct Bounded<R> {
    inner: R,
    packed: Arc<AtomicU64>,
    unpacked: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.unpacked += read as u64;
        let packed = self.packed.load(Ordering::Relaxed);
        if self.unpacked > HARMLESS && self.unpacked / packed.max(1) > MAX_RATIO {
            let message = format!(
                "inflates more than {MAX_RATIO} times: this looks like a zip bomb; unpack it yourself if it is not"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;
    use crate::source::Encoding;

    fn written(name: &str, bytes: &[u8]) -> FeedFile {
        let path: PathBuf = std::env::temp_dir().join(format!("{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let packing = if name.ends_with("gz") { Packing::Gzip } else { Packing::Zstd };
        FeedFile { path, label: name.to_owned(), packing, encoding: Encoding::Csv }
    }

    fn inflate(file: &FeedFile) -> io::Result<u64> {
        let result = read(file, |reader| io::copy(reader, &mut io::sink()));
        std::fs::remove_file(&file.path).unwrap();
        result
    }

    #[test]
    fn a_bomb_is_refused() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        let zeros = vec![0; 1 << 20];
        (0..80).for_each(|_| encoder.write_all(&zeros).unwrap());
        let file = written("bomb.csv.gz", &encoder.finish().unwrap());
        assert!(inflate(&file).unwrap_err().to_string().contains("zip bomb"));
    }

    #[test]
    fn packed_files_are_read() {
        let file = written("small.csv.zst", &zstd::bulk::compress(&vec![b'a'; 1 << 20], 3).unwrap());
        assert_eq!(inflate(&file).unwrap(), 1 << 20);
    }

    #[test]
    fn damage_is_an_error() {
        assert!(inflate(&written("broken.csv.gz", b"not gzip at all")).is_err());
    }
}
