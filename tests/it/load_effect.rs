//! Tests of the reported effect of a load on the served figures. `projector audit --since` reports the effect, and
//! `ingest load` reports it after the load.

use std::collections::BTreeMap;
use std::fs;

use anyhow::{Context, Result};
use harness::TestApp;
use market::metrics::source_preference::DEFAULT_CHOICE;
use serde_json::{Value, json};

use crate::api_world::sessions;
use crate::generations::answer;

const LAST: &str = "2024-06-14";

fn security(symbol: &str) -> Value {
    json!({ "kind": "security", "symbol": symbol, "name": symbol, "type": "stock", "exchange": "XNYS", "currency": "USD" })
}

fn price(symbol: &str, date: &str, close: &str) -> Value {
    json!({ "kind": "price", "symbol": symbol, "date": date, "close": close, "volume": 1000 })
}

/// Returns prices with the same `close` for every weekday from 2023-06-12 to `last`.
fn prices(symbol: &str, close: &str, last: &str) -> Vec<Value> {
    let days = sessions("2023-06-12").into_iter().map(|day| day.to_string());
    days.filter(|day| day.as_str() <= last).map(|day| price(symbol, &day, close)).collect()
}

fn dividend(symbol: &str, ex_date: &str, amount: &str) -> Value {
    json!({ "kind": "dividend", "symbol": symbol, "ex_date": ex_date, "amount": amount, "currency": "USD",
            "frequency": "quarterly" })
}

fn quarters(symbol: &str, amount: &str) -> Vec<Value> {
    ["2023-06-15", "2023-09-14", "2023-12-14", "2024-03-14"].map(|day| dividend(symbol, day, amount)).to_vec()
}

async fn load(app: &TestApp, source: &str, name: &str, records: &[Value], more: &[&str]) -> Result<Value> {
    let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
    let feed = app.folder().join(name);
    fs::write(&feed, lines.join("\n"))?;
    let feed = feed.to_string_lossy();
    let arguments =
        [&["load", &feed, "--source", source, "--today", "2024-06-30", "--json"][..], more].concat();
    app.ingest(&arguments).await?.success()?.json()
}

fn run_of(summary: &Value) -> Result<&str> {
    summary["run"].as_str().context("a run")
}

fn topic<'a>(effect: &'a Value, name: &str) -> Result<&'a Value> {
    let topics = effect["summary"].as_array().into_iter().flatten();
    topics.into_iter().find(|topic| topic["topic"] == name).with_context(|| format!("{name} in {effect}"))
}

#[tokio::test]
async fn a_load_ends_with_the_figures_that_a_new_source_replaces() -> Result<()> {
    let app = TestApp::builder().env("INGEST_EFFECT_WAIT", "60").start().await?;
    let old = [
        prices("KO", "50", LAST),
        quarters("KO", "0.5"),
        prices("PEP", "40", LAST),
        prices("MO", "20", LAST),
    ];
    let first = [vec![security("KO"), security("PEP"), security("MO")], old.concat()].concat();
    let summary =
        load(&app, "demo", "demo.ndjson", &first, &["--observed-at", "2024-06-20T00:00:00Z"]).await?;
    assert_eq!(summary["effect"], Value::Null, "no projector runs");
    assert_eq!(summary["effect_command"], format!("projector audit --since {}", run_of(&summary)?));
    app.catch_up().await?;

    let projector = app.start_projector().await?;
    let new = [prices("KO", "55", LAST), prices("PEP", "40", LAST)].concat();
    let options = ["--observed-at", "2024-06-21T00:00:00Z", "--dry-run"];
    let tried = load(&app, "vendor", "vendor.ndjson", &new, &options).await?;
    let summary =
        load(&app, "vendor", "vendor.ndjson", &new, &["--observed-at", "2024-06-21T00:00:00Z"]).await?;
    let effect = &summary["effect"];
    let days = sessions("2023-06-12").len();
    let keep = "projector policy set price demo --rank 1 --now";
    assert_eq!(
        effect["replaced"],
        json!([{
            "kind": "price", "source": "vendor", "replaced": "demo", "securities": 2, "rows": 2 * days,
            "first": ["KO", "PEP"], "reason": DEFAULT_CHOICE, "keep": keep,
        }]),
        "{summary}"
    );
    // A dry run reports the same effect.
    for part in ["replaced", "as_of", "compared", "changed", "quarantined", "flags", "tables", "summary"] {
        assert_eq!(tried["effect"][part], effect[part], "{part}");
    }
    // The second source has the same closes of PEP, so no figure of PEP changes.
    assert_eq!((&effect["compared"], &effect["changed"]), (&json!(2), &json!(1)));
    let moved = &topic(effect, "prices")?["first"];
    assert_eq!(
        moved,
        &json!([{ "symbol": "KO", "figure": "price", "a": 50, "b": 55, "size": 10 }]),
        "the largest move"
    );
    let yields = &topic(effect, "yields")?["first"][0];
    assert_eq!((&yields["symbol"], &yields["figure"]), (&json!("KO"), &json!("dividend_yield")));
    let served = "select price::text || ' ' || dividend_yield::text from read_g1.metrics where symbol = 'KO'";
    assert_eq!(app.sql_value::<String>(served).await?, format!("55 {}", yields["b"]));

    let text = app.projector(&["audit", "--since", run_of(&summary)?]).await?.success()?.stdout;
    for line in [
        &format!(
            "vendor replaces price figures of demo for 2 symbols ({} rows): KO, PEP; {DEFAULT_CHOICE}",
            2 * days
        ),
        &format!("        → to keep demo: {keep}"),
        "        KO         price: 50 -> 55",
    ] {
        assert!(text.lines().any(|said| said == line), "{line} in {text}");
    }
    drop(projector);

    // The suggested command makes the first source win again.
    let keep: Vec<&str> = keep.split(' ').skip(1).collect();
    app.projector(&keep).await?.success()?;
    app.catch_up().await?;
    assert_eq!(app.sql_value::<String>(served).await?, "50 4");
    Ok(())
}

