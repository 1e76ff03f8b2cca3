//! Text output of the quality report. Some formatting functions are also used for the HTML page.

use std::fmt::Display;

use market::decimal::{PLACES_PERCENT, round};
use rust_decimal::Decimal;
use telemetry::outln;

use super::result::{KindCoverage, QualityReport, SourceQuality};

/// Prints a report.
pub fn print_quality(report: &QualityReport) {
    let QualityReport { generation, as_of, active, .. } = report;
    outln!("sources of generation {generation} as of {as_of}, {active} active securities");
    report.sources.iter().for_each(|source| print_source(source, *active));
}

fn print_source(source: &SourceQuality, active: u64) {
    outln!("\n{}", source.source);
    for (kind, coverage) in &source.kinds {
        let KindCoverage { securities, rows, .. } = coverage;
        outln!(
            "  {:<13} {securities} securities ({} of the active ones), {rows} rows, {} to {}, {} sessions behind",
            kind.as_str(),
            percent(coverage.active, active),
            or_dash(coverage.first),
            or_dash(coverage.last),
            or_dash(coverage.sessions_behind)
        );
    }
    let sessions = source.sessions;
    if sessions.expected > 0 {
        let share = percent(sessions.present, sessions.expected);
        outln!("  sessions of 12 months: {} of {} ({share})", sessions.present, sessions.expected);
    }
    if let Some(closes) = &source.adjusted_closes {
        let share = percent(closes.agreeing, closes.ex_dates);
        outln!("  adjusted closes: {} of {} ex-dates agree ({share})", closes.agreeing, closes.ex_dates);
    }
    let readings: Vec<String> =
        reading_rows(source).iter().map(|(name, rows)| format!("{name} {rows}")).collect();
    outln!("  dividend rows: {}", readings.join(", "));
    for (title, counts) in [("quarantined", &source.quarantined), ("rejected", &source.rejected)] {
        if !counts.is_empty() {
            let counts: Vec<String> =
                counts.iter().map(|(reason, rows)| format!("{reason} {rows}")).collect();
            outln!("  {title}: {}", counts.join(", "));
        }
    }
    for (kind, fields) in &source.conflicts {
        let fields: Vec<String> = fields
            .iter()
            .map(|(field, found)| format!("{field} {} of {}", found.differing, found.compared))
            .collect();
        outln!("  differs from other sources in {kind}: {}", fields.join(", "));
    }
}

/// Labels and numbers of a source's dividend rows, by interpretation (for example as payments or duplicates).
pub(super) fn reading_rows(source: &SourceQuality) -> [(&'static str, u64); 6] {
    let readings = &source.readings;
    [
        ("payments", readings.payments),
        ("duplicate", readings.duplicate),
        ("extra", readings.extra),
        ("combined", readings.combined),
        ("dip", readings.dip),
        ("hole", readings.hole),
    ]
}

/// Formats `part` as a percentage of `whole`. Returns a dash if `whole` is 0.
pub(super) fn percent(part: u64, whole: u64) -> String {
    let share = (Decimal::from(part) * Decimal::ONE_HUNDRED).checked_div(Decimal::from(whole));
    share.map_or("-".to_owned(), |share| format!("{} %", round(share, PLACES_PERCENT)))
}

/// Formats a value. Returns a dash for `None`.
pub(super) fn or_dash(value: Option<impl Display>) -> String {
    value.map_or("-".to_owned(), |value| value.to_string())
}
