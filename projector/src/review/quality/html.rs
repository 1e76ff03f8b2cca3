//! `--html`: the quality report as one page.

use std::collections::BTreeMap;

use super::result::{QualityReport, SourceQuality};
use super::text::{or_dash, percent, reading_rows};
use crate::review::html_page::{HtmlFile, escape_html, write_bars, write_list, write_table};

pub(super) fn write_page(file: HtmlFile, report: &QualityReport) -> anyhow::Result<()> {
    let sources = &report.sources;
    file.write("Quality of the sources", |page| {
        write_list(page, &[format!("As of {}, {} active securities", report.as_of, report.active)])?;
        let rows = |source: &SourceQuality| source.kinds.values().map(|kind| kind.rows).sum::<u64>();
        let by_source: Vec<(String, u64)> =
            sources.iter().map(|source| (escape_html(&source.source), rows(source))).collect();
        write_bars(page, "Rows by source", &by_source)?;
        write_coverage(page, report)?;
        let sessions = sources.iter().filter(|source| source.sessions.expected > 0).map(|source| {
            let (present, expected) = (source.sessions.present, source.sessions.expected);
            vec![source.source.clone(), present.to_string(), expected.to_string(), percent(present, expected)]
        });
        write_table(page, "Sessions of 12 months", &["source", "present", "expected", "share"], sessions)?;
        let closes = sources.iter().filter_map(|source| source.adjusted_closes.as_ref()).map(|closes| {
            let (agreeing, all) = (closes.agreeing, closes.ex_dates);
            vec![closes.source.clone(), agreeing.to_string(), all.to_string(), percent(agreeing, all)]
        });
        write_table(page, "Adjusted closes", &["source", "agreeing", "ex-dates", "share"], closes)?;
        let readings = sources.iter().map(|source| {
            let counts = reading_rows(source).map(|(_, rows)| rows.to_string());
            [&[source.source.clone()][..], &counts].concat()
        });
        let columns = ["source", "payments", "duplicate", "extra", "combined", "dip", "hole"];
        write_table(page, "Dividend rows by reading", &columns, readings)?;
        let quarantined = sources.iter().flat_map(|source| reason_rows(source, &source.quarantined));
        write_table(page, "Quarantined rows", &["source", "reason", "rows"], quarantined)?;
        let rejected = sources.iter().flat_map(|source| reason_rows(source, &source.rejected));
        write_table(page, "Rejected rows", &["source", "reason", "rows"], rejected)?;
        let conflicts = sources.iter().flat_map(conflict_rows);
        let columns = ["source", "kind", "field", "differing", "compared", "share"];
        write_table(page, "Conflicts with other sources", &columns, conflicts)
    })
}

fn write_coverage(page: &mut String, report: &QualityReport) -> std::fmt::Result {
    let rows = report.sources.iter().flat_map(|source| {
        source.kinds.iter().map(|(kind, coverage)| {
            vec![
                source.source.clone(),
                kind.to_string(),
                coverage.securities.to_string(),
                coverage.active.to_string(),
                percent(coverage.active, report.active),
                coverage.rows.to_string(),
                or_dash(coverage.first),
                or_dash(coverage.last),
                or_dash(coverage.sessions_behind),
                or_dash(coverage.observed_at.map(|time| time.format("%Y-%m-%d %H:%M"))),
            ]
        })
    });
    let columns = [
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
    write_table(page, "Coverage and freshness", &columns, rows)
}

fn reason_rows(source: &SourceQuality, counts: &BTreeMap<String, u64>) -> Vec<Vec<String>> {
    counts
        .iter()
        .map(|(reason, rows)| vec![source.source.clone(), reason.clone(), rows.to_string()])
        .collect()
}

fn conflict_rows(source: &SourceQuality) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    for (kind, fields) in &source.conflicts {
        for (field, found) in fields {
            rows.push(vec![
                source.source.clone(),
                kind.to_string(),
                (*field).to_owned(),
                found.differing.to_string(),
                found.compared.to_string(),
                percent(found.differing, found.compared),
            ]);
        }
    }
    rows
}
