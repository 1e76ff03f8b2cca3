//! Inputs: files whose format is known and whose content is identified, before anything of them is loaded.
//!
//! An input's digest is of its unpacked content, and of what its format adds to the reading (a CSV file's kind, the
//! symbol a file's name gives): the same rows have the same digest, however the file is packed and wherever it lies.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::format::{Format, Head, Options};
use crate::rejects::IdSearch;
use crate::source::files::FeedFile;
use crate::source::unpack;

/// One file to load.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    pub file: FeedFile,
    pub format: Format,
    /// Identity of its rows, 64 hex digits.
    pub digest: String,
    /// Hash of the unpacked content, by which a change while it is read is noticed.
    pub content: blake3::Hash,
    /// Unpacked size.
    pub bytes: u64,
    /// Ids of rows refused before that it holds mended.
    pub mends: BTreeSet<String>,
    /// Columns that hold binary doubles, which were read by their shortest decimals.
    pub doubles: Vec<String>,
}

impl Input {
    /// The same rows as another input, so that they are published though the log has them.
    pub(crate) fn again(self, name: &str) -> Self {
        let digest = blake3::Hasher::new().update(self.digest.as_bytes()).update(name.as_bytes()).finalize();
        Self { digest: digest.to_hex().to_string(), ..self }
    }
}

/// Looks at every file, in their order: an input, or why it is refused.
pub(crate) fn survey(
    files: &[FeedFile],
    options: &Options,
    seen: &(impl Fn(u64) + Sync),
) -> Vec<Result<Input, String>> {
    let next = AtomicUsize::new(0);
    let found: Mutex<Vec<(usize, Result<Input, String>)>> = Mutex::default();
    let threads = std::thread::available_parallelism().map_or(2, std::num::NonZero::get).min(files.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((index, file)) =
                    files.iter().enumerate().nth(next.fetch_add(1, Ordering::Relaxed))
                {
                    let input = examine(file, options, seen);
                    found.lock().unwrap_or_else(PoisonError::into_inner).push((index, input));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.sort_by_key(|(index, _)| *index);
    found.into_iter().map(|(_, input)| input).collect()
}

fn examine(file: &FeedFile, options: &Options, seen: &impl Fn(u64)) -> Result<Input, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let head = unpack::read(file, |reader| Head::read(file, reader)).map_err(unreadable)?;
    let format = Format::recognise(file, &head, options)?;
    let mut mends = IdSearch::default();
    let (content, bytes) = unpack::read(file, |reader| {
        let mut hashing = Hashing::new(reader);
        let mut buffer = vec![0; 1 << 20];
        loop {
            let read = hashing.read(&mut buffer)?;
            if read == 0 {
                return Ok((hashing.hasher.finalize(), hashing.bytes));
            }
            mends.look(&buffer[..read]);
            seen(read as u64);
        }
    })
    .map_err(unreadable)?;
    let reading = format.reading();
    let digest = if reading.is_empty() {
        content
    } else {
        blake3::Hasher::new().update(content.as_bytes()).update(reading.as_bytes()).finalize()
    };
    let digest = digest.to_hex().to_string();
    let doubles = unpack::doubles(file).map_err(unreadable)?;
    Ok(Input { file: file.clone(), format, digest, content, bytes, mends: mends.ids, doubles })
}

/// Hashes what is read through it.
pub(crate) struct Hashing<R> {
    inner: R,
    pub hasher: blake3::Hasher,
    pub bytes: u64,
}

impl<R: Read> Hashing<R> {
    /// Hashes `inner`.
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, hasher: blake3::Hasher::new(), bytes: 0 }
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.bytes += read as u64;
        Ok(read)
    }
}
