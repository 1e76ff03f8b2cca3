//! Inputs that the derivations of all securities share, such as the market date. They are loaded for both sides of
//! a comparison: without the run, and with it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::{Datelike, NaiveDate};
use codec::records;
use market::day::date_of;
use market::event::{Action, Dividend, EventRecord, Kind};
use market::history::{DividendFeeds, SourcePolicy, newest_session};
use market::identity::SecurityDirectory;
use market::metrics::ExchangeRates;
use market::symbol::Symbol;
use store::facts::{load_dividend_feeds, load_known_symbols, load_rates};
use store::history::{build_history, fetch_facts, symbols_of_identities};
use store::past_facts::{BarsKey, RecordsKey, bar_columns};
use tokio_postgres::types::ToSql;

use super::side::{TouchedViews, overlay};
use crate::derive::MarketContext;
use crate::generation::Generation;

const RECORDS: &str = "select symbol, source, packed from records where kind = $1";
/// Maximum number of touched years of bars in memory.
const ROWS_PER_CHUNK: usize = 1_000;
const LAST_UNTOUCHED_DAY: &str = include_str!("../../../queries/effect/last_untouched_day.sql");

pub(super) struct MarketInputs {
    /// `None` if no session is known.
    pub(super) market: Option<MarketContext>,
    pub(super) directory: SecurityDirectory,
    pub(super) dividend_feeds: DividendFeeds,
}

impl MarketInputs {
    pub(super) async fn load(
        generation: &Generation,
        policies: [&SourcePolicy; 2],
        views: &TouchedViews<'_>,
    ) -> anyhow::Result<[Self; 2]> {
        let transaction = views.transaction;
        let securities = load_records(Kind::Security, views).await?;
        // A symbol without facts on this side has no rows there, so its security counts as not listed.
        let mut known = load_known_symbols(transaction).await?;
        known.extend(views.touched.symbols().into_iter().filter_map(|symbol| symbol.parse::<Symbol>().ok()));
        let dates = load_market_dates(generation, views).await?;
        let rates = load_both_rates(policies, views).await?;
        let mut inputs = load_feeds(views).await?.map(|dividend_feeds| Self {
            market: None,
            directory: SecurityDirectory::default(),
            dividend_feeds,
        });
        for (number, side) in inputs.iter_mut().enumerate() {
            let mut read = Vec::new();
            for (RecordsKey { source, .. }, packed) in &securities[number] {
                read.extend(records::read(source, packed)?);
            }
            side.directory = SecurityDirectory::resolve(&read, &known, policies[number]);
            let Some(as_of) = dates[number] else { continue };
            let mut benchmark = None;
            if let Some(identity) = side.directory.identities.get(&generation.benchmark) {
                let symbols = symbols_of_identities([identity]);
                let rows = &views.of_symbols(&symbols).await?[number];
                let facts = overlay(rows, &fetch_facts(transaction, &symbols).await?);
                benchmark = Some(build_history(identity, &facts, &side.dividend_feeds, |_, _| false)?);
            }
            let market = MarketContext {
                as_of,
                benchmark: None,
                rates: Arc::clone(&rates[number]),
                reporting_currency: generation.reporting_currency.clone(),
                policy: policies[number].clone(),
                rules: generation.rules,
            };
            side.market = Some(market.with_benchmark(benchmark.as_ref()));
        }
        Ok(inputs)
    }

    pub(super) fn as_of(&self) -> Option<NaiveDate> {
        self.market.as_ref().map(|market| market.as_of)
    }
}

async fn load_records(
    kind: Kind,
    views: &TouchedViews<'_>,
) -> anyhow::Result<[BTreeMap<RecordsKey, Vec<u8>>; 2]> {
    let touched = views.of_kind(kind).await?;
    let mut current = BTreeMap::new();
    for row in views.transaction.query(RECORDS, &[&kind]).await? {
        let key = RecordsKey { symbol: row.try_get("symbol")?, kind, source: row.try_get("source")? };
        current.insert(key, row.try_get("packed")?);
    }
    Ok(touched.map(|side| {
        let mut found = current.clone();
        for (key, packed) in side.records {
            match packed {
                Some(packed) => drop(found.insert(key, packed)),
                None => drop(found.remove(&key)),
            }
        }
        found
    }))
}

