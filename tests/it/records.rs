//! Packed records: what SQL users see of them, and records that move between symbols.

use anyhow::{Result, ensure};
use harness::TestApp;

use crate::fold::Fold;

/// The day on which the feeds are loaded.
const TODAY: &str = "2024-07-05";

/// What is known and served of dividends; where in the log it came from aside.
async fn said_and_served(app: &TestApp) -> Result<(String, String)> {
    let said =
        "select string_agg(concat_ws('|', symbol, id, revision, action, observed_at, record::text), e'\\n'
        order by symbol, revision) from facts.observations where kind = 'dividend'";
    let served = "select string_agg(to_jsonb(d)::text, e'\\n' order by symbol, id) from read_g1.dividends d";
    Ok((app.sql_value(said).await?, app.sql_value(served).await?))
}

/// A security, a session, and a dividend whose vendor corrects its symbol, in this order of revisions.
async fn moving(revisions: [u32; 3]) -> Result<TestApp> {
    let app = TestApp::start().await?;
    let prices = "symbol,date,close\nAAA,2024-06-27,10\nBBB,2024-06-27,20\n";
    app.feed("prices.csv", prices).today(TODAY).apply().await?;
    let security = r#"{"kind":"security","symbol":"AAA","name":"First \"A\" Corporation","type":"stock","security_ref":"ref-1"}"#;
    let session = r#"{"kind":"session","date":"2024-06-28","note":"half a day"}"#;
    app.feed("reference.ndjson", format!("{security}\n{session}\n")).today(TODAY).apply().await?;
    for revision in revisions {
        let symbol = if revision == 1 { "BBB" } else { "AAA" };
        let row = format!(
            r#"{{"kind":"dividend","id":"d-1","symbol":"{symbol}","ex_date":"2024-06-03","amount":"0.5{revision}","revision":{revision},"observed_at":"2024-06-2{revision}T00:00:00Z"}}"#
        );
        app.feed(&format!("dividend-{revision}.ndjson"), format!("{row}\n")).today(TODAY).apply().await?;
    }
    Ok(app)
}

#[tokio::test]
async fn a_record_that_changes_its_symbol_is_known_under_both_whatever_came_first() -> Result<()> {
    let app = moving([0, 1, 2]).await?;
    Fold::check(&app, 1).await?;
    let rows = app
        .sql(
            "select symbol, count(*) from facts.observations where kind = 'dividend' group by 1 order by 1",
            &[],
        )
        .await?;
    let counts: Vec<(String, i64)> =
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_>>()?;
    assert_eq!(counts, [("AAA".to_owned(), 3), ("BBB".to_owned(), 3)]);
    let served =
        "select symbol || ' ' || trim_scale(amount) from read_g1.dividends where status <> 'cancelled'";
    assert_eq!(app.sql_value::<String>(served).await?, "AAA 0.52");
    for order in [[2, 1, 0], [1, 0, 2]] {
        let other = moving(order).await?;
        ensure!(said_and_served(&other).await? == said_and_served(&app).await?, "in the order {order:?}");
    }
    assert_eq!(app.sql_value::<String>("select as_of::text from read_g1.version").await?, "2024-06-28");
    Ok(())
}
