//! Inputs of a load: files with a detected format and a content digest. Compression and folder do not change the
//! digest.

use std::collections::BTreeSet;
use std::io;

use rayon::prelude::*;

use crate::format::{FileFormat, FileHead, ReaderOptions};
use crate::normalize::ExchangeZone;
use crate::rejects::RejectIdSearch;
use crate::source::feed_files::FeedFile;
use crate::source::unpack;

/// Size of the read buffer, in bytes. An archive may have many small files, and each needs a buffer.
const BUFFER: usize = 64 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct LoadInput {
    pub file: FeedFile,
    pub format: FileFormat,
    /// Time zone of the exchange. Set if the date column contains UTC times that are midnight in this zone.
    pub zone: Option<ExchangeZone>,
    /// Digest of the unpacked content and of [`FileFormat::identity_context`], as 64 hexadecimal digits.
    pub digest: String,
    /// Hash of the unpacked content. The load reads the file a second time to parse it. If the hash is then different,
    /// the file has changed, and the load fails.
    pub content: blake3::Hash,
    pub unpacked_bytes: u64,
    /// Ids of rejects of earlier loads. This file contains the corrected rows of these rejects.
    pub mends: BTreeSet<String>,
    /// Names of the first Parquet columns with binary floating-point numbers. Each number is read as the shortest decimal
    /// with the same binary value.
    pub doubles: Vec<String>,
}

/// Detects the format and computes the digest of each file, on several threads. The results are in the order of
/// `files`. An error is the reason for refusing the file.
pub(crate) fn identify_inputs(
    files: &[FeedFile],
    options: &ReaderOptions,
    report_bytes: &(impl Fn(u64) + Sync),
) -> Vec<Result<LoadInput, String>> {
    files.par_iter().map(|file| identify_file(file, options, report_bytes)).collect()
}

fn identify_file(
    file: &FeedFile,
    options: &ReaderOptions,
    report_bytes: &impl Fn(u64),
) -> Result<LoadInput, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let head = unpack::read_text(file, |reader| FileHead::read(file, reader)).map_err(unreadable)?;
    let format = FileFormat::detect(file, &head, options)?;
    let zone = format.exchange_zone(&head)?;
    let mut mends = RejectIdSearch::default();
    let (content, unpacked_bytes) = unpack::read_text(file, |reader| {
        let (mut hasher, mut bytes) = (blake3::Hasher::new(), 0);
        let mut buffer = vec![0; BUFFER];
        loop {
            let read = reader.read(&mut buffer)?;
            if read == 0 {
                return Ok((hasher.finalize(), bytes));
            }
            hasher.update(&buffer[..read]);
            bytes += read as u64;
            mends.search_piece(&buffer[..read]);
            report_bytes(read as u64);
        }
    })
    .map_err(unreadable)?;
    let context = format.identity_context();
    let digest = if context.is_empty() {
        content
    } else {
        blake3::Hasher::new().update(content.as_bytes()).update(context.as_bytes()).finalize()
    };
    let digest = digest.to_hex().to_string();
    let doubles = unpack::double_columns(file).map_err(unreadable)?;
    Ok(LoadInput {
        file: file.clone(),
        format,
        zone,
        digest,
        content,
        unpacked_bytes,
        mends: mends.ids,
        doubles,
    })
}
