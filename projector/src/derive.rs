//! Facts into read tables: touched securities are derived whole, on all cores, and replaced in the transaction.
//!
//! When the market's as-of date or the benchmark moves, every security is touched (R33).

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chrono::{Datelike, NaiveDate};
use event_log::sequence::Sequence;
use market::event::Security;
use market::history::{Observation, SourcePolicy};
use market::identity::{Directory, Identity};
use market::measure::fund::fund;
use market::measure::{self, Market, MonthEnds};
use market::row::Json;
use market::symbol::Symbol;
use process::failpoint;
use rayon::prelude::*;
use store::facts::{StoredFacts, load_histories, load_known_symbols, load_securities};
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Transaction};

use crate::changes::Change;
use crate::error::DeriveError;
use crate::generation::Generation;
use crate::read_tables::{self, Built};
use crate::sectors::Sectors;

/// Securities derived and written at a time: three such chunks are in memory at most.
pub const CHUNK: usize = 100;

const DIRTY: &str = include_str!("../queries/dirty.sql");
const CLEAR_DIRTY: &str = include_str!("../queries/dirty_clear.sql");
const DERIVED_WITH: &str = include_str!("../queries/version_derived.sql");
const ADVANCE: &str = include_str!("../queries/version_advance.sql");

/// What one generation's projector remembers between batches; rebuilt from the tables at any time.
#[derive(Debug, Default)]
pub struct Deriver {
    directory: Option<Directory>,
    /// What the directory is resolved from: every security record, and every symbol any fact names.
    records: Vec<Observation<Security>>,
    known: BTreeSet<Symbol>,
    as_of: Option<NaiveDate>,
    benchmark: Option<MonthEnds>,
    policy: SourcePolicy,
    /// Securities whose closes alone did not suffice: of several sources, say, or with a bar in the wrong unit.
    whole: HashSet<Symbol>,
}

/// What a derivation did.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Securities that were derived.
    pub securities: usize,
    /// Served rows that are others now.
    pub changes: Vec<Change>,
}

impl Deriver {
    /// Derives the securities that [`Deriver::touched`] gave, then advances the generation's version to `sequence`.
    ///
    /// The transaction's and the reader's `search_path` name the generation first; `reader` sees the facts, as committed
    /// or as the transaction itself has them. On any error the deriver is gone: what it remembers may not be committed.
    pub async fn derive(
        mut self,
        transaction: &Transaction<'_>,
        reader: &impl GenericClient,
        generation: &Generation,
        touched: &BTreeSet<Symbol>,
        sequence: Sequence,
    ) -> Result<(Self, Outcome), DeriveError> {
        let outcome = self.derive_symbols(transaction, reader, touched).await?;
        transaction.execute(CLEAR_DIRTY, &[&generation.id]).await?;
        let values: [&(dyn ToSql + Sync); 3] = [&sequence.bigint(), &self.as_of, &Json(&self.policy)];
        transaction.execute(ADVANCE, &values).await?;
        Ok((self, outcome))
    }

    /// Brings a generation up to its facts within one transaction.
    pub async fn catch_up(
        transaction: &Transaction<'_>,
        generation: &Generation,
        sequence: Sequence,
    ) -> Result<(), DeriveError> {
        let (deriver, touched) = Self::default().touched(transaction, generation).await?;
        deriver.derive(transaction, transaction, generation, &touched, sequence).await?;
        Ok(())
    }

