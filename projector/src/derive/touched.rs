//! Incremental derivation. New facts mark symbols dirty, and the securities of dirty symbols are derived again.
//!
//! If the market date (R33), source policy or benchmark returns change, every security is derived again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use chrono::NaiveDate;
use event_log::sequence::Sequence;
use market::event::{FxRate, Security};
use market::history::{Observation, SourcePolicy};
use market::identity::{Identity, SecurityDirectory};
use market::metrics;
use market::metrics::{ExchangeRates, MonthlyReturns, Rules};
use market::row::{JsonColumn, NoticeCause};
use market::symbol::Symbol;
use store::db;
use store::facts::{
    load_dividend_feeds, load_known_symbols, load_present_symbols, load_rates, load_securities,
};
use store::history::load_histories;
use store::ids::GenerationId;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Transaction};

use crate::derive::pipeline::{SharedInputs, derive_all};
use crate::derive::{GenerationCache, MarketContext};
use crate::error::DeriveError;
use crate::facts::FactCache;
use crate::generation::{Generation, load_last_inputs};
use crate::write::journal::Journal;
use crate::write::notices::write_notices;
use crate::write::{PreparedStatements, read_tables};

const DIRTY: &str = include_str!("../../queries/dirty.sql");
const CONVERTED: &str = include_str!("../../queries/converted.sql");
const CLEAR_DIRTY: &str = include_str!("../../queries/dirty_clear.sql");
const DERIVED_WITH: &str = include_str!("../../queries/version_derived.sql");
/// Selects `true` if no security of the generation has rows. Every security with a row in any table has a row in
/// `digests`.
const UNTOUCHED: &str = "select not exists (select from digests) as untouched";

/// Derivation state of one generation, kept in memory between batches. A new deriver loads this state from the tables.
#[derive(Debug, Default)]
pub struct Deriver {
    directory: Option<SecurityDirectory>,
    /// All security records. `directory` is built from these records and from `known`, the symbols of all facts.
    records: Vec<Observation<Security>>,
    known: BTreeSet<Symbol>,
    as_of: Option<NaiveDate>,
    benchmark: Option<MonthlyReturns>,
    rates: Arc<ExchangeRates>,
    /// True if symbols, rates, the source policy or the market date changed since the last derivation.
    has_new_inputs: bool,
    policy: SourcePolicy,
    rules: Rules,
    reporting_currency: String,
    /// Id of the transaction in which this deriver last wrote the row of table `version`. If another transaction wrote
    /// the row since, the state of this deriver is outdated. `None` before the first write.
    writer: Option<i64>,
    rows: GenerationCache,
}

/// Result of a derivation.
#[derive(Debug, Default)]
pub struct DerivationSummary {
    /// Number of derived securities.
    pub securities: usize,
    /// Number of changes to published rows. Each changed table of a security counts as one change, and so does each
    /// changed year of its prices.
    pub changes: usize,
}

impl Deriver {
    /// Derives the securities from [`Deriver::find_touched`], and sets the data version to `sequence`. After an error,
    /// drop the deriver.
    ///
    /// The schema of the generation must be first in both search paths. `reader` must see the facts of `transaction`.
    pub async fn derive(
        mut self,
        transaction: &Transaction<'_>,
        reader: &impl GenericClient,
        cache: &mut FactCache,
        generation: &Generation,
        touched: &BTreeSet<Symbol>,
        sequence: Sequence,
    ) -> Result<(Self, DerivationSummary), DeriveError> {
        let journal = Journal::open(transaction, generation.id).await?;
        let summary = self.derive_symbols(transaction, reader, &journal, cache, touched).await?;
        if self.rows.is_new && summary.securities > 0 {
            db::index_generation(transaction).await?;
            self.rows.is_new = false;
        }
        transaction.execute(CLEAR_DIRTY, &[&generation.id]).await?;
        let (before, policy) = load_last_inputs(transaction).await?;
        let cause = if policy == self.policy { NoticeCause::Data } else { NoticeCause::Policy };
        write_notices(transaction, &journal, [before, self.as_of], &self.rules, (cause, None)).await?;
        let changed = std::mem::take(&mut self.has_new_inputs) || summary.changes > 0;
        self.advance_version(transaction, &journal, sequence, changed).await?;
        Ok((self, summary))
    }

