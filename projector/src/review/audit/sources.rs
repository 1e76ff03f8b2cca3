//! Checks of the sources: agreement of adjusted closes with the computed price factors (R40), and rows that no figure uses,
//! because a row of another source is used instead (R32).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use market::event::Kind;
use market::metrics;
use market::metrics::FactorAgreement;
use serde::Serialize;
use tokio_postgres::Transaction;

use super::checks::MAX_EXAMPLES;
use crate::review::security::{AuditContext, load_identities, visit_histories};

const WITH_EVIDENCE: &str = include_str!("../../../queries/audit/evidence_identities.sql");
const CONTESTED: &str = include_str!("../../../queries/audit/contested_identities.sql");

/// Agreement between the adjusted closes of one source and the price factors that the rules compute.
#[derive(Debug, Serialize)]
pub(crate) struct SourceAgreement {
    pub source: String,
    /// Number of compared ex-dates. On each of them, the adjusted closes imply a dividend factor, or the rules compute
    /// one, or both.
    pub ex_dates: u64,
    pub agreeing: u64,
}

pub(crate) async fn count_agreements(
    transaction: &Transaction<'_>,
    market: &AuditContext,
) -> anyhow::Result<Vec<SourceAgreement>> {
    let context = market.derivation(market.as_of);
    let identities = load_identities(transaction, WITH_EVIDENCE).await?;
    let mut by_source: BTreeMap<String, FactorAgreement> = BTreeMap::new();
    let measure = |history: &_| Ok(metrics::factor_agreement(history, &context));
    visit_histories(transaction, &identities, measure, |_, agreements| {
        for (source, counted) in agreements {
            let sum = by_source.entry(source).or_default();
            sum.ex_dates += counted.ex_dates;
            sum.agreeing += counted.agreeing;
        }
    })
    .await?;
    let agreement =
        |(source, FactorAgreement { ex_dates, agreeing })| SourceAgreement { source, ex_dates, agreeing };
    Ok(by_source.into_iter().map(agreement).collect())
}

/// Rows of one kind and source that no figure uses, because rows of another source are used instead.
#[derive(Debug, Serialize)]
pub(crate) struct CoveredSource {
    pub kind: Kind,
    /// Source of the covered rows.
    pub source: String,
    /// Source of the rows that are used instead.
    pub by: String,
    /// Number of covered rows. Each price session counts as one row.
    pub rows: u64,
    pub securities: u64,
    /// Securities with the most covered rows, at most ten.
    pub first: Vec<CoveredSecurity>,
}

#[derive(Debug, Serialize)]
pub(crate) struct CoveredSecurity {
    pub symbol: String,
    pub rows: u64,
}

pub(super) async fn count_covered(
    transaction: &Transaction<'_>,
    market: &AuditContext,
) -> anyhow::Result<Vec<CoveredSource>> {
    let context = market.derivation(market.as_of);
    let identities = load_identities(transaction, CONTESTED).await?;
    let mut found: BTreeMap<(Kind, String, String), Vec<CoveredSecurity>> = BTreeMap::new();
    let measure = |history: &_| Ok(metrics::covered_rows(history, &context));
    visit_histories(transaction, &identities, measure, |history, covered| {
        for ((kind, source, by), rows) in covered.counts() {
            let security = CoveredSecurity { symbol: history.symbol.to_string(), rows };
            found.entry((kind, source.to_owned(), by.to_owned())).or_default().push(security);
        }
    })
    .await?;
    let mut covered = Vec::new();
    for ((kind, source, by), mut first) in found {
        let (rows, securities) = (first.iter().map(|security| security.rows).sum(), first.len() as u64);
        // A stable sort keeps securities with equally many rows in the order of their symbols.
        first.sort_by_key(|security| Reverse(security.rows));
        first.truncate(MAX_EXAMPLES);
        covered.push(CoveredSource { kind, source, by, rows, securities, first });
    }
    covered.sort_by_key(|source| Reverse(source.rows));
    Ok(covered)
}
