//! Facts of a view: the merge of all observations whose record batches are visible in the view.
//!
//! The tables have every observation: the current facts, and the observations that do not count now.

mod stored_rows;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::Arc;

use codec::bars::{PackedBars, unpack_superseded};
use codec::records::{self, RawObservation, RecordSet};
use market::bars::{Bars, SupersededBars};
use market::event::{FxRate, Kind, Security};
use market::history::{DividendFeeds, History, Observation, SourcePolicy};
use market::identity::{Identity, SecurityDirectory};
use market::metrics::ExchangeRates;
use market::symbol::Symbol;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row, ToStatement};

use crate::copy::FromRow;
use crate::facts::{FactsError, damaged_bars, damaged_records, read_bars_with_days};
use crate::history::{FactsBySymbol, build_history};
use crate::symbol_facts::{PackedColumns, SymbolFacts};
use crate::view::{BatchId, BatchOwners, LoggedBatch, RunStates, View};

pub use crate::view::{BatchIndex, EmptyBatchIndex};
pub use stored_rows::{BarsKey, RecordsKey, bar_columns, record_columns};
use stored_rows::{FeedYear, StoredRecords, StoredYear, currencies_of, pairs_of};

const FACTS: &str = include_str!("../queries/past/facts.sql");
const ROWS: &str = include_str!("../queries/past/rows.sql");
const RATES: &str = include_str!("../queries/past/rates.sql");
const STATES: &str = include_str!("../queries/past/states.sql");
const BATCHES: &str = include_str!("../queries/past/batches.sql");

/// Content of some rows of the fact tables in a view. A row without visible observations is `None`.
#[derive(Debug, Default)]
pub struct ViewRows {
    /// Packed records.
    pub records: BTreeMap<RecordsKey, Option<Vec<u8>>>,
    /// Digests and packed bars.
    pub years: BTreeMap<BarsKey, Option<(i64, PackedBars)>>,
}

/// Facts of some symbols in one view, and the securities of these symbols.
#[derive(Debug)]
pub struct PastFacts {
    facts: FactsBySymbol,
    feeds: DividendFeeds,
    directory: SecurityDirectory,
    rates: ExchangeRates,
}

impl PastFacts {
    /// Security of a symbol in the view of these facts. `None` if the symbol has no security in the view.
    pub fn identity(&self, symbol: &str) -> Option<&Identity> {
        let canonical = self.directory.symbols.get(&Symbol::from_stored(symbol))?;
        self.directory.identities.get(canonical)
    }

    /// Exchange rates between the currencies of these facts. Empty if all of them are in one currency.
    pub fn rates(&self) -> &ExchangeRates {
        &self.rates
    }

    /// History of a security, built from these facts.
    ///
    /// # Errors
    /// The facts are damaged.
    pub fn history(&self, identity: &Identity) -> Result<History, FactsError> {
        build_history(identity, &self.facts, &self.feeds, |_, _| false)
    }
}

/// Current and superseded facts of some symbols and of all symbols linked to them.
#[derive(Debug, Default)]
pub struct FactHistory {
    records: BTreeMap<RecordsKey, StoredRecords>,
    bars: BTreeMap<BarsKey, StoredYear>,
    feeds: Vec<FeedYear>,
    owners: BatchOwners,
    states: RunStates,
}

impl FactHistory {
    /// SQL texts of the three statements that [`FactHistory::load`] needs, for a fact set. The first one reads the states
    /// of all runs.
    pub fn statements(fact_set: &str) -> [String; 3] {
        [FACTS, RATES, BATCHES].map(|text| Self::statement(text, fact_set))
    }

    /// SQL texts of the two statements that [`FactHistory::load_rates`] needs, for a fact set.
    pub fn rate_statements(fact_set: &str) -> [String; 2] {
        let rates = format!("{RATES}union all\n{{states}}");
        [&rates, BATCHES].map(|text| Self::statement(text, fact_set))
    }

