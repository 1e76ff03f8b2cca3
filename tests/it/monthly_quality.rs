//! Quality of the sources by month: counted by hand, measured once, and kept over corrections and rebuilds.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{TestApp, eventually};
use serde_json::{Value, json};

use crate::api_world::{check, column};
use crate::dashboard::visitor::Person;
use crate::market_pages::PUBLIC;

const PATIENCE: Duration = Duration::from_secs(60);
/// Declaration days of the dividends of April 2024, and the hours of their lags.
const LAGS: [(&str, i32); 4] =
    [("2024-04-15", 12), ("2024-04-16", 36), ("2024-04-17", 60), ("2024-04-18", 24)];

fn security(symbol: &str, kind: &str) -> Value {
    json!({ "kind": "security", "symbol": symbol, "name": symbol, "type": kind, "exchange": "XNYS", "currency": "USD" })
}

fn price(symbol: &str, date: &str) -> Value {
    json!({ "kind": "price", "symbol": symbol, "date": date, "close": "50" })
}

fn dividend(id: &str, ex_date: &str, amount: &str) -> Value {
    json!({ "kind": "dividend", "symbol": "AAA", "id": id, "ex_date": ex_date, "amount": amount, "currency": "USD" })
}

/// Later version of a dividend.
fn correction(id: &str, ex_date: &str, amount: &str) -> Value {
    let mut row = dividend(id, ex_date, amount);
    row["revision"] = json!(1);
    row
}

async fn apply(app: &TestApp, name: &str, source: &str, rows: &[Value]) -> Result<()> {
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    app.feed(name, text).source(source).today("2024-06-30").apply().await
}

/// Starts an app with a market date in April 2024. Four dividends were declared in April, and published after the lags.
async fn april() -> Result<TestApp> {
    let app = TestApp::builder().env("SERVICE_DATE", "2024-06-30").start().await?;
    let rows = [
        security("AAA", "stock"),
        security("BBB", "stock"),
        security("FND", "etf"),
        price("AAA", "2024-04-12"),
        price("BBB", "2024-04-12"),
        price("FND", "2024-04-12"),
    ];
    apply(&app, "first.ndjson", "one", &rows).await?;
    apply(&app, "second.ndjson", "two", &[price("BBB", "2024-04-12")]).await?;
    // A load that waits is in no figure.
    let held = app.folder().join("held.ndjson");
    std::fs::write(&held, format!("{}\n", price("BBB", "2024-04-11")))?;
    app.ingest(&["load", &held.to_string_lossy(), "--source", "waiting", "--stage"]).await?.success()?;
    for (number, (declared, hours)) in LAGS.iter().enumerate() {
        let mut row = dividend(&format!("d{number}"), &format!("2024-{:02}-10", number + 5), "0.25");
        row["declaration_date"] = json!(declared);
        apply(&app, &format!("declared-{number}.ndjson"), "one", &[row, price("AAA", declared)]).await?;
        // The publication is an instant of the real clock. The test moves it, and the declaration with it, because old
        // notices are deleted.
        let published = "update control.notices set at = (d.day::timestamp at time zone 'America/New_York') + make_interval(hours => $1),
                           after = jsonb_set(after::jsonb, '{declaration_date}', to_jsonb(d.day))::json
                         from (select (now() at time zone 'America/New_York')::date - 10 as day) d
                         where event = 'declared' and record like '%/d' || $2";
        app.sql(published, &[hours, &number.to_string()]).await?;
    }
    apply(
        &app,
        "corrected.ndjson",
        "one",
        &[correction("d1", "2024-06-10", "0.26"), price("AAA", "2024-04-19")],
    )
    .await?;
    Ok(app)
}

