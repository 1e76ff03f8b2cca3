//! Securities of a generation, with the inputs from which their rows are derived.

use anyhow::{Context, bail};
use chrono::NaiveDate;
use market::history::{History, SourcePolicy};
use market::identity::{Identity, SecurityAddress};
use market::metrics;
use market::metrics::{DerivationContext, ExchangeRates, MonthlyReturns, Rules};
use market::row::{JsonColumn, Listing};
use market::symbol::Symbol;
use rayon::prelude::*;
use store::FromRow;
use store::facts::load_rates;
use store::history::load_histories;
use store::past_facts::{EmptyBatchIndex, FactHistory};
use store::rows::LISTINGS;
use store::versions::ServedVersion;
use store::view::View;
use tokio_postgres::{GenericClient, Row, Transaction};

use crate::generation::derivation_inputs;
use crate::generation::{Generation, load_last_inputs};

/// Maximum number of securities whose histories are in memory at the same time.
const CHUNK_HISTORIES: usize = 100;

const MARKET: &str = include_str!("../../queries/audit/market.sql");
const CANONICAL: &str = include_str!("../../queries/symbols_canonical.sql");
const IDENTITY: &str = include_str!("../../queries/identity_of_symbol.sql");

/// History of one security, with the other inputs of its derivation: market date, benchmark, policy and rules.
pub(crate) struct SecurityContext {
    pub(crate) history: History,
    as_of: NaiveDate,
    benchmark: Option<MonthlyReturns>,
    rates: ExchangeRates,
    reporting_currency: String,
    policy: SourcePolicy,
    rules: Rules,
}

impl SecurityContext {
    /// Loads a security of `generation`. The schema of the generation must be first in the search path of the
    /// transaction.
    pub(crate) async fn load(
        transaction: &Transaction<'_>,
        symbol: &Symbol,
        generation: &Generation,
    ) -> anyhow::Result<Self> {
        let (as_of, policy) = load_last_inputs(transaction).await?;
        let as_of = as_of.context("nothing is derived yet; load prices first")?;
        let own = load_identity(transaction, symbol).await?;
        let own = own.with_context(|| format!("security {symbol} does not exist"))?;
        let benchmark = load_identity(transaction, &generation.benchmark).await?;
        let wanted: Vec<&Identity> = [Some(&own), benchmark.as_ref()].into_iter().flatten().collect();
        let mut histories = load_histories(transaction, &wanted).await?.into_iter();
        let history = histories.next().context("the security has no history")?;
        let (rules, rates) = (generation.rules, load_rates(transaction, None, &policy).await?);
        let benchmark =
            histories.next().map(|history| metrics::benchmark(&history, as_of, &rates, &policy, &rules));
        let reporting_currency = generation.reporting_currency.clone();
        Ok(Self { history, as_of, benchmark, rates, reporting_currency, policy, rules })
    }

    /// Loads the security of an address. The search path is that of [`SecurityContext::load`].
    pub(crate) async fn find(
        transaction: &Transaction<'_>,
        address: &SecurityAddress,
        generation: &Generation,
    ) -> anyhow::Result<Self> {
        let symbol = find_symbol(transaction, address).await?;
        let symbol = symbol.with_context(|| format!("security {address} does not exist"))?;
        Self::load(transaction, &symbol, generation).await
    }

    /// Loads a security as it was in a served data version. Sets the search path to the fact set of the version.
    pub(crate) async fn load_known(
        transaction: &Transaction<'_>,
        symbol: &Symbol,
        version: &ServedVersion,
    ) -> anyhow::Result<Self> {
        let (policy, rules) = derivation_inputs(version)?;
        let as_of = version.as_of.context("nothing was derived at that time")?;
        transaction.execute("select set_config('search_path', $1, true)", &[&version.fact_set]).await?;
        let wanted = [symbol.as_str(), version.market.benchmark.as_str()];
        let statements = FactHistory::statements(&version.fact_set);
        let statements = statements.each_ref().map(String::as_str);
        let facts = FactHistory::load(transaction, statements, &wanted, &EmptyBatchIndex).await?;
        let facts = facts.at(&View::at(version.facts_sequence), policy)?;
        let own = facts.identity(symbol.as_str());
        let own = own.with_context(|| format!("security {symbol} was not known at that time"))?;
        let benchmark = facts.identity(&version.market.benchmark);
        let benchmark = benchmark.filter(|identity| identity.symbol.as_str() == version.market.benchmark);
        let benchmark = benchmark.map(|identity| facts.history(identity)).transpose()?;
        let rates = facts.rates().clone();
        let benchmark = benchmark.map(|history| metrics::benchmark(&history, as_of, &rates, policy, rules));
        Ok(Self {
            history: facts.history(own)?,
            as_of,
            benchmark,
            rates,
            reporting_currency: version.market.reporting_currency.clone(),
            policy: policy.clone(),
            rules: *rules,
        })
    }

