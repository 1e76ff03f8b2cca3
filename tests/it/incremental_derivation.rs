//! Tests of incremental derivation. Unchanged rows are not written again, and the tables equal those of a full rebuild.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use chrono::NaiveDate;
use harness::{Program, TestApp, eventually, generate_market};
use market::metrics::calendar::is_session;
use rust_decimal::Decimal;

use crate::generations::answer;

const PATIENCE: Duration = Duration::from_secs(120);

async fn load(app: &TestApp, source: &str, name: &str, text: &str) -> Result<()> {
    publish(app, source, name, text).await?;
    app.catch_up().await
}

async fn publish(app: &TestApp, source: &str, name: &str, text: &str) -> Result<()> {
    app.feed(name, text).source(source).today("2024-07-05").load().await
}

/// For every security, loads a bar on `date` with the security's last price.
async fn day(app: &TestApp, date: &str) -> Result<()> {
    let rows = app.sql("select symbol, price::text from read_g1.quotes where price is not null", &[]).await?;
    let mut text = "symbol,date,open,high,low,close,volume\n".to_owned();
    for row in &rows {
        let (symbol, price): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        text += &format!("{symbol},{date},{price},{price},{price},{price},1000\n");
    }
    load(app, "test", &format!("prices-{date}.csv"), &text).await
}

/// Returns the physical position (`ctid`) of each row in `read_g1.prices` for a year before 2023. The key is the symbol
/// and the year. A row that is written again gets another position.
async fn old_years(app: &TestApp) -> Result<BTreeMap<(String, i32), String>> {
    let rows = app.sql("select symbol, year, ctid::text from read_g1.prices where year < 2023", &[]).await?;
    rows.iter().map(|row| Ok(((row.try_get(0)?, row.try_get(1)?), row.try_get(2)?))).collect()
}

/// Returns the symbols and years whose rows were written again.
fn moved<'a>(
    before: &'a BTreeMap<(String, i32), String>,
    after: &BTreeMap<(String, i32), String>,
) -> Vec<(&'a str, i32)> {
    let differing = before.iter().filter(|(key, place)| after.get(*key) != Some(place));
    differing.map(|((symbol, year), _)| (symbol.as_str(), *year)).collect()
}

#[tokio::test]
async fn old_years_stay_and_everything_is_as_if_derived_at_once() -> Result<()> {
    let app = TestApp::start().await?;
    let folder = app.folder().join("market").display().to_string();
    generate_market(&folder, "--symbols 16 --years 6 --seed 3 --until 2024-06-28")?;
    app.ingest(&["load", &folder, "--source", "test"]).await?.success()?;
    app.catch_up().await?;
    let start = old_years(&app).await?;
    assert!(start.len() > 50, "{start:?}");

    day(&app, "2024-07-01").await?;
    assert_eq!(app.sql_value::<String>("select min(as_of)::text from read_g1.metrics").await?, "2024-07-01");
    assert_eq!(moved(&start, &old_years(&app).await?), []);

    // Symbols with bars in all years.
    let rows = app
        .sql("select symbol from read_g1.prices group by symbol having count(*) = 7 order by symbol", &[])
        .await?;
    let symbols: Vec<String> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
    let [a, b, c, d] = symbols.get(..4).context("four long histories")? else { unreachable!() };
    let price = async |symbol: &str| {
        app.sql_value::<String>(&format!("select price::text from read_g1.quotes where symbol = '{symbol}'"))
            .await
    };
    // Late rows: a corrected close, a split and a dividend on days between old bars, a bar of another source, and a
    // price in the wrong unit.
    let corrected = format!("symbol,date,close\n{a},2020-03-04,{}\n", price(a).await?);
    load(&app, "test", "prices-late.csv", &corrected).await?;
    load(&app, "test", "splits-late.csv", &format!("symbol,ex_date,from,to\n{b},2020-06-01,1,2\n")).await?;
    load(&app, "test", "dividends-late.csv", &format!("symbol,ex_date,amount\n{b},2020-08-03,0.01\n"))
        .await?;
    let other = format!("symbol,date,close\n{c},2020-03-04,{}\n", price(c).await?);
    load(&app, "other", "prices-other.csv", &other).await?;
    let p = price(d).await?;
    let hundredfold = p.parse::<Decimal>()? * Decimal::ONE_HUNDRED;
    let wrong =
        format!("symbol,date,close\n{d},2020-03-03,{p}\n{d},2020-03-04,{hundredfold}\n{d},2020-03-05,{p}\n");
    load(&app, "test", "prices-wrong.csv", &wrong).await?;
    let now = old_years(&app).await?;
    assert_eq!(moved(&start, &now), [(a.as_str(), 2020), (c.as_str(), 2020), (d.as_str(), 2020)]);

    // A newer bar of `test` on another day does not change the bar that `other` corrected in 2020.
    day(&app, "2024-07-02").await?;
    assert_eq!(moved(&now, &old_years(&app).await?), []);
    for (from, generation) in [("facts", "2"), ("log", "3")] {
        answer(&app, &["rebuild", "--from", from]).await?;
        let diff = answer(&app, &["diff", "--whole", "1", generation]).await?;
        assert_eq!(diff["identical"], true, "from {from}: {diff}");
    }
    Ok(())
}

