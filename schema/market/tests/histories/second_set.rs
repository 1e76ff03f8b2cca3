//! Histories in the shapes of real ones outside the United States, or of payers that change their rhythm. Each test
//! names the rule that makes its figures right.

use market::event::{Dividend, Security};
use market::history::History;
use market::metrics::DerivedRows;
use market::row::{AmountReading, Flag};
use serde_json::json;

use crate::figures::{has, text};
use crate::lives::observed;
use crate::tables::{Tables, held, looking_back};

/// Securities as `symbol,type,currency,exchange,country`.
const SECURITIES: &str = "
    EUX,stock,EUR,XETR,DE
    EQX,stock,NOK,XOSL,NO
    VWX,etf,USD,,
    KRX,stock,KRW,XKRX,KR";

/// Dividends as `symbol,ex_date,record_date,amount,currency,type`.
const DIVIDENDS: &str = "
    EUX,,2024-09-10,0.5,EUR,
    EUX,2025-09-08,2025-09-09,0.5,EUR,
    EQX,2024-08-14,,0.35,USD,
    EQX,2024-11-14,,0.35,USD,
    EQX,2025-02-13,,0.37,USD,
    EQX,2025-05-15,,0.37,USD,
    EQX,2025-05-15,,3.7443,NOK,
    VWX,2024-12-18,,1.30,,
    VWX,2025-12-17,,7.857,,
    VWX,2025-12-17,,6.42,,capital_gain
    KRX,2023-04-28,,4100,,
    KRX,2023-10-31,,3000,,
    KRX,2024-04-30,,4200,,
    KRX,2024-10-31,,3100,,
    KRX,2025-04-30,,5411920,,
    KRX,2025-10-31,,3923642,,
    MNY,2023-09-07,,0.23,,
    MNY,2023-10-06,,0.23,,
    MNY,2023-11-07,,0.23,,
    MNY,2023-12-07,,0.23,,
    MNY,2023-12-19,,0.275,,
    MNY,2024-01-04,,0.24,,
    MNY,2024-02-07,,0.24,,
    MNY,2024-03-07,,0.24,,
    MNY,2024-03-19,,0.30,,
    MNY,2024-04-05,,0.24,,
    MNY,2024-05-07,,0.24,,
    MNY,2024-06-07,,0.24,,
    MNY,2024-06-21,,0.30,,
    CTX,2006-02-03,,0.35,,
    CTX,2007-02-02,,0.39,,
    CTX,2008-02-04,,0.46,,
    CTX,2009-02-02,,0.47,,
    CTX,2010-02-08,,0.48,,
    CTX,2010-11-09,,0.49,,
    CTX,2011-11-08,,0.54,,
    CTX,2012-11-07,,0.64,,
    CTX,2013-11-06,,0.77,,
    HKX,2012-12-18,,0.10,,
    HKX,2013-12-06,,0.10,,
    HKX,2014-12-08,,0.12,,
    HKX,2015-06-25,,0.10,,
    HKX,2015-12-30,,0.10,,
    HKX,2016-06-28,,0.13,,
    HKX,2016-12-20,,0.13,,
    RNX,2017-09-14,,0.32,,
    RNX,2017-12-14,,0.32,,
    RNX,2018-03-14,,0.33,,
    RNX,2018-06-14,,0.33,,
    RNX,2018-09-13,,0.33,,
    RNX,2019-09-12,,0.34,,
    RNX,2019-12-12,,0.34,,
    RNX,2020-03-12,,0.35,,
    ASX,2020-04-24,,1.35,,
    ASX,2020-11-02,,1.20,,
    ASX,2021-05-03,,1.55,,
    ASX,2021-11-02,,1.80,,
    ASX,2022-05-03,,3.70,,
    ASX,2022-08-04,,1.37,,
    CMY,2011-09-07,,0.28,,
    CMY,2011-12-07,,0.28,,
    CMY,2012-03-07,,1.046,,
    CMY,2012-06-06,,0.446,,
    CMY,2012-09-06,,0.45,,
    CMY,2012-12-06,,0.45,,
    NWX,2013-04-30,,0.13,,
    NWX,2013-07-30,,0.13,,
    NWX,2013-10-29,,0.13,,
    NWX,2014-01-30,,0.23,,
    NWX,2014-04-29,,1.13,,
    NWX,2014-07-29,,0.13,,
    NWX,2014-10-23,,0.13,,";

/// Closes as `symbol,date,close`.
const PRICES: &str = "
    EUX,2025-09-30,20
    EQX,2025-06-30,256
    VWX,2025-12-16,37
    VWX,2025-12-17,29.3
    KRX,2025-04-29,112000
    KRX,2025-10-30,113000
    KSY,2023-10-12,8.65
    KSY,2024-02-06,988.3
    KSY,2024-02-07,1037
    NWX,2014-04-28,13.6
    NWX,2014-04-29,12.6";

