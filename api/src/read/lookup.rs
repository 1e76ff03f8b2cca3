//! Look-ups in the generation that a request uses. Each statement selects rows together with their data version. The
//! rows and the version therefore come from the same snapshot.
//!
//! Look-up of a data version, current or earlier, with its rules and its source policy. The source policy is the order
//! of preference of the data sources.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;

use deadpool_postgres::{Object, Transaction};
use market::history::SourcePolicy;
use market::identity::is_plain_symbol;
use market::metrics::Rules;
use market::row::Listing;
use store::FromRow;
use store::rows::LISTINGS;
use store::versions::{CURRENT_VERSION, NAMED_VERSION, ServedVersion, VERSION_AT};
use tokio_postgres::types::ToSql;
use tokio_postgres::{IsolationLevel, Row};

use super::{AmbiguousSymbol, DataVersion, QueryError, ServedGeneration};
use crate::parameters::{Knowledge, RequestedSymbol, SymbolList, to_columns};

const RESOLVE: &str = include_str!("../../queries/stocks/resolve.sql");
const SPELLINGS: &str = include_str!("../../queries/stocks/spellings.sql");
const VERSION: &str = include_str!("../../queries/projection/version.sql");

/// Rows of one symbol, with their data version.
#[derive(Debug)]
pub(crate) struct SymbolRows<T> {
    pub(crate) version: DataVersion,
    pub(crate) rows: Vec<T>,
    /// Number of quarantined rows of the symbol.
    pub(crate) quarantined_count: i64,
    /// Value for `updated_since` in a later request. `None` if the endpoint has no `updated_since`, or while the served
    /// generation changes.
    pub(crate) sync_from: Option<String>,
}

/// Runs a statement in the generation. Each connection prepares the statement once.
pub(crate) async fn run_query(
    generation: &ServedGeneration,
    statement: &str,
    parameters: &[&(dyn ToSql + Sync)],
) -> Result<Vec<Row>, QueryError> {
    let client = generation.client().await?;
    let statement = client.prepare_cached(statement).await?;
    Ok(client.query(&statement, parameters).await?)
}

/// Finds the single row of a symbol. One statement serves the look-ups of several requests (see
/// [`super::lookup_batch`]). For an unknown symbol, the statement must return a row that contains only the version.
pub(crate) async fn find_one<T: FromRow>(
    generation: &ServedGeneration,
    statement: &'static str,
    symbol: &RequestedSymbol,
) -> Result<(DataVersion, T), QueryError> {
    if symbol.candidates.is_empty() {
        return Err(unknown_symbol_error(symbol));
    }
    let candidates = symbol.candidates.clone();
    let row =
        generation.look_up_row(statement, candidates).await?.ok_or(QueryError::Unversioned(generation.id))?;
    match row.try_get::<_, Option<&str>>("symbol")? {
        Some(_) => Ok((DataVersion::from_row(&row)?, T::from_row(&row)?)),
        None => Err(unknown_symbol_error(symbol)),
    }
}

/// Finds the rows of a symbol. Fails for an unknown symbol. The statement must also select `canonical` (null if
/// unknown), `held` (quarantined rows) and `sync_from`.
pub(crate) async fn find_rows<T: FromRow>(
    generation: &ServedGeneration,
    statement: &str,
    symbol: &RequestedSymbol,
) -> Result<SymbolRows<T>, QueryError> {
    let rows = run_query(generation, statement, &[&symbol.candidates]).await?;
    let first = first_row(generation, &rows)?;
    first.try_get::<_, Option<&str>>("canonical")?.ok_or_else(|| unknown_symbol_error(symbol))?;
    Ok(SymbolRows {
        version: DataVersion::from_row(first)?,
        rows: rows_with_symbol(&rows)?,
        quarantined_count: first.try_get("held")?,
        sync_from: first.try_get("sync_from")?,
    })
}

/// Error for an unknown symbol.
pub(crate) fn unknown_symbol_error(symbol: &RequestedSymbol) -> QueryError {
    QueryError::UnknownSymbol(symbol.clone())
}

/// First row of a result. Every statement returns at least one row, which contains the data version.
pub(crate) fn first_row<'a>(generation: &ServedGeneration, rows: &'a [Row]) -> Result<&'a Row, QueryError> {
    rows.first().ok_or(QueryError::Unversioned(generation.id))
}

/// Finds the canonical symbol for each symbol of a list, in list order; `None` for an unknown symbol.
pub(crate) async fn resolve_symbols(
    generation: &ServedGeneration,
    symbols: &SymbolList,
) -> Result<Vec<Option<String>>, QueryError> {
    let resolved = find_symbols(generation, symbols).await?;
    let unknown = symbols.0.iter().zip(&resolved).filter(|(_, found)| found.is_none());
    require_unshared(generation, unknown.map(|(symbol, _)| symbol)).await?;
    Ok(resolved)
}

