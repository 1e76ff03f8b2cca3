//! `GET /v1/stocks/{symbol}/etf-holders`: funds that hold one security.

use std::borrow::Cow;

use axum::response::Response;
use chrono::NaiveDate;
use market::decimal::ExactDecimal;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Access, Free};
use crate::parameters::{
    Direction, DocumentedParameters, Output, Page, PageOptions, ParameterReader, Parameters, PathSymbol,
    SortValue, Sortable, parameters,
};
use crate::read::lookup;
use crate::render::envelope::List;
use crate::routes::ErrorResponses;

const HOLDERS: &str = include_str!("../../../queries/stocks/etf_holders.sql");
const PAGING: PageOptions = PageOptions {
    default_limit: 50,
    most: 500,
    keys: &["weight", "etf_symbol"],
    order: &[("weight", Direction::Descending)],
};
const COLUMNS: &[&str] =
    &["symbol", "etf_symbol", "etf_name", "rank", "weight", "shares", "market_value", "currency", "as_of"];

store::sql_row! {
    /// Holding of one fund in the security.
    #[derive(Debug, Clone, Serialize, ToSchema)]
    pub(crate) struct EtfHolder {
        /// Canonical ticker of the security.
        symbol: String,
        /// Canonical ticker of the fund.
        etf_symbol: String,
        /// Name of the fund.
        etf_name: String,
        /// Rank by weight in the fund, from 1.
        rank: i32,
        /// Weight in the fund, percent.
        weight: ExactDecimal,
        /// Number of shares.
        shares: Option<ExactDecimal>,
        /// Market value of the holding, in `currency`.
        market_value: Option<ExactDecimal>,
        /// ISO 4217 currency of the market value.
        currency: Option<String>,
        /// Day of the snapshot.
        as_of: NaiveDate,
    }
}

parameters! {
    /// Parameters of the funds that hold a security.
    pub(crate) struct EtfHoldersParameters {
        symbol: PathSymbol,
        page: Page,
        output: Output,
    }
}

impl Parameters for EtfHoldersParameters {
    fn read(reader: &mut ParameterReader<'_>) -> Self {
        Self {
            symbol: reader.read_symbol(),
            page: reader.read_page(&PAGING),
            output: reader.read_output(COLUMNS),
        }
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

/// Funds that hold a security
///
/// Active funds whose newest snapshot contains the security, largest weight first. Only funds with loaded holdings
/// are known.
#[utoipa::path(
    get, path = "/v1/stocks/{symbol}/etf-holders", tag = "Stocks", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<EtfHoldersParameters>),
    responses((status = 200, description = "A page of funds", body = List<EtfHolder>), ErrorResponses)
)]
pub(crate) async fn etf_holders(access: Access<Free, EtfHoldersParameters>) -> Response {
    access
        .respond(async |context| {
            let asked = &context.parameters;
            let found =
                lookup::find_rows::<EtfHolder>(&context.generation, HOLDERS, &asked.symbol, &[]).await?;
            context.render_page(&asked.output, &asked.page, found.version, &found.rows, |_| {})
        })
        .await
}
