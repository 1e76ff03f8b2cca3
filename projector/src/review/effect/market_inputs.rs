//! Inputs that the derivations of all securities share, such as the market date. They are loaded for both sides of
//! a comparison: without the run, and with it.

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

use super::side::{TouchedViews, overlay};
use crate::generation::Generation;

const RECORDS: &str = "select symbol, source, packed from records where kind = $1";
const YEARS: &str = "select distinct year from bars";
/// Maximum number of touched years of bars in memory.
const ROWS_PER_CHUNK: usize = 1_000;
const LAST_DAYS: &str = include_str!("../../../queries/effect/last_days_of_year.sql");

pub(super) struct MarketInputs {
    pub(super) as_of: Option<NaiveDate>,
    pub(super) directory: SecurityDirectory,
    pub(super) dividend_feeds: DividendFeeds,
    pub(super) benchmark: Option<MonthlyReturns>,
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
        let mut inputs = load_feeds(views).await?.map(|dividend_feeds| {
            let directory = SecurityDirectory::default();
            Self { as_of: None, directory, dividend_feeds, benchmark: None }
        });
        for (side, (inputs, securities)) in inputs.iter_mut().zip(securities).enumerate() {
            let mut read = Vec::new();
            for ((_, _, source), packed) in &securities {
                read.extend(records::read(source, packed)?);
            }
            inputs.directory = SecurityDirectory::resolve(&read, &known, policies[side]);
            inputs.as_of = dates[side];
        }
        for (number, side) in inputs.iter_mut().enumerate() {
            let Some(identity) = side.directory.identities.get(&generation.benchmark) else { continue };
            let Some(as_of) = side.as_of else { continue };
            let symbols = symbols_of_identities([identity]);
            let rows = &views.of_symbols(&symbols).await?[number];
            let facts = overlay(rows, &fetch_facts(transaction, &symbols).await?);
            let history = build_history(identity, &facts, &side.dividend_feeds, |_, _| false)?;
            side.benchmark = Some(metrics::benchmark(&history, as_of, policies[number], &generation.rules));
        }
        Ok(inputs)
    }

    pub(super) fn context<'a>(
        &'a self,
        policy: &'a SourcePolicy,
        rules: &'a Rules,
    ) -> Option<DerivationContext<'a>> {
        let as_of = self.as_of?;
        Some(DerivationContext { as_of, newest: as_of, benchmark: self.benchmark.as_ref(), policy, rules })
    }
}

async fn load_records(
    kind: Kind,
    views: &TouchedViews<'_>,
) -> anyhow::Result<[BTreeMap<RecordsKey, Vec<u8>>; 2]> {
    let touched = views.of_kind(kind).await?;
    let mut current = BTreeMap::new();
    for row in views.transaction.query(RECORDS, &[&kind]).await? {
        current.insert((row.try_get("symbol")?, kind, row.try_get("source")?), row.try_get("packed")?);
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
        for ((.., source), packed) in &dividends {
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
        for ((.., source), packed) in side {
            *newest = (*newest).max(newest_session(&records::read(&source, &packed)?));
        }
    }
    let mut years: BTreeSet<i32> = views.touched.years.iter().map(|(.., year)| *year).collect();
    for row in views.transaction.query(YEARS, &[]).await? {
        years.insert(row.try_get("year")?);
    }
    let (has_prices, mut last) = (views.have_prices().await?, [None; 2]);
    for year in years.into_iter().rev() {
        if [0, 1].iter().all(|side| last[*side].is_some() || !has_prices[*side]) {
            break;
        }
        let of_year = load_last_days(year, views).await?;
        for (last, of_year) in last.iter_mut().zip(of_year) {
            *last = last.or(of_year);
        }
    }
    Ok([0, 1].map(|side: usize| newest[side].max(last[side].map(date_of))))
}

/// Day numbers of the newest bars of a year on both sides.
async fn load_last_days(year: i32, views: &TouchedViews<'_>) -> anyhow::Result<[Option<i32>; 2]> {
    let touched: Vec<BarsKey> = views.touched.years.iter().filter(|(.., of)| *of == year).cloned().collect();
    let mut last_days = [None; 2];
    for row in views.transaction.query(LAST_DAYS, &[&year]).await? {
        let key: BarsKey = (row.try_get("symbol")?, row.try_get("source")?, year);
        if touched.binary_search(&key).is_err() {
            let last_day = row.try_get("last_day")?;
            last_days = last_days.map(|last: Option<i32>| last.max(last_day));
        }
    }
    for keys in touched.chunks(ROWS_PER_CHUNK) {
        for (last, side) in last_days.iter_mut().zip(views.load(&[], keys).await?) {
            for (_, packed) in side.years.values().flatten() {
                *last = (*last).max(packed.unpack()?.last_live_day());
            }
        }
    }
    Ok(last_days)
}
