//! A frame: one message of the log, holding many rows of one kind.
//!
//! Cutting a feed into frames is deterministic and a frame's id is a hash of where its rows came from, so loading
//! a feed again gives the same ids. A stored frame is never edited: an older body version is brought to the newest when it is
//! read, a newer one stops the reader.

use std::collections::HashMap;
use std::fmt;

use async_nats::HeaderMap;
use bytes::Bytes;

use market::bars::BarsError;
use market::event::Kind;

use crate::upcast::upcast;

pub use crate::body::{Body, PriceSeries, unpacked_length};

/// The newest version of a kind's body; part of the schema name (`price.v1`).
///
/// Dividends are at 2: their rows name the other payments of their day (`beside`).
pub fn body_version(kind: Kind) -> u32 {
    if kind == Kind::Dividend { 2 } else { 1 }
}

/// Frames aim at this many bytes of body …
pub const TARGET_BYTES: usize = 256 * 1024;
/// … and never hold more than this, decompressed (a reader's guard against bombs).
pub const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Identity of a frame: hash of source, input digest, chunk number and schema.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FrameId(pub [u8; 16]);

impl FrameId {
    /// The id of chunk `chunk` of an input.
    pub fn of(source: &str, input_digest: &str, chunk: u64, schema: &str) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [source.as_bytes(), input_digest.as_bytes(), &chunk.to_be_bytes(), schema.as_bytes()] {
            hasher.update(&(part.len() as u64).to_be_bytes()).update(part);
        }
        let mut id = [0; 16];
        id.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(id)
    }
}

impl fmt::Display for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for FrameId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for FrameId {
    type Err = FrameError;
    fn from_str(text: &str) -> Result<Self, FrameError> {
        let mut id = [0; 16];
        let valid = text.len() == 32 && text.is_ascii();
        for (index, byte) in id.iter_mut().enumerate() {
            let pair =
                valid.then(|| &text[index * 2..index * 2 + 2]).ok_or(FrameError::Header("Nats-Msg-Id"))?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| FrameError::Header("Nats-Msg-Id"))?;
        }
        Ok(Self(id))
    }
}

/// How the body bytes are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codec {
    /// Columns in postcard, for prices.
    Columns,
    /// JSON, for all other kinds.
    Json,
    /// JSON compressed with zstd, for large ones.
    JsonZstd,
}

impl Codec {
    fn as_str(self) -> &'static str {
        match self {
            Self::Columns => "columns",
            Self::Json => "json",
            Self::JsonZstd => "json+zstd",
        }
    }
}

