//! `projector audit`: daily checks of the served market.
//!
//! An audit reads one snapshot of the served generation and writes nothing. A finding names securities and the next
//! step of the operator. A finding is not an error of the program.

mod agreement;
mod args;
mod finding;
pub(crate) mod sessions;
mod statuses;

use anyhow::Context;
use chrono::NaiveDate;
use market::row::JsonColumn;
use serde::Serialize;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};

use crate::generation::{Generation, begin_snapshot};

pub use agreement::SourceAgreement;
pub(crate) use agreement::count_agreements;
pub use args::AuditArgs;
use event_log::sequence::Sequence;
pub(crate) use finding::AuditContext;
pub use finding::{AuditFinding, FindingExample};
use store::ids::GenerationId;

pub(crate) const MARKET: &str = include_str!("../../../queries/audit/market.sql");

/// Result of an audit.
#[derive(Debug, Serialize)]
pub struct AuditReport {
    /// Number of the served generation.
    pub generation: GenerationId,
    /// Last log sequence that the served tables contain.
    pub sequence: Sequence,
    /// Market date of the served tables.
    pub as_of: NaiveDate,
    /// Version of the rules by which the served tables were derived.
    pub method_version: String,
    /// Number of securities: rows of table `stocks`.
    pub securities: i64,
    /// Findings, the most urgent first. A check whose matches have groups has one finding per group.
    pub findings: Vec<AuditFinding>,
    /// Agreement of the feeds' adjusted closes with the price factors, by source.
    pub adjusted_closes: Vec<SourceAgreement>,
}

impl AuditReport {
    /// `true` if no check found a problem.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.count == 0)
    }
}

/// Check by one SQL query with the columns topic (group of matches), symbol, seen (description) and total.
struct SqlCheck {
    name: &'static str,
    title: &'static str,
    statement: &'static str,
    /// Flag of a security that the query selects, as its parameter; `None` for a query without a parameter.
    flag: Option<&'static str>,
    next: &'static str,
}

const CHECKS: [SqlCheck; 16] = [
    SqlCheck {
        name: "dead_letters",
        title: "messages or rows that could not be applied",
        statement: include_str!("../../../queries/audit/dead_letters.sql"),
        flag: None,
        next: "projector dead-letters show SEQUENCE prints the reason; repair and load the rows, then retry or discard",
    },
    SqlCheck {
        name: "held_rows",
        title: "quarantined rows",
        statement: include_str!("../../../queries/audit/held_rows.sql"),
        flag: None,
        next: "wrong row: load the vendor's correction, or projector quarantine confirm; right row: wait for the next similar payment, or projector quarantine release",
    },
    SqlCheck {
        name: "high_yields",
        title: "suspect yields (safety.suspect_yield)",
        statement: include_str!("../../../queries/audit/high_yields.sql"),
        flag: None,
        next: "check price, unit and liquidations typed as regular: projector explain SYMBOL dividend_yield",
    },
    SqlCheck {
        name: "high_forwards",
        title: "forward dividends above twice the trailing ones",
        statement: include_str!("../../../queries/audit/high_forwards.sql"),
        flag: None,
        next: "check specials typed as regular and the estimated frequency: projector explain SYMBOL dps_forward",
    },
    SqlCheck {
        name: "currencies",
        title: "dividends in another currency than the price",
        statement: include_str!("../../../queries/audit/currencies.sql"),
        flag: None,
        next: "correct for depositary receipts; otherwise fix the currency of the security or of its dividends",
    },
    SqlCheck {
        name: "stale_prices",
        title: "active securities without a price in the last five sessions",
        statement: include_str!("../../../queries/audit/stale_prices.sql"),
        flag: None,
        next: "load the missing prices, or a security record with status delisted",
    },
    SqlCheck {
        name: "splits_without_move",
        title: "splits without a price move",
        statement: include_str!("../../../queries/audit/flags.sql"),
        flag: Some("split_not_in_price"),
        next: "check if the price feed is already adjusted, and the ratio and date of the split",
    },
    SqlCheck {
        name: "moves_without_split",
        title: "split-like price moves without a split",
        statement: include_str!("../../../queries/audit/flags.sql"),
        flag: Some("price_jump_without_split"),
        next: "load the split, or correct the prices around the move",
    },
    SqlCheck {
        name: "missing_payments",
        title: "payments missing in a year of growth or streak",
        statement: include_str!("../../../queries/audit/flags.sql"),
        flag: Some("payment_gap"),
        next: "load the missing dividend; projector explain SYMBOL annual_totals names the year",
    },
    SqlCheck {
        name: "repeated_payments",
        title: "rows of one payment with two ex-dates",
        statement: include_str!("../../../queries/audit/flags.sql"),
        flag: Some("near_duplicate"),
        next: "load a retraction of the wrong row; projector explain SYMBOL dps_ttm names both",
    },
    SqlCheck {
        name: "inferred_specials",
        title: "specials inferred in regular rows",
        statement: include_str!("../../../queries/audit/flags.sql"),
        flag: Some("inferred_special"),
        next: "load the row again with type special, or as two rows, to confirm it",
    },
    SqlCheck {
        name: "amount_dips",
        title: "single amounts below both neighbours",
        statement: include_str!("../../../queries/audit/flags.sql"),
        flag: Some("amount_dip"),
        next: "compare the amount with the company's announcement and load the correction",
    },
    SqlCheck {
        name: "missing_dividends",
        title: "securities whose adjusted closes show dividends that no row has",
        statement: include_str!("../../../queries/audit/dividend_flags.sql"),
        flag: Some("dividends_missing"),
        next: "load the dividends; projector explain SYMBOL dividend_status names their dates",
    },
    SqlCheck {
        name: "unknown_dividends",
        title: "securities without a source of dividends",
        statement: include_str!("../../../queries/audit/dividend_flags.sql"),
        flag: Some("no_dividend_feed"),
        next: "load dividends of a source that covers them; their yields are null until then",
    },
    SqlCheck {
        name: "level_breaks",
        title: "lasting price moves of more than 3 times without an event",
        statement: include_str!("../../../queries/audit/flags.sql"),
        flag: Some("price_level_break"),
        next: "load the split, spin-off or special behind the move; a real move needs nothing",
    },
    SqlCheck {
        name: "share_bases",
        title: "dividends before a split that are probably on the shares after it",
        statement: include_str!("../../../queries/audit/flags.sql"),
        flag: Some("amount_basis_suspect"),
        next: "load the rows before the split again with amount_basis split_adjusted",
    },
];

