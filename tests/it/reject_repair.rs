//! Repair of rejected rows: a user exports the rows as a feed, corrects them, and loads the feed. This load closes the
//! rejected rows.

use std::path::Path;

use anyhow::{Context, Result};
use harness::{TestApp, fixture};
use serde_json::{Value, json};

async fn load(app: &TestApp, path: &str) -> Result<(i32, Value)> {
    let load = ["load", path, "--source", "test", "--today", "2024-03-15", "--json"];
    let output = app.ingest(&load).await?;
    Ok((output.code, output.json().with_context(|| output.stderr.clone())?))
}

async fn rejects(app: &TestApp, more: &[&str]) -> Result<Vec<Value>> {
    let output = app.ingest(&[&["rejects", "--json"], more].concat()).await?.success()?;
    output.stdout.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Exports the open rejected rows to `path` and corrects them. `mended` has pairs of a wrong text and its correction.
/// Returns the path.
async fn mend(app: &TestApp, path: &Path, mended: &[(&str, &str)]) -> Result<String> {
    let name = path.display().to_string();
    app.ingest(&["rejects", "--open", "--source", "test", "--export", &name]).await?.success()?;
    let mut text = std::fs::read_to_string(path)?;
    for (wrong, right) in mended {
        assert!(text.contains(wrong), "{wrong} in {text}");
        text = text.replacen(wrong, right, 1);
    }
    std::fs::write(path, text)?;
    Ok(name)
}

const MENDED: [(&str, &str); 2] = [("2024-02-30", "2024-02-29"), ("2024-01-02T10:00:00", "2024-01-02")];

#[tokio::test]
async fn mended_rows_close_what_was_refused() -> Result<()> {
    let app = TestApp::start().await?;
    let (_, refused) = load(&app, &fixture("feeds/rejects")).await?;
    assert_eq!(refused["open_rejects"], 3, "{refused}");
    // The third row is not repaired and stays open.
    let path = app.folder().join("mend.ndjson");
    let name = mend(&app, &path, &MENDED).await?;
    let text = std::fs::read_to_string(&path)?;
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() == 3 && lines[0].contains("reject_reason"), "{text}");
    std::fs::write(&path, lines[..2].join("\n") + "\n")?;
    let (code, mended) = load(&app, &name).await?;
    let figures = ["mended", "open_rejects"].map(|figure| mended[figure].as_u64());
    assert_eq!((code, &mended["rows"], figures), (0, &json!({ "price": 2 }), [Some(2), Some(1)]), "{mended}");
    let open = rejects(&app, &[]).await?;
    assert_eq!((open.len(), &open[0]["reason"]), (1, &json!("non_positive_close")), "{open:?}");
    assert_eq!(rejects(&app, &["--all"]).await?.len(), 3);
    // A second load adds nothing, and an export does not overwrite the edited file.
    assert_eq!(load(&app, &name).await?.1["already_loaded"], true);
    let again = app.ingest(&["rejects", "--export", &name]).await?;
    assert!(again.code == 2 && again.stderr.contains(&format!("cannot write {name}")), "{}", again.stderr);
    // After an undo of the repair, its rows are open again. After an undo of the run with the rejected rows, nothing is
    // open.
    app.ingest(&["undo", mended["run"].as_str().unwrap_or_default()]).await?.success()?;
    assert_eq!(rejects(&app, &["--open"]).await?.len(), 3);
    app.ingest(&["undo", refused["run"].as_str().unwrap_or_default()]).await?.success()?;
    assert_eq!(rejects(&app, &[]).await?.len(), 0);
    Ok(())
}

#[tokio::test]
async fn a_table_is_mended_as_a_table() -> Result<()> {
    let app = TestApp::start().await?;
    load(&app, &fixture("feeds/rejects")).await?;
    let path = app.folder().join("prices-mended.csv");
    let mended = [&MENDED[..], &[(",-1,", ",58.3,")]].concat();
    let name = mend(&app, &path, &mended).await?;
    let (code, summary) = load(&app, &name).await?;
    assert_eq!((code, &summary["mended"], &summary["open_rejects"]), (0, &json!(3), &json!(0)), "{summary}");
    assert_eq!(rejects(&app, &[]).await?.len(), 0);
    Ok(())
}

const HEADER: &str = "columns = { symbol = \"Wert\", date = \"Datum\", close = \"Schluß\" }\n";
const NO_HEADER: &str =
    "columns = { symbol = 1, date = 2, close = 3 }\nfile.header = 0\nfile.first_line = 2\n";

