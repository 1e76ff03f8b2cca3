//! `GET /v1/etfs/{symbol}/holdings`: holdings in one snapshot of a fund.
//!
//! `GET /v1/stocks/{symbol}/etf-holders`: funds that hold one security.

use std::borrow::Cow;
use std::sync::LazyLock;

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use market::row::{HoldingRow, TableRow};
use market::table_row;
use rust_decimal::Decimal;
use serde::Serialize;
use store::FromRow;
use utoipa::ToSchema;

use super::unknown_fund_error;
use crate::answer::{Free, HandlerContext, RenderedBody, SelectedPage};
use crate::error::ApiError;
use crate::parameters::facets::{FacetNames, FilterField};
use crate::parameters::{
    Bounds, Direction, Output, Page, PageOptions, ParameterError, RequestedSymbol, SortValue, Sortable,
    is_among, parameters,
};
use crate::read::{DataVersion, lookup};
use crate::render::envelope::{List, ListMeta};
use crate::render::rows;
use crate::routes::endpoint;

const HOLDINGS: &str = include_str!("../../../queries/etfs/holdings.sql");
const PAGING: PageOptions = PageOptions {
    default_limit: 50,
    most: 500,
    keys: &["weight", "rank", "symbol", "name"],
    order: &[("weight", Direction::Descending)],
};
/// Maximum age of a snapshot, in days. Funds report at least every quarter, so an older snapshot is stale.
const STALE_DAYS: i64 = 100;

static COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let of_row = HoldingRow::COLUMNS.iter().copied().filter(|column| *column != "as_of");
    of_row.chain(["dividend_yield", "yield_contribution", "as_of"]).collect()
});

/// One holding of a fund.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct Holding {
    /// Canonical ticker of the fund.
    etf_symbol: String,
    /// Rank by weight, from 1.
    rank: i32,
    /// Canonical ticker of the holding; null for a holding without a ticker.
    symbol: Option<String>,
    /// Name of the holding.
    name: String,
    /// Asset type in the words of the issuer.
    asset_type: Option<String>,
    /// Weight in the fund, percent.
    weight: ExactDecimal,
    /// Number of shares.
    shares: Option<ExactDecimal>,
    /// Market value of the holding, in `currency`.
    market_value: Option<ExactDecimal>,
    /// ISO 4217 currency of the market value.
    currency: Option<String>,
    /// ISIN of the holding.
    isin: Option<String>,
    /// CUSIP of the holding.
    cusip: Option<String>,
    /// Financial instrument global identifier of the holding.
    figi: Option<String>,
    /// Sector name of the holding.
    sector: Option<String>,
    /// Country of the holding.
    country: Option<String>,
    /// Headline dividend yield of the holding, percent.
    dividend_yield: Option<ExactDecimal>,
    /// Contribution to the yield of the fund, percentage points: weight x dividend_yield / 100.
    yield_contribution: Option<ExactDecimal>,
    /// Day of the snapshot of the fund's holdings.
    as_of: NaiveDate,
}

/// A page of holdings.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HoldingsAnswer {
    /// Holdings of the page, in order.
    data: Vec<Holding>,
    /// Data version and warnings of the page.
    meta: HoldingsMeta,
}

/// Data version of a page of holdings, and totals of the whole snapshot. `as_of` is the day of the snapshot.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HoldingsMeta {
    #[serde(flatten)]
    list: ListMeta,
    /// Sum of the weights of all holdings in the snapshot, percent.
    weight_total: Option<ExactDecimal>,
    /// True if the snapshot is more than 100 days older than the market's as-of date.
    stale: bool,
}

parameters! {
    /// Parameters of a fund's holdings.
    pub(crate) struct HoldingsParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        /// As-of date. The newest snapshot on or before this day is returned. Default: the newest snapshot.
        as_of: Option<NaiveDate> = reader.read_date("as_of"),
        /// Asset types of the fund's holdings, in the words of the issuer, comma-separated. Letter case does not
        /// matter.
        asset_type: Option<String> = reader.read_text("asset_type", 512),
        /// Sectors of the fund's holdings by name or slug, comma-separated.
        sector: Option<String> = reader.read_text("sector", 512),
        /// Minimum weight, percent.
        min_weight: Option<Decimal> = reader.read_decimal("min_weight", Bounds::Percent),
        page: Page = reader.read_page(&PAGING),
        output: Output = reader.read_output(&COLUMNS),
    }
}

