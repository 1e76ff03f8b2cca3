//! Quality of the sources, as measured by `projector audit --quality`, and its report.

use std::collections::BTreeMap;
use std::fmt::Display;

use chrono::{DateTime, NaiveDate, Utc};
use market::decimal::{PLACES_PERCENT, round};
use market::event::Kind;
use market::metrics::ReadingCounts;
use rust_decimal::Decimal;
use serde::Serialize;
use store::ids::GenerationId;
use telemetry::report::{Report, ReportTable, subject_line};

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

impl QualityReport {
    pub(crate) fn report(&self) -> Report {
        let Self { generation, as_of, active, sources, .. } = self;
        let mut report = Report::new("Quality of the sources");
        report.add_fact(format!("generation {generation} as of {as_of}, {active} active securities"));
        let rows = |source: &SourceQuality| source.kinds.values().map(|kind| kind.rows).sum();
        let rows = sources.iter().map(|source| (source.source.clone(), rows(source)));
        report.add_chart("Rows by source", rows.collect());
        report.add_filled_table(coverage_table(sources, *active));
        let sessions = sources.iter().filter(|source| source.sessions.expected > 0);
        let sessions = sessions.map(|of| (&of.source, of.sessions.present, of.sessions.expected));
        let columns = &["source", "present", "expected", "share"];
        report.add_filled_table(share_table(
            "Sessions of 12 months",
            columns,
            "sessions of 12 months",
            sessions,
        ));
        let closes = sources.iter().filter_map(|source| source.adjusted_closes.as_ref());
        let closes = closes.map(|closes| (&closes.source, closes.agreeing, closes.ex_dates));
        let columns = &["source", "agreeing", "ex-dates", "share"];
        report.add_filled_table(share_table("Adjusted closes", columns, "ex-dates that agree", closes));
        report.add_filled_table(readings_table(sources));
        report.add_filled_table(reasons_table("Quarantined rows", sources, |source| &source.quarantined));
        report.add_filled_table(reasons_table("Rejected rows", sources, |source| &source.rejected));
        report.add_filled_table(conflicts_table(sources));
        report
    }
}

fn coverage_table(sources: &[SourceQuality], active: u64) -> ReportTable {
    let columns = &[
        "source",
        "kind",
        "securities",
        "active",
        "share",
        "rows",
        "first",
        "last",
        "sessions behind",
        "observed",
    ];
    let mut table = ReportTable::new("Coverage and freshness", columns);
    for SourceQuality { source, kinds, .. } in sources {
        for (kind, coverage) in kinds {
            let [securities, of_active, rows] =
                [coverage.securities, coverage.active, coverage.rows].map(|count| count.to_string());
            let [first, last] = [coverage.first, coverage.last].map(or_dash);
            let (share, behind) = (percent(coverage.active, active), or_dash(coverage.sessions_behind));
            let observed = or_dash(coverage.observed_at.map(|time| time.format("%Y-%m-%d %H:%M")));
            let text = format!(
                "{:<13} {securities} securities ({share} of the active ones), {rows} rows, {first} to {last}, {behind} sessions behind",
                kind.as_str()
            );
            let (line, source, kind) = (subject_line(source, &text), source.clone(), kind.to_string());
            let cells = [source, kind, securities, of_active, share, rows, first, last, behind, observed];
            table.add_row([line], cells);
        }
    }
    table
}

/// Table of parts and wholes, by source. `unit` is what is counted.
fn share_table<'a>(
    title: &str,
    columns: &'static [&'static str],
    unit: &str,
    shares: impl Iterator<Item = (&'a String, u64, u64)>,
) -> ReportTable {
    let mut table = ReportTable::new(title, columns);
    for (source, part, whole) in shares {
        let share = percent(part, whole);
        let line = subject_line(source, &format!("{unit}: {part} of {whole} ({share})"));
        table.add_row([line], [source.clone(), part.to_string(), whole.to_string(), share]);
    }
    table
}

fn readings_table(sources: &[SourceQuality]) -> ReportTable {
    let columns = &["source", "payments", "duplicate", "extra", "combined", "dip", "hole"];
    let mut table = ReportTable::new("Dividend rows by reading", columns);
    for SourceQuality { source, readings, .. } in sources {
        let counts = [
            readings.payments,
            readings.duplicate,
            readings.extra,
            readings.combined,
            readings.dip,
            readings.hole,
        ];
        let texts = columns[1..].iter().zip(counts).map(|(reading, rows)| format!("{reading} {rows}"));
        let text = format!("dividend rows: {}", texts.collect::<Vec<_>>().join(", "));
        let cells = [source.clone()].into_iter().chain(counts.map(|rows| rows.to_string()));
        table.add_row([subject_line(source, &text)], cells);
    }
    table
}

fn reasons_table(
    title: &str,
    sources: &[SourceQuality],
    counts: impl Fn(&SourceQuality) -> &BTreeMap<String, u64>,
) -> ReportTable {
    let mut table = ReportTable::new(title, &["source", "reason", "rows"]);
    for of_source in sources {
        let source = &of_source.source;
        for (reason, rows) in counts(of_source) {
            let line = subject_line(source, &format!("{reason} {rows}"));
            table.add_row([line], [source.clone(), reason.clone(), rows.to_string()]);
        }
    }
    table
}

fn conflicts_table(sources: &[SourceQuality]) -> ReportTable {
    let columns = &["source", "kind", "field", "differing", "compared", "share"];
    let mut table = ReportTable::new("Conflicts with other sources", columns);
    for SourceQuality { source, conflicts, .. } in sources {
        for (kind, fields) in conflicts {
            for (field, found) in fields {
                let share = percent(found.differing, found.compared);
                let text = format!("{kind} {field} {} of {} ({share})", found.differing, found.compared);
                let [differing, compared] = [found.differing, found.compared].map(|count| count.to_string());
                let (kind, field) = (kind.to_string(), (*field).to_owned());
                let cells = [source.clone(), kind, field, differing, compared, share];
                table.add_row([subject_line(source, &text)], cells);
            }
        }
    }
    table
}

/// Formats `part` as a percentage of `whole`. Returns a dash if `whole` is 0.
fn percent(part: u64, whole: u64) -> String {
    let share = (Decimal::from(part) * Decimal::ONE_HUNDRED).checked_div(Decimal::from(whole));
    share.map_or("-".to_owned(), |share| format!("{} %", round(share, PLACES_PERCENT)))
}

fn or_dash(value: Option<impl Display>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}
