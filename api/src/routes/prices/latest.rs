//! `GET /v1/prices/{symbol}/latest`: newest bar of one security.

use std::slice;
use std::sync::{Arc, LazyLock};

use market::decimal::ExactDecimal;
use market::price::{PriceBasis, PriceColumn, PricePoint};
use serde::Serialize;
use utoipa::ToSchema;

use super::series::{SecurityPrices, price_encoder};
use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, PathSymbol, parameters};
use crate::read::lookup;
use crate::read::past_securities::PriceColumns;
use crate::read::past_version::PastVersion;
use crate::render::envelope::{Meta, Single};
use crate::render::rows;
use crate::routes::endpoint;

const LATEST: &str = include_str!("../../../queries/prices/latest.sql");

static COLUMNS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| PriceColumn::ALL.iter().map(|column| column.as_str()).collect());

/// The newest bar. It is adjusted for later splits and spin-offs, but not for dividends.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LatestPrice {
    /// Canonical ticker.
    symbol: String,
    /// Market identifier code of the primary listing.
    exchange: Option<String>,
    /// ISO 4217 currency of every price.
    currency: Option<String>,
    /// Close of the session before this bar. It is adjusted for splits and spin-offs after that session.
    previous_close: Option<ExactDecimal>,
    /// Number of sessions since this bar; 0 if the bar is of the market's newest session.
    age_sessions: i32,
    #[serde(flatten)]
    point: PricePoint,
}

parameters! {
    /// Parameters of the latest price.
    pub(crate) struct LatestParameters by reader {
        symbol: PathSymbol = reader.read_symbol(),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        output: Output = reader.read_output(&COLUMNS),
    }
}

endpoint! {
    /// Latest price
    ///
    /// The newest valid bar, with its session and its age in sessions.
    get "/v1/prices/{symbol}/latest", tag "Prices", returns "The latest price point",
    latest(Access<Free, LatestParameters>) -> Single<LatestPrice> { respond(render) }
}

async fn render(context: HandlerContext<LatestParameters>) -> Result<RenderedBody, ApiError> {
    let LatestParameters { symbol, knowledge, output } = &context.parameters;
    let live = async {
        let rows = lookup::run_query(&context.generation, LATEST, &[&symbol.candidates()]).await?;
        let row = lookup::first_row(&context.generation, &rows)?;
        let series = SecurityPrices::from_row(row)?;
        let series = series.ok_or_else(|| lookup::unknown_symbol_error(symbol))?;
        Ok::<_, ApiError>((series.version, series))
    };
    let past = async |past: Arc<PastVersion>| {
        let security = context.past_security_on(&past, symbol, None, PriceColumns::All).await?;
        SecurityPrices::of_past(past.version(), &security, i32::MIN, i32::MAX)
    };
    let (_, series) = context.read_as_known(knowledge.as_ref(), live, past).await?;
    let none = || ApiError::NotFound(format!("No prices of {}", series.symbol));
    let last = series.bars.len().checked_sub(1).ok_or_else(none)?;
    let period = last..last + 1;
    let exchange = rows::encode_text(output, series.exchange.as_deref())?;
    let mut body = rows::single_opening(output)?;
    series.encode(&price_encoder(output), PriceBasis::SPLIT, &exchange, slice::from_ref(&period), &mut body);
    let meta = Meta { known_at: context.known_at, ..Meta::new(&series.version) };
    body.extend(rows::single_closing(output, &meta)?);
    Ok(RenderedBody { body: body.into(), version: series.version, next_cursor: None })
}
