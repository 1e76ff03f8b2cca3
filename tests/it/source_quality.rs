//! `projector audit --quality`: the coverage, suspect rows and conflicts of each source, in a small market. The
//! expected numbers are counted by hand.

use std::fs;

use anyhow::{Context, Result};
use chrono::{Datelike, NaiveDate, Weekday};
use harness::TestApp;
use serde_json::{Value, json};

use crate::api_world::sessions;
use crate::load_effect::plain_cells;

fn security(symbol: &str, name: &str) -> Value {
    json!({ "kind": "security", "symbol": symbol, "name": name, "type": "stock", "exchange": "XNYS", "currency": "USD" })
}

fn prices(symbol: &str, days: &[NaiveDate], close: impl Fn(&NaiveDate) -> &'static str) -> Vec<Value> {
    let price = |day: &NaiveDate| json!({ "kind": "price", "symbol": symbol, "date": day, "close": close(day), "volume": 1000 });
    days.iter().map(price).collect()
}

fn dividend(symbol: &str, ex_date: &str, amount: &str, payment_date: Option<&str>) -> Value {
    let mut row = json!({ "kind": "dividend", "symbol": symbol, "ex_date": ex_date, "amount": amount, "currency": "USD" });
    payment_date.into_iter().for_each(|day| row["payment_date"] = json!(day));
    row
}

/// Returns the first weekday on or after the 15th of a month.
fn middle(year: i32, month: u32) -> Result<String> {
    let day = NaiveDate::from_ymd_opt(year, month, 15).context("a day")?;
    let mut days = day.iter_days().filter(|day| !matches!(day.weekday(), Weekday::Sat | Weekday::Sun));
    Ok(days.next().context("a weekday")?.to_string())
}

/// Returns ten years of quarterly dividends with five faults. They are a low, a missing, a repeated, an unscheduled and
/// a combined payment.
fn faulty_history() -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for year in 2014..=2023 {
        for month in [3, 6, 9, 12] {
            let amount = match (year, month) {
                (2017, 9) => continue,
                (2016, 6) => "0.05",
                (2020, 12) => "0.55",
                _ => "0.10",
            };
            let paid = (year == 2023 && month == 12).then_some("2024-01-15");
            rows.push(dividend("AAA", &middle(year, month)?, amount, paid));
        }
    }
    rows.push(dividend("AAA", &middle(2024, 3)?, "0.10", None));
    rows.push(dividend("AAA", "2018-06-20", "0.10", None));
    rows.push(dividend("AAA", "2019-07-25", "0.40", None));
    Ok(rows)
}

async fn load(app: &TestApp, source: &str, records: &[Value], more: &[&str]) -> Result<()> {
    let lines: Vec<String> = records.iter().map(ToString::to_string).collect();
    let feed = app.folder().join(format!("{source}.ndjson"));
    fs::write(&feed, lines.join("\n"))?;
    let feed = feed.to_string_lossy();
    let arguments = [&["load", &feed, "--source", source, "--today", "2024-06-30"][..], more].concat();
    app.ingest(&arguments).await?;
    Ok(())
}

