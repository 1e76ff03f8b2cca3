//! Reading facts: from a security's identity to its whole history.
//!
//! Used by the projector for every touched security and by the API to answer for a past date; names are
//! unqualified, so the connection's `search_path` says which fact set is read.

use std::collections::{BTreeSet, HashMap};

use chrono::{Datelike, NaiveDate};
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row};

use market::bars::{Bars, BarsError, Packed, date_of};
use market::event::Security;
use market::history::{History, Observation, PolicyRule, SourceBars, SourcePolicy};
use market::identity::Identity;
use market::records::{PackedRecordsError, Records, newest_session};
use market::symbol::Symbol;

/// Why facts could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    #[error("postgres refused a statement: {0}")]
    Statement(#[from] tokio_postgres::Error),
    #[error("a stored record of {symbol:?} cannot be read: {source}")]
    Record { symbol: String, source: serde_json::Error },
    #[error("the stored records of {symbol:?} cannot be read: {source}")]
    Packed { symbol: String, source: PackedRecordsError },
    #[error("stored prices of {symbol} cannot be read: {source}")]
    Bars { symbol: String, source: BarsError },
}

const RECORDS: &str = include_str!("../queries/records_of_symbols.sql");
const BARS: &str = include_str!("../queries/bars_of_symbols.sql");
const BARS_TO_DERIVE: &str = include_str!("../queries/bars_to_derive.sql");
const SECURITIES: &str = include_str!("../queries/securities.sql");
const SESSIONS: &str = include_str!("../queries/sessions.sql");
const KNOWN_SYMBOLS: &str = include_str!("../queries/known_symbols.sql");
const POLICY: &str = include_str!("../queries/source_policy.sql");

/// The facts of some securities as they are stored, to be read security by security, on any thread.
#[derive(Debug)]
pub struct StoredFacts {
    records: Vec<Row>,
    bars: Vec<Row>,
    /// Rows of each symbol: records, bars.
    of_symbol: HashMap<String, (Vec<usize>, Vec<usize>)>,
}

impl StoredFacts {
    /// Fetches what may belong to these securities.
    pub async fn fetch(
        client: &impl GenericClient,
        identities: &[&Identity],
    ) -> Result<Self, tokio_postgres::Error> {
        let symbols = symbols_of(identities);
        let parameters: [&(dyn ToSql + Sync); 1] = [&symbols];
        let (records, bars) =
            futures::try_join!(client.query(RECORDS, &parameters), client.query(BARS, &parameters))?;
        Self::of(records, bars)
    }

    /// Fetches the same to derive a generation again, which the `search_path` names first.
    ///
    /// `closes_until` gives a security's last year of which closes suffice: of a year up to it, only the closes are
    /// fetched when the generation serves the year just as the facts have it.
    pub async fn fetch_to_derive(
        client: &impl GenericClient,
        identities: &[&Identity],
        closes_until: impl Fn(&Symbol) -> Option<i32>,
    ) -> Result<Self, tokio_postgres::Error> {
        let symbols = symbols_of(identities);
        let mut bounds: HashMap<&str, (i32, i32)> = HashMap::new();
        for identity in identities {
            // Years that are wholly its own.
            let mut spans = identity.spans.iter().filter(|span| span.symbol == identity.symbol);
            if let (Some(span), None, Some(until)) =
                (spans.next(), spans.next(), closes_until(&identity.symbol))
            {
                let years = (span.from.year() + 1, until.min(span.to.year() - 1));
                bounds.insert(identity.symbol.as_str(), years);
            }
        }
        let (first, last): (Vec<i32>, Vec<i32>) =
            symbols.iter().map(|symbol| bounds.get(symbol).copied().unwrap_or((1, 0))).unzip();
        let parameters: [&(dyn ToSql + Sync); 3] = [&symbols, &first, &last];
        let (records, bars) = futures::try_join!(
            client.query(RECORDS, &parameters[..1]),
            client.query(BARS_TO_DERIVE, &parameters)
        )?;
        Self::of(records, bars)
    }

