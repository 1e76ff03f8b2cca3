//! Tests for fundamentals, splits, coverage of the data, explanations of a session, and decisions on quarantined rows.

use chrono::{DateTime, NaiveDate};
use market::bars::{BarVersion, MISSING};
use market::day::day_number;
use market::event::{Action, Fundamentals, ShareBasis};
use market::history::{History, Observation, SourceBars};
use market::metrics::{Explanation, explain_session};
use market::row::FundamentalsRow;
use serde_json::{Value, json};

use crate::explained::{company, observed};
use crate::figures::{derived, explained, in_market, limited, text};
use crate::lives::{Life, date};

fn retracted<T: Clone>(row: &Observation<T>) -> Observation<T> {
    Observation { action: Action::Retract, line: 9, ..row.clone() }
}

#[test]
fn what_was_withdrawn_whole_is_nothing_to_list() {
    let life = || Life::new("stands", "2024-06-28");
    let stands = |history: &History| derived(history).has_live_rows();
    assert!(!stands(&life().history()));
    for history in [
        life().pay("2024-01-02", "1").history(),
        life().split("2024-01-02", 1, 2).history(),
        life().close("2024-01-02", "1").history(),
    ] {
        assert!(stands(&history));
    }
    let mut history = life().pay("2024-01-02", "1").split("2024-01-03", 1, 2).history();
    history.dividends.push(retracted(&history.dividends[0]));
    assert!(stands(&history), "the split");
    history.splits.push(retracted(&history.splits[0]));
    assert!(!stands(&history));
    assert_eq!((derived(&history).dividends.len(), derived(&history).splits.len()), (1, 1));
    history.fundamentals = vec![observed(json!({ "symbol": "LIFE", "as_of": "2024-03-31" }))];
    assert!(stands(&history), "a reported figure");
    // A security with only a quarantined row is listed, so that a person can review the row.
    let held = life().pay("2052-01-02", "1").history();
    assert_eq!((derived(&held).dividends.len(), derived(&held).quarantined.len()), (0, 1));
    assert!(stands(&held));
}

fn reported(figures: Value) -> FundamentalsRow {
    let mut history = company();
    let mut record = json!({ "symbol": "LIFE", "as_of": "2024-03-31", "shares_outstanding": "1000" });
    for (name, value) in figures.as_object().expect("figures") {
        record[name] = value.clone();
    }
    history.fundamentals = vec![observed::<Fundamentals>(record)];
    derived(&history).fundamentals.expect("a row")
}

fn ratios(row: &FundamentalsRow) -> [String; 6] {
    [row.ps_ratio, row.pb_ratio, row.net_margin, row.roe, row.debt_to_equity, row.fcf_per_share].map(text)
}

#[test]
fn figures_are_reported_or_follow_from_those_that_are() {
    // There are 1000 shares at a price of 50. The free cash flow is 4000 - 600.
    let figures = json!({
        "revenue_ttm": "8000", "net_income_ttm": "1200", "total_equity": "4000", "total_debt": "1000",
        "book_value_per_share": "4", "operating_cash_flow_ttm": "4000", "capital_expenditure_ttm": "600",
    });
    assert_eq!(ratios(&reported(figures.clone())), ["6.25", "12.5", "15", "30", "0.25", "3.4"]);
    let with = |more: Value| {
        let mut all = figures.clone();
        more.as_object().expect("figures").iter().for_each(|(name, value)| all[name] = value.clone());
        all
    };
    let vendors = with(json!({ "ps_ratio": "6", "net_margin": "14", "roe": "29", "beta": "1.25" }));
    assert_eq!(ratios(&reported(vendors.clone())), ["6", "12.5", "14", "29", "0.25", "3.4"]);
    assert_eq!(text(reported(vendors).beta), "1.25");
    for nothing in ["0", "-1"] {
        let row = reported(with(json!({ "revenue_ttm": nothing, "total_equity": nothing })));
        assert_eq!(ratios(&row), ["-", "12.5", "-", "-", "-", "3.4"], "{nothing}");
    }
    assert_eq!(ratios(&reported(with(json!({ "net_income_ttm": "-80" }))))[2..4], ["-1", "-2"]);
    // Ratios of a price in dollars to figures in euros are not derived. Ratios of two figures in euros are derived.
    let row = reported(with(json!({ "reported_currency": "EUR" })));
    assert_eq!(ratios(&row), ["-", "-", "15", "30", "0.25", "3.4"]);
    assert_eq!((row.reported_currency.as_deref(), row.as_of), (Some("EUR"), Some(date("2024-03-31"))));
    // A reported market cap is used only in the currency of the prices.
    let cap = |currency: &str| {
        let figures =
            json!({ "shares_outstanding": null, "market_cap": "9000", "reported_currency": currency });
        reported(figures).market_cap
    };
    assert_eq!((cap("USD"), cap("EUR")), (Some(9_000), None));
}

