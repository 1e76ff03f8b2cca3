//! `GET /v1/compare`: up to ten symbols side by side.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use chrono::NaiveDate;
use market::dated_text::LimitToHistory;
use market::decimal::ExactDecimal;
use market::row::{FundamentalsRow, Metrics, Quote, TableRow};
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use super::conversion::{Conversion, Converted};
use super::endpoint;
use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::auth::Tier;
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, ResponseFormat, SymbolList, parameters};
use crate::read::DataVersion;
use crate::read::lookup::{self, PastVersion, ResolvedSymbols};
use crate::render::envelope::{ListMeta, Warning};
use crate::render::rows;

const QUOTES: &str = include_str!("../../queries/bulk/quotes.sql");
const FUNDAMENTALS: &str = include_str!("../../queries/bulk/fundamentals.sql");
const METRICS: &str = include_str!("../../queries/bulk/metrics.sql");
const MOST: usize = 10;
const SECTIONS: &[&str] = &["quote", "fundamentals", "metrics"];
const COLUMNS: &[&str] = &["symbol", "quote", "fundamentals", "metrics", "converted"];
/// Fields of [`ConvertedFigures`].
const CONVERTED: [&str; 5] = ["price", "market_cap", "annual_dividend", "dps_ttm", "dps_forward"];
/// CSV columns of each section, for example `quote.price` in the section `quote`. The column `symbol` is in no section.
static SECTION_COLUMNS: LazyLock<Vec<(&str, Vec<String>)>> = LazyLock::new(|| {
    let of = |section: &'static str, columns: &[&str]| {
        let named = columns.iter().filter(|column| **column != "symbol");
        (section, named.map(|column| format!("{section}.{column}")).collect())
    };
    vec![
        of("quote", Quote::COLUMNS),
        of("fundamentals", FundamentalsRow::COLUMNS),
        of("metrics", Metrics::COLUMNS),
        ("converted", CONVERTED.iter().flat_map(converted_columns).collect()),
    ]
});
fn converted_columns(field: &&'static str) -> impl Iterator<Item = String> {
    Converted::COLUMNS.iter().map(move |column| format!("converted.{field}.{column}"))
}

/// Names that `fields` accepts in CSV. The name of a section selects all its columns.
static CSV_FIELDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let of_sections = SECTION_COLUMNS.iter().flat_map(|(_, columns)| columns.iter().map(String::as_str));
    COLUMNS.iter().copied().chain(of_sections).collect()
});

/// One of the compared securities.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompareItem {
    /// Canonical ticker.
    symbol: String,
    /// Quote, as in the quote endpoint.
    quote: Option<Quote>,
    /// Fundamentals. Null below the Starter tier; the response then has a warning.
    fundamentals: Option<FundamentalsRow>,
    /// Dividend metrics, as in the metrics endpoint.
    metrics: Option<Metrics>,
    /// Amounts in the requested currency. Omitted without the parameter `currency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    converted: Option<ConvertedFigures>,
}

/// Amounts in the requested currency, at the rate of the day of the price; null without an amount or rate.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConvertedFigures {
    /// Price of the quote.
    price: Option<Converted>,
    /// Market capitalisation of the quote.
    market_cap: Option<Converted>,
    /// Annual dividend of the quote.
    annual_dividend: Option<Converted>,
    /// Trailing dividend of the metrics.
    dps_ttm: Option<Converted>,
    /// Forward dividend of the metrics.
    dps_forward: Option<Converted>,
}

/// Securities side by side, in request order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompareAnswer {
    /// One item per known symbol, in request order.
    data: Vec<CompareItem>,
    /// Data version of the comparison, and the best symbol for each figure.
    meta: CompareMeta,
}

/// Data version of a comparison, and the best symbol for each figure.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CompareMeta {
    #[serde(flatten)]
    list: ListMeta,
    /// For each figure, the symbol with the best value. If several symbols have the best value, it is the symbol that
    /// the request lists first.
    best: BTreeMap<&'static str, String>,
}

parameters! {
    /// Parameters of the comparison.
    pub(crate) struct CompareParameters by reader {
        /// Comma-separated symbols, 1 to 10.
        symbols: SymbolList = reader.read_required_symbols(MOST),
        /// Sections to return, comma-separated: quote, fundamentals, metrics. Default: all.
        sections: Vec<&'static str> = reader.read_words("sections", SECTIONS).unwrap_or_else(|| SECTIONS.to_vec()),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        currency: Option<String> = reader.read_target_currency(),
        output: Output =
            select_columns(reader.read_output_with_csv(COLUMNS, &CSV_FIELDS), &sections, currency.is_some()),
    }

    const TIER_MATTERS: bool = true;
}

