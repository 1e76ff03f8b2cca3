//! `GET /v1/bulk/prices`: bars of the whole market for one day or a short range (Professional).
//!
//! Securities are read in batches, in symbol order, and written until the page is full. Memory therefore contains only
//! one batch, and the bytes of the response that the client has not received yet.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use chrono::{Datelike, Days, NaiveDate};
use deadpool_postgres::Transaction;
use market::day::{date_of, day_number};
use market::price::{PriceBasis, PriceEncoder};
use serde::Serialize;
use utoipa::ToSchema;

use super::history::{adjustment_text, read_adjustment};
use super::{PriceRow, ROW_COLUMNS, SecurityPrices, price_encoder};
use crate::answer::{BodyWriter, FinishedBody, HandlerContext, Professional, ResponseWriter};
use crate::error::ApiError;
use crate::parameters::{
    Direction, Knowledge, Output, Page, PageOptions, ParameterReader, ResponseFormat, SymbolList, parameters,
};
use crate::read::DataVersion;
use crate::read::lookup::{self, PastVersion, ResolvedSymbols};
use crate::read::memory_tables::{LeftOut, RestrictedSecurities};
use crate::render::body_channel::Disconnected;
use crate::render::envelope::ListMeta;
use crate::render::rows;
use crate::routes::endpoint;
use crate::routes::past::security::derive_past_securities;

const MARKET: &str = include_str!("../../../queries/prices/market.sql");
/// Maximum number of symbols in the parameter `symbols`.
const MOST: usize = 1_000;
/// Maximum number of symbols in a request for an earlier version. The maximum is low, because each page of the response
/// may derive the prices of all these symbols again.
const MOST_OF_PAST: usize = 100;
/// Number of securities that are derived at once if a request asks for an earlier version.
const PAST_BATCH: usize = 25;
/// Maximum difference between the first and the last day of a range. A range therefore has at most 31 days.
const REACH: Days = Days::new(30);
/// Number of securities that one SQL statement reads.
const BATCH: u8 = 250;
const PAGING: PageOptions =
    PageOptions { default_limit: 1_000, most: 10_000, keys: &[], order: &[("symbol", Direction::Ascending)] };

parameters! {
    /// Parameters of the market's prices.
    pub(crate) struct MarketPricesParameters by reader {
        /// Day of the prices. Default: the newest session of the market.
        date: Option<NaiveDate> = reader.read_date("date"),
        /// First day of a range of at most 31 days, instead of `date`. Default: 30 days before `end_date`.
        start_date: Option<NaiveDate> = reader.read_date("start_date"),
        /// Last day of a range of at most 31 days, instead of `date`. Default: 30 days after `start_date`.
        end_date: Option<NaiveDate> = read_end_date(reader, date, start_date),
        /// Comma-separated symbols (at most 1000). Unknown symbols are listed in `meta.missing`. Default: the whole
        /// market. With `data_version` or `known_at`, the list is required and has at most 100 symbols.
        symbols: Option<SymbolList> = reader.read_symbols(MOST),
        knowledge: Option<Knowledge> = {
            let knowledge = reader.read_knowledge();
            let is_listed = symbols.as_ref().is_some_and(|list| list.0.len() <= MOST_OF_PAST);
            let is_allowed = knowledge.is_none() || is_listed;
            reader.require(is_allowed, "symbols", "must have 1 to 100 symbols with data_version and known_at");
            knowledge
        },
        /// Adjustments of the prices, comma-separated. `split` includes `spin_off`, and `all` includes every
        /// adjustment. Default: split.
        adjustment: PriceBasis = read_adjustment(reader),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(&ROW_COLUMNS),
    }

    const FEATURE: &'static str = "bulk_operations";
    const TIER_MATTERS: bool = true;
    const IS_COSTLY: bool = true;
}

/// Reads `end_date`. Reports an error if `date` is combined with `start_date` or `end_date`, or if the range is longer
/// than 31 days.
fn read_end_date(
    reader: &mut ParameterReader<'_>,
    date: Option<NaiveDate>,
    start_date: Option<NaiveDate>,
) -> Option<NaiveDate> {
    let end_date = reader.read_end_date(start_date);
    reader.exclude("date", &["start_date", "end_date"]);
    let last = start_date.and_then(|start| start.checked_add_days(REACH));
    let is_short = end_date.is_none() || start_date.is_none() || end_date <= last;
    reader.require(is_short, "end_date", "is more than 30 days after start_date");
    reader.properties.oldest_day = first_day(date, start_date, end_date);
    end_date
}

fn first_day(
    date: Option<NaiveDate>,
    start_date: Option<NaiveDate>,
    end_date: Option<NaiveDate>,
) -> Option<NaiveDate> {
    date.or(start_date).or(end_date.and_then(|end| end.checked_sub_days(REACH)))
}

