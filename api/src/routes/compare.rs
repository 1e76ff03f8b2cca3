//! `GET /v1/compare`: up to ten symbols side by side.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use market::dated_text::LimitToHistory;
use market::row::{FundamentalsRow, Metrics, Quote, TableRow};
use rust_decimal::Decimal;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::auth::tier::Tier;
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, ResponseFormat, SymbolList, parameters};
use crate::read::DataVersion;
use crate::read::lookup::{self, ResolvedSymbols};
use crate::read::past_version::PastVersion;
use crate::render::envelope::{ListMeta, Warning};
use crate::render::rows;
use crate::routes::endpoint;

const QUOTES: &str = include_str!("../../queries/bulk/quotes.sql");
const FUNDAMENTALS: &str = include_str!("../../queries/bulk/fundamentals.sql");
const METRICS: &str = include_str!("../../queries/bulk/metrics.sql");
const MOST: usize = 10;
const SECTIONS: &[&str] = &["quote", "fundamentals", "metrics"];
const COLUMNS: &[&str] = &["symbol", "quote", "fundamentals", "metrics"];
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
    ]
});
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
        output: Output = select_columns(reader.read_output_with_csv(COLUMNS, &CSV_FIELDS), &sections),
    }

    const TIER_MATTERS: bool = true;
}

/// Restricts the output to the symbol and the columns of the requested sections.
fn select_columns(output: Output, sections: &[&str]) -> Output {
    let mut chosen = output.fields.unwrap_or_else(|| COLUMNS.to_vec());
    if output.format == ResponseFormat::Csv {
        chosen = csv_columns(&chosen);
    }
    chosen.retain(|column| {
        let section = column.split_once('.').map_or(*column, |(section, _)| section);
        section == "symbol" || sections.contains(&section)
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
        symbol,
    };
    let items: Vec<CompareItem> = named.into_iter().map(take).collect();
    let mut list = ListMeta::new(&version, items.len(), 10, None);
    list.known_at = context.known_at;
    list.warnings = warnings;
    list.set_missing(missing);
    list.set_depth(Some(depth), context.today);
    let meta = CompareMeta { list, best: best(&items) };
    Ok(RenderedBody { body: rows::render_list(&asked.output, &items, &meta)?, version, next_cursor: None })
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
    ("market_cap", false, |item| item.quote.as_ref()?.market_cap.map(Decimal::from)),
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
    CONTESTS.iter().filter_map(winner).collect()
}
