//! Findings of an audit, with examples. Also the context of the checks: the inputs from which the served generation is
//! derived.

use chrono::NaiveDate;
use market::history::SourcePolicy;
use market::identity::Identity;
use market::metrics::{DerivationContext, Rules};
use market::row::JsonColumn;
use serde::Serialize;
use store::sql_row;
use tokio_postgres::{Row, Transaction};

use crate::generation::Generation;

const MARKET: &str = include_str!("../../../queries/audit/market.sql");

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

pub(crate) struct AuditContext {
    pub(crate) as_of: NaiveDate,
    pub(crate) policy: SourcePolicy,
    pub(crate) rules: Rules,
}

impl AuditContext {
    /// Loads the inputs of a generation, whose schema must be first in the search path. The inputs are `None` if
    /// nothing is derived yet. Also returns the row of the query [`MARKET`].
    pub(crate) async fn load(
        transaction: &Transaction<'_>,
        generation: &Generation,
    ) -> anyhow::Result<(Option<Self>, Row)> {
        let row = transaction.query_one(MARKET, &[]).await?;
        let as_of: Option<NaiveDate> = row.try_get("as_of")?;
        let JsonColumn(policy) = row.try_get("policy")?;
        Ok((as_of.map(|as_of| Self { as_of, policy, rules: generation.rules }), row))
    }

    pub(crate) fn derivation(&self, as_of: NaiveDate) -> DerivationContext<'_> {
        let (policy, rules) = (&self.policy, &self.rules);
        DerivationContext { as_of, newest: self.as_of, benchmark: None, policy, rules }
    }
}

/// Runs a query and reads identities from its result. The query must return a column `identity`.
pub(crate) async fn load_identities(
    transaction: &Transaction<'_>,
    query: &str,
) -> anyhow::Result<Vec<Identity>> {
    let rows = transaction.query(query, &[]).await?;
    let identities = rows.iter().map(|row| Ok(row.try_get::<_, JsonColumn<Identity>>("identity")?.0));
    identities.collect()
}
