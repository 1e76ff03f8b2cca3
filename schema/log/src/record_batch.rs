//! Record batch: rows of one kind with their provenance. Loading a feed again gives the same batches with the same ids.
//! A stored batch is never edited.
//!
//! Record batches of a run, computed from its manifest.
//!
//! Rows of a price batch: packed columns for each symbol. The bars can be converted to JSON rows, for display and for
//! the repair of dead letters.

use async_nats::HeaderMap;
use bytes::Bytes;
use codec::bars::{PackedBars, PackedBarsError};
use market::bars::{Bars, MISSING};
use market::day::date_of;
use market::decimal::ExactDecimal;
use market::event::RunManifest;
use market::symbol::Symbol;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use crate::body::Body;
pub use crate::codec::{Codec, MAX_BYTES, TARGET_BYTES, unpacked_length};
pub use crate::envelope::BatchId;
pub use crate::envelope::{BODY_VERSION, Envelope, schema_name};
pub use crate::error::{BatchError, RecordError};

/// Rows of one kind with their provenance. A log message usually has one batch. A shared message has several.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordBatch {
    /// Id of the batch. If the same feed is loaded again, the id stays the same.
    pub id: BatchId,
    /// Name of the feed of the rows: the value of the `ingest` option `--source`.
    pub source: String,
    /// Id of the run that published the batch.
    pub run: String,
    /// Number of the batch within its run, from 0.
    pub chunk: u64,
    /// Name of the file from which the rows were read, for display.
    pub file: String,
    /// Line number in `file` of the first row of the batch.
    pub line: u64,
    /// Rows of the batch.
    pub body: Body,
}

impl RecordBatch {
    /// Encodes the batch as headers and body of a message that contains only this batch.
    pub fn encode(&self) -> Result<(HeaderMap, Bytes), BatchError> {
        let (codec, body) = self.body.encode()?;
        Ok((self.envelope(codec).to_headers(), body))
    }

    pub(crate) fn envelope(&self, codec: Codec) -> Envelope {
        Envelope {
            id: self.id,
            kind: self.body.kind(),
            version: BODY_VERSION,
            codec,
            source: self.source.clone(),
            run: self.run.clone(),
            chunk: self.chunk,
            rows: self.body.row_count() as u64,
            file: self.file.clone(),
            line: self.line,
        }
    }

    /// Decodes a batch from its envelope and its encoded rows.
    pub(crate) fn from_parts(envelope: Envelope, payload: &[u8]) -> Result<Self, BatchError> {
        let mut body = Body::decode(envelope.kind, envelope.codec, payload)?;
        if let Body::Prices(series) = &mut body {
            for version in series.iter_mut().flat_map(|s| &mut s.bars.versions) {
                (version.frame, version.line) = (envelope.id.0, envelope.line);
            }
        }
        let Envelope { id, source, run, chunk, file, line, .. } = envelope;
        Ok(Self { id, source, run, chunk, file, line, body })
    }
}

/// Ids of all record batches of a completed run, computed from its manifest.
pub fn batch_ids_of_run(run: &RunManifest) -> impl Iterator<Item = BatchId> {
    run.frames.iter().flat_map(move |cut| {
        let schema = schema_name(cut.kind);
        (0..cut.frames).map(move |chunk| BatchId::from_provenance(&run.source, &cut.input, chunk, &schema))
    })
}

/// Bars of one symbol in a price batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolSeries {
    /// Symbol of the bars, in canonical spelling.
    pub symbol: Symbol,
    /// Bars in the order of the feed's file.
    pub bars: Bars,
}

#[derive(Serialize, Deserialize)]
struct PackedSeries {
    symbol: Symbol,
    columns: PackedBars,
}

