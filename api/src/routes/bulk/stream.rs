//! Bulk responses: rows of many symbols in request order, streamed in batches. The end of the response lists the
//! missing symbols.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use utoipa::ToSchema;

use crate::answer::{BodyWriter, FinishedBody, ResponseWriter};
use crate::error::ApiError;
use crate::parameters::{Output, ResponseFormat, SymbolList};
use crate::read::lookup::{self, PastVersion};
use crate::read::memory_tables::{LeftOut, RestrictedSecurities};
use crate::read::past_securities::PastSecurity;
use crate::read::{DataVersion, QueryError, ServedGeneration};
use crate::render::envelope::Depth;
use crate::render::rows::{self, RenderError};
use crate::routes::past::security::derive_past_securities;

/// Maximum number of symbols per request. A request counts as one call for any number of symbols.
pub(super) const MAX_SYMBOLS: usize = 1_000;
/// Number of symbols per statement.
const BATCH: usize = 50;

/// Rows of many symbols, in request order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Bulk<T> {
    /// One row per symbol, in request order.
    data: Vec<T>,
    /// Data version, counts and missing symbols.
    meta: BulkMeta,
}

/// Data version, counts and missing symbols of a bulk response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkMeta {
    /// Number of rows.
    count: usize,
    /// Requested symbols without a row.
    missing: Vec<String>,
    /// As-of date of the market: the newest session in the data.
    as_of: Option<NaiveDate>,
    /// Version of the data, for example g3.184467. The parameter `data_version` accepts this value.
    data_version: String,
    /// Instant in the parameter `known_at`. Omitted if the request does not have this parameter.
    #[serde(skip_serializing_if = "Option::is_none")]
    known_at: Option<DateTime<Utc>>,
    /// Requested symbols without a row, each with a code and a message.
    errors: Vec<BulkError>,
    /// Counts of symbols.
    summary: BulkSummary,
    /// Start of the returned history, set by the tier. Omitted if the request names a start date, and for responses
    /// without a history.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<Depth>,
    /// Requested securities that rest on a source which must not be redistributed. Omitted if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOut>,
}

/// A requested symbol without a row.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkError {
    /// Symbol as the client wrote it.
    symbol: String,
    /// Always NOT_FOUND.
    code: &'static str,
    /// Human-readable message.
    error: String,
}

/// Counts of symbols.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Summary)]
pub(crate) struct BulkSummary {
    /// Number of distinct requested symbols.
    requested: usize,
    /// Number of symbols with a row.
    returned: usize,
    /// Number of symbols without a row.
    failed: usize,
    /// Number of securities that `meta.left_out` lists. Omitted if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

impl BulkMeta {
    /// Metadata of a response with `returned` rows. `missing` has the indexes of the missing symbols in the request.
    fn new(
        asked: &BulkQuery<'_>,
        version: &DataVersion,
        returned: usize,
        mut missing: Vec<usize>,
        left_out: BTreeSet<String>,
    ) -> Self {
        missing.sort_unstable();
        let left_out = asked.restricted.describe(left_out);
        let left_out_count = left_out.as_ref().map(|left_out| left_out.symbols.len());
        let error = |place: usize| {
            let symbol = asked.symbols.0[place].text.clone();
            let error = format!("No stock with symbol {symbol}");
            BulkError { symbol, code: "NOT_FOUND", error }
        };
        let errors: Vec<BulkError> = missing.into_iter().map(error).collect();
        let failed = errors.len();
        Self {
            count: returned,
            missing: errors.iter().map(|error| error.symbol.clone()).collect(),
            as_of: version.as_of,
            data_version: version.to_string(),
            known_at: asked.known_at,
            errors,
            summary: BulkSummary {
                requested: returned + failed + left_out_count.unwrap_or_default(),
                returned,
                failed,
                left_out: left_out_count,
            },
            depth: asked.depth,
            left_out,
        }
    }
}

/// Function that renders rows in the requested format.
pub(super) type RowRenderer<T> = fn(&Output, &[T]) -> Result<Vec<u8>, RenderError>;

/// Inputs of a bulk response.
pub(super) struct BulkQuery<'a> {
    pub(super) symbols: &'a SymbolList,
    pub(super) output: &'a Output,
    pub(super) statement: &'a str,
    /// Parameters of the statement, except the first parameter, which contains the symbols.
    pub(super) parameters: Vec<&'a (dyn ToSql + Sync)>,
    pub(super) depth: Option<Depth>,
    /// Version that the request names, current or earlier; `None` if the request names no version.
    pub(super) past: Option<Arc<PastVersion>>,
    /// Instant in the parameter `known_at`; `None` if absent.
    pub(super) known_at: Option<DateTime<Utc>>,
    pub(super) restricted: Arc<RestrictedSecurities>,
}

/// Body of a response in progress.
struct BulkBody<'a, T> {
    asked: &'a BulkQuery<'a>,
    render: RowRenderer<T>,
    version: DataVersion,
    body: BodyWriter,
    /// Canonical symbols of the securities in earlier batches.
    seen: HashSet<String>,
    /// Indexes of the missing symbols in the request. A symbol is missing if the response has no row for it.
    missing: Vec<usize>,
    /// Canonical symbols of the securities that the response leaves out.
    left_out: BTreeSet<String>,
    returned: usize,
}

