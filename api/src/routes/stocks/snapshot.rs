//! `GET /v1/stocks/{symbol}`: profile of one security.

use std::sync::LazyLock;

use axum::response::Response;
use market::row::{Company, Coverage, Identifiers, Pricing, Stock, StockDividends, StockRow, TableRow};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Access, Free};
use crate::parameters::{DocumentedParameters, Output, ParameterReader, Parameters, PathSymbol, parameters};
use crate::read::lookup;
use crate::render::envelope::Single;
use crate::routes::ErrorResponses;

const SNAPSHOT: &str = include_str!("../../../queries/stocks/snapshot.sql");
/// Optional parts of the response.
const PARTS: &[&str] = &["company", "pricing", "dividends", "coverage"];

static COLUMNS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    StockRow::COLUMNS.iter().copied().chain(["identifiers"]).chain(PARTS.iter().copied()).collect()
});

/// Profile of a security: the stock row, identifiers and optional parts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Snapshot {
    #[serde(flatten)]
    stock: StockRow,
    /// Identifiers of the security.
    identifiers: Identifiers,
    /// Company profile.
    company: Company,
    /// Price figures of the latest session.
    pricing: Pricing,
    /// Dividend figures.
    dividends: StockDividends,
    /// First and last days of the data.
    coverage: Coverage,
}

parameters! {
    /// Parameters of the stock snapshot.
    pub(crate) struct SnapshotParameters {
        symbol: PathSymbol,
        output: Output,
    }
}

impl Parameters for SnapshotParameters {
    fn read(reader: &mut ParameterReader<'_>) -> Self {
        let (symbol, include) = (reader.read_symbol(), reader.read_words("include", PARTS));
        reader.describe(
            "include",
            "Parts to return, comma-separated: company, pricing, dividends, coverage. Default: all.",
        );
        let mut output = reader.read_output(&COLUMNS);
        if let Some(include) = &include {
            let chosen = output.fields.take().unwrap_or_else(|| COLUMNS.clone());
            let kept =
                chosen.into_iter().filter(|column| !PARTS.contains(column) || include.contains(column));
            output.fields = Some(kept.collect());
        }
        Self { symbol, output }
    }
}

impl From<Stock> for Snapshot {
    fn from(stock: Stock) -> Self {
        Self {
            stock: stock.listed,
            identifiers: stock.identifiers.0,
            company: stock.company.0,
            pricing: stock.pricing.0,
            dividends: stock.dividends.0,
            coverage: stock.coverage.0,
        }
    }
}

/// Stock snapshot
///
/// The stock row, its identifiers, and the parts that `include` selects.
#[utoipa::path(
    get, path = "/v1/stocks/{symbol}", tag = "Stocks", security(("bearer" = []), ("api_key" = [])),
    params(DocumentedParameters<SnapshotParameters>),
    responses((status = 200, description = "The snapshot", body = Single<Snapshot>), ErrorResponses)
)]
pub(crate) async fn snapshot(access: Access<Free, SnapshotParameters>) -> Response {
    access
        .respond(async |context| {
            let (version, stock) =
                lookup::find_one::<Stock>(&context.generation, SNAPSHOT, &context.parameters.symbol).await?;
            context.render_single(&context.parameters.output, version, &Snapshot::from(stock))
        })
        .await
}
