//! Test of the packed records in `facts.records`: a vendor moves a record from one symbol to another.

use anyhow::{Result, ensure};
use codec::records::{self, RecordLayout};
use harness::TestApp;
use market::event::EventRecord;
use market::event::{
    Decision, Dividend, DividendEvidence, Etf, Fundamentals, FxRate, HoldingSnapshot, Kind, MarketSession,
    Security, Split,
};
use market::history::Observation;
use serde_json::Value;

use crate::reference_projection::ReferenceProjection;

const TODAY: &str = "2024-07-05";

/// Decodes the column `packed` of `facts.records`. Each record is converted to JSON.
pub(crate) fn observed(kind: Kind, source: &str, packed: &[u8]) -> Result<Vec<Observation<Value>>> {
    fn of<T: EventRecord + RecordLayout>(source: &str, packed: &[u8]) -> Result<Vec<Observation<Value>>> {
        let typed = records::read::<T>(source, packed)?;
        typed.iter().map(|seen| Ok(serde_json::from_value(serde_json::to_value(seen)?)?)).collect()
    }
    match kind {
        Kind::Security => of::<Security>(source, packed),
        Kind::Dividend => of::<Dividend>(source, packed),
        Kind::Split => of::<Split>(source, packed),
        Kind::Fundamentals => of::<Fundamentals>(source, packed),
        Kind::Etf => of::<Etf>(source, packed),
        Kind::Holding => of::<HoldingSnapshot>(source, packed),
        Kind::Fx => of::<FxRate>(source, packed),
        Kind::Session => of::<MarketSession>(source, packed),
        Kind::Decision => of::<Decision>(source, packed),
        Kind::Evidence => of::<DividendEvidence>(source, packed),
        Kind::Price | Kind::Reject | Kind::Run => anyhow::bail!("{kind} is no record"),
    }
}

/// Returns all dividend observations in `facts.records`. Each observation is returned with the symbol of its database
/// row. The symbol in the observation itself can differ, because the dividend can have moved to another symbol.
async fn dividends(app: &TestApp) -> Result<Vec<(String, Observation<Value>)>> {
    let rows =
        app.sql("select symbol, source, packed from facts.records where kind = 'dividend' order by 1", &[]);
    let mut dividends = Vec::new();
    for row in rows.await? {
        let symbol: String = row.try_get("symbol")?;
        let observed = observed(Kind::Dividend, row.try_get("source")?, row.try_get("packed")?)?;
        dividends.extend(observed.into_iter().map(|seen| (symbol.clone(), seen)));
    }
    Ok(dividends)
}

/// Returns the stored dividends and the served dividends as text. The text of a stored dividend does not contain its
/// position in the log.
async fn said_and_served(app: &TestApp) -> Result<(Vec<String>, String)> {
    let said = |(symbol, seen): (String, Observation<Value>)| {
        let Observation { id, revision, action, observed_at, record, .. } = seen;
        format!("{symbol} {id:?} {revision} {action} {observed_at} {record}")
    };
    let served = "select string_agg(to_jsonb(d)::text, e'\\n' order by symbol, id) from read_g1.dividends d";
    Ok((dividends(app).await?.into_iter().map(said).collect(), app.sql_value(served).await?))
}

/// Starts an app with three revisions of a dividend, loaded in the order of `revisions`. Revision 1 has the symbol BBB,
/// and the others have AAA.
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
    ReferenceProjection::check(&app, 1).await?;
    let known = dividends(&app).await?;
    let known: Vec<&str> = known.iter().map(|(symbol, _)| symbol.as_str()).collect();
    assert_eq!(known, ["AAA", "AAA", "AAA", "BBB", "BBB", "BBB"]);
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

/// A vendor that renames a symbol sends all its records again, with the same ids.
#[tokio::test]
async fn all_records_of_a_symbol_move_together() -> Result<()> {
    let app = TestApp::start().await?;
    let prices = "symbol,date,close\nAAA,2024-06-27,10\nBBB,2024-06-27,20\n";
    app.feed("prices.csv", prices).today(TODAY).apply().await?;
    for (symbol, day) in [("AAA", 20), ("BBB", 21)] {
        let rows = (1..=3).map(|number| {
            format!(
                r#"{{"kind":"dividend","id":"d-{number}","symbol":"{symbol}","ex_date":"2024-0{number}-05","amount":"0.5{number}","observed_at":"2024-06-{day}T00:00:00Z"}}"#
            ) + "\n"
        });
        app.feed(&format!("{symbol}.ndjson"), rows.collect::<String>()).today(TODAY).apply().await?;
    }
    let served = "select string_agg(symbol || ' ' || trim_scale(amount), ' ' order by ex_date)
        from read_g1.dividends where status <> 'cancelled'";
    assert_eq!(app.sql_value::<String>(served).await?, "BBB 0.51 BBB 0.52 BBB 0.53");
    ReferenceProjection::check(&app, 1).await?;
    Ok(())
}
