//! `GET /v1/stocks/{symbol}/quote`: end-of-day quote of one security.

use axum::response::Response;
use market::row::{Quote, TableRow};
use utoipa::IntoParams;

use crate::answer::{Access, Free};
use crate::parameters::{Described, Output, Parameters, PathSymbol, Reader};
use crate::read::lookup;
use crate::render::envelope::Single;
use crate::render::raw_row::RawRow;
use crate::routes::Failures;

const QUOTE: &str = include_str!("../../../queries/stocks/quote.sql");

/// What the quote takes.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct QuoteParameters {
    #[param(ignore)]
    symbol: PathSymbol,
    #[param(ignore)]
    output: Output,
}

impl Parameters for QuoteParameters {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self { symbol: reader.symbol(), output: reader.output(Quote::COLUMNS) }
    }
}

/// Comprehensive quote
///
/// End of day: the latest close with its session, the year's range, averages and the headline dividend figures.
#[utoipa::path(
    get, path = "/v1/stocks/{symbol}/quote", tag = "Stocks", security(("bearer" = []), ("api_key" = [])),
    params(Described<QuoteParameters>),
    responses((status = 200, description = "The quote", body = Single<Quote>), Failures)
)]
pub(crate) async fn quote(access: Access<Free, QuoteParameters>) -> Response {
    access
        .answer(async |context| {
            let (version, row) = lookup::row(&context.generation, QUOTE, &context.parameters.symbol).await?;
            context.single(&context.parameters.output, version, &RawRow::<Quote>::new(row))
        })
        .await
}
