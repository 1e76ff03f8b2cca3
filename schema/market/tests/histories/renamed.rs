//! Tests on a ticker that two companies had, one after the other (R27). At every month end, each company has only its
//! own dividends, with ids that do not change.

use std::collections::BTreeSet;

use chrono::{Days, NaiveDate};
use market::event::{Dividend, FormerSymbol, Security};
use market::history::{History, Observation, SourcePolicy};
use market::identity::{Identity, SecurityDirectory};
use market::metrics::{DerivationContext, DerivedRows, Rules, derive};
use market::row::DividendState;
use market::symbol::Symbol;
use serde_json::json;

use crate::lives::{Life, date};

const UNTIL: &str = "2024-12-31";
/// Last day of the first company under the ticker.
const LEFT: &str = "2015-06-30";
/// First day of the second company under the ticker.
const TAKEN: &str = "2018-03-01";

fn symbol(text: &str) -> Symbol {
    Symbol::parse(text).expect("a symbol")
}

fn filed(life: &Life, ticker: impl Fn(NaiveDate) -> &'static str) -> Vec<Observation<Dividend>> {
    let mut rows = life.history().dividends;
    for row in &mut rows {
        row.record.symbol = symbol(ticker(row.record.ex_date.expect("an ex-date")));
    }
    rows
}

fn first_company() -> Life {
    Life::new("first", UNTIL).every(91, "2008-02-07", &[("0.10", 20), ("0.11", 20), ("0.12", 28)])
}

fn second_company() -> Life {
    Life::new("second", UNTIL).every(91, "2018-05-10", &[("1.50", 27)])
}

/// Dividends of both companies, as one vendor lists them. In the last year before the change from `TICK` to `TOCK`, the
/// first company's dividends appear under both tickers.
fn feed() -> Vec<Observation<Dividend>> {
    let mut rows = filed(&first_company(), |day| if day <= date(LEFT) { "TICK" } else { "TOCK" });
    let again = filed(&first_company(), |_| "TOCK").into_iter();
    rows.extend(
        again.filter(|row| {
            row.record.ex_date.is_some_and(|day| date("2014-07-01") <= day && day <= date(LEFT))
        }),
    );
    rows.extend(filed(&second_company(), |_| "TICK"));
    rows
}

fn reference(line: u64, record: Security) -> Observation<Security> {
    let said = &first_company().history().dividends[0];
    Observation {
        source: said.source.clone(),
        id: None,
        security_ref: Some(format!("company-{line}")),
        revision: 0,
        action: said.action,
        observed_at: said.observed_at,
        line,
        frame: [0; 16],
        record,
    }
}

fn companies() -> SecurityDirectory {
    let security = |ticker: &str| -> Security {
        let record = json!({ "symbol": ticker, "name": ticker, "type": "stock", "currency": "USD", "status": "active" });
        serde_json::from_value(record).expect("a security")
    };
    let former = FormerSymbol { symbol: symbol("TICK"), from: None, to: Some(date(LEFT)) };
    let first = Security { former_symbols: vec![former], ..security("TOCK") };
    let second = Security { ipo_date: Some(date(TAKEN)), ..security("TICK") };
    let known = feed().into_iter().map(|row| row.record.symbol).collect();
    SecurityDirectory::resolve(&[reference(1, first), reference(2, second)], &known, &SourcePolicy::default())
}

fn history(company: &Identity) -> History {
    let owned = |row: &Observation<Dividend>| {
        row.record.ex_date.is_some_and(|day| company.owns(row.record.symbol.as_str(), day))
    };
    History {
        symbol: company.symbol.clone(),
        former_symbols: company.former_symbols(),
        security: company.security.clone(),
        dividends: feed().into_iter().filter(owned).collect(),
        ..first_company().history()
    }
}

fn asked(history: &History, as_of: NaiveDate) -> DerivedRows {
    let policy = SourcePolicy::default();
    derive(
        history,
        &DerivationContext {
            as_of,
            newest: date(UNTIL),
            benchmark: None,
            rates: &market::metrics::ExchangeRates::NONE,
            reporting_currency: "USD",
            policy: &policy,
            rules: &Rules::DEFAULT,
        },
    )
}

fn ids(derived: &DerivedRows, until: NaiveDate) -> BTreeSet<String> {
    derived.dividends.iter().filter(|row| row.ex_date <= until).filter_map(|row| row.id.clone()).collect()
}

/// Checks the rows of a company at every month end. Each pair of `indicated` is a day and the forward dividend from
/// this day on. Returns the ids of all payments.
fn check(ticker: &str, life: &Life, indicated: &[(&str, &str)]) -> BTreeSet<String> {
    let history = history(&companies().identities[&symbol(ticker)]);
    let mut before = BTreeSet::new();
    let days = first_company().first().iter_days().take_while(|day| *day <= date(UNTIL));
    for day in days.filter(|day| chrono::Datelike::day(&(*day + Days::new(1))) == 1) {
        let derived = asked(&history, day);
        let paid: Vec<NaiveDate> = life.rows.iter().map(|row| row.0).filter(|ex| *ex <= day).collect();
        // For a past date, a payment without a declaration date counts as declared 30 days before its ex-date.
        let declared = life.rows.iter().any(|row| row.0 <= day + Days::new(30));
        let status = if declared { DividendState::Active } else { DividendState::NonPayer };
        assert_eq!(derived.metrics.dividend_status, status, "{} on {day}", life.name);
        assert_eq!(derived.metrics.payment_count, paid.len() as i32, "{} on {day}", life.name);
        let rate = indicated.iter().rev().find(|(from, _)| date(from) <= day).map(|(_, rate)| *rate);
        if let Some(rate) = rate {
            let found = derived.metrics.dps_forward.map(|forward| forward.to_string());
            assert_eq!(found.as_deref(), Some(rate), "{} on {day}", life.name);
        }
        let served = ids(&derived, day);
        assert!(served.len() == paid.len() && served.is_superset(&before), "{} on {day}", life.name);
        before = served;
    }
    before
}

#[test]
fn a_ticker_that_another_company_takes_over_mixes_nothing() {
    // Two payments are enough for a frequency. The forward dividend follows from the newest amount.
    let first = check(
        "TOCK",
        &first_company(),
        &[("2008-05-31", "0.4"), ("2013-01-31", "0.44"), ("2017-12-31", "0.48")],
    );
    let second = check("TICK", &second_company(), &[("2018-08-31", "6")]);
    assert!(first.is_disjoint(&second));
    // Each id of the first company has the ticker at the time of the payment, not today's ticker.
    let old = first.iter().filter(|id| id.starts_with("TICK/")).count();
    assert_eq!((old, first.len() - old, second.len()), (30, 38, 27));
}
