//! Rows of a security at an earlier data version, derived again from the facts of that version.
//!
//! The projector uses the same derivation. The same facts, policy and rules give the same rows, digit by digit.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::Arc;

use chrono::NaiveDate;
use market::history::History;
use market::identity::Identity;
use market::metrics::fund::fund;
use market::metrics::{self, Derivation, DerivationContext, DerivedRows, Explanation, MonthlyReturns};
use market::row::Metrics;
use store::facts::FactsError;
use store::past_facts::{FactHistory, PastFacts};
use store::view::View;
use tokio_util::task::AbortOnDropHandle;

use crate::concurrency::run_low_priority;
use crate::error::ApiError;
use crate::read::lookup::{self, PastVersion};
use crate::read::past_securities::PastSecurity;
use crate::read::{QueryError, ServedGeneration};

/// Query for securities at one data version and one market date.
#[derive(Debug)]
pub(crate) struct PastQuery {
    past: Arc<PastVersion>,
    /// Possible spellings of each requested symbol, in the order in which they are tried.
    symbols: Vec<Vec<String>>,
    /// Market date of the version (as-of date of its figures).
    newest: NaiveDate,
    as_of: NaiveDate,
}

impl PastQuery {
    /// Creates a query for symbols at a version. If `as_of` is absent or after the market date of the version, the
    /// market date is used instead. Returns `None` if the version has no market date.
    pub(crate) fn new(
        past: &Arc<PastVersion>,
        symbols: Vec<Vec<String>>,
        as_of: Option<NaiveDate>,
    ) -> Option<Self> {
        let newest = past.as_of?;
        let as_of = as_of.map_or(newest, |as_of| as_of.min(newest));
        Some(Self { past: Arc::clone(past), symbols, newest, as_of })
    }
}

/// Derives one security per symbol at an earlier version. The default of `as_of` is the market date of the version.
/// `symbols` has the possible spellings of each symbol, in the order in which they are tried. The result for an unknown
/// symbol is `None`.
pub(crate) async fn derive_past_securities(
    generation: &ServedGeneration,
    past: &Arc<PastVersion>,
    symbols: Vec<Vec<String>>,
    as_of: Option<NaiveDate>,
) -> Result<Vec<Option<PastSecurity>>, ApiError> {
    let symbols = lookup::to_plain_symbols(generation, symbols).await?;
    let unknown = symbols.iter().map(|_| None).collect();
    let Some(query) = PastQuery::new(past, symbols, as_of) else { return Ok(unknown) };
    derive(generation, query, |derivation, symbols| {
        let security = |spellings: &Vec<String>| {
            let found = derivation.find(spellings)?;
            Ok(found.map(|FoundSecurity { identity, rows, .. }| PastSecurity { identity, rows }))
        };
        symbols.iter().map(security).collect()
    })
    .await
}

/// Derives the metrics and their explanation for the first symbol of the query. Returns `None` if the symbol is
/// unknown.
pub(crate) async fn explain_past_security(
    generation: &ServedGeneration,
    mut query: PastQuery,
) -> Result<Option<(Metrics, Explanation)>, ApiError> {
    query.symbols = lookup::to_plain_symbols(generation, query.symbols).await?;
    derive(generation, query, |derivation, symbols| {
        let found = symbols.first().map(|spellings| derivation.find(spellings)).transpose()?.flatten();
        let Some(FoundSecurity { history, rows, .. }) = found else { return Ok(None) };
        let explanation = metrics::explain(&history, &derivation.context(derivation.as_of)?);
        Ok(Some((rows.metrics, explanation)))
    })
    .await
}

/// Derives the metrics of the first symbol of the query on several market dates. Returns `None` if the symbol is unknown.
/// Betas are not valid, because they need the benchmark's returns of each date.
pub(crate) async fn derive_metrics_on(
    generation: &ServedGeneration,
    mut query: PastQuery,
    days: Vec<NaiveDate>,
) -> Result<Option<Vec<Metrics>>, ApiError> {
    query.symbols = lookup::to_plain_symbols(generation, query.symbols).await?;
    derive(generation, query, move |derivation, symbols| {
        let found = symbols.first().map(|spellings| derivation.find(spellings)).transpose()?.flatten();
        let Some(FoundSecurity { history, .. }) = found else { return Ok(None) };
        let metrics = |day: &NaiveDate| {
            Ok::<_, ApiError>(Derivation::new(&history, &derivation.context(*day)?).metrics())
        };
        days.iter().map(metrics).collect::<Result<Vec<_>, _>>().map(Some)
    })
    .await
}

/// Loads the facts that a query needs. Then calls the function `derive` with these facts on a low-priority thread.
async fn derive<T: Send + 'static>(
    generation: &ServedGeneration,
    query: PastQuery,
    derive: impl FnOnce(&PastDerivation<'_>, &[Vec<String>]) -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let PastQuery { past, symbols, newest, as_of } = query;
    let key = (past.position, as_of);
    let cached = generation.past_benchmarks.get(&key);
    let benchmark = cached.is_none().then(|| past.market.benchmark.clone());
    let wanted = symbols.iter().flatten().cloned().chain(benchmark).collect();
    let facts = load_fact_history(generation, &past.fact_set, wanted).await?;
    let derived = run_low_priority(move || {
        let facts = facts.at(&View::at(past.facts_sequence), &past.inputs()?.0).map_err(facts_error)?;
        let benchmark = match cached {
            Some(benchmark) => benchmark,
            None => Arc::new(benchmark_returns(&past, &facts, as_of)?),
        };
        let derivation = PastDerivation { past: &past, facts: &facts, benchmark: &benchmark, newest, as_of };
        let derived = derive(&derivation, &symbols)?;
        Ok::<_, ApiError>((derived, benchmark))
    });
    let (derived, benchmark) = derived.await??;
    generation.past_benchmarks.insert(key, benchmark);
    Ok(derived)
}