impl MarketPricesParameters {
    /// First requested day; `None` if the request is for the newest session of the market.
    fn first(&self) -> Option<NaiveDate> {
        first_day(self.date, self.start_date, self.end_date)
    }

    /// Last requested day; `None` if the request is for the newest session of the market.
    fn last(&self) -> Option<NaiveDate> {
        self.date.or(self.end_date).or(self.start_date.and_then(|start| start.checked_add_days(REACH)))
    }
}

/// A page of the market's bars.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MarketPrices {
    /// Bars of the page, ordered by symbol and day.
    data: Vec<PriceRow>,
    /// Data version and warnings of the page.
    meta: MarketPricesMeta,
}

/// Data version, range and adjustment of a page of the market's bars.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MarketPricesMeta {
    #[serde(flatten)]
    list: ListMeta,
    /// First day of the range; without dates in the request, the newest session. Null if there is no data.
    start_date: Option<NaiveDate>,
    /// Last day of the range; without dates in the request, the newest session. Null if there is no data.
    end_date: Option<NaiveDate>,
    /// Adjustment of the prices: raw, split, spin_off, dividend, all, or the list `spin_off,dividend`.
    adjustment: &'static str,
    /// Securities with bars in the range that rest on a source which must not be redistributed. Omitted if this page
    /// passes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOut>,
}

endpoint! {
    /// The market's prices of a day (Professional)
    ///
    /// Bars of all securities on one day, or in a range of at most 31 days, ordered by symbol and day. Each page counts
    /// as one call.
    get "/v1/bulk/prices", tag "Bulk", returns "A page of the market's bars",
    market(Access<Professional, MarketPricesParameters>) -> MarketPrices { respond_streaming(page) }
}

async fn page(
    context: HandlerContext<MarketPricesParameters>,
    outlet: ResponseWriter,
) -> Result<FinishedBody, ApiError> {
    let asked = &context.parameters;
    let past = context.find_version(asked.knowledge.as_ref()).await?;
    let ResolvedSymbols { known: named, missing } =
        lookup::resolve_symbol_list(&context.generation, context.parameters.symbols.as_ref()).await?;
    let restricted = context.restricted().await?;
    let mut client = context.generation.client().await?;
    let transaction = lookup::begin_snapshot(&mut client).await?;
    let mut from = asked.page.after_value(0).map(str::to_owned);
    let (version, mut batch) = next(&context, &transaction, named.as_deref(), from.as_deref()).await?;
    if let Some(past) = past.filter(|past| !past.is_served_as(&version)) {
        drop(transaction);
        drop(client);
        return past_page(&context, outlet, &past, restricted).await;
    }
    let mut filled = PageBuilder::new(asked, outlet.begin(version), restricted)?;
    loop {
        let exhausted = batch.len() < usize::from(BATCH);
        // The last security of a full batch is not written with this batch. The next batch begins with it.
        let last = if exhausted { None } else { batch.last().map(|series| series.symbol.clone()) };
        for series in batch.iter().take_while(|series| Some(&series.symbol) != last.as_ref()) {
            filled.add_bars(asked, series)?;
        }
        from = last;
        if filled.more || from.is_none() {
            break;
        }
        (_, batch) = next(&context, &transaction, named.as_deref(), from.as_deref()).await?;
    }
    finish(&context, filled, &version, missing)
}

/// Renders a page of prices at an earlier version.
async fn past_page(
    context: &HandlerContext<MarketPricesParameters>,
    outlet: ResponseWriter,
    past: &Arc<PastVersion>,
    restricted: Arc<RestrictedSecurities>,
) -> Result<FinishedBody, ApiError> {
    past.require_reproducible()?;
    let asked = &context.parameters;
    let symbols = asked.symbols.as_ref().map_or(&[][..], |list| &list.0);
    let year = |date: Option<NaiveDate>| date.or(past.as_of).map_or(0, |date| date.year());
    let (first, last) = (year(asked.first()), year(asked.last()));
    let (mut series, mut missing) = (BTreeMap::new(), Vec::new());
    for batch in symbols.chunks(PAST_BATCH) {
        let spellings = batch.iter().map(|symbol| symbol.candidates.clone()).collect();
        let found = derive_past_securities(&context.generation, past, spellings, None).await?;
        for (symbol, security) in batch.iter().zip(found) {
            match security {
                Some(security) => {
                    let prices = SecurityPrices::of_past(past.version(), &security, first, last)?;
                    series.insert(prices.symbol.clone(), prices);
                }
                None => missing.push(symbol.text.clone()),
            }
        }
    }
    let mut filled = PageBuilder::new(asked, outlet.begin(past.version()), restricted)?;
    let from = asked.page.after_value(0).unwrap_or_default();
    for series in series.values().filter(|series| series.symbol.as_str() >= from) {
        if filled.more {
            break;
        }
        filled.add_bars(asked, series)?;
    }
    finish(context, filled, &past.version(), missing)
}