    fn of(records: Vec<Row>, bars: Vec<Row>) -> Result<Self, tokio_postgres::Error> {
        let mut of_symbol: HashMap<String, (Vec<usize>, Vec<usize>)> = HashMap::new();
        for (index, row) in records.iter().enumerate() {
            of_symbol.entry(row.try_get("symbol")?).or_default().0.push(index);
        }
        for (index, row) in bars.iter().enumerate() {
            of_symbol.entry(row.try_get("symbol")?).or_default().1.push(index);
        }
        Ok(Self { records, bars, of_symbol })
    }

    /// The whole history of one of the securities.
    pub fn history(&self, identity: &Identity) -> Result<History, FactsError> {
        let mut history = empty(identity);
        let symbols: BTreeSet<&str> = identity.spans.iter().map(|span| span.symbol.as_str()).collect();
        for symbol in symbols {
            let Some((records, bars)) = self.of_symbol.get(symbol) else { continue };
            for index in records {
                add_records(&mut history, identity, symbol, &self.records[*index])?;
            }
            for index in bars {
                add_bars(&mut history, identity, symbol, &self.bars[*index])?;
            }
        }
        Ok(history)
    }
}

fn symbols_of<'a>(identities: &[&'a Identity]) -> Vec<&'a str> {
    let spans = identities.iter().flat_map(|identity| &identity.spans);
    let symbols: BTreeSet<&str> = spans.map(|span| span.symbol.as_str()).collect();
    symbols.into_iter().collect()
}

/// The histories of some securities, in their order.
pub async fn load_histories(
    client: &impl GenericClient,
    identities: &[&Identity],
) -> Result<Vec<History>, FactsError> {
    let stored = StoredFacts::fetch(client, identities).await?;
    identities.iter().map(|identity| stored.history(identity)).collect()
}

/// Every security record of every source.
pub async fn load_securities(client: &impl GenericClient) -> Result<Vec<Observation<Security>>, FactsError> {
    let mut securities = Vec::new();
    for row in client.query(SECURITIES, &[]).await? {
        let (records, symbol) = (unpack_records(&row)?, row.try_get::<_, &str>("symbol")?);
        let said = records.read(row.try_get("source")?);
        securities.extend(said.map_err(|source| FactsError::Record { symbol: symbol.to_owned(), source })?);
    }
    Ok(securities)
}

/// The newest session that any source announced, beside those that have bars.
pub async fn load_newest_session(client: &impl GenericClient) -> Result<Option<NaiveDate>, FactsError> {
    let mut newest = None;
    for row in client.query(SESSIONS, &[]).await? {
        let session = newest_session(&unpack_records(&row)?);
        newest = newest.max(session.map_err(|source| FactsError::Record { symbol: String::new(), source })?);
    }
    Ok(newest)
}

/// A row of `records`, unpacked.
pub fn unpack_records(row: &Row) -> Result<Records, FactsError> {
    Records::unpack(row.try_get("kind")?, row.try_get("packed")?).map_err(|source| {
        let symbol = row.try_get("symbol").unwrap_or("?").to_owned();
        FactsError::Packed { symbol, source }
    })
}

/// Every symbol any fact names.
pub async fn load_known_symbols(client: &impl GenericClient) -> Result<BTreeSet<Symbol>, FactsError> {
    let rows = client.query(KNOWN_SYMBOLS, &[]).await?;
    rows.iter().map(|row| Ok(row.try_get::<_, &str>(0)?.parse().ok())).filter_map(Result::transpose).collect()
}

/// The source policy.
pub async fn load_policy(client: &impl GenericClient) -> Result<SourcePolicy, FactsError> {
    let rows = client.query(POLICY, &[]).await?;
    let rules = rows.iter().map(|row| {
        Ok(PolicyRule {
            kind: row.try_get("kind")?,
            source: row.try_get("source")?,
            from: row.try_get("valid_from")?,
            to: row.try_get("valid_to")?,
            rank: row.try_get("rank")?,
        })
    });
    Ok(SourcePolicy { rules: rules.collect::<Result<_, tokio_postgres::Error>>()? })
}

