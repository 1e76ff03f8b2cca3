//! `GET /v1/stocks/{symbol}/metrics`: dividend metrics of one security, with an optional explanation.

use std::sync::{Arc, LazyLock};

use chrono::NaiveDate;
use market::dated_text::LimitToHistory;
use market::metrics::Explanation;
use market::row::{AnnualTotal, Metrics, TableRow};
use serde::Serialize;
use store::facts::name_files;
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::auth::Tier;
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, RequestedSymbol, ResponseFormat, parameters};
use crate::read::past_securities::PriceColumns;
use crate::read::past_version::{PastVersion, find_current_version};
use crate::read::{DataVersion, lookup};
use crate::render::envelope::{Meta, Single, Warning};
use crate::render::rows;
use crate::routes::endpoint;
use crate::routes::past::security::{PastQuery, explain_past_security};

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
        let columns = PriceColumns::ForFigures;
        let security = context.past_security_on(&past, &asked.symbol, asked.as_of, columns).await?;
        return Ok(MetricsAnswer { metrics: security.rows.metrics.clone(), explanation: None });
    }
    let frames = format!("{}.frames", past.fact_set);
    let symbols = vec![asked.symbol.candidates.clone()];
    let explained = match PastQuery::new(&past, symbols, asked.as_of, PriceColumns::All) {
        Some(query) => explain_past_security(&context.generation, query).await?,
        None => None,
    };
    let (metrics, mut explanation) = explained.ok_or_else(|| lookup::unknown_symbol_error(&asked.symbol))?;
    let client = context.generation.client().await?;
    name_files(&**client, &frames, &mut explanation).await?;
    Ok(MetricsAnswer { metrics, explanation: Some(explanation) })
}