/// Finds the canonical symbols like [`resolve_symbols`]. An address of several listings is `None`.
pub(crate) async fn find_symbols(
    generation: &ServedGeneration,
    symbols: &SymbolList,
) -> Result<Vec<Option<String>>, QueryError> {
    let (places, candidates) = symbols.to_columns();
    let mut resolved = vec![None; symbols.0.len()];
    for row in run_query(generation, RESOLVE, &[&places, &candidates]).await? {
        let place: i32 = row.try_get("ordinal")?;
        if let Some(slot) = usize::try_from(place).ok().and_then(|place| resolved.get_mut(place)) {
            *slot = Some(row.try_get("canonical")?);
        }
    }
    Ok(resolved)
}

/// Fails if one of the symbols is an address of several listings. The symbols must be those that name no security.
pub(crate) async fn require_unshared<'a>(
    generation: &ServedGeneration,
    unknown: impl IntoIterator<Item = &'a RequestedSymbol>,
) -> Result<(), QueryError> {
    match find_shared(generation, unknown).await?.into_iter().next() {
        Some(ambiguous) => Err(QueryError::AmbiguousSymbol(ambiguous.into())),
        None => Ok(()),
    }
}

/// Finds the symbols that are addresses of several listings. The symbols must be those that name no security.
pub(crate) async fn find_shared<'a>(
    generation: &ServedGeneration,
    unknown: impl IntoIterator<Item = &'a RequestedSymbol>,
) -> Result<Vec<AmbiguousSymbol>, QueryError> {
    let unknown: Vec<&RequestedSymbol> =
        unknown.into_iter().filter(|symbol| symbol.may_be_shared()).collect();
    if unknown.is_empty() {
        return Ok(Vec::new());
    }
    let (places, keys) = to_columns(unknown.iter().map(|symbol| &symbol.candidates));
    let mut found: BTreeMap<usize, Vec<Listing>> = BTreeMap::new();
    for row in run_query(generation, LISTINGS, &[&places, &keys]).await? {
        let place: i32 = row.try_get("ordinal")?;
        if let Ok(place) = usize::try_from(place) {
            found.entry(place).or_default().push(Listing::from_row(&row)?);
        }
    }
    let shared = found.into_iter().filter_map(|(place, listings)| {
        unknown.get(place).map(|symbol| AmbiguousSymbol { symbol: (*symbol).clone(), listings })
    });
    Ok(shared.collect())
}

/// Replaces identifiers and markets by the symbols of the security that has them now, because earlier versions are
/// looked up by symbol. `addresses` has the keys of each look-up.
pub(crate) async fn to_plain_symbols(
    generation: &ServedGeneration,
    mut addresses: Vec<Vec<String>>,
) -> Result<Vec<Vec<String>>, QueryError> {
    let is_plain = |keys: &Vec<String>| keys.iter().all(|key| is_plain_symbol(key));
    if addresses.iter().all(is_plain) {
        return Ok(addresses);
    }
    let none = Vec::new();
    let (places, keys) = to_columns(addresses.iter().map(|keys| if is_plain(keys) { &none } else { keys }));
    let rows = run_query(generation, SPELLINGS, &[&places, &keys]).await?;
    addresses.iter_mut().filter(|keys| !is_plain(keys)).for_each(Vec::clear);
    for row in rows {
        let place: i32 = row.try_get("ordinal")?;
        if let Some(keys) = usize::try_from(place).ok().and_then(|place| addresses.get_mut(place)) {
            keys.push(row.try_get("symbol")?);
        }
    }
    Ok(addresses)
}

/// Result of the look-up of a symbol list.
#[derive(Debug, Default)]
pub(crate) struct ResolvedSymbols {
    /// Known symbols of the list, as canonical symbols and without duplicates; `None` if the request has no list.
    pub(crate) known: Option<Vec<String>>,
    /// Symbols without a security, as the client wrote them.
    pub(crate) missing: Vec<String>,
}

/// Finds the canonical symbols of an optional list. Also returns the unknown symbols of the list.
pub(crate) async fn resolve_symbol_list(
    generation: &ServedGeneration,
    symbols: Option<&SymbolList>,
) -> Result<ResolvedSymbols, QueryError> {
    let Some(symbols) = symbols else { return Ok(ResolvedSymbols::default()) };
    let resolved = resolve_symbols(generation, symbols).await?;
    let unknown = symbols.0.iter().zip(&resolved).filter(|(_, found)| found.is_none());
    let missing = unknown.map(|(symbol, _)| symbol.text.clone()).collect();
    let mut known: Vec<String> = Vec::new();
    for symbol in resolved.into_iter().flatten() {
        if !known.contains(&symbol) {
            known.push(symbol);
        }
    }
    Ok(ResolvedSymbols { known: Some(known), missing })
}

/// Rows in which the text column `column` is not null. A statement that finds nothing returns one row with only the
/// data version. The function leaves out this row.
pub(crate) fn rows_with<'a>(rows: &'a [Row], column: &'a str) -> impl Iterator<Item = &'a Row> {
    rows.iter().filter(move |row| matches!(row.try_get::<_, Option<&str>>(column), Ok(Some(_))))
}

