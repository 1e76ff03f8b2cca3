//! Overlay of sources, from feed files to the API: a row of a newer source takes the place of one row, and other rows
//! stay. The market has a payer with thirty years of dividends of source `test`.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result, ensure};
use harness::{Daemon, TestApp};
use serde_json::{Value, json};

use crate::api_world::World;
use crate::generations::answer;

/// Figures that two corrected payments of 2010 and 2015 do not change.
const UNCHANGED: [&str; 8] = [
    "dps_ttm",
    "dps_forward",
    "dividend_status",
    "frequency",
    "increase_streak_years",
    "payment_count",
    "first_payment_date",
    "flags",
];

async fn start() -> Result<(World, Daemon)> {
    let world = World::start_in(TestApp::builder().env("INGEST_EFFECT_WAIT", "60"), &[]).await?;
    let projector = world.app.start_projector().await?;
    Ok((world, projector))
}

/// Loads a file and waits until the API serves it. Returns the load's summary, with its effect on the served figures.
async fn load(world: &World, source: &str, name: &str, text: &str) -> Result<Value> {
    let feed = world.app.folder().join(name);
    fs::write(&feed, text)?;
    let feed = feed.to_string_lossy();
    let summary =
        world.app.ingest(&["load", &feed, "--source", source, "--json"]).await?.success()?.json()?;
    ensure!(summary["effect"].is_object(), "no effect in {summary}");
    // After this response, the API never answers from older data.
    let version = format!("g1.{}", summary["effect"]["last_message"]);
    world.json(&format!("/v1/stocks/COLA/quote?min_version={version}")).await?;
    Ok(summary)
}

/// Ex-date, amount and source of each payment, oldest first. Withdrawn rows are not included.
async fn payments(world: &World) -> Result<Vec<(String, String, String)>> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let body = world.json(&format!("/v1/stocks/COLA/dividends?limit=100&sort=ex_date{cursor}")).await?;
        let rows = body["data"].as_array().with_context(|| body.to_string())?;
        let text = |row: &Value, name: &str| row[name].to_string().replace('"', "");
        let payment = |row: &Value| (text(row, "ex_date"), text(row, "amount"), text(row, "source"));
        found.extend(rows.iter().map(payment));
        match body["meta"]["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(found),
        }
    }
}

async fn metrics(world: &World) -> Result<Value> {
    Ok(world.json("/v1/stocks/COLA/metrics").await?["data"].clone())
}

fn assert_unchanged(before: &Value, after: &Value) {
    for name in UNCHANGED {
        assert_eq!(before[name], after[name], "{name}");
    }
}

/// Replacements of an effect, as texts.
fn replaced(summary: &Value) -> Vec<String> {
    let found = summary["effect"]["replaced"].as_array().into_iter().flatten();
    let text = |one: &Value| {
        let word = |name: &str| one[name].as_str().unwrap_or_default().to_owned();
        format!(
            "{} replaces {} {} rows of {} in {}",
            word("source"),
            one["rows"],
            word("kind"),
            word("replaced"),
            one["first"]
        )
    };
    found.map(text).collect()
}

/// Rows of COLA that no figure uses, as `kind date outcome: reason`.
async fn unused(world: &World) -> Result<Vec<String>> {
    let explained = answer(&world.app, &["explain", "COLA"]).await?;
    let rows = explained["unused"].as_array().with_context(|| explained.to_string())?.clone();
    let word = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let text = |row: &Value| {
        let reason = word(row, "reason");
        let reason = reason.split(", observed").next().unwrap_or_default();
        format!("{} {} {}: {reason}", word(row, "kind"), word(row, "date"), word(row, "outcome"))
    };
    Ok(rows.iter().map(text).collect())
}

async fn covered(world: &World) -> Result<Value> {
    let audit = world.app.projector(&["audit", "--json"]).await?;
    Ok(audit.json()?["covered"].clone())
}

