//! `GET /v1/stocks`: filtered list of stocks and ETFs.

use std::borrow::Cow;
use std::collections::HashSet;

use market::event::{Frequency, SecurityType};
use market::row::{StockRow, TableRow};
use rust_decimal::Decimal;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::concurrency::run_low_priority;
use crate::error::ApiError;
use crate::parameters::facets::FilterField;
use crate::parameters::{
    Bounds, Direction, Output, Page, PageOptions, SortValue, Sortable, SymbolList, is_among, parameters,
};
use crate::read::lookup::{self, ResolvedSymbols};
use crate::render::envelope::List;
use crate::routes::endpoint;

const PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 1_000,
    keys: &["symbol", "name", "market_cap", "price", "dividend_yield"],
    order: &[("symbol", Direction::Ascending)],
};

parameters! {
    /// Parameters of the list of stocks and ETFs.
    pub(crate) struct ListParameters by reader {
        /// Comma-separated symbols (at most 100). Unknown symbols are listed in `meta.missing`.
        symbols: Option<SymbolList> = reader.read_symbols(100),
        /// True for securities that still trade, false for all other securities.
        is_active: bool = reader.read_bool_or("is_active", true),
        /// Minimum headline dividend yield, percent.
        min_yield: Option<Decimal> = reader.read_decimal("min_yield", Bounds::Percent),
        /// Maximum headline dividend yield, percent.
        max_yield: Option<Decimal> =
            reader.read_maximum("max_yield", Bounds::Percent, "min_yield", min_yield),
        /// Minimum price, in the security's currency.
        min_price: Option<Decimal> = reader.read_decimal("min_price", Bounds::Amount),
        /// Maximum price, in the security's currency.
        max_price: Option<Decimal> = reader.read_maximum("max_price", Bounds::Amount, "min_price", min_price),
        /// Minimum `reporting_market_cap`: market capitalisation in the reporting currency.
        min_market_cap: Option<Decimal> = reader.read_decimal("min_market_cap", Bounds::Amount),
        /// Maximum `reporting_market_cap`: market capitalisation in the reporting currency.
        max_market_cap: Option<Decimal> =
            reader.read_maximum("max_market_cap", Bounds::Amount, "min_market_cap", min_market_cap),
        /// True for securities that pay regular dividends, false for securities that pay none. Securities with unknown
        /// dividends match neither value.
        pays_dividend: Option<bool> = reader.read_bool_or_alias("pays_dividend", "has_dividends"),
        page: Page = reader.read_page(&PAGING),
        /// Security types, comma-separated.
        r#type: Option<Vec<SecurityType>> = reader.read_words("type", SecurityType::ALL),
        /// Exchanges by market identifier code or name, comma-separated.
        exchange: Option<Vec<String>> = reader.read_names(FilterField::Exchange),
        /// Sectors by name or slug, comma-separated.
        sector: Option<Vec<String>> = reader.read_names(FilterField::Sector),
        /// Industries by name or slug, comma-separated.
        industry: Option<Vec<String>> = reader.read_names(FilterField::Industry),
        /// Countries of domicile by ISO 3166 code or name, comma-separated.
        country: Option<Vec<String>> = reader.read_names(FilterField::Country),
        /// ISO 4217 currencies, comma-separated, in upper or lower case.
        currency: Option<Vec<String>> = reader.read_currencies(),
        /// Payment frequencies, comma-separated.
        frequency: Option<Vec<Frequency>> = reader.read_words("frequency", Frequency::ALL),
        output: Output = reader.read_output(StockRow::COLUMNS),
    }
}

impl ListParameters {
    fn matches(&self, stock: &StockRow) -> bool {
        is_among(self.r#type.as_ref(), Some(&stock.r#type))
            && is_among(self.exchange.as_ref(), stock.exchange.as_ref())
            && is_among(self.sector.as_ref(), stock.sector.as_ref())
            && is_among(self.industry.as_ref(), stock.industry.as_ref())
            && is_among(self.country.as_ref(), stock.country.as_ref())
            && is_among(self.currency.as_ref(), Some(&stock.currency))
            && is_among(self.frequency.as_ref(), stock.frequency.as_ref())
            && self.pays_dividend.is_none_or(|wanted| stock.pays_dividend == Some(wanted))
            && stock.is_active == self.is_active
            && is_within_bounds(stock.dividend_yield.map(|value| value.0), self.min_yield, self.max_yield)
            && is_within_bounds(stock.price.map(|value| value.0), self.min_price, self.max_price)
            && is_within_bounds(
                stock.reporting_market_cap.map(Decimal::from),
                self.min_market_cap,
                self.max_market_cap,
            )
    }
}

/// True if the value is within the inclusive bounds. For an unknown value, the result is true only if there are no
/// bounds.
pub(crate) fn is_within_bounds(
    value: Option<Decimal>,
    least: Option<Decimal>,
    most: Option<Decimal>,
) -> bool {
    let above = least.is_none_or(|least| value.is_some_and(|value| value >= least));
    let below = most.is_none_or(|most| value.is_some_and(|value| value <= most));
    above && below
}

impl Sortable for StockRow {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>> {
        match key {
            "symbol" => Some(SortValue::Text(Cow::Borrowed(&self.symbol))),
            "name" => Some(SortValue::Text(self.name.to_lowercase().into())),
            "market_cap" => self.reporting_market_cap.map(|value| SortValue::Number(value.into())),
            "price" => self.price.map(|value| SortValue::Number(value.0)),
            "dividend_yield" => self.dividend_yield.map(|value| SortValue::Number(value.0)),
            _ => None,
        }
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.symbol)
    }
}

endpoint! {
    /// List and filter stocks and ETFs
    ///
    /// By default, active securities are listed, ordered by symbol.
    get "/v1/stocks", tag "Stocks", returns "A page of stock rows",
    list(Access<Free, ListParameters>) -> List<StockRow> { respond(render) }
}

async fn render(context: HandlerContext<ListParameters>) -> Result<RenderedBody, ApiError> {
    let stock_table = context.app.memory_tables.stocks(&context.generation).await?;
    let ResolvedSymbols { known, missing } =
        lookup::resolve_symbol_list(&context.generation, context.parameters.symbols.as_ref()).await?;
    let named: Option<HashSet<String>> = known.map(|named| named.into_iter().collect());
    let page = move || {
        let asked = &context.parameters;
        let securities = stock_table.rows.iter().map(|member| &member.stock);
        let wanted =
            securities.filter(|stock| named.as_ref().is_none_or(|named| named.contains(&stock.symbol)));
        let rows = wanted.filter(|stock| asked.matches(stock));
        context.render_page(&asked.output, &asked.page, stock_table.version, rows, |meta| {
            meta.set_missing(asked.symbols.as_ref().map(|_| missing))
        })
    };
    run_low_priority(page).await?
}
