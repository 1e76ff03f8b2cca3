//! Test of the complete explanation of a company's metrics.
//!
//! The numbers in the expected text, `explained.txt`, were worked out by hand from the payments below.

use market::event::{Action, Fundamentals, Security};
use market::history::{History, Observation};
use market::metrics::Explanation;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::figures::explained;
use crate::lives::Life;

const EXPLAINED: &str = include_str!("explained.txt");

pub(crate) fn observed<T: DeserializeOwned>(record: Value) -> Observation<T> {
    Observation {
        source: "a".into(),
        id: Some("r1".into()),
        security_ref: None,
        revision: 2,
        action: Action::Put,
        observed_at: chrono::DateTime::UNIX_EPOCH,
        line: 4,
        frame: [0; 16],
        record: serde_json::from_value(record).expect("a record"),
    }
}

/// History of a payer with two payments in 2019, and four per year from 2020 on. Each year from 2021 on has a raise.
/// There are two specials, and a 2:1 split in 2023.
pub(crate) fn company() -> History {
    let life = Life::new("explained", "2024-06-28")
        .pay("2019-03-07", "0.8")
        .pay("2019-09-05", "0.8")
        .pay("2020-03-05", "0.4")
        .pay("2020-06-04", "0.4")
        .pay("2020-09-03", "0.4")
        .pay("2020-12-03", "0.4")
        .pay("2021-03-04", "0.5")
        .pay("2021-06-03", "0.5")
        .pay("2021-09-02", "0.5")
        .pay("2021-12-02", "0.5")
        .pay("2022-03-03", "0.6")
        .pay("2022-06-02", "0.6")
        .of_type("2022-07-07", "1", "special")
        .pay("2022-09-01", "0.6")
        .pay("2022-12-01", "0.6")
        .pay("2023-03-02", "0.8")
        .split("2023-06-05", 1, 2)
        .pay("2023-06-08", "0.4")
        .pay("2023-09-07", "0.4")
        .of_type("2023-11-09", "0.2", "special")
        .pay("2023-12-07", "0.4")
        .pay("2024-03-07", "0.5")
        .pay("2024-06-06", "0.5")
        .close("2023-06-28", "40")
        .close("2023-12-29", "44")
        .close("2024-06-28", "50");
    let mut history = life.history();
    history.security = Some(observed::<Security>(json!({
        "symbol": "LIFE", "name": "Life", "type": "stock", "currency": "USD", "status": "active",
        "ipo_date": "1998-05-04", "sector": "Utilities",
    })));
    history.fundamentals = vec![observed::<Fundamentals>(json!({
        "symbol": "LIFE", "as_of": "2024-03-31", "eps_ttm": "3.6", "shares_outstanding": "1000",
        "dividends_paid_ttm": "1700", "operating_cash_flow_ttm": "4000", "capital_expenditure_ttm": "600",
    }))];
    history
}

/// Explanation as text, with at least three lines for each metric. The first line has rule, name and value. The second
/// line has the formula. A metric that is computed from years has a line with the years; an asterisk marks counted
/// years. The last line has the rounding and the observations.
fn told(explained: &Explanation) -> String {
    let line = |metric: &market::metrics::explain::ExplainedMetric| {
        let seen: Vec<String> = metric
            .observations
            .iter()
            .map(|seen| {
                let day = seen.date.map_or("-".to_owned(), |day| day.to_string());
                let amount = seen.amount.map_or(String::new(), |amount| format!(" {amount}"));
                format!("{} {day}{amount}", seen.kind)
            })
            .collect();
        let seen = match seen.as_slice() {
            [first, .., last] => format!("{} observations, {first} to {last}", seen.len()),
            [only] => only.clone(),
            [] => "no observation".to_owned(),
        };
        let value = metric.value.as_deref().unwrap_or("null");
        let year = |year: &market::metrics::ExplainedYear| {
            let total = year.total.map_or("unknown".to_owned(), |total| total.to_string());
            let change = year.change_percent.map_or(String::new(), |change| format!(" {change} %"));
            format!(" {}{} {total}{change} {}", if year.counted { "*" } else { "" }, year.year, year.status)
        };
        let years: Vec<String> = metric.years.iter().map(year).collect();
        let years = if years.is_empty() { String::new() } else { format!("  years{}\n", years.join(",")) };
        format!(
            "{} {} = {value}\n  {}\n{years}  rounding {}; {seen}\n",
            metric.rule, metric.metric, metric.formula, metric.rounding
        )
    };
    explained.metrics.iter().map(line).collect()
}

#[test]
fn every_metric_is_explained_with_its_values() {
    assert_eq!(told(&explained(&company())), EXPLAINED);
}
