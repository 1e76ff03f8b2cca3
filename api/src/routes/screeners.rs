//! `GET /v1/screener` and its presets: high yield, dividend growth, aristocrats and kings (R15, R18).

pub(crate) mod filters;

use std::collections::BTreeMap;

use market::metrics::dividends::grower_lists::{DividendList, GROWTH_MINIMUM, GROWTH_YIELD_MINIMUM};
use market::metrics::dividends::safety::HIGH_YIELD_MINIMUM;
use serde::Serialize;
use utoipa::ToSchema;

use super::endpoint;
use crate::answer::{Free, HandlerContext, RenderedBody, SelectedPage};
use crate::concurrency::run_low_priority;
use crate::error::ApiError;
use crate::read::memory_tables::{SecurityRow, StockTable};
use crate::render::envelope::ListMeta;
use crate::render::rows;
use filters::{Criterion, FacetCounts, Preset, ScreenFilters, ScreenerRow};

/// A page of a screener.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScreenerAnswer {
    /// Securities of the page, in order.
    data: Vec<ScreenerRow>,
    /// Data version and warnings of the page.
    meta: ScreenerMeta,
}

/// Data version and filters of a screener page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScreenerMeta {
    #[serde(flatten)]
    list: ListMeta,
    /// Name of the screener.
    screener: &'static str,
    /// Applied filters by parameter, including defaults.
    criteria: BTreeMap<&'static str, Criterion>,
    /// Number of securities that match the filters, on all pages.
    total: usize,
    /// Number of securities by value of a filter, for each filter in the parameter `facets`. A security counts if it
    /// matches all other filters.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, BTreeMap<String, u32>>>)]
    facets: Option<FacetCounts>,
}

/// Screener without default thresholds.
#[derive(Debug)]
pub(crate) struct Generic;
/// High-yield screen (R18).
#[derive(Debug)]
pub(crate) struct HighYield;
/// Screener with default thresholds: at least 10 percent growth per year over five years, and at least 2 percent yield.
#[derive(Debug)]
pub(crate) struct DividendGrowth;
/// Members of the S&P 500 with at least 25 consecutive years of dividend increases. The rule parameter
/// `lists.aristocrat_years` can set another number.
#[derive(Debug)]
pub(crate) struct Aristocrats;
/// Securities with at least 50 consecutive years of dividend increases. The rule parameter `lists.king_years` can set
/// another number.
#[derive(Debug)]
pub(crate) struct Kings;

impl Preset for Generic {
    const NAME: &'static str = "screener";
}

impl Preset for HighYield {
    const NAME: &'static str = DividendList::HighYield.as_str();
    const DEFAULTS: &'static [(&'static str, i64)] = &[("min_yield", HIGH_YIELD_MINIMUM)];

    fn admits(member: &SecurityRow, screen: &ScreenFilters<Self>) -> bool {
        screen.is_high_yield(member)
    }
}

impl Preset for DividendGrowth {
    const NAME: &'static str = DividendList::DividendGrowth.as_str();
    const DEFAULTS: &'static [(&'static str, i64)] =
        &[("min_growth_5y", GROWTH_MINIMUM), ("min_yield", GROWTH_YIELD_MINIMUM)];
}

impl Preset for Aristocrats {
    const NAME: &'static str = DividendList::Aristocrats.as_str();
    const FLOOR: Option<&'static str> = Some("lists.aristocrat_years");

    fn admits(member: &SecurityRow, _: &ScreenFilters<Self>) -> bool {
        member.figures.screened.is_dividend_aristocrat
    }
}

impl Preset for Kings {
    const NAME: &'static str = DividendList::Kings.as_str();
    const FLOOR: Option<&'static str> = Some("lists.king_years");
    const LIMITS: (i64, i64) = (50, 500);

    fn admits(member: &SecurityRow, _: &ScreenFilters<Self>) -> bool {
        member.figures.screened.is_dividend_king
    }
}

async fn page<P: Preset>(context: HandlerContext<ScreenFilters<P>>) -> Result<RenderedBody, ApiError> {
    let stock_table = context.app.memory_tables.stocks(&context.generation).await?;
    run_low_priority(move || screened(&context, &stock_table)).await?
}

fn screened<P: Preset>(
    context: &HandlerContext<ScreenFilters<P>>,
    stock_table: &StockTable,
) -> Result<RenderedBody, ApiError> {
    let screen = &context.parameters;
    let kept: Vec<&SecurityRow> = stock_table.rows.iter().filter(|member| screen.matches(member)).collect();
    let total = kept.len();
    let SelectedPage { rows, meta: list, version } =
        context.select_page(&screen.page, stock_table.version, kept);
    let rows: Vec<ScreenerRow> = rows.into_iter().map(ScreenerRow::from).collect();
    let next_cursor = list.next_cursor.clone();
    let facets = screen.count_facets(&stock_table.rows);
    let meta = ScreenerMeta { list, screener: P::NAME, criteria: screen.criteria(), total, facets };
    Ok(RenderedBody { body: rows::render_list(&screen.output, &rows, &meta)?, version, next_cursor })
}

endpoint! {
    /// Dividend screener
    ///
    /// Active securities that match the filters, by default with the highest headline yield first.
    get "/v1/screener", tag "Screeners", returns "A page of screener rows",
    screener(Access<Free, ScreenFilters<Generic>>) -> ScreenerAnswer { respond(page) }
}

endpoint! {
    /// High yield
    ///
    /// Stocks, ADRs, REITs and MLPs with a price that is at most 5 sessions old. Securities with a suspect yield (above
    /// 25 %) are left out. Default: `min_yield` 4.
    get "/v1/screener/high-yield", tag "Screeners", returns "A page of screener rows",
    high_yield(Access<Free, ScreenFilters<HighYield>>) -> ScreenerAnswer { respond(page) }
}

endpoint! {
    /// Dividend growth
    ///
    /// Dividend screener with the defaults `min_growth_5y` 10 and `min_yield` 2.
    get "/v1/screener/dividend-growth", tag "Screeners", returns "A page of screener rows",
    dividend_growth(Access<Free, ScreenFilters<DividendGrowth>>) -> ScreenerAnswer { respond(page) }
}

endpoint! {
    /// Dividend Aristocrats
    ///
    /// Members of the S&P 500 with at least 25 consecutive years of increases, and further conditions (R15). A lower
    /// `min_streak` is refused. The operator can change the minimum of 25 years.
    get "/v1/screener/dividend-aristocrats", tag "Screeners", returns "A page of screener rows",
    dividend_aristocrats(Access<Free, ScreenFilters<Aristocrats>>) -> ScreenerAnswer { respond(page) }
}

endpoint! {
    /// Dividend Kings
    ///
    /// Securities with at least 50 consecutive years of increases (R15). A lower `min_streak` is refused. The operator
    /// can change the minimum of 50 years.
    get "/v1/screener/dividend-kings", tag "Screeners", returns "A page of screener rows",
    dividend_kings(Access<Free, ScreenFilters<Kings>>) -> ScreenerAnswer { respond(page) }
}
