//! `GET /v1/prices/{symbol}`: price history of one security.

use std::ops::Range;
use std::sync::Arc;

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, Utc};
use market::day::{date_of, day_number};
use market::decimal::{ExactDecimal, round};
use market::price::{Interval, PriceBasis, SessionRange};
use market::text_enum;
use serde::Serialize;
use utoipa::ToSchema;

use super::{PriceRow, ROW_COLUMNS, SecurityPrices, price_encoder};
use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{
    Direction, Knowledge, Output, Page, PageOptions, ParameterReader, RequestedSymbol, parameters,
};
use crate::read::lookup::{self, PastVersion};
use crate::read::{QueryError, ServedGeneration};
use crate::render::envelope::{Depth, ListMeta};
use crate::render::rows;
use crate::routes::endpoint;

const PRICES: &str = include_str!("../../../queries/prices/prices.sql");
const FACTORS_CHANGED: &str = include_str!("../../../queries/past/factors_changed.sql");
const PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 5_000,
    keys: &["date"],
    order: &[("date", Direction::Descending)],
};

text_enum! {
    /// Adjustment of prices.
    pub enum Adjustment {
        /// Prices as traded. This value cannot be combined with other values.
        Raw = "raw",
        /// Adjustment for splits, together with all adjustments of the value `spin_off`. Prices are then comparable
        /// over time. Volumes are adjusted only for splits.
        Split = "split",
        /// Adjustment for rights issues and for distributions of shares of another class. Also for spin-offs that the
        /// feed reports as a ratio.
        SpinOff = "spin_off",
        /// Adjustment for cash dividends, and for spin-offs that the feed reports as a value per share.
        Dividend = "dividend",
        /// All adjustments.
        All = "all",
    }
}

impl Adjustment {
    fn basis(self) -> PriceBasis {
        match self {
            Self::Raw => PriceBasis::RAW,
            Self::Split => PriceBasis::SPLIT,
            Self::SpinOff => PriceBasis { spin_off: true, ..PriceBasis::RAW },
            Self::Dividend => PriceBasis { dividend: true, ..PriceBasis::RAW },
            Self::All => PriceBasis::ALL,
        }
    }
}

/// Reads the parameter `adjustment`, which is a list. The default is `split`.
pub(super) fn read_adjustment(reader: &mut ParameterReader<'_>) -> PriceBasis {
    let Some(words) = reader.read_words("adjustment", Adjustment::ALL) else { return PriceBasis::SPLIT };
    let is_single = words.iter().all(|word| *word == words[0]);
    reader.require(is_single || !words.contains(&Adjustment::Raw), "adjustment", "raw excludes others");
    words.into_iter().fold(PriceBasis::RAW, |basis, word| basis.and(word.basis()))
}

/// Text of a price basis in responses: the shortest value of the parameter `adjustment` that selects this basis. For
/// example, `all` and `split,dividend` select the same basis, and the text is `all`.
pub(super) fn adjustment_text(basis: PriceBasis) -> &'static str {
    match (basis.split, basis.spin_off, basis.dividend) {
        (false, false, false) => "raw",
        (true, _, false) => "split",
        (true, _, true) => "all",
        (false, true, false) => "spin_off",
        (false, false, true) => "dividend",
        (false, true, true) => "spin_off,dividend",
    }
}

text_enum! {
    /// Range that ends today. `5d` is five weekdays, that is seven calendar days. `ytd` starts on 1 January. `max`
    /// starts on the first day of the tier's history.
    pub enum Span {
        Days5 = "5d", Month1 = "1m", Months3 = "3m", Months6 = "6m", YearToDate = "ytd", Year1 = "1y", Years2 = "2y",
        Years5 = "5y", Years10 = "10y", Max = "max",
    }
}

impl Span {
    fn start(self, today: NaiveDate) -> Option<NaiveDate> {
        let months = |count| today.checked_sub_months(Months::new(count));
        match self {
            Self::Days5 => today.checked_sub_days(Days::new(6)),
            Self::Month1 => months(1),
            Self::Months3 => months(3),
            Self::Months6 => months(6),
            Self::YearToDate => today.with_ordinal(1),
            Self::Year1 => months(12),
            Self::Years2 => months(24),
            Self::Years5 => months(60),
            Self::Years10 => months(120),
            Self::Max => None,
        }
    }
}