fn empty(identity: &Identity) -> History {
    History {
        symbol: identity.symbol.clone(),
        key: identity.key(),
        former_symbols: identity.former_symbols(),
        security: identity.security.clone(),
        dividends: Vec::new(),
        splits: Vec::new(),
        fundamentals: Vec::new(),
        etf: Vec::new(),
        holdings: Vec::new(),
        prices: Vec::new(),
    }
}

fn add_records(
    history: &mut History,
    identity: &Identity,
    symbol: &str,
    row: &Row,
) -> Result<(), FactsError> {
    let (records, source) = (unpack_records(row)?, row.try_get("source")?);
    let added = history.add(&records, source, |date| identity.owns(symbol, date));
    added.map_err(|source| FactsError::Record { symbol: symbol.to_owned(), source })
}

/// Appends one year of one source, restricted to the days the security held the symbol. Rows come by source and year.
fn add_bars(history: &mut History, identity: &Identity, symbol: &str, row: &Row) -> Result<(), FactsError> {
    let damaged = |source| FactsError::Bars { symbol: symbol.to_owned(), source };
    let columns = Columns::of(row)?;
    let bars = columns.unpack().map_err(damaged)?;
    let whole = bars.day.first().zip(bars.day.last()).is_some_and(|(first, last)| {
        identity
            .spans
            .iter()
            .any(|s| s.symbol.as_str() == symbol && s.from <= date_of(*first) && date_of(*last) <= s.to)
    });
    let bars = if whole { bars } else { restrict(&bars, |day| identity.owns(symbol, date_of(day))) };
    if bars.is_empty() {
        return Ok(());
    }
    let source: String = row.try_get("source")?;
    let known = history.prices.iter().position(|prices| prices.source == source);
    let position = known.unwrap_or(history.prices.len());
    if known.is_none() {
        history.prices.push(SourceBars { source, bars: Bars::default(), closes_only: Vec::new() });
    }
    let prices = &mut history.prices[position];
    if matches!(columns, Columns::Closes(_)) {
        prices.closes_only.push(row.try_get("year")?);
    }
    prices.bars = std::mem::take(&mut prices.bars).append(bars).map_err(damaged)?;
    Ok(())
}

/// A row's packed columns, or those of them that were asked for.
enum Columns {
    All(Packed),
    Closes(Packed),
}

impl Columns {
    fn of(row: &Row) -> Result<Self, tokio_postgres::Error> {
        if row.try_get::<_, Option<&[u8]>>("range")?.is_some() {
            return Ok(Self::All(packed(row)?));
        }
        let (days, close, versions) = (row.try_get("days")?, row.try_get("close")?, row.try_get("versions")?);
        Ok(Self::Closes(Packed { days, close, versions, ..Packed::default() }))
    }

    fn unpack(&self) -> Result<Bars, BarsError> {
        match self {
            Self::All(packed) => packed.unpack(),
            Self::Closes(packed) => packed.unpack_closes(),
        }
    }
}

fn restrict(bars: &Bars, keep: impl Fn(i32) -> bool) -> Bars {
    let mut kept = Bars { scale: bars.scale, versions: bars.versions.clone(), ..Bars::default() };
    (0..bars.len())
        .filter(|index| keep(bars.day[*index]))
        .for_each(|index| kept.push(bars.bar(index), bars.version[index]));
    kept
}

/// The packed columns of a bars row.
pub fn packed(row: &Row) -> Result<Packed, tokio_postgres::Error> {
    Ok(Packed {
        days: row.try_get("days")?,
        close: row.try_get("close")?,
        range: row.try_get("range")?,
        volume: row.try_get("volume")?,
        extra: row.try_get("extra")?,
        versions: row.try_get("versions")?,
    })
}