/// Returns the year of the ex-date and the physical position (`ctid`) of each dividend, by id. A row that is written
/// again gets another position.
async fn dividend_positions(app: &TestApp) -> Result<BTreeMap<String, (i32, String)>> {
    let rows = "select id, extract(year from ex_date)::integer, ctid::text from read_g1.dividends where id is not null";
    let rows = app.sql(rows, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?)))).collect()
}

#[tokio::test]
async fn dividends_are_written_again_from_the_first_year_on_that_differs() -> Result<()> {
    let app = TestApp::start().await?;
    // A projector that continues to run remembers the rows that it has written.
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    let mut text = "id,symbol,ex_date,amount,revision\n".to_owned();
    for year in 2018..2024 {
        for month in [2, 5, 8, 11] {
            for (id, symbol) in [("a", "AAA"), ("b", "BBB")] {
                text += &format!("{id}-{year}-{month},{symbol},{year}-{month:02}-10,0.25,0\n");
            }
        }
    }
    publish(&app, "test", "prices.csv", "symbol,date,close\nAAA,2024-06-28,10\nBBB,2024-06-28,10\n").await?;
    publish(&app, "test", "dividends.csv", &text).await?;
    // Ids of the newest changes of dividends in the journal.
    let newest_changes = async || -> Result<Vec<String>> {
        let newest = "select id from control.changes where kind = 'dividends' and position = \
            (select max(position) from control.changes where kind = 'dividends') order by id";
        app.sql(newest, &[]).await?.iter().map(|row| Ok(row.try_get(0)?)).collect()
    };
    let first = async || {
        let rows = dividend_positions(&app).await?;
        ensure!(rows.len() == 48, "{rows:?}");
        Ok(())
    };
    eventually(PATIENCE, first).await?;
    let mut before = dividend_positions(&app).await?;
    // Three loads of corrections. Load 1 changes an amount. The next dividend also changes, because it is compared with
    // this amount. Load 2 moves an ex-date into the year before. Load 3 moves this ex-date back, and moves an ex-date
    // of another security. Each load rewrites the rows of the corrected securities from the first changed year on, but
    // only changed rows are listed as changes.
    for (corrections, since, ids) in [
        (
            "a-2022-8,AAA,2022-08-10,0.26,1\n",
            2022,
            vec!["AAA/test/dividend/a-2022-11", "AAA/test/dividend/a-2022-8"],
        ),
        ("a-2021-2,AAA,2020-12-30,0.25,1\n", 2020, vec!["AAA/test/dividend/a-2021-2"]),
        (
            "a-2021-2,AAA,2021-02-10,0.25,2\nb-2023-5,BBB,2023-05-11,0.25,1\n",
            2020,
            vec!["AAA/test/dividend/a-2021-2", "BBB/test/dividend/b-2023-5"],
        ),
    ] {
        let corrections = format!("id,symbol,ex_date,amount,revision\n{corrections}");
        publish(&app, "test", &format!("dividends-since-{since}-{}.csv", ids.len()), &corrections).await?;
        let all_journaled = async || {
            let changes = newest_changes().await?;
            ensure!(changes == ids, "{changes:?}, since {since}");
            Ok(())
        };
        eventually(PATIENCE, all_journaled).await?;
        let after = dividend_positions(&app).await?;
        for (id, (year, place)) in &after {
            let stays = before.get(id) == Some(&(*year, place.clone()));
            let written = *year >= since && ids.iter().any(|changed| changed[..3] == id[..3]);
            assert_eq!(stays, !written, "{id} of {year}, since {since}");
        }
        before = after;
    }
    answer(&app, &["rebuild"]).await?;
    let diff = answer(&app, &["diff", "--whole", "1", "2"]).await?;
    assert_eq!(diff["identical"], true, "{diff}");
    Ok(())
}

