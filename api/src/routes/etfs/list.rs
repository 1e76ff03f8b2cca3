//! `GET /v1/etfs`: filtered list of active funds.

use std::borrow::Cow;

use axum::response::Response;
use market::decimal::ExactDecimal;
use market::event::Frequency;
use market::row::{EtfRow, TableRow};
use market::symbol::Symbol;
use rust_decimal::Decimal;

use crate::answer::{Access, Free};
use crate::parameters::facets::FilterField;
use crate::parameters::{
    Bounds, Direction, DocumentedParameters, Output, Page, PageOptions, ParameterReader, Parameters,
    SortValue, Sortable, is_among, parameters,
};
use crate::render::envelope::List;
use crate::routes::ErrorResponses;
use crate::routes::stocks::list::is_within_bounds;

const PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 1_000,
    keys: &["symbol", "name", "aum", "expense_ratio", "dividend_yield"],
    order: &[("symbol", Direction::Ascending)],
};

parameters! {
    /// Parameters of the list of funds.
    pub(crate) struct EtfsParameters {
        /// Part of the name, or beginning of the symbol, in any case.
        q: Option<String>,
        /// Issuers by name or slug, comma-separated.
        issuer: Option<Vec<String>>,
        /// Asset classes by name or slug, comma-separated.
        asset_class: Option<Vec<String>>,
        /// Categories by name or slug, comma-separated.
        category: Option<Vec<String>>,
        /// Strategies by name or slug, comma-separated.
        strategy: Option<Vec<String>>,
        /// Underlying security of single-stock funds.
        related_symbol: Option<String>,
        /// True for leveraged funds, false for all other funds.
        is_leveraged: Option<bool>,
        /// True for inverse funds, false for all other funds.
        is_inverse: Option<bool>,
        /// Payment frequencies, comma-separated.
        frequency: Option<Vec<Frequency>>,
        /// Maximum expense ratio, percent.
        max_expense_ratio: Option<Decimal>,
        /// Minimum assets under management.
        min_aum: Option<Decimal>,
        /// Minimum headline dividend yield, percent.
        min_yield: Option<Decimal>,
        /// Maximum headline dividend yield, percent.
        max_yield: Option<Decimal>,
        page: Page,
        output: Output,
    }
}

impl Parameters for EtfsParameters {
    fn read(reader: &mut ParameterReader<'_>) -> Self {
        let (min_yield, max_yield) = reader.read_bounds("min_yield", "max_yield", Bounds::Percent);
        let related = reader.read_text("related_symbol", 24);
        Self {
            q: reader.read_text("q", 64).map(|q| q.trim().to_lowercase()),
            issuer: reader.read_names(FilterField::Issuer),
            asset_class: reader.read_names(FilterField::AssetClass),
            category: reader.read_names(FilterField::Category),
            strategy: reader.read_names(FilterField::Strategy),
            // Normalizes the spelling. An invalid ticker matches nothing.
            related_symbol: related
                .map(|text| Symbol::parse(&text).map_or(text, |symbol| symbol.to_string())),
            is_leveraged: reader.read_bool("is_leveraged"),
            is_inverse: reader.read_bool("is_inverse"),
            frequency: reader.read_words("frequency", Frequency::ALL),
            max_expense_ratio: reader.read_decimal("max_expense_ratio", Bounds::Percent),
            min_aum: reader.read_decimal("min_aum", Bounds::Amount),
            min_yield,
            max_yield,
            page: reader.read_page(&PAGING),
            output: reader.read_output(EtfRow::COLUMNS),
        }
    }
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

/// List ETFs with filters
///
/// Active funds, ordered by symbol.
#[utoipa::path(
    get, path = "/v1/etfs", tag = "ETFs", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<EtfsParameters>),
    responses((status = 200, description = "A page of funds", body = List<EtfRow>), ErrorResponses)
)]
pub(crate) async fn list(access: Access<Free, EtfsParameters>) -> Response {
    access
        .respond(async |context| {
            let etfs = context.app.memory_tables.etfs(&context.generation).await?;
            let asked = &context.parameters;
            let rows = etfs.rows.iter().filter(|etf| asked.matches(etf));
            context.render_page(&asked.output, &asked.page, etfs.version, rows, |_| {})
        })
        .await
}