#[tokio::test]
async fn quarantined_rows_statuses_and_flags_are_in_the_effect_and_on_its_page() -> Result<()> {
    let app = TestApp::start().await?;
    let late = [("2023-04-17", "0.5"), ("2023-07-17", "0.5"), ("2023-10-16", "0.5"), ("2024-01-15", "0.5")];
    let lapsed: Vec<Value> = late.map(|(day, amount)| dividend("LATE", day, amount)).to_vec();
    let all =
        [vec![security("HELD"), security("LATE")], prices("HELD", "50", LAST), prices("LATE", "50", LAST)];
    let first = [all.concat(), quarters("HELD", "0.05"), lapsed].concat();
    load(&app, "test", "first.ndjson", &first, &[]).await?;
    app.catch_up().await?;
    let more = [dividend("HELD", "2024-06-12", "5"), dividend("LATE", "2024-06-10", "0.5")];
    let summary = load(&app, "test", "more.ndjson", &more, &[]).await?;
    let too_early = app.projector(&["audit", "--since", run_of(&summary)?]).await?;
    assert!(too_early.code == 1 && too_early.stderr.contains("do not contain it"), "{}", too_early.stderr);
    app.catch_up().await?;

    let (page, csv) = (app.folder().join("effect.html"), app.folder().join("effect.csv"));
    let (html, lines) = (page.display().to_string(), csv.display().to_string());
    let arguments = ["audit", "--since", run_of(&summary)?, "--json", "--html", &html, "--csv", &lines];
    let effect = app.projector(&arguments).await?.success()?.json()?;
    let quarantined = &effect["quarantined"];
    assert_eq!((&quarantined["added"], &quarantined["released"]), (&json!(1), &json!(0)), "{effect}");
    assert_eq!(
        (&quarantined["first"][0]["symbol"], &quarantined["first"][0]["reason"]),
        (&json!("HELD"), &json!("amount_outlier"))
    );
    let status = &topic(&effect, "statuses")?["first"][0];
    assert_eq!(
        (&status["symbol"], &status["a"], &status["b"]),
        (&json!("LATE"), &json!("lapsed"), &json!("active"))
    );
    let flags = effect["flags"].as_array().context("flags")?;
    let flag = flags.iter().find(|flag| flag["flag"] == "amount_held").with_context(|| effect.to_string())?;
    assert_eq!((&flag["added"], &flag["removed"], &flag["first"]), (&json!(1), &json!(0), &json!(["HELD"])));
    assert_eq!(effect["replaced"], json!([]));

    let page = plain_cells(&fs::read_to_string(&page)?);
    let dividends =
        effect["tables"].as_array().into_iter().flatten().find(|table| table["table"] == "dividends");
    let differing = &dividends.context("dividends")?["differing"];
    for part in [
        &format!("Effect of run {}", run_of(&summary)?),
        "2 of 2 touched securities changed",
        "quarantined rows: 1 more, 0 fewer",
        "<td>HELD</td><td>dividend</td><td>2024-06-12</td><td>amount_outlier</td>",
        "<td>LATE</td><td>dividend_status</td><td>lapsed</td><td>active</td>",
        "<td>amount_held</td><td>1</td><td>0</td><td>HELD</td>",
        &format!("<h2>{differing} differing row"),
        "<svg",
    ] {
        assert!(page.contains(part), "no {part} in the page");
    }
    assert!(!page.contains("http://") && !page.contains("https://"), "the page asks the network");
    let written = fs::read_to_string(&csv)?;
    assert!(written.contains("metrics,LATE,,changed,dividend_status,lapsed,active"), "{written}");
    Ok(())
}