#[tokio::test]
async fn the_numbers_of_a_source_are_those_counted_by_hand() -> Result<()> {
    let app = TestApp::start().await?;
    let nothing = app.projector(&["audit", "--quality"]).await?;
    assert!(nothing.code == 1 && nothing.stderr.contains("load prices first"), "{}", nothing.stderr);

    let days = sessions("2023-07-03");
    let (gap, recent) = (&days[100..103], &days[days.len() - 10..]);
    let gappy: Vec<NaiveDate> = days.iter().filter(|day| !gap.contains(day)).copied().collect();
    let first = [
        vec![security("AAA", "A Company"), security("BBB", "B Company"), security("CCC", "C Company")],
        prices("AAA", &days, |_| "50"),
        prices("BBB", &days, |_| "40"),
        prices("CCC", &gappy, |_| "30"),
        faulty_history()?,
        vec![dividend("AAA", "2024-13-13", "0.10", None)],
    ];
    load(&app, "one", &first.concat(), &["--max-reject-percent", "50"]).await?;
    let odd = recent[3];
    let second = [
        vec![security("AAA", "A Co.")],
        prices("AAA", recent, |day| if *day == odd { "50.5" } else { "50.00" }),
        vec![
            // The dividend of 2023-09 is missing. Two of these dividends differ from those of the first source: one in
            // its amount, and one in its payment date.
            dividend("AAA", &middle(2023, 6)?, "0.11", None),
            dividend("AAA", &middle(2023, 12)?, "0.10", Some("2024-01-16")),
            dividend("AAA", &middle(2024, 3)?, "0.100", None),
        ],
    ];
    load(&app, "two", &second.concat(), &[]).await?;
    app.catch_up().await?;

    let page = app.folder().join("quality.html");
    let html = page.display().to_string();
    let report =
        app.projector(&["audit", "--quality", "--json", "--html", &html]).await?.success()?.json()?;
    assert_eq!((&report["active"], &report["as_of"]), (&json!(3), &json!("2024-06-14")));
    let [one, two] = [&report["sources"][0], &report["sources"][1]];
    assert_eq!((&one["source"], &two["source"]), (&json!("one"), &json!("two")), "{report}");

    let price = |source: &Value, field: &str| source["kinds"]["price"][field].clone();
    assert_eq!(price(one, "securities"), 3);
    assert_eq!(price(one, "rows"), 3 * days.len() - 3);
    assert_eq!((price(two, "securities"), price(two, "rows")), (json!(1), json!(10)));
    assert_eq!((price(one, "last"), price(one, "sessions_behind")), (json!("2024-06-14"), json!(0)));
    assert_eq!(one["sessions"], json!({ "expected": 3 * days.len(), "present": 3 * days.len() - 3 }));
    assert_eq!(two["sessions"], json!({ "expected": 10, "present": 10 }));
    let dividends = &one["kinds"]["dividend"];
    assert_eq!((&dividends["rows"], &dividends["first"]), (&json!(42), &json!("2014-03-17")));
    assert_eq!(
        one["readings"],
        json!({ "payments": 41, "duplicate": 1, "extra": 1, "combined": 1, "dip": 1, "hole": 1 })
    );
    assert_eq!(one["rejected"], json!({ "bad_date": 1 }));

    for source in [one, two] {
        let of = |kind: &str, field: &str| source["conflicts"][kind][field].clone();
        let counted = |compared: u64, differing: u64| json!({ "compared": compared, "differing": differing });
        assert_eq!(of("price", "close"), counted(10, 1), "{source}");
        assert_eq!(of("price", "volume"), counted(10, 0));
        assert_eq!(of("dividend", "ex_date"), counted(4, 1));
        assert_eq!(of("dividend", "amount"), counted(3, 1));
        assert_eq!(of("dividend", "payment_date"), counted(1, 1));
        assert_eq!(of("dividend", "record_date"), Value::Null, "no source has one");
        assert_eq!(of("security", "name"), counted(1, 1));
        assert_eq!(of("security", "currency"), counted(1, 0));
    }

    let page = plain_cells(&fs::read_to_string(&page)?);
    let (present, expected) = (3 * days.len() - 3, 3 * days.len());
    for row in [
        format!("<td>one</td><td>{present}</td><td>{expected}</td>"),
        "<td>one</td><td>41</td><td>1</td><td>1</td><td>1</td><td>1</td><td>1</td>".to_owned(),
        "<td>two</td><td>dividend</td><td>amount</td><td>1</td><td>3</td><td>33.3333 %</td>".to_owned(),
        "<td>one</td><td>bad_date</td><td>1</td>".to_owned(),
    ] {
        assert!(page.contains(&row), "no {row} in the page");
    }
    let text = app.projector(&["audit", "--quality"]).await?.success()?.stdout;
    for line in [
        "  dividend rows: payments 41, duplicate 1, extra 1, combined 1, dip 1, hole 1",
        &format!("  sessions of 12 months: {present} of {expected}"),
        "close 1 of 10",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
    Ok(())
}

#[tokio::test]
async fn agreement_with_adjusted_closes_is_part_of_the_report() -> Result<()> {
    let app = TestApp::start().await?;
    // A dividend of 1.00 at a price of 50.00: the adjustment factor before the ex-date is 0.98.
    let days = sessions("2024-04-01");
    let mut file = String::from("Date,Open,High,Low,Close,Adj Close,Volume\n");
    for day in &days {
        let adjusted = if day.to_string().as_str() < "2024-05-15" { "49.00" } else { "50.00" };
        file.push_str(&format!("{day},50.00,50.00,50.00,50.00,{adjusted},1000\n"));
    }
    let path = app.folder().join("DDD.csv");
    fs::write(&path, file)?;
    let path = path.display().to_string();
    app.ingest(&["load", &path, "--source", "yahoo", "--symbol", "DDD", "--today", "2024-06-30"])
        .await?
        .success()?;
    load(&app, "yahoo", &[security("DDD", "D Company"), dividend("DDD", "2024-05-15", "1.00", None)], &[])
        .await?;
    app.catch_up().await?;
    let report = app.projector(&["audit", "--quality", "--json"]).await?.success()?.json()?;
    let agreement = &report["sources"][0]["adjusted_closes"];
    assert_eq!(agreement, &json!({ "source": "yahoo", "ex_dates": 1, "agreeing": 1 }), "{report}");
    let of_month = "select month || ' ' || agreeing || ' of ' || ex_dates from control.quality_months";
    assert_eq!(app.sql_value::<String>(of_month).await?, "2024-05-01 1 of 1");
    Ok(())
}
