//! `GET /v1/stocks`: filtered list of stocks and ETFs.

use std::borrow::Cow;
use std::collections::HashSet;

use axum::response::Response;
use market::event::{Frequency, SecurityType};
use market::row::{StockRow, TableRow};
use rust_decimal::Decimal;

use crate::answer::{Access, Free};
use crate::concurrency::cpu_pool::run_low_priority;
use crate::parameters::facets::FilterField;
use crate::parameters::{
    Bounds, Direction, DocumentedParameters, Output, Page, PageOptions, ParameterReader, Parameters,
    SortValue, Sortable, SymbolList, is_among, parameters,
};
use crate::read::lookup::{self, ResolvedSymbols};
use crate::render::envelope::List;
use crate::routes::ErrorResponses;

const PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 1_000,
    keys: &["symbol", "name", "market_cap", "price", "dividend_yield"],
    order: &[("symbol", Direction::Ascending)],
};

parameters! {
    /// Parameters of the list of stocks and ETFs.
    pub(crate) struct ListParameters {
        /// Comma-separated symbols (at most 100). Unknown symbols are listed in `meta.missing`.
        symbols: Option<SymbolList>,
        /// Security types, comma-separated.
        r#type: Option<Vec<SecurityType>>,
        /// Exchanges by market identifier code or name, comma-separated.
        exchange: Option<Vec<String>>,
        /// Sectors by name or slug, comma-separated.
        sector: Option<Vec<String>>,
        /// Industries by name or slug, comma-separated.
        industry: Option<Vec<String>>,
        /// Countries of domicile by ISO 3166 code or name, comma-separated.
        country: Option<Vec<String>>,
        /// ISO 4217 currencies, comma-separated, in any case.
        currency: Option<Vec<String>>,
        /// Payment frequencies, comma-separated.
        frequency: Option<Vec<Frequency>>,
        /// True for securities that pay regular dividends, false for all other securities.
        pays_dividend: Option<bool>,
        /// True for securities that still trade, false for all other securities.
        is_active: bool,
        /// Minimum headline dividend yield, percent.
        min_yield: Option<Decimal>,
        /// Maximum headline dividend yield, percent.
        max_yield: Option<Decimal>,
        /// Minimum price.
        min_price: Option<Decimal>,
        /// Maximum price.
        max_price: Option<Decimal>,
        /// Minimum market capitalisation.
        min_market_cap: Option<Decimal>,
        /// Maximum market capitalisation.
        max_market_cap: Option<Decimal>,
        page: Page,
        output: Output,
    }
}

impl Parameters for ListParameters {
    fn read(reader: &mut ParameterReader<'_>) -> Self {
        let symbols = reader.read_symbols(100);
        let is_active = reader.read_bool_or("is_active", true);
        let (min_yield, max_yield) = reader.read_bounds("min_yield", "max_yield", Bounds::Percent);
        let (min_price, max_price) = reader.read_bounds("min_price", "max_price", Bounds::Amount);
        let (min_market_cap, max_market_cap) =
            reader.read_bounds("min_market_cap", "max_market_cap", Bounds::Amount);
        let pays_dividend = reader.read_bool_or_alias("pays_dividend", "has_dividends");
        let page = reader.read_page(&PAGING);
        Self {
            symbols,
            r#type: reader.read_words("type", SecurityType::ALL),
            exchange: reader.read_names(FilterField::Exchange),
            sector: reader.read_names(FilterField::Sector),
            industry: reader.read_names(FilterField::Industry),
            country: reader.read_names(FilterField::Country),
            currency: reader.read_currencies(),
            frequency: reader.read_words("frequency", Frequency::ALL),
            pays_dividend,
            is_active,
            min_yield,
            max_yield,
            min_price,
            max_price,
            min_market_cap,
            max_market_cap,
            page,
            output: reader.read_output(StockRow::COLUMNS),
        }
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
            && is_within_bounds(stock.market_cap.map(Decimal::from), self.min_market_cap, self.max_market_cap)
    }
}

/// True if the value is within the inclusive bounds. An unknown value passes only without bounds.
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
            "market_cap" => self.market_cap.map(|value| SortValue::Number(value.into())),
            "price" => self.price.map(|value| SortValue::Number(value.0)),
            "dividend_yield" => self.dividend_yield.map(|value| SortValue::Number(value.0)),
            _ => None,
        }
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.symbol)
    }
}

/// List and filter stocks and ETFs
///
/// By default, active securities are listed, ordered by symbol.
#[utoipa::path(
    get, path = "/v1/stocks", tag = "Stocks", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<ListParameters>),
    responses((status = 200, description = "A page of stock rows", body = List<StockRow>), ErrorResponses)
)]
pub(crate) async fn list(access: Access<Free, ListParameters>) -> Response {
    access
        .respond(async |context| {
            let stock_table = context.app.memory_tables.stocks(&context.generation).await?;
            let ResolvedSymbols { known, missing } =
                lookup::resolve_symbol_list(&context.generation, context.parameters.symbols.as_ref()).await?;
            let named: Option<HashSet<String>> = known.map(|named| named.into_iter().collect());
            let page = move || {
                let asked = &context.parameters;
                let securities = stock_table.securities.iter().map(|member| &member.stock);
                let wanted = securities
                    .filter(|stock| named.as_ref().is_none_or(|named| named.contains(&stock.symbol)));
                let rows = wanted.filter(|stock| asked.matches(stock));
                context.render_page(&asked.output, &asked.page, stock_table.version, rows, |meta| {
                    if asked.symbols.is_some() {
                        meta.set_missing(missing);
                    }
                })
            };
            run_low_priority(page).await?
        })
        .await
}
