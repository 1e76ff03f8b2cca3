//! Provenance of a security's figures: number of rows by source, and number of dividend rows by their interpretation.
//!
//! Covered rows: valid rows that no figure uses, because a row of another source is used instead (R32). The other row is
//! newer, or the source policy ranks its source first, or it is a manual record. Only dividends, splits and prices are
//! covered. Records of other kinds complete each other.

use std::collections::BTreeMap;

use chrono::NaiveDate;
use serde::Serialize;

use super::ComputedMetrics;
use crate::event::Kind;
use crate::history::Observation;
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

/// Covered rows of a security.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CoveredRows {
    /// Covered dividends and splits, in the order of kind, date and source.
    pub rows: Vec<CoveredRow>,
    /// Number of covered prices, by covered source and used source. Each session counts as one price.
    pub prices: BTreeMap<(String, String), u64>,
}

/// Covered row of one source, and the source of the row that is used instead.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CoveredRow {
    /// Kind of the row.
    pub kind: Kind,
    /// Ex-date of a dividend or split. For a dividend without an ex-date, its record date.
    pub date: Option<NaiveDate>,
    /// Source of the covered row.
    pub source: String,
    /// Vendor's id of the covered row; `None` if the vendor gives none.
    pub id: Option<String>,
    /// Line of the covered row in the feed's file.
    pub line: u64,
    /// Source of the row that is used instead.
    pub by: String,
}

impl CoveredRows {
    /// Number of covered rows, by kind, covered source and used source.
    pub fn counts(&self) -> BTreeMap<(Kind, &str, &str), u64> {
        let mut counts = BTreeMap::new();
        for row in &self.rows {
            *counts.entry((row.kind, row.source.as_str(), row.by.as_str())).or_default() += 1;
        }
        for ((source, by), number) in &self.prices {
            counts.insert((Kind::Price, source.as_str(), by.as_str()), *number);
        }
        counts
    }
}

pub(crate) fn covered_rows(computed: &ComputedMetrics<'_>) -> CoveredRows {
    let (history, merged) = (computed.inputs.history, &computed.inputs.merged);
    let mut rows = Vec::new();
    for (index, by) in covered(&merged.dividends.statuses) {
        let record = &history.dividends[index].record;
        rows.push(row(Kind::Dividend, record.ex_date.or(record.record_date), &history.dividends, index, by));
    }
    for (index, by) in covered(&merged.splits.statuses) {
        rows.push(row(Kind::Split, Some(history.splits[index].record.ex_date), &history.splits, index, by));
    }
    rows.sort();
    CoveredRows { rows, prices: covered_prices(computed) }
}

/// Indexes of the covered observations, each with the index of an observation of the used source.
fn covered(statuses: &[ObservationStatus]) -> impl Iterator<Item = (usize, usize)> {
    statuses.iter().enumerate().filter_map(|(index, status)| match status {
        ObservationStatus::Covered(by)
        | ObservationStatus::OtherSource(by)
        | ObservationStatus::Overridden(by) => Some((index, *by)),
        _ => None,
    })
}

fn row<T>(
    kind: Kind,
    date: Option<NaiveDate>,
    observations: &[Observation<T>],
    index: usize,
    by: usize,
) -> CoveredRow {
    let Observation { source, id, line, .. } = &observations[index];
    let by = observations[by].source.to_string();
    CoveredRow { kind, date, source: source.to_string(), id: id.clone(), line: *line, by }
}

fn covered_prices(computed: &ComputedMetrics<'_>) -> BTreeMap<(String, String), u64> {
    let (sources, merged) = (&computed.inputs.history.prices, &computed.inputs.merged.prices);
    let mut counts = BTreeMap::new();
    if sources.len() < 2 {
        return counts;
    }
    for (index, day) in merged.bars.day.iter().enumerate() {
        let used = merged.source_of(index);
        for (place, prices) in sources.iter().enumerate().filter(|(place, _)| *place != used) {
            let bar = prices.bars.day.binary_search(day);
            let is_valid = bar.is_ok_and(|bar| {
                !prices.bars.version_of(bar).retracted
                    && !merged
                        .quarantined
                        .iter()
                        .any(|held| (held.day, &held.source) == (*day, &prices.source))
            });
            if is_valid {
                let pair = (sources[place].source.clone(), sources[used].source.clone());
                *counts.entry(pair).or_default() += 1;
            }
        }
    }
    counts
}
