//! Bodies of record batches: the rows of each kind, and the operations on them.

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use codec::records::{EncodedRecord, RawObservation, RecordLayout};
use market::event::{
    Action, Decision, Dividend, DividendEvidence, Etf, EventRecord, EventRow, Fundamentals, HoldingSnapshot,
    Kind, MarketSession, Reject, RunManifest, Security, Split,
};

use crate::codec::{CODEC, Codec, decode_json, encode_json};
use crate::columns::{SymbolSeries, bars_json, decode_columns, encode_columns};
use crate::error::{BatchError, RecordError};
use crate::id::BatchId;

/// Rows of one kind in a record batch.
trait BatchRows: Sized {
    /// Number of rows; for prices, number of bars.
    fn count(&self) -> usize;
    /// Encodes the rows. Returns the codec that was used and the encoded bytes.
    fn encode(&self) -> Result<(Codec, Bytes), BatchError>;
    /// Decodes rows from the bytes of a body.
    fn decode(codec: Codec, bytes: &[u8]) -> Result<Self, BatchError>;
    /// Rows as a JSON array, for display. A manifest is one JSON object.
    fn json(&self) -> Result<Value, BatchError>;
    /// Number of items: rows, or symbols for prices.
    fn item_count(&self) -> usize;
    /// Number of the line of the first row in the feed's file; `None` for a kind whose rows have no lines.
    fn first_line(&self) -> Option<u64>;
    /// Observations of the rows, each with its symbol. The symbol is empty for records of the whole market. Empty for a
    /// kind without observations.
    fn observations(&self, batch: BatchId) -> Result<Vec<(String, RawObservation)>, RecordError>;
    /// Splits the rows into two halves; `None` for a single row or symbol.
    fn split_in_halves(&self) -> Option<(Self, Self)>;
}

/// Declares the enum `Body`: one variant per kind, with the type of the kind's rows.
macro_rules! bodies {
    ($($kind:ident => $body:ident($rows:ty)),* $(,)?) => {
        /// Rows of a record batch, by kind.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Body {
            $(#[doc = concat!("Rows of the kind `", stringify!($kind), "`.")] $body($rows)),*
        }

        impl Body {
            /// Kind of the rows.
            pub fn kind(&self) -> Kind {
                match self { $(Self::$body(_) => Kind::$kind),* }
            }

            /// Number of rows; for prices, number of bars.
            pub fn row_count(&self) -> usize {
                match self { $(Self::$body(rows) => rows.count()),* }
            }

            /// Encodes the rows. Returns the codec that was used and the encoded bytes.
            pub fn encode(&self) -> Result<(Codec, Bytes), BatchError> {
                match self { $(Self::$body(rows) => rows.encode()),* }
            }

            pub(crate) fn decode(kind: Kind, codec: Codec, bytes: &[u8]) -> Result<Self, BatchError> {
                Ok(match kind { $(Kind::$kind => Self::$body(<$rows>::decode(codec, bytes)?)),* })
            }

            /// Rows as JSON array, in order, for display. For prices, one object per bar.
            pub fn rows_json(&self) -> Result<Value, BatchError> {
                match self { $(Self::$body(rows) => rows.json()),* }
            }

            /// Number of items. An item is a part of the batch that can become a dead letter: one row, or all bars of
            /// one symbol.
            pub fn item_count(&self) -> usize {
                match self { $(Self::$body(rows) => rows.item_count()),* }
            }

            /// Observations of the rows, each with its symbol. The symbol is empty for records of the whole market.
            ///
            /// Prices, rejects and manifests have no observations.
            pub fn observations(&self, batch: BatchId) -> Result<Vec<(String, RawObservation)>, RecordError> {
                match self { $(Self::$body(rows) => rows.observations(batch)),* }
            }

            /// Number of the line of the first row in the feed's file; `None` for a kind whose rows have no lines.
            pub fn first_line(&self) -> Option<u64> {
                match self { $(Self::$body(rows) => rows.first_line()),* }
            }

            /// Splits the rows into two halves; `None` for a single row or symbol. All bars of a symbol stay together.
            pub fn split_in_halves(&self) -> Option<(Self, Self)> {
                match self {
                    $(Self::$body(rows) => {
                        let (left, right) = rows.split_in_halves()?;
                        Some((Self::$body(left), Self::$body(right)))
                    }),*
                }
            }
        }
    };
}

bodies! {
    Price => Prices(Vec<SymbolSeries>),
    Security => Securities(Vec<EventRow<Security>>),
    Dividend => Dividends(Vec<EventRow<Dividend>>),
    Split => Splits(Vec<EventRow<Split>>),
    Fundamentals => Fundamentals(Vec<EventRow<Fundamentals>>),
    Etf => Etfs(Vec<EventRow<Etf>>),
    Holding => Holdings(Vec<EventRow<HoldingSnapshot>>),
    Session => Sessions(Vec<EventRow<MarketSession>>),
    Decision => Decisions(Vec<EventRow<Decision>>),
    Evidence => Evidence(Vec<EventRow<DividendEvidence>>),
    Reject => Rejects(Vec<Reject>),
    Run => Run(Box<RunManifest>),
}