#[tokio::test]
async fn a_projector_that_has_just_started_writes_only_recent_dividends_again() -> Result<()> {
    let app = TestApp::start().await?;
    let header = "id,symbol,ex_date,amount,revision\n";
    let quarters = (2018..2024).flat_map(|year| [2, 5, 8, 11].map(|month| (year, month)));
    let rows: String =
        quarters.map(|(year, month)| format!("a-{year}-{month},AAA,{year}-{month:02}-10,0.25,0\n")).collect();
    load(&app, "test", "prices.csv", "symbol,date,close\nAAA,2024-06-28,10\n").await?;
    load(&app, "test", "dividends.csv", &format!("{header}{rows}")).await?;
    // Each load starts a new projector. Dividends of 2023 and 2024 (the market date's year and the year before) are
    // recent. The loads are: a new dividend, a correction of a recent dividend, a correction of an older dividend, and
    // another price. The third value of each entry is the first year whose rows are written again.
    let mut before = dividend_positions(&app).await?;
    for (name, text, first) in [
        ("dividends-new.csv", format!("{header}a-2024-2,AAA,2024-02-12,0.25,0\n"), Some(2023)),
        ("dividends-recent.csv", format!("{header}a-2023-5,AAA,2023-05-11,0.26,1\n"), Some(2023)),
        ("dividends-past.csv", format!("{header}a-2020-5,AAA,2020-05-11,0.26,1\n"), Some(2018)),
        ("prices-new.csv", "symbol,date,close\nAAA,2024-06-28,11\n".to_owned(), None),
    ] {
        load(&app, "test", name, &text).await?;
        let after = dividend_positions(&app).await?;
        for (id, (year, place)) in &after {
            let stays = before.get(id) == Some(&(*year, place.clone()));
            assert_eq!(stays, first.is_none_or(|first| *year < first), "{id} of {year} after {name}");
        }
        before = after;
    }
    // After the undo of every load of dividends, no row of any year is left.
    let runs = "select distinct run from facts.runs where manifest::text like '%dividends%'";
    for row in app.sql(runs, &[]).await? {
        app.ingest(&["undo", row.try_get(0)?]).await?.success()?;
    }
    app.catch_up().await?;
    assert_eq!(app.sql_value::<i64>("select count(*) from read_g1.dividends").await?, 0);
    answer(&app, &["rebuild"]).await?;
    let diff = answer(&app, &["diff", "--whole", "1", "2"]).await?;
    assert_eq!(diff["identical"], true, "{diff}");
    Ok(())
}

#[tokio::test]
async fn a_security_that_changes_its_sector_counts_in_the_new_one_only() -> Result<()> {
    let app = TestApp::start().await?;
    let security = |symbol: &str, sector: &str, revision: u32| {
        format!("{symbol},{symbol} Corporation,stock,{sector},{revision}\n")
    };
    let header = "symbol,name,type,sector,revision\n";
    let first = [
        header,
        &security("AAA", "Energy", 0),
        &security("BBB", "Energy", 0),
        &security("CCC", "Utilities", 0),
    ];
    load(&app, "test", "securities.csv", &first.concat()).await?;
    let prices = "symbol,date,close\nAAA,2024-06-28,10\nBBB,2024-06-28,20\nCCC,2024-06-28,30\n";
    load(&app, "test", "prices.csv", prices).await?;
    let counts = async || -> Result<Vec<(String, i32)>> {
        let rows = app.sql("select slug, stock_count from read_g1.sectors order by slug", &[]).await?;
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    };
    assert_eq!(counts().await?, [("energy".to_owned(), 2), ("utilities".to_owned(), 1)]);
    load(&app, "test", "securities-1.csv", &[header, &security("AAA", "Utilities", 1)].concat()).await?;
    assert_eq!(counts().await?, [("energy".to_owned(), 1), ("utilities".to_owned(), 2)]);
    // BBB moves to the same sector in the spelling of another vendor. Its former sector then has no member.
    load(&app, "test", "securities-2.csv", &[header, &security("BBB", "UTILITIES", 1)].concat()).await?;
    assert_eq!(counts().await?, [("utilities".to_owned(), 3)]);
    answer(&app, &["rebuild"]).await?;
    let diff = answer(&app, &["diff", "--whole", "1", "2"]).await?;
    assert_eq!(diff["identical"], true, "{diff}");
    Ok(())
}

