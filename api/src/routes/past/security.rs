//! Rows of a security at an earlier data version, derived again from the facts of that version.
//!
//! The projector uses the same derivation. The same facts, policy and rules give the same rows, digit by digit.

use std::sync::Arc;

use chrono::NaiveDate;
use market::history::History;
use market::identity::Identity;
use market::metrics::fund::fund;
use market::metrics::{self, Derivation, DerivationContext, DerivedRows, Explanation, MonthlyReturns};
use market::row::Metrics;
use store::facts::FactsError;
use store::past_facts::{FactHistory, PastFacts};
use tokio_util::task::AbortOnDropHandle;

use crate::concurrency::cpu_pool::run_low_priority;
use crate::error::ApiError;
use crate::read::past_version::PastVersion;
use crate::read::{QueryError, ServedGeneration, lookup};

const RANKS: &str = include_str!("../../../queries/past/dividend_ranks.sql");

/// Security at an earlier data version.
#[derive(Debug)]
pub(crate) struct PastSecurity {
    pub(crate) identity: Identity,
    history: History,
    benchmark: Arc<Option<MonthlyReturns>>,
    as_of: NaiveDate,
    pub(crate) rows: DerivedRows,
}

/// Selection of the price columns that are loaded for a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PriceColumns {
    /// Columns that the figures need: for most years, only the closes.
    ForFigures,
    /// All columns of every year.
    All,
}

/// Derives one security per symbol at an earlier version, for the market date `as_of` or else of the version. `symbols`
/// has the spellings of each symbol, best first. A result is `None` for an unknown symbol.
pub(crate) async fn derive_past_securities(
    generation: &ServedGeneration,
    past: &Arc<PastVersion>,
    symbols: Vec<Vec<String>>,
    as_of: Option<NaiveDate>,
    columns: PriceColumns,
) -> Result<Vec<Option<PastSecurity>>, ApiError> {
    let Some(newest) = past.as_of else { return Ok(symbols.iter().map(|_| None).collect()) };
    let as_of = as_of.map_or(newest, |as_of| as_of.min(newest));
    let key = (past.position, as_of);
    let cached = generation.past_benchmarks.get(&key);
    let benchmark = cached.is_none().then(|| past.benchmark.clone());
    let wanted = symbols.iter().flatten().cloned().chain(benchmark).collect();
    let facts = load_fact_history(generation, &past.fact_set, wanted).await?;
    let past = Arc::clone(past);
    let derived = run_low_priority(move || {
        let facts = facts.at(past.facts_sequence, &past.inputs()?.0);
        let facts = facts.map_err(|error| ApiError::Internal(error.into()))?;
        let benchmark = match cached {
            Some(benchmark) => benchmark,
            None => Arc::new(benchmark_returns(&past, &facts, as_of)?),
        };
        let derivation =
            PastDerivation { past: &past, facts: &facts, benchmark: &benchmark, newest, as_of, columns };
        let found = symbols.iter().map(|spellings| derivation.find(spellings));
        let found = found.collect::<Result<Vec<_>, ApiError>>()?;
        Ok::<_, ApiError>((found, benchmark))
    });
    let (found, benchmark) = derived.await??;
    generation.past_benchmarks.insert(key, benchmark);
    Ok(found)
}

