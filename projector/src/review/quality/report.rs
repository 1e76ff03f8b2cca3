//! Report on the quality of the sources.

use std::collections::BTreeMap;
use std::fmt::Display;

use market::decimal::{PLACES_PERCENT, round};
use rust_decimal::Decimal;
use telemetry::report::{Report, ReportTable, subject_line};

use super::result::{QualityReport, SourceQuality};

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
