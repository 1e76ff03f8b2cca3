//! Quarantine rows of a security, each with the key by which a decision identifies it.

use crate::day::date_of;
use crate::event::{DecidedRow, Kind, line_column};
use crate::history::Observation;
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::merge::{QuarantinedRow, dividend_row, split_row};
use crate::row::Quarantined;

/// Quarantined rows of a security, by kind and day.
pub(crate) fn quarantined(computed: &ComputedMetrics<'_>) -> Vec<Quarantined> {
    quarantined_with_keys(computed).into_iter().map(|(row, _)| row).collect()
}

/// Quarantined rows by kind and day, each with the key by which a decision identifies it.
pub(crate) fn quarantined_with_keys(computed: &ComputedMetrics<'_>) -> Vec<(Quarantined, DecidedRow)> {
    let symbol = computed.inputs.history.symbol.to_string();
    let merged = &computed.inputs.merged;
    let mut rows: Vec<(Quarantined, DecidedRow)> = Vec::new();
    for held in &merged.dividends.quarantined {
        let observation = &computed.inputs.history.dividends[held.index];
        let decided = dividend_row(observation);
        rows.push((row(&symbol, &decided, observation, held), decided));
    }
    for held in &merged.splits.quarantined {
        let observation = &computed.inputs.history.splits[held.index];
        let decided = split_row(observation);
        rows.push((row(&symbol, &decided, observation, held), decided));
    }
    rows.extend(merged.prices.quarantined.iter().map(|held| {
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

fn row<T>(
    symbol: &str,
    decided: &DecidedRow,
    observation: &Observation<T>,
    held: &QuarantinedRow,
) -> Quarantined {
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