    /// Reads what derivation depends on and notes it in the generation's version; nothing is derived yet.
    ///
    /// Gives the securities, and whether market date and policy are the ones noted before.
    pub async fn prepare(
        &mut self,
        transaction: &Transaction<'_>,
        generation: &Generation,
        sequence: Sequence,
    ) -> Result<(Vec<Symbol>, bool), DeriveError> {
        self.recall(transaction).await?;
        let policy = generation.source_policy(transaction).await?;
        let as_of = generation.market_date(transaction).await?;
        let same = policy == self.policy && as_of == self.as_of;
        (self.policy, self.as_of) = (policy, as_of);
        self.records = load_securities(transaction).await?;
        self.known = load_known_symbols(transaction).await?;
        let directory = self.resolve();
        self.benchmark = self.month_ends(transaction, &directory, &generation.benchmark).await?;
        let symbols = directory.identities.keys().cloned().collect();
        self.directory = Some(directory);
        let values: [&(dyn ToSql + Sync); 3] = [&sequence.bigint(), &self.as_of, &Json(&self.policy)];
        transaction.execute(ADVANCE, &values).await?;
        Ok((symbols, same))
    }

    /// Derives these securities, and removes those that no longer are.
    pub async fn derive_symbols(
        &mut self,
        transaction: &Transaction<'_>,
        reader: &impl GenericClient,
        symbols: &BTreeSet<Symbol>,
    ) -> Result<Outcome, DeriveError> {
        // Without any session there is no market date and so nothing to say yet; the first one touches everything.
        let (Some(as_of), Some(directory)) = (self.as_of, &self.directory) else {
            return Ok(Outcome::default());
        };
        let (mut identities, mut gone) = (Vec::new(), Vec::new());
        for symbol in symbols {
            match directory.identities.get(symbol) {
                Some(identity) => identities.push(identity),
                None => gone.push(symbol),
            }
        }
        let (benchmark, policy) = (self.benchmark.clone(), self.policy.clone());
        let market = Arc::new(MarketNow { as_of, benchmark, policy });
        let sectors = Sectors::before(transaction, symbols).await?;
        let mut changes = derive_all(transaction, reader, &identities, &market, &mut self.whole).await?;
        changes.extend(read_tables::remove(transaction, &gone).await?);
        read_tables::replace_symbols(transaction, &directory.symbols, symbols).await?;
        sectors.replace(transaction, symbols, as_of).await?;
        Ok(Outcome { securities: identities.len(), changes })
    }

    /// Canonical symbols to derive again (or to remove), with everything they depend on brought up to date. On any
    /// error the deriver is gone.
    pub async fn touched(
        mut self,
        transaction: &Transaction<'_>,
        generation: &Generation,
    ) -> Result<(Self, BTreeSet<Symbol>), DeriveError> {
        let benchmark = &generation.benchmark;
        let (mut symbols, mut reference) = (BTreeSet::new(), false);
        for row in transaction.query(DIRTY, &[&generation.id]).await? {
            reference |= row.try_get::<_, bool>("reference")?;
            symbols.extend(row.try_get::<_, &str>("symbol")?.parse::<Symbol>());
        }
        let first = self.directory.is_none();
        if first {
            self.known = load_known_symbols(transaction).await?;
        }
        if first || reference {
            self.records = load_securities(transaction).await?;
        }
        // Whatever facts came since is dirty.
        self.known.extend(symbols.iter().cloned());
        let before = match self.directory.take() {
            Some(directory) => directory,
            None => self.recall(transaction).await?,
        };
        let policy = generation.source_policy(transaction).await?;
        let as_of = generation.market_date(transaction).await?;
        let everything = policy != self.policy || as_of != self.as_of;
        let resolve = first
            || reference
            || policy != self.policy
            || symbols.iter().any(|symbol| before.holders(symbol).is_empty());
        (self.policy, self.as_of) = (policy, as_of);
        let (directory, mut touched) = if resolve {
            let directory = self.resolve();
            let touched = changed(&before.identities, &directory.identities);
            (directory, touched)
        } else {
            (before, BTreeSet::new())
        };
        touched.extend(symbols.iter().flat_map(|symbol| directory.holders(symbol)).cloned());
        let moved = touched.contains(benchmark);
        if first || everything || moved {
            let month_ends = self.month_ends(transaction, &directory, benchmark).await?;
            let depends = !first && month_ends != self.benchmark;
            self.benchmark = month_ends;
            if everything || depends || (first && moved) {
                touched.extend(directory.identities.keys().cloned());
            }
        }
        self.directory = Some(directory);
        Ok((self, touched))
    }

