//! Tests of `ingest undo` and `ingest release`. After an undo, all tables equal those of a log that never had the run.

mod unknown;
mod views;

use anyhow::{Context, Result, ensure};
use harness::{Program, TestApp};
use serde_json::{Value, json};

use crate::log_copies::{market, verify};
use crate::process_kills::killed_at;

/// Tables with facts, and all tables that are derived from them. The last digest of a security is left out: it only saves
/// work after a restart, and depends on the order of the derivations.
const TABLES: [&str; 16] = [
    "facts.records",
    "facts.bars",
    "read_g1.stocks",
    "read_g1.symbols",
    "read_g1.quotes",
    "read_g1.fundamentals",
    "read_g1.metrics",
    "read_g1.dividends",
    "read_g1.splits",
    "read_g1.quarantine",
    "read_g1.prices",
    "read_g1.factors",
    "read_g1.etfs",
    "read_g1.holdings",
    "read_g1.sectors",
    "(select symbol, tables[:14] from read_g1.digests)",
];

/// Writes feed files (pairs of name and text) to a new folder and loads the folder. Returns the run id.
pub(crate) async fn load(app: &TestApp, name: &str, files: &[(&str, String)]) -> Result<String> {
    load_from(app, "test", name, files).await
}

async fn load_from(app: &TestApp, source: &str, name: &str, files: &[(&str, String)]) -> Result<String> {
    let folder = app.folder().join(name);
    std::fs::create_dir(&folder)?;
    for (file, text) in files {
        std::fs::write(folder.join(file), text)?;
    }
    Ok(load_folder(app, source, name).await?["run"].as_str().context("a summary names its run")?.to_owned())
}

/// Loads a folder. The observation time depends only on the number of loads with the same first letter of the name.
async fn load_folder(app: &TestApp, source: &str, name: &str) -> Result<Value> {
    let folder = app.folder().join(name).display().to_string();
    let second = name.bytes().fold(0u32, |sum, byte| sum * 7 % 86_400 + u32::from(byte)) % 86_400;
    let observed = format!("2024-04-01T{:02}:{:02}:{:02}Z", second / 3600, second / 60 % 60, second % 60);
    let arguments = ["load", &folder, "--source", source, "--observed-at", &observed, "--json"];
    let loaded = app.ingest(&arguments).await?;
    ensure!(loaded.code < 2, "{}", loaded.stderr);
    loaded.json()
}

pub(crate) async fn undo(app: &TestApp, run: &str, more: &[&str]) -> Result<Value> {
    app.ingest(&[&["undo", run, "--json"], more].concat()).await?.success()?.json()
}

/// Applies the log, and returns all rows of all tables with all columns.
pub(crate) async fn tables(app: &TestApp) -> Result<Vec<String>> {
    app.catch_up().await?;
    let mut rows = Vec::new();
    let years = "(select distinct source, year from facts.dividend_feeds where ended is null)";
    for table in TABLES.into_iter().chain([years]) {
        for row in app.sql(&format!("select to_jsonb(t)::text from {table} t order by 1"), &[]).await? {
            rows.push(format!("{table} {}", row.try_get::<_, &str>(0)?));
        }
    }
    Ok(rows)
}

/// Fails with the first differences of two results of [`tables`].
pub(crate) fn equal_tables(found: &[String], expected: &[String], why: &str) -> Result<()> {
    let of = |a: &[String], b: &[String]| {
        let b: std::collections::BTreeSet<&String> = b.iter().collect();
        a.iter().filter(|row| !b.contains(row)).take(3).cloned().collect::<Vec<_>>()
    };
    let (extra, missing) = (of(found, expected), of(expected, found));
    ensure!(found == expected, "{why}\nonly here: {extra:#?}\nonly expected: {missing:#?}");
    Ok(())
}

pub(crate) async fn applied_market(app: &TestApp) -> Result<()> {
    let feed = market(app, "12", "3")?;
    let observed = ["--observed-at", "2024-03-20T00:00:00Z"];
    app.ingest(&[&["load", &feed, "--source", "test"][..], &observed].concat()).await?.success()?;
    app.catch_up().await
}