/// Restricts the output to the symbol, the columns of the requested sections, and the converted amounts of a request with
/// `currency`.
fn select_columns(output: Output, sections: &[&str], is_converted: bool) -> Output {
    let mut chosen = output.fields.unwrap_or_else(|| COLUMNS.to_vec());
    if output.format == ResponseFormat::Csv {
        chosen = csv_columns(&chosen);
    }
    chosen.retain(|column| {
        let section = column.split_once('.').map_or(*column, |(section, _)| section);
        section == "symbol" || sections.contains(&section) || (section == "converted" && is_converted)
    });
    Output { fields: Some(chosen), ..output }
}

/// Distinct CSV columns for the names in `fields`, in the order of the sections.
fn csv_columns(chosen: &[&'static str]) -> Vec<&'static str> {
    let mut columns: Vec<&str> = chosen.iter().copied().filter(|name| *name == "symbol").collect();
    for (section, of_section) in SECTION_COLUMNS.iter() {
        let whole = chosen.contains(section);
        columns
            .extend(of_section.iter().map(String::as_str).filter(|column| whole || chosen.contains(column)));
    }
    columns
}

endpoint! {
    /// Compare up to 10 symbols
    ///
    /// Quote, fundamentals (Starter and higher) and metrics of each symbol, in request order. `meta.best` has the best
    /// symbol for each figure. CSV has one row per symbol, and a column for each figure of a section, for example
    /// `quote.price`.
    get "/v1/compare", tag "Compare", returns "Securities side by side",
    compare(Access<Free, CompareParameters>) -> CompareAnswer { respond(side_by_side) }
}

/// Quotes, fundamentals and metrics by symbol. All rows have the same data version.
#[derive(Default)]
struct ComparedRows {
    /// Distinct canonical symbols in request order.
    named: Vec<String>,
    /// Unknown symbols.
    missing: Vec<String>,
    quotes: HashMap<String, Quote>,
    fundamentals: HashMap<String, FundamentalsRow>,
    metrics: HashMap<String, Metrics>,
}

impl ComparedRows {
    /// Reads the rows from the served generation, in one snapshot.
    async fn read(context: &HandlerContext<CompareParameters>) -> Result<(DataVersion, Self), ApiError> {
        let asked = Some(&context.parameters.symbols);
        let ResolvedSymbols { known, missing } =
            lookup::resolve_symbol_list(&context.generation, asked).await?;
        let named = known.unwrap_or_default();
        let symbols = named.as_slice();
        let mut client = context.generation.client().await?;
        let transaction = lookup::begin_snapshot(&mut client).await?;
        let (version, quotes) =
            lookup::find_by_symbol(&context.generation, &transaction, QUOTES, symbols).await?;
        let (_, fundamentals) =
            lookup::find_by_symbol(&context.generation, &transaction, FUNDAMENTALS, symbols).await?;
        let (_, metrics) =
            lookup::find_by_symbol(&context.generation, &transaction, METRICS, symbols).await?;
        Ok((version, Self { named, missing, quotes, fundamentals, metrics }))
    }

    /// Derives the rows of an earlier data version from facts.
    async fn derive(
        context: &HandlerContext<CompareParameters>,
        past: Arc<PastVersion>,
    ) -> Result<Self, ApiError> {
        let (securities, missing) = context.past_securities(&past, &context.parameters.symbols).await?;
        let mut rows = Self { missing, ..Self::default() };
        for security in securities {
            let symbol = security.symbol().to_owned();
            rows.named.push(symbol.clone());
            let fundamentals = security.rows.fundamentals.clone();
            rows.fundamentals.extend(fundamentals.map(|row| (symbol.clone(), row)));
            rows.quotes.insert(symbol.clone(), security.rows.quote.clone());
            rows.metrics.insert(symbol, security.rows.metrics.clone());
        }
        Ok(rows)
    }
}

async fn side_by_side(context: HandlerContext<CompareParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let mut warnings = Vec::new();
    let (knowledge, live) = (asked.knowledge.as_ref(), ComparedRows::read(&context));
    let past = async |past| ComparedRows::derive(&context, past).await;
    let (version, mut rows) = context.read_as_known(knowledge, live, past).await?;
    let (named, missing) = (std::mem::take(&mut rows.named), std::mem::take(&mut rows.missing));
    if context.tier < Tier::Starter && asked.sections.contains(&"fundamentals") {
        rows.fundamentals.clear();
        let message = "Fundamentals need the Starter plan or higher".to_owned();
        warnings.push(Warning { code: "fundamentals_not_included", message, param: Some("sections") });
    }
    let depth = context.depth();
    let take = |symbol: String| CompareItem {
        quote: rows.quotes.remove(&symbol),
        fundamentals: rows.fundamentals.remove(&symbol),
        metrics: rows.metrics.remove(&symbol).map(|metrics| metrics.limit_to_days_from(depth.from)),
        converted: None,
        symbol,
    };
    let mut items: Vec<CompareItem> = named.into_iter().map(take).collect();
    if let Some(currency) = &asked.currency {
        let amounts =
            items.iter().flat_map(CompareItem::amounts).flatten().map(|(_, currency, day)| (currency, day));
        let amounts: Vec<(&str, NaiveDate)> = amounts.collect();
        let conversion = Conversion::load(&context.generation, &version, Some(currency), &amounts).await?;
        for item in &mut items {
            item.converted = Some(item.convert(&conversion));
        }
    }
    let mut list = ListMeta::new(&version, items.len(), 10, None);
    list.known_at = context.known_at;
    list.warnings = warnings;
    list.set_missing(missing);
    list.set_depth(Some(depth), context.today);
    let meta = CompareMeta { list, best: best(&items) };
    Ok(RenderedBody { body: rows::render_list(&asked.output, &items, &meta)?, version, next_cursor: None })
}

impl CompareItem {
    /// Amounts that can be converted, in the order of [`CONVERTED`]: amount, currency, and day of the price.
    fn amounts(&self) -> [Option<(Decimal, &str, NaiveDate)>; 5] {
        let (quote, metrics) = (self.quote.as_ref(), self.metrics.as_ref());
        let day = quote.and_then(|quote| quote.price_date).or(metrics.and_then(|metrics| metrics.price_date));
        let priced = |amount: Option<Decimal>| Some((amount?, quote?.currency.as_str(), day?));
        let paid = |amount: Option<ExactDecimal>| Some((amount?.0, metrics?.currency.as_str(), day?));
        [
            priced(quote.and_then(|quote| quote.price).map(|price| price.0)),
            priced(quote.and_then(|quote| quote.market_cap).map(Decimal::from)),
            quote.and_then(|quote| {
                let currency = quote.dividend_currency.as_ref().unwrap_or(&quote.currency);
                Some((quote.annual_dividend?.0, currency.as_str(), day?))
            }),
            paid(metrics.and_then(|metrics| metrics.dps_ttm)),
            paid(metrics.and_then(|metrics| metrics.dps_forward)),
        ]
    }

    fn convert(&self, conversion: &Conversion) -> ConvertedFigures {
        let convert = |(amount, currency, day)| conversion.convert(amount, currency, day);
        let [price, market_cap, annual_dividend, dps_ttm, dps_forward] =
            self.amounts().map(|found| found.and_then(convert));
        ConvertedFigures { price, market_cap, annual_dividend, dps_ttm, dps_forward }
    }

    /// Market capitalisation, in the requested currency if there is one.
    fn market_cap(&self) -> Option<Decimal> {
        match &self.converted {
            Some(converted) => Some(converted.market_cap.as_ref()?.amount.0),
            None => self.quote.as_ref()?.market_cap.map(Decimal::from),
        }
    }
}

/// Compared figure: name, flag and value. The flag is true if the smallest value is best.
type Contest = (&'static str, bool, fn(&CompareItem) -> Option<Decimal>);

const CONTESTS: &[Contest] = &[
    ("dividend_yield", false, |item| item.metrics.as_ref()?.dividend_yield.map(|value| value.0)),
    ("growth_5y", false, |item| item.metrics.as_ref()?.growth_5y.map(|value| value.0)),
    ("increase_streak_years", false, |item| {
        item.metrics.as_ref().map(|metrics| metrics.increase_streak_years.into())
    }),
    ("payout_ratio", true, |item| item.metrics.as_ref()?.payout_ratio.map(|value| value.0)),
    ("total_return_1y", false, |item| item.metrics.as_ref()?.total_return_1y.map(|value| value.0)),
    ("total_return_5y", false, |item| item.metrics.as_ref()?.total_return_5y.map(|value| value.0)),
    ("volatility_1y", true, |item| item.metrics.as_ref()?.volatility_1y.map(|value| value.0)),
    ("pe_ratio", true, |item| item.quote.as_ref()?.pe_ratio.map(|value| value.0)),
    ("market_cap", false, CompareItem::market_cap),
];

fn best(items: &[CompareItem]) -> BTreeMap<&'static str, String> {
    let winner = |(metric, less, figure): &Contest| {
        let mut best: Option<(Decimal, &str)> = None;
        for item in items {
            let Some(value) = figure(item) else { continue };
            let better = best.is_none_or(|(known, _)| if *less { value < known } else { value > known });
            if better {
                best = Some((value, &item.symbol));
            }
        }
        best.map(|(_, symbol)| (*metric, symbol.to_owned()))
    };
    // Market capitalisations in different currencies are not comparable.
    let is_converted = items.iter().all(|item| item.converted.is_some());
    let mut currencies = items.iter().filter_map(|item| Some(&item.quote.as_ref()?.currency));
    let is_comparable =
        is_converted || currencies.next().is_none_or(|first| currencies.all(|other| other == first));
    let contests = CONTESTS.iter().filter(|(metric, ..)| *metric != "market_cap" || is_comparable);
    contests.filter_map(winner).collect()
}
