//! Record batch: rows of one kind with their provenance. Loading a feed again gives the same batches with the same ids.
//! A stored batch is never edited.
//!
//! Shared message: several small record batches of one kind and run in one log message. One header has all envelopes, so
//! the batch ids can be read without the bodies.

use async_nats::HeaderMap;
use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};

use crate::envelope::{check_version, printable};

pub use crate::body::{Body, SymbolSeries};
pub use crate::envelope::{
    BODY_VERSION, BatchError, BatchId, Codec, Envelope, MAX_BYTES, RecordError, TARGET_BYTES,
    batch_ids_of_run, schema_name, unpacked_length,
};

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

/// Name of the header that has the envelopes of all batches, as a JSON array.
const FRAMES: &str = "Dds-Frames";
/// Body size before compression, in bytes, from which a message takes no more batches. Below it, even a batch of
/// [`TARGET_BYTES`] may be added.
const ENOUGH_BYTES: usize = TARGET_BYTES / 2;
/// Total size of the envelopes, in bytes, at which a message is full. nats-server accepts 64 KiB of headers, twice this
/// size. The other half leaves room for one more envelope with a long file name.
const ENOUGH_HEADERS: usize = 32 * 1024;

/// Envelope of one batch in a shared message, and the length of the batch's body in bytes.
#[derive(Serialize, Deserialize)]
struct SharedMember {
    id: String,
    version: u32,
    codec: String,
    chunk: u64,
    rows: u64,
    file: String,
    line: u64,
    bytes: usize,
}

/// Builder of a shared message: collects small batches of one kind and run.
#[derive(Debug, Default)]
pub struct SharedMessageBuilder {
    batches: Vec<(Envelope, Bytes)>,
    /// Envelopes of the collected batches as JSON objects.
    members: Vec<String>,
    /// Total size of the collected bodies before compression, in bytes.
    unpacked: usize,
    /// Total size of the envelopes as JSON, in bytes.
    headers: usize,
}

impl SharedMessageBuilder {
    /// Adds a batch.
    ///
    /// # Errors
    /// The envelope cannot be encoded as JSON.
    pub fn add_batch(&mut self, envelope: Envelope, body: Bytes) -> Result<(), BatchError> {
        let member = serde_json::to_string(&member(&envelope, &body))?;
        self.unpacked += unpacked_length(&body);
        self.headers += member.len() + 1;
        self.members.push(member);
        self.batches.push((envelope, body));
        Ok(())
    }

    /// True if the message must be sent before another batch can be added.
    pub fn is_full(&self) -> bool {
        self.unpacked >= ENOUGH_BYTES || self.headers >= ENOUGH_HEADERS
    }

    /// Returns the headers and the body of the message, and empties the builder. With only one batch, the message is an
    /// ordinary message, not a shared one. `None` if no batch was added.
    pub fn take_message(&mut self) -> Option<(HeaderMap, Bytes)> {
        let Self { mut batches, members, .. } = std::mem::take(self);
        if batches.len() < 2 {
            return batches.pop().map(|(envelope, body)| (envelope.to_headers(), body));
        }
        let (mut ids, mut whole, mut rows) = (blake3::Hasher::new(), BytesMut::new(), 0);
        for (envelope, body) in &batches {
            ids.update(&envelope.id.0);
            whole.extend_from_slice(body);
            rows += envelope.rows;
        }
        let mut id = BatchId::default();
        id.0.copy_from_slice(&ids.finalize().as_bytes()[..16]);
        let (first, _) = batches.swap_remove(0);
        let mut headers = Envelope { id, rows, codec: Codec::Shared, ..first }.to_headers();
        headers.insert(FRAMES, format!("[{}]", members.join(",")).as_str());
        Some((headers, whole.freeze()))
    }
}

fn member(envelope: &Envelope, body: &Bytes) -> SharedMember {
    SharedMember {
        id: envelope.id.to_string(),
        version: envelope.version,
        codec: envelope.codec.as_str().to_owned(),
        chunk: envelope.chunk,
        rows: envelope.rows,
        file: printable(&envelope.file),
        line: envelope.line,
        bytes: body.len(),
    }
}

/// Envelope and body length of each batch in a shared message. `whole` is the envelope of the message. Fields that are
/// equal in all batches, for example kind and run, are only in this envelope.
fn members(whole: &Envelope, headers: Option<&HeaderMap>) -> Result<Vec<(Envelope, usize)>, BatchError> {
    let text = headers.and_then(|headers| headers.get(FRAMES)).ok_or(BatchError::Header(FRAMES))?;
    let members: Vec<SharedMember> =
        serde_json::from_str(text.as_str()).map_err(|_| BatchError::Header(FRAMES))?;
    let envelope = |member: SharedMember| -> Result<(Envelope, usize), BatchError> {
        let SharedMember { id, version, codec, chunk, rows, file, line, bytes } = member;
        check_version(whole.kind, version)?;
        let codec = Codec::parse(&codec)?;
        if codec == Codec::Shared {
            return Err(BatchError::Header(FRAMES));
        }
        // A number above the range of a Postgres bigint is an error.
        if [chunk, rows, line].iter().any(|number| i64::try_from(*number).is_err()) {
            return Err(BatchError::Header(FRAMES));
        }
        Ok((Envelope { id: id.parse()?, version, codec, chunk, rows, file, line, ..whole.clone() }, bytes))
    };
    members.into_iter().map(envelope).collect()
}

