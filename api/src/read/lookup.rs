//! Look-ups in the pinned generation. One statement returns version and rows, so they come from one snapshot.

use std::collections::HashMap;

use deadpool_postgres::{Object, Transaction};
use store::FromRow;
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row};

use super::ReadError;
use super::projection::{Generation, Version};
use crate::parameters::{PathSymbol, SymbolList};

const RESOLVE: &str = include_str!("../../queries/stocks/resolve.sql");
const VERSION: &str = include_str!("../../queries/projection/version.sql");

/// Rows of one security.
#[derive(Debug)]
pub(crate) struct Found<T> {
    pub(crate) version: Version,
    pub(crate) rows: Vec<T>,
    /// Number of quarantined rows, which contradict their neighbours.
    pub(crate) held: i64,
    /// Synchronization point for a later `updated_since`.
    pub(crate) sync_from: Option<String>,
}

/// Runs a statement of the generation, prepared once per connection.
pub(crate) async fn query(
    generation: &Generation,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, ReadError> {
    let client = generation.client().await?;
    let statement = client.prepare_cached(statement).await?;
    Ok(client.query(&statement, parameters).await?)
}

/// The single row of a symbol, converted to its struct.
pub(crate) async fn one<T: FromRow>(
    generation: &Generation,
    statement: &'static str,
    symbol: &PathSymbol,
) -> Result<(Version, T), ReadError> {
    let (version, row) = row(generation, statement, symbol).await?;
    Ok((version, T::from_row(&row)?))
}

/// The single row of a symbol, looked up in a batch (see [`super::batch`]). The statement selects the version, and the
/// row or nulls.
pub(crate) async fn row(
    generation: &Generation,
    statement: &'static str,
    symbol: &PathSymbol,
) -> Result<(Version, Row), ReadError> {
    let candidates = symbol.candidates();
    if candidates.is_empty() {
        return Err(unknown(symbol));
    }
    let row = generation.one(statement, candidates).await?.ok_or_else(|| unversioned(generation))?;
    match row.try_get::<_, Option<&str>>("symbol")? {
        Some(_) => Ok((Version::of(&row)?, row)),
        None => Err(unknown(symbol)),
    }
}

/// Rows of a symbol, possibly none. The statement also selects `canonical` (null for an unknown symbol), `held` (the
/// number of quarantined rows) and `sync_from`.
pub(crate) async fn many<T: FromRow>(
    generation: &Generation,
    statement: &str,
    symbol: &PathSymbol,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Found<T>, ReadError> {
    let candidates = symbol.candidates();
    let mut all: Vec<&(dyn ToSql + Sync)> = vec![&candidates];
    all.extend(parameters);
    let rows = query(generation, statement, &all).await?;
    let first = rows.first().ok_or_else(|| unversioned(generation))?;
    first.try_get::<_, Option<&str>>("canonical")?.ok_or_else(|| unknown(symbol))?;
    let sync_from = first.try_get("sync_from")?;
    Ok(Found { version: Version::of(first)?, rows: present(&rows)?, held: held(&rows)?, sync_from })
}

/// Number of quarantined rows, from the column `held` of any row.
pub(crate) fn held(rows: &[Row]) -> Result<i64, ReadError> {
    Ok(rows.first().map_or(Ok(0), |row| row.try_get("held"))?)
}

/// Fails with [`unknown`] for an unknown symbol.
pub(crate) async fn known(generation: &Generation, symbol: &PathSymbol) -> Result<(), ReadError> {
    let found = resolve(generation, &symbol.listed()).await?;
    if found.iter().any(Option::is_some) { Ok(()) } else { Err(unknown(symbol)) }
}

/// Error of an unknown symbol.
pub(crate) fn unknown(symbol: &PathSymbol) -> ReadError {
    ReadError::UnknownSymbol(symbol.text.clone())
}

/// Error of a generation without a version row.
pub(crate) fn unversioned(generation: &Generation) -> ReadError {
    ReadError::Unversioned(generation.id)
}

/// Canonical symbols of a list, by position; `None` for unknown symbols.
pub(crate) async fn resolve(
    generation: &Generation,
    symbols: &SymbolList,
) -> Result<Vec<Option<String>>, ReadError> {
    let (places, candidates) = symbols.columns();
    let mut resolved = vec![None; symbols.0.len()];
    for row in query(generation, RESOLVE, &[&places, &candidates]).await? {
        let place: i32 = row.try_get("ordinal")?;
        if let Some(slot) = usize::try_from(place).ok().and_then(|place| resolved.get_mut(place)) {
            *slot = Some(row.try_get("canonical")?);
        }
    }
    Ok(resolved)
}

/// Resolved list of symbols.
#[derive(Debug, Default)]
pub(crate) struct Named {
    /// Distinct canonical symbols; `None` without a list.
    pub(crate) known: Option<Vec<String>>,
    /// Unknown symbols, as written.
    pub(crate) missing: Vec<String>,
}

/// Resolves a list of symbols.
pub(crate) async fn named(generation: &Generation, symbols: Option<&SymbolList>) -> Result<Named, ReadError> {
    let Some(symbols) = symbols else { return Ok(Named::default()) };
    let resolved = resolve(generation, symbols).await?;
    let unknown = symbols.0.iter().zip(&resolved).filter(|(_, found)| found.is_none());
    let missing = unknown.map(|(symbol, _)| symbol.text.clone()).collect();
    let mut known: Vec<String> = Vec::new();
    for symbol in resolved.into_iter().flatten() {
        if !known.contains(&symbol) {
            known.push(symbol);
        }
    }
    Ok(Named { known: Some(known), missing })
}

/// Rows with a symbol. A version without rows is one row of nulls.
pub(crate) fn present<T: FromRow>(rows: &[Row]) -> Result<Vec<T>, ReadError> {
    let present = rows.iter().filter(|row| matches!(row.try_get::<_, Option<&str>>("symbol"), Ok(Some(_))));
    Ok(present.map(T::from_row).collect::<Result<_, _>>()?)
}

/// Starts a read-only transaction whose statements all see the same version.
pub(crate) async fn snapshot(client: &mut Object) -> Result<Transaction<'_>, ReadError> {
    let builder = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    Ok(builder.start().await?)
}

/// Data version of a transaction.
pub(crate) async fn version(
    generation: &Generation,
    transaction: &Transaction<'_>,
) -> Result<Version, ReadError> {
    let statement = transaction.prepare_cached(VERSION).await?;
    let row = transaction.query_opt(&statement, &[]).await?;
    Ok(Version::of(&row.ok_or_else(|| unversioned(generation))?)?)
}

/// Rows of canonical symbols, by symbol.
pub(crate) async fn table<T: FromRow>(
    generation: &Generation,
    transaction: &Transaction<'_>,
    statement: &str,
    symbols: &[String],
    symbol: fn(&T) -> &str,
) -> Result<(Version, HashMap<String, T>), ReadError> {
    let statement = transaction.prepare_cached(statement).await?;
    let rows = transaction.query(&statement, &[&symbols]).await?;
    let first = rows.first().ok_or_else(|| unversioned(generation))?;
    let version = Version::of(first)?;
    let rows: Vec<T> = present(&rows)?;
    Ok((version, rows.into_iter().map(|row| (symbol(&row).to_owned(), row)).collect()))
}
