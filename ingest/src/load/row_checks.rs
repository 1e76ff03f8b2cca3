//! Checks of the accepted rows for the summary of a load. The checks cover retractions that match no row, assumed
//! currencies, and a review by the domain rules.

use chrono::NaiveDate;

use crate::batch::coverage::EarlierCoverage;
use crate::batch::load_stats::{AssumedDollars, LoadStats, SecurityCurrencies};
use crate::load::publication::LoadError;
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
    report_assumed_currencies(log, before, &total, summary).await;
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
        Ok(unmatched) => summary.untouching_retractions = unmatched.non_empty(),
        Err(error) => tracing::warn!(%error, "cannot check retractions for a matching row"),
    }
}

/// True if the currency of some rows depends on security records that are not in the load.
pub(super) fn needs_security_records(total: &LoadStats) -> bool {
    let mut priced = total.coverage.priced_symbols();
    !total.missing_currencies.is_empty() || priced.any(|symbol| !total.currencies.contains(symbol))
}

/// Adds the assumed currencies to the summary: of dividends and securities without a currency, and of prices without a
/// security record. A dividend without a currency has the currency of its security.
async fn report_assumed_currencies(
    log: Option<&Log>,
    before: Option<&EarlierCoverage>,
    total: &LoadStats,
    summary: &mut LoadSummary,
) {
    summary.assumed_security_currencies = total.securities_without_currency.clone().non_empty();
    if !needs_security_records(total) {
        return;
    }
    let symbols = total.coverage.priced_symbols().chain(total.missing_currencies.symbols());
    let symbols = symbols.filter(|symbol| !total.currencies.contains(symbol));
    let known = match log {
        Some(log) => SecurityCurrencies::read(log, symbols)
            .await
            .map_err(|error| tracing::warn!(%error, "cannot read the currencies of securities from the log")),
        // If the log was not read, the currencies are unknown. If it is empty, `before` is set.
        None => before.map(|_| SecurityCurrencies::default()).ok_or(()),
    };
    let is_complete = known.is_ok();
    let mut known = known.unwrap_or_default();
    known.merge(&total.currencies);
    summary.assumed_units = total.missing_currencies.count_by_unit(&known);
    if is_complete {
        let mut assumed = AssumedDollars::default();
        total
            .coverage
            .priced_symbols()
            .filter(|symbol| !known.contains(symbol))
            .for_each(|symbol| assumed.add(|| symbol.clone()));
        summary.assumed_price_currencies = assumed.non_empty();
    }
}