/// Filters of one request. Asset types and sectors are spelled as in the fund's holdings.
struct HoldingFilters {
    asset_types: Option<Vec<String>>,
    sectors: Option<Vec<String>>,
    min_weight: Option<Decimal>,
}

impl HoldingFilters {
    /// Reads the filters of the request. An unknown asset type matches no holding, because issuers choose these names
    /// freely.
    ///
    /// # Errors
    /// The request is for the first page, and a requested sector is unknown: no security has it.
    async fn read(context: &HandlerContext<HoldingsParameters>, all: &[Holding]) -> Result<Self, ApiError> {
        let asked = &context.parameters;
        let types = all.iter().filter_map(|holding| holding.asset_type.clone()).collect::<FacetNames>();
        let asset_types = asked.asset_type.as_ref().map(|text| types.resolve_known(text));
        let sectors = match &asked.sector {
            Some(text) => Some(sectors(context, all, text).await?),
            None => None,
        };
        Ok(Self { asset_types, sectors, min_weight: asked.min_weight })
    }

    fn matches(&self, holding: &Holding) -> bool {
        is_among(self.asset_types.as_ref(), holding.asset_type.as_ref())
            && is_among(self.sectors.as_ref(), holding.sector.as_ref())
            && self.min_weight.is_none_or(|least| holding.weight.0 >= least)
    }
}

async fn sectors(
    context: &HandlerContext<HoldingsParameters>,
    all: &[Holding],
    text: &str,
) -> Result<Vec<String>, ApiError> {
    let own = all.iter().filter_map(|holding| holding.sector.clone()).collect::<FacetNames>();
    match own.resolve(None, text) {
        Ok(names) => Ok(names),
        // On a later page, and for a fund without holdings, an unknown sector matches no holding.
        Err(_) if context.parameters.page.after.is_some() || all.is_empty() => Ok(own.resolve_known(text)),
        Err(_) => {
            let facet_index = context.app.memory_tables.facet_index(&context.generation).await?;
            let known = facet_index.names_with(FilterField::Sector, own);
            known.resolve(None, text).map_err(|unknown| {
                ApiError::Parameters(vec![ParameterError::unknown_value("sector", unknown)])
            })
        }
    }
}

impl Holding {
    fn of(row: &tokio_postgres::Row) -> Result<Self, tokio_postgres::Error> {
        let it = HoldingRow::from_row(row)?;
        let dividend_yield: Option<ExactDecimal> = row.try_get("dividend_yield")?;
        let contribution = dividend_yield
            .and_then(|value| value.0.checked_mul(it.weight.0)?.checked_div(Decimal::ONE_HUNDRED));
        Ok(Self {
            etf_symbol: it.etf_symbol,
            rank: it.rank,
            symbol: it.symbol,
            name: it.name,
            asset_type: it.asset_type,
            weight: it.weight,
            shares: it.shares,
            market_value: it.market_value,
            currency: it.currency,
            isin: it.isin,
            cusip: it.cusip,
            figi: it.figi,
            sector: it.sector,
            country: it.country,
            dividend_yield,
            yield_contribution: contribution.map(ExactDecimal::percent),
            as_of: it.as_of,
        })
    }
}

impl Sortable for Holding {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>> {
        match key {
            "weight" => Some(SortValue::Number(self.weight.0)),
            "rank" => Some(SortValue::Number(self.rank.into())),
            "symbol" => self.symbol.as_deref().map(|symbol| SortValue::Text(symbol.into())),
            _ => Some(SortValue::Text(self.name.to_lowercase().into())),
        }
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        format!("{:010}", self.rank).into()
    }
}