    /// What the tables were last derived with, after a start.
    async fn recall(&mut self, transaction: &Transaction<'_>) -> Result<Directory, DeriveError> {
        let row = transaction.query_one(DERIVED_WITH, &[]).await?;
        let Json(policy) = row.try_get("policy")?;
        (self.as_of, self.policy) = (row.try_get("as_of")?, policy);
        Ok(Directory::of(read_tables::identities(transaction).await?))
    }

    fn resolve(&self) -> Directory {
        Directory::resolve(&self.records, &self.known, &self.policy)
    }

    async fn month_ends(
        &self,
        transaction: &Transaction<'_>,
        directory: &Directory,
        benchmark: &Symbol,
    ) -> Result<Option<MonthEnds>, DeriveError> {
        let (Some(identity), Some(as_of)) = (directory.identities.get(benchmark), self.as_of) else {
            return Ok(None);
        };
        let histories = load_histories(transaction, &[identity]).await?;
        Ok(histories.first().map(|history| measure::benchmark(history, as_of, &self.policy)))
    }
}

/// Keys whose identity appeared, disappeared or changed.
fn changed(before: &BTreeMap<Symbol, Identity>, after: &BTreeMap<Symbol, Identity>) -> BTreeSet<Symbol> {
    let differs = |symbol: &&Symbol| before.get(*symbol) != after.get(*symbol);
    before.keys().chain(after.keys()).filter(differs).cloned().collect()
}

/// Derives chunk after chunk: while one is on the cores, the one after it is read and the one before it written.
async fn derive_all(
    transaction: &Transaction<'_>,
    reader: &impl GenericClient,
    identities: &[&Identity],
    market: &Arc<MarketNow>,
    whole: &mut HashSet<Symbol>,
) -> Result<Vec<Change>, DeriveError> {
    let mut chunks = identities.chunks(CHUNK);
    let mut read = load(reader, chunks.next(), market, whole).await?;
    let (mut built, mut changes): (Option<Vec<Built>>, _) = (None, Vec::new());
    while read.is_some() || built.is_some() {
        let next = load(reader, chunks.next(), market, whole);
        let write = async {
            match built.take() {
                Some(built) => changes.extend(read_tables::replace(transaction, &built).await?),
                None => return Ok(()),
            }
            failpoint!("projector.deriving");
            Ok(())
        };
        let (next, derived, ()) = tokio::try_join!(next, derive_chunk(reader, read.take(), market), write)?;
        read = next;
        built = derived.map(|(built, unclear)| {
            whole.extend(unclear);
            built
        });
    }
    Ok(changes)
}

/// Securities and their facts, still as they are stored.
type Read = (Vec<Identity>, StoredFacts);

async fn load(
    reader: &impl GenericClient,
    chunk: Option<&[&Identity]>,
    market: &MarketNow,
    whole: &HashSet<Symbol>,
) -> Result<Option<Read>, DeriveError> {
    let Some(chunk) = chunk else { return Ok(None) };
    // What is measured by more than closes lies in the last two calendar years.
    let closes_until = |symbol: &Symbol| (!whole.contains(symbol)).then(|| market.as_of.year() - 2);
    let stored = StoredFacts::fetch_to_derive(reader, chunk, closes_until).await?;
    Ok(Some((chunk.iter().copied().cloned().collect(), stored)))
}