    fn statement(text: &str, fact_set: &str) -> String {
        text.replace("{states}", STATES).replace("{facts}", fact_set)
    }

    /// Loads the current and superseded facts of some symbols and of all symbols linked to them, and the exchange rates
    /// between the currencies of these facts. `facts`, `rates` and `batches` are the [`FactHistory::statements`], as
    /// texts or prepared.
    ///
    /// # Errors
    /// Postgres rejects a query or is unreachable, or the stored facts are damaged.
    pub async fn load<S: ToStatement + ?Sized + Sync + Send>(
        client: &impl GenericClient,
        [facts, rates, batches]: [&S; 3],
        symbols: &[&str],
        index: &(impl BatchIndex + Sync),
    ) -> Result<Self, FactsError> {
        let mut history = Self::read(&client.query(facts, &[&symbols]).await?)?;
        let pairs = pairs_of(&currencies_of(&history.records)?);
        if !pairs.is_empty() {
            let rows = client.query(rates, &[&pairs, &i32::MIN, &i32::MAX]).await?;
            history.records.extend(Self::read(&rows)?.records);
        }
        history.with_owners(client, batches, index).await
    }

    /// Loads facts as [`FactHistory::load`] does, with unprepared statements and without an index of record batches.
    ///
    /// # Errors
    /// Postgres rejects a query or is unreachable, or the stored facts are damaged.
    pub async fn load_once(
        client: &impl GenericClient,
        fact_set: &str,
        symbols: &[&str],
    ) -> Result<Self, FactsError> {
        let statements = Self::statements(fact_set);
        Self::load(client, statements.each_ref().map(String::as_str), symbols, &EmptyBatchIndex).await
    }

    /// Loads all exchange rates between some currencies in some years. `rates` and `batches` are the
    /// [`FactHistory::rate_statements`], as texts or prepared.
    ///
    /// # Errors
    /// Postgres rejects a query or is unreachable, or the stored facts are damaged.
    pub async fn load_rates<S: ToStatement + ?Sized + Sync + Send>(
        client: &impl GenericClient,
        [rates, batches]: [&S; 2],
        currencies: &BTreeSet<String>,
        years: RangeInclusive<i32>,
        index: &(impl BatchIndex + Sync),
    ) -> Result<Self, FactsError> {
        let (pairs, first, last) = (pairs_of(currencies), years.start(), years.end());
        let history = Self::read(&client.query(rates, &[&pairs, first, last]).await?)?;
        history.with_owners(client, batches, index).await
    }

    /// Loads all observations of some rows of the fact set `fact_set`.
    ///
    /// # Errors
    /// Postgres rejects a query or is unreachable, or the stored facts are damaged.
    pub async fn load_rows(
        client: &impl GenericClient,
        fact_set: &str,
        records: &[RecordsKey],
        years: &[BarsKey],
    ) -> Result<Self, FactsError> {
        let (symbols, kinds, sources) = record_columns(records);
        let (bar_symbols, bar_sources, numbers) = bar_columns(years);
        let keys: [&(dyn ToSql + Sync); 6] =
            [&symbols, &kinds, &sources, &bar_symbols, &bar_sources, &numbers];
        let [rows, batches] = [ROWS, BATCHES].map(|text| Self::statement(text, fact_set));
        let history = Self::read(&client.query(&rows, &keys).await?)?;
        history.with_owners(client, &*batches, &EmptyBatchIndex).await
    }

