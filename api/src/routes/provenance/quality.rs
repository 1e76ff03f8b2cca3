//! `GET /v1/quality`: quality of the sources by month. A month is measured once, and later corrections do not change it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use market::row::JsonColumn;
use serde::{Deserialize, Serialize};
use store::{FromRow, sql_row};
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Direction, Output, Page, PageOptions, SortValue, Sortable, parameters};
use crate::read::{DataVersion, QueryError, lookup};
use crate::render::envelope::List;
use crate::routes::endpoint;

const MONTHS: &str = include_str!("../../../queries/quality/months.sql");
const COLUMNS: &[&str] = &[
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
const PAGING: PageOptions = PageOptions {
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
        /// Number of dividends that were corrected after their publication.
        corrected: i64,
        /// Number of dividends that were cancelled after their publication.
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
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(COLUMNS),
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
    quality(Access<Free, QualityParameters>) -> List<QualityMonth> { respond(render) }
}

async fn render(context: HandlerContext<QualityParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let rows = lookup::run_query(&context.generation, MONTHS, &[&asked.month, &asked.source]).await?;
    let version = DataVersion::from_row(lookup::first_row(&context.generation, &rows)?)?;
    let months = lookup::rows_with(&rows, "source").map(QualityMonth::from_row);
    let months = months.collect::<Result<Vec<_>, _>>().map_err(QueryError::from)?;
    context.render_page(&asked.output, &asked.page, version, &months, |_| {})
}
