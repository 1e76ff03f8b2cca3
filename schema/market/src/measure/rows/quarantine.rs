//! Held rows of every kind.

use crate::bars::date_of;
use crate::event::{DecidedRow, Kind, line_column};
use crate::history::Observation;
use crate::measure::measured::Measured;
use crate::measure::merge::{Held, dividend_row, split_row};
use crate::row::Quarantined;

/// Every row held back, by kind and day.
pub(crate) fn quarantined(measured: &Measured<'_>) -> Vec<Quarantined> {
    held(measured).into_iter().map(|(row, _)| row).collect()
}

/// The same, each as decisions name it.
pub(crate) fn held(measured: &Measured<'_>) -> Vec<(Quarantined, DecidedRow)> {
    let symbol = measured.basis.history.symbol.to_string();
    let merged = &measured.basis.merged;
    let mut rows: Vec<(Quarantined, DecidedRow)> = Vec::new();
    for held in &merged.dividends.held {
        let observation = &measured.basis.history.dividends[held.index];
        let decided = dividend_row(observation);
        rows.push((row(&symbol, &decided, observation, held), decided));
    }
    for held in &merged.splits.held {
        let observation = &measured.basis.history.splits[held.index];
        let decided = split_row(observation);
        rows.push((row(&symbol, &decided, observation, held), decided));
    }
    rows.extend(merged.prices.held.iter().map(|held| {
        let date = Some(date_of(held.day));
        let row = Quarantined {
            symbol: symbol.clone(),
            kind: Kind::Price.to_string(),
            date,
            id: None,
            reason: held.reason.to_string(),
            message: held.message.clone(),
            source: held.source.clone(),
            line: line_column(held.line),
        };
        let source = held.source.clone();
        (row, DecidedRow { kind: Kind::Price, source, row_id: None, date, value: held.close })
    }));
    let key = |(row, _): &(Quarantined, DecidedRow)| {
        (row.kind.clone(), row.date, row.source.clone(), row.id.clone(), row.line)
    };
    rows.sort_by_cached_key(key);
    rows
}

fn row<T>(symbol: &str, decided: &DecidedRow, observation: &Observation<T>, held: &Held) -> Quarantined {
    Quarantined {
        symbol: symbol.to_owned(),
        kind: decided.kind.to_string(),
        date: decided.date,
        id: observation.id.clone(),
        reason: held.reason.to_string(),
        message: held.message.clone(),
        source: observation.source.to_string(),
        line: line_column(observation.line),
    }
}
