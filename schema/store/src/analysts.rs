//! SQL views of a generation for the role `dds_analyst`, one schema each.

use tokio_postgres::GenericClient;

use crate::error::DbError;

const UNPACK: &str = include_str!("../generation/unpack.sql");
const ANALYST: &str = include_str!("../generation/analyst.sql");
const POINT: &str = "select control.point_analysts()";

/// The schema that holds a generation's views.
pub fn analyst_schema(id: i32) -> String {
    format!("analyst_g{id}")
}

/// Gives a generation, whose tables are in `schema`, its views, inside the caller's transaction; the search path is the
/// generation's again afterwards.
pub(crate) async fn open(client: &impl GenericClient, id: i32, schema: &str) -> Result<(), DbError> {
    let views = analyst_schema(id);
    let enter = "select set_config('search_path', $1, true)";
    client.execute(enter, &[&schema]).await?;
    client.batch_execute(UNPACK).await?;
    client.batch_execute(&format!("create schema {views}")).await?;
    client.execute(enter, &[&format!("{views}, {schema}")]).await?;
    client.batch_execute(ANALYST).await?;
    client.execute(enter, &[&schema]).await?;
    Ok(())
}

/// Lets analysts' new sessions begin in the served generation; whoever changes which one that is calls it.
pub async fn point(client: &impl GenericClient) -> Result<(), tokio_postgres::Error> {
    client.execute(POINT, &[]).await?;
    Ok(())
}
