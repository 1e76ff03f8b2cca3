//! Packed records: what SQL users see of them, records that move between symbols, and databases made before.

use anyhow::{Result, ensure};
use harness::TestApp;

use crate::fold::Fold;
use crate::generations::answer;
use crate::kills::Market;
use crate::replay::digest;

/// The day on which the feeds are loaded.
const TODAY: &str = "2024-07-05";
const UNPACK: &str = include_str!("../fixtures/older/observations.sql");
const WITHOUT_FORECASTS: &str = include_str!("../fixtures/older/forecasts.sql");
const WITH_FORECASTS: &str = include_str!("../../schema/store/migrations/V010__projections.sql");
const OBSERVATIONS: &str = "select said from (
    select concat_ws('|', symbol, kind, source, id, security_ref, revision, action, observed_at, line, frame,
      record::text) as said
    from facts.observations) o order by said collate \"C\"";

async fn said(app: &TestApp) -> Result<Vec<String>> {
    app.sql(OBSERVATIONS, &[]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

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

#[tokio::test]
async fn a_database_of_an_older_program_is_packed_when_it_is_migrated() -> Result<()> {
    let app = moving([0, 1, 2]).await?;
    let market = Market::new(5, 3);
    market.load_all(&app, 0..2).await?;
    app.catch_up().await?;
    let (facts, tables) = (said(&app).await?, digest(&app).await?);

    app.servers().postgres.connect(app.database()).await?.batch_execute(UNPACK).await?;
    assert_eq!(app.sql_value::<i64>("select count(*) from facts.observations").await?, facts.len() as i64);
    app.projector(&["migrate"]).await?.success()?;
    assert_eq!(said(&app).await?, facts);
    assert_eq!(digest(&app).await?, tables);

    // It goes on as one that was always packed, also with what moves between symbols.
    let row =
        r#"{"kind":"dividend","id":"d-1","symbol":"CCC","ex_date":"2024-06-03","amount":"0.7","revision":7}"#;
    app.feed("moved.ndjson", format!("{row}\n")).today(TODAY).apply().await?;
    market.load_all(&app, 2..3).await?;
    app.catch_up().await?;
    Fold::check(&app, 1).await?;
    answer(&app, &["rebuild", "--from", "log"]).await?;
    let diff = answer(&app, &["diff", "--whole", "1", "2"]).await?;
    ensure!(diff["identical"] == true, "{diff}");
    Ok(())
}

#[tokio::test]
async fn tables_of_an_older_program_are_served_on_and_written_anew() -> Result<()> {
    let app = TestApp::start().await?;
    let market = Market::new(5, 3);
    market.load_all(&app, 0..2).await?;
    app.catch_up().await?;
    let owner = app.servers().postgres.connect(app.database()).await?;
    owner.batch_execute(WITHOUT_FORECASTS).await?;
    let projected = "select count(*) from read_g1.dividends where status = 'projected'";
    ensure!(app.sql_value::<i64>(projected).await? > 0, "the older program projected payments");

    // What came after does not touch these tables.
    owner.batch_execute(WITH_FORECASTS).await?;
    app.projector(&["migrate"]).await?.success()?;
    // At once: no projection without an amount, every row declared, and a currency beside every price.
    assert_eq!(app.sql_value::<i64>(projected).await?, 0);
    let unnamed =
        "select count(*) from read_g1.dividends where amount_status <> 'declared' or amount is null";
    assert_eq!(app.sql_value::<i64>(unnamed).await?, 0);
    let priced = "select count(*) from read_g1.metrics m join read_g1.stocks s using (symbol)
        where m.price_currency is distinct from s.currency";
    assert_eq!(app.sql_value::<i64>(priced).await?, 0);

    // The next session derives every security: the tables are those that a rebuild makes.
    market.load_all(&app, 2..3).await?;
    app.feed("prices.csv", "symbol,date,close\nNEXT,2024-06-28,10\n").today(TODAY).apply().await?;
    ensure!(app.sql_value::<i64>(projected).await? > 0, "payments are projected again");
    Fold::check(&app, 1).await?;
    answer(&app, &["rebuild", "--from", "log"]).await?;
    let diff = answer(&app, &["diff", "--whole", "1", "2"]).await?;
    ensure!(diff["identical"] == true, "{diff}");
    Ok(())
}
