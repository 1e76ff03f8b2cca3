//! `GET /v1/etfs`: filtered list of active funds. `GET /v1/etfs/{symbol}`: details of one fund.

pub(crate) mod holdings;

use std::borrow::Cow;

use market::decimal::ExactDecimal;
use market::event::Frequency;
use market::row::{EtfRow, TableRow};
use market::symbol::Symbol;
use rust_decimal::Decimal;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::{ApiError, SymbolKind};
use crate::parameters::facets::FilterField;
use crate::parameters::{
    Bounds, Direction, Output, Page, PageOptions, RequestedSymbol, SortValue, Sortable, is_among, parameters,
};
use crate::read::{QueryError, lookup};
use crate::render::envelope::{List, Single};
use crate::routes::endpoint;
use crate::routes::stocks::list::is_within_bounds;

const PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 1_000,
    keys: &["symbol", "name", "aum", "expense_ratio", "dividend_yield"],
    order: &[("symbol", Direction::Ascending)],
};

parameters! {
    /// Parameters of the list of funds.
    pub(crate) struct EtfsParameters by reader {
        /// Minimum headline dividend yield, percent.
        min_yield: Option<Decimal> = reader.read_decimal("min_yield", Bounds::Percent),
        /// Maximum headline dividend yield, percent.
        max_yield: Option<Decimal> =
            reader.read_maximum("max_yield", Bounds::Percent, "min_yield", min_yield),
        /// Returns only funds with this `related_symbol`. For a single-stock fund, `related_symbol` is the ticker of
        /// the underlying stock. For other funds, it is the ticker of an unleveraged fund on the same index.
        related_symbol: Option<String> = reader.read_text("related_symbol", 24).map(normalize_symbol),
        /// Part of the name, or beginning of the symbol. Letter case does not matter.
        q: Option<String> = reader.read_text("q", 64).map(|q| q.trim().to_lowercase()),
        /// Issuers by name or slug, comma-separated.
        issuer: Option<Vec<String>> = reader.read_names(FilterField::Issuer),
        /// Asset classes by name or slug, comma-separated.
        asset_class: Option<Vec<String>> = reader.read_names(FilterField::AssetClass),
        /// Categories by name or slug, comma-separated.
        category: Option<Vec<String>> = reader.read_names(FilterField::Category),
        /// Strategies by name or slug, comma-separated.
        strategy: Option<Vec<String>> = reader.read_names(FilterField::Strategy),
        /// True for leveraged funds, false for unleveraged funds. With either value, funds without this information are
        /// left out.
        is_leveraged: Option<bool> = reader.read_bool("is_leveraged"),
        /// True for inverse funds, false for funds that are not inverse. With either value, funds without this
        /// information are left out.
        is_inverse: Option<bool> = reader.read_bool("is_inverse"),
        /// Payment frequencies, comma-separated.
        frequency: Option<Vec<Frequency>> = reader.read_words("frequency", Frequency::ALL),
        /// Maximum expense ratio, percent a year.
        max_expense_ratio: Option<Decimal> = reader.read_decimal("max_expense_ratio", Bounds::Percent),
        /// Minimum assets under management, in the fund's currency.
        min_aum: Option<Decimal> = reader.read_decimal("min_aum", Bounds::Amount),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(EtfRow::COLUMNS),
    }
}

/// Canonical spelling of a symbol. An invalid ticker is returned unchanged, and matches nothing.
fn normalize_symbol(text: String) -> String {
    Symbol::parse(&text).map_or(text, |symbol| symbol.to_string())
}

impl EtfsParameters {
    fn matches(&self, etf: &EtfRow) -> bool {
        self.q.as_ref().is_none_or(|q| {
            etf.listed.symbol.to_lowercase().starts_with(q) || etf.listed.name.to_lowercase().contains(q)
        }) && is_among(self.issuer.as_ref(), etf.issuer.as_ref())
            && is_among(self.asset_class.as_ref(), etf.asset_class.as_ref())
            && is_among(self.category.as_ref(), etf.category.as_ref())
            && is_among(self.strategy.as_ref(), etf.strategy.as_ref())
            && self.related_symbol.as_ref().is_none_or(|wanted| etf.related_symbol.as_ref() == Some(wanted))
            && self.is_leveraged.is_none_or(|wanted| etf.is_leveraged == Some(wanted))
            && self.is_inverse.is_none_or(|wanted| etf.is_inverse == Some(wanted))
            && is_among(self.frequency.as_ref(), etf.listed.frequency.as_ref())
            && is_within_bounds(etf.expense_ratio.map(|value| value.0), None, self.max_expense_ratio)
            && is_within_bounds(etf.aum.map(|value| value.0), self.min_aum, None)
            && is_within_bounds(
                etf.listed.dividend_yield.map(|value| value.0),
                self.min_yield,
                self.max_yield,
            )
    }
}

impl Sortable for EtfRow {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>> {
        let number = |value: Option<ExactDecimal>| value.map(|value| SortValue::Number(value.0));
        match key {
            "symbol" => Some(SortValue::Text(Cow::Borrowed(&self.listed.symbol))),
            "name" => Some(SortValue::Text(self.listed.name.to_lowercase().into())),
            "aum" => number(self.aum),
            "expense_ratio" => number(self.expense_ratio),
            _ => number(self.listed.dividend_yield),
        }
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.listed.symbol)
    }
}

endpoint! {
    /// List ETFs with filters
    ///
    /// Active funds, ordered by symbol.
    get "/v1/etfs", tag "ETFs", returns "A page of funds",
    list(Access<Free, EtfsParameters>) -> List<EtfRow> { respond(render) }
}

async fn render(context: HandlerContext<EtfsParameters>) -> Result<RenderedBody, ApiError> {
    let etfs = context.app.memory_tables.etfs(&context.generation).await?;
    let asked = &context.parameters;
    let rows = etfs.rows.iter().filter(|etf| asked.matches(etf));
    context.render_page(&asked.output, &asked.page, etfs.version, rows, |_| {})
}

const DETAIL: &str = include_str!("../../queries/etfs/detail.sql");

parameters! {
    /// Parameters of fund details.
    pub(crate) struct DetailParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        output: Output = reader.read_output(EtfRow::COLUMNS),
    }
}

/// Error 404 for an unknown fund.
pub(super) fn unknown_fund_error(symbol: &RequestedSymbol) -> ApiError {
    ApiError::unknown_symbol(SymbolKind::Etf, symbol.clone())
}

endpoint! {
    /// ETF details
    ///
    /// Returns the fields of a row of `/v1/stocks`, followed by fund data and totals of the holdings.
    get "/v1/etfs/{symbol}", tag "ETFs", returns "The fund",
    detail(Access<Free, DetailParameters>) -> Single<EtfRow> { respond(render_detail) }
}

async fn render_detail(context: HandlerContext<DetailParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let found = lookup::find_one::<EtfRow>(&context.generation, DETAIL, &asked.symbol).await;
    let (version, row) = found.map_err(|error| match error {
        QueryError::UnknownSymbol(_) => unknown_fund_error(&asked.symbol),
        other => other.into(),
    })?;
    context.render_single(&asked.output, version, &row)
}
