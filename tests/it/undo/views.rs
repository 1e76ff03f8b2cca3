//! Tests of views without some runs: past answers, explanations and generations.

use super::*;

/// Answers of earlier data versions have the runs that were visible then.
#[tokio::test]
async fn past_answers_know_what_was_visible_then() -> Result<()> {
    let app = TestApp::start().await?;
    let prices = |close: u32| [("prices.csv", format!("symbol,date,close\nKO,2024-03-14,{close}\n"))];
    load(&app, "a", &prices(60)).await?;
    app.catch_up().await?;
    let run = load(&app, "b", &prices(66)).await?;
    app.catch_up().await?;
    undo(&app, &run, &[]).await?;
    app.catch_up().await?;
    app.ingest(&["release", &run]).await?.success()?;
    app.catch_up().await?;
    let versions = app
        .sql(
            "select 'g' || generation || '.' || sequence as version from control.versions order by sequence",
            &[],
        )
        .await?;
    let (api, key) = (app.api_serve().await?, app.key("professional").await?);
    let mut closes = Vec::new();
    for row in &versions {
        let path = format!("/v1/prices/KO?data_version={}", row.try_get::<_, &str>("version")?);
        let answer = api.get(&path, Some(&key)).await?.json()?;
        closes.extend(answer["data"][0]["close"].as_f64());
    }
    closes.dedup();
    assert_eq!(closes, [60.0, 66.0, 60.0, 66.0]);
    Ok(())
}

/// `ingest` must report a retraction that matches no row.
#[tokio::test]
async fn a_retraction_without_effect_is_reported() -> Result<()> {
    let app = TestApp::start().await?;
    let dividends = |rows: &str| vec![("dividends.csv", format!("symbol,ex_date,amount,action\n{rows}"))];
    let run = load(&app, "right", &dividends("KO,2024-03-14,0.485,put\n")).await?;
    let retract = async |rows: &str, source: &str, more: &[&str]| -> Result<Value> {
        let path = app.folder().join(format!("dividends-{}.csv", rows.len()));
        std::fs::write(&path, format!("symbol,ex_date,amount,action\n{rows}"))?;
        let path = path.display().to_string();
        app.ingest(&[&["load", &path, "--source", source, "--json"], more].concat()).await?.success()?.json()
    };
    let wrong = "KOO,2024-03-14,,retract\nKO,2024-03-13,,retract\n";
    for more in [&["--dry-run"][..], &[]] {
        let told = retract(wrong, "test", more).await?;
        let first = json!([
            "dividend KOO 2024-03-14: the nearest known symbol is KO",
            "dividend KO 2024-03-13: the nearest known date is 2024-03-14"
        ]);
        assert_eq!(told["untouching_retractions"], json!({ "count": 2, "first": first }), "{told}");
    }
    let right = "KO,2024-03-14,,retract\n";
    assert_eq!(retract(right, "test", &[]).await?["untouching_retractions"], Value::Null);
    let other = retract(right, "tset", &[]).await?;
    assert_eq!(
        (&other["untouching_retractions"]["count"], &other["known_sources"]),
        (&json!(1), &json!(["test"]))
    );
    // The beginning of an id suffices. A text that is shorter than 4 characters names none.
    for text in [&run[..8], &run[..4]] {
        let tried = app.ingest(&["undo", text, "--dry-run"]).await?.success()?;
        assert!(tried.stdout.contains(&run), "{}", tried.stdout);
    }
    let short = app.ingest(&["undo", &run[..3]]).await?;
    assert!(short.code == 2 && short.stderr.contains("cannot find run"), "{}", short.stderr);
    Ok(())
}

/// `projector explain` names the runs whose observations do not count, and what they would change.
#[tokio::test]
async fn an_explanation_names_hidden_runs() -> Result<()> {
    let app = TestApp::start().await?;
    let file = |close: u32| [("prices.csv", format!("symbol,date,close\nKO,2024-03-14,{close}\n"))];
    load(&app, "a", &file(60)).await?;
    let run = load(&app, "b", &file(66)).await?;
    undo(&app, &run, &["--reason", "wrong file", "--operator", "ann"]).await?;
    app.catch_up().await?;
    let explained = app.projector(&["explain", "KO", "price", "--json"]).await?.success()?.json()?;
    let hidden = &explained["hidden_runs"][0];
    assert_eq!((&hidden["run"], &hidden["state"]), (&json!(run), &json!("excluded")), "{explained}");
    assert_eq!(hidden["would_change"], json!([{ "metric": "price", "value": "66" }]));
    let text = app.projector(&["explain", "KO", "price"]).await?.success()?.stdout;
    assert!(text.contains("by ann (wrong file)") && text.contains("with it, price would be 66"), "{text}");
    Ok(())
}

/// A generation without a run has the tables of a log that never had the run, also after later loads.
#[tokio::test]
async fn a_generation_can_leave_out_a_run() -> Result<()> {
    let app = TestApp::start().await?;
    let file = |close: u32| {
        [("prices.csv", format!("symbol,date,close\nKO,2024-03-14,{close}\nPEP,2024-03-14,9\n"))]
    };
    load(&app, "a", &file(60)).await?;
    app.catch_up().await?;
    let before: String =
        app.sql_value("select jsonb_agg(to_jsonb(q) order by symbol)::text from read_g1.quotes q").await?;
    let run = load(&app, "b", &file(66)).await?;
    app.catch_up().await?;
    let unknown = app.projector(&["rebuild", "--without", "nothing"]).await?;
    assert!(unknown.code != 0 && unknown.stderr.contains("no such run"), "{}", unknown.stderr);
    app.projector(&["rebuild", "--without", &run, "--json"]).await?.success()?;
    // The state of the run is fixed: events of the log do not make it visible.
    undo(&app, &run, &[]).await?;
    app.ingest(&["release", &run]).await?.success()?;
    app.catch_up().await?;
    let generations: i32 = app.sql_value("select max(id) from control.generations").await?;
    let quotes =
        format!("select jsonb_agg(to_jsonb(q) order by symbol)::text from read_g{generations}.quotes q");
    assert_eq!(app.sql_value::<String>(&quotes).await?, before);
    let served: String = app.sql_value("select price::text from read_g1.quotes where symbol = 'KO'").await?;
    assert!(served.starts_with("66"), "{served}");
    Ok(())
}