/// Returns names and texts of feed files with wrong rows. Some rows replace or retract a served row. Other rows are
/// new, such as prices of a Sunday, a rename and a security.
pub(crate) async fn wrong_feed(app: &TestApp) -> Result<Vec<(&'static str, String)>> {
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
        // Two days that already have prices, a Sunday without prices, and a year without prices.
        ["2024-03-13", "2024-03-14", "2023-06-04", "1999-06-04"]
            .map(|date| format!("{symbol},{date},1.5,9\n"))
            .concat()
    };
    let holdings =
        format!("etf_symbol,as_of,name,symbol,weight\n{},2024-03-01,Wrong,{},50\n", symbols[0], symbols[1]);
    Ok(vec![
        ("dividends.csv", format!("symbol,ex_date,amount,type\n{dividends}NEW,2024-03-01,0.25,regular\n")),
        (
            "dividends-gone.csv",
            format!("symbol,ex_date,amount,type,action\n{}", retractions.replace('\n', ",retract\n")),
        ),
        ("prices.csv", format!("symbol,date,close,volume\n{}NEW,2024-03-14,9,9\n", each(&prices))),
        ("splits.csv", format!("symbol,ex_date,from,to\n{}", each(&|s| format!("{s},2023-06-01,1,7\n")))),
        ("securities.csv", format!("symbol,name,type\n{}", each(&|s| format!("{s},Wrong {s},trust\n")))),
        ("fundamentals.csv", format!("symbol,as_of,eps_ttm\n{}", each(&|s| format!("{s},2024-03-01,99\n")))),
        ("holdings.csv", holdings),
    ])
}

#[tokio::test]
async fn an_undone_load_leaves_no_trace() -> Result<()> {
    let app = TestApp::start().await?;
    applied_market(&app).await?;
    let before = tables(&app).await?;
    let run = load(&app, "wrong", &wrong_feed(&app).await?).await?;
    let wrong = tables(&app).await?;
    assert_ne!(wrong, before);

    let tried = undo(&app, &run, &["--dry-run"]).await?;
    assert!(tried["frames"]["dividend"].as_u64() > Some(0) && tried["undo"].is_null(), "{tried}");
    equal_tables(&tables(&app).await?, &wrong, "a dry run publishes nothing")?;

    let undone = undo(&app, &run, &["--reason", "wrong file", "--operator", "ann"]).await?;
    equal_tables(&tables(&app).await?, &before, "an undone load leaves no trace")?;

    // The list of runs names the state, the person and the reason. A second undo is refused.
    let listed = app.ingest(&["runs", "--json"]).await?.success()?.stdout;
    let listed: Value = serde_json::from_str(listed.lines().last().unwrap_or_default())?;
    let change = &listed["change"];
    assert_eq!(
        (&listed["visibility"], &change["operator"], &change["reason"]),
        (&json!("excluded"), &json!("ann"), &json!("wrong file"))
    );
    let again = app.ingest(&["undo", &run]).await?;
    assert!(again.code == 2 && again.stderr.contains("it is excluded since"), "{}", again.stderr);

    // An undo of the undo, a release and a second load of the same files make the rows visible again.
    undo(&app, undone["undo"].as_str().context("an undo has an id")?, &[]).await?;
    equal_tables(&tables(&app).await?, &wrong, "an undo of an undo")?;
    undo(&app, &run, &[]).await?;
    equal_tables(&tables(&app).await?, &before, "the second undo")?;
    app.ingest(&["release", &run]).await?.success()?;
    equal_tables(&tables(&app).await?, &wrong, "a release")?;
    let visible = app.ingest(&["release", &run]).await?;
    assert!(visible.code == 2 && visible.stderr.contains("it is visible"), "{}", visible.stderr);
    undo(&app, &run, &[]).await?;
    equal_tables(&tables(&app).await?, &before, "the third undo")?;
    let reloaded = load_folder(&app, "test", "wrong").await?;
    assert_eq!((&reloaded["already_loaded"], &reloaded["visible_again"]), (&json!(true), &json!(true)));
    equal_tables(&tables(&app).await?, &wrong, "a second load")?;
    assert_eq!(verify(&app, &["--check-only"]).await?.0, 0);
    Ok(())
}

