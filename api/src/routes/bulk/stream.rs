//! Bulk responses: rows of many symbols in request order, streamed in batches. The end of the response lists the
//! missing symbols.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;
use utoipa::ToSchema;

use crate::answer::{FinishedBody, ResponseWriter};
use crate::error::ApiError;
use crate::parameters::{Output, ResponseFormat, SymbolList};
use crate::read::past_securities::{PastSecurity, PriceColumns};
use crate::read::past_version::PastVersion;
use crate::read::{DataVersion, QueryError, ServedGeneration, lookup};
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
}

/// Progress of a bulk response: the securities to return, the missing symbols and the number of returned rows.
struct BulkProgress<'a> {
    output: &'a Output,
    /// Securities to return, without duplicates and in request order. An entry has two parts: the index of the symbol
    /// in the request, and the canonical symbol of the security.
    known: Vec<(usize, &'a str)>,
    /// Indexes of the missing symbols in the request. A symbol is missing if the response has no row for it.
    missing: Vec<usize>,
    returned: usize,
}

impl<'a> BulkProgress<'a> {
    fn new(output: &'a Output, resolved: &'a [Option<String>]) -> Self {
        let (mut seen, mut known, mut missing) = (HashSet::new(), Vec::new(), Vec::new());
        for (place, canonical) in resolved.iter().enumerate() {
            match canonical {
                Some(canonical) if seen.insert(canonical) => known.push((place, canonical.as_str())),
                // A security that the request lists in two spellings is returned once.
                Some(_) => {}
                None => missing.push(place),
            }
        }
        Self { output, known, missing, returned: 0 }
    }

    /// Renders the rows of a batch, in the order of the batch. If `rows` has no row for a symbol of the batch, the
    /// index of the symbol is added to `missing`.
    fn render_batch<T: Serialize>(
        &mut self,
        batch: &[(usize, &str)],
        mut rows: HashMap<String, T>,
        render: RowRenderer<T>,
    ) -> Result<Vec<u8>, RenderError> {
        let mut ordered = Vec::with_capacity(batch.len());
        for (place, symbol) in batch {
            match rows.remove(*symbol) {
                Some(row) => ordered.push(row),
                None => self.missing.push(*place),
            }
        }
        self.render_rows(&ordered, render)
    }

    /// Renders rows. If the response already has rows, the JSON text starts with a comma.
    fn render_rows<T: Serialize>(
        &mut self,
        ordered: &[T],
        render: RowRenderer<T>,
    ) -> Result<Vec<u8>, RenderError> {
        let mut body = render(self.output, ordered)?;
        if self.returned > 0 && !ordered.is_empty() && self.output.format == ResponseFormat::Json {
            body.insert(0, b',');
        }
        self.returned += ordered.len();
        Ok(body)
    }

    /// Metadata of the response. The caller must have rendered all rows.
    fn meta(mut self, asked: &BulkQuery<'_>, version: &DataVersion) -> BulkMeta {
        self.missing.sort_unstable();
        let error = |place: usize| {
            let symbol = asked.symbols.0[place].text.clone();
            let error = format!("No stock with symbol {symbol}");
            BulkError { symbol, code: "NOT_FOUND", error }
        };
        let errors: Vec<BulkError> = self.missing.into_iter().map(error).collect();
        let missing = errors.iter().map(|error| error.symbol.clone()).collect();
        let (returned, failed) = (self.returned, errors.len());
        let summary = BulkSummary { requested: returned + failed, returned, failed };
        BulkMeta {
            count: returned,
            missing,
            as_of: version.as_of,
            data_version: version.to_string(),
            known_at: asked.known_at,
            errors,
            summary,
            depth: asked.depth,
        }
    }
}

/// Streams the response for the earlier data version `past`. The database does not store the rows of earlier versions,
/// so the rows are derived from the facts (the tables with the loaded rows).
async fn stream_past<T: Serialize>(
    generation: &ServedGeneration,
    outlet: ResponseWriter,
    asked: &BulkQuery<'_>,
    past: &Arc<PastVersion>,
    of_past: impl AsyncFn(Vec<Arc<PastSecurity>>) -> Result<Vec<T>, ApiError>,
    render: RowRenderer<T>,
) -> Result<FinishedBody, ApiError> {
    past.require_reproducible()?;
    let mut listed = BulkProgress::new(asked.output, &[]);
    let mut seen = HashSet::new();
    let mut body = outlet.begin(past.version());
    body.write(rows::list_opening(asked.output)?)?;
    for (batch, first) in asked.symbols.0.chunks(BATCH).zip((0..).step_by(BATCH)) {
        let spellings = batch.iter().map(|symbol| symbol.candidates.clone()).collect();
        let derived =
            derive_past_securities(generation, past, spellings, None, PriceColumns::ForFigures).await?;
        let mut securities = Vec::new();
        for (security, place) in derived.into_iter().zip(first..) {
            match security {
                // A security that the request lists in two spellings is returned once.
                Some(security) => {
                    securities.extend(seen.insert(security.symbol().to_owned()).then_some(security))
                }
                None => listed.missing.push(place),
            }
        }
        let rows = of_past(securities).await?;
        body.write(listed.render_rows(&rows, render)?)?;
    }
    let meta = listed.meta(asked, &past.version());
    body.write(rows::list_closing(asked.output, &meta)?)?;
    Ok(body.finish(None)?)
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
}

/// Streams the response.
///
/// - If the current version is requested, all rows come from one snapshot of the database. `by_symbol` converts the
///   database rows of a batch to one row per symbol.
/// - If an earlier version is requested, the securities are derived from the facts (the tables with the loaded rows).
///   `of_past` converts the derived securities of a batch to one row per security.
pub(super) async fn stream_bulk<T: Serialize>(
    generation: &ServedGeneration,
    outlet: ResponseWriter,
    asked: BulkQuery<'_>,
    by_symbol: impl Fn(&[&str], &[Row]) -> Result<HashMap<String, T>, QueryError>,
    of_past: impl AsyncFn(Vec<Arc<PastSecurity>>) -> Result<Vec<T>, ApiError>,
    render: RowRenderer<T>,
) -> Result<FinishedBody, ApiError> {
    let resolved = lookup::resolve_symbols(generation, asked.symbols).await?;
    let mut listed = BulkProgress::new(asked.output, &resolved);
    let mut client = generation.client().await?;
    let transaction = lookup::begin_snapshot(&mut client).await?;
    let statement = transaction.prepare_cached(asked.statement).await?;
    let version = lookup::read_version(generation, &transaction).await?;
    if let Some(past) = asked.past.as_ref().filter(|past| !past.is_served_as(&version)) {
        drop(transaction);
        drop(client);
        return stream_past(generation, outlet, &asked, past, of_past, render).await;
    }
    let mut body = outlet.begin(version);
    body.write(rows::list_opening(asked.output)?)?;
    let known = std::mem::take(&mut listed.known);
    for batch in known.chunks(BATCH) {
        let symbols: Vec<&str> = batch.iter().map(|(_, symbol)| *symbol).collect();
        let mut parameters: Vec<&(dyn ToSql + Sync)> = vec![&symbols];
        parameters.extend(&asked.parameters);
        let rows = transaction.query(&statement, &parameters).await?;
        body.write(listed.render_batch(batch, by_symbol(&symbols, &rows)?, render)?)?;
    }
    let meta = listed.meta(&asked, &version);
    body.write(rows::list_closing(asked.output, &meta)?)?;
    Ok(body.finish(None)?)
}
