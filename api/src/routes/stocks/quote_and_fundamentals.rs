//! `GET /v1/stocks/{symbol}/quote` and `/fundamentals`: quote and company figures of one security.

use std::sync::Arc;

use market::metrics::DerivedRows;
use market::row::{FundamentalsRow, Quote, TableRow};
use serde::Serialize;

use crate::answer::{Free, HandlerContext, RenderedBody, Starter};
use crate::error::ApiError;
use crate::parameters::{Knowledge, Output, PathSymbol, parameters};
use crate::read::lookup;
use crate::read::past_version::PastVersion;
use crate::render::envelope::Single;
use crate::routes::endpoint;

const QUOTE: &str = include_str!("../../../queries/stocks/quote.sql");
const FUNDAMENTALS: &str = include_str!("../../../queries/stocks/fundamentals.sql");

parameters! {
    /// Parameters of the quote.
    pub(crate) struct QuoteParameters by reader {
        symbol: PathSymbol = reader.read_symbol(),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        output: Output = reader.read_output(Quote::COLUMNS),
    }
}

endpoint! {
    /// Comprehensive quote
    ///
    /// End-of-day quote: the latest close with its session, the 52-week range, averages and the headline dividend
    /// figures.
    get "/v1/stocks/{symbol}/quote", tag "Stocks", returns "The quote",
    quote(Access<Free, QuoteParameters>) -> Single<Quote> { respond(render_quote) }
}

async fn render_quote(context: HandlerContext<QuoteParameters>) -> Result<RenderedBody, ApiError> {
    let QuoteParameters { symbol, knowledge, output } = &context.parameters;
    render_row(&context, QUOTE, symbol, knowledge.as_ref(), output, |rows| rows.quote.clone()).await
}

parameters! {
    /// Parameters of the fundamentals.
    pub(crate) struct FundamentalsParameters by reader {
        symbol: PathSymbol = reader.read_symbol(),
        knowledge: Option<Knowledge> = reader.read_knowledge(),
        output: Output = reader.read_output(FundamentalsRow::COLUMNS),
    }

    const FEATURE: &'static str = "fundamentals";
}

endpoint! {
    /// Fundamentals (Starter and higher)
    ///
    /// Company figures, with per-share figures adjusted for splits.
    get "/v1/stocks/{symbol}/fundamentals", tag "Stocks", returns "The fundamentals",
    fundamentals(Access<Starter, FundamentalsParameters>) -> Single<FundamentalsRow> { respond(render_fundamentals) }
}

async fn render_fundamentals(
    context: HandlerContext<FundamentalsParameters>,
) -> Result<RenderedBody, ApiError> {
    let FundamentalsParameters { symbol, knowledge, output } = &context.parameters;
    let derived = DerivedRows::served_fundamentals;
    render_row(&context, FUNDAMENTALS, symbol, knowledge.as_ref(), output, derived).await
}

/// Renders one row of a security. At the current version, the SQL `statement` reads the stored row. At an earlier
/// version, all rows of the security are derived, and the function `derived` selects one of them.
async fn render_row<P, T: TableRow + Serialize>(
    context: &HandlerContext<P>,
    statement: &'static str,
    symbol: &PathSymbol,
    knowledge: Option<&Knowledge>,
    output: &Output,
    derived: impl FnOnce(&DerivedRows) -> T,
) -> Result<RenderedBody, ApiError> {
    let live = async { Ok(lookup::find_one(&context.generation, statement, symbol).await?) };
    let past = async |past: Arc<PastVersion>| {
        let security = context.past_security(&past, symbol).await?;
        Ok(derived(&security.rows))
    };
    let (version, row) = context.read_as_known(knowledge, live, past).await?;
    context.render_single(output, version, &row)
}