fn rows<'t>(table: &'t str, symbol: &str) -> Vec<Vec<&'t str>> {
    let lines = table.split_whitespace().map(|line| line.split(',').collect::<Vec<&str>>());
    lines.filter(|cells| cells[0] == symbol).collect()
}

fn history(symbol: &str) -> History {
    let prices: Vec<String> =
        rows(PRICES, symbol).iter().map(|cells| format!("{},{}", cells[1], cells[2])).collect();
    let mut history = Tables { prices: &prices.join(" "), ..Tables::default() }.history();
    let currency = rows(SECURITIES, symbol).first().map_or("USD", |cells| cells[2]);
    for cells in rows(SECURITIES, symbol) {
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let record = json!({
            "symbol": "LIFE", "name": symbol, "type": cells[1], "currency": cells[2], "status": "active",
            "exchange": given(cells[3]), "country": given(cells[4]),
        });
        history.security = Some(observed(1, serde_json::from_value::<Security>(record).expect("a security")));
    }
    history.dividends = (1..)
        .zip(rows(DIVIDENDS, symbol))
        .map(|(line, cells)| {
            let or = |cell: &str, default: &str| if cell.is_empty() { default.to_owned() } else { cell.to_owned() };
            let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let record = json!({
                "symbol": "LIFE", "ex_date": given(cells[1]), "record_date": given(cells[2]), "amount": cells[3],
                "currency": or(cells[4], currency), "type": or(cells[5], "regular"), "amount_basis": "raw",
            });
            observed(line, serde_json::from_value::<Dividend>(record).expect("a dividend"))
        })
        .collect();
    history
}

fn on(symbol: &str, as_of: &str) -> DerivedRows {
    looking_back(as_of, "2025-12-31", &history(symbol))
}

/// Reading of each paid dividend that is not regular, as `ex-date reading special-part`.
fn readings(found: &DerivedRows) -> Vec<String> {
    let rows = found.dividends.iter().filter_map(|row| {
        let reading = row.reading.filter(|reading| *reading != AmountReading::Regular)?;
        Some(format!(
            "{} {reading} {}",
            row.ex_date,
            row.special_amount.map_or_else(String::new, |part| part.to_string())
        ))
    });
    rows.collect()
}

fn total(found: &DerivedRows, year: i32) -> String {
    let mut totals = found.metrics.annual_totals.0.iter();
    totals.find(|total| total.year == year).map_or("-".to_owned(), |total| total.amount.to_string())
}

/// R6, R30: rows of at least the price are held, and still prove that the payer pays.
#[test]
fn held_rows_prove_activity_and_no_amount() {
    let found = on("KRX", "2025-11-28");
    let metrics = &found.metrics;
    let reasons = ["dividend 2025-04-30 amount_exceeds_price", "dividend 2025-10-31 amount_exceeds_price"];
    assert_eq!(
        (metrics.dividend_status.to_string().as_str(), held(&found)),
        ("active", reasons.map(str::to_owned).to_vec())
    );
    assert!(has(&found, Flag::AmountHeld));
    let figures = [
        metrics.dps_ttm,
        metrics.dps_forward,
        metrics.dividend_yield,
        metrics.yield_ttm,
        metrics.yield_forward,
    ];
    assert_eq!(figures, [None; 5]);
    // While the last proven amount is not too old, it is the rate.
    let early = on("KRX", "2025-05-30");
    assert_eq!([early.metrics.dps_forward, early.metrics.dividend_yield].map(text), ["7300", "6.5179"]);
    assert!(has(&early, Flag::AmountHeld));
}

/// R34.2, R8: a supplement a fortnight after a regular payment is special, whatever its size, also as the newest row.
#[test]
fn a_supplement_is_special_and_no_rate() {
    let found = on("MNY", "2024-06-28");
    assert_eq!(
        readings(&found),
        ["2023-12-19 special 0.275", "2024-03-19 special 0.3", "2024-06-21 special 0.3"]
    );
    assert_eq!(text(found.metrics.dps_forward), "2.88");
    assert!(has(&found, Flag::InferredSpecial));
    let found = on("ASX", "2022-08-30");
    assert_eq!(readings(&found), [""; 0]);
    assert_eq!(text(found.metrics.dps_ttm), "6.87");
}

/// R34.3: runs of combined rows, and a rate that rises by more than half after one.
#[test]
fn runs_of_combined_rows_are_split() {
    let found = on("CMY", "2012-12-31");
    assert_eq!([found.metrics.dps_ttm, found.metrics.dps_ttm_total].map(text), ["1.792", "2.392"]);
    let found = on("NWX", "2014-12-31");
    assert_eq!(readings(&found), ["2014-01-30 combined 0.1", "2014-04-29 combined 1"]);
    assert_eq!([found.metrics.dps_ttm, found.metrics.dps_ttm_total].map(text), ["0.52", "1.62"]);
}

