//! `GET /v1/stocks/{symbol}/metrics`: dividend metrics of one security, with an optional explanation.
//!
//! `GET /v1/stocks/{symbol}/metrics/history`: dividend metrics of one security at the end of each month, quarter or year.

use std::sync::{Arc, LazyLock};

use chrono::{Datelike, Months, NaiveDate};
use market::dated_text::LimitToHistory;
use market::metrics::Explanation;
use market::metrics::calendar::session_on_or_before;
use market::row::{AnnualTotal, Metrics, TableRow};
use market::text_enum;
use serde::Serialize;
use store::facts::name_files;
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody, render_page};
use crate::auth::Tier;
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, ParameterReader, RequestedSymbol, ResponseFormat, parameters};
use crate::read::DataVersion;
use crate::read::lookup::{self, PastVersion, find_current_version};
use crate::render::envelope::{List, ListMeta, Meta, Single, Warning};
use crate::render::rows;
use crate::routes::endpoint;
use crate::routes::past::security::{PastQuery, derive_metrics_on, explain_past_security};

const METRICS: &str = include_str!("../../../queries/stocks/metrics.sql");

/// Column with the dividend totals by year. In CSV, [`YEAR_COLUMNS`] replace it, with one row per year.
const ANNUAL_TOTALS: &str = "annual_totals";
const YEAR_COLUMNS: [&str; 3] = ["year", "amount", "complete"];
const EXPLANATION: &str = "explanation";
/// Lowest tier that includes explanations.
pub(crate) const EXPLAIN_TIER: Tier = Tier::Starter;
static EXPLAINED: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| Metrics::COLUMNS.iter().copied().chain([EXPLANATION]).collect());

/// Metrics; with `explain=true`, also their explanation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MetricsAnswer {
    #[serde(flatten)]
    metrics: Metrics,
    /// Formulas of the figures, and the records from which the figures are computed. Omitted without `explain=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    explanation: Option<Explanation>,
}

impl LimitToHistory for MetricsAnswer {
    fn limit_to_days_from(self, first: NaiveDate) -> Self {
        let metrics = self.metrics.limit_to_days_from(first);
        let explanation = self.explanation.map(|explanation| explanation.limit_to_days_from(first, &metrics));
        Self { metrics, explanation }
    }
}

parameters! {
    /// Parameters of the metrics.
    pub(crate) struct MetricsParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        /// As-of date. Only prices up to this day, and records declared or effective by this day, are used. Default:
        /// the market's newest session.
        as_of: Option<NaiveDate> = reader.read_day_of_history("as_of"),
        /// Adds the formulas of the figures, and the records from which the figures are computed (Starter and higher).
        /// With `fields`, only the selected figures are explained. Records, days and yearly figures before the tier's
        /// history are counted, but not listed.
        explain: bool = reader.read_bool_or("explain", false),
        knowledge: Option<Knowledge> = {
            reader.require(as_of.is_none_or(|as_of| as_of <= reader.today), "as_of", "is in the future");
            reader.read_knowledge()
        },
        output: Output = reader.read_output(if explain { &EXPLAINED } else { Metrics::COLUMNS }),
    }

    const TIER_MATTERS: bool = true;

    fn needs(&self) -> Option<(Tier, &'static str)> {
        self.explain.then_some((EXPLAIN_TIER, "explain"))
    }
}

endpoint! {
    /// Dividend metrics
    ///
    /// Yields, growth, streaks, payout and safety, by documented rules. `beta_5y` is measured against a benchmark that
    /// the operator chooses. If `fields` of a CSV request contains `annual_totals`, the CSV has one row per year. The
    /// columns `year`, `amount` and `complete` replace `annual_totals`. The other fields are repeated in each row.
    get "/v1/stocks/{symbol}/metrics", tag "Stocks", returns "The metrics",
    metrics(Access<Free, MetricsParameters>) -> Single<MetricsAnswer> { respond(render) }
}

async fn render(context: HandlerContext<MetricsParameters>) -> Result<RenderedBody, ApiError> {
    let (version, answer) = answer(&context).await?;
    let held = i64::try_from(answer.metrics.quarantined.0.len())
        .map_err(|error| ApiError::Internal(error.into()))?;
    let warnings = Warning::quarantined(held).into_iter().collect();
    let mut output = context.parameters.output.clone();
    let is_unnamed = |fields: &&mut Vec<&str>| !fields.contains(&EXPLANATION);
    if let Some(fields) = output.fields.as_mut().filter(is_unnamed)
        && answer.explanation.is_some()
    {
        fields.push(EXPLANATION);
    }
    let depth = context.depth();
    let answer = answer.limit_to_days_from(depth.from);
    let meta = Meta { warnings, known_at: context.known_at, ..Meta::new(&version) };
    let meta = meta.with_depth(depth, context.today);
    let body = match split_annual_totals(&output) {
        Some(output) => rows::render_list(&output, &annual_lines(&answer, &answer.metrics), &meta)?,
        None => rows::render_single(&output, &answer, &meta)?,
    };
    Ok(RenderedBody { body, version, next_cursor: None })
}