endpoint! {
    /// ETF holdings
    ///
    /// Holdings in one snapshot. `meta.weight_total` is the share of the fund that the snapshot covers, percent.
    get "/v1/etfs/{symbol}/holdings", tag "ETFs", returns "A page of positions",
    holdings(Access<Free, HoldingsParameters>) -> HoldingsAnswer { respond(render) }
}

async fn render(context: HandlerContext<HoldingsParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let rows =
        lookup::run_query(&context.generation, HOLDINGS, &[&asked.symbol.candidates, &asked.as_of]).await?;
    let first = lookup::first_row(&context.generation, &rows)?;
    let version = DataVersion::from_row(first)?;
    first.try_get::<_, Option<&str>>("canonical")?.ok_or_else(|| unknown_fund_error(&asked.symbol))?;
    let all = lookup::rows_with(&rows, "name").map(Holding::of).collect::<Result<Vec<_>, _>>()?;
    let snapshot = all.first().map(|holding| holding.as_of);
    let weight_total =
        snapshot.map(|_| ExactDecimal::percent(all.iter().map(|holding| holding.weight.0).sum()));
    let stale = version.as_of.zip(snapshot).is_some_and(|(now, then)| (now - then).num_days() > STALE_DAYS);
    let filters = HoldingFilters::read(&context, &all).await?;
    let kept = all.iter().filter(|holding| filters.matches(holding));
    let SelectedPage { rows, meta: mut list, version } = context.select_page(&asked.page, version, kept);
    list.as_of = snapshot;
    let next_cursor = list.next_cursor.clone();
    let meta = HoldingsMeta { list, weight_total, stale };
    Ok(RenderedBody { body: rows::render_list(&asked.output, &rows, &meta)?, version, next_cursor })
}

const HOLDERS: &str = include_str!("../../../queries/stocks/etf_holders.sql");
const HOLDERS_PAGING: PageOptions = PageOptions {
    default_limit: 50,
    most: 500,
    keys: &["weight", "etf_symbol"],
    order: &[("weight", Direction::Descending)],
};

table_row! {
    /// A fund's holding of the security.
    pub struct EtfHolder {
        /// Canonical ticker of the security.
        "symbol" symbol: String,
        /// Canonical ticker of the fund.
        "etf_symbol" etf_symbol: String,
        /// Name of the fund.
        "etf_name" etf_name: String,
        /// Rank of this holding among the fund's holdings, by weight; the largest has rank 1.
        "rank" rank: i32,
        /// Weight of this holding in the fund, percent.
        "weight" weight: ExactDecimal,
        /// Number of shares.
        "shares" shares: Option<ExactDecimal>,
        /// Market value of the holding, in `currency`.
        "market_value" market_value: Option<ExactDecimal>,
        /// ISO 4217 currency of the market value.
        "currency" currency: Option<String>,
        /// Day of the snapshot of the fund's holdings.
        "as_of" as_of: NaiveDate,
    }
}

parameters! {
    /// Parameters of the list of funds that hold a security.
    pub(crate) struct EtfHoldersParameters by reader {
        symbol: RequestedSymbol = reader.read_symbol(),
        page: Page = reader.read_page(&HOLDERS_PAGING),
        output: Output = reader.read_output(EtfHolder::COLUMNS),
    }
}

impl Sortable for EtfHolder {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>> {
        match key {
            "weight" => Some(SortValue::Number(self.weight.0)),
            _ => Some(SortValue::Text(self.etf_symbol.as_str().into())),
        }
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        format!("{} {:010}", self.etf_symbol, self.rank).into()
    }
}

endpoint! {
    /// Funds that hold a security
    ///
    /// Active funds that hold the security according to their newest holdings, largest weight first. Funds without
    /// known holdings are left out.
    get "/v1/stocks/{symbol}/etf-holders", tag "Stocks", returns "A page of funds",
    etf_holders(Access<Free, EtfHoldersParameters>) -> List<EtfHolder> { respond(render_holders) }
}

async fn render_holders(context: HandlerContext<EtfHoldersParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let found = lookup::find_rows::<EtfHolder>(&context.generation, HOLDERS, &asked.symbol).await?;
    context.render_page(&asked.output, &asked.page, found.version, &found.rows, |_| {})
}
