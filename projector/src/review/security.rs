//! One security of a generation, with the market context of its derivation.

use anyhow::Context;
use chrono::NaiveDate;
use market::history::{History, SourcePolicy};
use market::identity::Identity;
use market::metrics;
use market::metrics::{DerivationContext, MonthlyReturns, Rules};
use market::row::JsonColumn;
use market::symbol::Symbol;
use store::history::load_histories;
use tokio_postgres::Transaction;

use crate::generation::Generation;

const DERIVED_WITH: &str = include_str!("../../queries/version_derived.sql");
const IDENTITY: &str = include_str!("../../queries/identity_of_symbol.sql");

/// History of a security and the inputs of its generation's derivation.
pub(crate) struct SecurityContext {
    pub(crate) history: History,
    as_of: NaiveDate,
    benchmark: Option<MonthlyReturns>,
    policy: SourcePolicy,
    rules: Rules,
}

impl SecurityContext {
    /// Loads a security of the generation in the transaction's search path.
    pub(crate) async fn load(
        transaction: &Transaction<'_>,
        symbol: &Symbol,
        generation: &Generation,
    ) -> anyhow::Result<Self> {
        let row = transaction.query_one(DERIVED_WITH, &[]).await?;
        let (as_of, JsonColumn(policy)): (Option<NaiveDate>, JsonColumn<SourcePolicy>) =
            (row.try_get("as_of")?, row.try_get("policy")?);
        let as_of = as_of.context("nothing is derived yet; load prices first")?;
        let own = load_identity(transaction, symbol).await?;
        let own = own.with_context(|| format!("security {symbol} does not exist"))?;
        let benchmark = load_identity(transaction, &generation.benchmark).await?;
        let wanted: Vec<&Identity> = [Some(&own), benchmark.as_ref()].into_iter().flatten().collect();
        let mut histories = load_histories(transaction, &wanted).await?.into_iter();
        let history = histories.next().context("the security has no history")?;
        let rules = generation.rules;
        let benchmark = histories.next().map(|history| metrics::benchmark(&history, as_of, &policy, &rules));
        Ok(Self { history, as_of, benchmark, policy, rules })
    }

    /// Derivation context, which borrows these values.
    pub(crate) fn market(&self) -> DerivationContext<'_> {
        let benchmark = self.benchmark.as_ref();
        let (policy, rules) = (&self.policy, &self.rules);
        DerivationContext { as_of: self.as_of, newest: self.as_of, benchmark, policy, rules }
    }
}

async fn load_identity(transaction: &Transaction<'_>, symbol: &Symbol) -> anyhow::Result<Option<Identity>> {
    let row = transaction.query_opt(IDENTITY, &[&symbol.as_str()]).await?;
    Ok(row
        .map(|row| row.try_get::<_, JsonColumn<Identity>>("identity"))
        .transpose()?
        .map(|identity| identity.0))
}