/// Exchange rates of both sides. They are loaded once if neither the run nor the policies can change them.
async fn load_both_rates(
    policies: [&SourcePolicy; 2],
    views: &TouchedViews<'_>,
) -> anyhow::Result<[Arc<ExchangeRates>; 2]> {
    let is_touched = views.touched.records.iter().any(|key| key.kind == Kind::Fx);
    if !is_touched && policies[0] == policies[1] {
        let rates = Arc::new(load_rates(views.transaction, None, policies[0]).await?);
        return Ok([Arc::clone(&rates), rates]);
    }
    let mut rates = [Arc::default(), Arc::default()];
    for (side, records) in load_records(Kind::Fx, views).await?.into_iter().enumerate() {
        let mut read = Vec::new();
        for (RecordsKey { source, .. }, packed) in &records {
            read.extend(records::read(source, packed)?);
        }
        rates[side] = Arc::new(ExchangeRates::new(&read, policies[side]));
    }
    Ok(rates)
}

/// Years in which each source has dividends on both sides. Only the years of the touched rows may differ from the
/// current ones.
async fn load_feeds(views: &TouchedViews<'_>) -> anyhow::Result<[DividendFeeds; 2]> {
    let (feeds, feed_years) = (load_dividend_feeds(views.transaction).await?, &views.touched.feed_years);
    if feed_years.is_empty() {
        return Ok([feeds.clone(), feeds]);
    }
    let sources: BTreeSet<&str> = feed_years.iter().map(|(source, _)| source.as_str()).collect();
    let side = |dividends: BTreeMap<RecordsKey, Vec<u8>>| {
        let mut present = BTreeSet::new();
        for (RecordsKey { source, .. }, packed) in &dividends {
            if sources.contains(source.as_str()) {
                let rows = records::read::<Dividend>(source, packed)?;
                let put = rows.iter().filter(|row| row.action == Action::Put);
                present.extend(put.filter_map(|row| Some((source.clone(), row.record.date()?.year()))));
            }
        }
        let untouched = feeds.pairs().map(|(source, year)| (source.to_owned(), year));
        let untouched = untouched.filter(|year| !feed_years.contains(year));
        anyhow::Ok(
            untouched.chain(feed_years.iter().filter(|year| present.contains(*year)).cloned()).collect(),
        )
    };
    let [before, after] = load_records(Kind::Dividend, views).await?;
    Ok([side(before)?, side(after)?])
}

/// Market dates of both sides; `None` if no session is known.
async fn load_market_dates(
    generation: &Generation,
    views: &TouchedViews<'_>,
) -> anyhow::Result<[Option<NaiveDate>; 2]> {
    if generation.as_of.is_some() {
        return Ok([generation.as_of; 2]);
    }
    let mut newest = [None; 2];
    for (newest, side) in newest.iter_mut().zip(load_records(Kind::Session, views).await?) {
        for (RecordsKey { source, .. }, packed) in side {
            *newest = (*newest).max(newest_session(&records::read(&source, &packed)?));
        }
    }
    let (has_prices, last) = (views.have_prices().await?, load_last_untouched_day(views).await?);
    let mut last = [last; 2];
    let mut touched: BTreeMap<i32, Vec<BarsKey>> = BTreeMap::new();
    for key in &views.touched.years {
        touched.entry(key.2).or_default().push(key.clone());
    }
    for (year, keys) in touched.into_iter().rev() {
        let is_later = |day: i32| date_of(day).year() > year;
        if [0, 1].iter().all(|side| !has_prices[*side] || last[*side].is_some_and(is_later)) {
            break;
        }
        for keys in keys.chunks(ROWS_PER_CHUNK) {
            for (last, side) in last.iter_mut().zip(views.load(&[], keys).await?) {
                for (_, packed) in side.years.values().flatten() {
                    *last = (*last).max(packed.unpack()?.last_live_day());
                }
            }
        }
    }
    Ok([0, 1].map(|side: usize| newest[side].max(last[side].map(date_of))))
}

/// Day number of the newest bar in the rows that the run did not touch.
async fn load_last_untouched_day(views: &TouchedViews<'_>) -> anyhow::Result<Option<i32>> {
    let (symbols, sources, years) = bar_columns(&views.touched.years);
    let keys: [&(dyn ToSql + Sync); 3] = [&symbols, &sources, &years];
    Ok(views.transaction.query_one(LAST_UNTOUCHED_DAY, &keys).await?.try_get("last_day")?)
}