/// Damaged facts.
pub(crate) fn facts_error(error: FactsError) -> ApiError {
    ApiError::Internal(error.into())
}

/// Loads the facts of some symbols, including superseded facts.
///
/// An expensive request runs on a low-priority thread, which wakes up slowly after each wait. All statements therefore
/// run in one task on a normal worker thread, so that the request waits only once.
pub(in crate::routes) async fn load_fact_history(
    generation: &ServedGeneration,
    fact_set: &str,
    symbols: Vec<String>,
) -> Result<FactHistory, ApiError> {
    let client = generation.client().await?;
    let [facts, rates, batches] = FactHistory::statements(fact_set);
    let known = generation.record_batches.of_fact_set(fact_set);
    load_in_task(async move {
        let facts = client.prepare_cached(&facts).await?;
        let rates = client.prepare_cached(&rates).await?;
        let batches = client.prepare_cached(&batches).await?;
        let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
        FactHistory::load(&**client, [&facts, &rates, &batches], &symbols, &known).await
    })
    .await
}

/// Loads the exchange rates between some currencies in some years, including superseded rates.
pub(crate) async fn load_rate_history(
    generation: &ServedGeneration,
    fact_set: &str,
    currencies: BTreeSet<String>,
    years: RangeInclusive<i32>,
) -> Result<FactHistory, ApiError> {
    let client = generation.client().await?;
    let [rates, batches] = FactHistory::rate_statements(fact_set);
    let known = generation.record_batches.of_fact_set(fact_set);
    load_in_task(async move {
        let rates = client.prepare_cached(&rates).await?;
        let batches = client.prepare_cached(&batches).await?;
        FactHistory::load_rates(&**client, [&rates, &batches], &currencies, years, &known).await
    })
    .await
}

async fn load_in_task(
    loading: impl Future<Output = Result<FactHistory, FactsError>> + Send + 'static,
) -> Result<FactHistory, ApiError> {
    let loaded = AbortOnDropHandle::new(tokio::spawn(loading)).await.map_err(|_| QueryError::TaskEnded)?;
    loaded.map_err(|error| match error {
        FactsError::Statement(error) => QueryError::from(error).into(),
        error => facts_error(error),
    })
}

fn benchmark_returns(
    past: &PastVersion,
    facts: &PastFacts,
    as_of: NaiveDate,
) -> Result<Option<MonthlyReturns>, ApiError> {
    let identity =
        facts.identity(&past.market.benchmark).filter(|found| found.symbol.as_str() == past.market.benchmark);
    let Some(identity) = identity else { return Ok(None) };
    let (policy, rules) = past.inputs()?;
    let history = facts.history(identity).map_err(facts_error)?;
    Ok(Some(metrics::benchmark(&history, as_of, facts.rates(), policy, rules)))
}

/// Inputs that the derivations of all securities of a query share.
struct PastDerivation<'a> {
    past: &'a PastVersion,
    facts: &'a PastFacts,
    benchmark: &'a Option<MonthlyReturns>,
    /// Market date of the version (as-of date of its figures).
    newest: NaiveDate,
    as_of: NaiveDate,
}

/// Derived security with its history.
struct FoundSecurity {
    identity: Identity,
    history: History,
    rows: DerivedRows,
}

impl PastDerivation<'_> {
    /// Tries the spellings in order, and derives the first security that existed at the version. Returns `None` if no
    /// spelling gives such a security.
    fn find(&self, spellings: &[String]) -> Result<Option<FoundSecurity>, ApiError> {
        for identity in spellings.iter().filter_map(|spelling| self.facts.identity(spelling)) {
            let history = self.facts.history(identity).map_err(facts_error)?;
            let rows = metrics::derive(&history, &self.context(self.as_of)?);
            if self.is_listed(&history, &rows)? {
                return Ok(Some(FoundSecurity { identity: identity.clone(), history, rows }));
            }
        }
        Ok(None)
    }

    /// True if the security existed at the version. It existed if it had a reference record, a row that was not
    /// withdrawn, or fund data.
    fn is_listed(&self, history: &History, rows: &DerivedRows) -> Result<bool, ApiError> {
        if history.security.is_some() || rows.has_live_rows() {
            return Ok(true);
        }
        let market = self.context(self.newest)?;
        let newest = metrics::derive(history, &market);
        Ok(newest.has_live_rows() || fund(history, &market, &newest.stock, &newest.metrics).is_some())
    }

    fn context(&self, as_of: NaiveDate) -> Result<DerivationContext<'_>, QueryError> {
        let (policy, rules) = self.past.inputs()?;
        let (benchmark, rates) = (self.benchmark.as_ref(), self.facts.rates());
        let (newest, reporting_currency) = (self.newest, self.past.market.reporting_currency.as_str());
        Ok(DerivationContext { as_of, newest, benchmark, rates, reporting_currency, policy, rules })
    }
}