pub(crate) fn encode_columns(series: &[SymbolSeries]) -> Result<Bytes, BatchError> {
    let packed: Vec<PackedSeries> = series
        .iter()
        .map(|s| Ok(PackedSeries { symbol: s.symbol.clone(), columns: PackedBars::pack(&s.bars)? }))
        .collect::<Result<_, PackedBarsError>>()?;
    Ok(postcard::to_stdvec(&packed)?.into())
}

pub(crate) fn decode_columns(bytes: &[u8]) -> Result<Vec<SymbolSeries>, BatchError> {
    let packed: Vec<PackedSeries> = postcard::from_bytes(bytes)?;
    packed.into_iter().map(|s| Ok(SymbolSeries { symbol: s.symbol, bars: s.columns.unpack()? })).collect()
}

/// JSON objects of the bars, one object per bar.
pub(crate) fn bars_json(series: &SymbolSeries) -> impl Iterator<Item = Value> + '_ {
    let bars = &series.bars;
    let price = |value: i64| bars.decimal(value).map(|value| ExactDecimal::from(value).to_string());
    let count = |value: i64| (value != MISSING).then_some(value);
    (0..bars.len()).map(move |index| {
        let (bar, version) = (bars.bar(index), bars.version_of(index));
        let mut row = json!({
            "symbol": series.symbol,
            "date": date_of(bar.day),
            "open": price(bar.open),
            "high": price(bar.high),
            "low": price(bar.low),
            "close": if version.retracted { None } else { price(bar.close) },
            "volume": count(bar.volume),
            "vwap": price(bar.vwap),
            "trade_count": count(bar.trade_count),
            "revision": version.revision,
            "action": if version.retracted { "retract" } else { "put" },
            "observed_at": version.observation_time(),
            "basis": if version.basis_day.is_some() { "split_adjusted" } else { "raw" },
            "basis_as_of": version.basis_day.filter(|day| *day != 0).map(date_of),
        });
        if let Some(fields) = row.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        row
    })
}

#[cfg(test)]
mod tests {
    use market::event::Kind;

    use super::*;

    fn headers(schema: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", "0".repeat(32).as_str());
        for (name, value) in
            [("Schema", schema), ("Source", "a"), ("Run", "r"), ("Codec", "json"), ("File", "f")]
        {
            headers.insert(format!("Dds-{name}").as_str(), value);
        }
        for name in ["Chunk", "Rows", "Line"] {
            headers.insert(format!("Dds-{name}").as_str(), "1");
        }
        headers
    }

    #[test]
    fn a_newer_version_stops_the_reader() {
        let error = RecordBatch::decode(Some(&headers("dividend.v2")), b"[]").unwrap_err();
        assert!(
            matches!(error, BatchError::NewerVersion { kind: Kind::Dividend, found: 2, newest: 1 }),
            "{error}"
        );
        assert!(error.stops_reader());
        assert!(error.to_string().contains("upgrade this program"), "{error}");
        assert_eq!(RecordBatch::decode(Some(&headers("dividend.v1")), b"[]").unwrap().len(), 1);
    }
}

#[cfg(test)]
mod run_batches_tests {
    use chrono::DateTime;
    use market::event::{InputBatchCount, Kind, RunState};

    use super::*;

    #[test]
    fn a_manifest_promises_the_ids_of_its_batches() {
        let begun =
            RunManifest::started("r".to_owned(), "eod".to_owned(), "auto".to_owned(), DateTime::UNIX_EPOCH);
        let cut = |kind, batches| InputBatchCount { input: "a".to_owned(), kind, frames: batches };
        let run = RunManifest {
            state: RunState::Completed,
            frames: vec![cut(Kind::Price, 2), cut(Kind::Dividend, 1)],
            ..begun
        };
        let ids: Vec<BatchId> = batch_ids_of_run(&run).collect();
        let of = |chunk, schema: &str| BatchId::from_provenance("eod", "a", chunk, schema);
        assert_eq!(ids, [of(0, "price.v1"), of(1, "price.v1"), of(0, "dividend.v1")]);
    }
}
