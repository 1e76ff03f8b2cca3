//! Finding of an audit with examples, and the inputs of the served generation that the checks use.

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

/// Finding: result of one check.
#[derive(Debug, Serialize)]
pub struct AuditFinding {
    /// Stable name of the check, for example `held_rows`.
    pub check: &'static str,
    /// Group of matches within the check, for example a quarantine reason; `None` if the check has no groups.
    pub topic: Option<String>,
    /// Title of the check, for the reader of the report.
    pub title: &'static str,
    /// Number of matching securities, rows or messages; 0 if the check found no problem.
    pub count: i64,
    /// First ten matches of the check.
    pub first: Vec<FindingExample>,
    /// Next step for the operator.
    pub next: &'static str,
}

sql_row! {
    /// Security, row or message that a check found.
    #[derive(Debug, Serialize)]
    pub struct FindingExample {
        /// Symbol of the security; for a dead letter, sequence of its log message.
        pub symbol: String,
        /// Description of the problem, for the reader of the report.
        pub seen: String,
    }
}

/// Inputs from which the served generation is derived.
pub(crate) struct AuditContext {
    pub(crate) as_of: NaiveDate,
    pub(crate) policy: SourcePolicy,
    pub(crate) rules: Rules,
}

impl AuditContext {
    /// Loads the inputs of the generation that is first in the search path; `None` if nothing is derived yet. Also
    /// returns the result row of [`MARKET`], from which the caller reads the log sequence and the number of securities.
    pub(crate) async fn load(
        transaction: &Transaction<'_>,
        generation: &Generation,
    ) -> anyhow::Result<(Option<Self>, Row)> {
        let row = transaction.query_one(MARKET, &[]).await?;
        let as_of: Option<NaiveDate> = row.try_get("as_of")?;
        let JsonColumn(policy) = row.try_get("policy")?;
        Ok((as_of.map(|as_of| Self { as_of, policy, rules: generation.rules }), row))
    }

    /// Input of the derivation functions in `market` for the market date `as_of`.
    pub(crate) fn derivation(&self, as_of: NaiveDate) -> DerivationContext<'_> {
        let (policy, rules) = (&self.policy, &self.rules);
        DerivationContext { as_of, newest: self.as_of, benchmark: None, policy, rules }
    }
}

/// Maximum number of securities whose histories are in memory at the same time.
pub(crate) const CHUNK_HISTORIES: usize = 100;

/// Loads the identities that a query selects.
pub(crate) async fn load_identities(
    transaction: &Transaction<'_>,
    query: &str,
) -> anyhow::Result<Vec<Identity>> {
    let rows = transaction.query(query, &[]).await?;
    let identities = rows.iter().map(|row| Ok(row.try_get::<_, JsonColumn<Identity>>("identity")?.0));
    identities.collect()
}
