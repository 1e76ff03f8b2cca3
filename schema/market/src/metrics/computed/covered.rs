//! Covered rows: valid rows that no figure uses, because a row of another source is used instead (R32). The other row is
//! newer, or the source policy ranks its source first, or it is a manual record. Only dividends, splits and prices are
//! covered. Records of other kinds complete each other.

use std::collections::BTreeMap;

use chrono::NaiveDate;

use super::ComputedMetrics;
use crate::event::Kind;
use crate::history::Observation;
use crate::metrics::merge::ObservationStatus;

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
