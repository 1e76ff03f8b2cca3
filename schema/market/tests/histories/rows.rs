//! Tests for the derived rows of a company. The expected values were worked out by hand.

use market::history::History;
use market::metrics::DerivedRows;
use serde_json::json;

use crate::explained::{company, observed};
use crate::figures::{derived, text};
use crate::lives::{Life, date};

/// Dividend rows with an ex-date from `since` on, each as
/// `ex-date amount adjusted type status split-factor price-factor yield-at-ex change`.
fn dividends(derived: &DerivedRows, since: &str) -> Vec<String> {
    let rows = derived.dividends.iter().filter(|row| row.ex_date >= date(since));
    let told = rows.map(|row| {
        format!(
            "{} {} {} {} {} {} {} {} {}",
            row.ex_date,
            row.amount,
            row.adjusted_amount,
            row.r#type,
            row.status,
            row.split_factor,
            text(row.price_factor),
            text(row.yield_at_ex),
            text(row.change_percent)
        )
    });
    told.collect()
}

#[test]
fn each_payment_with_its_factor_and_its_yield() {
    assert_eq!(
        dividends(&derived(&company()), "2023-03-01"),
        [
            "2023-03-02 0.8 0.4 regular paid 0.5 - - 33.3333",
            "2023-06-08 0.4 0.4 regular paid 1 - - 0",
            "2023-09-07 0.4 0.4 regular paid 1 0.99 4 0",
            "2023-11-09 0.2 0.2 special paid 1 0.995 - -",
            "2023-12-07 0.4 0.4 regular paid 1 0.99 4 0",
            "2024-03-07 0.5 0.5 regular paid 1 0.988636363636 4.5455 25",
            "2024-06-06 0.5 0.5 regular paid 1 0.988636363636 4.5455 0",
            "2024-09-09 0.5 0.5 regular projected 1 - - -",
            "2024-12-09 0.5 0.5 regular projected 1 - - -",
            "2025-03-07 0.5 0.5 regular projected 1 - - -",
            "2025-06-06 0.5 0.5 regular projected 1 - - -",
        ]
    );
}

#[test]
fn the_quote_and_the_headline_figures() {
    let found = derived(&company());
    let quote = &found.quote;
    assert_eq!(
        [quote.price, quote.previous_close, quote.change, quote.change_percent, quote.annual_dividend]
            .map(text),
        ["50", "44", "6", "13.6364", "2"]
    );
    // Earnings are 3.6 per share, and there are 1000 shares.
    assert_eq!([quote.dividend_yield, quote.pe_ratio, quote.eps_ttm].map(text), ["4", "13.8889", "3.6"]);
    assert_eq!(
        (quote.market_cap, quote.shares_outstanding, quote.volume),
        (Some(50_000), Some(1_000), Some(1))
    );
    assert_eq!((quote.open, quote.dividend_currency.as_deref()), (None, Some("USD")));
    let metrics = &found.metrics;
    assert_eq!(
        [
            metrics.dps_ttm,
            metrics.dps_ttm_total,
            metrics.dps_forward,
            metrics.yield_ttm,
            metrics.yield_ttm_total
        ]
        .map(text),
        ["1.8", "2", "2", "3.6", "4"]
    );
    // The dividends are 1700, and the free cash flow is 3400. Per share, the dividends are 1.8, and the earnings are
    // 3.6.
    assert_eq!(
        [metrics.payout_ratio, metrics.fcf_payout_ratio, metrics.dividend_cover].map(text),
        ["50", "50", "2"]
    );
    // The totals are per share of today.
    let totals: Vec<String> = metrics
        .annual_totals
        .0
        .iter()
        .map(|year| format!("{} {} {}", year.year, year.amount, year.complete))
        .collect();
    assert_eq!(
        totals,
        ["2019 0.8 true", "2020 0.8 true", "2021 1 true", "2022 1.2 true", "2023 1.6 true", "2024 1 false"]
    );
    assert_eq!(
        [metrics.growth_1y, metrics.growth_3y, metrics.growth_5y].map(text),
        ["33.3333", "25.9921", "-"]
    );
    assert_eq!(
        (metrics.increase_streak_years, metrics.streak_started, metrics.payment_streak_years),
        (3, Some(2021), 6)
    );
    assert_eq!((metrics.ttm_payment_count, metrics.payment_count, metrics.cuts_10y), (4, 20, 0));
    assert_eq!(
        [metrics.latest_increase_percent, metrics.total_return_1y, found.stock.figures.change_percent_ytd]
            .map(text),
        ["25", "30.3977", "13.6364"]
    );
    assert_eq!(found.stock.figures.price_age_sessions, Some(0));
}