/// The corrected export of a rejected row is loaded with the original file's map. The load must find the columns and
/// skip no row.
#[tokio::test]
async fn rows_of_a_map_are_mended_under_the_map() -> Result<()> {
    let app = TestApp::start().await?;
    for (number, (columns, first, ending)) in [
        (HEADER, "Wert;Datum;Schlu\u{df}", "csv"),
        (NO_HEADER, "Kurse", "csv"),
        (NO_HEADER, "Kurse vom 15.", "ndjson"),
    ]
    .into_iter()
    .enumerate()
    {
        let at = |name: String| app.folder().join(name).display().to_string();
        let [map, feed, mended] = [
            at(format!("{number}.toml")),
            at(format!("kurse{number}.txt")),
            at(format!("mend{number}.{ending}")),
        ];
        let said = "kind = \"price\"\ndates.format = \"DD.MM.YYYY\"\nnumbers.decimal = \",\"\nfile.delimiter = \";\"\nfile.encoding = \"windows-1252\"\n";
        std::fs::write(&map, format!("{said}{columns}"))?;
        let text = format!("{first}\nKO;13.03.2024;58,1{number}\nKO;32.03.2024;58,2\n");
        std::fs::write(
            &feed,
            text.chars().map(|c| u8::try_from(u32::from(c))).collect::<Result<Vec<u8>, _>>()?,
        )?;
        let load = async |path: &str| -> Result<Value> {
            let arguments =
                ["load", path, "--map", &map, "--source", "test", "--today", "2024-03-15", "--json"];
            let output = app.ingest(&[&arguments[..], &["--max-reject-percent", "60"]].concat()).await?;
            output.json().with_context(|| output.stderr.clone())
        };
        let refused = load(&feed).await?;
        assert_eq!((&refused["rows_total"], &refused["open_rejects"]), (&json!(1), &json!(1)), "{refused}");
        mend(&app, Path::new(&mended), &[("32.03.2024", "12.03.2024")]).await?;
        let loaded = load(&mended).await?;
        let figures = ["rows_total", "mended", "open_rejects"].map(|figure| loaded[figure].as_u64());
        assert_eq!(figures, [Some(1), Some(1), Some(0)], "{number}: {loaded}");
    }
    Ok(())
}

/// Each file of the load has the symbol in its name. The export keeps the names, and names the command that loads it.
#[tokio::test]
async fn rows_of_files_named_by_symbols_keep_their_symbols() -> Result<()> {
    let app = TestApp::start().await?;
    let daily = app.folder().join("daily");
    std::fs::create_dir_all(&daily)?;
    for (symbol, close) in [("KO", "58,1"), ("PEP", "170,1")] {
        let text = format!("Datum;Schluss\n13.03.2024;{close}\n32.03.2024;{close}\n");
        std::fs::write(daily.join(format!("table_{symbol}.csv")), text)?;
    }
    let map = app.folder().join("broker.toml");
    let text = "kind = \"price\"\ncolumns = { date = \"Datum\", close = \"Schluss\" }\ndates.format = \"DD.MM.YYYY\"\n\
        numbers.decimal = \",\"\nsymbols.file_name = \"table_{symbol}.csv\"\n";
    std::fs::write(&map, text)?;
    let (daily, map) = (daily.display().to_string(), map.display().to_string());
    let first = ["load", &daily, "--map", &map, "--source", "test", "--max-reject-percent", "60"];
    assert_eq!(app.ingest(&first).await?.code, 1);
    for ending in ["csv", "ndjson"] {
        let path = app.folder().join(format!("mend.{ending}"));
        let name = path.display().to_string();
        let exported = app.ingest(&["rejects", "--export", &name]).await?.success()?.stdout;
        let command = format!("ingest load {name} --source test --map {map}");
        assert!(exported.contains(&command), "{exported}");
        let day = if ending == "csv" { "14.03.2024" } else { "15.03.2024" };
        std::fs::write(&path, std::fs::read_to_string(&path)?.replace("32.03.2024", day))?;
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        let loaded = app.ingest(&[&words[..], &["--json"]].concat()).await?.success()?.json()?;
        assert_eq!((&loaded["mended"], &loaded["rows_total"]), (&json!(2), &json!(2)), "{loaded}");
        app.ingest(&["undo", loaded["run"].as_str().unwrap_or_default()]).await?.success()?;
        if ending == "ndjson" {
            app.ingest(&["release", &loaded["run"].as_str().unwrap_or_default()[..8]]).await?.success()?;
        }
    }
    app.catch_up().await?;
    for (symbol, close) in [("KO", "58.1"), ("PEP", "170.1")] {
        let explained = app.projector(&["explain", symbol, "price"]).await?.success()?.stdout;
        assert!(explained.contains(&format!("price = {close}\n")), "{explained}");
        assert!(explained.contains("2024-03-15"), "{explained}");
    }
    Ok(())
}
