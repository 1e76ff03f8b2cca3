//! Tests for securities without dividend rows: known non-payers, and missing payments that adjusted closes reveal.

use market::event::{Action, DividendEvidence};
use market::history::{DividendFeeds, History, Observation};
use market::metrics::factor_agreement;
use market::row::{DividendState, Flag};
use serde_json::{Value, json};

use crate::figures::{derived, explained, has, in_market, text};
use crate::lives::{Life, observed};

/// History of a security without dividends. Each pair of `feeds` is a source and a year in which this source has
/// dividends of at least one security.
fn silent(feeds: &[(&str, i32)]) -> History {
    let life = Life::new("silent", "2024-06-28").close("2023-01-03", "40").close("2024-06-27", "50");
    let dividend_feeds: DividendFeeds =
        feeds.iter().map(|(source, year)| ((*source).to_owned(), *year)).collect();
    History { dividend_feeds, ..life.history() }
}

fn evidence(fields: &Value) -> Observation<DividendEvidence> {
    let mut record = json!({ "symbol": "LIFE" });
    fields.as_object().expect("fields").iter().for_each(|(name, value)| record[name] = value.clone());
    observed(1, serde_json::from_value(record).expect("evidence"))
}

/// Evidence for a payment on `ex_date`: the vendor multiplies the close of the session before (`previous`) by `factor`.
fn implied_factor(previous: &str, ex_date: &str, factor: &str) -> Observation<DividendEvidence> {
    let basis = "split_adjusted";
    evidence(&json!({ "previous": previous, "ex_date": ex_date, "factor": factor, "basis": basis }))
}

fn status(history: &History) -> DividendState {
    derived(history).metrics.dividend_status
}

#[test]
fn a_non_payer_is_known_from_a_source_that_carries_dividends() {
    let found = derived(&silent(&[("a", 2024)]));
    assert_eq!(found.metrics.dividend_status, DividendState::NonPayer);
    assert_eq!(text(found.metrics.dividend_yield), "0");
    assert_eq!(found.stock.listed.pays_dividend, Some(false));
    assert!(!has(&found, Flag::NoDividendFeed));
}

#[test]
fn unknown_dividends_give_no_figure() {
    let found = derived(&silent(&[]));
    let metrics = &found.metrics;
    assert_eq!(metrics.dividend_status, DividendState::Unknown);
    assert!(has(&found, Flag::NoDividendFeed));
    let figures = [
        metrics.dps_ttm,
        metrics.dps_ttm_total,
        metrics.dps_forward,
        metrics.dividend_yield,
        metrics.yield_ttm,
        metrics.yield_ttm_total,
        metrics.yield_forward,
        metrics.yield_5y_avg,
        metrics.payout_ratio,
        metrics.total_return_1y,
        found.quote.dividend_yield,
        found.quote.annual_dividend,
    ];
    assert_eq!(figures.map(text), ["-"; 12]);
    assert_eq!((found.stock.listed.pays_dividend, found.quote.dividend_currency.as_deref()), (None, None));
    assert_eq!((metrics.frequency.as_str(), metrics.streak_lower_bound), ("unknown", true));
    assert_eq!((metrics.safety, metrics.yield_trap_risk), (None, None));
    let explained = explained(&silent(&[])).metrics;
    let status = explained.iter().find(|metric| metric.metric == "dividend_status").expect("a status");
    let formula = status.formula.to_string();
    assert!(formula.ends_with("no source that covers it carries dividends"), "{formula}");
}

#[test]
fn a_source_carries_dividends_near_its_prices() {
    let check = |feeds: &[(&str, i32)], expected| assert_eq!(status(&silent(feeds)), expected, "{feeds:?}");
    check(&[("a", 2022)], DividendState::NonPayer);
    check(&[("a", 2021)], DividendState::Unknown);
    check(&[("a", 1995), ("a", 2023)], DividendState::NonPayer);
    check(&[("b", 2023)], DividendState::Unknown);
    // Dividends in a year after the market date do not count.
    check(&[("a", 2025)], DividendState::Unknown);
    // A source that has dividends also covers securities for which it has only a reference record.
    let mut referenced = silent(&[("b", 1999)]);
    let record =
        json!({ "symbol": "LIFE", "name": "Life", "type": "stock", "currency": "USD", "status": "active" });
    referenced.security = Some(observed(1, serde_json::from_value(record).expect("a security")));
    assert_eq!(status(&referenced), DividendState::Unknown);
    referenced.security.as_mut().expect("a record").source = "b".into();
    assert_eq!(status(&referenced), DividendState::NonPayer);
}

#[test]
fn a_dividend_column_without_amounts_proves_a_non_payer() {
    let column = |from: &str| {
        let mut history = silent(&[]);
        history.evidence = vec![evidence(&json!({ "dividends_from": from, "dividends_to": "2025-12-31" }))];
        history
    };
    assert_eq!(status(&column("2023-01-01")), DividendState::NonPayer);
    assert_eq!(status(&column("2025-01-01")), DividendState::Unknown);
    let mut undone = column("2023-01-01");
    let taken = Observation { action: Action::Retract, line: 2, ..undone.evidence[0].clone() };
    undone.evidence.push(taken);
    assert_eq!(status(&undone), DividendState::Unknown);
    undone.evidence.reverse();
    assert_eq!(status(&undone), DividendState::Unknown);
}

