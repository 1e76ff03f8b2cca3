//! Tests of `ingest undo`. The undo of a wrong load restores the served data, but keeps later corrections.

use anyhow::{Context, Result};
use harness::{Program, TestApp};
use serde_json::{Value, json};

use crate::log_copies::{market, verify};
use crate::process_kills::killed_at;

/// Writes feed files (pairs of name and text) to a new folder and loads the folder. Returns the run id.
async fn load(app: &TestApp, name: &str, files: &[(&str, String)]) -> Result<String> {
    let folder = app.folder().join(name);
    std::fs::create_dir(&folder)?;
    for (file, text) in files {
        std::fs::write(folder.join(file), text)?;
    }
    let folder = folder.display().to_string();
    let summary = app.ingest(&["load", &folder, "--source", "test", "--json"]).await?.success()?.json()?;
    Ok(summary["run"].as_str().context("a summary names its run")?.to_owned())
}

async fn undo(app: &TestApp, run: &str, more: &[&str]) -> Result<Value> {
    app.ingest(&[&["undo", run, "--json"], more].concat()).await?.success()?.json()
}

/// Returns the served rows, to compare them before a load and after its undo. Cancelled rows, change times, flags and
/// line numbers are left out, because they can differ after an undo.
async fn served(app: &TestApp) -> Result<Vec<String>> {
    let mut rows = Vec::new();
    for table in
        ["stocks", "quotes", "fundamentals", "metrics", "dividends", "splits", "quarantine", "prices"]
    {
        let query = format!(
            r#"select regexp_replace((to_jsonb(t) - 'updated_at' - 'flags' - 'line')::text, '"line": \d+', '"line": 0', 'g')
             from read_g1.{table} t
             where to_jsonb(t) ->> 'status' is distinct from 'cancelled' order by 1"#
        );
        for row in app.sql(&query, &[]).await? {
            rows.push(format!("{table} {}", row.try_get::<_, &str>(0)?));
        }
    }
    Ok(rows)
}

async fn applied_market(app: &TestApp) -> Result<()> {
    let feed = market(app, "12", "3").await?;
    app.ingest(&["load", &feed, "--source", "test"]).await?.success()?;
    app.catch_up().await
}

