//! Check that the version of the rules changes whenever a figure of the generated market changes.
//!
//! `schema/market/src/metrics/method.txt` contains the version and a digest of every derived column. A failure
//! therefore names the columns that changed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use harness::TestApp;
use market::metrics::METHOD_VERSION;

use crate::generated::Generated;

const KNOWN: &str = include_str!("../../schema/market/src/metrics/method.txt");
const TABLES: [&str; 8] =
    ["stocks", "quotes", "fundamentals", "metrics", "dividends", "splits", "quarantine", "factors"];
/// Columns that contain no figure: the time of a row, and the version of the rules.
const PROVENANCE: [&str; 2] = ["updated_at", "method_version"];

/// Maps every derived column, for example `metrics.dividend_yield`, to a digest of its values.
async fn columns(app: &TestApp) -> Result<BTreeMap<String, String>> {
    let mut digests = BTreeMap::new();
    for table in TABLES {
        let names = "select column_name::text from information_schema.columns where table_schema = 'read_g1' and table_name = $1";
        for row in app.sql(names, &[&table]).await? {
            let column: String = row.try_get(0)?;
            if PROVENANCE.contains(&column.as_str()) {
                continue;
            }
            let query = format!(
                r#"select md5(string_agg(symbol || ' ' || coalesce("{column}"::text, ''), chr(10) order by symbol, "{column}"::text)) from read_g1.{table}"#
            );
            let rows = app.sql(&query, &[]).await?;
            let digest: Option<String> = rows.first().context("an aggregate has one row")?.try_get(0)?;
            digests.insert(format!("{table}.{column}"), digest.unwrap_or_default());
        }
    }
    Ok(digests)
}

#[tokio::test]
async fn figures_change_only_with_the_method_version() -> Result<()> {
    let generated = Generated::start().await?;
    let found = columns(&generated.app).await?;
    let lines: Vec<String> = found.iter().map(|(column, digest)| format!("{column} {digest}\n")).collect();
    let text = format!("{METHOD_VERSION}\n{}", lines.concat());
    if text == KNOWN {
        return Ok(());
    }
    let new = std::env::temp_dir().join("new-method.txt");
    std::fs::write(&new, &text)?;
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../schema/market/src/metrics/method.txt");
    let (version, known) = KNOWN.split_once('\n').context("the file begins with a version")?;
    let known: BTreeMap<&str, &str> = known.lines().filter_map(|line| line.split_once(' ')).collect();
    let moved: Vec<&String> = found
        .iter()
        .filter(|(column, digest)| known.get(column.as_str()).is_some_and(|known| known != digest))
        .map(|(column, _)| column)
        .collect();
    ensure!(
        moved.is_empty() || version != METHOD_VERSION,
        "{moved:?} changed: raise METHOD_VERSION in schema/market/src/metrics/rules/mod.rs, say in CHANGELOG.md which figures move and why"
    );
    bail!(
        "the columns or the version changed; if that is right: cp {} {}",
        new.display(),
        committed.display()
    )
}
