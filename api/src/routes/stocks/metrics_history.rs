//! `GET /v1/stocks/{symbol}/metrics/history`: dividend metrics of one security at the end of each month, quarter or year.

use std::sync::{Arc, LazyLock};

use chrono::{Datelike, Months, NaiveDate};
use market::metrics::calendar::session_on_or_before;
use market::row::{Metrics, TableRow};
use market::text_enum;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody, render_page};
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, ParameterReader, RequestedSymbol, parameters};
use crate::read::lookup;
use crate::read::past_securities::PriceColumns;
use crate::read::past_version::find_current_version;
use crate::render::envelope::{List, ListMeta};
use crate::routes::endpoint;
use crate::routes::past::security::{PastQuery, derive_metrics_on};

/// Maximum number of figures in a request.
const MAX_FIGURES: usize = 12;
/// Maximum number of points in a response.
const MAX_POINTS: usize = 600;
/// Metrics that are not figures of a day, or that need the benchmark's returns of each day.
const LEFT_OUT: [&str; 8] = [
    "symbol",
    "currency",
    "price_currency",
    "as_of",
    "beta_5y",
    "annual_totals",
    "quarantined",
    "method_version",
];
const DEFAULT_FIGURES: [&str; 3] = ["dividend_yield", "payout_ratio", "dps_ttm"];
const DATE: &str = "date";
static COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let figures = Metrics::COLUMNS.iter().filter(|column| !LEFT_OUT.contains(column));
    [DATE].iter().chain(figures).copied().collect()
});

text_enum! {
    /// Interval between two points.
    pub enum PointInterval { Month = "month", Quarter = "quarter", Year = "year" }
}

impl PointInterval {
    fn months(self) -> u32 {
        match self {
            Self::Month => 1,
            Self::Quarter => 3,
            Self::Year => 12,
        }
    }

    /// Last sessions of all periods from `start` to `end`, oldest first. The last period ends with `end`.
    fn days(self, start: NaiveDate, end: NaiveDate) -> Vec<NaiveDate> {
        let months = self.months();
        let first = start.month0() / months * months;
        let Some(mut begin) = NaiveDate::from_ymd_opt(start.year(), first + 1, 1) else { return Vec::new() };
        let mut days = Vec::new();
        while begin <= end {
            let Some(next) = begin.checked_add_months(Months::new(months)) else { break };
            let last = session_on_or_before(next.pred_opt().unwrap_or(next)).min(end);
            days.extend((last >= start).then_some(last));
            begin = next;
        }
        days
    }
}

/// Metrics at the end of a period, as known at the data version of the response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MetricsPoint {
    /// Last session of the period.
    date: NaiveDate,
    #[serde(flatten)]
    metrics: Metrics,
}

parameters! {
    /// Parameters of the metrics by period.
    pub(crate) struct MetricsHistoryParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        /// First day. Default: first day of the tier's history. A request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = reader.read_day_of_history("start_date"),
        /// Last day. Default: the newest session.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        /// Interval between two points. Default: month.
        interval: PointInterval = read_interval(reader, start_date, end_date),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        output: Output = read_output(reader),
    }

    const TIER_MATTERS: bool = true;
    const IS_COSTLY: bool = true;
}

/// Reads `interval`. A range with more than 600 points is an error.
fn read_interval(
    reader: &mut ParameterReader<'_>,
    start: Option<NaiveDate>,
    end: Option<NaiveDate>,
) -> PointInterval {
    let interval = reader.read_word("interval", PointInterval::ALL).unwrap_or(PointInterval::Month);
    let end = end.unwrap_or(reader.today);
    let count = start.map_or(0, |start| interval.days(start, end).len());
    reader.require(count <= MAX_POINTS, "start_date", "gives more than 600 points");
    interval
}

/// Reads the output options. The day is always part of a point.
fn read_output(reader: &mut ParameterReader<'_>) -> Output {
    let mut output = reader.read_limited_output(&COLUMNS, &COLUMNS, MAX_FIGURES);
    reader.describe(
        "fields",
        "Names of at most 12 figures, comma-separated. Default: dividend_yield, payout_ratio, dps_ttm.",
    );
    reader.document_default("fields", DEFAULT_FIGURES.as_slice().into());
    let chosen = output.fields.unwrap_or_else(|| DEFAULT_FIGURES.to_vec());
    let figures: Vec<&str> = chosen.into_iter().filter(|field| *field != DATE).collect();
    output.fields = Some([&[DATE], figures.as_slice()].concat());
    output
}

endpoint! {
    /// Dividend metrics by period
    ///
    /// Figures as of the last session of each month, quarter or year, oldest first, as in the metrics with `as_of`. They
    /// are computed from the data that is known now.
    get "/v1/stocks/{symbol}/metrics/history", tag "Stocks", returns "Metrics by period",
    metrics_history(Access<Free, MetricsHistoryParameters>) -> List<MetricsPoint> { respond(render) }
}

async fn render(context: HandlerContext<MetricsHistoryParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let version = match context.find_version(asked.knowledge.as_ref()).await? {
        Some(found) => found,
        None => Arc::new(find_current_version(&context.generation).await?),
    };
    let unknown = || lookup::unknown_symbol_error(&asked.symbol);
    let newest = version.as_of.ok_or_else(unknown)?;
    let end = asked.end_date.map_or(newest, |end| end.min(newest));
    let mut days = asked.interval.days(context.first_day(asked.start_date), end);
    days.drain(..days.len().saturating_sub(MAX_POINTS));
    let symbols = vec![asked.symbol.candidates.clone()];
    let query = PastQuery::new(&version, symbols, None, PriceColumns::All).ok_or_else(unknown)?;
    let metrics = derive_metrics_on(&context.generation, query, days.clone()).await?.ok_or_else(unknown)?;
    // Before its first price, a security has no figures.
    let points = days.into_iter().zip(metrics).skip_while(|(_, metrics)| metrics.price.is_none());
    let rows: Vec<MetricsPoint> = points.map(|(date, metrics)| MetricsPoint { date, metrics }).collect();
    let version = version.version();
    let mut meta = ListMeta::new(&version, rows.len(), 600, None);
    meta.known_at = context.known_at;
    meta.set_depth(context.depth_without(asked.start_date), context.today);
    render_page(&asked.output, &rows, &meta, version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_end_with_their_last_session_and_the_newest_day() {
        let day = |text: &str| text.parse::<NaiveDate>().expect("a date");
        let days = |interval: PointInterval, start, end| {
            let found = interval.days(day(start), day(end));
            found.iter().map(NaiveDate::to_string).collect::<Vec<String>>()
        };
        // 29 March 2024 was Good Friday.
        assert_eq!(
            days(PointInterval::Month, "2024-02-15", "2024-04-10"),
            ["2024-02-29", "2024-03-28", "2024-04-10"]
        );
        assert_eq!(days(PointInterval::Quarter, "2023-11-02", "2024-03-28"), ["2023-12-29", "2024-03-28"]);
        assert_eq!(days(PointInterval::Year, "2022-12-31", "2024-01-02"), ["2023-12-29", "2024-01-02"]);
        assert!(days(PointInterval::Month, "2024-04-11", "2024-04-10").is_empty());
    }
}
