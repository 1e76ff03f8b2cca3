//! Audit check for dividend payers with a dividend status that changed in the last month.

use anyhow::Context;
use chrono::Months;
use market::identity::Identity;
use market::metrics;
use market::metrics::Rules;
use market::row::{DividendState, JsonColumn};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;

use super::finding::{AuditContext, AuditFinding, FindingExample, MAX_EXAMPLES};
use crate::review::security::visit_histories;

const CANDIDATES: &str = include_str!("../../../queries/audit/status_candidates.sql");

/// Finds payers with a dividend status that differs from their status one month before the market date. An SQL query
/// selects candidates. The earlier status of each candidate is then derived from the facts.
pub(super) async fn find_changed(
    transaction: &Transaction<'_>,
    market: &AuditContext,
) -> anyhow::Result<AuditFinding> {
    let before = market.as_of.checked_sub_months(Months::new(1)).unwrap_or(market.as_of);
    let then = market.derivation(before);
    let (mut candidates, mut statuses) = (Vec::new(), Vec::new());
    let [any, yearly, irregular] = lapse_days(&market.rules)?;
    let values: [&(dyn ToSql + Sync); 4] = [&before, &any, &yearly, &irregular];
    for row in transaction.query(CANDIDATES, &values).await? {
        candidates.push(row.try_get::<_, JsonColumn<Identity>>("identity")?.0);
        statuses.push(row.try_get::<_, DividendState>("dividend_status")?);
    }
    let (mut count, mut first, mut statuses) = (0, Vec::new(), statuses.into_iter());
    let measure = |history: &_| Ok(metrics::derive(history, &then).metrics.dividend_status);
    visit_histories(transaction, &candidates, measure, |history, was| {
        if let Some(now) = statuses.next().filter(|now| *now != was) {
            count += 1;
            let seen = format!("{was} on {before}, {now} now");
            first.push(FindingExample { symbol: history.symbol.to_string(), seen });
        }
    })
    .await?;
    first.truncate(MAX_EXAMPLES);
    Ok(AuditFinding {
        check: "changed_statuses",
        topic: None,
        title: "payers whose status changed in the last month",
        count,
        first,
        next: "if lapsed, check for a missing declaration; if active again, check if the payment is regular: projector explain SYMBOL frequency",
    })
}

/// Days without a dividend until a lapse: the longest limit, and those of yearly and irregular payers.
fn lapse_days(rules: &Rules) -> anyhow::Result<[i32; 3]> {
    let status = &rules.status;
    let yearly = (status.lapse_periods * Decimal::from(365)).ceil().to_i64().context("lapse_periods")?;
    let each = [yearly, status.irregular_days, status.monthly_least_days, status.weekly_least_days];
    let any = each.into_iter().fold(0, i64::max);
    Ok([i32::try_from(any)?, i32::try_from(yearly)?, i32::try_from(status.irregular_days)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lapse_days_follow_the_rules() {
        assert_eq!(lapse_days(&Rules::DEFAULT).unwrap(), [548, 548, 450]);
        let patient = Rules::parse(&["status.lapse_periods=3", "status.weekly_least_days=21"]).unwrap();
        assert_eq!(lapse_days(&patient).unwrap(), [1095, 1095, 450]);
    }
}
