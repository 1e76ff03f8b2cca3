//! `GET /v1/stocks/{symbol}/quote`: end-of-day quote of one security.

use std::sync::Arc;

use axum::response::Response;
use market::row::{Quote, TableRow};

use crate::answer::{Access, Free};
use crate::error::ApiError;
use crate::parameters::{
    DocumentedParameters, Knowledge, Output, ParameterReader, Parameters, PathSymbol, parameters,
};
use crate::read::lookup;
use crate::read::past_version::PastVersion;
use crate::render::envelope::Single;
use crate::render::raw_row::{RawRow, StoredOrDerived};
use crate::routes::ErrorResponses;

const QUOTE: &str = include_str!("../../../queries/stocks/quote.sql");

parameters! {
    /// Parameters of the quote.
    pub(crate) struct QuoteParameters {
        symbol: PathSymbol,
        knowledge: Option<Knowledge>,
        output: Output,
    }
}

impl Parameters for QuoteParameters {
    fn read(reader: &mut ParameterReader<'_>) -> Self {
        Self {
            symbol: reader.read_symbol(),
            knowledge: reader.read_knowledge(),
            output: reader.read_output(Quote::COLUMNS),
        }
    }
}

/// Comprehensive quote
///
/// End-of-day quote: the latest close with its session, the 52-week range, averages and the headline dividend figures.
#[utoipa::path(
    get, path = "/v1/stocks/{symbol}/quote", tag = "Stocks", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<QuoteParameters>),
    responses((status = 200, description = "The quote", body = Single<Quote>), ErrorResponses)
)]
pub(crate) async fn quote(access: Access<Free, QuoteParameters>) -> Response {
    access
        .respond(async |context| {
            let QuoteParameters { symbol, knowledge, output } = &context.parameters;
            let live = async {
                let (version, row) = lookup::find_row(&context.generation, QUOTE, symbol).await?;
                Ok::<_, ApiError>((version, StoredOrDerived::Stored(RawRow::new(row))))
            };
            let past = async |past: Arc<PastVersion>| {
                let security = context.past_security(&past, symbol).await?;
                Ok::<_, ApiError>(StoredOrDerived::Derived(security.rows.quote.clone()))
            };
            let (version, quote) = context.read_as_known(knowledge.as_ref(), live, past).await?;
            context.render_single(output, version, &quote)
        })
        .await
}
