//! Agreement of feeds' adjusted closes with the served price factors, by source (R40).

use std::collections::BTreeMap;

use market::metrics;
use market::metrics::FactorAgreement;
use rayon::prelude::*;
use serde::Serialize;
use store::history::load_histories;
use tokio_postgres::Transaction;

use super::finding::{AuditContext, CHUNK_HISTORIES, load_identities};

const IDENTITIES: &str = include_str!("../../../queries/audit/evidence_identities.sql");

/// Agreement of the adjusted closes of one source with the price factors.
#[derive(Debug, Serialize)]
pub struct SourceAgreement {
    /// Feed of the adjusted closes.
    pub source: String,
    /// Number of ex-dates with a dividend factor: one that the feed's adjusted closes imply, or one that the rules
    /// compute.
    pub ex_dates: u64,
    /// Number of these ex-dates on which both factors exist and agree.
    pub agreeing: u64,
}

/// Counts the ex-dates of each source on which adjusted closes and rules give the same dividend factor.
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