    /// Stores the inputs of the derivation in table `version`.
    async fn advance_version(
        &mut self,
        transaction: &Transaction<'_>,
        journal: &Journal,
        sequence: Sequence,
        changed: bool,
    ) -> Result<(), DeriveError> {
        let values: [&(dyn ToSql + Sync); 3] = [&sequence.to_i64(), &self.as_of, &JsonColumn(&self.policy)];
        self.writer = Some(journal.advance_version(transaction, values, changed).await?);
        Ok(())
    }

    /// Derives the securities with dirty symbols in one transaction, without a cache of facts.
    pub async fn derive_dirty(
        transaction: &Transaction<'_>,
        generation: &Generation,
        sequence: Sequence,
    ) -> Result<(), DeriveError> {
        let (deriver, touched) = Self::default().find_touched(transaction, generation).await?;
        let mut none = FactCache::disabled();
        deriver.derive(transaction, transaction, &mut none, generation, &touched, sequence).await?;
        Ok(())
    }

    /// Loads the inputs of a derivation and stores them in the generation's table `version`. Derives no security.
    ///
    /// Returns the symbols of all securities, and `true` if market date and policy equal those of the last derivation.
    pub async fn prepare(
        &mut self,
        transaction: &Transaction<'_>,
        generation: &Generation,
        sequence: Sequence,
    ) -> Result<(Vec<Symbol>, bool), DeriveError> {
        self.load_version(transaction).await?;
        let policy = generation.load_source_policy(transaction).await?;
        let as_of = generation.load_market_date(transaction).await?;
        let same = policy == self.policy && as_of == self.as_of;
        (self.policy, self.as_of, self.rules) = (policy, as_of, generation.rules);
        self.reporting_currency.clone_from(&generation.reporting_currency);
        self.records = load_securities(transaction).await?;
        self.known = load_known_symbols(transaction).await?;
        let directory = self.resolve_directory();
        self.rates = Arc::new(load_rates(transaction, None, &self.policy).await?);
        self.benchmark = self.load_month_ends(transaction, &directory, &generation.benchmark).await?;
        let symbols = directory.identities.keys().cloned().collect();
        self.directory = Some(directory);
        let journal = Journal::open(transaction, generation.id).await?;
        self.advance_version(transaction, &journal, sequence, true).await?;
        Ok((symbols, same))
    }

    /// Derives the securities with these canonical (current) symbols. If a symbol no longer belongs to a security,
    /// deletes the rows of the symbol.
    pub async fn derive_symbols(
        &mut self,
        transaction: &Transaction<'_>,
        reader: &impl GenericClient,
        journal: &Journal,
        cache: &mut FactCache,
        symbols: &BTreeSet<Symbol>,
    ) -> Result<DerivationSummary, DeriveError> {
        let Some(directory) = &self.directory else { return Ok(DerivationSummary::default()) };
        // Without any session, the market date is unknown, and no security has rows. The first session then affects
        // every security.
        if self.as_of.is_none() && self.rows.is_new {
            return Ok(DerivationSummary::default());
        }
        let (mut identities, mut gone) = (Vec::new(), Vec::new());
        for symbol in symbols {
            match directory.identities.get(symbol) {
                Some(identity) if self.as_of.is_some() => identities.push(identity),
                _ => gone.push(symbol),
            }
        }
        self.rows.sectors.load_members(transaction, self.rows.is_new).await?;
        let (statements, mut changes) = (PreparedStatements::new(transaction), 0);
        if let Some(as_of) = self.as_of {
            let (benchmark, policy) = (self.benchmark.clone(), self.policy.clone());
            let dividend_feeds = load_dividend_feeds(transaction).await?;
            let rates = Arc::clone(&self.rates);
            let (reporting_currency, rules) = (self.reporting_currency.clone(), self.rules);
            let market = MarketContext { as_of, benchmark, rates, reporting_currency, policy, rules };
            let inputs = Arc::new(SharedInputs { market, dividend_feeds });
            changes +=
                derive_all(&statements, reader, journal, &identities, &inputs, &mut self.rows, cache).await?;
        }
        changes += read_tables::delete_securities(&statements, journal, &gone).await?;
        for symbol in gone {
            self.rows.served.remove(symbol);
            self.rows.sectors.replace_member(symbol, None);
        }
        let (as_of, served) = (self.as_of, &self.rows.served);
        let unlisted =
            |symbol: &Symbol| as_of.is_none() || served.get(symbol).is_some_and(|served| !served.is_listed());
        changes += read_tables::replace_symbols(&statements, journal, directory, symbols, unlisted).await?;
        self.rows.sectors.write_touched(transaction, as_of, &self.reporting_currency).await?;
        Ok(DerivationSummary { securities: identities.len(), changes })
    }