/// Why a message is not a frame this version can read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("header {0} is missing or malformed")]
    Header(&'static str),
    #[error(
        "body version {found} of {kind} is newer than {newest}, the newest this program reads: upgrade it"
    )]
    NewerVersion { kind: Kind, found: u32, newest: u32 },
    #[error("body is not valid JSON of its kind: {0}")]
    Json(#[from] serde_json::Error),
    #[error("body is not valid columns: {0}")]
    Columns(#[from] BarsError),
    #[error("body is not valid columns: {0}")]
    Postcard(#[from] postcard::Error),
    #[error("body cannot be decompressed within {MAX_BYTES} bytes: {0}")]
    Compression(std::io::Error),
}

impl FrameError {
    /// Whether reading must stop (a newer program's data) rather than set the message aside (damage).
    pub fn stops_reader(&self) -> bool {
        matches!(self, Self::NewerVersion { .. })
    }
}

/// One message of the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    pub id: FrameId,
    /// Feed the rows came from (`--source`).
    pub source: String,
    /// Run that published it.
    pub run: String,
    /// Number within the run, from 0.
    pub chunk: u64,
    /// File the rows came from, for people.
    pub file: String,
    /// First line of the rows in that file.
    pub line: u64,
    pub body: Body,
}

const MESSAGE_ID: &str = "Nats-Msg-Id";
const SCHEMA: &str = "Dds-Schema";
const SOURCE: &str = "Dds-Source";
const RUN: &str = "Dds-Run";
const CHUNK: &str = "Dds-Chunk";
const ROWS: &str = "Dds-Rows";
pub(crate) const CODEC: &str = "Dds-Codec";
const FILE: &str = "Dds-File";
const LINE: &str = "Dds-Line";

/// The schema name of a kind's newest body version.
pub fn schema_name(kind: Kind) -> String {
    schema_of(kind, body_version(kind))
}

/// The schema names of all body versions of a kind, the newest first.
pub fn schema_names(kind: Kind) -> impl Iterator<Item = String> {
    (1..=body_version(kind)).rev().map(move |version| schema_of(kind, version))
}

fn schema_of(kind: Kind, version: u32) -> String {
    format!("{kind}.v{version}")
}

impl Frame {
    /// Headers and body as published.
    pub fn encode(&self) -> Result<(HeaderMap, Bytes), FrameError> {
        let (codec, body) = self.body.encode()?;
        let headers = self.envelope(codec).headers();
        Ok((headers, body))
    }

    fn envelope(&self, codec: Codec) -> Envelope {
        Envelope {
            id: self.id,
            kind: self.body.kind(),
            version: body_version(self.body.kind()),
            codec,
            source: self.source.clone(),
            run: self.run.clone(),
            chunk: self.chunk,
            rows: self.body.rows() as u64,
            file: self.file.clone(),
            line: self.line,
        }
    }

    /// Reads a message, its body brought to the newest version. A newer one is [`FrameError::NewerVersion`].
    pub fn decode(headers: Option<&HeaderMap>, payload: &[u8]) -> Result<Self, FrameError> {
        let envelope = Envelope::read(headers)?;
        let mut body = Body::decode(envelope.kind, envelope.codec, payload)?;
        upcast(&mut body, envelope.version);
        if let Body::Prices(series) = &mut body {
            for version in series.iter_mut().flat_map(|s| &mut s.bars.versions) {
                (version.frame, version.line) = (envelope.id.0, envelope.line);
            }
        }
        let Envelope { id, source, run, chunk, file, line, .. } = envelope;
        Ok(Self { id, source, run, chunk, file, line, body })
    }
}

/// A frame's headers, readable without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    pub id: FrameId,
    pub kind: Kind,
    /// Version of the body.
    pub version: u32,
    pub codec: Codec,
    pub source: String,
    pub run: String,
    pub chunk: u64,
    pub rows: u64,
    pub file: String,
    pub line: u64,
}

impl Envelope {
    /// The headers as published.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(MESSAGE_ID, self.id.to_string().as_str());
        headers.insert(SCHEMA, schema_of(self.kind, self.version).as_str());
        headers.insert(CODEC, self.codec.as_str());
        headers.insert(SOURCE, printable(&self.source).as_str());
        headers.insert(RUN, printable(&self.run).as_str());
        headers.insert(CHUNK, self.chunk.to_string().as_str());
        headers.insert(ROWS, self.rows.to_string().as_str());
        headers.insert(FILE, printable(&self.file).as_str());
        headers.insert(LINE, self.line.to_string().as_str());
        headers
    }

    /// Reads the headers.
    pub fn read(headers: Option<&HeaderMap>) -> Result<Self, FrameError> {
        let fields: HashMap<&'static str, &str> =
            [MESSAGE_ID, SCHEMA, SOURCE, RUN, CHUNK, ROWS, CODEC, FILE, LINE]
                .into_iter()
                .filter_map(|name| Some((name, headers?.get(name)?.as_str())))
                .collect();
        let text = |name: &'static str| fields.get(name).copied().ok_or(FrameError::Header(name));
        // Postgres counts no further than its bigint.
        let number = |name: &'static str| {
            let number = text(name)?.parse::<i64>().ok().and_then(|number| u64::try_from(number).ok());
            number.ok_or(FrameError::Header(name))
        };
        let (kind, version) = text(SCHEMA)?.rsplit_once(".v").ok_or(FrameError::Header(SCHEMA))?;
        let found = version.parse::<u32>().map_err(|_| FrameError::Header(SCHEMA))?;
        let kind: Kind = kind.parse().map_err(|_| FrameError::Header(SCHEMA))?;
        let newest = body_version(kind);
        if found > newest {
            return Err(FrameError::NewerVersion { kind, found, newest });
        }
        let codec = match text(CODEC)? {
            "columns" => Codec::Columns,
            "json" => Codec::Json,
            "json+zstd" => Codec::JsonZstd,
            _ => return Err(FrameError::Header(CODEC)),
        };
        Ok(Self {
            id: text(MESSAGE_ID)?.parse()?,
            kind,
            version: found,
            codec,
            source: text(SOURCE)?.to_owned(),
            run: text(RUN)?.to_owned(),
            chunk: number(CHUNK)?,
            rows: number(ROWS)?,
            file: text(FILE)?.to_owned(),
            line: number(LINE)?,
        })
    }
}

/// Header values hold no control characters; anything else would break the message.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