/// A rebuild without a run fixes its state, whatever its events say.
#[tokio::test]
async fn a_run_that_a_rebuild_leaves_out_does_not_count() -> Result<()> {
    let app = TestApp::builder().env("SERVICE_DATE", "2024-06-30").start().await?;
    let rows = [security("AAA", "stock"), price("AAA", "2024-04-12")];
    apply(&app, "first.ndjson", "one", &rows).await?;
    let path = app.folder().join("left-out.ndjson");
    std::fs::write(&path, format!("{}\n", price("AAA", "2024-04-11")))?;
    let staged = ["load", &path.to_string_lossy(), "--source", "two", "--stage", "--json"];
    let staged = app.ingest(&staged).await?.success()?.json()?;
    let run = staged["run"].as_str().context("a run")?;
    app.ingest(&["release", run]).await?.success()?;
    app.catch_up().await?;
    app.projector(&["rebuild", "--without", run]).await?.success()?;
    app.projector(&["promote", "2", "--accept-diff"]).await?.success()?;
    apply(&app, "may.ndjson", "one", &[price("AAA", "2024-05-01")]).await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let april = api.get("/v1/quality?month=2024-04-30", Some(&key)).await?.json()?;
    assert_eq!(column(&april, "source"), ["one"], "{april}");
    Ok(())
}

#[tokio::test]
async fn a_month_has_the_figures_counted_by_hand_and_keeps_them() -> Result<()> {
    let app = april().await?;
    let api = app.api_serve_with(&PUBLIC).await?;
    let key = app.key("professional").await?;
    let months = async || api.get("/v1/quality?sort=month,source", Some(&key)).await?.json();
    let first = months().await?;
    // The first load measures the month before it, without any event of a dividend.
    assert_eq!(
        (column(&first, "month"), column(&first, "source")),
        (vec![json!("2024-03-01")], vec![json!("one")])
    );
    apply(&app, "may.ndjson", "one", &[price("AAA", "2024-05-01")]).await?;
    let expected = ["2024-03-01", "2024-04-01", "2024-04-01"];
    eventually(PATIENCE, async || {
        let found = column(&months().await?, "month");
        ensure!(found == expected, "{found:?}");
        Ok(())
    })
    .await?;
    let kept = months().await?;
    let [one, two] = [&kept["data"][1], &kept["data"][2]];
    // Lags of 12, 24, 36 and 60 hours: by nearest rank, the median is the second, and the 95th percentile the last.
    let of_one = json!({
        "source": "one", "as_of": "2024-05-01", "corrected": 1, "cancelled": 0, "declared": 4, "lag_median_days": 1,
        "lag_p95_days": 2.5, "agreeing": null, "rows": 17,
        "coverage": { "etf": { "covered": 1, "active": 1 }, "stock": { "covered": 2, "active": 2 } },
    });
    check(one, of_one);
    let of_two = json!({
        "source": "two", "corrected": 0, "declared": 0, "lag_median_days": null, "rows": 1,
        "coverage": { "etf": { "covered": 0, "active": 1 }, "stock": { "covered": 1, "active": 2 } },
    });
    check(two, of_two);
    let filtered = api.get("/v1/quality?month=2024-04-17&source=two", Some(&key)).await?.json()?;
    assert_eq!(filtered["data"], json!([two]));

    // Corrections of the month, a rebuild and a restart of the projector change nothing.
    apply(&app, "late.ndjson", "one", &[correction("d0", "2024-05-10", "0.24"), price("AAA", "2024-05-02")])
        .await?;
    app.projector(&["rebuild"]).await?.success()?;
    app.projector(&["promote", "2", "--accept-diff"]).await?.success()?;
    app.catch_up().await?;
    eventually(PATIENCE, async || {
        let found = months().await?;
        ensure!(
            found["meta"]["data_version"].as_str().is_some_and(|version| version.starts_with("g2.")),
            "{found}"
        );
        assert_eq!(found["data"], kept["data"]);
        Ok(())
    })
    .await?;
    // The late correction counts in the month in which it was published.
    apply(&app, "june.ndjson", "one", &[price("AAA", "2024-06-03")]).await?;
    eventually(PATIENCE, async || {
        let may = api.get("/v1/quality?month=2024-05-01&source=one", Some(&key)).await?.json()?;
        ensure!(column(&may, "corrected") == [json!(1)], "{may}");
        Ok(())
    })
    .await?;

    let page = Person::at(&api)?.get("/quality").await?;
    for part in
        ["Quality by month", "<th scope=\"row\">2024-04</th>", "stock 1 of 2", "GET /v1/quality?limit=200"]
    {
        assert!(page.has(part), "{part}: {}", page.text);
    }
    assert!(page.has("Apr 24: 1 dividends") && page.has(">2.5</data> days"), "{}", page.text);
    Ok(())
}
