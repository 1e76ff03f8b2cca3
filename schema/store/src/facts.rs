//! Queries for facts of the whole market; [`crate::history`] has the queries for single securities.
//!
//! Table names have no schema, because the `search_path` of the connection selects the fact set.

use std::collections::{BTreeSet, HashMap};

use chrono::NaiveDate;
use codec::bars::{PackedBars, PackedBarsError};
use codec::records::{self, PackedRecordsError, RecordLayout, RecordSet};
use market::event::Security;
use market::history::{DividendFeeds, Observation, PolicyRule, SourcePolicy, newest_session};
use market::metrics::{ExchangeRates, ExplainedObservation, Explanation};
use market::symbol::Symbol;
use tokio_postgres::{GenericClient, Row};

/// Errors of reading facts.
#[expect(missing_docs, reason = "the message of each says it")]
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    #[error("postgres refused a statement: {0}")]
    Statement(#[from] tokio_postgres::Error),
    #[error("cannot read the stored records of {symbol:?}: {source}")]
    Packed { symbol: String, source: PackedRecordsError },
    #[error("cannot read the stored prices of {symbol}: {source}")]
    Bars { symbol: String, source: PackedBarsError },
    #[error("cannot derive from the prices of {symbol} in {year}: only the closes were read")]
    ClosesOnly { symbol: String, year: i32 },
}

const SECURITIES: &str = include_str!("../queries/securities.sql");
const SESSIONS: &str = include_str!("../queries/sessions.sql");
const RATES: &str = include_str!("../queries/rates.sql");
const KNOWN_SYMBOLS: &str = include_str!("../queries/known_symbols.sql");
const PRESENT_SYMBOLS: &str = include_str!("../queries/present_symbols.sql");
const DIVIDEND_FEEDS: &str = "select source, year from dividend_feeds where ended is null";
const POLICY: &str = include_str!("../queries/source_policy.sql");

/// Loads the security records of all sources.
pub async fn load_securities(client: &impl GenericClient) -> Result<Vec<Observation<Security>>, FactsError> {
    let mut securities = Vec::new();
    for row in client.query(SECURITIES, &[]).await? {
        securities.extend(read_records(&row)?);
    }
    Ok(securities)
}

/// Loads the newest session in the session records of all sources; `None` without session records. Days that only have
/// bars are not considered.
pub async fn load_newest_session(client: &impl GenericClient) -> Result<Option<NaiveDate>, FactsError> {
    let mut newest = None;
    for row in client.query(SESSIONS, &[]).await? {
        newest = newest.max(newest_session(&read_records(&row)?));
    }
    Ok(newest)
}

/// Loads the exchange rates of some keys ([`market::event::FxRate::symbol`]), or of all. For each pair and day, the rate of the source
/// that the policy prefers.
pub async fn load_rates(
    client: &impl GenericClient,
    keys: Option<&[&str]>,
    policy: &SourcePolicy,
) -> Result<ExchangeRates, FactsError> {
    let mut observations = Vec::new();
    for row in client.query(RATES, &[&keys]).await? {
        observations.extend(read_records(&row)?);
    }
    Ok(ExchangeRates::new(&observations, policy))
}

/// Unpacks the records of a row of the table `records`.
pub fn unpack_records(row: &Row) -> Result<RecordSet, FactsError> {
    let records = RecordSet::unpack(row.try_get("kind")?, row.try_get("packed")?);
    records.map_err(damaged_records(row.try_get("symbol")?))
}

/// Reads the observations of a row of the table `records`.
fn read_records<T: RecordLayout>(row: &Row) -> Result<Vec<Observation<T>>, FactsError> {
    let said = records::read(row.try_get("source")?, row.try_get("packed")?);
    said.map_err(damaged_records(row.try_get("symbol")?))
}

/// Converts an error in the stored records of a symbol.
pub(crate) fn damaged_records(symbol: &str) -> impl Fn(PackedRecordsError) -> FactsError {
    move |source| FactsError::Packed { symbol: symbol.to_owned(), source }
}

/// Converts an error in the stored bars of a symbol.
pub(crate) fn damaged_bars(symbol: &str) -> impl Fn(PackedBarsError) -> FactsError {
    move |source| FactsError::Bars { symbol: symbol.to_owned(), source }
}

/// Loads all symbols that have facts.
pub async fn load_known_symbols(client: &impl GenericClient) -> Result<BTreeSet<Symbol>, FactsError> {
    read_symbols(&client.query(KNOWN_SYMBOLS, &[]).await?)
}

/// Finds those of `symbols` that have facts.
pub async fn load_present_symbols(
    client: &impl GenericClient,
    symbols: &[&str],
) -> Result<BTreeSet<Symbol>, FactsError> {
    read_symbols(&client.query(PRESENT_SYMBOLS, &[&symbols]).await?)
}

fn read_symbols(rows: &[Row]) -> Result<BTreeSet<Symbol>, FactsError> {
    rows.iter().map(|row| Ok(row.try_get::<_, &str>(0)?.parse().ok())).filter_map(Result::transpose).collect()
}

/// Loads the years in which each source has dividends.
pub async fn load_dividend_feeds(client: &impl GenericClient) -> Result<DividendFeeds, FactsError> {
    let rows = client.query(DIVIDEND_FEEDS, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get("source")?, row.try_get("year")?))).collect()
}

/// Loads the source policy.
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

/// Reads the columns of packed bars from a row of table `bars`.
pub fn read_packed_bars(row: &Row) -> Result<PackedBars, tokio_postgres::Error> {
    read_bars_with_days(row, "days")
}

/// As [`read_packed_bars`]; the column with the name `days` has the days.
pub(crate) fn read_bars_with_days(row: &Row, days: &str) -> Result<PackedBars, tokio_postgres::Error> {
    Ok(PackedBars {
        days: row.try_get(days)?,
        close: row.try_get("close")?,
        range: row.try_get("range")?,
        volume: row.try_get("volume")?,
        extra: row.try_get("extra")?,
        versions: row.try_get("versions")?,
    })
}

const FILES: &str = "select frame, file from {frames} where frame = any($1) and file <> ''";

/// Adds the name of the feed file to each observation that an explanation lists. `frames` is the fact set's table of
/// record batches.
///
/// # Errors
/// Postgres rejects the query or is unreachable.
pub async fn name_files(
    client: &impl GenericClient,
    frames: &str,
    explanation: &mut Explanation,
) -> Result<(), tokio_postgres::Error> {
    let used = explanation.metrics.iter_mut().flat_map(|metric| &mut metric.observations);
    let mut observations: Vec<&mut ExplainedObservation> = used.chain(&mut explanation.unused).collect();
    let ids: BTreeSet<[u8; 16]> = observations.iter().filter_map(|observation| observation.frame).collect();
    let ids: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
    let mut files: HashMap<Vec<u8>, String> = HashMap::new();
    for row in client.query(&FILES.replace("{frames}", frames), &[&ids]).await? {
        files.insert(row.try_get("frame")?, row.try_get("file")?);
    }
    for observation in &mut observations {
        observation.file = observation.frame.and_then(|frame| files.get(&frame[..]).cloned());
    }
    Ok(())
}