#[test]
fn splits_by_what_they_do_to_a_price() {
    let life = Life::new("split", "2024-06-28")
        .split("2020-01-02", 4, 5)
        .split("2020-01-03", 100, 124)
        .split("2020-01-06", 10, 1)
        .split("2024-06-28", 1, 3)
        .split("2024-09-03", 1, 2);
    let told = |history: &History| -> Vec<String> {
        let rows = derived(history).splits;
        rows.iter()
            .map(|row| {
                format!(
                    "{} {} {} {} {} {} {}",
                    row.ex_date,
                    row.text,
                    row.r#type,
                    row.ratio,
                    row.price_factor,
                    row.cumulative_price_factor,
                    row.status
                )
            })
            .collect()
    };
    let mut history = life.history();
    // The last number is the cumulative factor: the product of the price factors of this split and all later effective
    // splits. The announced split does not count.
    assert_eq!(
        told(&history),
        [
            "2020-01-02 5:4 forward 1.25 0.8 2.150537634409 effective",
            "2020-01-03 124:100 stock_dividend 1.24 0.806451612903 2.688172043011 effective",
            "2020-01-06 1:10 reverse 0.1 10 3.333333333333 effective",
            "2024-06-28 3:1 forward 3 0.333333333333 0.333333333333 effective",
            "2024-09-03 2:1 forward 2 0.5 1 announced",
        ]
    );
    // The vendor's type `stock_dividend` is used, but not for a reverse split.
    history.splits[0].record.r#type = Some("stock_dividend".into());
    history.splits[2].record.r#type = Some("stock_dividend".into());
    let types: Vec<String> = derived(&history).splits.iter().map(|row| row.r#type.to_string()).collect();
    assert_eq!(types, ["stock_dividend", "stock_dividend", "reverse", "forward", "forward"]);
}

#[test]
fn a_stock_dividend_is_a_split_where_no_split_has_its_day() {
    let life =
        Life::new("shares", "2024-06-28").of_type("2024-02-01", "0.05", "stock").pay("2024-01-02", "2.1");
    let found = derived(&life.history());
    assert_eq!(
        dividends(&found, "2024-01-01"),
        ["2024-01-02 2.1 2 regular paid 0.952380952381 - - -", "2024-02-01 0.05 0.05 stock paid 1 - - -"]
    );
    let splits = |derived: &DerivedRows| -> Vec<String> {
        derived.splits.iter().map(|row| format!("{} {} {}", row.id, row.text, row.status)).collect()
    };
    assert_eq!(splits(&found), ["LIFE/a/stock_dividend@2024-02-01.stock.USD 1.05:1 effective"]);
    let mut both = life.split("2024-02-01", 20, 21).history();
    assert_eq!(splits(&derived(&both)), ["LIFE/a/split@2024-02-01 21:20 effective"]);
    // If the split is retracted, the stock dividend counts as the split of the day.
    both.splits.push(market::history::Observation {
        action: market::event::Action::Retract,
        line: 9,
        ..both.splits[0].clone()
    });
    assert_eq!(
        splits(&derived(&both)),
        [
            "LIFE/a/split@2024-02-01 21:20 cancelled",
            "LIFE/a/stock_dividend@2024-02-01.stock.USD 1.05:1 effective"
        ]
    );
}

#[test]
fn who_is_delisted_pays_nothing_from_its_last_day_on() {
    let mut history = company();
    let mut on = |delisted_on: &str| {
        history.security = Some(observed(
            json!({ "symbol": "LIFE", "name": "Life", "type": "stock", "currency": "USD", "status": "delisted", "delisted_on": delisted_on }),
        ));
        let found = derived(&history);
        (
            found.stock.listed.is_active,
            found.stock.listed.pays_dividend,
            found.stock.listed.delisted_on.is_some(),
            found.metrics.dps_forward.is_some(),
            found.metrics.next.0.is_some(),
        )
    };
    assert_eq!(on("2024-06-28"), (true, Some(true), false, true, true));
    assert_eq!(on("2024-06-27"), (false, Some(false), true, false, false));
}

#[test]
fn a_stock_is_described_as_its_reference_record_says() {
    let mut history = company();
    let nameless = derived(&History { security: None, ..history.clone() }).stock;
    assert_eq!((nameless.listed.name.as_str(), nameless.company.0.ipo_date), ("LIFE", None));
    history.security = Some(observed(json!({
        "symbol": "LIFE", "name": "Life Works", "type": "stock", "currency": "USD", "status": "active",
        "exchange": "XNYS", "sector": "Utilities", "industry": "Water", "country": "US", "indexes": ["sp500"],
        "description": "Mends lives.", "website": "https://life.example", "ceo": "A. Live", "employees": 12,
        "ipo_date": "1998-05-04", "cik": "0000000007", "figi": "BBG000000001", "isin": "US0000000002",
        "cusip": "000000003",
    })));
    let found = derived(&history);
    let (stock, listed) = (&found.stock, &found.stock.listed);
    assert_eq!((listed.name.as_str(), found.quote.name.as_str()), ("Life Works", "Life Works"));
    let texts = [&listed.exchange, &listed.sector, &listed.industry, &listed.country].map(Option::as_deref);
    assert_eq!(texts, [Some("XNYS"), Some("Utilities"), Some("Water"), Some("US")]);
    assert_eq!(stock.figures.indexes.0, ["sp500"]);
    let ids = &stock.identifiers.0;
    assert_eq!(
        [&ids.cik, &ids.figi, &ids.isin, &ids.cusip].map(Option::as_deref),
        [Some("0000000007"), Some("BBG000000001"), Some("US0000000002"), Some("000000003")]
    );
    let profile = &stock.company.0;
    assert_eq!(
        [&profile.description, &profile.website, &profile.ceo].map(Option::as_deref),
        [Some("Mends lives."), Some("https://life.example"), Some("A. Live")]
    );
    assert_eq!((profile.employees, profile.ipo_date), (Some(12), Some(date("1998-05-04"))));
}
