//! Held rows of every kind.

use crate::bars::date_of;
use crate::event::{Kind, line_column};
use crate::history::Observation;
use crate::measure::measured::Measured;
use crate::measure::merge::Held;
use crate::row::Quarantined;

/// Every row held back, dividends first, then splits and prices.
pub(crate) fn quarantined(measured: &Measured<'_>) -> Vec<Quarantined> {
    let symbol = measured.basis.history.symbol.to_string();
    let merged = &measured.basis.merged;
    let mut rows: Vec<Quarantined> = Vec::new();
    for held in &merged.dividends.held {
        let observation = &measured.basis.history.dividends[held.index];
        rows.push(row(
            &symbol,
            Kind::Dividend,
            observation.record.ex_date.or(observation.record.record_date),
            observation,
            held,
        ));
    }
    for held in &merged.splits.held {
        let observation = &measured.basis.history.splits[held.index];
        rows.push(row(&symbol, Kind::Split, Some(observation.record.ex_date), observation, held));
    }
    rows.extend(merged.prices.held.iter().map(|held| Quarantined {
        symbol: symbol.clone(),
        kind: Kind::Price.to_string(),
        date: Some(date_of(held.day)),
        id: None,
        reason: held.reason.to_string(),
        message: held.message.clone(),
        source: held.source.clone(),
        line: line_column(held.line),
    }));
    let key = |row: &Quarantined| (row.kind.clone(), row.date, row.source.clone(), row.id.clone(), row.line);
    rows.sort_by_cached_key(key);
    rows
}

fn row<T>(
    symbol: &str,
    kind: Kind,
    date: Option<chrono::NaiveDate>,
    observation: &Observation<T>,
    held: &Held,
) -> Quarantined {
    Quarantined {
        symbol: symbol.to_owned(),
        kind: kind.to_string(),
        date,
        id: observation.id.clone(),
        reason: held.reason.to_string(),
        message: held.message.clone(),
        source: observation.source.clone(),
        line: line_column(observation.line),
    }
}