    pub(crate) fn market(&self) -> DerivationContext<'_> {
        let benchmark = self.benchmark.as_ref();
        let Self { as_of, rates, reporting_currency, policy, rules, .. } = self;
        DerivationContext {
            as_of: *as_of,
            newest: *as_of,
            benchmark,
            rates,
            reporting_currency,
            policy,
            rules,
        }
    }
}

/// Canonical symbol of an address in the generation first in the search path. `None` if no security has the address.
///
/// # Errors
/// Several listings have the address.
pub(crate) async fn find_symbol(
    client: &impl GenericClient,
    address: &SecurityAddress,
) -> anyhow::Result<Option<Symbol>> {
    if let Some(row) = client.query_opt(CANONICAL, &[&address.keys()]).await? {
        return Ok(Some(Symbol::from_stored(row.try_get(0)?)));
    }
    let places = vec![0i32; address.keys().len()];
    let rows = client.query(LISTINGS, &[&places, &address.keys()]).await?;
    let listings = rows.iter().map(Listing::from_row).collect::<Result<Vec<_>, _>>()?;
    if !listings.is_empty() {
        let names: Vec<String> = listings.iter().map(Listing::to_string).collect();
        bail!("cannot choose a listing of {address}: it has {}; use one of these symbols", names.join(", "));
    }
    Ok(None)
}

async fn load_identity(transaction: &Transaction<'_>, symbol: &Symbol) -> anyhow::Result<Option<Identity>> {
    let row = transaction.query_opt(IDENTITY, &[&symbol.as_str()]).await?;
    Ok(row
        .map(|row| row.try_get::<_, JsonColumn<Identity>>("identity"))
        .transpose()?
        .map(|identity| identity.0))
}

/// Inputs from which the served generation is derived.
pub(crate) struct AuditContext {
    pub(crate) as_of: NaiveDate,
    rates: ExchangeRates,
    reporting_currency: String,
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
        let rates = load_rates(transaction, None, &policy).await?;
        let (rules, reporting_currency) = (generation.rules, generation.reporting_currency.clone());
        Ok((as_of.map(|as_of| Self { as_of, rates, reporting_currency, policy, rules }), row))
    }

    pub(crate) fn derivation(&self, as_of: NaiveDate) -> DerivationContext<'_> {
        let Self { rates, reporting_currency, policy, rules, .. } = self;
        let newest = self.as_of;
        DerivationContext { as_of, newest, benchmark: None, rates, reporting_currency, policy, rules }
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

/// Loads the histories of some securities in chunks. Each is measured, in parallel with the others of its chunk, and then
/// visited with its measure, in the order of `identities`.
pub(crate) async fn visit_histories<T: Send>(
    transaction: &Transaction<'_>,
    identities: &[Identity],
    measure: impl Fn(&History) -> anyhow::Result<T> + Sync,
    mut visit: impl FnMut(&History, T),
) -> anyhow::Result<()> {
    for chunk in identities.chunks(CHUNK_HISTORIES) {
        let histories = load_histories(transaction, &chunk.iter().collect::<Vec<_>>()).await?;
        let measured: Vec<T> = tokio::task::block_in_place(|| {
            histories.par_iter().map(&measure).collect::<anyhow::Result<_>>()
        })?;
        histories.iter().zip(measured).for_each(|(history, measured)| visit(history, measured));
    }
    Ok(())
}