#[tokio::test]
async fn rows_that_the_log_has_change_no_served_figure() -> Result<()> {
    let app = TestApp::start().await?;
    let records = [vec![security("KO")], prices("KO", "50", LAST), quarters("KO", "0.5")].concat();
    load(&app, "test", "ko.ndjson", &records, &[]).await?;
    app.catch_up().await?;
    let again = load(&app, "test", "ko.ndjson", &records, &["--again", "monday"]).await?;
    app.catch_up().await?;
    let effect = answer(&app, &["audit", "--since", run_of(&again)?]).await?;
    assert_eq!((&effect["identical"], &effect["changed"]), (&json!(true), &json!(0)), "{effect}");
    let text = app.projector(&["audit", "--since", run_of(&again)?]).await?.success()?.stdout;
    assert!(text.lines().any(|line| line == "no served figure changed"), "{text}");
    Ok(())
}

/// The reported effect of a run must equal the difference between the tables before and after the run. The tables
/// before the run are rebuilt from the log.
#[tokio::test]
async fn the_effect_equals_a_comparison_with_the_replayed_log() -> Result<()> {
    let app = TestApp::start().await?;
    let before = "2024-06-13";
    let with_id = |symbol: &str, id: &str, ex_date: &str, amount: &str, revision: u32| {
        let mut row = dividend(symbol, ex_date, amount);
        row["id"] = json!(id);
        row["revision"] = json!(revision);
        row
    };
    let first = [
        vec![security("KO"), security("PEP"), security("MO")],
        prices("KO", "50", before),
        prices("PEP", "40", before),
        prices("MO", "20", before),
        quarters("PEP", "0.4"),
        quarters("MO", "0.2"),
        vec![
            with_id("KO", "d1", "2023-09-14", "0.5", 0),
            with_id("KO", "d2", "2023-12-14", "0.5", 0),
            with_id("KO", "d3", "2024-03-14", "0.5", 0),
        ],
    ];
    load(&app, "test", "first.ndjson", &first.concat(), &["--observed-at", "2024-06-20T00:00:00Z"]).await?;
    app.catch_up().await?;
    let second = [
        // The second load has rows that the log already has, a correction, a record that moves to another symbol, a
        // corrected close, a new day, a new security and a split.
        quarters("PEP", "0.4"),
        vec![dividend("PEP", "2024-06-12", "0.44")],
        vec![with_id("KO", "d1", "2023-09-14", "0.55", 1), with_id("MO", "d3", "2024-03-14", "0.5", 1)],
        vec![price("KO", "2024-01-10", "51")],
        ["KO", "PEP", "MO"].map(|symbol| price(symbol, LAST, "60")).to_vec(),
        vec![security("NEW"), price("NEW", LAST, "10")],
        vec![json!({ "kind": "split", "symbol": "MO", "ex_date": "2024-02-01", "from": "1", "to": "2" })],
    ];
    let summary =
        load(&app, "test", "second.ndjson", &second.concat(), &["--observed-at", "2024-06-21T00:00:00Z"])
            .await?;
    app.catch_up().await?;
    let effect = answer(&app, &["audit", "--since", run_of(&summary)?]).await?;
    assert_eq!(effect["as_of"], json!([before, LAST]));

    let end = effect["first_message"].as_i64().context("a position")? - 1;
    answer(&app, &["rebuild", "--from", "log", "--until-seq", &end.to_string()]).await?;
    let diff = answer(&app, &["diff", "2", "1"]).await?;
    assert_eq!(effect["summary"], diff["summary"]);
    // Number of changed values by column. The columns that every load changes are left out.
    let columns = |found: &Value, name: &str| -> Result<BTreeMap<String, Value>> {
        let mut tables = found["tables"].as_array().into_iter().flatten();
        let table = tables.find(|table| table["table"] == name).with_context(|| name.to_owned())?;
        let columns = table["columns"].as_object().context("columns")?.clone().into_iter();
        Ok(columns.filter(|(column, _)| !["as_of", "updated_at"].contains(&column.as_str())).collect())
    };
    for table in ["metrics", "stocks", "quotes", "dividends", "splits", "prices"] {
        assert_eq!(columns(&effect, table)?, columns(&diff, table)?, "{table}");
    }
    assert_eq!(columns(&effect, "prices")?, BTreeMap::from([("close".to_owned(), json!(1))]));
    Ok(())
}

/// Replaces `<td data-column="…">` by `<td>` in a page.
pub(crate) fn plain_cells(page: &str) -> String {
    let mut parts = page.split("<td data-column=\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + "<td>" + part.split_once("\">").map_or(part, |(_, rest)| rest))
}