#[test]
fn adjusted_closes_prove_that_dividends_are_missing() {
    let mut history = silent(&[("a", 2023)]);
    history.evidence = vec![implied_factor("2023-01-03", "2024-06-27", "0.516172")];
    let found = derived(&history);
    assert!(has(&found, Flag::DividendsMissing) && !has(&found, Flag::NoDividendFeed));
    assert_eq!(
        (found.metrics.dividend_status, text(found.metrics.dividend_yield).as_str()),
        (DividendState::Unknown, "-")
    );
    let unused = explained(&history).unused;
    assert_eq!((unused[0].outcome.as_str(), unused[0].kind.as_str()), ("missing", "evidence"));
    // A factor this close to 1 can be a rounding error.
    history.evidence = vec![implied_factor("2023-01-03", "2024-06-27", "0.9996")];
    assert_eq!(status(&history), DividendState::NonPayer);
    // A factor with an ex-date after the market date does not count yet.
    history.evidence = vec![implied_factor("2024-06-28", "2024-07-01", "0.9")];
    assert_eq!(status(&history), DividendState::NonPayer);
}

/// History of a company that pays 1 per share every quarter. All closes are 100. The row of the second of four payments
/// is missing.
fn payer() -> History {
    let life =
        Life::new("payer", "2024-06-28").pay("2023-07-03", "1").pay("2024-01-02", "1").pay("2024-04-02", "1");
    let closes =
        ["2023-06-30", "2023-07-03", "2023-10-02", "2023-10-03", "2023-12-29", "2024-01-02", "2024-04-01"];
    let life = closes.iter().fold(life, |life, day| life.close(day, "100"));
    life.close("2024-04-02", "100").close("2024-06-27", "100").history()
}

#[test]
fn a_missing_payment_is_named() {
    let mut history = payer();
    let days = [("2023-06-30", "2023-07-03"), ("2023-12-29", "2024-01-02"), ("2024-04-01", "2024-04-02")];
    history.evidence = days.iter().map(|(previous, day)| implied_factor(previous, day, "0.99")).collect();
    assert!(!has(&derived(&history), Flag::DividendsMissing));
    history.evidence.push(implied_factor("2023-10-02", "2023-10-03", "0.99"));
    let found = derived(&history);
    assert!(has(&found, Flag::DividendsMissing));
    assert_eq!(found.metrics.dividend_status, DividendState::Active, "a payer is one, whatever is missing");
    let explained = explained(&history);
    let named: Vec<String> = explained
        .unused
        .iter()
        .map(|row| format!("{} {}", row.date.expect("a day"), row.amount.expect("an amount")))
        .collect();
    assert_eq!(named, ["2023-10-03 1"]);
    // A payment a few days before or after the ex-date explains the factor.
    history.evidence[3] = implied_factor("2023-07-07", "2023-07-10", "0.99");
    assert!(!has(&derived(&history), Flag::DividendsMissing));
    history.evidence[3] = implied_factor("2023-07-10", "2023-07-11", "0.99");
    assert!(has(&derived(&history), Flag::DividendsMissing));
}

#[test]
fn the_newest_version_of_a_step_counts() {
    let mut history = silent(&[("a", 2023)]);
    let newer = Observation { line: 2, ..implied_factor("2023-01-03", "2024-06-27", "1") };
    history.evidence = vec![implied_factor("2023-01-03", "2024-06-27", "0.5"), newer];
    for _ in 0..2 {
        assert_eq!(status(&history), DividendState::NonPayer);
        history.evidence.reverse();
    }
    history.evidence[1].line = 0;
    assert_eq!(status(&history), DividendState::Unknown);
}

#[test]
fn agreement_counts_ex_dates_by_source() {
    let mut history = payer();
    let days = [
        ("2023-06-30", "2023-07-03", "0.9896"),
        ("2023-10-02", "2023-10-03", "0.99"),
        ("2023-12-29", "2024-01-02", "0.9904"),
        ("2024-04-01", "2024-04-02", "0.98"),
        ("2024-04-02", "2024-06-27", "0.9999"),
    ];
    history.evidence =
        days.iter().map(|(previous, day, factor)| implied_factor(previous, day, factor)).collect();
    let found = in_market(|market| factor_agreement(&history, market));
    let counts: Vec<_> =
        found.iter().map(|(source, it)| (source.as_str(), it.ex_dates, it.agreeing)).collect();
    assert_eq!(counts, [("a", 4, 2)]);
}

#[test]
fn steps_of_raw_closes_are_read_without_their_splits() {
    let life = Life::new("split", "2024-06-28").close("2024-06-06", "100").split("2024-06-07", 1, 4);
    let mut history = life.close("2024-06-07", "25").history();
    history.evidence = vec![implied_factor("2024-06-06", "2024-06-07", "0.25")];
    history.evidence[0].record.basis = Some(market::event::ShareBasis::Raw);
    assert!(!has(&derived(&history), Flag::DividendsMissing));
    history.evidence[0].record.basis = Some(market::event::ShareBasis::SplitAdjusted);
    assert!(has(&derived(&history), Flag::DividendsMissing));
}

#[test]
fn adjusted_closes_bear_out_a_large_payment() {
    let large = || {
        let life =
            Life::new("large", "2024-06-28").every(91, "2023-01-03", &[("0.05", 5)]).pay("2024-04-03", "5");
        life.close("2024-04-02", "100").close("2024-04-03", "100.5").close("2024-06-27", "101").history()
    };
    assert_eq!(derived(&large()).metrics.quarantined.0.len(), 1);
    let mut confirmed = large();
    confirmed.evidence = vec![implied_factor("2024-04-02", "2024-04-03", "0.9501")];
    assert_eq!(derived(&confirmed).metrics.quarantined.0, []);
    confirmed.evidence = vec![implied_factor("2024-04-02", "2024-04-03", "0.9995")];
    assert_eq!(derived(&confirmed).metrics.quarantined.0.len(), 1);
}
