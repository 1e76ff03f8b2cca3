//! Loader of a security's history from the packed facts of its symbols.
//!
//! Table names have no schema, because the `search_path` of the connection selects the fact set.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use chrono::{Datelike, NaiveDate};
use codec::records::add_to_history;
use market::day::date_of;
use market::history::{DividendFeeds, History, SourceBars};
use market::identity::Identity;
use market::metrics::currency::assign_currency;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row};

use crate::facts::{FactsError, damaged_bars, damaged_records, load_dividend_feeds, read_packed_bars};
use crate::symbol_facts::{PackedColumns, PackedYears, SymbolFacts};

const RECORDS: &str = include_str!("../queries/records_of_symbols.sql");
const BARS: &str = include_str!("../queries/bars_of_symbols.sql");
const BARS_SINCE: &str = include_str!("../queries/bars_since.sql");
const BARS_TO_DERIVE: &str = include_str!("../queries/bars_to_derive.sql");

/// Approximate number of bars in a year.
const BARS_OF_YEAR: usize = 252;

/// Facts of some symbols. The entry of a symbol is empty if the symbol has no facts.
pub type FactsBySymbol = BTreeMap<String, Arc<SymbolFacts>>;

/// Symbol, calendar year and digest of a published year of bars. If the stored bars still have this digest, only their
/// closes are needed.
pub type ServedYear<'a> = (&'a str, i32, i64);

/// Fetches the facts of some symbols.
///
/// # Errors
/// Postgres rejects the query or is unreachable.
pub async fn fetch_facts(
    client: &impl GenericClient,
    symbols: &[&str],
) -> Result<FactsBySymbol, tokio_postgres::Error> {
    fetch(client, symbols, BARS, &[&symbols]).await
}

/// Fetches the facts of some symbols, with the bars from `first_year` on.
///
/// # Errors
/// Postgres rejects the query or is unreachable.
pub async fn fetch_facts_since(
    client: &impl GenericClient,
    symbols: &[&str],
    first_year: i32,
) -> Result<FactsBySymbol, tokio_postgres::Error> {
    fetch(client, symbols, BARS_SINCE, &[&symbols, &first_year]).await
}

/// Fetches the facts of some symbols. For the years in `closes`, only the closes are fetched if the stored bars still
/// have the given digest.
///
/// # Errors
/// Postgres rejects the query or is unreachable.
pub async fn fetch_facts_to_derive(
    client: &impl GenericClient,
    symbols: &[&str],
    closes: &[ServedYear<'_>],
) -> Result<FactsBySymbol, tokio_postgres::Error> {
    let (of, years, digests): (Vec<&str>, Vec<i32>, Vec<i64>) = closes.iter().copied().collect();
    fetch(client, symbols, BARS_TO_DERIVE, &[&symbols, &of, &years, &digests]).await
}

/// Fetches records, and bars with the query `bars`. Its first parameter is the list of symbols.
async fn fetch(
    client: &impl GenericClient,
    symbols: &[&str],
    bars: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<FactsBySymbol, tokio_postgres::Error> {
    let (records, bars) =
        futures::try_join!(client.query(RECORDS, &parameters[..1]), client.query(bars, parameters))?;
    let mut facts: BTreeMap<&str, SymbolFacts> =
        symbols.iter().map(|symbol| (*symbol, SymbolFacts::default())).collect();
    for row in &records {
        let of_symbol = facts.entry(row.try_get("symbol")?).or_default();
        of_symbol.put_records(row.try_get("kind")?, row.try_get("source")?, row.try_get("packed")?);
    }
    for row in &bars {
        let of_symbol = facts.entry(row.try_get("symbol")?).or_default();
        // `put_year` fails only for several years that are packed together. Here each year is packed separately.
        let _ = of_symbol.put_year(
            row.try_get("source")?,
            row.try_get("year")?,
            row.try_get("digest")?,
            columns(row)?,
        );
    }
    Ok(facts.into_iter().map(|(symbol, facts)| (symbol.to_owned(), Arc::new(facts))).collect())
}

fn columns(row: &Row) -> Result<PackedColumns, tokio_postgres::Error> {
    let column = |name: &str| row.try_get::<_, &[u8]>(name).map(Into::into);
    Ok(match row.try_get::<_, Option<&[u8]>>("range")? {
        Some(_) => PackedColumns::All(Box::new(read_packed_bars(row)?)),
        None => PackedColumns::Closes {
            days: column("days")?,
            close: column("close")?,
            versions: column("versions")?,
        },
    })
}

/// Symbols under which the facts of some securities are stored, without duplicates.
pub fn symbols_of_identities<'a>(identities: impl IntoIterator<Item = &'a Identity>) -> Vec<&'a str> {
    let spans = identities.into_iter().flat_map(|identity| &identity.spans);
    let symbols: BTreeSet<&str> = spans.map(|span| span.symbol.as_str()).collect();
    symbols.into_iter().collect()
}

/// Calendar years for which the metrics of a security may need only closes. In each of these years, the security had
/// its current symbol all year. The year of `as_of` and the year before it are left out.
pub fn close_only_years(identity: &Identity, as_of: NaiveDate) -> Range<i32> {
    let mut spans = identity.spans.iter().filter(|span| span.symbol == identity.symbol);
    let (Some(span), None) = (spans.next(), spans.next()) else { return 0..0 };
    // Metrics that need other columns than closes use at most the last two calendar years.
    let end = (as_of.year() - 1).min(span.to.year());
    let first = span.from.year() + 1;
    if first < end { first..end } else { 0..0 }
}

