//! `ingest load --map`. A map describes the columns of files whose layout `ingest` does not know. A folder of such
//! files is loaded exactly once, even after a kill.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use harness::{Program, TestApp, fixture};
use serde_json::{Value, json};

use crate::process_kills::killed_at;
use crate::reference_projection::ReferenceProjection;

/// Returns the exit code and the summary of the load.
async fn load(app: &TestApp, map: &str, more: &[&str]) -> Result<(i32, Value)> {
    let folder = fixture("feeds/mapped/daily");
    let arguments = ["load", &folder, "--map", map, "--source", "broker", "--today", "2024-03-15", "--json"];
    let output = app.ingest(&[&arguments[..], more].concat()).await?;
    Ok((output.code, output.json().with_context(|| output.stderr.clone())?))
}

#[tokio::test]
async fn a_folder_of_headerless_files_reaches_the_log_exactly() -> Result<()> {
    let app = TestApp::start().await?;
    let map = fixture("feeds/mapped/broker.toml");
    let (code, tried) = load(&app, &map, &["--dry-run"]).await?;
    ensure!((code, &tried["symbols"]["first"]) == (0, &json!(["KO", "META"])), "{tried}");
    let (code, loaded) = load(&app, &map, &[]).await?;
    ensure!((code, &loaded["rows"]) == (0, &json!({ "price": 3 })), "{loaded}");
    ensure!(loaded["files"][0]["format"] == "map", "{loaded}");
    app.catch_up().await?;
    let closes = app.ingest(&["show", "2"]).await?.success()?.json()?;
    // Small files share a message, but each has its own batch.
    ensure!(closes[0]["rows"][0]["close"] == "60.01005", "{closes}");
    ensure!(closes[0]["file"] == "table_ko.csv" && closes[1]["file"] == "table_meta.csv", "{closes}");
    let (_, again) = load(&app, &map, &[]).await?;
    ensure!(again["already_loaded"] == true, "{again}");
    // A map that differs only in a comment counts as the same map. A map with another scale gives other rows, so the
    // files are loaded again.
    let text = std::fs::read_to_string(&map)?;
    let (commented, scaled) = (app.folder().join("commented.toml"), app.folder().join("scaled.toml"));
    std::fs::write(&commented, format!("# mine\n{text}"))?;
    std::fs::write(&scaled, text.replace("0.0001", "0.001"))?;
    let (_, same) = load(&app, &commented.display().to_string(), &[]).await?;
    ensure!(same["already_loaded"] == true, "{same}");
    let (_, other) = load(&app, &scaled.display().to_string(), &[]).await?;
    ensure!(other["already_loaded"] == false && other["rows_total"] == 3, "{other}");
    Ok(())
}

#[tokio::test]
async fn a_killed_load_is_resumed_under_its_map() -> Result<()> {
    let app = TestApp::start().await?;
    let (folder, map) = (fixture("feeds/mapped/daily"), fixture("feeds/mapped/broker.toml"));
    let arguments = ["load", &folder, "--map", &map, "--source", "broker", "--today", "2024-03-15"];
    for step in ["ingest.begun", "ingest.sent", "ingest.drained"] {
        ensure!(killed_at(&app, Program::Ingest, &arguments, step, 1).await?, "{step}");
    }
    let resumed = app.ingest(&["resume", "--json"]).await?.success()?.json()?;
    ensure!(resumed["rows_total"] == 3, "{resumed}");
    let (_, again) = load(&app, &map, &[]).await?;
    ensure!(again["already_loaded"] == true, "{again}");
    Ok(())
}

#[tokio::test]
async fn a_mistake_in_a_map_is_told_with_its_line() -> Result<()> {
    let app = TestApp::start().await?;
    let map = app.folder().join("wrong.toml");
    std::fs::write(&map, "kind = \"price\"\n[columns]\ndate = 1\ncolse = 2\n")?;
    let map = map.display().to_string();
    let output = app.ingest(&["load", "x.csv", "--map", &map, "--source", "broker"]).await?;
    ensure!(output.code == 2, "{}", output.stderr);
    ensure!(output.stderr.contains("line 4: columns.colse is not a column of a price"), "{}", output.stderr);
    let proposed = app.ingest(&["map", &fixture("feeds/mapped/daily/table_ko.csv")]).await?.success()?;
    for part in ["header = 0", "format = \"DD.MM.YYYY\"", "decimal = \",\"", "thousands = \".\""] {
        ensure!(proposed.stdout.contains(part), "{part} in {}", proposed.stdout);
    }
    Ok(())
}