/// Three loads of the same rows, of each kind. After the undo of the second and the third in any order, the first
/// counts.
#[tokio::test]
async fn the_version_before_all_undone_runs_counts() -> Result<()> {
    let files = |value: u32| {
        vec![
            ("prices.csv", format!("symbol,date,close\nKO,2024-03-14,6{value}\nSPY,2024-03-14,51{value}\n")),
            ("dividends.csv", format!("symbol,ex_date,amount\nKO,2024-03-14,0.4{value}\n")),
            ("splits.csv", format!("symbol,ex_date,from,to\nKO,2023-03-14,1,{}\n", value + 2)),
            ("securities.csv", format!("symbol,name,type\nKO,Name {value},stock\nSPY,Fund {value},etf\n")),
            ("fundamentals.csv", format!("symbol,as_of,eps_ttm\nKO,2024-03-01,2.{value}\n")),
            ("etfs.csv", format!("symbol,as_of,expense_ratio\nSPY,2024-03-01,0.0{value}\n")),
            (
                "holdings.csv",
                format!("etf_symbol,as_of,name,symbol,weight\nSPY,2024-03-01,Coca,KO,{value}\n"),
            ),
        ]
    };
    let app = TestApp::start().await?;
    load(&app, "a", &files(1)).await?;
    let first = tables(&app).await?;
    let second = load(&app, "b", &files(2)).await?;
    let with_second = tables(&app).await?;
    let third = load(&app, "c", &files(3)).await?;
    let all = tables(&app).await?;
    undo(&app, &second, &[]).await?;
    let without_second = tables(&app).await?;
    undo(&app, &third, &[]).await?;
    equal_tables(&tables(&app).await?, &first, "second, then third")?;
    app.ingest(&["release", &second]).await?.success()?;
    equal_tables(&tables(&app).await?, &with_second, "the third is undone")?;
    app.ingest(&["release", &third]).await?.success()?;
    equal_tables(&tables(&app).await?, &all, "nothing is undone")?;
    undo(&app, &third, &[]).await?;
    undo(&app, &second, &[]).await?;
    equal_tables(&tables(&app).await?, &first, "third, then second")?;
    app.ingest(&["release", &third]).await?.success()?;
    equal_tables(&tables(&app).await?, &without_second, "the second is undone")?;
    Ok(())
}

/// A source whose only run is undone has no effect on the figures of another source.
#[tokio::test]
async fn a_source_without_visible_rows_counts_for_nothing() -> Result<()> {
    let app = TestApp::start().await?;
    let dividends: String = (2014..2024).map(|year| format!("KO,{year}-03-14,0.{}\n", year - 1990)).collect();
    let files = [
        ("dividends.csv", format!("symbol,ex_date,amount\n{dividends}")),
        ("prices.csv", "symbol,date,close\nKO,2024-03-14,60\n".to_owned()),
    ];
    load(&app, "first", &files).await?;
    let before = tables(&app).await?;
    let rows =
        [("dividends.csv", "symbol,ex_date,amount\nKO,2023-03-16,0.9\nKO,2022-03-10,0.8\n".to_owned())];
    let run = load_from(&app, "other", "second", &rows).await?;
    assert_ne!(tables(&app).await?, before);
    undo(&app, &run, &[]).await?;
    equal_tables(&tables(&app).await?, &before, "the only run of a source is undone")?;
    Ok(())
}

/// Rows of a file that two runs loaded stay while one of the runs is visible.
#[tokio::test]
async fn rows_of_two_runs_stay_while_one_is_visible() -> Result<()> {
    let app = TestApp::start().await?;
    let file = |name: &'static str, close: u32| (name, format!("symbol,date,close\nKO,2024-03-14,{close}\n"));
    let shared = file("prices-a.csv", 60);
    let first = load(&app, "one", std::slice::from_ref(&shared)).await?;
    let alone = tables(&app).await?;
    let second =
        load(&app, "two", &[shared, ("splits.csv", "symbol,ex_date,from,to\nKO,2024-01-02,1,2\n".into())])
            .await?;
    let both = tables(&app).await?;
    let undone = undo(&app, &first, &[]).await?;
    assert_eq!(undone["shared_with"], json!([second]));
    equal_tables(&tables(&app).await?, &both, "the second run has the rows too")?;
    undo(&app, &second, &[]).await?;
    let none = tables(&app).await?;
    assert!(none.iter().all(|row| !row.starts_with("facts.")), "{none:?}");
    app.ingest(&["release", &first]).await?.success()?;
    equal_tables(&tables(&app).await?, &alone, "the first run alone")?;
    Ok(())
}