/// Parses the rows that have a symbol.
pub(crate) fn rows_with_symbol<T: FromRow>(rows: &[Row]) -> Result<Vec<T>, QueryError> {
    Ok(rows_with(rows, "symbol").map(T::from_row).collect::<Result<_, _>>()?)
}

/// Parses the rows that have a symbol. The keys of the map are the symbols.
pub(crate) fn rows_by_symbol<T: FromRow>(rows: &[Row]) -> Result<HashMap<String, T>, QueryError> {
    rows_with(rows, "symbol").map(|row| Ok((row.try_get("symbol")?, T::from_row(row)?))).collect()
}

/// Starts a read-only transaction. All statements of the transaction see the same data version.
pub(crate) async fn begin_snapshot(client: &mut Object) -> Result<Transaction<'_>, QueryError> {
    let builder = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    Ok(builder.start().await?)
}

/// Reads the data version that a transaction sees.
pub(crate) async fn read_version(
    generation: &ServedGeneration,
    transaction: &Transaction<'_>,
) -> Result<DataVersion, QueryError> {
    let statement = transaction.prepare_cached(VERSION).await?;
    let row = transaction.query_opt(&statement, &[]).await?;
    Ok(DataVersion::from_row(&row.ok_or(QueryError::Unversioned(generation.id))?)?)
}

/// Finds the rows of several securities. `symbols` has their canonical symbols, which are also the keys of the returned
/// map.
pub(crate) async fn find_by_symbol<T: FromRow>(
    generation: &ServedGeneration,
    transaction: &Transaction<'_>,
    statement: &str,
    symbols: &[String],
) -> Result<(DataVersion, HashMap<String, T>), QueryError> {
    let statement = transaction.prepare_cached(statement).await?;
    let rows = transaction.query(&statement, &[&symbols]).await?;
    Ok((DataVersion::from_row(first_row(generation, &rows)?)?, rows_by_symbol(&rows)?))
}

/// Data version, current or earlier, with the source policy and the rules for deriving its data.
#[derive(Debug)]
pub(crate) struct PastVersion(ServedVersion);

impl Deref for PastVersion {
    type Target = ServedVersion;

    fn deref(&self) -> &ServedVersion {
        &self.0
    }
}

/// Finds the data version that the generation serves now.
pub(crate) async fn find_current_version(generation: &ServedGeneration) -> Result<PastVersion, QueryError> {
    let rows = run_query(generation, CURRENT_VERSION, &[]).await?;
    let row = rows.first().ok_or(QueryError::Unversioned(generation.id))?;
    Ok(PastVersion(ServedVersion::from_row(row)?))
}

/// Finds the version that a request asks for.
pub(crate) async fn find_version(
    generation: &ServedGeneration,
    knowledge: &Knowledge,
) -> Result<PastVersion, QueryError> {
    let rows = match knowledge {
        Knowledge::Version(name) => {
            let name: [&(dyn ToSql + Sync); 3] = [&name.generation, &name.sequence, &name.position];
            run_query(generation, NAMED_VERSION, &name).await?
        }
        Knowledge::At(instant) => run_query(generation, VERSION_AT, &[instant]).await?,
    };
    match rows.first() {
        Some(row) => Ok(PastVersion(ServedVersion::from_row(row)?)),
        None => Err(match knowledge {
            Knowledge::Version(_) => QueryError::VersionNotServed,
            Knowledge::At(instant) => QueryError::NothingKnown(*instant),
        }),
    }
}

impl PastVersion {
    /// This version in the form that is used in responses.
    pub(crate) fn version(&self) -> DataVersion {
        let ServedVersion { generation, sequence, as_of, position, is_repeated, .. } = self.0;
        DataVersion { generation, sequence, as_of, position, is_repeated }
    }

    /// True if the served tables contain this version. `served` is the version of the served tables.
    pub(crate) fn is_served_as(&self, served: &DataVersion) -> bool {
        self.is_current && self.generation == served.generation && self.position == served.position
    }

    /// Source policy and rules for deriving the data of this version.
    ///
    /// # Errors
    /// [`QueryError::VersionGone`] if this program cannot derive the version.
    pub(crate) fn inputs(&self) -> Result<&(SourcePolicy, Rules), QueryError> {
        if !self.is_current {
            self.require_reproducible()?;
        }
        self.0.inputs.as_ref().ok_or_else(|| self.gone_error())
    }

    /// Fails if this program cannot derive the version again. The rules may be of another program version, the stored
    /// inputs unreadable, or the facts deleted.
    pub(crate) fn require_reproducible(&self) -> Result<(), QueryError> {
        let is_reproducible = self.derivable().is_some() && self.has_facts;
        if is_reproducible { Ok(()) } else { Err(self.gone_error()) }
    }

    fn gone_error(&self) -> QueryError {
        QueryError::VersionGone {
            version: self.version().to_string(),
            method: self.method_version.clone(),
            program: self.program_version.clone(),
        }
    }
}