impl BatchRows for Vec<SymbolSeries> {
    fn count(&self) -> usize {
        self.iter().map(|series| series.bars.len()).sum()
    }
    fn encode(&self) -> Result<(Codec, Bytes), BatchError> {
        Ok((Codec::Blocks, encode_columns(self)?))
    }
    fn decode(codec: Codec, bytes: &[u8]) -> Result<Self, BatchError> {
        match codec {
            Codec::Blocks => decode_columns(bytes),
            _ => Err(BatchError::Header(CODEC)),
        }
    }
    fn json(&self) -> Result<Value, BatchError> {
        Ok(self.iter().flat_map(bars_json).collect())
    }
    fn item_count(&self) -> usize {
        self.len()
    }
    fn first_line(&self) -> Option<u64> {
        None
    }
    fn observations(&self, _: BatchId) -> Result<Vec<(String, RawObservation)>, RecordError> {
        Ok(Vec::new())
    }
    fn split_in_halves(&self) -> Option<(Self, Self)> {
        split_rows(self)
    }
}

/// Row that a record batch contains as a JSON object.
trait JsonRow: Serialize + DeserializeOwned + Clone {
    fn line(&self) -> u64;
    /// Observation of the row, with its symbol; `None` if rows of this kind are not observations.
    fn observation(&self, batch: BatchId) -> Result<Option<(String, RawObservation)>, RecordError>;
}

impl<T: EventRecord + RecordLayout + Clone> JsonRow for EventRow<T> {
    fn line(&self) -> u64 {
        self.line
    }
    fn observation(&self, batch: BatchId) -> Result<Option<(String, RawObservation)>, RecordError> {
        let symbol = self.record.symbol().map(ToString::to_string).unwrap_or_default();
        let record = EncodedRecord::encode(&self.record)
            .map_err(|source| RecordError { symbol: symbol.clone(), source })?;
        let raw = RawObservation {
            id: self.id.clone(),
            security_ref: self.security_ref.clone(),
            revision: self.revision,
            retracted: self.action == Action::Retract,
            observed_at: self.observed_at.timestamp_micros(),
            line: self.line,
            frame: batch.0,
            record,
        };
        Ok(Some((symbol, raw)))
    }
}

impl JsonRow for Reject {
    fn line(&self) -> u64 {
        self.line
    }
    fn observation(&self, _: BatchId) -> Result<Option<(String, RawObservation)>, RecordError> {
        Ok(None)
    }
}

impl<T: JsonRow> BatchRows for Vec<T> {
    fn count(&self) -> usize {
        self.len()
    }
    fn encode(&self) -> Result<(Codec, Bytes), BatchError> {
        encode_json(self)
    }
    fn decode(codec: Codec, bytes: &[u8]) -> Result<Self, BatchError> {
        decode_json(codec, bytes)
    }
    fn json(&self) -> Result<Value, BatchError> {
        Ok(serde_json::to_value(self)?)
    }
    fn item_count(&self) -> usize {
        self.len()
    }
    fn first_line(&self) -> Option<u64> {
        self.first().map(JsonRow::line)
    }
    fn observations(&self, batch: BatchId) -> Result<Vec<(String, RawObservation)>, RecordError> {
        self.iter().filter_map(|row| row.observation(batch).transpose()).collect()
    }
    fn split_in_halves(&self) -> Option<(Self, Self)> {
        split_rows(self)
    }
}

impl BatchRows for Box<RunManifest> {
    fn count(&self) -> usize {
        1
    }
    fn encode(&self) -> Result<(Codec, Bytes), BatchError> {
        encode_json(self)
    }
    fn decode(codec: Codec, bytes: &[u8]) -> Result<Self, BatchError> {
        decode_json(codec, bytes)
    }
    fn json(&self) -> Result<Value, BatchError> {
        Ok(serde_json::to_value(self)?)
    }
    fn item_count(&self) -> usize {
        1
    }
    fn first_line(&self) -> Option<u64> {
        None
    }
    fn observations(&self, _: BatchId) -> Result<Vec<(String, RawObservation)>, RecordError> {
        Ok(Vec::new())
    }
    fn split_in_halves(&self) -> Option<(Self, Self)> {
        None
    }
}

fn split_rows<T: Clone>(rows: &[T]) -> Option<(Vec<T>, Vec<T>)> {
    let (left, right) = rows.split_at(rows.len() / 2);
    (!left.is_empty()).then(|| (left.to_vec(), right.to_vec()))
}