#[tokio::test]
async fn small_files_share_messages_and_are_known_one_by_one() -> Result<()> {
    let app = TestApp::start().await?;
    let folder = app.folder().join("small");
    std::fs::create_dir_all(&folder)?;
    for number in 0..300 {
        let text = format!("date,close\n2024-03-13,{number}.5\n2024-03-14,{number}.25\n");
        std::fs::write(folder.join(format!("S{number:03}.csv")), text)?;
    }
    let map = app.folder().join("map.toml");
    std::fs::write(&map, "kind = \"price\"\n[columns]\ndate = \"date\"\nclose = \"close\"\n")?;
    let (folder, map) = (folder.display().to_string(), map.display().to_string());
    let load = async |path: &str| -> Result<Value> {
        let arguments = ["load", path, "--map", &map, "--source", "small", "--today", "2024-03-15", "--json"];
        let output = app.ingest(&arguments).await?;
        output.json().with_context(|| output.stderr.clone())
    };
    // One file is loaded alone. Then loads of all files are killed, and a last load completes.
    let alone = load(&format!("{folder}/S007.csv")).await?;
    ensure!(alone["frames"] == 1, "{alone}");
    let all = ["load", &folder, "--map", &map, "--source", "small", "--today", "2024-03-15"];
    for step in ["ingest.sent", "ingest.sent", "ingest.acknowledged", "ingest.drained"] {
        ensure!(killed_at(&app, Program::Ingest, &all, step, 1).await?, "{step}");
    }
    let whole = load(&folder).await?;
    ensure!(whole["rows_total"] == 600, "{whole}");
    let figure = |name: &str| whole[name].as_u64().unwrap_or_default();
    ensure!(figure("frames") + figure("frames_in_log") == 300 && figure("frames_in_log") > 1, "{whole}");
    let again = load(&folder).await?;
    ensure!(again["already_loaded"] == true, "{again}");
    // Files in the log are recognized one by one, although they share a message.
    std::fs::write(Path::new(&folder).join("A.csv"), "date,close\n2024-03-14,1.5\n")?;
    let more = load(&folder).await?;
    ensure!((&more["frames"], &more["frames_in_log"]) == (&json!(1), &json!(300)), "{more}");
    let runs = app.ingest(&["runs", "--json"]).await?.success()?;
    let messages = runs.stdout.lines().filter_map(|run| serde_json::from_str::<Value>(run).ok());
    let last = messages.filter_map(|run| run["sequence"].as_u64()).max().unwrap_or_default();
    ensure!(last < 20, "{last} messages for 301 files");
    let verified = app.ingest(&["verify", "--check-only"]).await?;
    ensure!(verified.code == 0, "{}", verified.stdout);
    // Every row still says which file it came from.
    app.catch_up().await?;
    let query = "select count(distinct file) from facts.frames where kind = 'price'";
    let files: i64 = app.sql_value(query).await?;
    ensure!(files == 301, "{files} files");
    ReferenceProjection::check(&app, 1).await?;
    Ok(())
}

#[tokio::test]
async fn conflicting_closes_are_named_with_the_column_that_separates_them() -> Result<()> {
    let app = TestApp::start().await?;
    let bhavcopy = app.folder().join("bhav.csv");
    let text = "SYMBOL,SERIES,OPEN,HIGH,LOW,CLOSE,TIMESTAMP\nABX,EQ,10.5,10.7,10.3,10.6,01-JAN-2019\n\
        ABX,BE,10.4,10.4,10.2,10.2,01-JAN-2019\nCDX,EQ,7,7,7,7,01-JAN-2019\nCDX,BE,7,7.1,7,7.01,01-JAN-2019\n";
    std::fs::write(&bhavcopy, text)?;
    let bhavcopy = bhavcopy.display().to_string();
    let proposed = app.ingest(&["map", &bhavcopy]).await?.success()?.stdout;
    ensure!(proposed.contains("# only = { \"SERIES\" = \"EQ\" }"), "{proposed}");
    let map = app.folder().join("bhav.toml");
    let load = async |map_text: &str, more: &str| -> Result<(String, Value)> {
        std::fs::write(&map, map_text)?;
        let map = map.display().to_string();
        let arguments = ["load", &bhavcopy, "--map", &map, "--source", "nse", "--today", "2019-01-02", more];
        let shown = app.ingest(&arguments).await?.success()?.stdout;
        let summary = app.ingest(&[&arguments[..], &["--json"]].concat()).await?.success()?.json()?;
        Ok((shown, summary))
    };
    let (shown, summary) = load(&proposed, "--dry-run").await?;
    ensure!(shown.contains("ABX 2019-01-01: 10.6 in line 2, 10.2 in line 3"), "{shown}");
    ensure!(summary["conflicting_prices"]["column"] == json!(["SERIES", "EQ"]), "{summary}");
    let choice = "only = { \"SERIES\" = \"EQ\" }";
    let selected = proposed.replace(&format!("# {choice}"), choice);
    let (shown, summary) = load(&selected, "--dry-run").await?;
    ensure!(shown.contains("skipped by the map: 2 rows (SERIES is not EQ)"), "{shown}");
    ensure!(summary["rows_total"] == 2 && summary.get("conflicting_prices").is_none(), "{summary}");
    ensure!(summary["skipped_rows"] == json!({ "SERIES is not EQ": 2 }), "{summary}");
    Ok(())
}

