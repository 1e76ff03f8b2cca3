//! Payers whose status is another than a month ago, by the rules themselves.

use market::identity::Identity;
use market::measure;
use market::row::{DividendState, Json};
use store::history::load_histories;
use tokio_postgres::Transaction;

use super::finding::{FIRST, Finding, Market, Seen, month_before};

const CANDIDATES: &str = include_str!("../../queries/audit/status_candidates.sql");
/// Histories in memory at a time.
const CHUNK: usize = 100;

/// Derives the candidates as they were a month ago and compares.
pub(super) async fn changed(transaction: &Transaction<'_>, market: &Market) -> anyhow::Result<Finding> {
    let before = month_before(market.as_of);
    let then = measure::Market {
        as_of: before,
        newest: market.as_of,
        benchmark: None,
        policy: &market.policy,
        rules: &market.rules,
    };
    let mut candidates: Vec<(Identity, DividendState)> = Vec::new();
    for row in transaction.query(CANDIDATES, &[&before]).await? {
        let Json(identity) = row.try_get("identity")?;
        candidates.push((identity, row.try_get("dividend_status")?));
    }
    let (mut count, mut first) = (0, Vec::new());
    for chunk in candidates.chunks(CHUNK) {
        let identities: Vec<&Identity> = chunk.iter().map(|(identity, _)| identity).collect();
        let histories = load_histories(transaction, &identities).await?;
        for ((identity, now), history) in chunk.iter().zip(&histories) {
            let was = measure::derive(history, &then).metrics.dividend_status;
            if was == *now {
                continue;
            }
            count += 1;
            if first.len() < FIRST {
                first.push(Seen {
                    symbol: identity.symbol.to_string(),
                    seen: format!("{was} on {before}, {now} now"),
                });
            }
        }
    }
    Ok(Finding {
        check: "changed_statuses",
        topic: None,
        title: "payers whose status changed in the last month",
        count,
        first,
        next: "lapsed: look whether a declaration is missing; active again: whether the payment is regular: projector explain SYMBOL frequency",
    })
}