impl<'a, T: Serialize> BulkBody<'a, T> {
    fn begin(
        asked: &'a BulkQuery<'a>,
        render: RowRenderer<T>,
        outlet: ResponseWriter,
        version: DataVersion,
    ) -> Result<Self, ApiError> {
        let mut body = outlet.begin(version);
        body.write(rows::list_opening(asked.output)?)?;
        let (seen, left_out) = Default::default();
        Ok(Self { asked, render, version, body, seen, missing: vec![], left_out, returned: 0 })
    }

    /// Writes the rows of the requested symbols from the index `first` on. `canonical` has the canonical symbol of each
    /// of them; `None` for an unknown symbol. `rows` has the rows by canonical symbol.
    fn write_batch(
        &mut self,
        first: usize,
        canonical: Vec<Option<String>>,
        mut rows: HashMap<String, T>,
    ) -> Result<(), ApiError> {
        let mut ordered = Vec::with_capacity(canonical.len());
        for (canonical, place) in canonical.into_iter().zip(first..) {
            if let Some(symbol) = canonical.as_ref().filter(|symbol| self.asked.restricted.contains(symbol)) {
                self.left_out.insert(symbol.clone());
                continue;
            }
            match canonical.as_ref().and_then(|symbol| rows.remove(symbol)) {
                Some(row) => ordered.push(row),
                // A security that the request lists in two spellings is returned once.
                None if canonical.as_ref().is_some_and(|symbol| self.seen.contains(symbol)) => {}
                None => self.missing.push(place),
            }
            self.seen.extend(canonical);
        }
        let mut body = (self.render)(self.asked.output, &ordered)?;
        if self.returned > 0 && !ordered.is_empty() && self.asked.output.format == ResponseFormat::Json {
            body.insert(0, b',');
        }
        self.returned += ordered.len();
        Ok(self.body.write(body)?)
    }

    fn finish(mut self) -> Result<FinishedBody, ApiError> {
        let meta = BulkMeta::new(self.asked, &self.version, self.returned, self.missing, self.left_out);
        self.body.write(rows::list_closing(self.asked.output, &meta)?)?;
        Ok(self.body.finish(None)?)
    }
}

/// Streams the response.
///
/// - If the current version is requested, all rows come from one snapshot of the database. `by_symbol` converts the
///   database rows of a batch to one row per symbol.
/// - If an earlier version is requested, the securities are derived from the facts (the tables with the loaded rows).
///   `of_past` converts a derived security to a row.
pub(super) async fn stream_bulk<T: Serialize>(
    generation: &ServedGeneration,
    outlet: ResponseWriter,
    asked: BulkQuery<'_>,
    by_symbol: impl Fn(&[&str], &[Row]) -> Result<HashMap<String, T>, QueryError>,
    of_past: impl Fn(&PastSecurity) -> T,
    render: RowRenderer<T>,
) -> Result<FinishedBody, ApiError> {
    let resolved = lookup::resolve_symbols(generation, asked.symbols).await?;
    let mut client = generation.client().await?;
    let transaction = lookup::begin_snapshot(&mut client).await?;
    let statement = transaction.prepare_cached(asked.statement).await?;
    let version = lookup::read_version(generation, &transaction).await?;
    if let Some(past) = asked.past.as_ref().filter(|past| !past.is_served_as(&version)) {
        drop(transaction);
        drop(client);
        return stream_past(generation, outlet, &asked, past, of_past, render).await;
    }
    let mut body = BulkBody::begin(&asked, render, outlet, version)?;
    for (batch, first) in resolved.chunks(BATCH).zip((0..).step_by(BATCH)) {
        let is_new = |symbol: &&str| !body.seen.contains(*symbol);
        let symbols: BTreeSet<&str> = batch.iter().flatten().map(String::as_str).filter(is_new).collect();
        let symbols = Vec::from_iter(symbols);
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&symbols];
        parameters.extend(&asked.parameters);
        let rows = transaction.query(&statement, &parameters).await?;
        body.write_batch(first, batch.to_vec(), by_symbol(&symbols, &rows)?)?;
    }
    body.finish()
}

/// Streams the response for the earlier data version `past`. The database does not store the rows of earlier versions,
/// so the rows are derived from the facts.
async fn stream_past<T: Serialize>(
    generation: &ServedGeneration,
    outlet: ResponseWriter,
    asked: &BulkQuery<'_>,
    past: &Arc<PastVersion>,
    of_past: impl Fn(&PastSecurity) -> T,
    render: RowRenderer<T>,
) -> Result<FinishedBody, ApiError> {
    past.require_reproducible()?;
    let mut body = BulkBody::begin(asked, render, outlet, past.version())?;
    for (batch, first) in asked.symbols.0.chunks(BATCH).zip((0..).step_by(BATCH)) {
        let spellings = batch.iter().map(|symbol| symbol.candidates.clone()).collect();
        let derived = derive_past_securities(generation, past, spellings, None).await?;
        let symbol = |security: &PastSecurity| security.symbol().to_owned();
        let canonical = derived.iter().map(|security| security.as_ref().map(symbol)).collect();
        let is_new = |security: &&PastSecurity| !body.seen.contains(security.symbol());
        let new = derived.iter().flatten().filter(is_new);
        let rows = new.map(|security| (symbol(security), of_past(security))).collect();
        body.write_batch(first, canonical, rows)?;
    }
    body.finish()
}
