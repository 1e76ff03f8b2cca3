//! `projector audit`: what looks wrong with a market, for whoever looks after its data every morning.
//!
//! One snapshot of the served generation is read and nothing is written. A finding is no error: it names securities to look
//! at and says what to do with them.

mod finding;
mod sessions;
mod statuses;

use anyhow::Context;
use chrono::NaiveDate;
use market::row::Json;
use serde::Serialize;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};

use crate::generation::Generation;

use finding::AuditContext;
pub use finding::{AuditFinding, FindingExample};

const ACTIVE: &str = include_str!("../../../queries/generation_active.sql");
const MARKET: &str = include_str!("../../../queries/audit/market.sql");

/// What an audit found.
#[derive(Debug, Serialize)]
pub struct AuditReport {
    /// Number of the served generation.
    pub generation: i32,
    /// Log sequence the tables are at.
    pub sequence: i64,
    /// The market's date that the tables were derived for.
    pub as_of: NaiveDate,
    /// Version of the rules that the tables were derived by.
    pub method_version: String,
    /// Rows of the table of stocks.
    pub securities: i64,
    /// Every check, in the order of urgency; several findings where it tells topics apart.
    pub findings: Vec<AuditFinding>,
}

impl AuditReport {
    /// Whether nothing looks wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.count == 0)
    }
}

/// A check that is one statement: columns topic, symbol, seen and total.
struct SqlCheck {
    name: &'static str,
    title: &'static str,
    statement: &'static str,
    /// The statement's parameter.
    flag: Option<&'static str>,
    next: &'static str,
}

const CHECKS: [SqlCheck; 8] = [
    SqlCheck {
        name: "dead_letters",
        title: "messages or rows that could not be applied",
        statement: include_str!("../../../queries/audit/dead_letters.sql"),
        flag: None,
        next: "projector dead-letters show SEQUENCE says why; mend and load them, then retry or discard",
    },
    SqlCheck {
        name: "held_rows",
        title: "rows held back from the figures",
        statement: include_str!("../../../queries/audit/held_rows.sql"),
        flag: None,
        next: "a wrong row: load the vendor's correction, or projector quarantine confirm; a right one: it comes back with the next payment like it, or projector quarantine release",
    },
    SqlCheck {
        name: "high_yields",
        title: "yields that are suspect (safety.suspect_yield)",
        statement: include_str!("../../../queries/audit/high_yields.sql"),
        flag: None,
        next: "look for a wrong price or unit, or a liquidation typed as regular: projector explain SYMBOL dividend_yield",
    },
    SqlCheck {
        name: "high_forwards",
        title: "forward dividends over twice the trailing ones",
        statement: include_str!("../../../queries/audit/high_forwards.sql"),
        flag: None,
        next: "look for a special typed as regular, or a frequency guessed too high: projector explain SYMBOL dps_forward",
    },
    SqlCheck {
        name: "currencies",
        title: "dividends in another currency than the price",
        statement: include_str!("../../../queries/audit/currencies.sql"),
        flag: None,
        next: "right for depositary receipts, which have no yield; otherwise correct the currency of the security or of its dividends",
    },
    SqlCheck {
        name: "stale_prices",
        title: "active securities without a price in the last five sessions",
        statement: include_str!("../../../queries/audit/stale_prices.sql"),
        flag: None,
        next: "load the missing prices, or the security's record with status delisted",
    },
    SqlCheck {
        name: "splits_without_move",
        title: "splits without a price move",
        statement: include_str!("../../../queries/audit/flags.sql"),
        flag: Some("split_not_in_price"),
        next: "look whether the price feed is adjusted already, or the split's ratio or date is wrong",
    },
    SqlCheck {
        name: "moves_without_split",
        title: "price moves of a split's size without a split",
        statement: include_str!("../../../queries/audit/flags.sql"),
        flag: Some("price_jump_without_split"),
        next: "load the split, or correct the prices around the jump",
    },
];

/// Looks at the served generation.
pub async fn audit_served(client: &mut Client) -> anyhow::Result<AuditReport> {
    let transaction = client
        .build_transaction()
        .isolation_level(tokio_postgres::IsolationLevel::RepeatableRead)
        .read_only(true)
        .start()
        .await?;
    let generation = Generation::from_row(&transaction.query_one(ACTIVE, &[]).await?)?;
    generation.set_local_search_path(&transaction).await?;
    let row = transaction.query_one(MARKET, &[]).await?;
    let as_of: Option<NaiveDate> = row.try_get("as_of")?;
    let as_of = as_of.context("nothing is derived yet: the log has no session")?;
    let Json(policy) = row.try_get("policy")?;
    let market = AuditContext { as_of, policy, rules: generation.rules };
    let mut findings = Vec::new();
    for check in &CHECKS {
        findings.extend(check.run(&transaction).await?);
    }
    findings.push(statuses::find_changed(&transaction, &market).await?);
    findings.push(sessions::find_gaps(&transaction, &market).await?);
    Ok(AuditReport {
        generation: generation.id,
        sequence: row.try_get("sequence")?,
        as_of,
        method_version: row.try_get("method_version")?,
        securities: row.try_get("securities")?,
        findings,
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
