//! Conversion of a feed file to UTF-8 text. Compression and encoding are detected from the first bytes.
//!
//! Invariant: a file is unpacked piece by piece, never completely in memory. A zip bomb causes an error.
//!
//! Conversion of text in other encodings to UTF-8.

use std::io;
use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use encoding_rs::{Decoder, Encoding, UTF_16BE, UTF_16LE};

use crate::source::feed_files::{FeedFile, Packing};
use crate::source::file_access::FileLocation;
use crate::source::parquet_table;
use crate::source::zip_archive::{ArchiveBudget, MAX_RATIO, exceeds_ratio};

const BUFFER: usize = 256 * 1024;

/// Calls `body` with a reader of the file's text. Gzip and zstd are unpacked, UTF-16 is converted to UTF-8, and Parquet
/// is converted to CSV.
pub(crate) fn read_text<T>(
    file: &FeedFile,
    body: impl FnOnce(&mut dyn Read) -> io::Result<T>,
) -> io::Result<T> {
    match &file.packing {
        Packing::Plain => match parquet(&file.location)? {
            Some(table) => in_utf8(table, body),
            None => unpacked(file.location.open()?, None, body),
        },
        Packing::Zip(archive, index) => {
            let (mut reader, begun) = (archive.reader(), Instant::now());
            let inner = reader.by_index(*index)?;
            archive.budget.charge(*index, 0, begun.elapsed())?;
            let packed = Arc::new(AtomicU64::new(inner.compressed_size()));
            let bounded = Bounded { inner, packed, unpacked: 0 };
            unpacked(bounded, Some((&archive.budget, *index)), body)
        }
    }
}

/// Names of the first columns in a Parquet file whose type is a binary double or float. Empty for other files.
pub(crate) fn double_columns(file: &FeedFile) -> io::Result<Vec<String>> {
    if matches!(file.packing, Packing::Plain) && is_parquet(&file.location)? {
        return parquet_table::double_columns(file.location.open()?);
    }
    Ok(Vec::new())
}

/// Opens a Parquet file as CSV text; `None` for other files.
fn parquet(location: &FileLocation) -> io::Result<Option<impl Read>> {
    if !is_parquet(location)? {
        return Ok(None);
    }
    let file = location.open()?;
    let packed = Arc::new(AtomicU64::new(file.metadata()?.len()));
    let inner = parquet_table::ParquetTable::open(file)?;
    Ok(Some(Bounded { inner, packed, unpacked: 0 }))
}

fn is_parquet(location: &FileLocation) -> io::Result<bool> {
    Ok(peek::<4, _>(location.open()?)?.0 == b"PAR1")
}

fn unpacked<T>(
    bytes: impl Read,
    archive: Option<(&ArchiveBudget, usize)>,
    body: impl FnOnce(&mut dyn Read) -> io::Result<T>,
) -> io::Result<T> {
    let packed = Arc::new(AtomicU64::new(0));
    let opened = Counted { inner: bytes, count: packed.clone() };
    let (start, opened) = peek::<4, _>(opened)?;
    if start.starts_with(&[0x1f, 0x8b]) {
        let inner = flate2::read::MultiGzDecoder::new(BufReader::with_capacity(BUFFER, opened));
        in_utf8(Metered::new(Bounded { inner, packed, unpacked: 0 }, archive), body)
    } else if start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let mut inner = zstd::Decoder::new(opened)?;
        inner.window_log_max(27)?;
        in_utf8(Metered::new(Bounded { inner, packed, unpacked: 0 }, archive), body)
    } else {
        in_utf8(Metered::new(opened, archive), body)
    }
}

/// Calls `body` with a reader of UTF-8 text. If `reader` begins with a UTF-16 byte-order mark, its text is converted.
fn in_utf8<R: Read, T>(reader: R, body: impl FnOnce(&mut dyn Read) -> io::Result<T>) -> io::Result<T> {
    let (start, mut reader) = peek::<2, _>(reader)?;
    match start.as_slice() {
        [0xff, 0xfe] => body(&mut Transcoder::new(reader, UTF_16LE)),
        [0xfe, 0xff] => body(&mut Transcoder::new(reader, UTF_16BE)),
        _ => body(&mut reader),
    }
}

/// Reads the first `N` bytes, or fewer if the content is shorter. Returns these bytes, and a reader of the whole
/// content, including these bytes.
fn peek<const N: usize, R: Read>(mut reader: R) -> io::Result<(Vec<u8>, impl Read)> {
    let mut start = Vec::with_capacity(N);
    reader.by_ref().take(N as u64).read_to_end(&mut start)?;
    Ok((start.clone(), io::Cursor::new(start).chain(reader)))
}

/// Reader that counts the packed bytes that it reads.
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

/// Reader that fails if the ratio of unpacked to packed bytes is too high.
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
        if exceeds_ratio(self.unpacked, packed) {
            let message = format!(
                "inflates more than {MAX_RATIO} times: this looks like a zip bomb; unpack it yourself if it is not"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(read)
    }
}

