//! Faults planted in a generated market. The rules must find at least 95 % of the faults of each kind. The
//! number of false alarms may be at most a thousandth of the number of dividends.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};
use chrono::{Days, NaiveDate};
use harness::{TestApp, generate_market};

const UNTIL: &str = "2024-06-14";
const TODAY: &str = "2024-06-17";
/// A planted price fault lasts at most this number of calendar days. A suspect price within these days is not a false
/// alarm.
const LONGEST_RUN: u64 = 14;

/// Faults that the service found: symbol, date (if known) and kind.
type Found = BTreeSet<(String, Option<NaiveDate>, String)>;

/// Query for the faults that the service found. A fault of a kind that is never planted counts as a false alarm.
const READINGS: &str = "
    select symbol, ex_date, case reading::text
        when 'special' then 'untyped_special' when 'combined' then 'combined_payment' when 'dip' then 'amount_dip' end
    from read_g1.dividends where reading::text <> 'regular'
    union all
    select symbol, date, case kind when 'price' then 'price_level' when 'dividend' then 'held_newest'
        else 'held ' || kind || ' ' || reason end
    from read_g1.quarantine
    union all
    select symbol, ex_date, 'spin_off_as_split' from read_g1.splits where type::text = 'spin_off'
    union all
    select symbol, null, case flag
        when 'near_duplicate' then flag when 'boundary_shift' then flag when 'dividends_missing' then flag
        when 'payment_gap' then 'missing_payment' when 'amount_basis_suspect' then 'share_basis'
        when 'amount_held' then 'held_newest' when 'conflicting_duplicate' then 'conflicting_closes'
        when 'price_level_break' then 'level_break' when 'payment_translated' then 'translated_payment'
        when 'ex_date_unexpected' then 'unexpected_ex_date' else 'flag ' || flag end
    from read_g1.metrics, json_array_elements_text(flags) flag
    where flag in ('near_duplicate', 'boundary_shift', 'dividends_missing', 'payment_gap', 'amount_basis_suspect',
        'price_level_break', 'price_jump_without_split', 'split_not_in_price', 'special_by_price', 'amount_held',
        'conflicting_duplicate', 'payment_translated', 'ex_date_unexpected')";

/// Starts an app and loads a generated market into it. `faults` is the percentage of securities with a planted fault.
async fn market(symbols: &str, years: &str, faults: &str) -> Result<TestApp> {
    let app = TestApp::builder().env("SERVICE_DATE", TODAY).start().await?;
    let folder = app.folder().join("market").to_string_lossy().into_owned();
    let options = format!("--symbols {symbols} --years {years} --seed 7 --until {UNTIL} --faults {faults}");
    generate_market(&folder, &options)?;
    app.ingest(&["load", &folder, "--source", "demo"]).await?.success()?;
    app.catch_up().await?;
    Ok(app)
}

async fn readings(app: &TestApp) -> Result<Found> {
    let rows = app.sql(READINGS, &[]).await?;
    rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?))).collect()
}

fn planted(list: &Path) -> Result<Vec<(String, NaiveDate, String)>> {
    let text = std::fs::read_to_string(list)?;
    let row = |line: &str| {
        let mut cells = line.split(',');
        let mut cell = || cells.next().context("three cells");
        Ok((cell()?.to_owned(), cell()?.parse()?, cell()?.to_owned()))
    };
    text.lines().skip(1).map(row).collect()
}

/// Kind of the reading by which a planted fault is found. A supplement is read as a special dividend without a type, and
/// a payment that contains another row as a combined payment.
fn reading_of(kind: &str) -> &str {
    match kind {
        "supplement" => "untyped_special",
        "contained_payment" => "combined_payment",
        kind => kind,
    }
}

#[tokio::test]
async fn rules_find_planted_faults_and_doubt_no_sound_row() -> Result<()> {
    let app = market("2400", "10", "100").await?;
    let (found, planted) = (readings(&app).await?, planted(&app.folder().join("market/planted.list"))?);
    let has = |symbol: &str, date: Option<NaiveDate>, kind: &str| {
        found.contains(&(symbol.to_owned(), date, kind.to_owned()))
    };
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut missed = Vec::new();
    for (symbol, date, kind) in &planted {
        let (all, recalled) = counts.entry(kind).or_default();
        *all += 1;
        if has(symbol, Some(*date), reading_of(kind)) || has(symbol, None, reading_of(kind)) {
            *recalled += 1;
        } else {
            missed.push(format!("{symbol} {date} {kind}"));
        }
    }
    assert_eq!(counts.len(), 17, "{counts:?}");
    eprintln!("planted and found: {counts:?}; missed: {missed:?}");
    for (kind, (all, recalled)) in &counts {
        assert!(*all >= 20 && recalled * 100 >= all * 95, "{kind}: {recalled} of {all}; missed: {missed:?}");
    }
    let is_planted = |(symbol, date, kind): &(String, Option<NaiveDate>, String)| {
        planted.iter().any(|(faulty, first, known)| {
            let last = *first + Days::new(if kind == "price_level" { LONGEST_RUN } else { 0 });
            faulty == symbol
                && reading_of(known) == kind
                && date.is_none_or(|date| (*first..=last).contains(&date))
        })
    };
    let wrong: Vec<_> = found.iter().filter(|reading| !is_planted(reading)).collect();
    let rows: i64 =
        app.sql_value("select count(*) from read_g1.dividends where status::text <> 'projected'").await?;
    eprintln!("false readings: {} of {rows} rows: {wrong:?}", wrong.len());
    assert!(wrong.len() as i64 * 1_000 <= rows, "{} of {rows}: {wrong:?}", wrong.len());
    Ok(())
}

#[tokio::test]
async fn a_market_without_faults_has_readings_of_unsteady_payers_only() -> Result<()> {
    let found = readings(&market("60", "12", "0").await?).await?;
    let shown: Vec<String> = found
        .iter()
        .map(|(symbol, date, kind)| {
            format!("{symbol} {} {kind}", date.map_or("-".to_owned(), |date| date.to_string()))
        })
        .collect();
    // The only findings are two amounts of securities whose dividends vary by half, and one price that fell to a third.
    let expected =
        ["BASETI 2018-03-12 combined_payment", "DULARI - level_break", "LONATI 2022-11-23 amount_dip"];
    assert_eq!(shown, expected);
    Ok(())
}