/// CSV row of one year.
#[derive(Debug, Serialize)]
pub(in crate::routes) struct AnnualLine<'a, T> {
    #[serde(flatten)]
    row: &'a T,
    #[serde(flatten)]
    total: &'a AnnualTotal,
}

/// Output with the columns of one year instead of the totals of all years. `None` if the response does not have one row
/// per year, because it is JSON or `fields` does not contain the totals.
pub(in crate::routes) fn split_annual_totals(output: &Output) -> Option<Output> {
    let fields = output.fields.as_ref().filter(|_| output.format == ResponseFormat::Csv)?;
    let totals = fields.iter().position(|field| *field == ANNUAL_TOTALS)?;
    let mut fields = fields.clone();
    fields.splice(totals..=totals, YEAR_COLUMNS);
    Some(Output { fields: Some(fields), ..output.clone() })
}

/// True if the output has the columns of one year.
pub(in crate::routes) fn is_by_year(output: &Output) -> bool {
    output.fields.as_ref().is_some_and(|fields| fields.contains(&YEAR_COLUMNS[0]))
}

/// One CSV row per year. The values of `row` are repeated in each row.
pub(in crate::routes) fn annual_lines<'a, T>(row: &'a T, metrics: &'a Metrics) -> Vec<AnnualLine<'a, T>> {
    metrics.annual_totals.0.iter().map(|total| AnnualLine { row, total }).collect()
}

async fn answer(
    context: &HandlerContext<MetricsParameters>,
) -> Result<(DataVersion, MetricsAnswer), ApiError> {
    let asked = &context.parameters;
    let past = async |past| derive(context, past).await;
    let (version, mut answer) = context.read_as_known(asked.knowledge.as_ref(), live(context), past).await?;
    // If `fields` lists figures but not the explanation, only these figures are explained.
    let chosen = asked.output.fields.as_ref().filter(|fields| !fields.contains(&EXPLANATION));
    if let Some((explanation, chosen)) = answer.explanation.as_mut().zip(chosen) {
        explanation.limit_to_metrics(|metric| chosen.contains(&metric));
    }
    Ok((version, answer))
}

/// Metrics at the current version. They are derived anew if the request asks for an explanation or for an earlier
/// `as_of`, and otherwise read from the served tables.
async fn live(context: &HandlerContext<MetricsParameters>) -> Result<(DataVersion, MetricsAnswer), ApiError> {
    let asked = &context.parameters;
    let (version, metrics) = lookup::find_one::<Metrics>(&context.generation, METRICS, &asked.symbol).await?;
    // An `as_of` after the market's as-of date is replaced by that date, because no data is newer.
    let newest = version.as_of.unwrap_or(metrics.as_of);
    let as_of = asked.as_of.map_or(newest, |as_of| as_of.min(newest));
    if as_of == newest && !asked.explain {
        return Ok((version, MetricsAnswer { metrics, explanation: None }));
    }
    let current = Arc::new(find_current_version(&context.generation).await?);
    Ok((current.version(), derive(context, current).await?))
}

/// Derives the metrics from the facts of a data version.
async fn derive(
    context: &HandlerContext<MetricsParameters>,
    past: Arc<PastVersion>,
) -> Result<MetricsAnswer, ApiError> {
    let asked = &context.parameters;
    if !asked.explain {
        let security = context.past_security_on(&past, &asked.symbol, asked.as_of).await?;
        return Ok(MetricsAnswer { metrics: security.rows.metrics, explanation: None });
    }
    let frames = format!("{}.frames", past.fact_set);
    let symbols = vec![asked.symbol.candidates.clone()];
    let explained = match PastQuery::new(&past, symbols, asked.as_of) {
        Some(query) => explain_past_security(&context.generation, query).await?,
        None => None,
    };
    let (metrics, mut explanation) = explained.ok_or_else(|| lookup::unknown_symbol_error(&asked.symbol))?;
    let client = context.generation.client().await?;
    name_files(&**client, &frames, &mut explanation).await?;
    Ok(MetricsAnswer { metrics, explanation: Some(explanation) })
}

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
static HISTORY_COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
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
        output: Output = read_history_output(reader),
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
fn read_history_output(reader: &mut ParameterReader<'_>) -> Output {
    let mut output = reader.read_limited_output(&HISTORY_COLUMNS, &HISTORY_COLUMNS, MAX_FIGURES);
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
    metrics_history(Access<Free, MetricsHistoryParameters>) -> List<MetricsPoint> { respond(render_history) }
}

async fn render_history(context: HandlerContext<MetricsHistoryParameters>) -> Result<RenderedBody, ApiError> {
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
    let query = PastQuery::new(&version, symbols, None).ok_or_else(unknown)?;
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