/// Reader that counts the bytes and the reading time of an archive entry against the limits of its archive. Without an
/// archive, nothing is counted.
struct Metered<'a, R> {
    inner: R,
    archive: Option<(&'a ArchiveBudget, usize)>,
    position: u64,
}

impl<'a, R> Metered<'a, R> {
    fn new(inner: R, archive: Option<(&'a ArchiveBudget, usize)>) -> Self {
        Self { inner, archive, position: 0 }
    }
}

impl<R: Read> Read for Metered<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some((budget, entry)) = self.archive else { return self.inner.read(buffer) };
        let begun = Instant::now();
        let read = self.inner.read(buffer)?;
        self.position += read as u64;
        budget.charge(entry, self.position, begun.elapsed())?;
        Ok(read)
    }
}

/// Reader that converts a text to UTF-8. An incomplete character at the end of the text becomes U+FFFD.
pub(crate) struct Transcoder<R> {
    inner: R,
    /// `None` after the end of the text.
    decoder: Option<Decoder>,
    /// Converted text that the caller has not read yet.
    text: io::Cursor<Vec<u8>>,
}

impl<R: Read> Transcoder<R> {
    /// Creates a reader for a text in `encoding`. A byte-order mark becomes the byte-order mark of UTF-8.
    pub(crate) fn new(inner: R, encoding: &'static Encoding) -> Self {
        let decoder = Some(encoding.new_decoder_without_bom_handling());
        Self { inner, decoder, text: io::Cursor::default() }
    }
}

impl<R: Read> Read for Transcoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.text.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(decoder) = &mut self.decoder else { return Ok(0) };
            let mut bytes = [0; 64 * 1024];
            let read = self.inner.read(&mut bytes)?;
            let length = decoder.max_utf8_buffer_length(read).unwrap_or_default();
            let mut text = String::with_capacity(length);
            // The decoder keeps the bytes of an incomplete character for the next call.
            let _ = decoder.decode_to_string(&bytes[..read], &mut text, read == 0);
            self.text = io::Cursor::new(text.into_bytes());
            if read == 0 {
                self.decoder = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::PathBuf;

    use super::*;
    use crate::source::feed_files::Encoding;

    fn written(name: &str, bytes: &[u8]) -> FeedFile {
        let path: PathBuf = std::env::temp_dir().join(format!("{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let (location, label) = (path.into(), name.to_owned());
        FeedFile { location, label, packing: Packing::Plain, encoding: Encoding::Csv }
    }

    fn inflate(file: &FeedFile) -> io::Result<u64> {
        let result = read_text(file, |reader| io::copy(reader, &mut io::sink()));
        std::fs::remove_file(&file.location.path).unwrap();
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
    fn the_bytes_say_how_they_are_packed_and_coded() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        let utf16: Vec<u8> = "\u{feff}a,ö\n😀,2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        encoder.write_all(&utf16).unwrap();
        for (name, bytes) in [("named.csv", encoder.finish().unwrap()), ("plain.csv.gz", utf16)] {
            let file = written(name, &bytes);
            let mut text = String::new();
            read_text(&file, |reader| reader.read_to_string(&mut text)).unwrap();
            std::fs::remove_file(&file.location.path).unwrap();
            assert_eq!(text, "\u{feff}a,ö\n😀,2\n", "{name}");
        }
    }

    #[test]
    fn damage_is_an_error() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(&[b'a'; 1000]).unwrap();
        let whole = encoder.finish().unwrap();
        assert!(inflate(&written("broken.csv.gz", &whole[..whole.len() - 9])).is_err());
    }
}

#[cfg(test)]
mod transcoder_tests {
    use encoding_rs::{UTF_16LE, WINDOWS_1252};

    use super::*;

    #[test]
    fn umlauts_and_the_euro_are_recoded() {
        let mut text = String::new();
        Transcoder::new(&b"Er\xf6ffnung;\x80;A"[..], WINDOWS_1252).read_to_string(&mut text).unwrap();
        assert_eq!(text, "Eröffnung;€;A");
    }

    #[test]
    fn an_incomplete_character_at_the_end_is_replaced() {
        for rest in [&b"\x3d"[..], b"\x3d\xd8"] {
            let bytes = [&b"A\0;\0"[..], rest].concat();
            let mut text = String::new();
            Transcoder::new(&bytes[..], UTF_16LE).read_to_string(&mut text).unwrap();
            assert_eq!(text, "A;\u{fffd}");
        }
    }

    #[test]
    fn every_byte_is_a_character() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut text = String::new();
        Transcoder::new(&bytes[..], WINDOWS_1252).read_to_string(&mut text).unwrap();
        assert_eq!(text.chars().count(), 256);
        assert!(!text.contains('\u{fffd}'), "{text}");
    }
}