    /// Finds the securities that the dirty symbols affect, and updates the inputs of the deriver. Returns the canonical
    /// symbols of the securities to derive or delete.
    ///
    /// After an error the deriver must be dropped.
    pub async fn find_touched(
        mut self,
        transaction: &Transaction<'_>,
        generation: &Generation,
    ) -> Result<(Self, BTreeSet<Symbol>), DeriveError> {
        let writer: i64 = transaction.query_one(DERIVED_WITH, &[]).await?.try_get("writer")?;
        if self.writer.is_some_and(|known| known != writer) {
            self = Self::default();
        }
        let benchmark = &generation.benchmark;
        let (mut symbols, mut rate_keys, mut reference) = (BTreeSet::new(), Vec::new(), false);
        let dirty = transaction.query(DIRTY, &[&generation.id]).await?;
        for row in &dirty {
            reference |= row.try_get::<_, bool>("reference")?;
            let symbol: &str = row.try_get("symbol")?;
            rate_keys.extend(FxRate::is_key(symbol).then_some(symbol));
            // A dirty row with an empty symbol only wakes the projector, and names no security. The empty symbol does
            // not parse and is left out here, and so are the keys of exchange rates.
            symbols.extend(symbol.parse::<Symbol>());
        }
        let first = self.directory.is_none();
        if first {
            self.known = load_known_symbols(transaction).await?;
        }
        if first || reference {
            self.records = load_securities(transaction).await?;
        }
        if reference {
            // A dirty symbol may have lost all its facts.
            let names: Vec<&str> = symbols.iter().map(Symbol::as_str).collect();
            let present = load_present_symbols(transaction, &names).await?;
            self.known.retain(|symbol| !symbols.contains(symbol));
            self.known.extend(present);
        } else {
            // Every symbol with new facts is dirty, so `known` has the symbols of all facts.
            self.known.extend(symbols.iter().cloned());
        }
        let before = match self.directory.take() {
            Some(directory) => directory,
            None => self.load_version(transaction).await?,
        };
        let policy = generation.load_source_policy(transaction).await?;
        let as_of = generation.load_market_date(transaction).await?;
        let policy_changed = policy != self.policy;
        let everything = policy_changed || as_of != self.as_of;
        let resolve = first
            || reference
            || policy_changed
            || symbols.iter().any(|symbol| before.owners(symbol).is_empty());
        (self.policy, self.as_of, self.rules) = (policy, as_of, generation.rules);
        self.reporting_currency.clone_from(&generation.reporting_currency);
        let (directory, mut touched) = if resolve {
            let directory = self.resolve_directory();
            let mut touched = changed_identities(&before.identities, &directory.identities);
            touched.append(&mut directory.changed_owners(&before));
            (directory, touched)
        } else {
            (before, BTreeSet::new())
        };
        touched.extend(symbols.iter().flat_map(|symbol| directory.owners(symbol)).cloned());
        let rates_changed = self.load_rates(transaction, &rate_keys, first || policy_changed).await?;
        let has_new_rates = !rate_keys.is_empty() && (first || rates_changed);
        if has_new_rates {
            touched.extend(load_converted(transaction, &self.reporting_currency).await?);
        }
        let moved = touched.contains(benchmark);
        if first || everything || moved {
            let month_ends = self.load_month_ends(transaction, &directory, benchmark).await?;
            let depends = !first && month_ends != self.benchmark;
            self.benchmark = month_ends;
            if everything || depends || (first && moved) {
                touched.extend(directory.identities.keys().cloned());
            }
        }
        // Without new inputs, a new deriver finds only securities without rows: their identities are not stored.
        let has_touched_dirty = !dirty.is_empty() && !touched.is_empty();
        self.has_new_inputs |= has_new_rates || everything || has_touched_dirty;
        self.directory = Some(directory);
        Ok((self, touched))
    }