parameters! {
    /// Parameters of the price history.
    pub(crate) struct PricesParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        /// First session. Default: first day of the tier's history. A request for an earlier day gets a 403.
        start_date: Option<NaiveDate> = reader.read_date("start_date"),
        /// Last session. Default: the newest session.
        end_date: Option<NaiveDate> = reader.read_end_date(start_date),
        /// Range up to today, instead of `start_date` and `end_date`. A range that begins before the tier's history
        /// gets a 403; `max` begins with the tier's history.
        range: Option<NaiveDate> = read_range(reader, start_date),
        /// Length of the period that one price point covers. Default: daily.
        interval: Interval = reader.read_word("interval", Interval::ALL).unwrap_or(Interval::Daily),
        /// Adjustments of the prices, comma-separated. `split` includes `spin_off`, and `all` includes every
        /// adjustment. Default: split.
        adjustment: PriceBasis = read_adjustment(reader),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(&ROW_COLUMNS),
    }

    const TIER_MATTERS: bool = true;
}

/// Reads the parameter `range`. Reports an error if the request also has `start_date` or `end_date`. Returns the first
/// day of the range; `None` if `range` is absent or is `max`.
fn read_range(reader: &mut ParameterReader<'_>, start_date: Option<NaiveDate>) -> Option<NaiveDate> {
    let range = reader.read_word("range", Span::ALL);
    reader.exclude("range", &["start_date", "end_date"]);
    let first = range.and_then(|range| range.start(reader.today));
    reader.properties.oldest_day = start_date.or(first);
    first
}

/// A page of price points.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PricesAnswer {
    /// Price points of the page, in order.
    data: Vec<PriceRow>,
    /// Data version and warnings of the page.
    meta: PricesMeta,
}

/// Metadata of a page of prices: the data version, the adjustment of the prices, and the total return over the
/// requested range.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PricesMeta {
    #[serde(flatten)]
    list: ListMeta,
    /// Canonical ticker.
    symbol: String,
    /// ISO 4217 currency of every price.
    currency: Option<String>,
    /// Period that a price point covers.
    interval: Interval,
    /// Adjustment of the prices: raw, split, spin_off, dividend, all, or the list `spin_off,dividend`.
    adjustment: &'static str,
    /// Total return from the first to the last bar of the requested range, percent. The range may be longer than this
    /// page. Dividends are reinvested at the close of their ex-date. Null if there is no bar, or if a distribution was
    /// paid in another currency.
    total_return: Option<ExactDecimal>,
    /// Time of the last change to the splits and dividends that adjust the prices. Adjusted prices that were read
    /// before this time are outdated. Null if the change is more than 400 days old.
    factors_changed_at: Option<DateTime<Utc>>,
}

endpoint! {
    /// Historical prices
    ///
    /// Bars with the requested adjustment, newest first. Each bar also has the raw close, the fully adjusted close, and
    /// the adjustment factors.
    get "/v1/prices/{symbol}", tag "Prices", returns "A page of price points",
    history(Access<Free, PricesParameters>) -> PricesAnswer { respond(render) }
}

async fn render(context: HandlerContext<PricesParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let start = asked.start_date.or(asked.range).unwrap_or_else(|| context.first_day_of_tier_history());
    let past = async |past: Arc<PastVersion>| {
        let security = context.past_security(&past, &asked.symbol).await?;
        let changed_at = find_factor_change(&context.generation, &past, security.symbol()).await?;
        Ok::<_, ApiError>((
            SecurityPrices::of_past(past.version(), &security, i32::MIN, i32::MAX)?,
            changed_at,
        ))
    };
    let live = async {
        let found =
            find_served_prices(&context.generation, &asked.symbol, [Some(start), asked.end_date]).await?;
        Ok::<_, ApiError>((found.0.version, found))
    };
    let knowledge = context.parameters.knowledge.as_ref();
    let (_, (series, factors_changed_at)) = context.read_as_known(knowledge, live, past).await?;
    page(&context, &series, start, factors_changed_at)
}