/// R34.5: an annual payer moves its payment from February to November.
#[test]
fn a_moved_payment_starts_a_new_numbering() {
    let found = on("CTX", "2014-06-30");
    assert_eq!(
        [2009, 2010, 2011, 2012, 2013].map(|year| total(&found, year)),
        ["0.47", "0.485", "0.54", "0.64", "0.77"]
    );
    assert_eq!(text(found.metrics.growth_1y), "20.3125");
    assert!(has(&found, Flag::AnnualTotalScaled) && !has(&found, Flag::BoundaryShift));
}

/// R34.7: the last annual payment before half-yearly ones is for a year.
#[test]
fn a_payment_is_for_the_time_since_the_last_one() {
    let found = on("HKX", "2017-01-31");
    assert_eq!([2013, 2014, 2015, 2016].map(|year| total(&found, year)), ["0.1", "0.12", "0.2", "0.26"]);
    assert_eq!(found.metrics.increase_streak_years, 3);
    assert!(!has(&found, Flag::AnnualTotalScaled));
}

/// R34.6: a gap of a year after which the rate is no lower is unknown.
#[test]
fn a_gap_before_an_equal_rate_is_unknown() {
    let found = on("RNX", "2020-04-30");
    assert!(has(&found, Flag::PaymentGap) && found.metrics.streak_lower_bound);
    assert_eq!((found.metrics.growth_1y, found.metrics.increase_streak_years), (None, 0));
}

/// R36: a lasting move over months.
#[test]
fn a_price_a_hundred_times_higher_after_months_is_a_break() {
    let found = on("KSY", "2024-02-07");
    assert!(has(&found, Flag::PriceLevelBreak) && held(&found).is_empty());
}

/// R1: the settlement times of the exchange's market.
#[test]
fn a_german_ex_date_is_one_day_before_the_record_date() {
    let found = on("EUX", "2025-09-30");
    let ex_dates: Vec<String> = found.dividends.iter().take(2).map(|row| row.ex_date.to_string()).collect();
    assert_eq!(ex_dates, ["2024-09-09", "2025-09-08"]);
    assert!(has(&found, Flag::ExDateDerived) && !has(&found, Flag::ExDateUnexpected));
}

/// R39: the dividend currency is that of most rows, and the row in the currency of the prices gives its rate.
#[test]
fn a_translated_row_does_not_turn_the_dividend_currency() {
    let found = on("EQX", "2025-06-30");
    let metrics = &found.metrics;
    assert_eq!((metrics.currency.as_str(), metrics.price_currency.as_str()), ("USD", "NOK"));
    assert_eq!((metrics.ttm_payment_count, metrics.payments_per_year), (4, Some(4)));
    assert_eq!(
        [metrics.dps_ttm, metrics.dps_ttm_total, metrics.dps_forward].map(text),
        ["1.44", "1.44", "1.48"]
    );
    // 3.7443 NOK x 4 on 256 NOK. Three payments have no row in NOK.
    assert_eq!([metrics.yield_forward, metrics.dividend_yield].map(text), ["5.8505", "5.8505"]);
    assert_eq!(metrics.yield_ttm, None);
    assert!(has(&found, Flag::PaymentTranslated) && has(&found, Flag::CurrencyMismatch));
    let newest = found.dividends.iter().rfind(|row| row.id.is_some()).expect("a payment");
    assert_eq!((newest.amount.to_string().as_str(), newest.currency.as_str()), ("3.7443", "NOK"));
    assert_eq!(text(newest.change_percent), "0");
    let last = found.stock.dividends.0.last.as_ref().expect("a payment");
    assert_eq!(last.amount.to_string(), "0.37");
    // The day before, no payment has a rate.
    let before = on("EQX", "2025-05-14");
    assert_eq!((text(before.metrics.dps_forward), before.metrics.dividend_yield), ("1.48".to_owned(), None));
}

/// R45: of two rows of one day, the price shows that one contains the other.
#[test]
fn a_total_and_a_part_of_it_are_one_payment() {
    let found = on("VWX", "2025-12-17");
    assert_eq!([found.metrics.dps_ttm, found.metrics.dps_ttm_total].map(text), ["2.737", "9.157"]);
    let factor = found.dividends.iter().find_map(|row| row.price_factor).expect("a factor");
    assert_eq!((factor.0 * rust_decimal::Decimal::from(37)).round_dp(3).to_string(), "29.143");
    assert_eq!(readings(&found), ["2025-12-17 combined 6.42"]);
    assert!(has(&found, Flag::DuplicateCollapsed) && has(&found, Flag::InferredSpecial));
}