    /// Loads the rates of the changed keys, or all rates. Returns true if a rate differs from the loaded ones.
    async fn load_rates(
        &mut self,
        transaction: &Transaction<'_>,
        changed_keys: &[&str],
        all: bool,
    ) -> Result<bool, DeriveError> {
        let keys = if all { None } else { Some(changed_keys) };
        if keys.is_some_and(<[&str]>::is_empty) {
            return Ok(false);
        }
        let mut rates = load_rates(transaction, keys, &self.policy).await?;
        if let Some(keys) = keys {
            let newer = std::mem::replace(&mut rates, (*self.rates).clone());
            rates.replace(keys, newer);
        }
        let differ = rates != *self.rates;
        self.rates = Arc::new(rates);
        Ok(differ)
    }

    /// Loads the inputs of the generation's last derivation into a new deriver. Returns the directory (symbols and
    /// identities) of the published securities.
    async fn load_version(
        &mut self,
        transaction: &Transaction<'_>,
    ) -> Result<SecurityDirectory, DeriveError> {
        (self.as_of, self.policy) = load_last_inputs(transaction).await?;
        let identities = read_tables::load_identities(transaction).await?;
        self.rows.is_new =
            identities.is_empty() && transaction.query_one(UNTOUCHED, &[]).await?.try_get("untouched")?;
        Ok(SecurityDirectory::from_identities(identities))
    }

    fn resolve_directory(&self) -> SecurityDirectory {
        SecurityDirectory::resolve(&self.records, &self.known, &self.policy)
    }

    async fn load_month_ends(
        &self,
        transaction: &Transaction<'_>,
        directory: &SecurityDirectory,
        benchmark: &Symbol,
    ) -> Result<Option<MonthlyReturns>, DeriveError> {
        let (Some(identity), Some(as_of)) = (directory.identities.get(benchmark), self.as_of) else {
            return Ok(None);
        };
        let histories = load_histories(transaction, &[identity]).await?;
        Ok(histories
            .first()
            .map(|history| metrics::benchmark(history, as_of, &self.rates, &self.policy, &self.rules)))
    }
}

/// Canonical symbols of the published securities whose figures may use exchange rates.
pub(crate) async fn load_converted(
    transaction: &Transaction<'_>,
    reporting_currency: &str,
) -> Result<BTreeSet<Symbol>, DeriveError> {
    let rows = transaction.query(CONVERTED, &[&reporting_currency]).await?;
    rows.iter().map(|row| Ok(Symbol::from_stored(row.try_get("symbol")?))).collect()
}

/// Canonical symbols of the securities that were added, removed or changed. A security is changed if its symbols or its
/// reference record differ.
pub(crate) fn changed_identities(
    before: &BTreeMap<Symbol, Identity>,
    after: &BTreeMap<Symbol, Identity>,
) -> BTreeSet<Symbol> {
    let differs = |symbol: &&Symbol| before.get(*symbol) != after.get(*symbol);
    before.keys().chain(after.keys()).filter(differs).cloned().collect()
}

/// Derivers by generation number.
pub type DeriversByGeneration = HashMap<GenerationId, Deriver>;

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(symbols: &[&str]) -> BTreeMap<Symbol, Identity> {
        let known = symbols.iter().map(|symbol| Symbol::parse(symbol).unwrap()).collect();
        SecurityDirectory::resolve(&[], &known, &SourcePolicy::default()).identities
    }

    #[test]
    fn added_removed_and_different_identities_are_changed() {
        let symbols = |names: &[&str]| names.iter().map(|name| Symbol::parse(name).unwrap()).collect();
        let (before, mut after) = (directory(&["AAA", "BBB", "CCC"]), directory(&["BBB", "CCC", "DDD"]));
        assert_eq!(changed_identities(&before, &after), symbols(&["AAA", "DDD"]));
        after.values_mut().filter(|identity| identity.symbol.as_str() == "CCC").for_each(|identity| {
            identity.spans.clear();
        });
        assert_eq!(changed_identities(&before, &after), symbols(&["AAA", "CCC", "DDD"]));
    }
}
