//! Origin of the data: sources with their licences, quality by month, and published files.
//!
//! `GET /v1/files`: Parquet files of a published data version, with signed addresses (Professional).
//!
//! `GET /v1/quality`: quality of the sources by month. A month is measured once, and later corrections do not change it.
//!
//! `GET /v1/sources`: sources of the data with their licences, of all securities or of some.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use market::decimal::ExactDecimal;
use market::row::JsonColumn;
use serde::{Deserialize, Serialize};
use store::published_files::{FileStore, FileStoreError, PublishedVersion};
use store::versions::VersionName;
use store::{FromRow, sql_row};
use tokio::time::timeout;
use utoipa::ToSchema;

use super::endpoint;
use crate::answer::{Free, HandlerContext, Professional, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Direction, Output, Page, PageOptions, SortValue, Sortable, SymbolList, parameters};
use crate::read::lookup::{self, ResolvedSymbols};
use crate::read::{DataVersion, QueryError};
use crate::render::envelope::{List, Meta, Single};

const SOURCES: &str = include_str!("../../queries/sources/list.sql");
const SOURCE_COLUMNS: &[&str] =
    &["source", "kinds", "licence", "url", "attribution", "redistribution", "stated_at"];
const MOST_SYMBOLS: usize = 50;
const SOURCES_PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 1_000,
    keys: &["source"],
    order: &[("source", Direction::Ascending)],
};

sql_row! {
    /// Source of the data, with its licence.
    #[derive(Debug, Clone, Serialize, ToSchema)]
    pub(crate) struct SourceRow {
        /// Name of the source, as in `source` of the rows.
        source: String,
        /// Kinds of its loaded rows: security, price, dividend, split, fundamentals, etf, holding or fx.
        kinds: Vec<String>,
        /// Name of the licence; null if the operator stated none.
        licence: Option<String>,
        /// Address of the licence.
        url: Option<String>,
        /// Text that names the source wherever its data is shown.
        attribution: Option<String>,
        /// False if the data must not be redistributed: bulk responses, exports and pages without a key leave out the
        /// securities that rest on the source.
        redistribution: Option<bool>,
        /// Time at which the licence was stated, in UTC.
        stated_at: Option<DateTime<Utc>>,
    }
}

parameters! {
    /// Parameters of the sources.
    pub(crate) struct SourcesParameters by reader {
        /// Comma-separated symbols (at most 50). Only the sources on which these securities rest are listed. Default:
        /// all sources.
        symbols: Option<SymbolList> = reader.read_symbols(MOST_SYMBOLS),
        page: Page = reader.read_page(&SOURCES_PAGING),
        output: Output = reader.read_output(SOURCE_COLUMNS),
    }
}

impl Sortable for SourceRow {
    fn sort_value(&self, _: &str) -> Option<SortValue<'_>> {
        Some(SortValue::Text(Cow::Borrowed(&self.source)))
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.source)
    }
}

endpoint! {
    /// Sources and licences
    ///
    /// A security rests on each source with a row of it, also if another source's row is used, because the rules
    /// compare the rows of all sources.
    get "/v1/sources", tag "System", returns "A page of sources",
    sources(Access<Free, SourcesParameters>) -> List<SourceRow> { respond(render_sources) }
}

async fn render_sources(context: HandlerContext<SourcesParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let ResolvedSymbols { known, missing } =
        lookup::resolve_symbol_list(&context.generation, asked.symbols.as_ref()).await?;
    let rows = lookup::run_query(&context.generation, SOURCES, &[&known]).await?;
    let version = DataVersion::from_row(lookup::first_row(&context.generation, &rows)?)?;
    let sources = lookup::rows_with(&rows, "source").map(SourceRow::from_row);
    let sources = sources.collect::<Result<Vec<_>, _>>().map_err(QueryError::from)?;
    context.render_page(&asked.output, &asked.page, version, &sources, |meta| {
        meta.set_missing(asked.symbols.as_ref().map(|_| missing))
    })
}

const MONTHS: &str = include_str!("../../queries/quality/months.sql");
const MONTH_COLUMNS: &[&str] = &[
    "month",
    "source",
    "as_of",
    "rows",
    "coverage",
    "agreeing",
    "ex_dates",
    "corrected",
    "cancelled",
    "declared",
    "lag_median_days",
    "lag_p95_days",
];
const MONTHS_PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 1_000,
    keys: &["month", "source"],
    order: &[("month", Direction::Descending), ("source", Direction::Ascending)],
};

/// Active securities of a type.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
pub(crate) struct TypeCoverage {
    /// Number of active securities with a row of the source.
    covered: i64,
    /// Number of active securities.
    active: i64,
}

sql_row! {
    /// Quality of a source in a month.
    #[derive(Debug, Clone, Serialize, ToSchema)]
    pub(crate) struct QualityMonth {
        /// First day of the month.
        month: NaiveDate,
        /// Name of the source.
        source: String,
        /// Market date of the measurement, in the next month with a session.
        as_of: NaiveDate,
        /// Number of loaded rows, from the first load on. A row that is loaded again counts again.
        rows: i64,
        /// Coverage by type of security.
        #[schema(value_type = BTreeMap<String, TypeCoverage>)]
        coverage: JsonColumn<BTreeMap<String, TypeCoverage>>,
        /// Number of ex-dates on which the adjusted closes of the source agree with the computed price factor (R40).
        /// Null if the source has no adjusted closes.
        agreeing: Option<i64>,
        /// Number of compared ex-dates. Null if the source has no adjusted closes.
        ex_dates: Option<i64>,
        /// Number of dividends that were corrected after their publication. Dividends with an ex-date more than 90 days
        /// before the market date do not count.
        corrected: i64,
        /// Number of dividends that were cancelled after their publication, with the same limit.
        cancelled: i64,
        /// Number of dividends that were published with their declaration date, at most ten sessions after it.
        declared: i64,
        /// Median time from the begin of the declaration date in New York to the publication, in days. Null if no
        /// dividend was declared.
        lag_median_days: Option<ExactDecimal>,
        /// 95th percentile of this time (nearest rank), in days.
        lag_p95_days: Option<ExactDecimal>,
    }
}

