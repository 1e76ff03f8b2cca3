//! Yield on cost: dividends of the last twelve months as percent of the average cost of the remaining shares.

use std::collections::HashMap;

use chrono::{Months, NaiveDate};
use market::row::DividendStatus;
use rust_decimal::Decimal;

use super::distribution_events::DistributionEvents;
use super::position::percent_of;
use super::received_payment::ReceivedDividend;
use super::received_totals::{ReceivedSymbol, gross_by_symbol};
use super::share_count::AccountSecurity;

/// First day of the twelve months that end on a day.
pub(super) fn first_of_twelve_months(day: NaiveDate) -> NaiveDate {
    day.checked_sub_months(Months::new(12)).and_then(|before| before.succ_opt()).unwrap_or(day)
}

/// Sets the yield on cost of each symbol. `payments` has all payments of the twelve months until `today`.
pub(super) fn set_yields_on_cost(
    symbols: &mut [ReceivedSymbol],
    payments: &[ReceivedDividend],
    owned: &[AccountSecurity],
    events: &HashMap<String, DistributionEvents>,
    today: NaiveDate,
) {
    let trailing = first_of_twelve_months(today)..=today;
    let is_trailing = |payment: &&ReceivedDividend| {
        payment.status != DividendStatus::Projected && trailing.contains(&payment.day())
    };
    let income = gross_by_symbol(payments.iter().filter(is_trailing));
    let mut accounts: HashMap<&str, Vec<&AccountSecurity>> = HashMap::new();
    for one in owned {
        accounts.entry(&one.symbol).or_default().push(one);
    }
    for row in symbols {
        let accounts = accounts.get(row.symbol.as_str()).into_iter().flatten();
        let Some(DistributionEvents { splits, .. }) = events.get(&row.symbol) else { continue };
        let costs = accounts.map(|one| one.average_cost(splits, row.currency(), today));
        let cost: Option<Decimal> = costs.sum();
        let key = (row.symbol.clone(), row.currency().to_owned());
        let income = income.get(&key).copied().unwrap_or_default();
        row.yield_on_cost = cost.and_then(|cost| percent_of(income, cost));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twelve_months_end_today() {
        let day = |text: &str| text.parse::<NaiveDate>().expect("a date");
        assert_eq!(first_of_twelve_months(day("2024-06-17")), day("2023-06-18"));
    }
}
