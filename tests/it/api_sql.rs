//! Every statement of the API fits the schema: it can be prepared with the names it runs with.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use harness::TestApp;
use tokio_postgres::NoTls;

fn statements(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        match path.is_dir() {
            true => found.extend(statements(&path)?),
            false => found.push(path),
        }
    }
    Ok(found)
}

#[tokio::test]
async fn every_statement_fits_the_schema() -> Result<()> {
    let app = TestApp::start().await?;
    let queries = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/queries");
    for path in statements(&queries)? {
        let administration = path.parent().is_some_and(|parent| parent.ends_with("accounts"));
        let endpoints = app.endpoints();
        let url = if administration { &endpoints.database_url } else { &endpoints.api_database_url };
        let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
        tokio::spawn(connection);
        client.batch_execute("set search_path = read_g1,control").await?;
        let text = std::fs::read_to_string(&path)?;
        client.prepare(&text).await.with_context(|| path.display().to_string())?;
    }
    Ok(())
}