    /// Adds the places of the record batches of all loaded rows.
    async fn with_owners<S: ToStatement + ?Sized + Sync + Send>(
        mut self,
        client: &impl GenericClient,
        batches: &S,
        index: &(impl BatchIndex + Sync),
    ) -> Result<Self, FactsError> {
        let mut unknown = Vec::new();
        for batch in self.batches()? {
            match index.find(&batch) {
                Some(place) => self.owners.add_place(batch, place),
                None => unknown.push(batch),
            }
        }
        if unknown.is_empty() {
            return Ok(self);
        }
        let ids: Vec<&[u8]> = unknown.iter().map(BatchId::as_slice).collect();
        for row in client.query(batches, &[&ids]).await? {
            let Ok(batch) = BatchId::try_from(row.try_get::<_, &[u8]>("frame")?) else { continue };
            let place = LoggedBatch::from_row(&row)?;
            index.insert(batch, place.clone());
            self.owners.add_place(batch, place);
        }
        Ok(self)
    }

    /// Facts of a view. Record batches whose place in the log is unknown are left out.
    ///
    /// # Errors
    /// The stored facts are damaged.
    pub fn at(&self, view: &View, policy: &SourcePolicy) -> Result<PastFacts, FactsError> {
        let (mut facts, mut securities): (BTreeMap<String, SymbolFacts>, Vec<Observation<Security>>) =
            Default::default();
        let mut rates: Vec<Observation<FxRate>> = Vec::new();
        let rows = self.rows_at(view)?;
        for (RecordsKey { symbol, kind, source }, packed) in rows.records {
            let Some(packed) = packed else { continue };
            if kind == Kind::Fx {
                rates.extend(records::read(&source, &packed).map_err(damaged_records(&symbol))?);
                continue;
            }
            if kind == Kind::Security {
                securities.extend(records::read(&source, &packed).map_err(damaged_records(&symbol))?);
            }
            let of_symbol = facts.entry(symbol).or_default();
            if SymbolFacts::has_kind(kind) {
                of_symbol.put_records(kind, &source, &packed);
            }
        }
        for ((symbol, source, year), bars) in rows.years {
            if let Some((digest, packed)) = bars {
                // `put_year` returns false only if the year is packed together with other years. Here, each year is
                // packed separately.
                let columns = PackedColumns::All(Box::new(packed));
                let _ = facts.entry(symbol).or_default().put_year(&source, year, digest, columns);
            }
        }
        let symbols: BTreeSet<Symbol> = facts.keys().map(|symbol| Symbol::from_stored(symbol)).collect();
        let directory = SecurityDirectory::resolve(&securities, &symbols, policy);
        let facts = facts.into_iter().map(|(symbol, facts)| (symbol, Arc::new(facts))).collect();
        let feeds = self.feeds.iter().filter(|feed| feed.is_known_at(view.up_to));
        let feeds = feeds.map(|feed| (feed.source.clone(), feed.year)).collect();
        Ok(PastFacts { facts, feeds, directory, rates: ExchangeRates::new(&rates, policy) })
    }

    /// Content of the loaded rows in a view.
    ///
    /// # Errors
    /// The stored facts are damaged.
    pub fn rows_at(&self, view: &View) -> Result<ViewRows, FactsError> {
        let known = |batch: &BatchId| self.owners.is_visible(batch, &self.states, view);
        let mut rows = ViewRows::default();
        for (key, stored) in &self.records {
            let packed = stored.at(&key.symbol, key.kind, known).map_err(damaged_records(&key.symbol))?;
            rows.records.insert(key.clone(), packed);
        }
        for (key, stored) in &self.bars {
            rows.years.insert(key.clone(), stored.at(known).map_err(damaged_bars(&key.0))?);
        }
        Ok(rows)
    }

    /// Adds a record batch that the log does not contain, as one of a visible run.
    pub fn add_batch(&mut self, batch: BatchId, run: &str) {
        self.owners.add_place(batch, LoggedBatch { sequence: 0, has_prices: false, run: run.into() });
    }

    /// Adds observations of a row.
    ///
    /// # Errors
    /// The observations cannot be packed.
    pub fn add_records(
        &mut self,
        key: RecordsKey,
        observations: Vec<RawObservation>,
    ) -> Result<(), FactsError> {
        let packed = RecordSet::new(key.kind, observations).pack().map_err(damaged_records(&key.symbol))?;
        self.records.entry(key).or_default().superseded.push(packed);
        Ok(())
    }

