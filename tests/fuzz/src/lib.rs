//! Fuzz targets: one function for each parser of untrusted bytes. No input may cause a panic. cargo-fuzz calls the
//! functions with generated inputs, and `cargo test` calls them with the corpus and with random bytes.

use async_nats::HeaderMap;
use codec::bars::{PackedBars, unpack_closes};
use codec::records::{self, RecordSet};
use event_log::record_batch::{Envelope, RecordBatch};
use market::event::{Dividend, HoldingSnapshot, Kind, Security};

/// Parses a feed file of any format. The first byte selects the format and the file name. The other bytes are the
/// content.
pub fn formats(bytes: &[u8]) {
    if let Some((choice, content)) = bytes.split_first() {
        ingest::fuzz_targets::parse_file(*choice, content);
    }
}

/// Parses a column map (TOML), and then a feed file with this map. In the input, a line `----` separates the two.
pub fn maps(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (map, file) = text.split_once("\n----\n").unwrap_or((&text, ""));
    ingest::fuzz_targets::parse_mapped_file(map, file.as_bytes());
}

/// Parses the bytes as lines, and then as CSV records.
pub fn records(bytes: &[u8]) {
    ingest::fuzz_targets::parse_records(bytes);
}

/// Decodes a message of the event log. The input contains the headers as lines `name: value`, an empty line, and the
/// body of the message.
pub fn batches(bytes: &[u8]) {
    let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let mut headers = HeaderMap::new();
    for line in String::from_utf8_lossy(&bytes[..end]).lines() {
        if let Some((name, value)) = line.split_once(": ")
            && !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !value.contains('\r')
        {
            headers.insert(name, value);
        }
    }
    let body = bytes.get(end + 2..).unwrap_or_default();
    let _ = Envelope::read_all(Some(&headers));
    for batch in RecordBatch::decode(Some(&headers), body).unwrap_or_default() {
        let _ = batch.body.rows_json();
        let _ = batch.body.observations(batch.id);
        let _ = batch.body.split_in_halves();
    }
}

/// Decodes the bytes as compressed price bars, and as compressed records such as dividends and splits.
pub fn columns(bytes: &[u8]) {
    if let Ok(packed) = postcard::from_bytes::<PackedBars>(bytes) {
        let _ = unpack_closes(&packed.days, &packed.close, &packed.versions, 0);
        if let Ok(bars) = packed.unpack() {
            for index in 0..bars.len() {
                let _ = bars.decimal(bars.bar(index).close);
            }
        }
    }
    for kind in [Kind::Dividend, Kind::Split, Kind::Security] {
        let _ = RecordSet::unpack(kind, bytes);
    }
    let _ = records::read::<Dividend>("a", bytes);
    let _ = records::read::<Security>("a", bytes);
    let _ = records::read::<HoldingSnapshot>("a", bytes);
}