/// Loads the histories of some securities. The result has the order of `identities`.
///
/// # Errors
/// Postgres rejects the query or is unreachable, or the stored facts are damaged.
pub async fn load_histories(
    client: &impl GenericClient,
    identities: &[&Identity],
) -> Result<Vec<History>, FactsError> {
    let feeds = load_dividend_feeds(client).await?;
    let facts = fetch_facts(client, &symbols_of_identities(identities.iter().copied())).await?;
    identities.iter().map(|identity| build_history(identity, &facts, &feeds, |_, _| false)).collect()
}

/// Builds the history of a security from the facts of its symbols.
///
/// The predicate `closes` gets a calendar year and the digest of the year's bars. If it returns true, only closes are
/// unpacked.
///
/// # Errors
/// The facts are damaged. [`FactsError::ClosesOnly`] if a year with only closes needs all columns.
pub fn build_history(
    identity: &Identity,
    facts: &FactsBySymbol,
    feeds: &DividendFeeds,
    closes: impl Fn(i32, i64) -> bool,
) -> Result<History, FactsError> {
    let (mut history, mut bars, mut of_others) =
        (empty_history(identity, feeds), Vec::new(), BTreeSet::new());
    for symbol in symbols_of_identities([identity]) {
        let Some(facts) = facts.get(symbol) else { continue };
        for (kind, source, packed) in facts.records() {
            let added =
                add_to_history(&mut history, kind, source, packed, |date| identity.owns(symbol, date));
            added.map_err(damaged_records(symbol))?;
        }
        bars.extend(facts.years().map(|(source, years)| (source, years, symbol)));
    }
    // Sort by source and year, so that the bars of all symbols are appended in chronological order.
    bars.sort_by_key(|(source, years, _)| (*source, years.range().start));
    for of_source in bars.chunk_by(|before, next| before.0 == next.0) {
        let room = of_source.iter().map(|(_, years, _)| years.range().len()).sum();
        for (source, years, symbol) in of_source {
            let own = *symbol == identity.symbol.as_str();
            let closes = own && years.all_accepted(&closes);
            if add_years(&mut history, identity, symbol, (source, years), closes, room)? && !own {
                of_others.extend(years.range());
            }
        }
    }
    // Finds a year of closes that also has bars of a former symbol. The published prices of such a year may change, and
    // writing them needs all columns.
    let mixed =
        history.prices.iter().flat_map(|prices| &prices.closes_only).find(|year| of_others.contains(*year));
    if let Some(year) = mixed.copied() {
        return Err(FactsError::ClosesOnly { symbol: identity.symbol.to_string(), year });
    }
    assign_currency(&mut history);
    Ok(history)
}

fn empty_history(identity: &Identity, feeds: &DividendFeeds) -> History {
    History {
        symbol: identity.symbol.clone(),
        former_symbols: identity.former_symbols(),
        security: identity.security.clone(),
        dividends: Vec::new(),
        splits: Vec::new(),
        fundamentals: Vec::new(),
        etf: Vec::new(),
        holdings: Vec::new(),
        decisions: Vec::new(),
        evidence: Vec::new(),
        dividend_feeds: feeds.clone(),
        prices: Vec::new(),
    }
}

/// Appends bars from one source, except for days on which the security did not have the symbol. Returns true if bars
/// were added. Calls must be sorted by source and year.
fn add_years(
    history: &mut History,
    identity: &Identity,
    symbol: &str,
    (source, years): (&str, &PackedYears),
    closes: bool,
    room: usize,
) -> Result<bool, FactsError> {
    let damaged = damaged_bars(symbol);
    let columns = years.columns();
    let known = history.prices.iter().position(|prices| prices.source == source);
    let room = if known.is_none() { room.saturating_sub(years.range().len()) * BARS_OF_YEAR } else { 0 };
    let bars = if closes { columns.unpack_closes(room) } else { columns.unpack() };
    let mut bars = bars.map_err(&damaged)?;
    let of_the_symbol = || identity.spans.iter().filter(|span| span.symbol.as_str() == symbol);
    let whole = bars.day.first().zip(bars.day.last()).is_some_and(|(first, last)| {
        of_the_symbol().any(|span| span.from <= date_of(*first) && date_of(*last) <= span.to)
    });
    if !whole {
        bars = bars.filter_days(|day| identity.owns(symbol, date_of(day)));
    }
    if bars.is_empty() {
        return Ok(false);
    }
    if !closes && matches!(columns, PackedColumns::Closes { .. }) {
        return Err(FactsError::ClosesOnly { symbol: symbol.to_owned(), year: years.range().start });
    }
    let position = known.unwrap_or(history.prices.len());
    if known.is_none() {
        history.prices.push(SourceBars {
            source: source.to_owned(),
            bars: Arc::default(),
            closes_only: Vec::new(),
        });
    }
    let prices = &mut history.prices[position];
    if closes {
        prices.closes_only.extend(years.range());
    }
    let earlier = Arc::unwrap_or_clone(std::mem::take(&mut prices.bars));
    let mut all = earlier.append(bars).map_err(|error| damaged(error.into()))?;
    all.reserve(room);
    prices.bars = Arc::new(all);
    Ok(true)
}
