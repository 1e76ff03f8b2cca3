//! Agreement of the feeds' own adjusted closes with the served price factors, by source (R40).

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
/// Maximum number of histories in memory.
const CHUNK_HISTORIES: usize = 100;

/// Agreement of one source.
#[derive(Debug, Serialize)]
pub struct SourceAgreement {
    /// Feed of the prices.
    pub source: String,
    /// Number of ex-dates for which the feed's adjusted closes imply a dividend factor, or for which the rules compute
    /// one.
    pub ex_dates: u64,
    /// Number of ex-dates on which the implied and the computed factor agree.
    pub agreeing: u64,
}

/// Counts, by source, the ex-dates on which the dividend factor implied by adjusted closes agrees with the computed
/// one.
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