#[test]
fn a_company_without_figures_is_described_and_a_symbol_without_any_is_not() {
    let mut history = company();
    history.fundamentals.clear();
    let row = derived(&history).fundamentals.expect("a row");
    assert_eq!((row.name.as_str(), row.sector.as_deref()), ("Life", Some("Utilities")));
    assert_eq!(
        (row.as_of, row.ipo_date, text(row.eps_ttm)),
        (None, Some(date("1998-05-04")), "-".to_owned())
    );
    history.security = None;
    assert_eq!(derived(&history).fundamentals, None);
}

#[test]
fn a_split_has_the_days_and_the_version_of_its_record() {
    let mut history = Life::new("days", "2024-06-28")
        .split("2024-03-01", 1, 2)
        .of_type("2024-05-02", "0.05", "stock")
        .history();
    let seen = DateTime::from_timestamp(1_700_000_000, 0).expect("a time");
    let (declared, payable) = (Some(date("2024-02-01")), Some(date("2024-02-29")));
    let split = &mut history.splits[0];
    (split.revision, split.observed_at) = (3, seen);
    (split.record.declaration_date, split.record.payable_date) = (declared, payable);
    let shares = &mut history.dividends[0];
    (shares.revision, shares.observed_at) = (4, seen);
    (shares.record.declaration_date, shares.record.payment_date) = (declared, Some(date("2024-05-30")));
    let rows = derived(&history).splits;
    let told: Vec<_> = rows
        .iter()
        .map(|row| (row.declaration_date, row.payable_date, row.revision, row.updated_at))
        .collect();
    assert_eq!(told, [(declared, payable, 3, seen), (declared, Some(date("2024-05-30")), 4, seen)]);
}

#[test]
fn a_split_is_listed_from_its_announcement_on() {
    let listed = |ex_date: &str, declared: Option<&str>| {
        let mut history = Life::new("announced", "2024-06-28").split(ex_date, 1, 2).history();
        history.splits[0].record.declaration_date = declared.map(date);
        derived(&history).splits.len()
    };
    assert_eq!(listed("2024-06-28", Some("2024-07-30")), 1, "it has happened");
    assert_eq!(listed("2024-07-30", Some("2024-06-28")), 1);
    assert_eq!(listed("2024-07-30", Some("2024-06-29")), 0);
}

