//! `GET /v1/stocks/{symbol}/fundamentals`: company figures of one security.

use std::sync::Arc;

use axum::response::Response;
use market::row::{FundamentalsRow, TableRow};

use crate::answer::{Access, Starter};
use crate::error::ApiError;
use crate::parameters::{
    DocumentedParameters, Knowledge, Output, ParameterReader, Parameters, PathSymbol, parameters,
};
use crate::read::lookup;
use crate::read::past_version::PastVersion;
use crate::render::envelope::Single;
use crate::render::raw_row::{RawRow, StoredOrDerived};
use crate::routes::ErrorResponses;

const FUNDAMENTALS: &str = include_str!("../../../queries/stocks/fundamentals.sql");

parameters! {
    /// Parameters of the fundamentals.
    pub(crate) struct FundamentalsParameters {
        symbol: PathSymbol,
        knowledge: Option<Knowledge>,
        output: Output,
    }
}

impl Parameters for FundamentalsParameters {
    const FEATURE: &'static str = "fundamentals";

    fn read(reader: &mut ParameterReader<'_>) -> Self {
        Self {
            symbol: reader.read_symbol(),
            knowledge: reader.read_knowledge(),
            output: reader.read_output(FundamentalsRow::COLUMNS),
        }
    }
}

/// Fundamentals (Starter and higher)
///
/// Company figures, with per-share figures adjusted for splits.
#[utoipa::path(
    get, path = "/v1/stocks/{symbol}/fundamentals", tag = "Stocks", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<FundamentalsParameters>),
    responses((status = 200, description = "The fundamentals", body = Single<FundamentalsRow>), ErrorResponses)
)]
pub(crate) async fn fundamentals(access: Access<Starter, FundamentalsParameters>) -> Response {
    access
        .respond(async |context| {
            let FundamentalsParameters { symbol, knowledge, output } = &context.parameters;
            let live = async {
                let (version, row) = lookup::find_row(&context.generation, FUNDAMENTALS, symbol).await?;
                Ok::<_, ApiError>((version, StoredOrDerived::Stored(RawRow::new(row))))
            };
            let past = async |past: Arc<PastVersion>| {
                let security = context.past_security(&past, symbol).await?;
                Ok::<_, ApiError>(StoredOrDerived::Derived(security.rows.served_fundamentals()))
            };
            let (version, row) = context.read_as_known(knowledge.as_ref(), live, past).await?;
            context.render_single(output, version, &row)
        })
        .await
}
