//! Bodies of record batches: the rows of each kind, and the operations on them.
//!
//! A price batch has packed columns for each symbol. The bars can be converted to JSON rows, for display and for the repair
//! of dead letters.

use bytes::Bytes;
use codec::bars::{PackedBars, PackedBarsError};
use codec::records::{EncodedRecord, RawObservation, RecordLayout};
use market::bars::{Bars, MISSING};
use market::day::date_of;
use market::decimal::ExactDecimal;
use market::event::{
    Action, Decision, Dividend, DividendEvidence, Etf, EventRecord, EventRow, Fundamentals, FxRate,
    HoldingSnapshot, Kind, MarketSession, Reject, RunEvent, Security, Split,
};
use market::symbol::Symbol;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::envelope::{BatchError, BatchId, CODEC, Codec, RecordError, decode_json, encode_json};

/// Declares the enum `Body`: variants for prices, for events of runs, and for each kind with JSON rows.
macro_rules! bodies {
    ($($kind:ident => $body:ident($row:ty)),* $(,)?) => {
        /// Rows of a record batch, by kind.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Body {
            /// Rows of the kind `Price`.
            Prices(Vec<SymbolSeries>),
            $(#[doc = concat!("Rows of the kind `", stringify!($kind), "`.")] $body(Vec<$row>),)*
            /// Manifest of a run, or a change of its state. It is the only row of a batch of the kind `Run`.
            Run(RunEvent),
        }

        impl Body {
            /// Kind of the rows.
            pub fn kind(&self) -> Kind {
                match self {
                    Self::Prices(_) => Kind::Price,
                    $(Self::$body(_) => Kind::$kind,)*
                    Self::Run(_) => Kind::Run,
                }
            }

            /// Encodes the rows. Returns the codec that was used and the encoded bytes.
            pub fn encode(&self) -> Result<(Codec, Bytes), BatchError> {
                match self {
                    Self::Prices(series) => Ok((Codec::Blocks, encode_columns(series)?)),
                    $(Self::$body(rows) => encode_json(rows),)*
                    Self::Run(event) => encode_json(event),
                }
            }

            pub(crate) fn decode(kind: Kind, codec: Codec, bytes: &[u8]) -> Result<Self, BatchError> {
                Ok(match kind {
                    Kind::Price if codec == Codec::Blocks => Self::Prices(decode_columns(bytes)?),
                    Kind::Price => return Err(BatchError::Header(CODEC)),
                    $(Kind::$kind => Self::$body(decode_json(codec, bytes)?),)*
                    Kind::Run => Self::Run(decode_json(codec, bytes)?),
                })
            }

            /// Rows as JSON for display, in order. The result is an array with one object per row. For prices, the
            /// array has one object per bar. For a manifest, the result is a single object.
            pub fn rows_json(&self) -> Result<Value, BatchError> {
                Ok(match self {
                    Self::Prices(series) => series.iter().flat_map(bars_json).collect(),
                    $(Self::$body(rows) => serde_json::to_value(rows)?,)*
                    Self::Run(event) => serde_json::to_value(event)?,
                })
            }

            /// Number of items: symbols in a price batch, rows in any other batch.
            pub fn item_count(&self) -> usize {
                match self {
                    Self::Prices(series) => series.len(),
                    $(Self::$body(rows) => rows.len(),)*
                    Self::Run(_) => 1,
                }
            }

            /// Converts the rows to observations. Each observation is returned with the symbol of its row. The symbol
            /// is empty for a record that concerns the whole market (a market session).
            ///
            /// Prices, rejects and manifests have no observations.
            pub fn observations(&self, batch: BatchId) -> Result<Vec<(String, RawObservation)>, RecordError> {
                match self {
                    $(Self::$body(rows) => {
                        rows.iter().filter_map(|row| row.observation(batch).transpose()).collect()
                    })*
                    Self::Prices(_) | Self::Run(_) => Ok(Vec::new()),
                }
            }

            /// Line number of the first row in the feed's file; `None` for prices and manifests.
            pub fn first_line(&self) -> Option<u64> {
                match self {
                    $(Self::$body(rows) => rows.first().map(|row| row.line),)*
                    Self::Prices(_) | Self::Run(_) => None,
                }
            }

            /// Splits the rows into two halves; `None` if there is only one item. All bars of a symbol stay together.
            pub fn split_in_halves(&self) -> Option<(Self, Self)> {
                match self {
                    Self::Prices(series) => split_rows(series, Self::Prices),
                    $(Self::$body(rows) => split_rows(rows, Self::$body),)*
                    Self::Run(_) => None,
                }
            }
        }
    };
}

bodies! {
    Security => Securities(EventRow<Security>),
    Dividend => Dividends(EventRow<Dividend>),
    Split => Splits(EventRow<Split>),
    Fundamentals => Fundamentals(EventRow<Fundamentals>),
    Etf => Etfs(EventRow<Etf>),
    Holding => Holdings(EventRow<HoldingSnapshot>),
    Fx => FxRates(EventRow<FxRate>),
    Session => Sessions(EventRow<MarketSession>),
    Decision => Decisions(EventRow<Decision>),
    Evidence => Evidence(EventRow<DividendEvidence>),
    Reject => Rejects(Reject),
}

impl Body {
    /// Number of rows; for prices, number of bars.
    pub fn row_count(&self) -> usize {
        match self {
            Self::Prices(series) => series.iter().map(|series| series.bars.len()).sum(),
            rows => rows.item_count(),
        }
    }
}

/// Row of a record batch: an event row or a reject. Only an event row can be converted to an observation.
trait ObservedRow {
    /// Converts the row to an observation, and returns it with the row's symbol; `None` for a reject.
    fn observation(&self, batch: BatchId) -> Result<Option<(String, RawObservation)>, RecordError>;
}

impl<T: EventRecord + RecordLayout> ObservedRow for EventRow<T> {
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

impl ObservedRow for Reject {
    fn observation(&self, _: BatchId) -> Result<Option<(String, RawObservation)>, RecordError> {
        Ok(None)
    }
}

/// Splits rows into two halves, and builds a body from each half; `None` for a single row.
fn split_rows<T: Clone>(rows: &[T], body: impl Fn(Vec<T>) -> Body) -> Option<(Body, Body)> {
    let (left, right) = rows.split_at(rows.len() / 2);
    (!left.is_empty()).then(|| (body(left.to_vec()), body(right.to_vec())))
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