impl Envelope {
    /// Reads the envelopes of all batches in a message.
    ///
    /// # Errors
    /// Headers are missing or malformed, or a newer program version wrote them.
    pub fn read_all(headers: Option<&HeaderMap>) -> Result<Vec<Self>, BatchError> {
        let whole = Self::from_headers(headers)?;
        if whole.codec != Codec::Shared {
            return Ok(vec![whole]);
        }
        Ok(members(&whole, headers)?.into_iter().map(|(envelope, _)| envelope).collect())
    }
}

impl RecordBatch {
    /// Decodes all batches of a message.
    ///
    /// # Errors
    /// The message is damaged, or a newer program version wrote it ([`BatchError::NewerVersion`]).
    pub fn decode(headers: Option<&HeaderMap>, payload: &[u8]) -> Result<Vec<Self>, BatchError> {
        let whole = Envelope::from_headers(headers)?;
        if whole.codec != Codec::Shared {
            return Ok(vec![Self::from_parts(whole, payload)?]);
        }
        let mut rest = payload;
        let mut batches = Vec::new();
        for (envelope, bytes) in members(&whole, headers)? {
            let (body, after) = rest.split_at_checked(bytes).ok_or(BatchError::Header(FRAMES))?;
            batches.push(Self::from_parts(envelope, body)?);
            rest = after;
        }
        if rest.is_empty() { Ok(batches) } else { Err(BatchError::Header(FRAMES)) }
    }
}

#[cfg(test)]
mod tests {
    use market::event::Kind;

    use super::*;
    use crate::body::Body;

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

    fn batch(number: u8) -> RecordBatch {
        let row = serde_json::json!({ "line": 2, "action": "put", "observed_at": "1970-01-01T00:00:00Z",
            "record": { "date": format!("2024-01-{:02}", number + 1) } });
        RecordBatch {
            id: BatchId([number; 16]),
            source: "eod".to_owned(),
            run: "r".to_owned(),
            chunk: u64::from(number),
            file: format!("é{number}.csv"),
            line: 2,
            body: Body::Sessions(vec![serde_json::from_value(row).unwrap()]),
        }
    }

    fn shared(batches: &[RecordBatch]) -> (HeaderMap, Bytes) {
        let mut shared = SharedMessageBuilder::default();
        for batch in batches {
            let (codec, body) = batch.body.encode().unwrap();
            shared.add_batch(batch.envelope(codec), body).unwrap();
        }
        shared.take_message().unwrap()
    }

    #[test]
    fn batches_come_out_of_a_shared_message_as_they_would_alone() {
        let batches: Vec<RecordBatch> = (0..3).map(batch).collect();
        let (headers, body) = shared(&batches);
        assert_eq!(RecordBatch::decode(Some(&headers), &body).unwrap(), batches);
        let ids: Vec<BatchId> =
            Envelope::read_all(Some(&headers)).unwrap().iter().map(|envelope| envelope.id).collect();
        assert_eq!(ids, batches.iter().map(|batch| batch.id).collect::<Vec<_>>());
        let (alone, body) = shared(&batches[..1]);
        assert!(alone.get(FRAMES).is_none());
        assert_eq!(RecordBatch::decode(Some(&alone), &body).unwrap(), batches[..1]);
        assert!(SharedMessageBuilder::default().take_message().is_none());
    }

    #[test]
    fn a_message_is_full_before_its_headers_or_its_body_are_too_large_for_the_server() {
        let of = |batch: &RecordBatch, body: Bytes| {
            let mut shared = SharedMessageBuilder::default();
            let mut count = 0;
            while !shared.is_full() {
                shared.add_batch(batch.envelope(Codec::Json), body.clone()).unwrap();
                count += 1;
            }
            let (headers, body) = shared.take_message().unwrap();
            let named: usize =
                headers.iter().flat_map(|(_, values)| values).map(|value| value.as_str().len()).sum();
            (count, named, body.len())
        };
        let (count, headers, _) =
            of(&RecordBatch { file: "\"".repeat(4000), ..batch(1) }, Bytes::from_static(b"[]"));
        assert!(count > 2 && headers < 60_000, "{count} batches have {headers} bytes of headers");
        let (count, _, bytes) = of(&batch(1), vec![b' '; TARGET_BYTES / 3].into());
        assert_eq!((count, bytes), (2, TARGET_BYTES / 3 * 2));
    }

    #[test]
    fn a_shared_message_of_a_newer_version_stops_the_reader() {
        let (mut headers, body) = shared(&[batch(1), batch(2)]);
        assert_eq!(headers.get("Dds-Schema").unwrap().as_str(), "session.v1");
        let members = headers.get(FRAMES).unwrap().as_str().replace("\"version\":1", "\"version\":2");
        headers.insert(FRAMES, members.as_str());
        assert!(RecordBatch::decode(Some(&headers), &body).unwrap_err().stops_reader());
        for (name, value) in [("Dds-Codec", "unheard-of"), ("Dds-Schema", "session.v2")] {
            let (mut newer, body) = shared(&[batch(1), batch(2)]);
            newer.insert(name, value);
            assert!(RecordBatch::decode(Some(&newer), &body).unwrap_err().stops_reader(), "{name}");
            assert!(Envelope::read_all(Some(&newer)).unwrap_err().stops_reader(), "{name}");
        }
    }

    #[test]
    fn a_shared_message_that_is_cut_or_grown_is_no_record_batch() {
        let (headers, body) = shared(&[batch(1), batch(2)]);
        assert!(RecordBatch::decode(Some(&headers), &body[..body.len() - 1]).is_err());
        assert!(RecordBatch::decode(Some(&headers), &[&body[..], b" "].concat()).is_err());
        let mut without = headers.clone();
        without.insert(FRAMES, "[{\"id\":\"x\"}]");
        assert!(RecordBatch::decode(Some(&without), &body).is_err());
    }
}