/// Audits the served generation.
pub async fn audit_served(client: &mut Client) -> anyhow::Result<AuditReport> {
    let transaction = begin_snapshot(client).await?;
    let generation = Generation::load_served(&transaction).await?;
    let row = transaction.query_one(MARKET, &[]).await?;
    let as_of: Option<NaiveDate> = row.try_get("as_of")?;
    let as_of = as_of.context("cannot audit: nothing is derived yet; load prices first")?;
    let JsonColumn(policy) = row.try_get("policy")?;
    let market = AuditContext { as_of, policy, rules: generation.rules };
    let mut findings = Vec::new();
    for check in &CHECKS {
        findings.extend(check.run(&transaction).await?);
    }
    findings.push(statuses::find_changed(&transaction, &market).await?);
    findings.push(sessions::find_gaps(&transaction, &market).await?);
    let adjusted_closes = count_agreements(&transaction, &market).await?;
    Ok(AuditReport {
        generation: generation.id,
        sequence: row.try_get("sequence")?,
        as_of,
        method_version: row.try_get("method_version")?,
        securities: row.try_get("securities")?,
        findings,
        adjusted_closes,
    })
}

impl SqlCheck {
    async fn run(&self, transaction: &Transaction<'_>) -> anyhow::Result<Vec<AuditFinding>> {
        let flag: Vec<&(dyn ToSql + Sync)> =
            self.flag.iter().map(|flag| flag as &(dyn ToSql + Sync)).collect();
        let rows = transaction.query(self.statement, &flag).await?;
        let mut findings: Vec<AuditFinding> = Vec::new();
        for row in &rows {
            let topic: Option<String> = row.try_get("topic")?;
            if findings.last().is_none_or(|finding| finding.topic != topic) {
                findings.push(self.new_finding(topic, row.try_get("total")?));
            }
            if let Some(finding) = findings.last_mut() {
                finding.first.push(read_example(row)?);
            }
        }
        if findings.is_empty() {
            findings.push(self.new_finding(None, 0));
        }
        Ok(findings)
    }

    fn new_finding(&self, topic: Option<String>, count: i64) -> AuditFinding {
        AuditFinding { check: self.name, topic, title: self.title, count, first: Vec::new(), next: self.next }
    }
}

fn read_example(row: &Row) -> Result<FindingExample, tokio_postgres::Error> {
    Ok(FindingExample { symbol: row.try_get("symbol")?, seen: row.try_get("seen")? })
}
