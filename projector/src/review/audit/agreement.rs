//! Comparison of the adjusted closes of each source with the price factors that the rules compute (rule R40). The
//! result is the number of ex-dates on which the closes and the factors agree.

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
    /// Number of compared ex-dates. On each of them, the adjusted closes imply a dividend factor, or the rules compute
    /// one, or both.
    pub ex_dates: u64,
    /// Number of ex-dates, out of `ex_dates`, on which the two factors agree.
    pub agreeing: u64,
}

/// Compares each source's adjusted closes with the computed dividend factors, and counts the ex-dates.
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
