//! `GET /v1/etfs/{symbol}`: details of one fund.

use axum::response::Response;
use market::row::{EtfRow, TableRow};
use utoipa::IntoParams;

use crate::answer::{Access, Free};
use crate::error::ApiError;
use crate::parameters::{Described, Output, Parameters, PathSymbol, Reader};
use crate::read::ReadError;
use crate::read::lookup;
use crate::render::envelope::Single;
use crate::routes::Failures;

const DETAIL: &str = include_str!("../../../queries/etfs/detail.sql");

/// What the details take.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct DetailParameters {
    #[param(ignore)]
    symbol: PathSymbol,
    #[param(ignore)]
    output: Output,
}

impl Parameters for DetailParameters {
    fn read(reader: &mut Reader<'_>) -> Self {
        Self { symbol: reader.symbol(), output: reader.output(EtfRow::COLUMNS) }
    }
}

/// 404 for an unknown fund.
pub(super) fn unknown(symbol: &PathSymbol) -> ApiError {
    ApiError::NotFound(format!("No ETF with symbol {}", symbol.text))
}

/// ETF details
///
/// The stock row, then fund data and what its holdings add up to.
#[utoipa::path(
    get, path = "/v1/etfs/{symbol}", tag = "ETFs", security(("bearer" = []), ("api_key" = [])),
    params(Described<DetailParameters>),
    responses((status = 200, description = "The fund", body = Single<EtfRow>), Failures)
)]
pub(crate) async fn detail(access: Access<Free, DetailParameters>) -> Response {
    access
        .answer(async |context| {
            let asked = &context.parameters;
            let found = lookup::one::<EtfRow>(&context.generation, DETAIL, &asked.symbol).await;
            let (version, row) = found.map_err(|error| match error {
                ReadError::UnknownSymbol(_) => unknown(&asked.symbol),
                other => other.into(),
            })?;
            context.single(&asked.output, version, &row)
        })
        .await
}
