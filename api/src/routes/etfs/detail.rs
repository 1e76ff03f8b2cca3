//! `GET /v1/etfs/{symbol}`: details of one fund.

use axum::response::Response;
use market::row::{EtfRow, TableRow};

use crate::answer::{Access, Free};
use crate::error::ApiError;
use crate::parameters::{DocumentedParameters, Output, ParameterReader, Parameters, PathSymbol, parameters};
use crate::read::{QueryError, lookup};
use crate::render::envelope::Single;
use crate::routes::ErrorResponses;

const DETAIL: &str = include_str!("../../../queries/etfs/detail.sql");

parameters! {
    /// Parameters of fund details.
    pub(crate) struct DetailParameters {
        symbol: PathSymbol,
        output: Output,
    }
}

impl Parameters for DetailParameters {
    fn read(reader: &mut ParameterReader<'_>) -> Self {
        Self { symbol: reader.read_symbol(), output: reader.read_output(EtfRow::COLUMNS) }
    }
}

/// Error 404 for an unknown fund.
pub(super) fn unknown_fund_error(symbol: &PathSymbol) -> ApiError {
    ApiError::NotFound(format!("No ETF with symbol {}", symbol.text))
}

/// ETF details
///
/// Fields of the stock list, then fund data and totals of the holdings.
#[utoipa::path(
    get, path = "/v1/etfs/{symbol}", tag = "ETFs", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<DetailParameters>),
    responses((status = 200, description = "The fund", body = Single<EtfRow>), ErrorResponses)
)]
pub(crate) async fn detail(access: Access<Free, DetailParameters>) -> Response {
    access
        .respond(async |context| {
            let asked = &context.parameters;
            let found = lookup::find_one::<EtfRow>(&context.generation, DETAIL, &asked.symbol).await;
            let (version, row) = found.map_err(|error| match error {
                QueryError::UnknownSymbol(_) => unknown_fund_error(&asked.symbol),
                other => other.into(),
            })?;
            context.render_single(&asked.output, version, &row)
        })
        .await
}
