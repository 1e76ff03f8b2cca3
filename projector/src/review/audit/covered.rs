//! Rows that no figure uses, because a row of another source is used instead (R32).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use market::event::Kind;
use market::metrics;
use market::metrics::CoveredRows;
use rayon::prelude::*;
use serde::Serialize;
use store::history::load_histories;
use tokio_postgres::Transaction;

use super::finding::{AuditContext, CHUNK_HISTORIES, MAX_EXAMPLES, load_identities};

const IDENTITIES: &str = include_str!("../../../queries/audit/contested_identities.sql");

/// Rows of one kind and source that no figure uses, because rows of another source are used instead.
#[derive(Debug, Serialize)]
pub struct CoveredSource {
    /// Kind of the rows.
    pub kind: Kind,
    /// Source of the covered rows.
    pub source: String,
    /// Source of the rows that are used instead.
    pub by: String,
    /// Number of covered rows. Each price session counts as one row.
    pub rows: u64,
    /// Number of securities with a covered row.
    pub securities: u64,
    /// Securities with the most covered rows, at most ten.
    pub first: Vec<CoveredSecurity>,
}

/// Security with covered rows.
#[derive(Debug, Serialize)]
pub struct CoveredSecurity {
    /// Symbol of the security.
    pub symbol: String,
    /// Number of covered rows.
    pub rows: u64,
}

/// Counts the covered rows of the securities that have several sources.
pub(super) async fn count_covered(
    transaction: &Transaction<'_>,
    market: &AuditContext,
) -> anyhow::Result<Vec<CoveredSource>> {
    let context = market.derivation(market.as_of);
    let identities = load_identities(transaction, IDENTITIES).await?;
    let mut found: BTreeMap<(Kind, String, String), Vec<CoveredSecurity>> = BTreeMap::new();
    for chunk in identities.chunks(CHUNK_HISTORIES) {
        let histories = load_histories(transaction, &chunk.iter().collect::<Vec<_>>()).await?;
        let covered: Vec<CoveredRows> = tokio::task::block_in_place(|| {
            histories.par_iter().map(|history| metrics::covered_rows(history, &context)).collect()
        });
        for (identity, covered) in chunk.iter().zip(&covered) {
            for ((kind, source, by), rows) in covered.counts() {
                let security = CoveredSecurity { symbol: identity.symbol.to_string(), rows };
                found.entry((kind, source.to_owned(), by.to_owned())).or_default().push(security);
            }
        }
    }
    let counted = |((kind, source, by), mut first): ((Kind, String, String), Vec<CoveredSecurity>)| {
        let (rows, securities) = (first.iter().map(|security| security.rows).sum(), first.len() as u64);
        // A stable sort keeps securities with equally many rows in the order of their symbols.
        first.sort_by_key(|security| Reverse(security.rows));
        first.truncate(MAX_EXAMPLES);
        CoveredSource { kind, source, by, rows, securities, first }
    };
    let mut covered: Vec<CoveredSource> = found.into_iter().map(counted).collect();
    covered.sort_by_key(|source| Reverse(source.rows));
    Ok(covered)
}