#[tokio::test]
async fn what_was_corrected_since_stays() -> Result<()> {
    let app = TestApp::start().await?;
    let prices = |close: &str, more: &str| {
        vec![("prices.csv", format!("symbol,date,close\nKO,2024-03-13,{close}\n{more}"))]
    };
    let run = load(&app, "a", &prices("1", "KO,2024-03-14,2\n")).await?;
    load(&app, "b", &prices("60", "")).await?;
    undo(&app, &run, &[]).await?;
    app.catch_up().await?;
    let price = "select price::text || ' ' || price_date from read_g1.quotes where symbol = 'KO'";
    let served: String = app.sql_value(price).await?;
    assert!(served.starts_with("60") && served.ends_with("2024-03-13"), "{served}");
    load(&app, "c", &prices("61", "KO,2024-03-14,62\n")).await?;
    app.catch_up().await?;
    let served: String = app.sql_value(price).await?;
    assert!(served.starts_with("62"), "{served}");
    Ok(())
}

/// An undo is one message: a kill leaves it published or not.
#[tokio::test]
async fn an_undo_that_is_killed_took_place_or_not() -> Result<()> {
    let app = TestApp::start().await?;
    applied_market(&app).await?;
    let before = tables(&app).await?;
    let run = load(&app, "wrong", &wrong_feed(&app).await?).await?;
    let wrong = tables(&app).await?;
    assert!(killed_at(&app, Program::Ingest, &["undo", &run], "ingest.sent", 1).await?);
    let found = tables(&app).await?;
    assert!(found == wrong || found == before);
    assert!(app.ingest(&["undo", &run]).await?.code == if found == before { 2 } else { 0 });
    equal_tables(&tables(&app).await?, &before, "the undo was repeated")?;
    assert_eq!(verify(&app, &["--check-only"]).await?.0, 0);
    Ok(())
}

/// The projector is killed while it applies an undo, at each step.
#[tokio::test]
async fn a_projector_killed_during_an_undo_finishes_it() -> Result<()> {
    let app = TestApp::start().await?;
    applied_market(&app).await?;
    let before = tables(&app).await?;
    let run = load(&app, "wrong", &wrong_feed(&app).await?).await?;
    let wrong = tables(&app).await?;
    for step in ["projector.applied", "projector.derived", "projector.committed"] {
        undo(&app, &run, &[]).await?;
        assert!(killed_at(&app, Program::Projector, &["run", "--until-caught-up"], step, 1).await?, "{step}");
        equal_tables(&tables(&app).await?, &before, step)?;
        app.ingest(&["release", &run]).await?.success()?;
        equal_tables(&tables(&app).await?, &wrong, step)?;
    }
    Ok(())
}

/// A change of state that comes before the rows of its run, twice, or for an unknown run does no harm.
#[tokio::test]
async fn a_change_may_come_early_twice_or_for_an_unknown_run() -> Result<()> {
    let app = TestApp::start().await?;
    let file = app.folder().join("prices.csv");
    std::fs::write(&file, "symbol,date,close\nKO,2024-03-14,61\n")?;
    let arguments = ["load", &file.to_string_lossy(), "--source", "test"];
    assert!(killed_at(&app, Program::Ingest, &arguments, "ingest.begun", 1).await?);
    let run =
        verify(&app, &["--check-only"]).await?.1["interrupted"][0].as_str().context("a run")?.to_owned();
    undo(&app, &run, &[]).await?;
    let unknown = app.ingest(&["undo", "nothing"]).await?;
    assert!(unknown.code == 2 && unknown.stderr.contains("cannot find run"), "{}", unknown.stderr);
    app.catch_up().await?;
    // The rows arrive after the change.
    let resumed = app.ingest(&["resume", &run]).await?;
    assert!(resumed.code == 2 && resumed.stderr.contains("ingest release"), "{}", resumed.stderr);
    let reloaded = app.ingest(&[&arguments[..], &["--json"]].concat()).await?.success()?.json()?;
    assert_eq!(reloaded["visible_again"], json!(true));
    undo(&app, &run, &[]).await?;
    let hidden = tables(&app).await?;
    assert!(hidden.iter().all(|row| !row.starts_with("facts.")), "{hidden:?}");
    // Twice, and in one batch with a change to the contrary.
    app.ingest(&["release", &run]).await?.success()?;
    undo(&app, &run, &[]).await?;
    equal_tables(&tables(&app).await?, &hidden, "the last change counts")?;
    app.ingest(&["release", &run]).await?.success()?;
    app.catch_up().await?;
    let price: String = app.sql_value("select price::text from read_g1.quotes where symbol = 'KO'").await?;
    assert!(price.starts_with("61"), "{price}");
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
    Ok(())
}