/// Ranks dividends by type and id, as the database sorts them.
pub(crate) async fn rank_dividends(
    generation: &ServedGeneration,
    keys: &[(String, Option<String>)],
) -> Result<Vec<i64>, QueryError> {
    let (types, ids): (Vec<&str>, Vec<Option<&str>>) =
        keys.iter().map(|(r#type, id)| (r#type.as_str(), id.as_deref())).unzip();
    let rows = lookup::run_query(generation, RANKS, &[&types, &ids]).await?;
    Ok(rows.iter().map(|row| row.try_get("rank")).collect::<Result<_, _>>()?)
}

/// Loads the facts of some symbols, including superseded facts.
///
/// The statements run on a worker thread. The low-priority thread of an expensive request wakes up slowly, so it waits
/// only once, for the result.
pub(super) async fn load_fact_history(
    generation: &ServedGeneration,
    fact_set: &str,
    symbols: Vec<String>,
) -> Result<FactHistory, ApiError> {
    let client = generation.client().await?;
    let [facts, batches] = FactHistory::statements(fact_set);
    let loading = AbortOnDropHandle::new(tokio::spawn(async move {
        let facts = client.prepare_cached(&facts).await?;
        let batches = client.prepare_cached(&batches).await?;
        let symbols: Vec<&str> = symbols.iter().map(String::as_str).collect();
        FactHistory::load(&**client, [&facts, &batches], &symbols).await
    }));
    let loaded = loading.await.map_err(|_| QueryError::TaskEnded)?;
    loaded.map_err(|error| match error {
        FactsError::Statement(error) => QueryError::from(error).into(),
        error => ApiError::Internal(error.into()),
    })
}

fn benchmark_returns(
    past: &PastVersion,
    facts: &PastFacts,
    as_of: NaiveDate,
) -> Result<Option<MonthlyReturns>, ApiError> {
    let identity = facts.identity(&past.benchmark).filter(|found| found.symbol.as_str() == past.benchmark);
    let Some(identity) = identity else { return Ok(None) };
    let (policy, rules) = past.inputs()?;
    let history = facts.history(identity).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(Some(metrics::benchmark(&history, as_of, policy, rules)))
}

/// Inputs from which several securities are derived.
struct PastDerivation<'a> {
    past: &'a PastVersion,
    facts: &'a PastFacts,
    benchmark: &'a Arc<Option<MonthlyReturns>>,
    /// Market date of the version.
    newest: NaiveDate,
    as_of: NaiveDate,
    columns: PriceColumns,
}

impl PastDerivation<'_> {
    /// Derives the first security among the spellings that was listed at the version; `None` if there is none.
    fn find(&self, spellings: &[String]) -> Result<Option<PastSecurity>, ApiError> {
        for identity in spellings.iter().filter_map(|spelling| self.facts.identity(spelling)) {
            let derived = match self.columns {
                PriceColumns::ForFigures => self.derive_from_closes(identity)?,
                PriceColumns::All => None,
            };
            let derived = match derived {
                Some(derived) => Some(derived),
                None => {
                    let history = self.facts.history(identity);
                    self.derive(history.map_err(|error| ApiError::Internal(error.into()))?, false)?
                }
            };
            if let Some((history, rows)) = derived.filter(|(history, rows)| self.is_listed(history, rows)) {
                let (identity, benchmark) = (identity.clone(), Arc::clone(self.benchmark));
                return Ok(Some(PastSecurity { identity, history, benchmark, as_of: self.as_of, rows }));
            }
        }
        Ok(None)
    }

    /// Derives the rows from a history that has only the closes of most years; `None` if the rows need other columns.
    fn derive_from_closes(&self, identity: &Identity) -> Result<Option<(History, DerivedRows)>, ApiError> {
        let history = self.facts.history_of_closes(identity, self.as_of);
        match history.map_err(|error| ApiError::Internal(error.into()))? {
            Some(history) => self.derive(history, true),
            None => Ok(None),
        }
    }

    /// Derives the rows of a history. With `checked`, the result is `None` if the history lacks needed price columns.
    fn derive(&self, history: History, checked: bool) -> Result<Option<(History, DerivedRows)>, ApiError> {
        let benchmark = self.benchmark.as_ref().as_ref();
        let market = self.past.context(self.as_of, benchmark)?;
        let derivation = Derivation::new(&history, &market);
        if checked && !derivation.closes_suffice() {
            return Ok(None);
        }
        let rows = derivation.rows();
        Ok(Some((history, rows)))
    }

    /// True if the security was listed at the version, that is, had a reference record, live rows or fund data.
    fn is_listed(&self, history: &History, rows: &DerivedRows) -> bool {
        if history.security.is_some() || rows.has_live_rows() {
            return true;
        }
        let Ok(market) = self.past.context(self.newest, self.benchmark.as_ref().as_ref()) else {
            return false;
        };
        let newest = metrics::derive(history, &market);
        newest.has_live_rows() || fund(history, &market, &newest.stock, &newest.metrics).is_some()
    }
}

impl PastVersion {
    fn context<'a>(
        &'a self,
        as_of: NaiveDate,
        benchmark: Option<&'a MonthlyReturns>,
    ) -> Result<DerivationContext<'a>, QueryError> {
        let (policy, rules) = self.inputs()?;
        Ok(DerivationContext { as_of, newest: self.as_of.unwrap_or(as_of), benchmark, policy, rules })
    }
}

impl PastSecurity {
    /// Canonical symbol.
    pub(crate) fn symbol(&self) -> &str {
        self.identity.symbol.as_str()
    }

    /// Number of quarantined rows of a kind.
    pub(crate) fn count_quarantined(&self, kind: &str) -> i64 {
        self.rows.quarantined.iter().filter(|row| row.kind == kind).map(|_| 1).sum()
    }

    /// Explanation of the metrics.
    pub(crate) async fn explain(self, past: Arc<PastVersion>) -> Result<(Metrics, Explanation), ApiError> {
        let explained = run_low_priority(move || {
            let market = past.context(self.as_of, self.benchmark.as_ref().as_ref())?;
            let explanation = metrics::explain(&self.history, &market);
            Ok((self.rows.metrics, explanation))
        });
        explained.await?
    }
}
