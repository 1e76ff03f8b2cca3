//! `projector audit --quality`: quality of each source, evaluated as if it were the only source.
//!
//! Dividends of other sources are never used. Other prices, splits and company figures are used only if the source has
//! none. The source `manual` is left out.

mod conflicts;
mod coverage;
mod month;
mod result;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use market::history::History;
use market::metrics::DerivationContext;
use market::metrics::source_preference::MANUAL;
use store::db;
use store::facts::load_securities;
use tokio_postgres::Transaction;

use crate::derive::MarketContext;
use crate::generation::{Generation, begin_snapshot};
use crate::progress::ProgressReport;
use crate::review::audit::{AuditArgs, count_agreements};
use crate::review::compare::PageFile;
use crate::review::{load_identities, load_market, visit_histories};
use crate::settings::{DatabaseArgs, LIVE_FACTS};
use conflicts::{IsolatedRows, compare_securities, count_conflicts, judge, sources_of};
use coverage::{SessionDays, add_coverage, add_security};
use result::{BySource, SourceQuality};

pub(crate) use month::MonthlyQuality;
pub(crate) use result::QualityReport;

const IDENTITIES: &str = "select identity from identities order by symbol";
const ACTIVE_SECURITIES: &str = include_str!("../../../queries/quality/active.sql");
const REJECTS: &str = include_str!("../../../queries/quality/rejects.sql");

pub(crate) async fn measure_quality(
    database: &DatabaseArgs,
    args: &AuditArgs,
) -> anyhow::Result<QualityReport> {
    let page = args.html.as_deref().map(PageFile::create).transpose()?;
    let mut client = db::connect_migrated(&database.review_config(LIVE_FACTS)?).await?;
    let transaction = begin_snapshot(&mut client).await?;
    let generation = Generation::load_served(&transaction).await?;
    let (market, row) = load_market(&transaction, &generation).await?;
    let market = market.context("cannot report on the sources: nothing is derived yet; load prices first")?;
    let mut active = BTreeMap::new();
    for row in transaction.query(ACTIVE_SECURITIES, &[]).await? {
        active.insert(row.try_get("symbol")?, row.try_get("exchange")?);
    }
    let mut sources = measure_securities(&transaction, &market, &active).await?;
    for agreement in count_agreements(&transaction, &market).await? {
        let quality = sources.entry(agreement.source.clone()).or_default();
        quality.adjusted_closes = Some(agreement);
    }
    for row in transaction.query(REJECTS, &[]).await? {
        let rejected = &mut sources.entry(row.try_get("source")?).or_default().rejected;
        rejected.insert(row.try_get("reason")?, row.try_get::<_, i64>("rows")?.unsigned_abs());
    }
    sources.remove(MANUAL);
    let report = QualityReport {
        generation: generation.id,
        sequence: row.try_get("sequence")?,
        as_of: market.as_of,
        active: active.len() as u64,
        sources: sources.into_iter().map(|(source, quality)| SourceQuality { source, ..quality }).collect(),
    };
    page.map(|page| page.write(&report.report())).transpose()?;
    Ok(report)
}

async fn measure_securities(
    transaction: &Transaction<'_>,
    market: &MarketContext,
    active: &BTreeMap<String, String>,
) -> anyhow::Result<BySource> {
    let context = market.derivation_context();
    let mut sources = BySource::new();
    let records = load_securities(transaction).await?;
    records.iter().for_each(|record| add_security(&mut sources, record, active));
    compare_securities(&mut sources, &records);
    let identities = load_identities(transaction, IDENTITIES).await?;
    let mut days = SessionDays::new(market.as_of);
    let mut progress = ProgressReport::new("judged", "securities", identities.len() as u64);
    let judge = |history: &_| judge_sources(history, &context);
    visit_histories(transaction, &identities, judge, |history, judged| {
        let exchange = active.get(history.symbol.as_str());
        add_coverage(&mut sources, history, exchange.is_some(), market.as_of);
        if let Some(exchange) = exchange {
            days.add(history, exchange);
        }
        judged.iter().for_each(|(source, own)| sources.entry(source.clone()).or_default().add(own));
        progress.add(1);
    })
    .await?;
    progress.finish();
    days.count(&mut sources);
    Ok(sources)
}

/// Evaluates each source of a security: interpretation of its dividend rows, quarantined rows, and conflicts with other
/// sources.
fn judge_sources(
    history: &History,
    context: &DerivationContext<'_>,
) -> anyhow::Result<Vec<(String, SourceQuality)>> {
    let names: BTreeSet<&str> = sources_of(history).filter(|source| *source != MANUAL).collect();
    let mut judged: Vec<(String, SourceQuality)> = Vec::new();
    let mut rows: Vec<IsolatedRows> = Vec::new();
    for name in names {
        let (quality, own) = judge(history, name, context);
        judged.push((name.to_owned(), quality));
        rows.push(own);
    }
    for (position, (_, quality)) in judged.iter_mut().enumerate() {
        for (other, other_rows) in rows.iter().enumerate() {
            if other != position {
                count_conflicts(quality, [&rows[position], other_rows], context.as_of)?;
            }
        }
    }
    Ok(judged)
}
