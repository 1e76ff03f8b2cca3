//! Inputs that the derivations of all securities share, such as the market date. They are loaded for one side of a
//! comparison: without the run, or with it.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{Datelike, NaiveDate};
use codec::records;
use market::day::date_of;
use market::event::{Action, Dividend, EventRecord, Kind};
use market::history::{DividendFeeds, SourcePolicy, newest_session};
use market::identity::SecurityDirectory;
use market::metrics;
use market::metrics::{DerivationContext, MonthlyReturns, Rules};
use market::symbol::Symbol;
use store::facts::{load_dividend_feeds, load_known_symbols};
use store::history::{build_history, fetch_facts, symbols_of_identities};
use store::past_facts::{BarsKey, RecordsKey};
use tokio_postgres::Transaction;

use super::side::SideRows;
use crate::apply::touched_rows::TouchedRows;
use crate::generation::Generation;

const RECORDS: &str = "select symbol, source, packed from records where kind = $1";
const YEARS: &str = "select distinct year from bars";
const LAST_DAYS: &str = include_str!("../../../queries/effect/last_days_of_year.sql");

/// Inputs that the derivations of all securities share, on one side of the comparison.
pub(super) struct MarketInputs {
    /// Market date; `None` if no session is known.
    pub(super) as_of: Option<NaiveDate>,
    pub(super) directory: SecurityDirectory,
    pub(super) dividend_feeds: DividendFeeds,
    pub(super) benchmark: Option<MonthlyReturns>,
}

impl MarketInputs {
    /// Loads the inputs of one side.
    pub(super) async fn load(
        transaction: &Transaction<'_>,
        generation: &Generation,
        policy: &SourcePolicy,
        touched: &TouchedRows,
        side: &SideRows,
    ) -> anyhow::Result<Self> {
        let mut securities = Vec::new();
        for ((_, _, source), packed) in load_records(transaction, Kind::Security, side).await? {
            securities.extend(records::read(&source, &packed)?);
        }
        // A symbol without facts on this side has no rows there, so its security counts as not listed.
        let mut known = load_known_symbols(transaction).await?;
        known.extend(touched.symbols().into_iter().filter_map(|symbol| symbol.parse::<Symbol>().ok()));
        let mut inputs = Self {
            as_of: load_market_date(transaction, generation, side).await?,
            directory: SecurityDirectory::resolve(&securities, &known, policy),
            dividend_feeds: load_feeds(transaction, touched, side).await?,
            benchmark: None,
        };
        inputs.benchmark = inputs.load_benchmark(transaction, generation, policy, side).await?;
        Ok(inputs)
    }

    async fn load_benchmark(
        &self,
        transaction: &Transaction<'_>,
        generation: &Generation,
        policy: &SourcePolicy,
        side: &SideRows,
    ) -> anyhow::Result<Option<MonthlyReturns>> {
        let benchmark = self.directory.identities.get(&generation.benchmark);
        let (Some(identity), Some(as_of)) = (benchmark, self.as_of) else { return Ok(None) };
        let facts = side.apply(&fetch_facts(transaction, &symbols_of_identities([identity])).await?);
        let history = build_history(identity, &facts, &self.dividend_feeds, |_, _| false)?;
        Ok(Some(metrics::benchmark(&history, as_of, policy, &generation.rules)))
    }

    /// Input of the derivation functions in crate `market`; `None` if no session is known.
    pub(super) fn context<'a>(
        &'a self,
        policy: &'a SourcePolicy,
        rules: &'a Rules,
    ) -> Option<DerivationContext<'a>> {
        let as_of = self.as_of?;
        Some(DerivationContext { as_of, newest: as_of, benchmark: self.benchmark.as_ref(), policy, rules })
    }
}

/// Loads the packed records of a kind on one side.
async fn load_records(
    transaction: &Transaction<'_>,
    kind: Kind,
    side: &SideRows,
) -> anyhow::Result<BTreeMap<RecordsKey, Vec<u8>>> {
    let mut found = BTreeMap::new();
    for row in transaction.query(RECORDS, &[&kind]).await? {
        let key = (row.try_get("symbol")?, kind, row.try_get("source")?);
        if !side.rows.records.contains_key(&key) {
            found.insert(key, row.try_get("packed")?);
        }
    }
    for (key, packed) in side.rows.records.iter().filter(|((_, of, _), _)| *of == kind) {
        if let Some(packed) = packed {
            found.insert(key.clone(), packed.clone());
        }
    }
    Ok(found)
}

/// Years in which each source has dividends on one side. Only the years of the touched rows may differ from the current
/// ones.
async fn load_feeds(
    transaction: &Transaction<'_>,
    touched: &TouchedRows,
    side: &SideRows,
) -> anyhow::Result<DividendFeeds> {
    let feeds = load_dividend_feeds(transaction).await?;
    if touched.feed_years.is_empty() {
        return Ok(feeds);
    }
    let mut present = BTreeSet::new();
    let sources: BTreeSet<&str> = touched.feed_years.iter().map(|(source, _)| source.as_str()).collect();
    for ((.., source), packed) in load_records(transaction, Kind::Dividend, side).await? {
        if sources.contains(source.as_str()) {
            let rows = records::read::<Dividend>(&source, &packed)?;
            let put = rows.iter().filter(|row| row.action == Action::Put);
            present.extend(put.filter_map(|row| Some((source.clone(), row.record.date()?.year()))));
        }
    }
    let untouched = feeds.pairs().map(|(source, year)| (source.to_owned(), year));
    let untouched = untouched.filter(|year| !touched.feed_years.contains(year));
    Ok(untouched.chain(touched.feed_years.iter().filter(|year| present.contains(*year)).cloned()).collect())
}

/// Market date of one side; `None` if no session is known.
async fn load_market_date(
    transaction: &Transaction<'_>,
    generation: &Generation,
    side: &SideRows,
) -> anyhow::Result<Option<NaiveDate>> {
    if generation.as_of.is_some() {
        return Ok(generation.as_of);
    }
    let mut newest = None;
    for ((_, _, source), packed) in load_records(transaction, Kind::Session, side).await? {
        newest = newest.max(newest_session(&records::read(&source, &packed)?));
    }
    let mut years: BTreeSet<i32> = side.rows.years.keys().map(|(.., year)| *year).collect();
    for row in transaction.query(YEARS, &[]).await? {
        years.insert(row.try_get("year")?);
    }
    for year in years.into_iter().rev() {
        let mut last_day = None;
        for row in transaction.query(LAST_DAYS, &[&year]).await? {
            let key: BarsKey = (row.try_get("symbol")?, row.try_get("source")?, year);
            if !side.rows.years.contains_key(&key) {
                last_day = last_day.max(row.try_get("last_day")?);
            }
        }
        for ((.., of), bars) in &side.rows.years {
            if let Some((_, packed)) = bars.as_ref().filter(|_| *of == year) {
                last_day = last_day.max(packed.unpack()?.last_live_day());
            }
        }
        if last_day.is_some() {
            return Ok(newest.max(last_day.map(date_of)));
        }
    }
    Ok(newest)
}
