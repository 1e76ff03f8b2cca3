//! Agreement of feeds' adjusted closes with the served price factors, by source (R40).

use std::collections::BTreeMap;

use market::identity::Identity;
use market::metrics;
use market::metrics::{DerivationContext, FactorAgreement};
use market::row::JsonColumn;
use rayon::prelude::*;
use serde::Serialize;
use store::history::load_histories;
use tokio_postgres::Transaction;

use super::finding::AuditContext;

const IDENTITIES: &str = include_str!("../../../queries/audit/evidence_identities.sql");
/// Maximum number of securities whose histories are in memory at the same time.
const CHUNK_HISTORIES: usize = 100;

/// Agreement of the adjusted closes of one source with the price factors.
#[derive(Debug, Serialize)]
pub struct SourceAgreement {
    /// Feed of the prices.
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
    let context = DerivationContext {
        as_of: market.as_of,
        newest: market.as_of,
        benchmark: None,
        policy: &market.policy,
        rules: &market.rules,
    };
    let mut identities: Vec<Identity> = Vec::new();
    for row in transaction.query(IDENTITIES, &[]).await? {
        let JsonColumn(identity) = row.try_get("identity")?;
        identities.push(identity);
    }
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
