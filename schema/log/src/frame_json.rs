//! A frame's rows as JSON, for people and for repair: every command that shows a message shows it so.

use serde_json::{Value, json};

use crate::frame::{Body, PriceSeries};
use market::bars::{MISSING, date_of};
use market::value::Exact;

impl Body {
    /// The rows, in their order; of prices, one per bar.
    pub fn rows_json(&self) -> Value {
        let value = match self {
            Body::Prices(series) => return series.iter().flat_map(bars_json).collect(),
            Body::Securities(rows) => serde_json::to_value(rows),
            Body::Dividends(rows) => serde_json::to_value(rows),
            Body::Splits(rows) => serde_json::to_value(rows),
            Body::Fundamentals(rows) => serde_json::to_value(rows),
            Body::Etfs(rows) => serde_json::to_value(rows),
            Body::Holdings(rows) => serde_json::to_value(rows),
            Body::Sessions(rows) => serde_json::to_value(rows),
            Body::Rejects(rows) => serde_json::to_value(rows),
            Body::Run(run) => serde_json::to_value(run),
        };
        value.unwrap_or_default()
    }
}

fn bars_json(series: &PriceSeries) -> impl Iterator<Item = Value> + '_ {
    let bars = &series.bars;
    let price = |value: i64| bars.decimal(value).map(|value| Exact::from(value).to_string());
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
            "observed_at": version.observed(),
            "basis": if version.basis_day.is_some() { "split_adjusted" } else { "raw" },
            "basis_as_of": version.basis_day.filter(|day| *day != 0).map(date_of),
        });
        if let Some(fields) = row.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
        row
    })
}