#[tokio::test]
async fn a_projector_that_goes_on_learns_of_new_securities_and_of_new_names() -> Result<()> {
    let app = TestApp::start().await?;
    let _projector = app.spawn(Program::Projector, &["run"]).await?;
    let names = async |wanted: &[(&str, &str)]| {
        eventually(PATIENCE, async || {
            let rows = app.sql("select symbol, name from read_g1.stocks order by symbol", &[]).await?;
            let found: Vec<(String, String)> =
                rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect::<Result<_>>()?;
            ensure!(
                found
                    .iter()
                    .map(|(symbol, name)| (symbol.as_str(), name.as_str()))
                    .eq(wanted.iter().copied()),
                "{found:?}"
            );
            Ok(())
        })
        .await
    };
    publish(&app, "test", "prices-1.csv", "symbol,date,close\nAAA,2024-06-28,10\n").await?;
    names(&[("AAA", "AAA")]).await?;
    publish(&app, "test", "prices-2.csv", "symbol,date,close\nBBB,2024-06-28,20\n").await?;
    names(&[("AAA", "AAA"), ("BBB", "BBB")]).await?;
    publish(&app, "test", "securities.csv", "symbol,name,type\nAAA,First Corporation,stock\n").await?;
    names(&[("AAA", "First Corporation"), ("BBB", "BBB")]).await?;
    publish(&app, "test", "securities-2.csv", "symbol,name,type\nBBB,Second Corporation,stock\n").await?;
    names(&[("AAA", "First Corporation"), ("BBB", "Second Corporation")]).await
}

#[tokio::test]
async fn bars_of_a_former_name_change_an_old_year_that_is_served() -> Result<()> {
    let app = TestApp::start().await?;
    let mut bars = "symbol,date,close\n".to_owned();
    let from = |text: &str| text.parse::<NaiveDate>();
    let old = from("2020-01-06")?.iter_days().take(40);
    for date in old.chain(from("2023-03-01")?.iter_days().take(485)).filter(|date| is_session(*date)) {
        bars += &format!("NEWN,{date},10\n");
    }
    load(&app, "test", "prices.csv", &bars).await?;
    load(&app, "test", "prices-day.csv", "symbol,date,close\nNEWN,2024-07-01,10.1\n").await?;
    let served = old_years(&app).await?;
    // The bar of the former name is in a year of which the projector reads only closes. The new name has no bar on that
    // day.
    let named = r#"{"kind":"security","symbol":"NEWN","name":"New Name","type":"stock","former_symbols":[{"symbol":"OLDN"}]}"#;
    load(&app, "test", "securities.ndjson", named).await?;
    load(&app, "test", "prices-old.csv", "symbol,date,close\nOLDN,2020-03-02,11\n").await?;
    assert_eq!(moved(&served, &old_years(&app).await?), [("NEWN", 2020)]);
    answer(&app, &["rebuild", "--from", "log"]).await?;
    let diff = answer(&app, &["diff", "--whole", "1", "2"]).await?;
    assert_eq!(diff["identical"], true, "{diff}");
    Ok(())
}

/// Runs the projector. Returns the number of served rows that the projector reports as changed.
async fn changes(app: &TestApp) -> Result<usize> {
    let output = app.projector(&["run", "--until-caught-up"]).await?.success()?;
    let counts = output.stderr.split("changes=").skip(1).filter_map(|rest| rest.split_whitespace().next());
    let counts: Vec<usize> = counts.map(str::parse).collect::<Result<_, _>>()?;
    ensure!(!counts.is_empty(), "no batch says what it changed: {}", output.stderr);
    Ok(counts.iter().sum())
}

#[tokio::test]
async fn a_correction_changes_rows_of_its_security_only_and_nothing_new_changes_none() -> Result<()> {
    let app = TestApp::start().await?;
    let folder = app.folder().join("market").display().to_string();
    generate_market(&folder, "--symbols 16 --years 3 --seed 3 --until 2024-06-28")?;
    app.ingest(&["load", &folder, "--source", "test"]).await?.success()?;
    ensure!(changes(&app).await? > 16 * 5, "every table of every security is new");
    ensure!(changes(&app).await? == 0, "nothing came since");
    let symbol: String = app.sql_value("select min(symbol) from read_g1.dividends").await?;
    let row = format!("symbol,ex_date,amount\n{symbol},2024-06-27,0.01\n");
    publish(&app, "test", "dividends-one.csv", &row).await?;
    let changed = changes(&app).await?;
    ensure!((2..=11).contains(&changed), "{changed} changes of {symbol}");
    Ok(())
}