#[test]
fn two_splits_of_a_day_are_one() {
    let told = |first: (i64, i64), second: (i64, i64)| {
        let life = Life::new("twice", "2024-06-28").pay("2024-01-02", "1");
        let life = life.split("2024-03-01", first.0, first.1).split("2024-03-01", second.0, second.1);
        let mut history = life.history();
        history.splits[0].id = Some("x".into());
        history.splits[1].id = Some("y".into());
        let found = derived(&history);
        let flags = found.metrics.flags.0.iter().filter(|flag| flag.contains("duplicate")).cloned();
        let splits: Vec<String> = found.splits.iter().map(|row| row.text.clone()).collect();
        (splits.join(" "), flags.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(told((1, 2), (1, 2)), ("2:1".to_owned(), "duplicate_collapsed".to_owned()));
    assert_eq!(
        told((1, 2), (1, 3)),
        ("3:1".to_owned(), "conflicting_duplicate duplicate_collapsed".to_owned())
    );
    let single = Life::new("once", "2024-06-28").split("2024-03-01", 1, 2).history();
    let flags = derived(&single).metrics.flags.0;
    assert!(flags.iter().all(|flag| !flag.contains("duplicate")), "{flags:?}");
}

#[test]
fn what_the_data_cover_and_what_was_paid_last() {
    let life = Life::new("covered", "2024-06-28")
        .pay("2023-06-08", "0.4")
        .pay("2024-06-06", "0.5")
        .of_type("2024-06-20", "0.03", "stock")
        .pay("2024-09-05", "0.5")
        .close("2023-06-28", "40")
        .close("2024-06-27", "50");
    let mut history = life.history();
    history.dividends[1].record.payment_date = Some(date("2024-06-21"));
    let stock = derived(&history).stock;
    let covered = &stock.coverage.0;
    assert_eq!(
        [covered.prices_from, covered.prices_to, covered.dividends_from, covered.dividends_to],
        ["2023-06-28", "2024-06-27", "2023-06-08", "2024-09-05"].map(|day| Some(date(day)))
    );
    let dividends = &stock.dividends.0;
    let last = dividends.last.as_ref().expect("a last payment");
    assert_eq!(
        (last.ex_date, last.payment_date, last.amount.to_string(), last.r#type.to_string()),
        (date("2024-06-06"), Some(date("2024-06-21")), "0.5".to_owned(), "regular".to_owned())
    );
    assert_eq!(dividends.next.as_ref().map(|next| next.ex_date), Some(date("2024-09-05")));
    assert_eq!(dividends.currency.as_deref(), Some("USD"));
    assert_eq!(derived(&Life::new("bare", "2024-06-28").history()).stock.coverage.0, Default::default());
}

#[test]
fn an_explanation_since_a_day_counts_what_is_older() {
    let mut history = company();
    history.dividends.push(retracted(&history.dividends[0]));
    let whole = explained(&history);
    let since = limited(&history, date("2023-12-07"));
    let seen = |told: &Explanation, name: &str| -> (usize, usize) {
        let metric = told.metrics.iter().find(|metric| metric.metric == name).expect("a metric");
        (metric.observations.len(), metric.older_observations)
    };
    // The first of the four payments has an ex-date before 2023-12-07, so it is only counted.
    assert_eq!((seen(&whole, "dps_ttm"), seen(&since, "dps_ttm")), ((4, 0), (3, 1)));
    assert_eq!((whole.unused.len(), whole.older_unused), (2, 0));
    assert_eq!((since.unused.len(), since.older_unused), (0, 2));
    let unused = &whole.unused[0];
    assert_eq!((unused.date, text(unused.amount)), (Some(date("2019-03-07")), "0.8".to_owned()));
    assert_eq!(unused.currency.as_deref(), Some("USD"));
}

/// Explanation of a session: the bar of each source as `source outcome close`. The first bar is the one that the
/// derivation uses.
fn told(history: &History, session: &str) -> Vec<String> {
    let told = in_market(|market| explain_session(history, market, date(session)));
    told.observations
        .iter()
        .map(|seen| format!("{} {} {}", seen.source, seen.outcome, text(seen.amount)))
        .collect()
}

#[test]
fn a_session_is_told_by_every_source() {
    let of = |close: i64, day: NaiveDate, version: BarVersion| {
        let missing = MISSING;
        let mut bars = market::bars::Bars { scale: 2, versions: vec![version], ..Default::default() };
        let (open, high, low, vwap, trade_count) = (missing, missing, missing, missing, missing);
        let bar =
            market::bars::Bar { day: day_number(day), open, high, low, close, volume: 1, vwap, trade_count };
        bars.push(bar, 0);
        bars.into()
    };
    let mut history =
        Life::new("told", "2024-06-28").close("2024-06-27", "50").close("2024-06-28", "51").history();
    let mut add = |source: &str, bars| {
        history.prices.push(SourceBars { source: source.into(), bars, closes_only: Vec::new() });
    };
    add("b", of(4_990, date("2024-06-28"), BarVersion::UNKNOWN));
    add("c", of(1, date("2024-06-28"), BarVersion { retracted: true, ..BarVersion::UNKNOWN }));
    assert_eq!(told(&history, "2024-06-27"), ["a used 50"]);
    assert_eq!(told(&history, "2024-06-28"), ["a used 51", "b covered 49.9", "c cancelled -"]);
    assert_eq!(told(&history, "2024-06-26"), Vec::<String>::new());
}

#[test]
fn a_split_of_another_day_is_no_duplicate_of_a_stock_dividend() {
    // A stock dividend on the day of a split is the same event as the split. On another day, it is a second split.
    let factor = |ex_date: &str| {
        let life = Life::new("shares", "2024-06-28")
            .pay("2024-01-02", "4.2")
            .split("2024-02-01", 1, 2)
            .of_type(ex_date, "0.05", "stock");
        let found = derived(&life.history());
        found.dividends[0].adjusted_amount.to_string()
    };
    assert_eq!(factor("2024-02-01"), "2.1");
    assert_eq!(factor("2024-02-02"), "2");
}

/// Adds a decision of the form `verdict kind date value` to the history.
fn decided(history: &History, decision: &str) -> History {
    let [verdict, kind, day, value] = decision.split(' ').collect::<Vec<_>>().try_into().expect("four words");
    let record = json!({
        "symbol": "LIFE", "verdict": verdict, "kind": kind, "source": "a", "date": day, "value": value,
        "reason": "held", "note": "looked at the filing",
    });
    let decision = Observation { source: "manual".into(), ..observed(record) };
    History { decisions: [history.decisions.clone(), vec![decision]].concat(), ..history.clone() }
}

/// Quarantined rows, each as `kind date reason`.
fn held(history: &History) -> Vec<String> {
    let rows = derived(history).quarantined;
    rows.iter().map(|row| format!("{} {} {}", row.kind, row.date.expect("a date"), row.reason)).collect()
}

#[test]
fn a_person_decides_about_a_payment_that_its_neighbours_contradict() {
    let life = Life::new("decided", "2024-06-28").every(91, "2023-03-27", &[("0.05", 5), ("5", 1)]);
    let history = life.history();
    let counted = |history: &History| derived(history).metrics.payment_count;
    assert_eq!(
        (held(&history), counted(&history)),
        (vec!["dividend 2024-06-24 amount_outlier".to_owned()], 5)
    );
    let released = decided(&history, "release dividend 2024-06-24 5");
    assert_eq!((held(&released), counted(&released)), (vec![], 6));
    let confirmed = decided(&history, "confirm dividend 2024-06-24 5");
    assert_eq!(held(&confirmed), ["dividend 2024-06-24 confirmed"]);
    let message = &derived(&confirmed).quarantined[0].message;
    assert_eq!(message, "a person confirmed held: looked at the filing");
    // A valid row is quarantined if a person says that it is wrong.
    let fine = decided(&history, "confirm dividend 2023-09-25 0.05");
    assert_eq!(held(&fine), ["dividend 2023-09-25 confirmed", "dividend 2024-06-24 amount_outlier"]);
    for other in
        ["release dividend 2024-06-24 5.01", "release dividend 2024-06-25 5", "release split 2024-06-24 5"]
    {
        assert_eq!(counted(&decided(&history, other)), 5, "{other} is another row");
    }
    let mut revoked = released.clone();
    revoked.decisions.push(Observation { line: 9, ..retracted(&released.decisions[0]) });
    assert_eq!(counted(&revoked), 5);
    let told = |history: &History| -> Vec<String> {
        let decisions = explained(history).decisions;
        decisions.iter().map(|one| format!("{} {} {}", one.kind, one.value, one.revoked)).collect()
    };
    assert_eq!(
        (told(&released), told(&revoked)),
        (vec!["dividend 5 false".to_owned()], vec!["dividend 5 true".to_owned()])
    );
    assert_eq!(told(&history), Vec::<String>::new());
}

#[test]
fn a_person_decides_about_a_close_in_another_unit() {
    let days =
        ["2024-06-19", "2024-06-20", "2024-06-21", "2024-06-24", "2024-06-25", "2024-06-26", "2024-06-27"];
    let life = days.iter().fold(Life::new("unit", "2024-06-28"), |life, day| {
        life.close(day, if *day == "2024-06-24" { "4000" } else { "40" })
    });
    let history = life.history();
    let bars = |history: &History| derived(history).bars.day.len();
    assert_eq!((held(&history), bars(&history)), (vec!["price 2024-06-24 price_unit_error".to_owned()], 6));
    assert_eq!(told(&history, "2024-06-24"), ["a price_unit_error 4000"]);
    let released = decided(&history, "release price 2024-06-24 4000");
    assert_eq!((held(&released), bars(&released)), (vec![], 7));
    assert_eq!(told(&released, "2024-06-24"), ["a used 4000"]);
    let confirmed = decided(&history, "confirm price 2024-06-26 40");
    assert_eq!(held(&confirmed), ["price 2024-06-24 price_unit_error", "price 2024-06-26 confirmed"]);
    // A decision about a dividend does not apply to a close.
    let other = decided(&history, "release dividend 2024-06-24 4000");
    assert_eq!(bars(&other), 6);
}

#[test]
fn adjusted_amounts_of_a_feed_without_prices_are_on_the_shares_of_its_newest_day() {
    let amounts = |newest: &str| {
        let life = Life::new("basis", "2024-06-28").pay("2023-01-03", "1").pay(newest, "1");
        let mut history = life.split("2024-03-01", 1, 2).history();
        history.splits[0].source = "b".into();
        for row in &mut history.dividends {
            row.record.amount_basis = ShareBasis::SplitAdjusted;
        }
        let rows = derived(&history).dividends;
        (rows[0].amount.to_string(), rows[0].adjusted_amount.to_string())
    };
    assert_eq!(amounts("2024-02-29"), ("1".to_owned(), "0.5".to_owned()));
    assert_eq!(amounts("2024-03-01"), ("2".to_owned(), "1".to_owned()));
}

#[test]
fn a_dropped_row_of_one_id_and_revision_is_flagged_and_explained() {
    let twice = |change: &dyn Fn(&mut Observation<market::event::Dividend>)| {
        let mut history = Life::new("twice", "2024-06-28").pay("2024-03-07", "0.5").history();
        history.dividends[0].id = Some("r1".into());
        let mut other = Observation { line: 2, ..history.dividends[0].clone() };
        change(&mut other);
        history.dividends.insert(0, other);
        let flags = derived(&history).metrics.flags.0;
        let unused = explained(&history).unused;
        let outcomes: Vec<String> =
            unused.iter().map(|row| format!("{} {}", row.outcome, row.line)).collect();
        (flags.iter().any(|flag| flag == "duplicate_collapsed"), outcomes)
    };
    let superseded = || vec!["superseded 1".to_owned()];
    assert_eq!(twice(&|row| row.record.amount = "0.6".parse().expect("an amount")), (true, superseded()));
    assert_eq!(twice(&|row| row.record.ex_date = Some(date("2024-03-08"))), (true, superseded()));
    // An identical row, a row with an additional date, and a correction with a higher revision are not flagged.
    assert_eq!(twice(&|_| ()), (false, superseded()));
    assert_eq!(twice(&|row| row.record.payment_date = Some(date("2024-04-01"))), (false, superseded()));
    let revised = twice(&|row| {
        row.revision = 1;
        row.record.amount = "0.6".parse().expect("an amount");
    });
    assert_eq!(revised, (false, superseded()));
}
