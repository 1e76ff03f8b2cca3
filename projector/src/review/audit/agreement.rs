//! Number of ex-dates, by source, on which the adjusted closes of the source agree with the served price factors (R40).

use std::collections::BTreeMap;

use market::metrics;
use market::metrics::FactorAgreement;
use rayon::prelude::*;
use serde::Serialize;
use store::history::load_histories;
use tokio_postgres::Transaction;

use super::finding::{AuditContext, CHUNK_HISTORIES, load_identities};

const IDENTITIES: &str = include_str!("../../../queries/audit/evidence_identities.sql");

/// Agreement between the adjusted closes of one source and the price factors that the rules compute.
#[derive(Debug, Serialize)]
pub struct SourceAgreement {
    /// Source (feed) of the adjusted closes.
    pub source: String,
    /// Number of ex-dates with a dividend factor. The factor is implied by the adjusted closes, or computed by the
    /// rules, or both.
    pub ex_dates: u64,
    /// Number of these ex-dates on which the implied factor and the computed factor agree.
    pub agreeing: u64,
}

/// Compares two dividend factors on each ex-date: the factor that a source's adjusted closes imply, and the factor that
/// the rules compute. Counts the ex-dates and the agreements of each source.
pub(crate) async fn count_agreements(
    transaction: &Transaction<'_>,
    market: &AuditContext,
) -> anyhow::Result<Vec<SourceAgreement>> {
    let context = market.derivation(market.as_of);
    let identities = load_identities(transaction, IDENTITIES).await?;
    let mut by_source: BTreeMap<String, FactorAgreement> = BTreeMap::new();
    for chunk in identities.chunks(CHUNK_HISTORIES) {
        let histories = load_histories(transaction, &chunk.iter().collect::<Vec<_>>()).await?;
        let counted: Vec<_> = tokio::task::block_in_place(|| {
            histories.par_iter().map(|history| metrics::factor_agreement(history, &context)).collect()
        });
        for (source, counted) in counted.into_iter().flatten() {
            let sum = by_source.entry(source).or_default();
            sum.ex_dates += counted.ex_dates;
            sum.agreeing += counted.agreeing;
        }
    }
    let agreement =
        |(source, FactorAgreement { ex_dates, agreeing })| SourceAgreement { source, ex_dates, agreeing };
    Ok(by_source.into_iter().map(agreement).collect())
}