/// Derives a chunk. Securities whose closes alone do not suffice are read again, whole, and their symbols given beside.
async fn derive_chunk(
    reader: &impl GenericClient,
    read: Option<Read>,
    market: &Arc<MarketNow>,
) -> Result<Option<(Vec<Built>, Vec<Symbol>)>, DeriveError> {
    let Some((identities, stored)) = read else { return Ok(None) };
    let (mut built, unclear) = on_all_cores(identities, stored, market).await?;
    let symbols = unclear.iter().map(|identity| identity.symbol.clone()).collect();
    if !unclear.is_empty() {
        let stored = StoredFacts::fetch(reader, &unclear.iter().collect::<Vec<_>>()).await?;
        built.extend(on_all_cores(unclear, stored, market).await?.0);
    }
    Ok(Some((built, symbols)))
}

/// What was derived, and the securities whose closes alone do not suffice.
async fn on_all_cores(
    identities: Vec<Identity>,
    stored: StoredFacts,
    market: &Arc<MarketNow>,
) -> Result<(Vec<Built>, Vec<Identity>), DeriveError> {
    let market = Arc::clone(market);
    let derive = move || {
        identities
            .into_par_iter()
            .map(|identity| Ok((build(&identity, &stored, &market)?, identity)))
            .collect::<Result<_, DeriveError>>()
    };
    let derived: Vec<(Option<Built>, Identity)> = tokio::task::spawn_blocking(derive)
        .await
        .map_err(|error| DeriveError::Ended(error.to_string()))??;
    let (mut built, mut unclear) = (Vec::with_capacity(derived.len()), Vec::new());
    for (outcome, identity) in derived {
        match outcome {
            Some(outcome) => built.push(outcome),
            None => unclear.push(identity),
        }
    }
    Ok((built, unclear))
}

/// Derives one security; `None` when its closes alone do not suffice. A measure that panics names its security.
fn build(
    identity: &Identity,
    stored: &StoredFacts,
    market: &MarketNow,
) -> Result<Option<Built>, DeriveError> {
    let history = stored.history(identity)?;
    if !measure::closes_suffice(&history, market.as_of) {
        return Ok(None);
    }
    let derive = || {
        let market = market.borrowed();
        let derived = measure::derive(&history, &market);
        let fund = fund(&history, &market, &derived.stock, &derived.metrics);
        (derived, fund)
    };
    let (derived, fund) = std::panic::catch_unwind(derive).map_err(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        DeriveError::Measure {
            symbol: history.symbol.clone(),
            message: message.unwrap_or("it panicked").to_owned(),
        }
    })?;
    let kept = history.prices.into_iter().flat_map(|prices| prices.closes_only).collect();
    Built::of(identity, &derived, fund.as_ref(), kept).map(Some)
}

/// What every security is derived with.
struct MarketNow {
    as_of: NaiveDate,
    benchmark: Option<MonthEnds>,
    policy: SourcePolicy,
}

impl MarketNow {
    fn borrowed(&self) -> Market<'_> {
        Market {
            as_of: self.as_of,
            newest: self.as_of,
            benchmark: self.benchmark.as_ref(),
            policy: &self.policy,
        }
    }
}

/// Derivers by generation.
pub type Derivers = HashMap<i32, Deriver>;

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(symbols: &[&str]) -> BTreeMap<Symbol, Identity> {
        let known = symbols.iter().map(|symbol| Symbol::parse(symbol).unwrap()).collect();
        Directory::resolve(&[], &known, &SourcePolicy::default()).identities
    }

    #[test]
    fn identities_that_come_go_or_differ_have_changed() {
        let symbols = |names: &[&str]| names.iter().map(|name| Symbol::parse(name).unwrap()).collect();
        let (before, mut after) = (directory(&["AAA", "BBB", "CCC"]), directory(&["BBB", "CCC", "DDD"]));
        assert_eq!(changed(&before, &after), symbols(&["AAA", "DDD"]));
        after.values_mut().filter(|identity| identity.symbol.as_str() == "CCC").for_each(|identity| {
            identity.spans.clear();
        });
        assert_eq!(changed(&before, &after), symbols(&["AAA", "CCC", "DDD"]));
    }
}
