//! Mergers: the shares of a merged security become shares of its successor.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::NaiveDate;
use market::decimal::{MAX_FRACTION_DIGITS, round};
use market::metrics::prices::adjustment::Splits;
use rust_decimal::Decimal;

use super::distribution_events::DistributionEvents;
use super::share_count::AccountSecurity;
use super::transactions::Transaction;
use crate::read::{QueryError, ServedGeneration, lookup};
use crate::render::envelope::Warning;

const MERGERS: &str = include_str!("../../../queries/portfolio/mergers.sql");
/// Maximum number of mergers one after the other that are followed.
const MAX_CHAIN: usize = 10;
/// Maximum number of shares that a merger gives. Sums of so many shares fit into a decimal.
const MAX_SHARES: i64 = 1_000_000_000_000_000_000;

/// Merger of a security into another one.
#[derive(Debug)]
pub(super) struct Merger {
    symbol: String,
    /// Last trading day of the merged security.
    last_day: NaiveDate,
    successor: String,
    /// Shares of the successor per share of the merged security; `None` if it is unknown.
    ratio: Option<Decimal>,
}

/// Loads the mergers of the securities and of their successors, by date.
pub(super) async fn load_mergers(
    generation: &ServedGeneration,
    owned: &[AccountSecurity],
) -> Result<Vec<Merger>, QueryError> {
    let mut symbols: BTreeSet<String> = owned.iter().map(|one| one.symbol.clone()).collect();
    let (mut mergers, mut asked) = (Vec::new(), BTreeSet::new());
    for _ in 0..MAX_CHAIN {
        let new: Vec<String> = symbols.difference(&asked).cloned().collect();
        if new.is_empty() {
            break;
        }
        for row in lookup::run_query(generation, MERGERS, &[&new]).await? {
            let merger = Merger {
                symbol: row.try_get("symbol")?,
                last_day: row.try_get("last_day")?,
                successor: row.try_get("successor")?,
                ratio: row.try_get("ratio")?,
            };
            symbols.insert(merger.successor.clone());
            mergers.push(merger);
        }
        asked.extend(new);
    }
    mergers.sort_by(|one, other| (one.last_day, &one.symbol).cmp(&(other.last_day, &other.symbol)));
    Ok(mergers)
}

/// First day on which each security may be owned, by symbol.
pub(super) fn first_days<'a>(
    owned: &'a [AccountSecurity],
    mergers: &'a [Merger],
) -> BTreeMap<&'a str, NaiveDate> {
    let bought = owned.iter().map(|one| (one.symbol.as_str(), one.first_day()));
    let received = mergers.iter().map(|merger| (merger.successor.as_str(), merger.last_day));
    let mut days: BTreeMap<&str, NaiveDate> = BTreeMap::new();
    for (symbol, day) in bought.chain(received) {
        let first = days.entry(symbol).or_insert(day);
        *first = day.min(*first);
    }
    days
}

/// Adds the shares of the successors that the owner received. The shares that the owner still has of a merged security
/// after all transactions are exchanged, with their average cost. Returns warnings about mergers without a ratio.
/// `None` if a number of shares is too large.
pub(super) fn exchange_shares(
    owned: &mut Vec<AccountSecurity>,
    mergers: &[Merger],
    events: &HashMap<String, DistributionEvents>,
) -> Option<Vec<Warning>> {
    let none = Splits::default();
    let splits_of = |symbol: &str| events.get(symbol).map_or(&none, |events| &events.splits);
    let mut warnings = Vec::new();
    for Merger { symbol, last_day, successor, ratio } in mergers {
        let mut received = Vec::new();
        for one in owned.iter_mut().filter(|one| one.symbol == *symbol) {
            let shares = one.final_shares(splits_of(symbol));
            if shares.is_zero() {
                continue;
            }
            let Some(ratio) = ratio else {
                warnings.push(unknown_ratio(symbol, successor, *last_day));
                continue;
            };
            let quantity = round(shares.checked_mul(*ratio)?, MAX_FRACTION_DIGITS);
            if quantity.abs() > Decimal::from(MAX_SHARES) {
                return None;
            }
            let currency = one.currency().map(str::to_owned);
            let cost = currency
                .as_deref()
                .and_then(|currency| one.average_cost(splits_of(symbol), currency, NaiveDate::MAX));
            received.push(Transaction {
                place: format!("merger of {symbol}"),
                account: one.account.clone(),
                symbol: 0,
                date: *last_day,
                quantity,
                price: cost.and_then(|cost| cost.checked_div(quantity)),
                currency,
            });
            one.give_up(*last_day, shares);
        }
        let of_successor = owned.iter().enumerate().filter(|(_, one)| one.symbol == *successor);
        let places: HashMap<Option<String>, usize> =
            of_successor.map(|(place, one)| (one.account.clone(), place)).collect();
        for transaction in received {
            match places.get(&transaction.account).and_then(|place| owned.get_mut(*place)) {
                Some(one) => one.receive(transaction, splits_of(successor)),
                None => {
                    let account = transaction.account.clone();
                    owned.push(AccountSecurity::new(account, successor.clone(), vec![transaction], None));
                }
            }
        }
    }
    warnings.dedup_by(|one, other| one.message == other.message);
    Some(warnings)
}

fn unknown_ratio(symbol: &str, successor: &str, last_day: NaiveDate) -> Warning {
    let message = format!(
        "{symbol} was merged into {successor} on {last_day}, at an unknown ratio; add the received shares as a transaction"
    );
    Warning { code: "merger", message, param: Some("transactions") }
}
