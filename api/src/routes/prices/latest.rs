//! `GET /v1/prices/{symbol}/latest`: newest bar of one security.

use std::sync::{Arc, LazyLock};

use market::decimal::ExactDecimal;
use market::price::{AdjustedBars, CumulativeFactors, PriceBasis, PricePoint};
use market::row::TableRow;
use serde::Serialize;
use utoipa::ToSchema;

use super::series::SecurityPrices;
use crate::answer::{Free, HandlerContext, RenderedBody};
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, PathSymbol, parameters};
use crate::read::lookup;
use crate::read::past_securities::PriceColumns;
use crate::read::past_version::PastVersion;
use crate::render::envelope::Single;
use crate::routes::endpoint;

const LATEST: &str = include_str!("../../../queries/prices/latest.sql");

static COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let around = ["currency", "previous_close", "age_sessions"];
    ["symbol", "exchange"].into_iter().chain(around).chain(PricePoint::COLUMNS.iter().copied()).collect()
});

/// The newest bar, adjusted for splits and spin-offs after it, but not for dividends.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LatestPrice {
    /// Canonical ticker.
    symbol: String,
    /// Market identifier code of the primary listing.
    exchange: Option<String>,
    /// ISO 4217 currency of every price.
    currency: Option<String>,
    /// Close of the session before this bar, adjusted for splits and spin-offs after it.
    previous_close: Option<ExactDecimal>,
    /// Number of sessions since this bar; 0 for the newest session.
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

impl LatestPrice {
    fn of(series: &SecurityPrices) -> Option<Self> {
        let last = series.bars.len().checked_sub(1)?;
        let cumulative = CumulativeFactors::new(&series.factors, series.version.as_of);
        let adjusted = AdjustedBars {
            bars: &series.bars,
            cumulative: &cumulative,
            factors: &series.factors,
            basis: PriceBasis::SPLIT,
        };
        let before = last
            .checked_sub(1)
            .and_then(|before| adjusted.exact(before, series.bars.close[before], PriceBasis::SPLIT));
        Some(Self {
            symbol: series.symbol.clone(),
            exchange: series.exchange.clone(),
            currency: series.currency.clone(),
            previous_close: before.map(ExactDecimal::amount),
            age_sessions: series.age_sessions.unwrap_or(0),
            point: adjusted.point(&(last..last + 1)),
        })
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
    let latest = LatestPrice::of(&series).ok_or_else(none)?;
    context.render_single(output, series.version, &latest)
}