#[tokio::test]
async fn two_rows_of_a_new_source_correct_two_payments_and_nothing_else() -> Result<()> {
    let (world, _projector) = start().await?;
    let (before, figures) = (payments(&world).await?, metrics(&world).await?);
    assert!(before.len() > 120, "{} payments", before.len());
    assert_eq!(covered(&world).await?, json!([]));

    // The first row moves an ex-date, the second corrects an amount.
    let corrections =
        "symbol,ex_date,amount,frequency\nCOLA,2010-06-10,1.36,quarterly\nCOLA,2015-03-13,1.67,quarterly\n";
    let summary = load(&world, "desk", "dividends.csv", corrections).await?;
    let after = payments(&world).await?;
    let mut expected = before.clone();
    for row in &mut expected {
        let date = row.0.as_str();
        match date {
            "2010-06-13" => *row = ("2010-06-10".into(), "1.36".into(), "desk".into()),
            "2015-03-13" => *row = (row.0.clone(), "1.67".into(), "desk".into()),
            _ => {}
        }
    }
    assert_eq!(after, expected);
    assert_unchanged(&figures, &metrics(&world).await?);
    assert_eq!(replaced(&summary), [r#"desk replaces 2 dividend rows of test in ["COLA"]"#]);
    assert_eq!(
        unused(&world).await?,
        [
            "dividend 2010-06-13 covered: a newer row of another source took its place: desk, revision 0, line 2",
            "dividend 2015-03-13 covered: a newer row of another source took its place: desk, revision 0, line 3",
        ]
    );
    assert_eq!(
        covered(&world).await?,
        json!([{ "kind": "dividend", "source": "test", "by": "desk", "rows": 2, "securities": 1,
                 "first": [{ "symbol": "COLA", "rows": 2 }] }])
    );
    let text = world.app.projector(&["audit"]).await?.stdout;
    let line = "desk covers dividend rows of test: 2 rows of 1 security; most: COLA 2";
    assert!(text.lines().any(|told| told == line), "{text}");

    // The first source brings its next payment. The corrections stay.
    let next = "symbol,ex_date,amount,id,frequency,declaration_date\nCOLA,2024-12-13,1.1,c202412,quarterly,2024-06-01\n";
    load(&world, "test", "dividends.csv", next).await?;
    expected.push(("2024-12-13".into(), "1.1".into(), "test".into()));
    assert_eq!(payments(&world).await?, expected);

    // The new source withdraws both rows. The covered rows are used again, and nothing tells of the withdrawn ones.
    let withdrawn =
        "symbol,ex_date,amount,action\nCOLA,2010-06-10,1.36,retract\nCOLA,2015-03-13,1.67,retract\n";
    load(&world, "desk", "dividends.csv", withdrawn).await?;
    let mut expected = before;
    expected.push(("2024-12-13".into(), "1.1".into(), "test".into()));
    assert_eq!(payments(&world).await?, expected);
    let restored = metrics(&world).await?;
    assert_eq!(restored["flags"], figures["flags"]);
    assert_eq!(covered(&world).await?, json!([]));
    Ok(())
}

#[tokio::test]
async fn a_second_whole_feed_shifted_by_a_day_counts_no_payment_twice() -> Result<()> {
    let (world, _projector) = start().await?;
    let (before, figures) = (payments(&world).await?, metrics(&world).await?);
    let shifted = before.iter().map(|(date, amount, _)| {
        let date: chrono::NaiveDate = date.parse()?;
        Ok(format!("COLA,{},{amount},quarterly,{}\n", date + chrono::Days::new(1), "2024-06-01"))
    });
    // All payments were declared by June 2024. A payment counts from its ex-date at the latest.
    let rows: String = shifted.collect::<Result<_>>()?;
    let summary = load(
        &world,
        "vendor",
        "dividends.csv",
        &format!("symbol,ex_date,amount,frequency,declaration_date\n{rows}"),
    )
    .await?;
    let after = payments(&world).await?;
    assert_eq!(after.len(), before.len());
    assert!(after.iter().all(|row| row.2 == "vendor"), "{after:?}");
    let figures_after = metrics(&world).await?;
    for name in
        ["dps_ttm", "dps_forward", "dividend_status", "frequency", "increase_streak_years", "payment_count"]
    {
        assert_eq!(figures[name], figures_after[name], "{name}");
    }
    let all = format!(r#"vendor replaces {} dividend rows of test in ["COLA"]"#, before.len());
    assert_eq!(replaced(&summary), [all]);
    Ok(())
}

#[tokio::test]
async fn a_quarantined_split_row_removes_no_split() -> Result<()> {
    let (world, _projector) = start().await?;
    let splits =
        async || -> Result<Value> { Ok(world.json("/v1/stocks/COLA/splits").await?["data"].clone()) };
    let (before, figures) = (splits().await?, metrics(&world).await?);
    assert_eq!(before[0]["ex_date"], "2024-03-01", "{before}");

    let wrong = "symbol,ex_date,from,to\nCOLA,2024-03-01,1,500\n";
    let summary = load(&world, "desk", "splits.csv", wrong).await?;
    assert_eq!(splits().await?, before);
    let after = metrics(&world).await?;
    assert_unchanged(&figures, &after);
    assert_eq!(after["quarantined"][0]["reason"], "split_denied", "{after}");
    assert_eq!(
        (replaced(&summary), &summary["effect"]["quarantined"]["added"]),
        (vec![], &json!(1)),
        "{summary}"
    );
    assert_eq!(covered(&world).await?, json!([]));

    // A plausible row of the same week takes its place.
    let moved = "symbol,ex_date,from,to,declaration_date\nCOLA,2024-03-01,10,20,2024-02-01\n";
    let summary = load(&world, "agency", "splits.csv", moved).await?;
    let after = splits().await?;
    assert_eq!(
        (after[0]["declaration_date"].as_str(), after.as_array().map(Vec::len)),
        (Some("2024-02-01"), Some(1))
    );
    assert_eq!(replaced(&summary), [r#"agency replaces 1 split rows of test in ["COLA"]"#]);
    Ok(())
}

#[tokio::test]
async fn a_corrected_close_and_a_corrected_report_leave_the_others() -> Result<()> {
    let (world, _projector) = start().await?;
    let before = world.json("/v1/stocks/COLA/fundamentals").await?["data"].clone();
    let closes = async || -> Result<BTreeMap<String, String>> {
        let path = "/v1/prices/COLA?start_date=2024-06-03&end_date=2024-06-14&adjustment=raw";
        let body = world.json(path).await?;
        let rows = body["data"].as_array().with_context(|| body.to_string())?;
        let text = |row: &Value, name: &str| row[name].to_string().replace('"', "");
        Ok(rows.iter().map(|row| (text(row, "date"), text(row, "close"))).collect())
    };
    let mut expected = closes().await?;
    let summary = load(&world, "desk", "prices.csv", "symbol,date,close\nCOLA,2024-06-12,50.01\n").await?;
    assert_eq!(replaced(&summary), [r#"desk replaces 1 price rows of test in ["COLA"]"#]);
    expected.insert("2024-06-12".to_owned(), "50.01".to_owned());
    assert_eq!(closes().await?, expected);
    let one = |kind: &str| {
        json!({ "kind": kind, "source": "test", "by": "desk", "rows": 1, "securities": 1,
                "first": [{ "symbol": "COLA", "rows": 1 }] })
    };
    assert_eq!(covered(&world).await?, json!([one("price")]));
    // The first source brings another session. The correction stays.
    load(&world, "test", "prices.csv", "symbol,date,close\nCOLA,2024-06-17,50.5\n").await?;
    assert_eq!(closes().await?, expected);
    // A record of company figures with one figure keeps the others of its company.
    let report = "symbol,as_of,eps_ttm\nCOLA,2024-06-01,2.6\nCOLA,2024-03-31,2.4\n";
    load(&world, "desk", "fundamentals.csv", report).await?;
    let after = world.json("/v1/stocks/COLA/fundamentals").await?["data"].clone();
    assert_eq!(after["eps_ttm"].to_string().replace('"', ""), "2.6");
    assert_eq!(after["shares_outstanding"], before["shares_outstanding"], "{after}");
    Ok(())
}
