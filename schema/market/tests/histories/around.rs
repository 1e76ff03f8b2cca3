//! Tests for served figures: prices of the newest session, yield at the ex-date, update time of a split, beta, and
//! ex-dates of a sector.

use std::sync::Arc;

use chrono::{DateTime, Datelike, Days, Months, NaiveDate, Weekday};
use market::event::Frequency;
use market::history::{History, SourcePolicy};
use market::metrics::sector::{SectorMember, sector_rows};
use market::metrics::{DerivationContext, Rules, benchmark, derive};

use crate::explained::company;
use crate::figures::{derived, in_market, text};
use crate::lives::{Life, date};

#[test]
fn the_session_is_quoted_as_it_was_traded_on_the_shares_of_today() {
    let quoted = |prices: [i64; 3], split: &str| {
        let life = Life::new("session", "2024-06-28").close("2024-06-26", "50").close("2024-06-27", "51");
        let mut history = life.split(split, 1, 2).history();
        let bars = Arc::make_mut(&mut history.prices[0].bars);
        [bars.open[1], bars.high[1], bars.low[1]] = prices;
        let quote = derived(&history).quote;
        [quote.open, quote.day_high, quote.day_low].map(text)
    };
    assert_eq!(quoted([5_020, 5_150, 5_000], "2024-07-01"), ["50.2", "51.5", "50"]);
    assert_eq!(quoted([5_020, 5_150, 5_000], "2024-06-28"), ["25.1", "25.75", "25"]);
    // Vendors write 0 for an unknown price. One cent is a valid price.
    assert_eq!(quoted([0, 5_150, 1], "2024-07-01"), ["-", "51.5", "0.01"]);
}

#[test]
fn a_special_or_foreign_payment_has_no_yield_at_its_ex_date() {
    let life = Life::new("yields", "2024-06-28")
        .every(91, "2023-03-27", &[("0.5", 5)])
        .of_type("2024-04-10", "1", "special")
        .pay("2024-06-24", "0.5")
        .close("2023-03-24", "50")
        .close("2024-06-20", "40");
    let mut history = life.history();
    // The vendor gives the payer's frequency with every payment, even with the special.
    history.dividends.iter_mut().for_each(|row| row.record.frequency = Some(Frequency::Quarterly));
    let yields = |history: &History| {
        let rows = derived(history).dividends;
        let since = rows.iter().filter(|row| row.source == "a" && row.ex_date > date("2024-03-01"));
        since.take(3).map(|row| format!("{} {}", row.ex_date, text(row.yield_at_ex))).collect::<Vec<_>>()
    };
    assert_eq!(yields(&history), ["2024-03-25 4", "2024-04-10 -", "2024-06-24 5"]);
    history.dividends[6].record.currency = "GBP".into();
    assert_eq!(yields(&history), ["2024-03-25 4", "2024-04-10 -", "2024-06-24 -"]);
}

#[test]
fn a_split_row_is_as_old_as_its_own_record() {
    let seen = |day: i64| DateTime::from_timestamp(1_700_000_000 + 86_400 * day, 0).expect("a time");
    let mut history = Life::new("seen", "2024-06-28")
        .split("2024-03-01", 1, 2)
        .of_type("2024-05-02", "0.05", "stock")
        .pay("2024-06-06", "0.5")
        .history();
    history.splits[0].observed_at = seen(1);
    history.dividends[0].observed_at = seen(2);
    history.dividends[1].observed_at = seen(3);
    let found = derived(&history);
    assert_eq!(found.splits.iter().map(|row| row.updated_at).collect::<Vec<_>>(), [seen(1), seen(2)]);
    assert_eq!(found.stock.listed.updated_at, seen(3));
}

/// Builds a history with one close a month, from 79 months ago to `until` months ago. `close` returns the close for a
/// number of months ago.
fn monthly(until: u32, close: impl Fn(u32) -> &'static str) -> History {
    let session = |ago: u32| {
        let day = date("2024-06-28") - Months::new(ago);
        let back = match day.weekday() {
            Weekday::Sat => 1,
            Weekday::Sun => 2,
            _ => 0,
        };
        day - Days::new(back)
    };
    let ago = (until..80).rev();
    let life = Life::new("monthly", "2024-06-28");
    ago.fold(life, |life, ago| life.close(&session(ago).to_string(), close(ago))).history()
}

#[test]
fn a_beta_is_of_the_sixty_months_up_to_the_date() {
    let swings = |ago: u32| if ago.is_multiple_of(2) { "100" } else { "110" };
    let policy = SourcePolicy::default();
    let months = |history: &History, day: NaiveDate| {
        benchmark(history, day, &market::metrics::ExchangeRates::NONE, &policy, &Rules::DEFAULT)
    };
    let whole = monthly(0, swings);
    let swinging = months(&whole, date("2024-06-28"));
    let beta = |close: &dyn Fn(u32) -> &'static str| {
        let history = monthly(0, close);
        let found = in_market(|market| {
            derive(&history, &DerivationContext { benchmark: Some(&swinging), ..*market })
        });
        text(found.metrics.beta_5y)
    };
    assert_eq!(beta(&swings), "1");
    assert_eq!(beta(&|ago| if ago % 2 == 0 { "110" } else { "100" }), "-1");
    // The price rises by half 61, 60 or 59 months ago. Only the rise 59 months ago is within the last sixty monthly
    // returns.
    let risen = |since: u32| beta(&move |ago| if ago <= since { "60" } else { "40" });
    assert_eq!([risen(61), risen(60), risen(59)], ["0", "0", "0.0873"]);
    // Sessions after the requested date do not change the returns of the benchmark.
    let march = date("2024-03-28");
    assert_eq!(months(&whole, march), months(&monthly(3, swings), march));
    assert_ne!(months(&whole, march), swinging);
}

#[test]
fn a_sector_counts_the_ex_dates_that_are_declared_and_not_those_expected() {
    let mut history = company();
    let member = |history: &History| {
        let found = derived(history);
        assert!(found.metrics.next.0.is_some(), "one or the other");
        let member = SectorMember::from_rows(&found.stock, Some(&found.metrics));
        let rows = sector_rows(std::slice::from_ref(&member), date("2024-06-28"), "USD");
        (member.next_ex_date, rows[0].slug.clone(), rows[0].ex_dates_next_30d)
    };
    assert_eq!(member(&history), (None, "utilities".to_owned(), 0));
    let mut next = history.dividends.last().expect("a payment").clone();
    next.record.ex_date = Some(date("2024-07-10"));
    history.dividends.push(next);
    assert_eq!(member(&history), (Some(date("2024-07-10")), "utilities".to_owned(), 1));
    assert_eq!(SectorMember::from_rows(&derived(&history).stock, None).next_ex_date, None);
}
