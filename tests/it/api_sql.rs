//! SQL files of the API: each statement can be prepared on the current database schema.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use harness::TestApp;
use tokio_postgres::NoTls;

fn statements(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(statements(&path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}

#[tokio::test]
async fn every_statement_fits_the_schema() -> Result<()> {
    let app = TestApp::start().await?;
    let (client, connection) = tokio_postgres::connect(&app.endpoints().database_url, NoTls).await?;
    tokio::spawn(connection);
    client.batch_execute("set search_path = read_g1,control").await?;
    let found = statements(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/queries"))?;
    assert!(found.len() > 30, "{found:?}");
    for path in found {
        let text = std::fs::read_to_string(&path)?;
        client.prepare(&text).await.with_context(|| path.display().to_string())?;
    }
    Ok(())
}
