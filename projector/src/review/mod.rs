//! Reviews of the served market: audits, comparisons of generations, effects of loads and explanations of metrics.
//! They derive securities of a generation again, from the inputs from which its rows were derived.

pub(crate) mod audit;
mod compare;
pub(crate) mod diff;
pub(crate) mod effect;
pub(crate) mod explain;
pub(crate) mod gate;
pub(crate) mod quality;
pub(crate) mod sources;

use std::sync::Arc;

use anyhow::{Context, bail};
use market::history::History;
use market::identity::{Identity, SecurityAddress};
use market::metrics::DerivationContext;
use market::row::{JsonColumn, Listing};
use market::symbol::Symbol;
use rayon::prelude::*;
use store::find_rows;
use store::history::load_histories;
use store::past_facts::FactHistory;
use store::rows::LISTINGS;
use store::versions::ServedVersion;
use store::view::View;
use tokio_postgres::{GenericClient, Row, Transaction};

use crate::derive::MarketContext;
use crate::generation::{Generation, derivation_inputs, load_last_inputs};

pub(crate) use compare::TABLES;

/// Maximum number of securities whose histories are in memory at the same time.
const CHUNK_HISTORIES: usize = 100;

const MARKET: &str = include_str!("../../queries/audit/market.sql");
const CANONICAL: &str = include_str!("../../queries/symbols_canonical.sql");
const IDENTITY: &str = include_str!("../../queries/identity_of_symbol.sql");

/// History of one security, with the other inputs of its derivation: market date, benchmark, policy and rules.
pub(crate) struct SecurityContext {
    pub(crate) history: History,
    market: MarketContext,
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
        let market = MarketContext::load(transaction, generation, as_of, policy).await?;
        Ok(Self { history, market: market.with_benchmark(histories.next().as_ref()) })
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
        let facts = FactHistory::load_once(transaction, &version.fact_set, &wanted).await?;
        let facts = facts.at(&View::at(version.facts_sequence), policy)?;
        let own = facts.identity(symbol.as_str());
        let own = own.with_context(|| format!("security {symbol} was not known at that time"))?;
        let benchmark = facts.identity(&version.market.benchmark);
        let benchmark = benchmark.filter(|identity| identity.symbol.as_str() == version.market.benchmark);
        let benchmark = benchmark.map(|identity| facts.history(identity)).transpose()?;
        let market = MarketContext {
            as_of,
            benchmark: None,
            rates: Arc::new(facts.rates().clone()),
            reporting_currency: version.market.reporting_currency.clone(),
            policy: policy.clone(),
            rules: *rules,
        };
        Ok(Self { history: facts.history(own)?, market: market.with_benchmark(benchmark.as_ref()) })
    }

    pub(crate) fn market(&self) -> DerivationContext<'_> {
        self.market.derivation_context()
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
    let listings: Vec<Listing> = find_rows(client, LISTINGS, &[&places, &address.keys()]).await?;
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

/// Loads the inputs of a generation, whose schema must be first in the search path, without the benchmark. They are `None`
/// if nothing is derived yet. Also returns the row of the query [`MARKET`].
pub(crate) async fn load_market(
    transaction: &Transaction<'_>,
    generation: &Generation,
) -> anyhow::Result<(Option<MarketContext>, Row)> {
    let row = transaction.query_one(MARKET, &[]).await?;
    let JsonColumn(policy) = row.try_get("policy")?;
    let market = match row.try_get("as_of")? {
        Some(as_of) => Some(MarketContext::load(transaction, generation, as_of, policy).await?),
        None => None,
    };
    Ok((market, row))
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
