//! Rows of a price batch: packed columns for each symbol. The bars can be converted to JSON rows, for display and for
//! the repair of dead letters.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use codec::bars::{PackedBars, PackedBarsError};
use market::bars::{Bars, MISSING};
use market::day::date_of;
use market::decimal::ExactDecimal;
use market::symbol::Symbol;

use crate::error::BatchError;

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
