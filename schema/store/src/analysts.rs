//! SQL views for the role `dds_analyst`. Each generation has one schema of views.

use codec::bars::UNPACK_SQL;
use market::row::{self, TableRow};
use tokio_postgres::GenericClient;

use crate::error::DbError;
use crate::ids::GenerationId;

const ANALYST: &str = include_str!("../generation/analyst.sql");
const ORIGIN: &str = include_str!("../generation/analyst_origin.sql");
const LACKS_ORIGIN: &str =
    "select to_regnamespace($1) is not null and to_regclass($1 || '.record_batches') is null as lacks";
const VIEW_COLUMNS: &str = include_str!("../queries/view_columns.sql");
const POINT: &str = "select control.point_analysts()";

/// Name of the schema that has the views of a generation.
pub fn analyst_schema(id: GenerationId) -> String {
    format!("analyst_g{id}")
}

/// Creates the views of a generation in the caller's transaction. Afterwards the search path of the transaction is
/// `schema`.
///
/// `schema` is the schema with the tables of the generation. `fact_set` is the schema with the record batches and
/// rejects.
pub(crate) async fn create_analyst_views(
    client: &impl GenericClient,
    id: GenerationId,
    schema: &str,
    fact_set: &str,
) -> Result<(), DbError> {
    let views = analyst_schema(id);
    let enter = "select set_config('search_path', $1, true)";
    client.execute(enter, &[&schema]).await?;
    client.batch_execute(UNPACK_SQL).await?;
    client.batch_execute(&format!("create schema {views}")).await?;
    client.execute(enter, &[&format!("{views}, {schema}")]).await?;
    client.batch_execute(ANALYST).await?;
    describe_views(client, id).await?;
    create_origin_views(client, id, fact_set).await?;
    client.execute(enter, &[&schema]).await?;
    Ok(())
}

/// Creates the views `record_batches` and `rejects` of a generation if they do not exist yet. They may not exist,
/// because older program versions created generations without these two views. The caller's transaction is used.
pub(crate) async fn create_origin_views(
    client: &impl GenericClient,
    id: GenerationId,
    fact_set: &str,
) -> Result<(), DbError> {
    let views = analyst_schema(id);
    let row = client.query_one(LACKS_ORIGIN, &[&views]).await?;
    if row.try_get("lacks")? {
        let enter = "select set_config('search_path', $1, true)";
        client.execute(enter, &[&format!("{views}, {fact_set}")]).await?;
        client.batch_execute(ORIGIN).await?;
    }
    Ok(())
}

/// Sets the comments on the columns of a generation's views to the descriptions in the OpenAPI document. `analyst.sql`
/// has the comments on the columns that are not in the document.
pub(crate) async fn describe_views(client: &impl GenericClient, id: GenerationId) -> Result<(), DbError> {
    let described = described_columns();
    let mut comments = String::new();
    for row in client.query(VIEW_COLUMNS, &[&analyst_schema(id)]).await? {
        let (view, column): (String, String) = (row.try_get("view")?, row.try_get("column")?);
        let text = described.iter().find(|one| one.0 == view && one.1 == column).map(|one| &one.2);
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            let (schema, text) = (analyst_schema(id), text.replace('\'', "''"));
            comments.push_str(&format!("comment on column {schema}.{view}.\"{column}\" is '{text}';\n"));
        }
    }
    Ok(client.batch_execute(&comments).await?)
}

/// Columns of the views that are also fields of API responses. Each item is the name of the view, the name of the
/// column, and the description of the field.
fn described_columns() -> Vec<(&'static str, &'static str, String)> {
    let views = [
        ("stocks", row::Stock::descriptions()),
        ("quotes", row::Quote::descriptions()),
        ("fundamentals", row::FundamentalsRow::descriptions()),
        ("metrics", row::Metrics::descriptions()),
        ("dividends", row::DividendRow::descriptions()),
        ("splits", row::SplitRow::descriptions()),
        ("quarantine", row::Quarantined::descriptions()),
        ("etfs", row::EtfRow::descriptions()),
        ("holdings", row::HoldingRow::descriptions()),
        ("sectors", row::SectorRow::descriptions()),
    ];
    let columns = views.into_iter().flat_map(|(view, columns)| {
        columns.into_iter().map(move |(column, description)| (view, column, description))
    });
    columns.collect()
}

/// Sets the search path of new sessions of the role `dds_analyst` to the views of the served generation. Must be called
/// after every change of the served generation.
pub async fn point_analysts(client: &impl GenericClient) -> Result<(), tokio_postgres::Error> {
    client.execute(POINT, &[]).await?;
    Ok(())
}
