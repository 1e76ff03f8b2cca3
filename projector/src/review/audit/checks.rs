//! Findings of an audit, with examples.
//!
//! Audit checks of days and statuses: missing sessions (trading days) in the last year, and dividend statuses that changed
//! in the last month. A session is missing if the security has prices before and after it, but none on it.
//!
//! Checks of the sources: agreement of adjusted closes with the computed price factors (R40), and rows that no figure uses,
//! because a row of another source is used instead (R32).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use anyhow::Context;
use chrono::{Datelike, Months};
use codec::bars::unpack_days;
use market::day::{date_of, day_number};
use market::event::Kind;
use market::identity::Identity;
use market::metrics;
use market::metrics::dividends::status::{IRREGULAR_DAYS, MONTHLY_LEAST_DAYS};
use market::metrics::{DerivationContext, FactorAgreement, Rules};
use market::row::{DividendState, JsonColumn};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;
use serde::Serialize;
use store::sql_row;
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;

use crate::derive::MarketContext;
use crate::review::{load_identities, visit_histories};

const CANDIDATES: &str = include_str!("../../../queries/audit/status_candidates.sql");
const DAYS: &str = include_str!("../../../queries/audit/days.sql");

pub(super) const MAX_EXAMPLES: usize = 10;

/// Result of one check of an audit. If a check sorts its matches into groups, each group has its own finding.
#[derive(Debug, Serialize)]
pub(crate) struct AuditFinding {
    /// Stable name of the check, for example `held_rows`.
    pub check: &'static str,
    /// Group of the matches, for example a quarantine reason; `None` if the check has no groups.
    pub topic: Option<String>,
    pub title: &'static str,
    /// Number of matching securities, rows or messages; 0 if the check found no problem.
    pub count: i64,
    pub first: Vec<FindingExample>,
    pub next: &'static str,
}

sql_row! {
    /// One match of a check: a security, a row of a read table, or a dead letter.
    #[derive(Debug, Serialize)]
    pub struct FindingExample {
        /// Symbol of the security. For a dead letter, `sequence/item`: log sequence, and number within the message.
        pub symbol: String,
        pub seen: String,
    }
}

/// Days with a price, as day numbers, by exchange and symbol.
type TradingDays = BTreeMap<String, BTreeMap<String, BTreeSet<i32>>>;

/// Finds securities with missing sessions. Securities with the most missing sessions come first.
pub(super) async fn find_session_gaps(
    transaction: &Transaction<'_>,
    market: &MarketContext,
) -> anyhow::Result<AuditFinding> {
    let start = market.as_of.checked_sub_months(Months::new(12)).unwrap_or(market.as_of);
    let year = day_number(start)..=day_number(market.as_of);
    let mut traded = TradingDays::new();
    for row in transaction.query(DAYS, &[&start.year()]).await? {
        let securities = traded.entry(row.try_get("exchange")?).or_default();
        let days = unpack_days(row.try_get("days")?)?;
        securities
            .entry(row.try_get("symbol")?)
            .or_default()
            .extend(days.into_iter().filter(|day| year.contains(day)));
    }
    let mut found: Vec<(usize, FindingExample)> = traded.values().flat_map(gaps_of_exchange).collect();
    found.sort_by_key(|(missing, seen)| (Reverse(*missing), seen.symbol.clone()));
    let count = i64::try_from(found.len())?;
    Ok(AuditFinding {
        check: "session_gaps",
        topic: None,
        title: "securities without a price on trading days of their exchange",
        count,
        first: found.into_iter().take(MAX_EXAMPLES).map(|(_, seen)| seen).collect(),
        next: "load the missing days again; halted or illiquid securities may have none",
    })
}

fn gaps_of_exchange(securities: &BTreeMap<String, BTreeSet<i32>>) -> Vec<(usize, FindingExample)> {
    let sessions = sessions(securities);
    let mut gaps = Vec::new();
    for (symbol, days) in securities {
        let Some(span) = span(days) else { continue };
        let missing: Vec<i32> = sessions.range(span).copied().filter(|day| !days.contains(day)).collect();
        if let (Some(first), Some(last)) = (missing.first(), missing.last()) {
            let seen = format!("{} sessions from {} to {}", missing.len(), date_of(*first), date_of(*last));
            gaps.push((missing.len(), FindingExample { symbol: symbol.clone(), seen }));
        }
    }
    gaps
}

pub(crate) fn span(days: &BTreeSet<i32>) -> Option<RangeInclusive<i32>> {
    Some(*days.first()?..=*days.last()?)
}

/// Days on which more than half of the listed securities have a price. A security is listed between its first and last
/// price.
pub(crate) fn sessions(securities: &BTreeMap<String, BTreeSet<i32>>) -> BTreeSet<i32> {
    let (mut trading, mut listed) = (BTreeMap::<i32, usize>::new(), BTreeMap::<i32, usize>::new());
    for days in securities.values() {
        days.iter().for_each(|day| *trading.entry(*day).or_default() += 1);
        span(days).into_iter().flatten().for_each(|day| *listed.entry(day).or_default() += 1);
    }
    let most = |(day, count): (i32, usize)| (2 * count > listed[&day]).then_some(day);
    trading.into_iter().filter_map(most).collect()
}

/// Finds payers with a dividend status that differs from their status one month before the market date. An SQL query
/// selects candidates. The earlier status of each candidate is then derived from the facts.
pub(super) async fn find_changed_statuses(
    transaction: &Transaction<'_>,
    market: &MarketContext,
) -> anyhow::Result<AuditFinding> {
    let before = market.as_of.checked_sub_months(Months::new(1)).unwrap_or(market.as_of);
    let then = DerivationContext { as_of: before, ..market.derivation_context() };
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
    let yearly =
        (rules.status.lapse_periods * Decimal::from(365)).ceil().to_i64().context("lapse_periods")?;
    let any = yearly.max(IRREGULAR_DAYS).max(MONTHLY_LEAST_DAYS);
    Ok([i32::try_from(any)?, i32::try_from(yearly)?, i32::try_from(IRREGULAR_DAYS)?])
}

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
    market: &MarketContext,
) -> anyhow::Result<Vec<SourceAgreement>> {
    let context = market.derivation_context();
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
    market: &MarketContext,
) -> anyhow::Result<Vec<CoveredSource>> {
    let context = market.derivation_context();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_is_a_day_on_which_most_others_traded() {
        let securities: BTreeMap<String, BTreeSet<i32>> = [
            ("A", vec![1, 2, 3, 4, 5]),
            ("B", vec![1, 2, 4, 5]),
            ("C", vec![2, 3, 4]),
            // D has no price before day 5, but it was not listed then. The other securities have no price on day 7, but
            // they are not listed anymore. Neither is a gap.
            ("D", vec![5, 7]),
        ]
        .map(|(symbol, days)| (symbol.to_owned(), days.into_iter().collect()))
        .into();
        let found = gaps_of_exchange(&securities);
        let found_gaps: Vec<(&str, usize)> =
            found.iter().map(|(missing, seen)| (seen.symbol.as_str(), *missing)).collect();
        assert_eq!(found_gaps, [("B", 1)]);
    }

    #[test]
    fn lapse_days_follow_the_rules() {
        assert_eq!(lapse_days(&Rules::DEFAULT).unwrap(), [548, 548, 450]);
        let patient = Rules::parse(&["status.lapse_periods=3"]).unwrap();
        assert_eq!(lapse_days(&patient).unwrap(), [1095, 1095, 450]);
    }
}