    /// Adds bars of a row.
    ///
    /// # Errors
    /// The prices do not fit a common scale.
    pub fn add_bars(&mut self, key: BarsKey, bars: Bars) -> Result<(), FactsError> {
        let bars = Bars::merge_all(vec![bars]).map_err(|error| damaged_bars(&key.0)(error.into()))?;
        let originals = vec![None; bars.len()];
        self.bars.entry(key).or_default().superseded.push(SupersededBars { bars, originals });
        Ok(())
    }

    /// Runs with loaded observations that do not count now.
    pub fn hidden_runs(&self) -> Vec<String> {
        self.owners.hidden_runs(&self.states)
    }

    /// Log sequences at which the loaded records may have changed: those of their record batches, and of changes of
    /// the state of their runs. Record batches of prices and of exchange rates are left out.
    pub fn record_sequences(&self) -> Vec<i64> {
        let mut sequences = BTreeSet::new();
        for (batch, place) in self.owners.places().filter(|(_, place)| !place.has_prices) {
            sequences.insert(place.sequence);
            sequences.extend(self.owners.change_sequences(batch, &self.states));
        }
        sequences.into_iter().collect()
    }

    fn read(rows: &[Row]) -> Result<Self, FactsError> {
        let mut stored = Self::default();
        for row in rows {
            match row.try_get("part")? {
                "records" | "superseded_records" => stored.read_records(row)?,
                "dividend_feeds" => {
                    stored.feeds.push(FeedYear {
                        source: row.try_get("source")?,
                        year: row.try_get("year")?,
                        from: row.try_get("number")?,
                        to: row.try_get("ended")?,
                    });
                }
                "run_changes" => {
                    stored.states.add(row.try_get("symbol")?, row.try_get("number")?, row.try_get("state")?);
                }
                "batch_runs" => {
                    if let Ok(batch) = BatchId::try_from(row.try_get::<_, &[u8]>("packed")?) {
                        stored.owners.add_listing(batch, row.try_get("symbol")?, row.try_get("number")?);
                    }
                }
                part => stored.read_bars(part, row)?,
            }
        }
        Ok(stored)
    }

    fn read_records(&mut self, row: &Row) -> Result<(), FactsError> {
        let records = self.records.entry(RecordsKey::from_row(row)?).or_default();
        match row.try_get("part")? {
            "records" => records.current = Some(row.try_get("packed")?),
            _ => records.superseded.push(row.try_get("packed")?),
        }
        Ok(())
    }

    fn read_bars(&mut self, part: &str, row: &Row) -> Result<(), FactsError> {
        let (symbol, source, year): (String, String, i32) =
            (row.try_get("symbol")?, row.try_get("source")?, row.try_get("year")?);
        if part != "bars" {
            let bars = unpack_superseded(row.try_get("packed")?).map_err(damaged_bars(&symbol))?;
            self.bars.entry((symbol, source, year)).or_default().superseded.push(bars);
            return Ok(());
        }
        let current = (row.try_get("number")?, read_bars_with_days(row, "packed")?);
        self.bars.entry((symbol, source, year)).or_default().current = Some(current);
        Ok(())
    }

    /// Ids of the record batches of all loaded facts.
    fn batches(&self) -> Result<BTreeSet<BatchId>, FactsError> {
        let mut batches = BTreeSet::new();
        for (RecordsKey { symbol, .. }, stored) in &self.records {
            for packed in stored.parts() {
                batches.extend(records::batches(packed).map_err(damaged_records(symbol))?);
            }
        }
        for ((symbol, ..), year) in &self.bars {
            batches.extend(year.batches().map_err(damaged_bars(symbol))?);
        }
        Ok(batches)
    }
}
