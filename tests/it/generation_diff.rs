//! Tests of `projector diff`: the differences between two generations, their ranking and reasons, and their export to
//! files.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use harness::{Program, Signal, TestApp, eventually};
use serde_json::{Value, json};

use crate::generations::{PATIENCE, answer};

/// Starts an app with the vendors `left` and `right`. For the symbol TWIN, the vendors report different closes on two
/// days and different last dividends. Only `left` reports the symbol SAME.
async fn two_vendors() -> Result<TestApp> {
    let app = TestApp::builder().env("SERVICE_DATE", "2024-06-30").start().await?;
    for (source, closes, last) in [("left", [50, 52, 50], "0.5"), ("right", [50, 51, 40], "0.8")] {
        let prices: String = ["2023-06-27", "2024-06-27", "2024-06-28"]
            .iter()
            .zip(closes)
            .map(|(day, close)| match source {
                "left" => format!("TWIN,{day},{close}\nSAME,{day},20\n"),
                _ => format!("TWIN,{day},{close}\n"),
            })
            .collect();
        let paid = |symbol: &str, last: &str| {
            let days =
                [("2023-09-15", "0.5"), ("2023-12-15", "0.5"), ("2024-03-15", "0.5"), ("2024-06-14", last)];
            days.map(|(day, amount)| format!("{symbol},{day},{amount},quarterly\n")).concat()
        };
        let same = if source == "left" { paid("SAME", "0.5") } else { String::new() };
        let dividends = [paid("TWIN", last), same].concat();
        for (name, text) in [
            ("prices", format!("symbol,date,close\n{prices}")),
            ("dividends", format!("symbol,ex_date,amount,frequency\n{dividends}")),
        ] {
            // Without a policy, the later observation wins. This is the one of `right`.
            app.feed(&format!("{name}-{source}.csv"), text).source(source).load().await?;
        }
    }
    app.catch_up().await?;
    Ok(app)
}

/// Builds generation 2 with a policy that prefers `source`.
async fn believing(app: &TestApp, source: &str) -> Result<()> {
    let rule = |kind: &str| json!({ "kind": kind, "source": source, "from": null, "to": null, "rank": 1 });
    let path = app.folder().join("policy.json");
    fs::write(&path, json!([rule("price"), rule("dividend")]).to_string())?;
    answer(app, &["rebuild", "--policy", &path.display().to_string()]).await?;
    Ok(())
}

fn table<'a>(diff: &'a Value, name: &str) -> Result<&'a Value> {
    let tables = diff["tables"].as_array().into_iter().flatten();
    tables.into_iter().find(|table| table["table"] == name).with_context(|| format!("{name} in {diff}"))
}

#[tokio::test]
async fn what_differs_is_ranked_by_day_and_field_and_says_why() -> Result<()> {
    let app = two_vendors().await?;
    believing(&app, "left").await?;
    let diff = answer(&app, &["diff", "2", "1", "--why"]).await?;
    let summary = diff["summary"].as_array().context("a summary")?;
    let topics: Vec<&Value> = summary.iter().map(|ranked| &ranked["topic"]).collect();
    assert_eq!(topics, ["streaks", "yields", "prices"], "{diff}");
    let yields = &summary[1];
    assert_eq!((&yields["count"], &yields["first"][0]["symbol"]), (&json!(1), &json!("TWIN")));
    // The forward yield and the headline yield changed most: 0.8 x 4 / 40 against 0.5 x 4 / 50.
    let found = &yields["first"][0];
    assert_eq!(
        (&found["figure"], &found["a"], &found["b"]),
        (&json!("dividend_yield"), &json!(4), &json!(8))
    );
    assert_eq!(found["size"], json!(4));
    let why: Vec<&str> = found["why"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let says = |text: &str| why.iter().any(|line| line.contains(text));
    assert!(says("only in 2: dividend 2024-06-14 0.5 USD from left"), "{why:#?}");
    assert!(says("the source policy prefers another source"), "{why:#?}");

    let prices = table(&diff, "prices")?;
    assert_eq!((&prices["differing"], &prices["columns"]), (&json!(2), &json!({ "close": 2 })));
    assert_eq!(prices["rows"][0]["key"], json!({ "symbol": "TWIN", "date": "2024-06-27" }));
    assert_eq!(prices["rows"][0]["columns"]["close"], json!([52, 51]));
    assert_eq!(
        prices["rows"][0]["why"],
        json!([
            "price 2024-06-27 51 USD from right: other_source in 2, used in 1",
            "price 2024-06-27 52 USD from left: used in 2, covered in 1"
        ])
    );
    assert_eq!(diff["price_days"], json!({ "2024": 2 }));
    let symbols: BTreeSet<&str> = diff["tables"]
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|table| table["rows"].as_array().into_iter().flatten())
        .filter_map(|row| row["key"]["symbol"].as_str())
        .collect();
    assert_eq!(symbols, BTreeSet::from(["TWIN"]), "what is the same is not there");

    let text = app.projector(&["diff", "2", "1", "--verbose"]).await?.success()?;
    for line in
        ["1  yields change, in percent points", "TWIN       dividend_yield: 4 -> 8", "close: 52 -> 51"]
    {
        assert!(text.stdout.contains(line), "{line} in {}", text.stdout);
    }
    assert!(text.stderr.contains("compared ") && text.stderr.contains("/s"), "{}", text.stderr);
    Ok(())
}

