//! SQL views for the role `dds_analyst`. Each generation has one schema of views.

use codec::bars::UNPACK_SQL;
use tokio_postgres::GenericClient;

use crate::error::DbError;
use crate::ids::GenerationId;

const ANALYST: &str = include_str!("../generation/analyst.sql");
const POINT: &str = "select control.point_analysts()";

/// Name of the schema with a generation's views.
pub fn analyst_schema(id: GenerationId) -> String {
    format!("analyst_g{id}")
}

/// Creates the views of a generation in the caller's transaction. `schema` has the tables of the generation, and is in
/// the search path again afterwards.
pub(crate) async fn create_analyst_views(
    client: &impl GenericClient,
    id: GenerationId,
    schema: &str,
) -> Result<(), DbError> {
    let views = analyst_schema(id);
    let enter = "select set_config('search_path', $1, true)";
    client.execute(enter, &[&schema]).await?;
    client.batch_execute(UNPACK_SQL).await?;
    client.batch_execute(&format!("create schema {views}")).await?;
    client.execute(enter, &[&format!("{views}, {schema}")]).await?;
    client.batch_execute(ANALYST).await?;
    client.execute(enter, &[&schema]).await?;
    Ok(())
}

/// Sets the served generation for new sessions of analysts. Must be called after every change of the served generation.
pub async fn point_analysts(client: &impl GenericClient) -> Result<(), tokio_postgres::Error> {
    client.execute(POINT, &[]).await?;
    Ok(())
}