/// Returns names and texts of feed files with wrong rows. Some rows replace or retract a served row. Other rows are
/// new, such as prices of a Sunday.
async fn wrong_feed(app: &TestApp) -> Result<Vec<(&'static str, String)>> {
    let rows = app
        .sql("select symbol, ex_date::text, type from read_g1.dividends where ex_date < '2024-03-15' order by 1, 2", &[])
        .await?;
    let (mut dividends, mut retractions) = (String::new(), String::new());
    for (index, row) in rows.iter().enumerate() {
        let (symbol, ex_date, r#type): (&str, &str, &str) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let out = if index % 3 == 0 { &mut retractions } else { &mut dividends };
        *out += &format!("{symbol},{ex_date},7.5,{type}\n");
    }
    let rows = app.sql("select symbol from read_g1.stocks order by 1", &[]).await?;
    let symbols: Vec<&str> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let each = |line: &dyn Fn(&str) -> String| symbols.iter().map(|symbol| line(symbol)).collect::<String>();
    let prices = |symbol: &str| {
        // Two days that already have prices, and a Sunday without prices.
        ["2024-03-13", "2024-03-14", "2023-06-04"].map(|date| format!("{symbol},{date},1.5,9\n")).concat()
    };
    Ok(vec![
        ("dividends.csv", format!("symbol,ex_date,amount,type\n{dividends}")),
        (
            "dividends-gone.csv",
            format!("symbol,ex_date,amount,type,action\n{}", retractions.replace('\n', ",retract\n")),
        ),
        ("prices.csv", format!("symbol,date,close,volume\n{}", each(&prices))),
        ("splits.csv", format!("symbol,ex_date,from,to\n{}", each(&|s| format!("{s},2023-06-01,1,7\n")))),
        ("securities.csv", format!("symbol,name,type\n{}", each(&|s| format!("{s},Wrong {s},trust\n")))),
        ("fundamentals.csv", format!("symbol,as_of,eps_ttm\n{}", each(&|s| format!("{s},2024-03-01,99\n")))),
    ])
}

#[tokio::test]
async fn a_wrong_load_that_is_taken_back_leaves_no_trace() -> Result<()> {
    let app = TestApp::start().await?;
    applied_market(&app).await?;
    let before = served(&app).await?;
    let run = load(&app, "wrong", &wrong_feed(&app).await?).await?;
    app.catch_up().await?;
    let wrong = served(&app).await?;
    assert_ne!(wrong, before);

    let tried = undo(&app, &run, &["--dry-run"]).await?;
    assert!(tried["kinds"]["dividend"]["restored"].as_u64() > Some(0), "{tried}");
    assert_eq!(tried["frames"], 0);
    app.catch_up().await?;
    assert_eq!(served(&app).await?, wrong, "a dry run publishes nothing");

    let undone = undo(&app, &run, &[]).await?;
    assert_eq!(undone["kinds"], tried["kinds"]);
    app.catch_up().await?;
    assert_eq!(served(&app).await?, before, "{undone}");

    // A second undo is refused, and so is a second load of the undone files. The undo itself can be undone.
    let again = app.ingest(&["undo", &run]).await?;
    assert!(again.code == 2 && again.stderr.contains("undid it before"), "{}", again.stderr);
    let folder = app.folder().join("wrong").display().to_string();
    let reload = app.ingest(&["load", &folder, "--source", "test"]).await?;
    assert!(reload.code == 2 && reload.stderr.contains("ingest undo"), "{}", reload.stderr);
    undo(&app, undone["undo"].as_str().context("an undo is a run")?, &[]).await?;
    app.catch_up().await?;
    assert_eq!(served(&app).await?, wrong);
    assert_eq!(verify(&app, &["--check-only"]).await?.0, 0);
    Ok(())
}

#[tokio::test]
async fn what_was_corrected_since_stays() -> Result<()> {
    let app = TestApp::start().await?;
    let prices = |close: &str, more: &str| {
        vec![("prices.csv", format!("symbol,date,close\nKO,2024-03-13,{close}\n{more}"))]
    };
    let run = load(&app, "wrong", &prices("1", "KO,2024-03-14,2\n")).await?;
    load(&app, "mended", &prices("60", "")).await?;
    let undone = undo(&app, &run, &[]).await?;
    let expected = json!({ "restored": 0, "retracted": 1, "corrected_since": 1, "unchanged": 0,
        "examples": ["KO|2024-03-14: retracted"] });
    assert_eq!(undone["kinds"]["price"], expected);
    load(&app, "later", &prices("61", "KO,2024-03-14,62\n")).await?;
    app.catch_up().await?;
    let price: String = app.sql_value("select price::text from read_g1.quotes where symbol = 'KO'").await?;
    assert!(price.starts_with("62"), "a mended load counts again: {price}");
    Ok(())
}

#[tokio::test]
async fn an_undo_killed_at_any_step_is_resumed_and_takes_back_once() -> Result<()> {
    let (app, whole) = (TestApp::start().await?, TestApp::start().await?);
    let mut runs = Vec::new();
    for app in [&app, &whole] {
        applied_market(app).await?;
        let feed = wrong_feed(app).await?;
        runs.push(load(app, "wrong", &feed).await?);
    }
    let expected = undo(&whole, &runs[1], &[]).await?;
    for step in ["ingest.begun", "ingest.sent", "ingest.acknowledged", "ingest.drained"] {
        assert!(killed_at(&app, Program::Ingest, &["undo", &runs[0]], step, 1).await?, "{step}");
    }
    let resumed = app.ingest(&["resume", "--json"]).await?.success()?.json()?;
    assert_eq!(resumed["kinds"], expected["kinds"], "{resumed}");
    for app in [&app, &whole] {
        app.catch_up().await?;
    }
    assert_eq!(served(&app).await?, served(&whole).await?);
    assert_eq!(verify(&app, &["--check-only"]).await?.0, 0);
    Ok(())
}

#[tokio::test]
async fn resume_leaves_out_an_interrupted_run_that_was_undone() -> Result<()> {
    let app = TestApp::start().await?;
    applied_market(&app).await?;
    let interrupted = async |name: &str, close: u32| -> Result<()> {
        let file = app.folder().join(name);
        std::fs::write(&file, format!("symbol,date,close\nKO,2024-03-14,{close}\n"))?;
        let arguments = ["load", &file.to_string_lossy(), "--source", "test"];
        assert!(killed_at(&app, Program::Ingest, &arguments, "ingest.acknowledged", 1).await?, "{name}");
        Ok(())
    };
    let listed = async || anyhow::Ok(verify(&app, &["--check-only"]).await?.1["interrupted"].clone());
    interrupted("prices-undone.csv", 61).await?;
    let undone = listed().await?[0].as_str().context("the first run is interrupted")?.to_owned();
    undo(&app, &undone, &[]).await?;
    assert_eq!(listed().await?, json!([]));
    interrupted("prices-later.csv", 62).await?;
    app.ingest(&["resume"]).await?.success()?;
    assert_eq!(listed().await?, json!([]));
    app.catch_up().await?;
    let price: String = app.sql_value("select price::text from read_g1.quotes where symbol = 'KO'").await?;
    assert!(price.starts_with("62"), "{price}");
    let refused = app.ingest(&["resume", &undone]).await?;
    assert!(refused.code != 0 && refused.stderr.contains("undid it"), "{refused:?}");
    Ok(())
}

/// Fails if a symbol is still listed after all its rows are undone. Also fails if the symbol is not listed again after
/// a new row is loaded.
#[tokio::test]
async fn a_symbol_that_only_a_load_taken_back_had_is_listed_no_more() -> Result<()> {
    let app = TestApp::start().await?;
    let file = |name: &'static str, symbol: &str, columns: &str, rest: &str| {
        vec![(name, format!("symbol,{columns}\n{symbol},{rest}\n"))]
    };
    let price = ("date,close", "2024-03-14,60");
    load(&app, "right", &file("prices.csv", "KO", price.0, price.1)).await?;
    let phantom = [
        file("prices.csv", "DIV.BX", price.0, price.1),
        file("dividends.csv", "DIV.BX", "ex_date,amount", "2024-03-14,0.485"),
        file("securities.csv", "DIV.BX", "name,type", "Div,stock"),
    ];
    let run = load(&app, "wrong", &phantom.concat()).await?;
    let listed = async || -> Result<Vec<String>> {
        app.catch_up().await?;
        let query =
            "select symbol from read_g1.stocks union all select symbol from read_g1.symbols order by 1";
        app.sql(query, &[]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
    };
    assert_eq!(listed().await?, ["DIV.BX", "DIV.BX", "KO", "KO"]);
    undo(&app, &run, &[]).await?;
    assert_eq!(listed().await?, ["KO", "KO"]);
    load(&app, "after", &file("prices.csv", "DIV.BX", price.0, "2024-03-14,61")).await?;
    assert_eq!(listed().await?, ["DIV.BX", "DIV.BX", "KO", "KO"]);
    Ok(())
}

/// `ingest` must report a retraction that matches no row. It must also report an undo without effect.
#[tokio::test]
async fn what_takes_nothing_back_is_said() -> Result<()> {
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
    // The only row of `run` has been retracted, so an undo of `run` changes nothing. If a run id is incomplete, the
    // error message suggests the full id.
    let undone = app.ingest(&["undo", &run, "--dry-run"]).await?.success()?;
    assert!(undone.stdout.contains("warning: no row changes"), "{}", undone.stdout);
    let mistyped = app.ingest(&["undo", &run[..8]]).await?;
    assert!(mistyped.code == 2 && mistyped.stderr.contains(&format!("perhaps {run}")), "{}", mistyped.stderr);
    Ok(())
}
