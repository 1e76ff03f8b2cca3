//! Quarantined rows of a security, with the keys that review decisions use to identify them.

use crate::day::date_of;
use crate::event::{DecidedRow, Kind, line_column};
use crate::metrics::computed::ComputedMetrics;
use crate::metrics::merge::{dividend_row, split_row};
use crate::row::{QuarantineReason, Quarantined};

/// Quarantined rows of a security, by kind and day.
pub(crate) fn quarantined(computed: &ComputedMetrics<'_>) -> Vec<Quarantined> {
    quarantined_with_keys(computed).into_iter().map(|(row, _)| row).collect()
}

/// Quarantined rows by kind and day. Each has the key that a review decision uses to identify the row.
pub(crate) fn quarantined_with_keys(computed: &ComputedMetrics<'_>) -> Vec<(Quarantined, DecidedRow)> {
    let symbol = computed.inputs.history.symbol.to_string();
    let merged = &computed.inputs.merged;
    let mut rows: Vec<(Quarantined, DecidedRow)> = Vec::new();
    let mut add = |decided: DecidedRow, reason: QuarantineReason, message: &str, line: u64| {
        let row = Quarantined {
            symbol: symbol.clone(),
            kind: decided.kind.to_string(),
            date: decided.date,
            id: decided.row_id.clone(),
            reason: reason.to_string(),
            message: message.to_owned(),
            source: decided.source.clone(),
            line: line_column(line),
        };
        rows.push((row, decided));
    };
    for held in &merged.dividends.quarantined {
        let observation = &computed.inputs.history.dividends[held.index];
        add(dividend_row(observation), held.reason, &held.message, observation.line);
    }
    for held in &merged.splits.quarantined {
        let observation = &computed.inputs.history.splits[held.index];
        add(split_row(observation), held.reason, &held.message, observation.line);
    }
    for held in &merged.prices.quarantined {
        let (kind, source, date) = (Kind::Price, held.source.clone(), Some(date_of(held.day)));
        let decided = DecidedRow { kind, source, row_id: None, date, value: held.close };
        add(decided, held.reason, &held.message, held.line);
    }
    let key = |(row, _): &(Quarantined, DecidedRow)| {
        (row.kind.clone(), row.date, row.source.clone(), row.id.clone(), row.line)
    };
    rows.sort_by_cached_key(key);
    rows
}
