//! Provenance of a security's figures: number of rows by source, and number of dividend rows by their interpretation.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ComputedMetrics;
use crate::event::Kind;
use crate::metrics::merge::ObservationStatus;
use crate::row::AmountReading;

/// Number of rows used in the figures of a security, by kind and source. Each session counts as one price row.
pub type RowsBySource = BTreeMap<(Kind, String), u64>;

/// Number of dividend rows of a security, by their interpretation in the payment schedule (R34).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ReadingCounts {
    /// Payments that are used in the figures, after duplicates are merged.
    pub payments: u64,
    /// Rows merged into another row of the same payment (R29, R34).
    pub duplicate: u64,
    /// Rows whose whole amount is special, according to the payment schedule (R34).
    pub extra: u64,
    /// Rows whose amount has a regular and a special part (R34).
    pub combined: u64,
    /// Rows whose amount is below the amounts of both neighbouring rows (R34).
    pub dip: u64,
    /// Number of missing payments: payments that the payment schedule expects between two rows, but that have no row
    /// (R34).
    pub hole: u64,
}

impl ReadingCounts {
    /// Adds the numbers of another security.
    pub fn add(&mut self, other: &Self) {
        self.payments += other.payments;
        self.duplicate += other.duplicate;
        self.extra += other.extra;
        self.combined += other.combined;
        self.dip += other.dip;
        self.hole += other.hole;
    }
}

pub(crate) fn rows_by_source(computed: &ComputedMetrics<'_>) -> RowsBySource {
    let (history, merged) = (computed.inputs.history, &computed.inputs.merged);
    let mut rows = RowsBySource::new();
    let mut count = |kind: Kind, source: &str, number: u64| {
        if number > 0 {
            *rows.entry((kind, source.to_owned())).or_default() += number;
        }
    };
    let mut sessions = vec![0; history.prices.len()];
    (0..merged.prices.bars.len()).for_each(|bar| sessions[merged.prices.source_of(bar)] += 1);
    let prices = history.prices.iter().zip(sessions);
    prices.for_each(|(prices, number)| count(Kind::Price, &prices.source, number));
    let payments = computed.inputs.payments().iter();
    payments.for_each(|payment| count(Kind::Dividend, &payment.observation.source, 1));
    let splits = merged.splits.splits.iter().map(|split| &history.splits[split.index]);
    splits.for_each(|split| count(Kind::Split, &split.source, 1));
    let used = merged.fundamentals.iter().flat_map(|fundamentals| &fundamentals.used);
    used.for_each(|index| count(Kind::Fundamentals, &history.fundamentals[*index].source, 1));
    history.security.iter().for_each(|security| count(Kind::Security, &security.source, 1));
    rows
}

pub(crate) fn reading_counts(computed: &ComputedMetrics<'_>) -> ReadingCounts {
    let (dividends, schedule) = (&computed.inputs.merged.dividends, &computed.inputs.schedule);
    let of_kind =
        |kind: AmountReading| schedule.readings.iter().filter(|reading| reading.kind == kind).count() as u64;
    let is_duplicate = |status: &&ObservationStatus| matches!(status, ObservationStatus::Duplicate(_));
    ReadingCounts {
        payments: dividends.payments.len() as u64,
        duplicate: dividends.statuses.iter().filter(is_duplicate).count() as u64,
        extra: of_kind(AmountReading::Special),
        combined: of_kind(AmountReading::Combined),
        dip: of_kind(AmountReading::Dip),
        hole: schedule.missing.len() as u64,
    }
}
