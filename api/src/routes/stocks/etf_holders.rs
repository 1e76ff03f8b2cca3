//! `GET /v1/stocks/{symbol}/etf-holders`: funds that hold one security.

use std::borrow::Cow;

use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use market::row::TableRow;
use market::table_row;

use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{
    Direction, Output, Page, PageOptions, RequestedSymbol, SortValue, Sortable, parameters,
};
use crate::read::lookup;
use crate::render::envelope::List;
use crate::routes::endpoint;

const HOLDERS: &str = include_str!("../../../queries/stocks/etf_holders.sql");
const PAGING: PageOptions = PageOptions {
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
        page: Page = reader.read_page(&PAGING),
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
    etf_holders(Access<Free, EtfHoldersParameters>) -> List<EtfHolder> { respond(render) }
}

async fn render(context: HandlerContext<EtfHoldersParameters>) -> Result<RenderedBody, ApiError> {
    let asked = &context.parameters;
    let found = lookup::find_rows::<EtfHolder>(&context.generation, HOLDERS, &asked.symbol).await?;
    context.render_page(&asked.output, &asked.page, found.version, &found.rows, |_| {})
}
