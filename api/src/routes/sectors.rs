//! `GET /v1/sectors` and `/v1/sectors/{sector}`: statistics by sector.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use market::decimal::ExactDecimal;
use market::event::SecurityType;
use market::row::{SectorRow, TableRow};
use serde::Serialize;
use store::FromRow;
use utoipa::ToSchema;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Direction, Output, Page, PageOptions, SortValue, Sortable, parameters};
use crate::read::memory_tables::{SecurityRow, StockTable};
use crate::read::{DataVersion, lookup};
use crate::render::envelope::{List, Single};
use crate::routes::endpoint;
use crate::routes::screeners::filters::ScreenerRow;

const SECTORS: &str = include_str!("../../queries/sectors/sectors.sql");
const PAGING: PageOptions = PageOptions {
    default_limit: 100,
    most: 100,
    keys: &[
        "sector",
        "stock_count",
        "payer_count",
        "market_cap",
        "avg_yield",
        "median_yield",
        "weighted_yield",
        "max_yield",
        "median_payout_ratio",
        "median_growth_5y",
        "median_pe",
        "ex_dates_next_30d",
    ],
    order: &[("sector", Direction::Ascending)],
};

static DETAIL: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| SectorRow::COLUMNS.iter().copied().chain(["top_payers"]).collect());
static LIST: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| SectorRow::COLUMNS.iter().copied().filter(|column| *column != "industries").collect());

/// A sector with its industries and top payers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SectorDetail {
    #[serde(flatten)]
    sector: SectorRow,
    /// Active stocks that pay dividends, highest yield first. Stocks with equal yield are ordered by market
    /// capitalisation (largest first), then by symbol. Stocks with a suspect yield (above 25 %) are left out.
    top_payers: Vec<ScreenerRow>,
}

parameters! {
    /// Parameters of the list of sectors.
    pub(crate) struct SectorsParameters by reader {
        page: Page = reader.read_page(&PAGING),
        output: Output = {
            let mut output = reader.read_output(&LIST);
            output.fields.get_or_insert_with(|| LIST.clone());
            output
        },
    }
}

parameters! {
    /// Parameters of the sector details.
    pub(crate) struct SectorParameters by reader {
        /// Maximum number of top payers.
        limit: i64 = reader.read_integer("limit", 1..=100, 10),
        /// Name or slug of the sector, in upper or lower case.
        sector: String = reader.read_path("sector"),
        output: Output = reader.read_output(&DETAIL),
    }
}

impl Sortable for SectorRow {
    fn sort_value(&self, key: &str) -> Option<SortValue<'_>> {
        let number = |value: Option<ExactDecimal>| value.map(|value| SortValue::Number(value.0));
        match key {
            "sector" => Some(SortValue::Text(self.sector.to_lowercase().into())),
            "stock_count" => Some(SortValue::Number(self.stock_count.into())),
            "payer_count" => Some(SortValue::Number(self.payer_count.into())),
            "market_cap" => self.market_cap.map(|value| SortValue::Number(value.into())),
            "avg_yield" => number(self.avg_yield),
            "median_yield" => number(self.median_yield),
            "weighted_yield" => number(self.weighted_yield),
            "median_payout_ratio" => number(self.median_payout_ratio),
            "median_growth_5y" => number(self.median_growth_5y),
            "median_pe" => number(self.median_pe),
            "ex_dates_next_30d" => Some(SortValue::Number(self.ex_dates_next_30d.into())),
            _ => number(self.max_yield),
        }
    }

    fn tie_breaker(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.slug)
    }
}

endpoint! {
    /// List sectors with statistics
    ///
    /// Statistics of the active stocks of each sector (R25).
    get "/v1/sectors", tag "Sectors", returns "A page of sectors",
    list(Access<Free, SectorsParameters>) -> List<SectorRow> { respond(render_list) }
}

async fn render_list(context: HandlerContext<SectorsParameters>) -> Result<RenderedBody, ApiError> {
    let (version, sectors) = sectors(&context).await?;
    let asked = &context.parameters;
    context.render_page(&asked.output, &asked.page, version, &sectors, |_| {})
}

endpoint! {
    /// Sector details and top payers
    ///
    /// The sector is given by name or slug, in upper or lower case.
    get "/v1/sectors/{sector}", tag "Sectors", returns "The sector",
    detail(Access<Free, SectorParameters>) -> Single<SectorDetail> { respond(render_detail) }
}

async fn render_detail(context: HandlerContext<SectorParameters>) -> Result<RenderedBody, ApiError> {
    let (version, sectors, stock_table) = load_consistent(&context).await?;
    let wanted = context.parameters.sector.trim().to_lowercase();
    let found = sectors
        .into_iter()
        .find(|row| row.sector.to_lowercase() == wanted || row.slug.to_lowercase() == wanted);
    let shown: String = context.parameters.sector.chars().take(64).collect();
    let sector = found.ok_or_else(|| ApiError::NotFound(format!("No sector {shown}")))?;
    let top_payers = top_payers(&stock_table, &sector.sector, context.parameters.limit);
    context.render_single(&context.parameters.output, version, &SectorDetail { sector, top_payers })
}

async fn sectors<P>(context: &HandlerContext<P>) -> Result<(DataVersion, Vec<SectorRow>), ApiError> {
    let rows = lookup::run_query(&context.generation, SECTORS, &[]).await?;
    let version = DataVersion::from_row(lookup::first_row(&context.generation, &rows)?)?;
    let sectors = lookup::rows_with(&rows, "slug").map(SectorRow::from_row).collect::<Result<_, _>>()?;
    Ok((version, sectors))
}

/// Loads the sectors and the securities at the same data version. If the two look-ups find different versions, both are
/// repeated. Fails after five attempts.
async fn load_consistent<P>(
    context: &HandlerContext<P>,
) -> Result<(DataVersion, Vec<SectorRow>, Arc<StockTable>), ApiError> {
    for _ in 0..5 {
        let stock_table = context.app.memory_tables.stocks(&context.generation).await?;
        let (version, sectors) = sectors(context).await?;
        if version == stock_table.version {
            return Ok((version, sectors, stock_table));
        }
        context.generation.record_returned_version(version);
        context.generation.record_returned_version(stock_table.version);
    }
    Err(ApiError::Unavailable("the data changes faster than it can be read".to_owned()))
}

fn top_payers(stock_table: &StockTable, sector: &str, limit: i64) -> Vec<ScreenerRow> {
    let pays = |member: &&SecurityRow| {
        let stock = &member.stock;
        stock.is_active
            && stock.r#type != SecurityType::Etf
            && !member.figures.yield_suspect
            && stock.sector.as_deref() == Some(sector)
            && stock.dividend_yield.is_some_and(|value| !value.0.is_zero())
    };
    let mut payers: Vec<&SecurityRow> = stock_table.rows.iter().filter(pays).collect();
    // The securities are sorted by symbol, and this sort is stable. Payers with equal yield and market capitalisation
    // therefore stay in symbol order.
    payers.sort_by(|a, b| {
        (b.stock.dividend_yield, b.stock.reporting_market_cap)
            .cmp(&(a.stock.dividend_yield, a.stock.reporting_market_cap))
    });
    (0..limit).zip(payers).map(|(_, payer)| ScreenerRow::from(payer)).collect()
}
