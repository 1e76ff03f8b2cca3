//! Quality of the sources, as measured by `projector audit --quality`.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use market::event::Kind;
use market::metrics::ReadingCounts;
use serde::Serialize;
use store::ids::GenerationId;

use crate::review::audit::SourceAgreement;

pub(super) type BySource = BTreeMap<String, SourceQuality>;

#[derive(Debug, Serialize)]
pub(crate) struct QualityReport {
    pub generation: GenerationId,
    /// Sequence of the last log message that the tables contain.
    pub sequence: i64,
    /// Market date of the tables.
    pub as_of: NaiveDate,
    pub active: u64,
    pub sources: Vec<SourceQuality>,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct SourceQuality {
    pub source: String,
    /// Coverage and freshness of the source, by kind of rows (for example prices or dividends).
    pub kinds: BTreeMap<Kind, KindCoverage>,
    /// Number of expected sessions in the last 12 months, and of sessions with a price.
    pub sessions: SessionCoverage,
    /// Agreement between the dividend factors that the source's adjusted closes imply and the dividend factors that the
    /// rules compute. Null if the source has no adjusted closes.
    pub adjusted_closes: Option<SourceAgreement>,
    /// Number of dividend rows by interpretation, for example as payments or duplicates.
    pub readings: ReadingCounts,
    /// Number of quarantined rows by kind and reason, for example `dividend amount_outlier`.
    pub quarantined: BTreeMap<String, u64>,
    pub rejected: BTreeMap<String, u64>,
    /// Conflicts with other sources, by kind of rows and by field. A count is the sum over all other sources.
    pub conflicts: BTreeMap<Kind, BTreeMap<&'static str, FieldConflicts>>,
}

/// Coverage and freshness of one source for one kind of rows.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct KindCoverage {
    pub securities: u64,
    pub active: u64,
    /// Number of rows, corrections included; for prices, number of days with a bar.
    pub rows: u64,
    pub first: Option<NaiveDate>,
    pub last: Option<NaiveDate>,
    /// Number of trading days from the last date to the market date. Null if no row has a date, or if the last date is
    /// after the market date.
    pub sessions_behind: Option<i32>,
    pub observed_at: Option<DateTime<Utc>>,
}

/// Coverage of trading sessions by one source. A session is a day on which most securities of the exchange traded.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct SessionCoverage {
    /// Number of sessions between the source's first and last price of a security, summed over the active securities.
    pub expected: u64,
    pub present: u64,
}

/// Number of conflicts in one field. The values of a source are compared with the values of every other source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub(crate) struct FieldConflicts {
    /// Number of comparisons. A field is compared if both sources have a value. The field `ex_date` is also compared if
    /// only one source has a row on the date.
    pub compared: u64,
    pub differing: u64,
}

impl SourceQuality {
    pub(super) fn compare(&mut self, kind: Kind, field: &'static str, differs: bool) {
        let found = self.conflicts.entry(kind).or_default().entry(field).or_default();
        found.compared += 1;
        found.differing += u64::from(differs);
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.readings.add(&other.readings);
        for (reason, rows) in &other.quarantined {
            *self.quarantined.entry(reason.clone()).or_default() += rows;
        }
        for (kind, fields) in &other.conflicts {
            for (field, more) in fields {
                let found = self.conflicts.entry(*kind).or_default().entry(*field).or_default();
                found.compared += more.compared;
                found.differing += more.differing;
            }
        }
    }
}
