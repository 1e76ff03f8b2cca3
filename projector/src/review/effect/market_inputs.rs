//! Inputs that the derivations of all securities share, such as the market date. They are loaded for one of two times:
//! before the run (one load by ingest), or now.

use anyhow::Context;
use chrono::{Datelike, NaiveDate};
use codec::bars::unpack_days;
use codec::records;
use market::day::date_of;
use market::event::Kind;
use market::history::{DividendFeeds, SourcePolicy, newest_session};
use market::identity::SecurityDirectory;
use market::metrics;
use market::metrics::{DerivationContext, MonthlyReturns, Rules};
use store::facts::{load_dividend_feeds, load_known_symbols};
use store::history::{build_history, fetch_facts, symbols_of_identities};
use tokio_postgres::{Row, Transaction};

use super::earlier_facts::EarlierFacts;
use crate::generation::Generation;

const RECORDS: &str = "select symbol, source, packed from records where kind = $1";
const YEARS: &str = "select distinct year from bars order by year desc";
const BARS: &str = include_str!("../../../queries/effect/bars_of_year.sql");

/// Inputs that the derivations of all securities share, either before the run or now.
pub(super) struct MarketInputs {
    /// Market date; `None` if no session is known.
    pub(super) as_of: Option<NaiveDate>,
    pub(super) directory: SecurityDirectory,
    pub(super) dividend_feeds: DividendFeeds,
    pub(super) benchmark: Option<MonthlyReturns>,
}

impl MarketInputs {
    /// Loads the inputs of one time. If `earlier` has the facts before the run, loads the inputs before the run. If
    /// `earlier` is `None`, loads the current inputs.
    pub(super) async fn load(
        transaction: &Transaction<'_>,
        generation: &Generation,
        policy: &SourcePolicy,
        earlier: Option<&EarlierFacts>,
    ) -> anyhow::Result<Self> {
        let mut securities = Vec::new();
        for row in transaction.query(RECORDS, &[&Kind::Security]).await? {
            let (source, Some(packed)) = read_packed(&row, Kind::Security, earlier)? else { continue };
            securities.extend(records::read(source, packed)?);
        }
        // The symbols of the current facts are loaded even for the earlier inputs. A symbol with only new facts has no
        // earlier rows, so its security counts as not listed before the run.
        let known = load_known_symbols(transaction).await?;
        let mut inputs = Self {
            as_of: match earlier {
                None => generation.load_market_date(transaction).await?,
                Some(earlier) => load_earlier_date(transaction, generation, earlier).await?,
            },
            directory: SecurityDirectory::resolve(&securities, &known, policy),
            dividend_feeds: load_feeds(transaction, earlier).await?,
            benchmark: None,
        };
        inputs.benchmark = inputs.load_benchmark(transaction, generation, policy, earlier).await?;
        Ok(inputs)
    }

    async fn load_benchmark(
        &self,
        transaction: &Transaction<'_>,
        generation: &Generation,
        policy: &SourcePolicy,
        earlier: Option<&EarlierFacts>,
    ) -> anyhow::Result<Option<MonthlyReturns>> {
        let benchmark = self.directory.identities.get(&generation.benchmark);
        let (Some(identity), Some(as_of)) = (benchmark, self.as_of) else { return Ok(None) };
        let mut facts = fetch_facts(transaction, &symbols_of_identities([identity])).await?;
        if let Some(earlier) = earlier {
            facts = earlier.restore(&facts)?;
        }
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

/// Reads the source and the packed records of a row. If `earlier` is given, these are the records before the audited
/// run.
fn read_packed<'a>(
    row: &'a Row,
    kind: Kind,
    earlier: Option<&'a EarlierFacts>,
) -> anyhow::Result<(&'a str, Option<&'a [u8]>)> {
    let (symbol, source, packed): (&str, &str, &[u8]) =
        (row.try_get("symbol")?, row.try_get("source")?, row.try_get("packed")?);
    Ok((
        source,
        earlier.map_or(Some(packed), |earlier| earlier.restore_records((symbol, kind, source), packed)),
    ))
}

async fn load_feeds(
    transaction: &Transaction<'_>,
    earlier: Option<&EarlierFacts>,
) -> anyhow::Result<DividendFeeds> {
    let now = load_dividend_feeds(transaction).await?;
    let Some(earlier) = earlier else { return Ok(now) };
    let was_there = |source: &str, year: i32| {
        let years = earlier.records.dividend_years.get(source);
        !earlier.is_new(Kind::Dividend, source) && years.is_none_or(|years| years.contains(&year))
    };
    Ok(now
        .pairs()
        .filter(|(source, year)| was_there(source, *year))
        .map(|(source, year)| (source.to_owned(), year))
        .collect())
}

/// Market date before the run; `None` if no session was known.
async fn load_earlier_date(
    transaction: &Transaction<'_>,
    generation: &Generation,
    earlier: &EarlierFacts,
) -> anyhow::Result<Option<NaiveDate>> {
    if generation.as_of.is_some() {
        return Ok(generation.as_of);
    }
    let mut newest = None;
    for row in transaction.query(RECORDS, &[&Kind::Session]).await? {
        let (source, Some(packed)) = read_packed(&row, Kind::Session, Some(earlier))? else { continue };
        newest = newest.max(newest_session(&records::read(source, packed)?));
    }
    for year in transaction.query(YEARS, &[]).await? {
        let year: i32 = year.try_get("year")?;
        let mut last_day = None;
        for row in transaction.query(BARS, &[&year]).await? {
            last_day = last_day.max(earlier_last_day(&row, year, earlier)?);
        }
        if last_day.is_some() {
            return Ok(newest.max(last_day.map(date_of)));
        }
    }
    Ok(newest)
}

/// Last day of `year` with a live (not withdrawn) bar before the audited run; `None` if there was none. `row` has the
/// days of one symbol and source.
fn earlier_last_day(row: &Row, year: i32, earlier: &EarlierFacts) -> anyhow::Result<Option<i32>> {
    let (symbol, source): (String, String) = (row.try_get("symbol")?, row.try_get("source")?);
    let last_day: i32 = row.try_get("last_day")?;
    if earlier.is_new(Kind::Price, &source) {
        return Ok(None);
    }
    let Some(touched) = earlier.bars.get(&(symbol, source)) else { return Ok(Some(last_day)) };
    let days = unpack_days(row.try_get("days")?).context("cannot unpack the days of a year of prices")?;
    // `days` also contains days of withdrawn bars. Untouched days up to `last_day` count as live.
    let kept = days.into_iter().filter(|day| *day <= last_day && !touched.days.contains(day)).max();
    let restored = touched.earlier.filter_days(|day| date_of(day).year() == year);
    Ok(kept.max(restored.last_live_day()))
}
