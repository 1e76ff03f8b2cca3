//! Checks of the accepted rows for the summary of a load. The checks cover retractions that match no row, assumed
//! currencies, and a review by the domain rules.

use chrono::NaiveDate;

use crate::batch::coverage::EarlierCoverage;
use crate::batch::load_stats::LoadStats;
use crate::batch::security_currencies::SecurityCurrencies;
use crate::load::error::LoadError;
use crate::load::report::LoadSummary;
use crate::log::reader::Log;

/// Adds the totals and the checks of the accepted rows to the summary. If `log` or `before` is `None`, the checks that
/// need it are left out.
pub(super) async fn check_rows(
    log: Option<&Log>,
    before: Option<&EarlierCoverage>,
    total: LoadStats,
    today: NaiveDate,
    summary: &mut LoadSummary,
) -> Result<(), LoadError> {
    summary.set_totals(&total);
    summary.compare_with_earlier(&total, before);
    if let (Some(log), Some(before)) = (log, before) {
        report_unmatched_retractions(log, &total, before, summary).await;
    }
    report_assumed_currencies(log, &total, summary).await;
    let (rows, source) = (total.reviewed, summary.source.clone());
    let reviewed = tokio::task::spawn_blocking(move || rows.review(&source, today));
    summary.review = reviewed.await.map_err(LoadError::Task)?;
    Ok(())
}

async fn report_unmatched_retractions(
    log: &Log,
    total: &LoadStats,
    before: &EarlierCoverage,
    summary: &mut LoadSummary,
) {
    if total.retractions.is_empty() {
        return;
    }
    match total.retractions.find_unmatched(log, &summary.source, before, &total.coverage).await {
        Ok(unmatched) => summary.untouching_retractions = Some(unmatched).filter(|found| found.count > 0),
        Err(error) => tracing::warn!(%error, "cannot check retractions for a matching row"),
    }
}

/// Adds counts of the dividends without a currency to the summary, by assumed currency. The assumed currency is the
/// currency of the security.
async fn report_assumed_currencies(log: Option<&Log>, total: &LoadStats, summary: &mut LoadSummary) {
    if total.missing_currencies.is_empty() {
        return;
    }
    let mut known = match log {
        Some(log) => SecurityCurrencies::read(log).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot read the currencies of securities from the log");
            SecurityCurrencies::default()
        }),
        None => SecurityCurrencies::default(),
    };
    known.merge(&total.currencies);
    summary.assumed_units = total.missing_currencies.count_by_unit(&known);
}