parameters! {
    /// Parameters of the monthly quality.
    pub(crate) struct QualityParameters by reader {
        /// A day of the month. Default: all months.
        month: Option<NaiveDate> = reader.read_date("month"),
        /// Name of the source. Default: all sources.
        source: Option<String> = reader.read_text("source", 64),
        page: Page = reader.read_page(&MONTHS_PAGING),
        output: Output = reader.read_output(MONTH_COLUMNS),
    }
}

impl Sortable for QualityMonth {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>> {
        Some(match key {
            "source" => SortValue::Text(Cow::Borrowed(&self.source)),
            _ => SortValue::Day(self.month),
        })
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        format!("{}\0{}", self.month, self.source).into()
    }
}

endpoint! {
    /// Quality of the data by month
    ///
    /// One row per month and source, newest month first. A month is measured when the market date has passed into the next
    /// month, and never changes. Corrections and lags are those of the dividends that were published since the
    /// measurement of the month before; the first month has none.
    get "/v1/quality", tag "System", returns "A page of months",
    quality(Access<Free, QualityParameters>) -> List<QualityMonth> { respond(render_months) }
}

async fn render_months(context: HandlerContext<QualityParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let rows = lookup::run_query(&context.generation, MONTHS, &[&asked.month, &asked.source]).await?;
    let version = DataVersion::from_row(lookup::first_row(&context.generation, &rows)?)?;
    let months = lookup::rows_with(&rows, "source").map(QualityMonth::from_row);
    let months = months.collect::<Result<Vec<_>, _>>().map_err(QueryError::from)?;
    context.render_page(&asked.output, &asked.page, version, &months, |_| {})
}

/// Time for which the address of a file is valid.
const VALIDITY: Duration = Duration::from_secs(3600);

parameters! {
    /// Parameters of the published files.
    pub(crate) struct FilesParameters by reader {
        /// Data version of the files: the `meta.data_version` of a response. Default: the newest published version.
        version: Option<VersionName> = reader.read_version("version"),
    }

    const FEATURE: &'static str = "bulk_operations";
    const IS_COSTLY: bool = true;
    const IS_PRIVATE: bool = true;
}

endpoint! {
    /// Files of the whole market (Professional)
    ///
    /// Parquet files of every table, with addresses at which they can be fetched from the object store for an hour
    /// without a key. The addresses are secrets. Not every data version is published, and old ones are removed. Status
    /// 404 if the service has no files of the version.
    get "/v1/files", tag "Bulk", returns "Files of a data version",
    files(Access<Professional, FilesParameters>) -> Single<PublishedVersion> { respond(list_files) }
}

async fn list_files(context: HandlerContext<FilesParameters>) -> Result<RenderedBody, ApiError> {
    let unpublished = || ApiError::NotFound("No files are published by this service".to_owned());
    let store = context.app.files.as_ref().ok_or_else(unpublished)?;
    let found = find_published_version(store, context.parameters.version);
    let data = match timeout(context.app.settings.read_timeout, found).await {
        Ok(Ok(Some(found))) => found,
        Ok(Ok(None)) => {
            let named = context.parameters.version;
            return Err(named.map_or_else(unpublished, |name| {
                ApiError::NotFound(format!("No files of version {name} are published"))
            }));
        }
        Ok(Err(FileStoreError::NoAddresses)) => {
            return Err(ApiError::NotFound("The published files have no addresses".to_owned()));
        }
        Ok(Err(error)) => return Err(ApiError::Unavailable(error.to_string())),
        Err(_) => return Err(ApiError::Unavailable("the object store does not answer".to_owned())),
    };
    require_redistributable(&context, &data).await?;
    let meta = Meta { as_of: data.as_of, data_version: data.data_version.clone(), ..Meta::default() };
    let body =
        serde_json::to_vec(&Single { data, meta }).map_err(|error| ApiError::Internal(error.into()))?;
    Ok(RenderedBody { body: body.into(), version: context.generation.version(), next_cursor: None })
}

/// Checks that no source of the files was closed after they were published.
async fn require_redistributable(
    context: &HandlerContext<FilesParameters>,
    published: &PublishedVersion,
) -> Result<(), ApiError> {
    let restricted = context.app.memory_tables.restricted(&context.generation).await?;
    let is_left_out = |source: &str| {
        published.left_out.as_ref().is_some_and(|left_out| left_out.sources.iter().any(|name| name == source))
    };
    let mut sources = published.sources.iter().map(|source| source.source.as_str());
    match sources.find(|source| restricted.has_source(source) && !is_left_out(source)) {
        None => Ok(()),
        Some(source) => Err(ApiError::NotFound(format!(
            "The files of version {} have data of {source}, which must not be redistributed any more",
            published.data_version
        ))),
    }
}

/// Finds the files of a version, or of the newest version, and signs their addresses. `None` if they are not published.
async fn find_published_version(
    store: &FileStore,
    name: Option<VersionName>,
) -> Result<Option<PublishedVersion>, FileStoreError> {
    let name = match name {
        Some(name) => Some(name.to_string()),
        None => store.latest().await?.map(|(latest, _)| latest.data_version),
    };
    let Some(name) = name else { return Ok(None) };
    let Some(mut version) = store.version(&name).await? else { return Ok(None) };
    store.sign(&mut version, VALIDITY).await?;
    Ok(Some(version))
}