fn finish(
    context: &HandlerContext<MarketPricesParameters>,
    filled: PageBuilder,
    version: &DataVersion,
    missing: Vec<String>,
) -> Result<FinishedBody, ApiError> {
    let asked = &context.parameters;
    let key = filled.last.as_ref().filter(|_| filled.more);
    let signer = context.app.signer.of_response(version.to_exact_text());
    let next_cursor = key.map(|key| asked.page.cursor(key, &signer));
    let mut list = ListMeta::new(version, filled.count, asked.page.limit, next_cursor.clone());
    list.known_at = context.known_at;
    list.set_missing(missing);
    let (start_date, end_date) = (asked.first().or(version.as_of), asked.last().or(version.as_of));
    let left_out = filled.restricted.describe(filled.left_out);
    let adjustment = adjustment_text(asked.adjustment);
    let meta = MarketPricesMeta { list, start_date, end_date, adjustment, left_out };
    let mut body = filled.body;
    body.write(rows::list_closing(&asked.output, &meta)?)?;
    Ok(body.finish(next_cursor)?)
}

/// Reads the next batch of securities in symbol order, beginning with the symbol `from`. Only securities with bars in
/// the years of the range are read.
async fn next(
    context: &HandlerContext<MarketPricesParameters>,
    transaction: &Transaction<'_>,
    named: Option<&[String]>,
    from: Option<&str>,
) -> Result<(DataVersion, Vec<SecurityPrices>), ApiError> {
    let asked = &context.parameters;
    let year = |date: Option<NaiveDate>| date.map(|date| date.year());
    let statement = transaction.prepare_cached(MARKET).await?;
    let rows = transaction
        .query(&statement, &[&year(asked.first()), &year(asked.last()), &named, &from, &i64::from(BATCH)])
        .await?;
    let first = lookup::first_row(&context.generation, &rows)?;
    let series =
        rows.iter().map(SecurityPrices::from_row).filter_map(Result::transpose).collect::<Result<_, _>>()?;
    Ok((DataVersion::from_row(first)?, series))
}

struct PageBuilder {
    encoder: PriceEncoder,
    body: BodyWriter,
    count: usize,
    limit: usize,
    /// Symbol and day of the last row on the page; `None` without rows.
    last: Option<[Option<String>; 2]>,
    /// True if at least one row did not fit on the page.
    more: bool,
    restricted: Arc<RestrictedSecurities>,
    /// Securities that the page leaves out.
    left_out: BTreeSet<String>,
}

impl PageBuilder {
    fn new(
        asked: &MarketPricesParameters,
        mut body: BodyWriter,
        restricted: Arc<RestrictedSecurities>,
    ) -> Result<Self, ApiError> {
        body.write(rows::list_opening(&asked.output)?)?;
        let encoder = price_encoder(&asked.output);
        let (limit, left_out) = (asked.page.row_limit(), BTreeSet::new());
        Ok(Self { encoder, body, count: 0, limit, last: None, more: false, restricted, left_out })
    }

    /// Adds bars of a security, up to the page limit. Only bars within the requested range and after the cursor are
    /// added.
    fn add_bars(
        &mut self,
        asked: &MarketPricesParameters,
        series: &SecurityPrices,
    ) -> Result<(), Disconnected> {
        let mut sessions = sessions(asked, series);
        if !sessions.is_empty() && self.restricted.contains(&series.symbol) {
            self.left_out.insert(series.symbol.clone());
            return Ok(());
        }
        let room = self.limit - self.count;
        self.more |= sessions.len() > room;
        sessions.end = sessions.end.min(sessions.start + room);
        if sessions.is_empty() {
            return Ok(());
        }
        let last = date_of(series.bars.day[sessions.end - 1]).to_string();
        self.last = Some([Some(series.symbol.clone()), Some(last)]);
        let periods: Vec<Range<usize>> = sessions.map(|session| session..session + 1).collect();
        let mut rows = Vec::new();
        if self.count > 0 && asked.output.format == ResponseFormat::Json {
            rows.push(b',');
        }
        self.count += periods.len();
        series.encode(&self.encoder, asked.adjustment, b"", &periods, &mut rows);
        self.body.write(rows)
    }
}

/// Indexes of the bars of `series` that are within the requested range and after the cursor.
fn sessions(asked: &MarketPricesParameters, series: &SecurityPrices) -> Range<usize> {
    let days = &series.bars.day;
    let bound = |date: Option<NaiveDate>| date.or(series.version.as_of).map(day_number);
    let (Some(first), Some(last)) = (bound(asked.first()), bound(asked.last())) else { return 0..0 };
    let mut start = days.partition_point(|day| *day < first);
    if asked.page.after_value(0) == Some(&series.symbol)
        && let Some(after) = asked.page.after_value(1).and_then(|day| day.parse::<NaiveDate>().ok())
    {
        start = start.max(days.partition_point(|day| *day <= day_number(after)));
    }
    let end = days.partition_point(|day| *day <= last);
    start.min(end)..end
}