#[tokio::test]
async fn a_part_is_compared_and_is_no_review() -> Result<()> {
    let app = two_vendors().await?;
    believing(&app, "left").await?;
    let one = answer(&app, &["diff", "1", "2", "--table", "prices", "--since", "2024-06-28"]).await?;
    assert_eq!(one["tables"].as_array().map(Vec::len), Some(1));
    assert_eq!(table(&one, "prices")?["differing"], 1);
    assert_eq!(one["reviewed"], false);
    let other = answer(&app, &["diff", "1", "2", "--symbol", "same"]).await?;
    assert_eq!((&other["identical"], &table(&other, "dividends")?["rows_a"]), (&json!(true), &json!(8)));
    let refused = app.projector(&["promote", "2"]).await?;
    assert!(refused.code == 1 && refused.stderr.contains("projector diff 1 2"), "{}", refused.stderr);
    let unknown = app.projector(&["diff", "1", "2", "--symbol", "NOBODY"]).await?;
    assert!(unknown.code == 1 && unknown.stderr.contains("NOBODY"), "{}", unknown.stderr);
    let mistyped = app.projector(&["diff", "1", "2", "--table", "price"]).await?;
    assert!(mistyped.code == 2 && mistyped.stderr.contains("prices"), "{}", mistyped.stderr);

    app.sql("update control.generations set state = 'building' where id = 2", &[]).await?;
    assert_eq!(answer(&app, &["diff", "1", "2"]).await?["reviewed"], false, "it is not finished");
    app.sql("update control.generations set state = 'tailing' where id = 2", &[]).await?;
    assert_eq!(answer(&app, &["diff", "1", "2"]).await?["reviewed"], true);
    answer(&app, &["promote", "2"]).await?;
    Ok(())
}

#[tokio::test]
async fn every_difference_goes_into_a_file_and_the_page_needs_no_network() -> Result<()> {
    let app = two_vendors().await?;
    believing(&app, "left").await?;
    let (lines, page) = (app.folder().join("diff.csv"), app.folder().join("diff.html"));
    let (csv, html) = (lines.display().to_string(), page.display().to_string());
    answer(&app, &["diff", "1", "2", "--limit", "1", "--csv", &csv, "--html", &html]).await?;
    let mut reader = csv::Reader::from_path(&lines)?;
    assert_eq!(reader.headers()?, vec!["table", "symbol", "key", "change", "column", "a", "b"]);
    let written: Vec<Vec<String>> =
        reader.records().map(|line| Ok(line?.iter().map(str::to_owned).collect())).collect::<Result<_>>()?;
    let close =
        |day: &str, a: &str, b: &str| ["prices", "TWIN", day, "changed", "close", a, b].map(str::to_owned);
    for line in [close("2024-06-27", "51", "52"), close("2024-06-28", "40", "50")] {
        assert!(written.contains(&line.to_vec()), "{written:#?}");
    }
    let page = fs::read_to_string(&page)?;
    for part in ["Generation 1 against 2", "<svg", "dividend_yield", "2024-06-28", "source policy"] {
        assert!(page.contains(part), "no {part} in the page");
    }
    assert!(!page.contains("http://") && !page.contains("https://"), "the page asks the network");

    app.sql("delete from control.reviews", &[]).await?;
    for (flag, path) in [("--csv", "/nowhere/diff.csv"), ("--html", "/nowhere/diff.html")] {
        let nowhere = app.projector(&["diff", "1", "2", flag, path]).await?;
        assert!(nowhere.code == 1 && nowhere.stderr.contains(path), "{}", nowhere.stderr);
        assert!(!nowhere.stderr.contains("compared "), "it is said before the work: {}", nowhere.stderr);
    }
    assert_eq!(app.sql_value::<i64>("select count(*) from control.reviews").await?, 0);
    Ok(())
}

/// The test changes a row directly in Postgres, so the digest of the row is outdated. Fails if `diff --whole` misses
/// the change.
#[tokio::test]
async fn rows_are_compared_whole_when_the_digests_are_not_believed() -> Result<()> {
    let app = two_vendors().await?;
    answer(&app, &["rebuild"]).await?;
    app.sql("update read_g2.dividends set amount = 9 where symbol = 'SAME' and ex_date = '2024-06-14'", &[])
        .await?;
    assert_eq!(answer(&app, &["diff", "1", "2"]).await?["identical"], true);
    let whole = answer(&app, &["diff", "1", "2", "--whole"]).await?;
    let dividends = table(&whole, "dividends")?;
    assert_eq!(
        (&dividends["differing"], &dividends["rows"][0]["columns"]),
        (&json!(1), &json!({ "amount": [0.5, 9] }))
    );
    Ok(())
}

#[tokio::test]
async fn an_interrupted_comparison_ends_in_postgres_too() -> Result<()> {
    let app = two_vendors().await?;
    believing(&app, "left").await?;
    let mut writing = app.servers().postgres.connect(app.database()).await?;
    let locking = writing.transaction().await?;
    locking.batch_execute("lock table read_g2.metrics in access exclusive mode").await?;
    let waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    let mut comparing = app.spawn(Program::Projector, &["diff", "1", "2"]).await?;
    eventually(PATIENCE, async || {
        ensure!(app.sql_value::<i64>(waiting).await? == 1, "nobody waits for the lock");
        Ok(())
    })
    .await?;
    comparing.signal(Signal::INT)?;
    let ended = comparing.wait(Duration::from_secs(120)).await?;
    assert_eq!(ended.code(), Some(1), "{}", comparing.log());
    assert!(comparing.log().contains("interrupted"), "{}", comparing.log());
    eventually(PATIENCE, async || {
        ensure!(app.sql_value::<i64>(waiting).await? == 0, "Postgres goes on");
        Ok(())
    })
    .await?;
    assert_eq!(app.sql_value::<i64>("select count(*) from control.reviews").await?, 0);
    Ok(())
}