/// Reads the prices of the current version in the calendar years of two days, and the time at which their adjustment
/// factors last changed. `None`: the years are not limited.
pub(super) async fn find_served_prices(
    generation: &ServedGeneration,
    symbol: &RequestedSymbol,
    [start, end]: [Option<NaiveDate>; 2],
) -> Result<(SecurityPrices, Option<DateTime<Utc>>), ApiError> {
    let (first, last) = (start.map_or(i32::MIN, |day| day.year()), end.map_or(i32::MAX, |day| day.year()));
    let rows = lookup::run_query(generation, PRICES, &[&symbol.candidates, &first, &last]).await?;
    let row = lookup::first_row(generation, &rows)?;
    let series = SecurityPrices::from_row(row)?.ok_or_else(|| lookup::unknown_symbol_error(symbol))?;
    Ok((series, row.try_get("factors_changed_at")?))
}

/// Finds the time of the last change of the adjustment factors, up to and including the version `past`. Returns `None`
/// if the factors did not change in the 400 days before that version.
async fn find_factor_change(
    generation: &ServedGeneration,
    past: &PastVersion,
    symbol: &str,
) -> Result<Option<DateTime<Utc>>, QueryError> {
    let position = past.position;
    let rows = lookup::run_query(generation, FACTORS_CHANGED, &[&symbol, &position, &past.at]).await?;
    Ok(rows.first().map(|row| row.try_get("at")).transpose()?)
}

fn page(
    context: &HandlerContext<PricesParameters>,
    series: &SecurityPrices,
    start: NaiveDate,
    factors_changed_at: Option<DateTime<Utc>>,
) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let bars = &series.bars;
    let range = series.bars_between(start, asked.end_date);
    let mut periods = asked.interval.periods(&bars.day, range.clone());
    if asked.page.direction() == Direction::Descending {
        periods.reverse();
    }
    let (periods, more) = page_periods(&periods, &bars.day, &asked.page);
    let key = |period: &SessionRange| [Some(date_of(bars.day[period.end - 1]).to_string())];
    let signer = context.app.signer.of_response(series.version.to_exact_text());
    let next_cursor = periods.last().filter(|_| more).map(|last| asked.page.cursor(&key(last), &signer));
    let mut body = rows::list_opening(&asked.output)?;
    series.encode(&price_encoder(&asked.output), asked.adjustment, b"", periods, &mut body);
    let total_return = total_return(series, range);
    let mut list = ListMeta::new(&series.version, periods.len(), asked.page.limit, next_cursor.clone());
    list.known_at = context.known_at;
    let is_limited_by_tier = asked.start_date.or(asked.range).is_none();
    list.depth = is_limited_by_tier.then_some(Depth { from: start, tier: context.tier });
    list.today = asked.start_date.is_none().then_some(context.today);
    let meta = PricesMeta {
        list,
        symbol: series.symbol.clone(),
        currency: series.currency.clone(),
        interval: asked.interval,
        adjustment: adjustment_text(asked.adjustment),
        total_return,
        factors_changed_at,
    };
    body.extend(rows::list_closing(&asked.output, &meta)?);
    Ok(RenderedBody { body: body.into(), version: series.version, next_cursor })
}

/// Periods after the cursor, up to the page limit. The flag is true if further periods follow the page.
fn page_periods<'p>(periods: &'p [SessionRange], days: &[i32], page: &Page) -> (&'p [SessionRange], bool) {
    let after = page.after_value(0).and_then(|day| day.parse::<NaiveDate>().ok()).map(day_number);
    let passed = |period: &SessionRange| {
        let day = days[period.end - 1];
        after.is_some_and(
            |after| if page.direction() == Direction::Descending { day >= after } else { day <= after },
        )
    };
    let rest = &periods[periods.partition_point(passed)..];
    let limit = page.row_limit().min(rest.len());
    (&rest[..limit], rest.len() > limit)
}

fn total_return(series: &SecurityPrices, range: Range<usize>) -> Option<ExactDecimal> {
    let last = range.end.checked_sub(1).filter(|last| *last >= range.start)?;
    let total = series.with_closes(|closes| market::metrics::total_return(closes, range.start, last));
    total.map(|value| ExactDecimal::percent(round(value, 18)))
}