#[tokio::test]
async fn the_summary_counts_skipped_and_unknown_rows() -> Result<()> {
    let app = TestApp::start().await?;
    let write = |name: &str, text: &str| -> Result<String> {
        let path = app.folder().join(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    };
    let load = async |file: &str, map: &str| -> Result<Value> {
        let arguments =
            ["load", file, "--map", map, "--source", "desk", "--today", "2024-03-15", "--dry-run"];
        let tolerant = ["--max-reject-percent", "60", "--json"];
        let output = app.ingest(&[&arguments[..], &tolerant].concat()).await?;
        output.json().with_context(|| output.stderr.clone())
    };
    let paid = write(
        "paid.csv",
        "Ticker,Ex-Date,Dividend\nKO,2024-03-13,0.485\nPEP,2024-03-13,n/a\nPG,2024-03-13,0\nMMM,2024-03-13,\n",
    )?;
    let proposed = app.ingest(&["map", &paid]).await?.success()?.stdout;
    let summary = load(&paid, &write("paid.toml", &proposed)?).await?;
    ensure!(summary["rows_total"] == 1 && summary["rejects"] == json!({ "missing_field": 1 }), "{summary}");
    ensure!(summary["skipped_rows"] == json!({ "without amount": 2 }), "{summary}");
    ensure!(summary["examples"][0]["message"].as_str().unwrap_or_default().contains("\"n/a\""), "{summary}");
    let wide = write("closes.csv", "Date,KO,PEP\n2024-03-13,58.1,\n2024-03-14,58.2,170\n")?;
    let map =
        "kind = \"price\"\n[columns]\ndate = \"Date\"\n[wide]\nname = \"{symbol}\"\nvalue = \"close\"\n";
    let summary = load(&wide, &write("wide.toml", map)?).await?;
    ensure!(summary["rows_total"] == 3, "{summary}");
    ensure!(summary["skipped_rows"] == json!({ "all cells are empty": 1 }), "{summary}");
    Ok(())
}

#[tokio::test]
async fn a_proposed_map_scales_columns_by_their_headers() -> Result<()> {
    let app = TestApp::start().await?;
    let feed = app.folder().join("bars.csv");
    std::fs::write(&feed, "Date,Ticker,Close,Vol (k)\n2024-03-13,KO,58.1,12.345\n2024-03-14,KO,58.2,7\n")?;
    let feed = feed.display().to_string();
    let proposed = app.ingest(&["map", &feed]).await?.success()?.stdout;
    ensure!(proposed.contains("volume = \"1000\"") && proposed.contains("\"volume\":12345"), "{proposed}");
    let map = app.folder().join("bars.toml");
    std::fs::write(&map, proposed)?;
    let map = map.display().to_string();
    app.ingest(&["load", &feed, "--map", &map, "--source", "desk"]).await?.success()?;
    let stored = app.ingest(&["show", "2"]).await?.success()?.json()?;
    let volumes: Vec<&Value> =
        stored["rows"].as_array().into_iter().flatten().map(|row| &row["volume"]).collect();
    ensure!(volumes == [&json!(12345), &json!(7000)], "{stored}");
    Ok(())
}

#[tokio::test]
async fn the_columns_of_a_kind_are_listed() -> Result<()> {
    let app = TestApp::start().await?;
    let kinds = app.ingest(&["columns"]).await?.success()?.stdout;
    ensure!(kinds.contains("dividends.csv") && kinds.ends_with("all columns of a kind\n"), "{kinds}");
    let listed = app.ingest(&["columns", "dividends", "--json"]).await?.success()?.stdout;
    let columns: Vec<Value> = listed.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let find = |name: &str| columns.iter().find(|column| column["column"] == name);
    let amount = find("amount").context("an amount")?;
    ensure!((&amount["required"], &amount["type"]) == (&json!("yes"), &json!("number")), "{amount}");
    ensure!(amount["names"].as_array().is_some_and(|names| names.contains(&json!("dps"))), "{amount}");
    ensure!(find("type").context("a type")?["words"][0] == "regular", "{listed}");
    // The examples are a row that loads.
    let shown: Vec<&Value> = columns.iter().filter(|column| column["example"] != "").collect();
    let line = |member: &str| {
        let cells = shown.iter().filter(|column| {
            !["id", "revision", "action", "security_ref", "type_text", "basis_as_of"]
                .contains(&column["column"].as_str().unwrap_or_default())
        });
        cells
            .map(|column| column[member].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
            .join(",")
    };
    let feed = app.folder().join("dividends.csv");
    std::fs::write(&feed, format!("{}\n{}\n", line("column"), line("example")))?;
    app.ingest(&["load", &feed.display().to_string(), "--source", "desk"]).await?.success()?;
    let unknown = app.ingest(&["columns", "bond"]).await?;
    ensure!(unknown.code == 2 && unknown.stderr.contains("one of: security, price"), "{}", unknown.stderr);
    Ok(())
}
